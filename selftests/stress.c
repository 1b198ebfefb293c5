// SPDX-License-Identifier: GPL-2.0
/*
 * Stress with a checksum per page: stress [<seconds> [<seed>]].
 *
 * Several processes with several threads each. The threads of a process share
 * one mapping of THPs, cut into parts that do not end where a THP does, so that
 * they split, collapse, swap out and fault each other's THPs. Each thread
 * writes, reads, forks, mprotects, mremaps, and gives MADV_PAGEOUT, DONTNEED,
 * FREE and COLLAPSE to random ranges of its part, and knows for each of its
 * pages what must be in it; every read is checked. Meanwhile swapoff and
 * swapon of a second area go round, and the cgroup is reclaimed from.
 *
 * The seed decides what each thread does, not how they meet.
 */
#include "kselftest_harness.h"
#include "swap_util.h"

#include <pthread.h>
#include <time.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE	25
#endif

#define NR_PROCESSES	2
#define NR_THREADS	3
/* Pages of a thread: no multiple of a THP. */
#define PART		400
#define MAX_RANGE	64

static unsigned int seconds = 2;
static __u64 seed;

/* What is in a page: nothing, the pattern of a version, or (freed) either. */
struct page_state {
	unsigned int version;	/* 0: all zero */
	bool freed;		/* by MADV_FREE and not written since */
};

enum op {
	OP_WRITE,
	OP_READ,
	OP_PAGEOUT,
	OP_DONTNEED,
	OP_FREE,
	OP_PROTECT,
	OP_MREMAP,
	OP_FORK,
	OP_COLLAPSE,
	NR_OPS,
};

static const char * const op_names[NR_OPS] = {
	"write", "read", "pageout", "dontneed", "free", "mprotect", "mremap",
	"fork", "collapse",
};

/* In 256: how often a thread does what. */
static const int op_weights[NR_OPS] = { 60, 56, 60, 8, 14, 18, 14, 6, 20 };

struct control {
	int stop;
	int failed;
	long ops[NR_OPS];
};

struct part {
	struct control *control;
	struct page_state state[PART];
	char *p;		/* its pages */
	char *scratch;		/* where mremap moves them for a while */
	__u64 rnd;
	__u64 id;		/* no two parts have the same content */
	unsigned int version;
	pthread_t thread;
	char history[8][48];
	unsigned int done;
};

FIXTURE(stress) {
	struct swap_area stays;
	struct swap_area leaves;
	struct control *control;
};

FIXTURE_SETUP(stress)
{
	ASSERT_EQ(0, swap_setup());
	self->control = mmap(NULL, sizeof(*self->control),
			     PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->control);
}

FIXTURE_TEARDOWN(stress)
{
	EXPECT_EQ(0, swap_teardown());
	munmap(self->control, sizeof(*self->control));
}

static __u64 content(const struct part *part, unsigned int version)
{
	return part->id << 32 | version;
}

static void fail(struct part *part, const char *at, size_t i, const char *who)
{
	struct page_state *s = &part->state[i];
	__u64 entry = pagemap_get(at);
	unsigned int k;

	__atomic_store_n(&part->control->failed, 1, __ATOMIC_RELAXED);
	note("WRONG DATA (%s), part %llx, version %u%s, pagemap %llx, seed %llu",
	     who, part->id, s->version, s->freed ? " or freed" : "", entry,
	     seed);
	note("%s", page_wrong(at, content(part, s->version), i));
	for (k = part->done > 8 ? part->done - 8 : 0; k < part->done; k++)
		note("  before: %s", part->history[k % 8]);
}

/* Is what is @at right for page @i of the part? */
static bool page_right(struct part *part, const char *at, size_t i)
{
	struct page_state *s = &part->state[i];

	if (s->version && check_page(at, content(part, s->version), i))
		return true;
	/* A freed page may vanish while it is read, hence the second look. */
	return (!s->version || s->freed) && page_is_zero(at);
}

