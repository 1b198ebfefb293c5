# SPDX-License-Identifier: GPL-2.0
"""Tests of setup.sh and doctor.sh with stand-ins for apt, sudo and id: what is installed, what is only said, and that
nothing is called when nothing is missing. Exit 0 all pass, 1 not."""

import os
import unittest

import frontdoor
from frontdoor import write


class Setup(frontdoor.FrontDoor):
    """A machine that lacks what `tool` (package tool-package) brings."""

    def setUp(self):
        super().setUp()
        self.bin = self.tmp + "/bin"
        self.calls = self.tmp + "/calls"
        write(self.calls, "")
        self.list = self.tmp + "/packages"
        write(self.list, "# comment\nsh dash - everything\ntool tool-package - a test\n"
                         "/no/such/file other-package %s another test\n" % os.uname().machine)
        self.tool("id", 'case $1 in -u) echo "${FAKE_UID:-0}" ;; *) echo someone ;; esac')
        self.tool("apt-cache", 'echo "  Candidate: 1"')
        self.tool("dpkg-query", "true")
        self.tool("apt-get", 'case " $* " in *" install "*) printf "#!/bin/sh\\n" >"%s/tool"; chmod +x "%s/tool" ;; esac'
                  % (self.bin, self.bin))
        self.env.update(PATH=self.bin + ":" + os.environ["PATH"], PACKAGE_LIST=self.list)

    def tool(self, name, body):
        """A stand-in command that records how it was called."""
        path = os.path.join(self.bin, name)
        write(path, '#!/bin/sh\necho "%s $*" >>"%s"\n%s\n' % (name, self.calls, body))
        os.chmod(path, 0o755)

    def called(self, name):
        with open(self.calls, encoding="utf-8") as text:
            return [line for line in text.read().splitlines() if line.startswith(name + " ")]

    def test_installs_as_root(self):
        run = self.run_script("setup.sh")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(len(self.called("apt-get")), 1)
        self.assertTrue(self.called("apt-get")[0].endswith("install tool-package"))

    def test_nothing_to_do(self):
        self.tool("tool", "true")
        run = self.run_script("setup.sh")
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.assertIn("nothing to do", run.stdout)
        self.assertEqual(self.called("apt-get") + self.called("apt-cache"), [])

    def test_list(self):
        run = self.run_script("setup.sh", "--list")
        self.assertEqual((run.returncode, run.stdout), (0, "tool-package\n"))
        self.assertEqual(self.called("apt-get"), [])

    def test_update_only_if_unknown(self):
        self.tool("apt-cache", 'if grep -q "^apt-get .*update" "%s"; then echo "  Candidate: 1"; fi' % self.calls)
        self.assertEqual(self.run_script("setup.sh").returncode, 0)
        self.assertEqual([c.split()[-1] for c in self.called("apt-get")], ["update", "tool-package"])

    def test_unknown_package(self):
        self.tool("apt-cache", "true")
        run = self.run_script("setup.sh")
        self.assertEqual(run.returncode, 1)
        self.assertIn("error: apt knows no package 'tool-package' (for: a test)", run.stderr)

    def test_no_root_no_sudo(self):
        self.tool("sudo", "exit 1")
        self.assert_refused(self.run_script("setup.sh", FAKE_UID="1000"), "as root, run: apt-get install tool-package")
        self.assertEqual(self.called("apt-get"), [])

    def test_sudo(self):
        self.tool("sudo", 'shift; exec "$@"')
        run = self.run_script("setup.sh", FAKE_UID="1000")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertTrue(self.called("sudo")[-1].endswith("install tool-package"))

    def test_install_fails(self):
        self.tool("apt-get", "echo 'E: no space'; exit 100")
        run = self.run_script("setup.sh")
        self.assertEqual(run.returncode, 1)
        self.assertIn("E: no space", run.stderr)
        self.assertIn("try: apt-get install tool-package", run.stderr.splitlines()[-1])

    def test_install_brings_nothing(self):
        self.tool("apt-get", "true")
        run = self.run_script("setup.sh")
        self.assertEqual(run.returncode, 1)
        self.assertIn("still not there: tool-package", run.stderr)

    def test_other_distribution(self):
        only = self.tmp + "/only"
        os.mkdir(only)
        for name in ("bash", "sh", "cat", "awk", "sed", "date", "dirname", "sort", "paste", "env"):
            for folder in os.environ["PATH"].split(":"):
                if os.path.exists(os.path.join(folder, name)):
                    os.symlink(os.path.join(folder, name), os.path.join(only, name))
                    break
        self.tool("id", "echo 0")
        os.symlink(self.bin + "/id", only + "/id")
        os.symlink(self.bin + "/uname", only + "/uname")
        self.tool("uname", "echo " + os.uname().machine)
        run = self.run_script("setup.sh", PATH=only)
        self.assert_refused(run, "not Debian", "tool-package")

    def test_usage(self):
        self.assert_refused(self.run_script("setup.sh", "now"), "usage")
        self.assert_refused(self.run_script("doctor.sh", "now"), "usage")

    def test_doctor(self):
        run = self.run_script("doctor.sh")
        self.assertEqual(run.returncode, 1)
        self.assertRegex(run.stdout, r"note  package: +tool-package is missing \(for: a test\)")
        self.assertRegex(run.stdout, r"FAIL  packages: +1 are missing\n +do: make setup\n")
        self.assertRegex(run.stdout.splitlines()[-1], r"^doctor: \d+ to mend")

    def test_doctor_without_root(self):
        self.tool("sudo", "exit 1")
        run = self.run_script("doctor.sh", FAKE_UID="1000")
        self.assertIn("do: as root: apt-get install tool-package", run.stdout)


class Packages(unittest.TestCase):
    """The real list."""

    def test_rows(self):
        with open(os.path.join(frontdoor.SCRIPTS, "packages"), encoding="utf-8") as text:
            rows = [line.split(None, 3) for line in text if line.strip() and not line.startswith("#")]
        for row in rows:
            self.assertEqual(len(row), 4, row)
            self.assertRegex(row[1], r"^[a-z0-9][a-z0-9.+-]+$")
            self.assertIn(row[2], ("-", "x86_64", "aarch64", "riscv64"))
        self.assertEqual(len({row[0] for row in rows}), len(rows))


if __name__ == "__main__":
    unittest.main()
