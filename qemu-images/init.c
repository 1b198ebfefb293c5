// SPDX-License-Identifier: GPL-2.0
/*
 * PID 1 of the test guests: runs the programs of /tests one by one with a time
 * limit each, copies their output to the console and to the virtio-serial port
 * "thp.result", checks that each leaves the system as it found it, and ends
 * the machine.
 *
 * Kernel parameters: thp.run=<slug,slug...> (default: all of /tests, sorted),
 * thp.limit=<s per program>, thp.total=<s>, thp.arg.<slug>=<a+b>,
 * thp.env.NAME=<value>, thp.end=reboot|poweroff.
 *
 * Records on the port, one a line:
 *   plan <n> <slug>...         the programs that will run
 *   start <slug>               a program starts
 *   | <text>                   one line of its output
 *   at <s.mmm>                 when the result line that follows was printed
 *   tick <slug> <s>            PID 1 lives, though the program says nothing
 *   end <slug> exit=<n>|signal=<n>|timeout seconds=<s.mmm>
 *   check <name> ok|<problem>  what <name> (a slug, or kmemleak) left behind
 *   abort <reason>             the rest of the plan will not run
 *   verdict done               the last record; without it nothing counts
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <stdnoreturn.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define PRINTF_LIKE(a, b)	format(printf, a, b)
#define __printf(a, b)		__attribute__((PRINTF_LIKE(a, b)))
#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

#define MAX_TESTS	128
#define MAX_WORDS	256
#define MAX_SETTINGS	512
#define BLANK		" \t\n"
#define LINE_SIZE	1024
#define TICK_MS		2000
#define CG_ROOT		"/sys/fs/cgroup"
#define THP_ENABLED	"/sys/kernel/mm/transparent_hugepage/enabled"
#define KSM_RUN		"/sys/kernel/mm/ksm/run"
#define KMEMLEAK	"/sys/kernel/debug/kmemleak"
/* kmemleak reports only what was allocated at least 5 s before a scan. */
#define KMEMLEAK_AGE_MS	5500

/* A writable file of sysfs or procfs and what it said at boot. */
struct setting {
	char path[128];
	char value[160];
};

static struct setting settings[MAX_SETTINGS];
static int nr_settings;
static char *words[MAX_WORDS];
static int nr_words;
static const char *tests[MAX_TESTS];
static int nr_tests;
static char mounts_at_boot[8192];
static int port = -1;
static int kmsg = -1;
static bool stuck;

static long long now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000LL + ts.tv_nsec / 1000000;
}

static void sleep_ms(int ms)
{
	poll(NULL, 0, ms);
}

static void write_all(int fd, const char *buf, size_t len)
{
	ssize_t n;

	while (len) {
		n = write(fd, buf, len);
		if (n < 0 && (errno == EINTR || errno == EAGAIN)) {
			sleep_ms(1);
			continue;
		}
		if (n <= 0)
			return;
		buf += n;
		len -= n;
	}
}

/* One record to the port. */
static __printf(1, 2) void record(const char *fmt, ...)
{
	char line[LINE_SIZE + 64];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(line, sizeof(line) - 1, fmt, ap);
	va_end(ap);
	if (n > (int)sizeof(line) - 2)
		n = sizeof(line) - 2;
	line[n++] = '\n';
	if (port >= 0)
		write_all(port, line, n);
}

/*
 * One line to the kernel log, and so to the console in order with what the
 * kernel says: this is how a splat is traced to the test that was running.
 */
static __printf(1, 2) void klog(const char *fmt, ...)
{
	char line[LINE_SIZE];
	va_list ap;
	int n = snprintf(line, sizeof(line), "<4>thp: ");

	va_start(ap, fmt);
	vsnprintf(line + n, sizeof(line) - n - 1, fmt, ap);
	va_end(ap);
	strcat(line, "\n");
	write_all(kmsg >= 0 ? kmsg : STDOUT_FILENO, line, strlen(line));
}

static const char *word_value(const char *name)
{
	size_t len = strlen(name);
	const char *found = NULL;
	int i;

	for (i = 0; i < nr_words; i++)
		if (!strncmp(words[i], name, len) && words[i][len] == '=')
			found = words[i] + len + 1;
	return found;
}