static bool range_right(struct part *part, const char *at, size_t from,
			size_t nr, const char *who)
{
	size_t i;

	for (i = from; i < from + nr; i++, at += page_size()) {
		if (!page_right(part, at, i)) {
			fail(part, at, i, who);
			return false;
		}
	}
	return true;
}

static void write_range(struct part *part, char *at, size_t from, size_t nr)
{
	size_t i;

	for (i = from; i < from + nr; i++, at += page_size()) {
		struct page_state *s = &part->state[i];

		s->version = ++part->version;
		s->freed = false;
		fill_page(at, content(part, s->version), i);
	}
}

/* In the child: all of its parent's part is as it was; then go own ways. */
static int child(struct part *part, size_t from, size_t nr)
{
	size_t size = page_size();

	if (!range_right(part, part->p + from * size, from, nr, "child"))
		return 1;
	/* Versions that the parent does not use, to know who wrote a page. */
	part->version |= 1U << 30;
	write_range(part, part->p + from * size, from, nr);
	madvise(part->p, PART * size, MADV_PAGEOUT);
	return range_right(part, part->p, 0, PART, "child") ? 0 : 1;
}

static bool do_fork(struct part *part, char *at, size_t from, size_t nr)
{
	pid_t pid = fork();
	int ret;

	if (!pid)
		_exit(child(part, from, nr));
	if (pid < 0)
		return true;
	write_range(part, at, from, nr);
	madvise(at, nr * page_size(), MADV_PAGEOUT);
	ret = wait_child(pid);
	if (ret) {
		note("child of part %llx: %d, seed %llu", part->id, ret, seed);
		__atomic_store_n(&part->control->failed, 1, __ATOMIC_RELAXED);
		return false;
	}
	return range_right(part, at, from, nr, "parent");
}

/* To another place and back; nobody else maps anything meanwhile. */
static bool do_mremap(struct part *part, char *at, size_t from, size_t nr)
{
	size_t len = nr * page_size();
	bool right;

	if (mremap(at, len, len, MREMAP_MAYMOVE | MREMAP_FIXED,
		   part->scratch) == MAP_FAILED) {
		note("mremap away: %s", strerror(errno));
		return false;
	}
	if (from % 2)
		madvise(part->scratch, len, MADV_PAGEOUT);
	right = range_right(part, part->scratch, from, nr, "moved");
	if (mremap(part->scratch, len, len, MREMAP_MAYMOVE | MREMAP_FIXED,
		   at) == MAP_FAILED) {
		note("mremap back: %s", strerror(errno));
		return false;
	}
	if (mmap(part->scratch, len, PROT_NONE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1,
		 0) == MAP_FAILED)
		return false;
	return right;
}

static bool do_protect(struct part *part, char *at, size_t from, size_t nr)
{
	size_t len = nr * page_size();
	bool right = true;

	if (mprotect(at, len, from % 2 ? PROT_READ : PROT_NONE)) {
		note("mprotect: %s", strerror(errno));
		return false;
	}
	madvise(at, len, MADV_PAGEOUT);
	if (from % 2)
		right = range_right(part, at, from, nr, "read only");
	if (mprotect(at, len, PROT_READ | PROT_WRITE)) {
		note("mprotect back: %s", strerror(errno));
		return false;
	}
	return right;
}

static bool do_op(struct part *part, enum op op, size_t from, size_t nr)
{
	char *at = part->p + from * page_size();
	size_t len = nr * page_size();
	size_t i;

	switch (op) {
	case OP_WRITE:
		write_range(part, at, from, nr);
		return true;
	case OP_READ:
		return range_right(part, at, from, nr, "read");
	case OP_PAGEOUT:
		madvise(at, len, MADV_PAGEOUT);
		return true;
	case OP_DONTNEED:
		for (i = from; i < from + nr; i++)
			part->state[i] = (struct page_state) { 0 };
		return !madvise(at, len, MADV_DONTNEED);
	case OP_FREE:
		for (i = from; i < from + nr; i++)
			part->state[i].freed = true;
		return !madvise(at, len, MADV_FREE);
	case OP_PROTECT:
		return do_protect(part, at, from, nr);
	case OP_MREMAP:
		return do_mremap(part, at, from, nr);
	case OP_FORK:
		return do_fork(part, at, from, nr);
	case OP_COLLAPSE:
		/* Since 6.1; no matter whether it comes about. */
		madvise(at, len, MADV_COLLAPSE);
		return true;
	case NR_OPS:
		break;
	}
	return false;
}

