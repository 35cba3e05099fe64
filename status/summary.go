package status

import "time"

// A Lane is the items of an owner in a queue.
type Lane struct{ Queue, Owner string }

// A Summary is an operation without what only its owner should see: file names,
// results, notes.
type Summary struct {
	ID        string
	Owner     string
	Action    string
	State     State
	Created   time.Time
	Finished  time.Time // zero: not yet
	Items     int
	Completed int
	Failed    int
	Codes     []string // of the errors of items, without duplicates
}

// A SummaryQuery selects operations. Empty fields select all.
type SummaryQuery struct {
	Owner  string
	State  State
	Before string // ID of an operation; only those created before it
	Limit  int    // 0: 50
}

// A FailureCount is the number of items of an action that failed with an error code.
type FailureCount struct {
	Action string
	Code   string
	Items  int
}
