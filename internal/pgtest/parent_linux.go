package pgtest

import "syscall"

// dieWithParent makes the kernel stop a child when this process is killed.
func dieWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGQUIT }
