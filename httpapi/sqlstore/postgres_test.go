package sqlstore_test

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/filewright/filewright/httpapi/sqlstore"
	"github.com/filewright/filewright/internal/pgtest"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/status"
	"github.com/filewright/filewright/status/statustest"
	"github.com/filewright/filewright/status/transfer"
	"github.com/filewright/filewright/status/transfer/transfertest"
	"github.com/filewright/filewright/upload"
	"github.com/filewright/filewright/upload/blob"
	"github.com/filewright/filewright/upload/blob/fsblob"
	"github.com/filewright/filewright/upload/uploadtest"
)

// openPostgres opens a new PostgreSQL database.
func openPostgres(t testing.TB) *sqlstore.DB {
	t.Helper()
	return openURL(t, pgtest.New(t))
}

func openURL(t testing.TB, url string) *sqlstore.DB {
	t.Helper()
	db, err := sqlstore.Open(t.Context(), sqlstore.Options{URL: url})
	systest.NoError(t, err)
	systest.AtEnd(t, db.Close)
	return db
}

func TestPostgresOperations(t *testing.T) {
	t.Parallel()
	statustest.Run(t, func(t *testing.T) status.Store { return openPostgres(t).Operations() })
}

func TestPostgresParallel(t *testing.T) {
	t.Parallel()
	statustest.RunParallel(t, func(t *testing.T) (status.Store, func(string, int)) {
		db := openPostgres(t)
		return db.Operations(), limiter(t, db)
	})
}

func TestPostgresFiles(t *testing.T) {
	t.Parallel()
	uploadtest.Run(t, func(t *testing.T) upload.Store { return openPostgres(t).Files() })
}

func TestPostgresTransfers(t *testing.T) {
	t.Parallel()
	transfertest.Run(t, func(t *testing.T) transfer.Store { return openPostgres(t).Transfers() })
}

func TestPostgresKeys(t *testing.T) {
	t.Parallel()
	testKeys(t, openPostgres(t))
}

func TestPostgresSettings(t *testing.T) {
	t.Parallel()
	testSettings(t, openPostgres(t))
}

// TestPostgresTogether opens an empty database several times at once: one of them
// creates the tables.
func TestPostgresTogether(t *testing.T) {
	t.Parallel()
	url := pgtest.Empty(t)
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			db, err := sqlstore.Open(t.Context(), sqlstore.Options{URL: url, Connections: 2})
			if err != nil {
				t.Error(err)
				return
			}
			systest.Check(t, db.Ping(t.Context()))
			systest.Check(t, db.Close())
		})
	}
	wg.Wait()
}

func TestPostgresOpen(t *testing.T) {
	t.Parallel()
	db := openPostgres(t)
	url := db.Pool().Config().ConnString()
	if _, err := db.Pool().Exec(t.Context(), `INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, true)`); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlstore.Open(t.Context(), sqlstore.Options{URL: url}); !errors.Is(err, sqlstore.ErrNewer) {
		t.Errorf("error is %v, want one that matches ErrNewer", err)
	}
	for name, o := range map[string]sqlstore.Options{
		"both":         {URL: url, Path: "x"},
		"no URL":       {URL: "postgres://:x"},
		"nobody there": {URL: "postgres://x@127.0.0.1:1/x"},
	} {
		if _, err := sqlstore.Open(t.Context(), o); err == nil {
			t.Errorf("%s: was opened", name)
		}
	}
	if err := db.Backup(t.Context(), "x"); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("backup: error is %v, want one that matches errors.ErrUnsupported", err)
	}
	lite := open(t)
	if err := lite.OnReady(nil); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("tickets in SQLite: error is %v, want one that matches errors.ErrUnsupported", err)
	}
	if lite.Pool() != nil {
		t.Error("SQLite has connections to PostgreSQL")
	}
	called := false
	if err := lite.Migrate(t.Context(), func(context.Context) error { called = true; return nil }); err != nil || !called {
		t.Errorf("migrating SQLite: called %v, error %v", called, err)
	}
}

// TestVacuum checks that tables whose rows change often are vacuumed before they have
// many dead rows.
func TestVacuum(t *testing.T) {
	t.Parallel()
	db := openPostgres(t)
	for _, table := range []string{"operations", "items", "webhook_deliveries"} {
		var options []string
		systest.NoError(t, db.Pool().QueryRow(t.Context(), `SELECT reloptions FROM pg_class WHERE oid = $1::regclass`, table).Scan(&options))
		for _, o := range []string{"autovacuum_vacuum_scale_factor=0.02", "autovacuum_vacuum_cost_limit=2000"} {
			if !slices.Contains(options, o) {
				t.Errorf("%s has %q, want %s among them", table, options, o)
			}
		}
	}
}

// TestPostgresText queries with strings that PostgreSQL rejects.
func TestPostgresText(t *testing.T) {
	t.Parallel()
	db := openPostgres(t)
	for _, id := range []string{"\x00", "a\x00b", "\xff"} {
		if _, err := db.Operations().Get(t.Context(), id); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("operation %q: error is %v, want one that matches fs.ErrNotExist", id, err)
		}
		if _, err := db.Files().Get(t.Context(), id); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("file %q: error is %v, want one that matches fs.ErrNotExist", id, err)
		}
	}
	op := &status.Operation{ID: "op", Owner: "alice", IdempotencyKey: "\xff", Created: time.Now(), Items: []status.Item{{Queue: "pdf"}}}
	for range 2 {
		if got, err := db.Operations().Create(t.Context(), op); err != nil || got.ID != "op" {
			t.Errorf("operation under a strange key is %+v, error %v", got, err)
		}
		op = op.Clone()
		op.ID = "other"
	}
}

