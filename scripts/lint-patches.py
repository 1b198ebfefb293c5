#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Check the written form of the patches and controls of every tree (DESIGN section 5), no source needed: lint-patches.py
[TREE...]; prints `ok ...` or `FAIL patch: what` lines; exit 0 all right, 1 not, 2 usage."""

import os
import re
import sys

import lintlib

SUBJECT = re.compile(r"Subject: (\[PATCH[^]]*\] )?(?P<phrase>.*)")
PHRASE = re.compile(r"[A-Za-z0-9_/.-]+(, [A-Za-z0-9_/.-]+)*: \S.*[^. ]$")
DATE = re.compile(r"20\d\d-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])$")
SLUG = re.compile(r"[a-z0-9][a-z0-9.-]*\.patch$")
DIFFSTAT = re.compile(r" \S+ *\| +(\d+ [-+!]*|Bin.*)$| \d+ files? changed")
# Not prose: quoted logs, tables, code and commands are indented; a long address cannot be broken.
FREE = re.compile(r"[\t ]|>|.*\w+://|(Link|Fixes|Closes|Reported-by|Suggested-by|Cc): ")
DEP3 = ("Forwarded", "Origin", "Last-Update")
CONTROL = ("Control-Of", "Caught-By", "Machines")
# Tags that only the sender, a reviewer or git can give.
NOT_OURS = re.compile(r"(Signed-off-by|Acked-by|Reviewed-by|Tested-by|From|Change-Id): ", re.IGNORECASE)


def split(text):
    """A patch as (message lines, lines between --- and the diff, diff lines)."""
    lines = text.splitlines()
    start = next((n for n, line in enumerate(lines)
                  if line.startswith("diff --git ") or line.startswith("Index: ") or
                  (line.startswith("--- ") and n + 1 < len(lines) and lines[n + 1].startswith("+++ "))), len(lines))
    head = lines[:start]
    cut = head.index("---") if "---" in head else len(head)
    return head[:cut], head[cut + 1:], lines[start:]


def message_problems(message):
    """What is wrong with the part that becomes the commit message."""
    found = []
    first = SUBJECT.match(message[0]) if message else None
    if not first:
        return ["line 1: does not begin with 'Subject: ', so git and b4 find no subject"]
    subject = first.group("phrase")
    if not PHRASE.match(subject):
        found.append("subject '%s' is not of the form 'subsys: phrase' without a full stop" % subject)
    if len(subject) > 75:
        found.append("subject has %d columns, 75 are allowed" % len(subject))
    if len(message) > 1 and message[1]:
        found.append("line 2: no blank line after the subject")
    if not any(message[1:]):
        found.append("the message says nothing but the subject")
    for number, line in enumerate(message[1:], 2):
        if len(line) > 75 and not FREE.match(line):
            found.append("line %d has %d columns, 75 are allowed" % (number, len(line)))
        if NOT_OURS.match(line):
            found.append("line %d: '%s:' is not for the queue: only the sender adds it" % (number, line.split(":")[0]))
        if line != line.rstrip():
            found.append("line %d ends in blanks" % number)
    return found


def fields(below):
    """The `Key: value` lines between --- and the diff; lines that begin with a blank go on."""
    found, last = {}, None
    for line in below:
        if DIFFSTAT.match(line):
            break
        match = re.match(r"([A-Z][A-Za-z0-9-]+):\s*(.*)", line)
        if match:
            last = match.group(1)
            found[last] = match.group(2)
        elif last and line.startswith(" "):
            found[last] += " " + line.strip()
    return found


def below_problems(below, wanted):
    """What is wrong with the fields below ---."""
    have = fields(below)
    found = ["no '%s:' line below ---" % key for key in wanted if not have.get(key)]
    if "Last-Update" in have and not DATE.match(have["Last-Update"]):
        found.append("Last-Update '%s' is no date like 2026-11-30" % have["Last-Update"])
    if not any(DIFFSTAT.match(line) for line in below):
        found.append("no diffstat below --- (quilt refresh --diffstat writes it)")
    return found


def diff_problems(diff):
    """What is wrong with the diff itself, as far as it shows without the source."""
    found = []
    if not any(line.startswith("+++ b/") or line.startswith("+++ /dev/null") for line in diff):
        return ["holds no diff with a/ and b/ names"]
    for number, line in enumerate(diff, 1):
        if line.startswith("Index: ") or (line.startswith("+++ ") and "\t" in line):
            found.append("diff line %d: Index line or time stamp, not the form of quilt refresh" % number)
        elif re.match(r"\+(?!\+\+ ).*[ \t]$", line):
            found.append("diff line %d: added line ends in blanks" % number)
    return found


def control_problems(tree, path, have):
    """What is wrong with the fields of a control: they must name things that exist."""
    found = []
    target = have.get("Control-Of", "")
    if target.endswith(".patch") and not os.path.isfile(os.path.join(lintlib.PATCHES, tree, target)):
        found.append("Control-Of names %s, which is not in patches/%s" % (target, tree))
    for machine in re.split(r"[ ,]+", have.get("Machines", "").strip()):
        if machine and machine not in lintlib.machines():
            found.append("Machines names '%s', which is none of %s" % (machine, " ".join(lintlib.machines())))
    for key in ("Caught-By", "May-Fail"):
        for glob in have.get(key, "").split():
            slug, slash, name = glob.partition("/")
            if not slash or not name:
                found.append("%s: '%s' is not of the form <test>/<name>" % (key, glob))
            elif not re.search(r"[*?[]", slug) and not os.path.isfile(os.path.join(lintlib.TOP, "selftests", slug + ".c")):
                found.append("%s: there is no selftests/%s.c" % (key, slug))
    return ["%s: %s" % (lintlib.short(path), problem) for problem in found]


def patch_problems(path, wanted):
    """All that is wrong with one patch file, each with its place."""
    message, below, diff = split(lintlib.read(path))
    found = message_problems(message) + below_problems(below, wanted) + diff_problems(diff)
    return ["%s: %s" % (lintlib.short(path), problem) for problem in found]


# Made by scripts/selftest-patch.sh when it is needed.
GENERATED = "selftests.patch"


def series_problems(folder):
    """The series lists exactly the files of its folder, each once."""
    listed = lintlib.series(os.path.join(folder, "series"))
    there = sorted(f for f in os.listdir(folder) if f.endswith(".patch")) if os.path.isdir(folder) else []
    where = lintlib.short(os.path.join(folder, "series"))
    if listed is None:
        return ["%s is missing, and there are patches" % where] if there else []
    found = ["%s lists %s twice" % (where, p) for p in sorted(set(listed)) if listed.count(p) > 1]
    found += ["%s lists %s, which is not there" % (where, p) for p in listed
              if p not in there and p != GENERATED]
    found += ["%s does not list %s" % (where, p) for p in there if p not in listed]
    found += ["%s: '%s' is no name like slug-of-it.patch" % (where, p) for p in there if not SLUG.match(p)]
    return found


def main():
    known = lintlib.trees()
    chosen = sys.argv[1:] or known
    for tree in chosen:
        if tree not in known:
            print("error: there is no tree '%s': it is one of %s" % (tree, " ".join(known)), file=sys.stderr)
            sys.exit(2)
    report = lintlib.Report()
    for tree in chosen:
        folder = os.path.join(lintlib.PATCHES, tree)
        controls = os.path.join(folder, "controls")
        report.check("%s: series lists exactly the files" % tree, series_problems(folder) + series_problems(controls))
        for name in sorted(f for f in os.listdir(folder) if f.endswith(".patch")):
            report.check("%s: form of %s" % (tree, name), patch_problems(os.path.join(folder, name), DEP3))
        if not os.path.isdir(controls):
            continue
        for name in sorted(f for f in os.listdir(controls) if f.endswith(".patch")):
            path = os.path.join(controls, name)
            have = fields(split(lintlib.read(path))[1])
            report.check("%s: form of control %s" % (tree, name),
                         patch_problems(path, CONTROL) + control_problems(tree, path, have))
    report.exit()


if __name__ == "__main__":
    main()
