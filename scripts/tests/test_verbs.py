# SPDX-License-Identifier: GPL-2.0
"""Tests of the front door: every verb answers a bad TREE, MACHINE, STATE, KDIR or LEVEL with one line that says what is
wrong, before it makes or changes anything. Exit 0 all pass, 1 not."""

import os
import shutil
import subprocess
import unittest

import frontdoor


class Verbs(frontdoor.FrontDoor):
    """`make VERB BAD=...` in a fake project."""

    def setUp(self):
        super().setUp()
        shutil.copy(frontdoor.TOP + "/Makefile", self.top)
        self.env.pop("MAKEFLAGS", None)
        self.env.pop("MAKELEVEL", None)

    def make(self, *args):
        return subprocess.run(["make", "-s", *args], cwd=self.top, env=self.env, text=True, capture_output=True,
                              stdin=subprocess.DEVNULL, timeout=60, check=False)

    def bad(self, *args, words):
        """One line besides make's own, with all words; nothing is built, KDIR is as it was."""
        before = frontdoor.tree_hash(self.kdir)
        run = self.make(*args)
        self.assertNotEqual(run.returncode, 0, (args, run.stdout, run.stderr))
        said = run.stderr.splitlines()
        lines = [line for line in said if not line.startswith("make: ***")] or said
        self.assertEqual(len(lines), 1, (args, run.stderr))
        for word in words:
            self.assertIn(word, lines[0], args)
        self.assertEqual(frontdoor.tree_hash(self.kdir), before)
        self.assertFalse(os.path.exists(self.top + "/build/9.9"), args)

    def test_tree(self):
        for verb in ("demo", "source", "push", "pop", "refresh", "kernel", "test", "controls", "bench", "bisect-check"):
            with self.subTest(verb):
                self.bad(verb, "TREE=4.4", words=("no tree '4.4'", "9.9"))

    def test_variables_end_here(self):
        """A variable of our make is not one of the makes that a script starts."""
        with open(self.top + "/inner.mk", "w", encoding="utf-8") as f:
            f.write("TESTS := mine\nall:\n\t@echo $(TESTS)\n")
        with open(self.top + "/outer.mk", "w", encoding="utf-8") as f:
            f.write("all:\n\t@bash -c '. scripts/lib.sh; make -f inner.mk'\n")
        run = self.make("-f", "outer.mk", "TESTS=yours")
        self.assertIn("mine", run.stdout, run.stderr)

    def test_machine(self):
        for verb in ("demo", "kernel", "test", "bench"):
            with self.subTest(verb):
                self.bad(verb, "TREE=9.9", "MACHINE=vax", words=("no machine 'vax'", "x86_64"))

    def test_state(self):
        for verb in ("kernel", "test"):
            with self.subTest(verb):
                self.bad(verb, "TREE=9.9", "STATE=broken", words=("no state 'broken'",))
                self.bad(verb, "TREE=9.9", "STATE=control:none", words=("no control 'none'",))

    def test_args(self):
        self.bad("test", "TREE=9.9", "ARGS=600 7", words=("ARGS", "'600'", "make help"))
        os.mkdir(self.top + "/selftests")
        with open(self.top + "/selftests/stress.c", "w", encoding="utf-8"):
            pass
        self.bad("test", "TREE=9.9", "ARGS=tsress=600", words=("ARGS", "no test 'tsress'", "are stress"))

    def test_kdir(self):
        for verb in ("apply", "unapply", "test", "kernel"):
            with self.subTest(verb):
                self.bad(verb, "KDIR=" + self.tmp + "/none", words=("none",))
        for verb in ("apply", "unapply"):
            with self.subTest(verb):
                self.bad(verb, words=("KDIR",))

    def test_level(self):
        self.bad("check", "LEVEL=half", words=("LEVEL='half'", "full"))

    def test_unknown_verb(self):
        run = self.make("tset")
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("tset", run.stderr)

    def test_help(self):
        run = self.make()
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        for verb in ("demo", "check", "doctor", "setup", "source", "push", "pop", "apply", "unapply", "kernel", "test",
                     "matrix", "controls", "bench", "lint", "bisect-check"):
            self.assertIn("make " + verb, run.stdout)

    def test_empty_queue(self):
        os.unlink(self.patches + "/9.9/series")
        run = self.make("bisect-check", "TREE=9.9")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(run.stdout, "skip 9.9: the queue is empty\nbisect-check: 0 passed, 0 failed, 1 skipped\n")


if __name__ == "__main__":
    unittest.main()
