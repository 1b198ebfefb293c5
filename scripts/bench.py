#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Turns two recorded benchmark guests into a result: bench.py TREE VERSION MACHINE DIR [--demo] reads
DIR/MACHINE.{pristine,patched}.port, writes DIR/MACHINE.json and prints a table; exits 0, or 1 with one line if a
value is missing."""

import argparse
import json
import os
import sys

UNIT = "instructions per 4 KiB page (counted under emulation), faults per 2 MiB, share of THPs"
CAVEAT = ("Instructions counted by QEMU -icount on one emulated CPU: a regression signal, no claim about the speed of "
          "real hardware.")
LABELS = {
    "minflt-2m": "minor faults, read then write, per 2 MiB",
    "majflt-2m": "major faults, read then write, per 2 MiB",
    "rewritten-2m": "pages written to swap again though only read, per 2 MiB",
    "thp-kept": "share of THPs that are THPs again after swap-in",
    "swpout-thp": "swap-out of a THP, instructions per page",
    "swpout-4k": "swap-out of 4 KiB pages, instructions per page",
    "swpin-thp": "swap-in of a THP (read+write), instructions per page",
    "swpin-4k": "swap-in of 4 KiB pages (read+write), instructions per page",
}


def read_port(path):
    """{'metric': {name: value}, 'floor': {name: value}} of a recorded guest."""
    values = {"metric": {}, "floor": {}}
    with open(path, encoding="utf-8", errors="replace") as f:
        for line in f:
            words = line.split()
            if words[:2] == ["|", "#"] and len(words) == 5 and words[2] in values:
                values[words[2]][words[3]] = float(words[4])
    if not values["metric"]:
        raise ValueError(f"{path} holds no metric: see the .log beside it")
    return values


def combine(pristine, patched):
    """The list of metrics by DESIGN section 4."""
    missing = set(pristine["metric"]) ^ set(patched["metric"])
    if missing:
        raise ValueError(f"measured in one state only: {' '.join(sorted(missing))}")
    metrics = []
    for name, old in pristine["metric"].items():
        new = patched["metric"][name]
        metrics.append({"name": name, "pristine": old, "patched": new, "ratio": round(new / old, 4) if old else None,
                        "floor": patched["floor"].get(name)})
    return metrics


def table(metrics, labels):
    rows = [("", "pristine", "patched", "ratio", "floor")]
    for m in metrics:
        rows.append((labels.get(m["name"], m["name"]), f"{m['pristine']:g}", f"{m['patched']:g}",
                     "-" if m["ratio"] is None else f"{m['ratio']:.3f}",
                     "-" if m["floor"] is None else f"{m['floor']:g}"))
    width = [max(len(r[i]) for r in rows) for i in range(5)]
    return "\n".join("  " + r[0].ljust(width[0]) + "".join("  " + r[i].rjust(width[i]) for i in range(1, 5))
                     for r in rows)


def reading(metrics):
    """One line on what the demo shows, from the numbers alone."""
    by_name = {m["name"]: m for m in metrics}
    minor, cost = by_name["minflt-2m"], by_name["swpin-thp"]
    if minor["patched"] < minor["pristine"]:
        saved = 100 * (1 - cost["patched"] / cost["pristine"])
        return (f"A swapped-in page that belongs to one process is mapped writable at once: {minor['pristine']:g} minor "
                f"faults per 2 MiB become {minor['patched']:g}, and reading then writing it takes {saved:.1f} % fewer "
                "instructions.")
    return f"No difference in minor faults here: {minor['pristine']:g} per 2 MiB in both."


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("tree", "version", "machine", "directory"):
        parser.add_argument(name)
    parser.add_argument("--demo", action="store_true", help="only the plain metrics, with words")
    args = parser.parse_args(argv)
    base = os.path.join(args.directory, args.machine)
    try:
        metrics = combine(read_port(base + ".pristine.port"), read_port(base + ".patched.port"))
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    with open(base + ".json.tmp", "w", encoding="utf-8") as f:
        json.dump({"tree": args.tree, "version": args.version, "machine": args.machine, "unit": UNIT,
                   "metrics": metrics}, f, indent=1)
        f.write("\n")
    os.replace(base + ".json.tmp", base + ".json")
    print(f"\nLinux {args.version} on {args.machine}, pristine against patched:\n")
    if args.demo:
        order = [name for name in LABELS if any(m["name"] == name for m in metrics)]
        print(table([m for name in order for m in metrics if m["name"] == name], LABELS))
        print("\n" + reading(metrics))
    else:
        print(table(metrics, {}))
    print(f"{CAVEAT}\nResult: {base}.json")
    return 0


if __name__ == "__main__":
    sys.exit(main())
