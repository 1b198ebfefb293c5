#!/bin/bash
# Unpack the pristine source of a tree: source.sh TREE [TARBALL]; leaves build/TREE/pristine/linux and
# build/TREE/source.lock (package, version, sha256 of the tarball). Exit 0 done, 1 error in one line,
# 3 the package is in none of the tree's suites.

. "$(dirname "$0")/lib.sh"
. "$TOP/scripts/apt.sh"

# find_deb: set SUITE and VERSION to the first suite of tree.conf that has the package.
find_deb()
{
	local suite failed=

	for suite in $(tree_get "$TREE" suites); do
		if ! apt_update "$suite" "$suite"; then
			failed="$failed $suite"
			continue
		fi
		VERSION=$(APT_TOOL=apt-cache apt_get "$suite" madison "$PACKAGE" |
			awk -F'|' 'NR==1 {gsub(/ /, "", $2); print $2}')
		[ -z "$VERSION" ] || { SUITE=$suite; return 0; }
	done
	if [ -n "$failed" ]; then
		suite=${failed##* }
		die "no package lists of$failed ($(apt_reason "$BUILD/apt/$suite/update.log")): is the network up? else TARBALL=path or KDIR=path"
	fi
	printf 'error: %s\n' "$PACKAGE is in none of the suites $(tree_get "$TREE" suites): give TARBALL=path or KDIR=path" >&2
	exit 3
}

# fetch_tarball: TARBALL is set to the source tarball, downloaded and checked by apt, unpacked from its package.
fetch_tarball()
{
	local dir=$BUILD/$TREE/download deb

	find_deb
	say "$TREE: downloading $PACKAGE $VERSION from $SUITE"
	rm -rf "$dir"
	mkdir -p "$dir"
	(cd "$dir" && apt_get "$SUITE" -q download "$PACKAGE=$VERSION") >"$dir/log" 2>&1 ||
		die "download of $PACKAGE $VERSION failed ($(apt_reason "$dir/log")): run the same command again"
	deb=$(echo "$dir/$PACKAGE"_*.deb)
	dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$dir" --wildcards './usr/src/*.tar.*' --strip-components=3 ||
		die "$deb cannot be unpacked: delete it and run the same command again"
	TARBALL=$(echo "$dir"/linux-source-*.tar.*)
	rm -f "$deb"
}

# unpack: TARBALL to build/TREE/pristine/linux, which appears only when it is whole.
unpack()
{
	local dir=$BUILD/$TREE/pristine got

	say "$TREE: unpacking $(basename "$TARBALL")"
	mkdir -p "$dir"
	rm -rf "$dir/unpack.tmp"
	mkdir "$dir/unpack.tmp"
	tar -xf "$TARBALL" -C "$dir/unpack.tmp" --strip-components=1 ||
		die "$TARBALL cannot be unpacked (disk full, or a broken file): make room or delete it, and run the same command again"
	got=$(kernel_version "$dir/unpack.tmp")
	case $got in
	"$TREE".*|"$TREE") ;;
	*)	rm -rf "$dir/unpack.tmp"
		die "$TARBALL holds Linux ${got:-of unknown version}, not $TREE: pass the right TARBALL= or TREE=" ;;
	esac
	rm -rf "$dir/linux"
	mv "$dir/unpack.tmp" "$dir/linux"
}

# locked_main: everything that must not run twice at once for a tree.
locked_main()
{
	local lock=$BUILD/$TREE/source.lock sum

	if [ -f "$lock" ] && [ -d "$BUILD/$TREE/pristine/linux" ]; then
		if [ -z "$TARBALL" ] || [ "$(conf_get "$lock" sha256)" = "$(sha_of "$TARBALL")" ]; then
			say "$TREE: pristine source is $(conf_get "$lock" package) $(conf_get "$lock" version)"
			return 0
		fi
	fi
	disk_need 2500 "the source of $TREE"
	rm -f "$lock"
	VERSION=
	if [ -n "$TARBALL" ]; then
		[ -f "$TARBALL" ] || die "TARBALL=$TARBALL is not a file"
		PACKAGE=$(basename "$TARBALL")
	else
		fetch_tarball
	fi
	unpack
	sum=$(sha_of "$TARBALL")
	[ -n "$VERSION" ] || VERSION=$(kernel_version "$BUILD/$TREE/pristine/linux")
	stamp_write "$lock" "$(printf 'package=%s\nversion=%s\nsha256=%s' "$PACKAGE" "$VERSION" "$sum")"
	[ ! -d "$BUILD/$TREE/download" ] || rm -rf "$BUILD/$TREE/download"
	say "$TREE: pristine source is $PACKAGE $VERSION (tested with $(tree_get "$TREE" tested))"
}

[ $# -ge 1 ] || die "usage: source.sh TREE [TARBALL]"
TREE=$1
TARBALL=${2:-}
tree_check "$TREE"
PACKAGE=$(tree_get "$TREE" package)
with_lock "source-$TREE" locked_main
