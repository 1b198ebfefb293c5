#!/bin/bash
# Check every patch of a queue one by one: bisect-check.sh TREE; each pushes with fuzz 0, is left alone by quilt
# refresh, and builds what it touches on three architectures with no new W=1 or sparse warning; the whole queue also
# with THP, swap and memcg off and for 32-bit x86. Works in build/TREE/bisect; the last line is `bisect-check: N passed,
# N failed, N skipped`. Exit 0 nothing failed, 1 something did.

. "$(dirname "$0")/lib.sh"
. "$TOP/scripts/kbuild.sh"

# Built for a touched header: the files that read and write swap entries and page table entries.
SAMPLE="mm/memory.o mm/swapfile.o mm/swap_state.o mm/rmap.o mm/huge_memory.o mm/vmscan.o mm/shmem.o fs/proc/task_mmu.o"
# Name, machine, ARCH if not the machine's, what is switched off.
VARIANTS="x86_64 x86_64 - -
arm64 arm64 - -
riscv64 riscv64 - -"
WHOLE="no-thp x86_64 - TRANSPARENT_HUGEPAGE
no-swap x86_64 - SWAP
no-memcg x86_64 - MEMCG
i386 x86_64 i386 64BIT"
PASSED=0 FAILED=0 SKIPPED=0

good() { PASSED=$((PASSED + 1)); printf 'ok   %s\n' "$*"; }
bad() { FAILED=$((FAILED + 1)); printf 'FAIL %s\n' "$*"; }
skip() { SKIPPED=$((SKIPPED + 1)); printf 'skip %s\n' "$*"; }

bquilt() { (cd "$SRC" && QUILT_PC=.pc QUILT_PATCHES=patches quilt --quiltrc "$TOP/scripts/quiltrc" "$@"); }

touched() { sed -n 's,^\(---\|+++\) [ab]/\([^[:blank:]]*\).*,\2,p' "$@" | sort -u; }

# private_source: a hardlink copy of the pristine source with no patch applied, and the queue in its patches/.
private_source()
{
	local p base old=0

	base=$(cat "$BUILD/$TREE/source.lock")
	stamp_is "$DIR/base" "$base" || old=1
	# What an interrupted call left applied.
	[ ! -s "$SRC/.pc/applied-patches" ] || bquilt pop -a -f >"$DIR/log" 2>&1 || old=1
	if [ $old = 1 ]; then
		say "$TREE: making a private copy of the pristine source"
		rm -rf "$DIR"
		mkdir -p "$DIR"
		cp -al "$PRISTINE" "$SRC"
		stamp_write "$DIR/base" "$base"
	fi
	# Debian 12's sparse knows no RISC-V extensions and gives up at the option; it needs none.
	# shellcheck disable=SC2016 # the text is a script
	printf '#!/bin/bash\nfor a; do case $a in -march=*) ;; *) set -- "$@" "$a" ;; esac; shift; done\nsparse "$@" || true\n' >"$DIR/check"
	chmod +x "$DIR/check"
	rm -rf "$SRC/.pc" "$SRC/patches"
	mkdir "$SRC/patches"
	for p in $QUEUE; do cp "$PATCHES/$TREE/$p" "$SRC/patches/$p"; done
	tr ' ' '\n' <<<"$QUEUE" >"$SRC/patches/series"
	# Quilt's backups must not be links to the pristine files: pop gives them a new time.
	# shellcheck disable=SC2086 # one word per patch
	mapfile -t ALL < <(cd "$SRC/patches" && touched $QUEUE)
	for p in "${ALL[@]}"; do
		[ -f "$SRC/$p" ] && [ "$(stat -c %h "$SRC/$p")" != 1 ] || continue
		cp -p "$SRC/$p" "$SRC/$p.own" && mv -f "$SRC/$p.own" "$SRC/$p"
	done
}

