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

// processorTime returns wall time.
func processorTime() time.Duration { return time.Duration(time.Now().UnixNano()) }

// processorDelay returns 0: this system does not record it.
func processorDelay() time.Duration { return 0 }
