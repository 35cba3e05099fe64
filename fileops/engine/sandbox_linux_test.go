package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/filewright/filewright/fileops/engine"
	"github.com/filewright/filewright/internal/systest"
)

// sandbox returns the sandbox of this host. The tests need one; the documentation
// describes what hosts without it lose.
func sandbox(t testing.TB) *engine.Sandbox {
	t.Helper()
	s := engine.NewSandbox()
	if !s.Strong() {
		t.Fatalf("no sandbox on this host: %v", s.Missing())
	}
	return s
}

func find(t testing.TB, s *engine.Sandbox, name string) *engine.Program {
	t.Helper()
	p, err := s.Find(t.Context(), []string{"--version"}, name)
	systest.NoError(t, err)
	return p
}

// attempts tries what a compromised program could do, and prints the names of the
// attempts that succeeded.
const attempts = `
import os, socket, sys, ctypes, signal
canary, other, port, parent, listener = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
confined = sys.argv[6] == "confined"
libc = ctypes.CDLL(None, use_errno=True)
def works(name, f, harmless=True):
    if not confined and not harmless:
        return
    try:
        r = f()
    except Exception:
        return
    if isinstance(r, int) and not isinstance(r, bool) and r < 0:
        return
    print(name)
def watch(path):
    fd = libc.inotify_init1(0)
    return fd if fd < 0 else libc.inotify_add_watch(fd, path.encode(), 0xfff)
def unix(kind):
    s = socket.socket(socket.AF_UNIX, kind)
    s.connect(listener)
works("read a file", lambda: open(canary).read())
works("list a directory", lambda: os.listdir(os.path.dirname(canary)))
works("watch a directory", lambda: watch(os.path.dirname(canary)))
works("list local settings", lambda: os.listdir("/usr/local/etc"))
works("list local directories", lambda: os.listdir("/usr/local"))
works("read passwd", lambda: open("/etc/passwd").read())
works("read proc", lambda: open("/proc/%d/environ" % parent).read())
works("write a file", lambda: open(other + "/x", "w"))
works("write tmp", lambda: open("/tmp/filewright-engine-test", "w"))
works("truncate", lambda: os.truncate(canary, 0), False)
works("link", lambda: os.link(canary, "stolen"))
works("symlink and read", lambda: (os.symlink(canary, sys.argv[6]), open(sys.argv[6]).read()))
works("inet", lambda: socket.create_connection(("127.0.0.1", port), 2))
works("udp", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
works("inet6", lambda: socket.socket(socket.AF_INET6))
works("netlink", lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW))
works("raw", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))
works("unix connect", lambda: unix(socket.SOCK_STREAM))
works("unix datagram", lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
works("signal", lambda: os.kill(parent, 0))
works("signal to all", lambda: os.kill(-1, 0))
works("signal to the group of the server", lambda: os.kill(-os.getpgid(parent), 0))
works("join the group of the server", lambda: os.setpgid(0, os.getpgid(parent)), False)
works("list mounts", lambda: libc.syscall(458, 0, 0, 0, 0))
works("memory without a file", lambda: libc.syscall(447, 0))
works("ptrace", lambda: libc.ptrace(16, parent, 0, 0), False)
works("unshare", lambda: libc.unshare(0x10000000), False)
works("clone with a namespace", lambda: libc.syscall(56, 0x10000000 | 17, 0, 0, 0, 0) or os._exit(0), False)
works("mount", lambda: libc.mount(b"none", b".", b"tmpfs", 0, None), False)
works("chroot", lambda: libc.chroot(b"."), False)
works("io_uring", lambda: libc.syscall(425, 8, ctypes.create_string_buffer(256)))
works("bpf", lambda: libc.syscall(321, 0, ctypes.create_string_buffer(128), 128), False)
works("keyring", lambda: libc.syscall(250, 0, -3, 0, 0, 0), False)
works("shared memory", lambda: libc.shmget(0, 4096, 0o1600), False)
works("message queue", lambda: libc.msgget(0, 0o1600), False)
works("semaphores", lambda: libc.semget(0, 1, 0o1600), False)
works("POSIX message queue", lambda: libc.syscall(240, b"filewright", 0o100, 0o600, 0), False)
works("chmod of what is given", lambda: os.chmod(other + "/given", 0o644))
works("touch of what is given", lambda: os.utime(other + "/given"))
works("userfaultfd", lambda: libc.syscall(323, 1), False)
works("run what it wrote", lambda: (open("own", "w").write("#!/bin/sh\n"), os.chmod("own", 0o755), os.execv("own", ["own"])), False)
import resource
works("raise a limit", lambda: resource.setrlimit(resource.RLIMIT_CORE, (1 << 20, 1 << 20)), False)
works("change the mark", lambda: libc.syscall(302, 0, 10, ctypes.create_string_buffer(16), 0), False)
works("change the mark in the old way", lambda: libc.syscall(160, 10, ctypes.create_string_buffer(16)), False)
works("anonymous file", lambda: os.memfd_create("x"))
works("shared mapping", lambda: __import__("mmap").mmap(-1, 4096))
works("zero device", lambda: open("/dev/zero").read(1))
works("hide descriptors", lambda: libc.prctl(4, 0, 0, 0, 0), False)
works("own file", lambda: open("mine", "w").write("x"))
works("own child", lambda: os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0))
works("socket pair", lambda: socket.socketpair())
works("given file", lambda: open(other + "/given").read())
`