static noreturn void end_machine(void)
{
	const char *end = word_value("thp.end");

	sync();
	tcdrain(STDOUT_FILENO);
	reboot(end && !strcmp(end, "reboot") ? RB_AUTOBOOT : RB_POWER_OFF);
	reboot(RB_AUTOBOOT);
	for (;;)
		pause();
}

static noreturn __printf(1, 2) void fatal(const char *fmt, ...)
{
	char text[LINE_SIZE - 32];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	klog("PID 1 gives up: %s", text);
	record("abort init: %s", text);
	end_machine();
}

/* Read a small file; returns false if that fails. Trailing blanks go. */
static bool read_file(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	ssize_t n = 0;

	buf[0] = '\0';
	if (fd < 0)
		return false;
	while (len < size - 1) {
		n = read(fd, buf + len, size - 1 - len);
		if (n <= 0)
			break;
		len += n;
	}
	close(fd);
	buf[len] = '\0';
	while (len && strchr(BLANK, buf[len - 1]))
		buf[--len] = '\0';
	return n >= 0;
}

static bool write_file(const char *path, const char *value)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool ok;

	if (fd < 0)
		return false;
	ok = write(fd, value, strlen(value)) >= 0;
	close(fd);
	return ok;
}

typedef bool (*entry_fn)(const char *dir, const char *name, void *arg);

/* Run fn for each entry of a folder until it returns true. */
static bool each_entry(const char *dir, entry_fn fn, void *arg)
{
	DIR *d = opendir(dir);
	struct dirent *de;
	bool found = false;

	if (!d)
		return false;
	while (!found && (de = readdir(d)))
		if (de->d_name[0] != '.')
			found = fn(dir, de->d_name, arg);
	closedir(d);
	return found;
}

/*
 * What a test left behind: problems are gathered in one text, which becomes
 * the check record of that test.
 */
struct problems {
	char text[LINE_SIZE - 128];
};

static __printf(2, 3) void problem(struct problems *p, const char *fmt, ...)
{
	size_t len = strlen(p->text);
	va_list ap;

	if (len && len < sizeof(p->text) - 3) {
		strcat(p->text, "; ");
		len += 2;
	}
	va_start(ap, fmt);
	vsnprintf(p->text + len, sizeof(p->text) - len, fmt, ap);
	va_end(ap);
}

static void check_record(const char *name, const struct problems *p)
{
	record("check %s %s", name, p->text[0] ? p->text : "ok");
	if (p->text[0])
		klog("check %s: %s", name, p->text);
}

/* Settings: every file that can be read and written, as at boot. */

static void remember_file(const char *path)
{
	struct setting *s = &settings[nr_settings];
	struct stat st;

	if (nr_settings == MAX_SETTINGS || stat(path, &st) || !S_ISREG(st.st_mode) ||
	    (st.st_mode & 0600) != 0600)
		return;
	snprintf(s->path, sizeof(s->path), "%s", path);
	if (read_file(path, s->value, sizeof(s->value)))
		nr_settings++;
}

static bool remember_entry(const char *dir, const char *name, void *depth)
{
	char path[512];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	if (lstat(path, &st))
		return false;
	if (S_ISREG(st.st_mode))
		remember_file(path);
	else if (S_ISDIR(st.st_mode) && depth)
		each_entry(path, remember_entry, NULL);
	return false;
}

static void settings_remember(void)
{
	static const char * const dirs[] = {
		"/sys/kernel/mm/transparent_hugepage", "/sys/kernel/mm/ksm",
		"/sys/kernel/mm/swap", "/sys/kernel/mm/lru_gen",
	};
	static const char * const files[] = {
		"/proc/sys/vm/page-cluster", "/proc/sys/vm/swappiness",
		"/proc/sys/vm/overcommit_memory", "/proc/sys/vm/unprivileged_userfaultfd",
		"/sys/module/zswap/parameters/enabled",
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(dirs); i++)
		each_entry(dirs[i], remember_entry, (void *)1);
	for (i = 0; i < ARRAY_SIZE(files); i++)
		remember_file(files[i]);
}

/* The kernel turns THP off at boot where it finds less than 512 MiB. */
static void thp_enable(void)
{
	char text[64];

	if (read_file(THP_ENABLED, text, sizeof(text)) && strstr(text, "[never]"))
		write_file(THP_ENABLED, "madvise");
}

/*
 * No disk of the guest turns. Said once, the tests need not say it to the
 * kernel and take it back each: that waits for RCU grace periods.
 */
