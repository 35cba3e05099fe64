// Package webhook sends events about operations to the accounts' HTTP endpoints.
//
// The [Store] writes an event to its outbox in the transaction in which the event
// happens, for every endpoint that subscribes to it. [Webhooks.Run] sends deliveries,
// in any number of processes at once. It claims each delivery for a lease, so other
// processes take over when a sender is killed. An event arrives at least once, always
// with the same webhook-id, in no particular order. While an account is disabled,
// nothing is sent to its endpoints, not even manually; deliveries continue when the
// account is enabled again.
//
// Requests are signed according to Standard Webhooks
// (https://www.standardwebhooks.com), see [Verify]. They go only to public addresses
// and to those in Config.Allow. The check applies to the address that is dialled,
// whatever the host name resolved to before.
//
//	hooks, err := webhook.New(webhook.Config{Store: db.Webhooks(), Secrets: secrets, Payload: payload})
//	...
//	endpoint, secret, err := hooks.Create(ctx, "alice", webhook.NewEndpoint{URL: "https://example.com/hook"})
//	...
//	err = hooks.Run(ctx)
package webhook

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/filewright/filewright/internal/backoff"
	"github.com/filewright/filewright/internal/lastrun"
	"github.com/filewright/filewright/internal/netguard"
	"github.com/filewright/filewright/internal/seal"
	"github.com/filewright/filewright/status"
	"github.com/filewright/filewright/trace"
)

// Types of events. A file task is one element of files_data in the status of an
// operation: a result, or an item without a result.
const (
	OperationCompleted = "operation.completed"
	OperationFailed    = "operation.failed"
	FileTaskCompleted  = "fileTask.completed"
	FileTaskFailed     = "fileTask.failed"
)

// TestType is the type of the event that [Webhooks.Test] sends. Endpoints receive it
// whatever events they subscribe to.
const TestType = "webhook.test"

// Types returns the types of events that an endpoint can subscribe to.
func Types() []string {
	return []string{OperationCompleted, OperationFailed, FileTaskCompleted, FileTaskFailed}
}

// An Event is a change that endpoints are notified of.
type Event struct {
	Type string    // one of Types
	Time time.Time // when it happened

	// Operation is the operation at that time. An event about the operation has all its
	// Items; an event about a file task has one item, with at most one result.
	Operation *status.Operation
}

// Config configures [Webhooks]. Store, Payload and Secrets are required.
type Config struct {
	Store Store

	// Payload returns the request body for an event, a JSON object. It is called once
	// for each delivery, or again if the process dies.
	Payload func(context.Context, Event) ([]byte, error)

	// Secrets encrypt the endpoints' secrets in the database: the first encrypts, all
	// decrypt. Each needs at least 16 bytes.
	Secrets [][]byte

	// Allow lists networks that requests may go to although they are not public:
	// private, loopback, link-local and so on.
	Allow []netip.Prefix

	TLS *tls.Config // of requests; nil: the default

	// Schedule holds the pauses between a failed attempt and the next. nil: 5 seconds,
	// 5 and 30 minutes, 2, 5, 10, 14, 20 and 24 hours.
	Schedule []time.Duration

	Timeout  time.Duration // for one attempt; 0: 15 seconds
	Workers  int           // concurrent requests; 0: 64. An account gets at most a quarter of them
	Endpoint int           // concurrent requests to one endpoint; 0: 8. A failing endpoint gets one
	Poll     time.Duration // interval of checking for deliveries of other processes; 0: 1 second

	// Lease is the time after which other processes retry a delivery whose sender has
	// not recorded a result. 0: Timeout plus 15 seconds.
	Lease time.Duration

	// Exclusive declares that no other process sends: deliveries that an earlier
	// process had claimed are sent at once.
	Exclusive bool

	// Overlap is how long the previous secret also signs; 0: 24 hours.
	Overlap time.Duration

	// DisableAfter is the time for which all attempts at an endpoint must fail, at most
	// two days apart, before it is disabled. 0: 5 days; negative: never.
	DisableAfter time.Duration

	Retention time.Duration // of finished deliveries, see [Sweep]; 0: 7 days, negative: for ever
	Endpoints int           // maximum for each account; 0: 20

	// Tracer records a span for each attempt at the event of an operation, and requests then have its
	// traceparent. nil: none.
	Tracer trace.Tracer

	Log *slog.Logger // nil discards
}

