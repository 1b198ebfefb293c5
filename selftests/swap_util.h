/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Common part of the swap selftests: swap areas on zram, ram disks and virtio
 * disks, THPs filled with patterns, page-out, and the counters they are judged
 * by.
 *
 * Everything that a test changes in the system (an area swapped on, a sysfs
 * file, a cgroup) is written to an undo list that lives in memory shared with
 * the process that runs the tests. swap_teardown() works it off; since a failed
 * ASSERT ends a test without its teardown on older harnesses, swap_setup() of
 * the next test and the exit of the program do so as well.
 *
 * A test program includes kselftest_harness.h and this file and looks like:
 *
 *	FIXTURE(swpout_example) {
 *		struct swap_area area;
 *	};
 *	FIXTURE_VARIANT(swpout_example) {
 *		enum area_kind kind;
 *	};
 *	FIXTURE_VARIANT_ADD(swpout_example, zram) {
 *		.kind = AREA_ZRAM,
 *	};
 *	FIXTURE_SETUP(swpout_example)
 *	{
 *		ASSERT_EQ(0, swap_setup());
 *	}
 *	FIXTURE_TEARDOWN(swpout_example)
 *	{
 *		EXPECT_EQ(0, swap_teardown());
 *	}
 *	TEST_F_TIMEOUT(swpout_example, thp, SWAP_TIMEOUT)
 *	{
 *		REQUIRE(return, thp_missing());
 *		REQUIRE(return, area_missing(variant->kind));
 *		ASSERT_EQ(0, area_on(&self->area, variant->kind, 48 << 20, 10));
 *		...
 *	}
 *	TEST_HARNESS_MAIN
 *
 * REQUIRE belongs in the test and not in FIXTURE_SETUP: the 5.10 harness runs
 * the test although its setup said SKIP. Where whole programs are skipped on
 * some machine, the setup can leave swap_setup() out when the test will skip.
 */
#ifndef SWAP_UTIL_H
#define SWAP_UTIL_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <linux/types.h>
#include <sys/types.h>

/* A limit per test that an emulated guest with KASAN keeps with ease. */
#define SWAP_TIMEOUT	120
/* Bound of the waits below, in milliseconds. */
#define SWAP_WAIT_MS	30000

/* A line of diagnosis, as the harness prints them. */
#define note(fmt, ...) fprintf(stderr, "# " fmt "\n", ##__VA_ARGS__)

/* Skip the test if @why, one of the *_missing() below, names a reason. */
#define REQUIRE(statement, why) do { \
	const char *__why = (why); \
	if (__why) \
		SKIP(statement, "%s", __why); \
} while (0)

/*
 * Setup and teardown of every test. Setup ends what an earlier test left,
 * sets THP to madvise (with direct compaction for madvise), keeps khugepaged
 * away from the test's pages, turns swap readahead and zswap off, keeps the
 * program's own pages in memory (mlockall of what is mapped now) and moves the
 * test into a cgroup of its own if there is cgroup v2 with memory.
 * Both return 0, or -1 after they printed what went wrong.
 */
int swap_setup(void);
int swap_teardown(void);

/* Sizes and versions. */
size_t page_size(void);
/* Bytes of a PMD-sized THP; 0 if this kernel has no THP. */
size_t thp_size(void);
/* thp_size() in pages. */
size_t thp_pages(void);
void kernel_version(int *major, int *minor);
bool kernel_at_least(int major, int minor);
/* CPUs that are online. */
int online_cpus(void);

/*
 * NULL, or what is missing, ready for REQUIRE: THP, a kind of device, the
 * swap controller (memory.swap.max), per-size THPs with per-size counters.
 */
const char *thp_missing(void);
const char *memcg_missing(void);
const char *mthp_missing(void);

/* Swap areas. */
enum area_kind {
	AREA_ZRAM,	/* hot-added for the test, removed after it */
	AREA_BRD,	/* /dev/ramN: its memory is not given back, stay small */
	AREA_VIRTIO,	/* /dev/vdX, only if blank or used by these tests */
};

struct swap_area {
	char dev[64];		/* /dev/... */
	char sys[80];		/* /sys/block/... */
	enum area_kind kind;
	size_t dev_bytes;	/* size of the device */
	size_t bytes;		/* size of the area, header page included */
	int type;		/* swap type as pagemap shows it; -1: off */
	int prio;
	bool on;
	int undo;		/* for swap_util.c */
};

const char *area_missing(enum area_kind kind);
const char *area_kind_name(enum area_kind kind);
/*
 * Take a free device of @kind, write a swap header for @bytes (header page
 * included) and swap it on with priority @prio (-1: the kernel's choice).
 * Usable pages are @bytes / page_size() - 1. 0, or -1 with errno.
 */
int area_on(struct swap_area *a, enum area_kind kind, size_t bytes, int prio);
/* swapoff and give the device back. 0, or -1 with errno. */
int area_off(struct swap_area *a);
/*
 * As area_off(), for the end of a load test, where a slot may be in use: swapoff
 * brings back what this process has out, and frees what lies in the swap cache
 * only. For a slot without an owner it would look for ever; after SWAP_WAIT_MS it
 * is interrupted. 0, or -1 with errno, EINTR if a slot has leaked.
 */
int area_off_no_leak(struct swap_area *a);

/* The steps of area_on() and area_off(), for tests that need them alone. */
int area_prepare(struct swap_area *a, enum area_kind kind, size_t bytes);
int area_write_header(struct swap_area *a, unsigned int last_page,
		      const unsigned int *bad, unsigned int nr_bad);
int area_swapon(struct swap_area *a, int prio);
/* Also with SWAP_FLAG_DISCARD and the like in @flags. */
int area_swapon_flags(struct swap_area *a, int prio, int flags);
int area_swapoff(struct swap_area *a);
int area_release(struct swap_area *a);

/* From /proc/swaps, in kB; -1 if the area is not on. */
long area_size_kb(const struct swap_area *a);
long area_used_kb(const struct swap_area *a);
/*
 * Up to 6.14 a CPU keeps free slots in caches that count as used: this many
 * pages may hide there. swap_settle() empties the caches, so that the numbers
 * are exact afterwards. 0, or -1 with errno.
 */
long slot_cache_slack(void);
int swap_settle(void);
/*
 * The same after all that was out is freed: a page whose writeback was not done
 * then has kept its slot, in the swap cache.
 */
int swap_settle_freed(void);

/*
 * Memory. thp_alloc() maps @nr THPs (private, anonymous, aligned, a guard page
 * on either side so that the VMA is its own), fills them with the pattern of
 * @seed and makes sure that smaps calls all of them AnonHugePages. NULL with
 * errno ENOMEM after it said how many came. thp_map() maps without touching.
 * small_alloc() does the same with base pages (MADV_NOHUGEPAGE).
 */
void *thp_map(size_t nr);
void *thp_alloc(size_t nr, __u64 seed);
void thp_free(void *p, size_t nr);
void *small_map(size_t nr_pages);
void *small_alloc(size_t nr_pages, __u64 seed);
void small_free(void *p, size_t nr_pages);

/*
 * Patterns: never zero, different in each page of each seed and in each 512
 * bytes of a page, and easy to compress (zram is slow in an emulated guest).
 * Page @index has the same content wherever it is mapped. check_page() is
 * true if it is right; check_pages() gives the index of the first wrong page
 * or -1, and prints what it saw and wanted.
 */
void fill_page(void *page, __u64 seed, size_t index);
bool check_page(const void *page, __u64 seed, size_t index);
void fill_pages(void *p, size_t nr_pages, __u64 seed);
long check_pages(const void *p, size_t nr_pages, __u64 seed);
/* The same for a part: page @first is at @p. */
void fill_range(void *p, size_t first, size_t nr_pages, __u64 seed);
long check_range(const void *p, size_t first, size_t nr_pages, __u64 seed);
bool page_is_zero(const void *page);
/* What is wrong with that page, as text in a static buffer. */
const char *page_wrong(const void *page, __u64 seed, size_t index);

/*
 * MADV_PAGEOUT until pagemap shows a swap entry for every page, within
 * SWAP_WAIT_MS. 0, or -1 with errno ETIMEDOUT after it printed how many stayed.
 * On an asynchronous device (virtio) the pages may still be in the swap cache:
 * drop_swap_cache() gets them out of it (0, or -1 with errno).
 */
int page_out(void *p, size_t len);
/* The same until @nr of the pages are out, for more memory than swap. */
int page_out_nr(void *p, size_t len, size_t nr);
int drop_swap_cache(void);
/* page_out(), and get the range out of the swap cache: the next access reads the device. */
int page_out_sync(void *p, size_t len);

/*
 * The test's cgroup is reclaimed from: @nr pages; where only memory.high can do
 * it, more with each of the caller's @tries. No matter if it cannot.
 */
void reclaim_pages(long nr, unsigned int tries);
/* Read one byte of each page. */
void touch_read(const void *p, size_t len);
/* Pages of the range that pagemap shows as swapped, as present. */
size_t count_swapped(const void *p, size_t len);
size_t count_present(const void *p, size_t len);
/* Pages of the whole system that sit in the swap cache. */
long swap_cached_pages(void);

/* /proc/self/pagemap. */
__u64 pagemap_get(const void *addr);
/* @nr entries from @addr on into @e: 0, or -1 with errno. */
int pagemap_read(const void *addr, __u64 *e, size_t nr);
static inline bool entry_is_present(__u64 e)
{
	return e >> 63 & 1;
}

static inline bool entry_is_swap(__u64 e)
{
	return !entry_is_present(e) && (e >> 62 & 1);
}

static inline bool entry_is_exclusive(__u64 e)
{
	return e >> 56 & 1;
}

static inline bool entry_soft_dirty(__u64 e)
{
	return e >> 55 & 1;
}

static inline bool entry_uffd_wp(__u64 e)
{
	return e >> 57 & 1;
}

static inline int entry_type(__u64 e)
{
	return e & 0x1f;
}

static inline __u64 entry_offset(__u64 e)
{
	return (e & ((1ULL << 55) - 1)) >> 5;
}

static inline __u64 entry_pfn(__u64 e)
{
	return e & ((1ULL << 55) - 1);
}

/*
 * Is the THP at @p out as one unit: all its entries swap entries of one type,
 * with consecutive offsets, the first a multiple of thp_pages()? If not and
 * @why is not NULL, it points to the reason (static buffer).
 */
bool thp_out_whole(const void *p, const char **why);
/* How many of the @nr THPs at @p are out whole. */
size_t count_out_whole(const void *p, size_t nr);

/* Counters. */
long vmstat(const char *name);			/* -1: no such line */
long meminfo_kb(const char *name);		/* -1: no such line */
/* /sys/kernel/mm/transparent_hugepage/hugepages-<bytes/1024>kB/stats/<name> */
long thp_stat(size_t bytes, const char *name);	/* -1: no such file */
/* The field, in kB, of the VMA that @addr lies in: "Swap", "AnonHugePages". */
long smaps_kb(const void *addr, const char *field);
struct faults {
	long min;
	long maj;
};

/* Of the calling thread. */
struct faults faults_now(void);

/* The test's own cgroup. memcg_path() is NULL if there is none. */
const char *memcg_path(void);
int memcg_write(const char *file, const char *value);
long memcg_read(const char *file);		/* -1: no such file */
long memcg_stat(const char *file, const char *key);

/*
 * Files. write_file() changes a sysfs or sysctl file for good, set_file() until
 * the end of the test. read_str() strips the newline. 0, or -1 with errno.
 */
int write_file(const char *path, const char *value);
int set_file(const char *path, const char *value);
int read_str(const char *path, char *buf, size_t len);
int read_long(const char *path, long *value);

/*
 * True as soon as @cond(@arg) is, false after @ms. @cond is called again and
 * again, with short pauses.
 */
bool wait_for(bool (*cond)(void *arg), void *arg, long ms);

/*
 * wait_for(@cond, @arg, SWAP_WAIT_MS) that asks on one CPU after the other, for
 * conditions that need reclaim: it empties the LRU batches of its own CPU only,
 * and a page in one, be it for the end of its writeback, has a reference. The
 * caller may run on the same CPUs as before when it returns.
 */
bool wait_on_cpus(bool (*cond)(void *arg), void *arg);
__u64 now_ms(void);

/* fork() of a child that does not outlive the test. */
pid_t fork_child(void);
/* Exit code of the child, or 128 + the signal that ended it; -1 on error. */
int wait_child(pid_t pid);

/* Stay on one CPU (the current one), or leave it again. */
int pin_cpu(void);
int unpin_cpu(void);

/* A small random number generator, so that runs repeat by their seed. */
__u64 rnd(__u64 *state);

#endif /* SWAP_UTIL_H */
