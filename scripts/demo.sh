#!/bin/bash
# The short tour: demo.sh TREE MACHINE installs what is missing, builds the pristine and the patched kernel, boots both
# and prints a before/after table. Exit 0, or 1 with one line.

. "$(dirname "$0")/lib.sh"

[ $# = 2 ] || die "usage: demo.sh TREE MACHINE"
tree_check "$1"
machine_check "$2"
[ -n "$(queue_series "$PATCHES/$1/series")" ] ||
	die "the queue of $1 is empty, so there is nothing to compare: TREE is one with a series, like $(for t in $(trees); do
		[ -z "$(queue_series "$PATCHES/$t/series")" ] || echo "$t"; done | paste -sd' ')"
say "demo: Linux $1 on $2; a first run takes some minutes, most of them for building two kernels"
"$TOP/scripts/setup.sh"
exec "$TOP/scripts/bench.sh" "$1" "$2" demo
