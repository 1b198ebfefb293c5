#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Check the repository's own files: headers, lengths, blanks, syntax of Python, what is true on one machine only, data
files. No inputs but the files of the repository; prints `ok ...` or `FAIL check: where`; exit 0 all right, 1 not."""

import ast
import fnmatch
import os
import re
import subprocess

import lintlib

LINES = 300
COLUMNS = 120
TREE_KEYS = {"version", "package", "suites", "tested"}
TREE_MAY = {"unverified"}
MACHINE_KEYS = {"arch": "x86_64|arm64|riscv64", "karch": r"\w+", "cross": r"([a-z0-9_]+-linux-gnu-)?",
                "image": r"arch/\S+", "qemu": "x86_64|aarch64|riscv64", "args": r"-M \S+.*", "bus": "pci|mmio",
                "console": r"\w+", "cmdline": ".*"}
MACHINE_MORE = {"cmdline_max": r"\d+", "cmdline_icount": ".+", "disks": ".+"}
RESULTS = ("pass", "fail", "skip", "any")
# Texts that are not ours to change, or that are bad on purpose.
FOREIGN = ("COPYING", "scripts/tests/fixtures/")
# A program's message is not broken to fit, so that it can be searched for; nor is an address.
LONG_STRING = re.compile(r"(\"[^\"]* [^\"]{40,}\"?|'[^']* [^']{40,}'?|\w+://|\b(die|warn|say|plain_undo|echo|printf) [\"'])")
# Written in two parts, so that this file does not find itself.
HERE_ONLY = [("a path of one machine", re.compile(r"(?<![\w.$}])(?<![\w}][\"'])/(wo" "rk|ro" r"ot|ho" r"me/[a-z]+)/")),
             ("the host name of a mirror", re.compile(r"[a-z0-9-]+\.(deb" "ian|ubu" r"ntu)\.(org|net|com)\b"))]


def is_script(name):
    """Shell and Python that people run or source."""
    return name == ".ci/run" or (name.startswith("scripts/") and name.endswith((".sh", ".py")))


def header(name, text):
    """The text that a script begins with: its leading comment or docstring."""
    if name.endswith(".py"):
        try:
            return ast.get_docstring(ast.parse(text)) or ""
        except SyntaxError:
            return ""
    lines = []
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        if not line.startswith(("#!", "# shellcheck", "# SPDX")):
            lines.append(line.lstrip("# "))
    return " ".join(lines)


def header_problems(name, text):
    """A script says at once what it does, and when it is run, how it ends."""
    found = []
    if is_script(name):
        said = header(name, text)
        if len(said) < 40:
            found.append("%s: does not begin with a sentence on what it does, its inputs, outputs and exit codes" % name)
        elif text.startswith("#!") and not re.search(r"\b[Ee]xits?\b", said):
            found.append("%s: its first sentence says nothing about the exit code" % name)
    if name.endswith((".c", ".h")) and "SPDX-License-Identifier: GPL-2.0" not in text.split("\n")[0]:
        found.append("%s: line 1 is no SPDX-License-Identifier: GPL-2.0" % name)
    return found


def length_problems(name, text):
    """No script over 300 lines, no line over 120 columns but for messages."""
    lines = text.splitlines()
    found = []
    if is_script(name) and len(lines) > LINES:
        found.append("%s: %d lines, %d are allowed" % (name, len(lines), LINES))
    if is_script(name) or name.endswith((".c", ".h", ".machine", "Makefile", ".conf")):
        for number, line in enumerate(lines, 1):
            if len(line.expandtabs(8)) > COLUMNS and not LONG_STRING.search(line):
                found.append("%s:%d: %d columns, %d are allowed" % (name, number, len(line.expandtabs(8)), COLUMNS))
    return found


def blank_problems(name, text):
    """What git diff --check would say. Patches have rules of their own."""
    # A pattern may end in a blank, and means it.
    if name.endswith((".patch", ".log")) or name == "qemu-images/splats":
        return []
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.endswith("\r"):
            found.append("%s:%d: carriage return" % (name, number))
        elif line != line.rstrip(" \t"):
            found.append("%s:%d: ends in blanks" % (name, number))
        if re.match(r"(<<<<<<<|>>>>>>>) ", line):
            found.append("%s:%d: conflict marker" % (name, number))
    if text and not text.endswith("\n"):
        found.append("%s: no newline at the end" % name)
    if text.endswith("\n\n"):
        found.append("%s: blank lines at the end" % name)
    return found


def machine_only_problems(name, text):
    """Nothing that is true on one machine only."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if name.endswith(".patch") and line[:1] in (" ", "-"):
            continue
        for what, pattern in HERE_ONLY:
            match = pattern.search(line)
            if match:
                found.append("%s:%d: %s: %s" % (name, number, what, match.group(0)))
    return found


def python_problems(name, text):
    """Python parses."""
    if not name.endswith(".py"):
        return []
    try:
        compile(text, name, "exec", dont_inherit=True)
    except SyntaxError as error:
        return ["%s:%s: %s" % (name, error.lineno, error.msg)]
    return []


def mode_problems(name, text):
    """What begins with #! can be run, what is sourced or imported cannot."""
    runs = os.access(os.path.join(lintlib.TOP, name), os.X_OK)
    if is_script(name) and text.startswith("#!") and not runs:
        return ["%s: begins with #! and is not executable (chmod +x)" % name]
    if is_script(name) and not text.startswith("#!") and runs:
        return ["%s: is executable and does not begin with #!" % name]
    return []


def expected_problems(text, trees, machines, slugs):
    """Lines of selftests/expected: `tree state machine test result  # reason`, globs that match something."""
    found, last = [], ""
    for number, line in enumerate(text.splitlines(), 1):
        where = "selftests/expected:%d" % number
        words, _, reason = line.partition("#")
        words = words.split()
        if not words:
            continue
        if len(words) != 5:
            found.append("%s: %d words, wanted: tree state machine test result  # reason" % (where, len(words)))
            continue
        tree, state, machine, test, result = words
        if not fnmatch.filter(trees, tree):
            found.append("%s: tree '%s' matches none of %s" % (where, tree, " ".join(trees)))
        if not re.match(r"\*|pristine|patched|kdir|control|p\*|[cpk][a-z-]*[:*]", state):
            found.append("%s: '%s' matches no state" % (where, state))
        if not fnmatch.filter(machines, machine):
            found.append("%s: machine '%s' matches none of %s" % (where, machine, " ".join(machines)))
        slug, slash, _ = test.partition("/")
        if not slash and test != "*":
            found.append("%s: test '%s' is not of the form <test>/<name>" % (where, test))
        elif not fnmatch.filter(slugs, slug):
            found.append("%s: test '%s' matches no selftests/*.c" % (where, test))
        if result not in RESULTS:
            found.append("%s: result '%s' is none of %s" % (where, result, " ".join(RESULTS)))
        elif result != "pass" and not reason.strip():
            found.append("%s: '%s' without a reason after #" % (where, result))
        if slug < last:
            found.append("%s: '%s' is not sorted by test" % (where, slug))
        last = slug
    return found


def tree_problems(name, path):
    """The keys of a tree.conf."""
    pairs = lintlib.conf(path)
    keys = [key for key, _ in pairs]
    found = ["%s: no key '%s'" % (lintlib.short(path), key) for key in sorted(TREE_KEYS - set(keys))]
    found += ["%s: unknown line '%s'" % (lintlib.short(path), key or value) for key, value in pairs
              if key not in TREE_KEYS | TREE_MAY]
    values = dict(pairs)
    if values.get("version", name) != name:
        found.append("%s: version=%s in the folder of tree %s" % (lintlib.short(path), values["version"], name))
    if not values.get("tested", name + ".").startswith(name + "."):
        found.append("%s: tested=%s is no version of %s" % (lintlib.short(path), values["tested"], name))
    return found + ["%s: key '%s' has no value" % (lintlib.short(path), key) for key, value in pairs if key and not value]


def machine_problems(path):
    """The keys of a machine file and the form of their values."""
    pairs = lintlib.conf(path)
    keys = [key for key, _ in pairs]
    found = ["%s: no key '%s'" % (lintlib.short(path), key) for key in MACHINE_KEYS if key not in keys]
    found += ["%s: key '%s' twice" % (lintlib.short(path), key) for key in sorted(set(keys), key=str) if keys.count(key) > 1]
    for key, value in pairs:
        form = MACHINE_KEYS.get(key) or MACHINE_MORE.get(key)
        if not form:
            found.append("%s: unknown line '%s'" % (lintlib.short(path), key or value))
        elif not re.fullmatch(form, value):
            found.append("%s: %s=%s is not of the form %s" % (lintlib.short(path), key, value, form))
    return found


def ignored_problems():
    """Nothing generated is tracked."""
    run = subprocess.run(["git", "-C", lintlib.TOP, "ls-files", "-ci", "--exclude-standard"], capture_output=True,
                         text=True, check=False)
    return ["%s is tracked and ignored by .gitignore" % name for name in run.stdout.splitlines()]


def main():
    report = lintlib.Report()
    texts = {n: lintlib.read(os.path.join(lintlib.TOP, n)) for n in lintlib.files() if not n.startswith(FOREIGN)}
    for what, problems in (("scripts say what they do, C has a license line", header_problems),
                           ("scripts have at most %d lines, lines %d columns" % (LINES, COLUMNS), length_problems),
                           ("no blanks at ends of lines", blank_problems),
                           ("no path or host of one machine", machine_only_problems),
                           ("Python syntax", python_problems), ("files that run are executable", mode_problems)):
        report.check(what, [p for name, text in texts.items() for p in problems(name, text)])
    report.check("nothing generated is tracked", ignored_problems())
    for tree in lintlib.trees():
        path = os.path.join(lintlib.PATCHES, tree, "tree.conf")
        report.check("keys of %s" % lintlib.short(path), tree_problems(tree, path))
    for machine in lintlib.machines():
        path = os.path.join(lintlib.MACHINES, machine + ".machine")
        report.check("keys of %s" % lintlib.short(path), machine_problems(path))
    if "selftests/expected" in texts:
        slugs = [n[10:-2] for n in texts if re.fullmatch(r"selftests/[^/]+\.c", n)]
        report.check("selftests/expected", expected_problems(texts["selftests/expected"], lintlib.trees(),
                                                             lintlib.machines(), slugs))
    report.exit()


if __name__ == "__main__":
    main()