// keep is the default of Config.Retention.
const keep = 7 * 24 * time.Hour

// failingGap is the longest time between two failures that belong to the same series.
const failingGap = 48 * time.Hour

// Webhooks manages endpoints and sends to them. It is safe for concurrent use.
type Webhooks struct {
	cfg     Config
	store   Store
	sealer  seal.Sealer
	client  http.RoundTripper
	running atomic.Bool
	counts  [outcomes]atomic.Int64
	swept   lastrun.Record
}

// LastSweep returns when Run last removed old deliveries, and the result. The time is zero if it has
// not yet.
func (w *Webhooks) LastSweep() (at time.Time, removed int, err error) { return w.swept.Last() }

// New checks cfg. It starts nothing.
func New(cfg Config) (*Webhooks, error) {
	if cfg.Store == nil || cfg.Payload == nil {
		return nil, errors.New("webhook: Config.Store and Config.Payload are required")
	}
	s, err := newSealer(cfg.Secrets)
	if err != nil {
		return nil, err
	}
	if cfg.Schedule == nil {
		cfg.Schedule = backoff.Days()
	}
	for _, d := range cfg.Schedule {
		if d <= 0 {
			return nil, fmt.Errorf("webhook: invalid duration %v in Config.Schedule", d)
		}
	}
	cfg.Timeout = cmp.Or(cfg.Timeout, 15*time.Second)
	cfg.Workers = cmp.Or(max(0, cfg.Workers), 64)
	cfg.Endpoint = cmp.Or(max(0, cfg.Endpoint), 8)
	cfg.Poll = cmp.Or(cfg.Poll, time.Second)
	cfg.Lease = cmp.Or(cfg.Lease, cfg.Timeout+15*time.Second)
	if cfg.Lease <= cfg.Timeout {
		return nil, errors.New("webhook: Config.Lease must be longer than Config.Timeout")
	}
	cfg.Overlap = cmp.Or(cfg.Overlap, 24*time.Hour)
	cfg.DisableAfter = cmp.Or(cfg.DisableAfter, 5*24*time.Hour)
	cfg.Retention = cmp.Or(cfg.Retention, keep)
	cfg.Endpoints = cmp.Or(cfg.Endpoints, 20)
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	return &Webhooks{cfg: cfg, store: cfg.Store, sealer: s, client: netguard.NewTransport(netguard.Options{Allow: cfg.Allow, TLS: cfg.TLS, Idle: cfg.Endpoint})}, nil
}

// An Endpoint is a URL at which an account receives events.
type Endpoint struct {
	ID                  string    `json:"id"`
	Account             string    `json:"account"`
	URL                 string    `json:"url"`
	Description         string    `json:"description,omitempty"` // for people
	Events              []string  `json:"events"`                // event types that it receives; empty: all
	Created             time.Time `json:"created"`
	Disabled            time.Time `json:"disabled,omitzero"`              // zero: enabled
	Reason              string    `json:"reason,omitempty"`               // why it is disabled
	Failing             time.Time `json:"failing,omitzero"`               // since when every attempt has failed; zero: the last one did not fail
	PreviousSecretUntil time.Time `json:"previous_secret_until,omitzero"` // until when the previous secret also signs; zero: it does not
}

// NewEndpoint holds the arguments of [Webhooks.Create].
type NewEndpoint struct {
	URL         string
	Description string   // may be empty
	Events      []string // empty: all
}

// A Change holds the changes of [Webhooks.Update]; nil fields do not change.
type Change struct {
	URL         *string
	Description *string
	Events      *[]string
	Enabled     *bool
}

// An InputError reports an invalid argument.
type InputError struct {
	Param   string   // "url", "description", "events"
	Message string   // for people
	Allowed []string // valid values; nil: too many to list
}

// Error returns e.Message.
func (e *InputError) Error() string { return e.Message }

