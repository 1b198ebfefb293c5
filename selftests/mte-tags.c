// SPDX-License-Identifier: GPL-2.0
/*
 * arm64 memory tags (MTE) survive swap: every 16 bytes of a page have a tag of
 * 4 bits, which the kernel has to save when the page leaves. A kernel that can
 * save only those of single pages must split a THP on such hardware, one that
 * can save all must let it leave whole; no tag is lost either way. Memory that
 * is not tagged gets no tags from what its swap slot held before.
 */
#include "kselftest_harness.h"
#include "swap_util.h"

#include <pthread.h>
#include <sys/auxv.h>
#include <sys/syscall.h>

#ifndef PROT_MTE
#define PROT_MTE	0x20
#endif
#ifndef HWCAP2_MTE
#define HWCAP2_MTE	0x40000
#endif

#define GRANULE		16
#define THREADS		8
#define OLD		0xe1
#define TAGS		0x7a95	/* seed of the tags */

/* Elsewhere the tests are skipped: these have to compile, no more. */
static const char *mte_missing(void)
{
#ifdef __aarch64__
	return getauxval(AT_HWCAP2) & HWCAP2_MTE ? NULL : "no MTE (HWCAP2_MTE)";
#else
	return "no MTE (not arm64)";
#endif
}

static void tag_store(char *granule, unsigned int tag)
{
	__u64 tagged = (uintptr_t)granule | (__u64)tag << 56;

#ifdef __aarch64__
	asm volatile(".arch armv8.5-a+memtag\n\tstg %0, [%0]" : : "r" (tagged) : "memory");
#else
	(void)tagged;
#endif
}

static unsigned int tag_load(const char *granule)
{
	__u64 tagged = (uintptr_t)granule;

#ifdef __aarch64__
	asm volatile(".arch armv8.5-a+memtag\n\tldg %0, [%0]" : "+r" (tagged) : : "memory");
#endif
	return tagged >> 56 & 0xf;
}

/* The tags of page @index: sixteen in one draw. */
static void set_tags(char *page, size_t index)
{
	__u64 state = TAGS + index, tags = 0;
	size_t i;

	for (i = 0; i < page_size() / GRANULE; i++, tags >>= 4) {
		if (!(i % 16))
			tags = rnd(&state);
		tag_store(page + i * GRANULE, tags & 0xf);
	}
}

/* How many granules of the page have another tag? */
static size_t wrong_tags(const char *page, size_t index)
{
	__u64 state = TAGS + index, tags = 0;
	size_t i, wrong = 0;

	for (i = 0; i < page_size() / GRANULE; i++, tags >>= 4) {
		if (!(i % 16))
			tags = rnd(&state);
		wrong += tag_load(page + i * GRANULE) != (tags & 0xf);
	}
	return wrong;
}

static unsigned int want_tag(size_t index, size_t granule)
{
	__u64 state = TAGS + index;

	return rnd(&state) >> granule * 4 & 0xf;
}

static size_t wrong_tags_range(const char *p, size_t first, size_t nr)
{
	size_t i, wrong = 0, pages = 0, at = 0;

	for (i = 0; i < nr; i++) {
		size_t w = wrong_tags(p + i * page_size(), first + i);

		if (w && !pages++)
			at = first + i;
		wrong += w;
	}
	if (wrong)
		fprintf(stderr, "# %zu tags wrong in %zu of %zu pages, first page %zu\n",
			wrong, pages, nr, at);
	return wrong;
}

/* Granules that have a tag at all. */
static size_t nonzero_tags(const char *p, size_t nr)
{
	size_t i, found = 0;

	for (i = 0; i < nr * page_size() / GRANULE; i++)
		found += tag_load(p + i * GRANULE) != 0;
	return found;
}

struct memory {
	struct swap_area area;
	size_t nr, len;
	char *p;
};

FIXTURE(mte_tags) {
	struct memory m;
};

FIXTURE_VARIANT(mte_tags) {
	enum area_kind kind;
	bool thp;
};

FIXTURE_VARIANT_ADD(mte_tags, zram_4k) {
	.kind = AREA_ZRAM,
};

FIXTURE_VARIANT_ADD(mte_tags, zram_thp) {
	.kind = AREA_ZRAM,
	.thp = true,
};

