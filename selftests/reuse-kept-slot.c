// SPDX-License-Identifier: GPL-2.0
/*
 * Where a page that came back keeps its swap slot, the slot still has its data:
 * a page that was only read goes out again without being written, and one that
 * was written since then is written out. Where the slot was given up, memory
 * has the only copy, which must not be dropped although nobody wrote to it.
 *
 * The slot is kept if the page came by the swap cache in a read fault, the swap
 * space is less than half full and the page is not mlocked: a device with
 * asynchronous I/O.
 */
#include "kselftest_harness.h"
#include "swap_util.h"

#define OLD	0xc1
#define NEW	0xd2
#define NR	64

struct memory {
	struct swap_area area;
	size_t nr, len;
	char *p;
};

FIXTURE(reuse_kept_slot) {
	struct memory m;
};

FIXTURE_VARIANT(reuse_kept_slot) {
	enum area_kind kind;
	bool thp;
};

FIXTURE_VARIANT_ADD(reuse_kept_slot, virtio_4k) {
	.kind = AREA_VIRTIO,
};

FIXTURE_VARIANT_ADD(reuse_kept_slot, virtio_thp) {
	.kind = AREA_VIRTIO,
	.thp = true,
};

/* Synchronous: these give the slot up at once. */
FIXTURE_VARIANT_ADD(reuse_kept_slot, zram_4k) {
	.kind = AREA_ZRAM,
};

FIXTURE_VARIANT_ADD(reuse_kept_slot, zram_thp) {
	.kind = AREA_ZRAM,
	.thp = true,
};

FIXTURE_VARIANT_ADD(reuse_kept_slot, brd_4k) {
	.kind = AREA_BRD,
};

FIXTURE_SETUP(reuse_kept_slot)
{
	ASSERT_EQ(0, swap_setup());
}

FIXTURE_TEARDOWN(reuse_kept_slot)
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
	m->nr = thp ? thp_pages() : NR;
	m->len = m->nr * page_size();
	ASSERT_EQ(0, area_on(&m->area, kind, 16 << 20, 10));
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

/* Sectors that the device has been asked to write so far. */
static long sectors_written(const struct swap_area *a)
{
	char path[128], stat[256];
	long sectors = -1;

	snprintf(path, sizeof(path), "%s/stat", a->sys);
	if (!read_str(path, stat, sizeof(stat)))
		sscanf(stat, "%*d %*d %*d %*d %*d %*d %ld", &sectors);
	return sectors;
}

TEST_F_TIMEOUT(reuse_kept_slot, read_only, SWAP_TIMEOUT)
{
	struct memory *m = &self->m;
	long pswpout, sectors;
	int i;

	REQUIRE(return, missing(variant->kind, variant->thp));
	start(_metadata, m, variant->kind, variant->thp);
	pswpout = vmstat("pswpout");
	sectors = sectors_written(&m->area);
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(-1, check_pages(m->p, m->nr, OLD));
		ASSERT_EQ(0, page_out_sync(m->p, m->len));
	}
	if (variant->kind == AREA_VIRTIO) {
		EXPECT_EQ(0, vmstat("pswpout") - pswpout);
		EXPECT_EQ(0, sectors_written(&m->area) - sectors);
	}
	EXPECT_EQ(-1, check_pages(m->p, m->nr, OLD));
}

/* Half of the pages are written after they were read. */
TEST_F_TIMEOUT(reuse_kept_slot, read_then_write, SWAP_TIMEOUT)
{
	struct memory *m = &self->m;
	size_t i, wrong = 0;
	long pswpout;

	REQUIRE(return, missing(variant->kind, variant->thp));
	start(_metadata, m, variant->kind, variant->thp);
	pswpout = vmstat("pswpout");
	EXPECT_EQ(-1, check_pages(m->p, m->nr, OLD));
	for (i = 0; i < m->nr; i += 2)
		fill_page(m->p + i * page_size(), NEW, i);
	ASSERT_EQ(0, page_out_sync(m->p, m->len));
	if (variant->kind == AREA_VIRTIO && smaps_kb(m->p, "AnonHugePages") <= 0)
		EXPECT_EQ((long)m->nr / 2, vmstat("pswpout") - pswpout);
	for (i = 0; i < m->nr; i++)
		wrong += !check_page(m->p + i * page_size(), i % 2 ? OLD : NEW, i);
	EXPECT_EQ((size_t)0, wrong);
}

TEST_F_TIMEOUT(reuse_kept_slot, write, SWAP_TIMEOUT)
{
	struct memory *m = &self->m;
	int i;

	REQUIRE(return, missing(variant->kind, variant->thp));
	start(_metadata, m, variant->kind, variant->thp);
	for (i = 1; i < 3; i++) {
		fill_pages(m->p, m->nr, NEW + i);
		ASSERT_EQ(0, page_out_sync(m->p, m->len));
		EXPECT_EQ(-1, check_pages(m->p, m->nr, NEW + i));
	}
}

/* mlocked pages give up their slot when they come in. */
TEST_F_TIMEOUT(reuse_kept_slot, slot_given_up, SWAP_TIMEOUT)
{
	struct memory *m = &self->m;
	int i;

	REQUIRE(return, missing(variant->kind, variant->thp));
	start(_metadata, m, variant->kind, variant->thp);
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, mlock2(m->p, m->len, MLOCK_ONFAULT));
		touch_read(m->p, m->len);
		ASSERT_EQ(0, munlock(m->p, m->len));
		ASSERT_EQ(0, page_out_sync(m->p, m->len));
		EXPECT_EQ(m->nr, count_swapped(m->p, m->len));
		EXPECT_EQ(-1, check_pages(m->p, m->nr, OLD));
		ASSERT_EQ(0, page_out_sync(m->p, m->len));
	}
}

/* A write after MADV_FREE takes the page back, however the page came in. */
TEST_F_TIMEOUT(reuse_kept_slot, madv_free_then_write, SWAP_TIMEOUT)
{
	struct memory *m = &self->m;

	REQUIRE(return, missing(variant->kind, variant->thp));
	start(_metadata, m, variant->kind, variant->thp);
	EXPECT_EQ(-1, check_pages(m->p, m->nr, OLD));
	ASSERT_EQ(0, madvise(m->p, m->len, MADV_FREE));
	fill_pages(m->p, m->nr, NEW);
	ASSERT_EQ(0, page_out_sync(m->p, m->len));
	EXPECT_EQ(-1, check_pages(m->p, m->nr, NEW));
}

TEST_HARNESS_MAIN
