// SPDX-License-Identifier: GPL-2.0
/*
 * Eight THPs and an area of four runs, the first of which holds the header:
 * three go out whole, the others are split and fill the area to its last slot.
 * What does not fit stays in memory, and all data is right.
 */
#include "kselftest_harness.h"
#include "swap_util.h"

#define NR_THP	8
#define RUNS	4
#define SEED	0xf0

FIXTURE(swpout_device_full) {
	struct swap_area area;
};

FIXTURE_VARIANT(swpout_device_full) {
	enum area_kind kind;
};

FIXTURE_VARIANT_ADD(swpout_device_full, zram) {
	.kind = AREA_ZRAM,
};

FIXTURE_VARIANT_ADD(swpout_device_full, virtio) {
	.kind = AREA_VIRTIO,
};

FIXTURE_SETUP(swpout_device_full)
{
	ASSERT_EQ(0, swap_setup());
}

FIXTURE_TEARDOWN(swpout_device_full)
{
	EXPECT_EQ(0, swap_teardown());
}

TEST_F_TIMEOUT(swpout_device_full, whole_then_split, SWAP_TIMEOUT)
{
	size_t slots, len, i;
	long out, fallback;
	char *p;

	REQUIRE(return, thp_missing());
	REQUIRE(return, area_missing(variant->kind));
	len = NR_THP * thp_size();
	slots = RUNS * thp_pages() - 1;
	ASSERT_EQ(0, area_on(&self->area, variant->kind, RUNS * thp_size(),
			     10));
	ASSERT_EQ(slots * page_size() >> 10, area_size_kb(&self->area));
	p = thp_alloc(NR_THP, SEED);
	ASSERT_NE(NULL, p);

	out = vmstat("thp_swpout");
	fallback = vmstat("thp_swpout_fallback");
	for (i = 0; i < NR_THP; i++)
		ASSERT_EQ(0, madvise(p + i * thp_size(), thp_size(),
				     MADV_PAGEOUT));
	EXPECT_EQ(0, page_out_nr(p, len, slots));
	EXPECT_EQ(RUNS - 1, vmstat("thp_swpout") - out);
	EXPECT_LE(1, vmstat("thp_swpout_fallback") - fallback);
	EXPECT_EQ(RUNS - 1, count_out_whole(p, NR_THP));
	EXPECT_EQ(slots, count_swapped(p, len));
	EXPECT_EQ(len / page_size() - slots, count_present(p, len));
	EXPECT_EQ(area_size_kb(&self->area), area_used_kb(&self->area));

	EXPECT_EQ(-1, check_pages(p, NR_THP * thp_pages(), SEED));
	thp_free(p, NR_THP);
	ASSERT_EQ(0, swap_settle_freed());
	EXPECT_EQ(0, area_used_kb(&self->area));
	EXPECT_EQ(0, area_off(&self->area));
}

TEST_HARNESS_MAIN
