# SPDX-License-Identifier: GPL-2.0
"""Unit tests of the readers below judge.py: splat patterns on sample complaints, KTAP of old and new harnesses, port
records, expectations. Run by python3 -m unittest discover -s scripts/tests; exit 0 if all pass."""

import glob
import os
import tempfile
import unittest

from recorded import FIXTURES, TOP

import expected
import ktap
import portlog
import splats

PATTERNS = os.path.join(TOP, "qemu-images", "splats")
ALLOWED = os.path.join(TOP, "qemu-images", "splats-allowed")


class Splats(unittest.TestCase):
    """Each sample is found, as the class its file is named for."""

    def find(self, text):
        return splats.find(text, splats.load_patterns(PATTERNS), splats.load_allowed(ALLOWED))

    def test_samples(self):
        classes = {kind for kind, _ in splats.load_patterns(PATTERNS)}
        for path in glob.glob(os.path.join(FIXTURES, "splats", "*.log")):
            name = os.path.basename(path).removesuffix(".log")
            if name == "healthy":
                continue
            with open(path, encoding="utf-8") as f:
                found = self.find(f.read())
            kind = max((k for k in classes if name.startswith(k)), key=len)
            self.assertTrue(found, name)
            self.assertEqual(found[0].kind, kind, name)

    def test_healthy(self):
        with open(os.path.join(FIXTURES, "splats", "healthy.log"), encoding="utf-8") as f:
            self.assertEqual([s.text for s in self.find(f.read())], [])

    def test_behind_a_piece_of_output(self):
        self.assertEqual(len(self.find("# half a li[    1.000000] BUG: Bad page state in process x\nne\n")), 1)

    def test_without_time_stamps(self):
        self.assertEqual(self.find("Linux\nBUG: Bad rss-counter state\n")[0].kind, "bad-rss")

    def test_with_caller(self):
        self.assertEqual(self.find("[    1.000000][  T12] WARNING: x\n[    1.0][    C1] y")[0].kind, "warning")

    def test_bad_pattern_files(self):
        for text, load in (("warning\n", splats.load_patterns), ("warning (\n", splats.load_patterns),
                           ("regex without reason\n", splats.load_allowed)):
            with tempfile.NamedTemporaryFile("w") as f:
                f.write(text)
                f.flush()
                with self.assertRaises(splats.BadPattern):
                    load(f.name)


class Ktap(unittest.TestCase):
    """What the harness of old and new trees prints."""

    def parse(self, fixture):
        with open(os.path.join(FIXTURES, "harness", fixture), encoding="utf-8") as f:
            return ktap.parse(f.read().splitlines())

    def test_trees(self):
        for fixture in ("6.1.txt", "7.3.txt"):
            out = self.parse(fixture)
            self.assertEqual([(r.name, r.result) for r in out.results], [
                ("one.passes", "pass"), ("one.skips", "pass"), ("one.fails_on_one", "fail"),
                ("two.passes", "pass"), ("two.skips", "skip"), ("two.fails_on_one", "pass")], fixture)
            self.assertIn("no two here", out.results[4].detail)
            self.assertIn("Expected variant->v (1) != 1 (1)", out.results[2].detail)
            self.assertEqual((out.problems, out.missing()), ([], []))

    def test_skip_all(self):
        out = ktap.parse(["TAP version 13", "1..0 # SKIP no zram"])
        self.assertEqual(out.skip_all, "no zram")

    def test_running_test_is_named(self):
        out = ktap.parse(["1..2", "#  RUN           a.b.c ...", "ok 1 a.b.c", "#  RUN           a.b.d ..."])
        self.assertEqual(out.missing(), ["b.d"])

    def test_problems(self):
        self.assertIn("two results numbered 1", ktap.parse(["1..2", "ok 1 a.b", "ok 1 a.c"]).problems)
        self.assertIn("2 results for a plan of 1", ktap.parse(["1..1", "ok 1 a.b", "ok 2 a.c"]).problems)

    def test_xfail_is_a_failure(self):
        self.assertEqual(ktap.parse(["1..1", "ok 1 a.b # XFAIL known"]).results[0].result, "fail")


class Data(unittest.TestCase):
    """The readers of the port and of the expectations."""

    def test_last_line_wins(self):
        table = expected.Expected("* * * a/* skip # x\n6.1 * arm64* a/b fail # y\n6.1 patched * a/b pass # z\n")
        self.assertEqual(table.lookup("6.1", "pristine", "arm64-mte", "a/b"), ("fail", "y"))
        self.assertEqual(table.lookup("6.1", "patched", "arm64-mte", "a/b"), ("pass", "z"))
        self.assertEqual(table.lookup("6.1", "control:q", "arm64-mte", "a/b"), ("pass", "z"))
        self.assertEqual(table.lookup("7.3", "patched", "x86_64", "a/b"), ("skip", "x"))
        self.assertEqual(table.lookup("7.3", "patched", "x86_64", "b/b"), ("pass", ""))

    def test_stale_lines(self):
        table = expected.Expected("6.* * arm64* a/* skip # x\n6.1 patchd * a/b fail # y\n7.0 * x86 b/c any # z\n")
        self.assertEqual(list(table.stale(["6.1"], ["arm64-mte"], ["a"])), [
            (2, "no state matches 'patchd'"), (3, "no tree matches '7.0'"), (3, "no machine matches 'x86'"),
            (3, "no program matches 'b'")])

    def test_real_expectations(self):
        path = os.path.join(TOP, "selftests", "expected")
        if os.path.exists(path):
            expected.load(path)

    def test_port(self):
        log = portlog.parse("plan 1 a\nstart a\n| 1..1\nat 0.100\n| ok 1 a.b\ntick a 2\nend a exit=0 seconds=2.500\n"
                            "check a ok\nverdict done\n")
        self.assertEqual((log.plan, log.done, log.bad, log.runs[0].seconds), (["a"], True, [], 2.5))

    def test_port_nonsense(self):
        for text in ("plan 2 a\n", "end a exit=0 seconds=1.0\n", "| early\n", "hello\n", "cut off"):
            self.assertEqual(len(portlog.parse(text).bad), 1, text)


if __name__ == "__main__":
    unittest.main()
