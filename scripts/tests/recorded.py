# SPDX-License-Identifier: GPL-2.0
"""What the tests of the judge share: recorded guests (fixtures/) that a test may change before they are judged.
Imported by the tests, not run; no exit code of its own."""

import contextlib
import glob
import io
import json
import os
import shutil
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
FIXTURES = os.path.join(HERE, "fixtures")
sys.path.insert(0, os.path.join(TOP, "scripts"))

import judge  # noqa: E402


class RecordedGuest(unittest.TestCase):
    """A copy of a recorded guest that a test may change before it is judged."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.base = os.path.join(folder.name, "x86_64")
        self.expected = os.path.join(folder.name, "expected")
        self.expect("")

    def take(self, fixture):
        for path in glob.glob(os.path.join(FIXTURES, fixture, "guest.*")):
            shutil.copy(path, self.base + os.path.basename(path).removeprefix("guest"))

    def read(self, suffix):
        with open(self.base + suffix, encoding="utf-8", errors="replace", newline="\n") as f:
            return f.read()

    def write(self, suffix, text):
        with open(self.base + suffix, "w", encoding="utf-8", newline="\n") as f:
            f.write(text)

    def change(self, suffix, old, new):
        text = self.read(suffix)
        self.assertIn(old, text)
        self.write(suffix, text.replace(old, new))

    def change_meta(self, **values):
        meta = json.loads(self.read(".meta.json"))
        meta.update(values)
        self.write(".meta.json", json.dumps(meta))

    def expect(self, text):
        with open(self.expected, "w", encoding="utf-8") as f:
            f.write(text)

    def judge(self, *more, state="patched"):
        """Exit status, report and summary."""
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            status = judge.main(["--base", self.base, "--tree", "6.1", "--version", "6.1.192", "--state", state,
                                 "--machine", "x86_64", "--config-sha256", "0" * 64, "--expected", self.expected,
                                 "--rerun", "make test TREE=6.1", *more])
        report = json.loads(self.read(".json")) if os.path.exists(self.base + ".json") else None
        return status, report, out.getvalue()

    def result(self, report, name):
        return next(t for t in report["tests"] if t["name"] == name)
