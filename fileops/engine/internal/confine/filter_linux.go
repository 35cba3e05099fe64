package confine

import (
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// denied are system calls that no engine needs: those that inspect other processes,
// change the whole machine, or have been used to escape from sandboxes. The filter lists
// denied calls, not allowed ones, because the engines are whole distributions of
// libraries. An engine that misses a harmless call fails in the middle of a document.
var denied = append([]uint32{
	// other processes
	unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PROCESS_MADVISE, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP,
	unix.SYS_SETPRIORITY, unix.SYS_SCHED_SETSCHEDULER, unix.SYS_SCHED_SETATTR, unix.SYS_SCHED_SETPARAM, unix.SYS_IOPRIO_SET,
	unix.SYS_MIGRATE_PAGES, unix.SYS_MOVE_PAGES, unix.SYS_PIDFD_SEND_SIGNAL, unix.SYS_PROCESS_MRELEASE,
	// file systems and namespaces
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE,
	unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR, unix.SYS_SETNS, unix.SYS_UNSHARE,
	unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD,
	unix.SYS_STATMOUNT, unix.SYS_LISTMOUNT, unix.SYS_OPEN_TREE_ATTR, unix.SYS_LISTNS,
	// watching files elsewhere, which reveals names that Landlock hides
	unix.SYS_FANOTIFY_INIT, unix.SYS_INOTIFY_INIT1, unix.SYS_INOTIFY_ADD_WATCH,
	// kernel
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEXEC_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE,
	unix.SYS_DELETE_MODULE, unix.SYS_REBOOT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_SYSLOG, unix.SYS_LOOKUP_DCOOKIE,
	unix.SYS_PERSONALITY, unix.SYS_VHANGUP, unix.SYS_LSM_GET_SELF_ATTR, unix.SYS_LSM_SET_SELF_ATTR, unix.SYS_LSM_LIST_MODULES,
	// memory that no limit counts; which pages of a file others have read
	unix.SYS_MEMFD_SECRET, unix.SYS_CACHESTAT,
	// objects outside the file system that outlive their creator: shared memory, queues,
	// semaphores
	unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_SEMGET,
	unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK,
	// file metadata, which Landlock does not protect: an input may be a hard link to the
	// uploaded file
	unix.SYS_FCHMOD, unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2, unix.SYS_FCHOWN, unix.SYS_FCHOWNAT, unix.SYS_UTIMENSAT,
	unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_FSETXATTR, unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR, unix.SYS_FREMOVEXATTR,
	unix.SYS_SETXATTRAT, unix.SYS_REMOVEXATTRAT, unix.SYS_FILE_SETATTR,
	// clock and host name
	unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_CLOCK_ADJTIME, unix.SYS_ADJTIMEX, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME,
}, deniedHere...)

// namespaces are the clone(2) flags that create namespaces.
const namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET |
	unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

// tracing are the ptrace(2) requests to a process that has requested tracing.
var tracing = []uint32{
	unix.PTRACE_TRACEME, unix.PTRACE_GETREGSET, unix.PTRACE_SETREGSET, unix.PTRACE_PEEKTEXT, unix.PTRACE_POKETEXT,
	unix.PTRACE_SINGLESTEP, unix.PTRACE_DETACH,
}

// lastReviewed is the newest system call that was reviewed for this filter, as of Linux
// 7.0. Calls with higher numbers fail with ENOSYS, as on an older kernel, and programs
// then use a fallback.
//
// Since version 5.1 all architectures give new calls the same numbers. Reviewed from 424
// on and allowed: close_range, faccessat2, epoll_pwait2, landlock_*, futex_*,
// set_mempolicy_home_node, map_shadow_stack, mseal, getxattrat, listxattrat,
// file_getattr, rseq_slice_yield.
const lastReviewed = unix.SYS_RSEQ_SLICE_YIELD

const (
	fsSetXattr = 0x401c5820 // FS_IOC_FSSETXATTR: another way to set file flags
	fSetOwn    = 0x8901     // FIOSETOWN
)

// signalCalls maps the system calls that send signals to the index of their receiver
// argument. For calls with two receivers that is the thread, not its process. One of the
// calls opens a process, for another call that sends a signal.
var signalCalls = map[uint32]int{
	unix.SYS_KILL: 0, unix.SYS_TKILL: 0, unix.SYS_TGKILL: 1, unix.SYS_RT_SIGQUEUEINFO: 0, unix.SYS_RT_TGSIGQUEUEINFO: 1, unix.SYS_PIDFD_OPEN: 0,
}

// Offsets in seccomp_data (seccomp(2)). The words of an argument are in native byte
// order, which is little-endian on all supported architectures.
const (
	offNumber = 0
	offArch   = 4
	offArgs   = 16
)

// A program is a filter under construction, without labels. The number of the system
// call is in the accumulator between its parts.
type program struct{ ins []bpf.Instruction }

func (p *program) add(ins ...bpf.Instruction) { p.ins = append(p.ins, ins...) }

func errno(e unix.Errno) bpf.RetConstant {
	return bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(e)}
}

