#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Boots one guest and records it: takes a machine file, a kernel and an initramfs, writes BASE.log (console),
BASE.port (result port) and BASE.meta.json (how it ended: ok, hung, panic, error); exits 0 if the guest said that it
is done, 1 if not, 2 on wrong use, 130 if interrupted."""

import argparse
import json
import os
import select
import signal
import sys
import time

import portlog
import qemu

QEMU_DIR = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "build", "qemu", "bin")
PANIC = b"Kernel panic - not syncing"
GIVES_UP = b"thp: PID 1 gives up: "
PANIC_END = b"---[ end Kernel panic"
# How long the machine may take to go off after its verdict, and a dump to stop coming.
OFF_SECONDS = 15
QUIET_SECONDS = 2
DUMP_SECONDS = 20
DISK_MIB = 128


class Interrupted(Exception):
    """SIGINT or SIGTERM."""


class Guest:
    """One boot: reads both channels until the guest is done, panics, or stops talking."""

    def __init__(self, machine_name, vm, base, total, silence, verbose, lines):
        self.name, self.vm = machine_name, vm
        self.total, self.silence, self.verbose = total, silence, verbose
        self.log = open(base + ".log", "wb", buffering=0)
        self.port_file = open(base + ".port", "wb", buffering=0)
        self.port = portlog.PortLog()
        self.port_rest = b""
        self.console_tail = b""
        self.panic = None
        self.panic_ended = False
        self.start = self.last = self.last_console = time.monotonic()
        self.boot_seconds = None
        self.open = {vm.console: self.on_console, vm.port: self.on_port}
        self.tty = sys.stderr.isatty() and not lines
        self.shown = 0.0

    def seconds(self):
        return time.monotonic() - self.start

    def on_console(self, data):
        self.log.write(data)
        self.last_console = time.monotonic()
        if self.verbose:
            sys.stderr.buffer.write(data)
            sys.stderr.flush()
        # A pattern may be cut by the border of two reads, so the last lines are kept.
        self.console_tail = (self.console_tail + data)[-4096:]
        if self.panic is None and PANIC in self.console_tail:
            self.panic = time.monotonic()
        if self.panic is not None and PANIC_END in self.console_tail:
            self.panic_ended = True

    def on_port(self, data):
        self.port_file.write(data)
        *lines, self.port_rest = (self.port_rest + data).split(b"\n")
        for line in lines:
            kind = self.port.feed(line.decode(errors="replace"))
            if kind == "plan":
                self.boot_seconds = round(self.seconds(), 2)
            elif kind == "end" and not self.tty and self.port.runs:
                run = self.port.runs[-1]
                self.show_line(f"{run.slug}: {run.ended} {'' if run.code is None else run.code}"
                               f" after {run.seconds:.1f} s")

    def read(self, timeout):
        """Take what both channels have, waiting at most timeout; true if anything came."""
        came = False
        ready, _, _ = select.select(list(self.open), [], [], timeout)
        for channel in ready:
            try:
                data = channel.recv(65536)
            except OSError:
                data = b""
            if data:
                self.open[channel](data)
                self.last = time.monotonic()
                came = True
            else:
                del self.open[channel]
        if not self.open and timeout:
            time.sleep(min(timeout, 0.05))
        return came

    def drain(self, quiet, longest):
        """Read until the console has been quiet for some seconds, or QEMU is gone and all is read."""
        self.last_console = time.monotonic()
        end = self.last_console + longest
        while time.monotonic() < min(end, self.last_console + quiet) and self.open:
            self.read(0.1)
            self.show()

    def position(self):
        count = len(self.port.plan or [])
        return f"{len(self.port.runs)}/{count} {self.port.current or '-'}" if count else "booting"

    def show_line(self, text):
        print(f"  {self.name} {len(self.port.runs)}/{len(self.port.plan or [])} {text}", file=sys.stderr)

    def show(self, last=False):
        """The live line for a person who waits."""
        if not self.tty or self.verbose or (time.monotonic() - self.shown < 0.2 and not last):
            return
        self.shown = time.monotonic()
        line = "" if last else f"  {self.name}: {self.position()}, {self.seconds():.0f} s"
        print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)

    def note(self, text):
        self.log.write(f"\n[guest.py] {text}\n".encode())

    def dump(self):
        """Ask a guest that stopped talking what its tasks do, by all means that there are."""
        for name, ask in (("sysrq-t", lambda: self.vm.sysrq("t")), ("sysrq-l", lambda: self.vm.sysrq("l")),
                          ("NMI", lambda: self.vm.command("inject-nmi"))):
            self.note(f"no sign of life: {name}")
            before = self.log.tell()
            try:
                ask()
                self.drain(QUIET_SECONDS, DUMP_SECONDS)
            except (qemu.QemuError, OSError) as error:
                self.note(f"{name}: {error}")
            # A task dump is long; a serial port that only echoes is not.
            if self.log.tell() - before > 2000:
                break
        try:
            self.note("registers of the CPUs\n" + self.vm.registers())
        except qemu.QemuError as error:
            self.note(f"registers: {error}")

    def hung(self, reason):
        where = self.position()
        self.dump()
        return "hung", f"{reason} ({where})"

    def off(self):
        """After the last record: the machine goes off by itself, or is switched off."""
        end = time.monotonic() + OFF_SECONDS
        while not self.vm.exited() and time.monotonic() < end:
            self.read(0.05)
        if not self.vm.exited():
            self.note("the machine did not go off by itself")

    def gone(self):
        """QEMU has ended without a verdict."""
        _, found, reason = self.console_tail.rpartition(GIVES_UP)
        if found:
            return "error", "PID 1 gives up: " + reason.split(b"\n")[0].decode(errors="replace").strip()
        said = self.vm.messages().splitlines()
        code = self.vm.process.returncode
        how = f"signal {-code}" if code < 0 else f"exit status {code}"
        reason = f"QEMU ended ({how}) before the verdict"
        return "error", f"{reason}: {said[-1]}" if said else reason

    def run(self):
        """Watch the guest; returns how it ended and why."""
        while True:
            self.read(0.1)
            self.show()
            if self.panic is not None:
                if not self.panic_ended and self.open:
                    self.drain(QUIET_SECONDS, DUMP_SECONDS)
                self.drain(0.3, 2)
                return "panic", f"kernel panic ({self.position()})"
            if self.port.done or self.port.abort and self.port.abort.startswith("init"):
                self.off()
                if self.panic is not None:
                    continue
                if self.port.abort:
                    stuck = self.port.abort.startswith("stuck")
                    return "hung" if stuck else "error", self.port.abort
                return "ok", ""
            if self.vm.exited():
                self.drain(0.3, 5)
                if self.panic is None and not self.port.done:
                    return self.gone()
                continue
            if time.monotonic() - self.last > self.silence:
                return self.hung(f"silent for {self.silence:g} s")
            if self.seconds() > self.total:
                return self.hung(f"over the limit of {self.total:g} s for the whole run")


def parse_arguments(argv):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--machine", required=True, help="machine file, qemu-images/NAME.machine")
    parser.add_argument("--kernel", required=True)
    parser.add_argument("--initrd", required=True)
    parser.add_argument("--base", required=True, help="path of the results without suffix")
    parser.add_argument("--smp", type=int, default=2)
    parser.add_argument("--memory", type=int, default=512, help="MiB")
    parser.add_argument("--cmdline-extra", default="")
    parser.add_argument("--icount", action="store_true", help="count instructions: one CPU, repeatable")
    parser.add_argument("--disks", type=int, default=2, help="empty disks of 128 MiB, kept in memory")
    parser.add_argument("--limit", type=int, default=60, help="seconds for one test program")
    parser.add_argument("--total", type=float, default=900, help="seconds for the whole run")
    parser.add_argument("--silence", type=float, default=60, help="seconds without output that mean a hang")
    parser.add_argument("--qemu-dir", default=QEMU_DIR, help="where qemu-system-* are")
    parser.add_argument("--verbose", action="store_true", help="show the console")
    parser.add_argument("--lines", action="store_true", help="no live line: other guests run beside this one")
    args = parser.parse_args(argv)
    for path in (args.machine, args.kernel, args.initrd):
        if not os.path.isfile(path):
            parser.error(f"there is no file '{path}'")
    return args


def interrupted(_number, _frame):
    raise Interrupted


def write_meta(base, meta):
    with open(base + ".meta.json.tmp", "w", encoding="utf-8") as f:
        json.dump(meta, f, indent=1)
        f.write("\n")
    os.replace(base + ".meta.json.tmp", base + ".meta.json")


def boot(args, meta):
    """Boot by the arguments and fill in meta."""
    machine = qemu.read_machine(args.machine)
    binary = os.path.normpath(os.path.join(args.qemu_dir, "qemu-system-" + machine["qemu"]))
    meta["machine"] = machine["name"]
    extra = f"thp.limit={args.limit} thp.total={args.total * 0.9:.0f} {args.cmdline_extra}"
    cmdline = qemu.kernel_cmdline(machine, extra, args.icount)
    meta["qemu"] = qemu.version(binary)
    disks = [qemu.memory_disk(DISK_MIB) for _ in range(args.disks)]
    vm = qemu.Qemu(binary, qemu.arguments(machine, args.kernel, args.initrd, args.memory, args.smp, cmdline,
                                          args.icount, [f"/proc/self/fd/{fd}" for fd in disks]), disks)
    meta["argv"] = vm.argv
    guest = Guest(machine["name"], vm, args.base, args.total, args.silence, args.verbose, args.lines)
    try:
        meta["ended"], meta["reason"] = guest.run()
    finally:
        vm.end()
        guest.read(0)
        guest.show(last=True)
        meta["boot_seconds"] = guest.boot_seconds
        meta["messages"] = vm.messages()


def main(argv=None):
    args = parse_arguments(argv)
    start = time.monotonic()
    meta = {"machine": None, "qemu": None, "argv": [], "ended": "error", "reason": "interrupted"}
    os.makedirs(os.path.dirname(os.path.abspath(args.base)), exist_ok=True)
    for suffix in (".log", ".port", ".meta.json"):
        if os.path.exists(args.base + suffix):
            os.unlink(args.base + suffix)
    signal.signal(signal.SIGINT, interrupted)
    signal.signal(signal.SIGTERM, interrupted)
    status = 1
    try:
        boot(args, meta)
        status = 0 if meta["ended"] == "ok" else 1
    except qemu.QemuError as error:
        meta["reason"] = str(error)
    except Interrupted:
        status = 130
    meta["seconds"] = round(time.monotonic() - start, 2)
    write_meta(args.base, meta)
    if status:
        print(f"{meta['machine'] or args.machine}: {meta['ended']}: {meta['reason']}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
