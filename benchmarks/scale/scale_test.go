//go:build linux

// Package scale simulates a large cluster: 1,000 workers in several servers, and ten accounts of
// very different load. The stores, the dispatcher and PostgreSQL are real, the engines only sleep.
// It shows the limit in items per second, and how long the items of each account wait.
//
//	go test -count=1 -v ./benchmarks/scale -workers 1000 -time 60s
package scale

import (
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/filewright/filewright/httpapi/sqlstore"
	"github.com/filewright/filewright/internal/pgtest"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/status"
	"github.com/filewright/filewright/status/riverqueue"
)

var (
	workersFlag     = flag.Int("workers", 40, "simulated `workers` of all servers together")
	serversFlag     = flag.Int("servers", 4, "`servers`, each with connections of its own")
	connectionsFlag = flag.Int("connections", 10, "database `connections` of a server")
	ticketsFlag     = flag.Int("tickets", 0, "`tickets` of an account in the queue; 0: as in the server")
	workFlag        = flag.Duration("work", 20*time.Millisecond, "`time` that an engine sleeps for an item")
	timeFlag        = flag.Duration("time", time.Second, "`time` of the measurement, at most 100s")
	statementsFlag  = flag.Int("statements", 0, "`number` of statements to list, those with the most time first")
)

// maxTime keeps a run, with its warm-up and its end, below two minutes.
const maxTime = 100 * time.Second

const queue = "office"

// A load is an account. It always has open items: when an operation ends, it submits the next.
type load struct {
	name  string
	batch int // items of an operation
	open  int // open items
}

// loads returns ten accounts. The first floods the queue with several times the items that can run;
// the others together keep half of the workers busy.
func loads(workers int) []load {
	l := []load{{"flood", 50, 4 * workers}}
	for i, part := range []float64{0.25, 0.12, 0.06, 0.03, 0.015, 0.01, 0.005, 0.002, 0.001} {
		open := max(1, int(part*float64(workers)))
		l = append(l, load{fmt.Sprintf("account %d", i+2), min(5, open), open})
	}
	return l
}

// A start is what is known when an item starts.
type start struct {
	wait  time.Duration // since the operation was submitted
	ahead int64         // items of all accounts that started since the operation was submitted
}

// A figure is what an account got.
type figure struct {
	load
	starts []start
	ended  int
}

// A result is the result of a run.
type result struct {
	figures    []*figure
	took       time.Duration
	items      int // that ended in the time
	database   time.Duration
	service    time.Duration
	statements int64
	commits    int64 // also of transactions that only read
	peak       int   // connections
	list       []string
}

type options struct {
	workers, servers, connections, tickets int
	work, time                             time.Duration
	statements                             int
}

