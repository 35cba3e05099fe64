package webhook

import (
	"context"
	"errors"
	"time"

	"github.com/filewright/filewright/status"
)

// A StoredEndpoint is an [Endpoint] with its sealed secrets. Secret signs deliveries;
// Previous does so too until PreviousSecretUntil.
type StoredEndpoint struct {
	Endpoint
	Secret, Previous []byte
}

// States of a [Delivery].
const (
	Pending   = "pending"   // another attempt is due
	Delivered = "delivered" // the endpoint has acknowledged it
	Failed    = "failed"    // no attempt follows
)

// A Delivery is one event for one endpoint.
type Delivery struct {
	ID        string    `json:"id"` // the webhook-id of all attempts
	Endpoint  string    `json:"endpoint"`
	Account   string    `json:"account"`
	Type      string    `json:"type"`
	Operation string    `json:"operation,omitempty"` // "": no operation
	Created   time.Time `json:"created"`
	State     string    `json:"state"` // Pending, Delivered, Failed
	Attempts  int       `json:"attempts"`
	Next      time.Time `json:"next,omitzero"`     // when the next attempt is due; zero: no attempt follows
	Finished  time.Time `json:"finished,omitzero"` // zero while pending
	Payload   []byte    `json:"-"`                 // the body; nil before the first attempt, and in lists
}

// An Attempt is one request of a [Delivery].
type Attempt struct {
	N        int           // from 1
	At       time.Time     // start
	Took     time.Duration // duration, to the millisecond
	URL      string
	Status   int    // 0: no response
	Response string // start of the response body
	Error    string // why the response is missing or bad, for people; "": see Status
	Manual   bool   // requested by a person
}

// A ClaimedDelivery is a delivery under a claim. Exactly one of Event and Payload is
// set.
type ClaimedDelivery struct {
	Delivery
	Token   int
	Step    int  // number of earlier attempts, without manual ones
	Manual  bool // this attempt is manual
	Event   *status.Operation
	Trace   string // status.Origin.Trace of the operation; "": none
	Webhook *StoredEndpoint
}

// An AttemptResult is the outcome of one attempt.
type AttemptResult struct {
	Attempt   Attempt // without N and Manual
	Body      []byte  // the body that was sent; nil: making it failed
	Delivered bool
	Retry     time.Duration // pause before the next attempt, unless Delivered or manual; 0: no attempt follows
	Disable   string        // why the endpoint must be disabled; "": it stays enabled

	// The endpoint is disabled when all attempts have failed for FailingLimit, with
	// at most FailingGap between two of them. 0: never.
	FailingLimit, FailingGap time.Duration
}

// A DueEndpoint is an endpoint with pending deliveries.
type DueEndpoint struct {
	ID      string
	Account string
	At      time.Time // when the first of them is due; zero: Claim has deliveries to remove
	Failing bool      // the last attempt failed
}

// A Query selects deliveries. The zero value selects all.
type Query struct {
	Endpoint string // ID; "": all endpoints of the account
	State    string // "": all
	Before   string // ID of a delivery: only older ones; "": from the newest
	Limit    int    // 0: 50
}

// ErrLimit reports that an account has the maximum number of endpoints.
var ErrLimit = errors.New("limit reached")

// A Store keeps endpoints and deliveries. If an endpoint or delivery is missing or
// belongs to another account, the error matches fs.ErrNotExist.
//
// An implementation must write the deliveries of an event in the transaction in which
// the event happens.
type Store interface {
	EndpointStore
	DeliveryStore
	Outbox
}

// An EndpointStore keeps endpoints.
type EndpointStore interface {
	// Create stores an endpoint. If its account has limit endpoints or more, the
	// error matches ErrLimit.
	Create(ctx context.Context, e *StoredEndpoint, limit int) error

	// List returns the endpoints of an account, oldest first.
	List(ctx context.Context, account string) ([]*StoredEndpoint, error)

	Get(ctx context.Context, account, id string) (*StoredEndpoint, error)

	// Update applies change to an endpoint and stores the result, unless change fails.
	// It may call change again. ID, account and creation time do not change. Enabling
	// an endpoint clears its failures.
	Update(ctx context.Context, account, id string, change func(*StoredEndpoint) error) (*StoredEndpoint, error)

	// Delete removes an endpoint and its deliveries.
	Delete(ctx context.Context, account, id string) error
}

// A DeliveryStore keeps deliveries and their attempts.
type DeliveryStore interface {
	// Add stores a delivery for one manual attempt. body receives the delivery's ID.
	Add(ctx context.Context, account, endpoint, kind string, body func(id string) []byte) (*Delivery, error)

	// Deliveries returns deliveries without their payloads, newest first.
	Deliveries(ctx context.Context, account string, q Query) ([]*Delivery, error)

	// Delivery returns a delivery with its payload, and its attempts, oldest first.
	Delivery(ctx context.Context, account, id string) (*Delivery, []Attempt, error)

	// Replay makes a manual attempt at a delivery due now, whatever its state. If the
	// attempt fails, the delivery returns to that state. Replay changes nothing while
	// an attempt is running.
	Replay(ctx context.Context, account, id string) (*Delivery, error)
}

// An Outbox hands deliveries to senders, which may be several processes.
type Outbox interface {
	// Wake returns a channel, for one receiver, that holds a token when this
	// process has written new deliveries.
	Wake() <-chan struct{}

	// Now returns the current time of the clock that decides what is due.
	Now() time.Time

	// Due returns the endpoints that have pending deliveries, in any order, except
	// those of disabled accounts.
	Due(ctx context.Context) ([]DueEndpoint, error)

	// Claim claims up to n due deliveries of an endpoint, oldest first, for the lease.
	// Deliveries of a disabled endpoint fail, except manual ones; those of a deleted
	// endpoint are removed. Deliveries of a disabled account cannot be claimed.
	Claim(ctx context.Context, endpoint string, n int, lease time.Duration) ([]*ClaimedDelivery, error)

	// Recover releases all claimed deliveries. Only a process that is the sole sender
	// may call it, before it claims any.
	Recover(ctx context.Context) error

	// Release returns a claimed delivery without an attempt.
	Release(ctx context.Context, d *ClaimedDelivery) error

	// Record stores the result of an attempt at a claimed delivery, and reports
	// whether it disabled the endpoint. If the claim was lost it stores nothing
	// and the error matches status.ErrLost.
	Record(ctx context.Context, d *ClaimedDelivery, r AttemptResult) (disabled bool, err error)

	// Sweep removes deliveries that finished before the first time and those that
	// became due before the second. It returns their number.
	Sweep(ctx context.Context, finished, due time.Time) (int, error)

	// Pending counts the unfinished deliveries of enabled endpoints and accounts, and
	// returns when the oldest due one became due; zero if none is due.
	Pending(ctx context.Context) (n int, since time.Time, err error)
}
