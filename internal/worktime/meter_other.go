//go:build !linux

package worktime

import "time"

// Process measures wall time: this system has no thread clocks.
func Process() Meter { return Thread() }

// Thread measures wall time.
func Thread() Meter {
	from := time.Now()
	return func() Usage { return Usage{Worked: time.Since(from)} }
}
