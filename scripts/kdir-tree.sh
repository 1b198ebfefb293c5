#!/bin/bash
# Name the tree whose data fit a user's own kernel source: kdir-tree.sh KDIR prints the newest tree of patches/ that is
# not newer than it (the oldest tree for a still older kernel). Exit 0, or 1 with one line if KDIR is no kernel source.

. "$(dirname "$0")/lib.sh"

[ $# = 1 ] || die "usage: kdir-tree.sh KDIR"
have=$(kernel_version "$1")
[ -n "$have" ] || die "KDIR=$1 is no kernel source tree: give the folder that holds its top Makefile"
best=$(trees | head -n 1)
for t in $(trees); do
	[ "$(printf '%s\n%s\n' "$t" "$(cut -d. -f1,2 <<<"$have")" | sort -V | head -n 1)" = "$t" ] && best=$t
done
echo "$best"
