package confine

import "golang.org/x/sys/unix"

const (
	auditArch = unix.AUDIT_ARCH_AARCH64
	lastOwn   = unix.SYS_KEXEC_FILE_LOAD
)

// deniedHere are denied calls that have other names on other architectures.
var deniedHere = []uint32{unix.SYS_MKNODAT, unix.SYS_SETRLIMIT, unix.SYS_KEXEC_FILE_LOAD}

// accessCalls maps the system calls behind access(2) to the index of their mode
// argument.
var accessCalls = map[uint32]int{unix.SYS_FACCESSAT: 2, unix.SYS_FACCESSAT2: 2}

// openCalls maps the system calls behind open(2) to the index of their flags argument.
var openCalls = map[uint32]int{unix.SYS_OPENAT: 2}

// callInstruction is SVC #0.
var callInstruction = []byte{0x01, 0x00, 0x00, 0xd4}

func programCounter(r *unix.PtraceRegs) uintptr { return uintptr(r.Pc) }

func stackPointer(r *unix.PtraceRegs) uintptr { return uintptr(r.Sp) }

// setCall prepares the registers for a system call (syscall(2)).
func setCall(r *unix.PtraceRegs, number uint64, args ...uint64) {
	r.Regs[8] = number
	copy(r.Regs[:], args)
}

func result(r *unix.PtraceRegs) uint64 { return r.Regs[0] }