static enum op random_op(__u64 *state)
{
	int r = rnd(state) % 256;
	int op = 0;

	while (op < NR_OPS - 1 && r >= op_weights[op])
		r -= op_weights[op++];
	return op;
}

static void *run_part(void *arg)
{
	struct part *part = arg;
	struct control *control = part->control;
	bool right = true;

	while (right && !__atomic_load_n(&control->stop, __ATOMIC_RELAXED) &&
	       !__atomic_load_n(&control->failed, __ATOMIC_RELAXED)) {
		enum op op = random_op(&part->rnd);
		size_t from = rnd(&part->rnd) % PART;
		size_t nr = 1 + rnd(&part->rnd) % MAX_RANGE;

		/* Now and then one page, now and then everything. */
		if (rnd(&part->rnd) % 8 == 0)
			nr = 1;
		if (rnd(&part->rnd) % 64 == 0)
			from = 0, nr = PART;
		if (nr > PART - from)
			nr = PART - from;
		snprintf(part->history[part->done++ % 8],
			 sizeof(part->history[0]), "%s of %zu pages from %zu",
			 op_names[op], nr, from);
		right = do_op(part, op, from, nr);
		__atomic_add_fetch(&control->ops[op], 1, __ATOMIC_RELAXED);
		if (!right)
			note("%s failed in part %llx, seed %llu", op_names[op],
			     part->id, seed);
	}
	if (right)
		right = range_right(part, part->p, 0, PART, "end");
	if (!right)
		__atomic_store_n(&control->failed, 1, __ATOMIC_RELAXED);
	return right ? part : NULL;
}

/* A process: one mapping, a part of it for each thread. */
static int process(struct control *control, int nr)
{
	size_t pages = NR_THREADS * PART;
	struct part *parts;
	int wrong = 0;
	char *p;
	int i;

	if (thp_size())
		p = thp_map(pages / thp_pages() + 1);
	else
		p = small_map(pages);
	parts = mmap(NULL, NR_THREADS * sizeof(*parts),
		     PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		     0);
	if (!p || parts == MAP_FAILED)
		return 2;
	/*
	 * Its anon_vma comes now, for all of it: a piece that got one only
	 * while mremap had moved it would keep the offset of that place, never
	 * merge again, and mremap takes no range of two VMAs.
	 */
	*p = 0;
	for (i = 0; i < NR_THREADS; i++) {
		struct part *part = &parts[i];

		part->control = control;
		part->p = p + i * PART * page_size();
		part->id = nr * 16 + i + 1;
		part->rnd = seed * 1000 + part->id;
		part->scratch = mmap(NULL, PART * page_size(), PROT_NONE,
				     MAP_PRIVATE | MAP_ANONYMOUS |
				     MAP_NORESERVE, -1, 0);
		if (part->scratch == MAP_FAILED)
			return 2;
	}
	for (i = 0; i < NR_THREADS; i++) {
		if (pthread_create(&parts[i].thread, NULL, run_part, &parts[i]))
			return 2;
	}
	for (i = 0; i < NR_THREADS; i++) {
		void *ret;

		pthread_join(parts[i].thread, &ret);
		wrong |= !ret;
	}
	return wrong;
}

