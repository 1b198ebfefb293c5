// SPDX-License-Identifier: GPL-2.0
/*
 * Pages swapped out, then shared by fork(), both processes alive: whoever reads
 * a page and then writes it must get a copy. The other one sees the old data,
 * from wherever it takes it: page table, swap cache or device.
 */
#include "kselftest_harness.h"
#include "swap_util.h"

#define OLD	0x31
#define NEW	0x42

/* How far the two processes are; shared by them. */
struct progress {
	int step;
};

struct memory {
	struct swap_area area;
	struct progress *progress;
	size_t nr, len;
	char *p;
};

FIXTURE(reuse_shared) {
	struct memory m;
};

FIXTURE_VARIANT(reuse_shared) {
	enum area_kind kind;
	bool thp;
};

FIXTURE_VARIANT_ADD(reuse_shared, zram_thp) {
	.kind = AREA_ZRAM,
	.thp = true,
};

FIXTURE_VARIANT_ADD(reuse_shared, zram_4k) {
	.kind = AREA_ZRAM,
};

FIXTURE_VARIANT_ADD(reuse_shared, brd_4k) {
	.kind = AREA_BRD,
};

FIXTURE_VARIANT_ADD(reuse_shared, virtio_thp) {
	.kind = AREA_VIRTIO,
	.thp = true,
};

FIXTURE_VARIANT_ADD(reuse_shared, virtio_4k) {
	.kind = AREA_VIRTIO,
};

FIXTURE_SETUP(reuse_shared)
{
	ASSERT_EQ(0, swap_setup());
}

FIXTURE_TEARDOWN(reuse_shared)
{
	EXPECT_EQ(0, swap_teardown());
}

static const char *missing(enum area_kind kind, bool thp)
{
	if (thp && thp_missing())
		return thp_missing();
	return area_missing(kind);
}

static void start(struct __test_metadata *_metadata, struct memory *m,
		  enum area_kind kind, bool thp)
{
	m->nr = thp ? thp_pages() : 64;
	m->len = m->nr * page_size();
	m->progress = mmap(NULL, page_size(), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)m->progress);
	ASSERT_EQ(0, area_on(&m->area, kind, 32 << 20, 10));
	m->p = thp ? thp_alloc(1, OLD) : small_alloc(m->nr, OLD);
	ASSERT_NE(NULL, m->p);
	ASSERT_EQ(0, page_out_sync(m->p, m->len));
	if (thp && kind == AREA_VIRTIO) {
		/* Each page is a request of its own there: some of them will do. */
		ASSERT_EQ(0, munmap(m->p + m->len / 8, m->len - m->len / 8));
		m->nr /= 8;
		m->len /= 8;
	}
}

static void reached(struct progress *progress, int step)
{
	__atomic_store_n(&progress->step, step, __ATOMIC_RELEASE);
}

struct wanted {
	struct progress *progress;
	int step;
};

static bool is_reached(void *arg)
{
	struct wanted *w = arg;

	return __atomic_load_n(&w->progress->step, __ATOMIC_ACQUIRE) >= w->step;
}

static bool await(struct progress *progress, int step)
{
	struct wanted w = { progress, step };

	return wait_for(is_reached, &w, SWAP_WAIT_MS * 4);
}

/* Page by page: check the old data by reading it, then write the new. */
static bool read_then_write(char *p, size_t nr)
{
	bool right = true;
	size_t i;

	for (i = 0; i < nr; i++) {
		char *page = p + i * page_size();

		right &= check_page(page, OLD, i);
		fill_page(page, NEW, i);
	}
	return right;
}

TEST_F_TIMEOUT(reuse_shared, parent_writes, SWAP_TIMEOUT)
{
	pid_t pid;

	REQUIRE(return, missing(variant->kind, variant->thp));
	start(_metadata, &self->m, variant->kind, variant->thp);
	pid = fork_child();
	ASSERT_LE(0, pid);
	if (!pid) {
		if (!await(self->m.progress, 1))
			_exit(2);
		_exit(check_pages(self->m.p, self->m.nr, OLD) != -1);
	}
	EXPECT_TRUE(read_then_write(self->m.p, self->m.nr));
	reached(self->m.progress, 1);
	EXPECT_EQ(0, wait_child(pid));
	EXPECT_EQ(-1, check_pages(self->m.p, self->m.nr, NEW));
}

