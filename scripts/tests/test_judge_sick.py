# SPDX-License-Identifier: GPL-2.0
"""Unit tests of judge.py on controls and on guests recorded while they were sick: run by
python3 -m unittest discover -s scripts/tests; exit 0 if all pass."""

import unittest

from recorded import RecordedGuest


class Controls(RecordedGuest):
    """A control must fail what is named for it, and nothing else."""

    def setUp(self):
        super().setUp()
        self.take("pass")

    def verdict(self, *more):
        _, report, text = self.judge(*more, state="control:x")
        return report["verdict"], text

    def fail_one(self):
        self.change(".port", "| ok 3 calm.three.passes", "| not ok 3 calm.three.passes")
        self.change(".port", "end calm exit=0", "end calm exit=1")

    def test_caught(self):
        self.fail_one()
        self.assertEqual(self.verdict("--named", "calm/three.passes")[0], "pass")

    def test_not_caught(self):
        self.assertEqual(self.verdict("--named", "calm/three.passes")[0], "fail")

    def test_named_test_did_not_run(self):
        self.fail_one()
        verdict, text = self.verdict("--named", "calm/three.passes", "other/*")
        self.assertEqual(verdict, "fail")
        self.assertIn("no test that ran matches 'other/*'", text)

    def test_collateral(self):
        self.fail_one()
        self.assertEqual(self.verdict("--named", "calm/one*")[0], "fail")
        self.change(".port", "| ok 1 calm.one", "| not ok 1 calm.one")
        self.assertEqual(self.verdict("--named", "calm/one*")[0], "fail")
        self.assertEqual(self.verdict("--named", "calm/one*", "--may-fail", "calm/th*")[0], "pass")

    def test_caught_by_the_kernel(self):
        self.write(".log", self.read(".log") + "[    9.000000] BUG: Bad page state in process x\n")
        self.assertEqual(self.verdict("--named", "splat/bad-page")[0], "pass")
        self.assertEqual(self.verdict("--named", "splat/bad-rss")[0], "fail")

    def test_skip_does_not_catch(self):
        self.change(".port", "| ok 3 calm.three.passes", "| ok 3 # SKIP no")
        self.assertEqual(self.verdict("--named", "calm/three.passes")[0], "fail")


class SickGuests(RecordedGuest):
    """Guests recorded while they were sick."""

    def verdict(self, fixture):
        self.take(fixture)
        status, report, text = self.judge()
        self.assertEqual(status, 1)
        return report, text

    def test_panic(self):
        report, text = self.verdict("panic")
        self.assertEqual(report["verdict"], "panic")
        self.assertIn("panic", [s["class"] for s in report["splats"]])
        self.assertIn("the guest ended while it ran", self.result(report, "sysrq/*")["detail"])
        self.assertIn("last lines of the console", text)

    def test_hung(self):
        report, text = self.verdict("hung")
        self.assertEqual(report["verdict"], "hung")
        self.assertIn("silent for", text)
        self.assertRegex(text, r"what its tasks did: \S+\.log, line 120\n")
        self.assertIn("sysrq: Show State", self.read(".log"))

    def test_over_its_limit(self):
        report, _ = self.verdict("timeout")
        self.assertEqual(report["verdict"], "fail")
        self.assertEqual(self.result(report, "sleeper/first")["result"], "pass")
        self.assertIn("was killed after its limit", self.result(report, "sleeper/*")["detail"])
        self.assertEqual(self.result(report, "second/works")["result"], "pass")

    def test_crash(self):
        report, _ = self.verdict("crash")
        self.assertEqual(report["verdict"], "fail")
        self.assertIn("died by signal 11", self.result(report, "crasher/*")["detail"])
        self.assertIn("did not report", self.result(report, "crasher/test-2")["detail"])

    def test_leftovers(self):
        report, _ = self.verdict("leftovers")
        detail = self.result(report, "messy/cleanup")["detail"]
        for what in ("leftover process", "swap area /dev/zram0 still on", "zram0 still set up",
                     "cgroup left left over", "transparent_hugepage/enabled is 'always'", "ksm/run is '1'"):
            self.assertIn(what, detail)
        self.assertEqual(self.result(report, "second/works")["result"], "pass")


if __name__ == "__main__":
    unittest.main()
