// SPDX-License-Identifier: GPL-2.0
/*
 * The soft-dirty bit (pagemap bit 55, cleared by writing 4 to clear_refs) says
 * which pages were written, also of pages that leave for swap and come back:
 * the bit stays with the swap entry, a read fault does not set it, and a write
 * after that read fault does. A checkpoint that misses a write loses data.
 */
#include "kselftest_harness.h"
#include "swap_util.h"

#define OLD	0x51
#define DIRTY	1		/* the page that is written before page-out */

enum size { SIZE_4K, SIZE_64K, SIZE_2M };

struct memory {
	struct swap_area area;
	size_t nr, len;
	char *p;
};

FIXTURE(bits_soft_dirty) {
	struct memory m;
};

FIXTURE_VARIANT(bits_soft_dirty) {
	enum area_kind kind;
	enum size size;
};

FIXTURE_VARIANT_ADD(bits_soft_dirty, zram_4k) {
	.kind = AREA_ZRAM,
	.size = SIZE_4K,
};

FIXTURE_VARIANT_ADD(bits_soft_dirty, zram_64k) {
	.kind = AREA_ZRAM,
	.size = SIZE_64K,
};

FIXTURE_VARIANT_ADD(bits_soft_dirty, zram_thp) {
	.kind = AREA_ZRAM,
	.size = SIZE_2M,
};

/* Asynchronous: the page comes by the swap cache and its slot is kept. */
FIXTURE_VARIANT_ADD(bits_soft_dirty, virtio_4k) {
	.kind = AREA_VIRTIO,
	.size = SIZE_4K,
};

static int forget_writes(void)
{
	return write_file("/proc/self/clear_refs", "4");
}

static bool soft_dirty(const char *page)
{
	return entry_soft_dirty(pagemap_get(page));
}

static void touch_write(char *c)
{
	__atomic_store_n(c, 7, __ATOMIC_RELAXED);
}

/* The kernel may have the files and not the bit: ask a page. */
static const char *soft_dirty_missing(void)
{
	char *page = small_alloc(1, OLD);
	bool seen;

	if (!page || forget_writes())
		return "no /proc/self/clear_refs";
	touch_write(page);
	seen = soft_dirty(page);
	small_free(page, 1);
	return seen ? NULL : "no soft-dirty bit (MEM_SOFT_DIRTY or the hardware for it)";
}

static const char *missing(enum area_kind kind, enum size size)
{
	if (soft_dirty_missing())
		return soft_dirty_missing();
	if (size == SIZE_64K && mthp_missing())
		return mthp_missing();
	if (size == SIZE_2M && thp_missing())
		return thp_missing();
	return area_missing(kind);
}

/* Nothing to set up for a test that will say what is missing. */
FIXTURE_SETUP(bits_soft_dirty)
{
	if (!missing(variant->kind, variant->size))
		ASSERT_EQ(0, swap_setup());
}

FIXTURE_TEARDOWN(bits_soft_dirty)
{
	EXPECT_EQ(0, swap_teardown());
}

/* Pages in folios of 64 KiB. */
static char *alloc_64k(size_t nr)
{
	size_t bytes = nr * page_size();
	long before = thp_stat(65536, "anon_fault_alloc");
	char *p;

	if (set_file("/sys/kernel/mm/transparent_hugepage/hugepages-64kB/enabled", "madvise"))
		return NULL;
	/* From a range aligned to 2 MiB, less than 2 MiB of it. */
	p = thp_map(1);
	if (!p || munmap(p + bytes, thp_size() - bytes))
		return NULL;
	fill_pages(p, nr, OLD);
	return thp_stat(65536, "anon_fault_alloc") == before + (long)(bytes / 65536) ? p : NULL;
}

/* All clean but one. */
static void start(struct __test_metadata *_metadata, struct memory *m,
		  enum area_kind kind, enum size size)
{
	m->nr = size == SIZE_2M ? thp_pages() : 64;
	m->len = m->nr * page_size();
	ASSERT_EQ(0, area_on(&m->area, kind, 16 << 20, 10));
	if (size == SIZE_2M)
		m->p = thp_alloc(1, OLD);
	else if (size == SIZE_64K)
		m->p = alloc_64k(m->nr);
	else
		m->p = small_alloc(m->nr, OLD);
	ASSERT_NE(NULL, m->p);
	ASSERT_EQ(0, forget_writes());
	touch_write(m->p + DIRTY * page_size());
	EXPECT_TRUE(soft_dirty(m->p + DIRTY * page_size()));
	/* A THP that one PMD maps has one bit for all its pages. */
	if (size != SIZE_2M)
		EXPECT_FALSE(soft_dirty(m->p));
}

/* Is the bit of each page as it was? -1, or the first page that differs. */
static long bits_differ(const char *p, const bool *bits, size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i++) {
		if (soft_dirty(p + i * page_size()) != bits[i])
			return i;
	}
	return -1;
}

static bool *bits_now(const char *p, size_t nr)
{
	bool *bits = malloc(nr);
	size_t i;

	for (i = 0; bits && i < nr; i++)
		bits[i] = soft_dirty(p + i * page_size());
	return bits;
}

/*
 * The page is clean, read, and then written. Its neighbour keeps its bit, if
 * they have not come back under one PMD.
 */
static void write_is_seen(struct __test_metadata *_metadata, struct memory *m,
			  size_t page, bool read_first)
{
	char *c = m->p + page * page_size();
	char *next = c + page_size();
	bool next_bit = soft_dirty(next);

	EXPECT_FALSE(soft_dirty(c));
	if (read_first) {
		touch_read(c, page_size());
		EXPECT_FALSE(soft_dirty(c));
	}
	touch_write(c);
	EXPECT_TRUE(soft_dirty(c));
	if (smaps_kb(m->p, "AnonHugePages") <= 0)
		EXPECT_EQ(next_bit, soft_dirty(next));
}

/* Out with all bits clear, then DIRTY written in memory before it went. */
TEST_F_TIMEOUT(bits_soft_dirty, entry, SWAP_TIMEOUT)
{
	bool *bits;

	REQUIRE(return, missing(variant->kind, variant->size));
	start(_metadata, &self->m, variant->kind, variant->size);
	bits = bits_now(self->m.p, self->m.nr);
	ASSERT_NE(NULL, bits);
	ASSERT_EQ(0, page_out_sync(self->m.p, self->m.len));
	EXPECT_EQ(-1, bits_differ(self->m.p, bits, self->m.nr));
	EXPECT_TRUE(soft_dirty(self->m.p + DIRTY * page_size()));
}

TEST_F_TIMEOUT(bits_soft_dirty, read_in, SWAP_TIMEOUT)
{
	bool *bits;

	REQUIRE(return, missing(variant->kind, variant->size));
	start(_metadata, &self->m, variant->kind, variant->size);
	bits = bits_now(self->m.p, self->m.nr);
	ASSERT_NE(NULL, bits);
	ASSERT_EQ(0, page_out_sync(self->m.p, self->m.len));
	touch_read(self->m.p, self->m.len);
	EXPECT_EQ(self->m.nr, count_present(self->m.p, self->m.len));
	EXPECT_EQ(-1, bits_differ(self->m.p, bits, self->m.nr));
}

/* What a page that came in by a read does not know yet: the next write. */
TEST_F_TIMEOUT(bits_soft_dirty, read_in_then_write, SWAP_TIMEOUT)
{
	REQUIRE(return, missing(variant->kind, variant->size));
	start(_metadata, &self->m, variant->kind, variant->size);
	ASSERT_EQ(0, forget_writes());
	ASSERT_EQ(0, page_out_sync(self->m.p, self->m.len));
	touch_read(self->m.p, self->m.len);
	write_is_seen(_metadata, &self->m, 5, false);
}

