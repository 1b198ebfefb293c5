// SPDX-License-Identifier: GPL-2.0
/*
 * A THP gets a naturally aligned run of swap slots: pagemap shows 512
 * consecutive offsets of one area, the first a multiple of 512, no two THPs on
 * the same run. Freed runs are whole again for the next THP, and base pages
 * that were swapped out before do not stand in the way.
 */
#include "kselftest_harness.h"
#include "swap_util.h"

#define NR_THP		4
#define NR_SMALL	100
#define ROUNDS		3
#define SEED		0xc1

FIXTURE(swpout_cluster) {
	struct swap_area area;
};

FIXTURE_VARIANT(swpout_cluster) {
	enum area_kind kind;
};

FIXTURE_VARIANT_ADD(swpout_cluster, zram) {
	.kind = AREA_ZRAM,
};

FIXTURE_VARIANT_ADD(swpout_cluster, brd) {
	.kind = AREA_BRD,
};

FIXTURE_VARIANT_ADD(swpout_cluster, virtio) {
	.kind = AREA_VIRTIO,
};

FIXTURE_SETUP(swpout_cluster)
{
	ASSERT_EQ(0, swap_setup());
}

FIXTURE_TEARDOWN(swpout_cluster)
{
	EXPECT_EQ(0, swap_teardown());
}

/* How many of the THPs at @p went out whole; says why for each that did not. */
static size_t nr_whole(const char *p, size_t nr)
{
	const char *why;
	size_t n = 0;
	size_t i;

	for (i = 0; i < nr; i++) {
		if (thp_out_whole(p + i * thp_size(), &why))
			n++;
		else
			note("THP %zu is not out whole: %s", i, why);
	}
	return n;
}

static bool same_run(const char *p, const char *q)
{
	__u64 a = pagemap_get(p);
	__u64 b = pagemap_get(q);

	return entry_type(a) == entry_type(b) &&
	       entry_offset(a) / thp_pages() == entry_offset(b) / thp_pages();
}

TEST_F_TIMEOUT(swpout_cluster, aligned_run, SWAP_TIMEOUT)
{
	size_t i, k, len;
	char *p, *small;
	long out;

	REQUIRE(return, thp_missing());
	REQUIRE(return, area_missing(variant->kind));
	len = NR_THP * thp_size();
	ASSERT_EQ(0, area_on(&self->area, variant->kind, 2 * len, 10));
	p = thp_alloc(NR_THP, SEED);
	ASSERT_NE(NULL, p);
	small = small_alloc(NR_THP, SEED + 1);
	ASSERT_NE(NULL, small);
	out = vmstat("thp_swpout");
	/*
	 * A base page before each THP: the pages of a THP that was split would
	 * come behind it, and not by chance at the begin of an empty run.
	 */
	for (i = 0; i < NR_THP; i++) {
		ASSERT_EQ(0, page_out(small + i * page_size(), page_size()));
		ASSERT_EQ(0, page_out(p + i * thp_size(), thp_size()));
	}

	EXPECT_EQ(NR_THP, vmstat("thp_swpout") - out);
	EXPECT_EQ(NR_THP, nr_whole(p, NR_THP));
	for (i = 0; i < NR_THP; i++) {
		__u64 e = pagemap_get(p + i * thp_size());

		EXPECT_EQ(self->area.type, entry_type(e));
		/* The first run holds the header page. */
		EXPECT_LE(thp_pages(), entry_offset(e));
		for (k = 0; k < i; k++)
			EXPECT_FALSE(same_run(p + i * thp_size(),
					      p + k * thp_size()));
	}

	EXPECT_EQ(-1, check_pages(p, NR_THP * thp_pages(), SEED));
	EXPECT_EQ(-1, check_pages(small, NR_THP, SEED + 1));
	thp_free(p, NR_THP);
	small_free(small, NR_THP);
	ASSERT_EQ(0, swap_settle_freed());
	EXPECT_EQ(0, area_used_kb(&self->area));
	EXPECT_EQ(0, area_off(&self->area));
}

/*
 * The area has room for just these THPs, so a run that is not given back whole
 * is missed in the next round.
 */
TEST_F_TIMEOUT(swpout_cluster, run_reused, SWAP_TIMEOUT)
{
	size_t len, round, i;
	long out;
	char *p;

	REQUIRE(return, thp_missing());
	REQUIRE(return, area_missing(variant->kind));
	len = NR_THP * thp_size();
	ASSERT_EQ(0, area_on(&self->area, variant->kind, len + thp_size(), 10));
	for (round = 0; round < ROUNDS; round++) {
		p = thp_alloc(NR_THP, SEED + round);
		ASSERT_NE(NULL, p);
		out = vmstat("thp_swpout");
		ASSERT_EQ(0, page_out(p, len));
		EXPECT_EQ(NR_THP, vmstat("thp_swpout") - out);
		EXPECT_EQ(NR_THP, nr_whole(p, NR_THP)) {
			TH_LOG("in round %zu", round);
		}
		/* Half of them come in again, half of them go from there. */
		for (i = 0; i < NR_THP; i += 2) {
			size_t first = i * thp_pages();

			EXPECT_EQ(-1, check_range(p + i * thp_size(), first,
						  thp_pages(), SEED + round));
		}
		thp_free(p, NR_THP);
		ASSERT_EQ(0, swap_settle_freed());
		EXPECT_EQ(0, area_used_kb(&self->area)) {
			TH_LOG("in round %zu", round);
		}
	}
	EXPECT_EQ(0, area_off(&self->area));
}

TEST_F_TIMEOUT(swpout_cluster, after_base_pages, SWAP_TIMEOUT)
{
	char *p, *small;
	size_t len;
	long out;

	REQUIRE(return, thp_missing());
	REQUIRE(return, area_missing(variant->kind));
	len = NR_THP * thp_size();
	/* Two runs for the header and the base pages, in part or cached. */
	ASSERT_EQ(0, area_on(&self->area, variant->kind,
			     len + 3 * thp_size(), 10));
	small = small_alloc(NR_SMALL, SEED + 1);
	ASSERT_NE(NULL, small);
	ASSERT_EQ(0, page_out(small, NR_SMALL * page_size()));
	p = thp_alloc(NR_THP, SEED);
	ASSERT_NE(NULL, p);
	out = vmstat("thp_swpout");
	ASSERT_EQ(0, page_out(p, len));
	/* Counted too, since pages of a split THP can get a run by chance. */
	EXPECT_EQ(NR_THP, vmstat("thp_swpout") - out);
	EXPECT_EQ(NR_THP, nr_whole(p, NR_THP));
	EXPECT_EQ(-1, check_pages(p, NR_THP * thp_pages(), SEED));
	EXPECT_EQ(-1, check_pages(small, NR_SMALL, SEED + 1));
	thp_free(p, NR_THP);
	small_free(small, NR_SMALL);
	EXPECT_EQ(0, area_off(&self->area));
}

TEST_HARNESS_MAIN
