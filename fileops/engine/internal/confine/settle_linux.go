package confine

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// A Start says what [Settle] does.
type Start struct {
	First  int    // all descriptors from this one on are closed
	Rules  bool   // the first of them is a ruleset of Landlock, which is put in force
	Filter Filter // of system calls, which is put in force; may be empty
}

// Settle prepares a process that was started by the calling thread with PTRACE_TRACEME and
// has stopped where its program begins; it is there again after Settle. The process makes
// the system calls that [Start] asks for itself.
//
// Descriptors: this package's own are closed by exec, but others in the host program, such
// as C libraries, may open files without O_CLOEXEC.
//
// Ruleset: what a confined thread starts is confined to the same domain as the thread, and to
// Landlock those of one domain are equals. The program might signal the thread, which
// ends the process that the thread is part of, and read and write its memory. A process that
// has restricted itself once more is below the thread, and reaches nothing there. A thread
// can do that for itself only (landlock_restrict_self(2)), and between fork and
// exec nothing runs that is ours.
//
// Filter: the thread does not have it, because it denies the new namespaces that the process
// was started in.
func Settle(pid int, start Start) (err error) {
	var saved unix.PtraceRegs
	if err := unix.PtraceGetRegs(pid, &saved); err != nil {
		return fmt.Errorf("read registers: %w", err)
	}
	here, code := programCounter(&saved), make([]byte, len(callInstruction))
	if _, err := unix.PtracePeekText(pid, here, code); err != nil {
		return fmt.Errorf("read code: %w", err)
	}
	if _, err := unix.PtracePokeText(pid, here, callInstruction); err != nil {
		return fmt.Errorf("write code: %w", err)
	}
	defer func() { // also after an error: the caller may try again with less
		if _, perr := unix.PtracePokeText(pid, here, code); perr != nil {
			err = errors.Join(err, fmt.Errorf("write code: %w", perr))
		}
		if perr := unix.PtraceSetRegs(pid, &saved); perr != nil {
			err = errors.Join(err, fmt.Errorf("write registers: %w", perr))
		}
	}()
	call := func(name string, number uint64, args ...uint64) error {
		regs := saved
		setCall(&regs, number, args...)
		if err := step(pid, &regs); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if r := int64(result(&regs)); r != 0 {
			return fmt.Errorf("%s: %w", name, unix.Errno(-r))
		}
		return nil
	}
	at := (stackPointer(&saved) - 8192) &^ 15 // nothing is there yet
	if len(start.Filter) > 0 {
		if _, err := unix.PtracePokeText(pid, at, start.Filter.image(at)); err != nil {
			return fmt.Errorf("write stack: %w", err)
		}
	}
	if start.Rules {
		if err := call("landlock_restrict_self", unix.SYS_LANDLOCK_RESTRICT_SELF, uint64(start.First), 0); err != nil {
			return err
		}
	}
	if hasCloseRange() {
		if err := call("close_range", unix.SYS_CLOSE_RANGE, uint64(start.First), math.MaxUint32, 0); err != nil {
			return err
		}
	}
	if len(start.Filter) > 0 {
		return call("seccomp", unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uint64(at))
	}
	return nil
}

// step executes one instruction with regs, which it replaces by what they are then.
func step(pid int, regs *unix.PtraceRegs) error {
	if err := unix.PtraceSetRegs(pid, regs); err != nil {
		return err
	}
	if err := unix.PtraceSingleStep(pid); err != nil {
		return err
	}
	if err := Stopped(pid); err != nil {
		return err
	}
	return unix.PtraceGetRegs(pid, regs) // ESRCH if it has ended
}

// Stopped waits until a process that is traced has stopped, or ended. One that has ended
// is left to who waits for its end.
func Stopped(pid int) error {
	for {
		if err := unix.Waitid(unix.P_PID, pid, nil, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil); err != unix.EINTR {
			return err
		}
	}
}

// hasCloseRange reports whether the kernel has close_range(2), as all with Landlock do.
var hasCloseRange = sync.OnceValue(func() bool {
	return unix.CloseRange(math.MaxUint32, math.MaxUint32, 0) == nil
})

// MarkDescriptors has the descriptors of this process be closed by exec, from 3 on, where
// [Settle] cannot close those of a program: with force because it is not called, otherwise
// if the kernel is too old for it.
func MarkDescriptors(force bool) error {
	if hasCloseRange() {
		if !force {
			return nil
		}
		if unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) == nil { // since Linux 5.11
			return nil
		}
	}
	// A kernel without close_range has no Landlock that would hide this from the thread.
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	for _, d := range open {
		if fd, err := strconv.Atoi(d.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd) // fails for the directory itself, which is closed by now
		}
	}
	return nil
}
