// Package steady tells the time for decisions that cannot be taken back, such as
// to delete what has expired, although the clock of the host may be wrong.
package steady

import "time"

// A Clock does not follow when the clock of the host jumps ahead. It must be made
// by [New].
type Clock struct {
	start time.Time // with a monotonic reading
	wall  func() time.Time
	since func(time.Time) time.Duration
}

// New returns a Clock that starts with the time of the host and stands still while
// the host is suspended.
func New() *Clock {
	return &Clock{start: time.Now(), wall: time.Now, since: time.Since}
}

// NewThroughSuspend returns a Clock that starts with the time of the host and goes on
// while the host is suspended, where the operating system counts that time: on Linux.
func NewThroughSuspend() *Clock {
	return &Clock{start: time.Now(), wall: time.Now, since: sinceBoot()}
}

// Running returns the time of the host when the Clock was made, plus the time that
// has passed since. Jumps of the host's clock, in either direction, do not change it.
func (c *Clock) Running() time.Time {
	return c.start.Round(0).Add(c.since(c.start)) // the sum has no monotonic reading
}

// Earliest returns the time of the host or Running, whichever is earlier. Nothing
// is over at that time that is not over by both.
func (c *Clock) Earliest() time.Time {
	wall, running := c.wall().Round(0), c.Running()
	if wall.Before(running) {
		return wall
	}
	return running
}
