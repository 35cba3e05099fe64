package worktime

import (
	"time"

	"golang.org/x/sys/unix"
)

// Process measures this process. It assumes that the process computes: all time in which
// it does not work counts as waiting.
func Process() Meter { return computing(unix.CLOCK_PROCESS_CPUTIME_ID) }

// Thread measures the thread of the calling goroutine, which must be locked to it. It
// makes the same assumption as [Process].
func Thread() Meter {
	return computing(int32(^unix.Gettid()<<3 | 6)) // readable by other threads, clock_getcpuclockid(3)
}

func computing(clock int32) Meter {
	from := time.Now()
	return func() Usage {
		elapsed := time.Since(from)
		var t unix.Timespec
		if unix.ClockGettime(clock, &t) != nil { // the thread has ended
			return Usage{Worked: elapsed}
		}
		return Usage{Worked: time.Duration(t.Nano()), Waited: elapsed}
	}
}
