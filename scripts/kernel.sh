#!/bin/bash
# Build the kernel of a tree in a state for a machine: kernel.sh TREE STATE MACHINE (DEBUG=1: with all checkers;
# KDIR=path with STATE kdir: the user's own tree as it is). Leaves build/TREE/STATE/ARCH[-debug]/ and prints the
# image's path as the only line on stdout. Exit 0, or 1 with one line and the log's path.

. "$(dirname "$0")/lib.sh"
. "$TOP/scripts/kbuild.sh"

# up_to_date: the image is newer than every file of its source, so that make and its lock can be left alone. A
# user's own tree may be anywhere, and the source of the controls changes under them: these are left to make.
up_to_date()
{
	case $STATE in kdir|control:*) return 1 ;; esac
	[ -f "$image" ] && stamp_is "$OUT/built" "$(cat "$OUT/config.stamp")" &&
		[ -z "$(find "$SRC" \( -name .pc -o -name patches \) -prune -o -type f -cnewer "$OUT/built" -print -quit)" ]
}

# locked_build: configure and build; for a control keep the image under its slug, since the directory is shared.
locked_build()
{
	local t0 image

	image=$OUT/$(machine_get "$MACHINE" image)
	t0=$(date +%s)
	kbuild_init "$SRC" "$OUT" "$MACHINE" "$TREE"
	kbuild_config
	if up_to_date; then
		echo "$image"
		return 0
	fi
	rm -f "$OUT/built"
	# One kernel at a time: two side by side would take as long and finish late, both of them.
	touch "$OUT/begun"
	with_lock kernel-build kbuild_image
	# As old as the begin of the build: what was edited meanwhile is not in the image.
	stamp_write "$OUT/built" "$(cat "$OUT/config.stamp")"
	touch -r "$OUT/begun" "$OUT/built"
	say "$TREE $STATE $(basename "$OUT"): kernel ready after $(($(date +%s) - t0)) s"
	case $STATE in
	control:*)
		cp "$image" "$OUT/image-${STATE#control:}.tmp"
		mv "$OUT/image-${STATE#control:}.tmp" "$OUT/image-${STATE#control:}"
		image=$OUT/image-${STATE#control:} ;;
	esac
	echo "$image"
}

# source_and_build: for a control the source is shared too, so both steps happen under one lock.
source_and_build()
{
	[ "$STATE" = kdir ] || "$TOP/scripts/queue.sh" "$TREE" "$STATE"
	locked_build
}

[ $# = 3 ] || die "usage: kernel.sh TREE STATE MACHINE"
TREE=$1 STATE=$2 MACHINE=$3
tree_check "$TREE"
state_check "$TREE" "$STATE"
machine_check "$MACHINE"
need ccache ccache
need flex flex
OUT=$(state_dir "$TREE" "$STATE")/$(machine_get "$MACHINE" arch)${DEBUG:+-debug}
SRC=$(state_dir "$TREE" "$STATE")/linux
if [ "$STATE" = kdir ]; then
	SRC=${KDIR:?}
	[ -f "$SRC/Kconfig" ] && [ -f "$SRC/Makefile" ] || die "KDIR=$SRC is no kernel source tree"
	[ ! -e "$SRC/.config" ] && [ ! -d "$SRC/include/config" ] ||
		die "KDIR=$SRC was built in place, which forbids a build elsewhere: run 'make mrproper' in it (keep its .config aside) and try again"
fi
case $STATE in
control:*) with_lock "control-$TREE-$(basename "$OUT")" with_lock "control-$TREE" source_and_build ;;
*)	with_lock "$(basename "$(dirname "$OUT")")-$TREE-$(basename "$OUT")" source_and_build ;;
esac
