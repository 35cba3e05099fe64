//go:build !linux

package worktime

import "time"

// Process measures the time by the clock: this system has no clocks of threads.
func Process() Meter { return Thread() }

// Thread measures the time by the clock.
func Thread() Meter {
	from := time.Now()
	return func() Usage { return Usage{Worked: time.Since(from)} }
}
