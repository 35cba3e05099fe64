package confine

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// System calls without a function in package unix.

// createRuleset calls landlock_create_ruleset(2) with the fields of attr that version v
// of Landlock knows.
func createRuleset(attr *unix.LandlockRulesetAttr, v int) (int, error) {
	size := unsafe.Sizeof(*attr)
	switch {
	case v < 4:
		size = unsafe.Offsetof(attr.Access_net)
	case v < 6:
		size = unsafe.Offsetof(attr.Scoped)
	}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(attr)), size, 0)
	if errno != 0 {
		return -1, errno
	}
	return int(fd), nil
}

// addRule calls landlock_add_rule(2).
func addRule(set int, attr *unix.LandlockPathBeneathAttr) error {
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(set), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(attr)), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// restrict calls landlock_restrict_self(2), for the calling thread.
func restrict(set int) error {
	_, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(set), 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// Load calls seccomp(2), for the calling thread.
func (f Filter) Load() error {
	prog := unix.SockFprog{Len: uint16(len(f)), Filter: &f[0]}
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog))); errno != 0 {
		return fmt.Errorf("seccomp: %w", errno)
	}
	return nil
}

// image returns the memory image of the filter at an address: a struct sock_fprog
// followed by the instructions.
func (f Filter) image(at uintptr) []byte {
	b := binary.NativeEndian.AppendUint64(nil, uint64(len(f))) // 16 bits and padding: little-endian
	b = binary.NativeEndian.AppendUint64(b, uint64(at)+16)
	for _, i := range f {
		b = binary.NativeEndian.AppendUint16(b, i.Code)
		b = append(b, i.Jt, i.Jf)
		b = binary.NativeEndian.AppendUint32(b, i.K)
	}
	return b
}
