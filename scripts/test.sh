#!/bin/bash
# Boot and judge one kernel: test.sh TREE STATE MACHINE [GLOB...]; GLOBs choose the test programs (DEBUG=1, KDIR=path,
# SMP=, MEMORY=, LIMIT=, GUESTS=, ARGS='slug=arg+arg ...' as `make help` says). Results go to build/results/. Exit 0 if
# every result is the expected one and there was no splat, 1 if not.

. "$(dirname "$0")/lib.sh"
. "$TOP/scripts/guest.sh"

# control_field KEY: a line `KEY: words` of the control's patch.
control_field() { sed -n "s/^$1: *//p" "$PATCHES/$TREE/controls/${STATE#control:}.patch" | head -n 1; }

run_and_judge()
{
	local extra='' a named may

	for a in ${ARGS:-}; do extra="$extra thp.arg.$a"; done
	set -f
	case $STATE in control:*)
		read -ra named <<<"$(control_field Caught-By)"
		read -ra may <<<"$(control_field May-Fail)" ;;
	esac
	say "$TREE $STATE $MACHINE${DEBUG:+ debug}: booting ($(tr ',' '\n' <<<"$RUN" | wc -l) programs)"
	boot_guests "$MACHINE" "$BASE" "$RUN" --smp "${SMP:-2}" --memory "$MEMORY" --limit "$LIMIT" --total "$TOTAL" \
		--silence "${SILENCE:-$LIMIT}" --cmdline-extra "$extra" || true
	python3 "$TOP/scripts/judge.py" --base "$BASE" --tree "$TREE" --version "$VERSION" --state "$STATE" \
		--machine "$MACHINE" --config-sha256 "$(sha_of "$CONFIG")" --expected "$TOP/selftests/expected" \
		--rerun "$RERUN" \
		${named[0]:+--named "${named[@]}"} ${may[0]:+--may-fail "${may[@]}"}
}

[ $# -ge 3 ] || die "usage: test.sh TREE STATE MACHINE [GLOB...]"
TREE=$1 STATE=$2 MACHINE=$3
shift 3
tree_check "$TREE"
state_check "$TREE" "$STATE"
machine_check "$MACHINE"
for a in ${ARGS:-}; do
	[[ $a == [a-z]*=?* ]] || die "ARGS: '$a' is no TEST=ARGUMENT+ARGUMENT: see 'make help'"
	grep -qxF "${a%%=*}" <<<"$(test_programs)" ||
		die "ARGS: there is no test '${a%%=*}': they are $(test_programs | paste -sd' ')"
done
[ $# -gt 0 ] || set -- '*'
RUN=$(select_programs "$@")
[ -n "$RUN" ] || die "TESTS='$*' names no test: they are $(test_programs | paste -sd' ')"
# A kernel with all checkers needs more of everything. Below 640 MiB the kernel boots with THPs switched off.
if [ -n "${DEBUG:-}" ]; then
	MEMORY=${MEMORY:-1024} LIMIT=${LIMIT:-300} TOTAL=${TOTAL:-3600}
else
	MEMORY=${MEMORY:-640} LIMIT=${LIMIT:-60} TOTAL=${TOTAL:-900}
fi
BASE=$(result_base "$TREE" "$STATE" "$MACHINE")${DEBUG:+-debug}
RERUN="make test TREE=$TREE STATE=$STATE MACHINE=$MACHINE${DEBUG:+ DEBUG=1}${KDIR:+ KDIR=$KDIR}"
[ "$*" = '*' ] || RERUN="$RERUN TESTS='$*'"
prepare_guest "$TREE" "$STATE" "$MACHINE"
with_lock "run-${BASE//\//-}" run_and_judge
