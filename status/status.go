// Package status keeps operations and gets their items done.
//
// It knows nothing of files or HTTP: a [Handler] does the work. An item is
// worked on under a claim that is renewed by heartbeats; if the process dies, the
// claim lapses and another worker takes the item over. The claim's number is a
// fencing token: whoever comes back late cannot record anything.
//
// # Parts
//
// A [Store] is the truth: every step of an operation is one transaction of it.
// [MemStore] is for tests and for programs that need no persistence; package
// sqlstore keeps operations in a database. A [Dispatcher] decides which item is
// worked on next; [Local] does so within one process. A [Tracker] puts them
// together and is what programs use.
//
// # Life of an item
//
// An item is Queued until a worker claims it, then Running, and at the end
// Completed or Failed. It goes back to Queued if its handler asks for another
// attempt, if the process stops in good order, or if its claim lapses. Its
// progress never runs backwards, and an operation that has started is never
// Queued again.
//
// An attempt counts if its handler says so. It does not count if the process that
// worked on the item died: that is a restart, which has a count of its own. Nor does
// it count if something was missing that the work needs, such as the disk or the
// network: then the item waits, and its Waiting says for what.
package status

import (
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

// Final reports whether s will not change any more.
func (s State) Final() bool { return s == Completed || s == Failed }

// An Operation is what one call of do asked for.
type Operation struct {
	ID     string // main_task_id
	Owner  string // account it belongs to
	Action string

	// Args are the parameters, as the submitter encoded them; opaque here.
	// They are erased (nil) when the operation is final.
	Args  []byte
	Notes map[string]string
	State State // see Rollup
	Items []Item

	// IdempotencyKey makes submitting repeatable: see [Store.Create].
	// Fingerprint identifies the request it belongs to.
	IdempotencyKey string
	Fingerprint    string

	// Origin is where the operation comes from, for log lines.
	Origin Origin

	// Cancelled tells that Cancel was called before the operation was final.
	// Items that are still running then are about to end.
	Cancelled bool

	Created  time.Time // to the millisecond
	Finished time.Time // zero until final
}

// An Origin names the request that submitted an operation. Both names may be empty.
type Origin struct {
	Request string // ID of the request
	Key     string // ID of the credential, not the credential
}

// Clone returns a deep copy of op.
func (op *Operation) Clone() *Operation {
	if op == nil {
		return nil
	}
	c := *op
	c.Args = slices.Clone(op.Args)
	c.Notes = maps.Clone(op.Notes)
	c.Items = make([]Item, len(op.Items))
	for i, it := range op.Items {
		c.Items[i] = it.clone()
	}
	return &c
}

// Percent returns the mean progress of the items in percent. A final item counts as 100,
// also if it has failed.
func (op *Operation) Percent() int {
	total := 0.0
	for _, it := range op.Items {
		if it.State.Final() {
			total++
		} else {
			total += it.Progress
		}
	}
	return int(100 * total / float64(max(1, len(op.Items))))
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
	Suspicions int       // number of attempts whose outcome had Suspect set
	Claims     int       // number of times it was claimed, for whatever reason
	Clean      int       // Outcome.Clean of its attempts, the highest
	Progress   float64   // 0 to 1; never runs backwards
	Waiting    *Waiting  // why its latest attempt was put off; nil if it was not, or the item is final
	Error      *Error    // when Failed
	Started    time.Time // of the latest attempt; zero if there was none
	Finished   time.Time // zero until final
}

func (it Item) clone() Item {
	it.Inputs = slices.Clone(it.Inputs)
	it.Results = slices.Clone(it.Results)
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

// started reports whether there was an attempt at the item, be it one that was
// given back.
func (it Item) started() bool {
	return it.State == Running || it.Attempt > 0 || !it.Started.IsZero()
}

// Rollup returns the state of an operation from the states of its items. It is
// final when all of them are: Completed if at least one completed and the
// operation was not cancelled, else Failed. Until then it is Queued if no item
// was ever started or ended, else Running.
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

// A File is what an item tells of an input or a result. The file itself is
// kept elsewhere, under Key.
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

// A Waiting says what an item waits for.
type Waiting struct {
	Reason string    // stable, for programs: one of the reasons of this package, or another name
	Since  time.Time // when the first attempt was put off, of those since the last one that was not
}

// Reasons of a [Waiting].
const (
	WaitStorage  = "storage_unavailable"  // the place of the files does not answer
	WaitDatabase = "database_unavailable" // the database does not answer
	WaitDisk     = "disk_full"            // no space for results or for the work
	WaitEngine   = "engine_unavailable"   // the program that does the work cannot be started
	WaitAlone    = "worker_busy"          // the item runs alone, and others run
)

// Codes of errors that this package itself reports.
const (
	CodeCancelled = "cancelled"       // [Tracker.Cancel] was called
	CodeTimeout   = "timeout"         // waited or worked too long
	CodeInternal  = "internal_error"  // restarted too often, or the handler panicked
	CodeWaited    = "waited_too_long" // something that the work needs was missing for [Config.MaxWait]
)

// A Ref names an item.
type Ref struct {
	Operation string
	Index     int
}

// A Claim is the right to finish an item. Token grows with every claim: it is the
// Claims of the item.
type Claim struct {
	Ref
	Token int
	Item  Item
	Op    *Operation // without Items other than what Item tells

	// Rescued says that the claim before has lapsed, of a worker that died, froze or
	// lost the store.
	Rescued bool

	// Alone says that the worker runs no other item meanwhile. A [Tracker] sets it
	// for a handler.
	Alone bool
}

// An Outcome is the end of one attempt at an item. The zero Outcome is a success
// without results.
type Outcome struct {
	Results []File // on success
	Error   *Error // nil on success

	// Retry gives the item back instead of finishing it, not to be started
	// again before the given time has passed. Error tells why and becomes
	// final if the item has had its attempts.
	Retry      bool
	RetryAfter time.Duration

	// Release gives the item back for a reason that is not its own: this
	// process is stopping, or the disk is full. The attempt does not count.
	// RetryAfter holds here, too.
	Release bool

	// Waiting, with Release, is what the item waits for: a reason of a [Waiting].
	// Without RetryAfter the tracker makes the pauses longer and longer. An item
	// that has waited for [Config.MaxWait] fails with CodeWaited.
	Waiting string

	// Clean is the number of a claim: neither that nor one before has left results
	// that are not recorded. Later ones may have, such as those that ended without an
	// outcome.
	Clean int

	// Suspect says that the item itself may have ended what worked on it. After two
	// such attempts a tracker runs it alone.
	Suspect bool
}

// Apply returns what the running item becomes by the outcome, and from when on
// it may be started if that is Queued. cancelled reports whether its operation was
// cancelled: then the item fails with CodeCancelled whatever the outcome, and
// its results are not recorded. Stores use it so that all of them agree.
func (o Outcome) Apply(it Item, cancelled bool, now time.Time) (next Item, due time.Time) {
	it.Results, it.Error = nil, nil
	before := it.Waiting
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
		it.State, it.Results, it.Progress = Completed, slices.Clone(o.Results), 1
	}
	it.Finished = now
	return it, time.Time{}
}

// A Query selects operations of an owner.
type Query struct {
	Owner  string
	State  State  // "" selects all
	Before string // ID of an operation of the owner: only older ones; "" starts at the newest
	Limit  int    // at most so many; 0 means 50

	// IdempotencyKey selects the operation that was created under it, if it
	// still holds it. "" selects all.
	IdempotencyKey string
}

// ErrLost reports that a claim is not live any more: its result must be dropped.
var ErrLost = errors.New("the claim on the item was lost")

// ErrParallel reports that an item may not be started for now because as many items
// of its owner are worked on as may be at the same time, on all queues and by all
// processes.
var ErrParallel = errors.New("as many items of the owner are worked on as may be")

// ErrUnavailable reports that a store cannot be reached for now. What was asked may
// be tried again; it is not known whether it was done.
var ErrUnavailable = errors.New("the store cannot be reached for now")

// A Store keeps operations. Implementations must be safe for concurrent use, by
// several processes if they are to share work. A missing operation matches
// fs.ErrNotExist. Times are kept to the millisecond at least. A claim is live
// while its lease lasts and nobody else has claimed the item. Operations are
// ordered by Created, then by ID. It has more methods than four because each is
// one transaction. Package statustest checks all of this.
type Store interface {
	// Create stores an operation with all items queued. If op.IdempotencyKey
	// is not empty and op.Owner has an operation with the same one, created
	// after op.Created minus 24 hours, nothing is stored and that operation
	// is returned; an older one loses the key. Otherwise the returned
	// operation equals op. Its items may be started at once, also if
	// op.Created is in the future by the clock of the store.
	Create(ctx context.Context, op *Operation) (*Operation, error)
	Get(ctx context.Context, id string) (*Operation, error)

	// List yields operations, newest first.
	List(ctx context.Context, q Query) iter.Seq2[*Operation, error]

	// Claim starts an item that is not final and not under a live claim, and
	// returns it with its operation. That is another attempt, or another restart if
	// the item is running under a claim that has lapsed. It fails with ErrLost if it may not be
	// started: it is final, under a live claim, or waiting for a retry. An
	// item of a cancelled operation can be claimed, if only to be finished.
	//
	// A store may have limits of how many items of an owner are under live
	// claims. Then it fails with ErrParallel if the item could be started but
	// for that; of claims at the same time no more succeed than the limit
	// permits. Items of cancelled operations are not limited.
	Claim(ctx context.Context, ref Ref, worker string, lease time.Duration) (*Claim, error)

	// Heartbeat renews all live claims of a worker and records progress, where it
	// is more than before. It returns the claims in progress that are lost
	// or whose operation was cancelled.
	Heartbeat(ctx context.Context, worker string, lease time.Duration, progress map[Ref]float64) (stop []Ref, err error)

	// Finish records the outcome of a claimed item as Outcome.Apply says,
	// and with it the operation's state, in one transaction, and returns the
	// operation, with its Items only if it is final now. Progress in c.Item
	// is recorded if it is more than before. A claim that is no longer live
	// matches ErrLost and nothing is recorded.
	Finish(ctx context.Context, c *Claim, o Outcome) (*Operation, error)

	// Cancel fails the items that have not started with CodeCancelled and
	// marks the others, which Heartbeat then reports. Cancelling a final
	// operation changes nothing. An operation of another owner matches
	// fs.ErrNotExist.
	Cancel(ctx context.Context, owner, id string) (*Operation, error)

	// Pending yields the selected items that are not final and may be
	// started now: queued and due, or running under a claim that has lapsed.
	// Oldest operation first, its items by index. It reads no more than the
	// caller asks for, and the caller may change the store between two items.
	Pending(ctx context.Context, q PendingQuery) iter.Seq2[PendingItem, error]

	// Load counts the items that are not final, by queue and owner, in no
	// particular order.
	Load(ctx context.Context) ([]Load, error)

	// Recover gives all running items of workers other than the given one
	// back, at once, which makes each a restart and takes its attempt back. Only a process that owns the store alone may call it,
	// when it starts. It returns how many there were.
	Recover(ctx context.Context, worker string) (int, error)

	// DeleteFinished removes operations that were finished before t and
	// returns how many.
	DeleteFinished(ctx context.Context, t time.Time) (int, error)
}

// A PendingItem is an item that waits for work.
type PendingItem struct {
	Ref
	Queue   string
	Owner   string
	Created time.Time // of the operation
	Since   time.Time // when it began to wait: not before Created
}

// A PendingQuery selects items. The zero value selects all.
type PendingQuery struct {
	Queue string // "" selects all
	Owner string // "" selects all
}

// Load tells how many items of an owner a queue holds.
type Load struct {
	Queue   string
	Owner   string
	Queued  int       // due, or waiting for a retry
	Running int       // under a claim, live or lapsed
	Oldest  time.Time // when the oldest operation with a queued item was created; zero if there is none

	// Waiting is how many of the queued items wait for something, by the reason of
	// their [Waiting]. nil: none.
	Waiting map[string]int
}

// A Dispatcher hands items to work, at most limits[queue] at a time, until ctx is
// done; limits[""] is for queues that are not named, and a negative limit keeps
// a queue from being worked on. Run returns when all work has returned, nil if
// that is because ctx is done.
//
// An item whose work returns an error is handed out again: after the time that
// a [RetryError] tells, when another item of its owner has ended if the error
// matches [ErrParallel], else as the dispatcher sees fit. If the Dispatcher also
// is a [Notifier] it is told of new items.
type Dispatcher interface {
	Run(ctx context.Context, limits map[string]int, work func(context.Context, Ref) error) error
}

// A Notifier is a [Dispatcher] that wants to be told of items that have just been
// stored, because it would notice them late otherwise. Notify does not block.
type Notifier interface {
	Notify(items []PendingItem)
}

// A RetryError is what work returns for an item that is to be handed out again.
type RetryError struct {
	After time.Duration // not before this has passed
}

// Error describes e.
func (e *RetryError) Error() string { return "to be tried again in " + e.After.String() }

// A Handler does the work of one item. It must return soon after ctx is done. It
// may be called again for the same item: after a failure that it wants retried,
// after a crash, and after its claim was lost, then even before the first call
// has returned.
type Handler interface {
	Handle(ctx context.Context, c *Claim, progress func(float64)) Outcome
}

// HandlerFunc adapts a function to a [Handler].
type HandlerFunc func(ctx context.Context, c *Claim, progress func(float64)) Outcome

// Handle calls f.
func (f HandlerFunc) Handle(ctx context.Context, c *Claim, progress func(float64)) Outcome {
	return f(ctx, c, progress)
}
