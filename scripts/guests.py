#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Boots guests side by side, each with its share of the test programs, and merges their records as if one guest had
run them all: guests.py --guests N --programs SLUG,SLUG... [arguments of guest.py]; leaves BASE.log, BASE.port and
BASE.meta.json (those of each guest stay as BASE.guestN.*); exits as guest.py: 0, 1, 2, or 130 if interrupted."""

import argparse
import glob
import json
import os
import signal
import subprocess
import sys

import portlog

GUEST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "guest.py")
# The worst end of a guest is the end of all.
BADNESS = ("ok", "error", "hung", "panic")


def deal(programs, guests, seconds=None):
    """The shares: by the seconds that each program took the last time, the longest first to whoever has least to do;
    without them dealt like cards, since neighbours in the alphabet are of one kind and take alike long."""
    seconds = seconds or {}
    if not all(slug in seconds for slug in programs):
        return [share for share in (programs[i::guests] for i in range(guests)) if share]
    shares = [[] for _ in range(guests)]
    for slug in sorted(programs, key=seconds.get, reverse=True):
        min(shares, key=lambda share: sum(map(seconds.get, share))).append(slug)
    return [sorted(share, key=programs.index) for share in shares if share]


def last_seconds(base):
    """How long each program took in the run before this one, if its record is still there."""
    return {run.slug: run.seconds for run in portlog.parse(read(base + ".port")).runs if run.ended == "exit"}


def read(path):
    """Text of a record as it is, or nothing."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape", newline="") as f:
            return f.read()
    except FileNotFoundError:
        return ""


def write(path, text):
    with open(path + ".tmp", "w", encoding="utf-8", errors="surrogateescape", newline="") as f:
        f.write(text)
    os.replace(path + ".tmp", path)


def read_meta(base):
    try:
        return json.loads(read(base + ".meta.json"))
    except ValueError:
        return {"ended": "error", "reason": f"{base}.meta.json is not there: guest.py did not get that far"}


def merge_ports(texts):
    """One port out of several: one plan, the records of each, and a verdict only if all of them gave one."""
    plans, bodies, aborts, done = [], [], [], True
    for text in texts:
        lines = text.split("\n")
        done = done and lines[-2:] == ["verdict done", ""]
        for line in lines[:-1]:
            if line.startswith("plan "):
                plans += line.split()[2:]
            elif line.startswith("abort "):
                aborts.append(line)
            elif line != "verdict done":
                bodies.append(line)
        if lines[-1]:
            # A last record that is cut off must not be read as a whole one.
            bodies.append("cut-off " + lines[-1])
    whole = [f"plan {len(plans)} {' '.join(plans)}"] if plans else []
    return "".join(line + "\n" for line in whole + bodies + aborts + (["verdict done"] if done else []))


def merge(base, parts):
    """Write the records of BASE out of those of the parts, the guests that ended well first: what a sick one was made
    to say at its end comes last, and its last lines are the ones that people see."""
    metas = {part: read_meta(part) for part in parts}
    parts = sorted(parts, key=lambda part: BADNESS.index(metas[part].get("ended", "error")))
    worst = dict(metas[parts[-1]])
    worst["guests"] = [metas[part].get("argv", []) for part in sorted(parts)]
    for key in ("seconds", "boot_seconds"):
        worst[key] = max((metas[part].get(key) or 0 for part in parts), default=0)
    write(base + ".log", "".join(read(part + ".log") for part in parts))
    write(base + ".port", merge_ports([read(part + ".port") for part in parts]))
    write(base + ".meta.json", json.dumps(worst, indent=1) + "\n")


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--guests", type=int, required=True, help="how many guests at most")
    parser.add_argument("--programs", required=True, help="slugs, with commas")
    parser.add_argument("--base", required=True, help="path of the results without suffix")
    parser.add_argument("--cmdline-extra", default="")
    args, rest = parser.parse_known_args(argv)
    if args.guests < 1:
        parser.error(f"--guests {args.guests}: at least one")
    shares = deal(args.programs.split(","), args.guests, last_seconds(args.base))
    for path in glob.glob(glob.escape(args.base) + ".guest[0-9]*"):
        os.unlink(path)
    parts = [args.base] if len(shares) == 1 else [f"{args.base}.guest{i}" for i in range(1, len(shares) + 1)]
    # Each guest ends itself and its QEMU on a signal; here it must only not be left alone.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda n, _frame: [p.send_signal(n) for p in running if p.poll() is None])
    running = []
    for part, share in zip(parts, shares):
        command = [sys.executable, GUEST, "--base", part, "--cmdline-extra",
                   f"thp.run={','.join(share)} {args.cmdline_extra}".strip()]
        running.append(subprocess.Popen(command + rest + (["--lines"] if len(shares) > 1 else [])))
    status = max(process.wait() for process in running)
    if status != 2 and len(parts) > 1:
        merge(args.base, parts)
    return status


if __name__ == "__main__":
    sys.exit(main())
