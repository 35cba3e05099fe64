package engine

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/filewright/filewright/fileops/engine/internal/confine"
)

// launch starts c on a thread of its own, one of [confine.Go], which stays until the process has
// ended.
func (p *Program) launch(c Cmd, proc *Process) error {
	cmd := p.command(c, proc)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	var policy *confine.Policy
	if p.Sandbox != nil {
		policy = p.policy(c)
	}
	result := make(chan error)
	confine.Go(func() { proc.live(cmd, p.Sandbox, policy, c.Limits, result) })
	return <-result
}

// live starts the process and stays with it to its end, on a thread of its own, one of
// [confine.Go]. The process inherits what the thread is confined to, and ends with the thread
// (PR_SET_PDEATHSIG(2const)).
func (p *Process) live(cmd *exec.Cmd, s *Sandbox, policy *confine.Policy, l Limits, result chan<- error) {
	var rules *os.File
	var key uint64
	if policy != nil {
		if s.layers.namespaces && !policy.Namespaces { // else it makes some itself
			key = newKey()
		}
		var err error
		if rules, err = policy.Thread(s.layers.confined(), key); err != nil {
			result <- err
			return
		}
	}
	// What sees /proc, as who makes namespaces does, sees the memory of its equals.
	started, err := startLimited(cmd, l, p.mark, rules, key, rules != nil && policy.Namespaces)
	rules.Close() // nil where there is none
	if started {
		p.pid, p.end, p.mark.first = cmd.Process.Pid, cmd.Wait, cmd.Process.Pid
	}
	if err != nil {
		if started {
			p.Kill()
			p.end()
		}
		result <- err
		return
	}
	result <- nil
	<-p.gone
}

// startLimited starts cmd with limits that hold from its first instruction on, with no
// descriptors but its own, and with rules, if there are any, in force once more (see
// [confine.Settle]): a traced program stops when it has been loaded, and waits until it is
// let go. With a key it gets namespaces of its own, if there are any left. Where tracing is not allowed the limits come a moment late, and the rules not at
// all: with must, it is not started then. The goroutine must be locked to its thread,
// because it is the thread that traces.
func startLimited(cmd *exec.Cmd, l Limits, m mark, rules *os.File, key uint64, must bool) (started bool, err error) {
	if err := confine.MarkDescriptors(false); err != nil {
		return false, err
	}
	untraced := *cmd
	attr := *cmd.SysProcAttr
	attr.Ptrace = true
	cmd.SysProcAttr = &attr
	first := 3 + len(cmd.ExtraFiles)
	if rules != nil {
		cmd.ExtraFiles = append(slices.Clone(cmd.ExtraFiles), rules)
	}
	err = cmd.Start()
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSYS) { // emulators of another processor have no ptrace
		if must {
			return false, fmt.Errorf("it cannot be traced, and so not be kept from this process: %w", err)
		}
		*cmd = untraced
		if err := confine.MarkDescriptors(true); err != nil {
			return false, err
		}
		if err := cmd.Start(); err != nil {
			return false, err
		}
		return true, setLimits(cmd.Process.Pid, l, m)
	}
	if err != nil {
		return false, err
	}
	pid := cmd.Process.Pid
	if err = confine.Stopped(pid); err == nil {
		err = setLimits(pid, l, m)
	}
	if err == nil {
		start := confine.Start{First: first, Rules: rules != nil, Key: key}
		err = confine.Settle(pid, start)
		if errors.Is(err, unix.ENOSPC) { // user.max_net_namespaces and the like
			start.Key = 0
			err = confine.Settle(pid, start)
		}
		if err != nil {
			err = fmt.Errorf("confine: %w", err)
		}
	}
	if derr := unix.PtraceDetach(pid); derr != nil && derr != unix.ESRCH {
		err = errors.Join(err, derr)
	}
	return true, err
}

// setLimits limits and marks a process that was just started by us. It does so
// from a thread that is not confined: one that is may not set limits.
func setLimits(pid int, l Limits, m mark) error {
	done := make(chan error)
	go func() { done <- prlimit(pid, l, m) }()
	if err := <-done; err != nil {
		return fmt.Errorf("set limits: %w", err)
	}
	return nil
}

func prlimit(pid int, l Limits, m mark) error {
	type limit struct {
		resource int
		set      bool
		soft     uint64
		hard     uint64
	}
	// At the hard limit the kernel sends SIGKILL, which tells nobody why;
	// SIGXCPU comes at the soft limit, if that is lower.
	cpu := uint64((l.CPU + time.Second - 1) / time.Second)
	for _, x := range []limit{
		{unix.RLIMIT_CORE, true, 0, 0},
		{unix.RLIMIT_CPU, l.CPU > 0, cpu, cpu + 1},
		{unix.RLIMIT_AS, l.Memory > 0, uint64(l.Memory), uint64(l.Memory)},
		{unix.RLIMIT_FSIZE, l.FileSize > 0, uint64(l.FileSize), uint64(l.FileSize)},
		{m.resource, m.value > 0, m.value, m.value},
	} {
		if !x.set {
			continue
		}
		if err := unix.Prlimit(pid, x.resource, &unix.Rlimit{Cur: x.soft, Max: x.hard}, nil); err != nil {
			return err
		}
	}
	return nil
}
