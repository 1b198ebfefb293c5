// SPDX-License-Identifier: GPL-2.0
/*
 * What swapping a page out and in costs: bench-swap [MiB] [ns per instruction]
 *
 * Memory is paged out, then each page is read and written. One line per value:
 *	# metric <name> <value>
 *	# floor <name> <value>
 * where the floor of a metric is what the device alone takes for the same data
 * (its copy, fill, compression or compare), by large direct I/O.
 *
 *	swpout-thp swpout-4k swpin-thp swpin-4k		per 4 KiB page
 *	minflt-2m majflt-2m				faults per 2 MiB of THPs
 *	thp-kept					share of THPs that came back as THPs
 *	rewritten-2m					pages per 2 MiB that are written to
 *							swap again though they were only read
 *							(virtio-blk, where the slot is kept)
 *
 * A plain name is measured on zram with same-filled pages; -zram-random with data
 * that does not compress, and -brd on a ram disk. The unit is instructions if the guest
 * runs under -icount shift=1, where one instruction takes 2 ns (the default of
 * the second argument); without that, the numbers mean nothing.
 *
 * Exit: 0 all measured, 1 something could not be measured (it says what).
 */
#include "swap_util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define CHUNK		(1024 * 1024UL)
#define BRD_LIMIT	(48 * CHUNK)

static double ns_per_insn = 2;

static void fail(void)
{
	printf("not ok 1 bench_swap.all.measured\n");
	fflush(stdout);
	exit(1);
}

#define give_up(fmt, ...) do { \
	printf("# could not measure: " fmt "\n", ##__VA_ARGS__); \
	fail(); \
} while (0)

static __u64 now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

/* What goes out, and to where. */
struct target {
	const char *suffix;
	enum area_kind kind;
	bool random;
};

static const struct target targets[] = {
	{ "", AREA_ZRAM, false },
	{ "-zram-random", AREA_ZRAM, true },
	{ "-brd", AREA_BRD, true },
	{ NULL }
};

static void fill_words(void *p, size_t bytes, bool random, __u64 *state)
{
	size_t words = page_size() / sizeof(__u64), i;
	__u64 *w = p;

	for (i = 0; i < bytes / sizeof(*w); i++) {
		if (random)
			w[i] = rnd(state);
		else if (!(i % words))
			w[i] = 0x0101010101010101ULL * (1 + i / words % 255);
		else
			w[i] = w[i - 1];
	}
}

static void print_cost(const char *tag, const char *name, const struct target *t,
		       __u64 ns, size_t bytes)
{
	printf("# %s %s%s %.1f\n", tag, name, t->suffix,
	       ns / ns_per_insn / (bytes / page_size()));
}

static void print_floor(const char *way, const struct target *t, __u64 ns, size_t bytes)
{
	char name[32];

	snprintf(name, sizeof(name), "swp%s-thp", way);
	print_cost("floor", name, t, ns, bytes);
	snprintf(name, sizeof(name), "swp%s-4k", way);
	print_cost("floor", name, t, ns, bytes);
}

/* One pass over the device, in chunks; 0 if it failed. */
static __u64 device_pass(int fd, void *buf, size_t bytes, const struct target *t, bool out)
{
	__u64 ns = 0, state = 1, begin;
	size_t at;
	ssize_t n;

	for (at = 0; at < bytes; at += CHUNK) {
		if (out)
			fill_words(buf, CHUNK, t->random, &state);
		begin = now_ns();
		n = out ? pwrite(fd, buf, CHUNK, at) : pread(fd, buf, CHUNK, at);
		ns += now_ns() - begin;
		if (n != (ssize_t)CHUNK)
			return 0;
	}
	return ns;
}

static void measure_floor(const struct target *t, size_t bytes)
{
	struct swap_area a;
	__u64 out, in;
	void *buf;
	int fd;

	if (area_prepare(&a, t->kind, bytes + CHUNK))
		give_up("no %s of %zu bytes: %s", area_kind_name(t->kind), bytes, strerror(errno));
	fd = open(a.dev, O_RDWR | O_DIRECT | O_CLOEXEC);
	if (fd < 0 || posix_memalign(&buf, CHUNK, CHUNK))
		give_up("%s: %s", a.dev, strerror(errno));
	/* The ram disk takes its memory at the first write: not part of it. */
	if (t->kind == AREA_BRD)
		device_pass(fd, buf, bytes, t, true);
	out = device_pass(fd, buf, bytes, t, true);
	in = device_pass(fd, buf, bytes, t, false);
	if (!out || !in)
		give_up("direct I/O on %s: %s", a.dev, strerror(errno));
	print_floor("out", t, out, bytes);
	print_floor("in", t, in, bytes);
	free(buf);
	/* Blank again, so that it is known as free. */
	buf = calloc(1, CHUNK);
	close(fd);
	fd = open(a.dev, O_WRONLY | O_CLOEXEC);
	if (!buf || fd < 0 || pwrite(fd, buf, CHUNK, 0) != (ssize_t)CHUNK || fsync(fd))
		give_up("%s: %s", a.dev, strerror(errno));
	free(buf);
	close(fd);
	if (area_release(&a))
		give_up("%s stays busy: %s", a.dev, strerror(errno));
}

