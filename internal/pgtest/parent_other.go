//go:build unix && !linux

package pgtest

import "syscall"

// dieWithParent can do nothing here.
func dieWithParent(*syscall.SysProcAttr) {}
