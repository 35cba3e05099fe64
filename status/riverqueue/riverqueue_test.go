package riverqueue_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/filewright/filewright/httpapi/account"
	"github.com/filewright/filewright/httpapi/sqlstore"
	"github.com/filewright/filewright/internal/pgtest"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/status"
	"github.com/filewright/filewright/status/riverqueue"
)

func TestMain(m *testing.M) { os.Exit(pgtest.MainWith(m, prepare)) }

// prepare creates the tables for all tests except that of New.
func prepare(url string) error {
	ctx := context.Background()
	db, err := sqlstore.Open(ctx, sqlstore.Options{URL: url})
	if err != nil {
		return err
	}
	_, err = riverqueue.New(ctx, db, nil)
	return errors.Join(err, db.Close())
}

// A node stands for a process that shares a database.
type node struct {
	*status.Tracker
	db    *sqlstore.DB
	queue *riverqueue.Queue

	mu   sync.Mutex
	done []string // "operation index" of items that ran
}

// handler is a node's handler.
type handler func(ctx context.Context, c *status.Claim) status.Outcome

// newNode returns a node that serves queues with the given limits; nil: no queues.
func newNode(t *testing.T, url string, limits map[string]int, h handler, change func(*status.Config, *riverqueue.Options)) *node {
	t.Helper()
	db, err := sqlstore.Open(t.Context(), sqlstore.Options{URL: url})
	systest.NoError(t, err)
	systest.AtEnd(t, db.Close)
	if limits == nil {
		limits = map[string]int{"": -1}
	}
	n := &node{db: db}
	log := slog.New(slog.NewTextHandler(testLog{t}, nil))
	cfg := status.Config{Store: db.Operations(), Limits: limits, Log: log}
	cfg.Handler = status.HandlerFunc(func(ctx context.Context, c *status.Claim, _ func(float64)) status.Outcome {
		n.mu.Lock()
		n.done = append(n.done, fmt.Sprint(c.Operation, " ", c.Index))
		n.mu.Unlock()
		if h == nil {
			return status.Outcome{}
		}
		return h(ctx, c)
	})
	o := riverqueue.Options{Log: log}
	if change != nil {
		change(&cfg, &o)
	}
	o.Lease = cmp.Or(o.Lease, cfg.Lease)
	if n.queue, err = riverqueue.New(t.Context(), db, &o); err != nil {
		t.Fatal(err)
	}
	cfg.Dispatcher = n.queue
	if n.Tracker, err = status.New(cfg); err != nil {
		t.Fatal(err)
	}
	return n
}

// testLog writes to the log of a test.
type testLog struct{ t *testing.T }

func (l testLog) Write(b []byte) (int, error) {
	l.t.Log(strings.TrimSuffix(string(b), "\n"))
	return len(b), nil
}

// run runs a node and returns a function that stops it. The end of the test also stops
// it.
func (n *node) run(t *testing.T, grace time.Duration) (stop func()) {
	return systest.Start(t, func(ctx context.Context) error { return n.Run(ctx, grace) })
}

// submit submits an operation and returns when its tickets are issued.
func (n *node) submit(t *testing.T, owner string, queues ...string) *status.Operation {
	t.Helper()
	op := status.Operation{Owner: owner, Action: "convert"}
	for _, q := range queues {
		op.Items = append(op.Items, status.Item{Queue: q})
	}
	got, err := n.Submit(t.Context(), op)
	systest.NoError(t, err)
	n.flush(t)
	return got
}

func (n *node) flush(t *testing.T) {
	t.Helper()
	systest.NoError(t, n.queue.Flush(t.Context()))
}

func (n *node) wait(t *testing.T, op *status.Operation) *status.Operation {
	t.Helper()
	got, err := n.Wait(t.Context(), op.Owner, op.ID)
	systest.NoError(t, err)
	if !got.State.Final() {
		t.Fatalf("operation is %s, want it final", got.State)
	}
	return got
}