// TestChanges notifies one process of the changes of another.
func TestChanges(t *testing.T) {
	t.Parallel()
	a := openPostgres(t)
	b := openURL(t, a.Pool().Config().ConnString())
	changes, own := make(chan []status.Change, 100), make(chan []status.Change, 100)
	for db, c := range map[*sqlstore.DB]chan []status.Change{a: own, b: changes} {
		go db.Operations().Changes(t.Context(), func(all []status.Change) { c <- all })
		if first := <-c; first != nil {
			t.Fatalf("first call tells of %v, want none", first)
		}
	}
	op, err := a.Operations().Create(t.Context(), &status.Operation{ID: "op", Owner: "alice", Created: time.Now(), Items: []status.Item{{Queue: "pdf"}}})
	systest.NoError(t, err)
	claim, err := a.Operations().Claim(t.Context(), status.Ref{Operation: op.ID}, "w", time.Hour)
	systest.NoError(t, err)
	if got, want := <-changes, []status.Change{{ID: "op"}}; !slices.Equal(got, want) {
		t.Errorf("told of %v, want %v", got, want)
	}
	if _, err := a.Operations().Cancel(t.Context(), "alice", "op"); err != nil {
		t.Fatal(err)
	}
	if got, want := <-changes, []status.Change{{ID: "op", Cancelled: true}}; !slices.Equal(got, want) {
		t.Errorf("told of %v, want %v", got, want)
	}
	if _, err := a.Operations().Finish(t.Context(), claim, status.Outcome{}); err != nil {
		t.Fatal(err)
	}
	if got, want := <-changes, []status.Change{{ID: "op"}}; !slices.Equal(got, want) {
		t.Errorf("told of %v, want %v", got, want)
	}
	// When all connections were broken, changes may have been missed.
	if _, err := a.Pool().Exec(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid()`); err != nil {
		t.Fatal(err)
	}
	if got := <-changes; got != nil {
		t.Errorf("told of %v, want to be told that some are missed", got)
	}
	if got := <-own; got != nil {
		t.Errorf("a process was told of what it did itself: %v", got)
	}
}

// TestOutage crashes the server while claims are held and operations stored.
func TestOutage(t *testing.T) {
	t.Parallel()
	server := pgtest.Own(t)
	db := openURL(t, server.Database(t))
	s := db.Operations()
	create := func(id string) error {
		_, err := s.Create(t.Context(), &status.Operation{ID: id, Owner: "alice", Created: time.Now(), Items: []status.Item{{Queue: "pdf"}, {Queue: "pdf"}}})
		return err
	}
	systest.NoError(t, create("op"))
	// The first claim is renewed after the outage; the second lapses after it.
	const lease = 2 * time.Second
	var claims []*status.Claim
	for i := range 2 {
		c, err := s.Claim(t.Context(), status.Ref{Operation: "op", Index: i}, fmt.Sprint("w", i), lease)
		systest.NoError(t, err)
		claims = append(claims, c)
	}
	systest.NoError(t, server.Kill())
	if err := create("lost"); !errors.Is(err, status.ErrUnavailable) {
		t.Fatalf("error is %v while the server is down, want one that matches status.ErrUnavailable", err)
	}
	if _, err := s.Heartbeat(t.Context(), "w0", lease, map[status.Ref]float64{claims[0].Ref: 0.5}); err == nil {
		t.Fatal("a claim was renewed while the server was down")
	}
	systest.NoError(t, server.Up())
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if err := create(fmt.Sprint("op", i)); err != nil {
				t.Errorf("after the outage: %v", err)
			}
		})
	}
	wg.Wait()
	if stop, err := s.Heartbeat(t.Context(), "w0", lease, map[status.Ref]float64{claims[0].Ref: 0.5}); err != nil || len(stop) > 0 {
		t.Errorf("a claim that could not be renewed is lost: %v, error %v", stop, err)
	}
	for _, c := range claims {
		if _, err := s.Finish(t.Context(), c, status.Outcome{}); err != nil {
			t.Errorf("item %d: %v", c.Index, err)
		}
	}
	if op, err := s.Get(t.Context(), "op"); err != nil || op.State != status.Completed {
		t.Errorf("operation is %+v, error %v", op, err)
	}
	if _, err := s.Get(t.Context(), "lost"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error is %v, want one that matches fs.ErrNotExist", err)
	}
}

// TestRestart restarts the server, cleanly and after a crash, during reads and writes:
// every error matches status.ErrUnavailable, so that clients retry.
func TestRestart(t *testing.T) {
	t.Parallel()
	server := pgtest.Own(t)
	db := openURL(t, server.Database(t))
	s := db.Operations()
	op := func(id string) *status.Operation {
		return &status.Operation{ID: id, Owner: "alice", Created: time.Now(), Items: []status.Item{{Queue: "pdf"}}}
	}
	if _, err := s.Create(t.Context(), op("op")); err != nil {
		t.Fatal(err)
	}
	var rounds, failures atomic.Int32
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for name, call := range map[string]func(ctx context.Context) error{
		"create": func(ctx context.Context) error {
			_, err := s.Create(ctx, op(fmt.Sprint("op", rounds.Add(1))))
			return err
		},
		"get": func(ctx context.Context) error { _, err := s.Get(ctx, "op"); return err },
		"list": func(ctx context.Context) error {
			for _, err := range s.List(ctx, status.Query{Owner: "alice", Limit: 50}) {
				if err != nil {
					return err
				}
			}
			return nil
		},
		"grants":   func(ctx context.Context) error { _, err := db.Keys().Grants(ctx, [32]byte{1}); return err },
		"accounts": func(ctx context.Context) error { _, err := db.Accounts().List(ctx); return err },
		"file": func(ctx context.Context) error {
			if _, err := db.Files().Get(ctx, "file"); !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			return nil
		},
		"lock": func(ctx context.Context) error {
			unlock, err := db.Lock(ctx, "name")
			if err == nil {
				unlock()
			}
			return err
		},
		"ping": func(ctx context.Context) error { return db.Ping(ctx) },
	} {
		for range 2 {
			wg.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					if err := call(t.Context()); err != nil {
						failures.Add(1)
						if !errors.Is(err, status.ErrUnavailable) {
							t.Errorf("%s: error is %v, want one that matches status.ErrUnavailable", name, err)
						}
					}
				}
			})
		}
	}
	for i, end := range []func() error{server.Down, server.Kill, server.Down} {
		n := rounds.Load() + 20
		systest.Until(t, "more rounds", func() bool { return rounds.Load() >= n })
		systest.Check(t, end())
		if i == 1 {
			// unreachable for longer than transactions are retried
			systest.Until(t, "a failure", func() bool { return failures.Load() > 0 })
		}
		systest.NoError(t, server.Up())
	}
	close(stop)
	wg.Wait()
}

// TestCache reads finished operations again and again: every caller gets its own copy.
func TestCache(t *testing.T) {
	t.Parallel()
	for name, db := range map[string]*sqlstore.DB{"SQLite": open(t), "PostgreSQL": openPostgres(t)} {
		s := db.Operations()
		if _, err := s.Create(t.Context(), &status.Operation{ID: "op", Owner: "alice", Created: time.Now(), Items: []status.Item{{Queue: "pdf"}}}); err != nil {
			t.Fatal(err)
		}
		c, err := s.Claim(t.Context(), status.Ref{Operation: "op"}, "w", time.Hour)
		systest.NoError(t, err)
		if _, err := s.Finish(t.Context(), c, status.Outcome{Results: []status.File{{Key: "result"}}}); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			op, err := s.Get(t.Context(), "op")
			if err != nil || op.State != status.Completed || op.Items[0].Results[0].Key != "result" {
				t.Fatalf("%s: operation is %+v, error %v", name, op, err)
			}
			op.State, op.Items[0].Results[0].Key = status.Failed, "changed"
		}
		if n, err := s.DeleteFinished(t.Context(), time.Now().Add(time.Hour)); err != nil || n != 1 {
			t.Fatalf("%s: deleted %d, error %v", name, n, err)
		}
		if op, err := s.Get(t.Context(), "op"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: deleted operation is %+v, error %v", name, op, err)
		}
	}
}

func TestNodes(t *testing.T) {
	t.Parallel()
	a := openPostgres(t)
	b := openURL(t, a.Pool().Config().ConnString())
	for _, info := range []string{"old", "new"} {
		systest.NoError(t, a.Announce(t.Context(), "a", []byte(info)))
	}
	systest.NoError(t, b.Announce(t.Context(), "b", nil))
	nodes, err := b.Nodes(t.Context(), time.Hour)
	if err != nil || len(nodes) != 2 || nodes[0].ID != "a" || string(nodes[0].Info) != "new" || nodes[1].ID != "b" || nodes[0].Seen.IsZero() {
		t.Errorf("nodes are %+v, error %v", nodes, err)
	}
	age := func(id string, by time.Duration) {
		t.Helper()
		if _, err := a.Pool().Exec(t.Context(), `UPDATE nodes SET beat_ms = beat_ms - $1 WHERE id = $2`, by.Milliseconds(), id); err != nil {
			t.Fatal(err)
		}
	}
	age("a", time.Minute)
	if nodes, err := b.Nodes(t.Context(), 10*time.Second); err != nil || len(nodes) != 1 || nodes[0].ID != "b" {
		t.Errorf("nodes of the last 10 s are %+v, error %v, want only b", nodes, err)
	}
	// No node is up for two days.
	age("a", 48*time.Hour)
	age("b", 48*time.Hour)
	if nodes, err := b.Nodes(t.Context(), 2*time.Minute); err != nil || len(nodes) != 2 {
		t.Errorf("the nodes that were up last are %+v, error %v, want a and b", nodes, err)
	}
	systest.NoError(t, b.Announce(t.Context(), "b", nil))
	if nodes, err := b.Nodes(t.Context(), 24*time.Hour); err != nil || len(nodes) != 1 {
		t.Errorf("nodes are %+v, error %v, want only b", nodes, err)
	}
	lite := open(t)
	_, err1 := lite.Nodes(t.Context(), time.Hour)
	_, err2 := lite.Lock(t.Context(), "name")
	for _, err := range []error{err1, err2, lite.Announce(t.Context(), "a", nil)} {
		if !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("SQLite: error is %v, want one that matches errors.ErrUnsupported", err)
		}
	}
}

// TestLock makes goroutines of two databases compete for the same lock.
func TestLock(t *testing.T) {
	t.Parallel()
	a := openPostgres(t)
	url := a.Pool().Config().ConnString()
	b := openURL(t, url)
	var holders, sum atomic.Int32
	var wg sync.WaitGroup
	for i := range 8 {
		db := []*sqlstore.DB{a, b}[i%2]
		wg.Go(func() {
			for range 5 {
				unlock, err := db.Lock(t.Context(), "name")
				if err != nil {
					t.Error(err)
					return
				}
				if n := holders.Add(1); n != 1 {
					t.Errorf("%d hold the lock", n)
				}
				sum.Add(1)
				holders.Add(-1)
				unlock()
			}
		})
	}
	wg.Wait()
	if n := sum.Load(); n != 40 {
		t.Errorf("the lock was held %d times, want 40", n)
	}
	unlock, err := a.Lock(t.Context(), "name")
	systest.NoError(t, err)
	defer unlock()
	other, err := b.Lock(t.Context(), "other")
	if err != nil {
		t.Fatal("another lock is held: ", err)
	}
	other()
	for name, db := range map[string]*sqlstore.DB{"the same": a, "another": b} {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if _, err := db.Lock(ctx, "name"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s process: error is %v, want one that matches context.DeadlineExceeded", name, err)
		}
		cancel()
	}

	// The end of a process releases its locks.
	dead, err := sqlstore.Open(t.Context(), sqlstore.Options{URL: url})
	systest.NoError(t, err)
	if _, err := dead.Lock(t.Context(), "of the dead"); err != nil {
		t.Fatal(err)
	}
	dead.Close()
	free, err := b.Lock(t.Context(), "of the dead")
	systest.NoError(t, err)
	free()
}

// TestUploads sends the parts of one file to two processes, and different bodies for
// the same part at the same time: the records match the stored content.
func TestUploads(t *testing.T) {
	t.Parallel()
	a := openPostgres(t)
	b := openURL(t, a.Pool().Config().ConnString())
	dir := t.TempDir()
	var managers []*upload.Manager
	for _, db := range []*sqlstore.DB{a, b} {
		blobs, err := fsblob.New(dir)
		systest.NoError(t, err)
		t.Cleanup(func() { blobs.Close() })
		m, err := upload.NewManager(blobs, &upload.Options{Store: db.Files(), Locker: db, Secrets: [][]byte{make([]byte, 32)}})
		systest.NoError(t, err)
		managers = append(managers, m)
	}
	const parts, size = 4, 1 << 20
	f, urls, err := managers[0].Start(t.Context(), upload.Request{Owner: "alice", Name: "a.bin", Size: parts * size, Parts: parts})
	systest.NoError(t, err)
	var wg sync.WaitGroup
	for i := range 2 * parts {
		wg.Go(func() {
			body := bytes.Repeat([]byte{byte('a' + i)}, size)
			if _, err := managers[i%2].PutPart(t.Context(), http.MethodPut, urls[i/2], bytes.NewReader(body), upload.PutOptions{Size: size}); err != nil {
				t.Errorf("body %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	_, stored, err := b.Files().Parts(t.Context(), f.Key)
	systest.NoError(t, err)
	var list []blob.Part
	for _, p := range stored {
		list = append(list, blob.Part{Number: p.Number, ETag: p.ETag})
	}
	var done atomic.Int32
	for i := range 4 {
		wg.Go(func() {
			_, again, err := managers[i%2].Complete(t.Context(), "alice", f.Key, "", "", list)
			systest.Check(t, err)
			if !again {
				done.Add(1)
			}
		})
	}
	wg.Wait()
	if n := done.Load(); n != 1 {
		t.Errorf("the upload was completed %d times, want once", n)
	}
	_, o, err := managers[1].Open(t.Context(), "alice", f.Key)
	systest.NoError(t, err)
	defer o.Close()
	for i, p := range stored {
		body := make([]byte, size)
		if _, err := o.ReadAt(body, int64(i)*size); err != nil {
			t.Fatal(err)
		}
		if sum := md5.Sum(body); hex.EncodeToString(sum[:]) != p.ETag {
			t.Errorf("part %d is not what its record says", p.Number)
		}
	}
}