func TestSandboxHolds(t *testing.T) {
	t.Parallel()
	dir, outside, given := t.TempDir(), t.TempDir(), t.TempDir()
	canary := filepath.Join(outside, "canary")
	for path, content := range map[string]string{canary: "secret", filepath.Join(given, "given"): "input", filepath.Join(dir, "attempts.py"): attempts} {
		systest.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	}
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	systest.NoError(t, err)
	defer tcp.Close()
	local, err := net.Listen("unix", filepath.Join(outside, "socket"))
	systest.NoError(t, err)
	defer local.Close()
	run := func(p *engine.Program, how string, a engine.Access) string {
		var out bytes.Buffer
		_, port, _ := net.SplitHostPort(tcp.Addr().String())
		err := p.Run(t.Context(), engine.Cmd{
			Args: []string{"-I", filepath.Join(dir, "attempts.py"), canary, given, port, strconv.Itoa(os.Getpid()), local.Addr().String(), how},
			Dir:  dir, Stdout: &out, Access: a,
		})
		systest.NoError(t, err)
		return strings.Join(strings.Split(strings.TrimSpace(out.String()), "\n"), ", ")
	}
	s := sandbox(t)
	p := find(t, s, "/usr/bin/python3")
	if got, want := run(p, "confined", engine.Access{Read: []string{given}}), "own file, own child, socket pair, given file"; got != want {
		t.Errorf("possible: %s\nwant %s", got, want)
	}
	if b, err := os.ReadFile(canary); err != nil || string(b) != "secret" {
		t.Errorf("canary: %q, %v", b, err)
	}
	// Allowed operations succeed. Otherwise mistakes in the attempts could make the test
	// pass.
	loose := run(p, "loose", engine.Access{Read: []string{given, outside, "/etc/passwd"}, Write: []string{given}, Connect: true})
	for _, want := range []string{"read a file", "list a directory", "read passwd", "write a file", "symlink and read", "unix connect"} {
		if !strings.Contains(loose, want) {
			t.Errorf("allowed, but not possible: %s", want)
		}
	}
	os.Remove("/tmp/filewright-engine-test")
	free := run(find(t, nil, "/usr/bin/python3"), "free", engine.Access{})
	os.Remove("/tmp/filewright-engine-test")
	for _, want := range []string{"inet", "udp", "netlink", "signal", "write tmp", "io_uring", "unix datagram", "watch a directory", "anonymous file", "shared mapping", "zero device", "list local directories"} {
		if !strings.Contains(free, want) {
			t.Errorf("not possible without a sandbox: %s", want)
		}
	}
}

