//go:build linux && cgo

package isolate

// The other side of engine.ForkServer. It is written in C, because it runs before
// anything else does: a process with one thread can divide itself, and the runtime of
// Go has several.

/*
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SYS_landlock_restrict_self
#define SYS_landlock_restrict_self 446
#endif

enum {
	CONTROL = 3,     // descriptor of the socket
	MOST_FILES = 16, // that come with a request
	MOST_CHILDREN = 4096,
	HIGH = 100,      // descriptors from here on are in nobody's way
};

static struct child {
	pid_t pid;
	int reported; // as ended
} children[MOST_CHILDREN];

static void child_ended(int sig) { (void)sig; }

static void report(char kind, int32_t pid, int32_t status, size_t size) {
	char msg[9] = {kind};
	memcpy(msg + 1, &pid, 4);
	memcpy(msg + 5, &status, 4);
	while (send(CONTROL, msg, size, MSG_NOSIGNAL) < 0)
		if (errno != EINTR)
			_exit(1); // the server has ended
}

// report_ends reports the processes that have ended. They stay zombies, so that their numbers do
// not become those of others while they may still be killed.
static void report_ends(void) {
	for (int i = 0; i < MOST_CHILDREN; i++) {
		siginfo_t info;
		info.si_pid = 0;
		if (!children[i].pid || children[i].reported || waitid(P_PID, children[i].pid, &info, WEXITED | WNOHANG | WNOWAIT) || !info.si_pid)
			continue;
		children[i].reported = 1;
		int status = info.si_code == CLD_EXITED ? (info.si_status & 0xff) << 8 : info.si_status;
		report('X', children[i].pid, status, 9);
	}
}

static void forget(pid_t pid) {
	for (int i = 0; i < MOST_CHILDREN; i++)
		if (children[i].pid == pid && children[i].reported) {
			waitpid(pid, NULL, 0);
			children[i].pid = 0;
			return;
		}
}

// become makes the new process what it is to be, or ends it. files are, in this order:
// the pipe to wait for, standard error, inherited ones, and maybe a ruleset.
static void become(pid_t server, const char *dir, int *files, int n, int inherited) {
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != server)
		_exit(1);
	// Out of the way of each other.
	for (int i = 0; i < n; i++) {
		int high = fcntl(files[i], F_DUPFD_CLOEXEC, HIGH);
		if (high < 0)
			_exit(1);
		close(files[i]);
		files[i] = high;
	}
	close(CONTROL);
	if (dup2(files[1], 2) < 0)
		_exit(1);
	for (int i = 0; i < inherited; i++)
		if (dup2(files[2 + i], 3 + i) < 0)
			_exit(1);
	char go;
	ssize_t got;
	while ((got = read(files[0], &go, 1)) < 0 && errno == EINTR)
		;
	if (got != 1)
		_exit(1);
	if (n > inherited + 2 && syscall(SYS_landlock_restrict_self, files[n - 1], 0))
		_exit(1);
	for (int i = 0; i < n; i++)
		close(files[i]);
	if (chdir(dir))
		_exit(1);
	// From these bytes the runtime makes its random numbers. Without new ones all
	// processes would have the same.
	void *seed = (void *)getauxval(AT_RANDOM);
	if (seed && getrandom(seed, 16, 0) != 16)
		_exit(1);
	signal(SIGCHLD, SIG_DFL);
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

// take answers a request. It returns 1 in a new process.
static int take(void) {
	char msg[4096 + 8];
	union {
		char buf[CMSG_SPACE(MOST_FILES * sizeof(int))];
		struct cmsghdr align;
	} rights;
	struct iovec part = {msg, sizeof msg - 1};
	struct msghdr head = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = rights.buf, .msg_controllen = sizeof rights.buf};
	ssize_t size = recvmsg(CONTROL, &head, MSG_CMSG_CLOEXEC);
	if (size < 0 && errno == EINTR)
		return 0;
	if (size <= 0 || head.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
		_exit(0);
	msg[size] = 0;
	if (msg[0] == 'R' && size == 5) {
		int32_t pid;
		memcpy(&pid, msg + 1, 4);
		forget(pid);
		return 0;
	}
	int files[MOST_FILES], n = 0;
	struct cmsghdr *c = CMSG_FIRSTHDR(&head);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(files, CMSG_DATA(c), n * sizeof(int));
	}
	int inherited = msg[1];
	if (msg[0] != 'F' || size < 3 || inherited < 0 || n < inherited + 2 || n > inherited + 3)
		_exit(1);
	int slot = 0;
	while (slot < MOST_CHILDREN && children[slot].pid)
		slot++;
	pid_t server = getpid(), pid = -EAGAIN;
	if (slot < MOST_CHILDREN && (pid = fork()) < 0)
		pid = -errno;
	if (pid == 0) {
		become(server, msg + 2, files, n, inherited);
		return 1;
	}
	for (int i = 0; i < n; i++)
		close(files[i]);
	if (pid > 0) {
		setpgid(pid, pid); // before anybody knows it
		children[slot] = (struct child){pid, 0};
	}
	report('P', pid, 0, 5);
	return 0;
}

static __attribute__((constructor)) void fork_server(void) {
	if (!getenv("FILEWRIGHT_FORK_SERVER"))
		return;
	struct sigaction ended = {.sa_handler = child_ended};
	sigset_t chld, before;
	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	sigprocmask(SIG_BLOCK, &chld, &before); // but for the time of waiting
	sigaction(SIGCHLD, &ended, NULL);
	for (;;) {
		report_ends();
		struct pollfd control = {CONTROL, POLLIN, 0};
		if (ppoll(&control, 1, NULL, &before) > 0 && take())
			return;
	}
}
*/
import "C"

// canFork reports whether this program can be a server of engine.Program.ForkServer.
const canFork = true
