#!/bin/bash
# Check that every patch and control of a tree pushes with fuzz 0 and that quilt refresh changes nothing in it:
# lint-refresh.sh TREE; works on copies of the touched files of build/TREE/pristine/linux, which stays as it is.
# Prints ok, FAIL or skip lines; exit 0 all right or skipped, 1 not.

. "$(dirname "$0")/lib.sh"

lquilt() { QUILT_PC=.pc QUILT_PATCHES=patches quilt --quiltrc "$TOP/scripts/quiltrc" "$@"; }

# form FILE: the patch, without line numbers if the source is another version than the one it was made for.
form()
{
	if [ "$SAME" = 1 ]; then cat "$1"; else sed 's/^@@ .*/@@/' "$1"; fi
}

# last_problem LOG: the line of quilt's output that says what is wrong.
last_problem()
{
	grep -E 'FAILED at|rejects in file|which already exists|find file to patch' "$1" | paste -sd' ' | grep . ||
		tail -n 1 "$1"
}

# refresh_is_noop NAME FILE LABEL: refresh the top patch NAME and compare it with FILE.
refresh_is_noop()
{
	local n

	if ! lquilt refresh >log 2>&1; then
		echo "FAIL $TREE: $3 refresh: $(tail -n 1 log)"
		return 1
	fi
	if ! cmp -s <(form "patches/$1") <(form "$2"); then
		n=$(diff <(form "$2") <(form "patches/$1") | sed -n '1s/[acd,].*//p' || true)
		echo "FAIL $TREE: $3 line $n: 'quilt refresh' changes it: run it with scripts/quiltrc (make refresh)"
		return 1
	fi
	echo "ok   $TREE: $3 pushes, refresh changes nothing"
}

# push NAME LABEL: push NAME, or say where it fails.
push()
{
	lquilt push "patches/$1" >log 2>&1 && return 0
	echo "FAIL $TREE: $2 does not push: $(last_problem log)"
	return 1
}

tree_of_copies()
{
	local f

	mkdir -p patches/controls
	for f in $(cd "$PATCHES/$TREE" && echo *.patch controls/*.patch); do
		[ ! -f "$PATCHES/$TREE/$f" ] || cp "$PATCHES/$TREE/$f" "patches/$f"
	done
	find patches -name '*.patch' -exec sed -n 's,^\(---\|+++\) [ab]/\([^[:blank:]]*\).*,\2,p' {} + |
		sort -u >touched
	while IFS= read -r f; do
		[ -f "$PRISTINE/$f" ] || continue
		mkdir -p "$(dirname "$f")"
		cp -p "$PRISTINE/$f" "$f"
	done <touched
}

main()
{
	local p rc=0

	tree_of_copies
	queue_series "$PATCHES/$TREE/series" >patches/series
	for p in $(queue_series patches/series); do
		push "$p" "$p" || return 1
		refresh_is_noop "$p" "$PATCHES/$TREE/$p" "$p" || rc=1
		# The next patch must meet what this one is, and not what a refresh would make of it.
		cp "$PATCHES/$TREE/$p" "patches/$p"
	done
	for p in $(queue_series "$PATCHES/$TREE/controls/series"); do
		{ queue_series "$PATCHES/$TREE/series"; echo "controls/$p"; } >patches/series
		if push "controls/$p" "control $p"; then
			refresh_is_noop "controls/$p" "$PATCHES/$TREE/controls/$p" "control $p" || rc=1
			lquilt pop >log 2>&1 || { echo "FAIL $TREE: control $p does not pop: $(tail -n 1 log)"; return 1; }
		else
			rc=1
		fi
	done
	return $rc
}

[ $# = 1 ] || die "usage: lint-refresh.sh TREE"
TREE=$1
tree_check "$TREE"
[ -n "$(queue_series "$PATCHES/$TREE/series")$(queue_series "$PATCHES/$TREE/controls/series")" ] || exit 0
PRISTINE=$BUILD/$TREE/pristine/linux
if [ ! -d "$PRISTINE" ]; then
	echo "skip $TREE: patches push and refresh: not checked, source not unpacked ('make source TREE=$TREE')"
	exit 0
fi
queue_ready "$TREE"
need quilt quilt
case $(tree_get "$TREE" tested) in
"$(kernel_version "$PRISTINE")"-*) SAME=1 ;;
*)	SAME=0 ;;
esac
SCRATCH=$(mktemp -d "${TMPDIR:-/tmp}/thp-swap-lint.XXXXXX")
trap 'rm -rf "$SCRATCH"' EXIT
cd "$SCRATCH"
main
