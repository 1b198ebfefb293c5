# SPDX-License-Identifier: GPL-2.0
"""Writes what judge.py found: JSON, JUnit XML, KTAP, and a summary for people; used by judge.py, not run by itself."""

import json
import os
from xml.etree import ElementTree

# Control characters that XML cannot carry.
UNPRINTABLE = {c: "?" for c in range(32) if c not in (9, 10)}


def write_whole(path, text):
    """Write so that the file is either whole or as before."""
    with open(path + ".tmp", "w", encoding="utf-8") as f:
        f.write(text)
    os.replace(path + ".tmp", path)


def as_json(report):
    return json.dumps(report, indent=1) + "\n"


def _clean(text):
    return text.translate(UNPRINTABLE)


def as_junit(report):
    """One suite: the tests, and two cases for what no test stands for: the verdict and the kernel's complaints."""
    name = f"{report['tree']}/{report['state']}/{report['machine']}"
    suite = ElementTree.Element("testsuite", name=name, time=f"{report['seconds']:.3f}")
    counts = {"failure": 0, "skipped": 0, "error": 0}

    def case(classname, test, seconds=0.0, kind=None, message="", text=""):
        element = ElementTree.SubElement(suite, "testcase", classname=classname, name=test, time=f"{seconds:.3f}")
        if kind:
            counts[kind] += 1
            ElementTree.SubElement(element, kind, message=_clean(message)).text = _clean(text)

    for test in report["tests"]:
        slug, _, rest = test["name"].partition("/")
        kind, message = None, ""
        if not test["ok"]:
            kind, message = "failure", f"wanted {test['expected']}, got {test['result']}"
        elif test["result"] == "skip":
            kind, message = "skipped", test["detail"].splitlines()[-1] if test["detail"] else "skipped"
        elif test["result"] == "fail":
            kind, message = "skipped", "fails as expected: " + test["why"]
        case(f"{name}.{slug}", rest or slug, test["seconds"], kind, message, test["detail"])
    splats = report["splats"]
    case(name, "splats", 0, "failure" if splats else None, f"{len(splats)} complaint(s) of the kernel",
         "\n\n".join("\n".join(s["block"]) for s in splats))
    bad = report["verdict"] not in ("pass", "fail")
    case(name, "verdict", 0, "error" if bad else None, report["verdict"], "\n".join(report["reasons"]))
    suite.set("tests", str(len(suite)))
    suite.set("failures", str(counts["failure"]))
    suite.set("skipped", str(counts["skipped"]))
    suite.set("errors", str(counts["error"]))
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(suite, encoding="unicode") + "\n"


def as_ktap(report):
    """One level, with the expectation as the directive; "ok" means that the test did what was expected."""
    lines = ["KTAP version 1"]
    tests = [(t["name"], t["ok"], t) for t in report["tests"]]
    tests += [(f"splats/{s['class']}", False, None) for s in report["splats"]]
    tests.append(("guest/verdict", report["verdict"] in ("pass", "fail"), None))
    lines.append(f"1..{len(tests)}")
    for number, (name, ok, test) in enumerate(tests, 1):
        tail = ""
        if test and ok and test["result"] == "skip":
            tail = " # SKIP " + " ".join(test["detail"].split())
        elif test and ok and test["result"] == "fail":
            tail = " # XFAIL " + test["why"]
        elif test and not ok:
            lines += ["# " + d.lstrip("# ") for d in test["detail"].splitlines()]
            tail = f" # wanted {test['expected']}, got {test['result']}"
        lines.append(f"{'ok' if ok else 'not ok'} {number} {name}{tail}".rstrip())
    lines += ["# " + reason for reason in report["reasons"]]
    return "\n".join(lines) + "\n"


def counts(report):
    """(passed, failed, skipped, known gaps) where failed is everything that was not expected."""
    tests = report["tests"]
    failed = sum(not t["ok"] for t in tests)
    by = {word: sum(t["ok"] and t["result"] == word for t in tests) for word in ("pass", "skip", "fail")}
    return by["pass"], failed, by["skip"], by["fail"]


def as_text(report, log_lines, dump_line, rerun, base):
    """The summary: one line if all is well, else what was seen, what was wanted, and how to run it again."""
    passed, failed, skipped, gaps = counts(report)
    where = f"{report['tree']} {report['state']} {report['machine']}"
    known = f", {gaps} failed as expected" if gaps else ""
    out = [f"{report['verdict'].upper()}: {where} (linux {report['version']}, QEMU {report['qemu']}): "
           f"{passed} passed, {failed} failed, {skipped} skipped{known} in {report['seconds']:.0f} s"]
    if report["verdict"] == "pass":
        return out[0] + "\n"
    out += ["  " + reason for reason in report["reasons"]]
    for test in report["tests"]:
        if not test["ok"]:
            why = f" ({test['why']})" if test["why"] else ""
            out.append(f"  {test['name']}: wanted {test['expected']}{why}, got {test['result']}")
            out += ["      " + d for d in test["detail"].splitlines()[-12:]]
    for splat in report["splats"]:
        during = f" during {splat['test']}" if splat["test"] else ""
        out.append(f"  kernel{during}, log line {splat['log_line']}: {splat['text']}")
        out += ["      " + line for line in splat["block"][1:9]]
    if report["verdict"] in ("hung", "error", "panic") and log_lines:
        out.append("  last lines of the console:")
        out += ["      " + line for line in log_lines]
    if dump_line:
        out.append(f"  what its tasks did: {base}.log, line {dump_line}")
    out.append(f"  log: {base}.log")
    if rerun:
        out.append(f"  again: {rerun}")
    return "\n".join(out) + "\n"


def write_all(base, report):
    write_whole(base + ".json", as_json(report))
    write_whole(base + ".xml", as_junit(report))
    write_whole(base + ".ktap", as_ktap(report))
