// SPDX-License-Identifier: GPL-2.0
/*
 * Swap headers of odd sizes and with bad pages at the edges of clusters: the
 * area has last_page - nr_bad pages, all of them can be used, none that is bad
 * or beyond the end is ever given out, THPs get no run with a bad page in it,
 * and swapoff works. A bad page beyond the end and a device smaller than the
 * header says are refused.
 */
#include "kselftest_harness.h"
#include "swap_util.h"

#define SEED		0x0dd
#define MAX_PAGE	4096
#define MAX_BAD		4

FIXTURE(swapon_odd_sizes) {
	struct swap_area area;
};

FIXTURE_VARIANT(swapon_odd_sizes) {
	unsigned int last_page;
	unsigned int bad[MAX_BAD];
	unsigned int nr_bad;
};

FIXTURE_VARIANT_ADD(swapon_odd_sizes, last_10) {
	.last_page = 10,
};

FIXTURE_VARIANT_ADD(swapon_odd_sizes, last_511) {
	.last_page = 511,
};

FIXTURE_VARIANT_ADD(swapon_odd_sizes, last_512) {
	.last_page = 512,
};

FIXTURE_VARIANT_ADD(swapon_odd_sizes, last_513) {
	.last_page = 513,
};

FIXTURE_VARIANT_ADD(swapon_odd_sizes, last_2998) {
	.last_page = 2998,
};

FIXTURE_VARIANT_ADD(swapon_odd_sizes, last_4095) {
	.last_page = 4095,
};

FIXTURE_VARIANT_ADD(swapon_odd_sizes, bad_1) {
	.last_page = 1100,
	.bad = { 1 },
	.nr_bad = 1,
};

FIXTURE_VARIANT_ADD(swapon_odd_sizes, bad_511) {
	.last_page = 1535,
	.bad = { 511 },
	.nr_bad = 1,
};

FIXTURE_VARIANT_ADD(swapon_odd_sizes, bad_512) {
	.last_page = 1535,
	.bad = { 512 },
	.nr_bad = 1,
};

FIXTURE_VARIANT_ADD(swapon_odd_sizes, bad_513) {
	.last_page = 1535,
	.bad = { 513 },
	.nr_bad = 1,
};

FIXTURE_VARIANT_ADD(swapon_odd_sizes, bad_last) {
	.last_page = 1535,
	.bad = { 1535 },
	.nr_bad = 1,
};

FIXTURE_VARIANT_ADD(swapon_odd_sizes, bad_many) {
	.last_page = 2047,
	.bad = { 1, 511, 512, 2047 },
	.nr_bad = 4,
};

FIXTURE_SETUP(swapon_odd_sizes)
{
	ASSERT_EQ(0, swap_setup());
}

FIXTURE_TEARDOWN(swapon_odd_sizes)
{
	EXPECT_EQ(0, swap_teardown());
}

/* A ram disk: the cheapest device; it is larger than the area. */
static int odd_area_on(struct swap_area *a, unsigned int last_page,
		       const unsigned int *bad, unsigned int nr_bad)
{
	if (area_prepare(a, AREA_BRD, (last_page + 1) * page_size()) ||
	    area_write_header(a, last_page, bad, nr_bad) ||
	    area_swapon(a, 10)) {
		note("swapon of %u pages: %s", last_page, strerror(errno));
		return -1;
	}
	return 0;
}

/* Mark the slots that hold the pages at @p; false if one cannot be right. */
static bool mark_slots(const struct swap_area *a, const char *p, size_t nr,
		       unsigned int last_page, char *marks)
{
	static __u64 e[2 * MAX_PAGE];
	bool right = true;
	size_t i;

	if (nr > 2 * MAX_PAGE || pagemap_read(p, e, nr))
		return false;
	for (i = 0; i < nr; i++) {
		__u64 offset = entry_offset(e[i]);

		if (!entry_is_swap(e[i]))
			continue;
		if (entry_type(e[i]) != a->type || !offset ||
		    offset > last_page || marks[offset]) {
			note("page %zu is at %d:%llu, bad, taken or outside",
			     i, entry_type(e[i]), offset);
			right = false;
			continue;
		}
		marks[offset] = 1;
	}
	return right;
}

TEST_F_TIMEOUT(swapon_odd_sizes, fill_base_pages, SWAP_TIMEOUT)
{
	unsigned int usable = variant->last_page - variant->nr_bad;
	size_t nr = usable + 64;
	char marks[MAX_PAGE] = { 0 };
	unsigned int i;
	char *p;

	REQUIRE(return, area_missing(AREA_BRD));
	ASSERT_EQ(0, odd_area_on(&self->area, variant->last_page, variant->bad,
				 variant->nr_bad));
	EXPECT_EQ(usable * page_size() >> 10, area_size_kb(&self->area));
	p = small_alloc(nr, SEED);
	ASSERT_NE(NULL, p);

	EXPECT_EQ(0, page_out_nr(p, nr * page_size(), usable));
	EXPECT_EQ(usable, count_swapped(p, nr * page_size()));
	EXPECT_EQ(area_size_kb(&self->area), area_used_kb(&self->area));
	for (i = 0; i < variant->nr_bad; i++)
		marks[variant->bad[i]] = 1;
	EXPECT_TRUE(mark_slots(&self->area, p, nr, variant->last_page, marks));

	/* swapoff brings everything in by itself. */
	EXPECT_EQ(0, area_off(&self->area));
	EXPECT_EQ(0, count_swapped(p, nr * page_size()));
	EXPECT_EQ(-1, check_pages(p, nr, SEED));
	small_free(p, nr);
}

