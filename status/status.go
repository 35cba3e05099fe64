// Package status keeps operations and runs their items.
//
// It knows nothing about files or HTTP: a [Handler] does the work. A worker claims an
// item before it runs it and renews the claim by heartbeats. If the worker dies, the
// claim lapses and another worker claims the item. The claim's number is a fencing
// token: a worker that has lost its claim cannot record an outcome.
//
// # Parts
//
// A [Store] holds the state: every step of an operation is one transaction. [MemStore]
// is for tests and for programs that need no persistence; package sqlstore keeps
// operations in a database. A [Dispatcher] chooses the item that runs next; [Local] is
// one for a single process. A [Tracker] combines store, dispatcher and handler;
// programs use the Tracker.
//
// # Life of an item
//
// An item is Queued until a worker claims it, then Running, and finally Completed or
// Failed. It goes back to Queued if its handler asks for another attempt, if the
// process shuts down cleanly, or if its claim lapses. Progress never runs backwards,
// and an operation that has started is never Queued again.
//
// # Several steps
//
// An operation may have several steps (see [Step]). When the last item of a step is
// final, the same transaction stores the items of the next step, whose inputs are the
// results of the step. So a finished step is never repeated.
//
// # Attempts
//
// Failed attempts count against the item's limit. If the worker died instead, that is a
// restart, which is counted separately. If the work lacked a resource, such as the disk
// or the network, the attempt does not count: the item waits, and its Waiting holds the
// reason.
package status

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"time"
)

// A State is the state of an operation or of one of its items.
type State string

// Queued and Running are transient; Completed and Failed are final.
const (
	Queued    State = "queued"
	Running   State = "running"
	Completed State = "completed"
	Failed    State = "failed"
)

// Final reports whether s is Completed or Failed, which never change.
func (s State) Final() bool { return s == Completed || s == Failed }

// An Operation is the work that one call of do requested.
type Operation struct {
	ID     string // main_task_id
	Owner  string // account it belongs to
	Action string

	// Steps are the actions of an operation of several steps; nil if there is only
	// Action. The results of a step are the inputs of the next.
	Steps []Step

	// Args are the parameters, as the submitter encoded them; opaque to this package.
	// They are erased (nil) when the operation is final.
	Args  []byte
	Notes map[string]string
	State State // see Operation.Rollup
	Items []Item

	// IdempotencyKey makes it safe to repeat a submission: see [Store.Create].
	// Fingerprint identifies the request that used the key.
	IdempotencyKey string
	Fingerprint    string

	// Origin describes the request that submitted the operation.
	Origin Origin

	// Asked is what the request asked for, without secrets: an element for each step, or
	// one for a single action. nil: unknown.
	Asked []Asked

	// Cancelled reports whether Cancel was called before the operation was final. Items
	// that are still running are being stopped.
	Cancelled bool

	Created  time.Time // to the millisecond
	Finished time.Time // zero until final
}

// An Origin describes the request that submitted an operation. All fields may be empty.
type Origin struct {
	Request string // ID of the request
	Key     string // ID of the credential, not the credential
	Trace   string // traceparent of the span that submitted it; see package trace
	Client  string // name of the program that sent it (User-Agent), unverified
	Address string // IP address of that program, or of its network
}

// Clone returns a deep copy of op.
func (op *Operation) Clone() *Operation {
	if op == nil {
		return nil
	}
	c := *op
	c.Args = slices.Clone(op.Args)
	c.Notes = maps.Clone(op.Notes)
	c.Steps = slices.Clone(op.Steps)
	c.Asked = slices.Clone(op.Asked)
	c.Items = make([]Item, len(op.Items))
	for i, it := range op.Items {
		c.Items[i] = it.clone()
	}
	return &c
}

// An Item is a unit of an operation with a status of its own: one input file,
// or all of them if the action is joint.
type Item struct {
	Queue      string // engine family that it needs: "office", "image", …
	Inputs     []File
	Results    []File // filled when Completed
	State      State
	Attempt    int       // number of attempts that count, including the current one
	Restarts   int       // number of times that its worker died, froze or lost the store
	Suspicions int       // number of outcomes with Suspect set
	Claims     int       // number of claims, for whatever reason
	Clean      int       // highest Outcome.Clean of its attempts
	Progress   float64   // 0 to 1; never runs backwards
	Waiting    *Waiting  // why its latest attempt was postponed; nil if it was not, or if the item is final
	Warnings   []Warning // when Completed: what the results lost
	Error      *Error    // when Failed
	Attempts   []Attempt // that have ended, the latest ten; not those whose worker died
	Started    time.Time // of the latest attempt; zero if there was none
	Finished   time.Time // zero until final
}

