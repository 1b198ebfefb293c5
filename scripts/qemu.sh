#!/bin/bash
# Choose the QEMU that runs the guests: the machine's own if it is 10 or later, else Debian trixie's, unpacked
# privately; no inputs (QEMU=own|private forces one); leaves build/qemu/bin/qemu-system-{x86_64,aarch64,riscv64}
# and build/qemu/version. `qemu.sh which` only says which one would be used and why. Exit 0, or 1 with one line.

. "$(dirname "$0")/lib.sh"
. "$TOP/scripts/apt.sh"

SYSTEMS="x86_64 aarch64 riscv64"
WANT=10
SUITE=trixie

# own_version: the lowest version of the machine's own qemu-system-*, or nothing if one is missing.
own_version()
{
	local s v

	for s in $SYSTEMS; do
		command -v "qemu-system-$s" >/dev/null || return 0
		v="${v:-}$("qemu-system-$s" --version | sed -n '1s/.*version \([0-9.]*\).*/\1/p')"$'\n'
	done
	printf '%s' "$v" | sort -V | head -n 1
}

# choose: set CHOICE to own or private and WHY to the reason.
choose()
{
	local v

	v=$(own_version)
	if [ "${QEMU:-}" = own ]; then
		[ -n "$v" ] || die "QEMU=own, but not all of qemu-system-{x86_64,aarch64,riscv64} are installed"
		CHOICE=own WHY="version $v, asked for by QEMU=own"
	elif [ "${QEMU:-}" != private ] && [ -n "$v" ] && [ "${v%%.*}" -ge $WANT ]; then
		CHOICE=own WHY="version $v is $WANT or later"
	else
		CHOICE=private
		if [ -n "$v" ]; then WHY="the machine's own is $v; older than $WANT emulates MTE wrongly and has no svade switch"
		else WHY="the machine has no complete QEMU of its own"; fi
	fi
}

# fetch_private: Debian trixie's QEMU and all it depends on, unpacked into build/qemu/root.
fetch_private()
{
	local root=$BUILD/qemu/root deb n=0

	disk_need 1200 "a private QEMU"
	apt_update qemu $SUITE ||
		die "no package lists of $SUITE ($(apt_reason "$BUILD/apt/qemu/update.log")): is the network up? or install QEMU $WANT or later yourself"
	say "qemu: downloading Debian $SUITE's"
	apt_get qemu -y -q --download-only install qemu-system-x86 qemu-system-arm qemu-system-riscv seabios opensbi \
		>"$BUILD/apt/qemu/install.log" 2>&1 ||
		die "download of QEMU failed ($(apt_reason "$BUILD/apt/qemu/install.log")): run the same command again"
	rm -rf "$root" "$root.tmp"
	mkdir -p "$root.tmp"
	for deb in "$BUILD"/apt/qemu/cache/archives/*.deb; do
		dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$root.tmp" --keep-directory-symlink \
			--exclude='./usr/share/doc' --exclude='./usr/share/man' --exclude='./usr/share/locale' ||
			die "$deb cannot be unpacked: delete build/apt/qemu and run the same command again"
		n=$((n + 1))
	done
	mv "$root.tmp" "$root"
	rm -rf "$BUILD/apt/qemu/cache/archives"
	say "qemu: $n packages unpacked into build/qemu/root"
}

# wrapper SYSTEM: a script that starts the chosen qemu-system-SYSTEM.
wrapper()
{
	local out=$BUILD/qemu/bin/qemu-system-$1

	mkdir -p "$BUILD/qemu/bin"
	if [ "$CHOICE" = own ]; then
		printf '#!/bin/sh\nexec %s "$@"\n' "$(command -v "qemu-system-$1")" >"$out.tmp"
	else
		cat >"$out.tmp" <<-EOF
		#!/bin/sh
		# Generated: the unpacked QEMU through its own dynamic loader, libraries, firmware and modules.
		R=\$(cd "\$(dirname "\$0")/../root" && pwd)
		for d in "\$R"/usr/lib/*/libc.so.6; do L=\$(dirname "\$d"); done
		export QEMU_MODULE_DIR="\$L/qemu"
		for d in "\$R"/usr/lib*/ld-linux*.so.* "\$L"/ld-linux*.so.*; do [ -f "\$d" ] && ld=\$d; done
		S=\$R/usr/share
		exec "\$ld" --library-path "\$L" "\$R/usr/bin/qemu-system-$1" -L "\$S/qemu" -L "\$S/seabios" "\$@"
		EOF
	fi
	chmod +x "$out.tmp"
	mv -f "$out.tmp" "$out"
}

locked_main()
{
	local s v

	choose
	if stamp_is "$BUILD/qemu/choice" "$CHOICE"; then return 0; fi
	rm -f "$BUILD/qemu/choice"
	say "qemu: $CHOICE ($WHY)"
	[ "$CHOICE" = own ] || [ -d "$BUILD/qemu/root" ] || fetch_private
	for s in $SYSTEMS; do wrapper "$s"; done
	for s in $SYSTEMS; do
		v=$("$BUILD/qemu/bin/qemu-system-$s" --version 2>"$BUILD/qemu/err" | head -n 1) ||
			die "qemu-system-$s does not start ($(tail -n 1 "$BUILD/qemu/err")): delete build/qemu and run the same command again"
	done
	stamp_write "$BUILD/qemu/version" "$v"
	stamp_write "$BUILD/qemu/choice" "$CHOICE"
}

if [ "${1:-}" = which ]; then
	choose
	echo "$CHOICE: $WHY"
	exit 0
fi
with_lock qemu locked_main
