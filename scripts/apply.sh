#!/bin/bash
# Put a tree's queue on a user's own kernel source and take it off again: apply.sh apply|unapply KDIR [TREE]; KDIR is
# a git checkout (the queue becomes commits) or an unpacked source (by quilt); TREE is found by KDIR's version if not
# given. Exit 0 done; 1 refused with one line that says which patch and file, KDIR as it was.

. "$(dirname "$0")/lib.sh"
. "$TOP/scripts/apply-plain.sh"

# Below refs/worktree/ each linked work tree of a repository has its own.
APPLIED_BASE=refs/worktree/thp-swap/base
APPLIED_TOP=refs/worktree/thp-swap/top

kgit() { git -C "$KDIR" -c core.autocrlf=false -c apply.whitespace=nowarn "$@"; }

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
	queue_ready "$TREE"
}

# refuse_conflict PATCH LOG: say which patch and file; a patch whose reverse fits is there already.
refuse_conflict()
{
	local file

	if grep -q 'No space left' "$2"; then die "no space left in ${TMPDIR:-/tmp} to try the queue: nothing was changed"; fi
	file=$(sed -n -e 's/^error: patch failed: \(.*\):[0-9]*$/\1/p' -e 's/.*rejects in file \(.*\)$/\1/p' \
		-e 's/^error: \([^:]*\): .*/\1/p' -e 's/^The next patch would [a-z]* the file \(.*\),$/\1/p' \
		-e 's/^File \(.*\) is not empty after patch.*/\1/p' "$2" | sed -n 1p)
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
	dirty=$(kgit status --porcelain --untracked-files=no | sed -n 1p)
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
		[ ! -e "$KDIR/$f" ] || die "untracked file $f in KDIR=$KDIR is in the way of $(grep -lF "+++ b/$f" "$PATCHES/$TREE"/*.patch | sed -n 1p | xargs basename): move it away; nothing was changed"
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

main()
{
	local lock

	if [ "$VERB" = apply ]; then
		check_kdir
		[ -n "$(queue)" ] || die "the queue of tree $TREE is empty: there is nothing to apply"
	else
		[ -d "$KDIR" ] || die "KDIR=$KDIR is no folder: give the path of a kernel source"
		KDIR=$(realpath "$KDIR")
	fi
	# The folder itself is the lock: it may be a user's who cannot write to build/.
	exec {lock}<"$KDIR"
	flock -n "$lock" || die "another apply or unapply works on KDIR=$KDIR now: wait for it"
	SCRATCH=$(mktemp -d "${TMPDIR:-/tmp}/thp-swap.XXXXXX")
	trap 'rm -rf "$SCRATCH"' EXIT
	trap 'die "interrupted: nothing was changed"' INT TERM HUP
	if is_git; then "git_$VERB"; else "plain_$VERB"; fi
}

[ $# -ge 2 ] && [ $# -le 3 ] || die "usage: apply.sh apply|unapply KDIR [TREE]"
VERB=$1 KDIR=$2 TREE=${3:-}
case $VERB in apply|unapply) ;; *) die "usage: apply.sh apply|unapply KDIR [TREE]" ;; esac
main