FIXTURE_VARIANT_ADD(mte_tags, virtio_4k) {
	.kind = AREA_VIRTIO,
};

/* What only a THP can do. */
FIXTURE(mte_thp) {
	struct memory m;
};

FIXTURE_VARIANT(mte_thp) {
	enum area_kind kind;
};

FIXTURE_VARIANT_ADD(mte_thp, zram_thp) {
	.kind = AREA_ZRAM,
};

FIXTURE_VARIANT_ADD(mte_thp, virtio_thp) {
	.kind = AREA_VIRTIO,
};

static const char *missing(enum area_kind kind, bool thp)
{
	if (mte_missing())
		return mte_missing();
	if (thp && thp_missing())
		return thp_missing();
	return area_missing(kind);
}

/* Nothing to set up for a test that will say what is missing. */
FIXTURE_SETUP(mte_tags)
{
	if (!missing(variant->kind, variant->thp))
		ASSERT_EQ(0, swap_setup());
}

FIXTURE_TEARDOWN(mte_tags)
{
	EXPECT_EQ(0, swap_teardown());
}

FIXTURE_SETUP(mte_thp)
{
	if (!missing(variant->kind, true))
		ASSERT_EQ(0, swap_setup());
}

FIXTURE_TEARDOWN(mte_thp)
{
	EXPECT_EQ(0, swap_teardown());
}

static int tagged(void *p, size_t len)
{
	return mprotect(p, len, PROT_READ | PROT_WRITE | PROT_MTE);
}

/* Tagged memory that is in; the THP is mapped by one PMD. */
static void start(struct __test_metadata *_metadata, struct memory *m,
		  enum area_kind kind, bool thp, size_t area_bytes)
{
	size_t i;

	m->nr = thp ? thp_pages() : 128;
	m->len = m->nr * page_size();
	ASSERT_EQ(0, area_on(&m->area, kind, area_bytes, 10));
	m->p = thp ? thp_alloc(1, OLD) : small_alloc(m->nr, OLD);
	ASSERT_NE(NULL, m->p);
	ASSERT_EQ(0, tagged(m->p, m->len));
	for (i = 0; i < m->nr; i++)
		set_tags(m->p + i * page_size(), i);
	ASSERT_EQ((size_t)0, wrong_tags_range(m->p, 0, m->nr));
	if (thp)
		ASSERT_EQ((long)(m->len >> 10), smaps_kb(m->p, "AnonHugePages"));
}

static void start_out(struct __test_metadata *_metadata, struct memory *m,
		      enum area_kind kind, bool thp)
{
	start(_metadata, m, kind, thp, 16 << 20);
	ASSERT_EQ(0, page_out_sync(m->p, m->len));
}

static void judge(struct __test_metadata *_metadata, struct memory *m)
{
	EXPECT_EQ((size_t)0, wrong_tags_range(m->p, 0, m->nr));
	EXPECT_EQ(-1, check_pages(m->p, m->nr, OLD));
}

TEST_F_TIMEOUT(mte_tags, out_in, SWAP_TIMEOUT)
{
	int i;

	REQUIRE(return, missing(variant->kind, variant->thp));
	start_out(_metadata, &self->m, variant->kind, variant->thp);
	judge(_metadata, &self->m);
	/* Tags that were only read, then some that were set anew. */
	ASSERT_EQ(0, page_out_sync(self->m.p, self->m.len));
	judge(_metadata, &self->m);
	for (i = 0; i < 8; i++)
		tag_store(self->m.p + i * GRANULE, i);
	ASSERT_EQ(0, page_out_sync(self->m.p, self->m.len));
	for (i = 0; i < 8; i++)
		EXPECT_EQ((unsigned int)i, tag_load(self->m.p + i * GRANULE));
	EXPECT_EQ((size_t)0, wrong_tags_range(self->m.p + page_size(), 1, self->m.nr - 1));
}

/* The kernel can save the tags of all its pages, so it leaves as one. */
TEST_F_TIMEOUT(mte_thp, whole, SWAP_TIMEOUT)
{
	const char *why = "";
	long before;
	bool whole;

	REQUIRE(return, missing(variant->kind, true));
	start(_metadata, &self->m, variant->kind, true, 16 << 20);
	before = vmstat("thp_swpout");
	ASSERT_EQ(0, page_out(self->m.p, self->m.len));
	/* The single pages of a split THP can get slots in a row, too. */
	EXPECT_EQ(1, vmstat("thp_swpout") - before);
	whole = thp_out_whole(self->m.p, &why);
	if (!whole)
		TH_LOG("%s", why);
	EXPECT_TRUE(whole);
	judge(_metadata, &self->m);
}

struct worker {
	struct memory *m;
	pthread_barrier_t *barrier;
	pthread_t thread;
	bool reads;
	size_t wrong;
};

static void *work(void *arg)
{
	struct worker *w = arg;
	size_t i, j;

	pthread_barrier_wait(w->barrier);
	for (i = 0; i < w->m->nr; i++) {
		char *page = w->m->p + i * page_size();

		/* A write fault that does not change what others check. */
		if (!w->reads)
			__atomic_fetch_add((__u64 *)page, 0, __ATOMIC_RELAXED);
		/* At once, but a part is enough: all are checked at the end. */
		for (j = 0; j < 4; j++)
			w->wrong += tag_load(page + j * GRANULE) != want_tag(i, j);
	}
	return NULL;
}

TEST_F_TIMEOUT(mte_tags, threads, SWAP_TIMEOUT)
{
	struct worker w[THREADS];
	pthread_barrier_t barrier;
	int i;

	REQUIRE(return, missing(variant->kind, variant->thp));
	start_out(_metadata, &self->m, variant->kind, variant->thp);
	ASSERT_EQ(0, pthread_barrier_init(&barrier, NULL, THREADS));
	for (i = 0; i < THREADS; i++) {
		w[i] = (struct worker){ .m = &self->m, .barrier = &barrier, .reads = i % 2 };
		ASSERT_EQ(0, pthread_create(&w[i].thread, NULL, work, &w[i]));
	}
	for (i = 0; i < THREADS; i++) {
		ASSERT_EQ(0, pthread_join(w[i].thread, NULL));
		EXPECT_EQ((size_t)0, w[i].wrong);
	}
	judge(_metadata, &self->m);
}

TEST_F_TIMEOUT(mte_tags, fork, SWAP_TIMEOUT)
{
	struct memory *m = &self->m;
	pid_t pid;

	REQUIRE(return, missing(variant->kind, variant->thp));
	start_out(_metadata, m, variant->kind, variant->thp);
	pid = fork_child();
	ASSERT_LE(0, pid);
	if (!pid) {
		size_t i;

		if (wrong_tags_range(m->p, 0, m->nr) || check_pages(m->p, m->nr, OLD) != -1)
			_exit(1);
		/* The copy of a page has the tags of the page. */
		for (i = 0; i < m->nr; i++)
			fill_page(m->p + i * page_size(), OLD + 1, i);
		if (wrong_tags_range(m->p, 0, m->nr))
			_exit(2);
		for (i = 0; i < 8; i++)
			tag_store(m->p + i * GRANULE, i);
		_exit(0);
	}
	EXPECT_EQ(0, wait_child(pid));
	judge(_metadata, m);
}

TEST_F_TIMEOUT(mte_tags, mremap, SWAP_TIMEOUT)
{
	struct memory *m = &self->m;
	char *to;

	REQUIRE(return, missing(variant->kind, variant->thp));
	start_out(_metadata, m, variant->kind, variant->thp);
	to = variant->thp ? thp_map(1) : small_map(m->nr);
	ASSERT_NE(NULL, to);
	ASSERT_EQ(to, mremap(m->p, m->len, m->len, MREMAP_MAYMOVE | MREMAP_FIXED, to));
	m->p = to;
	judge(_metadata, m);
}

TEST_F_TIMEOUT(mte_tags, swapoff, SWAP_TIMEOUT)
{
	REQUIRE(return, missing(variant->kind, variant->thp));
	start_out(_metadata, &self->m, variant->kind, variant->thp);
	ASSERT_EQ(0, area_swapoff(&self->m.area));
	EXPECT_EQ(self->m.nr, count_present(self->m.p, self->m.len));
	judge(_metadata, &self->m);
}

