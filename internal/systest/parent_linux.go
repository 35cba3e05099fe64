package systest

import "syscall"

// DieWithParent makes the kernel send sig to a child when the thread that starts it exits, so that
// nothing outlives killed tests. It does nothing on other systems.
func DieWithParent(a *syscall.SysProcAttr, sig syscall.Signal) { a.Pdeathsig = sig }
