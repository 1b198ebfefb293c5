// SPDX-License-Identifier: GPL-2.0
/*
 * Common part of the swap selftests, see swap_util.h. Messages go to stderr
 * with a leading '#', as the harness writes its own.
 */
#include "swap_util.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT	21
#endif
#ifndef BLKGETSIZE64
#define BLKGETSIZE64	_IOR(0x12, 114, size_t)
#endif
#ifndef RUSAGE_THREAD
#define RUSAGE_THREAD	1
#endif

#define THP_DIR		"/sys/kernel/mm/transparent_hugepage/"
#define VMSTAT		"/proc/vmstat"
#define CGROUP_DIR	"/sys/fs/cgroup"
#define AREA_LABEL	"swap-selftest"
#define MAX_UNDO	64
#define MAX_TYPES	32

enum undo_kind {
	UNDO_NONE,
	UNDO_SWAPOFF,	/* swapoff path, clear type id */
	UNDO_ZRAM,	/* reset and hot_remove zram id */
	UNDO_WRITE,	/* write value to path */
	UNDO_CGROUP,	/* empty and remove the cgroup path */
};

/* Shared between the harness and its tests, so that either can clean up. */
struct shared {
	int nr;
	int kept;		/* of them the settings, set by the first test */
	unsigned int types;	/* swap types in use, one bit each */
	struct {
		enum undo_kind kind;
		int id;
		char path[128];
		char value[128];
	} undo[MAX_UNDO];
};

static struct shared *shared;
static pid_t main_pid;
static cpu_set_t all_cpus;

/* Files */

int write_file(const char *path, const char *value)
{
	size_t len = strlen(value);
	int err = 0;
	int fd;

	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	if (write(fd, value, len) != (ssize_t)len)
		err = errno ? errno : EIO;
	close(fd);
	if (err) {
		errno = err;
		return -1;
	}
	return 0;
}

int read_str(const char *path, char *buf, size_t len)
{
	ssize_t n;
	int fd;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	n = read(fd, buf, len - 1);
	close(fd);
	if (n < 0)
		return -1;
	while (n > 0 && buf[n - 1] == '\n')
		n--;
	buf[n] = '\0';
	return 0;
}

int read_long(const char *path, long *value)
{
	char buf[64];
	char *end;
	long v;

	if (read_str(path, buf, sizeof(buf)))
		return -1;
	if (!strcmp(buf, "max")) {
		*value = __LONG_MAX__;
		return 0;
	}
	errno = 0;
	v = strtol(buf, &end, 10);
	if (errno)
		return -1;
	if (end == buf) {
		errno = EINVAL;
		return -1;
	}
	*value = v;
	return 0;
}

/* The number after @key in a file of lines "key number"; -1 if there is none. */
static long keyed_value(const char *path, const char *key)
{
	size_t len = strlen(key);
	char line[256];
	long v = -1;
	FILE *f;

	f = fopen(path, "re");
	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f)) {
		if (strncmp(line, key, len))
			continue;
		if (line[len] == ' ' || line[len] == ':') {
			v = strtol(line + len + 1, NULL, 10);
			break;
		}
	}
	fclose(f);
	return v;
}

/* Time */

__u64 now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000ULL + ts.tv_nsec / 1000000;
}

bool wait_for(bool (*cond)(void *arg), void *arg, long ms)
{
	__u64 end = now_ms() + ms;
	struct timespec pause = { .tv_nsec = 200000 };

	for (;;) {
		if (cond(arg))
			return true;
		if (now_ms() >= end)
			return false;
		nanosleep(&pause, NULL);
		if (pause.tv_nsec < 10000000)
			pause.tv_nsec *= 2;
	}
}

/* Undo list */

static int undo_add(enum undo_kind kind, int id, const char *path,
		    const char *value)
{
	int i = shared->nr;

	if (i == MAX_UNDO) {
		note("undo list full at %s", path);
		errno = ENOSPC;
		return -1;
	}
	shared->undo[i].id = id;
	snprintf(shared->undo[i].path, sizeof(shared->undo[i].path), "%s",
		 path);
	snprintf(shared->undo[i].value, sizeof(shared->undo[i].value), "%s",
		 value);
	shared->undo[i].kind = kind;
	shared->nr = i + 1;
	return i;
}

static void undo_drop(int i)
{
	shared->undo[i].kind = UNDO_NONE;
	while (shared->nr && shared->undo[shared->nr - 1].kind == UNDO_NONE)
		shared->nr--;
}

/*
 * The kernel's list of writable sysfs values shows the choice in brackets:
 * "always [madvise] never".
 */
static void choice(char *buf)
{
	char *open = strchr(buf, '[');
	char *close = open ? strchr(open, ']') : NULL;

	if (close) {
		*close = '\0';
		memmove(buf, open + 1, strlen(open + 1) + 1);
	}
}

int set_file(const char *path, const char *value)
{
	char old[128];
	int i;

	if (read_str(path, old, sizeof(old)))
		return -1;
	choice(old);
	if (!strcmp(old, value))
		return 0;
	i = undo_add(UNDO_WRITE, 0, path, old);
	if (i < 0)
		return -1;
	if (write_file(path, value)) {
		int err = errno;

		undo_drop(i);
		errno = err;
		return -1;
	}
	return 0;
}

static bool try_swapoff(void *arg)
{
	return !swapoff(arg) || errno == EINVAL || errno == ENOENT;
}

static bool try_hot_remove(void *arg)
{
	return !write_file("/sys/class/zram-control/hot_remove", arg) ||
	       errno == ENODEV;
}

static int zram_remove(int id)
{
	char buf[64];

	/* Gives the memory back also if the removal fails. */
	snprintf(buf, sizeof(buf), "/sys/block/zram%d/reset", id);
	if (write_file(buf, "1") && errno == ENOENT)
		return 0;
	snprintf(buf, sizeof(buf), "%d", id);
	/* Busy as long as somebody (a scan by udev) has the device open. */
	return wait_for(try_hot_remove, buf, SWAP_WAIT_MS) ? 0 : -1;
}

static bool try_cgroup_remove(void *arg)
{
	const char *path = arg;
	char procs[160];
	FILE *f;
	int pid;

	snprintf(procs, sizeof(procs), "%s/cgroup.procs", path);
	f = fopen(procs, "re");
	if (f) {
		while (fscanf(f, "%d", &pid) == 1) {
			if (pid != getpid())
				kill(pid, SIGKILL);
			else
				write_file(CGROUP_DIR "/cgroup.procs", "0");
		}
		fclose(f);
	}
	/* A killed child of ours keeps its place until it is waited for. */
	while (waitpid(-1, NULL, WNOHANG) > 0 && getpid() != main_pid)
		;
	return !rmdir(path) || errno == ENOENT;
}

/* Undo all but the first @keep; the number of things that could not be undone. */
static int undo_to(int keep)
{
	int failed = 0;

	while (shared->nr > keep) {
		int i = shared->nr - 1;
		char *path = shared->undo[i].path;
		bool ok = true;

		switch (shared->undo[i].kind) {
		case UNDO_SWAPOFF:
			ok = wait_for(try_swapoff, path, SWAP_WAIT_MS);
			if (ok)
				shared->types &= ~(1U << shared->undo[i].id);
			break;
		case UNDO_ZRAM:
			ok = !zram_remove(shared->undo[i].id);
			break;
		case UNDO_WRITE:
			ok = !write_file(path, shared->undo[i].value);
			break;
		case UNDO_CGROUP:
			ok = wait_for(try_cgroup_remove, path, SWAP_WAIT_MS);
			break;
		case UNDO_NONE:
			break;
		}
		if (!ok) {
			note("cleanup: cannot undo %s: %s", path,
			     strerror(errno));
			failed++;
		}
		shared->nr = i;
	}
	return failed;
}

static void undo_at_exit(void)
{
	if (getpid() == main_pid)
		undo_to(0);
}

static void __attribute__((constructor)) shared_init(void)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED) {
		perror("# mmap of the undo list");
		_exit(1);
	}
	main_pid = getpid();
	sched_getaffinity(0, sizeof(all_cpus), &all_cpus);
	atexit(undo_at_exit);
}

/* Setup and teardown */

static char cgroup[128];

static int memcg_file(char *path, size_t len, const char *file)
{
	if (!cgroup[0]) {
		errno = ENOENT;
		return -1;
	}
	snprintf(path, len, "%s/%s", cgroup, file);
	return 0;
}

static int memcg_open(const char *file, int flags)
{
	char path[256];

	if (memcg_file(path, sizeof(path), file))
		return -1;
	return open(path, flags | O_CLOEXEC);
}

static int cgroup_enter(void)
{
	char path[160];

	cgroup[0] = '\0';
	if (access(CGROUP_DIR "/cgroup.controllers", F_OK))
		return 0;
	/* Where it is off and cannot be turned on memcg_missing() says so. */
	write_file(CGROUP_DIR "/cgroup.subtree_control", "+memory");
	snprintf(cgroup, sizeof(cgroup), CGROUP_DIR "/swap-test.%d",
		 (int)getpid());
	if (undo_add(UNDO_CGROUP, 0, cgroup, "") < 0)
		return -1;
	if (mkdir(cgroup, 0755) && errno != EEXIST) {
		note("mkdir %s: %s", cgroup, strerror(errno));
		return -1;
	}
	snprintf(path, sizeof(path), "%s/cgroup.procs", cgroup);
	if (write_file(path, "0")) {
		note("%s: %s", path, strerror(errno));
		return -1;
	}
	return 0;
}

/* Set @path for the test; no matter if this kernel has no such file. */
static int set_if_there(const char *path, const char *value)
{
	if (!set_file(path, value) || errno == ENOENT)
		return 0;
	note("cannot write %s to %s: %s", value, path, strerror(errno));
	return -1;
}

static bool swap_is_on(void)
{
	char line[256];
	bool on = false;
	FILE *f;

	f = fopen("/proc/swaps", "re");
	if (!f)
		return false;
	while (fgets(line, sizeof(line), f)) {
		if (line[0] != '/')
			continue;
		note("swap is on: turn it off first: %s", line);
		on = true;
	}
	fclose(f);
	return on;
}

