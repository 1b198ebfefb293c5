#!/bin/bash
# Test every tree on every machine: matrix.sh [STATE...], default patched (TREES=, ONLY= limit trees and machines,
# DEBUG=1 for debug kernels). The next kernel is built, at low priority, while the guests of the last one run. Writes
# build/results/ and build/matrix/; prints one table. Exit 0 if every run passed or its tree's source is nowhere, else 1.

. "$(dirname "$0")/lib.sh"

# archs: the architectures of the chosen machines, each with its machines, as `arch machine machine...`.
archs()
{
	local m

	for m in $MACHINE_LIST; do echo "$(machine_get "$m" arch) $m"; done |
		awk '{list[$1] = list[$1] " " $2; if (!seen[$1]++) order[++n] = $1} END {for (i = 1; i <= n; i++) print order[i] list[order[i]]}'
}

# build_all: the background part; leaves DIR/TREE-STATE-ARCH.built with the exit status of each build.
build_all()
{
	local tree state arch machine rest rc

	for tree in $TREE_LIST; do
		for state in $STATES; do
			while read -r arch machine rest; do
				rc=0
				mark "$tree $state $arch build" "$TOP/scripts/kernel.sh" "$tree" "$state" "$machine" >/dev/null || rc=$?
				stamp_write "$DIR/$tree-$state-$arch.built" "$rc"
			done <<<"$ARCHS"
		done
	done
}

# mark NAME COMMAND...: run it and note its seconds in DIR/times.
mark()
{
	local name=$1 t0=$SECONDS rc=0

	shift
	"$@" || rc=$?
	printf '%5d s  %s\n' $((SECONDS - t0)) "$name" >>"$DIR/times"
	return $rc
}

# test_one TREE STATE MACHINE: run and note the verdict in DIR/table.
test_one()
{
	local rc=0 base verdict

	base=$(result_base "$1" "$2" "$3")${DEBUG:+-debug}
	rm -f "$base.json"
	mark "$1 $2 $3 guest" "$TOP/scripts/test.sh" "$1" "$2" "$3" >"$DIR/$1-$2-$3.txt" 2>&1 || rc=$?
	verdict=$(sed -n 's/^ *"verdict": "\([a-z]*\)".*/\1/p' "$base.json" 2>/dev/null | head -n 1)
	printf '%s %s %s %s\n' "$1" "$2" "$3" "${verdict:-error}" >>"$DIR/table"
	say "$1 $2 $3: ${verdict:-error}"
	[ $rc = 0 ] || { sed 's/^/  /' "$DIR/$1-$2-$3.txt" >&2; FAILED=1; }
}

# sources: drop the trees whose source is nowhere, by name; any other failure ends the run.
sources()
{
	local t rc

	TREE_LIST=
	for t in $WANTED_TREES; do
		rc=0
		tree_check "$t"
		"$TOP/scripts/source.sh" "$t" || rc=$?
		case $rc in
		0)	TREE_LIST="$TREE_LIST $t" ;;
		3)	echo "$t" >>"$DIR/no-source" ;;
		*)	exit 1 ;;
		esac
	done
}

test_all()
{
	local tree state arch list m

	for tree in $TREE_LIST; do
		for state in $STATES; do
			while read -r arch list; do
				until [ -f "$DIR/$tree-$state-$arch.built" ]; do
					kill -0 "$BUILDER" 2>/dev/null || [ -f "$DIR/$tree-$state-$arch.built" ] ||
						die "the background build ended early: see the messages above"
					sleep 1
				done
				for m in $list; do
					if [ "$(cat "$DIR/$tree-$state-$arch.built")" = 0 ]; then
						test_one "$tree" "$state" "$m"
					else
						rm -f "$(result_base "$tree" "$state" "$m")${DEBUG:+-debug}.json"
						printf '%s %s %s no-kernel\n' "$tree" "$state" "$m" >>"$DIR/table"
						FAILED=1
					fi
				done
			done <<<"$ARCHS"
		done
	done
}

print_table()
{
	awk -v machines="$MACHINE_LIST" 'BEGIN { n = split(machines, m, " "); printf "%-18s", ""
		for (i = 1; i <= n; i++) printf " %-13s", m[i]; print "" }
		{ row = $1 " " $2; if (!seen[row]++) order[++r] = row; cell[row, $3] = $4 }
		END { for (j = 1; j <= r; j++) { printf "%-18s", order[j]
			for (i = 1; i <= n; i++) printf " %-13s", ((order[j], m[i]) in cell) ? cell[order[j], m[i]] : "-"; print "" } }' "$DIR/table"
	[ ! -f "$DIR/no-source" ] || sed 's/^/skipped, source not found: /' "$DIR/no-source"
}

STATES=${*:-patched}
WANTED_TREES=${TREES:-$(trees | sort -rV)}
MACHINE_LIST=${ONLY:-$(machines | sort -r)}
MACHINE_LIST=$(tr '\n' ' ' <<<"$MACHINE_LIST")
for m in $MACHINE_LIST; do machine_check "$m"; done
DIR=$BUILD/matrix${DEBUG:+-debug}
FAILED=0
rm -rf "$DIR"
mkdir -p "$DIR"
: >"$DIR/table"
ARCHS=$(archs)
"$TOP/scripts/qemu.sh"
sources
build_all 2>"$DIR/build.txt" &
BUILDER=$!
trap 'kill $BUILDER 2>/dev/null || true' EXIT
test_all
print_table
exit $FAILED