// Programs do not inherit descriptors that other code in the process, such as C
// libraries, opened without O_CLOEXEC. They do inherit those of the run.
func TestDescriptorsStay(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "secret")
	systest.NoError(t, os.WriteFile(file, []byte("secret"), 0o600))
	open, err := syscall.Open(file, syscall.O_RDONLY, 0)
	systest.NoError(t, err)
	defer syscall.Close(open)
	high, err := unix.FcntlInt(uintptr(open), unix.F_DUPFD, 500)
	systest.NoError(t, err)
	defer syscall.Close(high)
	given, err := os.Open(os.DevNull)
	systest.NoError(t, err)
	defer given.Close()
	const script = `
import os
for fd in range(1024):
    try:
        os.fstat(fd)
        print(fd)
    except OSError:
        pass
`
	for name, s := range map[string]*engine.Sandbox{"sandbox": sandbox(t), "none": nil} {
		for files, want := range map[int]string{0: "0 1 2", 2: "0 1 2 3 4"} {
			var out bytes.Buffer
			err := find(t, s, "/usr/bin/python3").Run(t.Context(), engine.Cmd{
				Args: []string{"-I", "-c", script}, Dir: t.TempDir(), Stdout: &out, Files: []*os.File{given, given}[:files],
			})
			systest.NoError(t, err)
			if got := strings.Join(strings.Fields(out.String()), " "); got != want {
				t.Errorf("%s: the program has the descriptors %s, want %s", name, got, want)
			}
		}
	}
}

// A program with a built-in sandbox can lower the limits of its own process only, and
// keeps its mark.
func TestOwnLimits(t *testing.T) {
	t.Parallel()
	const script = `
import resource, sys
def works(name, f):
    try:
        f()
    except (OSError, ValueError):
        return
    print(name)
data, locks = resource.RLIMIT_DATA, 10
works("own", lambda: resource.prlimit(0, data, (1 << 40, 1 << 40)))
works("asked", lambda: resource.prlimit(0, data))
works("another", lambda: resource.prlimit(int(sys.argv[1]), data, resource.prlimit(int(sys.argv[1]), data)))
works("mark", lambda: resource.prlimit(0, locks, (1, 1)))
`
	p := find(t, sandbox(t), "/usr/bin/python3")
	for want, a := range map[string]engine.Access{"own asked": {Namespaces: true}, "asked": {}} {
		var out bytes.Buffer
		systest.NoError(t, p.Run(t.Context(), engine.Cmd{Args: []string{"-I", "-c", script, strconv.Itoa(os.Getpid())}, Dir: t.TempDir(), Stdout: &out, Access: a}))
		if got := strings.Join(strings.Fields(out.String()), " "); got != want {
			t.Errorf("%+v: %s, want %s", a, got, want)
		}
	}
}

