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
	Pending   = "pending"   // another attempt follows
	Delivered = "delivered" // the endpoint has acknowledged it
	Failed    = "failed"    // no attempt follows
)

// A Delivery is one event for one endpoint.
type Delivery struct {
	ID        string    `json:"id"` // the webhook-id of all attempts
	Endpoint  string    `json:"endpoint"`
	Account   string    `json:"account"`
	Type      string    `json:"type"`
	Operation string    `json:"operation,omitempty"` // "": none
	Created   time.Time `json:"created"`
	State     string    `json:"state"` // Pending, Delivered, Failed
	Attempts  int       `json:"attempts"`
	Next      time.Time `json:"next,omitzero"`     // when the next attempt is due; zero: no attempt follows
	Finished  time.Time `json:"finished,omitzero"` // zero: pending
	Payload   []byte    `json:"-"`                 // the body; nil before the first attempt, and in lists
}

// An Attempt is one request of a [Delivery].
type Attempt struct {
	N        int           // from 1
	At       time.Time     // start
	Took     time.Duration // to the millisecond
	URL      string
	Status   int    // 0: no response
	Response string // start of the response body
	Error    string // why the response is missing or bad, for people; "": the status says it
	Manual   bool   // requested by a person
}

// A ClaimedDelivery is a delivery under a claim. Exactly one of Event and Payload is
// set.
type ClaimedDelivery struct {
	Delivery
	Token   int
	Step    int  // earlier attempts, without manual ones
	Manual  bool // this attempt is manual
	Event   *status.Operation
	Webhook *StoredEndpoint
}

// An AttemptResult is the outcome of one attempt.
type AttemptResult struct {
	Attempt   Attempt // without N and Manual
	Body      []byte  // that was sent; nil: it could not be made
	Delivered bool
	Retry     time.Duration // until the next attempt, unless Delivered or manual; 0: no attempt follows
	Disable   string        // why the endpoint is to be disabled; "": it stays enabled

	// The endpoint is disabled when all attempts have failed for FailingLimit, with
	// at most FailingGap between two of them. 0: never.
	FailingLimit, FailingGap time.Duration
}

// A DueEndpoint is an endpoint with pending deliveries.
type DueEndpoint struct {
	ID      string
	Account string
	At      time.Time // when the first of them is due; zero: Claim has deliveries to remove
	Failing bool      // the last attempt has failed
}

// A Query selects deliveries. The zero value selects all.
type Query struct {
	Endpoint string // ID; "": all endpoints of the account
	State    string // "": all
	Before   string // ID of a delivery: only older ones; "": from the newest
	Limit    int    // 0: 50
}

// ErrLimit reports that an account has as many endpoints as it may have.
var ErrLimit = errors.New("the limit is reached")

// A Store keeps endpoints and deliveries. The error for a missing one, or for one of
// another account, matches fs.ErrNotExist.
//
// Whoever implements it writes the deliveries of events in the transactions in which
// the events happen.
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

	// Update applies change to an endpoint and stores the result, unless change
	// fails. It may call change again. ID, account and creation time stay as they
	// are. An endpoint that becomes enabled starts without failures.
	Update(ctx context.Context, account, id string, change func(*StoredEndpoint) error) (*StoredEndpoint, error)

	// Delete removes an endpoint and its deliveries.
	Delete(ctx context.Context, account, id string) error
}

// A DeliveryStore keeps deliveries and their attempts.
type DeliveryStore interface {
	// Add stores a delivery for one manual attempt. body gets the ID of it.
	Add(ctx context.Context, account, endpoint, kind string, body func(id string) []byte) (*Delivery, error)

	// Deliveries returns deliveries without their payloads, newest first.
	Deliveries(ctx context.Context, account string, q Query) ([]*Delivery, error)

	// Delivery returns a delivery with its payload, and its attempts, oldest first.
	Delivery(ctx context.Context, account, id string) (*Delivery, []Attempt, error)

	// Replay makes an attempt at a delivery due now, whatever its state. If the
	// attempt fails the delivery returns to that state. A running attempt makes
	// Replay change nothing.
	Replay(ctx context.Context, account, id string) (*Delivery, error)
}

// An Outbox hands deliveries to senders, which may be several processes.
type Outbox interface {
	// Wake returns a channel, for one receiver, that holds a token when this
	// process has written new deliveries.
	Wake() <-chan struct{}

	// Now returns the time by which deliveries are due.
	Now() time.Time

	// Due returns the endpoints that have pending deliveries, in any order, except
	// those of disabled accounts.
	Due(ctx context.Context) ([]DueEndpoint, error)

	// Claim takes up to n due deliveries of an endpoint, the oldest first, until
	// the lease ends. Deliveries of a disabled endpoint fail, except manual ones;
	// those of a deleted endpoint are removed. A disabled account has none to take.
	Claim(ctx context.Context, endpoint string, n int, lease time.Duration) ([]*ClaimedDelivery, error)

	// Recover releases all claimed deliveries. Only the only sender may call it,
	// before it claims any.
	Recover(ctx context.Context) error

	// Release returns a claimed delivery without an attempt.
	Release(ctx context.Context, d *ClaimedDelivery) error

	// Record stores the result of an attempt at a claimed delivery, and reports
	// whether it disabled the endpoint. If the claim was lost it stores nothing
	// and the error matches status.ErrLost.
	Record(ctx context.Context, d *ClaimedDelivery, r AttemptResult) (disabled bool, err error)

	// Sweep removes deliveries that were finished before the first time and those
	// that have been due since before the second. It returns how many.
	Sweep(ctx context.Context, finished, due time.Time) (int, error)

	// Pending counts the unfinished deliveries of enabled endpoints and accounts,
	// and returns since when the oldest has been due; zero if none is due.
	Pending(ctx context.Context) (n int, since time.Time, err error)
}
