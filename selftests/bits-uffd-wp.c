// SPDX-License-Identifier: GPL-2.0
/*
 * A page write-protected by userfaultfd stays so across a swap cycle: also a
 * read fault that could map it writable leaves it protected, and the write
 * after that still traps. The bit can be set and cleared while the page is out,
 * a child does not inherit it, swapoff does not lose it.
 *
 * The traps come as SIGBUS (UFFD_FEATURE_SIGBUS), which needs no second thread;
 * one test takes them as events.
 */
#include "kselftest_harness.h"
#include "swap_util.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#define OLD	0x81
#define NEW	0x92
#define WP	5		/* the page that is protected */
#define OTHER	6		/* one that is not */

struct memory {
	struct swap_area area;
	size_t nr, len;
	int uffd;
	char *p;
	bool written;
};

FIXTURE(bits_uffd_wp) {
	struct memory m;
};

FIXTURE_VARIANT(bits_uffd_wp) {
	enum area_kind kind;
	bool thp;
};

FIXTURE_VARIANT_ADD(bits_uffd_wp, zram_4k) {
	.kind = AREA_ZRAM,
};

FIXTURE_VARIANT_ADD(bits_uffd_wp, zram_thp) {
	.kind = AREA_ZRAM,
	.thp = true,
};

/* Asynchronous: the page comes by the swap cache and its slot is kept. */
FIXTURE_VARIANT_ADD(bits_uffd_wp, virtio_4k) {
	.kind = AREA_VIRTIO,
};

