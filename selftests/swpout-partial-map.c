// SPDX-License-Identifier: GPL-2.0
/*
 * A part of a THP is given up (munmap, MADV_DONTNEED, MADV_FREE) before or
 * after it goes out: exactly its swap slots are freed, exactly the rest is
 * charged, and the data of the rest is right.
 */
#include "kselftest_harness.h"
#include "swap_util.h"

#define NR_THP	4
#define SEED	0x9a

/* Pages given up in every THP, as [from, to): the middle, a few, the last. */
static const size_t holes[][2] = {
	{ 100, 356 }, { 400, 407 }, { 511, 512 },
};

#define NR_HOLES	3
#define HOLE_PAGES	(256 + 7 + 1)
/* And the pages that stay. */
static const size_t rests[][2] = {
	{ 0, 100 }, { 356, 400 }, { 407, 511 },
};

FIXTURE(swpout_partial_map) {
	struct swap_area area;
	char *p;
};

FIXTURE_VARIANT(swpout_partial_map) {
	int advice;	/* 0: munmap */
};

FIXTURE_VARIANT_ADD(swpout_partial_map, munmap) {
	.advice = 0,
};

FIXTURE_VARIANT_ADD(swpout_partial_map, dontneed) {
	.advice = MADV_DONTNEED,
};

FIXTURE_VARIANT_ADD(swpout_partial_map, free) {
	.advice = MADV_FREE,
};

FIXTURE_SETUP(swpout_partial_map)
{
	ASSERT_EQ(0, swap_setup());
}

FIXTURE_TEARDOWN(swpout_partial_map)
{
	EXPECT_EQ(0, swap_teardown());
}

static char *page_at(char *p, size_t thp, size_t page)
{
	return p + thp * thp_size() + page * page_size();
}

static int give_up(char *p, int advice)
{
	size_t i, k;

	for (i = 0; i < NR_THP; i++) {
		for (k = 0; k < NR_HOLES; k++) {
			char *at = page_at(p, i, holes[k][0]);
			size_t len = (holes[k][1] - holes[k][0]) * page_size();

			if (advice ? madvise(at, len, advice) :
				     munmap(at, len))
				return -1;
		}
	}
	return 0;
}

/* Is the data of the pages that stay right? Brings them in. */
static bool rests_right(char *p)
{
	bool right = true;
	size_t i, k;

	for (i = 0; i < NR_THP; i++) {
		for (k = 0; k < NR_HOLES; k++) {
			size_t from = rests[k][0];
			size_t nr = rests[k][1] - from;

			if (check_range(page_at(p, i, from),
					i * thp_pages() + from, nr, SEED) >= 0)
				right = false;
		}
	}
	return right;
}

/* Pages of the rests, and of the holes, that are swapped out. */
static size_t rests_swapped(char *p)
{
	size_t n = 0;
	size_t i, k;

	for (i = 0; i < NR_THP; i++) {
		for (k = 0; k < NR_HOLES; k++)
			n += count_swapped(page_at(p, i, rests[k][0]),
					   (rests[k][1] - rests[k][0]) *
					   page_size());
	}
	return n;
}

static size_t holes_swapped(char *p)
{
	size_t n = 0;
	size_t i, k;

	for (i = 0; i < NR_THP; i++) {
		for (k = 0; k < NR_HOLES; k++)
			n += count_swapped(page_at(p, i, holes[k][0]),
					   (holes[k][1] - holes[k][0]) *
					   page_size());
	}
	return n;
}

/* The holes of munmap are no VMA any more: what is left goes part by part. */
static void unmap_all(char *p)
{
	munmap(p - page_size(), NR_THP * thp_size() + 2 * page_size());
}

TEST_F_TIMEOUT(swpout_partial_map, after_page_out, SWAP_TIMEOUT)
{
	size_t len, left;
	char *p;

	REQUIRE(return, thp_missing());
	REQUIRE(return, memcg_missing());
	REQUIRE(return, area_missing(AREA_ZRAM));
	len = NR_THP * thp_size();
	left = NR_THP * (thp_pages() - HOLE_PAGES) * page_size();
	ASSERT_EQ(0, area_on(&self->area, AREA_ZRAM, 2 * len, 10));
	p = thp_alloc(NR_THP, SEED);
	ASSERT_NE(NULL, p);
	ASSERT_EQ(0, page_out(p, len));
	EXPECT_EQ(len, memcg_read("memory.swap.current"));

	ASSERT_EQ(0, give_up(p, variant->advice));
	ASSERT_EQ(0, swap_settle());
	EXPECT_EQ(left / page_size(), rests_swapped(p));
	EXPECT_EQ(0, holes_swapped(p));
	EXPECT_EQ(left, memcg_read("memory.swap.current"));
	EXPECT_EQ(left >> 10, area_used_kb(&self->area));

	EXPECT_TRUE(rests_right(p));
	unmap_all(p);
	ASSERT_EQ(0, swap_settle());
	EXPECT_EQ(0, memcg_read("memory.swap.current"));
	EXPECT_EQ(0, area_used_kb(&self->area));
	EXPECT_EQ(0, area_off(&self->area));
}

TEST_F_TIMEOUT(swpout_partial_map, before_page_out, SWAP_TIMEOUT)
{
	size_t len, left, i, k;
	char *p;

	REQUIRE(return, thp_missing());
	REQUIRE(return, memcg_missing());
	REQUIRE(return, area_missing(AREA_ZRAM));
	len = NR_THP * thp_size();
	left = NR_THP * (thp_pages() - HOLE_PAGES) * page_size();
	ASSERT_EQ(0, area_on(&self->area, AREA_ZRAM, 2 * len, 10));
	p = thp_alloc(NR_THP, SEED);
	ASSERT_NE(NULL, p);
	ASSERT_EQ(0, give_up(p, variant->advice));
	for (i = 0; i < NR_THP; i++) {
		for (k = 0; k < NR_HOLES; k++)
			ASSERT_EQ(0, page_out(page_at(p, i, rests[k][0]),
					      (rests[k][1] - rests[k][0]) *
					      page_size()));
	}

	ASSERT_EQ(0, swap_settle());
	EXPECT_EQ(left / page_size(), rests_swapped(p));
	EXPECT_EQ(0, holes_swapped(p));
	EXPECT_EQ(left, memcg_read("memory.swap.current"));
	EXPECT_EQ(left >> 10, area_used_kb(&self->area));

	EXPECT_TRUE(rests_right(p));
	unmap_all(p);
	ASSERT_EQ(0, swap_settle());
	EXPECT_EQ(0, memcg_read("memory.swap.current"));
	EXPECT_EQ(0, area_used_kb(&self->area));
	EXPECT_EQ(0, area_off(&self->area));
}

TEST_HARNESS_MAIN
