#!/bin/bash
# Put a tree's queue on a user's own kernel source and take it off again: apply.sh apply|unapply KDIR [TREE]; KDIR is
# a git checkout (the queue becomes commits) or an unpacked source (by quilt); TREE is found by KDIR's version if not
# given. Exit 0 done; 1 refused with one line that says which patch and file, KDIR as it was.

. "$(dirname "$0")/lib.sh"

RECORD=.pc/thp-swap
# Below refs/worktree/ each linked work tree of a repository has its own.
APPLIED_BASE=refs/worktree/thp-swap/base
APPLIED_TOP=refs/worktree/thp-swap/top

kgit() { git -C "$KDIR" -c core.autocrlf=false -c apply.whitespace=nowarn "$@"; }

kquilt() { QUILT_PC=.pc QUILT_PATCHES=patches quilt --quiltrc "$TOP/scripts/quiltrc" "$@"; }

# queue: the patches of the tree in order.
queue() { queue_series "$PATCHES/$TREE/series"; }

# touched PATCH...: the files that the patches add, change or delete, one a line.
touched() { sed -n 's,^\(---\|+++\) [ab]/\([^[:blank:]]*\).*,\2,p' "$@" | sort -u; }

# is_git: KDIR is the top of a git work tree, and not just a folder in somebody's repository.
is_git()
{
	local top

	[ -e "$KDIR/.git" ] || return 1
	need git git
	top=$(git -C "$KDIR" rev-parse --show-toplevel 2>&1) ||
		die "git does not open KDIR=$KDIR: ${top%%$'\n'*}"
	[ "$(realpath "$top")" = "$KDIR" ]
}

# check_kdir: KDIR is a kernel source of the tree's version, and TREE is set.
check_kdir()
{
	local version t

	[ -n "$KDIR" ] || die "KDIR is empty: give the path of a kernel source, like KDIR=../linux"
	[ -d "$KDIR" ] || die "KDIR=$KDIR is no folder: give the path of a kernel source"
	KDIR=$(realpath "$KDIR")
	case $KDIR/ in
	"$(realpath "$TOP")/build/"*) die "KDIR=$KDIR is this project's own copy: use 'make push' and 'make pop' for it" ;;
	esac
	version=$(kernel_version "$KDIR")
	[ -n "$version" ] && [ -f "$KDIR/Kconfig" ] && [ -d "$KDIR/mm" ] ||
		die "KDIR=$KDIR is no kernel source: it has no Makefile with a VERSION, no Kconfig or no mm/"
	if [ -z "$TREE" ]; then
		for t in $(trees); do
			case $version in "$t"|"$t".*) TREE=$t ;; esac
		done
		[ -n "$TREE" ] || die "KDIR=$KDIR is Linux $version, and there is a queue only for $(trees | paste -sd' ')"
	fi
	tree_check "$TREE"
	case $version in
	"$TREE"|"$TREE".*) ;;
	*)	die "KDIR=$KDIR is Linux $version, not $TREE: give the TREE= of its version (one of $(trees | paste -sd' '))" ;;
	esac
}

# refuse_conflict PATCH LOG: say which patch and file; a patch whose reverse fits is there already.
refuse_conflict()
{
	local file

	file=$(sed -n -e 's/^error: patch failed: \(.*\):[0-9]*$/\1/p' -e 's/.*rejects in file \(.*\)$/\1/p' \
		-e 's/^error: \([^:]*\): .*/\1/p' -e 's/^The next patch would [a-z]* the file \(.*\),$/\1/p' \
		-e 's/^File \(.*\) is not empty after patch.*/\1/p' "$2" | head -n 1)
	[ -n "$file" ] || file=$(touched "$PATCHES/$TREE/$1" | paste -sd' ')
	if patch --dry-run -sfRp1 -F0 -d "$KDIR" <"$PATCHES/$TREE/$1" >/dev/null 2>&1; then
		die "$1 is in KDIR=$KDIR already (file $file): nothing was changed"
	fi
	die "$1 does not fit KDIR=$KDIR, conflict in $file: nothing was changed"
}

# check_clean: no tracked file of the checkout differs from HEAD, and no rebase or merge is under way.
check_clean()
{
	local dirty s dir

	dir=$(kgit rev-parse --absolute-git-dir)
	for s in rebase-merge rebase-apply MERGE_HEAD CHERRY_PICK_HEAD REVERT_HEAD; do
		[ ! -e "$dir/$s" ] || die "KDIR=$KDIR has a rebase, merge or cherry-pick under way ($s): finish or abort it first"
	done
	dirty=$(kgit status --porcelain --untracked-files=no | head -n 1)
	[ -z "$dirty" ] || die "KDIR=$KDIR has uncommitted changes (${dirty:3}): commit or stash them first; nothing was changed"
}

# commit_patch PATCH INDEX PARENT: apply to the index, print the new commit. The work tree is not touched.
commit_patch()
{
	local p=$PATCHES/$TREE/$1 subject tree

	git mailinfo "$SCRATCH/msg" "$SCRATCH/diff" <"$p" >"$SCRATCH/info"
	subject=$(sed -n 's/^Subject: //p' "$SCRATCH/info")
	GIT_INDEX_FILE=$2 kgit apply --cached "$SCRATCH/diff" 2>"$SCRATCH/log" || return 1
	tree=$(GIT_INDEX_FILE=$2 kgit write-tree)
	{ printf '%s\n\n' "${subject:-${1%.patch}}"; cat "$SCRATCH/msg"; } | git stripspace >"$SCRATCH/full"
	kgit commit-tree "$tree" -p "$3" -F "$SCRATCH/full"
}

git_apply()
{
	local head commit p f n=0

	head=$(kgit rev-parse --verify -q HEAD) || die "KDIR=$KDIR has no commit yet"
	if kgit rev-parse -q --verify $APPLIED_TOP >/dev/null && kgit merge-base --is-ancestor $APPLIED_TOP HEAD; then
		die "the queue is on KDIR=$KDIR already ($(kgit log -1 --format=%h $APPLIED_TOP)): 'make unapply' takes it off"
	fi
	check_clean
	if [ -z "$(kgit config user.name)" ] || [ -z "$(kgit config user.email)" ]; then
		export GIT_AUTHOR_NAME="${GIT_AUTHOR_NAME:-THP swap queue}"
		export GIT_AUTHOR_EMAIL="${GIT_AUTHOR_EMAIL:-queue@localhost}"
		export GIT_COMMITTER_NAME="$GIT_AUTHOR_NAME" GIT_COMMITTER_EMAIL="$GIT_AUTHOR_EMAIL"
	fi
	GIT_INDEX_FILE=$SCRATCH/index kgit read-tree "$head"
	commit=$head
	for p in $(queue); do
		commit=$(commit_patch "$p" "$SCRATCH/index" "$commit") || refuse_conflict "$p" "$SCRATCH/log"
		n=$((n + 1))
	done
	# An untracked file in the way would make the checkout below stop half-way.
	while IFS= read -r f; do
		[ ! -e "$KDIR/$f" ] || die "untracked file $f in KDIR=$KDIR is in the way of $(grep -lF "+++ b/$f" "$PATCHES/$TREE"/*.patch | head -n 1 | xargs basename): move it away; nothing was changed"
	done < <(kgit diff --name-only --no-renames --diff-filter=A "$head" "$commit")
	trap '' INT TERM HUP
	kgit update-ref $APPLIED_BASE "$head"
	kgit update-ref $APPLIED_TOP "$commit"
	if ! kgit reset -q --keep "$commit" 2>"$SCRATCH/log"; then
		kgit update-ref -d $APPLIED_BASE
		kgit update-ref -d $APPLIED_TOP
		die "git cannot check the queue out in KDIR=$KDIR ($(head -n 1 "$SCRATCH/log")): nothing was changed"
	fi
	echo "apply: $n patches of $TREE are commits on $(kgit rev-parse --abbrev-ref HEAD) of $KDIR now"
}

