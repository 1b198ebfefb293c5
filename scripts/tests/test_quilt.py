# SPDX-License-Identifier: GPL-2.0
"""Tests of quilt.sh: push, pop and refresh on a fake tree lose no change and name what is in the way. Exit 0 all pass,
1 not."""

import os
import unittest

import frontdoor
from frontdoor import write


class Quilt(frontdoor.FrontDoor):
    """A fake tree 9.9, unpacked."""

    def setUp(self):
        super().setUp()
        self.pristine = self.top + "/build/9.9/pristine/linux"
        self.live = self.top + "/build/9.9/patched/linux"
        self.make_source(self.pristine)
        write(self.top + "/build/9.9/source.lock", "package=linux-source-9.9\nversion=9.9.1-1\nsha256=0\n")
        self.before = frontdoor.tree_hash(self.pristine)

    def tearDown(self):
        self.assertEqual(frontdoor.tree_hash(self.pristine), self.before, "the pristine source has changed")

    def quilt(self, *args):
        return self.run_script("quilt.sh", "9.9", *args)

    def good(self, *args):
        run = self.quilt(*args)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        return run.stdout

    def memory(self):
        with open(self.live + "/mm/memory.c", encoding="utf-8") as text:
            return text.read()

    def edit(self, old, new):
        text = self.memory().replace(old, new)
        os.unlink(self.live + "/mm/memory.c")
        write(self.live + "/mm/memory.c", text)

    def test_push_pop_push(self):
        self.assertIn("2 patches of 9.9", self.good("push"))
        self.assertIn("line ten\n", self.memory())
        self.assertIn("0 patches", self.good("pop"))
        self.assertEqual(self.memory(), frontdoor.MEMORY)
        self.assertIn("no patch of 9.9", self.good("pop"))
        self.assertIn("2 patches of 9.9", self.good("push"))
        self.assertIn("line ten\n", self.memory())

    def test_step_by_step(self):
        self.good("push")
        self.assertIn("1 patches", self.good("pop", "1"))
        self.assertNotIn("thirteen and a half", self.memory())
        self.assertIn("2 of 2", self.good("push"))

    def test_refresh(self):
        self.good("push")
        self.assertIn("nothing has changed", self.good("refresh"))
        self.edit("thirteen and a half", "thirteen and a third")
        self.assertIn("second.patch is new", self.good("refresh"))
        with open(self.patches + "/9.9/second.patch", encoding="utf-8") as text:
            self.assertIn("+line thirteen and a third\n", text.read())
        self.good("pop")
        self.good("push")
        self.assertIn("thirteen and a third", self.memory())

    def test_refresh_is_canonical(self):
        self.good("push")
        self.edit("thirteen and a half", "thirteen and a third")
        self.good("refresh")
        run = self.run_script("lint-refresh.sh", "9.9")
        self.assertEqual(run.returncode, 0, run.stdout)

    def test_pop_keeps_changes(self):
        self.good("push")
        self.edit("thirteen and a half", "thirteen and a third")
        self.assert_refused(self.quilt("pop"), "second.patch has changes", "make refresh")
        self.assertIn("thirteen and a third", self.memory())

    def test_edited_patch(self):
        self.good("push")
        self.good("pop", "1")
        write(self.patches + "/9.9/second.patch", frontdoor.SECOND.replace("and a half", "and a third"))
        self.good("push")
        self.assertIn("thirteen and a third", self.memory())

    def test_edited_applied_patch(self):
        self.good("push")
        self.good("pop", "1")
        write(self.patches + "/9.9/first.patch", frontdoor.FIRST.replace("line ten", "line X"))
        self.assert_refused(self.quilt("push", "-a"), "first.patch has changed while it was applied")

    def test_conflict(self):
        self.good("push")
        self.good("pop", "1")
        write(self.patches + "/9.9/second.patch", frontdoor.SECOND.replace(" line 12\n", " line twelve\n"))
        self.assert_refused(self.quilt("push"), "second.patch", "mm/memory.c")

    def test_bad_arguments(self):
        self.assert_refused(self.run_script("quilt.sh", "9.9"), "usage")
        self.assert_refused(self.quilt("shove"), "usage")
        self.assert_refused(self.run_script("quilt.sh", "9.8", "push"), "no tree '9.8'")
        self.assert_refused(self.quilt("refresh"), "make push")


if __name__ == "__main__":
    unittest.main()
