package confine

import "golang.org/x/sys/unix"

const (
	auditArch = unix.AUDIT_ARCH_X86_64
	lastOwn   = unix.SYS_RSEQ // only the kernel makes uretprobe and uprobe above it, and filters do not see them
)

// deniedHere are denied calls that only this architecture has.
var deniedHere = []uint32{
	unix.SYS_INOTIFY_INIT, unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_MODIFY_LDT, unix.SYS_MKNOD, unix.SYS_MKNODAT, unix.SYS_SETRLIMIT,
	unix.SYS_KEXEC_FILE_LOAD, unix.SYS_USELIB, unix.SYS_USTAT, unix.SYS_SYSFS, unix.SYS__SYSCTL,
	unix.SYS_CHMOD, unix.SYS_CHOWN, unix.SYS_LCHOWN, unix.SYS_UTIME, unix.SYS_UTIMES, unix.SYS_FUTIMESAT,
}

// accessCalls maps the system calls behind access(2) to the index of their mode
// argument.
var accessCalls = map[uint32]int{unix.SYS_ACCESS: 1, unix.SYS_FACCESSAT: 2, unix.SYS_FACCESSAT2: 2}

// openCalls maps the system calls behind open(2) to the index of their flags argument.
var openCalls = map[uint32]int{unix.SYS_OPEN: 1, unix.SYS_OPENAT: 2}

// callInstruction is SYSCALL.
var callInstruction = []byte{0x0f, 0x05}

func programCounter(r *unix.PtraceRegs) uintptr { return uintptr(r.Rip) }

func stackPointer(r *unix.PtraceRegs) uintptr { return uintptr(r.Rsp) }

// setCall prepares the registers for a system call (syscall(2)). It also prevents the
// restart of an interrupted call.
func setCall(r *unix.PtraceRegs, number uint64, args ...uint64) {
	r.Rax, r.Orig_rax = number, ^uint64(0)
	for i, to := range []*uint64{&r.Rdi, &r.Rsi, &r.Rdx, &r.R10, &r.R8}[:len(args)] {
		*to = args[i]
	}
}

func result(r *unix.PtraceRegs) uint64 { return r.Rax }
