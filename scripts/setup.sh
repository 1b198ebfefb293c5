#!/bin/bash
# Install the host packages that scripts/packages lists and this machine lacks: setup.sh [--list]; with --list only
# prints the missing packages. Uses apt as root, or sudo where it works. Exit 0 all there, 1 with what to install.

. "$(dirname "$0")/lib.sh"

. "$TOP/scripts/host.sh"

# become_root: set ROOT to the prefix that runs a command as root, or return 1.
become_root()
{
	ROOT=()
	[ "$(id -u)" != 0 ] || return 0
	command -v sudo >/dev/null || return 1
	ROOT=(sudo)
	# Ask for a password only where somebody can type it.
	if sudo -n true 2>/dev/null; then ROOT=(sudo -n); return 0; fi
	[ -t 0 ] && [ "$IS_TTY" = 1 ] && sudo -v
}

# lists_known PACKAGE: the machine's package lists know PACKAGE.
lists_known() { grep -q 'Candidate: [^(]' <<<"$(apt-cache policy "$1" 2>/dev/null)"; }

locked_main()
{
	local missing=$1 log=$BUILD/setup.log p update=0

	for p in $missing; do lists_known "$p" || update=1; done
	if [ $update = 1 ]; then
		say "reading the package lists"
		run_log "$log" "${ROOT[@]}" apt-get -q update ||
			die "apt-get update failed: is the network up? then run 'make setup' again"
		for p in $missing; do
			lists_known "$p" || die "apt knows no package '$p' (for: $(host_reason "$p")): is 'main' of Debian in the apt configuration?"
		done
	fi
	say "installing $(wc -w <<<"$missing") packages"
	# shellcheck disable=SC2086 # one word is one package
	run_log "$log" "${ROOT[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends \
		-o DPkg::Lock::Timeout=300 install $missing ||
		die "apt-get install failed: as root, try: apt-get install $missing"
}

missing=$(host_missing | paste -sd' ')
if [ "${1:-}" = --list ]; then
	[ -z "$missing" ] || printf '%s\n' "$missing"
	exit 0
fi
[ $# = 0 ] || die "usage: setup.sh [--list]"
if [ -z "$missing" ]; then
	echo "setup: nothing to do, all packages are there"
	exit 0
fi
host_is_debian ||
	die "this is not Debian: install what your distribution has of these Debian packages: $missing"
become_root ||
	die "not root, and sudo does not work here: as root, run: apt-get install $missing"
with_lock setup locked_main "$missing"
missing=$(host_missing | paste -sd' ')
[ -z "$missing" ] || die "installed, but what these packages should bring is still not there: $missing"
echo "setup: done"
