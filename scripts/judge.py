#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Judges one recorded guest: reads BASE.log, BASE.port and BASE.meta.json (see guest.py), the splat patterns and the
expectations, writes BASE.json, BASE.xml (JUnit) and BASE.ktap and prints a summary; exits 0 if every result is the
expected one and the kernel did not complain, 1 if not, 2 on wrong use."""

import argparse
import json
import os
import sys

import expected as expectations
import portlog
import results
import splats as complaints
import verdict

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
LAST_LINES = 15
# Where guest.py began to ask a hung guest for its tasks.
DUMP = "[guest.py] no sign of life"


def read_text(path):
    """A file that a sick guest may have left cut off, binary, or not at all."""
    try:
        with open(path, encoding="utf-8", errors="replace", newline="\n") as f:
            return f.read()
    except FileNotFoundError:
        return ""


def read_meta(base):
    try:
        with open(base + ".meta.json", encoding="utf-8") as f:
            meta = json.load(f)
        return meta if isinstance(meta, dict) else {"ended": "error", "reason": f"{base}.meta.json is no record"}
    except FileNotFoundError:
        return {"ended": "error", "reason": f"there is no {base}.meta.json: the guest was not run to its end"}
    except ValueError:
        return {"ended": "error", "reason": f"{base}.meta.json cannot be read"}


def wanted_slugs(meta):
    """The programs that the guest, or each of the guests, was told to run, from the kernel command line."""
    slugs = []
    for argv in meta.get("guests") or [meta.get("argv") or []]:
        if "-append" not in argv[:-1]:
            continue
        words = argv[argv.index("-append") + 1].split()
        runs = [w.partition("=")[2] for w in words if w.startswith("thp.run=")]
        slugs += [slug for slug in runs[-1].split(",") if slug] if runs else []
    return slugs


def before_dump(log):
    """The console without what a hung guest was made to say by guest.py: a panic by NMI is not the kernel's fault."""
    return log.split(DUMP, 1)[0]


def last_lines(log):
    lines = before_dump(log).replace("\r", "").split("\n")
    return [line for line in lines if line.strip()][-LAST_LINES:]


def judge(args):
    """The report, and the text of the console."""
    log = read_text(args.base + ".log")
    port = portlog.parse(read_text(args.base + ".port"))
    meta = read_meta(args.base)
    table = expectations.load(args.expected) if args.expected else expectations.Expected()
    found = complaints.find(before_dump(log), complaints.load_patterns(args.splats),
                            complaints.load_allowed(args.splats_allowed))
    not_allowed = [s for s in found if not s.allowed]

    tests = verdict.collect(port, wanted_slugs(meta))
    verdict.expect(tests, table, args.tree, args.state, args.machine)
    reasons = []
    if args.named:
        reasons, not_allowed = verdict.apply_control(tests, not_allowed, args.named, args.may_fail)
    decided = verdict.decide(meta, port, log, tests, not_allowed, reasons)
    return {
        "tree": args.tree, "version": args.version, "state": args.state, "machine": args.machine,
        "qemu": meta.get("qemu"), "config_sha256": args.config_sha256, "verdict": decided, "reasons": reasons,
        "seconds": meta.get("seconds") or 0.0, "boot_seconds": meta.get("boot_seconds"),
        "splats": [s.as_dict() for s in not_allowed],
        "allowed_splats": [s.as_dict() for s in found if s.allowed],
        "tests": [t.as_dict() for t in tests],
    }, log


def parse_arguments(argv):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", required=True, help="path of the records and results without suffix")
    parser.add_argument("--tree", required=True)
    parser.add_argument("--version", required=True, help="version of the kernel source")
    parser.add_argument("--state", required=True, help="pristine, patched, control:SLUG or kdir")
    parser.add_argument("--machine", required=True)
    parser.add_argument("--config-sha256", default="", help="checksum of the kernel's .config")
    parser.add_argument("--expected", help="the file selftests/expected; without it all tests must pass")
    parser.add_argument("--named", nargs="+", default=[], metavar="GLOB", help="tests that a control must fail")
    parser.add_argument("--may-fail", nargs="+", default=[], metavar="GLOB", help="tests that a control may fail")
    parser.add_argument("--splats", default=os.path.join(TOP, "qemu-images", "splats"))
    parser.add_argument("--splats-allowed", default=os.path.join(TOP, "qemu-images", "splats-allowed"))
    parser.add_argument("--rerun", default="", help="the command that runs this again, for the summary")
    args = parser.parse_args(argv)
    if args.may_fail and not args.named:
        parser.error("--may-fail is of use only with --named")
    return args


def main(argv=None):
    args = parse_arguments(argv)
    try:
        report, log = judge(args)
    except (expectations.BadLine, complaints.BadPattern, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    results.write_all(args.base, report)
    dump = before_dump(log).count("\n") + 1 if DUMP in log else None
    print(results.as_text(report, last_lines(log), dump, args.rerun, args.base), end="")
    return 0 if report["verdict"] == "pass" else 1


if __name__ == "__main__":
    sys.exit(main())
