// SPDX-License-Identifier: GPL-2.0
/*
 * A page that only one process has is mapped writable when it comes back from
 * swap, even if the fault was a read: reading and then writing it costs the
 * major fault of the swap-in and no minor one, also where the hardware has no
 * dirty bit. What may not be written (a read-only VMA) stays read-only.
 */
#include "kselftest_harness.h"
#include "swap_util.h"

#include <setjmp.h>
#include <signal.h>

#define OLD	0x11
#define NEW	0x22

struct memory {
	struct swap_area area;
	size_t nr, len;
	char *p;
};

FIXTURE(reuse_read_write) {
	struct memory m;
};

FIXTURE_VARIANT(reuse_read_write) {
	enum area_kind kind;
	bool thp;
};

FIXTURE_VARIANT_ADD(reuse_read_write, zram_thp) {
	.kind = AREA_ZRAM,
	.thp = true,
};

FIXTURE_VARIANT_ADD(reuse_read_write, zram_4k) {
	.kind = AREA_ZRAM,
};

FIXTURE_VARIANT_ADD(reuse_read_write, brd_thp) {
	.kind = AREA_BRD,
	.thp = true,
};

FIXTURE_VARIANT_ADD(reuse_read_write, brd_4k) {
	.kind = AREA_BRD,
};

/* Asynchronous: the page comes by the swap cache and its slot is kept. */
FIXTURE_VARIANT_ADD(reuse_read_write, virtio_4k) {
	.kind = AREA_VIRTIO,
};

FIXTURE_SETUP(reuse_read_write)
{
	ASSERT_EQ(0, swap_setup());
}

FIXTURE_TEARDOWN(reuse_read_write)
{
	EXPECT_EQ(0, swap_teardown());
}

static const char *missing(enum area_kind kind, bool thp)
{
	if (thp && thp_missing())
		return thp_missing();
	return area_missing(kind);
}

/* One load, one store: these may not be merged. */
static char peek(char *c)
{
	return __atomic_load_n(c, __ATOMIC_RELAXED);
}

static void poke(char *c, char value)
{
	__atomic_store_n(c, value, __ATOMIC_RELAXED);
}

static void start(struct __test_metadata *_metadata, struct memory *m,
		  enum area_kind kind, bool thp)
{
	m->nr = thp ? thp_pages() : 128;
	/* Each page is a request of its own there. */
	if (kind == AREA_VIRTIO)
		m->nr = 64;
	m->len = m->nr * page_size();
	ASSERT_EQ(0, area_on(&m->area, kind, 16 << 20, 10));
	m->p = thp ? thp_alloc(1, OLD) : small_alloc(m->nr, OLD);
	ASSERT_NE(NULL, m->p);
	ASSERT_EQ(0, page_out_sync(m->p, m->len));
}

/*
 * One major fault for each page, or one for all if they came back as one THP.
 * On an asynchronous device a page may still have been in the swap cache; then
 * its one fault is a minor one.
 */
static void judge(struct __test_metadata *_metadata, struct memory *m,
		  enum area_kind kind,
		  const struct faults *a, const struct faults *b)
{
	long min = b->min - a->min, maj = b->maj - a->maj;
	long want = smaps_kb(m->p, "AnonHugePages") > 0 ? 1 : m->nr;

	TH_LOG("minor %ld, major %ld", min, maj);
	if (kind == AREA_VIRTIO) {
		EXPECT_EQ(want, min + maj);
		return;
	}
	EXPECT_EQ(0, min);
	EXPECT_EQ(want, maj);
}

/* New data, out and in again: what was written must have gone out. */
static void rewrite(struct __test_metadata *_metadata, struct memory *m)
{
	fill_pages(m->p, m->nr, NEW);
	ASSERT_EQ(0, page_out_sync(m->p, m->len));
	EXPECT_EQ(-1, check_pages(m->p, m->nr, NEW));
}

TEST_F_TIMEOUT(reuse_read_write, read_write, SWAP_TIMEOUT)
{
	struct faults a, b;
	size_t i;

	REQUIRE(return, missing(variant->kind, variant->thp));
	start(_metadata, &self->m, variant->kind, variant->thp);
	a = faults_now();
	for (i = 0; i < self->m.nr; i++) {
		char *c = self->m.p + i * page_size();

		poke(c, peek(c));
	}
	b = faults_now();
	judge(_metadata, &self->m, variant->kind, &a, &b);
	EXPECT_EQ(-1, check_pages(self->m.p, self->m.nr, OLD));
	rewrite(_metadata, &self->m);
}

