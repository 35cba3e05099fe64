package engine

import (
	"errors"
	"os/exec"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// startLimited starts cmd with limits that hold from its first instruction on:
// a program that is traced stops when it has been loaded, and waits until it is
// let go. Where tracing is not allowed the limits come a moment late.
func startLimited(cmd *exec.Cmd, l Limits) (started bool, err error) {
	if l == (Limits{}) {
		if err := cmd.Start(); err != nil {
			return false, err
		}
		return true, setLimits(cmd.Process.Pid, l)
	}
	runtime.LockOSThread() // it is the thread that traces
	defer runtime.UnlockOSThread()
	untraced := *cmd
	attr := *cmd.SysProcAttr
	attr.Ptrace = true
	cmd.SysProcAttr = &attr
	err = cmd.Start()
	if errors.Is(err, unix.EPERM) {
		*cmd = untraced
		if err := cmd.Start(); err != nil {
			return false, err
		}
		return true, setLimits(cmd.Process.Pid, l)
	}
	if err != nil {
		return false, err
	}
	pid := cmd.Process.Pid
	for { // WNOWAIT leaves a process that was killed at once to cmd.Wait
		err = unix.Waitid(unix.P_PID, pid, nil, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			break
		}
	}
	if err == nil {
		err = setLimits(pid, l)
	}
	if derr := unix.PtraceDetach(pid); derr != nil && derr != unix.ESRCH {
		err = errors.Join(err, derr)
	}
	return true, err
}

// setLimits limits a process that was just started by us.
func setLimits(pid int, l Limits) error {
	set := func(resource int, n uint64) error {
		return unix.Prlimit(pid, resource, &unix.Rlimit{Cur: n, Max: n}, nil)
	}
	if err := set(unix.RLIMIT_CORE, 0); err != nil {
		return err
	}
	if l.CPU > 0 {
		// At the hard limit the kernel sends SIGKILL, which tells nobody why;
		// SIGXCPU comes at the soft limit, if that is lower.
		n := uint64((l.CPU + time.Second - 1) / time.Second)
		if err := unix.Prlimit(pid, unix.RLIMIT_CPU, &unix.Rlimit{Cur: n, Max: n + 1}, nil); err != nil {
			return err
		}
	}
	if l.Memory > 0 {
		if err := set(unix.RLIMIT_AS, uint64(l.Memory)); err != nil {
			return err
		}
	}
	if l.FileSize > 0 {
		if err := set(unix.RLIMIT_FSIZE, uint64(l.FileSize)); err != nil {
			return err
		}
	}
	return nil
}
