# SPDX-License-Identifier: GPL-2.0
"""Finds kernel complaints in a console log by the patterns of qemu-images/splats, less those of
qemu-images/splats-allowed: used by judge.py, not run by itself."""

import re

STAMP = re.compile(r"\[ *\d+\.\d{6}\](?:\[ *[CT]\d+\])? ?")
OURS = re.compile(r"^thp: (?!kmemleak: )")
START = re.compile(r"^thp: start (\S+)")
BLOCK_LINES = 40
MOST = 50


class BadPattern(Exception):
    """A line of a pattern file that cannot be used; the text names file and line."""


class Splat:
    """One complaint: its class, first line, the lines after it, the test that ran, and why it is allowed if it is."""

    def __init__(self, kind, text, line, test):
        self.kind, self.text, self.line, self.test = kind, text, line, test
        self.block = [text]
        self.allowed = None

    def as_dict(self):
        out = {"class": self.kind, "text": self.text, "test": self.test, "log_line": self.line,
               "block": self.block}
        if self.allowed:
            out["allowed"] = self.allowed
        return out


def _compile(path, number, text):
    try:
        return re.compile(text)
    except re.error as error:
        raise BadPattern(f"{path}:{number}: {error}") from error


def _lines(path):
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            line = line.strip()
            if line and not line.startswith("#"):
                yield number, line


def load_patterns(path):
    """Lines "CLASS REGEX"; the first that matches gives the class."""
    patterns = []
    for number, line in _lines(path):
        kind, _, regex = line.partition(" ")
        if not regex.strip():
            raise BadPattern(f"{path}:{number}: not 'CLASS REGEX'")
        patterns.append((kind, _compile(path, number, regex.strip())))
    return patterns


def load_allowed(path):
    """Lines "REGEX  # reason"; the regex is searched in a splat's first line and the lines after it."""
    allowed = []
    for number, line in _lines(path):
        regex, mark, reason = line.rpartition("  # ")
        if not mark or not reason.strip():
            raise BadPattern(f"{path}:{number}: not 'REGEX  # reason'")
        allowed.append((_compile(path, number, regex.strip()), reason.strip()))
    return allowed


def kernel_lines(text):
    """(line number, text) of what the kernel said. Its lines carry a time stamp, which may stand behind a piece of
    a test's output; without any stamp in the log all lines are taken."""
    lines = text.replace("\r", "").split("\n")
    stamped = any(STAMP.search(line) for line in lines)
    for number, line in enumerate(lines, 1):
        if not stamped:
            yield number, line
            continue
        stamps = list(STAMP.finditer(line))
        if stamps:
            yield number, line[stamps[-1].end():]


def find(text, patterns, allowed):
    """All splats of a log, in order, allowed ones too."""
    splats, test = [], None
    for number, line in kernel_lines(text):
        start = START.match(line)
        if start:
            test = start[1]
        for splat in splats[-3:]:
            if len(splat.block) < BLOCK_LINES:
                splat.block.append(line)
        if OURS.match(line) or len(splats) >= MOST:
            continue
        for kind, regex in patterns:
            if regex.search(line):
                splats.append(Splat(kind, line.strip(), number, test))
                break
    for splat in splats:
        block = "\n".join(splat.block)
        for regex, reason in allowed:
            if regex.search(block):
                splat.allowed = reason
                break
    return splats
