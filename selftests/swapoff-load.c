// SPDX-License-Identifier: GPL-2.0
/*
 * swapoff and swapon of one of two areas, again and again, while workers
 * fault, page out, fork, unmap and MADV_FREE: swapoff works or says ENOMEM or
 * EINTR, an area comes back empty, and no page has wrong data.
 */
#include "kselftest_harness.h"
#include "swap_util.h"

#define NR_WORKERS	2
#define NR_THP		1
#define NR_SMALL	200
/* swapoffs to do, the time that they may take, and how many must be done. */
#define ROUNDS		3
#define LIMIT_MS	5000
#define ROUNDS_LEAST	1

struct control {
	int stop;
	int rounds[NR_WORKERS];
};

FIXTURE(swapoff_load) {
	struct swap_area stays;
	struct swap_area leaves;
	struct control *control;
};

FIXTURE_VARIANT(swapoff_load) {
	enum area_kind kind;
};

FIXTURE_VARIANT_ADD(swapoff_load, zram) {
	.kind = AREA_ZRAM,
};

FIXTURE_VARIANT_ADD(swapoff_load, brd) {
	.kind = AREA_BRD,
};

FIXTURE_VARIANT_ADD(swapoff_load, virtio) {
	.kind = AREA_VIRTIO,
};

FIXTURE_SETUP(swapoff_load)
{
	ASSERT_EQ(0, swap_setup());
	self->control = mmap(NULL, sizeof(*self->control),
			     PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->control);
}

FIXTURE_TEARDOWN(swapoff_load)
{
	EXPECT_EQ(0, swap_teardown());
	munmap(self->control, sizeof(*self->control));
}

/* Everything out that wants to go: an area may just have left. */
static void push(char *p, size_t pages)
{
	madvise(p, pages * page_size(), MADV_PAGEOUT);
}

/* A child reads half of the pages, writes to some and goes. */
static int reader(char *p, size_t pages, __u64 seed)
{
	size_t i;

	for (i = 0; i < pages; i += 2) {
		if (check_range(p + i * page_size(), i, 1, seed) >= 0)
			return 1;
		if (i % 8 == 0)
			fill_page(p + i * page_size(), ~seed, i);
	}
	return 0;
}

static bool stopped(const struct control *control)
{
	return __atomic_load_n(&control->stop, __ATOMIC_RELAXED);
}

/* One life of a region; 0, or 1 on wrong data. */
static int worker_round(const struct control *control, char *p, size_t pages,
			__u64 seed)
{
	size_t size = page_size();
	size_t i, free_from;
	pid_t pid;

	fill_pages(p, pages, seed);
	push(p, pages);
	pid = fork_child();
	if (!pid)
		_exit(reader(p, pages, seed));
	/* Against the child: write a part, read the rest. */
	fill_range(p, 0, pages / 4, seed + 1);
	push(p, pages);
	if (pid > 0 && wait_child(pid)) {
		note("the child saw wrong data, seed %llu", seed);
		return 1;
	}
	if (check_range(p, 0, pages / 4, seed + 1) >= 0 ||
	    check_range(p + pages / 4 * size, pages / 4, pages - pages / 4,
			seed) >= 0)
		return 1;
	if (stopped(control))
		return 0;

	push(p, pages);
	free_from = pages - pages / 4;
	madvise(p + free_from * size, (pages - free_from) * size, MADV_FREE);
	push(p, pages);
	/* Freed: the old data or none, never anything else. */
	for (i = free_from; i < pages; i++) {
		char *page = p + i * size;

		if (!page_is_zero(page) &&
		    check_range(page, i, 1, seed) >= 0)
			return 1;
	}
	if (stopped(control))
		return 0;
	madvise(p, pages / 2 * size, MADV_DONTNEED);
	for (i = 0; i < pages / 2; i++) {
		if (!page_is_zero(p + i * size)) {
			note("page %zu is not empty after MADV_DONTNEED", i);
			return 1;
		}
	}
	if (check_range(p + pages / 2 * size, pages / 2, free_from - pages / 2,
			seed) >= 0)
		return 1;
	push(p, pages);
	return 0;
}

static int run_worker(struct control *control, int nr)
{
	__u64 seed = (nr + 1) * 1000;
	int wrong = 0;

	while (!wrong && !stopped(control)) {
		if (thp_size()) {
			char *p = thp_map(NR_THP);

			if (!p)
				return 2;
			wrong |= worker_round(control, p,
					      NR_THP * thp_pages(), seed++);
			thp_free(p, NR_THP);
		}
		if (!wrong) {
			char *p = small_map(NR_SMALL);

			if (!p)
				return 2;
			wrong |= worker_round(control, p, NR_SMALL, seed++);
			small_free(p, NR_SMALL);
		}
		__atomic_add_fetch(&control->rounds[nr], 1, __ATOMIC_RELAXED);
	}
	if (wrong)
		note("worker %d, seed %llu: wrong data", nr, seed - 1);
	return wrong;
}

/* Is something on the area that is about to leave? */
static bool area_in_use(void *arg)
{
	return area_used_kb(arg) > 256;
}

TEST_F_TIMEOUT(swapoff_load, loop, SWAP_TIMEOUT)
{
	__u64 end = now_ms() + LIMIT_MS;
	pid_t pids[NR_WORKERS];
	int done = 0, refused = 0;
	int i;

	REQUIRE(return, area_missing(AREA_ZRAM));
	REQUIRE(return, area_missing(variant->kind));
	ASSERT_EQ(0, area_on(&self->stays, AREA_ZRAM, 32 << 20, 1));
	ASSERT_EQ(0, area_on(&self->leaves, variant->kind, 20 << 20, 10));
	for (i = 0; i < NR_WORKERS; i++) {
		pids[i] = fork_child();
		ASSERT_LE(0, pids[i]);
		if (!pids[i])
			_exit(run_worker(self->control, i));
	}

	while (done < ROUNDS && now_ms() < end) {
		/* Workers that have failed do not use it any more. */
		if (!wait_for(area_in_use, &self->leaves, SWAP_WAIT_MS))
			break;
		if (area_swapoff(&self->leaves)) {
			ASSERT_TRUE(errno == ENOMEM || errno == EINTR) {
				TH_LOG("swapoff: %s", strerror(errno));
			}
			refused++;
			continue;
		}
		done++;
		EXPECT_EQ(-1, area_used_kb(&self->leaves));
		/* With the lower priority: nothing is put on it yet. */
		ASSERT_EQ(0, area_swapon(&self->leaves, 0));
		EXPECT_GE(slot_cache_slack() * (long)page_size() >> 10,
			  area_used_kb(&self->leaves));
		ASSERT_EQ(0, area_swapoff(&self->leaves));
		ASSERT_EQ(0, area_swapon(&self->leaves, 10));
	}
	__atomic_store_n(&self->control->stop, 1, __ATOMIC_RELAXED);
	for (i = 0; i < NR_WORKERS; i++)
		EXPECT_EQ(0, wait_child(pids[i]));
	EXPECT_LE(ROUNDS_LEAST, done);
	note("%d swapoffs, %d refused, rounds of the workers: %d %d", done,
	     refused, self->control->rounds[0], self->control->rounds[1]);
	EXPECT_EQ(0, area_off(&self->leaves));
	EXPECT_EQ(0, area_off_no_leak(&self->stays));
}

TEST_HARNESS_MAIN
