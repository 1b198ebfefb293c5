#!/bin/bash
# All tests of the project, what CI runs: check.sh, no inputs (LEVEL=full: also pristine kernels, every control, debug
# kernels; UNTIL=N: no guest is started N minutes after the begin, what is left out is named and counts as skipped).
# Prints where the time went, what failed and, as the last line, `N passed, N failed, N skipped`. Exit 0 if none failed.

. "$(dirname "$0")/lib.sh"

DIR=$BUILD/check
PASSED=0 FAILED=0 SKIPPED=0

# stage NAME COMMAND...: run it, note its seconds; its output goes to the console and to DIR/NAME.txt.
stage()
{
	local name=$1 t0=$SECONDS rc=0

	shift
	say "check: $name"
	"$@" 2>&1 | tee "$DIR/$name.txt" || rc=$?
	printf '%5d s  %s%s\n' $((SECONDS - t0)) "$name" "$([ $rc = 0 ] || echo ' (failed)')" >>"$DIR/times"
	STATUS=$rc
}

# count P F S: add to the totals.
count() { PASSED=$((PASSED + $1)) FAILED=$((FAILED + $2)) SKIPPED=$((SKIPPED + $3)); }

# count_lines NAME: add the last `...: N passed, N failed, N skipped` of a stage; one failure if there is none.
count_lines()
{
	local line

	line=$(sed -n 's/^[a-z-]*: \([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped$/\1 \2 \3/p' "$DIR/$1.txt" | tail -n 1)
	# shellcheck disable=SC2086 # three numbers
	if [ -n "$line" ]; then count $line
	else count 0 1 0; fi
}

# matrix_stage NAME STATES: the guests of the trees in TREES; their results are counted test by test.
matrix_stage()
{
	local line dir=$BUILD/matrix/$1

	# shellcheck disable=SC2086 # a list of states
	NAME=$1 stage "$1" "$TOP/scripts/matrix.sh" $2
	dir=$dir${DEBUG:+-debug}
	line="0 0 0"
	if [ -s "$dir/table" ] || [ ! -f "$dir/left-out" ]; then
		line=$(python3 "$TOP/scripts/tally.py" "$BUILD/results" "$dir/table" ${DEBUG:+--debug}) || line="0 1 0"
	fi
	# A matrix that failed without a failed result did not get that far.
	if [ $STATUS != 0 ] && [ "$(cut -d' ' -f2 <<<"$line")" = 0 ]; then line="${line% * *} 1 ${line##* }"; fi
	# shellcheck disable=SC2086
	count $line
	[ ! -f "$dir/left-out" ] || count 0 0 "$(wc -l <"$dir/left-out")"
	[ ! -f "$dir/times" ] || sed "s/^/  /" "$dir/times" >>"$DIR/times"
}

# failures: what failed, by name, and what it said, since a long log may be read from its end only.
failures()
{
	local name

	sed -n 's/^ *[0-9]* s  \([^ ]*\).*/\1/p' "$DIR/times" | while read -r name; do
		[ ! -f "$DIR/$name.txt" ] || awk -v name="$name" '
			said && /^ *#/ { print; said--; next }
			{ said = 0 }
			/^ *(FAIL|ERROR|HUNG|PANIC):? |: wanted |^ +kernel.*, log line |^error: |^[^ ]+ .* MISSED / {
				said = 12
				sub(/^ */, "")
				print "  " name ": " $0
			}' "$DIR/$name.txt"
	done
}

controls_stage()
{
	QUICK=$([ -n "${LEVEL:-}" ] || echo 1) stage controls "$TOP/scripts/controls.sh" "$1" "$2"
	count "$(grep -c ' caught ' "$BUILD/controls/$1.txt" || true)" "$(grep -c ' MISSED ' "$BUILD/controls/$1.txt" || true)" 0
	if [ $STATUS != 0 ] && ! grep -q ' MISSED ' "$BUILD/controls/$1.txt"; then count 0 1 0; fi
}

case ${LEVEL:-} in ''|full) ;; *) die "LEVEL='$LEVEL' is unknown: leave it out, or LEVEL=full" ;; esac
rm -rf "$DIR"
mkdir -p "$DIR"
stage setup "$TOP/scripts/setup.sh"
[ $STATUS = 0 ] || exit 1
for t in $(trees); do
	[ -z "$(queue_series "$PATCHES/$t/series")" ] || stage "source-$t" "$TOP/scripts/source.sh" "$t"
done
stage lint "$TOP/scripts/lint.sh"
count_lines lint
# The trees with a queue first, with all that belongs to it, then the others.
QUEUES='' OTHERS=''
for t in $(trees); do
	if [ -n "$(queue_series "$PATCHES/$t/series")" ]; then QUEUES="$QUEUES $t"; else OTHERS="$t $OTHERS"; fi
done
export TREES
TREES=$QUEUES matrix_stage queues "patched ${LEVEL:+pristine}"
for t in $QUEUES; do
	controls_stage "$t" "$([ -n "${LEVEL:-}" ] && echo all || echo x86_64)"
	stage "bisect-check-$t" "$TOP/scripts/bisect-check.sh" "$t"
	count_lines "bisect-check-$t"
done
TREES=$OTHERS matrix_stage others patched
if [ -n "${LEVEL:-}" ]; then
	DEBUG=1
	export DEBUG
	TREES=$QUEUES matrix_stage queues patched
fi
printf '\nWhere the time went:\n'
cat "$DIR/times"
printf '%5d s  all\n\n' "$SECONDS"
[ $FAILED = 0 ] || { echo 'What failed:'; failures || true; echo; }
printf '%d passed, %d failed, %d skipped\n' $PASSED $FAILED $SKIPPED
[ $FAILED = 0 ] && [ $PASSED -gt 0 ]
