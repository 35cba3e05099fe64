package steady

import (
	"time"

	"golang.org/x/sys/unix"
)

// sinceBoot returns a function that returns the time since this call, including
// suspensions.
func sinceBoot() func(time.Time) time.Duration {
	begin, err := bootTime()
	if err != nil {
		return time.Since
	}
	return func(start time.Time) time.Duration {
		now, err := bootTime()
		if err != nil {
			return time.Since(start)
		}
		return now - begin
	}
}

// bootTime returns the time since the host booted, including suspensions:
// CLOCK_BOOTTIME of clock_gettime(2).
func bootTime() (time.Duration, error) {
	var ts unix.Timespec
	err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts)
	return time.Duration(ts.Nano()), err
}