/* The cgroup is reclaimed from, which swaps out without anybody's advice. */
static void reclaim_some(__u64 *state)
{
	char value[32];
	long now;

	snprintf(value, sizeof(value), "%llu", 1 + rnd(state) % (2 << 20));
	if (!memcg_write("memory.reclaim", value))
		return;
	now = memcg_read("memory.current");
	if (now <= 0)
		return;
	snprintf(value, sizeof(value), "%ld", now - now / 8);
	memcg_write("memory.high", value);
	memcg_write("memory.high", "max");
}

static void report(const struct control *control, int swapoffs, int refused)
{
	char line[256];
	int n = 0;
	int i;

	for (i = 0; i < NR_OPS; i++)
		n += snprintf(line + n, sizeof(line) - n, " %s %ld",
			      op_names[i], control->ops[i]);
	note("swapoffs %d, refused %d;%s", swapoffs, refused, line);
}

TEST_F_TIMEOUT(stress, checksums, 24 * 3600)
{
	static const enum area_kind kinds[] = {
		AREA_ZRAM, AREA_BRD, AREA_VIRTIO,
	};
	__u64 end, next_report, state = seed;
	int swapoffs = 0, refused = 0;
	pid_t pids[NR_PROCESSES];
	int i;

	REQUIRE(return, area_missing(AREA_ZRAM));
	note("stress: %u seconds, seed %llu", seconds, seed);
	/* khugepaged takes part here. */
	set_file("/sys/kernel/mm/transparent_hugepage/khugepaged/max_ptes_none",
		 "511");
	set_file("/sys/kernel/mm/transparent_hugepage/khugepaged/max_ptes_swap",
		 "64");
	set_file("/sys/kernel/mm/transparent_hugepage/khugepaged/scan_sleep_millisecs",
		 "50");
	ASSERT_EQ(0, area_on(&self->stays, AREA_ZRAM, 48 << 20, 1));
	for (i = 0; i < NR_PROCESSES; i++) {
		pids[i] = fork_child();
		ASSERT_LE(0, pids[i]);
		if (!pids[i])
			_exit(process(self->control, i));
	}

	end = now_ms() + seconds * 1000ULL;
	next_report = now_ms() + 10000;
	while (now_ms() < end && !self->control->failed) {
		enum area_kind kind = kinds[rnd(&state) % 3];
		struct timespec pause = {
			.tv_nsec = rnd(&state) % 200 * 1000000,
		};

		if (!self->leaves.on && !area_missing(kind))
			ASSERT_EQ(0, area_on(&self->leaves, kind, 8 << 20,
					     rnd(&state) % 3));
		/* Not to wait for anything: load for the area to take. */
		nanosleep(&pause, NULL);
		reclaim_some(&state);
		if (!area_swapoff(&self->leaves)) {
			ASSERT_EQ(0, area_release(&self->leaves));
			swapoffs++;
		} else {
			ASSERT_TRUE(errno == ENOMEM || errno == EINTR) {
				TH_LOG("swapoff: %s", strerror(errno));
			}
			refused++;
		}
		if (now_ms() >= next_report) {
			report(self->control, swapoffs, refused);
			next_report += 10000;
		}
	}
	__atomic_store_n(&self->control->stop, 1, __ATOMIC_RELAXED);
	for (i = 0; i < NR_PROCESSES; i++)
		EXPECT_EQ(0, wait_child(pids[i]));
	EXPECT_EQ(0, self->control->failed);
	EXPECT_LE(1, swapoffs);
	report(self->control, swapoffs, refused);
	if (self->leaves.on)
		EXPECT_EQ(0, area_off(&self->leaves));
	EXPECT_EQ(0, area_off_no_leak(&self->stays));
}

int main(int argc, char **argv)
{
	seed = now_ms() ^ (__u64)time(NULL) << 20;
	if (argc > 1)
		seconds = strtoul(argv[1], NULL, 0);
	if (argc > 2)
		seed = strtoull(argv[2], NULL, 0);
	/* The newer harness has options of its own, for the rest. */
	return test_harness_run(1, argv);
}