// run runs the simulation.
func run(ctx context.Context, o options) (*result, error) {
	server, err := pgtest.Start(pgtest.Options{Durable: true, Settings: []string{
		"shared_preload_libraries = 'pg_stat_statements'", "pg_stat_statements.track = all",
		fmt.Sprintf("max_connections = %d", o.servers*(o.connections*2+5)+20),
		"shared_buffers = 256MB", "max_wal_size = 4GB",
	}})
	if err != nil {
		return nil, err
	}
	defer server.Close()
	url, err := server.New()
	if err != nil {
		return nil, err
	}
	watch, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, err
	}
	defer watch.Close(context.WithoutCancel(ctx))
	if _, err := watch.Exec(ctx, `CREATE EXTENSION pg_stat_statements`); err != nil {
		return nil, err
	}
	s := &simulation{options: o, slots: make(map[string]chan struct{}), figures: make(map[string]*figure)}
	r := new(result)
	for _, l := range loads(o.workers) {
		f := &figure{load: l}
		r.figures = append(r.figures, f)
		s.figures[l.name], s.slots[l.name] = f, make(chan struct{}, l.open)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var trackers []*status.Tracker
	for range o.servers {
		db, err := sqlstore.Open(ctx, sqlstore.Options{URL: url, Connections: o.connections})
		if err != nil {
			return nil, err
		}
		defer db.Close()
		q, err := riverqueue.New(ctx, db, &riverqueue.Options{Tickets: o.tickets})
		if err != nil {
			return nil, err
		}
		t, err := status.New(status.Config{
			Store: db.Operations(), Dispatcher: q, Limits: map[string]int{queue: o.workers / o.servers},
			Handler: status.HandlerFunc(s.handle), OnFinal: s.final,
		})
		if err != nil {
			return nil, err
		}
		trackers = append(trackers, t)
	}

	errs := make(chan error, o.servers+len(r.figures)+1)
	running, stopWorkers := context.WithCancel(ctx)
	defer stopWorkers()
	var workers sync.WaitGroup
	for _, t := range trackers {
		workers.Go(func() { errs <- t.Run(running, time.Second) })
	}
	submitting, stopLoad := context.WithCancel(ctx)
	defer stopLoad()
	var submitters sync.WaitGroup
	for i, f := range r.figures {
		submitters.Go(func() { errs <- s.submit(submitting, trackers, i, f.load) })
	}
	sleep := func(d time.Duration) error {
		for end := time.Now().Add(d); time.Now().Before(end); {
			select {
			case err := <-errs:
				return fmt.Errorf("stopped early: %w", err)
			case <-time.After(min(250*time.Millisecond, time.Until(end))):
			}
			var n int
			if err := watch.QueryRow(ctx, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`).Scan(&n); err != nil {
				return err
			}
			r.peak = max(r.peak, n)
		}
		return nil
	}
	// Until all workers have something to do, and the first items, which all waited at the same time, are through.
	if err := sleep(o.time / 4); err != nil {
		return nil, err
	}
	for begun := time.Now(); s.started.Load() < int64(2*o.workers) && time.Since(begun) < maxTime/4; {
		if err := sleep(50 * time.Millisecond); err != nil {
			return nil, err
		}
	}
	before, err := usage(ctx, watch)
	if err != nil {
		return nil, err
	}
	from := time.Now()
	s.counting.Store(true)
	// On a busy machine, a short time has few items, and none of some accounts.
	for more := o.time; more > 0; more = s.missing(maxTime - time.Since(from)) {
		if err := sleep(more); err != nil {
			return nil, err
		}
	}
	s.counting.Store(false)
	r.took = time.Since(from)
	after, err := usage(ctx, watch)
	if err != nil {
		return nil, err
	}
	r.database, r.service = after.database-before.database, after.service-before.service
	r.statements, r.commits = after.statements-before.statements, after.commits-before.commits
	if r.list, err = statements(ctx, watch, o.statements); err != nil {
		return nil, err
	}
	stopLoad()
	submitters.Wait()
	stopWorkers()
	workers.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range r.figures {
		r.items += f.ended
	}
	close(errs)
	for err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return r, nil
}

// A simulation is what the accounts and the workers of a run share.
type simulation struct {
	options
	slots    map[string]chan struct{} // by account; full when it has enough open items
	counting atomic.Bool
	started  atomic.Int64

	mu      sync.Mutex
	figures map[string]*figure
}

// missing returns how long to wait for more items, at most left. 0: all accounts have some, and there
// are several for each worker.
func (s *simulation) missing(left time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := 0
	for _, f := range s.figures {
		all += len(f.starts)
		if len(f.starts) == 0 {
			return min(left, 250*time.Millisecond)
		}
	}
	if all < 5*s.workers {
		return min(left, 250*time.Millisecond)
	}
	return 0
}

// submit submits operations of an account, each to another server, until ctx is done.
func (s *simulation) submit(ctx context.Context, trackers []*status.Tracker, first int, l load) error {
	for i := first; ; i++ {
		for range l.batch {
			select {
			case s.slots[l.name] <- struct{}{}:
			case <-ctx.Done():
				return nil
			}
		}
		op := status.Operation{Owner: l.name, Action: "convert", Args: fmt.Appendf(nil, "%d %d", time.Now().UnixNano(), s.started.Load())}
		for n := range l.batch {
			op.Items = append(op.Items, status.Item{Queue: queue, Inputs: []status.File{{Key: fmt.Sprint("in", n), Name: "report.docx", Size: 12345}}})
		}
		if _, err := trackers[i%len(trackers)].Submit(ctx, op); err != nil && ctx.Err() == nil {
			return err
		}
	}
}

// handle is the engine.
func (s *simulation) handle(ctx context.Context, c *status.Claim, _ func(float64)) status.Outcome {
	started := s.started.Add(1)
	if at, count, ok := strings.Cut(string(c.Op.Args), " "); ok && s.counting.Load() {
		ns, err1 := strconv.ParseInt(at, 10, 64)
		seen, err2 := strconv.ParseInt(count, 10, 64)
		if err1 == nil && err2 == nil {
			s.mu.Lock()
			f := s.figures[c.Op.Owner]
			f.starts = append(f.starts, start{time.Since(time.Unix(0, ns)), started - 1 - seen})
			s.mu.Unlock()
		}
	}
	select {
	case <-time.After(s.work):
	case <-ctx.Done():
		return status.Outcome{Release: true}
	}
	if s.counting.Load() {
		s.mu.Lock()
		s.figures[c.Op.Owner].ended++
		s.mu.Unlock()
	}
	return status.Outcome{Results: []status.File{{Key: "out", Name: "report.pdf", Size: 54321}}}
}

// final lets the account of an operation submit the next.
func (s *simulation) final(_ context.Context, op *status.Operation) {
	for range op.Items {
		<-s.slots[op.Owner]
	}
}

// A use is what was used so far.
type use struct {
	database, service   time.Duration // processor time
	statements, commits int64
}

func usage(ctx context.Context, c *pgx.Conn) (u use, err error) {
	if err := c.QueryRow(ctx, `SELECT coalesce(sum(calls), 0)::bigint FROM pg_stat_statements WHERE toplevel`).Scan(&u.statements); err != nil {
		return u, err
	}
	if err := c.QueryRow(ctx, `SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()`).Scan(&u.commits); err != nil {
		return u, err
	}
	var dir string
	if err := c.QueryRow(ctx, `SHOW data_directory`).Scan(&dir); err != nil {
		return u, err
	}
	text, err := os.ReadFile(filepath.Join(dir, "postmaster.pid"))
	if err != nil {
		return u, err
	}
	line, _, _ := strings.Cut(string(text), "\n")
	postmaster, err := strconv.Atoi(line)
	if err != nil {
		return u, err
	}
	if u.database, err = processTime(postmaster); err != nil {
		return u, err
	}
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return u, err
	}
	u.service = time.Duration(r.Utime.Nano() + r.Stime.Nano())
	return u, nil
}

// processTime returns the processor time of a process and its children, also of those that have
// ended.
func processTime(pid int) (total time.Duration, err error) {
	const tick = time.Second / 100 // USER_HZ
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		// The name of the program, in parentheses, may contain anything.
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		own := filepath.Base(filepath.Dir(file)) == strconv.Itoa(pid)
		if !own && fields[1] != strconv.Itoa(pid) {
			continue
		}
		used := fields[11:13] // utime, stime
		if own {
			used = fields[11:15] // and those of children that have ended
		}
		for _, f := range used {
			n, err := strconv.ParseInt(f, 10, 64)
			if err != nil {
				return 0, err
			}
			total += time.Duration(n) * tick
		}
	}
	return total, nil
}

// statements returns the n statements that took the most time.
func statements(ctx context.Context, c *pgx.Conn, n int) (list []string, err error) {
	rows, err := c.Query(ctx, `SELECT calls, total_exec_time, regexp_replace(query, '\s+', ' ', 'g') FROM pg_stat_statements WHERE toplevel ORDER BY total_exec_time DESC LIMIT $1`, n)
	if err != nil {
		return nil, err
	}
	var calls int64
	var ms float64
	var query string
	_, err = pgx.ForEachRow(rows, []any{&calls, &ms, &query}, func() error {
		list = append(list, fmt.Sprintf("%8d calls %9.0f ms  %.150s", calls, ms, query))
		return nil
	})
	return list, err
}

// percentile returns the value below which p percent of the values are.
func percentile[T ~int64](values []T, p int) T {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[min(len(values)-1, len(values)*p/100)]
}

func (f *figure) waits() (w []time.Duration) {
	for _, s := range f.starts {
		w = append(w, s.wait)
	}
	return w
}

func (f *figure) ahead() (n []int64) {
	for _, s := range f.starts {
		n = append(n, s.ahead)
	}
	return n
}

// print writes a table for people.
func (r *result) print(w io.Writer, o options) error {
	per := func(n int64) float64 { return float64(n) / float64(max(1, r.items)) }
	fmt.Fprintf(w, "%d workers in %d servers, %v of work an item, %v\n", o.workers, o.servers, o.work, r.took.Round(time.Millisecond))
	fmt.Fprintf(w, "items per second        %.0f\n", float64(r.items)/r.took.Seconds())
	fmt.Fprintf(w, "workers that work       %.0f %%\n", 100*float64(r.items)*o.work.Seconds()/r.took.Seconds()/float64(o.workers))
	fmt.Fprintf(w, "database, processor     %.2f ms for each item\n", per(r.database.Microseconds())/1000)
	fmt.Fprintf(w, "service, processor      %.2f ms for each item\n", per(r.service.Microseconds())/1000)
	fmt.Fprintf(w, "processors in use       %.2f database, %.2f service\n", r.database.Seconds()/r.took.Seconds(), r.service.Seconds()/r.took.Seconds())
	fmt.Fprintf(w, "statements for an item  %.1f\n", per(r.statements))
	fmt.Fprintf(w, "transactions for one    %.1f\n", per(r.commits))
	fmt.Fprintf(w, "connections             %d\n\n", r.peak)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "account\topen\titems\tshare\twait p50\tp99\tstarts ahead p50\tp99\t")
	for _, f := range r.figures {
		waits, ahead := f.waits(), f.ahead()
		fmt.Fprintf(t, "%s\t%d\t%d\t%.1f %%\t%v\t%v\t%d\t%d\t\n", f.name, f.open, f.ended, 100*per(int64(f.ended)),
			percentile(waits, 50).Round(time.Millisecond), percentile(waits, 99).Round(time.Millisecond), percentile(ahead, 50), percentile(ahead, 99))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, line := range r.list {
		fmt.Fprintln(w, line)
	}
	return nil
}

// TestScale runs the simulation and logs the table. Small accounts must not wait for the backlog of
// the one that floods the queue: this is measured in items that start ahead of theirs, because time
// depends on the machine.
func TestScale(t *testing.T) {
	o := options{*workersFlag, *serversFlag, *connectionsFlag, *ticketsFlag, *workFlag, min(*timeFlag, maxTime), *statementsFlag}
	r, err := run(t.Context(), o)
	systest.NoError(t, err)
	var out strings.Builder
	systest.NoError(t, r.print(&out, o))
	t.Logf("\n%s", out.String())
	if r.items == 0 || r.statements == 0 || r.database == 0 || r.service == 0 || r.peak == 0 {
		t.Fatalf("something was not measured: %+v", r)
	}
	flood := percentile(r.figures[0].ahead(), 50)
	var small []int64
	for _, f := range r.figures[5:] {
		small = append(small, f.ahead()...)
	}
	if len(small) == 0 || flood == 0 {
		t.Fatalf("%d items of small accounts started; %d items started ahead of those of the flood", len(small), flood)
	}
	if p := percentile(small, 50); p > flood/2 {
		t.Errorf("%d items start ahead of an item of a small account, %d ahead of those of the account that floods the queue", p, flood)
	}
}

func TestLoads(t *testing.T) {
	t.Parallel()
	all := loads(1000)
	others, names := 0, make(map[string]bool)
	for i, l := range all {
		names[l.name] = true
		if l.batch > l.open {
			t.Errorf("%s never submits an operation of %d items with %d open", l.name, l.batch, l.open)
		}
		if i > 0 {
			others += l.open
		}
	}
	if len(names) != 10 || others < 450 || others > 550 {
		t.Errorf("accounts %v, of which all but one keep %d of 1,000 workers busy", slices.Sorted(maps.Keys(names)), others)
	}
}
