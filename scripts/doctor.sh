#!/bin/bash
# Say what this machine has and lacks, and the one command that mends each lack: doctor.sh; no inputs, changes nothing.
# Prints ok, note and FAIL lines; exit 0 nothing is missing, 1 something is.

. "$(dirname "$0")/lib.sh"
. "$TOP/scripts/apt.sh"
. "$TOP/scripts/host.sh"

PROBLEMS=0

good() { printf 'ok    %-9s %s\n' "$1:" "$2"; }
note() { printf 'note  %-9s %s\n' "$1:" "$2"; }

# bad WHAT TEXT FIX: something is missing, and the command that mends it.
bad()
{
	printf 'FAIL  %-9s %s\n      %-9s do: %s\n' "$1:" "$2" "" "$3"
	PROBLEMS=$((PROBLEMS + 1))
}

sudo_works() { command -v sudo >/dev/null && sudo -n true 2>/dev/null; }

packages()
{
	local missing p

	missing=$(host_missing | paste -sd' ')
	if [ -z "$missing" ]; then
		good packages "all $(host_rows | wc -l) that the verbs need are there"
		return 0
	fi
	for p in $missing; do note package "$p is missing (for: $(host_reason "$p"))"; done
	if ! host_is_debian; then
		bad packages "not Debian: your distribution's names may differ" "install: $missing"
	elif [ "$(id -u)" != 0 ] && ! sudo_works && ! { command -v sudo >/dev/null && [ -t 0 ]; }; then
		bad packages "$(wc -w <<<"$missing") are missing, and you are not root here" \
			"as root: apt-get install $missing"
	else
		bad packages "$(wc -w <<<"$missing") are missing" "make setup"
	fi
}

user()
{
	local how="not root; packages need root"

	if [ "$(id -u)" = 0 ]; then how="root"
	elif sudo_works; then how="not root, sudo works"; fi
	good user "$(id -un 2>/dev/null || id -u): $how; nothing but 'make setup' needs root"
	if mkdir -p "$BUILD" 2>/dev/null && [ -w "$BUILD" ]; then return 0; fi
	bad build "$BUILD cannot be written to by you" "chown it, or clone the repository somewhere else"
}

qemu()
{
	local why

	why=$("$TOP/scripts/qemu.sh" which 2>&1) || { bad qemu "$why" "make setup"; return 0; }
	case $why in
	own:*)	good qemu "the machine's own:${why#own:}" ;;
	*)	if [ -f "$BUILD/qemu/version" ] && [ -d "$BUILD/qemu/root" ]; then
			good qemu "build/qemu, $(sed 's/.*version //' "$BUILD/qemu/version"):${why#private:}"
		else
			good qemu "build/qemu, to be fetched by the first test (50 MB):${why#private:}"
		fi ;;
	esac
}

mirror()
{
	local uri

	if uri=$(apt_mirror main 2>&1); then
		good mirror "Debian packages from $uri"
	else
		bad mirror "${uri#error: }" "DEBIAN_MIRROR=<URI> make ..., or give sources with KDIR= or TARBALL="
	fi
	if uri=$(apt_keyring 2>&1); then good keys "$uri"; else bad keys "${uri#error: }" "make setup"; fi
}

# A demo takes about 4 GiB, all trees and machines about 25 (measured in build/).
disk()
{
	local have dir=$BUILD

	[ -d "$dir" ] || dir=$TOP
	have=$(df -Pm "$dir" | awk 'NR == 2 {print $4}')
	if [ "$have" -lt 4096 ]; then
		bad disk "$have MiB are free at $dir, 'make demo' takes 4096" "make room, or let build/ be a link to a larger disk"
	elif [ "$have" -lt 25600 ] && [ ! -d "$BUILD/results" ]; then
		note disk "$((have / 1024)) GiB are free at $dir: enough for 'make demo', 'make check' takes about 25"
	else
		good disk "$((have / 1024)) GiB are free at $dir"
	fi
}

memory()
{
	local have

	have=$(awk '$1 == "MemAvailable:" {print int($2 / 1024)}' /proc/meminfo)
	if [ "$have" -lt 2000 ]; then bad memory "$have MiB are available, a build beside a guest takes 2000" "end other programs"
	else good memory "$have MiB are available, $(nproc) processors"; fi
}

cache()
{
	local dir max used

	command -v ccache >/dev/null || { note ccache "not installed: every build is a first build"; return 0; }
	dir=$(ccache --get-config cache_dir 2>/dev/null || echo "?")
	max=$(ccache --get-config max_size 2>/dev/null || echo "?")
	if [ -d "$dir" ] && [ ! -w "$dir" ]; then
		bad ccache "$dir cannot be written to by you" "CCACHE_DIR=<folder of yours> make ..."
	else
		used=$(du -sm "$dir" 2>/dev/null | awk '{print $1}' || true)
		good ccache "$dir, ${used:-0} MiB of at most $max"
	fi
}

sources()
{
	local t lock

	for t in $(trees); do
		if [ -d "$BUILD/$t/pristine/linux" ] && [ -f "$BUILD/$t/source.lock" ]; then
			lock=$BUILD/$t/source.lock
			good "$t" "$(conf_get "$lock" package) $(conf_get "$lock" version) is unpacked"
		else
			note "$t" "source not unpacked yet: 'make source TREE=$t', or any verb that needs it"
		fi
	done
}

[ $# = 0 ] || die "usage: doctor.sh"
packages
user
qemu
mirror
disk
memory
cache
sources
if [ $PROBLEMS = 0 ]; then
	echo "doctor: all is there"
else
	echo "doctor: $PROBLEMS to mend, see FAIL above"
	exit 1
fi
