# SPDX-License-Identifier: GPL-2.0
"""One QEMU process with its console, result port and monitor on socket pairs: used by guest.py, not run by itself."""

import ctypes
import json
import os
import re
import signal
import socket
import subprocess
import time

PR_SET_PDEATHSIG = 1


class QemuError(Exception):
    """QEMU could not be started or does not answer; the text says why."""


def read_machine(path):
    """The KEY=value lines of a machine file as a dictionary, with its name as "name"."""
    machine = {}
    with open(path, encoding="utf-8") as f:
        for line in f:
            key, equals, value = line.rstrip("\n").partition("=")
            if equals and not key.startswith("#"):
                machine[key] = value
    for key in ("arch", "image", "qemu", "args", "bus", "console"):
        if key not in machine:
            raise QemuError(f"{path}: no line '{key}='")
    if machine["bus"] not in ("pci", "mmio"):
        raise QemuError(f"{path}: bus is '{machine['bus']}', not pci or mmio")
    machine["name"] = os.path.basename(path).removesuffix(".machine")
    return machine


def kernel_cmdline(machine, extra="", icount=False):
    """The kernel command line: what every guest has, what the machine asks for, what the caller asks for."""
    # The host can leave an emulated CPU without time for long: that alone must not look like a stall.
    words = [f"console={machine['console']}", machine.get("cmdline", ""), "panic=-1 oops=panic printk.devkmsg=on",
             "rcupdate.rcu_cpu_stall_timeout=60 watchdog_thresh=30 rcupdate.rcu_expedited=1"]
    if icount:
        words += ["nokaslr norandmaps random.trust_cpu=off", machine.get("cmdline_icount", "")]
    else:
        # A grace period looks at the CPUs at once, not after a tick: swapoff and zram wait for many.
        words.append("rcutree.jiffies_till_first_fqs=0")
    line = " ".join(" ".join(words + [extra]).split())
    limit = int(machine.get("cmdline_max", 2047))
    if len(line) > limit:
        raise QemuError(f"{machine['name']}: the kernel command line has {len(line)} bytes, it takes {limit}")
    return line


def memory_disk(mib):
    """A descriptor of an empty disk that lives in memory: whatever the host's own disk does, the guest's is never late."""
    fd = os.memfd_create("disk")
    os.ftruncate(fd, mib << 20)
    return fd


def disk_arguments(paths, bus, last_first=False):
    """Arguments for raw disks; some machines number them from the last to the first."""
    args = []
    for i, path in enumerate(paths):
        args += ["-drive", f"id=disk{i},if=none,format=raw,cache=unsafe,file.locking=off,file={path}"]
    devices = [["-device", f"virtio-blk-{bus},drive=disk{i},serial=disk{i}"] for i in range(len(paths))]
    if last_first:
        devices.reverse()
    return args + sum(devices, [])


