// Package confine takes rights away from a thread, and so from the programs that
// the thread starts: Landlock for files, seccomp for system calls, and the
// capabilities of root. What is taken away never comes back.
//
// It works for root and for ordinary users, and inside containers, because
// nothing of it needs a privilege: see landlock(7), seccomp(2).
package confine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// A Policy says what is left. The zero Policy leaves nothing but memory, pipes
// and files that are open already.
type Policy struct {
	Read    []string // files, and directories with all below them, that may be read
	Execute []string // the same, and what is in them may be started
	Write   []string // directories in which everything may be done but starting programs
	Sockets []string // directories in which Unix sockets may be made and files removed

	// Connect allows connections to Unix sockets.
	Connect bool

	// Namespaces allows new namespaces, for a program that has a sandbox of
	// its own.
	Namespaces bool

	// SharedMemory allows memory that is a file without a name.
	SharedMemory bool

	// Unwritable has access(2) say that nothing may be written.
	Unwritable bool

	// Processes says that the program has a namespace of processes of its own, in which numbers
	// of this process mean others.
	Processes bool

	// Limits allows setting limits on resources, but for RLIMIT_LOCKS: for a
	// program that starts others.
	Limits bool
}

// Layers are the protections that a kernel offers.
type Layers struct {
	Landlock int  // version of its interface; 0 if there is none
	Seccomp  bool // filters of system calls
}

// Available asks the kernel. What it has may still not work here: see the tests
// of those who use it.
func Available() Layers {
	var l Layers
	if v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION); errno == 0 {
		l.Landlock = int(v)
	}
	// Asked for a filter at address 0, a kernel that has filters says EFAULT.
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, 0)
	l.Seccomp = errno == unix.EFAULT
	return l
}

// Go calls f on a thread of its own, which ends with f. It is never the first thread of
// the process: that one cannot end, and to the rest of the system it is the process, so
// that what f starts could signal the process (see [Settle]).
func Go(f func()) {
	go func() {
		runtime.LockOSThread() // for ever: the thread ends with the goroutine
		if unix.Gettid() != unix.Getpid() {
			f()
			return
		}
		begun := make(chan struct{})
		Go(func() {
			close(begun)
			f()
		})
		<-begun // not on this thread, which waits here
		runtime.UnlockOSThread()
	}()
}

// Thread applies p to the calling thread as far as layers go; the thread must be one
// of [Go]. After an error it may be confined in part. With Landlock it returns
// the ruleset that is in force, for [Settle].
func (p *Policy) Thread(l Layers) (rules *os.File, err error) {
	defer func() {
		if err != nil {
			rules.Close() // nil, or of no use any more
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

// dropCapabilities makes root an ordinary user in all but name: a program that
// root starts gets what is in the bounding set (capabilities(7)).
func dropCapabilities() error {
	for c := uintptr(0); ; c++ {
		switch err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); {
		case errors.Is(err, unix.EINVAL): // past the last one
			return nil
		case errors.Is(err, unix.EPERM): // an ordinary user, who has none to give
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

	// fileRights are those that a rule for what is no directory may have.
	fileRights = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
)

// devices are files that everything needs and that hold nothing. What is mapped of /dev/zero
// is shared memory.
var devices = []string{"/dev/null", "/dev/full", "/dev/random", "/dev/urandom"}

// handled returns the rights that version v of Landlock can take away.
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

// Ruleset returns the part of p that Landlock sees to, for another process, which may
// restrict itself with it: see landlock_restrict_self(2).
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

// threadsMaySignal tells whether the scope of signals leaves those between the threads
// of one process alone. Where the kernel has not been mended (erratum 2 of Landlock) a
// confined thread could not interrupt others, which Go's runtime does.
func threadsMaySignal() bool {
	mended, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_ERRATA)
	return errno == 0 && mended&2 != 0
}

// allow adds a rule. What does not exist needs none.
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