TEST_F_TIMEOUT(swapon_odd_sizes, fill_thp, SWAP_TIMEOUT)
{
	unsigned int usable = variant->last_page - variant->nr_bad;
	char marks[MAX_PAGE] = { 0 };
	size_t runs = 0;
	size_t i, k, nr_thp, nr;
	char *p;
	long out;

	REQUIRE(return, thp_missing());
	REQUIRE(return, area_missing(AREA_BRD));
	/* The runs without header and bad page: that many can go out whole. */
	marks[0] = 1;
	for (i = 0; i < variant->nr_bad; i++)
		marks[variant->bad[i]] = 1;
	for (i = 0; (i + 1) * thp_pages() <= variant->last_page + 1; i++) {
		bool free = true;

		for (k = 0; k < thp_pages(); k++)
			free &= !marks[i * thp_pages() + k];
		runs += free;
	}
	marks[0] = 0;
	ASSERT_EQ(0, odd_area_on(&self->area, variant->last_page, variant->bad,
				 variant->nr_bad));
	nr_thp = usable / thp_pages() + 2;
	nr = nr_thp * thp_pages();
	p = thp_alloc(nr_thp, SEED);
	ASSERT_NE(NULL, p);

	out = vmstat("thp_swpout");
	for (i = 0; i < nr_thp; i++)
		ASSERT_EQ(0, madvise(p + i * thp_size(), thp_size(),
				     MADV_PAGEOUT));
	EXPECT_EQ(runs, vmstat("thp_swpout") - out);
	EXPECT_EQ(runs, count_out_whole(p, nr_thp));
	EXPECT_EQ(0, page_out_nr(p, nr * page_size(), usable));
	EXPECT_EQ(usable, count_swapped(p, nr * page_size()));
	EXPECT_EQ(area_size_kb(&self->area), area_used_kb(&self->area));
	EXPECT_TRUE(mark_slots(&self->area, p, nr, variant->last_page, marks));

	EXPECT_EQ(0, area_off(&self->area));
	EXPECT_EQ(0, count_swapped(p, nr * page_size()));
	EXPECT_EQ(-1, check_pages(p, nr, SEED));
	thp_free(p, nr_thp);
}

FIXTURE(swapon_refused) {
	struct swap_area area;
};

FIXTURE_SETUP(swapon_refused)
{
	ASSERT_EQ(0, swap_setup());
}

FIXTURE_TEARDOWN(swapon_refused)
{
	EXPECT_EQ(0, swap_teardown());
}

/* What swapon says to this header, as an errno; 0 if it takes it. */
static int swapon_error(struct swap_area *a, unsigned int last_page,
			const unsigned int *bad, unsigned int nr_bad)
{
	if (area_write_header(a, last_page, bad, nr_bad))
		return errno;
	return area_swapon(a, 10) ? errno : 0;
}

TEST_F_TIMEOUT(swapon_refused, bad_header, SWAP_TIMEOUT)
{
	const unsigned int beyond = 1536, header = 0;

	REQUIRE(return, area_missing(AREA_ZRAM));
	ASSERT_EQ(0, area_prepare(&self->area, AREA_ZRAM,
				  1536 * page_size()));
	/* A bad page beyond the end, and the header itself. */
	EXPECT_EQ(EINVAL, swapon_error(&self->area, 1535, &beyond, 1));
	EXPECT_EQ(EINVAL, swapon_error(&self->area, 1535, &header, 1));
	/* No page at all. */
	EXPECT_EQ(EINVAL, swapon_error(&self->area, 0, NULL, 0));
	/* Nothing is left that would hinder the right header. */
	EXPECT_EQ(0, swapon_error(&self->area, 1535, NULL, 0));
	EXPECT_EQ(1535 * page_size() >> 10, area_size_kb(&self->area));
	EXPECT_EQ(0, area_off(&self->area));
}

TEST_F_TIMEOUT(swapon_refused, device_smaller, SWAP_TIMEOUT)
{
	int err;

	REQUIRE(return, area_missing(AREA_ZRAM));
	ASSERT_EQ(0, area_prepare(&self->area, AREA_ZRAM,
				  1024 * page_size()));
	err = swapon_error(&self->area, 4095, NULL, 0);
	if (!err) {
		/* Taken: then only as far as the device goes. */
		EXPECT_GE(1023 * page_size() >> 10, area_size_kb(&self->area));
		EXPECT_EQ(0, area_off(&self->area));
	} else {
		EXPECT_EQ(EINVAL, err);
		EXPECT_EQ(-1, area_size_kb(&self->area));
	}
}

TEST_HARNESS_MAIN
