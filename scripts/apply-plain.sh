# shellcheck shell=bash
# The part of apply.sh for an unpacked source: sourced, not run; puts the queue into .pc/ and patches/ of KDIR as quilt
# would, and takes it off again. Needs KDIR, TREE and SCRATCH; dies with one line, KDIR as it was.

RECORD=.pc/thp-swap
NEW=.thp-swap-new

kquilt() { QUILT_PC=.pc QUILT_PATCHES=patches quilt --quiltrc "$TOP/scripts/quiltrc" "$@"; }

# try_scratch: the whole queue on copies of the files it touches; refuses if a patch does not fit.
try_scratch()
{
	local p f

	mkdir "$SCRATCH/tree" "$SCRATCH/tree/patches"
	for p in $(queue); do
		cp "$PATCHES/$TREE/$p" "$SCRATCH/tree/patches/$p" && printf '%s\n' "$p" >>"$SCRATCH/tree/patches/series"
	done
	touched "$SCRATCH/tree/patches/"*.patch >"$SCRATCH/touched"
	while IFS= read -r f; do
		[ -e "$KDIR/$f" ] || continue
		mkdir -p "$SCRATCH/tree/$(dirname "$f")"
		cp -p "$KDIR/$f" "$SCRATCH/tree/$f"
	done <"$SCRATCH/touched"
	(cd "$SCRATCH/tree" && kquilt push -a) >"$SCRATCH/log" 2>&1 ||
		refuse_conflict "$(sed -n 's/^Applying patch \(patches\/\)\?//p' "$SCRATCH/log" | tail -n 1)" "$SCRATCH/log"
}

# new_folders: the folders that the queue will make, outer ones first.
new_folders()
{
	local f

	while IFS= read -r f; do
		while f=$(dirname "$f"); [ ! -e "$KDIR/$f" ]; do echo "folder $f"; done
	done <"$SCRATCH/touched" | sort -u
}

# copy_in: everything that is needed goes into KDIR under names that hide nothing of the user's.
copy_in()
{
	local f

	cp -r "$SCRATCH/tree/.pc/." "$KDIR/.pc/" && cp -r "$SCRATCH/tree/patches" "$KDIR/patches" || return 1
	while IFS= read -r f; do
		[ -e "$SCRATCH/tree/$f" ] || continue
		mkdir -p "$KDIR/$(dirname "$f")" && cp "$SCRATCH/tree/$f" "$KDIR/$f$NEW" &&
			chmod --reference="$SCRATCH/tree/$f" "$KDIR/$f$NEW" || return 1
		[ "$(id -u)" != 0 ] || chown --reference="$KDIR" "$KDIR/$f$NEW" || return 1
	done <"$SCRATCH/touched"
	[ "$(id -u)" != 0 ] || chown -R --reference="$KDIR" "$KDIR/.pc" "$KDIR/patches"
}

# switch_files: the new files take their places. Renames only: no space is needed, and nothing is ever half there.
switch_files()
{
	local f

	while IFS= read -r f; do
		if [ -e "$SCRATCH/tree/$f" ]; then mv -f "$KDIR/$f$NEW" "$KDIR/$f" || return 1
		else rm -f "$KDIR/$f" || return 1; fi
	done <"$SCRATCH/touched"
}

# plain_back: quilt's backups take their places again, last patch first, and what is ours goes. Not by quilt pop, which
# copies, and loses files on a full disk. A second call goes on where a first one was stopped.
plain_back()
{
	local p f

	for p in $(tac "$KDIR/.pc/applied-patches" 2>/dev/null || true); do
		[ -d "$KDIR/.pc/$p" ] || continue
		while IFS= read -r f; do
			# An empty backup stands for a file that was not there.
			if [ ! -s "$KDIR/.pc/$p/$f" ]; then rm -f "$KDIR/$f" || return 1
			else touch "$KDIR/.pc/$p/$f" && mv -f "$KDIR/.pc/$p/$f" "$KDIR/$f" || return 1; fi
		done < <(cd "$KDIR/.pc/$p" && find . -type f ! -name .timestamp -printf '%P\n')
	done
	plain_clean
}

