// SPDX-License-Identifier: GPL-2.0
/*
 * Page-out of THPs is counted as what it is: one thp_swpout per THP, no
 * fallback, 512 pswpout; smaps shows the whole size as Swap and SwapPss; what
 * comes back is counted in pswpin. Base pages count as base pages.
 */
#include "kselftest_harness.h"
#include "swap_util.h"

#define SEED		0x5c01

struct counters {
	long thp_swpout;
	long thp_fallback;
	long pswpout;
	long pswpin;
	long stat_swpout;
	long stat_fallback;
};

static struct counters counters_now(void)
{
	return (struct counters) {
		.thp_swpout = vmstat("thp_swpout"),
		.thp_fallback = vmstat("thp_swpout_fallback"),
		.pswpout = vmstat("pswpout"),
		.pswpin = vmstat("pswpin"),
		.stat_swpout = thp_stat(thp_size(), "swpout"),
		.stat_fallback = thp_stat(thp_size(), "swpout_fallback"),
	};
}

FIXTURE(swpout_counters) {
	struct swap_area area;
};

FIXTURE_VARIANT(swpout_counters) {
	enum area_kind kind;
	int nr_thp;
	int nr_small;
};

FIXTURE_VARIANT_ADD(swpout_counters, zram) {
	.kind = AREA_ZRAM,
	.nr_thp = 16,
	.nr_small = 1024,
};

FIXTURE_VARIANT_ADD(swpout_counters, brd) {
	.kind = AREA_BRD,
	.nr_thp = 16,
	.nr_small = 1024,
};

/* An emulated disk takes its time over each page that is read. */
FIXTURE_VARIANT_ADD(swpout_counters, virtio) {
	.kind = AREA_VIRTIO,
	.nr_thp = 3,
	.nr_small = 300,
};

FIXTURE_SETUP(swpout_counters)
{
	ASSERT_EQ(0, swap_setup());
}

FIXTURE_TEARDOWN(swpout_counters)
{
	EXPECT_EQ(0, swap_teardown());
}

TEST_F_TIMEOUT(swpout_counters, thp, SWAP_TIMEOUT)
{
	struct counters old, out, in;
	size_t pages, len;
	char *p;

	REQUIRE(return, thp_missing());
	REQUIRE(return, area_missing(variant->kind));
	pages = variant->nr_thp * thp_pages();
	len = variant->nr_thp * thp_size();
	ASSERT_EQ(0, area_on(&self->area, variant->kind, len + (8 << 20), 10));
	p = thp_alloc(variant->nr_thp, SEED);
	ASSERT_NE(NULL, p);

	old = counters_now();
	ASSERT_EQ(0, page_out(p, len));
	out = counters_now();
	EXPECT_EQ(variant->nr_thp, out.thp_swpout - old.thp_swpout);
	EXPECT_EQ(0, out.thp_fallback - old.thp_fallback);
	EXPECT_EQ(pages, out.pswpout - old.pswpout);
	/* Per-size counters came in 6.11: -1 before that. */
	if (old.stat_swpout >= 0) {
		EXPECT_EQ(variant->nr_thp, out.stat_swpout - old.stat_swpout);
		EXPECT_EQ(0, out.stat_fallback - old.stat_fallback);
	}
	EXPECT_EQ(len >> 10, smaps_kb(p, "Swap"));
	EXPECT_EQ(len >> 10, smaps_kb(p, "SwapPss"));
	EXPECT_EQ(0, smaps_kb(p, "Rss"));

	ASSERT_EQ(0, drop_swap_cache());
	in = counters_now();
	EXPECT_EQ(-1, check_pages(p, pages, SEED));
	EXPECT_EQ(pages, vmstat("pswpin") - in.pswpin);
	EXPECT_EQ(0, smaps_kb(p, "Swap"));
	EXPECT_EQ(len >> 10, smaps_kb(p, "Rss"));
	thp_free(p, variant->nr_thp);
	EXPECT_EQ(0, area_off(&self->area));
}

TEST_F_TIMEOUT(swpout_counters, base_pages, SWAP_TIMEOUT)
{
	size_t len = variant->nr_small * page_size();
	struct counters old, out, in;
	char *p;

	REQUIRE(return, area_missing(variant->kind));
	ASSERT_EQ(0, area_on(&self->area, variant->kind, len + (8 << 20), 10));
	p = small_alloc(variant->nr_small, SEED);
	ASSERT_NE(NULL, p);

	old = counters_now();
	ASSERT_EQ(0, page_out(p, len));
	out = counters_now();
	EXPECT_EQ(variant->nr_small, out.pswpout - old.pswpout);
	EXPECT_EQ(0, out.thp_swpout - old.thp_swpout);
	EXPECT_EQ(0, out.thp_fallback - old.thp_fallback);
	EXPECT_EQ(len >> 10, smaps_kb(p, "Swap"));
	EXPECT_EQ(len >> 10, smaps_kb(p, "SwapPss"));

	ASSERT_EQ(0, drop_swap_cache());
	in = counters_now();
	EXPECT_EQ(-1, check_pages(p, variant->nr_small, SEED));
	EXPECT_EQ(variant->nr_small, vmstat("pswpin") - in.pswpin);
	small_free(p, variant->nr_small);
	EXPECT_EQ(0, area_off(&self->area));
}

TEST_HARNESS_MAIN
