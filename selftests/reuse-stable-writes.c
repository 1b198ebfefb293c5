// SPDX-License-Identifier: GPL-2.0
/*
 * A device with stable writes (checksums, compression) must see a page that
 * does not change while it is written. A page whose writeback still runs when
 * a fault finds it in the swap cache may thus not be mapped writable.
 *
 * While the page is paged out, a writer on another CPU waits for a random time
 * and then counts up two words of it as fast as it can, the first word of the page
 * first and the last one second. A copy taken at one moment has two equal counts,
 * or a first one that is ahead by one. A copy of a page that changed meanwhile has
 * a last count that is ahead. What the slots of the area hold is read from the
 * device.
 */
#include "kselftest_harness.h"
#include "swap_util.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <time.h>

#define MAGIC	0x5ab1e5ab1e5ab1e5ULL
/* Rounds: until so many writes met the page on its way out, or so many in all. */
#define MEETINGS	30
#define ROUNDS		600
/* Slots of the area: few, since each round reads all of them. */
#define SLOTS	63

struct memory {
	struct swap_area area;
	__u64 *page;
	bool read_first;
	/*
	 * Shared with the writer: the round, counted from 1, that shall run, the
	 * last one to stop, and the last one that did stop.
	 */
	int run, stop, stopped;
	__u64 delay_ns;
	__u64 count;
};

FIXTURE(reuse_stable_writes) {
	struct memory m;
};

FIXTURE_VARIANT(reuse_stable_writes) {
	enum area_kind kind;
};

FIXTURE_VARIANT_ADD(reuse_stable_writes, zram) {
	.kind = AREA_ZRAM,
};

FIXTURE_VARIANT_ADD(reuse_stable_writes, virtio) {
	.kind = AREA_VIRTIO,
};

FIXTURE_SETUP(reuse_stable_writes)
{
	ASSERT_EQ(0, swap_setup());
}

FIXTURE_TEARDOWN(reuse_stable_writes)
{
	EXPECT_EQ(0, swap_teardown());
}

static const char *missing(enum area_kind kind)
{
	if (online_cpus() < 2)
		return "no second CPU";
	return area_missing(kind);
}

#define LAST	(page_size() / sizeof(__u64) - 1)

static __u64 now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static void *writer(void *arg)
{
	struct memory *m = arg;
	__u64 *first = m->page, *last = m->page + LAST;
	int round;

	for (round = 1; ; round++) {
		__u64 until;

		while (__atomic_load_n(&m->run, __ATOMIC_ACQUIRE) < round) {
			if (__atomic_load_n(&m->stop, __ATOMIC_ACQUIRE) == INT_MAX)
				return NULL;
		}
		until = now_ns() + m->delay_ns;
		while (now_ns() < until)
			;
		if (m->read_first)
			__atomic_load_n(last, __ATOMIC_RELAXED);
		do {
			m->count++;
			/* In this order for whoever copies the page. */
			__atomic_store_n(first, m->count, __ATOMIC_RELEASE);
			__atomic_store_n(last, m->count, __ATOMIC_RELEASE);
		} while (__atomic_load_n(&m->stop, __ATOMIC_ACQUIRE) < round);
		__atomic_store_n(&m->stopped, round, __ATOMIC_RELEASE);
	}
}

static bool is_stopped(void *arg)
{
	struct memory *m = arg;

	return __atomic_load_n(&m->stopped, __ATOMIC_ACQUIRE) == m->stop;
}

static bool device_idle(void *arg)
{
	struct swap_area *a = arg;
	char path[128], text[64];
	long reads, writes;

	snprintf(path, sizeof(path), "%s/inflight", a->sys);
	return !read_str(path, text, sizeof(text)) &&
	       sscanf(text, "%ld %ld", &reads, &writes) == 2 && !reads && !writes;
}

static void start(struct __test_metadata *_metadata, struct memory *m,
		  enum area_kind kind)
{
	char path[128];
	__u64 state = 1;
	size_t i;

