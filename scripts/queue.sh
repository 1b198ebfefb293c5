#!/bin/bash
# Make the source of a tree in a state: queue.sh TREE STATE; STATE pristine, patched or control:<slug>. Leaves
# build/TREE/{pristine,patched,control}/linux, changing only the files whose content changes, so that the next
# build is as small as it can be. Exit 0, or 1 with one line that names the patch that does not apply.

. "$(dirname "$0")/lib.sh"

# series TREE STATE: the patches of a state in order, as paths.
series()
{
	local p

	for p in $(queue_series "$PATCHES/$1/series"); do echo "$PATCHES/$1/$p"; done
	case $2 in control:*) echo "$PATCHES/$1/controls/${2#control:}.patch" ;; esac
}

# touched PATCH...: the files that the patches add, change or delete, one a line.
touched()
{
	[ $# -gt 0 ] || return 0
	sed -n 's,^\(---\|+++\) [ab]/\([^[:blank:]]*\).*,\2,p' "$@" | sort -u
}

# build_scratch DIR FILES PATCHES: apply PATCHES with fuzz 0 to copies of the pristine FILES in DIR, by quilt.
build_scratch()
{
	local dir=$1 files=$2 patches=$3 f p

	rm -rf "$dir"
	mkdir -p "$dir/patches"
	while IFS= read -r f; do
		if [ -n "$f" ] && [ -f "$PRISTINE/$f" ]; then
			mkdir -p "$dir/$(dirname "$f")"
			cp -p "$PRISTINE/$f" "$dir/$f"
		fi
	done <<<"$files"
	for p in $patches; do
		mkdir -p "$dir/patches/$(dirname "${p#"$PATCHES/$TREE/"}")"
		cp "$p" "$dir/patches/${p#"$PATCHES/$TREE/"}"
		echo "${p#"$PATCHES/$TREE/"} -p1" >>"$dir/patches/series"
	done
	[ -n "$patches" ] || return 0
	if ! (cd "$dir" && QUILT_PC=.pc QUILT_PATCHES=patches quilt --quiltrc - push -a --fuzz=0) >"$dir.log" 2>&1; then
		cat "$dir.log" >&2
		die "$TREE: $(sed -n 's/^Applying patch //p' "$dir.log" | tail -n 1) does not apply to $(conf_get "$BUILD/$TREE/source.lock" version): rebase it (log: $dir.log)"
	fi
}

# install_scratch SCRATCH FILES: make the files of LIVE equal to those of the scratch tree, touching only changed ones.
install_scratch()
{
	local f

	while IFS= read -r f; do
		[ -n "$f" ] || continue
		if [ -f "$1/$f" ]; then
			cmp -s "$1/$f" "$LIVE/$f" && continue
			mkdir -p "$LIVE/$(dirname "$f")"
			rm -f "$LIVE/$f"
			cp "$1/$f" "$LIVE/$f"
		elif [ -f "$PRISTINE/$f" ]; then
			cmp -s "$PRISTINE/$f" "$LIVE/$f" && continue
			rm -f "$LIVE/$f"
			cp "$PRISTINE/$f" "$LIVE/$f"
		else
			rm -f "$LIVE/$f"
		fi
	done <<<"$2"
	rm -rf "$LIVE/.pc" "$LIVE/patches"
	[ ! -d "$1/.pc" ] || mv "$1/.pc" "$LIVE/.pc"
	mv "$1/patches" "$LIVE/patches"
}

locked_main()
{
	local patches sum files old

	patches=$(series "$TREE" "$STATE")
	# shellcheck disable=SC2086 # one word per patch
	sum=$(sha_of "$BUILD/$TREE/source.lock" $patches)
	if stamp_is "$DIR/queue.stamp" "$sum" && [ -d "$LIVE" ]; then return 0; fi
	rm -f "$DIR/queue.stamp"
	if ! stamp_is "$DIR/queue.base" "$(cat "$BUILD/$TREE/source.lock")" || [ ! -d "$LIVE" ]; then
		say "$TREE $STATE: making a copy of the pristine source"
		rm -rf "$LIVE" "$DIR/linux.tmp"
		mkdir -p "$DIR"
		cp -al "$PRISTINE" "$DIR/linux.tmp" || die "cannot link the source tree inside $BUILD: is the disk full?"
		mv "$DIR/linux.tmp" "$LIVE"
		rm -f "$DIR/queue.files"
		stamp_write "$DIR/queue.base" "$(cat "$BUILD/$TREE/source.lock")"
	fi
	old=$(cat "$DIR/queue.files" 2>/dev/null || true)
	# shellcheck disable=SC2086
	files=$(touched $patches)
	build_scratch "$DIR/scratch" "$files" "$patches"
	stamp_write "$DIR/queue.files" "$(printf '%s\n%s\n' "$old" "$files" | sort -u)"
	install_scratch "$DIR/scratch" "$(cat "$DIR/queue.files")"
	stamp_write "$DIR/queue.files" "$files"
	rm -rf "$DIR/scratch"
	stamp_write "$DIR/queue.stamp" "$sum"
	say "$TREE $STATE: $(wc -w <<<"$patches") patches applied"
}

[ $# = 2 ] || die "usage: queue.sh TREE STATE"
TREE=$1 STATE=$2
tree_check "$TREE"
state_check "$TREE" "$STATE"
"$TOP/scripts/source.sh" "$TREE" "${TARBALL:-}"
DIR=$(state_dir "$TREE" "$STATE")
[ "$DIR" != "$BUILD/$TREE/pristine" ] || exit 0
need quilt quilt
queue_ready "$TREE"
LIVE=$DIR/linux
PRISTINE=$BUILD/$TREE/pristine/linux
with_lock "$(basename "$DIR")-source-$TREE" locked_main
