//go:build unix && !linux

package engine

import (
	"os"
	"syscall"
)

// A mark is the process group of a run. A process that leaves the group is not found
// again.
type mark struct {
	first int
	group *group // always nil
}

func newMark() mark { return mark{} }

func ownTree() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func (m *mark) hold(p *os.Process) error {
	m.first = p.Pid
	return nil
}

func (m *mark) kill() { syscall.Kill(-m.first, syscall.SIGKILL) }

func (*mark) forget() {}
