// SPDX-License-Identifier: GPL-2.0
/*
 * A device with stable writes (checksums, compression) must see a page that
 * does not change while it is written. A page whose writeback still runs when
 * a fault finds it in the swap cache may thus not be mapped writable: a write to
 * it goes to a copy.
 *
 * While a page is paged out, a writer on another CPU writes to it. If the device
 * is still busy with the page after that, and the page table has the same frame as
 * before, the write went to the frame under writeback.
 *
 * The writer then counts up two words of the page as fast as it can, the first
 * word of the page first and the last one second. A copy taken at one moment has
 * two equal counts, or a first one that is ahead by one; in a copy of a page that
 * changed meanwhile the last one is ahead. What the slots of the area hold is read
 * from the device.
 */
#include "kselftest_harness.h"
#include "swap_util.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>

#define MAGIC	0x5ab1e5ab1e5ab1e5ULL
/* Rounds: until so many writes met the page on its way out, or so many in all. */
#define MEETINGS	12
#define ROUNDS		200
/* Rounds before these, to learn how long a page-out takes. */
#define CALIBRATE	8
/* Slots of the area: few, since each round reads all of them. */
#define SLOTS	63

struct memory {
	struct swap_area area;
	__u64 *page;
	char *other;
	bool read_first;
	/*
	 * Shared with the writer: the round, counted from 1, that shall run, the
	 * last one to stop, and the last one that did stop.
	 */
	int run, stop, stopped;
	/*
	 * Looks at "stop" before the writer begins. The delay is counted and not
	 * timed: a clock can tick no faster than jiffies.
	 */
	long delay;
	/* Looks that fit into a round, while these are counted and nothing written. */
	bool calibrate;
	long looks;
	__u64 count;
	/* Frame before page-out; writes under writeback, and those to that frame. */
	__u64 pfn;
	int met, same_frame;
	int inflight, pagemap;
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

/* Does the device still write? */
static bool writes_in_flight(const struct memory *m)
{
	char text[64] = "";
	long reads, writes;

	return pread(m->inflight, text, sizeof(text) - 1, 0) > 0 &&
	       sscanf(text, "%ld %ld", &reads, &writes) == 2 && writes;
}

static __u64 entry_now(const struct memory *m)
{
	__u64 e = 0;
	off_t at = (uintptr_t)m->page / page_size() * sizeof(e);

	return pread(m->pagemap, &e, sizeof(e), at) == sizeof(e) ? e : 0;
}

/* In this order for whoever copies the page. */
static void count_up(struct memory *m)
{
	m->count++;
	__atomic_store_n(m->page, m->count, __ATOMIC_RELEASE);
	__atomic_store_n(m->page + LAST, m->count, __ATOMIC_RELEASE);
}

static void *writer(void *arg)
{
	struct memory *m = arg;
	int round;

	for (round = 1; ; round++) {
		long look = 0;
		__u64 e;

		while (__atomic_load_n(&m->run, __ATOMIC_ACQUIRE) < round) {
			if (__atomic_load_n(&m->stop, __ATOMIC_ACQUIRE) == INT_MAX)
				return NULL;
		}
		while ((m->calibrate || look < m->delay) &&
		       __atomic_load_n(&m->stop, __ATOMIC_ACQUIRE) < round)
			look++;
		if (m->calibrate) {
			m->looks = look;
			__atomic_store_n(&m->stopped, round, __ATOMIC_RELEASE);
			continue;
		}
		if (m->read_first)
			__atomic_load_n(m->page + LAST, __ATOMIC_RELAXED);
		count_up(m);
		if (writes_in_flight(m)) {
			e = entry_now(m);
			m->met += entry_is_present(e);
			m->same_frame += entry_is_present(e) && entry_pfn(e) == m->pfn;
		}
		do {
			count_up(m);
		} while (__atomic_load_n(&m->stop, __ATOMIC_ACQUIRE) < round);
		/* A page in this CPU's batch is not on the LRU, and cannot leave. */
		madvise(m->other, page_size(), MADV_COLD);
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
	return !writes_in_flight(arg);
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
	snprintf(path, sizeof(path), "%s/inflight", m->area.sys);
	m->inflight = open(path, O_RDONLY | O_CLOEXEC);
	m->pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	ASSERT_LE(0, m->inflight);
	ASSERT_LE(0, m->pagemap);
	m->page = small_map(1);
	ASSERT_NE(NULL, m->page);
	m->other = small_alloc(1, 1);
	ASSERT_NE(NULL, m->other);
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
			fprintf(stderr, "# slot %zu: first word %llu, last word %llu\n", i + 1,
				copy[0], copy[LAST]);
		}
	}
	return 0;
}