# plain_clean: remove what is ours and not part of the source.
plain_clean()
{
	local f

	while IFS= read -r f; do rm -f "$KDIR/$f$NEW"; done < <(cat "$KDIR/patches/"*.patch 2>/dev/null | touched)
	while IFS= read -r f; do rmdir "$KDIR/$f" 2>/dev/null || true; done < <(sed -n 's/^folder //p' "$KDIR/$RECORD" | sort -r)
	rm -rf "$KDIR/patches"
	rm -rf "$KDIR/.pc"
}

plain_undo()
{
	trap '' INT TERM HUP
	plain_clean
	die "$1, KDIR=$KDIR is as it was"
}

plain_apply()
{
	local f

	if grep -qs '^unfinished' "$KDIR/$RECORD"; then die "KDIR=$KDIR has the rest of an interrupted apply: run 'make unapply' first"; fi
	[ ! -e "$KDIR/$RECORD" ] || die "the queue is on KDIR=$KDIR already: 'make unapply' takes it off"
	for f in .pc patches; do
		[ ! -e "$KDIR/$f" ] && [ ! -L "$KDIR/$f" ] ||
			die "KDIR=$KDIR has a $f of its own (a quilt queue?): use a copy of the tree without it, or a git checkout; nothing was changed"
	done
	[ -w "$KDIR" ] || die "KDIR=$KDIR cannot be written to by $(id -un): nothing was changed"
	need quilt quilt
	try_scratch
	new_folders >"$SCRATCH/record"
	trap 'plain_undo interrupted' INT TERM HUP
	mkdir "$KDIR/.pc"
	{ echo unfinished; cat "$SCRATCH/record"; } >"$KDIR/$RECORD" 2>"$SCRATCH/log" && copy_in 2>"$SCRATCH/log" ||
		plain_undo "cannot write ($(tail -n 1 "$SCRATCH/log"))"
	(cd "$SCRATCH/tree" && { find patches -type f; cat "$SCRATCH/touched"; echo .pc/applied-patches; } |
		while IFS= read -r f; do [ ! -f "$f" ] || sha256sum "$f"; done) >>"$SCRATCH/record"
	cp "$SCRATCH/record" "$KDIR/$RECORD.new" 2>"$SCRATCH/log" || plain_undo "cannot write ($(tail -n 1 "$SCRATCH/log"))"
	trap '' INT TERM HUP
	switch_files 2>"$SCRATCH/log" || {
		plain_back
		die "cannot change KDIR=$KDIR ($(tail -n 1 "$SCRATCH/log")): it is as it was"
	}
	mv "$KDIR/$RECORD.new" "$KDIR/$RECORD"
	echo "apply: $(queue | wc -l) patches of $TREE are on $KDIR now (quilt, in its patches/ and .pc/)"
}

plain_unapply()
{
	local bad

	[ -e "$KDIR/$RECORD" ] || die "the queue is not on KDIR=$KDIR: there is nothing to take off"
	# An interrupted apply is taken off whatever it left; a whole one only if the user changed nothing since.
	if ! grep -q '^unfinished' "$KDIR/$RECORD"; then
		bad=$(cd "$KDIR" && grep -v '^folder ' $RECORD | sha256sum -c --quiet 2>/dev/null |
			sed -n '1s/: FAILED.*//p' || true)
		[ -z "$bad" ] || die "$bad in KDIR=$KDIR was changed after 'make apply': save your change (quilt diff) and take it back first; nothing was changed"
		bad=$(cd "$KDIR" && find patches ! -type d | grep -vxFf <(sed 's/^[0-9a-f]*  //' $RECORD) | sed -n 1p || true)
		[ -z "$bad" ] || die "$bad in KDIR=$KDIR is yours: move it away first; nothing was changed"
	fi
	trap '' INT TERM HUP
	# From here on a second call may finish it, whatever happens.
	{ echo unfinished; cat "$KDIR/$RECORD"; } >"$SCRATCH/record"
	cp "$SCRATCH/record" "$KDIR/$RECORD.new" 2>/dev/null && mv "$KDIR/$RECORD.new" "$KDIR/$RECORD" ||
		die "KDIR=$KDIR cannot be written to (disk full?): nothing was changed"
	plain_back 2>"$SCRATCH/log" || die "cannot put back KDIR=$KDIR ($(tail -n 1 "$SCRATCH/log")): run 'make unapply' again"
	echo "unapply: the queue is off, $KDIR is as before"
}
