# shellcheck shell=bash
# What this machine has of scripts/packages: sourced, not run, by setup.sh and doctor.sh after lib.sh; functions
# that print package names, one a line. No exit codes of its own.

PACKAGE_LIST=${PACKAGE_LIST:-$TOP/scripts/packages}

# host_is_debian: apt and dpkg are here (Debian or a derivative of it).
host_is_debian() { command -v apt-get >/dev/null && command -v dpkg-query >/dev/null; }

# host_rows: the rows of the list that this machine's architecture needs.
host_rows()
{
	awk -v host="${HOST_ARCH:-$(uname -m)}" '/^[^#]/ && index("," $3 ",", "," host ",") == 0' "$PACKAGE_LIST"
}

# host_has WHAT: the command or file WHAT is there.
host_has()
{
	case $1 in
	# Debian renamed the keyring to .pgp, with .gpg kept as a link for now.
	*.gpg)	[ -e "$1" ] || [ -e "${1%.gpg}.pgp" ] ;;
	/*)	[ -e "$1" ] ;;
	# Debian keeps some commands where only root's PATH looks.
	*)	PATH=$PATH:/usr/sbin:/sbin command -v "$1" >/dev/null ;;
	esac
}

# host_missing: packages that are needed and not there.
host_missing()
{
	local what package

	while read -r what package _; do
		host_has "$what" || echo "$package"
	done < <(host_rows) | sort -u
}

# host_reason PACKAGE: what needs PACKAGE.
host_reason()
{
	local package reason

	while read -r _ package _ reason; do
		[ "$package" != "$1" ] || { echo "$reason"; return 0; }
	done < <(host_rows)
}
