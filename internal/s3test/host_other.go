//go:build !linux

package s3test

import "syscall"

const (
	sigStop = syscall.Signal(17) // on macOS; Windows rejects it
	sigCont = syscall.Signal(19)
)

func hasAttributes(string) bool { return false }

// dieWithParent does nothing on this system.
func dieWithParent(*syscall.SysProcAttr) {}
