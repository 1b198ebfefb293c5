// SPDX-License-Identifier: GPL-2.0
/*
 * A device with stable writes (checksums, compression) must see a page that
 * does not change while it is written. A page whose writeback still runs when
 * a fault finds it in the swap cache may thus not be mapped writable.
 *
 * A writer on another CPU counts up two words of a page, the first word of the
 * page first and the last one second, as fast as it can while the page is paged
 * out. A copy taken at one moment has two equal counts, or a first one that is
 * ahead by one. A copy of a page that changed meanwhile has a last count that is
 * ahead. What the slots of the area hold is read from the device.
 */
#include "kselftest_harness.h"
#include "swap_util.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>

#define MAGIC	0x5ab1e5ab1e5ab1e5ULL
#define ROUNDS	150
/* Slots of the area: few, since each round reads all of them. */
#define SLOTS	63

struct memory {
	struct swap_area area;
	__u64 *page;
	bool read_first;
	/* Shared with the writer. */
	int run, paused, quit;
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

static void *writer(void *arg)
{
	struct memory *m = arg;
	__u64 *first = m->page, *last = m->page + LAST;

	while (!__atomic_load_n(&m->quit, __ATOMIC_ACQUIRE)) {
		if (!__atomic_load_n(&m->run, __ATOMIC_ACQUIRE)) {
			__atomic_store_n(&m->paused, 1, __ATOMIC_RELEASE);
			sched_yield();
			continue;
		}
		if (m->read_first)
			__atomic_load_n(last, __ATOMIC_RELAXED);
		m->count++;
		/* In this order for whoever copies the page. */
		__atomic_store_n(first, m->count, __ATOMIC_RELEASE);
		__atomic_store_n(last, m->count, __ATOMIC_RELEASE);
	}
	return NULL;
}

static bool is_paused(void *arg)
{
	struct memory *m = arg;

	return __atomic_load_n(&m->paused, __ATOMIC_ACQUIRE);
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

struct grown {
	struct memory *m;
	__u64 from;
};

static bool has_grown(void *arg)
{
	struct grown *g = arg;

	return __atomic_load_n(g->m->page, __ATOMIC_RELAXED) > g->from;
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

static void churn(struct __test_metadata *_metadata, struct memory *m)
{
	struct copies c = { 0 };
	pthread_t thread;
	__u64 *buf = NULL;
	int i, fd;

	fd = open(m->area.dev, O_RDONLY | O_DIRECT | O_CLOEXEC);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, posix_memalign((void **)&buf, page_size(), SLOTS * page_size()));
	ASSERT_EQ(0, pthread_create(&thread, NULL, writer, m));
	for (i = 0; i < ROUNDS && c.torn < 5; i++) {
		struct grown g = { m, m->page[0] };

		__atomic_store_n(&m->paused, 0, __ATOMIC_RELEASE);
		__atomic_store_n(&m->run, 1, __ATOMIC_RELEASE);
		if (!wait_for(has_grown, &g, SWAP_WAIT_MS))
			break;
		madvise(m->page, page_size(), MADV_PAGEOUT);
		g.from = __atomic_load_n(m->page, __ATOMIC_RELAXED) + 100;
		if (!wait_for(has_grown, &g, SWAP_WAIT_MS))
			break;
		__atomic_store_n(&m->run, 0, __ATOMIC_RELEASE);
		if (!wait_for(is_paused, m, SWAP_WAIT_MS) ||
		    !wait_for(device_idle, &m->area, SWAP_WAIT_MS))
			break;
		if (m->page[0] != m->count || m->page[LAST] != m->count ||
		    m->page[1] != MAGIC || look(m, fd, buf, &c))
			break;
	}
	__atomic_store_n(&m->quit, 1, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	close(fd);
	TH_LOG("%d rounds, %ld copies on the device, %ld torn", i, c.seen, c.torn);
	/* In memory nothing is lost. */
	EXPECT_EQ(m->count, m->page[0]);
	EXPECT_EQ(m->count, m->page[LAST]);
	EXPECT_EQ(MAGIC, m->page[1]);
	EXPECT_EQ(0, c.torn);
	if (!c.torn)
		EXPECT_EQ(ROUNDS, i);
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
