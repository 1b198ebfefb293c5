# shellcheck shell=bash
# Running one guest: sourced, not run. prepare_guest builds what TREE STATE MACHINE needs; boot_guest boots it with
# scripts/guest.py and leaves the records at a base path. Errors: one line, exit 1.

# prepare_guest TREE STATE MACHINE: set IMAGE, INITRD, CONFIG and VERSION for the script that sources this.
# shellcheck disable=SC2034
prepare_guest()
{
	"$TOP/scripts/qemu.sh"
	IMAGE=$("$TOP/scripts/kernel.sh" "$1" "$2" "$3")
	INITRD=$("$TOP/scripts/selftests.sh" "$1" "$2" "$3")
	CONFIG=$(state_dir "$1" "$2")/$(machine_get "$3" arch)${DEBUG:+-debug}/.config
	if [ "$2" = kdir ]; then VERSION=$(kernel_version "$KDIR")
	else VERSION=$(conf_get "$BUILD/$1/source.lock" version); fi
}

# boot_with SCRIPT MACHINE BASE ARGS...: boot IMAGE with INITRD by scripts/SCRIPT, to which ARGS go. Returns its status.
boot_with()
{
	local script=$1 machine=$2 base=$3

	shift 3
	mkdir -p "$(dirname "$base")"
	[ "${V:-0}" = 0 ] || set -- "$@" --verbose
	python3 "$TOP/scripts/$script" --machine "$MACHINES/$machine.machine" --kernel "$IMAGE" --initrd "$INITRD" \
		--base "$base" "$@"
}

# boot_guest MACHINE BASE ARGS...: one guest.
boot_guest() { boot_with guest.py "$@"; }

# boot_guests MACHINE BASE SLUG,SLUG... ARGS...: the test programs, in two guests side by side (GUESTS= says how many),
# in one with few programs or with a debug kernel, whose scan for leaks takes as long as many tests.
boot_guests()
{
	local machine=$1 base=$2 run=$3 n=${GUESTS:-}

	shift 3
	[ -n "$n" ] || case ${DEBUG:-}$run in *,*,*,*) n=2 ;; *) n=1 ;; esac
	[ -z "${DEBUG:-}" ] || n=${GUESTS:-1}
	boot_with guests.py "$machine" "$base" --guests "$n" --programs "$run" "$@"
}

# test_programs: the slugs of all tests, without the benchmarks.
test_programs() { (cd "$TOP/selftests" && printf '%s\n' *.c) | sed -n '/^swap_util\.c$/d; s/\.c$//p' | sort; }

# select_programs GLOB...: the slugs that a glob matches (it may name a single test, as slug/test), joined by commas.
select_programs()
{
	local g p out=

	for p in $(test_programs); do
		for g in "$@"; do
			# shellcheck disable=SC2254 # a glob on purpose
			case $p in ${g%%/*}) out=$out,$p; break ;; esac
		done
	done
	echo "${out#,}"
}