static bool disk_entry(const char *dir, const char *name, void *arg)
{
	char path[512];

	(void)arg;
	snprintf(path, sizeof(path), "%s/%s/queue/rotational", dir, name);
	if (!strncmp(name, "vd", 2))
		write_file(path, "0");
	return false;
}

/* In "always [madvise] never" the value is the word in brackets. */
static const char *chosen(char *value)
{
	char *open = strchr(value, '['), *close = open ? strchr(open, ']') : NULL;

	if (!close)
		return value;
	*close = '\0';
	return open + 1;
}

static bool setting_differs(const struct setting *s, char *now, size_t size)
{
	return read_file(s->path, now, size) && strcmp(now, s->value);
}

static void settings_restore(struct problems *p)
{
	char now[160], was[160];
	bool ksm = false;
	int i;

	for (i = 0; i < nr_settings; i++) {
		if (!setting_differs(&settings[i], now, sizeof(now)))
			continue;
		snprintf(was, sizeof(was), "%s", settings[i].value);
		problem(p, "%s is '%s', was '%s'", settings[i].path, chosen(now), chosen(was));
		ksm |= !!strstr(settings[i].path, "/ksm/");
	}
	/* KSM takes most settings only while no page is shared. */
	if (ksm)
		write_file(KSM_RUN, "2");
	for (i = 0; i < nr_settings; i++) {
		if (!setting_differs(&settings[i], now, sizeof(now)))
			continue;
		snprintf(was, sizeof(was), "%s", settings[i].value);
		if (!write_file(settings[i].path, chosen(was)))
			problem(p, "%s cannot be restored: %s", settings[i].path, strerror(errno));
	}
}

/* Processes. */

struct leftover {
	int count;
	int pid;
	char comm[32];
};

static bool leftover_entry(const char *dir, const char *name, void *arg)
{
	struct leftover *left = arg;
	char path[512], stat_text[512], *close;
	unsigned int flags;
	int pid = atoi(name);
	char state;

	if (pid < 2)
		return false;
	snprintf(path, sizeof(path), "%s/%s/stat", dir, name);
	if (!read_file(path, stat_text, sizeof(stat_text)))
		return false;
	close = strrchr(stat_text, ')');
	if (!close ||
	    sscanf(close + 2, "%c %*d %*d %*d %*d %*d %u", &state, &flags) != 2)
		return false;
	/* PF_KTHREAD and zombies are not ours to end. */
	if (flags & 0x200000 || state == 'Z' || state == 'X')
		return false;
	*close = '\0';
	left->count++;
	left->pid = pid;
	snprintf(left->comm, sizeof(left->comm), "%s", strchr(stat_text, '(') + 1);
	return false;
}

static void reap(void)
{
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

/* Wait until no user process but this one is left; false at the deadline. */
static bool wait_alone(int ms, struct leftover *left)
{
	long long end = now_ms() + ms;

	for (;;) {
		reap();
		memset(left, 0, sizeof(*left));
		each_entry("/proc", leftover_entry, left);
		if (!left->count)
			return true;
		if (now_ms() > end)
			return false;
		sleep_ms(10);
	}
}

/* What cannot be killed is a hang: nothing that follows it can be trusted. */
static void processes_end(struct problems *p, bool expected)
{
	struct leftover left;

	if (wait_alone(expected ? 0 : 1000, &left))
		return;
	if (!expected)
		problem(p, "%d leftover process(es), one is %d (%s)",
			left.count, left.pid, left.comm);
	kill(-1, SIGKILL);
	if (wait_alone(10000, &left))
		return;
	problem(p, "process %d (%s) cannot be killed", left.pid, left.comm);
	write_file("/proc/sysrq-trigger", "t");
	stuck = true;
}

/* Swap areas, zram devices, cgroups, mounts, files in /tmp. */

static void swap_off(struct problems *p)
{
	char text[4096], *line, *save, *space;

	read_file("/proc/swaps", text, sizeof(text));
	line = strtok_r(text, "\n", &save);
	while (line && (line = strtok_r(NULL, "\n", &save))) {
		space = strpbrk(line, " \t\\");
		if (space)
			*space = '\0';
		problem(p, "swap area %s still on", line);
		if (swapoff(line))
			problem(p, "swapoff %s: %s", line, strerror(errno));
	}
}

static bool zram_entry(const char *dir, const char *name, void *arg)
{
	char path[512], size[32];

	if (strncmp(name, "zram", 4))
		return false;
	snprintf(path, sizeof(path), "%s/%s/disksize", dir, name);
	if (read_file(path, size, sizeof(size)) && strcmp(size, "0")) {
		problem(arg, "%s still set up", name);
		snprintf(path, sizeof(path), "%s/%s/reset", dir, name);
		write_file(path, "1");
	}
	/* A device added by a test may stay for the next one: it is empty. */
	return false;
}

static bool cgroup_entry(const char *dir, const char *name, void *arg)
{
	char path[512];
	struct stat st;
	int tries;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	if (lstat(path, &st) || !S_ISDIR(st.st_mode))
		return false;
	if (arg)
		problem(arg, "cgroup %s left over", name);
	each_entry(path, cgroup_entry, NULL);
	for (tries = 0; rmdir(path) && errno == EBUSY && tries < 100; tries++)
		sleep_ms(10);
	return false;
}

static void mounts_undo(struct problems *p)
{
	char text[8192], *line, *save, *dir;

	read_file("/proc/mounts", text, sizeof(text));
	if (!strcmp(text, mounts_at_boot))
		return;
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		if (strstr(mounts_at_boot, line))
			continue;
		strsep(&line, " ");
		dir = strsep(&line, " ");
		problem(p, "%s still mounted", dir);
		umount2(dir, MNT_DETACH);
	}
}