// Root has no capabilities in a sandbox.
func TestSandboxDropsCapabilities(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	err := find(t, sandbox(t), "cat").Run(t.Context(), engine.Cmd{
		Args: []string{"/proc/self/status"}, Dir: t.TempDir(), Stdout: &out, Access: engine.Access{Read: []string{"/proc"}},
	})
	systest.NoError(t, err)
	for _, want := range []string{"CapEff:\t0000000000000000", "CapPrm:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

// The confinement of the threads that start programs never reaches another goroutine.
func TestSandboxStaysOutside(t *testing.T) {
	t.Parallel()
	p := find(t, sandbox(t), "true")
	file := filepath.Join(t.TempDir(), "file")
	systest.NoError(t, os.WriteFile(file, nil, 0o600))
	ctx, cancel := context.WithCancel(t.Context())
	var free, confined sync.WaitGroup
	for range 8 {
		free.Go(func() {
			for ctx.Err() == nil {
				f, err := os.Open(file)
				if err != nil {
					t.Error(err)
					return
				}
				f.Close()
				l, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Error(err)
					return
				}
				l.Close()
			}
		})
	}
	for range 4 {
		confined.Go(func() {
			dir := t.TempDir()
			for range 25 {
				systest.Check(t, p.Run(ctx, engine.Cmd{Dir: dir}))
			}
		})
	}
	confined.Wait()
	cancel()
	free.Wait()
}

// A child that leaves the group and the session and ignores signals does not outlive the
// run, whether the run exits or is killed.
func TestKillReachesWhoLeft(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]*engine.Sandbox{"sandbox": sandbox(t), "none": nil} {
		for _, hang := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/hang=%v", name, hang), func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				p := find(t, s, "bash")
				script := `setsid bash -c 'trap "" TERM INT HUP; echo $$ >left.tmp; mv left.tmp left; while :; do sleep 0.05; done' </dev/null >/dev/null 2>&1 & while ! [ -e left ]; do sleep 0.01; done`
				if hang {
					script += "; sleep 60"
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				held, hold, err := os.Pipe()
				systest.NoError(t, err)
				defer held.Close()
				proc, err := p.Start(ctx, engine.Cmd{Args: []string{"-c", script}, Dir: dir, Files: []*os.File{hold}})
				hold.Close() // from now on only processes of the run hold it
				systest.NoError(t, err)
				if hang {
					systest.Until(t, "the program leaves a process", func() bool { _, err := os.Stat(filepath.Join(dir, "left")); return err == nil })
					cancel()
				}
				if err := proc.Wait(); (err != nil) != hang {
					t.Errorf("got %v", err)
				}
				if _, err := os.Stat(filepath.Join(dir, "left")); err != nil {
					t.Fatal(err)
				}
				held.SetReadDeadline(time.Now().Add(20 * time.Second))
				if _, err := io.ReadAll(held); err != nil {
					t.Errorf("a process lives on: %v", err)
				}
			})
		}
	}
}

func TestWatchedLimits(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, script string
		limits       engine.Limits
	}{
		{"memory", `x=$(yes | head -c 60000000) & y=$(yes | head -c 60000000); sleep 60`, engine.Limits{Resident: 50 << 20}},
		{"scratch space", `mkdir a; for i in 1 2 3 4 5 6; do yes | head -c 4000000 >a/$i; done; sleep 60`, engine.Limits{Scratch: 16 << 20}},
		{"number of processes", `for i in 1 2 3 4 5 6 7 8; do setsid sleep 60 & done; sleep 60`, engine.Limits{Processes: 6}},
		{"number of files", `mkdir a; i=0; while [ $i -lt 200 ]; do >a/$i; i=$((i+1)); done; sleep 60`, engine.Limits{Files: 100}},
		{"scratch space", `exec 5>a; rm a; yes | head -c 24000000 >&5; sleep 60`, engine.Limits{Scratch: 16 << 20}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := find(t, sandbox(t), "bash")
			err := p.Run(t.Context(), engine.Cmd{Args: []string{"-c", tt.script}, Dir: t.TempDir(), Limits: tt.limits})
			var exit *engine.ExitError
			if !errors.As(err, &exit) || exit.Exceeded != tt.name || !exit.Limit() || exit.Signal != syscall.SIGKILL {
				t.Errorf("got %v", err)
			}
			if p.Run(t.Context(), engine.Cmd{Args: []string{"-c", "sleep 0.5"}, Dir: t.TempDir(), Limits: tt.limits}) != nil {
				t.Error("within the limit, but killed")
			}
			// Limits can be set during a run.
			proc, err := p.Start(t.Context(), engine.Cmd{Args: []string{"-c", tt.script}, Dir: t.TempDir()})
			systest.NoError(t, err)
			systest.Check(t, proc.Limit(tt.limits))
			if err := proc.Wait(); !errors.As(err, &exit) || exit.Exceeded != tt.name {
				t.Errorf("limited later: %v", err)
			}
		})
	}
}

