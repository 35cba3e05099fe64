package account

import (
	"context"
	"fmt"
	"time"
)

// Limits are how much an account may use; 0 is no limit.
type Limits struct {
	StoredBytes      int64 // of files and open uploads; results count but are never refused
	BytesPerDay      int64 // of uploads that start on a UTC day
	OperationsPerDay int64 // that are created on a UTC day
	Parallel         int   // items that run at once
}

// A QuotaError reports which limit of an account refuses a file or an operation.
type QuotaError struct {
	What  string    // "stored_bytes", "bytes_per_day" or "operations_per_day"
	Limit int64     // how much the account may use
	Used  int64     // how much it uses, without the refused file or operation
	Reset time.Time // end of the day; zero: when something is deleted or expires
}

// Error implements error.
func (e *QuotaError) Error() string {
	return fmt.Sprintf("limit %s: %d of %d used", e.What, e.Used, e.Limit)
}

// Exceeded returns the fields of e, for callers that do not import this package.
func (e *QuotaError) Exceeded() (what string, limit, used int64, reset time.Time) {
	return e.What, e.Limit, e.Used, e.Reset
}

// Used is what an account uses now of its [Limits].
type Used struct {
	StoredBytes     int64
	BytesToday      int64
	OperationsToday int64
	Running         int       // items
	Reset           time.Time // end of the day
}

// Usage counts the items of one action, or of one group, on one day.
type Usage struct {
	Day      time.Time     // its start, UTC
	Action   string        // "" for a group
	Group    string        // a key, format or error; "" for an action
	Items    int           // finished after they were started
	Failed   int           // of these
	BytesIn  int64         // of their inputs
	BytesOut int64         // of their results
	Work     time.Duration // from start to end, of the last attempts
}

// A Day counts the uploads and operations that an account started on one day.
type Day struct {
	Day        time.Time // its start, UTC
	Bytes      int64     // of uploads that were not abandoned
	Operations int
}

// A UsageKind is a property by which a [UsageStore] groups items.
type UsageKind string

// The properties of items.
const (
	UsageByKey    UsageKind = "key"    // ID of the API key that started the operation; "": a session
	UsageByFormat UsageKind = "format" // extension of the first input without a dot; "": none, or an unusual one
	UsageByError  UsageKind = "error"  // error code of failed items
)

// A UsageStore reports what accounts use. Days are UTC days; data older than 400 days
// is deleted.
type UsageStore interface {
	// Used returns what an account uses now.
	Used(ctx context.Context, account string) (Used, error)

	// Usage returns the finished items of an account by day and action, for the
	// days from first to last.
	Usage(ctx context.Context, account string, first, last time.Time) ([]Usage, error)

	// UsageBy is Usage by day and Group. It counts items from the time on at which the store was
	// updated to a version that groups them.
	UsageBy(ctx context.Context, account string, kind UsageKind, first, last time.Time) ([]Usage, error)

	// Days returns uploads and operations of an account by day, for the days from
	// first to last. Days without any are left out.
	Days(ctx context.Context, account string, first, last time.Time) ([]Day, error)
}