TEST_F_TIMEOUT(reuse_shared, child_writes, SWAP_TIMEOUT)
{
	pid_t pid;

	REQUIRE(return, missing(variant->kind, variant->thp));
	start(_metadata, &self->m, variant->kind, variant->thp);
	pid = fork_child();
	ASSERT_LE(0, pid);
	if (!pid) {
		bool right = read_then_write(self->m.p, self->m.nr);

		reached(self->m.progress, 1);
		if (!await(self->m.progress, 2))
			_exit(2);
		_exit(!right || check_pages(self->m.p, self->m.nr, NEW) != -1);
	}
	EXPECT_TRUE(await(self->m.progress, 1));
	EXPECT_EQ(-1, check_pages(self->m.p, self->m.nr, OLD));
	reached(self->m.progress, 2);
	EXPECT_EQ(0, wait_child(pid));
	EXPECT_EQ(-1, check_pages(self->m.p, self->m.nr, OLD));
}

TEST_F_TIMEOUT(reuse_shared, write_without_read, SWAP_TIMEOUT)
{
	pid_t pid;

	REQUIRE(return, missing(variant->kind, variant->thp));
	start(_metadata, &self->m, variant->kind, variant->thp);
	pid = fork_child();
	ASSERT_LE(0, pid);
	if (!pid) {
		if (!await(self->m.progress, 1))
			_exit(2);
		_exit(check_pages(self->m.p, self->m.nr, OLD) != -1);
	}
	fill_pages(self->m.p, self->m.nr, NEW);
	reached(self->m.progress, 1);
	EXPECT_EQ(0, wait_child(pid));
	EXPECT_EQ(-1, check_pages(self->m.p, self->m.nr, NEW));
}

/* Both have the page in their page table before one of them writes. */
TEST_F_TIMEOUT(reuse_shared, both_read_first, SWAP_TIMEOUT)
{
	pid_t pid;

	REQUIRE(return, missing(variant->kind, variant->thp));
	start(_metadata, &self->m, variant->kind, variant->thp);
	pid = fork_child();
	ASSERT_LE(0, pid);
	if (!pid) {
		bool right = check_pages(self->m.p, self->m.nr, OLD) == -1;

		reached(self->m.progress, 1);
		if (!await(self->m.progress, 2))
			_exit(2);
		_exit(!right || check_pages(self->m.p, self->m.nr, OLD) != -1);
	}
	EXPECT_TRUE(await(self->m.progress, 1));
	EXPECT_TRUE(read_then_write(self->m.p, self->m.nr));
	reached(self->m.progress, 2);
	EXPECT_EQ(0, wait_child(pid));
	EXPECT_EQ(-1, check_pages(self->m.p, self->m.nr, NEW));
}

/* The parent's copies go out and come back while the child still has the old. */
TEST_F_TIMEOUT(reuse_shared, out_again, SWAP_TIMEOUT)
{
	pid_t pid;

	REQUIRE(return, missing(variant->kind, variant->thp));
	start(_metadata, &self->m, variant->kind, variant->thp);
	pid = fork_child();
	ASSERT_LE(0, pid);
	if (!pid) {
		if (!await(self->m.progress, 1))
			_exit(2);
		_exit(check_pages(self->m.p, self->m.nr, OLD) != -1);
	}
	EXPECT_TRUE(read_then_write(self->m.p, self->m.nr));
	EXPECT_EQ(0, page_out(self->m.p, self->m.len));
	EXPECT_EQ(-1, check_pages(self->m.p, self->m.nr, NEW));
	reached(self->m.progress, 1);
	EXPECT_EQ(0, wait_child(pid));
	EXPECT_EQ(-1, check_pages(self->m.p, self->m.nr, NEW));
}

TEST_HARNESS_MAIN
