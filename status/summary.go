package status

import "time"

// A Lane identifies an owner's items in one queue.
type Lane struct{ Queue, Owner string }

// A Summary is an operation without its private parts (file names, results, notes).
type Summary struct {
	ID        string
	Owner     string
	Action    string
	State     State
	Created   time.Time
	Finished  time.Time // zero until final
	Items     int
	Completed int
	Failed    int
	Codes     []string // distinct error codes of the items
}

// A SummaryQuery selects operations. Empty fields select all.
type SummaryQuery struct {
	Owner  string
	State  State
	Before string // ID of an operation: only those created before it
	Limit  int    // 0: 50
}

// A FailureCount is the number of items of an action that failed with an error code.
type FailureCount struct {
	Action string
	Code   string
	Items  int
}