// Memory and files that are visible in no directory and in no process's own mappings
// count for the limits of the run.
func TestHiddenSpace(t *testing.T) {
	t.Parallel()
	const size = "40 << 20"
	for _, tt := range []struct {
		name, script string
		exceeded     string
		anywhere     bool // also in a sandbox without shared memory
	}{
		{"memfd", "f = os.memfd_create('x'); write(f)", "memory", false},
		{"memfd, mapped only", "f = os.memfd_create('x'); write(f); m = mmap.mmap(f, n); os.close(f)", "memory", false},
		{"mapping of many processes", "m = mmap.mmap(-1, n); m.write(b'x' * n)", "memory", false},
		{"removed file", "f = os.open('f', os.O_RDWR | os.O_CREAT); os.unlink('f'); write(f)", "scratch space", true},
		{"removed file, mapped only", "f = os.open('f', os.O_RDWR | os.O_CREAT); os.unlink('f'); write(f); m = mmap.mmap(f, n); os.close(f)", "scratch space", true},
		{"several removed files", "for i in range(8):\n  f = os.open('f', os.O_RDWR | os.O_CREAT); os.unlink('f'); write(f, n // 8)", "scratch space", true},
		{"file without a name", "f = os.open('.', os.O_RDWR | os.O_TMPFILE); write(f)", "scratch space", true},
	} {
		script := "import mmap, os, time\nn = " + size + `
def write(f, n=n):
    while n > 0:
        n -= os.write(f, b'x' * min(n, 1 << 20))
` + tt.script + "\nwhile True: time.sleep(1)"
		for kind, sb := range map[string]*engine.Sandbox{"none": nil, "shared": sandbox(t).With(engine.Access{SharedMemory: true}), "sandbox": sandbox(t)} {
			t.Run(tt.name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				err := find(t, sb, "/usr/bin/python3").Run(t.Context(), engine.Cmd{
					Args: []string{"-I", "-c", script}, Dir: t.TempDir(), Limits: engine.Limits{Resident: 30 << 20, Scratch: 30 << 20},
				})
				var exit *engine.ExitError
				if !errors.As(err, &exit) {
					t.Fatalf("got %v", err)
				}
				if kind == "sandbox" && !tt.anywhere {
					if exit.Code != 1 || !strings.Contains(exit.Stderr, "Error") {
						t.Errorf("got %v: %s", err, exit.Stderr)
					}
				} else if exit.Exceeded != tt.exceeded {
					t.Errorf("got %v, want %q: %s", err, tt.exceeded, exit.Stderr)
				}
			})
		}
	}
}

func TestNoSandbox(t *testing.T) {
	t.Parallel()
	var s *engine.Sandbox
	if s.Strong() || len(s.Layers()) != 0 || len(s.Missing()) == 0 {
		t.Errorf("nil: %v %v %v", s.Strong(), s.Layers(), s.Missing())
	}
	got := sandbox(t).Layers() // only hosts that permit them have namespaces
	if len(got) < 2 || !strings.HasPrefix(got[0], "landlock ") || got[1] != "seccomp" || len(got) > 2 && !slices.Equal(got[2:], []string{"namespaces", "PID namespace and cgroup"}[:len(got)-2]) {
		t.Errorf("got %v", got)
	}
}

