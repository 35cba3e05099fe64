package worktime

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
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

// processorTime returns the processor time that this process has used.
func processorTime() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// processorDelay returns how long the threads of this process were ready to run but
// waited for a processor. It may decrease when threads end.
func processorDelay() time.Duration {
	var sum time.Duration
	threads, _ := filepath.Glob("/proc/self/task/*/schedstat")
	for _, path := range threads {
		sum += RunDelay(path)
	}
	return sum
}

// RunDelay returns how long a thread waited for a processor while it was ready to run,
// or 0 if the kernel does not record that. path is that of the thread's schedstat
// (Documentation/scheduler/sched-stats.rst).
func RunDelay(path string) time.Duration {
	b, err := os.ReadFile(path)
	f := bytes.Fields(b)
	if err != nil || len(f) < 2 {
		return 0
	}
	ns, _ := strconv.ParseInt(string(f[1]), 10, 64)
	return time.Duration(ns)
}
