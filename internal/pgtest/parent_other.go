//go:build unix && !linux

package pgtest

import "syscall"

// dieWithParent does nothing on this system.
func dieWithParent(*syscall.SysProcAttr) {}