int swap_setup(void)
{
	static const char * const settings[][2] = {
		{ THP_DIR "enabled", "madvise" },
		{ THP_DIR "defrag", "madvise" },
		{ THP_DIR "hugepages-2048kB/enabled", "inherit" },
		{ THP_DIR "khugepaged/max_ptes_none", "0" },
		{ THP_DIR "khugepaged/max_ptes_swap", "0" },
		{ THP_DIR "khugepaged/max_ptes_shared", "0" },
		{ THP_DIR "khugepaged/scan_sleep_millisecs", "3600000" },
		{ "/proc/sys/vm/page-cluster", "0" },
		{ "/sys/module/zswap/parameters/enabled", "N" },
		{ NULL, NULL },
	};
	int i;

	if (shared->nr > shared->kept) {
		note("cleanup after the test before this one");
		undo_to(shared->kept);
	}
	if (swap_is_on())
		return -1;
	shared->types = 0;
	/* They stay until the program ends: to start khugepaged takes a while. */
	for (i = 0; !shared->kept && settings[i][0]; i++) {
		if (set_if_there(settings[i][0], settings[i][1]))
			return -1;
	}
	shared->kept = shared->nr;
	/* Own text, stack and heap shall neither fault nor be swapped. */
	if (mlockall(MCL_CURRENT)) {
		note("mlockall: %s", strerror(errno));
		return -1;
	}
	return cgroup_enter();
}

int swap_teardown(void)
{
	munlockall();
	unpin_cpu();
	return undo_to(shared->kept) ? -1 : 0;
}

/* Sizes and versions */

size_t page_size(void)
{
	static size_t size;

	if (!size)
		size = sysconf(_SC_PAGESIZE);
	return size;
}

size_t thp_size(void)
{
	static long size;

	if (!size && read_long(THP_DIR "hpage_pmd_size", &size))
		size = 0;
	return size;
}

size_t thp_pages(void)
{
	return thp_size() / page_size();
}

void kernel_version(int *major, int *minor)
{
	struct utsname u;

	*major = 0;
	*minor = 0;
	if (!uname(&u))
		sscanf(u.release, "%d.%d", major, minor);
}

bool kernel_at_least(int major, int minor)
{
	int have_major, have_minor;

	kernel_version(&have_major, &have_minor);
	return have_major > major ||
	       (have_major == major && have_minor >= minor);
}

int online_cpus(void)
{
	return sysconf(_SC_NPROCESSORS_ONLN);
}

/* What is missing */

const char *thp_missing(void)
{
	if (!thp_size())
		return "no THP in this kernel: CONFIG_TRANSPARENT_HUGEPAGE";
	if (thp_pages() != 512)
		return "THPs of other than 512 pages: base pages of 4 KiB";
	return NULL;
}

const char *memcg_missing(void)
{
	char path[160];

	if (!cgroup[0])
		return "no cgroup v2 at " CGROUP_DIR;
	snprintf(path, sizeof(path), "%s/memory.max", cgroup);
	if (access(path, F_OK))
		return "no memory controller: CONFIG_MEMCG";
	snprintf(path, sizeof(path), "%s/memory.swap.max", cgroup);
	if (access(path, F_OK))
		return "no memory.swap.max: CONFIG_MEMCG_SWAP (up to 6.0)";
	return NULL;
}

const char *mthp_missing(void)
{
	if (!access(THP_DIR "hugepages-64kB/stats/swpout", F_OK))
		return NULL;
	return "no hugepages-64kB/stats/swpout: kernel before 6.11";
}

/* Swap areas */

/* The header of mkswap, from byte 1024 of the first page on. */
struct swap_header {
	__u32 version;
	__u32 last_page;
	__u32 nr_badpages;
	__u8 uuid[16];
	char volume[16];
	__u32 padding[117];
	__u32 badpages[];
};

#define HEADER_AT	1024

const char *area_kind_name(enum area_kind kind)
{
	switch (kind) {
	case AREA_ZRAM:
		return "zram";
	case AREA_BRD:
		return "brd";
	case AREA_VIRTIO:
		return "virtio";
	}
	return "?";
}

const char *area_missing(enum area_kind kind)
{
	switch (kind) {
	case AREA_ZRAM:
		if (access("/sys/class/zram-control/hot_add", F_OK))
			return "no zram: CONFIG_ZRAM";
		break;
	case AREA_BRD:
		if (access("/dev/ram0", F_OK))
			return "no /dev/ram0: CONFIG_BLK_DEV_RAM";
		break;
	case AREA_VIRTIO:
		if (access("/dev/vda", F_OK))
			return "no /dev/vda: a blank disk on CONFIG_VIRTIO_BLK";
		break;
	}
	return NULL;
}

