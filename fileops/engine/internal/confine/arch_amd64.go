package confine

import "golang.org/x/sys/unix"

const (
	auditArch = unix.AUDIT_ARCH_X86_64
	x32       = 0x40000000 // __X32_SYSCALL_BIT
)

// What only this architecture has.
var deniedHere = []uint32{
	unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_MODIFY_LDT, unix.SYS_MKNOD, unix.SYS_MKNODAT, unix.SYS_SETRLIMIT,
	unix.SYS_KEXEC_FILE_LOAD, unix.SYS_USELIB, unix.SYS_USTAT, unix.SYS_SYSFS, unix.SYS__SYSCTL,
}
