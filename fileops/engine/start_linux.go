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

// ownNamespaces are the flags of the namespaces that a program starts in; tier 4 adds
// CLONE_NEWPID. The user namespace maps no users, so nobody in it is root and the
// program has no capabilities. Like any other child, it shares memory with this process
// until its program is loaded.
const ownNamespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_VM | unix.CLONE_VFORK

// launch starts c on a separate thread of [confine.Go], which lives until the process
// has ended.
func (p *Program) launch(c Cmd, proc *Process) error {
	s := start{cmd: p.command(c, proc), limits: c.Limits, mark: proc.mark}
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if p.Sandbox != nil {
		s.layers, s.policy = p.Sandbox.layers, p.policy(c)
		if s.layers.namespaces && !s.policy.Namespaces { // such a program creates its own
			s.flags = ownNamespaces
		}
		if s.layers.groups != nil && !c.forks {
			var err error
			if s.group, err = s.layers.groups.group(c.Limits, proc.dirs); err != nil {
				return err
			}
			// A program that starts others searches for them in /proc, which has the
			// host's process ids.
			if s.flags != 0 && !s.policy.Limits {
				s.flags |= unix.CLONE_NEWPID
				s.policy.Processes = true
			}
		}
	}
	group, result := s.group, make(chan error)
	confine.Go(func() {
		result <- s.start()
		<-proc.gone // the process is killed when the thread ends (PR_SET_PDEATHSIG(2const))
	})
	err := <-result
	if s.group == nil {
		err = errors.Join(err, group.remove())
	}
	if s.cmd.Process != nil {
		proc.pid, proc.end, proc.forget = s.cmd.Process.Pid, s.cmd.Wait, func() { _ = s.group.remove() } // if this fails, the next server removes the group
		proc.spent = func() time.Duration { return s.cmd.ProcessState.UserTime() + s.cmd.ProcessState.SystemTime() }
		proc.mark.first, proc.mark.group, proc.mark.leads = proc.pid, s.group, s.flags&unix.CLONE_NEWPID != 0
	}
	if err != nil {
		if s.cmd.Process != nil {
			proc.Kill()
			_ = proc.end() // it was killed, so an error is expected
		}
		close(proc.gone)
		return errors.Join(err, s.group.remove())
	}
	return nil
}

// A start is the work of the thread that starts a process.
type start struct {
	cmd    *exec.Cmd
	limits Limits
	mark   mark
	layers layers
	policy *confine.Policy // nil without a sandbox
	flags  uintptr         // of clone(2)
	group  *group          // may be nil
	probe  bool            // leaves the program stopped
}

// start starts the program as a traced process: the program stops after it is loaded,
// and continues when start detaches. The limits, the rules and the filter are then in
// force from the first instruction, and the program inherits no foreign descriptors (see
// [confine.Settle]).
//
// If the host has run out of namespaces (user.max_net_namespaces and the like) or
// groups, the program runs without them. If tracing is not allowed, the limits come a
// moment late and the program is not restricted a second time. A program that sees
// /proc, because it makes namespaces, could then read the memory of other confined
// processes, so start fails for it.
func (s *start) start() error {
	var rules *os.File
	var filter confine.Filter
	if s.policy != nil {
		var err error
		if rules, err = s.policy.Thread(confine.Layers{Landlock: s.layers.landlock}); err != nil {
			return err
		}
		defer rules.Close() // nil without Landlock
		if s.layers.seccomp {
			filter = s.policy.Filter()
		}
	}
	if err := confine.MarkDescriptors(false); err != nil {
		return err
	}
	plain := *s.cmd
	err := s.traced(rules, filter)
	if s.cmd.Process == nil && (s.flags != 0 || s.group != nil) && (refused(err) || isOne(err, unix.ENOSPC, unix.ENODEV, unix.EBUSY, unix.EOPNOTSUPP, unix.EACCES)) {
		if s.policy.Processes {
			s.policy.Processes = false
			filter = s.policy.Filter()
		}
		s.flags, s.group = 0, nil
		again := plain
		s.cmd = &again
		err = s.traced(rules, filter)
	}
	if !refused(err) || s.cmd.Process != nil {
		return err
	}
	if rules != nil && s.policy.Namespaces {
		return fmt.Errorf("it cannot be traced, and so not be kept from this process: %w", err)
	}
	s.cmd = &plain
	if err := confine.MarkDescriptors(true); err != nil {
		return err
	}
	if filter != nil {
		if err := filter.Load(); err != nil {
			return err
		}
	}
	if err := s.cmd.Start(); err != nil {
		return err
	}
	return setLimits(s.cmd.Process.Pid, s.limits, s.mark)
}

// refused reports whether the kernel denies namespaces or tracing. Emulators of another
// processor do not have ptrace.
func refused(err error) bool { return isOne(err, unix.EPERM, unix.ENOSYS) }

func isOne(err error, errnos ...unix.Errno) bool {
	return slices.ContainsFunc(errnos, func(e unix.Errno) bool { return errors.Is(err, e) })
}

// traced starts the program and makes it confine itself before its first instruction.
func (s *start) traced(rules *os.File, filter confine.Filter) error {
	attr := *s.cmd.SysProcAttr
	attr.Ptrace, attr.Cloneflags = true, s.flags
	if s.group != nil {
		attr.UseCgroupFD, attr.CgroupFD = true, int(s.group.fd.Fd())
	}
	s.cmd.SysProcAttr = &attr
	first := 3 + len(s.cmd.ExtraFiles)
	if rules != nil {
		s.cmd.ExtraFiles = append(slices.Clone(s.cmd.ExtraFiles), rules)
	}
	if err := s.cmd.Start(); err != nil {
		return err
	}
	pid := s.cmd.Process.Pid
	err := confine.Stopped(pid)
	if err == nil {
		err = setLimits(pid, s.limits, s.mark)
	}
	if err == nil {
		if err = confine.Settle(pid, confine.Start{First: first, Rules: rules != nil, Filter: filter}); err != nil {
			err = fmt.Errorf("confine: %w", err)
		}
	}
	if s.probe {
		return err
	}
	if derr := unix.PtraceDetach(pid); derr != nil && derr != unix.ESRCH {
		err = errors.Join(err, derr)
	}
	return err
}

// setLimits limits and marks a process that we have just started. It uses an unconfined
// thread, because a confined thread may not set limits.
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
	// At the hard limit the kernel sends SIGKILL, which does not show the reason. At a
	// lower soft limit it sends SIGXCPU.
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
