package confine_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/filewright/filewright/fileops/engine/internal/confine"
	"github.com/filewright/filewright/internal/systest"
)

// on calls f on a thread that layers confine to p.
func on(t *testing.T, p confine.Policy, layers confine.Layers, f func()) {
	t.Helper()
	done := make(chan error)
	confine.Go(func() {
		rules, err := p.Thread(layers)
		if err == nil {
			rules.Close() // nil, or not needed
			f()
		}
		done <- err
	})
	systest.NoError(t, <-done)
}

// A read-only file cannot be changed in any way: neither its content, even if Landlock
// does not know truncation yet, nor the metadata that Landlock ignores.
func TestInputsStay(t *testing.T) {
	t.Parallel()
	available := confine.Available()
	if available.Landlock == 0 || !available.Seccomp {
		t.Fatalf("this host has no sandbox: %+v", available)
	}
	for version := 1; version <= available.Landlock; version++ {
		dir, work := t.TempDir(), t.TempDir()
		path := filepath.Join(dir, "input")
		systest.NoError(t, os.WriteFile(path, []byte("content"), 0o640))
		before, err := os.Stat(path)
		systest.NoError(t, err)
		on(t, confine.Policy{Read: []string{dir}, Write: []string{work}}, confine.Layers{Landlock: version, Seccomp: true}, func() {
			fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				t.Error("it cannot be read:", err)
				return
			}
			defer unix.Close(fd)
			open := func(flags int) error {
				fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0)
				if err == nil {
					unix.Close(fd)
				}
				return err
			}
			for name, err := range map[string]error{
				"open to write":              open(unix.O_WRONLY),
				"open to write and truncate": open(unix.O_RDWR | unix.O_TRUNC),
				"open to read and truncate":  open(unix.O_TRUNC),
				"open to truncate":           open(unix.O_ACCMODE | unix.O_TRUNC),
				"truncate":                   unix.Truncate(path, 0),
				"ftruncate":                  unix.Ftruncate(fd, 0),
				"chmod":                      unix.Fchmodat(unix.AT_FDCWD, path, 0, 0),
				"fchmod":                     unix.Fchmod(fd, 0),
				"fchmodat2":                  unix.Fchmodat(unix.AT_FDCWD, path, 0, unix.AT_SYMLINK_NOFOLLOW),
				"chown":                      unix.Fchownat(unix.AT_FDCWD, path, os.Getuid(), os.Getgid(), 0),
				"fchown":                     unix.Fchown(fd, os.Getuid(), os.Getgid()),
				"utimes":                     unix.UtimesNanoAt(unix.AT_FDCWD, path, make([]unix.Timespec, 2), 0),
				"setxattr":                   unix.Setxattr(path, "user.x", []byte("x"), 0),
				"fsetxattr":                  unix.Fsetxattr(fd, "user.x", []byte("x"), 0),
				"set flags":                  unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, 0x40),
				"unlink":                     unix.Unlink(path),
				"rename":                     unix.Rename(path, filepath.Join(dir, "other")),
				"rename to its own":          unix.Rename(path, filepath.Join(work, "other")),
				"link to its own":            unix.Link(path, filepath.Join(work, "link")),
				"create beside":              unix.Mkdir(filepath.Join(dir, "new"), 0o700),
				"openat2":                    openat2(path),
			} {
				if err == nil {
					t.Errorf("landlock %d: %s is possible", version, name)
				}
			}
		})
		after, err := os.Stat(path)
		systest.NoError(t, err)
		if b, err := os.ReadFile(path); err != nil || string(b) != "content" || after.Mode() != before.Mode() || !after.ModTime().Equal(before.ModTime()) {
			t.Errorf("landlock %d: the input is %q, %v, %v; %v", version, b, after.Mode(), after.ModTime(), err)
		}
	}
}

// With Unwritable a program sees every path as read-only, and can still write.
func TestUnwritable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, unwritable := range []bool{false, true} {
		on(t, confine.Policy{Write: []string{dir}, Unwritable: unwritable}, confine.Available(), func() {
			if err := unix.Access(dir, unix.W_OK); (err != nil) != unwritable || err != nil && !errors.Is(err, unix.EACCES) {
				t.Errorf("unwritable %v: %v", unwritable, err)
			}
			if err := unix.Access(dir, unix.R_OK); err != nil {
				t.Errorf("unwritable %v: to read: %v", unwritable, err)
			}
			fd, err := unix.Open(filepath.Join(dir, "file"), unix.O_WRONLY|unix.O_CREAT|unix.O_CLOEXEC, 0o600)
			if err != nil {
				t.Errorf("unwritable %v: %v", unwritable, err)
			}
			unix.Close(fd)
		})
	}
}

func openat2(path string) error {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_RDONLY | unix.O_TRUNC | unix.O_CLOEXEC})
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// The first thread of a process represents the process: an equally confined program may
// signal the process.
func TestNeverTheFirstThread(t *testing.T) {
	t.Parallel()
	first := make(chan bool)
	for range 200 {
		for range 10 {
			confine.Go(func() { first <- unix.Getpid() == unix.Gettid() })
		}
		for range 10 {
			if <-first {
				t.Fatal("it was used")
			}
		}
	}
}

