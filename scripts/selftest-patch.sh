#!/bin/bash
# Generate the patch that puts selftests/ into a kernel tree: selftest-patch.sh TREE writes
# patches/TREE/selftests.patch, which that tree's series lists last and git ignores, so that the tests are kept once.
# Does nothing if it is newer than what it is made from. Exit 0, or 1 with one line.

. "$(dirname "$0")/lib.sh"

# The folder of the memory management tests was called vm until 6.2.
folder()
{
	local vm=tools/testing/selftests/vm

	if [ -d "$PRISTINE/$vm" ]; then echo $vm/swap; else echo tools/testing/selftests/mm/swap; fi
}

# makefile: the Makefile for kselftest; $^ of its implicit rule compiles swap_util.c into each program.
makefile()
{
	printf '# SPDX-License-Identifier: GPL-2.0\n# What user space sees of swapping: THPs as a whole, exclusive pages, bits and tags of pages.\n'
	printf '# Run as root with nothing else using swap: make -C tools/testing/selftests TARGETS=%s run_tests\n\n' "$TARGET"
	printf 'CFLAGS += -O2 -g -Wall -Wextra -std=gnu11 -isystem ../.. -I.\nLDLIBS += -lpthread\n\n'
	printf 'TEST_GEN_PROGS := %s\n' "$(printf '%s\n' "${TESTS[0]}")"
	printf 'TEST_GEN_PROGS += %s\n' "${TESTS[@]:1}"
	# shellcheck disable=SC2016 # for make, not for the shell
	printf '\ninclude ../../lib.mk\n\n$(TEST_GEN_PROGS): swap_util.c\n'
}

message()
{
	cat <<-END
	Subject: selftests: mm: test what user space sees of swapping

	Programs judge swap by data, vmstat, rusage, pagemap, smaps and memory
	control groups: whether THPs go out whole and from which slots, what is
	charged, what partial unmaps free, whether a page that comes back is
	writable at once, and that soft-dirty, uffd-wp, memory tags, KSM, pins and
	stable writes keep their meaning. A stress test checksums pages while
	threads write, fork, move and unmap them, and a swap area comes and goes.

	Each program makes its own swap areas on zram, a RAM disk or /dev/vda and
	/dev/vdb, needs root, and leaves the system as it found it.

	---
	Forwarded: no
	Origin: own work, generated from selftests/ of the patch queue
	Last-Update: $(cd "$TOP" && { git log -1 --format=%cs -- selftests 2>/dev/null || true; } | grep . || date -I)

	END
}

generate()
{
	local dir=$BUILD/$TREE/selftest-patch work newer

	newer=$(find "$TOP/selftests" "$TOP/scripts/selftest-patch.sh" -newer "$OUT" -print -quit 2>&1 || true)
	if [ -f "$OUT" ] && [ -z "$newer" ]; then return 0; fi
	rm -rf "$dir"
	work=$(folder)
	TARGET=${work#tools/testing/selftests/}
	mapfile -t TESTS < <(cd "$TOP/selftests" && printf '%s\n' *.c | sed -n '/^swap_util\.c$/d; s/\.c$//p')
	mkdir -p "$dir/$work" "$dir/tools/testing/selftests" "$dir/patches"
	cp "$PRISTINE/tools/testing/selftests/Makefile" "$dir/tools/testing/selftests/"
	cd "$dir"
	QUILT=(quilt --quiltrc "$TOP/scripts/quiltrc")
	export QUILT_PATCHES=patches QUILT_PC=.pc
	"${QUILT[@]}" new selftests.patch >/dev/null
	FILES=(config swap_util.c swap_util.h "${TESTS[@]/%/.c}")
	"${QUILT[@]}" add tools/testing/selftests/Makefile "$work"/{.gitignore,Makefile} "${FILES[@]/#/$work/}" \
		>/dev/null
	# Next to the other memory management tests in the list of targets.
	sed -i "0,/^TARGETS += ${TARGET%/swap}\$/s,,&\nTARGETS += $TARGET," tools/testing/selftests/Makefile
	grep -q "^TARGETS += $TARGET\$" tools/testing/selftests/Makefile ||
		die "$TREE: tools/testing/selftests/Makefile has no line 'TARGETS += ${TARGET%/swap}' to follow"
	makefile >"$work/Makefile"
	{ echo '# SPDX-License-Identifier: GPL-2.0-only'; printf '/%s\n' "${TESTS[@]}"; } >"$work/.gitignore"
	(cd "$TOP/selftests" && cp "${FILES[@]}" "$dir/$work/")
	message >patches/selftests.patch.head
	"${QUILT[@]}" header -r <patches/selftests.patch.head >/dev/null
	"${QUILT[@]}" refresh -p ab --no-timestamps --no-index --diffstat --strip-trailing-whitespace >/dev/null
	# The form of the other patches: the diffstat follows the DEP-3 lines without a second separator.
	awk '/^---$/ && ++n == 2 {next} {print}' patches/selftests.patch >"$OUT.tmp"
	mv "$OUT.tmp" "$OUT"
	cd "$TOP"
	rm -rf "$dir"
}

[ $# = 1 ] || die "usage: selftest-patch.sh TREE"
TREE=$1
tree_check "$TREE"
need quilt quilt
PRISTINE=$BUILD/$TREE/pristine/linux
OUT=$PATCHES/$TREE/selftests.patch
[ -d "$PRISTINE" ] || "$TOP/scripts/source.sh" "$TREE"
with_lock "selftest-patch-$TREE" generate
