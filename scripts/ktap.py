# SPDX-License-Identifier: GPL-2.0
"""The KTAP that kselftest_harness.h of 5.10 to 7.3 prints: a parser used by judge.py, not run by itself."""

import re

PLAN = re.compile(r"^1\.\.(\d+)(?:\s+#\s*SKIP\s*(.*))?$")
RESULT = re.compile(r"^(ok|not ok) (\d+)\b\s*(?:-\s+)?(.*)$")
RUN = re.compile(r"^#\s+RUN\s+(\S+) \.\.\.$")
DIRECTIVE = re.compile(r"^(.*?)\s*#\s*(SKIP|XFAIL|XPASS|TODO|error|TIMEOUT)\b[:\s]*(.*)$", re.IGNORECASE)
# Lines of the harness that tell nothing about a failure.
NOISE = re.compile(r"^#\s+(RUN|OK|FAIL|SKIP|Starting|PASSED|FAILED|Totals)\b|^TAP version|^# Totals:")


class Result:
    """One result line: its number, name, pass/fail/skip, and what the test said before it."""

    def __init__(self, number, name, result, detail, index):
        self.number, self.name, self.result, self.detail, self.index = number, name, result, detail, index


class Output:
    """What one program printed: plan (None if there is none), results, and what is wrong with the KTAP itself."""

    def __init__(self):
        self.plan = None
        self.skip_all = None
        self.results = []
        self.running = None     # the test that began last and did not report yet
        self.lost = []          # tests that began and did not report before the next one began
        self.said = []          # what came after the last result
        self.problems = []

    def missing(self):
        """Names or numbers of the tests of the plan that did not report."""
        if self.plan is None or len(self.results) >= self.plan:
            return []
        reported = {r.number for r in self.results}
        numbers = [n for n in range(1, self.plan + 1) if n not in reported]
        began = self.lost + ([self.running] if self.running else [])
        return [began[i] if i < len(began) else f"test-{n}" for i, n in enumerate(numbers)]


def short_name(name):
    """fixture.variant.test without the fixture, which repeats the program's name."""
    _, dot, rest = name.partition(".")
    return rest if dot and rest else name


def _result(match, running, said, index):
    text, number = match[3].strip(), int(match[2])
    result = "pass" if match[1] == "ok" else "fail"
    detail = [line for line in said if not NOISE.match(line)]
    directive = DIRECTIVE.match(text)
    if directive:
        text, word, reason = directive[1].strip(), directive[2].upper(), directive[3].strip()
        if word in ("SKIP", "TODO") and result == "pass":
            result = "skip"
        elif word == "XFAIL":
            # What is known to fail is written down in selftests/expected and nowhere else.
            result = "fail"
        detail.append(reason)
    # 5.10 and 6.1 print a skipped test without its name.
    name = short_name(text.split()[0]) if text else running or f"test-{number}"
    return Result(number, name, result, "\n".join(d for d in detail if d), index)


def parse(lines):
    """An Output from the lines that a program printed."""
    out = Output()
    index = 0
    for line in lines:
        line = line.rstrip()
        plan, result, run = PLAN.match(line), RESULT.match(line), RUN.match(line)
        if plan:
            if out.plan is not None:
                out.problems.append("two plans")
            out.plan = int(plan[1])
            if plan[1] == "0":
                out.skip_all = plan[2] or ""
        elif result:
            if any(r.number == int(result[2]) for r in out.results):
                out.problems.append(f"two results numbered {result[2]}")
            out.results.append(_result(result, out.running, out.said, index))
            index += 1
            out.running, out.said = None, []
        else:
            if run:
                if out.running:
                    out.lost.append(out.running)
                out.running, out.said = short_name(run[1]), []
            out.said.append(line)
    if out.plan is None:
        out.problems.append("printed no KTAP plan")
    elif len(out.results) > out.plan:
        out.problems.append(f"{len(out.results)} results for a plan of {out.plan}")
    return out