// If the host permits namespaces, programs have their own, without capabilities.
// Otherwise the sandbox reports the reason. A program cannot create further namespaces.
func TestNamespaces(t *testing.T) {
	t.Parallel()
	const script = `
import ctypes, os, sys
for ns in "user", "net", "ipc", "uts":
    print(ns, os.readlink("/proc/self/ns/" + ns))
print("caps", [l.split()[1].strip("0") for l in open("/proc/self/status") if l.startswith(("CapEff", "CapPrm", "CapInh", "CapAmb"))])
libc = ctypes.CDLL(None)
death = ctypes.c_int()
libc.prctl(2, ctypes.byref(death), 0, 0, 0)
print("death", death.value)
for key in 0, 1, 1 << 63, 0xffffffffffffffff:
    print("more", libc.syscall(272, 0x10000000, ctypes.c_ulong(key)))
`
	run := func(s *engine.Sandbox) string {
		var out bytes.Buffer
		err := find(t, s, "/usr/bin/python3").Run(t.Context(), engine.Cmd{
			Args: []string{"-I", "-c", script}, Dir: t.TempDir(), Stdout: &out, Access: engine.Access{Read: []string{"/proc"}},
		})
		systest.NoError(t, err)
		return out.String()
	}
	s := sandbox(t)
	// Like unshare -Un true.
	own := exec.CommandContext(t.Context(), "true")
	own.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET}
	if err := own.Run(); err == nil && !s.Namespaced() {
		t.Errorf("the host permits namespaces, and programs have none: %v", s.Missing())
	}
	for kind, s := range map[string]*engine.Sandbox{"default": s, "basic": s.Basic()} {
		got := run(s)
		for _, ns := range []string{"user", "net", "ipc", "uts"} {
			own, err := os.Readlink("/proc/self/ns/" + ns)
			systest.NoError(t, err)
			if shared := strings.Contains(got, own); shared == s.Namespaced() {
				t.Errorf("%s (%v): the %s namespace of the server: %v\n%s", kind, s.Layers(), ns, shared, got)
			}
		}
		for _, want := range []string{"caps ['', '', '', '']", "death 9", strings.Repeat("more -1\n", 4)} {
			if !strings.Contains(got, want) {
				t.Errorf("%s: no %q in\n%s", kind, want, got)
			}
		}
		if why := strings.Join(s.Missing(), "; "); s.Namespaced() == strings.Contains(why, "namespaces: ") {
			t.Errorf("%s: namespaces %v, missing %q", kind, s.Namespaced(), why)
		}
	}
	if s.Basic().Namespaced() {
		t.Error("the basic sandbox has namespaces")
	}
	if (*engine.Sandbox)(nil).Basic() != nil || (*engine.Sandbox)(nil).Namespaced() {
		t.Error("nil is not nil")
	}
}

// A host may run out of namespaces at any time. Programs then start without them, and
// the next server reports it. The test runs itself again in a user namespace with its
// own limit.
func TestNamespacesRunOut(t *testing.T) {
	const inside = "FILEWRIGHT_TEST_INSIDE"
	if os.Getenv(inside) == "" {
		cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^TestNamespacesRunOut$", "-test.v")
		cmd.Env = append(os.Environ(), inside+"=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		}
		out, err := cmd.CombinedOutput()
		if len(out) == 0 && (errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC)) {
			if s := sandbox(t); s.Namespaced() {
				t.Errorf("namespaces on a host that permits none: %v", s.Layers())
			}
			return
		}
		if err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	s := sandbox(t)
	if !s.Namespaced() {
		t.Fatalf("no namespaces before: %v", s.Missing())
	}
	p := find(t, s, "readlink")
	systest.NoError(t, os.WriteFile("/proc/sys/user/max_net_namespaces", []byte("0"), 0))
	var out bytes.Buffer
	err := p.Run(t.Context(), engine.Cmd{Args: []string{"/proc/self/ns/net"}, Dir: t.TempDir(), Stdout: &out, Access: engine.Access{Read: []string{"/proc"}}})
	own, _ := os.Readlink("/proc/self/ns/net")
	if err != nil || strings.TrimSpace(out.String()) != own {
		t.Errorf("without namespaces: got %q, want %q, error %v", out.String(), own, err)
	}
	if s := sandbox(t); s.Namespaced() || !strings.Contains(strings.Join(s.Missing(), "; "), "namespaces: clone: no space left") {
		t.Errorf("after: layers %v, missing %v", s.Layers(), s.Missing())
	}
}

func BenchmarkRun(b *testing.B) {
	for name, s := range map[string]*engine.Sandbox{"none": nil, "basic": sandbox(b).Basic(), "namespaces": engine.Ungrouped(sandbox(b)), "sandbox": sandbox(b)} {
		b.Run(name, func(b *testing.B) {
			p, dir := find(b, s, "true"), b.TempDir()
			for b.Loop() {
				systest.NoError(b, p.Run(b.Context(), engine.Cmd{Dir: dir}))
			}
		})
	}
}