// Limits of the fields that accounts set.
const (
	maxURL         = 2000
	maxDescription = 200
)

// checkURL returns an error unless requests can go to a URL. The address is checked
// only when a request is made.
func (w *Webhooks) checkURL(text string) error {
	bad := func(why string) error { return &InputError{Param: "url", Message: "url " + why} }
	if len(text) > maxURL {
		return bad(fmt.Sprintf("has more than %d bytes", maxURL))
	}
	u, err := netguard.Check(text, w.cfg.Allow)
	var refused *netguard.URLError
	switch {
	case errors.As(err, &refused):
		return bad(refused.Why)
	case u.Fragment != "":
		return bad("must not contain a fragment (#)")
	}
	return nil
}

func checkDescription(text string) error {
	if len(text) > maxDescription || !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' }) {
		return &InputError{Param: "description", Message: fmt.Sprintf("description must be one line of at most %d bytes", maxDescription)}
	}
	return nil
}

func checkEvents(events []string) ([]string, error) {
	var out []string
	for _, e := range Types() { // in this order
		if slices.Contains(events, e) {
			out = append(out, e)
		}
	}
	for _, e := range events {
		if !slices.Contains(Types(), e) {
			return nil, &InputError{Param: "events", Message: fmt.Sprintf("unknown event %q", e), Allowed: Types()}
		}
	}
	return out, nil
}

// Create registers an endpoint and returns it with its secret, whsec_…, which cannot be
// retrieved later. The error is an *InputError if an argument is invalid, and matches
// ErrLimit if the account has too many endpoints.
func (w *Webhooks) Create(ctx context.Context, account string, n NewEndpoint) (e *Endpoint, secret string, err error) {
	events, err := checkEvents(n.Events)
	if err == nil {
		err = cmp.Or(w.checkURL(n.URL), checkDescription(n.Description))
	}
	if err != nil {
		return nil, "", err
	}
	h := &StoredEndpoint{Endpoint: Endpoint{
		ID: "wh_" + strings.ToLower(rand.Text()), Account: account, URL: n.URL, Description: n.Description, Events: events,
		Created: time.Now().UTC().Truncate(time.Millisecond),
	}}
	secret, key := newSecret()
	h.Secret = w.sealer.Seal(key, h.ID)
	if err := w.store.Create(ctx, h, w.cfg.Endpoints); err != nil {
		return nil, "", err
	}
	return describe(h), secret, nil
}

// describe returns the public view of an endpoint.
func describe(h *StoredEndpoint) *Endpoint {
	e := h.Endpoint
	e.Events = append([]string{}, h.Events...)
	if h.Previous == nil || !h.PreviousSecretUntil.After(time.Now()) {
		e.PreviousSecretUntil = time.Time{}
	}
	return &e
}

// List returns the endpoints of an account, oldest first.
func (w *Webhooks) List(ctx context.Context, account string) ([]*Endpoint, error) {
	all, err := w.store.List(ctx, account)
	if err != nil {
		return nil, err
	}
	list := make([]*Endpoint, len(all))
	for i, h := range all {
		list[i] = describe(h)
	}
	return list, nil
}

// Get returns an endpoint. If the account has no such endpoint, the error matches
// fs.ErrNotExist; this also holds for the methods below.
func (w *Webhooks) Get(ctx context.Context, account, id string) (*Endpoint, error) {
	h, err := w.store.Get(ctx, account, id)
	if err != nil {
		return nil, err
	}
	return describe(h), nil
}

