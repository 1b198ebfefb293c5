#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Counts the results of a matrix run: tally.py RESULTS_DIR TABLE [--debug] reads each run's JSON, prints `passed failed
skipped` on stdout (a known gap that fails as expected counts as skipped) and the known gaps and skips by name on
stderr; exits 0, or 1 if a run left no JSON or the table is empty."""

import json
import os
import sys


def tally(results_dir, table, suffix):
    """(passed, failed, skipped, names of what was skipped)."""
    passed = failed = skipped = 0
    names = {}
    with open(table, encoding="utf-8") as f:
        runs = [line.split() for line in f if line.strip()]
    if not runs:
        raise ValueError("no run was recorded")
    for tree, state, machine, verdict in runs:
        if verdict == "not-run":
            skipped += 1
            names.setdefault("the whole run: out of time", []).append(f"{tree}/{machine}")
            continue
        path = os.path.join(results_dir, tree, state.replace(":", "-"), machine + suffix + ".json")
        if not os.path.exists(path):
            failed += 1
            continue
        with open(path, encoding="utf-8") as f:
            report = json.load(f)
        bad = 0
        for test in report["tests"]:
            result, wanted = test["result"], test["expected"]
            if result == "pass" and wanted in ("pass", "skip", "any"):
                passed += 1
            elif result == "skip" and wanted in ("skip", "any"):
                skipped += 1
                names.setdefault(f"{test['name']}: {test['detail']}", []).append(f"{tree}/{machine}")
            elif result == "fail" and wanted in ("fail", "any"):
                skipped += 1
                names.setdefault(f"{test['name']}: known gap", []).append(f"{tree}/{machine}")
            else:
                bad += 1
        # A splat, a hang or a panic is a failure also when each test passed.
        failed += bad or (report["verdict"] != "pass")
    return passed, failed, skipped, names


def main(argv):
    suffix = "-debug" if "--debug" in argv else ""
    results_dir, table = [a for a in argv if not a.startswith("--")]
    try:
        passed, failed, skipped, names = tally(results_dir, table, suffix)
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for name, where in sorted(names.items()):
        print(f"  skipped: {name} ({' '.join(where)})", file=sys.stderr)
    print(passed, int(failed), skipped)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
