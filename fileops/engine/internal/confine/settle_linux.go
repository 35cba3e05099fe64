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

// A Start lists the actions of [Settle].
type Start struct {
	First  int    // close all descriptors from this number on
	Rules  bool   // descriptor First is a Landlock ruleset to put in force
	Filter Filter // system call filter to put in force; may be empty
}

// Settle prepares a process that the calling thread started with PTRACE_TRACEME, and
// that has stopped before its first instruction. It makes the process itself execute the
// system calls for [Start], and leaves it stopped at the same instruction.
//
// Descriptors: exec closes this package's own, but other code in the host program, such
// as C libraries, may open files without O_CLOEXEC.
//
// Ruleset: a program starts in the Landlock domain of its thread, and Landlock treats
// processes of one domain as equals. The program could signal the thread, which kills
// the thread's process, and read and write its memory. A process that restricts itself
// once more is below the thread and cannot reach it. A thread can only restrict itself
// (landlock_restrict_self(2)), and no code of ours runs between fork and exec.
//
// Filter: the thread runs without it, because it denies the namespaces that the process
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
	defer func() { // also after an error: the caller may retry with fewer layers
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
	at := (stackPointer(&saved) - 8192) &^ 15 // unused memory
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

// step executes one instruction with regs and updates regs to the state after it.
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

// Stopped waits until a traced process has stopped or ended. It does not reap an ended
// process.
func Stopped(pid int) error {
	for {
		if err := unix.Waitid(unix.P_PID, pid, nil, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil); err != unix.EINTR {
			return err
		}
	}
}

// hasCloseRange reports whether the kernel has close_range(2). All kernels with Landlock
// have it.
var hasCloseRange = sync.OnceValue(func() bool {
	return unix.CloseRange(math.MaxUint32, math.MaxUint32, 0) == nil
})

// MarkDescriptors marks the descriptors of this process, from 3 on, as close-on-exec,
// for programs whose descriptors [Settle] cannot close. Set force if Settle is not
// called; otherwise only kernels without close_range need it.
func MarkDescriptors(force bool) error {
	if hasCloseRange() {
		if !force {
			return nil
		}
		if unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) == nil { // since Linux 5.11
			return nil
		}
	}
	// A kernel without close_range has no Landlock, which would hide this directory from
	// the thread.
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	for _, d := range open {
		if fd, err := strconv.Atoi(d.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd) // fails for the directory itself, which is already closed
		}
	}
	return nil
}
