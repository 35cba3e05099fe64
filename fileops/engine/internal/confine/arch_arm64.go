package confine

import "golang.org/x/sys/unix"

const (
	auditArch = unix.AUDIT_ARCH_AARCH64
	x32       = 0
)

// What other architectures have under other names.
var deniedHere = []uint32{unix.SYS_MKNODAT, unix.SYS_SETRLIMIT, unix.SYS_KEXEC_FILE_LOAD}

// accessCalls are the system calls behind access(2), and which argument of each is
// the mode.
var accessCalls = map[uint32]int{unix.SYS_FACCESSAT: 2, unix.SYS_FACCESSAT2: 2}

// openCalls are those behind open(2), and which argument of each has the flags.
var openCalls = map[uint32]int{unix.SYS_OPENAT: 2}
