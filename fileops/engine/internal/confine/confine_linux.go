// Package confine irrevocably removes rights from a thread, and so from the programs
// that the thread starts: Landlock for files, seccomp for system calls, and the
// capabilities of root.
//
// It needs no privilege, so it works for root, for ordinary users, and inside
// containers: see landlock(7), seccomp(2).
package confine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// A Policy lists the rights that remain. The zero Policy leaves only memory, pipes and
// open files.
type Policy struct {
	Read    []string // files, and directories with everything below them, that may be read
	Execute []string // the same; their files may also be executed
	Write   []string // directories with all rights except executing files
	Sockets []string // directories in which Unix sockets may be created and files removed

	// Connect allows connections to Unix sockets.
	Connect bool

	// Namespaces allows new namespaces, for a program with a built-in sandbox.
	Namespaces bool

	// SharedMemory allows memory that is an unnamed file.
	SharedMemory bool

	// Unwritable makes access(2) report every path as read-only.
	Unwritable bool

	// Processes says that the program has a PID namespace, in which this process's ids
	// mean other processes.
	Processes bool

	// Limits allows setting resource limits except RLIMIT_LOCKS, for a program that
	// starts others.
	Limits bool
}

// Layers are the protections that a kernel supports.
type Layers struct {
	Landlock int  // ABI version; 0 if unavailable
	Seccomp  bool // system call filters
}

// Available returns the layers that the kernel reports. They may still not work here, so
// callers test them.
func Available() Layers {
	var l Layers
	if v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION); errno == 0 {
		l.Landlock = int(v)
	}
	// For a filter at address 0, a kernel with filters returns EFAULT.
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, 0)
	l.Seccomp = errno == unix.EFAULT
	return l
}

// Go calls f on a separate thread, which ends with f. The thread is never the first
// thread of the process. That thread cannot end, and it represents the process to the
// rest of the system, so programs that f starts could signal the process (see [Settle]).
func Go(f func()) {
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if unix.Gettid() != unix.Getpid() {
			f()
			return
		}
		begun := make(chan struct{})
		Go(func() {
			close(begun)
			f()
		})
		<-begun // never on this thread, which waits here
		runtime.UnlockOSThread()
	}()
}

// Thread applies p and layers to the calling thread, which must be a thread of [Go].
// After an error it may be partly confined. With Landlock it returns the active ruleset,
// for [Settle].
func (p *Policy) Thread(l Layers) (rules *os.File, err error) {
	defer func() {
		if err != nil {
			rules.Close() // nil, or no longer needed
			rules = nil
		}
	}()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("no new privileges: %w", err)
	}
	if l.Landlock > 0 {
		if rules, err = p.Ruleset(l); err != nil {
			return nil, err
		}
		if err := restrict(int(rules.Fd())); err != nil {
			return rules, fmt.Errorf("landlock: %w", err)
		}
	}
	if err := dropCapabilities(); err != nil {
		return rules, fmt.Errorf("capabilities: %w", err)
	}
	if l.Seccomp {
		if err := p.Filter().Load(); err != nil {
			return rules, err
		}
	}
	return rules, nil
}

// dropCapabilities turns root into an ordinary user that still has the id 0. A program
// that root starts gets the capabilities of the bounding set (capabilities(7)).
func dropCapabilities() error {
	for c := uintptr(0); ; c++ {
		switch err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); {
		case errors.Is(err, unix.EINVAL): // after the last capability
			return nil
		case errors.Is(err, unix.EPERM): // an ordinary user has no capabilities
			return nil
		case err != nil:
			return err
		}
	}
}

const (
	readRights    = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	executeRights = readRights | unix.LANDLOCK_ACCESS_FS_EXECUTE
	socketRights  = unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE
	deviceRights  = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE
	writeRights   = readRights | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE |
		unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SYM |
		unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_REFER

	// fileRights are the rights that apply to non-directories.
	fileRights = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
)

// devices are files that every program needs and that store nothing. A mapping of
// /dev/zero is shared memory, so it is not included.
var devices = []string{"/dev/null", "/dev/full", "/dev/random", "/dev/urandom"}

// handled returns the rights that version v of Landlock can restrict.
func handled(v int) uint64 {
	all := uint64(unix.LANDLOCK_ACCESS_FS_MAKE_SYM)<<1 - 1
	if v >= 2 {
		all |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if v >= 3 {
		all |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if v >= 5 {
		all |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	return all
}

// Ruleset returns the Landlock part of p, for another process that restricts itself with
// it: see landlock_restrict_self(2).
func (p *Policy) Ruleset(l Layers) (*os.File, error) {
	set, err := p.ruleset(l.Landlock)
	if err != nil {
		return nil, fmt.Errorf("landlock: %w", err)
	}
	return os.NewFile(uintptr(set), "landlock ruleset"), nil
}

func (p *Policy) ruleset(v int) (set int, err error) {
	attr := unix.LandlockRulesetAttr{Access_fs: handled(v)}
	if v >= 4 {
		attr.Access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	if v >= 6 {
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
		if threadsMaySignal() {
			attr.Scoped |= unix.LANDLOCK_SCOPE_SIGNAL
		}
	}
	if set, err = createRuleset(&attr, v); err != nil {
		return -1, err
	}
	for _, rule := range []struct {
		paths  []string
		rights uint64
	}{
		{p.Read, readRights}, {p.Execute, executeRights}, {p.Write, writeRights},
		{p.Sockets, socketRights}, {devices, deviceRights},
	} {
		for _, path := range rule.paths {
			if err := allow(set, path, rule.rights&attr.Access_fs); err != nil {
				unix.Close(set)
				return -1, fmt.Errorf("%s: %w", path, err)
			}
		}
	}
	return set, nil
}

// threadsMaySignal reports whether the signal scope still permits signals between the
// threads of one process. In a kernel without the fix (erratum 2 of Landlock), a
// confined thread cannot interrupt others, which Go's runtime does.
func threadsMaySignal() bool {
	mended, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_ERRATA)
	return errno == 0 && mended&2 != 0
}

// allow adds a rule. It ignores paths that do not exist.
func allow(set int, path string, rights uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= fileRights
	}
	return addRule(set, &unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(fd)})
}
