//go:build unix

package systest

import "syscall"

// Signals that suspend and resume a process.
const (
	Stop = syscall.SIGSTOP
	Cont = syscall.SIGCONT
)

// Signal sends a signal to a process.
func Signal(pid int, sig syscall.Signal) error { return syscall.Kill(pid, sig) }

// AsUser makes a child run as another user.
func AsUser(a *syscall.SysProcAttr, uid, gid uint32) {
	a.Credential = &syscall.Credential{Uid: uid, Gid: gid}
}

// Mkfifo creates a named pipe.
func Mkfifo(path string) error { return syscall.Mkfifo(path, 0o600) }
