#!/bin/bash
# The fast gate, no kernel build: lint.sh [TREE...] (default: all trees); checks the form of patches, scripts, tests and
# data files and runs the scripts' unit tests. Prints one line per check and at the end `lint: N passed, N failed,
# N skipped`; logs in build/lint/. Exit 0 nothing failed, 1 something did.

. "$(dirname "$0")/lib.sh"

OUT=$BUILD/lint

# mark TEXT: put TEXT before each line.
mark() { while IFS= read -r line; do printf '%s%s\n' "$1" "$line"; done; }

# checkpatch_source: the newest unpacked source, for files that belong to no tree.
checkpatch_source()
{
	local t found=

	for t in $(trees); do
		[ ! -f "$BUILD/$t/pristine/linux/scripts/checkpatch.pl" ] || found=$BUILD/$t/pristine/linux
	done
	echo "$found"
}

# checkpatch_one SOURCE FILE: checkpatch --strict on a patch or C file. A good result is kept under the checksum of
# all that it depends on, since this is the slowest part.
checkpatch_one()
{
	local source=$1 f=$2 key log args=(--strict --terse --no-summary --show-types --ignore "$CHECKPATCH_IGNORE")

	key=$OUT/checkpatch/$(cat "$source/scripts/checkpatch.pl" "$f" <(echo "$f ${args[*]}") | sha256sum | cut -c1-32)
	if [ -f "$key" ]; then
		cat "$key"
		return 0
	fi
	case $f in
	# `Caught-By:` looks like a tag to checkpatch.
	*/controls/*.patch) args+=(--no-signoff --ignore "$CHECKPATCH_IGNORE,BAD_SIGN_OFF") ;;
	*.patch) args+=(--no-signoff) ;;
	*)	args+=(--file) ;;
	esac
	# It writes a cache where it runs and reads a .checkpatch.conf there and in HOME.
	log=$(cd "$OUT/checkpatch" &&
		HOME=$PWD perl "$source/scripts/checkpatch.pl" --root="$source" "${args[@]}" "$f" 2>&1 || true)
	if [ -z "$log" ]; then
		echo "ok   checkpatch --strict: ${f#"$TOP/"}" | tee "$key.$$"
		mv "$key.$$" "$key"
	else
		mark "FAIL checkpatch --strict: " <<<"${log//"$TOP/"/}"
	fi
}

# run_checkpatch: patches by their own tree's checkpatch, C files by the newest one.
run_checkpatch()
{
	local t f source

	for t in $TREES; do
		source=$BUILD/$t/pristine/linux
		for f in "$PATCHES/$t"/*.patch "$PATCHES/$t"/controls/*.patch; do
			[ -f "$f" ] || continue
			if [ -f "$source/scripts/checkpatch.pl" ]; then printf '%s\0%s\0' "$source" "$f"
			else echo "skip checkpatch --strict: ${f#"$TOP/"}: source of $t not unpacked" >&2; fi
		done
	done
	source=$(checkpatch_source)
	for f in "$TOP"/selftests/*.[ch] "$TOP"/selftests/*/*.[ch] "$TOP"/qemu-images/*.c; do
		[ -f "$f" ] || continue
		if [ -n "$source" ]; then printf '%s\0%s\0' "$source" "$f"
		else echo "skip checkpatch --strict: ${f#"$TOP/"}: no kernel source unpacked" >&2; fi
	done
}

run_shellcheck()
{
	local log f

	for f in "$TOP"/scripts/*.sh "$TOP/.ci/run"; do
		[ -f "$f" ] || continue
		if ! command -v shellcheck >/dev/null; then
			echo "skip shellcheck: ${f#"$TOP/"}: not installed ('make setup')"
		elif log=$(cd "$TOP" && shellcheck -x -f gcc "${f#"$TOP/"}"); then
			echo "ok   shellcheck: ${f#"$TOP/"}"
		else
			mark "FAIL shellcheck: " <<<"$log"
		fi
	done
}

# run_unit: the unit tests, one module at a time so that two can run side by side.
run_unit()
{
	local m=$1 log=$OUT/unit-$1.log rc=0 n skipped f

	(cd "$TOP/scripts/tests" && timeout 600 python3 -W error::SyntaxWarning -m unittest -v "$m") >"$log" 2>&1 || rc=$?
	n=$(sed -n 's/^Ran \([0-9]*\) tests\?.*/\1/p' "$log" | tail -n 1)
	skipped=$(sed -n 's/.*skipped=\([0-9]*\).*/\1/p' "$log" | tail -n 1)
	f=$(grep -cE '^(FAIL|ERROR): ' "$log" || true)
	sed -nE 's,^(FAIL|ERROR): (.*),FAIL unit test: \2,p' "$log"
	sed -nE "s,^(.*) \.\.\. skipped (.*),skip unit test: \1: \2,p" "$log"
	[ $rc = 0 ] || [ "$f" != 0 ] || echo "FAIL unit test: $m: $(tail -n 1 "$log")"
	echo "unit $m $((${n:-0} - f - ${skipped:-0})) ok"
	[ $rc = 0 ] || echo "     again: cd scripts/tests && python3 -m unittest -v $m   log: $log"
}

# part NAME: one independent piece of work, its lines in OUT/NAME.
part()
{
	local trees

	read -ra trees <<<"$TREES"
	case $1 in
	patches) "$TOP/scripts/lint-patches.py" "${trees[@]}" ;;
	files) "$TOP/scripts/lint-files.py" ;;
	shellcheck) run_shellcheck ;;
	refresh-*) "$TOP/scripts/lint-refresh.sh" "${1#refresh-}" ;;
	unit-*) run_unit "${1#unit-}" ;;
	checkpatch)
		run_checkpatch 2>"$OUT/checkpatch.skipped" >"$OUT/checkpatch.list"
		cat "$OUT/checkpatch.skipped"
		xargs -0 -r -n 2 -P "$(nproc)" "$0" --checkpatch <"$OUT/checkpatch.list" ;;
	esac
}

# finished: each part's lines as they are, a part that died without saying why, and the sum.
finished()
{
	local p passed failed skipped

	for p in $1; do
		grep -v '^unit ' "$OUT/$p.out" || true
		sed -n 's/^unit \(.*\) \([0-9]*\) ok$/ok   unit tests of \1: \2/p' "$OUT/$p.out"
		if [ "$(cat "$OUT/$p.rc" 2>/dev/null)" != 0 ] && ! grep -q '^FAIL' "$OUT/$p.out"; then
			echo "FAIL $p: $(tail -n 1 "$OUT/$p.err")" | tee -a "$OUT/$p.out"
		fi
	done >"$OUT/lint.log"
	cat "$OUT/lint.log"
	passed=$(awk '/^ok   unit tests of /{n += $NF; next} /^ok   /{n++} END {print n + 0}' "$OUT/lint.log")
	failed=$(grep -c '^FAIL ' "$OUT/lint.log" || true)
	skipped=$(grep -c '^skip ' "$OUT/lint.log" || true)
	echo "lint: $passed passed, $failed failed, $skipped skipped"
	[ "$failed" = 0 ]
}

main()
{
	local parts=() f t

	rm -f "$OUT"/*.{out,err,rc,log}
	mkdir -p "$OUT/checkpatch"
	find "$OUT/checkpatch" -type f -mtime +30 -delete
	for f in "$TOP"/scripts/tests/test_*.py; do parts+=("unit-$(basename "$f" .py)"); done
	for t in $TREES; do parts+=("refresh-$t"); done
	parts+=(files patches shellcheck checkpatch)
	printf '%s\n' "${parts[@]}" | xargs -P "$(nproc)" -n 1 "$0" --part
	finished "${parts[*]}"
}

# The sign-off is the sender's. User space has no __printf(), no BIT(), and a path named like a function is no mistake.
export CHECKPATCH_IGNORE=FILE_PATH_CHANGES,MISSING_SIGN_OFF,NO_AUTHOR_SIGN_OFF
CHECKPATCH_IGNORE=$CHECKPATCH_IGNORE,PREFER_DEFINED_ATTRIBUTE_MACRO,EMBEDDED_FUNCTION_NAME,BIT_MACRO
case ${1:-} in
--checkpatch)
	checkpatch_one "$2" "$3"
	exit 0 ;;
--part)
	rc=0
	# Appended, since two checkpatches write here: cat may use copy_file_range(), which does not lock the position.
	part "$2" >>"$OUT/$2.out" 2>"$OUT/$2.err" || rc=$?
	echo $rc >"$OUT/$2.rc"
	exit 0 ;;
esac
for t in "$@"; do tree_check "$t"; done
TREES=${*:-$(trees | paste -sd' ')}
export TREES
with_lock lint main
