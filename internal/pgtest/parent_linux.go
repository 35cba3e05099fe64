package pgtest

import "syscall"

// dieWithParent has a child stopped when this process is killed.
func dieWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGQUIT }
