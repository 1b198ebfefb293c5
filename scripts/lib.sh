# shellcheck shell=bash
# Common part of the scripts: sourced, not run; defines TOP and BUILD, messages, locks, stamps and the readers
# of tree.conf and the machine files. Every function that fails prints one line that says what to do and exits 1.

set -euo pipefail
export LC_ALL=C

# What the user gave to our make (TESTS=, ARCH=, V=) is not meant for the makes that the scripts start.
unset MAKEFLAGS MFLAGS MAKEOVERRIDES MAKELEVEL

TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
BUILD=$TOP/build
PATCHES=${PATCHES:-$TOP/patches}
MACHINES=$TOP/qemu-images
export TOP BUILD PATCHES
# Colour and the live progress line only where a person looks at them.
if [ -t 2 ]; then IS_TTY=1; else IS_TTY=0; fi
export IS_TTY

# say TEXT...: progress for the person who waits, with the seconds since the verb began.
START_SECONDS=${START_SECONDS:-$(date +%s)}
export START_SECONDS
say()
{
	local t=$(($(date +%s) - START_SECONDS))

	printf '[%3d:%02d] %s\n' $((t / 60)) $((t % 60)) "$*" >&2
}

warn() { printf 'warning: %s\n' "$*" >&2; }

# die TEXT...: one line on what was wrong and what to do; exit 1.
die()
{
	printf 'error: %s\n' "$*" >&2
	exit 1
}

# trees / machines: the names that exist, one a line, oldest tree first.
trees() { (cd "$PATCHES" && printf '%s\n' */tree.conf) | sed 's,/tree.conf,,' | sort -V; }
machines() { (cd "$MACHINES" && printf '%s\n' *.machine) | sed 's/\.machine$//' | sort; }

# conf_get FILE KEY: the value of KEY=value in FILE, empty if the key is not there.
conf_get() { sed -n "s/^$2=//p" "$1" | tail -n 1; }

tree_check()
{
	[ -f "$PATCHES/$1/tree.conf" ] ||
		die "there is no tree '$1': TREE is one of $(trees | paste -sd' ')"
}

machine_check()
{
	[ -f "$MACHINES/$1.machine" ] ||
		die "there is no machine '$1': MACHINE is one of $(machines | paste -sd' ')"
}

# tree_get TREE KEY, machine_get MACHINE KEY: one value of their data files.
tree_get() { conf_get "$PATCHES/$1/tree.conf" "$2"; }
machine_get() { conf_get "$MACHINES/$1.machine" "$2"; }

# state_check TREE STATE: STATE is pristine, patched or control:<slug> of that tree.
state_check()
{
	case $2 in
	pristine|patched) ;;
	control:*)
		[ -f "$PATCHES/$1/controls/${2#control:}.patch" ] ||
			die "tree $1 has no control '${2#control:}': see patches/$1/controls/series" ;;
	kdir) ;;
	*)	die "there is no state '$2': STATE is pristine, patched or control:<slug>" ;;
	esac
}

# state_dir TREE STATE: the folder that holds linux/ (the source) and the build directories of a state. The
# controls of a tree share one, so that going from one to the next rebuilds only what the patch touches; with an empty
# queue patched is pristine, and is not built twice.
state_dir()
{
	case $2 in
	control:*) echo "$BUILD/$1/control" ;;
	patched) if [ -n "$(queue_series "$PATCHES/$1/series")" ]; then echo "$BUILD/$1/patched"; else echo "$BUILD/$1/pristine"; fi ;;
	*)	echo "$BUILD/$1/$2" ;;
	esac
}

# result_base TREE STATE MACHINE: the results' path without suffix.
result_base() { echo "$BUILD/results/$1/${2/:/-}/$3"; }

# with_lock NAME COMMAND...: run COMMAND while nobody else holds the lock NAME; says so if it has to wait.
with_lock()
{
	local name=$1 fd

	shift
	mkdir -p "$BUILD/locks"
	exec {fd}>"$BUILD/locks/$name"
	if ! flock -n "$fd"; then
		say "waiting for another run that holds $name"
		flock "$fd"
	fi
	"$@"
	exec {fd}>&-
}

# stamp_write FILE TEXT: write a stamp so that it is either whole or not there.
stamp_write()
{
	mkdir -p "$(dirname "$1")"
	printf '%s\n' "$2" >"$1.$$.tmp"
	mv -f "$1.$$.tmp" "$1"
}

stamp_is() { [ -f "$1" ] && [ "$(cat "$1")" = "$2" ]; }

# run_log LOG COMMAND...: run with all output in LOG; with V=1 show the command. On failure print the last
# lines, the log's path and the command, and return the command's status.
run_log()
{
	local log=$1 rc=0

	shift
	mkdir -p "$(dirname "$log")"
	[ "${V:-0}" = 0 ] || printf '+ %s\n' "$*" >&2
	"$@" >"$log" 2>&1 </dev/null || rc=$?
	if [ "$rc" != 0 ]; then
		tail -n 15 "$log" >&2
		printf 'failed (exit %s): %s\nfull log: %s\n' "$rc" "$*" "$log" >&2
	fi
	return "$rc"
}

# sha_of FILE...: one checksum over the contents of all FILEs in the order given.
sha_of() { cat -- "$@" | sha256sum | cut -d' ' -f1; }

# need COMMAND PACKAGE: COMMAND must be there.
need()
{
	command -v "$1" >/dev/null ||
		die "'$1' is not installed (Debian package $2): run 'make setup', or 'make doctor' to see all that is missing"
}

# kernel_version DIR: the version that the top Makefile of a kernel tree states, like 6.1.192; empty if it is none.
kernel_version()
{
	[ -f "$1/Makefile" ] || return 0
	awk -F' *= *' '$1 == "VERSION" {v = $2} $1 == "PATCHLEVEL" {p = $2} $1 == "SUBLEVEL" {s = $2}
		END {if (v != "" && p != "") print v "." p (s != "" ? "." s : "")}' "$1/Makefile"
}

# queue_ready TREE: generate the patch of the selftests if the series lists it.
queue_ready()
{
	! queue_series "$PATCHES/$1/series" | grep -qx selftests.patch || "$TOP/scripts/selftest-patch.sh" "$1"
}

# queue_series FILE: the patch names of a quilt series file in order, without comments and options.
queue_series() { [ ! -f "$1" ] || sed 's/#.*//' "$1" | awk 'NF {print $1}'; }

# machine_cross MACHINE: the cross compiler's prefix, empty where the host is the target.
machine_cross()
{
	case $(uname -m)/$(machine_get "$1" arch) in
	x86_64/x86_64|aarch64/arm64|riscv64/riscv64) ;;
	*)	machine_get "$1" cross ;;
	esac
}