func (it Item) clone() Item {
	it.Inputs = slices.Clone(it.Inputs)
	it.Results = slices.Clone(it.Results)
	it.Warnings = slices.Clone(it.Warnings)
	it.Attempts = slices.Clone(it.Attempts)
	if it.Waiting != nil {
		w := *it.Waiting
		it.Waiting = &w
	}
	if it.Error != nil {
		e := *it.Error
		it.Error = &e
	}
	return it
}

// started reports whether the item has been attempted, even if the attempt was
// released.
func (it Item) started() bool {
	return it.State == Running || it.Attempt > 0 || !it.Started.IsZero()
}

// Rollup returns the state of an operation from the states of its items. It is final
// when all of them are: Completed if at least one completed and the operation was not
// cancelled, else Failed. Until then it is Queued if no item has ever started or
// finished, else Running.
func Rollup(items []Item, cancelled bool) State {
	var completed, final, started int
	for _, it := range items {
		switch {
		case it.State.Final():
			final++
			if it.State == Completed {
				completed++
			}
		case it.started():
			started++
		}
	}
	switch {
	case final == len(items) && completed > 0 && !cancelled:
		return Completed
	case final == len(items) && final > 0:
		return Failed
	case started > 0 || final > 0:
		return Running
	}
	return Queued
}

// A File describes an input or a result of an item. The content is stored elsewhere,
// under Key.
type File struct {
	Key         string    `json:"key"`
	Name        string    `json:"name,omitempty"`
	ContentType string    `json:"content_type,omitempty"`
	Size        int64     `json:"size"`
	Expires     time.Time `json:"expires,omitzero"`
}

// An Error is a failure as the client sees it.
type Error struct {
	Code    string `json:"code"`    // stable, for programs: "wrong_password"
	Message string `json:"message"` // for people; no paths, no engine output
}

// A Warning reports something that a completed item lost, replaced or guessed.
type Warning struct {
	Code    string `json:"code"`    // stable, for programs: "fonts_substituted"
	Message string `json:"message"` // for people; no paths, no engine output
}

// A Waiting says what an item waits for.
type Waiting struct {
	Reason string    // stable, for programs: one of the reasons of this package, or another name
	Since  time.Time // when the first attempt of the current run of postponed attempts was postponed
}

// Reasons of a [Waiting].
const (
	WaitStorage  = "storage_unavailable"  // the file store does not respond
	WaitDatabase = "database_unavailable" // the database does not respond
	WaitDisk     = "disk_full"            // no space for results or scratch files
	WaitEngine   = "engine_unavailable"   // the program that does the work cannot be started
	WaitAlone    = "worker_busy"          // the item must run alone, and others are running
)

// Error codes that this package itself reports.
const (
	CodeCancelled = "cancelled"       // [Tracker.Cancel] was called
	CodeTimeout   = "timeout"         // waited or worked too long
	CodeInternal  = "internal_error"  // too many restarts, or the handler panicked
	CodeWaited    = "waited_too_long" // a resource was unavailable for [Config.MaxWait]
)

// A Ref names an item.
type Ref struct {
	Operation string
	Index     int
}

// A Claim is the right to finish an item. Token equals the item's Claims and so grows
// with every claim.
type Claim struct {
	Ref
	Token int
	Item  Item
	Op    *Operation // without Items; Item holds the claimed one

	// Rescued reports whether the previous claim lapsed because its worker died, froze
	// or lost the store.
	Rescued bool

	// Alone reports whether the worker runs no other item at the same time. A [Tracker]
	// sets it for its handler.
	Alone bool
}

// An Outcome is the result of one attempt at an item. The zero Outcome is a success
// without results.
type Outcome struct {
	Results  []File    // on success
	Warnings []Warning // on success
	Error    *Error    // nil on success

	// Retry requeues the item instead of finishing it; it is due after RetryAfter.
	// Error holds the reason and becomes final if no attempts are left.
	Retry      bool
	RetryAfter time.Duration

	// Release requeues the item for a reason outside the item: this process is
	// stopping, or the disk is full. The attempt does not count. RetryAfter applies
	// here, too.
	Release bool

	// Waiting, with Release, is the reason of a [Waiting]. Without RetryAfter the
	// tracker doubles the pause each time. An item that has waited for [Config.MaxWait]
	// fails with CodeWaited.
	Waiting string

	// Clean is the number of a claim. Neither that claim nor an earlier one has left
	// unrecorded results. Later claims may have, for example if they ended without an
	// outcome.
	Clean int

	// Suspect reports that the item itself may have killed its worker or engine. After
	// two such attempts a tracker runs the item alone.
	Suspect bool

	// Node and Engine say where the attempt ran, for people. A [Tracker] sets Node to its
	// [Config.Node].
	Node, Engine string

	// Log has lines about the attempt, for people. An item keeps at most 2 KiB of them,
	// those of its latest attempts.
	Log []LogLine

	// Next makes the items of the next step if this outcome ends a step of an operation
	// of several steps; see [Operation.Advance]. Of the items, only Queue, Inputs and
	// Error count: an item with an Error fails at once. Finish calls Next inside its
	// transaction, perhaps several times, so Next must be quick, change nothing and
	// give the same items for the same operation. Without Next the operation ends after
	// the current step. A [Tracker] sets Next from its [Config].
	Next func(op *Operation) []Item
}