	ASSERT_EQ(0, area_prepare(&m->area, kind, (SLOTS + 1) * page_size()));
	snprintf(path, sizeof(path), "%s/queue/stable_writes", m->area.sys);
	ASSERT_EQ(0, set_file(path, "1"));
	ASSERT_EQ(0, area_write_header(&m->area, SLOTS, NULL, 0));
	ASSERT_EQ(0, area_swapon(&m->area, 10));
	m->page = small_map(1);
	ASSERT_NE(NULL, m->page);
	/* Hard to compress, so that writing the page takes its time. */
	for (i = 1; i < LAST; i++)
		m->page[i] = rnd(&state);
	m->page[1] = MAGIC;
	m->page[0] = 0;
	m->page[LAST] = 0;
}

/* Copies of the page on the device; those that changed while it was written. */
struct copies {
	long seen, torn;
};

static int look(const struct memory *m, int fd, __u64 *buf, struct copies *c)
{
	size_t i, len = SLOTS * page_size();

	if (pread(fd, buf, len, page_size()) != (ssize_t)len)
		return -1;
	for (i = 0; i < SLOTS; i++) {
		const __u64 *copy = buf + i * (LAST + 1);

		if (copy[1] != MAGIC || copy[2] != m->page[2])
			continue;
		c->seen++;
		if (copy[0] - copy[LAST] > 1) {
			c->torn++;
			printf("# slot %zu: first word %llu, last word %llu\n", i + 1,
			       copy[0], copy[LAST]);
		}
	}
	return 0;
}

/* One page-out that the writer comes across; false if anybody hung. */
static bool one_round(struct memory *m, int round, __u64 delay_ns)
{
	m->delay_ns = delay_ns;
	__atomic_store_n(&m->run, round, __ATOMIC_RELEASE);
	madvise(m->page, page_size(), MADV_PAGEOUT);
	__atomic_store_n(&m->stop, round, __ATOMIC_RELEASE);
	return wait_for(is_stopped, m, SWAP_WAIT_MS) &&
	       wait_for(device_idle, &m->area, SWAP_WAIT_MS);
}

/* How long it takes to page out and, on an asynchronous device, to write. */
static __u64 page_out_ns(struct memory *m)
{
	__u64 begin = now_ns();

	madvise(m->page, page_size(), MADV_PAGEOUT);
	while (!device_idle(&m->area) && now_ns() - begin < 1000000000ULL)
		;
	return now_ns() - begin;
}

static void churn(struct __test_metadata *_metadata, struct memory *m)
{
	struct copies c = { 0 };
	__u64 state = 3, ns = 0;
	pthread_t thread;
	__u64 *buf = NULL;
	int round = 0, met = 0, fd, i;
	bool right = true;

	fd = open(m->area.dev, O_RDONLY | O_DIRECT | O_CLOEXEC);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, posix_memalign((void **)&buf, page_size(), SLOTS * page_size()));
	for (i = 0; i < 8; i++) {
		__u64 once = page_out_ns(m);

		m->page[0] = 0;
		if (!ns || once < ns)
			ns = once;
	}
	ASSERT_EQ(0, pthread_create(&thread, NULL, writer, m));
	while (right && round < ROUNDS && met < MEETINGS && c.torn < 5) {
		long out = vmstat("pswpout"), in = vmstat("pswpin");

		right = one_round(m, ++round, rnd(&state) % (ns + 1)) &&
			m->page[0] == m->count && m->page[LAST] == m->count &&
			m->page[1] == MAGIC && !look(m, fd, buf, &c);
		/* Written, and back without being read. */
		met += vmstat("pswpout") > out && vmstat("pswpin") == in;
	}
	__atomic_store_n(&m->stop, INT_MAX, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	close(fd);
	TH_LOG("%d rounds, %d writes met the page, %ld copies on the device, %ld torn",
	       round, met, c.seen, c.torn);
	/* In memory nothing is lost, and nobody hung. */
	EXPECT_TRUE(right);
	EXPECT_EQ(0, c.torn);
}

TEST_F_TIMEOUT(reuse_stable_writes, write, SWAP_TIMEOUT)
{
	REQUIRE(return, missing(variant->kind));
	start(_metadata, &self->m, variant->kind);
	churn(_metadata, &self->m);
}

TEST_F_TIMEOUT(reuse_stable_writes, read_then_write, SWAP_TIMEOUT)
{
	REQUIRE(return, missing(variant->kind));
	start(_metadata, &self->m, variant->kind);
	self->m.read_first = true;
	churn(_metadata, &self->m);
}

TEST_HARNESS_MAIN
