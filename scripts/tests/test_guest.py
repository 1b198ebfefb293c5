# SPDX-License-Identifier: GPL-2.0
"""Unit tests of guest.py against a QEMU that is played by a script (fixtures/qemu): run by
python3 -m unittest discover -s scripts/tests; exit 0 if all pass."""

import contextlib
import glob
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

from recorded import FIXTURES, TOP

import guest
import qemu

MACHINE = "arch=x86_64\nkarch=x86_64\nimage=bzImage\nqemu=fake\nargs=-M none\nbus=mmio\nconsole=ttyS0\ncmdline=quiet\n"


class FakeQemu(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.base = os.path.join(folder.name, "results", "fake")
        self.machine = os.path.join(folder.name, "fake.machine")
        with open(self.machine, "w", encoding="utf-8") as f:
            f.write(MACHINE)

    def arguments(self, scenario, *more):
        return ["--machine", self.machine, "--kernel", self.machine, "--initrd", self.machine, "--base", self.base,
                "--qemu-dir", os.path.join(FIXTURES, "qemu"), "--cmdline-extra", f"thp.run=calm thp.fake={scenario}",
                *more]

    def read(self, suffix):
        with open(self.base + suffix, "rb") as f:
            return f.read().decode()

    def boot(self, scenario, *more):
        """Exit status, the record of how it ended, and what was said on the way."""
        said = io.StringIO()
        with mock.patch.object(guest, "QUIET_SECONDS", 0.2), mock.patch.object(guest, "OFF_SECONDS", 0.5), \
                contextlib.redirect_stderr(said):
            status = guest.main(self.arguments(scenario, *more))
        return status, json.loads(self.read(".meta.json")), said.getvalue()

    def test_ok(self):
        status, meta, said = self.boot("ok")
        self.assertEqual((status, meta["ended"], meta["qemu"]), (0, "ok", "10.0.99"))
        self.assertIn("line 19999\r\n", self.read(".log"))
        self.assertTrue(self.read(".port").endswith("verdict done\n"))
        self.assertIn("fake 1/1 calm: exit 0 after 0.1 s", said)
        append = meta["argv"][meta["argv"].index("-append") + 1]
        self.assertIn("console=ttyS0 quiet panic=-1", append)
        self.assertIn("thp.run=calm", append)

    def test_machine_that_does_not_go_off(self):
        status, meta, _ = self.boot("stays-on")
        self.assertEqual((status, meta["ended"]), (0, "ok"))
        self.assertIn("did not go off by itself", self.read(".log"))

    def test_panic(self):
        start = time.monotonic()
        status, meta, said = self.boot("panic")
        self.assertEqual((status, meta["ended"], meta["reason"]), (1, "panic", "kernel panic (1/1 calm)"))
        self.assertIn("panic", said)
        self.assertLess(time.monotonic() - start, 3)

    def test_silent(self):
        status, meta, _ = self.boot("hung", "--silence", "0.5")
        self.assertEqual((status, meta["ended"], meta["reason"]), (1, "hung", "silent for 0.5 s (1/1 calm)"))
        log = self.read(".log")
        self.assertIn("sysrq: Show State\r\nt task", log)
        self.assertIn("PC=ffff", log)

    def test_silent_from_the_start(self):
        _, meta, _ = self.boot("dead", "--silence", "0.3")
        self.assertEqual((meta["ended"], meta["reason"]), ("hung", "silent for 0.3 s (booting)"))
        self.assertIn("NMI", self.read(".log"))

    def test_over_the_total(self):
        _, meta, _ = self.boot("ticking", "--total", "0.5")
        self.assertEqual(meta["ended"], "hung")
        self.assertIn("over the limit of 0.5 s", meta["reason"])

    def test_process_that_cannot_be_killed(self):
        status, meta, _ = self.boot("stuck")
        self.assertEqual((status, meta["ended"]), (1, "hung"))

    def test_qemu_ends_early(self):
        status, meta, _ = self.boot("gone")
        self.assertEqual((status, meta["ended"]), (1, "error"))
        self.assertIn("exit status 0) before the verdict", meta["reason"])

    def test_init_gives_up(self):
        _, meta, _ = self.boot("no-port")
        self.assertEqual((meta["ended"], meta["reason"]), ("error", "PID 1 gives up: no port"))

    def test_qemu_does_not_start(self):
        status, meta, said = self.boot("no-start")
        self.assertEqual((status, meta["ended"]), (1, "error"))
        self.assertIn("no such machine", meta["reason"])
        self.assertIn("no such machine", said)

    def test_no_qemu(self):
        status, meta, _ = self.boot("ok", "--qemu-dir", "/nonexistent")
        self.assertEqual((status, meta["ended"]), (1, "error"))
        self.assertIn("cannot start", meta["reason"])

    def test_wrong_use(self):
        for more in (["--disks", "many"], ["--smp", "two"]):
            with self.assertRaises(SystemExit) as caught, contextlib.redirect_stderr(io.StringIO()):
                guest.main(self.arguments("ok", *more))
            self.assertEqual(caught.exception.code, 2)

    def qemu_pid(self, process):
        children = f"/proc/{process.pid}/task/{process.pid}/children"
        for _ in range(200):
            if os.path.exists(self.base + ".log") and "Linux" in self.read(".log"):
                with open(children, encoding="utf-8") as f:
                    return int(f.read())
            time.sleep(0.02)
        self.fail("the fake QEMU did not start")

    def interrupt(self, number):
        process = subprocess.Popen([sys.executable, os.path.join(TOP, "scripts", "guest.py"),
                                    *self.arguments("ticking")], stderr=subprocess.DEVNULL)
        child = self.qemu_pid(process)
        process.send_signal(number)
        status = process.wait(10)
        for _ in range(100):
            if not os.path.exists(f"/proc/{child}"):
                return status
            time.sleep(0.02)
        return self.fail("QEMU outlived guest.py")

    def test_interrupted(self):
        self.assertEqual(self.interrupt(signal.SIGTERM), 130)
        self.assertEqual(json.loads(self.read(".meta.json"))["reason"], "interrupted")

    def test_killed(self):
        self.assertEqual(self.interrupt(signal.SIGKILL), -signal.SIGKILL)
        self.assertFalse(os.path.exists(self.base + ".meta.json"))


class Machines(unittest.TestCase):
    """The machine files, and the arguments made from them."""

    def test_real_machines(self):
        paths = glob.glob(os.path.join(TOP, "qemu-images", "*.machine"))
        names = {qemu.read_machine(path)["name"] for path in paths}
        self.assertLessEqual({"x86_64", "arm64", "arm64-mte", "arm64-nodbm", "riscv64", "riscv64-svade"}, names)

    def bad(self, text):
        with tempfile.NamedTemporaryFile("w", suffix=".machine") as f:
            f.write(text)
            f.flush()
            with self.assertRaises(qemu.QemuError) as caught:
                qemu.read_machine(f.name)
        return str(caught.exception)

    def test_bad_machines(self):
        self.assertIn("no line 'console='", self.bad(MACHINE.replace("console", "consul")))
        self.assertIn("bus is 'usb'", self.bad(MACHINE.replace("mmio", "usb")))

    def test_long_command_line(self):
        with self.assertRaises(qemu.QemuError):
            qemu.kernel_cmdline({"name": "x", "console": "ttyS0", "cmdline_max": "100"}, "y" * 100)

    def test_icount(self):
        args = qemu.arguments({"args": "-M virt", "bus": "pci"}, "k", "i", icount=True, smp=4)
        for pair in (["-smp", "1"], ["-icount", "shift=1,sleep=off"], ["-accel", "tcg,thread=single"]):
            self.assertIn(" ".join(pair), " ".join(args))
        self.assertIn("nokaslr", qemu.kernel_cmdline({"console": "ttyS0"}, icount=True))

    def test_disks(self):
        args = " ".join(qemu.disk_arguments(["/a", "/b"], "device", last_first=True))
        for path in ("/a", "/b"):
            self.assertIn(f"file={path}", args)
        self.assertLess(args.index("drive=disk1"), args.index("drive=disk0"))

    def test_memory_disk(self):
        fd = qemu.memory_disk(3)
        self.addCleanup(os.close, fd)
        found = os.fstat(fd)
        self.assertEqual((found.st_size, found.st_blocks), (3 << 20, 0))


if __name__ == "__main__":
    unittest.main()
