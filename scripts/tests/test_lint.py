# SPDX-License-Identifier: GPL-2.0
"""Tests of the lint checks: a good patch queue and good data files pass, and each kind of mistake is found and named.
Exit 0 all pass, 1 not."""

import importlib.util
import os
import re
import shutil
import sys
import tempfile
import unittest

import frontdoor
from frontdoor import FIRST, write

sys.path.insert(0, frontdoor.SCRIPTS)


def load(name):
    """A script with a hyphen in its name as a module."""
    spec = importlib.util.spec_from_file_location(name.replace("-", "_"), os.path.join(frontdoor.SCRIPTS, name + ".py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PATCHES = load("lint-patches")
FILES = load("lint-files")
CONTROL = FIRST.replace("Forwarded: no\nOrigin: own work\nLast-Update: 2026-11-30\n",
                        "Control-Of: first.patch\nCaught-By: reuse-ksm/all\nMachines: x86_64\n")


class PatchForm(unittest.TestCase):
    """The written form of a patch."""

    def problems(self, text, wanted=PATCHES.DEP3):
        message, below, diff = PATCHES.split(text)
        return (PATCHES.message_problems(message) + PATCHES.below_problems(below, wanted) +
                PATCHES.diff_problems(diff))

    def one(self, text, word):
        found = self.problems(text)
        self.assertEqual(len(found), 1, found)
        self.assertIn(word, found[0])

    def test_good(self):
        self.assertEqual(self.problems(FIRST), [])
        self.assertEqual(self.problems(frontdoor.SECOND), [])

    def test_subject(self):
        self.one(FIRST.replace("Subject: ", ""), "no subject")
        self.one(FIRST.replace("mm: swap: change", "Change the"), "subsys: phrase")
        self.one(FIRST.replace("line ten\n\nIt", "line ten.\n\nIt"), "full stop")
        self.one(FIRST.replace("change line ten", "change " + "x" * 75, 1), "75 are allowed")
        self.assertEqual(self.problems(FIRST.replace("Subject: ", "Subject: [PATCH 1/2] ")), [])

    def test_columns(self):
        self.one(FIRST.replace("It was wrong.", "word " * 16 + "."), "line 3 has 81 columns")
        for free in ("    quoted log " + "x" * 80, "https://lore.kernel.org/" + "x" * 80, "Link: " + "x" * 80):
            self.assertEqual(self.problems(FIRST.replace("It was wrong.", free)), [])

    def test_message_empty(self):
        self.one(FIRST.replace("It was wrong.\n\n", ""), "nothing but the subject")

    def test_tags(self):
        for tag in ("Signed-off-by", "Reviewed-by", "signed-off-by"):
            self.one(FIRST.replace("wrong.\n", "wrong.\n\n%s: A <a@b>\n" % tag, 1), "only the sender")

    def test_fields(self):
        for key in PATCHES.DEP3:
            self.one(re.sub("%s:.*\n" % key, "", FIRST), "no '%s:'" % key)
        self.one(FIRST.replace("2026-11-30", "yesterday"), "no date")
        self.one(re.sub(r" mm/memory.c \|.*\n.*changed.*\n", "", FIRST), "no diffstat")

    def test_diff(self):
        self.one(FIRST.replace("+line ten", "+line ten "), "ends in blanks")
        self.one(FIRST.replace("+++ b/mm/memory.c", "+++ b/mm/memory.c\t2026-11-30"), "time stamp")
        self.assertIn("no diff", " ".join(self.problems(FIRST.split("--- a/")[0])))


class Queue(frontdoor.FrontDoor):
    """A whole queue, by the scripts."""

    def setUp(self):
        super().setUp()
        self.make_source(self.top + "/build/9.9/pristine/linux")
        write(self.top + "/selftests/reuse-ksm.c", "\n")
        write(self.patches + "/9.9/controls/series", "broken.patch\n")
        text = CONTROL.replace("-line 10\n+line ten\n", "-line ten\n+line 10\n")
        write(self.patches + "/9.9/controls/broken.patch", text)

    def refresh(self):
        return self.run_script("lint-refresh.sh", "9.9")

    def form(self):
        return self.run_script("lint-patches.py")

    def fails(self, run, *words):
        self.assertEqual(run.returncode, 1, run.stdout + run.stderr)
        line = next(line for line in run.stdout.splitlines() if line.startswith("FAIL"))
        for word in words:
            self.assertIn(word, line)

    def change(self, name, old, new):
        path = os.path.join(self.patches, "9.9", name)
        with open(path, encoding="utf-8") as text:
            text = text.read()
        self.assertIn(old, text)
        write(path, text.replace(old, new))

    def test_good(self):
        run = self.form()
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        run = self.refresh()
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertEqual(run.stdout.count("ok   9.9: "), 3)

    def test_refresh_leaves_the_source(self):
        before = frontdoor.tree_hash(self.top + "/build")
        self.refresh()
        self.assertEqual(frontdoor.tree_hash(self.top + "/build"), before)

    def test_not_canonical(self):
        self.change("first.patch", "|    2 +-", "|    3 +-")
        self.fails(self.refresh(), "first.patch line 10", "quilt refresh")

    def test_does_not_push(self):
        self.change("second.patch", " line 14\n", " line fourteen\n")
        self.fails(self.refresh(), "second.patch does not push", "mm/memory.c")

    def test_control_does_not_push(self):
        self.change("controls/broken.patch", " line 9\n", " line nine\n")
        self.fails(self.refresh(), "control broken.patch does not push")

    def test_newer_point_release(self):
        path = self.top + "/build/9.9/pristine/linux"
        self.make_source(path, "7")
        write(path + "/mm/memory.c", "one more\n" + frontdoor.MEMORY)
        run = self.refresh()
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)

    def test_not_unpacked(self):
        os.rename(self.top + "/build", self.top + "/gone")
        run = self.refresh()
        self.assertEqual(run.returncode, 0)
        self.assertRegex(run.stdout, "skip 9.9: .*not checked, source not unpacked")

    def test_series(self):
        write(self.patches + "/9.9/series", "first.patch\nthird.patch\nfirst.patch\n")
        run = self.form()
        for word in ("lists third.patch, which is not there", "does not list second.patch", "lists first.patch twice"):
            self.assertIn(word, run.stdout)
        self.fails(run)
        os.unlink(self.patches + "/9.9/controls/series")
        self.assertIn("controls/series is missing", self.form().stdout)

    def test_control_fields(self):
        for old, new, word in (("reuse-ksm/all", "reuse-nothing/all", "no selftests/reuse-nothing.c"),
                               ("reuse-ksm/all", "reuse-ksm", "not of the form"), ("x86_64", "vax", "'vax'"),
                               ("first.patch", "none.patch", "none.patch, which is not"),
                               ("Control-Of: first.patch\n", "", "no 'Control-Of:'")):
            write(self.patches + "/9.9/controls/broken.patch", CONTROL.replace(old, new))
            self.fails(self.form(), word)

    def test_bad_arguments(self):
        for script in ("lint.sh", "lint-refresh.sh"):
            self.assert_refused(self.run_script(script, "4.4"), "no tree '4.4'", "9.9")
        self.assert_refused(self.run_script("lint-refresh.sh"), "usage")
        self.assertEqual(self.run_script("lint-patches.py", "4.4").returncode, 2)


class Files(unittest.TestCase):
    """The checks of scripts and data files."""

    GOOD = "#!/bin/bash\n# Do a thing with a thing: thing.sh THING; prints a thing. Exit 0 done, 1 not.\n"

    def test_header(self):
        self.assertEqual(FILES.header_problems("scripts/a.sh", self.GOOD), [])
        self.assertEqual(len(FILES.header_problems("scripts/a.sh", "#!/bin/bash\necho\n")), 1)
        self.assertIn("exit code", FILES.header_problems("scripts/a.sh", self.GOOD.split(" Exit")[0])[0])
        self.assertEqual(len(FILES.header_problems("selftests/a.c", "int x;\n")), 1)
        self.assertEqual(len(FILES.header_problems("scripts/a.py", "def broken(\n")), 1)

    def test_lengths(self):
        self.assertEqual(FILES.length_problems("scripts/a.sh", self.GOOD), [])
        self.assertIn("301 lines", FILES.length_problems("scripts/a.sh", "x\n" * 301)[0])
        self.assertIn(":1: 121 columns", FILES.length_problems("scripts/a.sh", "x" * 121)[0])
        self.assertEqual(FILES.length_problems("scripts/a.sh", 'die "%s"' % ("word " * 30)), [])

    def test_blanks(self):
        for text, word in (("a \n", "ends in blanks"), ("a\r\n", "carriage"), ("a", "no newline"),
                           ("a\n\n", "blank lines"), ("<<" "<<<<< HEAD\n", "conflict")):
            self.assertIn(word, FILES.blank_problems("a.c", text)[0])
        self.assertEqual(FILES.blank_problems("a.c", "a\n"), [])
        self.assertEqual(FILES.blank_problems("a.c", ""), [])

    def test_one_machine(self):
        for text in ("cd /wo" "rk/main", "x=/ro" "ot/y", "/ho" "me/ann/linux", "cp '/ro" "ot/y'", "http://ftp.deb" "ian.org/x"):
            self.assertEqual(len(FILES.machine_only_problems("a.sh", text)), 1, text)
        for text in ("a/wo" "rk/b", "$x/ro" "ot/y", "build/qemu/ro" "ot/x", '"$OUT"/ro' "ot/x"):
            self.assertEqual(FILES.machine_only_problems("a.sh", text), [], text)

    def test_python(self):
        self.assertEqual(FILES.python_problems("a.py", "x = 1\n"), [])
        self.assertIn("a.py:1:", FILES.python_problems("a.py", "x = (\n")[0])

    def expected(self, text):
        return FILES.expected_problems(text, ["5.10", "6.1"], ["arm64", "x86_64"], ["mte-tags", "reuse-ksm"])

    def test_expected(self):
        self.assertEqual(self.expected("# a comment\n\n6.1 pristine * mte-tags/* fail  # why\n* * * reuse-ksm/a pass\n"), [])
        for line, word in (("6.1 * * mte-tags/* fail", "without a reason"), ("6.1 * mte-tags/* fail # x", "4 words"),
                           ("6.2 * * mte-tags/* pass", "tree '6.2'"), ("* * vax mte-tags/* pass", "machine 'vax'"),
                           ("* * * none/* pass", "no selftests"), ("* * * mte-tags pass", "not of the form"),
                           ("* * * mte-tags/* maybe # x", "'maybe'"), ("* never * mte-tags/* pass", "no state"),
                           ("* * * reuse-ksm/* pass\n* * * mte-tags/* pass", "not sorted")):
            self.assertIn(word, " ".join(self.expected(line)), line)

    def scratch(self):
        folder = tempfile.mkdtemp(prefix="thp-swap-test.")
        self.addCleanup(shutil.rmtree, folder)
        return folder + "/file"

    def test_tree_conf(self):
        good = "version=6.1\npackage=linux-source-6.1\nsuites=bookworm\ntested=6.1.1-1\n"
        path = self.scratch()
        for change, word in (("", ""), ("version=6.2", "version=6.2"), ("tested=6.2.1-1", "no version of 6.1"),
                             ("colour=red", "unknown"), ("nonsense", "unknown"), ("suites=", "no value")):
            write(path, good + change + "\n")
            found = " ".join(FILES.tree_problems("6.1", path))
            self.assertIn(word, found) if word else self.assertEqual(found, "")
        write(path, "version=6.1\n")
        self.assertEqual(len(FILES.tree_problems("6.1", path)), 3)

    def test_machine(self):
        good = ("arch=arm64\nkarch=arm64\ncross=aarch64-linux-gnu-\nimage=arch/arm64/boot/Image\nqemu=aarch64\n"
                "args=-M virt -cpu max\nbus=mmio\nconsole=ttyAMA0\ncmdline=\n")
        path = self.scratch()
        for old, new, word in (("", "", ""), ("arch=arm64\nk", "arch=vax\nk", "arch=vax"),
                               ("bus=mmio\n", "", "no key 'bus'"), ("args=-M", "args=-X", "args="), ("cmdline=", "colour=red\ncmdline=", "unknown")):
            write(path, good.replace(old, new) if old else good)
            found = " ".join(FILES.machine_problems(path))
            self.assertIn(word, found) if word else self.assertEqual(found, "")


if __name__ == "__main__":
    unittest.main()