static int device_bytes(const char *dev, size_t *bytes)
{
	__u64 size = 0;
	int err = 0;
	int fd;

	fd = open(dev, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	if (ioctl(fd, BLKGETSIZE64, &size))
		err = errno;
	close(fd);
	*bytes = size;
	errno = err;
	return err ? -1 : 0;
}

/*
 * May this disk be overwritten? Only if nobody uses it and what is on it is
 * nothing or an area of these tests: somebody may run them on a real machine.
 */
static bool device_is_ours(const char *dev)
{
	static char buf[128 << 10];
	struct swap_header *h = (void *)(buf + HEADER_AT);
	bool ours = true;
	ssize_t n;
	size_t i;
	int fd;

	fd = open(dev, O_RDWR | O_EXCL | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = pread(fd, buf, sizeof(buf), 0);
	close(fd);
	if (n != sizeof(buf))
		return false;
	if (!strcmp(h->volume, AREA_LABEL))
		return true;
	for (i = 0; i < sizeof(buf) && ours; i++)
		ours = !buf[i];
	return ours;
}

/* Is the device on as swap, or is it taken by a prepared area of this test? */
static bool device_is_taken(const char *dev)
{
	int i;

	for (i = 0; i < shared->nr; i++) {
		if (shared->undo[i].kind == UNDO_SWAPOFF &&
		    !strcmp(shared->undo[i].path, dev))
			return true;
	}
	return false;
}

static int zram_add(struct swap_area *a, size_t bytes)
{
	char path[128], size[32];
	long id;

	/* Reading this file adds a device and tells its number. */
	if (read_long("/sys/class/zram-control/hot_add", &id))
		return -1;
	snprintf(a->dev, sizeof(a->dev), "/dev/zram%ld", id);
	snprintf(a->sys, sizeof(a->sys), "/sys/block/zram%ld", id);
	a->undo = undo_add(UNDO_ZRAM, id, a->dev, "");
	if (a->undo < 0)
		return -1;
	snprintf(path, sizeof(path), "%s/disksize", a->sys);
	snprintf(size, sizeof(size), "%zu", bytes);
	if (write_file(path, size))
		return -1;
	a->dev_bytes = bytes;
	return 0;
}

static int disk_find(struct swap_area *a, const char *fmt, int first, int nr,
		     size_t bytes)
{
	char path[128];
	int i;

	errno = ENODEV;
	for (i = first; i < first + nr; i++) {
		snprintf(a->dev, sizeof(a->dev), fmt, i);
		snprintf(a->sys, sizeof(a->sys), "/sys/block/%s", a->dev + 5);
		if (access(a->dev, F_OK) || device_is_taken(a->dev) ||
		    device_bytes(a->dev, &a->dev_bytes))
			continue;
		if (a->dev_bytes < bytes) {
			errno = ENOSPC;
			continue;
		}
		if (!device_is_ours(a->dev)) {
			note("%s is not blank, left alone", a->dev);
			errno = EBUSY;
			continue;
		}
		/* A disk that turns gets no clusters, so no whole THP. */
		snprintf(path, sizeof(path), "%s/queue/rotational", a->sys);
		set_file(path, "0");
		return 0;
	}
	if (!errno)
		errno = ENODEV;
	note("no free %s of %zu bytes: %s", area_kind_name(a->kind), bytes,
	     strerror(errno));
	return -1;
}

int area_prepare(struct swap_area *a, enum area_kind kind, size_t bytes)
{
	memset(a, 0, sizeof(*a));
	a->kind = kind;
	a->type = -1;
	a->undo = -1;
	a->bytes = bytes;
	switch (kind) {
	case AREA_ZRAM:
		return zram_add(a, bytes);
	case AREA_BRD:
		return disk_find(a, "/dev/ram%d", 0, 16, bytes);
	case AREA_VIRTIO:
		return disk_find(a, "/dev/vd%c", 'a', 8, bytes);
	}
	errno = EINVAL;
	return -1;
}

int area_write_header(struct swap_area *a, unsigned int last_page,
		      const unsigned int *bad, unsigned int nr_bad)
{
	size_t size = page_size();
	struct swap_header *h;
	unsigned int i;
	int err = 0;
	char *page;
	int fd;

	page = calloc(1, size);
	if (!page)
		return -1;
	h = (void *)(page + HEADER_AT);
	h->version = 1;
	h->last_page = last_page;
	h->nr_badpages = nr_bad;
	memcpy(h->volume, AREA_LABEL, sizeof(AREA_LABEL));
	for (i = 0; i < nr_bad; i++)
		h->badpages[i] = bad[i];
	memcpy(page + size - 10, "SWAPSPACE2", 10);
	fd = open(a->dev, O_RDWR | O_CLOEXEC);
	if (fd < 0 || pwrite(fd, page, size, 0) != (ssize_t)size || fsync(fd))
		err = errno;
	if (fd >= 0)
		close(fd);
	free(page);
	errno = err;
	return err ? -1 : 0;
}

int area_swapon_flags(struct swap_area *a, int prio, int flags)
{
	int type;
	int i;

	if (prio >= 0)
		flags |= SWAP_FLAG_PREFER | (prio & SWAP_FLAG_PRIO_MASK);
	/* The kernel takes the lowest type that is free. */
	for (type = 0; type < MAX_TYPES - 1; type++) {
		if (!(shared->types & 1U << type))
			break;
	}
	i = undo_add(UNDO_SWAPOFF, type, a->dev, "");
	if (i < 0)
		return -1;
	if (swapon(a->dev, flags)) {
		int err = errno;

		undo_drop(i);
		errno = err;
		return -1;
	}
	shared->types |= 1U << type;
	a->type = type;
	a->prio = prio;
	a->on = true;
	return 0;
}

int area_swapon(struct swap_area *a, int prio)
{
	return area_swapon_flags(a, prio, 0);
}

int area_on(struct swap_area *a, enum area_kind kind, size_t bytes, int prio)
{
	if (area_prepare(a, kind, bytes) ||
	    area_write_header(a, bytes / page_size() - 1, NULL, 0) ||
	    area_swapon(a, prio)) {
		int err = errno;

		note("swap on %s, %zu kB: %s", area_kind_name(kind),
		     bytes >> 10, strerror(err));
		if (a->undo >= 0)
			area_release(a);
		errno = err;
		return -1;
	}
	return 0;
}

int area_swapoff(struct swap_area *a)
{
	int i;

	if (!a->on) {
		errno = EINVAL;
		return -1;
	}
	if (swapoff(a->dev))
		return -1;
	for (i = 0; i < shared->nr; i++) {
		if (shared->undo[i].kind == UNDO_SWAPOFF &&
		    !strcmp(shared->undo[i].path, a->dev)) {
			undo_drop(i);
			break;
		}
	}
	shared->types &= ~(1U << a->type);
	a->type = -1;
	a->on = false;
	return 0;
}

int area_release(struct swap_area *a)
{
	int ret = 0;

	if (a->kind == AREA_ZRAM && a->undo >= 0) {
		ret = zram_remove(shared->undo[a->undo].id);
		if (!ret)
			undo_drop(a->undo);
		a->undo = -1;
	}
	return ret;
}

int area_off(struct swap_area *a)
{
	if (area_swapoff(a)) {
		int err = errno;

		note("swapoff %s: %s", a->dev, strerror(err));
		errno = err;
		return -1;
	}
	return area_release(a);
}

static void on_alarm(int sig)
{
	(void)sig;
}

int area_off_no_leak(struct swap_area *a)
{
	/* No SA_RESTART: the alarm interrupts the system call. */
	struct sigaction act = { .sa_handler = on_alarm }, old;
	int ret, err;

	if (sigaction(SIGALRM, &act, &old))
		return -1;
	alarm(SWAP_WAIT_MS / 1000);
	ret = area_off(a);
	err = errno;
	alarm(0);
	sigaction(SIGALRM, &old, NULL);
	errno = err;
	return ret;
}

/* Column @col (2: size, 3: used) of the area's line in /proc/swaps. */
static long area_column(const struct swap_area *a, int col)
{
	char name[128], type[32];
	char line[256];
	long v[2];
	long ret = -1;
	FILE *f;

	f = fopen("/proc/swaps", "re");
	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%127s %31s %ld %ld", name, type, &v[0],
			   &v[1]) == 4 && !strcmp(name, a->dev))
			ret = v[col - 2];
	}
	fclose(f);
	return ret;
}

