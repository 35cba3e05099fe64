//go:build !linux

package engine

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/filewright/filewright/internal/worktime"
)

// Other systems have no sandbox and no fork server, and enforce only Scratch and Files
// of [Limits].

// NewSandbox returns a sandbox without layers.
func NewSandbox() *Sandbox {
	const why = ": this system has no Landlock and seccomp"
	return &Sandbox{missing: []string{"landlock" + why, "seccomp" + why, "namespaces" + why, grouped + why}}
}

func (p *Program) launch(c Cmd, proc *Process) error {
	cmd := p.command(c, proc)
	cmd.SysProcAttr = ownTree()
	if err := cmd.Start(); err != nil {
		return err
	}
	proc.pid, proc.end, proc.forget = cmd.Process.Pid, cmd.Wait, proc.mark.forget
	if err := proc.mark.hold(cmd.Process); err != nil {
		cmd.Process.Kill()
		proc.mark.forget()
		return errors.Join(err, cmd.Wait())
	}
	return nil
}

// members returns nil: only the first process is known.
func (*mark) members() []int { return nil }

func memory([]int) int64 { return 0 }

func hidden([]int, []string, bool) (files, shared int64) { return 0, 0 }

func onDisk(info fs.FileInfo) int64 { return info.Size() }

func setLimits(int, Limits, mark) error { return nil }

func (*Process) limitGroup(Limits) (stop func()) { return func() {} }

func (*Process) ignored(error) syscall.Signal { return 0 }

// Other systems have no cgroups.
type (
	groups struct{}
	group  struct{}
)

func (*group) limit(Limits, []string) error { return nil }

func (*group) outOfMemory() bool { return false }

// Work returns a meter of elapsed wall-clock time.
func (p *Process) Work() worktime.Meter {
	from := time.Now()
	return func() worktime.Usage { return worktime.Usage{Worked: time.Since(from)} }
}

// Used returns zeros.
func (p *Process) Used() (worked time.Duration, resident int64) { return 0, 0 }

const openFlags = 0

func link(*os.File, string) error { return errors.ErrUnsupported }

// A ForkServer is not available on this system.
type ForkServer struct{}

// ForkServer always fails.
func (p *Program) ForkServer(context.Context, Cmd) (*ForkServer, error) {
	return nil, errors.ErrUnsupported
}

// Start always fails.
func (*ForkServer) Start(context.Context, Cmd) (*Process, error) { return nil, errors.ErrUnsupported }

// Ended always returns true.
func (*ForkServer) Ended() bool { return true }

// Close does nothing.
func (*ForkServer) Close() error { return nil }
