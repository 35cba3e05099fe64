// Package transfer is a durable queue of transfers between the service and URLs: imports of files
// and deliveries of results. A [Store] keeps the transfers, and a [Runner] works on them. Any number
// of processes may share a store: a transfer is claimed for a lease, and a process that lost its
// claim cannot record anything.
package transfer

import (
	"context"
	"errors"
	"time"
)

// A Transfer is one unit of work.
type Transfer struct {
	Kind  string // the queue that it belongs to
	ID    string // unique in its kind
	Owner string // account

	Request []byte // what to do; the caller encrypts it. It is erased when the transfer is finished
	State   []byte // progress and outcome, as the worker records it

	Claims   int       // number of claims; the last one is the fencing token
	Created  time.Time // when it was added
	Due      time.Time // not before; while it is claimed, the end of the lease
	Finished time.Time // zero: not finished
}

// ErrLimit reports that an owner has too many unfinished transfers.
var ErrLimit = errors.New("too many transfers")

// A Store keeps transfers. If a claim was lost, the error matches status.ErrLost.
type Store interface {
	Register
	Source
	Upkeep
}

// A Register adds and finds transfers.
type Register interface {
	// Add stores a transfer that is due at t.Due. If its owner has limit or more unfinished
	// transfers of the kind, the error matches ErrLimit; if the ID exists, fs.ErrExist.
	Add(ctx context.Context, t *Transfer, limit int) error

	// Get returns the existing transfers with these IDs, without their requests.
	Get(ctx context.Context, kind string, ids ...string) (map[string]*Transfer, error)

	// Hasten makes a transfer due now, unless it is claimed or finished.
	Hasten(ctx context.Context, kind, id string) error

	// Delete removes a transfer in any state. It is not an error if it does not exist.
	Delete(ctx context.Context, kind, id string) error
}

// A Source hands transfers to workers.
type Source interface {
	// Now returns the current time of the clock that decides what is due.
	Now() time.Time

	// Claim claims the transfer of a kind that has been due for longest, for the lease. It skips
	// those of the owners in except and those of disabled accounts. It returns nil if none is due.
	Claim(ctx context.Context, kind string, lease time.Duration, except []string) (*Transfer, error)

	// Renew stores t.State, and extends the claim so that it ends after lease.
	Renew(ctx context.Context, t *Transfer, lease time.Duration) error

	// Record ends a claim: it stores State, Due and Finished, and erases Request if Finished is set.
	Record(ctx context.Context, t *Transfer) error
}

// An Upkeep does what concerns all transfers of a kind.
type Upkeep interface {
	// Recover makes all claimed transfers due now. Only a process that is alone may call it, before
	// it claims any.
	Recover(ctx context.Context, kind string) error

	// Abandoned claims a transfer of a kind, for the lease, that Claim skips because its owner is
	// disabled, if it has been due since before a time. It returns nil if there is none.
	Abandoned(ctx context.Context, kind string, lease time.Duration, before time.Time) (*Transfer, error)

	// Sweep removes the transfers that finished before a time, and returns their number.
	Sweep(ctx context.Context, kind string, finished time.Time) (int, error)

	// Pending counts the unfinished transfers, and returns when the oldest due one became due; zero
	// if none is due.
	Pending(ctx context.Context, kind string) (n int, since time.Time, err error)
}