long area_size_kb(const struct swap_area *a)
{
	return area_column(a, 2);
}

long area_used_kb(const struct swap_area *a)
{
	return area_column(a, 3);
}

long slot_cache_slack(void)
{
	/* 64 slots to give out and 64 given back, per CPU; gone in 6.15. */
	return kernel_at_least(6, 15) ? 0 : 128L * online_cpus();
}

int swap_settle(void)
{
	struct swap_area a;
	int ret;

	if (!slot_cache_slack())
		return 0;
	/* swapoff, of any area, empties the caches of all CPUs. */
	if (area_prepare(&a, AREA_ZRAM, 16 * page_size()))
		return -1;
	ret = area_write_header(&a, 15, NULL, 0) || area_swapon(&a, 0) ||
	      area_swapoff(&a);
	if (area_release(&a) || ret) {
		note("cannot empty the slot caches: %s", strerror(errno));
		return -1;
	}
	return 0;
}

/* Patterns */

static __u64 mix(__u64 seed, __u64 index)
{
	__u64 x = seed * 0x9e3779b97f4a7c15ULL + index + 1;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	x ^= x >> 31;
	/* Room for the number of the 512 bytes; no word and no byte 0 is zero. */
	return (x & ~0xffffULL) | 1ULL << 63 | 1;
}

#define WORDS	(page_size() / sizeof(__u64))

void fill_page(void *page, __u64 seed, size_t index)
{
	__u64 base = mix(seed, index);
	size_t n = WORDS;
	__u64 *w = page;
	size_t i;

	for (i = 0; i < n; i++)
		w[i] = base + (i >> 6);
}

bool check_page(const void *page, __u64 seed, size_t index)
{
	__u64 base = mix(seed, index);
	const __u64 *w = page;
	size_t n = WORDS;
	size_t i;

	for (i = 0; i < n; i++) {
		if (w[i] != base + (i >> 6))
			return false;
	}
	return true;
}

bool page_is_zero(const void *page)
{
	const __u64 *w = page;
	size_t n = WORDS;
	size_t i;

	for (i = 0; i < n; i++) {
		if (w[i])
			return false;
	}
	return true;
}

const char *page_wrong(const void *page, __u64 seed, size_t index)
{
	static char text[160];
	__u64 base = mix(seed, index);
	const __u64 *w = page;
	size_t i;

	for (i = 0; i < WORDS; i++) {
		__u64 saw = w[i];

		if (saw != base + (i >> 6)) {
			snprintf(text, sizeof(text),
				 "page %zu at %p: byte %zu is %#018llx, want %#018llx",
				 index, page, i * sizeof(*w),
				 saw,
				 (base + (i >> 6)));
			return text;
		}
	}
	snprintf(text, sizeof(text), "page %zu at %p: right now", index, page);
	return text;
}

void fill_range(void *p, size_t first, size_t nr_pages, __u64 seed)
{
	size_t i;

	for (i = 0; i < nr_pages; i++)
		fill_page((char *)p + i * page_size(), seed, first + i);
}

long check_range(const void *p, size_t first, size_t nr_pages, __u64 seed)
{
	size_t i;

	for (i = 0; i < nr_pages; i++) {
		const char *page = (const char *)p + i * page_size();

		if (!check_page(page, seed, first + i)) {
			note("%s", page_wrong(page, seed, first + i));
			return first + i;
		}
	}
	return -1;
}

