# SPDX-License-Identifier: GPL-2.0
"""Tests of apply.sh on small fake sources: a queue goes on and off and leaves the tree as it was, and every refusal
is one line that names what is wrong, with nothing changed. Exit 0 all pass, 1 not."""

import os
import subprocess
import unittest

import frontdoor
from frontdoor import tree_hash, write


class Both:
    """What holds for a git checkout and for an unpacked source alike."""

    def apply(self, *tree):
        return self.run_script("apply.sh", "apply", self.kdir, *tree)

    def unapply(self):
        return self.run_script("apply.sh", "unapply", self.kdir)

    def applied(self):
        with open(self.kdir + "/mm/memory.c", encoding="utf-8") as text:
            return "line ten\n" in text.read() and os.path.exists(self.kdir + "/include/new/thing.h")

    def refused_unchanged(self, run, before, *words):
        self.assert_refused(run, *words)
        self.assertEqual(tree_hash(self.kdir), before)

    def test_round_trip(self):
        before = tree_hash(self.kdir)
        run = self.apply("9.9")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertTrue(self.applied())
        self.assertIn("2 patches of 9.9", run.stdout)
        run = self.unapply()
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(tree_hash(self.kdir), before)
        self.assertFalse(os.path.exists(self.kdir + "/include/new"))

    def test_tree_by_version(self):
        self.assertEqual(self.apply().returncode, 0)
        self.assertTrue(self.applied())

    def test_twice(self):
        self.apply("9.9")
        before = tree_hash(self.kdir)
        self.refused_unchanged(self.apply("9.9"), before, "already")
        self.assertEqual(self.unapply().returncode, 0)
        self.refused_unchanged(self.unapply(), tree_hash(self.kdir), "nothing to take off")
        self.assertEqual(self.apply("9.9").returncode, 0)

    def test_relative_path(self):
        before = tree_hash(self.kdir)
        for verb in ("apply", "unapply"):
            run = subprocess.run([self.top + "/scripts/apply.sh", verb, "linux"], cwd=self.tmp, env=self.env,
                                 capture_output=True, check=False)
            self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(tree_hash(self.kdir), before)

    def test_path_with_blank(self):
        os.rename(self.kdir, self.tmp + "/my linux")
        self.kdir = self.tmp + "/my linux"
        before = tree_hash(self.kdir)
        self.assertEqual(self.apply().returncode, 0)
        self.assertEqual(self.unapply().returncode, 0)
        self.assertEqual(tree_hash(self.kdir), before)

    def test_offset_is_fine(self):
        write(self.kdir + "/mm/memory.c", "new line at the top\n" + frontdoor.MEMORY)
        self.commit()
        self.assertEqual(self.apply().returncode, 0)
        self.assertTrue(self.applied())

    def test_fuzz_is_not(self):
        write(self.kdir + "/mm/memory.c", frontdoor.MEMORY.replace("line 7\n", "line seven\n"))
        self.commit()
        self.refused_unchanged(self.apply("9.9"), tree_hash(self.kdir), "first.patch", "mm/memory.c")

    def test_conflict_in_second(self):
        write(self.kdir + "/mm/memory.c", frontdoor.MEMORY.replace("line 14\n", "line fourteen\n"))
        self.commit()
        self.refused_unchanged(self.apply("9.9"), tree_hash(self.kdir), "second.patch", "mm/memory.c")

    def test_file_missing(self):
        os.rename(self.kdir + "/mm/memory.c", self.kdir + "/mm/other.c")
        self.commit()
        self.refused_unchanged(self.apply("9.9"), tree_hash(self.kdir), "first.patch", "mm/memory.c")

    def test_file_in_the_way(self):
        write(self.kdir + "/include/new/thing.h", "mine\n")
        self.refused_unchanged(self.apply("9.9"), tree_hash(self.kdir), "second.patch", "include/new/thing.h")

    def test_applied_by_hand(self):
        subprocess.run(["patch", "-s", "-p1", "-d", self.kdir], input=frontdoor.FIRST, text=True, check=True)
        self.commit()
        self.refused_unchanged(self.apply("9.9"), tree_hash(self.kdir), "first.patch", "already", "mm/memory.c")

    def test_wrong_version(self):
        write(self.patches + "/9.8/tree.conf", "version=9.8\n")
        write(self.patches + "/9.8/series", "first.patch\n")
        self.refused_unchanged(self.apply("9.8"), tree_hash(self.kdir), "is Linux 9.9.1, not 9.8")
        self.refused_unchanged(self.apply("7"), tree_hash(self.kdir), "no tree '7'", "9.8 9.9")

    def test_version_without_queue(self):
        write(self.kdir + "/Makefile", "VERSION = 9\nPATCHLEVEL = 90\nSUBLEVEL = 0\n")
        self.commit()
        self.refused_unchanged(self.apply(), tree_hash(self.kdir), "Linux 9.90.0", "only for 9.9")

    def test_empty_queue(self):
        os.unlink(self.patches + "/9.9/series")
        self.refused_unchanged(self.apply(), tree_hash(self.kdir), "queue of tree 9.9 is empty")

    def test_no_kernel(self):
        os.unlink(self.kdir + "/Kconfig")
        self.refused_unchanged(self.apply("9.9"), tree_hash(self.kdir), "no kernel source")