// Apply returns the running item with the outcome applied and, if it is Queued again,
// the time at which it is due. If its operation was cancelled, the item fails with
// CodeCancelled whatever the outcome, and its results are not recorded. All stores use
// Apply so that they agree.
func (o Outcome) Apply(it Item, cancelled bool, now time.Time) (next Item, due time.Time) {
	it.Results, it.Warnings, it.Error = nil, nil, nil
	before := it.Waiting
	if it.State == Running {
		code := o.Waiting
		switch {
		case cancelled:
			code = CodeCancelled
		case o.Error != nil:
			code = o.Error.Code
		case o.Release:
			code = cmp.Or(code, "interrupted")
		}
		it.Attempts = o.record(it, code, now)
	}
	it.Waiting = nil
	it.Clean = max(it.Clean, o.Clean)
	if o.Suspect {
		it.Suspicions++
	}
	switch {
	case cancelled:
		it.State, it.Error = Failed, &Error{Code: CodeCancelled, Message: "the operation was cancelled"}
	case o.Release:
		it.State, it.Attempt, it.Waiting = Queued, max(0, it.Attempt-1), before
		if o.Waiting != "" {
			it.Waiting = &Waiting{o.Waiting, now}
			if before != nil {
				it.Waiting.Since = before.Since
			}
		}
		return it, now.Add(max(0, o.RetryAfter))
	case o.Retry:
		it.State = Queued
		return it, now.Add(max(0, o.RetryAfter))
	case o.Error != nil:
		e := *o.Error
		it.State, it.Error = Failed, &e
	default:
		it.State, it.Results, it.Warnings, it.Progress = Completed, slices.Clone(o.Results), slices.Clone(o.Warnings), 1
	}
	it.Finished = now
	return it, time.Time{}
}

// A Query selects an owner's operations.
type Query struct {
	Owner  string
	State  State  // "" selects all
	Before string // ID of one of the owner's operations: only older ones; "" starts at the newest
	Limit  int    // maximum number of operations; 0 means 50

	// IdempotencyKey selects the operation that was created with this key and still
	// holds it. "" selects all.
	IdempotencyKey string
}

// ErrLost reports that a claim is no longer live: the caller must discard its results.
var ErrLost = errors.New("the claim on the item was lost")

// ErrParallel reports that an item cannot start yet because its owner already has the
// maximum number of running items, over all queues and processes.
var ErrParallel = errors.New("the owner has reached its limit of running items")

// ErrUnavailable reports that a store cannot be reached for now. The caller may retry;
// it is unknown whether the call took effect.
var ErrUnavailable = errors.New("the store is temporarily unavailable")