void fill_pages(void *p, size_t nr_pages, __u64 seed)
{
	fill_range(p, 0, nr_pages, seed);
}

long check_pages(const void *p, size_t nr_pages, __u64 seed)
{
	return check_range(p, 0, nr_pages, seed);
}

/* Memory */

/* @len bytes, aligned to @align, between two guard pages. */
static void *map_guarded(size_t len, size_t align)
{
	size_t page = page_size();
	size_t total = len + align + 2 * page;
	char *base, *p;

	base = mmap(NULL, total, PROT_NONE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED)
		return NULL;
	p = (char *)(((uintptr_t)base + page + align - 1) & ~(align - 1));
	if (p - page > base)
		munmap(base, p - page - base);
	if (p + len + page < base + total)
		munmap(p + len + page, base + total - (p + len + page));
	if (mprotect(p, len, PROT_READ | PROT_WRITE)) {
		munmap(p - page, len + 2 * page);
		return NULL;
	}
	return p;
}

static void unmap_guarded(void *p, size_t len)
{
	munmap((char *)p - page_size(), len + 2 * page_size());
}

void *thp_map(size_t nr)
{
	size_t len = nr * thp_size();
	void *p;

	if (!len) {
		errno = EINVAL;
		return NULL;
	}
	p = map_guarded(len, thp_size());
	if (!p)
		return NULL;
	if (madvise(p, len, MADV_HUGEPAGE)) {
		int err = errno;

		note("MADV_HUGEPAGE: %s", strerror(err));
		unmap_guarded(p, len);
		errno = err;
		return NULL;
	}
	return p;
}

void *thp_alloc(size_t nr, __u64 seed)
{
	size_t len = nr * thp_size();
	long got = 0;
	char *p;
	int try;

	p = thp_map(nr);
	if (!p)
		return NULL;
	for (try = 0; try < 5; try++) {
		size_t i;

		for (i = 0; i < nr; i++)
			memset(p + i * thp_size(), 1, 1);
		got = smaps_kb(p, "AnonHugePages");
		if (got == (long)(len >> 10)) {
			fill_pages(p, nr * thp_pages(), seed);
			return p;
		}
		/* Memory in pieces: put it together and ask again. */
		madvise(p, len, MADV_DONTNEED);
		write_file("/proc/sys/vm/drop_caches", "3");
		write_file("/proc/sys/vm/compact_memory", "1");
	}
	note("only %ld of %zu kB came as THPs, %ld kB of memory available",
	     got, len >> 10, meminfo_kb("MemAvailable"));
	thp_free(p, nr);
	errno = ENOMEM;
	return NULL;
}

void thp_free(void *p, size_t nr)
{
	unmap_guarded(p, nr * thp_size());
}

void *small_map(size_t nr_pages)
{
	void *p = map_guarded(nr_pages * page_size(), page_size());

	/* EINVAL: a kernel without THP has nothing to be kept from. */
	if (p)
		madvise(p, nr_pages * page_size(), MADV_NOHUGEPAGE);
	return p;
}

void *small_alloc(size_t nr_pages, __u64 seed)
{
	void *p = small_map(nr_pages);

	if (p)
		fill_pages(p, nr_pages, seed);
	return p;
}

void small_free(void *p, size_t nr_pages)
{
	unmap_guarded(p, nr_pages * page_size());
}

void touch_read(const void *p, size_t len)
{
	size_t i;

	for (i = 0; i < len; i += page_size())
		asm volatile("" : : "r" (*((const char *)p + i)));
}

/* pagemap */

int pagemap_read(const void *addr, __u64 *e, size_t nr)
{
	off_t at = (uintptr_t)addr / page_size() * sizeof(*e);
	size_t len = nr * sizeof(*e);
	ssize_t n;
	int fd;

	fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		note("/proc/self/pagemap: %s", strerror(errno));
		return -1;
	}
	n = pread(fd, e, len, at);
	close(fd);
	if (n != (ssize_t)len) {
		note("/proc/self/pagemap at %p: %zd of %zu bytes", addr, n,
		     len);
		errno = EIO;
		return -1;
	}
	return 0;
}

__u64 pagemap_get(const void *addr)
{
	__u64 e = 0;

	pagemap_read(addr, &e, 1);
	return e;
}

static size_t count_entries(const void *p, size_t len, bool swap)
{
	size_t left = len / page_size();
	__u64 e[512];
	size_t n = 0;

	while (left) {
		size_t part = left < 512 ? left : 512;
		size_t i;

		if (pagemap_read(p, e, part))
			return 0;
		for (i = 0; i < part; i++)
			n += swap ? entry_is_swap(e[i]) :
				    entry_is_present(e[i]);
		left -= part;
		p = (const char *)p + part * page_size();
	}
	return n;
}

size_t count_swapped(const void *p, size_t len)
{
	return count_entries(p, len, true);
}

size_t count_present(const void *p, size_t len)
{
	return count_entries(p, len, false);
}

