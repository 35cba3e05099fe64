//go:build linux

package proc

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// family returns pid and its living descendants.
func family(pid int) []int {
	out := []int{pid}
	for i := 0; i < len(out); i++ {
		tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", out[i]))
		if err != nil {
			continue
		}
		for _, t := range tasks {
			b, err := os.ReadFile(t)
			if err != nil {
				continue // the process has ended
			}
			for _, f := range strings.Fields(string(b)) {
				if n, err := strconv.Atoi(f); err == nil {
					out = append(out, n)
				}
			}
		}
	}
	return out
}

// Clock returns the processor time of a process in nanoseconds, without its children
// (clock_getcpuclockid(3); the layout of the identifier is the kernel's,
// include/linux/posix-timers.h).
func Clock(pid int) time.Duration {
	const sched = 2 // CPUCLOCK_SCHED
	var ts unix.Timespec
	if unix.ClockGettime(int32(^pid)<<3|sched, &ts) != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}

// waited returns the processor time of the ended children of a process (proc_pid_stat(5), fields 16
// and 17), in steps of 10 ms.
func waited(pid int) time.Duration {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	f := strings.Fields(rest)
	if len(f) < 15 {
		return 0
	}
	user, _ := strconv.Atoi(f[13])
	system, _ := strconv.Atoi(f[14])
	return time.Duration(user+system) * 10 * time.Millisecond
}

// familyCPU returns the processor time of a family of processes so far. own is the more exact time
// of the first process and its ended children.
func familyCPU(pid int, own time.Duration) time.Duration {
	sum := own
	for i, p := range family(pid) {
		if i > 0 || own == 0 {
			sum += Clock(p) + waited(p)
		}
	}
	return sum
}

// peak returns the sum of the peak resident memory of the processes in a family
// (proc_pid_status(5), VmHWM), in bytes.
func peak(pid int) int64 {
	var sum int64
	for _, p := range family(pid) {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p))
		if err != nil {
			continue
		}
		_, rest, ok := strings.Cut(string(b), "VmHWM:")
		if !ok {
			continue
		}
		if f := strings.Fields(rest); len(f) > 0 {
			n, _ := strconv.ParseInt(f[0], 10, 64)
			sum += n << 10
		}
	}
	return sum
}

// forget resets the peaks of a family to the current use (proc_pid_clear_refs(5)). Without the
// permission, the peaks remain those of the whole lifetime.
func forget(pid int) {
	for _, p := range family(pid) {
		os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p), []byte("5"), 0)
	}
}

// Watch samples the peak of a family until stop is called, which returns the highest sample.
func Watch(pid int) (stop func() int64) {
	end, done := make(chan struct{}), make(chan int64)
	go func() {
		high := int64(0)
		tick := time.NewTicker(4 * time.Millisecond)
		defer tick.Stop()
		for n := 0; ; n++ {
			// Sample long runs less often: sampling takes time too.
			if n < 25 || n%8 == 0 {
				high = max(high, peak(pid))
			}
			select {
			case <-end:
				done <- max(high, peak(pid))
				return
			case <-tick.C:
			}
		}
	}()
	var once sync.Once
	result := int64(0)
	return func() int64 {
		once.Do(func() { close(end); result = <-done })
		return result
	}
}
