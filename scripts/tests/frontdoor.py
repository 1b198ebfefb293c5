# SPDX-License-Identifier: GPL-2.0
"""What the front-door tests share: a fake project (patches, sources) in a temporary folder, and runs of the scripts.
Imported by the tests, not run; no exit code of its own."""

import hashlib
import os
import shutil
import subprocess
import tempfile
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SCRIPTS = os.path.join(TOP, "scripts")

MEMORY = "".join("line %d\n" % n for n in range(1, 41))
FIRST = """Subject: mm: swap: change line ten

It was wrong.

---
Forwarded: no
Origin: own work
Last-Update: 2026-11-30

 mm/memory.c |    2 +-
 1 file changed, 1 insertion(+), 1 deletion(-)

--- a/mm/memory.c
+++ b/mm/memory.c
@@ -7,7 +7,7 @@ line 6
 line 7
 line 8
 line 9
-line 10
+line ten
 line 11
 line 12
 line 13
"""
SECOND = """Subject: mm: swap: add a file and a line

Both are needed.

---
Forwarded: no
Origin: own work
Last-Update: 2026-11-30

 include/new/thing.h |    1 +
 mm/memory.c         |    1 +
 2 files changed, 2 insertions(+)

--- /dev/null
+++ b/include/new/thing.h
@@ -0,0 +1 @@
+int thing;
--- a/mm/memory.c
+++ b/mm/memory.c
@@ -11,6 +11,7 @@ line ten
 line 11
 line 12
 line 13
+line thirteen and a half
 line 14
 line 15
 line 16
"""


def write(path, text):
    """Write text to path, making its folders."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as out:
        out.write(text)


def tree_hash(top):
    """One hash over names, kinds, modes and contents below top, .git left out."""
    digest = hashlib.sha256()
    for folder, folders, files in os.walk(top):
        folders[:] = sorted(f for f in folders if f != ".git")
        for name in sorted(files) + folders:
            path = os.path.join(folder, name)
            digest.update(("%s %o\n" % (os.path.relpath(path, top), os.lstat(path).st_mode)).encode())
            if os.path.islink(path):
                digest.update(os.readlink(path).encode())
            elif os.path.isfile(path):
                with open(path, "rb") as data:
                    digest.update(data.read())
    return digest.hexdigest()


class FrontDoor(unittest.TestCase):
    """A fake project: tree 9.9 with two patches, and a fake kernel source that they fit."""

    def setUp(self):
        self.tmp = os.path.realpath(tempfile.mkdtemp(prefix="thp-swap-test."))
        self.addCleanup(shutil.rmtree, self.tmp, ignore_errors=True)
        # The scripts find the project by their own place, so that build/ and patches/ are the fake project's.
        self.top = os.path.join(self.tmp, "project")
        os.makedirs(self.top)
        shutil.copytree(SCRIPTS, self.top + "/scripts", ignore=shutil.ignore_patterns("tests", "__pycache__"))
        write(self.top + "/qemu-images/x86_64.machine", "arch=x86_64\n")
        self.patches = os.path.join(self.top, "patches")
        self.kdir = os.path.join(self.tmp, "linux")
        write(self.patches + "/9.9/tree.conf", "version=9.9\npackage=linux-source-9.9\nsuites=none\ntested=9.9.1-1\n")
        write(self.patches + "/9.9/series", "first.patch\nsecond.patch\n")
        write(self.patches + "/9.9/first.patch", FIRST)
        write(self.patches + "/9.9/second.patch", SECOND)
        self.make_source(self.kdir)
        home = os.path.join(self.tmp, "home")
        os.mkdir(home)
        self.env = dict(os.environ, HOME=home, TMPDIR=self.tmp, GIT_CONFIG_NOSYSTEM="1",
                        LC_ALL="C", GIT_CONFIG_GLOBAL=home + "/.gitconfig")
        for name in ("GIT_DIR", "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "PATCHES", "TREE", "KDIR", "V"):
            self.env.pop(name, None)

    def make_source(self, top, sublevel="1"):
        """A source that looks like Linux 9.9."""
        write(top + "/Makefile", "VERSION = 9\nPATCHLEVEL = 9\nSUBLEVEL = %s\nEXTRAVERSION =\n" % sublevel)
        write(top + "/Kconfig", "config X\n")
        write(top + "/mm/memory.c", MEMORY)
        write(top + "/include/old.h", "int old;\n")
        os.chmod(top + "/include/old.h", 0o640)

    def run_script(self, script, *args, **env):
        """Run a script of the project; returns the finished process with its output as text."""
        return subprocess.run([os.path.join(self.top, "scripts", script), *args], env=dict(self.env, **env), text=True,
                              capture_output=True, stdin=subprocess.DEVNULL, timeout=120, check=False)

    def git(self, *args, **kwargs):
        """Run git in the fake source."""
        return subprocess.run(["git", "-C", self.kdir, "-c", "user.name=U", "-c", "user.email=u@localhost", *args],
                              env=self.env, text=True, capture_output=True, check=True, **kwargs).stdout.strip()

    def make_git(self):
        """Turn the fake source into a git checkout."""
        self.git("init", "-q", "-b", "mine")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "base")

    def assert_refused(self, run, *words):
        """The run failed with exactly one line, an error that holds all words."""
        self.assertEqual(run.returncode, 1, run.stderr)
        lines = run.stderr.splitlines()
        self.assertEqual(len(lines), 1, run.stderr)
        self.assertTrue(lines[0].startswith("error: "), run.stderr)
        for word in words:
            self.assertIn(word, lines[0])