bool thp_out_whole(const void *p, const char **why)
{
	static char text[160];
	size_t nr = thp_pages();
	__u64 e[512];
	size_t i;

	text[0] = '\0';
	if (nr > 512 || pagemap_read(p, e, nr))
		snprintf(text, sizeof(text), "no pagemap of %zu pages", nr);
	for (i = 0; i < nr && !text[0]; i++) {
		if (!entry_is_swap(e[i]))
			snprintf(text, sizeof(text), "page %zu is %s", i,
				 entry_is_present(e[i]) ? "present" :
				 "neither swapped nor present");
		else if (!i && entry_offset(e[i]) % nr)
			snprintf(text, sizeof(text),
				 "first offset %llu is no multiple of %zu",
				 entry_offset(e[i]), nr);
		else if (entry_type(e[i]) != entry_type(e[0]) ||
			 entry_offset(e[i]) != entry_offset(e[0]) + i)
			snprintf(text, sizeof(text),
				 "page %zu is at %d:%llu, page 0 at %d:%llu", i,
				 entry_type(e[i]), entry_offset(e[i]),
				 entry_type(e[0]), entry_offset(e[0]));
	}
	if (text[0] && why)
		*why = text;
	return !text[0];
}

size_t count_out_whole(const void *p, size_t nr)
{
	size_t n = 0;
	size_t i;

	for (i = 0; i < nr; i++)
		n += thp_out_whole((const char *)p + i * thp_size(), NULL);
	return n;
}

/* Page-out */

struct range {
	void *p;
	size_t len;
	size_t nr;
	unsigned int tries;
};

struct on_cpus {
	bool (*cond)(void *arg);
	void *arg;
	int cpu;
};

/*
 * munmap() empties the LRU batches of this CPU. So does reclaim, but not where
 * all pages of the cgroup are in batches.
 */
static void drain_lru(void)
{
	void *p = mmap(NULL, page_size(), PROT_NONE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p != MAP_FAILED)
		munmap(p, page_size());
}

/* Ask; if it is not so, go on to the next CPU. */
static bool ask_on_cpu(void *arg)
{
	struct on_cpus *on = arg;
	cpu_set_t one;
	int i;

	drain_lru();
	if (on->cond(on->arg))
		return true;
	for (i = 0; i < CPU_SETSIZE; i++) {
		on->cpu = (on->cpu + 1) % CPU_SETSIZE;
		if (CPU_ISSET(on->cpu, &all_cpus))
			break;
	}
	CPU_ZERO(&one);
	CPU_SET(on->cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
	return false;
}

bool wait_on_cpus(bool (*cond)(void *arg), void *arg)
{
	struct on_cpus on = { .cond = cond, .arg = arg, .cpu = sched_getcpu() };
	cpu_set_t before;
	bool done;

	sched_getaffinity(0, sizeof(before), &before);
	done = wait_for(ask_on_cpu, &on, SWAP_WAIT_MS);
	sched_setaffinity(0, sizeof(before), &before);
	return done;
}

static bool try_page_out(void *arg)
{
	struct range *r = arg;

	return !madvise(r->p, r->len, MADV_PAGEOUT) &&
	       count_swapped(r->p, r->len) >= r->nr;
}

int page_out_nr(void *p, size_t len, size_t nr)
{
	struct range r = { .p = p, .len = len, .nr = nr };

	if (wait_on_cpus(try_page_out, &r))
		return 0;
	note("%zu pages went out, want %zu; %zu stayed", count_swapped(p, len),
	     nr, count_present(p, len));
	errno = ETIMEDOUT;
	return -1;
}

int page_out(void *p, size_t len)
{
	return page_out_nr(p, len, len / page_size());
}

/*
 * Each CPU keeps some of the number to itself, up to a second long. Those are
 * added up first; no matter if they cannot be (one CPU).
 */
long swap_cached_pages(void)
{
	write_file("/proc/sys/vm/stat_refresh", "1");
	return meminfo_kb("SwapCached") * 1024 / (long)page_size();
}

/* A number from a file that is open, or -1. */
static long read_long_at(int fd)
{
	char buf[32];
	ssize_t n = pread(fd, buf, sizeof(buf) - 1, 0);

	if (n <= 0)
		return -1;
	buf[n] = '\0';
	return strtol(buf, NULL, 10);
}

static void write_high(int fd, long bytes)
{
	char value[32];

	snprintf(value, sizeof(value), "%ld", bytes > 0 ? bytes : 0);
	pwrite(fd, bytes == __LONG_MAX__ ? "max" : value, strlen(value), 0);
}

/*
 * Reclaim by memory.high that many bytes below what is in use, once the charges
 * are taken back that the CPUs keep in stock: a page less does that. Nothing is
 * opened, and thus charged, while the limit is low: who charges above it sleeps
 * for up to two seconds on the way back to user space.
 */
static void reclaim_by_high(long bytes)
{
	int high = memcg_open("memory.high", O_WRONLY);
	int current = memcg_open("memory.current", O_RDONLY);
	long before = memcg_read("memory.high");
	long now = read_long_at(current);

	if (high >= 0 && before >= 0 && now >= 0) {
		write_high(high, now - page_size());
		write_high(high, read_long_at(current) - bytes);
		write_high(high, before);
	}
	close(current);
	close(high);
}

/*
 * Pages whose writeback is done leave the swap cache when reclaim looks at
 * them. There is no memory.reclaim before 5.19. Ask for no more than there is,
 * since a reclaim in vain tries again and again; but the pages may not be the
 * first that memory.high takes, so ask for more with each try.
 */
void reclaim_pages(long nr, unsigned int tries)
{
	long bytes = nr * (long)page_size();
	char value[32];

	snprintf(value, sizeof(value), "%ld", bytes);
	if (memcg_write("memory.reclaim", value) && errno != EAGAIN)
		reclaim_by_high(bytes << (tries < 16 ? tries : 16));
}

/*
 * Is a page still being written? The device need not know of it yet. Reclaim
 * that meets such a page can put it on the active list, which memory.high of
 * 5.10 never looks at where the inactive lists are empty.
 */
static bool swap_busy(void)
{
	write_file("/proc/sys/vm/stat_refresh", "1");
	return vmstat("nr_writeback") > 0;
}

static bool try_drop_swap_cache(void *arg)
{
	struct range *all = arg;
	long cached = swap_cached_pages();

	if (cached <= 0)
		return true;
	if (swap_busy())
		return false;
	reclaim_pages(cached, all->tries++);
	return swap_cached_pages() <= 0;
}

int drop_swap_cache(void)
{
	struct range all = { .p = NULL };

	if (wait_on_cpus(try_drop_swap_cache, &all))
		return 0;
	note("%ld pages stay in the swap cache; reclaimed %u times, I/O is %s",
	     swap_cached_pages(), all.tries, swap_busy() ? "going on" : "done");
	errno = ETIMEDOUT;
	return -1;
}

int swap_settle_freed(void)
{
	return drop_swap_cache() || swap_settle() ? -1 : 0;
}

/* Pages of the range that are out and still in the swap cache. */
static long range_cached(const struct range *r)
{
	size_t i, nr = r->len / page_size();
	unsigned char *in;
	long cached = 0;

	in = malloc(nr);
	if (!in || mincore(r->p, r->len, in)) {
		free(in);
		return -1;
	}
	for (i = 0; i < nr; i++)
		cached += in[i] & 1;
	free(in);
	return cached;
}

static bool try_drop_range(void *arg)
{
	struct range *r = arg;
	long cached = range_cached(r);

	if (cached > 0 && !swap_busy())
		reclaim_pages(cached, r->tries++);
	return !range_cached(r);
}

/*
 * Only the range counts: other pages of the test may be in the swap cache and in
 * use.
 */
int page_out_sync(void *p, size_t len)
{
	struct range r = { .p = p, .len = len };

	if (page_out(p, len))
		return -1;
	if (wait_on_cpus(try_drop_range, &r))
		return 0;
	note("%ld of %zu pages stay in the swap cache; reclaimed %u times, I/O is %s",
	     range_cached(&r), len / page_size(), r.tries,
	     swap_busy() ? "going on" : "done");
	errno = ETIMEDOUT;
	return -1;
}

long vmstat(const char *name)
{
	return keyed_value(VMSTAT, name);
}

long meminfo_kb(const char *name)
{
	return keyed_value("/proc/meminfo", name);
}

long thp_stat(size_t bytes, const char *name)
{
	char path[160];
	long v;

	snprintf(path, sizeof(path), THP_DIR "hugepages-%zukB/stats/%s",
		 bytes >> 10, name);
	return read_long(path, &v) ? -1 : v;
}

long smaps_kb(const void *addr, const char *field)
{
	size_t len = strlen(field);
	unsigned long start, end;
	bool inside = false;
	char line[512];
	long v = -1;
	FILE *f;

	f = fopen("/proc/self/smaps", "re");
	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f)) {
		/* Field names begin with a capital, so are no hex numbers. */
		if (sscanf(line, "%lx-%lx ", &start, &end) == 2) {
			inside = (uintptr_t)addr >= start &&
				 (uintptr_t)addr < end;
		} else if (inside && !strncmp(line, field, len) &&
			   line[len] == ':') {
			v = strtol(line + len + 1, NULL, 10);
			break;
		}
	}
	fclose(f);
	return v;
}

