#!/bin/bash
# List the verbs, trees and machines: help.sh, no inputs; prints one page; exit 0.

. "$(dirname "$0")/lib.sh"

cat <<END
THP swap: transparent huge pages swapped out and in as whole units; patches, selftests and guests that prove it.

  make demo      the short tour: builds a pristine and a patched kernel, boots both, prints a before/after table
  make check     all tests of the project (what CI runs); LEVEL=full adds pristine states, all controls, debug kernels

  make test      build one kernel, boot it, judge it      [TESTS='swpout-* stress'] [DEBUG=1] [KDIR=your/tree]
  make kernel    only build it
  make matrix    every tree on every machine, one table
  make controls  break one property at a time; the test named for it must fail
  make bench     instructions per page and faults, pristine against patched

  make apply     the queue onto your own tree: KDIR=path (a git checkout or an unpacked source); make unapply undoes it
  make source    unpack the pristine tree                 [TARBALL=path]
  make push, make pop, make refresh                       quilt on build/<tree>/patched/linux
  make lint      fast gate: form of patches, scripts, data; unit tests
  make bisect-check   every patch of a queue alone: applies, refreshes to itself, builds on three architectures
  make doctor    what is missing on this machine;   make setup   installs it

  TREE=          $(trees | paste -sd' ')   (newest with a queue: the default)
  MACHINE=       $(machines | paste -sd' ')
  STATE=         patched (default), pristine, control:<slug>
  V=1 shows commands and the guest's console; DEBUG=1 builds with KASAN, lockdep and all memory checkers;
  SMP= CPUs, MEMORY= MiB, GUESTS= that share the tests (2), LIMIT= seconds per test program; ARGS='stress=600+SEED'
  passes arguments to a test.
  Results: build/results/<tree>/<state>/<machine>.{json,xml,ktap,log}. README.md says more.
END
