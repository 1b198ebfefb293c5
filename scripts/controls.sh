#!/bin/bash
# Break one property at a time and require that its test notices: controls.sh TREE MACHINE|all. Boots each control of
# the tree on the machines where it can show; the tests named in it must fail, all others must be as usual (QUICK=1 runs
# only the programs of those that must fail). Prints a table and writes it to build/controls/TREE.txt. Exit 0 if each
# was caught, 1 if not.

. "$(dirname "$0")/lib.sh"

field() { sed -n "s/^$2: *//p" "$PATCHES/$TREE/controls/$1.patch" | head -n 1; }

[ $# = 2 ] || die "usage: controls.sh TREE MACHINE|all"
TREE=$1
tree_check "$TREE"
[ "$2" = all ] || machine_check "$2"
mkdir -p "$BUILD/controls"
TABLE=$BUILD/controls/$TREE.txt
FAILED=0 RAN=0
# The globs of the controls are for the judge, not for this folder.
set -f
: >"$TABLE"
SLUGS=$(queue_series "$PATCHES/$TREE/controls/series" | sed 's/\.patch$//')
[ -n "$SLUGS" ] || die "tree $TREE has no controls: see patches/$TREE/controls/series"
for slug in $SLUGS; do
	for machine in $(field "$slug" Machines); do
		case $2 in all|"$machine") ;; *) continue ;; esac
		log=$BUILD/controls/$TREE-$slug-$machine.txt
		RAN=$((RAN + 1))
		programs=('*')
		[ -z "${QUICK:-}" ] || read -ra programs <<<"$(field "$slug" Caught-By)"
		if "$TOP/scripts/test.sh" "$TREE" "control:$slug" "$machine" "${programs[@]}" >"$log" 2>&1; then
			verdict=caught
		else
			verdict=MISSED FAILED=1
			cat "$log" >&2
		fi
		printf '%-24s %-14s %-7s %s\n' "$slug" "$machine" "$verdict" "$(field "$slug" Caught-By)" >>"$TABLE"
		say "control $slug on $machine: $verdict"
	done
done
[ "$RAN" -gt 0 ] || die "no control of $TREE can show on $2: MACHINE=all runs each where it can"
printf '%-24s %-14s %-7s %s\n' control machine result 'tests that must fail'
cat "$TABLE"
exit $FAILED
