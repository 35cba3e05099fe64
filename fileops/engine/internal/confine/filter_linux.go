package confine

import (
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// denied are system calls that no engine needs: those that look into other
// processes, that change what belongs to the whole machine, and that have been
// the way out of a sandbox before. A filter lists what is denied and not what is
// allowed, because the engines are whole distributions of libraries, and one
// that misses a harmless call fails in the middle of a document.
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
	// what is done with files elsewhere: it tells the names that Landlock hides
	unix.SYS_FANOTIFY_INIT, unix.SYS_INOTIFY_INIT1, unix.SYS_INOTIFY_ADD_WATCH,
	// kernel
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEXEC_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE,
	unix.SYS_DELETE_MODULE, unix.SYS_REBOOT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_SYSLOG, unix.SYS_LOOKUP_DCOOKIE,
	unix.SYS_PERSONALITY, unix.SYS_VHANGUP, unix.SYS_LSM_GET_SELF_ATTR, unix.SYS_LSM_SET_SELF_ATTR, unix.SYS_LSM_LIST_MODULES,
	// memory that no limit counts; which pages of a file others have read
	unix.SYS_MEMFD_SECRET, unix.SYS_CACHESTAT,
	// what is not in a file system and stays when its maker ends: shared memory, queues,
	// semaphores
	unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_SEMGET,
	unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK,
	// what a file is like beyond its content, which Landlock leaves alone: an input may
	// be the very file that was uploaded, under another name
	unix.SYS_FCHMOD, unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2, unix.SYS_FCHOWN, unix.SYS_FCHOWNAT, unix.SYS_UTIMENSAT,
	unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_FSETXATTR, unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR, unix.SYS_FREMOVEXATTR,
	unix.SYS_SETXATTRAT, unix.SYS_REMOVEXATTRAT, unix.SYS_FILE_SETATTR,
	// clock and name
	unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_CLOCK_ADJTIME, unix.SYS_ADJTIMEX, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME,
}, deniedHere...)

// namespaces are the flags of clone(2) for new namespaces.
const namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET |
	unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

// tracing are the requests of ptrace(2) to a process that has asked to be traced.
var tracing = []uint32{
	unix.PTRACE_TRACEME, unix.PTRACE_GETREGSET, unix.PTRACE_SETREGSET, unix.PTRACE_PEEKTEXT, unix.PTRACE_POKETEXT,
	unix.PTRACE_SINGLESTEP, unix.PTRACE_DETACH,
}

// lastReviewed is the newest system call that was looked at for this filter, which is
// as of Linux 7.0. Calls with higher numbers answer ENOSYS, as from a kernel that lacks
// them: programs then do without.
//
// Since version 5.1 all architectures give new calls the same numbers. Reviewed from 424
// on and allowed: close_range, faccessat2, epoll_pwait2, landlock_*, futex_*,
// set_mempolicy_home_node, map_shadow_stack, mseal, getxattrat, listxattrat,
// file_getattr, rseq_slice_yield.
const lastReviewed = unix.SYS_RSEQ_SLICE_YIELD

const (
	fsSetXattr = 0x401c5820 // FS_IOC_FSSETXATTR: the file's flags in another way
	fSetOwn    = 0x8901     // FIOSETOWN
)

// signalCalls are the system calls that send signals, and which argument of each is the
// receiver: of those with two the thread, not the process that it is part of. One of
// them opens a process for another that does.
var signalCalls = map[uint32]int{
	unix.SYS_KILL: 0, unix.SYS_TKILL: 0, unix.SYS_TGKILL: 1, unix.SYS_RT_SIGQUEUEINFO: 0, unix.SYS_RT_TGSIGQUEUEINFO: 1, unix.SYS_PIDFD_OPEN: 0,
}

// Where seccomp_data has what (seccomp(2)); the words of an argument are in the
// order of the machine, which is little-endian on all that are supported.
const (
	offNumber = 0
	offArch   = 4
	offArgs   = 16
)

// A program is a filter that is being written: straight on, without labels. The
// number of the system call is in the accumulator between its parts.
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

// when runs the part that body writes for one system call. The part must end
// with a return.
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

// choose ends a call with in if argument n, or rather the low half of it, is one of
// values, else with out.
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

