# shellcheck shell=bash
# Private apt state: sourced, not run; downloads Debian packages of any suite into build/ without touching the
# machine's apt configuration. Input: suites, package names; output: .deb files under build/apt/; dies with one line.

# apt_mirror KIND: the machine's own Debian mirror, KIND is main or security. DEBIAN_MIRROR (and
# DEBIAN_SECURITY_MIRROR) override it on a machine that has none configured.
apt_mirror()
{
	local main sec sites

	# shellcheck disable=SC2016 # apt's own variables
	sites=$(apt-get indextargets --format '$(SITE) $(RELEASE)' 'Created-By: Packages' 2>/dev/null | sort -u || true)
	sec=$(awk '$2 ~ /^[a-z]+-security$|\/updates$/ && $1 ~ /debian/ {print $1; exit}' <<<"$sites")
	main=$(awk '$2 ~ /^(bullseye|bookworm|trixie|forky|sid|stable|testing|unstable|oldstable)(-updates|-backports)?$/ &&
		$1 ~ /debian/ && $1 !~ /security/ {print $1; exit}' <<<"$sites")
	main=${DEBIAN_MIRROR:-$main}
	[ -n "$main" ] ||
		die "no Debian mirror in this machine's apt configuration: set DEBIAN_MIRROR=<URI of one>, or use KDIR=/TARBALL="
	main=${main%/}
	if [ "$1" = security ]; then
		[ -n "$sec" ] || sec=${main%/*}/debian-security
		main=${DEBIAN_SECURITY_MIRROR:-${sec%/}}
	fi
	echo "$main"
}

# apt_options NAME: prints the -o options that point apt at build/apt/NAME, one a line.
apt_options()
{
	local d=$BUILD/apt/$1

	printf -- '-o\n%s\n' "Dir::Etc::sourcelist=$d/sources.list" "Dir::Etc::sourceparts=-" \
		"Dir::Etc::preferencesparts=-" "Dir::State=$d/state" "Dir::State::status=$d/status" \
		"Dir::Cache=$d/cache" "Dir::Cache::archives=$d/cache/archives" \
		"APT::Architecture=$(dpkg --print-architecture)" "APT::Architectures=$(dpkg --print-architecture)" \
		"APT::Install-Recommends=false" "Acquire::Check-Valid-Until=false" "Acquire::Languages=none" \
		"Acquire::Retries=3" "APT::Sandbox::User=root" "Dir::Log=$d/log" \
		"Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled=false"
}

# apt_update NAME SUITE: lists of SUITE (main) in the state NAME, at most once a day. Returns 1 if they cannot be read.
apt_update()
{
	local d=$BUILD/apt/$1 suite=$2 kind=main uri

	case $suite in *-security) kind=security ;; esac
	uri=$(apt_mirror $kind)
	mkdir -p "$d/state/lists/partial" "$d/cache/archives/partial" "$d/log"
	: >"$d/status"
	printf 'deb [signed-by=%s] %s %s main\n' "$(apt_keyring)" "$uri" "$suite" >"$d/sources.list"
	if [ -f "$d/updated" ] && [ -n "$(find "$d/updated" -mmin -1440)" ]; then return 0; fi
	rm -f "$d/updated"
	apt_get "$1" -q update -o APT::Update::Error-Mode=any >"$d/update.log" 2>&1 || return 1
	touch "$d/updated"
}

# apt_keyring: Debian's archive keys as this machine has them (trixie's keys are in every updated Debian 12).
apt_keyring()
{
	local k=/usr/share/keyrings/debian-archive-keyring

	if [ -f $k.pgp ]; then echo $k.pgp
	elif [ -f $k.gpg ]; then echo $k.gpg
	else die "Debian's archive keys are missing: install debian-archive-keyring, or use KDIR=/TARBALL="; fi
}

# apt_get NAME ARGS...: apt-get (or apt-cache with APT_TOOL) on the private state NAME.
apt_get()
{
	local name=$1 opts

	shift
	mapfile -t opts < <(apt_options "$name")
	"${APT_TOOL:-apt-get}" "${opts[@]}" "$@"
}

# disk_need MIB WHAT: stop early and say so if the disk cannot hold WHAT.
disk_need()
{
	local have

	mkdir -p "$BUILD"
	have=$(df -Pm "$BUILD" | awk 'NR==2 {print $4}')
	[ "$have" -ge "$1" ] ||
		die "$2 needs about $1 MiB in $BUILD and only $have MiB are free: make room, or let build/ be a link to a larger disk"
}

# apt_reason LOG: the line of an apt log that says what went wrong, in one line.
apt_reason() { grep -E '^(E|Err|W):?' "$1" | tail -n 1 | cut -c1-200 | grep . || echo "see $1"; }
