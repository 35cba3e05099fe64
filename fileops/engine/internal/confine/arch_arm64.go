package confine

import "golang.org/x/sys/unix"

const (
	auditArch = unix.AUDIT_ARCH_AARCH64
	x32       = 0
)

// What other architectures have under other names.
var deniedHere = []uint32{unix.SYS_MKNODAT, unix.SYS_SETRLIMIT, unix.SYS_KEXEC_FILE_LOAD}