# objects VARIANT FILE...: what to build for touched files on a variant.
objects()
{
	local arch f sample

	read -ra sample <<<"$SAMPLE"
	case $1 in arm64) arch=arm64 ;; riscv64) arch=riscv ;; *) arch=x86 ;; esac
	shift
	for f in "$@"; do
		case $f in
		Documentation/*|tools/*|samples/*|scripts/*) ;;
		arch/*)	[ "${f#"arch/$arch/"}" != "$f" ] || continue
			case $f in
			*.c|*.S) echo "${f%.*}.o" ;;
			*.h|*Kconfig|*Makefile) printf '%s\n' "${sample[@]}" ;;
			esac ;;
		*.c|*.S) echo "${f%.*}.o" ;;
		*.h|*Kconfig|*Makefile) printf '%s\n' "${sample[@]}" ;;
		esac
	done | sort -u
}

# use VARIANT MACHINE ARCH OFF: let kmake work on this variant.
use()
{
	kbuild_init "$SRC" "$DIR/$1" "$2" "$TREE"
	[ "$3" = - ] || KARCH=$3
}

# configure VARIANT MACHINE ARCH OFF: the kernel's own config, less what is switched off, and the generated headers.
configure()
{
	use "$@"
	if [ "$3" = - ]; then
		kbuild_config
	else
		mkdir -p "$KOUT"
		kbuild_fragments >"$KOUT/wanted.config"
		run_log "$KOUT/config.log" kmake tinyconfig || return 1
		cat "$KOUT/wanted.config" >>"$KOUT/.config"
	fi
	if [ "$4" != - ]; then
		rm -f "$KOUT/config.stamp"
		"$SRC/scripts/config" --file "$KOUT/.config" -d "$4"
		run_log "$KOUT/config.log" kmake olddefconfig || return 1
		! grep -q "^CONFIG_$4=y" "$KOUT/.config" || die "$TREE $1: CONFIG_$4 cannot be switched off"
	fi
	run_log "$KOUT/prepare.log" kmake -j"$(nproc)" W=1 prepare
}

# command_for: what a person types to do it by hand.
command_for() { echo "make -C $KSRC O=$KOUT ARCH=$KARCH CROSS_COMPILE=$KCROSS W=1 C=$SPARSE"; }

# compile LOG OBJECT...: build with all warnings; the log holds them. The status is make's.
compile()
{
	local log=$1

	shift
	[ "${V:-0}" = 0 ] || printf '+ %s %s\n' "$(command_for)" "$*" >&2
	kmake -k -j"$(nproc)" W=1 C="$SPARSE" CHECK="$DIR/check" "$@" >"$log" 2>&1 </dev/null
}

# warnings LOG: `file: text` of each warning, without line numbers, which every patch moves.
warnings()
{
	local dirs="arch|block|crypto|drivers|fs|include|init|ipc|kernel|lib|mm|security"

	sed -nE "s,^(.*/)?(($dirs)/[^:]*):[0-9:]+ (warning|error): ,\2: ,p" "$1" | sort
}

# more OLD NEW: the warnings of NEW that are not in OLD, or more often than there.
more()
{
	awk 'NR == FNR {n[$0]++; next} n[$0]-- <= 0' "$1" "$2"
}

# baseline VARIANT...: build on the pristine source all that any patch touches there, and keep the warnings.
baseline()
{
	local want o

	use "$@"
	want=$(objects "$1" "${ALL[@]}")
	: >"$KOUT/touched-objects"
	: >"$KOUT/warnings"
	[ -n "$want" ] || return 0
	# shellcheck disable=SC2086
	compile "$KOUT/base.log" $want || true
	if grep -qE ' Killed|No space left' "$KOUT/base.log"; then die "$TREE $1: the build was stopped from outside (log: $KOUT/base.log)"; fi
	for o in $want; do
		if [ -f "$KOUT/$o" ]; then
			echo "$o" >>"$KOUT/touched-objects"
		elif [ "$4" = - ] && [ -f "$SRC/${o%.o}.c" ]; then
			# With something switched off it is no surprise, else it should be known.
			skip "$TREE $1: $o does not build on the pristine source either (log: $KOUT/base.log)"
		fi
	done
	warnings "$KOUT/base.log" >"$KOUT/warnings"
}