TEST_F_TIMEOUT(bits_soft_dirty, clear_while_out, SWAP_TIMEOUT)
{
	bool *bits = calloc(512, 1);

	REQUIRE(return, missing(variant->kind, variant->size));
	ASSERT_NE(NULL, bits);
	start(_metadata, &self->m, variant->kind, variant->size);
	fill_pages(self->m.p, self->m.nr, OLD);
	ASSERT_EQ(0, page_out_sync(self->m.p, self->m.len));
	EXPECT_TRUE(soft_dirty(self->m.p + 5 * page_size()));
	ASSERT_EQ(0, forget_writes());
	EXPECT_EQ(-1, bits_differ(self->m.p, bits, self->m.nr));
	write_is_seen(_metadata, &self->m, 5, true);
	if (smaps_kb(self->m.p, "AnonHugePages") <= 0)
		write_is_seen(_metadata, &self->m, 7, false);
	EXPECT_EQ(-1, check_range(self->m.p + 8 * page_size(), 8, self->m.nr - 8, OLD));
}

TEST_F_TIMEOUT(bits_soft_dirty, write_in, SWAP_TIMEOUT)
{
	REQUIRE(return, missing(variant->kind, variant->size));
	start(_metadata, &self->m, variant->kind, variant->size);
	ASSERT_EQ(0, forget_writes());
	ASSERT_EQ(0, page_out_sync(self->m.p, self->m.len));
	write_is_seen(_metadata, &self->m, 5, false);
}

TEST_F_TIMEOUT(bits_soft_dirty, swapoff, SWAP_TIMEOUT)
{
	bool *bits;

	REQUIRE(return, missing(variant->kind, variant->size));
	start(_metadata, &self->m, variant->kind, variant->size);
	bits = bits_now(self->m.p, self->m.nr);
	ASSERT_NE(NULL, bits);
	ASSERT_EQ(0, page_out_sync(self->m.p, self->m.len));
	ASSERT_EQ(0, area_swapoff(&self->m.area));
	EXPECT_EQ(self->m.nr, count_present(self->m.p, self->m.len));
	EXPECT_EQ(-1, bits_differ(self->m.p, bits, self->m.nr));
	if (variant->size != SIZE_2M)
		write_is_seen(_metadata, &self->m, 5, false);
}

/* The child's entries, and its pages after a read, carry the same bits. */
TEST_F_TIMEOUT(bits_soft_dirty, fork, SWAP_TIMEOUT)
{
	bool *bits;
	pid_t pid;

	REQUIRE(return, missing(variant->kind, variant->size));
	start(_metadata, &self->m, variant->kind, variant->size);
	bits = bits_now(self->m.p, self->m.nr);
	ASSERT_NE(NULL, bits);
	ASSERT_EQ(0, page_out_sync(self->m.p, self->m.len));
	pid = fork_child();
	ASSERT_LE(0, pid);
	if (!pid) {
		if (bits_differ(self->m.p, bits, self->m.nr) != -1)
			_exit(1);
		touch_read(self->m.p, self->m.len);
		if (bits_differ(self->m.p, bits, self->m.nr) != -1)
			_exit(2);
		_exit(0);
	}
	EXPECT_EQ(0, wait_child(pid));
	EXPECT_EQ(-1, bits_differ(self->m.p, bits, self->m.nr));
	touch_read(self->m.p, self->m.len);
	EXPECT_EQ(-1, bits_differ(self->m.p, bits, self->m.nr));
	if (variant->size != SIZE_2M)
		write_is_seen(_metadata, &self->m, 5, false);
}

/* A move may mark pages as written, and never the other way round. */
TEST_F_TIMEOUT(bits_soft_dirty, mremap, SWAP_TIMEOUT)
{
	char *to;

	REQUIRE(return, missing(variant->kind, variant->size));
	start(_metadata, &self->m, variant->kind, variant->size);
	ASSERT_EQ(0, page_out_sync(self->m.p, self->m.len));
	to = thp_size() ? thp_map(1) : small_map(self->m.nr);
	ASSERT_NE(NULL, to);
	ASSERT_EQ(to, mremap(self->m.p, self->m.len, self->m.len,
			     MREMAP_MAYMOVE | MREMAP_FIXED, to));
	EXPECT_EQ(self->m.nr, count_swapped(to, self->m.len));
	EXPECT_TRUE(soft_dirty(to + DIRTY * page_size()));
	touch_read(to, self->m.len);
	EXPECT_TRUE(soft_dirty(to + DIRTY * page_size()));
	EXPECT_EQ(-1, check_range(to + 2 * page_size(), 2, self->m.nr - 2, OLD));
}

TEST_HARNESS_MAIN
