//go:build !linux

package systest

import "syscall"

// DieWithParent does nothing on this system.
func DieWithParent(*syscall.SysProcAttr, syscall.Signal) {}
