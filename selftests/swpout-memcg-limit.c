// SPDX-License-Identifier: GPL-2.0
/*
 * A THP is charged to memory.swap.max as a whole. With 9 MiB for eight THPs
 * four go out whole; the others are split and fill what is left. The limit
 * holds at any time, no page is lost, and all of the charge comes back.
 */
#include "kselftest_harness.h"
#include "swap_util.h"

#include <pthread.h>

#define NR_THP	8
#define SEED	0x33

/* What the second thread sees of the charge. */
struct watch {
	bool stop;
	long highest;
};

FIXTURE(swpout_memcg_limit) {
	struct swap_area area;
	struct watch watch;
};

FIXTURE_SETUP(swpout_memcg_limit)
{
	ASSERT_EQ(0, swap_setup());
}

FIXTURE_TEARDOWN(swpout_memcg_limit)
{
	EXPECT_EQ(0, swap_teardown());
}

/* Watch the charge while pages go out on another CPU. */
static void *watch_charge(void *arg)
{
	struct watch *watch = arg;

	while (!__atomic_load_n(&watch->stop, __ATOMIC_RELAXED)) {
		long now = memcg_read("memory.swap.current");

		if (now > watch->highest)
			watch->highest = now;
		/* Leave the CPU to the others now and then. */
		usleep(500);
	}
	return NULL;
}

TEST_F_TIMEOUT(swpout_memcg_limit, whole_then_split, SWAP_TIMEOUT)
{
	size_t fit, len, i;
	long out, fallback;
	pthread_t watcher;
	long limit, base;
	char value[32];
	char *p;

	REQUIRE(return, thp_missing());
	REQUIRE(return, memcg_missing());
	REQUIRE(return, area_missing(AREA_ZRAM));
	len = NR_THP * thp_size();
	limit = 4 * thp_size() + thp_size() / 2;
	fit = limit / thp_size();
	ASSERT_EQ(0, area_on(&self->area, AREA_ZRAM, 2 * len, 10));
	p = thp_alloc(NR_THP, SEED);
	ASSERT_NE(NULL, p);
	base = memcg_read("memory.swap.current");
	ASSERT_EQ(0, base);
	snprintf(value, sizeof(value), "%ld", limit);
	ASSERT_EQ(0, memcg_write("memory.swap.max", value));

	ASSERT_EQ(0, pthread_create(&watcher, NULL, watch_charge,
				    &self->watch));
	out = vmstat("thp_swpout");
	fallback = vmstat("thp_swpout_fallback");
	for (i = 0; i < NR_THP; i++)
		ASSERT_EQ(0, madvise(p + i * thp_size(), thp_size(),
				     MADV_PAGEOUT));
	EXPECT_EQ(0, page_out_nr(p, len, limit / page_size()));
	EXPECT_EQ(fit, vmstat("thp_swpout") - out);
	EXPECT_LE(1, vmstat("thp_swpout_fallback") - fallback);
	__atomic_store_n(&self->watch.stop, true, __ATOMIC_RELAXED);
	pthread_join(watcher, NULL);

	EXPECT_EQ(fit, count_out_whole(p, NR_THP));
	EXPECT_EQ(limit, memcg_read("memory.swap.current"));
	EXPECT_EQ(limit / page_size(), count_swapped(p, len));
	/*
	 * page_counter_try_charge() adds what it is asked for before it
	 * compares, and takes it back: who reads just then sees one folio more.
	 */
	EXPECT_GE(limit + (long)thp_size(), self->watch.highest);
	/* 6.5 and later remember the highest value themselves. */
	EXPECT_GE(limit, memcg_read("memory.swap.peak"));
	EXPECT_LE(1, memcg_stat("memory.swap.events", "max"));

	EXPECT_EQ(-1, check_pages(p, NR_THP * thp_pages(), SEED));
	thp_free(p, NR_THP);
	ASSERT_EQ(0, swap_settle());
	EXPECT_EQ(base, memcg_read("memory.swap.current"));
	EXPECT_EQ(0, area_used_kb(&self->area));
	EXPECT_EQ(0, area_off(&self->area));
}

TEST_HARNESS_MAIN
