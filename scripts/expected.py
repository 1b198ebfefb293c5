#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The data file selftests/expected, which says per tree, state and machine what each test must do: read by judge.py;
run by itself (expected.py FILE --trees ... --machines ... --slugs ...) it names lines that can match nothing and
exits 1 if there are any, 0 if not, 2 on wrong use."""

import argparse
import sys
from fnmatch import fnmatchcase

WORDS = ("pass", "fail", "skip", "any")


class BadLine(Exception):
    """A line that cannot be understood; the text names file and line."""


class Expected:
    """The lines of the file; the last one that matches a test wins, without one it must pass."""

    def __init__(self, text="", name="expected"):
        self.lines = []
        self.numbers = []
        for number, line in enumerate(text.splitlines(), 1):
            rule, hash_, reason = line.partition("#")
            fields = rule.split()
            if not fields:
                continue
            if len(fields) != 5 or fields[4] not in WORDS:
                raise BadLine(f"{name}:{number}: not 'TREE STATE MACHINE TEST {'|'.join(WORDS)}  # reason'")
            if not hash_ or not reason.strip():
                raise BadLine(f"{name}:{number}: no reason given after #")
            self.lines.append((*fields, reason.strip()))
            self.numbers.append(number)

    def stale(self, trees, machines, slugs):
        """(line number, text) of what can match nothing."""
        for number, (tree, state, machine, test, _, _) in zip(self.numbers, self.lines):
            for what, pattern, names in (("tree", tree, trees), ("machine", machine, machines),
                                         ("program", test.partition("/")[0], slugs)):
                if not any(fnmatchcase(name, pattern) for name in names):
                    yield number, f"no {what} matches '{pattern}'"
            if "/" not in test and test != "*":
                yield number, f"'{test}' is not PROGRAM/TEST"
            if not any(fnmatchcase(name, state) for name in ("pristine", "patched", "kdir")) \
                    and not state.startswith("control:"):
                yield number, f"no state matches '{state}'"

    def lookup(self, tree, state, machine, test):
        """What the test must do, and why if a line says so."""
        found = ("pass", "")
        for tree_glob, state_glob, machine_glob, test_glob, word, reason in self.lines:
            # A control is the patched tree with one thing taken out.
            state_fits = fnmatchcase(state, state_glob) or (
                state.startswith("control:") and fnmatchcase("patched", state_glob))
            if (state_fits and fnmatchcase(tree, tree_glob) and fnmatchcase(machine, machine_glob)
                    and fnmatchcase(test, test_glob)):
                found = (word, reason)
        return found


def load(path):
    with open(path, encoding="utf-8") as f:
        return Expected(f.read(), path)


def fits(expected, result):
    """Whether a result is what was expected: "skip" means may skip, "fail" must fail."""
    return expected == "any" or result == expected or (expected == "skip" and result == "pass")


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file")
    for option in ("--trees", "--machines", "--slugs"):
        parser.add_argument(option, nargs="+", required=True, metavar="NAME")
    args = parser.parse_args(argv)
    try:
        found = list(load(args.file).stale(args.trees, args.machines, args.slugs))
    except (BadLine, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for number, text in found:
        print(f"{args.file}:{number}: {text}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