class Git(Both, frontdoor.FrontDoor):
    """A git checkout: the queue becomes commits."""

    def setUp(self):
        super().setUp()
        self.make_git()

    def commit(self):
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "mine")

    def test_commits(self):
        before = self.git("rev-parse", "HEAD")
        self.assertEqual(self.apply().returncode, 0)
        log = self.git("log", "--reverse", "--format=%s|%b|%an <%ae>", before + "..")
        self.assertEqual(log.splitlines()[0], "mm: swap: change line ten|It was wrong.")
        self.assertIn("THP swap queue <queue@localhost>", log)
        self.assertNotIn("Signed-off-by", log)
        self.assertNotIn("Forwarded", log)
        self.assertNotIn("Last-Update", log)
        self.assertEqual(self.git("rev-parse", "--abbrev-ref", "HEAD"), "mine")
        self.assertEqual(self.git("status", "--porcelain"), "")
        self.assertEqual(self.unapply().returncode, 0)
        self.assertEqual(self.git("rev-parse", "HEAD"), before)
        self.assertEqual(self.git("for-each-ref", "refs/worktree"), "")

    def test_users_identity(self):
        self.git("config", "user.name", "Ann")
        self.git("config", "user.email", "ann@localhost")
        self.assertEqual(self.apply().returncode, 0)
        self.assertEqual(self.git("log", "-1", "--format=%an <%ae>"), "Ann <ann@localhost>")

    def test_dirty(self):
        write(self.kdir + "/include/old.h", "int mine;\n")
        self.refused_unchanged(self.apply(), tree_hash(self.kdir), "uncommitted changes", "include/old.h")
        self.git("add", "-A")
        self.refused_unchanged(self.apply(), tree_hash(self.kdir), "uncommitted changes", "include/old.h")

    def test_dirty_after(self):
        self.apply()
        write(self.kdir + "/include/old.h", "int mine;\n")
        self.refused_unchanged(self.unapply(), tree_hash(self.kdir), "uncommitted changes", "include/old.h")
        self.git("checkout", "-q", "include/old.h")
        self.assertEqual(self.unapply().returncode, 0)

    def test_untracked_stays(self):
        write(self.kdir + "/notes", "mine\n")
        before = tree_hash(self.kdir)
        self.assertEqual(self.apply().returncode, 0)
        self.assertEqual(self.unapply().returncode, 0)
        self.assertEqual(tree_hash(self.kdir), before)

    def test_commits_on_top(self):
        self.apply()
        write(self.kdir + "/mine.c", "int mine;\n")
        self.commit()
        head = self.git("rev-parse", "HEAD")
        self.refused_unchanged(self.unapply(), tree_hash(self.kdir), "1 commits of yours", "mine")
        self.assertEqual(self.git("rev-parse", "HEAD"), head)
        self.git("reset", "-q", "--hard", "HEAD^")
        self.assertEqual(self.unapply().returncode, 0)

    def test_other_branch(self):
        self.git("branch", "other")
        self.apply()
        self.git("checkout", "-q", "other")
        self.refused_unchanged(self.unapply(), tree_hash(self.kdir), "not the end of the queue")

    def test_reset_by_user(self):
        self.apply()
        self.git("reset", "-q", "--hard", "HEAD~2")
        self.assertEqual(self.apply().returncode, 0)
        self.assertTrue(self.applied())

    def test_linked_worktree(self):
        self.git("worktree", "add", "-q", self.tmp + "/second")
        main, self.kdir = self.kdir, self.tmp + "/second"
        self.assertEqual(self.apply().returncode, 0)
        self.kdir = main
        self.assertEqual(self.apply().returncode, 0)
        self.assertEqual(self.unapply().returncode, 0)
        self.kdir = self.tmp + "/second"
        self.assertEqual(self.unapply().returncode, 0)

    def test_merge_under_way(self):
        write(self.kdir + "/.git/MERGE_HEAD", self.git("rev-parse", "HEAD") + "\n")
        self.refused_unchanged(self.apply(), tree_hash(self.kdir), "MERGE_HEAD")

    def test_no_commit_yet(self):
        subprocess.run(["rm", "-rf", self.kdir + "/.git"], check=True)
        self.git("init", "-q")
        self.refused_unchanged(self.apply(), tree_hash(self.kdir), "no commit yet")


