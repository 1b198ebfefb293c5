#!/bin/bash
# Test every tree on every machine: matrix.sh [STATE...], default patched (TREES=, ONLY= limit trees and machines,
# DEBUG=1 for debug kernels; UNTIL=N starts nothing new N minutes after the verb began). The next kernel is built, at
# low priority, while the guests of the last one run. Writes build/results/ and build/matrix/NAME; prints one table.
# Exit 0 if every run that was started passed (a tree without source counts as not started), else 1.

. "$(dirname "$0")/lib.sh"

# archs: the architectures of the chosen machines, each with its machines, as `arch machine machine...`.
archs()
{
	local m

	for m in $MACHINE_LIST; do echo "$(machine_get "$m" arch) $m"; done |
		awk '{list[$1] = list[$1] " " $2; if (!seen[$1]++) order[++n] = $1} END {for (i = 1; i <= n; i++) print order[i] list[order[i]]}'
}

# too_late: UNTIL minutes have passed since the verb began.
too_late() { [ -n "${UNTIL:-}" ] && [ $(($(date +%s) - START_SECONDS)) -ge $((UNTIL * 60)) ]; }

# build_all: the background part; leaves DIR/TREE-STATE-ARCH.built with the exit status of each build.
build_all()
{
	local tree state arch machine rest rc

	for tree in $TREE_LIST; do
		for state in $STATES; do
			while read -r arch machine rest; do
				rc=0
				if too_late; then
					stamp_write "$DIR/$tree-$state-$arch.built" late
					continue
				fi
				mark "$tree $state $arch build" \
					"$TOP/scripts/kernel.sh" "$tree" "$state" "$machine" >/dev/null || rc=$?
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

# not_run TREE STATE MACHINE WHY: note a run that was not started; no result of an earlier one may stand for it.
not_run()
{
	rm -f "$(result_base "$1" "$2" "$3")${DEBUG:+-debug}.json"
	printf '%s %s %s %s\n' "$1" "$2" "$3" "$4" >>"$DIR/table"
	say "$1 $2 $3: $4"
}

# sources: leave out, by name, the trees whose source is nowhere and those whose tree.conf says `unverified=why`
# (UNVERIFIED=1 runs them all the same); any other failure ends the run.
sources()
{
	local t rc

	TREE_LIST=
	for t in $WANTED_TREES; do
		rc=0
		tree_check "$t"
		if [ -z "${UNVERIFIED:-}" ] && [ -n "$(tree_get "$t" unverified)" ]; then
			echo "$t: $(tree_get "$t" unverified)" >>"$DIR/left-out"
			continue
		fi
		"$TOP/scripts/source.sh" "$t" || rc=$?
		case $rc in
		0)	TREE_LIST="$TREE_LIST $t" ;;
		3)	echo "$t: its source is in none of its suites" >>"$DIR/left-out" ;;
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
					case $(cat "$DIR/$tree-$state-$arch.built")$(too_late && echo late) in
					0)	test_one "$tree" "$state" "$m" ;;
					*late)	not_run "$tree" "$state" "$m" not-run ;;
					*)	not_run "$tree" "$state" "$m" no-kernel
						FAILED=1 ;;
					esac
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
	[ ! -f "$DIR/left-out" ] || sed 's/^/skipped: every test of tree /' "$DIR/left-out"
}

STATES=${*:-patched}
WANTED_TREES=${TREES:-$(trees | sort -rV)}
MACHINE_LIST=${ONLY:-$(machines | sort -r)}
MACHINE_LIST=$(tr '\n' ' ' <<<"$MACHINE_LIST")
for m in $MACHINE_LIST; do machine_check "$m"; done
DIR=$BUILD/matrix/${NAME:-all}${DEBUG:+-debug}
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
