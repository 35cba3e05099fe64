package engine_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/filewright/filewright/fileops/engine"
	"github.com/filewright/filewright/internal/systest"
)

// late is a reader that calls f on the first read, after the program has started.
type late struct {
	f func() string
	r io.Reader
}

func (l *late) Read(p []byte) (int, error) {
	if l.r == nil {
		l.r = strings.NewReader(l.f())
	}
	return l.r.Read(p)
}

// A program reaches no thread of the process that started it, not even the equally
// confined thread that started it: that thread would give access to the whole process.
func TestProcessAbove(t *testing.T) {
	t.Parallel()
	const script = `
import ctypes, os, signal, sys
libc = ctypes.CDLL(None, use_errno=True)
server = int(sys.argv[1])
threads = [int(w) for w in sys.stdin.read().split()]
def works(name, f):
    try:
        r = f()
    except Exception:
        return
    if isinstance(r, int) and r < 0:
        return
    print(name)
works("server", lambda: os.kill(server, 0))
works("pidfd of server", lambda: signal.pidfd_send_signal(os.pidfd_open(server), 0))
for t in threads:
    works("kill %d" % t, lambda: os.kill(t, 0))
    works("tkill %d" % t, lambda: libc.syscall(200, t, 0))
    works("tgkill %d" % t, lambda: libc.syscall(234, server, t, 0))
    works("memory of %d" % t, lambda: open("/proc/%d/mem" % t, "r+b"))
    works("memory of %d of the server" % t, lambda: open("/proc/%d/task/%d/mem" % (server, t), "r+b"))
    works("environment of %d" % t, lambda: open("/proc/%d/task/%d/environ" % (server, t)).read())
    works("processor of %d" % t, lambda: os.sched_setaffinity(t, os.sched_getaffinity(t)))
    works("priority of %d" % t, lambda: libc.syscall(251, 1, t, 0)) # ioprio_set
    works("policy of %d" % t, lambda: os.sched_setparam(t, os.sched_param(0)))
print("done")
`
	p := find(t, sandbox(t), "/usr/bin/python3")
	for name, a := range map[string]engine.Access{"engine": {}, "browser": {Namespaces: true, Read: []string{"/proc"}, Write: []string{"/proc"}}} {
		var out bytes.Buffer
		threads := &late{f: func() string {
			all, err := os.ReadDir("/proc/self/task")
			systest.Check(t, err)
			var b strings.Builder
			for _, thread := range all {
				fmt.Fprintln(&b, thread.Name())
			}
			return b.String()
		}}
		systest.NoError(t, p.Run(t.Context(), engine.Cmd{Args: []string{"-I", "-c", script, fmt.Sprint(os.Getpid())}, Dir: t.TempDir(), Stdin: threads, Stdout: &out, Access: a}))
		if got := strings.TrimSpace(out.String()); got != "done" {
			t.Errorf("%s:\n%s", name, got)
		}
	}
}

// If tracing is impossible, as with Yama's ptrace_scope 2, programs still start, and the
// filter keeps them from the process. Programs that see /proc do not start.
func TestUntraced(t *testing.T) {
	const variable = "ENGINE_TEST_PTRACE_ERRNO"
	number, err := strconv.Atoi(os.Getenv(variable))
	if err != nil { // once for each error, in a separate process
		t.Parallel()
		self, err := os.Executable()
		systest.NoError(t, err)
		for _, errno := range []unix.Errno{unix.EPERM, unix.ENOSYS} {
			cmd := exec.CommandContext(t.Context(), self, "-test.run", "^TestUntraced$")
			cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", variable, int(errno)))
			if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "PASS") {
				t.Errorf("%v: %v\n%s", errno, err, out)
			}
		}
		return
	}
	errno := unix.Errno(number)
	raw, err := bpf.Assemble([]bpf.Instruction{
		bpf.LoadAbsolute{Off: 0, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SYS_PTRACE, SkipFalse: 1},
		bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(errno)},
		bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW},
	})
	systest.NoError(t, err)
	filter := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		filter[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	runtime.LockOSThread() // the filter applies to child threads too
	defer runtime.UnlockOSThread()
	systest.NoError(t, unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog))); errno != 0 {
		t.Fatal(errno)
	}
	p := find(t, sandbox(t), "/usr/bin/python3")
	const script = "import os, sys\ntry:\n os.kill(int(sys.argv[1]), 0)\nexcept PermissionError:\n print('refused')"
	var out bytes.Buffer
	c := engine.Cmd{Args: []string{"-I", "-c", script, fmt.Sprint(os.Getpid())}, Dir: t.TempDir(), Stdout: &out}
	if err := p.Run(t.Context(), c); err != nil || strings.TrimSpace(out.String()) != "refused" {
		t.Errorf("%q, %v", out.String(), err)
	}
	c.Access.Namespaces = true
	if err := p.Run(t.Context(), c); !errors.Is(err, errno) {
		t.Errorf("with namespaces: got %v", err)
	}
}
