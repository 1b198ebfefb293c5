# SPDX-License-Identifier: GPL-2.0
"""The records of the result port (see qemu-images/init.c): a parser used by guest.py and judge.py, not run by itself."""

import re


class Run:
    """One program of the plan: its output lines and how it ended (None while it runs)."""

    def __init__(self, slug):
        self.slug = slug
        self.output = []
        self.times = []         # seconds at which each result line came
        self.ended = None       # "exit", "signal" or "timeout"
        self.code = None
        self.seconds = 0.0


class PortLog:
    """All that the port has said so far; feed() takes one record at a time."""

    END = re.compile(r"^(\S+) (?:(exit|signal)=(\d+)|(timeout)) seconds=([0-9.]+)$")

    def __init__(self):
        self.plan = None
        self.runs = []
        self.current = None     # what runs now: a slug of the plan, or kmemleak
        self.checks = []        # (name, problem)
        self.abort = None
        self.done = False
        self.bad = []           # records that make no sense

    def feed(self, line):
        kind, _, rest = line.partition(" ")
        handler = getattr(self, "_" + kind, None) if kind in self.KINDS else None
        if kind == "|":
            handler = self._output
        if handler is None or not handler(rest):
            self.bad.append(line)
        return kind

    KINDS = ("plan", "start", "tick", "at", "end", "check", "abort", "verdict")

    def _plan(self, rest):
        words = rest.split()
        if not words or not words[0].isdigit() or int(words[0]) != len(words) - 1:
            return False
        self.plan = words[1:]
        return True

    def _start(self, rest):
        self.current = rest
        if rest != "kmemleak":
            self.runs.append(Run(rest))
        return True

    def _output(self, rest):
        if not self.runs or self.runs[-1].ended:
            return False
        self.runs[-1].output.append(rest)
        return True

    def _tick(self, _rest):
        return True

    def _at(self, rest):
        if not self.runs or not re.match(r"^\d+\.\d+$", rest):
            return False
        self.runs[-1].times.append(float(rest))
        return True

    def _end(self, rest):
        match = self.END.match(rest)
        if not match or not self.runs or self.runs[-1].slug != match[1] or self.runs[-1].ended:
            return False
        run = self.runs[-1]
        run.ended = match[2] or match[4]
        run.code = int(match[3]) if match[3] else None
        run.seconds = float(match[5])
        self.current = None
        return True

    def _check(self, rest):
        name, _, text = rest.partition(" ")
        self.checks.append((name, "" if text == "ok" else text or "empty check record"))
        return True

    def _abort(self, rest):
        self.abort = rest
        return True

    def _verdict(self, rest):
        self.done = rest == "done"
        return self.done


def parse(text):
    """A PortLog from the whole text of a .port file; a last line without its end is no record."""
    log = PortLog()
    lines = text.split("\n")
    if lines.pop():
        log.bad.append("the last record is cut off")
    for line in lines:
        log.feed(line)
    return log