/* A quarter is unmapped before it leaves, one more while it is out. */
TEST_F_TIMEOUT(mte_tags, partly_unmapped, SWAP_TIMEOUT)
{
	struct memory *m = &self->m;
	size_t part, len;

	REQUIRE(return, missing(variant->kind, variant->thp));
	start(_metadata, m, variant->kind, variant->thp, 16 << 20);
	part = m->nr / 4;
	len = part * page_size();
	ASSERT_EQ(0, munmap(m->p, len));
	ASSERT_EQ(0, page_out_sync(m->p + len, 3 * len));
	ASSERT_EQ(0, madvise(m->p + len, len, MADV_DONTNEED));
	EXPECT_EQ((size_t)0, wrong_tags_range(m->p + 2 * len, 2 * part, 2 * part));
	EXPECT_EQ(-1, check_range(m->p + 2 * len, 2 * part, 2 * part, OLD));
	/* New memory, new tags. */
	touch_read(m->p + len, len);
	EXPECT_EQ((size_t)0, nonzero_tags(m->p + len, part));
	memset(m->p + len, 1, len);
	EXPECT_EQ((size_t)0, nonzero_tags(m->p + len, part));
}

/* Memory without tags goes to the slots that held some. */
TEST_F_TIMEOUT(mte_tags, slot_reuse, SWAP_TIMEOUT)
{
	struct memory *m = &self->m;
	__u64 *before, *after;
	size_t i, shared = 0;
	/* Just as many slots as one round takes, so that the next has no choice. */
	size_t slots = variant->thp ? 1023 : 128 + 64;
	char *q;

	REQUIRE(return, missing(variant->kind, variant->thp));
	start(_metadata, m, variant->kind, variant->thp, (slots + 1) * page_size());
	before = calloc(m->nr, sizeof(*before));
	after = calloc(m->nr, sizeof(*after));
	ASSERT_NE(NULL, before);
	ASSERT_NE(NULL, after);
	ASSERT_EQ(0, page_out_sync(m->p, m->len));
	ASSERT_EQ(0, pagemap_read(m->p, before, m->nr));
	ASSERT_EQ(0, munmap(m->p, m->len));
	ASSERT_EQ(0, swap_settle());
	q = variant->thp ? thp_alloc(1, OLD) : small_alloc(m->nr, OLD);
	ASSERT_NE(NULL, q);
	ASSERT_EQ(0, page_out_sync(q, m->len));
	ASSERT_EQ(0, pagemap_read(q, after, m->nr));
	for (i = 0; i < m->nr; i++) {
		size_t j;

		for (j = 0; j < m->nr; j++)
			shared += entry_offset(before[i]) == entry_offset(after[j]);
	}
	TH_LOG("%zu of %zu slots used again", shared, m->nr);
	EXPECT_LT((size_t)0, shared);
	EXPECT_EQ(-1, check_pages(q, m->nr, OLD));
	ASSERT_EQ(0, tagged(q, m->len));
	EXPECT_EQ((size_t)0, nonzero_tags(q, m->nr));
	EXPECT_EQ(-1, check_pages(q, m->nr, OLD));
}

static bool shmem_out(void *arg)
{
	struct memory *m = arg;

	madvise(m->p, m->len, MADV_PAGEOUT);
	return !count_present(m->p, m->len);
}

/* Shared memory takes its pages from swap by a way of its own. */
TEST_F_TIMEOUT(mte_tags, memfd, SWAP_TIMEOUT)
{
	struct memory *m = &self->m;
	long before;
	size_t i;
	int fd;

	REQUIRE(return, missing(variant->kind, variant->thp));
	m->nr = 128;
	m->len = m->nr * page_size();
	ASSERT_EQ(0, area_on(&m->area, variant->kind, 16 << 20, 10));
	fd = syscall(__NR_memfd_create, "mte-tags", 0);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, ftruncate(fd, m->len));
	m->p = mmap(NULL, m->len, PROT_READ | PROT_WRITE | PROT_MTE, MAP_SHARED, fd, 0);
	ASSERT_NE(MAP_FAILED, (void *)m->p);
	fill_pages(m->p, m->nr, OLD);
	for (i = 0; i < m->nr; i++)
		set_tags(m->p + i * page_size(), i);
	before = vmstat("pswpout");
	ASSERT_TRUE(wait_on_cpus(shmem_out, m));
	ASSERT_EQ(0, drop_swap_cache());
	EXPECT_LE((long)m->nr, vmstat("pswpout") - before);
	judge(_metadata, m);
	close(fd);
}

TEST_HARNESS_MAIN