// Update changes an endpoint. When it is disabled, its pending deliveries fail and can
// be replayed. The error is an *InputError if the change is invalid.
func (w *Webhooks) Update(ctx context.Context, account, id string, c Change) (*Endpoint, error) {
	var events []string
	var err error
	if c.Events != nil {
		events, err = checkEvents(*c.Events)
	}
	if c.URL != nil {
		err = cmp.Or(err, w.checkURL(*c.URL))
	}
	if c.Description != nil {
		err = cmp.Or(err, checkDescription(*c.Description))
	}
	if err != nil {
		return nil, err
	}
	h, err := w.store.Update(ctx, account, id, func(h *StoredEndpoint) error {
		if c.URL != nil {
			h.URL = *c.URL
		}
		if c.Description != nil {
			h.Description = *c.Description
		}
		if c.Events != nil {
			h.Events = events
		}
		switch {
		case c.Enabled == nil:
		case *c.Enabled:
			h.Disabled = time.Time{}
		case h.Disabled.IsZero():
			h.Disabled, h.Reason = time.Now(), "disabled by its owner"
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return describe(h), nil
}

// Delete removes an endpoint with its deliveries.
func (w *Webhooks) Delete(ctx context.Context, account, id string) error {
	return w.store.Delete(ctx, account, id)
}

// Rotate gives an endpoint a new secret and returns it. The previous secret also signs
// for Config.Overlap, so that receivers can be updated in that time; older secrets no
// longer sign.
func (w *Webhooks) Rotate(ctx context.Context, account, id string) (secret string, err error) {
	secret, key := newSecret()
	_, err = w.store.Update(ctx, account, id, func(h *StoredEndpoint) error {
		h.Previous, h.PreviousSecretUntil = h.Secret, time.Now().Add(w.cfg.Overlap)
		h.Secret = w.sealer.Seal(key, h.ID)
		return nil
	})
	if err != nil {
		return "", err
	}
	return secret, nil
}

// Test sends an event of TestType to an endpoint, enabled or not. It is not retried.
// [Webhooks.Delivery] returns its result.
func (w *Webhooks) Test(ctx context.Context, account, id string) (*Delivery, error) {
	return w.store.Add(ctx, account, id, TestType, func(string) []byte {
		var body struct {
			Type      string    `json:"type"`
			Timestamp time.Time `json:"timestamp"`
			Payload   struct {
				Webhook struct {
					ID string `json:"id"`
				} `json:"webhook"`
			} `json:"payload"`
		}
		body.Type, body.Timestamp, body.Payload.Webhook.ID = TestType, time.Now().UTC().Truncate(time.Millisecond), id
		b, err := json.Marshal(body)
		if err != nil {
			panic(err) // a struct of strings cannot fail to encode
		}
		return b
	})
}

// Deliveries returns deliveries of an account without their payloads, newest first.
func (w *Webhooks) Deliveries(ctx context.Context, account string, q Query) ([]*Delivery, error) {
	if q.Endpoint != "" {
		if _, err := w.store.Get(ctx, account, q.Endpoint); err != nil {
			return nil, err
		}
	}
	return w.store.Deliveries(ctx, account, q)
}

// Delivery returns a delivery and its attempts, oldest first.
func (w *Webhooks) Delivery(ctx context.Context, account, id string) (*Delivery, []Attempt, error) {
	return w.store.Delivery(ctx, account, id)
}

// Replay sends a delivery once more, whatever its state, with the same webhook-id. If
// that fails, the delivery keeps its earlier state.
func (w *Webhooks) Replay(ctx context.Context, account, id string) (*Delivery, error) {
	return w.store.Replay(ctx, account, id)
}

// secretPrefix is the prefix of every secret.
const secretPrefix = "whsec_"

// newSecret returns a new secret and the key that it encodes.
func newSecret() (text string, key []byte) {
	key = make([]byte, 32)
	rand.Read(key) // never fails, see its documentation
	return secretPrefix + base64.StdEncoding.EncodeToString(key), key
}

// keysOf returns the keys that sign for an endpoint, newest first.
func (w *Webhooks) keysOf(h *StoredEndpoint, now time.Time) (keys [][]byte, err error) {
	if k, ok := w.sealer.Open(h.Secret, h.ID); ok {
		keys = append(keys, k)
	}
	if h.Previous != nil && now.Before(h.PreviousSecretUntil) {
		if k, ok := w.sealer.Open(h.Previous, h.ID); ok && !slices.ContainsFunc(keys, func(have []byte) bool { return bytes.Equal(have, k) }) {
			keys = append(keys, k)
		}
	}
	if len(keys) == 0 {
		return nil, errSealed
	}
	return keys, nil
}
