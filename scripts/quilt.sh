#!/bin/bash
# Work on a queue with quilt in build/TREE/patched/linux: quilt.sh TREE push|pop|refresh [quilt's arguments]; push and
# pop without arguments take all patches; refresh writes the patch (default: the topmost) and the series back to
# patches/TREE. Exit 0, or 1 with one line that names the patch and the file.

. "$(dirname "$0")/lib.sh"

# Quilt's own state decides, whatever the user's quiltrc says.
bquilt() { (cd "$LIVE" && QUILT_PC=.pc QUILT_PATCHES=patches quilt --quiltrc "$TOP/scripts/quiltrc" "$@"); }

applied() { cat "$LIVE/.pc/applied-patches" 2>/dev/null || true; }

# failed VERB: one line from quilt's log.
failed()
{
	local what

	what=$(sed -n -e 's/.*rejects in file \(.*\)/conflict in \1/p' -e 's/^File \(.*\) is not empty.*/\1 would not be empty/p' \
		-e 's/^Hunk .* FAILED.*/a hunk does not fit/p' -e 's/^\(Patch .* does not \(apply\|remove cleanly\)\).*/\1/p' \
		-e 's/^\(The next patch would .*\)/\1/p' "$LOG" | sort -u | paste -sd' ' | grep . || tail -n 1 "$LOG")
	die "$TREE: quilt $1: $what (log: $LOG)"
}

# take_patches: patches edited in patches/TREE since, for those not applied; an applied one cannot just change.
take_patches()
{
	local p

	for p in $(queue_series "$PATCHES/$TREE/series"); do
		cmp -s "$PATCHES/$TREE/$p" "$LIVE/patches/$p" && continue
		if grep -qxF "$p" <<<"$(applied)"; then
			die "$PATCHES/$TREE/$p has changed while it was applied: 'make pop', then 'make push' (or 'make refresh' to overwrite it)"
		fi
		cp "$PATCHES/$TREE/$p" "$LIVE/patches/$p"
	done
	queue_series "$PATCHES/$TREE/series" >"$LIVE/patches/series"
}

push()
{
	local n

	take_patches
	[ $# -gt 0 ] || set -- -a
	if ! bquilt push "$@" >"$LOG" 2>&1; then
		grep -q 'fully applied' "$LOG" || failed push
	fi
	n=$(applied | wc -l)
	echo "push: $n of $(queue_series "$PATCHES/$TREE/series" | wc -l) patches of $TREE are applied in $LIVE"
}

pop()
{
	if [ ! -s "$LIVE/.pc/applied-patches" ]; then
		echo "pop: no patch of $TREE is applied"
		return 0
	fi
	# The tree is no longer what the stamp says: the next test makes it whole again.
	rm -f "$BUILD/$TREE/patched/queue.stamp"
	[ $# -gt 0 ] || set -- -a
	if ! bquilt pop "$@" >"$LOG" 2>&1; then
		if grep -q 'needs to be refreshed\|does not remove cleanly' "$LOG"; then
			die "$TREE: $(applied | tail -n 1) has changes in $LIVE that are in no patch: 'make refresh' keeps them (log: $LOG)"
		fi
		failed pop
	fi
	echo "pop: $(applied | wc -l) patches of $TREE are still applied in $LIVE"
}

refresh()
{
	local p n=0

	[ -s "$LIVE/.pc/applied-patches" ] || die "no patch of $TREE is applied: 'make push' first"
	bquilt refresh "$@" >"$LOG" 2>&1 || failed refresh
	for p in $(queue_series "$LIVE/patches/series"); do
		[ -f "$LIVE/patches/$p" ] || continue
		cmp -s "$LIVE/patches/$p" "$PATCHES/$TREE/$p" && continue
		cp "$LIVE/patches/$p" "$PATCHES/$TREE/$p.tmp"
		mv "$PATCHES/$TREE/$p.tmp" "$PATCHES/$TREE/$p"
		echo "refresh: patches/$TREE/$p is new"
		n=$((n + 1))
	done
	if ! cmp -s <(queue_series "$LIVE/patches/series") <(queue_series "$PATCHES/$TREE/series"); then
		queue_series "$LIVE/patches/series" >"$PATCHES/$TREE/series.tmp"
		mv "$PATCHES/$TREE/series.tmp" "$PATCHES/$TREE/series"
		echo "refresh: patches/$TREE/series is new"
	fi
	[ $n != 0 ] || echo "refresh: nothing has changed"
}

[ $# -ge 2 ] || die "usage: quilt.sh TREE push|pop|refresh [arguments]"
TREE=$1 VERB=$2
shift 2
tree_check "$TREE"
case $VERB in push|pop|refresh) ;; *) die "usage: quilt.sh TREE push|pop|refresh [arguments]" ;; esac
need quilt quilt
queue_ready "$TREE"
LIVE=$BUILD/$TREE/patched/linux
LOG=$BUILD/$TREE/patched/quilt.log
# A tree that was popped by hand is pushed by quilt below; all else is made by queue.sh.
if [ "$VERB" = push ] && [ $# = 0 ] && [ ! -s "$LIVE/.pc/applied-patches" ]; then
	"$TOP/scripts/queue.sh" "$TREE" patched
	echo "push: $(applied | wc -l) patches of $TREE are applied in $LIVE"
	exit 0
fi
[ -d "$LIVE" ] || { [ "$VERB" = pop ] && echo "pop: no patch of $TREE is applied" && exit 0; } ||
	die "there is no $LIVE yet: 'make push TREE=$TREE' makes it"
with_lock "patched-source-$TREE" "$VERB" "$@"
