package engine

import (
	"errors"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// A mark is the job object of a run. Windows kills the processes of a job when the job
// or this process ends. A process that the program starts before hold returns is not
// part of the job.
type mark struct {
	job   windows.Handle
	group *group // always nil
}

func newMark() mark { return mark{} }

func ownTree() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP}
}

func (m *mark) hold(p *os.Process) (err error) {
	if m.job, err = windows.CreateJobObject(nil, nil); err != nil {
		return err
	}
	info := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{
		BasicLimitInformation: windows.JOBOBJECT_BASIC_LIMIT_INFORMATION{LimitFlags: windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE},
	}
	_, err = windows.SetInformationJobObject(m.job, windows.JobObjectExtendedLimitInformation, uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	if err == nil {
		herr := p.WithHandle(func(h uintptr) { err = windows.AssignProcessToJobObject(m.job, windows.Handle(h)) })
		err = errors.Join(herr, err)
	}
	return err
}

func (m *mark) kill() { windows.TerminateJobObject(m.job, 1) }

func (m *mark) forget() { windows.CloseHandle(m.job) }