// A Store keeps operations. Implementations must be safe for concurrent use, by several
// processes if they are to share work. Errors about a missing operation match
// fs.ErrNotExist. Times have at least millisecond precision. A claim is live while its
// lease lasts and no other worker has claimed the item. Operations are ordered by
// Created, then by ID. The interface is large because each method is one transaction.
// Package statustest tests all of this.
type Store interface {
	// Create stores an operation with all items queued. If op.IdempotencyKey is not
	// empty and op.Owner used it less than 24 hours before op.Created, Create stores
	// nothing and returns that operation; an older operation loses the key. Otherwise
	// the returned operation equals op. Its items are due at once, even if op.Created
	// is in the future by the store's clock.
	Create(ctx context.Context, op *Operation) (*Operation, error)
	Get(ctx context.Context, id string) (*Operation, error)

	// List yields operations, newest first.
	List(ctx context.Context, q Query) iter.Seq2[*Operation, error]

	// Claim starts an item that is not final and not under a live claim, and returns it
	// with its operation. That counts as an attempt, or as a restart if the item is
	// running under a lapsed claim. Claim fails with ErrLost if the item cannot start:
	// it is final, under a live claim, or waiting for a retry. An item of a cancelled
	// operation can be claimed, so that a worker can finish it.
	//
	// A store may limit how many items of an owner are under live claims. Claim fails
	// with ErrParallel if only this limit keeps the item from starting. Concurrent
	// claims never exceed the limit together. Items of cancelled operations are exempt.
	Claim(ctx context.Context, ref Ref, worker string, lease time.Duration) (*Claim, error)

	// Heartbeat renews all live claims of a worker and records progress that exceeds
	// the stored value. It returns the items in progress whose claim is lost or whose
	// operation was cancelled.
	Heartbeat(ctx context.Context, worker string, lease time.Duration, progress map[Ref]float64) (stop []Ref, err error)

	// Finish applies the outcome to a claimed item (see Outcome.Apply) and updates the
	// operation's state, in one transaction. If that ends a step of several, the same
	// transaction stores the items of the next (see Operation.Advance), due at once. It
	// returns the operation, with its Items only if it is now final or a step has
	// started. Progress in c.Item is recorded if it exceeds the stored
	// value. If the claim is no longer live, Finish records nothing and fails with
	// ErrLost.
	Finish(ctx context.Context, c *Claim, o Outcome) (*Operation, error)

	// Cancel fails the items that have not started with CodeCancelled and marks the
	// others, which Heartbeat then reports. Cancelling a final operation changes
	// nothing. For another owner's operation it fails with fs.ErrNotExist.
	Cancel(ctx context.Context, owner, id string) (*Operation, error)

	// Pending yields the selected items that are not final and can start now: queued
	// and due, or running under a lapsed claim. Oldest operation first, its items by
	// index. It reads no further than the caller iterates, and the caller may change
	// the store between two items.
	Pending(ctx context.Context, q PendingQuery) iter.Seq2[PendingItem, error]

	// Load counts the items that are not final, by queue and owner, in no
	// particular order.
	Load(ctx context.Context) ([]Load, error)

	// Recover requeues all running items of workers other than the given one. Each is
	// counted as a restart instead of an attempt. Only a process that is the store's
	// sole user may call it, at startup. It returns the number of requeued items.
	Recover(ctx context.Context, worker string) (int, error)

	// DeleteFinished removes operations that finished before t and returns their
	// number.
	DeleteFinished(ctx context.Context, t time.Time) (int, error)
}

// A PendingItem is an item that can start.
type PendingItem struct {
	Ref
	Queue   string
	Owner   string
	Created time.Time // of the operation
	Since   time.Time // when it became due: not before Created
}

// A PendingQuery selects items. The zero value selects all.
type PendingQuery struct {
	Queue string // "" selects all
	Owner string // "" selects all
}

// Load counts an owner's items in a queue.
type Load struct {
	Queue   string
	Owner   string
	Queued  int       // due, or waiting for a retry
	Running int       // under a claim, live or lapsed
	Oldest  time.Time // creation of the oldest operation with a queued item; zero if there is none

	// Waiting counts the queued items that wait for a resource, by the reason of their
	// [Waiting]. nil: no such items.
	Waiting map[string]int
}

// A Dispatcher calls work for items until ctx is done, with at most limits[queue] calls
// at a time. limits[""] applies to queues that are not named; a negative limit disables
// a queue. Run returns when all calls of work have returned, with nil if ctx ended it.
//
// If work fails, the dispatcher retries the item. After a [RetryError] it waits for the
// time in it. After an error that matches [ErrParallel] it waits until another item of
// the owner stops. After other errors the pause is up to the dispatcher. A Dispatcher
// that also is a [Notifier] is notified of new items.
type Dispatcher interface {
	Run(ctx context.Context, limits map[string]int, work func(context.Context, Ref) error) error
}

// A Notifier is a [Dispatcher] that is notified of items as soon as they are stored, so
// that it does not have to poll. Notify does not block.
type Notifier interface {
	Notify(items []PendingItem)
}

// A RetryError makes a [Dispatcher] retry an item.
type RetryError struct {
	After time.Duration // minimum time before the retry
}

// Error describes e.
func (e *RetryError) Error() string { return "retry in " + e.After.String() }

// A Handler does the work of one item. It must return soon after ctx is done. It may be
// called again for the same item: after an outcome with Retry, after a crash, and after
// its claim was lost. In the last case the first call may still be running.
type Handler interface {
	Handle(ctx context.Context, c *Claim, progress func(float64)) Outcome
}

// HandlerFunc adapts a function to a [Handler].
type HandlerFunc func(ctx context.Context, c *Claim, progress func(float64)) Outcome

// Handle calls f.
func (f HandlerFunc) Handle(ctx context.Context, c *Claim, progress func(float64)) Outcome {
	return f(ctx, c, progress)
}
