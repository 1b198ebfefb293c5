# SPDX-License-Identifier: GPL-2.0
"""What the lint checks share: the report lines, key=value files and lists of files. Imported, not run; no exit code."""

import os
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PATCHES = os.environ.get("PATCHES", os.path.join(TOP, "patches"))
MACHINES = os.path.join(TOP, "qemu-images")


class Report:
    """Prints `ok what` or one `FAIL what: where` per problem of each check."""

    def __init__(self):
        self.failed = False

    def check(self, what, problems):
        """One check: what was looked at, and the problems found."""
        if problems:
            self.failed = True
            for problem in problems:
                print("FAIL %s: %s" % (what, problem))
        else:
            print("ok   %s" % what)

    def exit(self):
        """End with 1 if a check failed."""
        sys.stdout.flush()
        sys.exit(1 if self.failed else 0)


def read(path):
    """The text of a file; bytes that are not UTF-8 are kept visible."""
    with open(path, encoding="utf-8", errors="backslashreplace") as text:
        return text.read()


def short(path):
    """A path as a person at the top of the repository would type it."""
    return os.path.relpath(path, TOP) if path.startswith(TOP + "/") else path


def conf(path):
    """KEY=value lines as pairs in order; other lines as (None, line)."""
    pairs = []
    for line in read(path).splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        key, equals, value = line.partition("=")
        pairs.append((key, value) if equals else (None, line))
    return pairs


def trees():
    """The names of the trees."""
    return sorted(t for t in os.listdir(PATCHES) if os.path.isfile(os.path.join(PATCHES, t, "tree.conf")))


def machines():
    """The names of the machines."""
    return sorted(m[:-8] for m in os.listdir(MACHINES) if m.endswith(".machine"))


def series(path):
    """The entries of a series file, without comments; None if there is no such file."""
    if not os.path.isfile(path):
        return None
    return [line.split("#")[0].strip() for line in read(path).splitlines() if line.split("#")[0].strip()]


def files():
    """The repository's own files: tracked, or new and not ignored."""
    run = subprocess.run(["git", "-C", TOP, "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True,
                         check=False)
    if run.returncode == 0:
        found = run.stdout.splitlines()
    else:
        found = []
        for folder, folders, names in os.walk(TOP):
            folders[:] = [f for f in folders if os.path.join(folder, f) not in (TOP + "/build", TOP + "/.git")]
            found += [os.path.relpath(os.path.join(folder, n), TOP) for n in names]
    return sorted(f for f in set(found) if os.path.isfile(os.path.join(TOP, f)))