git_unapply()
{
	local base top n

	base=$(kgit rev-parse -q --verify $APPLIED_BASE) && top=$(kgit rev-parse -q --verify $APPLIED_TOP) ||
		die "the queue is not on KDIR=$KDIR: there is nothing to take off"
	if [ "$(kgit rev-parse HEAD)" != "$top" ]; then
		if kgit merge-base --is-ancestor "$top" HEAD; then
			die "KDIR=$KDIR has $(kgit rev-list --count "$top..HEAD") commits of yours on top of the queue (last: $(kgit log -1 --format='%h %s')): move them away first; nothing was changed"
		fi
		die "HEAD of KDIR=$KDIR is not the end of the queue ($(kgit log -1 --format=%h "$top")): check that branch out first; nothing was changed"
	fi
	check_clean
	n=$(kgit rev-list --count "$base..$top")
	trap '' INT TERM HUP
	kgit reset -q --keep "$base" 2>"$SCRATCH/log" ||
		die "git cannot go back in KDIR=$KDIR ($(head -n 1 "$SCRATCH/log")): nothing was changed"
	kgit update-ref -d $APPLIED_BASE
	kgit update-ref -d $APPLIED_TOP
	echo "unapply: $n patches are off, $KDIR is at $(kgit rev-parse --short HEAD) as before"
}

# stage_patches DIR: the queue and its series in DIR/patches.
stage_patches()
{
	local p

	mkdir "$1/patches"
	for p in $(queue); do
		cp "$PATCHES/$TREE/$p" "$1/patches/$p"
		printf '%s\n' "$p" >>"$1/patches/series"
	done
}

# try_scratch: the whole queue on copies of the files it touches; refuses if a patch does not fit.
try_scratch()
{
	local f

	mkdir "$SCRATCH/tree"
	stage_patches "$SCRATCH/tree"
	for f in $(touched "$SCRATCH/tree/patches/"*.patch); do
		[ -e "$KDIR/$f" ] || continue
		mkdir -p "$SCRATCH/tree/$(dirname "$f")"
		cp -p "$KDIR/$f" "$SCRATCH/tree/$f"
	done
	(cd "$SCRATCH/tree" && kquilt push -a) >"$SCRATCH/log" 2>&1 ||
		refuse_conflict "$(sed -n 's/^Applying patch \(patches\/\)\?//p' "$SCRATCH/log" | tail -n 1)" "$SCRATCH/log"
}

# new_folders: the folders that the queue will make, outer ones first. quilt pop leaves them behind.
new_folders()
{
	local f

	touched "$SCRATCH/tree/patches/"*.patch | while IFS= read -r f; do
		while f=$(dirname "$f"); [ ! -e "$KDIR/$f" ]; do echo "folder $f"; done
	done | sort -u
}

# plain_back: pop what is applied and remove our folders.
plain_back()
{
	local folders

	folders=$(sed -n 's/^folder //p' "$KDIR/$RECORD" | sort -r)
	if [ -s "$KDIR/.pc/applied-patches" ]; then
		(cd "$KDIR" && kquilt pop -a -f) >"$SCRATCH/pop.log" 2>&1 || return 1
	fi
	[ -z "$folders" ] || (cd "$KDIR" && xargs -d '\n' rmdir 2>/dev/null <<<"$folders" || true)
	rm -rf "$KDIR/.pc" "$KDIR/patches"
}

plain_undo()
{
	trap '' INT TERM HUP
	plain_back || die "KDIR=$KDIR could not be put back ($(tail -n 1 "$SCRATCH/pop.log")): free space there and run 'make unapply' again"
	rm -rf "$SCRATCH"
	die "$1 in KDIR=$KDIR: it is as it was"
}

plain_apply()
{
	local f

	if grep -qs '^unfinished' "$KDIR/$RECORD"; then die "KDIR=$KDIR has the rest of an interrupted apply: run 'make unapply' first"; fi
	[ ! -e "$KDIR/$RECORD" ] || die "the queue is on KDIR=$KDIR already: 'make unapply' takes it off"
	for f in .pc patches; do
		[ ! -e "$KDIR/$f" ] && [ ! -L "$KDIR/$f" ] ||
			die "KDIR=$KDIR has a $f of its own (a quilt queue?): use a copy of the tree without it, or a git checkout; nothing was changed"
	done
	[ -w "$KDIR" ] || die "KDIR=$KDIR cannot be written to by $(id -un): nothing was changed"
	need quilt quilt
	try_scratch
	mkdir "$KDIR/.pc"
	trap 'plain_undo "interrupted"' INT TERM HUP
	# Our record has to be there first, so .pc is made here, in the form that quilt makes it.
	{ echo unfinished && new_folders; } >"$KDIR/$RECORD" && echo 2 >"$KDIR/.pc/.version" &&
		echo patches >"$KDIR/.pc/.quilt_patches" && echo series >"$KDIR/.pc/.quilt_series" || plain_undo "no space"
	stage_patches "$KDIR" 2>"$SCRATCH/log" || plain_undo "cannot write patches ($(tail -n 1 "$SCRATCH/log"))"
	(cd "$KDIR" && kquilt push -a) >"$SCRATCH/log" 2>&1 || plain_undo "quilt push failed ($(tail -n 1 "$SCRATCH/log"))"
	{
		sed 1d "$KDIR/$RECORD"
		(cd "$KDIR" && { find patches -type f; touched patches/*.patch; echo .pc/applied-patches; } |
			while IFS= read -r f; do [ ! -f "$f" ] || sha256sum "$f"; done)
	} >"$SCRATCH/record"
	cp "$SCRATCH/record" "$KDIR/$RECORD.new" && mv "$KDIR/$RECORD.new" "$KDIR/$RECORD" || plain_undo "no space"
	trap - INT TERM HUP
	echo "apply: $(queue | wc -l) patches of $TREE are on $KDIR now (quilt, in its patches/ and .pc/)"
}

plain_unapply()
{
	local bad

	[ -e "$KDIR/$RECORD" ] || die "the queue is not on KDIR=$KDIR: there is nothing to take off"
	# An interrupted apply is taken off whatever it left; a whole one only if the user changed nothing since.
	if ! grep -q '^unfinished' "$KDIR/$RECORD"; then
		bad=$(cd "$KDIR" && grep -v '^folder ' $RECORD | sha256sum -c --quiet 2>/dev/null |
			sed -n '1s/: FAILED.*//p' || true)
		[ -z "$bad" ] || die "$bad in KDIR=$KDIR was changed after 'make apply': save your change (quilt diff) and take it back first; nothing was changed"
		bad=$(cd "$KDIR" && find patches ! -type d | grep -vxFf <(sed 's/^[0-9a-f]*  //' $RECORD) | head -n 1 || true)
		[ -z "$bad" ] || die "$bad in KDIR=$KDIR is yours: move it away first; nothing was changed"
	fi
	need quilt quilt
	trap '' INT TERM HUP
	# From here on it may be finished by a second call, whatever happens.
	echo unfinished >>"$KDIR/$RECORD"
	plain_back || die "quilt pop failed in KDIR=$KDIR ($(tail -n 1 "$SCRATCH/pop.log")): run 'make unapply' again"
	echo "unapply: the queue is off, $KDIR is as before"
}

main()
{
	if [ "$VERB" = apply ]; then
		check_kdir
		[ -n "$(queue)" ] || die "the queue of tree $TREE is empty: there is nothing to apply"
	else
		[ -d "$KDIR" ] || die "KDIR=$KDIR is no folder: give the path of a kernel source"
		KDIR=$(realpath "$KDIR")
	fi
	SCRATCH=$(mktemp -d "${TMPDIR:-/tmp}/thp-swap.XXXXXX")
	trap 'rm -rf "$SCRATCH"' EXIT
	if is_git; then "git_$VERB"; else "plain_$VERB"; fi
}

[ $# -ge 2 ] && [ $# -le 3 ] || die "usage: apply.sh apply|unapply KDIR [TREE]"
VERB=$1 KDIR=$2 TREE=${3:-}
case $VERB in apply|unapply) ;; *) die "usage: apply.sh apply|unapply KDIR [TREE]" ;; esac
with_lock "kdir-$(printf '%s' "$KDIR" | sha256sum | cut -c1-16)" main