// start writes what every filter begins with.
func (p *program) start() {
	p.add(
		bpf.LoadAbsolute{Off: offArch, Size: 4},
		// The numbers are others in another architecture's calls.
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: auditArch, SkipTrue: 1},
		killed,
		bpf.LoadAbsolute{Off: offNumber, Size: 4},
	)
	p.add(
		// Also calls of the x32 architecture, whose numbers have a high bit set.
		bpf.JumpIf{Cond: bpf.JumpGreaterThan, Val: lastReviewed, SkipFalse: 1}, errno(unix.ENOSYS),
		// The gap between the numbers of this architecture and those common to all.
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
	// Its flags are in memory, where a filter cannot look; the C library then
	// uses clone.
	if !p.Namespaces {
		f.fail(unix.SYS_CLONE3, unix.ENOSYS)
		f.when(unix.SYS_CLONE, argument(0, false),
			bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: namespaces, SkipTrue: 1}, errno(unix.EPERM), allowed)
	}
	// A process may be traced by the one that starts it, if it wants to be: see Settle.
	// Nothing can be traced that runs already.
	f.when(unix.SYS_PTRACE, choose(0, allowed, errno(unix.EPERM), tracing...)...)
	switch {
	case p.Limits:
		f.when(unix.SYS_PRLIMIT64, choose(1, errno(unix.EPERM), allowed, unix.RLIMIT_LOCKS)...)
	case p.Namespaces: // what has a sandbox of its own lowers its own limits, of process 0
		f.when(unix.SYS_PRLIMIT64, append([]bpf.Instruction{
			argument(0, false),
			bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 0, SkipTrue: 3},
			argument(1, false),
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.RLIMIT_LOCKS, SkipTrue: 1}, allowed,
		}, onlyNull(2)...)...)
	default: // they may be asked for
		f.when(unix.SYS_PRLIMIT64, onlyNull(2)...)
	}
	// Landlock restricts signals only from Linux 6.15 on, and where Settle is not possible
	// it lets the program signal the thread that started it.
	for number, n := range signalCalls {
		f.when(number, p.signal(n)...)
	}
	f.when(unix.SYS_SETPGID, ownGroup()...)
	// Which signal a file sends, and to whom.
	f.when(unix.SYS_FCNTL, choose(1, errno(unix.EPERM), allowed, unix.F_SETOWN, unix.F_SETOWN_EX, unix.F_SETSIG)...)
	f.when(unix.SYS_SCHED_SETAFFINITY, choose(0, allowed, errno(unix.EPERM), 0)...) // of the calling thread only
	// Before version 3 (Linux 6.2) Landlock lets a file be shortened that may only be
	// read.
	f.fail(unix.SYS_TRUNCATE, unix.EPERM)
	f.fail(unix.SYS_OPENAT2, unix.ENOSYS) // its flags are in memory
	for number, n := range openCalls {
		f.when(number, argument(n, false),
			bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: unix.O_ACCMODE | unix.O_TRUNC},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.O_RDONLY | unix.O_TRUNC, SkipTrue: 2},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.O_ACCMODE | unix.O_TRUNC, SkipTrue: 1}, // neither to read nor to write
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
		// Shared memory is a file without a name. It keeps its size when only a page of it
		// is mapped, or when no process has it mapped, and the kernel reports its size to
		// nobody but a process that has it open: a limit could not count it.
		f.fail(unix.SYS_MEMFD_CREATE, unix.ENOSYS)
		f.when(unix.SYS_MMAP, argument(3, false),
			bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: unix.MAP_SHARED | unix.MAP_ANONYMOUS},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.MAP_SHARED | unix.MAP_ANONYMOUS, SkipFalse: 1}, errno(unix.EPERM), allowed)
	}
	if !p.Namespaces { // then /proc would not show what files it has open
		f.when(unix.SYS_PRCTL, argument(0, false),
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.PR_SET_DUMPABLE, SkipTrue: 1}, allowed,
			argument(1, false),
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: 1, SkipFalse: 1}, allowed, errno(unix.EPERM))
	}
	// Sockets are for the parts of one program, and only streams: a datagram
	// needs no connection.
	f.when(unix.SYS_SOCKET, socket()...)
	f.when(unix.SYS_SOCKETPAIR, choose(0, allowed, errno(unix.EPERM), unix.AF_UNIX)...)
	if !p.Connect {
		f.fail(unix.SYS_CONNECT, unix.EPERM)
		f.when(unix.SYS_SENDTO, onlyNull(4)...)
	}
	f.add(allowed)
	return f.assemble()
}

// signal denies calls with which a program could signal this process, or others that it
// does not know: argument n is a process, or minus the number of a process group, or -1 for
// all processes. Zero is the program's own group. The kernel looks at the low half of the
// argument only.
func (p *Policy) signal(n int) []bpf.Instruction {
	self := []uint32{uint32(unix.Getpid()), uint32(unix.Gettid())}
	switch {
	case p.Namespaces, p.Processes:
		self = nil // the numbers are others in a namespace of processes
	case p.Limits:
		// It ends the groups of the programs that it starts.
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

// ownGroup allows a process to have a group of its own, but not to join another's: it
// could signal that.
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

// socket allows streams of the family of Unix.
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
		panic(err) // the program is the same every time, but for its options
	}
	out := make(Filter, len(raw))
	for i, r := range raw {
		out[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	return out
}
