// Package steady provides a clock for irreversible decisions, such as deleting expired
// files, on hosts whose clock may be wrong.
package steady

import "time"

// A Clock does not follow the host's clock when that jumps ahead. It must be created by
// [New] or [NewThroughSuspend].
type Clock struct {
	start time.Time // includes a monotonic reading
	wall  func() time.Time
	since func(time.Time) time.Duration
}

// New returns a Clock that starts at the host's time and stands still while the host is
// suspended.
func New() *Clock {
	return &Clock{start: time.Now(), wall: time.Now, since: time.Since}
}

// NewThroughSuspend returns a Clock that starts at the host's time and also runs while
// the host is suspended, if the operating system counts that time (Linux only).
func NewThroughSuspend() *Clock {
	return &Clock{start: time.Now(), wall: time.Now, since: sinceBoot()}
}

// Running returns the host's time at the creation of the Clock plus the time elapsed
// since. Jumps of the host's clock, in either direction, do not affect it.
func (c *Clock) Running() time.Time {
	return c.start.Round(0).Add(c.since(c.start)) // the sum has no monotonic reading
}

// Earliest returns the host's time or Running, whichever is earlier. A deadline that
// has passed at that time has passed on both clocks.
func (c *Clock) Earliest() time.Time {
	wall, running := c.wall().Round(0), c.Running()
	if wall.Before(running) {
		return wall
	}
	return running
}