struct faults faults_now(void)
{
	struct rusage u = { 0 };

	getrusage(RUSAGE_THREAD, &u);
	return (struct faults){ .min = u.ru_minflt, .maj = u.ru_majflt };
}

/* cgroup */

const char *memcg_path(void)
{
	return cgroup[0] ? cgroup : NULL;
}

int memcg_write(const char *file, const char *value)
{
	char path[256];

	if (memcg_file(path, sizeof(path), file))
		return -1;
	return write_file(path, value);
}

long memcg_read(const char *file)
{
	char path[256];
	long v;

	if (memcg_file(path, sizeof(path), file) || read_long(path, &v))
		return -1;
	return v;
}

long memcg_stat(const char *file, const char *key)
{
	char path[256];

	if (memcg_file(path, sizeof(path), file))
		return -1;
	return keyed_value(path, key);
}

/* Processes and CPUs */

pid_t fork_child(void)
{
	pid_t parent = getpid();
	pid_t pid = fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
	}
	return pid;
}

int wait_child(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return -1;
	}
	if (WIFSIGNALED(status))
		return 128 + WTERMSIG(status);
	return WEXITSTATUS(status);
}

int pin_cpu(void)
{
	int cpu = sched_getcpu();
	cpu_set_t one;

	if (cpu < 0)
		return -1;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	return sched_setaffinity(0, sizeof(one), &one);
}

int unpin_cpu(void)
{
	return sched_setaffinity(0, sizeof(all_cpus), &all_cpus);
}

__u64 rnd(__u64 *state)
{
	__u64 x = *state += 0x9e3779b97f4a7c15ULL;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	return x ^ x >> 31;
}
