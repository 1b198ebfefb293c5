# SPDX-License-Identifier: GPL-2.0
# Thin front door: every verb is a script in scripts/; `make help` lists them.

# The newest tree whose queue does something in `make demo`.
TREE ?= 6.1
ARCH ?= x86_64
MACHINE ?= $(ARCH)
STATE ?= $(if $(KDIR),kdir,patched)
TESTS ?= *
# A user's own tree is named after the queue that fits its version.
ifdef KDIR
override KDIR := $(abspath $(KDIR))
ifeq ($(filter command environment,$(firstword $(origin TREE))),)
TREE := $(or $(shell scripts/kdir-tree.sh '$(KDIR)' 2>/dev/null),$(error KDIR=$(KDIR) is no kernel source tree: \
	give the folder that holds its top Makefile))
endif
endif

export DEBUG KDIR TARBALL V LEVEL SMP MEMORY GUESTS LIMIT TOTAL ARGS QEMU SENDER UNTIL UNVERIFIED TREES ONLY

help:
	@scripts/help.sh

demo:
	@scripts/demo.sh '$(TREE)' '$(MACHINE)'

check:
	@scripts/check.sh

doctor:
	@scripts/doctor.sh

setup:
	@scripts/setup.sh

source:
	@scripts/source.sh '$(TREE)' '$(TARBALL)'

push pop refresh:
	@scripts/quilt.sh '$(TREE)' $@

apply unapply:
	@scripts/apply.sh $@ '$(KDIR)' '$(TREE)'

kernel:
	@scripts/kernel.sh '$(TREE)' '$(STATE)' '$(MACHINE)'

test:
	@scripts/test.sh '$(TREE)' '$(STATE)' '$(MACHINE)' $(foreach t,$(TESTS),'$(t)')

matrix:
	@scripts/matrix.sh

controls:
	@scripts/controls.sh '$(TREE)' '$(MACHINE)'

bench:
	@scripts/bench.sh '$(TREE)' '$(MACHINE)'

lint:
	@scripts/lint.sh

bisect-check:
	@scripts/bisect-check.sh '$(TREE)'

clean:
	rm -rf build

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo check doctor setup source push pop refresh apply unapply kernel test matrix controls bench lint \
	bisect-check clean
