# SPDX-License-Identifier: GPL-2.0
"""The data file selftests/expected, which says per tree, state and machine what each test must do: a parser used by
judge.py, not run by itself."""

from fnmatch import fnmatchcase

WORDS = ("pass", "fail", "skip", "any")


class BadLine(Exception):
    """A line that cannot be understood; the text names file and line."""


class Expected:
    """The lines of the file; the last one that matches a test wins, without one it must pass."""

    def __init__(self, text="", name="expected"):
        self.lines = []
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