def arguments(machine, kernel, initrd, memory=512, smp=2, cmdline="", icount=False, disks=()):
    """The arguments of QEMU without the channels; disks are paths of raw images."""
    bus = "device" if machine["bus"] == "mmio" else "pci"
    args = machine["args"].split()
    args += ["-accel", "tcg,thread=" + ("single" if icount else "multi")]
    args += ["-m", str(memory), "-smp", str(1 if icount else smp)]
    args += ["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]
    if icount:
        args += ["-icount", "shift=1,sleep=off", "-rtc", "clock=vm,base=2026-01-01T00:00:00", "-seed", "1"]
    if bus == "device":
        args += ["-global", "virtio-mmio.force-legacy=false"]
    args += disk_arguments(disks, bus, machine.get("disks") == "last-first")
    args += ["-device", f"virtio-serial-{bus},max_ports=2"]
    args += ["-kernel", kernel, "-initrd", initrd, "-append", cmdline]
    return args


def _die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Qemu:
    """A running QEMU; console and port are non-blocking sockets. It takes over the descriptors in fds."""

    def __init__(self, binary, args, fds=()):
        pairs = [socket.socketpair() for _ in range(3)]
        self.console, self.port, self.monitor = (ours for ours, _ in pairs)
        theirs = [fd for _, fd in pairs]
        self.argv = [binary] + args + [
            "-chardev", f"socket,id=con,fd={theirs[0].fileno()}", "-serial", "chardev:con",
            "-chardev", f"socket,id=port,fd={theirs[1].fileno()}",
            "-device", "virtserialport,chardev=port,name=thp.result",
            "-chardev", f"socket,id=qmp,fd={theirs[2].fileno()}", "-mon", "chardev=qmp,mode=control"]
        try:
            self.process = subprocess.Popen(
                self.argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                pass_fds=[s.fileno() for s in theirs] + list(fds), preexec_fn=_die_with_parent)
        except OSError as error:
            raise QemuError(f"cannot start {binary}: {error.strerror}") from error
        finally:
            for s in theirs:
                s.close()
            for fd in fds:
                os.close(fd)
        self.console.setblocking(False)
        self.port.setblocking(False)
        os.set_blocking(self.process.stdout.fileno(), False)
        self._answers = b""
        self._greeted = False
        self._deaf = False
        self._text = ""

    def messages(self):
        """What QEMU itself has said so far on its standard output and error."""
        data = self.process.stdout.read() or b""
        self._text += data.decode(errors="replace")
        return self._text.strip()

    def exited(self):
        return self.process.poll() is not None

    def _next_answer(self, deadline):
        while b"\n" not in self._answers:
            self.monitor.settimeout(max(0.01, deadline - time.monotonic()))
            try:
                data = self.monitor.recv(65536)
            except OSError:
                self._deaf = True
                raise QemuError("QEMU's monitor does not answer") from None
            if not data:
                raise QemuError("QEMU closed its monitor")
            self._answers += data
        line, self._answers = self._answers.split(b"\n", 1)
        return json.loads(line)

    def command(self, name, timeout=5, **arguments_):
        """Run a QMP command and return its answer; QemuError if it fails."""
        deadline = time.monotonic() + timeout
        if self._deaf:
            raise QemuError("QEMU's monitor did not answer before")
        if not self._greeted:
            self._next_answer(deadline)
            self._greeted = True
            self.command("qmp_capabilities", timeout)
        try:
            self.monitor.sendall(json.dumps({"execute": name, "arguments": arguments_}).encode() + b"\n")
        except OSError as error:
            raise QemuError(f"QEMU's monitor: {error.strerror}") from None
        while True:
            answer = self._next_answer(deadline)
            if "error" in answer:
                raise QemuError(f"{name}: {answer['error'].get('desc')}")
            if "return" in answer:
                return answer["return"]

    def sysrq(self, key):
        """A serial break and a key: the kernel's SysRq on the console."""
        self.command("chardev-send-break", id="con")
        time.sleep(0.2)
        self.console.send(key.encode())

    def registers(self):
        return self.command("human-monitor-command", **{"command-line": "info registers -a"})

    def end(self):
        """Quit, and make sure that it did."""
        if not self.exited():
            try:
                self.command("quit", timeout=2)
                self.process.wait(3)
            except (QemuError, subprocess.TimeoutExpired):
                self.process.kill()
                self.process.wait()


def version(binary):
    """The version that a QEMU binary states, like 10.0.2."""
    try:
        out = subprocess.run([binary, "--version"], capture_output=True, text=True, timeout=30, check=False)
    except OSError as error:
        raise QemuError(f"cannot start {binary}: {error.strerror}") from error
    found = re.search(r"version (\S+)", out.stdout)
    if not found:
        last = (out.stderr or out.stdout).strip().splitlines()[-1:] or ["no output"]
        raise QemuError(f"{binary} --version: {last[0]}")
    return found.group(1)