# build_patch VARIANT MACHINE ARCH OFF LABEL FILE...: build what FILEs touch, compare with what was before.
build_patch()
{
	local label=$5 want new="" o log rc=0 v=("${@:1:4}")

	shift 5
	use "${v[@]}"
	for o in $(objects "${v[0]}" "$@"); do
		# A file that the patch adds was not there to be built before.
		if grep -qxF "$o" "$KOUT/touched-objects"; then new="$new $o"
		elif [ -f "$SRC/${o%.o}.c" ] && [ ! -f "$PRISTINE/${o%.o}.c" ]; then new="$new $o"; fi
	done
	if [ -z "$new" ]; then
		NOTHING="$NOTHING ${v[0]}"
		return 0
	fi
	log=$KOUT/${label%.patch}.log
	# shellcheck disable=SC2086
	compile "$log" $new || rc=$?
	if [ $rc != 0 ]; then
		bad "$TREE $label ${v[0]}: does not build: $(grep -m 1 -E 'error|Error' "$log" | cut -c1-150) (log: $log; again: $(command_for)$new)"
		return 0
	fi
	warnings "$log" >"$KOUT/warnings.new"
	want=$(more "$KOUT/warnings" "$KOUT/warnings.new")
	if [ -n "$want" ]; then
		# The next patch is not to blame for them.
		sort -o "$KOUT/warnings" "$KOUT/warnings" - <<<"$want"
		bad "$TREE $label ${v[0]}: $(wc -l <<<"$want") new warnings, the first: $(head -n 1 <<<"$want") (log: $log)"
	else
		good "$TREE $label ${v[0]}: $(wc -w <<<"$new") objects build, no new warning"
	fi
}

# each_variant LIST FUNCTION ARGS...: call FUNCTION VARIANT MACHINE ARCH OFF ARGS for each line of LIST.
each_variant()
{
	local name machine arch off list=$1 f=$2

	shift 2
	while read -r name machine arch off <&3; do
		"$f" "$name" "$machine" "$arch" "$off" "$@"
	done 3<<<"$list"
}

prepare_variant()
{
	say "$TREE: preparing $1"
	configure "$@" || die "$TREE $1 cannot be prepared on the pristine source (log: $DIR/$1/prepare.log)"
	baseline "$@"
}

check_patch()
{
	local p=$1 log=$DIR/quilt.log files

	if ! bquilt push "patches/$p" >"$log" 2>&1; then
		bad "$TREE $p: does not push: $(grep -E 'FAILED|already exists|find file' "$log" | sed -n 1p) (log: $log)"
		return 1
	fi
	if bquilt refresh >"$log" 2>&1 && cmp -s "$SRC/patches/$p" "$PATCHES/$TREE/$p"; then
		good "$TREE $p: pushes, refresh changes nothing"
	else
		bad "$TREE $p: 'quilt refresh' changes it ('make lint' says where)"
		cp "$PATCHES/$TREE/$p" "$SRC/patches/$p"
	fi
	mapfile -t files < <(touched "$PATCHES/$TREE/$p")
	NOTHING=
	each_variant "$VARIANTS" build_patch "$p" "${files[@]}"
	[ -z "$NOTHING" ] || printf '     %s touches nothing that is built on:%s\n' "$p" "$NOTHING"
}

locked_main()
{
	local p

	private_source
	each_variant "$VARIANTS
$WHOLE" prepare_variant
	for p in $QUEUE; do
		say "$TREE: $p"
		check_patch "$p" || break
	done
	if [ "$(wc -l <"$SRC/.pc/applied-patches")" = "$(wc -w <<<"$QUEUE")" ]; then
		say "$TREE: the whole queue in other configurations"
		each_variant "$WHOLE" build_patch "whole-queue" "${ALL[@]}"
	fi
	bquilt pop -a -f >"$DIR/quilt.log" 2>&1 || rm -f "$DIR/base"
}

[ $# = 1 ] || die "usage: bisect-check.sh TREE"
TREE=$1
tree_check "$TREE"
queue_ready "$TREE"
need quilt quilt
need ccache ccache
QUEUE=$(queue_series "$PATCHES/$TREE/series" | paste -sd' ')
DIR=$BUILD/$TREE/bisect
SRC=$DIR/linux
PRISTINE=$BUILD/$TREE/pristine/linux
SPARSE=1
if [ -z "$QUEUE" ]; then
	skip "$TREE: the queue is empty"
else
	if ! command -v sparse >/dev/null; then
		SPARSE=0
		skip "$TREE: sparse warnings: sparse is not installed ('make setup')"
	fi
	"$TOP/scripts/source.sh" "$TREE" "${TARBALL:-}"
	with_lock "bisect-$TREE" locked_main
fi
echo "bisect-check: $PASSED passed, $FAILED failed, $SKIPPED skipped"
[ $FAILED = 0 ]
