package confine

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Again has a process put a ruleset of Landlock in force that it has open as descriptor
// set, and close it. The process must have been started by the calling thread with
// PTRACE_TRACEME and have stopped where its program begins; there it is after Again.
//
// What a confined thread starts is confined to the same domain as the thread, and to
// Landlock those of one domain are equals: the program might signal the thread, which
// ends the process that the thread is part of, and read and write its memory. Who has
// restricted itself once more is below the thread, and reaches nothing there. A thread
// can do that for itself only (landlock_restrict_self(2)), and between fork and
// exec nothing runs that is ours.
func Again(pid, set int) error {
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
	for _, call := range []struct {
		name   string
		number uint64
	}{{"landlock_restrict_self", unix.SYS_LANDLOCK_RESTRICT_SELF}, {"close", unix.SYS_CLOSE}} {
		regs := saved
		setCall(&regs, call.number, uint64(set), 0)
		if err := step(pid, &regs); err != nil {
			return fmt.Errorf("%s: %w", call.name, err)
		}
		if r := int64(result(&regs)); r != 0 {
			return fmt.Errorf("%s: %w", call.name, unix.Errno(-r))
		}
	}
	if _, err := unix.PtracePokeText(pid, here, code); err != nil {
		return fmt.Errorf("write code: %w", err)
	}
	if err := unix.PtraceSetRegs(pid, &saved); err != nil {
		return fmt.Errorf("write registers: %w", err)
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
