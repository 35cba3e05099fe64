package s3test

import (
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	sigStop = syscall.SIGSTOP
	sigCont = syscall.SIGCONT
)

// hasAttributes reports whether files in dir can have extended attributes.
func hasAttributes(dir string) bool {
	return unix.Setxattr(dir, "user.s3test", []byte("x"), 0) == nil
}

func dieWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }
