// Package riverqueue shares the items of operations among processes. It is a
// [status.Dispatcher] built on River, a queue in PostgreSQL, and uses a database of
// package sqlstore.
//
//	db, err := sqlstore.Open(ctx, sqlstore.Options{URL: "postgres://…"})
//	...
//	queue, err := riverqueue.New(ctx, db, nil)
//	...
//	tracker, err := status.New(status.Config{Store: db.Operations(), Dispatcher: queue, ...})
//
// # Tickets
//
// The database of operations holds the state; River carries tickets, each of which says
// that an item may run. A ticket is inserted right after the transaction that makes the
// item ready: when its operation is created, or when an earlier item finishes. If the
// process dies in between, other processes find the item without a ticket within
// seconds. An owner has a limited number of tickets in a queue, so that no owner waits
// for another's backlog. If the owner's running items are limited, it has no more
// tickets than items that may start. A process that draws a ticket must still claim the
// item, so an extra ticket does no harm.
//
// # Turns
//
// Owners with nothing running in a queue come first, then the owner with the fewest
// tickets in it. If other owners' long items occupy all slots of all processes, an item
// of an owner with nothing running gets an overflow slot after a while, see
// Options.OverflowWait.
//
// # Rescue
//
// An item whose claim has lapsed gets a new ticket, and its old one is deleted: with
// the old one, a process that resumes late could interfere. Only a process that has
// reached the database for a full lease rescues items. If the database was down, the
// other processes could not renew their claims either. An item whose ticket was lost
// gets a new one, too.
package riverqueue

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/filewright/filewright/internal/backoff"
	"github.com/filewright/filewright/status"
)

// Options configure a [Queue]. The zero value is usable.
type Options struct {
	// Tickets is the maximum number of tickets of one owner in a queue; its other items
	// wait in the database. It should exceed the number of items that all processes
	// together can run. Owners that submit from several processes at the same time may
	// have a few more tickets. 0: 64.
	Tickets int

	// Lease is the lease of the trackers. This process rescues items of other processes
	// only after it has reached the database for that long, and for at least 5 seconds.
	// 0: 15 seconds.
	Lease time.Duration

	// Every is the time between two searches for items whose claim has lapsed. 0: a
	// sixth of Lease, at most 1 second.
	Every time.Duration

	// OverflowWait is how long an owner with queued items and none running in any
	// process waits while another owner holds several slots of the queue, or the only
	// one. Then one item starts in an overflow slot, one slot beyond the limit of a
	// process. Each process has one overflow slot in each queue. It may take another
	// second, and Every, until the slot is used. 0: for ever, so that no limit is
	// exceeded.
	OverflowWait time.Duration

	Log *slog.Logger // nil discards
}

// ErrNewer reports that a newer version of River created the tables of the queue.
var ErrNewer = errors.New("the queue belongs to a newer version of this program")

// A Database holds the operations and the tables of River; *sqlstore.DB is one.
type Database interface {
	// Pool returns the connections to PostgreSQL, or nil if the database is not
	// PostgreSQL.
	Pool() *pgxpool.Pool

	// AsyncCommitPool returns connections whose commits do not wait for the disk.
	AsyncCommitPool() *pgxpool.Pool

	// Migrate calls f while no other process is in Migrate.
	Migrate(ctx context.Context, f func(context.Context) error) error

	// OnReady makes the database call f after every commit that added, requeued or
	// finished items of lanes.
	OnReady(f func([]status.Lane)) error
}

// A Queue is a [status.Dispatcher] for several processes. It also issues tickets for
// the items that this process submits, whether Run is called or not.
type Queue struct {
	db   Database
	pool *pgxpool.Pool
	o    Options
	log  *slog.Logger

	insert *river.Client[pgx.Tx] // only inserts tickets
	issuer issuer
}

// args is the content of a ticket. River has an index on all of it.
type args struct {
	Operation string `json:"operation"`
	Index     int    `json:"index"`
}

// Kind returns River's job kind of tickets.
func (args) Kind() string { return kind }

const kind = "filewright_item"