static char *memory(size_t bytes, bool thp, const struct target *t)
{
	size_t nr = bytes / page_size();
	__u64 state = 2;
	char *p = thp ? thp_map(bytes / thp_size()) : small_map(nr);

	if (!p)
		give_up("mmap of %zu bytes: %s", bytes, strerror(errno));
	fill_words(p, bytes, t->random, &state);
	if (thp && smaps_kb(p, "AnonHugePages") != (long)(bytes >> 10))
		give_up("only %ld of %zu kB are THPs", smaps_kb(p, "AnonHugePages"), bytes >> 10);
	return p;
}

static void measure(const struct target *t, size_t bytes, bool thp)
{
	const char *size = thp ? "thp" : "4k";
	size_t nr = bytes / page_size(), i;
	struct faults a, b;
	struct swap_area area;
	char name[32];
	int tries;
	__u64 ns = 0, begin;
	char *p;

	if (area_on(&area, t->kind, bytes + (t->kind == AREA_ZRAM ? bytes : 8 * CHUNK), 10))
		give_up("no swap on %s: %s", area_kind_name(t->kind), strerror(errno));
	p = memory(bytes, thp, t);
	for (tries = 0; tries < 10 && count_swapped(p, bytes) < nr; tries++) {
		begin = now_ns();
		madvise(p, bytes, MADV_PAGEOUT);
		ns += now_ns() - begin;
	}
	if (count_swapped(p, bytes) < nr)
		give_up("%zu of %zu pages stay in memory", count_present(p, bytes), nr);
	snprintf(name, sizeof(name), "swpout-%s", size);
	print_cost("metric", name, t, ns, bytes);

	a = faults_now();
	a = faults_now();
	begin = now_ns();
	for (i = 0; i < nr; i++) {
		char *c = p + i * page_size();

		__atomic_store_n(c, __atomic_load_n(c, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
	}
	ns = now_ns() - begin;
	b = faults_now();
	snprintf(name, sizeof(name), "swpin-%s", size);
	print_cost("metric", name, t, ns, bytes);
	if (thp && !*t->suffix) {
		double units = bytes / (double)(2UL << 20);

		printf("# metric minflt-2m %.1f\n", (b.min - a.min) / units);
		printf("# metric majflt-2m %.1f\n", (b.maj - a.maj) / units);
		printf("# metric thp-kept %.3f\n",
		       smaps_kb(p, "AnonHugePages") / (double)(bytes >> 10));
	}
	if (thp)
		thp_free(p, bytes / thp_size());
	else
		small_free(p, nr);
	if (area_off(&area))
		give_up("%s stays busy: %s", area.dev, strerror(errno));
}

/* Of an asynchronous device the pages keep their slots when they are read. */
static void measure_rewritten(void)
{
	size_t bytes = 2 * CHUNK, nr = bytes / page_size();
	struct swap_area area;
	long pswpout;
	char *p;

	if (area_on(&area, AREA_VIRTIO, 8 * bytes, 10))
		give_up("no swap on %s: %s", area_kind_name(AREA_VIRTIO), strerror(errno));
	p = small_alloc(nr, 1);
	if (!p || page_out_sync(p, bytes))
		give_up("%zu of %zu pages stay in memory", p ? count_present(p, bytes) : nr, nr);
	pswpout = vmstat("pswpout");
	touch_read(p, bytes);
	if (page_out_sync(p, bytes))
		give_up("%zu of %zu pages stay in memory", count_present(p, bytes), nr);
	printf("# metric rewritten-2m %ld\n", vmstat("pswpout") - pswpout);
	small_free(p, nr);
	if (area_off(&area))
		give_up("%s stays busy: %s", area.dev, strerror(errno));
}

int main(int argc, char **argv)
{
	size_t bytes = 64 * CHUNK;
	const struct target *t;

	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("TAP version 13\n1..1\n");
	if (argc > 1)
		bytes = strtoul(argv[1], NULL, 10) << 20;
	if (argc > 2)
		ns_per_insn = strtod(argv[2], NULL);
	if (ns_per_insn <= 0)
		give_up("'%s' is no number of ns per instruction", argv[2]);
	if (thp_missing())
		give_up("%s", thp_missing());
	bytes -= bytes % thp_size();
	if (!bytes)
		give_up("'%s' is no number of MiB", argv[1]);
	if (swap_setup())
		give_up("the system could not be set up");
	for (t = targets; t->suffix; t++) {
		size_t size = t->kind == AREA_BRD && bytes > BRD_LIMIT ? BRD_LIMIT : bytes;

		if (area_missing(t->kind))
			give_up("%s", area_missing(t->kind));
		measure_floor(t, size);
		measure(t, size, true);
		measure(t, size, false);
	}
	if (!area_missing(AREA_VIRTIO))
		measure_rewritten();
	if (swap_teardown())
		give_up("the system could not be restored");
	printf("ok 1 bench_swap.all.measured\n");
	return 0;
}
