# SPDX-License-Identifier: GPL-2.0
"""Unit tests of judge.py on a recorded guest that passes and on what can be done to it: run by
python3 -m unittest discover -s scripts/tests; exit 0 if all pass."""

import json
import os
import unittest
from xml.etree import ElementTree

from recorded import FIXTURES, RecordedGuest


class PassingGuest(RecordedGuest):
    """The recorded guest that passes, and what is done to it."""

    def setUp(self):
        super().setUp()
        self.take("pass")

    def rejudge(self, *more, **state):
        status, report, text = self.judge(*more, **state)
        self.assertEqual(status, 0 if report["verdict"] == "pass" else 1)
        return report, text

    def test_passes(self):
        report, text = self.rejudge()
        self.assertEqual(report["verdict"], "pass", text)
        self.assertEqual([t["name"] for t in report["tests"]],
                         ["calm/one.passes", "calm/two.passes", "calm/three.passes", "second/works"])
        self.assertEqual(report["splats"], [])
        self.assertTrue(text.startswith("PASS: 6.1 patched x86_64 (linux 6.1.192, QEMU 10."))
        self.assertEqual(len(text.splitlines()), 1)

    def test_report_has_the_promised_keys(self):
        report, _ = self.rejudge()
        for key in ("tree", "version", "state", "machine", "qemu", "config_sha256", "verdict", "splats", "tests"):
            self.assertIn(key, report)
        for key in ("name", "result", "expected", "seconds", "detail"):
            self.assertIn(key, report["tests"][0])

    def test_junit_and_ktap_agree(self):
        report, _ = self.rejudge()
        suite = ElementTree.parse(self.base + ".xml").getroot()
        self.assertEqual(int(suite.get("tests")), len(report["tests"]) + 2)
        self.assertEqual((suite.get("failures"), suite.get("errors")), ("0", "0"))
        ktap_text = self.read(".ktap")
        self.assertIn("KTAP version 1\n1..5\nok 1 calm/one.passes\n", ktap_text)
        self.assertIn("ok 5 guest/verdict\n", ktap_text)

    def test_warning_in_a_passing_run(self):
        with open(os.path.join(FIXTURES, "splats", "warning.log"), encoding="utf-8") as f:
            warning = f.read()
        text = self.read(".log")
        where = text.index("thp: start second")
        where = text.index("\n", where) + 1
        self.write(".log", text[:where] + warning + text[where:])
        report, text = self.rejudge()
        self.assertEqual(report["verdict"], "fail")
        self.assertEqual([(s["class"], s["test"]) for s in report["splats"]], [("warning", "second")])
        self.assertIn("WARNING: CPU: 1 PID: 87 at mm/swapfile.c:1204", text)
        self.assertIn("again: make test TREE=6.1", text)
        self.assertIn("not ok 5 splats/warning", self.read(".ktap"))

    def test_allowed_warning(self):
        self.write(".log", self.read(".log") + "[    9.000000] WARNING: known thing at foo\n")
        allowed = os.path.join(os.path.dirname(self.base), "allowed")
        with open(allowed, "w", encoding="utf-8") as f:
            f.write("known thing at fo+  # it is harmless\n")
        report, _ = self.rejudge("--splats-allowed", allowed)
        self.assertEqual(report["verdict"], "pass")
        self.assertEqual(report["allowed_splats"][0]["allowed"], "it is harmless")

    def test_panic_although_qemu_exits_0(self):
        self.write(".log", self.read(".log") + "[    9.0] x\n[    9.000000] Kernel panic - not syncing: oops\n")
        self.assertEqual(self.rejudge()[0]["verdict"], "panic")

    def test_kmemleak_report(self):
        self.change(".log", "thp: end of run", "thp: kmemleak: unreferenced object 0xffff88800 (size 64):\r\n"
                    "[    9.999999] thp: end of run")
        self.change(".port", "verdict done", "start kmemleak\ncheck kmemleak 1 unreferenced object(s)\nverdict done")
        report, _ = self.rejudge()
        self.assertEqual(report["verdict"], "fail")
        self.assertEqual(report["splats"][0]["class"], "kmemleak")
        self.assertEqual(self.result(report, "kmemleak/scan")["result"], "fail")

    def test_kmemleak_clean(self):
        self.change(".port", "verdict done", "start kmemleak\ncheck kmemleak ok\nverdict done")
        report, _ = self.rejudge()
        self.assertEqual(report["verdict"], "pass")
        self.assertEqual(self.result(report, "kmemleak/scan")["result"], "pass")

    def test_missing_test(self):
        self.change(".port", "| ok 2 calm.two.passes\n", "")
        report, text = self.rejudge()
        self.assertEqual(report["verdict"], "fail")
        self.assertEqual(self.result(report, "calm/two.passes")["detail"], "did not report")
        self.assertIn("calm/two.passes: wanted pass, got fail", text)

    def test_program_of_the_plan_did_not_run(self):
        text = self.read(".port")
        start, end = text.index("start second"), text.index("verdict done")
        self.write(".port", text[:start] + text[end:])
        report, _ = self.rejudge()
        self.assertEqual(report["verdict"], "fail")
        self.assertEqual(self.result(report, "second/*")["detail"], "did not run")

    def test_program_asked_for_is_not_in_the_plan(self):
        meta = json.loads(self.read(".meta.json"))
        argv = [a.replace("thp.run=calm", "thp.run=calm,third") for a in meta["argv"]]
        self.change_meta(argv=argv)
        report, _ = self.rejudge()
        self.assertEqual((report["verdict"], self.result(report, "third/*")["detail"]), ("fail", "did not run"))

    def test_truncated_ktap(self):
        text = self.read(".port")
        start = text.index("| ok 2 calm.two.passes")
        end = text.index("end calm")
        self.write(".port", text[:start] + text[end:])
        report, _ = self.rejudge()
        self.assertEqual(report["verdict"], "fail")
        self.assertEqual([t["detail"] for t in report["tests"] if not t["ok"]], ["did not report"] * 2)

    def test_no_plan(self):
        self.change(".port", "| 1..3\n", "")
        report, _ = self.rejudge()
        self.assertIn("printed no KTAP plan", self.result(report, "calm/*")["detail"])

    def test_skip_outside_the_list(self):
        self.change(".port", "| ok 3 calm.three.passes", "| ok 3 # SKIP no such feature")
        report, text = self.rejudge()
        self.assertEqual(report["verdict"], "fail")
        self.assertEqual(self.result(report, "calm/three.passes")["result"], "skip")
        self.assertIn("calm/three.passes: wanted pass, got skip", text)
        self.expect("6.* * x86_64 calm/three.passes skip  # no such feature here\n")
        report, text = self.rejudge()
        self.assertEqual(report["verdict"], "pass")
        self.assertIn("3 passed, 0 failed, 1 skipped", text)

    def test_unexpected_pass(self):
        self.expect("6.1 patched x86_64 calm/one.* fail  # known gap\n")
        report, text = self.rejudge()
        self.assertEqual(report["verdict"], "fail")
        self.assertIn("calm/one.passes: wanted fail (known gap), got pass", text)

    def test_expected_failure(self):
        self.change(".port", "| ok 1 calm.one.passes", "| not ok 1 calm.one.passes")
        self.change(".port", "end calm exit=0", "end calm exit=1")
        self.assertEqual(self.rejudge()[0]["verdict"], "fail")
        self.expect("6.1 pristine * calm/one.passes fail  # known gap\n")
        self.assertEqual(self.rejudge()[0]["verdict"], "fail")
        report, text = self.rejudge(state="pristine")
        self.assertEqual(report["verdict"], "pass")
        self.assertIn("1 failed as expected", text)

    def test_exit_status_must_agree(self):
        self.change(".port", "end calm exit=0", "end calm exit=3")
        report, _ = self.rejudge()
        self.assertIn("exit status 3 though no test failed", self.result(report, "calm/*")["detail"])

    def test_killed_program_is_never_an_expected_failure(self):
        self.expect("* * * calm/* any  # anything goes\n")
        self.change(".port", "end calm exit=0", "end calm signal=11")
        report, _ = self.rejudge()
        self.assertEqual(report["verdict"], "fail")
        self.assertIn("died by signal 11", self.result(report, "calm/*")["detail"])

    def test_leftovers(self):
        self.change(".port", "check calm ok", "check calm swap area /dev/zram0 still on")
        report, _ = self.rejudge()
        self.assertEqual(report["verdict"], "fail")
        self.assertIn("/dev/zram0", self.result(report, "calm/cleanup")["detail"])

    def test_verdict_missing(self):
        self.change(".port", "verdict done\n", "")
        report, text = self.rejudge()
        self.assertEqual(report["verdict"], "error")
        self.assertIn("the port does not say 'verdict done'", text)

    def test_verdict_cut_off(self):
        self.change(".port", "verdict done\n", "verdict do")
        self.assertEqual(self.rejudge()[0]["verdict"], "error")

    def test_port_missing(self):
        os.unlink(self.base + ".port")
        report, _ = self.rejudge()
        self.assertEqual(report["verdict"], "error")
        self.assertIn("second/*", [t["name"] for t in report["tests"]])

    def test_nothing_recorded(self):
        for suffix in (".port", ".log", ".meta.json"):
            os.unlink(self.base + suffix)
        self.assertEqual(self.rejudge()[0]["verdict"], "error")

    def test_console_cut_off(self):
        text = self.read(".log")
        self.write(".log", text[:text.index("thp: end of run")])
        report, text = self.rejudge()
        self.assertEqual(report["verdict"], "error")
        self.assertIn("console log is cut off", text)

    def test_senseless_record(self):
        self.change(".port", "start second", "start second\nsomething else")
        self.assertEqual(self.rejudge()[0]["verdict"], "error")

    def test_qemu_did_not_start(self):
        self.write(".port", "")
        self.write(".log", "")
        self.change_meta(ended="error", reason="QEMU ended (exit status 1) before the verdict: bad machine")
        report, text = self.rejudge()
        self.assertEqual(report["verdict"], "error")
        self.assertIn("bad machine", text)

    def test_bad_expectations(self):
        for bad in ("6.1 * * calm/* maybe  # x\n", "6.1 * * calm/* fail\n", "6.1 * fail # x\n"):
            self.expect(bad)
            status, _, text = self.judge()
            self.assertEqual(status, 2)
            self.assertIn(":1: ", text)


if __name__ == "__main__":
    unittest.main()