var (
	allowed = bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW}
	killed  = bpf.RetConstant{Val: unix.SECCOMP_RET_KILL_PROCESS}
)

// fail makes a system call fail with e.
func (p *program) fail(number uint32, e unix.Errno) {
	p.add(bpf.JumpIf{Cond: bpf.JumpEqual, Val: number, SkipFalse: 1}, errno(e))
}

// when runs body for one system call. body must end with a return.
func (p *program) when(number uint32, body ...bpf.Instruction) {
	p.add(bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: number, SkipTrue: uint8(len(body))})
	p.add(body...)
}

// argument loads the low or the high half of an argument.
func argument(n int, high bool) bpf.LoadAbsolute {
	off := uint32(offArgs + 8*n)
	if high {
		off += 4
	}
	return bpf.LoadAbsolute{Off: off, Size: 4}
}

// choose returns in if the low half of argument n is one of values, else out.
func choose(n int, in, out bpf.RetConstant, values ...uint32) []bpf.Instruction {
	body := []bpf.Instruction{argument(n, false)}
	for i, v := range values {
		body = append(body, bpf.JumpIf{Cond: bpf.JumpEqual, Val: v, SkipTrue: uint8(len(values) - i)})
	}
	return append(body, out, in)
}

// onlyNull allows a call if argument n is a null pointer.
func onlyNull(n int) []bpf.Instruction {
	return []bpf.Instruction{
		argument(n, false),
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 0, SkipTrue: 3},
		argument(n, true),
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 0, SkipTrue: 1},
		allowed,
		errno(unix.EPERM),
	}
}

// start writes the start of every filter.
func (p *program) start() {
	p.add(
		bpf.LoadAbsolute{Off: offArch, Size: 4},
		// Other architectures have other call numbers.
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: auditArch, SkipTrue: 1},
		killed,
		bpf.LoadAbsolute{Off: offNumber, Size: 4},
	)
	p.add(
		// This also denies calls of x32, whose numbers have a high bit set.
		bpf.JumpIf{Cond: bpf.JumpGreaterThan, Val: lastReviewed, SkipFalse: 1}, errno(unix.ENOSYS),
		// The gap between this architecture's own numbers and the common ones.
		bpf.JumpIf{Cond: bpf.JumpLessOrEqual, Val: lastOwn, SkipTrue: 2},
		bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: unix.SYS_PIDFD_SEND_SIGNAL, SkipTrue: 1}, errno(unix.ENOSYS),
	)
}

// A Filter is a program of seccomp(2).
type Filter []unix.SockFilter