/*
 * One page-out that the writer comes across; false if anybody hung. If the device
 * writes while madvise() runs, so has the writer to: after a random part of the time
 * that this takes. If the device only begins there, after that.
 */
static bool one_round(struct memory *m, int round)
{
	bool async = m->area.kind == AREA_VIRTIO;

	m->pfn = entry_pfn(entry_now(m));
	if (!async)
		__atomic_store_n(&m->run, round, __ATOMIC_RELEASE);
	madvise(m->page, page_size(), MADV_PAGEOUT);
	if (async)
		__atomic_store_n(&m->run, round, __ATOMIC_RELEASE);
	if (!wait_for(device_idle, m, SWAP_WAIT_MS))
		return false;
	__atomic_store_n(&m->stop, round, __ATOMIC_RELEASE);
	return wait_for(is_stopped, m, SWAP_WAIT_MS);
}

/* How often the writer looks while a page goes out: the mean of some rounds; -1 if it hung. */
static long calibrate(struct memory *m, int *round)
{
	long sum = 0;
	int i;

	m->calibrate = true;
	for (i = 0; i < CALIBRATE; i++) {
		__atomic_store_n(&m->run, ++*round, __ATOMIC_RELEASE);
		madvise(m->page, page_size(), MADV_PAGEOUT);
		__atomic_store_n(&m->stop, *round, __ATOMIC_RELEASE);
		if (!wait_for(is_stopped, m, SWAP_WAIT_MS))
			return -1;
		sum += m->looks;
		m->page[0] = 0;
		madvise(m->other, page_size(), MADV_COLD);
		/* The next round takes each write in flight for its own. */
		if (!wait_for(device_idle, m, SWAP_WAIT_MS))
			return -1;
	}
	m->calibrate = false;
	return sum / CALIBRATE;
}

static void churn(struct __test_metadata *_metadata, struct memory *m)
{
	struct copies c = { 0 };
	pthread_t thread;
	__u64 state = 3;
	__u64 *buf = NULL;
	int round = 0, fd;
	bool right = true;
	long looks;

	fd = open(m->area.dev, O_RDONLY | O_DIRECT | O_CLOEXEC);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, posix_memalign((void **)&buf, page_size(), SLOTS * page_size()));
	ASSERT_EQ(0, pthread_create(&thread, NULL, writer, m));
	looks = calibrate(m, &round);
	ASSERT_LE(0, looks);
	while (right && round < ROUNDS && m->met < MEETINGS && !c.torn) {
		if (m->area.kind != AREA_VIRTIO)
			m->delay = rnd(&state) % (looks + 1);
		right = one_round(m, ++round) &&
			m->page[0] == m->count && m->page[LAST] == m->count &&
			m->page[1] == MAGIC && !look(m, fd, buf, &c);
	}
	__atomic_store_n(&m->stop, INT_MAX, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	close(fd);
	TH_LOG("%d rounds, delay up to %ld looks; %d writes under writeback; %ld copies, %ld torn",
	       round, looks, m->met, c.seen, c.torn);
	/* In memory nothing is lost, and nobody hung. */
	EXPECT_TRUE(right);
	EXPECT_EQ(0, m->same_frame);
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
