# SPDX-License-Identifier: GPL-2.0
"""Decides what a recorded guest proves: turns its channels into tests, reasons and a verdict; used by judge.py, not
run by itself."""

from fnmatch import fnmatchcase

import expected as expectations
import ktap

# The line that PID 1 puts into the kernel log after all else; without it the log is cut off.
END_OF_RUN = "thp: end of run"


class Test:
    """One line of the result: made is true for what no line of KTAP stands for, which always must pass."""

    def __init__(self, name, result, detail="", seconds=0.0, made=False):
        self.name, self.result, self.detail, self.seconds, self.made = name, result, detail, seconds, made
        self.expected, self.why, self.ok = "pass", "", result == "pass"

    def as_dict(self):
        return {"name": self.name, "result": self.result, "expected": self.expected,
                "seconds": round(self.seconds, 3), "detail": self.detail, "ok": self.ok, "why": self.why}


def _how_it_ended(run, output):
    """What is wrong with the end of a program, or None."""
    if run.ended is None:
        return "the guest ended while it ran"
    if run.ended == "timeout":
        return f"was killed after its limit, at {run.seconds:.0f} s"
    if run.ended == "signal":
        return f"died by signal {run.code}"
    if run.code == 127 and not output.results:
        return "could not be run"
    failed = any(r.result == "fail" for r in output.results)
    # 4 is the kselftest code for "skipped".
    if run.code not in (0, 4) and not failed:
        return f"ended with exit status {run.code} though no test failed"
    if run.code == 0 and failed:
        return "ended with exit status 0 though a test failed"
    return None


def _tests_of_run(run):
    output = ktap.parse(run.output)
    tests = []
    before = 0.0
    for result in output.results:
        at = run.times[result.index] if result.index < len(run.times) else run.seconds
        tests.append(Test(f"{run.slug}/{result.name}", result.result, result.detail, max(0.0, at - before)))
        before = at
    if output.skip_all is not None:
        tests.append(Test(f"{run.slug}/*", "skip", output.skip_all))
        return tests
    last = "\n".join(output.said[-8:])
    end = _how_it_ended(run, output)
    for name in output.missing():
        tests.append(Test(f"{run.slug}/{name}", "fail", "did not report", made=True))
    for problem in filter(None, [end] + output.problems):
        tests.append(Test(f"{run.slug}/*", "fail", f"{problem}\n{last}".rstrip(), run.seconds, made=True))
    if not output.results and output.plan == 0:
        tests.append(Test(f"{run.slug}/*", "fail", "an empty plan without a reason", made=True))
    return tests


def collect(port, wanted):
    """All tests of a run: what the programs reported, what they left behind, what did not run."""
    tests = []
    for run in port.runs:
        tests += _tests_of_run(run)
    for name, problem in port.checks:
        test = "kmemleak/scan" if name == "kmemleak" else f"{name}/cleanup"
        if problem or name == "kmemleak":
            tests.append(Test(test, "fail" if problem else "pass", problem, made=True))
    ran = {run.slug for run in port.runs}
    for slug in dict.fromkeys(list(wanted) + (port.plan or [])):
        if slug not in ran:
            tests.append(Test(f"{slug}/*", "fail", "did not run", made=True))
    return tests


def expect(tests, table, tree, state, machine):
    """Fill in what each test must do by the expectations."""
    for test in tests:
        if not test.made:
            test.expected, test.why = table.lookup(tree, state, machine, test.name)
        test.ok = expectations.fits(test.expected, test.result)


def matches(name, globs):
    return any(fnmatchcase(name, glob) for glob in globs)


def apply_control(tests, splats, named, may_fail):
    """A control must fail every test that is named for it. Splats count as tests splat/CLASS. Returns the reasons
    why the control was not caught, and the splats that are not explained by it."""
    for test in tests:
        if matches(test.name, named):
            test.expected, test.why = "fail", "named for this control"
            test.ok = test.result == "fail"
        elif matches(test.name, may_fail):
            test.expected, test.why = "any", "may fail under this control"
            test.ok = True
    names = [t.name for t in tests] + [f"splat/{s.kind}" for s in splats]
    reasons = [f"no test that ran matches '{glob}', which is named for this control"
               for glob in named if not any(fnmatchcase(name, glob) for name in names)]
    return reasons, [s for s in splats if not matches(f"splat/{s.kind}", list(named) + list(may_fail))]


def decide(meta, port, log, tests, splats, reasons):
    """The verdict, with the reasons added to the list: the worst thing wins."""
    if meta.get("ended") == "panic" or any(s.kind == "panic" for s in splats):
        reasons.insert(0, meta.get("reason") or "kernel panic")
        return "panic"
    if meta.get("ended") == "hung":
        reasons.insert(0, meta.get("reason") or "hung")
        return "hung"
    broken = []
    if meta.get("ended") != "ok":
        broken.append(meta.get("reason") or f"guest.py says '{meta.get('ended')}'")
    if port.abort:
        broken.append(f"the run was given up: {port.abort}")
    if not port.done:
        broken.append("the port does not say 'verdict done'")
    elif log.count(END_OF_RUN) < len(meta.get("guests") or [None]):
        broken.append(f"the console log is cut off: no line '{END_OF_RUN}'")
    if port.plan is None:
        broken.append("the port does not say which programs were to run")
    broken += [f"a record on the port makes no sense: {record[:80]}" for record in port.bad[:3]]
    if broken:
        reasons += broken
        return "error"
    if not any(not t.made for t in tests):
        reasons.append("no test reported")
    return "fail" if reasons or splats or not all(t.ok for t in tests) else "pass"
