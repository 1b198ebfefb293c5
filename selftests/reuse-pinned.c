// SPDX-License-Identifier: GPL-2.0
/*
 * A reference that the kernel took on a page (here: vmsplice() put it into a
 * pipe) stays a reference to the process's page across a swap cycle: what the
 * process writes afterwards shows in the pipe. If the write goes to a copy
 * instead, that data is lost for whoever holds the reference, as it is for
 * O_DIRECT or RDMA.
 */
#include "kselftest_harness.h"
#include "swap_util.h"

#include <fcntl.h>
#include <sys/uio.h>

#define OLD	1
#define NEW	2
/* As many pages as a pipe takes by default. */
#define NR	16

struct memory {
	struct swap_area area;
	size_t nr, len;
	int pipe[2];
	char *p;
};

FIXTURE(reuse_pinned) {
	struct memory m;
};

FIXTURE_VARIANT(reuse_pinned) {
	enum area_kind kind;
	bool thp;
};

FIXTURE_VARIANT_ADD(reuse_pinned, zram_4k) {
	.kind = AREA_ZRAM,
};

FIXTURE_VARIANT_ADD(reuse_pinned, zram_thp) {
	.kind = AREA_ZRAM,
	.thp = true,
};

FIXTURE_VARIANT_ADD(reuse_pinned, virtio_4k) {
	.kind = AREA_VIRTIO,
};

FIXTURE_SETUP(reuse_pinned)
{
	ASSERT_EQ(0, swap_setup());
}

FIXTURE_TEARDOWN(reuse_pinned)
{
	EXPECT_EQ(0, swap_teardown());
}

static const char *missing(enum area_kind kind, bool thp)
{
	if (thp && thp_missing())
		return thp_missing();
	return area_missing(kind);
}

/* Write, out, read, reference, out. */
static void start(struct __test_metadata *_metadata, struct memory *m,
		  enum area_kind kind, bool thp)
{
	struct iovec iov;

	m->nr = thp ? thp_pages() : NR;
	m->len = m->nr * page_size();
	ASSERT_EQ(0, pipe(m->pipe));
	ASSERT_EQ(0, area_on(&m->area, kind, 16 << 20, 10));
	m->p = thp ? thp_alloc(1, OLD) : small_alloc(m->nr, OLD);
	ASSERT_NE(NULL, m->p);
	ASSERT_EQ(0, page_out_sync(m->p, m->len));
	EXPECT_EQ(-1, check_pages(m->p, m->nr, OLD));
	iov.iov_base = m->p;
	iov.iov_len = NR * page_size();
	ASSERT_EQ((ssize_t)iov.iov_len, vmsplice(m->pipe[1], &iov, 1, 0));
	if (smaps_kb(m->p, "AnonHugePages") > 0)
		/* A THP with a reference stays, which is fine here. */
		madvise(m->p, m->len, MADV_PAGEOUT);
	else
		ASSERT_EQ(0, page_out(m->p, m->len));
}

/* What does the holder of the reference see? */
static void judge(struct __test_metadata *_metadata, struct memory *m)
{
	char *seen = mmap(NULL, NR * page_size(), PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t got = 0;
	ssize_t n;

	ASSERT_NE(MAP_FAILED, seen);
	while (got < NR * page_size()) {
		n = read(m->pipe[0], seen + got, NR * page_size() - got);
		ASSERT_LT(0, n);
		got += n;
	}
	EXPECT_EQ(-1, check_pages(seen, NR, NEW));
	EXPECT_EQ(-1, check_pages(m->p, m->nr, NEW));
	/* Without the reference they can leave again, and nothing is lost. */
	EXPECT_EQ(0, page_out(m->p, m->len));
	EXPECT_EQ(-1, check_pages(m->p, m->nr, NEW));
}

TEST_F_TIMEOUT(reuse_pinned, write, SWAP_TIMEOUT)
{
	REQUIRE(return, missing(variant->kind, variant->thp));
	start(_metadata, &self->m, variant->kind, variant->thp);
	fill_pages(self->m.p, self->m.nr, NEW);
	judge(_metadata, &self->m);
}

TEST_F_TIMEOUT(reuse_pinned, read_then_write, SWAP_TIMEOUT)
{
	REQUIRE(return, missing(variant->kind, variant->thp));
	start(_metadata, &self->m, variant->kind, variant->thp);
	EXPECT_EQ(-1, check_pages(self->m.p, self->m.nr, OLD));
	fill_pages(self->m.p, self->m.nr, NEW);
	judge(_metadata, &self->m);
}

/* swapoff brings the page back, not a fault. */
TEST_F_TIMEOUT(reuse_pinned, swapoff, SWAP_TIMEOUT)
{
	struct swap_area second;

	REQUIRE(return, missing(variant->kind, variant->thp));
	start(_metadata, &self->m, variant->kind, variant->thp);
	ASSERT_EQ(0, area_swapoff(&self->m.area));
	EXPECT_EQ(self->m.nr, count_present(self->m.p, self->m.len));
	fill_pages(self->m.p, self->m.nr, NEW);
	ASSERT_EQ(0, area_on(&second, variant->kind, 16 << 20, 5));
	judge(_metadata, &self->m);
}

TEST_HARNESS_MAIN
