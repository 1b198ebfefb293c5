#!/bin/bash
# Build the test programs and the initramfs of one kernel: selftests.sh TREE STATE MACHINE (KDIR=path with STATE
# kdir). Leaves build/TREE/STATE/selftests-ARCH/{bin,initramfs.cpio} and prints the path of the initramfs as the only
# line on stdout. Exit 0, or 1 with one line and the log's path.

. "$(dirname "$0")/lib.sh"

locked_main()
{
	local cc=${CROSS}gcc log=$OUT/build.log sum newer

	mkdir -p "$OUT/bin"
	# A test that was taken out of selftests/ must not live on in the guest.
	sum=$(cd "$TOP" && printf '%s\n' selftests/*.c selftests/bench/*.c "$SRC" | sha256sum | cut -d' ' -f1)
	if ! stamp_is "$OUT/list" "$sum"; then
		rm -f "$OUT"/bin/*
		stamp_write "$OUT/list" "$sum"
	fi
	run_log "$log" make -C "$TOP/selftests" -j"$(nproc)" CC="ccache $cc" KDIR="$SRC" OUT="$OUT/bin" ||
		die "the test programs of $TREE do not build"
	if [ ! -x "$OUT/init" ] || [ "$TOP/qemu-images/init.c" -nt "$OUT/init" ]; then
		run_log "$log" "$cc" -O2 -Wall -Wextra -static -s -o "$OUT/init.tmp" "$TOP/qemu-images/init.c" ||
			die "qemu-images/init.c does not build"
		mv "$OUT/init.tmp" "$OUT/init"
	fi
	newer=$(find "$OUT/bin" "$OUT/init" -newer "$OUT/initramfs.cpio" -print -quit 2>&1 || true)
	if [ ! -f "$OUT/initramfs.cpio" ] || [ -n "$newer" ]; then
		rm -rf "$OUT/root"
		mkdir -p "$OUT/root/tests" "$OUT/root/dev" "$OUT/root/proc" "$OUT/root/sys" "$OUT/root/tmp"
		cp "$OUT/init" "$OUT/root/init"
		cp "$OUT"/bin/* "$OUT/root/tests/"
		rm -f "$OUT"/root/tests/*.o
		"${CROSS}strip" "$OUT"/root/tests/*
		(cd "$OUT/root" && find . | sort | cpio --quiet -o -H newc -R 0:0 >"$OUT/initramfs.tmp") ||
			die "cannot write $OUT/initramfs.cpio"
		mv "$OUT/initramfs.tmp" "$OUT/initramfs.cpio"
	fi
	echo "$OUT/initramfs.cpio"
}

[ $# = 3 ] || die "usage: selftests.sh TREE STATE MACHINE"
TREE=$1 STATE=$2 MACHINE=$3
need cpio cpio
ARCH=$(machine_get "$MACHINE" arch)
CROSS=$(machine_cross "$MACHINE")
# The harness is the same in every state of a tree; a user's own tree brings its own.
SRC=$BUILD/$TREE/pristine/linux OUT=$BUILD/$TREE/selftests-$ARCH
if [ "$STATE" = kdir ]; then SRC=${KDIR:?} OUT=$BUILD/$TREE/kdir/selftests-$ARCH; fi
with_lock "selftests-$TREE-$STATE-$ARCH" locked_main