static int tmp_remove(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	return ftw->level ? remove(path) : 0;
}

static void sweep(const char *slug, bool killed)
{
	struct problems p = { "" };

	processes_end(&p, killed);
	if (!stuck) {
		/* A killed program could not tidy up: repair without blame. */
		struct problems scratch = { "" }, *q = killed ? &scratch : &p;

		swap_off(q);
		each_entry("/sys/block", zram_entry, q);
		mounts_undo(q);
		each_entry(CG_ROOT, cgroup_entry, q);
		settings_restore(q);
		nftw("/tmp", tmp_remove, 16, FTW_DEPTH | FTW_PHYS);
	}
	check_record(slug, &p);
}

/* Running one program. */

static void child_exited(int sig)
{
	(void)sig;
}

static noreturn void run_child(const char *slug, int out)
{
	char name[80], path[160], *args, *argv[32];
	sigset_t none;
	int argc = 1;
	const char *value;
	int i;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGCHLD, SIG_DFL);
	setsid();
	dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	dup2(out, STDERR_FILENO);

	for (i = 0; i < nr_words; i++)
		if (!strncmp(words[i], "thp.env.", 8))
			putenv(words[i] + 8);
	snprintf(path, sizeof(path), "/tests/%s", slug);
	snprintf(name, sizeof(name), "thp.arg.%s", slug);
	argv[0] = path;
	value = word_value(name);
	args = strdup(value ? value : "");
	while (argc < 31 && args && *args)
		argv[argc++] = strsep(&args, "+");
	argv[argc] = NULL;
	execv(path, argv);
	dprintf(STDOUT_FILENO, "# cannot run %s: %s\n", path, strerror(errno));
	_exit(127);
}

/* Collects output until a line is whole, then copies it to both channels. */
struct lines {
	char buf[LINE_SIZE];
	size_t len;
	long long start;
};

static void line_flush(struct lines *l)
{
	long long ms = now_ms() - l->start;

	if (!strncmp(l->buf, "ok ", 3) || !strncmp(l->buf, "not ok ", 7))
		record("at %lld.%03lld", ms / 1000, ms % 1000);
	record("| %.*s", (int)l->len, l->buf);
	l->buf[l->len] = '\n';
	write_all(STDOUT_FILENO, l->buf, l->len + 1);
	l->len = 0;
}

/* Read what is there; false if there was nothing. */
static bool output_copy(int fd, struct lines *l)
{
	char buf[4096];
	ssize_t n = read(fd, buf, sizeof(buf)), i;

	for (i = 0; i < n; i++) {
		unsigned char c = buf[i];

		if (c == '\n' || l->len == sizeof(l->buf) - 1)
			line_flush(l);
		if (c == '\n' || c == '\r')
			continue;
		l->buf[l->len++] = c >= ' ' || c == '\t' ? c : '?';
	}
	return n > 0;
}

static void run_test(const char *slug, long limit_ms)
{
	long long start = now_ms(), last_tick = start, ms;
	struct lines lines = { .start = start };
	bool exited = false, killed = false;
	struct timespec tick = { .tv_nsec = 200 * 1000000 };
	sigset_t none;
	int out[2], status = 0;
	pid_t pid;

	if (pipe2(out, O_CLOEXEC | O_NONBLOCK))
		fatal("pipe: %s", strerror(errno));
	klog("start %s", slug);
	record("start %s", slug);
	pid = fork();
	if (pid < 0)
		fatal("fork: %s", strerror(errno));
	if (!pid) {
		fcntl(out[1], F_SETFL, 0);
		run_child(slug, out[1]);
	}
	close(out[1]);
	sigemptyset(&none);

	for (;;) {
		struct pollfd pfd = { .fd = out[0], .events = POLLIN };
		bool more;

		ppoll(&pfd, 1, &tick, &none);
		more = output_copy(out[0], &lines);
		if (!exited)
			exited = waitpid(pid, &status, WNOHANG) == pid;
		/* Something may have come between the read and the exit. */
		if (exited && !more && !output_copy(out[0], &lines))
			break;
		ms = now_ms();
		if (!exited && !killed && ms - start > limit_ms) {
			killed = true;
			klog("%s is over its limit of %ld s: its tasks follow", slug,
			     limit_ms / 1000);
			write_file("/proc/sysrq-trigger", "t");
			/* The harness puts tests into groups of their own. */
			kill(-1, SIGKILL);
		}
		if (killed && ms - start > limit_ms + 30000)
			break;
		if (!more && ms - last_tick >= TICK_MS) {
			record("tick %s %lld", slug, (ms - start) / 1000);
			last_tick = ms;
		}
		/* A program that has closed its output would make poll() return at once. */
		if (!more && !exited && pfd.revents & POLLHUP)
			sleep_ms(10);
	}
	if (lines.len)
		line_flush(&lines);
	close(out[0]);

	ms = now_ms() - start;
	if (killed)
		record("end %s timeout seconds=%lld.%03lld", slug, ms / 1000, ms % 1000);
	else
		record("end %s %s=%d seconds=%lld.%03lld", slug,
		       WIFSIGNALED(status) ? "signal" : "exit",
		       WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
		       ms / 1000, ms % 1000);
	sweep(slug, killed);
}

/* Two scans: an object that changed since the last one is not reported. */
static void kmemleak_check(void)
{
	struct problems p = { "" };
	char line[LINE_SIZE];
	int leaks = 0;
	FILE *f;

	if (access(KMEMLEAK, F_OK))
		return;
	klog("start kmemleak");
	record("start kmemleak");
	sleep_ms(KMEMLEAK_AGE_MS);
	write_file(KMEMLEAK, "scan");
	record("tick kmemleak 1");
	sleep_ms(500);
	write_file(KMEMLEAK, "scan");
	f = fopen(KMEMLEAK, "r");
	if (!f) {
		problem(&p, "cannot read %s: %s", KMEMLEAK, strerror(errno));
	} else {
		while (fgets(line, sizeof(line), f)) {
			line[strcspn(line, "\n")] = '\0';
			leaks += !strncmp(line, "unreferenced object", 19);
			if (leaks <= 32)
				klog("kmemleak: %s", line);
		}
		fclose(f);
	}
	if (leaks)
		problem(&p, "%d unreferenced object(s), see the console log", leaks);
	check_record("kmemleak", &p);
}

/* Setting up. */

static void mount_all(void)
{
	static const struct {
		const char *type, *dir;
		bool needed;
	} mounts[] = {
		{ "proc", "/proc", true }, { "sysfs", "/sys", true },
		{ "devtmpfs", "/dev", true }, { "tmpfs", "/tmp", true },
		{ "cgroup2", CG_ROOT, false }, { "debugfs", "/sys/kernel/debug", false },
	};
	size_t i;
	int fd;

	for (i = 0; i < ARRAY_SIZE(mounts); i++) {
		mkdir(mounts[i].dir, 0755);
		if (mount(mounts[i].type, mounts[i].dir, mounts[i].type, 0, NULL) &&
		    errno != EBUSY && mounts[i].needed)
			fatal("mount %s: %s", mounts[i].dir, strerror(errno));
	}
	fd = open("/dev/console", O_RDWR);
	if (fd >= 0) {
		dup2(fd, STDIN_FILENO);
		dup2(fd, STDOUT_FILENO);
		dup2(fd, STDERR_FILENO);
		if (fd > STDERR_FILENO)
			close(fd);
	}
	kmsg = open("/dev/kmsg", O_WRONLY | O_CLOEXEC);
	write_file(CG_ROOT "/cgroup.subtree_control", "+memory");
	write_file("/proc/sys/kernel/printk", "8");
	read_file("/proc/mounts", mounts_at_boot, sizeof(mounts_at_boot));
}