TEST_F_TIMEOUT(reuse_read_write, read_all_write_all, SWAP_TIMEOUT)
{
	struct faults a, b;
	size_t i;

	REQUIRE(return, missing(variant->kind, variant->thp));
	start(_metadata, &self->m, variant->kind, variant->thp);
	a = faults_now();
	for (i = 0; i < self->m.nr; i++)
		peek(self->m.p + i * page_size());
	for (i = 0; i < self->m.nr; i++)
		poke(self->m.p + i * page_size() + 1, i);
	b = faults_now();
	judge(_metadata, &self->m, variant->kind, &a, &b);
	rewrite(_metadata, &self->m);
}

TEST_F_TIMEOUT(reuse_read_write, write, SWAP_TIMEOUT)
{
	struct faults a, b;
	size_t i;

	REQUIRE(return, missing(variant->kind, variant->thp));
	start(_metadata, &self->m, variant->kind, variant->thp);
	a = faults_now();
	for (i = 0; i < self->m.nr; i++)
		poke(self->m.p + i * page_size() + 1, i);
	b = faults_now();
	judge(_metadata, &self->m, variant->kind, &a, &b);
	rewrite(_metadata, &self->m);
}

static sigjmp_buf trapped;

static void on_segv(int sig)
{
	siglongjmp(trapped, sig);
}

/* Could the byte be written? */
static bool writable(char *c)
{
	struct sigaction act = { .sa_handler = on_segv }, old;
	bool done = false;

	sigaction(SIGSEGV, &act, &old);
	if (!sigsetjmp(trapped, 1)) {
		poke(c, 1);
		done = true;
	}
	sigaction(SIGSEGV, &old, NULL);
	return done;
}

TEST_F_TIMEOUT(reuse_read_write, readonly_vma, SWAP_TIMEOUT)
{
	size_t i;
	int nr_written = 0;

	REQUIRE(return, missing(variant->kind, variant->thp));
	start(_metadata, &self->m, variant->kind, variant->thp);
	ASSERT_EQ(0, mprotect(self->m.p, self->m.len, PROT_READ));
	EXPECT_EQ(-1, check_pages(self->m.p, self->m.nr, OLD));
	for (i = 0; i < self->m.nr; i += 31)
		nr_written += writable(self->m.p + i * page_size());
	EXPECT_EQ(0, nr_written);
	EXPECT_EQ(-1, check_pages(self->m.p, self->m.nr, OLD));
	ASSERT_EQ(0, mprotect(self->m.p, self->m.len, PROT_READ | PROT_WRITE));
	rewrite(_metadata, &self->m);
}

/* What only an asynchronous device shows. */
FIXTURE(reuse_async) {
	struct memory m;
};

FIXTURE_VARIANT(reuse_async) {
	enum area_kind kind;
};

FIXTURE_VARIANT_ADD(reuse_async, virtio_4k_mlocked) {
	.kind = AREA_VIRTIO,
};

FIXTURE_SETUP(reuse_async)
{
	ASSERT_EQ(0, swap_setup());
}

FIXTURE_TEARDOWN(reuse_async)
{
	EXPECT_EQ(0, swap_teardown());
}

/* A mlocked page gives its slot up, so that a clean page table entry gains nothing. */
TEST_F_TIMEOUT(reuse_async, read_write, SWAP_TIMEOUT)
{
	struct faults a, b;
	size_t i;

	REQUIRE(return, missing(variant->kind, false));
	start(_metadata, &self->m, variant->kind, false);
	ASSERT_EQ(0, mlock2(self->m.p, self->m.len, MLOCK_ONFAULT));
	a = faults_now();
	for (i = 0; i < self->m.nr; i++) {
		char *c = self->m.p + i * page_size();

		poke(c, peek(c));
	}
	b = faults_now();
	judge(_metadata, &self->m, variant->kind, &a, &b);
	ASSERT_EQ(0, munlock(self->m.p, self->m.len));
	EXPECT_EQ(-1, check_pages(self->m.p, self->m.nr, OLD));
	rewrite(_metadata, &self->m);
}

TEST_HARNESS_MAIN
