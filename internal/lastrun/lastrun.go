// Package lastrun remembers the last run of a job that repeats, such as a sweep, for pages that show it.
package lastrun

import (
	"sync/atomic"
	"time"
)

// A Record holds the result of the last run that has ended. The zero value is ready to use.
type Record struct{ last atomic.Pointer[result] }

type result struct {
	at      time.Time
	removed int
	err     error
}

// Set records the result of a run that ends now.
func (r *Record) Set(removed int, err error) { r.last.Store(&result{time.Now(), removed, err}) }

// Last returns when the last run ended, and its result. The time is zero if none has ended.
func (r *Record) Last() (at time.Time, removed int, err error) {
	if l := r.last.Load(); l != nil {
		return l.at, l.removed, l.err
	}
	return time.Time{}, 0, nil
}
