// SPDX-License-Identifier: GPL-2.0
/*
 * Pages swapped out, shared by fork(), and the child is gone: the parent is
 * their last owner. It may then read and write them without a second fault and
 * without a copy.
 */
#include "kselftest_harness.h"
#include "swap_util.h"

#define OLD	0x61
#define NEW	0x72

struct memory {
	struct swap_area area;
	size_t nr, len;
	char *p;
};

FIXTURE(reuse_last_owner) {
	struct memory m;
};

FIXTURE_VARIANT(reuse_last_owner) {
	enum area_kind kind;
	bool thp;
};

FIXTURE_VARIANT_ADD(reuse_last_owner, zram_thp) {
	.kind = AREA_ZRAM,
	.thp = true,
};

FIXTURE_VARIANT_ADD(reuse_last_owner, zram_4k) {
	.kind = AREA_ZRAM,
};

FIXTURE_VARIANT_ADD(reuse_last_owner, brd_4k) {
	.kind = AREA_BRD,
};

FIXTURE_SETUP(reuse_last_owner)
{
	ASSERT_EQ(0, swap_setup());
}

FIXTURE_TEARDOWN(reuse_last_owner)
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
	pid_t pid;

	m->nr = thp ? thp_pages() : 128;
	m->len = m->nr * page_size();
	ASSERT_EQ(0, area_on(&m->area, kind, 16 << 20, 10));
	m->p = thp ? thp_alloc(1, OLD) : small_alloc(m->nr, OLD);
	ASSERT_NE(NULL, m->p);
	ASSERT_EQ(0, page_out_sync(m->p, m->len));
	pid = fork_child();
	ASSERT_LE(0, pid);
	if (!pid)
		_exit(0);
	ASSERT_EQ(0, wait_child(pid));
}

/* Read and write a byte of each page; count the pages that moved by the write. */
static size_t read_write(char *p, size_t nr, __u64 *entry)
{
	size_t i, moved = 0;

	for (i = 0; i < nr; i++) {
		char *c = p + i * page_size();
		char value = __atomic_load_n(c, __ATOMIC_RELAXED);

		if (entry)
			*entry = entry_pfn(pagemap_get(c));
		__atomic_store_n(c, value, __ATOMIC_RELAXED);
		if (entry)
			moved += *entry != entry_pfn(pagemap_get(c));
	}
	return moved;
}

TEST_F_TIMEOUT(reuse_last_owner, minor_faults, SWAP_TIMEOUT)
{
	struct faults a, b;
	char *warm;

	REQUIRE(return, missing(variant->kind, variant->thp));
	start(_metadata, &self->m, variant->kind, variant->thp);
	/* fork() shared the stack and the data of this program, too. */
	warm = small_alloc(1, OLD);
	ASSERT_NE(NULL, warm);
	b = faults_now();
	read_write(warm, 1, NULL);
	a = faults_now();
	read_write(self->m.p, self->m.nr, NULL);
	b = faults_now();
	TH_LOG("minor %ld, major %ld", b.min - a.min, b.maj - a.maj);
	/* One is allowed for all of a THP. */
	EXPECT_GE(smaps_kb(self->m.p, "AnonHugePages") > 0 ? 1 : 0, b.min - a.min);
	EXPECT_EQ(-1, check_pages(self->m.p, self->m.nr, OLD));
}

TEST_F_TIMEOUT(reuse_last_owner, same_pfn, SWAP_TIMEOUT)
{
	__u64 entry = 0;

	REQUIRE(return, missing(variant->kind, variant->thp));
	start(_metadata, &self->m, variant->kind, variant->thp);
	/*
	 * The batch of the CPU that read the page in refers to it, too. The
	 * write empties the batches of its own CPU only before it counts.
	 */
	ASSERT_EQ(0, pin_cpu());
	EXPECT_EQ((size_t)0, read_write(self->m.p, self->m.nr, &entry));
	EXPECT_EQ(0, unpin_cpu());
	/* pagemap shows the frame only to who may see it. */
	EXPECT_NE(0ULL, entry);
	EXPECT_EQ(-1, check_pages(self->m.p, self->m.nr, OLD));
	fill_pages(self->m.p, self->m.nr, NEW);
	ASSERT_EQ(0, page_out(self->m.p, self->m.len));
	EXPECT_EQ(-1, check_pages(self->m.p, self->m.nr, NEW));
}

TEST_HARNESS_MAIN
