package upload

import (
	"io"
	"time"
)

// SetClock sets the clock of a Manager.
func (o *Options) SetClock(now func() time.Time) { o.now = now }

// SetPast sets the clock that a Manager uses for removals.
func (o *Options) SetPast(past func() time.Time) { o.past = past }

// SetRand sets the random source of a Manager.
func (o *Options) SetRand(r io.Reader) { o.rand = r }

// SetSecondLook sets the time after which a check examines content without a record
// again.
func (o *CheckOptions) SetSecondLook(d time.Duration) { o.secondLook = d }

// Idle reports whether no lock is held and no part is arriving.
func (m *Manager) Idle() bool {
	m.locks.mu.Lock()
	defer m.locks.mu.Unlock()
	m.arriving.mu.Lock()
	defer m.arriving.mu.Unlock()
	return len(m.locks.m) == 0 && len(m.arriving.m) == 0
}

// IsID reports whether s looks like an id.
var IsID = isID