// Filter returns the filter for engines that the calling thread starts.
func (p *Policy) Filter() Filter {
	var f program
	f.start()
	for _, n := range denied {
		if p.Namespaces && (n == unix.SYS_UNSHARE || n == unix.SYS_CHROOT) {
			continue
		}
		f.fail(n, unix.EPERM)
	}
	// Its flags are in memory, which a filter cannot read. The C library then uses
	// clone.
	if !p.Namespaces {
		f.fail(unix.SYS_CLONE3, unix.ENOSYS)
		f.when(unix.SYS_CLONE, argument(0, false),
			bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: namespaces, SkipTrue: 1}, errno(unix.EPERM), allowed)
	}
	// A parent may trace a process that requests it: see Settle. A running process
	// cannot be traced.
	f.when(unix.SYS_PTRACE, choose(0, allowed, errno(unix.EPERM), tracing...)...)
	switch {
	case p.Limits:
		f.when(unix.SYS_PRLIMIT64, choose(1, errno(unix.EPERM), allowed, unix.RLIMIT_LOCKS)...)
	case p.Namespaces: // a program with a built-in sandbox lowers its own limits (process 0)
		f.when(unix.SYS_PRLIMIT64, append([]bpf.Instruction{
			argument(0, false),
			bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 0, SkipTrue: 3},
			argument(1, false),
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.RLIMIT_LOCKS, SkipTrue: 1}, allowed,
		}, onlyNull(2)...)...)
	default: // reading limits is allowed
		f.when(unix.SYS_PRLIMIT64, onlyNull(2)...)
	}
	// Landlock restricts signals only since Linux 6.15. Without Settle it also lets the
	// program signal the thread that started it.
	for number, n := range signalCalls {
		f.when(number, p.signal(n)...)
	}
	f.when(unix.SYS_SETPGID, ownGroup()...)
	// The signal that a file sends, and its receiver.
	f.when(unix.SYS_FCNTL, choose(1, errno(unix.EPERM), allowed, unix.F_SETOWN, unix.F_SETOWN_EX, unix.F_SETSIG)...)
	f.when(unix.SYS_SCHED_SETAFFINITY, choose(0, allowed, errno(unix.EPERM), 0)...) // of the calling thread only
	// Before version 3 (Linux 6.2), Landlock permits truncating a read-only file.
	f.fail(unix.SYS_TRUNCATE, unix.EPERM)
	f.fail(unix.SYS_OPENAT2, unix.ENOSYS) // its flags are in memory
	for number, n := range openCalls {
		f.when(number, argument(n, false),
			bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: unix.O_ACCMODE | unix.O_TRUNC},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.O_RDONLY | unix.O_TRUNC, SkipTrue: 2},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.O_ACCMODE | unix.O_TRUNC, SkipTrue: 1}, // access mode 3: neither read nor write
			allowed, errno(unix.EPERM))
	}
	f.when(unix.SYS_IOCTL, choose(1, errno(unix.EPERM), allowed,
		unix.FS_IOC_SETFLAGS, fsSetXattr,
		unix.SIOCSPGRP, fSetOwn, // like F_SETOWN
		unix.TIOCSTI, // types on a terminal
	)...)
	if p.Unwritable {
		for number, n := range accessCalls {
			f.when(number, argument(n, false), bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: unix.W_OK, SkipTrue: 1}, errno(unix.EACCES), allowed)
		}
	}
	if !p.SharedMemory {
		// Shared memory is an unnamed file. It keeps its size when only one page or
		// nothing of it is mapped, and the kernel reports the size only to a process
		// that has it open. A limit could not count it.
		f.fail(unix.SYS_MEMFD_CREATE, unix.ENOSYS)
		f.when(unix.SYS_MMAP, argument(3, false),
			bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: unix.MAP_SHARED | unix.MAP_ANONYMOUS},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.MAP_SHARED | unix.MAP_ANONYMOUS, SkipFalse: 1}, errno(unix.EPERM), allowed)
	}
	if !p.Namespaces { // otherwise /proc would not show its open files
		f.when(unix.SYS_PRCTL, argument(0, false),
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.PR_SET_DUMPABLE, SkipTrue: 1}, allowed,
			argument(1, false),
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: 1, SkipFalse: 1}, allowed, errno(unix.EPERM))
	}
	// Sockets are for the parts of one program, and only streams: a datagram needs no
	// connection.
	f.when(unix.SYS_SOCKET, socket()...)
	f.when(unix.SYS_SOCKETPAIR, choose(0, allowed, errno(unix.EPERM), unix.AF_UNIX)...)
	if !p.Connect {
		f.fail(unix.SYS_CONNECT, unix.EPERM)
		f.when(unix.SYS_SENDTO, onlyNull(4)...)
	}
	f.add(allowed)
	return f.assemble()
}

// signal denies calls that could signal this process or processes unknown to the
// program. Argument n is a process id, a negative process group id, or -1 for all
// processes. Zero is the program's own group. The kernel reads only the low half of the
// argument.
func (p *Policy) signal(n int) []bpf.Instruction {
	self := []uint32{uint32(unix.Getpid()), uint32(unix.Gettid())}
	switch {
	case p.Namespaces, p.Processes:
		self = nil // process ids differ in a PID namespace
	case p.Limits:
		// It kills the groups of the programs that it starts.
		self = append(self, negative(1), negative(unix.Getpid()), negative(unix.Getpgrp()))
		return choose(n, errno(unix.EPERM), allowed, self...)
	}
	const signBit = 1 << 31
	body := choose(n, errno(unix.EPERM), allowed, self...)
	return append([]bpf.Instruction{
		body[0],
		bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: signBit, SkipTrue: 1}, errno(unix.EPERM),
	}, body[1:]...)
}

func negative(n int) uint32 { return uint32(int32(-n)) }

// ownGroup allows a process to create its own process group, but not to join another
// group, which it could then signal.
func ownGroup() []bpf.Instruction {
	return []bpf.Instruction{
		argument(1, false),
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipTrue: 3},
		bpf.TAX{},
		argument(0, false),
		bpf.JumpIfX{Cond: bpf.JumpNotEqual, SkipTrue: 1},
		allowed,
		errno(unix.EPERM),
	}
}

// socket allows stream sockets of the Unix family.
func socket() []bpf.Instruction {
	const kind = 0xf // without SOCK_CLOEXEC and SOCK_NONBLOCK
	return []bpf.Instruction{
		argument(0, false),
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.AF_UNIX, SkipTrue: 5},
		argument(1, false),
		bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: kind},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SOCK_STREAM, SkipTrue: 1},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.SOCK_SEQPACKET, SkipTrue: 1},
		allowed,
		errno(unix.EPERM),
	}
}

func (p *program) assemble() Filter {
	raw, err := bpf.Assemble(p.ins)
	if err != nil {
		panic(err) // the program depends only on its options
	}
	out := make(Filter, len(raw))
	for i, r := range raw {
		out[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	return out
}
