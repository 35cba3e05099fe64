//go:build !linux

package s3test

import "syscall"

const (
	sigStop = syscall.Signal(17) // of macOS; Windows refuses it
	sigCont = syscall.Signal(19)
)

func hasAttributes(string) bool { return false }

// dieWithParent can do nothing here.
func dieWithParent(*syscall.SysProcAttr) {}