// New returns a dispatcher for the operations of db, which must be a PostgreSQL
// database, and brings River's tables up to date. All processes that share the database
// must use one, even those that run no items.
func New(ctx context.Context, db Database, o *Options) (*Queue, error) {
	if o == nil {
		o = new(Options)
	}
	q := &Queue{db: db, pool: db.Pool(), o: *o, log: o.Log}
	q.issuer.lanes = make(map[status.Lane]bool)
	if q.pool == nil {
		return nil, fmt.Errorf("a queue for several processes requires PostgreSQL: %w", errors.ErrUnsupported)
	}
	if q.o.Tickets < 0 || q.o.Lease < 0 || q.o.Every < 0 || q.o.OverflowWait < 0 {
		return nil, errors.New("negative limit")
	}
	q.o.Tickets = cmp.Or(q.o.Tickets, 64)
	q.o.Lease = cmp.Or(q.o.Lease, 15*time.Second)
	if q.o.Every == 0 {
		q.o.Every = min(time.Second, q.o.Lease/6)
	}
	q.log = cmp.Or(q.log, slog.New(slog.DiscardHandler))
	if err := db.Migrate(ctx, q.migrate); err != nil {
		return nil, fmt.Errorf("tables of the queue: %w", err)
	}
	var err error
	if q.insert, err = river.NewClient(riverpgxv5.New(db.AsyncCommitPool()), q.config()); err != nil {
		return nil, err
	}
	return q, db.OnReady(q.Ready)
}

// migrate brings River's tables up to date.
func (q *Queue) migrate(ctx context.Context) error {
	m, err := rivermigrate.New(riverpgxv5.New(q.pool), &rivermigrate.Config{Logger: warnings(q.log)})
	if err != nil {
		return err
	}
	var table *string
	if err := q.pool.QueryRow(ctx, `SELECT to_regclass('river_migration')::text`).Scan(&table); err != nil {
		return err
	}
	if table != nil {
		all := m.AllVersions()
		known := all[len(all)-1].Version
		var have int
		if err := q.pool.QueryRow(ctx, `SELECT coalesce(max(version), 0) FROM river_migration`).Scan(&have); err != nil {
			return err
		}
		if have > known {
			return fmt.Errorf("version %d, newest known version %d: %w", have, known, ErrNewer)
		}
	}
	_, err = m.Migrate(ctx, rivermigrate.DirectionUp, nil)
	return err
}

// fetchCooldown is the minimum time between two fetches from a queue by a process, and
// between two notifications of it. Tickets inserted in between would wait for the next
// poll.
const fetchCooldown = 3 * time.Millisecond

// config returns the configuration that all River clients share.
func (q *Queue) config() *river.Config {
	return &river.Config{
		Logger:            warnings(q.log),
		FetchCooldown:     fetchCooldown,
		FetchPollInterval: 250 * time.Millisecond,
		// The tracker enforces timeouts, and this package rescues items. A job that
		// River finds stuck after a day is left over from a crash.
		JobTimeout:                  -1,
		RescueStuckJobsAfter:        24 * time.Hour,
		CompletedJobRetentionPeriod: 10 * time.Minute,
		CancelledJobRetentionPeriod: 10 * time.Minute,
		DiscardedJobRetentionPeriod: 10 * time.Minute,
		MaxAttempts:                 1,
	}
}

// queueName returns River's name of a queue. The prefix separates it from queues of
// other programs that use the same tables.
func queueName(queue string) string {
	if simple.MatchString(queue) {
		return "fw-" + queue
	}
	return "fw-x-0" + hex.EncodeToString([]byte(queue))
}

var simple = regexp.MustCompile(`^[a-z0-9]{1,50}$`)

// dbNow is the time of the database in milliseconds.
const dbNow = `(extract(epoch FROM clock_timestamp()) * 1000)::bigint`

// A run is a call of Run.
type run struct {
	*Queue
	river.WorkerDefaults[args]
	client *river.Client[pgx.Tx]
	limits map[string]int
	work   func(context.Context, status.Ref) error
	ctx    context.Context // of Run

	timers sync.WaitGroup  // items that wait for a retry
	active atomic.Int64    // running items
	closed atomic.Bool     // no item starts any more
	queues map[string]bool // served queues
}

// Run implements [status.Dispatcher]. A limit of 0 means GOMAXPROCS. A queue that
// limits does not name is served once it has been seen to hold items, which takes some
// seconds.
func (q *Queue) Run(ctx context.Context, limits map[string]int, work func(context.Context, status.Ref) error) error {
	r := &run{Queue: q, limits: limits, work: work, ctx: ctx, queues: make(map[string]bool)}
	defer r.timers.Wait()
	cfg := q.config()
	cfg.Workers = river.NewWorkers()
	if err := river.AddWorkerSafely(cfg.Workers, r); err != nil {
		return err
	}
	cfg.Queues = make(map[string]river.QueueConfig)
	for name := range limits {
		if c, ok := r.queueConfig(name); ok && name != "" {
			cfg.Queues[queueName(name)] = c
			r.queues[name] = true
		}
	}
	if len(cfg.Queues) == 0 {
		if limits[""] < 0 {
			<-ctx.Done() // this process only submits
			flush, cancel := context.WithTimeout(context.WithoutCancel(ctx), issueTimeout)
			defer cancel()
			_ = q.Flush(flush)
			return nil
		}
		cfg.Queues[queueName("")], _ = r.queueConfig("")
		r.queues[""] = true
	}
	if q.o.OverflowWait > 0 {
		for name := range r.queues {
			cfg.Queues[overflowName(queueName(name))] = overflowConfig()
		}
	}
	var err error
	if r.client, err = river.NewClient(riverpgxv5.New(q.db.AsyncCommitPool()), cfg); err != nil {
		return err
	}
	// River must not cancel running jobs when ctx is done: the tracker does so.
	plain := context.WithoutCancel(ctx)
	if err := r.start(plain); err != nil {
		return err
	}
	r.rescueLoop(ctx)
	if !r.stop(plain) {
		r.log.Warn("the database does not respond; other processes take over the tickets of this process")
		return nil
	}
	flush, cancel := context.WithTimeout(plain, issueTimeout)
	defer cancel()
	_ = q.Flush(flush) // otherwise another process will find the items
	return nil
}

// stopTimeout is how long Run waits for the database when no item runs any more.
const stopTimeout = 3 * time.Second

// stop waits for the running items, and for River to record the ends of their jobs. It
// reports false if the database does not respond; then no more items start.
func (r *run) stop(plain context.Context) bool {
	for {
		idle := r.active.Load() == 0
		ctx, cancel := context.WithTimeout(plain, stopTimeout)
		err := r.client.Stop(ctx)
		cancel()
		if err == nil {
			return true
		}
		if !idle {
			continue
		}
		r.closed.Store(true)
		if r.active.Load() == 0 {
			return false
		}
		r.closed.Store(false)
	}
}

// start starts the client, when the database can be reached.
func (r *run) start(plain context.Context) error {
	defer context.AfterFunc(r.ctx, func() { r.stop(plain) })() // Start may wait for a response
	for {
		err := r.client.Start(plain)
		if err == nil || r.ctx.Err() != nil {
			return err
		}
		r.log.Error("cannot read the queue", "err", err)
		_ = backoff.Sleep(r.ctx, time.Second)
	}
}

// queueConfig reports whether a queue is served here, and returns its configuration.
func (r *run) queueConfig(queue string) (c river.QueueConfig, ok bool) {
	n, named := r.limits[queue]
	if !named {
		n = r.limits[""]
	}
	n = cmp.Or(n, runtime.GOMAXPROCS(0))
	return river.QueueConfig{MaxWorkers: n}, n > 0
}

// failureDelay is the pause before the same ticket is used again after its item could
// not run.
const failureDelay = time.Second

