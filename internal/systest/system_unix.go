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

// SetReadBuffer sets the size of a socket's receive buffer, in bytes. Before the connection exists
// that also limits the window of the peer.
func SetReadBuffer(socket uintptr, size int) error {
	return syscall.SetsockoptInt(int(socket), syscall.SOL_SOCKET, syscall.SO_RCVBUF, size)
}
