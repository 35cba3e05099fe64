// Package riverqueue shares the items of operations among processes. It is a
// [status.Dispatcher] on River, a queue that lives in PostgreSQL, beside a
// database of package sqlstore.
//
//	db, err := sqlstore.Open(ctx, sqlstore.Options{URL: "postgres://…"})
//	...
//	queue, err := riverqueue.New(ctx, db, nil)
//	...
//	tracker, err := status.New(status.Config{Store: db.Operations(), Dispatcher: queue, ...})
//
// # Tickets
//
// The database of operations is the truth; River carries tickets, which say that
// an item may be worked on. A ticket is put into the queue right after the
// transaction that makes the item ready: when its operation was created, or when
// an earlier item has ended. If the process dies in between, others find items
// without a ticket within seconds. An owner has a bounded number of tickets in a queue, so that
// nobody waits for another one's backlog, and where the items of an owner that are
// worked on at once are limited no more than may be begun. Whoever draws a ticket
// must still claim the item: a ticket too many does no harm.
//
// # Turns
//
// The owner with the fewest tickets in a queue comes first, before all others an owner
// with nothing running in it. If long items of others take all places of all processes,
// an item of such an owner gets an overflow slot after a while, see Options.OverflowWait.
//
// # Rescue
//
// An item whose claim has lapsed gets a new ticket, and its old one is done away
// with; giving the old one out again would let a process that comes back late
// interfere. Only a process that could reach the database for a full lease does
// this: if the database was away, the others could not renew their claims either.
// An item whose ticket was lost is found and gets a new one too.
package riverqueue

import (
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
	// Tickets is how many items of one owner a queue holds at once; the others
	// wait in the database. It should be more than all processes together
	// work on at once. Owners who submit from several processes at the same
	// time may have a few more. 0: 64.
	Tickets int

	// Lease is that of the trackers: so long, and 5 seconds at least, must this
	// process have reached the database before it takes items away from others.
	// 0: 15 seconds.
	Lease time.Duration

	// Every is the time between two looks for items whose claim has lapsed.
	// 0: a sixth of Lease, at most 1 second.
	Every time.Duration

	// OverflowWait is how long an owner with queued items and none running in any
	// process waits while another owner holds several places of the queue, or the
	// only one. Then one item starts in an overflow slot, one place beyond the limit
	// of a process. Each process has one such slot in each queue. It may take
	// another second, and Every, until the slot is used. 0: for ever, so that no
	// limit is exceeded.
	OverflowWait time.Duration

	Log *slog.Logger // nil discards
}

// ErrNewer reports that a newer version of River made the tables of the queue.
var ErrNewer = errors.New("the queue belongs to a newer version of this program")

// A Database holds the operations and the tables of River; *sqlstore.DB is one.
type Database interface {
	// Pool returns the connections to PostgreSQL, nil if the database is another.
	Pool() *pgxpool.Pool

	// AsyncCommitPool returns connections whose commits do not wait for the disk.
	AsyncCommitPool() *pgxpool.Pool

	// Migrate calls f while no other process is in Migrate.
	Migrate(ctx context.Context, f func(context.Context) error) error

	// OnReady has f called after every commit that added, returned or finished
	// items of lanes.
	OnReady(f func([]status.Lane)) error
}

// A Queue is a [status.Dispatcher] for several processes. It also issues tickets
// for what this process submits, be it run or not.
type Queue struct {
	db   Database
	pool *pgxpool.Pool
	o    Options
	log  *slog.Logger

	insert *river.Client[pgx.Tx] // works on nothing
	issuer issuer
}

// args are what a ticket says. River has an index on all of it.
type args struct {
	Operation string `json:"operation"`
	Index     int    `json:"index"`
}

// Kind names tickets among the jobs of River.
func (args) Kind() string { return kind }

const kind = "filewright_item"

// New returns a dispatcher for the operations of db, which must be a PostgreSQL
// database, and brings River's tables up to date. All processes that share the
// database must use one, also those that work on nothing.
func New(ctx context.Context, db Database, o *Options) (*Queue, error) {
	if o == nil {
		o = new(Options)
	}
	q := &Queue{db: db, pool: db.Pool(), o: *o, log: o.Log}
	q.issuer.lanes = make(map[status.Lane]bool)
	if q.pool == nil {
		return nil, fmt.Errorf("a queue for several processes: %w without PostgreSQL", errors.ErrUnsupported)
	}
	if q.o.Tickets < 0 || q.o.Lease < 0 || q.o.Every < 0 || q.o.OverflowWait < 0 {
		return nil, errors.New("negative limit")
	}
	if q.o.Tickets == 0 {
		q.o.Tickets = 64
	}
	if q.o.Lease == 0 {
		q.o.Lease = 15 * time.Second
	}
	if q.o.Every == 0 {
		q.o.Every = min(time.Second, q.o.Lease/6)
	}
	if q.log == nil {
		q.log = slog.New(slog.DiscardHandler)
	}
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
			return fmt.Errorf("version %d, known is %d: %w", have, known, ErrNewer)
		}
	}
	_, err = m.Migrate(ctx, rivermigrate.DirectionUp, nil)
	return err
}

// fetchCooldown is the least time between two draws of a queue by a process, and
// between two notifications of it: what is inserted in between would be noticed
// by the next poll.
const fetchCooldown = 3 * time.Millisecond

// config returns what all clients of River have in common.
func (q *Queue) config() *river.Config {
	return &river.Config{
		Logger:            warnings(q.log),
		FetchCooldown:     fetchCooldown,
		FetchPollInterval: 250 * time.Millisecond,
		// Work is limited by the tracker, and rescued by this package. What
		// River finds stuck after a day is left over from a crash.
		JobTimeout:                  -1,
		RescueStuckJobsAfter:        24 * time.Hour,
		CompletedJobRetentionPeriod: 10 * time.Minute,
		CancelledJobRetentionPeriod: 10 * time.Minute,
		DiscardedJobRetentionPeriod: 10 * time.Minute,
		MaxAttempts:                 1,
	}
}

// queueName returns River's name of a queue. The prefix keeps the queues of other
// programs apart that use the same tables.
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

	timers sync.WaitGroup  // items that wait to be tried again
	active atomic.Int64    // items in work
	closed atomic.Bool     // nothing is begun any more
	queues map[string]bool // that are worked on
}

// Run implements [status.Dispatcher]. A limit of 0 means GOMAXPROCS. A queue that
// limits does not name is worked on when it has been seen to hold items, which
// takes some seconds at first.
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
	// River must not end what is going on when ctx does: the tracker will.
	plain := context.WithoutCancel(ctx)
	if err := r.start(plain); err != nil {
		return err
	}
	r.look(ctx)
	if !r.stop(plain) {
		r.log.Warn("the database does not answer: the tickets of this process are left to others")
		return nil
	}
	flush, cancel := context.WithTimeout(plain, issueTimeout)
	defer cancel()
	_ = q.Flush(flush) // else another process will find them
	return nil
}

// stopTimeout is how long the database is waited for when nothing is worked on any more.
const stopTimeout = 3 * time.Second

// stop waits for what is being worked on, and for River to record its ends. It fails if
// the database does not answer; then nothing more is begun.
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
	defer context.AfterFunc(r.ctx, func() { r.stop(plain) })() // it may wait for an answer
	for {
		err := r.client.Start(plain)
		if err == nil || r.ctx.Err() != nil {
			return err
		}
		r.log.Error("the queue cannot be read", "err", err)
		_ = backoff.Sleep(r.ctx, time.Second)
	}
}

// queueConfig reports whether a queue is worked on, and how.
func (r *run) queueConfig(queue string) (c river.QueueConfig, ok bool) {
	n, named := r.limits[queue]
	if !named {
		n = r.limits[""]
	}
	if n == 0 {
		n = runtime.GOMAXPROCS(0)
	}
	return river.QueueConfig{MaxWorkers: n}, n > 0
}

// failureDelay is the time before a ticket is drawn again whose item could not be
// worked on for reasons of its own.
const failureDelay = time.Second

// Work has the item of a ticket worked on. It implements [river.Worker].
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
		return r.giveBack(ctx, job)
	}
	after := failureDelay
	var retry *status.RetryError
	if errors.As(err, &retry) {
		after = max(0, retry.After)
	} else {
		r.log.Error("item cannot be worked on", "operation", a.Operation, "index", a.Index, "err", err)
	}
	// If the item was given back it has lost this ticket; it gets another one
	// when it is due. Otherwise this one is still good.
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
			if backoff.Sleep(r.ctx, after+time.Millisecond) == nil { // else another process will find it
				r.Ready([]status.Lane{l})
			}
		})
	}
	return nil
}

// asking returns a context for asking the database what has become of a ticket.
func (r *run) asking(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := issueTimeout
	if r.ctx.Err() != nil {
		limit = stopTimeout
	}
	return context.WithTimeout(context.WithoutCancel(ctx), limit)
}

// parallelDelay is the time before a ticket is issued again for an item that was not
// begun because its owner has a limit. Usually the end of another item has one
// issued before.
const parallelDelay = 200 * time.Millisecond

// giveBack takes the ticket from an item that may not be begun for now: it gets
// another one when an item of its owner has ended.
func (r *run) giveBack(ctx context.Context, job *river.Job[args]) error {
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
	// The end may have come before the ticket was given back.
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

// warnings returns a logger without what River tells of its daily life.
func warnings(log *slog.Logger) *slog.Logger { return slog.New(quiet{log.Handler()}) }

type quiet struct{ slog.Handler }

func (q quiet) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && q.Handler.Enabled(ctx, l)
}

// Handle gives errors of River, which writes them as text, the type by which logs tell
// that the database is away: River asks nothing else.
func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	typed := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	r.Attrs(func(a slog.Attr) bool {
		if (a.Key == "err" || a.Key == "error") && a.Value.Kind() == slog.KindString && away(a.Value.String()) {
			a.Value = slog.AnyValue(fmt.Errorf("%w: %s", status.ErrUnavailable, a.Value))
		}
		typed.AddAttrs(a)
		return true
	})
	return q.Handler.Handle(ctx, typed)
}

// away reports whether the text of an error says that the database cannot be reached.
func away(text string) bool {
	for _, part := range []string{"failed to connect", "SQLSTATE 08", "SQLSTATE 57P0", "SQLSTATE 53", "unexpected EOF", "connection re", "conn closed", "broken pipe", "deadline exceeded", "i/o timeout"} {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}

func (q quiet) WithAttrs(a []slog.Attr) slog.Handler { return quiet{q.Handler.WithAttrs(a)} }

func (q quiet) WithGroup(name string) slog.Handler { return quiet{q.Handler.WithGroup(name)} }
