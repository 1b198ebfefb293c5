#!/bin/bash
# Count what swapping costs, pristine against patched: bench.sh TREE MACHINE [demo]. Boots both kernels under -icount
# and leaves build/bench/TREE/MACHINE.json; prints a table (with demo: a short one for newcomers). Exit 0 if all was
# measured, 1 if not.

. "$(dirname "$0")/lib.sh"
. "$TOP/scripts/guest.sh"

# measure STATE: one guest with one CPU that counts instructions.
measure()
{
	local base=$BUILD/bench/$TREE/$MACHINE.$1

	prepare_guest "$TREE" "$1" "$MACHINE"
	say "$TREE $1 $MACHINE: counting instructions"
	with_lock "bench-$TREE-$MACHINE" boot_guest "$MACHINE" "$base" --icount --smp 1 --memory 768 --limit 400 --total 600 \
		--silence 400 --cmdline-extra "thp.run=bench-swap thp.arg.bench-swap=${BENCH_MIB:-64}" ||
		die "the benchmark guest failed; full log: $base.log; again: make bench TREE=$TREE MACHINE=$MACHINE"
}

[ $# -ge 2 ] || die "usage: bench.sh TREE MACHINE [demo]"
TREE=$1 MACHINE=$2
tree_check "$TREE"
machine_check "$MACHINE"
measure pristine
measure patched
python3 "$TOP/scripts/bench.py" "$TREE" "$VERSION" "$MACHINE" "$BUILD/bench/$TREE" ${3:+--demo}