class Plain(Both, frontdoor.FrontDoor):
    """An unpacked source: the queue goes on by quilt."""

    def commit(self):
        pass

    def test_inside_another_repository(self):
        subprocess.run(["git", "init", "-q", self.tmp], env=self.env, check=True)
        self.assertEqual(self.apply().returncode, 0)
        self.assertTrue(os.path.exists(self.kdir + "/.pc/applied-patches"))

    def test_users_quilt(self):
        write(self.kdir + "/patches/series", "mine.patch\n")
        self.refused_unchanged(self.apply(), tree_hash(self.kdir), "patches of its own")
        os.rename(self.kdir + "/patches", self.kdir + "/.pc")
        self.refused_unchanged(self.apply(), tree_hash(self.kdir), ".pc of its own")

    def test_changed_after(self):
        self.apply()
        write(self.kdir + "/include/new/thing.h", "int mine;\n")
        self.refused_unchanged(self.unapply(), tree_hash(self.kdir), "include/new/thing.h")
        write(self.kdir + "/include/new/thing.h", "int thing;\n")
        self.assertEqual(self.unapply().returncode, 0)

    def test_changed_elsewhere_stays(self):
        self.apply()
        write(self.kdir + "/include/old.h", "int mine;\n")
        self.assertEqual(self.unapply().returncode, 0)
        with open(self.kdir + "/include/old.h", encoding="utf-8") as text:
            self.assertEqual(text.read(), "int mine;\n")

    def test_own_patch_on_top(self):
        self.apply()
        write(self.kdir + "/patches/mine.patch", "mine\n")
        self.refused_unchanged(self.unapply(), tree_hash(self.kdir), "patches/mine.patch")

    def test_interrupted(self):
        before = tree_hash(self.kdir)
        self.apply()
        with open(self.kdir + "/.pc/thp-swap", "a", encoding="utf-8") as record:
            record.write("unfinished\n")
        self.assert_refused(self.apply(), "interrupted", "make unapply")
        self.assertEqual(self.unapply().returncode, 0)
        self.assertEqual(tree_hash(self.kdir), before)

    def test_users_quiltrc(self):
        write(self.env["HOME"] + "/.quiltrc", "QUILT_PATCHES=elsewhere\nQUILT_PUSH_ARGS=--nonsense\n")
        self.assertEqual(self.apply().returncode, 0)


class Arguments(frontdoor.FrontDoor):
    """Bad arguments."""

    def test_usage(self):
        for args in ((), ("apply",), ("take", self.kdir), ("apply", self.kdir, "9.9", "more")):
            self.assert_refused(self.run_script("apply.sh", *args), "usage")

    def test_no_folder(self):
        self.assert_refused(self.run_script("apply.sh", "apply", ""), "KDIR is empty")
        self.assert_refused(self.run_script("apply.sh", "apply", self.tmp + "/none"), "no folder")
        self.assert_refused(self.run_script("apply.sh", "unapply", self.tmp + "/none"), "no folder")
        self.assert_refused(self.run_script("apply.sh", "apply", self.kdir + "/Makefile"), "no folder")

    def test_own_build(self):
        path = self.top + "/build/9.9/pristine/linux"
        self.make_source(path)
        self.assert_refused(self.run_script("apply.sh", "apply", path), "make push")


if __name__ == "__main__":
    unittest.main()