static bool port_entry(const char *dir, const char *name, void *arg)
{
	char path[512], text[64];

	snprintf(path, sizeof(path), "%s/%s/name", dir, name);
	if (!read_file(path, text, sizeof(text)) || strcmp(text, "thp.result"))
		return false;
	snprintf(arg, 128, "/dev/%.100s", name);
	return true;
}

/* The name of a port comes some time after the device. */
static void port_open(void)
{
	char path[128];
	int tries;

	for (tries = 0; tries < 1000 && port < 0; tries++) {
		if (each_entry("/sys/class/virtio-ports", port_entry, path))
			port = open(path, O_WRONLY | O_CLOEXEC);
		if (port < 0)
			sleep_ms(10);
	}
	if (port < 0)
		fatal("no virtio-serial port named thp.result");
}

static void cmdline_parse(void)
{
	static char text[8192];
	char *word, *save;

	read_file("/proc/cmdline", text, sizeof(text));
	for (word = strtok_r(text, BLANK, &save); word && nr_words < MAX_WORDS;
	     word = strtok_r(NULL, BLANK, &save))
		words[nr_words++] = word;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char * const *)a, *(const char * const *)b);
}

static bool test_entry(const char *dir, const char *name, void *arg)
{
	(void)dir;
	(void)arg;
	if (nr_tests < MAX_TESTS)
		tests[nr_tests++] = strdup(name);
	return false;
}

static void plan_make(void)
{
	const char *run = word_value("thp.run");
	char plan[MAX_TESTS * 8] = "", *list, *slug;
	int i;

	if (run) {
		list = strdup(run);
		while (list && nr_tests < MAX_TESTS && (slug = strsep(&list, ",")))
			if (*slug)
				tests[nr_tests++] = slug;
	} else {
		each_entry("/tests", test_entry, NULL);
		qsort(tests, nr_tests, sizeof(tests[0]), by_name);
	}
	for (i = 0; i < nr_tests; i++) {
		size_t len = strlen(plan);

		snprintf(plan + len, sizeof(plan) - len, " %s", tests[i]);
	}
	record("plan %d%s", nr_tests, plan);
}

static long seconds_word(const char *name, long otherwise)
{
	const char *value = word_value(name);
	long seconds = value ? strtol(value, NULL, 10) : 0;

	return seconds > 0 ? seconds : otherwise;
}

int main(void)
{
	struct sigaction sa = { .sa_handler = child_exited };
	sigset_t chld;
	long long end;
	long limit;
	int i;

	umask(022);
	mount_all();
	cmdline_parse();
	/* SIGCHLD only ever interrupts the ppoll() in run_test(). */
	sigaction(SIGCHLD, &sa, NULL);
	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	sigprocmask(SIG_BLOCK, &chld, NULL);
	setenv("PATH", "/tests", 1);
	setenv("HOME", "/", 1);
	setenv("TMPDIR", "/tmp", 1);

	port_open();
	thp_enable();
	each_entry("/sys/block", disk_entry, NULL);
	settings_remember();
	plan_make();
	limit = seconds_word("thp.limit", 60) * 1000;
	end = now_ms() + seconds_word("thp.total", 3600) * 1000;
	for (i = 0; i < nr_tests && !stuck; i++) {
		if (now_ms() > end) {
			record("abort total limit reached before %s", tests[i]);
			break;
		}
		run_test(tests[i], limit);
	}
	if (stuck)
		record("abort stuck: a process cannot be killed");
	else
		kmemleak_check();
	/* The judge looks for this line to know that the console log is whole. */
	klog("end of run");
	sync();
	tcdrain(STDOUT_FILENO);
	record("verdict done");
	end_machine();
}
