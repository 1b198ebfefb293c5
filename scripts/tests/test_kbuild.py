# SPDX-License-Identifier: GPL-2.0
"""Tests of kbuild.sh: that a cached object is never one with old contents. Exit 0 all pass, 1 not."""

import os
import shutil
import subprocess
import tempfile
import time
import unittest

from recorded import TOP


@unittest.skipUnless(shutil.which("ccache") and shutil.which("gcc"), "needs ccache and gcc: make setup")
class Ccache(unittest.TestCase):
    """An assembler file that includes a binary, as those do that a compressed kernel and a vDSO come in."""

    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir)
        self.write("a.S", '.incbin "binary"\n')
        # Files as young as the compilation are not looked up.
        past = time.time() - 100
        os.utime(os.path.join(self.dir, "a.S"), (past, past))

    def write(self, name, text):
        with open(os.path.join(self.dir, name), "w", encoding="utf-8") as f:
            f.write(text)

    def compiled(self, text):
        """The object, after the binary was given that text."""
        self.write("binary", text)
        script = (f". {TOP}/scripts/lib.sh; . {TOP}/scripts/kbuild.sh; kbuild_init /src /out x86_64 6.1; cd {self.dir}; "
                  "ccache gcc -Wp,-MMD,a.d -c -o a.o a.S")
        env = dict(os.environ, CCACHE_DIR=os.path.join(self.dir, "cache"), CCACHE_DEPEND="1")
        subprocess.run(["bash", "-c", script], env=env, check=True)
        with open(os.path.join(self.dir, "a.o"), "rb") as f:
            return f.read()

    def test_incbin(self):
        self.assertIn(b"one", self.compiled("one"))
        self.assertIn(b"two", self.compiled("two"))


if __name__ == "__main__":
    unittest.main()