// Without the second restriction, Landlock treats the starting thread and its program as
// equals. The filter does not.
func TestSignalsOfEquals(t *testing.T) {
	t.Parallel()
	layers := confine.Layers{Seccomp: true}
	on(t, confine.Policy{}, layers, func() {
		server, thread := unix.Getpid(), unix.Gettid()
		r, w, err := os.Pipe()
		if err != nil {
			t.Error(err)
			return
		}
		defer r.Close()
		defer w.Close()
		call := func(number uintptr, args ...uintptr) error {
			args = append(args, 0, 0, 0)
			if _, _, errno := unix.Syscall(number, args[0], args[1], args[2]); errno != 0 {
				return errno
			}
			return nil
		}
		set := func(command, value int) error {
			_, err := unix.FcntlInt(r.Fd(), command, value)
			return err
		}
		for name, err := range map[string]error{
			"kill the server":        unix.Kill(server, 0),
			"kill the thread":        unix.Kill(thread, 0),
			"tkill":                  call(unix.SYS_TKILL, uintptr(thread)),
			"tgkill":                 unix.Tgkill(server, thread, 0),
			"rt_sigqueueinfo":        call(unix.SYS_RT_SIGQUEUEINFO, uintptr(thread)),
			"rt_tgsigqueueinfo":      call(unix.SYS_RT_TGSIGQUEUEINFO, uintptr(server), uintptr(thread)),
			"pidfd_open":             call(unix.SYS_PIDFD_OPEN, uintptr(server)),
			"pidfd_open of a thread": call(unix.SYS_PIDFD_OPEN, uintptr(thread), unix.O_EXCL),
			"F_SETOWN":               set(unix.F_SETOWN, server),
			"F_SETSIG":               set(unix.F_SETSIG, int(unix.SIGKILL)),
			"FIOSETOWN":              unix.IoctlSetPointerInt(int(r.Fd()), 0x8901, server),
		} {
			if !errors.Is(err, unix.EPERM) {
				t.Errorf("%s: got %v", name, err)
			}
		}
		if err := unix.Kill(1<<30, 0); !errors.Is(err, unix.ESRCH) { // above the largest process id
			t.Errorf("another process: %v", err)
		}
	})
}

// A program cannot signal all processes or the group of another process, whatever the
// upper half of the register contains, and cannot join that group.
func TestSignalsOfGroups(t *testing.T) {
	t.Parallel()
	const nobody = 1 << 30 // above the largest process id
	kill := func(pid uint64) error {
		if _, _, errno := unix.Syscall(unix.SYS_KILL, uintptr(pid), 0, 0); errno != 0 {
			return errno
		}
		return nil
	}
	minus := func(n int) uint64 { return uint64(-int64(n)) }
	group := unix.Getpgrp()
	type call struct {
		err  error
		want error
	}
	for name, p := range map[string]confine.Policy{"engine": {}, "own sandbox": {Namespaces: true}, "starts programs": {Limits: true}} {
		on(t, p, confine.Layers{Seccomp: true}, func() {
			calls := map[string]call{
				"all processes":                   {kill(minus(1)), unix.EPERM},
				"all processes, not extended":     {kill(0xffffffff), unix.EPERM},
				"all processes, odd upper half":   {kill(0x12345678ffffffff), unix.EPERM},
				"the group of the server":         {kill(minus(group)), unix.EPERM},
				"the server's group, odd":         {kill(minus(group) & 0xdeadbeefffffffff), unix.EPERM},
				"the own group":                   {kill(0), nil},
				"another process":                 {kill(nobody), unix.ESRCH},
				"joining the group of the server": {unix.Setpgid(0, group), unix.EPERM},
				"a group of its own":              {unix.Setpgid(nobody, nobody), unix.ESRCH},
			}
			if p.Limits {
				calls["the group of a child"] = call{kill(minus(nobody)), unix.ESRCH}
			} else {
				calls["the group of another"] = call{kill(minus(nobody)), unix.EPERM}
			}
			for what, c := range calls {
				if !errors.Is(c.err, c.want) {
					t.Errorf("%s: %s: got %v, want %v", name, what, c.err, c.want)
				}
			}
		})
	}
}

// Calls newer than the filter fail with ENOSYS.
func TestUnknownCalls(t *testing.T) {
	t.Parallel()
	call := func(number uintptr) error {
		_, _, errno := unix.Syscall6(number, ^uintptr(0), 0, 0, ^uintptr(0), 0, 0)
		return errno
	}
	for _, p := range []confine.Policy{{}, {Namespaces: true}, {Limits: true}} {
		on(t, p, confine.Layers{Seccomp: true}, func() {
			for _, n := range []uintptr{unix.SYS_RSEQ_SLICE_YIELD + 1, 600, 1 << 20, 0x40000000 + unix.SYS_GETPID, 340, 423} {
				if err := call(n); !errors.Is(err, unix.ENOSYS) {
					t.Errorf("%+v: call %d: got %v", p, n, err)
				}
			}
			for _, n := range []uintptr{
				unix.SYS_STATMOUNT, unix.SYS_LISTMOUNT, unix.SYS_OPEN_TREE_ATTR, unix.SYS_LISTNS, unix.SYS_MEMFD_SECRET, unix.SYS_CACHESTAT,
				unix.SYS_LSM_LIST_MODULES, unix.SYS_LSM_GET_SELF_ATTR, unix.SYS_QUOTACTL_FD, unix.SYS_PIDFD_SEND_SIGNAL, unix.SYS_PROCESS_MRELEASE,
			} {
				if err := call(n); !errors.Is(err, unix.EPERM) {
					t.Errorf("%+v: call %d: got %v", p, n, err)
				}
			}
			for _, n := range []uintptr{unix.SYS_CLOSE_RANGE, unix.SYS_FACCESSAT2, unix.SYS_FUTEX_WAITV} { // with invalid arguments
				if err := call(n); errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
					t.Errorf("%+v: call %d: got %v", p, n, err)
				}
			}
		})
	}
}
