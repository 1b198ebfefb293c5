// SPDX-License-Identifier: GPL-2.0
/*
 * Pages that KSM merged are one page of many owners, in memory, in the swap
 * cache and on the device. Whoever writes one of them after a swap cycle, with
 * or without reading it first, changes only that one.
 */
#include "kselftest_harness.h"
#include "swap_util.h"

#define KSM	"/sys/kernel/mm/ksm/"
#define NR	64
#define OLD	0xa1
#define NEW	0xb2

struct memory {
	struct swap_area area;
	size_t len;
	char *p;
	unsigned int tries;	/* to reclaim it */
};

FIXTURE(reuse_ksm) {
	struct memory m;
};

FIXTURE_VARIANT(reuse_ksm) {
	enum area_kind kind;
};

FIXTURE_VARIANT_ADD(reuse_ksm, zram) {
	.kind = AREA_ZRAM,
};

FIXTURE_VARIANT_ADD(reuse_ksm, virtio) {
	.kind = AREA_VIRTIO,
};

FIXTURE_SETUP(reuse_ksm)
{
	ASSERT_EQ(0, swap_setup());
}

FIXTURE_TEARDOWN(reuse_ksm)
{
	EXPECT_EQ(0, swap_teardown());
}

static const char *missing(enum area_kind kind)
{
	if (access(KSM "run", W_OK))
		return "no KSM";
	if (memcg_missing())
		return memcg_missing();
	return area_missing(kind);
}

static char *page(struct memory *m, size_t i)
{
	return m->p + i * page_size();
}

/* Have all pages the same frame? */
static bool merged(void *arg)
{
	struct memory *m = arg;
	__u64 first = entry_pfn(pagemap_get(page(m, 0)));
	size_t i;

	for (i = 1; first && i < NR; i++) {
		if (entry_pfn(pagemap_get(page(m, i))) != first)
			return false;
	}
	return first;
}

/*
 * MADV_PAGEOUT leaves shared pages alone. The cgroup's own reclaim does not.
 * Ask for one page at a time, since one is all that there is.
 */
static bool all_out(void *arg)
{
	struct memory *m = arg;

	/* A page that many have used lately would stay for some rounds. */
	write_file("/proc/self/clear_refs", "1");
	reclaim_pages(1, m->tries++);
	return count_swapped(m->p, m->len) == NR;
}

static void start(struct __test_metadata *_metadata, struct memory *m,
		  enum area_kind kind)
{
	size_t i;

	m->len = NR * page_size();
	ASSERT_EQ(0, area_on(&m->area, kind, 16 << 20, 10));
	ASSERT_EQ(0, set_file(KSM "pages_to_scan", "1000"));
	ASSERT_EQ(0, set_file(KSM "sleep_millisecs", "1"));
	m->p = small_map(NR);
	ASSERT_NE(NULL, m->p);
	for (i = 0; i < NR; i++)
		fill_page(page(m, i), OLD, 0);
	ASSERT_EQ(0, madvise(m->p, m->len, MADV_MERGEABLE));
	ASSERT_EQ(0, set_file(KSM "run", "1"));
	ASSERT_TRUE(wait_for(merged, m, SWAP_WAIT_MS));
	/* Stop, but leave merged what is. */
	ASSERT_EQ(0, write_file(KSM "run", "0"));
	ASSERT_TRUE(wait_on_cpus(all_out, m));
	ASSERT_EQ(0, drop_swap_cache());
}

/* The first page that is not as it should be; NR + 1: none. */
static size_t wrong(struct memory *m, size_t written)
{
	size_t i;

	for (i = 0; i < NR; i++) {
		bool new = i == written || written == NR;

		if (!check_page(page(m, i), new ? NEW : OLD, new ? i : 0))
			return i;
	}
	return NR + 1;
}

TEST_F_TIMEOUT(reuse_ksm, read_then_write_one, SWAP_TIMEOUT)
{
	struct memory *m = &self->m;

	REQUIRE(return, missing(variant->kind));
	start(_metadata, m, variant->kind);
	EXPECT_TRUE(check_page(page(m, 17), OLD, 0));
	fill_page(page(m, 17), NEW, 17);
	EXPECT_EQ((size_t)NR + 1, wrong(m, 17));
}

TEST_F_TIMEOUT(reuse_ksm, write_one, SWAP_TIMEOUT)
{
	struct memory *m = &self->m;

	REQUIRE(return, missing(variant->kind));
	start(_metadata, m, variant->kind);
	fill_page(page(m, 17), NEW, 17);
	EXPECT_EQ((size_t)NR + 1, wrong(m, 17));
}

/* All are in the page table before one is written. */
TEST_F_TIMEOUT(reuse_ksm, read_all_then_write_one, SWAP_TIMEOUT)
{
	struct memory *m = &self->m;

	REQUIRE(return, missing(variant->kind));
	start(_metadata, m, variant->kind);
	touch_read(m->p, m->len);
	fill_page(page(m, 17), NEW, 17);
	EXPECT_EQ((size_t)NR + 1, wrong(m, 17));
}

TEST_F_TIMEOUT(reuse_ksm, read_then_write_each, SWAP_TIMEOUT)
{
	struct memory *m = &self->m;
	size_t i;

	REQUIRE(return, missing(variant->kind));
	start(_metadata, m, variant->kind);
	for (i = 0; i < NR; i++) {
		EXPECT_TRUE(check_page(page(m, i), OLD, 0));
		fill_page(page(m, i), NEW, i);
	}
	EXPECT_EQ((size_t)NR + 1, wrong(m, NR));
	ASSERT_EQ(0, page_out_sync(m->p, m->len));
	EXPECT_EQ((size_t)NR + 1, wrong(m, NR));
}

TEST_HARNESS_MAIN
