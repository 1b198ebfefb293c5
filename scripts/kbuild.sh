# shellcheck shell=bash
# Building one kernel: sourced, not run. kbuild_init names source, output and machine; kbuild_config makes and
# checks the .config; kmake calls make with ccache and fixed build identity. Errors: one line, exit 1.

FRAGMENTS=$TOP/kconfig-fragments

# kbuild_init SRC OUT MACHINE TREE: set the variables that the functions below use. DEBUG=1 adds the checkers.
kbuild_init()
{
	KSRC=$1 KOUT=$2 KTREE=$4
	KARCH=$(machine_get "$3" karch)
	KFRAG_ARCH=$(machine_get "$3" arch)
	KCROSS=$(machine_cross "$3")
	KIMAGE=$(machine_get "$3" image)
	export KBUILD_BUILD_TIMESTAMP=@0 KBUILD_BUILD_USER=build KBUILD_BUILD_HOST=host KBUILD_BUILD_VERSION=1
	# No CCACHE_DEPEND: it does not see .incbin, and an object with an older kernel image or vDSO in it was a hit.
	# The namespace keeps what was stored that way out.
	export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$TOP} CCACHE_NOHASHDIR=1 CCACHE_COMPILERCHECK=content
	export CCACHE_NAMESPACE=thp-swap-2
	unset CCACHE_DEPEND
	export CCACHE_SLOPPINESS=time_macros,include_file_mtime,include_file_ctime
}

# kmake ARGS...: make in the output directory.
kmake()
{
	nice -n 5 make -C "$KSRC" O="$KOUT" ARCH="$KARCH" CROSS_COMPILE="$KCROSS" LOCALVERSION= \
		CC="ccache ${KCROSS}gcc" HOSTCC="ccache gcc" "$@"
}

# version_ge A B: A is version B or later.
version_ge() { [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$2" ]; }

# kbuild_fragments: print the lines that this tree, architecture and DEBUG ask for.
kbuild_fragments()
{
	local f line cond

	for f in base "$KFRAG_ARCH" ${DEBUG:+debug}; do
		while IFS= read -r line; do
			case $line in
			CONFIG_*'# >='*) cond=${line##*# >=}; version_ge "$KTREE" "$cond" || continue ;;
			CONFIG_*'# <'*)	cond=${line##*# <}; ! version_ge "$KTREE" "$cond" || continue ;;
			CONFIG_*) ;;
			*)	continue ;;
			esac
			printf '%s\n' "${line%% *}"
		done <"$FRAGMENTS/$f.config"
	done
}

# kbuild_check WANTED CONFIG: print each symbol of WANTED that CONFIG does not have with that value.
kbuild_check()
{
	awk -F= 'NR == FNR { want[$1] = $2; next }
		/^CONFIG_/ { have[$1] = substr($0, length($1) + 2) }
		END { for (s in want) { w = want[s]; h = s in have ? have[s] : "n"
			if (w != h) printf "%s: asked for %s, got %s\n", s, w, h } }' "$1" "$2" | sort
}

# kbuild_config: make $KOUT/.config from tinyconfig and the fragments; a symbol that was asked for and is not
# there is an error that names it.
kbuild_config()
{
	local want=$KOUT/wanted.config sum lost

	mkdir -p "$KOUT"
	kbuild_fragments >"$want.new"
	sum=$(printf '%s %s %s' "$(sha_of "$want.new")" "$(kernel_version "$KSRC")" "$("${KCROSS}gcc" --version | head -n 1)")
	if stamp_is "$KOUT/config.stamp" "$sum" && [ -f "$KOUT/.config" ]; then
		rm -f "$want.new"
		return 0
	fi
	mv "$want.new" "$want"
	rm -f "$KOUT/config.stamp"
	run_log "$KOUT/config.log" kmake tinyconfig || exit 1
	cat "$want" >>"$KOUT/.config"
	run_log "$KOUT/config.log" kmake olddefconfig || exit 1
	lost=$(kbuild_check "$want" "$KOUT/.config")
	if [ -n "$lost" ]; then
		printf '%s\n' "$lost" >&2
		die "$KTREE $KFRAG_ARCH: olddefconfig dropped what the fragments ask for (above): find the missing dependency with 'make -C $KSRC O=$KOUT ARCH=$KARCH menuconfig'"
	fi
	stamp_write "$KOUT/config.stamp" "$sum"
}

# kbuild_progress LOG: reads make's output, writes it to LOG and shows counts and elapsed time on the way.
kbuild_progress()
{
	local line n=0 t0=$SECONDS shown=$SECONDS step=30 total name

	total=$(cat "$KOUT/objects" 2>/dev/null || echo 1100)
	name="$KTREE $(basename "$(dirname "$KOUT")") $(basename "$KOUT")"
	[ "$IS_TTY" = 0 ] || step=1
	while IFS= read -r line; do
		printf '%s\n' "$line"
		case $line in
		'  CC '*|'  AS '*|'  LD '*|'  AR '*|'  HOSTCC '*) n=$((n + 1)) ;;
		*)	continue ;;
		esac
		[ $((SECONDS - shown)) -ge $step ] || continue
		shown=$SECONDS
		[ $n -le "$total" ] || total=$n
		if [ "$IS_TTY" = 1 ]; then printf '\r  build %s: %d of about %d steps, %d s ' "$name" $n "$total" $((SECONDS - t0)) >&2
		else say "build $name: $n of about $total steps"; fi
	done >"$1"
	[ "$IS_TTY" = 0 ] || [ "$n" = 0 ] || printf '\n' >&2
	echo $n >"$1.count"
}

# kbuild_image: build the kernel image of the configured output directory.
kbuild_image()
{
	local log=$KOUT/build.log rc n

	[ "${V:-0}" = 0 ] || printf '+ make -C %s O=%s ARCH=%s CROSS_COMPILE=%s %s\n' "$KSRC" "$KOUT" "$KARCH" "$KCROSS" "$(basename "$KIMAGE")" >&2
	rc=0
	{ kmake -j"$(nproc)" "$(basename "$KIMAGE")" 2>&1 </dev/null | kbuild_progress "$log"; } || rc=$?
	if [ $rc != 0 ]; then
		grep -E 'error|Error|undefined' "$log" | head -n 15 >&2
		die "kernel build failed; full log: $log; again: make -C $KSRC O=$KOUT ARCH=$KARCH CROSS_COMPILE=$KCROSS"
	fi
	n=$(cat "$log.count")
	if [ ! -f "$KOUT/objects" ] || [ "$n" -gt "$(cat "$KOUT/objects")" ]; then echo "$n" >"$KOUT/objects"; fi
	[ -f "$KOUT/$KIMAGE" ] || die "the build left no $KIMAGE; full log: $log"
}