// until waits until an operation satisfies ok.
func (n *node) until(t *testing.T, op *status.Operation, ok func(*status.Operation) bool) *status.Operation {
	t.Helper()
	for got, err := range n.Watch(t.Context(), op.Owner, op.ID) {
		systest.NoError(t, err)
		if ok(got) {
			return got
		}
	}
	t.Fatal("operation ended before")
	return nil
}

// count returns the result of a query for one number.
func (n *node) count(t *testing.T, text string) (v int) {
	t.Helper()
	systest.NoError(t, n.db.Pool().QueryRow(t.Context(), text).Scan(&v))
	return v
}

// noTickets waits until the queue is empty.
func (n *node) noTickets(t *testing.T) {
	t.Helper()
	systest.Until(t, "the queue is empty", func() bool { return n.count(t, `SELECT count(*) FROM river_job WHERE finalized_at IS NULL`) == 0 })
	if left := n.count(t, `SELECT count(*) FROM items WHERE ticket IS NOT NULL`); left > 0 {
		t.Errorf("%d items that are final have tickets", left)
	}
}

func running(op *status.Operation) bool { return op.Items[0].State == status.Running }

// obey runs until it is stopped.
func obey(ctx context.Context, _ *status.Claim) status.Outcome {
	<-ctx.Done()
	return status.Outcome{Error: &status.Error{Code: "stopped"}}
}

const lease = 3 * time.Second

func quick(cfg *status.Config, _ *riverqueue.Options) {
	cfg.Lease, cfg.Heartbeat = lease, 200*time.Millisecond
}

// untilRounds waits until each node has used the database often enough to renew its leases, and to
// look for waiting items and lapsed claims several times.
func untilRounds(t *testing.T, nodes ...*node) {
	t.Helper()
	for _, n := range nodes {
		used := func() int64 { return n.db.Pool().Stat().AcquireCount() }
		start := used()
		systest.Until(t, "rounds of a node", func() bool { return used() >= start+20 })
	}
}

// TestShare runs many items on several nodes, each item once.
func TestShare(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	api := newNode(t, url, nil, nil, nil)
	work := func(context.Context, *status.Claim) status.Outcome {
		time.Sleep(5 * time.Millisecond)
		return status.Outcome{Results: []status.File{{Key: "result"}}}
	}
	workers := []*node{
		newNode(t, url, map[string]int{"pdf": 2, "image": 1}, work, nil),
		newNode(t, url, map[string]int{"pdf": 2, "": -1}, work, nil),
	}
	api.run(t, 0)
	for _, w := range workers {
		w.run(t, 0)
	}
	var ops []*status.Operation
	want := make(map[string]int)
	for i := range 30 {
		op := api.submit(t, []string{"alice", "bob"}[i%2], "pdf", "image", "pdf", "pdf")
		ops = append(ops, op)
		for j := range op.Items {
			want[fmt.Sprint(op.ID, " ", j)] = 1
		}
	}
	for _, op := range ops {
		if got := api.wait(t, op); got.State != status.Completed {
			t.Errorf("operation is %+v", got)
		}
	}
	got := make(map[string]int)
	for i, w := range workers {
		w.mu.Lock()
		if len(w.done) == 0 {
			t.Errorf("worker %d has done nothing", i)
		}
		for _, item := range w.done {
			got[item]++
		}
		w.mu.Unlock()
	}
	if !maps.Equal(got, want) {
		t.Errorf("items were done as often as %v, want each once", got)
	}
	api.noTickets(t)
}

// TestTickets counts tickets: no more than an owner may have, none for items that were
// not stored, and one for every queued item within the limit.
func TestTickets(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	few := func(_ *status.Config, o *riverqueue.Options) { o.Tickets = 3 }
	api := newNode(t, url, nil, nil, few)
	const all = `SELECT count(*) FROM river_job`
	op := status.Operation{Owner: "alice", Items: []status.Item{{Queue: "pdf"}}, IdempotencyKey: "key"}
	for range 3 {
		if _, err := api.Submit(t.Context(), op); err != nil {
			t.Fatal(err)
		}
		api.flush(t)
	}
	if n := api.count(t, all); n != 1 {
		t.Errorf("%d tickets for an operation that was submitted three times, want 1", n)
	}
	backlog := api.submit(t, "alice", slices.Repeat([]string{"pdf"}, 150)...)
	if n := api.count(t, all); n != 3 {
		t.Errorf("%d tickets of an owner, want 3", n)
	}
	api.submit(t, "alice", "image", "image")
	other := api.submit(t, "bob", "pdf")
	if n := api.count(t, all); n != 6 {
		t.Errorf("%d tickets, want 6", n)
	}

	// An owner that comes later does not wait for the whole backlog.
	var mu sync.Mutex
	var order []string
	worker := newNode(t, url, map[string]int{"pdf": 1, "": -1}, func(_ context.Context, c *status.Claim) status.Outcome {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, c.Op.Owner)
		return status.Outcome{}
	}, few)
	worker.run(t, 0)
	api.run(t, 0)
	api.wait(t, other)
	mu.Lock()
	if i := slices.Index(order, "bob"); i > 3 {
		t.Errorf("bob's item was the one after %d of alice's, want 3 at most", i)
	}
	mu.Unlock()
	// Cancelling queued items makes room for later ones.
	last := api.submit(t, "alice", "pdf")
	if _, err := api.Cancel(t.Context(), "alice", backlog.ID); err != nil {
		t.Fatal(err)
	}
	api.wait(t, last)
	if n := api.count(t, `SELECT count(*) FROM items WHERE queue = 'image' AND ticket IS NOT NULL`); n != 2 {
		t.Errorf("%d items of a queue that nobody works on have tickets, want 2", n)
	}
}

// refusals counts claims that were refused because of a limit.
type refusals struct {
	status.Store
	n *atomic.Int64
}

func (s refusals) Claim(ctx context.Context, ref status.Ref, worker string, lease time.Duration) (*status.Claim, error) {
	c, err := s.Store.Claim(ctx, ref, worker, lease)
	if errors.Is(err, status.ErrParallel) {
		s.n.Add(1)
	}
	return c, err
}

func (n *node) limit(t *testing.T, owner string, parallel int) {
	t.Helper()
	systest.NoError(t, n.db.Accounts().Create(t.Context(), &account.Account{ID: owner, Limits: account.Limits{Parallel: parallel}}))
}

// TestParallelLimit submits many items of an account with a limit to two queues on two
// nodes. The limit holds, other accounts are not delayed, and items over the limit are
// not retried again and again.
func TestParallelLimit(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	api := newNode(t, url, nil, nil, nil)
	const items, limit = 120, 3
	api.limit(t, "alice", limit)
	var mu sync.Mutex
	running, most := make(map[string]int), make(map[string]int)
	var refused atomic.Int64
	many := make(chan struct{}) // closed when more of bob's items run than alice's may
	open := sync.OnceFunc(func() { close(many) })
	work := func(ctx context.Context, c *status.Claim) status.Outcome {
		mu.Lock()
		running[c.Op.Owner]++
		most[c.Op.Owner] = max(most[c.Op.Owner], running[c.Op.Owner])
		if running["bob"] > limit {
			open()
		}
		mu.Unlock()
		if c.Op.Owner == "bob" {
			select {
			case <-many:
			case <-ctx.Done():
			}
		}
		time.Sleep(10 * time.Millisecond)
		mu.Lock()
		running[c.Op.Owner]--
		mu.Unlock()
		return status.Outcome{}
	}
	api.run(t, 0)
	for range 2 {
		newNode(t, url, map[string]int{"pdf": 4, "image": 4, "": -1}, work, func(cfg *status.Config, _ *riverqueue.Options) {
			cfg.Store = refusals{cfg.Store, &refused}
		}).run(t, 0)
	}
	idle := api.submit(t, "alice", slices.Repeat([]string{"media"}, limit)...) // no node serves that queue
	alice := api.submit(t, "alice", slices.Repeat([]string{"pdf", "image"}, items/2)...)
	bob := api.submit(t, "bob", slices.Repeat([]string{"pdf", "image"}, 5)...)
	if n := api.count(t, `SELECT count(*) FROM items WHERE owner = 'alice' AND ticket IS NOT NULL`); n > 3*limit {
		t.Errorf("%d items of an account that may have %d run have tickets, want %d at most", n, limit, 3*limit)
	}
	if got := api.wait(t, bob); got.State != status.Completed {
		t.Errorf("operation is %+v", got)
	}
	if got, err := api.Get(t.Context(), "alice", alice.ID); err != nil || got.State.Final() {
		t.Errorf("the operation of the account with a limit ended before that of another; error %v", err)
	}
	if got := api.wait(t, alice); got.State != status.Completed {
		t.Errorf("operation is %+v", got)
	}
	if got, err := api.Get(t.Context(), "alice", idle.ID); err != nil || got.State != status.Queued {
		t.Errorf("operation on a queue that nobody works on is %+v, error %v", got, err)
	}
	mu.Lock()
	defer mu.Unlock()
	if most["alice"] > limit {
		t.Errorf("%d items of alice ran at once, want %d at most", most["alice"], limit)
	}
	if n := refused.Load(); n > 3*items {
		t.Errorf("%d claims were refused for %d items", n, items)
	}
	t.Logf("%d claims were refused for %d items", refused.Load(), items)
}

// TestTurns puts a backlog before the items of others: the owners are served in turn.
func TestTurns(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	api := newNode(t, url, nil, nil, nil)
	backlog := api.submit(t, "alice", slices.Repeat([]string{"pdf"}, 30)...)
	others := []*status.Operation{
		api.submit(t, "bob", slices.Repeat([]string{"pdf"}, 5)...),
		api.submit(t, "carol", slices.Repeat([]string{"pdf"}, 5)...),
	}
	var mu sync.Mutex
	var order []string
	var worker *node
	worker = newNode(t, url, map[string]int{"pdf": 1, "": -1}, func(ctx context.Context, c *status.Claim) status.Outcome {
		mu.Lock()
		order = append(order, c.Op.Owner)
		mu.Unlock()
		// An owner's next ticket is promoted some milliseconds after one of its items
		// has finished, when the following item has started.
		systest.Check(t, worker.queue.Flush(ctx))
		return status.Outcome{}
	}, nil)
	worker.run(t, 0)
	api.run(t, 0)
	for _, op := range append(others, backlog) {
		api.wait(t, op)
	}
	mu.Lock()
	defer mu.Unlock()
	if first := slices.Sorted(slices.Values(order[:3])); !slices.Equal(first, []string{"alice", "bob", "carol"}) {
		t.Errorf("the first items are of %v, want one of each", order[:3])
	}
	slices.Reverse(order)
	for _, owner := range []string{"bob", "carol"} {
		if n := len(order) - slices.Index(order, owner); n > 3*5 {
			t.Errorf("the last of five items of %s was number %d, want one of each in a turn", owner, n)
		}
	}
}

// TestDrawnWhileIssued issues tickets in a long transaction: the ticket that it
// promotes can be drawn in the meantime.
func TestDrawnWhileIssued(t *testing.T) {
	t.Parallel()
	n := newNode(t, pgtest.New(t), nil, nil, nil)
	n.submit(t, "alice", "pdf")
	for _, text := range []string{
		`UPDATE river_job SET priority = 4`,
		`CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NEW; END'`,
		`CREATE TRIGGER wait BEFORE INSERT ON river_job FOR EACH ROW EXECUTE FUNCTION wait()`,
	} {
		if _, err := n.db.Pool().Exec(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	tx, err := n.db.Pool().Begin(t.Context())
	systest.NoError(t, err)
	defer tx.Rollback(context.WithoutCancel(t.Context()))
	if _, err := tx.Exec(t.Context(), `SELECT pg_advisory_xact_lock(1)`); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Submit(t.Context(), status.Operation{Owner: "alice", Action: "convert", Items: []status.Item{{Queue: "pdf"}}}); err != nil {
		t.Fatal(err)
	}
	pgtest.UntilLocked(t, n.db.Pool(), "INSERT INTO%river_job")
	if free := n.count(t, `SELECT count(*) FROM (SELECT FROM river_job WHERE state = 'available' FOR UPDATE SKIP LOCKED) AS j`); free != 1 {
		t.Errorf("%d tickets can be drawn, want that of the first item", free)
	}
	systest.NoError(t, tx.Commit(t.Context()))
	n.flush(t)
	if first := n.count(t, `SELECT priority FROM river_job ORDER BY id LIMIT 1`); first != 1 {
		t.Errorf("the ticket of the first item has priority %d, want 1", first)
	}
}

// TestOverflow lets an owner occupy all slots of two nodes: another owner's items start
// beyond the limits, in at most one slot of each node.
func TestOverflow(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	const nodes, places = 2, 2
	soon := func(cfg *status.Config, o *riverqueue.Options) {
		o.Every, o.OverflowWait = 100*time.Millisecond, 300*time.Millisecond
	}
	api := newNode(t, url, nil, nil, soon)
	free := make(chan struct{})
	var mu sync.Mutex
	running, most := 0, 0
	work := func(ctx context.Context, c *status.Claim) status.Outcome {
		mu.Lock()
		running++
		most = max(most, running)
		mu.Unlock()
		select {
		case <-free:
		case <-ctx.Done():
		}
		mu.Lock()
		running--
		mu.Unlock()
		return status.Outcome{}
	}
	api.run(t, 0)
	var workers []*node
	for range nodes {
		workers = append(workers, newNode(t, url, map[string]int{"pdf": places, "": -1}, work, soon))
		workers[len(workers)-1].run(t, time.Minute)
	}
	alice := api.submit(t, "alice", slices.Repeat([]string{"pdf"}, 8)...)
	begun := func(n int) func(*status.Operation) bool {
		return func(op *status.Operation) bool {
			for _, it := range op.Items {
				if it.State == status.Running {
					n--
				}
			}
			return n <= 0
		}
	}
	api.until(t, alice, begun(nodes*places))
	all := []*status.Operation{alice}
	for _, owner := range []string{"bob", "carol"} {
		op := api.submit(t, owner, "pdf", "pdf")
		api.until(t, op, begun(1))
		all = append(all, op)
	}
	// All overflow slots are taken.
	all = append(all, api.submit(t, "dave", "pdf"))
	untilRounds(t, workers...)
	if op, err := api.Get(t.Context(), "dave", all[3].ID); err != nil || op.State != status.Queued {
		t.Errorf("operation is %+v, error %v, want it to wait", op, err)
	}
	close(free)
	for _, op := range all {
		if got := api.wait(t, op); got.State != status.Completed {
			t.Errorf("operation is %+v", got)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if most > nodes*(places+1) {
		t.Errorf("%d items ran at once, want %d at most", most, nodes*(places+1))
	}
	api.noTickets(t)
}

// TestQueues runs a node on queues that its limits do not name.
func TestQueues(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	api := newNode(t, url, nil, nil, nil)
	strange := api.submit(t, "alice", "Strange Name!", "")
	worker := newNode(t, url, map[string]int{"pdf": -1}, nil, func(_ *status.Config, o *riverqueue.Options) { o.Every = 50 * time.Millisecond })
	worker.run(t, 0)
	api.run(t, 0)
	left := api.submit(t, "alice", "pdf")
	api.wait(t, strange)
	if op, err := api.Get(t.Context(), "alice", left.ID); err != nil || op.State != status.Queued {
		t.Errorf("operation on a queue that is not worked on is %+v, error %v", op, err)
	}
}

// TestCancel cancels on one node an operation that another node runs, whose heartbeats
// are too rare to notice.
func TestCancel(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	rare := func(cfg *status.Config, _ *riverqueue.Options) { cfg.Lease, cfg.Heartbeat = 3*time.Hour, time.Hour }
	api := newNode(t, url, nil, nil, rare)
	worker := newNode(t, url, map[string]int{"pdf": 1}, obey, rare)
	api.run(t, 0)
	worker.run(t, time.Minute)
	op := api.submit(t, "alice", "pdf")
	api.until(t, op, running)
	if _, err := api.Cancel(t.Context(), "alice", op.ID); err != nil {
		t.Fatal(err)
	}
	if got := api.wait(t, op); got.Items[0].Error == nil || got.Items[0].Error.Code != status.CodeCancelled {
		t.Errorf("cancelled operation is %+v", got)
	}
}

// frozen is the store of a node that sends no heartbeats.
type frozen struct{ status.Store }

func (frozen) Heartbeat(context.Context, string, time.Duration, map[status.Ref]float64) ([]status.Ref, error) {
	return nil, nil
}

// TestRescue freezes a node with running items: another node runs them, and the
// outcomes of the first one are rejected when it resumes.
func TestRescue(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	wake := make(chan struct{})
	discarded := make(chan string, 10)
	late := newNode(t, url, map[string]int{"pdf": 2}, func(_ context.Context, c *status.Claim) status.Outcome {
		<-wake
		return status.Outcome{Results: []status.File{{Key: fmt.Sprint("late", c.Index)}}}
	}, func(cfg *status.Config, o *riverqueue.Options) {
		cfg.Store = frozen{cfg.Store}
		cfg.Lease, cfg.Heartbeat = 2*time.Second, time.Second
		o.Lease = time.Hour // frozen nodes rescue nothing
		cfg.Discard = func(_ context.Context, files []status.File) {
			for _, f := range files {
				discarded <- f.Key
			}
		}
	})
	late.run(t, time.Minute)
	op := late.submit(t, "alice", "pdf", "pdf", "pdf")
	late.until(t, op, func(op *status.Operation) bool { return running(op) && op.Items[1].State == status.Running })

	worker := newNode(t, url, map[string]int{"pdf": 2}, func(_ context.Context, c *status.Claim) status.Outcome {
		return status.Outcome{Results: []status.File{{Key: fmt.Sprint("good", c.Index)}}}
	}, quick)
	worker.run(t, 0)
	got := worker.wait(t, op)
	close(wake)
	for i, it := range got.Items {
		if want := fmt.Sprint("good", i); it.State != status.Completed || len(it.Results) != 1 || it.Results[0].Key != want {
			t.Errorf("item is %+v, want its result to be %s", it, want)
		}
		if want := min(1, 2-i); it.Attempt != 1 || it.Restarts != want {
			t.Errorf("item %d had %d attempts and %d restarts, want 1 and %d", i, it.Attempt, it.Restarts, want)
		}
	}
	dropped := []string{<-discarded, <-discarded}
	if slices.Sort(dropped); !slices.Equal(dropped, []string{"late0", "late1"}) {
		t.Errorf("dropped results are %q", dropped)
	}
	after, err := worker.db.Operations().Get(t.Context(), op.ID)
	if err != nil || after.Items[0].Results[0].Key != "good0" {
		t.Errorf("operation is %+v, error %v", after, err)
	}
	worker.noTickets(t)
}

// TestTakenAtTheEnd deletes the ticket of an item, as a rescue does, at the very moment
// when the item finishes. River 0.47 panicked then.
func TestTakenAtTheEnd(t *testing.T) {
	t.Parallel()
	end := make(chan struct{})
	n := newNode(t, pgtest.New(t), map[string]int{"pdf": 1}, func(context.Context, *status.Claim) status.Outcome {
		<-end
		return status.Outcome{}
	}, nil)
	n.run(t, 0)
	op := n.submit(t, "alice", "pdf")
	n.until(t, op, running)
	tx, err := n.db.Pool().Begin(t.Context())
	systest.NoError(t, err)
	defer tx.Rollback(context.WithoutCancel(t.Context()))
	if tag, err := tx.Exec(t.Context(), `UPDATE river_job SET state = 'discarded', finalized_at = now() WHERE state = 'running'`); err != nil || tag.RowsAffected() != 1 {
		t.Fatal(tag, err)
	}
	close(end)
	pgtest.UntilLocked(t, n.db.Pool(), "JobSetState")
	systest.NoError(t, tx.Commit(t.Context()))
	if got := n.wait(t, op); got.Items[0].State != status.Completed {
		t.Errorf("item is %+v", got.Items[0])
	}
	if got := n.wait(t, n.submit(t, "alice", "pdf")); got.Items[0].State != status.Completed {
		t.Errorf("the next item is %+v", got.Items[0])
	}
	n.noTickets(t)
}

// TestLostTickets removes tickets in every way that a crash might.
func TestLostTickets(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	api := newNode(t, url, nil, nil, nil)
	op := api.submit(t, "alice", slices.Repeat([]string{"pdf"}, 5)...)
	for _, text := range []string{
		`DELETE FROM river_job WHERE id = (SELECT ticket FROM items WHERE idx = 0)`,
		`UPDATE river_job SET state = 'completed', finalized_at = now() WHERE id = (SELECT ticket FROM items WHERE idx = 1)`,
		`UPDATE river_job SET state = 'running', attempted_at = now() - interval '1 hour', attempt = 1 WHERE id = (SELECT ticket FROM items WHERE idx = 2)`,
		`DELETE FROM river_job WHERE id = (SELECT ticket FROM items WHERE idx = 3)`,
		`UPDATE items SET ticket = NULL WHERE idx = 3`,
	} {
		if tag, err := api.db.Pool().Exec(t.Context(), text); err != nil || tag.RowsAffected() != 1 {
			t.Fatal(text, tag, err)
		}
	}
	worker := newNode(t, url, map[string]int{"pdf": 2}, nil, quick)
	worker.run(t, 0)
	got := worker.wait(t, op)
	for i, it := range got.Items {
		if it.State != status.Completed || it.Attempt != 1 {
			t.Errorf("item %d is %+v, want it to be done at the first attempt", i, it)
		}
	}
	worker.noTickets(t)
}

// TestRetry retries items, at once and later, on any node.
func TestRetry(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	again := func(_ context.Context, c *status.Claim) status.Outcome {
		if c.Item.Attempt < 3 {
			return status.Outcome{Retry: true, RetryAfter: time.Duration(c.Index) * 100 * time.Millisecond}
		}
		return status.Outcome{}
	}
	nodes := []*node{newNode(t, url, map[string]int{"pdf": 1}, again, nil), newNode(t, url, map[string]int{"pdf": 1}, again, nil)}
	for _, n := range nodes {
		n.run(t, 0)
	}
	op := nodes[0].submit(t, "alice", "pdf", "pdf", "pdf", "pdf")
	got := nodes[1].wait(t, op)
	for i, it := range got.Items {
		if it.State != status.Completed || it.Attempt != 3 {
			t.Errorf("item %d is %+v, want it to be done at the third attempt", i, it)
		}
	}
	nodes[0].noTickets(t)
}

// TestStop stops a node: its items continue on another node, and no attempt is lost.
func TestStop(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	first := newNode(t, url, map[string]int{"pdf": 2}, obey, nil)
	stop := first.run(t, 0)
	op := first.submit(t, "alice", "pdf", "pdf", "pdf")
	first.until(t, op, func(op *status.Operation) bool { return running(op) && op.Items[1].State == status.Running })
	stop()
	if got, err := first.Get(t.Context(), "alice", op.ID); err != nil || got.Items[0].State != status.Queued {
		t.Errorf("operation of a node that was stopped is %+v, error %v", got, err)
	}
	second := newNode(t, url, map[string]int{"pdf": 2}, nil, nil)
	second.run(t, 0)
	for i, it := range second.wait(t, op).Items {
		if it.State != status.Completed || it.Attempt != 1 {
			t.Errorf("item %d is %+v, want it to be done at the first attempt", i, it)
		}
	}
	second.noTickets(t)
}

// TestStopWithoutAnswer stops a node whose database no longer responds: it does not
// wait, and its items continue on another node.
func TestStopWithoutAnswer(t *testing.T) {
	t.Parallel()
	server := pgtest.Own(t)
	url := server.Database(t)
	systest.NoError(t, prepare(url))
	first := newNode(t, url, map[string]int{"pdf": 2}, obey, quick)
	stop := first.run(t, 0)
	op := first.submit(t, "alice", "pdf", "pdf", "pdf")
	first.until(t, op, func(op *status.Operation) bool { return running(op) && op.Items[1].State == status.Running })
	systest.NoError(t, server.Freeze())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		stop()
		systest.Check(t, first.db.Close())
	}()
	select {
	case <-stopped:
	case <-time.After(90 * time.Second): // a quarter of it is enough
		t.Error("the node waits for the database")
	}
	systest.NoError(t, server.Thaw())
	<-stopped
	second := newNode(t, url, map[string]int{"pdf": 2}, nil, quick)
	second.run(t, 0)
	for i, it := range second.wait(t, op).Items {
		if it.State != status.Completed || it.Attempt != 1 || it.Restarts > 1 {
			t.Errorf("item %d is %+v, want it to be done after one restart at most", i, it)
		}
	}
}

// TestOutage crashes and restarts the server while items run: all finish, and none is
// taken from the node that runs it.
func TestOutage(t *testing.T) {
	t.Parallel()
	server := pgtest.Own(t)
	url := server.Database(t)
	back := make(chan struct{})
	work := func(ctx context.Context, c *status.Claim) status.Outcome {
		select {
		case <-back:
		case <-ctx.Done():
		}
		return status.Outcome{}
	}
	var nodes []*node
	for range 2 {
		n := newNode(t, url, map[string]int{"pdf": 2}, work, quick)
		n.run(t, 0)
		nodes = append(nodes, n)
	}
	op := nodes[0].submit(t, "alice", slices.Repeat([]string{"pdf"}, 20)...)
	nodes[0].until(t, op, func(op *status.Operation) bool {
		n := 0
		for _, it := range op.Items {
			if it.State == status.Running {
				n++
			}
		}
		return n == 4
	})
	systest.NoError(t, server.Kill())
	down := time.Now()
	systest.Until(t, "all leases lapse", func() bool { return time.Since(down) > lease })
	systest.NoError(t, server.Up())
	untilRounds(t, nodes...)
	close(back)
	var got *status.Operation
	var err error
	for {
		if got, err = nodes[1].Wait(t.Context(), "alice", op.ID); err == nil {
			break
		}
		if t.Context().Err() != nil {
			t.Fatal(err)
		}
	}
	for i, it := range got.Items {
		if it.State != status.Completed || it.Attempt != 1 {
			t.Errorf("item %d is %+v, want it to be done at the first attempt", i, it)
		}
	}
}

func TestNew(t *testing.T) {
	t.Parallel()
	lite, err := sqlstore.Open(t.Context(), sqlstore.Options{Path: filepath.Join(t.TempDir(), "test.db")})
	systest.NoError(t, err)
	defer lite.Close()
	if _, err := riverqueue.New(t.Context(), lite, nil); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("error is %v, want one that matches errors.ErrUnsupported", err)
	}
	url := pgtest.Empty(t)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			db, err := sqlstore.Open(t.Context(), sqlstore.Options{URL: url})
			if err != nil {
				t.Error(err)
				return
			}
			defer db.Close()
			if _, err := riverqueue.New(t.Context(), db, nil); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	db, err := sqlstore.Open(t.Context(), sqlstore.Options{URL: url})
	systest.NoError(t, err)
	defer db.Close()
	for _, o := range []riverqueue.Options{{Tickets: -1}, {OverflowWait: -1}} {
		if _, err := riverqueue.New(t.Context(), db, &o); err == nil {
			t.Errorf("negative limits were accepted: %+v", o)
		}
	}
	if _, err := db.Pool().Exec(t.Context(), `INSERT INTO river_migration (line, version) VALUES ('main', 99)`); err != nil {
		t.Fatal(err)
	}
	if _, err := riverqueue.New(t.Context(), db, nil); !errors.Is(err, riverqueue.ErrNewer) {
		t.Errorf("error is %v, want one that matches ErrNewer", err)
	}
}