// Work runs the item of a ticket. It implements [river.Worker].
func (r *run) Work(ctx context.Context, job *river.Job[args]) error {
	r.active.Add(1)
	defer r.active.Add(-1)
	if r.closed.Load() {
		return river.JobSnooze(0)
	}
	a := job.Args
	err := r.work(ctx, status.Ref{Operation: a.Operation, Index: a.Index})
	if err == nil {
		return nil
	}
	if errors.Is(err, status.ErrParallel) {
		return r.returnTicket(ctx, job)
	}
	after := failureDelay
	var retry *status.RetryError
	if errors.As(err, &retry) {
		after = max(0, retry.After)
	} else {
		r.log.Error("cannot run item", "operation", a.Operation, "item", a.Index, "err", err)
	}
	// If the item was requeued, it has lost this ticket and gets another one when it is
	// due. Otherwise this ticket is still valid.
	mine, l := true, status.Lane{}
	ask, cancel := r.asking(ctx)
	defer cancel()
	err = r.pool.QueryRow(ask, `SELECT coalesce(ticket = $3, false), queue, owner FROM items
		WHERE operation = $1 AND idx = $2 AND finished_ms IS NULL`,
		a.Operation, a.Index, job.ID).Scan(&mine, &l.Queue, &l.Owner)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil
	case err != nil || mine:
		return river.JobSnooze(max(after, 10*time.Millisecond))
	case after > 0:
		r.timers.Go(func() {
			if backoff.Sleep(r.ctx, after+time.Millisecond) == nil { // otherwise another process will find it
				r.Ready([]status.Lane{l})
			}
		})
	}
	return nil
}

// asking returns a context for the query about the state of a ticket.
func (r *run) asking(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := issueTimeout
	if r.ctx.Err() != nil {
		limit = stopTimeout
	}
	return context.WithTimeout(context.WithoutCancel(ctx), limit)
}

// parallelDelay is the pause before a new ticket is issued for an item that could not
// start because of its owner's limit. Usually another item finishes first and causes a
// new ticket.
const parallelDelay = 200 * time.Millisecond

// returnTicket deletes the ticket of an item that may not start yet: it gets another one
// when an item of its owner finishes.
func (r *run) returnTicket(ctx context.Context, job *river.Job[args]) error {
	var l status.Lane
	ask, cancel := r.asking(ctx)
	defer cancel()
	err := r.db.AsyncCommitPool().QueryRow(ask, `UPDATE items SET ticket = NULL
		WHERE operation = $1 AND idx = $2 AND ticket = $3 RETURNING queue, owner`,
		job.Args.Operation, job.Args.Index, job.ID).Scan(&l.Queue, &l.Owner)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil // it has another ticket
	case err != nil:
		return river.JobSnooze(failureDelay)
	}
	// That item may have finished before the ticket was deleted.
	r.timers.Go(func() {
		if backoff.Sleep(r.ctx, parallelDelay) == nil {
			r.Ready([]status.Lane{l})
		}
	})
	return nil
}

var (
	_ status.Dispatcher = (*Queue)(nil)
)

// warnings returns a logger that drops River's routine messages.
func warnings(log *slog.Logger) *slog.Logger { return slog.New(quiet{log.Handler()}) }

type quiet struct{ slog.Handler }

func (q quiet) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && q.Handler.Enabled(ctx, l)
}

// Handle turns River's errors, which River logs as text, into the type that marks an
// unreachable database in the log. River depends on nothing else.
func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	typed := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "error" {
			a.Key = "err"
		}
		if a.Key == "err" && a.Value.Kind() == slog.KindString && isUnavailable(a.Value.String()) {
			a.Value = slog.AnyValue(fmt.Errorf("%w: %s", status.ErrUnavailable, a.Value))
		}
		typed.AddAttrs(a)
		return true
	})
	return q.Handler.Handle(ctx, typed)
}

// isUnavailable reports whether the text of an error means that the database cannot be reached.
func isUnavailable(text string) bool {
	for _, part := range []string{"failed to connect", "SQLSTATE 08", "SQLSTATE 57P0", "SQLSTATE 53", "unexpected EOF", "connection re", "conn closed", "broken pipe", "deadline exceeded", "i/o timeout"} {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}

func (q quiet) WithAttrs(a []slog.Attr) slog.Handler { return quiet{q.Handler.WithAttrs(a)} }

func (q quiet) WithGroup(name string) slog.Handler { return quiet{q.Handler.WithGroup(name)} }
