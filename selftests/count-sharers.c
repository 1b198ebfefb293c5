// SPDX-License-Identifier: GPL-2.0
/*
 * Swapped pages shared by 600 children, more than fit into one count of the
 * swap map (62 up to 7.0), that read and exit in random order: everybody reads
 * the right data and in the end all slots are free again.
 */
#include "kselftest_harness.h"
#include "swap_util.h"

#include <linux/futex.h>
#include <sys/syscall.h>

#define NR_PAGES	64
#define NR_CHILDREN	600
#define AT_ONCE		16
#define SEED		0xc5

FIXTURE(count_sharers) {
	struct swap_area area;
	int *go;
};

FIXTURE_SETUP(count_sharers)
{
	ASSERT_EQ(0, swap_setup());
	self->go = mmap(NULL, NR_CHILDREN * sizeof(int),
			PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);
	ASSERT_NE(MAP_FAILED, self->go);
}

FIXTURE_TEARDOWN(count_sharers)
{
	EXPECT_EQ(0, swap_teardown());
	munmap(self->go, NR_CHILDREN * sizeof(int));
}

static void wait_go(int *go)
{
	while (!__atomic_load_n(go, __ATOMIC_ACQUIRE))
		syscall(SYS_futex, go, FUTEX_WAIT, 0, NULL, NULL, 0);
}

static void let_go(int *go)
{
	__atomic_store_n(go, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, go, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* A third reads all, a third some pages, a third none. */
static int child(char *p, int nr, int *go)
{
	__u64 state = nr;
	int i;

	wait_go(go);
	if (nr % 3 == 0)
		return check_pages(p, NR_PAGES, SEED) < 0 ? 0 : 1;
	for (i = 0; nr % 3 == 1 && i < 8; i++) {
		size_t k = rnd(&state) % NR_PAGES;

		if (check_range(p + k * page_size(), k, 1, SEED) >= 0)
			return 1;
	}
	return 0;
}

TEST_F_TIMEOUT(count_sharers, random_exit, 3 * SWAP_TIMEOUT)
{
	size_t len = NR_PAGES * page_size();
	pid_t pids[NR_CHILDREN];
	int order[NR_CHILDREN];
	__u64 state = SEED;
	int wrong = 0;
	int i, k;
	char *p;

	REQUIRE(return, area_missing(AREA_ZRAM));
	ASSERT_EQ(0, area_on(&self->area, AREA_ZRAM, 16 << 20, 10));
	p = small_alloc(NR_PAGES, SEED);
	ASSERT_NE(NULL, p);
	ASSERT_EQ(0, page_out(p, len));

	for (i = 0; i < NR_CHILDREN; i++) {
		pids[i] = fork_child();
		ASSERT_LE(0, pids[i]) {
			TH_LOG("child %d: %s", i, strerror(errno));
		}
		if (!pids[i])
			_exit(child(p, i, &self->go[i]));
	}
	EXPECT_EQ(NR_PAGES, count_swapped(p, len));

	/* Random order, some of them at the same time. */
	for (i = 0; i < NR_CHILDREN; i++) {
		k = rnd(&state) % (i + 1);
		order[i] = order[k];
		order[k] = i;
	}
	for (i = 0; i < NR_CHILDREN; i += AT_ONCE) {
		for (k = i; k < i + AT_ONCE && k < NR_CHILDREN; k++)
			let_go(&self->go[order[k]]);
		for (k = i; k < i + AT_ONCE && k < NR_CHILDREN; k++)
			wrong += wait_child(pids[order[k]]) != 0;
	}
	EXPECT_EQ(0, wrong);

	EXPECT_EQ(-1, check_pages(p, NR_PAGES, SEED));
	small_free(p, NR_PAGES);
	ASSERT_EQ(0, swap_settle());
	EXPECT_EQ(0, area_used_kb(&self->area));
	EXPECT_EQ(0, area_off(&self->area));
}

TEST_HARNESS_MAIN