/* A userfaultfd with these features, or -1. */
static int uffd_open(__u64 features)
{
	struct uffdio_api api = { .api = UFFD_API, .features = features };
	int fd = syscall(__NR_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	if (fd >= 0 && ioctl(fd, UFFDIO_API, &api)) {
		close(fd);
		return -1;
	}
	return fd;
}

static const char *missing(enum area_kind kind, bool thp)
{
	int fd = uffd_open(0);

	if (fd < 0)
		return "no userfaultfd (USERFAULTFD)";
	close(fd);
	fd = uffd_open(UFFD_FEATURE_PAGEFAULT_FLAG_WP);
	if (fd < 0)
		return "no write protection by userfaultfd (UFFD_FEATURE_PAGEFAULT_FLAG_WP)";
	close(fd);
	if (thp && thp_missing())
		return thp_missing();
	return area_missing(kind);
}

/* Nothing to set up for a test that will say what is missing. */
FIXTURE_SETUP(bits_uffd_wp)
{
	if (!missing(variant->kind, variant->thp))
		ASSERT_EQ(0, swap_setup());
}

FIXTURE_TEARDOWN(bits_uffd_wp)
{
	EXPECT_EQ(0, swap_teardown());
}

static int protect(struct memory *m, size_t page, size_t nr, bool on)
{
	struct uffdio_writeprotect wp = {
		.range.start = (uintptr_t)m->p + page * page_size(),
		.range.len = nr * page_size(),
		.mode = on ? UFFDIO_WRITEPROTECT_MODE_WP : 0,
	};

	return ioctl(m->uffd, UFFDIO_WRITEPROTECT, &wp);
}

static void start(struct __test_metadata *_metadata, struct memory *m,
		  enum area_kind kind, bool thp, __u64 features)
{
	struct uffdio_register reg = { .mode = UFFDIO_REGISTER_MODE_WP };

	m->nr = thp ? thp_pages() : 64;
	m->len = m->nr * page_size();
	ASSERT_EQ(0, area_on(&m->area, kind, 16 << 20, 10));
	m->p = thp ? thp_alloc(1, OLD) : small_alloc(m->nr, OLD);
	ASSERT_NE(NULL, m->p);
	m->uffd = uffd_open(UFFD_FEATURE_PAGEFAULT_FLAG_WP | features);
	ASSERT_LE(0, m->uffd);
	reg.range.start = (uintptr_t)m->p;
	reg.range.len = m->len;
	ASSERT_EQ(0, ioctl(m->uffd, UFFDIO_REGISTER, &reg));
}

static sigjmp_buf trapped;

static void on_sigbus(int sig)
{
	siglongjmp(trapped, sig);
}

/* Write one byte of the page: does that trap? */
static bool traps(struct memory *m, size_t page)
{
	struct sigaction act = { .sa_handler = on_sigbus }, old;
	char *c = m->p + page * page_size();
	bool trap = true;

	sigaction(SIGBUS, &act, &old);
	if (!sigsetjmp(trapped, 1)) {
		__atomic_store_n(c, __atomic_load_n(c, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
		trap = false;
	}
	sigaction(SIGBUS, &old, NULL);
	return trap;
}

/* As traps(), but the first access is the write. */
static bool write_traps(struct memory *m, size_t page)
{
	struct sigaction act = { .sa_handler = on_sigbus }, old;
	bool trap = true;

	sigaction(SIGBUS, &act, &old);
	if (!sigsetjmp(trapped, 1)) {
		fill_page(m->p + page * page_size(), NEW, page);
		trap = false;
	}
	sigaction(SIGBUS, &old, NULL);
	return trap;
}

static bool bit(struct memory *m, size_t page)
{
	return entry_uffd_wp(pagemap_get(m->p + page * page_size()));
}

/* Protected in memory; 5.10 does not show the bit in pagemap. */
TEST_F_TIMEOUT(bits_uffd_wp, read_in_then_write, SWAP_TIMEOUT)
{
	struct memory *m = &self->m;
	bool shown;

	REQUIRE(return, missing(variant->kind, variant->thp));
	start(_metadata, m, variant->kind, variant->thp, UFFD_FEATURE_SIGBUS);
	ASSERT_EQ(0, protect(m, WP, 1, true));
	shown = bit(m, WP);
	ASSERT_EQ(0, page_out_sync(m->p, m->len));
	EXPECT_EQ(shown, bit(m, WP));
	EXPECT_FALSE(bit(m, OTHER));
	touch_read(m->p, m->len);
	EXPECT_EQ(shown, bit(m, WP));
	EXPECT_FALSE(bit(m, OTHER));
	EXPECT_TRUE(traps(m, WP));
	EXPECT_FALSE(traps(m, OTHER));
	EXPECT_EQ(-1, check_pages(m->p, m->nr, OLD));
	/* And no longer than it is asked for. */
	ASSERT_EQ(0, protect(m, WP, 1, false));
	EXPECT_FALSE(write_traps(m, WP));
	EXPECT_TRUE(check_page(m->p + WP * page_size(), NEW, WP));
}

TEST_F_TIMEOUT(bits_uffd_wp, write_in, SWAP_TIMEOUT)
{
	struct memory *m = &self->m;

	REQUIRE(return, missing(variant->kind, variant->thp));
	start(_metadata, m, variant->kind, variant->thp, UFFD_FEATURE_SIGBUS);
	ASSERT_EQ(0, protect(m, WP, 1, true));
	ASSERT_EQ(0, page_out_sync(m->p, m->len));
	EXPECT_TRUE(write_traps(m, WP));
	EXPECT_TRUE(write_traps(m, WP));
	EXPECT_FALSE(write_traps(m, OTHER));
	EXPECT_EQ(-1, check_range(m->p, 0, OTHER, OLD));
	EXPECT_TRUE(check_page(m->p + OTHER * page_size(), NEW, OTHER));
}

/* All of the range, so that a THP stays mapped by its PMD until it goes out. */
TEST_F_TIMEOUT(bits_uffd_wp, whole_range, SWAP_TIMEOUT)
{
	struct memory *m = &self->m;
	size_t i, free_to_write = 0;

	REQUIRE(return, missing(variant->kind, variant->thp));
	start(_metadata, m, variant->kind, variant->thp, UFFD_FEATURE_SIGBUS);
	ASSERT_EQ(0, protect(m, 0, m->nr, true));
	ASSERT_EQ(0, page_out_sync(m->p, m->len));
	touch_read(m->p, m->len);
	for (i = 0; i < m->nr; i++)
		free_to_write += !traps(m, i);
	EXPECT_EQ((size_t)0, free_to_write);
	EXPECT_EQ(-1, check_pages(m->p, m->nr, OLD));
}

TEST_F_TIMEOUT(bits_uffd_wp, protect_while_out, SWAP_TIMEOUT)
{
	struct memory *m = &self->m;

	REQUIRE(return, missing(variant->kind, variant->thp));
	start(_metadata, m, variant->kind, variant->thp, UFFD_FEATURE_SIGBUS);
	ASSERT_EQ(0, page_out_sync(m->p, m->len));
	ASSERT_EQ(0, protect(m, WP, 1, true));
	ASSERT_EQ(0, protect(m, WP + 2, 1, true));
	EXPECT_EQ(m->nr, count_swapped(m->p, m->len));
	EXPECT_TRUE(traps(m, WP));
	EXPECT_TRUE(write_traps(m, WP + 2));
	EXPECT_FALSE(traps(m, OTHER));
	EXPECT_EQ(-1, check_pages(m->p, m->nr, OLD));
}

TEST_F_TIMEOUT(bits_uffd_wp, unprotect_while_out, SWAP_TIMEOUT)
{
	struct memory *m = &self->m;

	REQUIRE(return, missing(variant->kind, variant->thp));
	start(_metadata, m, variant->kind, variant->thp, UFFD_FEATURE_SIGBUS);
	ASSERT_EQ(0, protect(m, 0, m->nr, true));
	ASSERT_EQ(0, page_out_sync(m->p, m->len));
	ASSERT_EQ(0, protect(m, OTHER, 2, false));
	EXPECT_FALSE(traps(m, OTHER));
	EXPECT_FALSE(write_traps(m, OTHER + 1));
	EXPECT_TRUE(traps(m, WP));
	EXPECT_EQ(-1, check_range(m->p, 0, OTHER + 1, OLD));
}

TEST_F_TIMEOUT(bits_uffd_wp, fork, SWAP_TIMEOUT)
{
	struct memory *m = &self->m;
	pid_t pid;

	REQUIRE(return, missing(variant->kind, variant->thp));
	start(_metadata, m, variant->kind, variant->thp, UFFD_FEATURE_SIGBUS);
	ASSERT_EQ(0, protect(m, 0, m->nr, true));
	ASSERT_EQ(0, page_out_sync(m->p, m->len));
	pid = fork_child();
	ASSERT_LE(0, pid);
	if (!pid) {
		if (bit(m, WP) || traps(m, WP) || bit(m, WP))
			_exit(1);
		if (write_traps(m, WP) || write_traps(m, OTHER))
			_exit(2);
		_exit(!check_page(m->p + WP * page_size(), NEW, WP) ||
		      !check_page(m->p + OTHER * page_size(), NEW, OTHER));
	}
	EXPECT_EQ(0, wait_child(pid));
	EXPECT_TRUE(traps(m, WP));
	EXPECT_TRUE(write_traps(m, OTHER));
	EXPECT_EQ(-1, check_pages(m->p, m->nr, OLD));
}

TEST_F_TIMEOUT(bits_uffd_wp, swapoff, SWAP_TIMEOUT)
{
	struct memory *m = &self->m;

	REQUIRE(return, missing(variant->kind, variant->thp));
	start(_metadata, m, variant->kind, variant->thp, UFFD_FEATURE_SIGBUS);
	ASSERT_EQ(0, protect(m, WP, 1, true));
	ASSERT_EQ(0, page_out_sync(m->p, m->len));
	ASSERT_EQ(0, area_swapoff(&m->area));
	EXPECT_EQ(m->nr, count_present(m->p, m->len));
	EXPECT_TRUE(traps(m, WP));
	EXPECT_FALSE(traps(m, OTHER));
	EXPECT_EQ(-1, check_pages(m->p, m->nr, OLD));
}

static void *writer(void *arg)
{
	struct memory *m = arg;

	fill_page(m->p + WP * page_size(), NEW, WP);
	__atomic_store_n(&m->written, true, __ATOMIC_RELEASE);
	return NULL;
}

/* The writer trapped, or was let through. */
static bool trapped_or_written(void *arg)
{
	struct memory *m = arg;
	struct pollfd pfd = { .fd = m->uffd, .events = POLLIN };

	return poll(&pfd, 1, 0) == 1 || __atomic_load_n(&m->written, __ATOMIC_ACQUIRE);
}

TEST_F_TIMEOUT(bits_uffd_wp, event, SWAP_TIMEOUT)
{
	struct memory *m = &self->m;
	struct uffd_msg msg;
	pthread_t thread;

	REQUIRE(return, missing(variant->kind, variant->thp));
	start(_metadata, m, variant->kind, variant->thp, 0);
	ASSERT_EQ(0, protect(m, WP, 1, true));
	ASSERT_EQ(0, page_out_sync(m->p, m->len));
	touch_read(m->p, m->len);
	ASSERT_EQ(0, pthread_create(&thread, NULL, writer, m));
	ASSERT_TRUE(wait_for(trapped_or_written, m, SWAP_WAIT_MS));
	/* Not blocking: EAGAIN if nothing trapped. */
	ASSERT_EQ((ssize_t)sizeof(msg), read(m->uffd, &msg, sizeof(msg)));
	EXPECT_EQ(UFFD_EVENT_PAGEFAULT, msg.event);
	EXPECT_TRUE((msg.arg.pagefault.flags & UFFD_PAGEFAULT_FLAG_WP) != 0);
	EXPECT_EQ((uintptr_t)m->p + WP * page_size(),
		  msg.arg.pagefault.address & ~(page_size() - 1));
	EXPECT_TRUE(check_page(m->p + WP * page_size(), OLD, WP));
	ASSERT_EQ(0, protect(m, WP, 1, false));
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_TRUE(check_page(m->p + WP * page_size(), NEW, WP));
}

TEST_HARNESS_MAIN
