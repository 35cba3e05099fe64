package worker_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/logtest"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/status"
	"github.com/filewright/filewright/status/worker"
	"github.com/filewright/filewright/upload"
	"github.com/filewright/filewright/upload/blob"
	"github.com/filewright/filewright/upload/blob/memblob"
)

// An outage makes stores unavailable from one time to another.
type outage struct {
	from, to time.Time
	err      error
}

func (o *outage) now() error {
	if now := time.Now(); now.Before(o.from) || !now.Before(o.to) {
		return nil
	}
	return fmt.Errorf("no answer: %w", o.err)
}

// during calls f unless there is an outage.
func during[T any](o *outage, f func() (T, error)) (T, error) {
	if err := o.now(); err != nil {
		var zero T
		return zero, err
	}
	return f()
}

// listed yields the elements of a list until there is an outage.
func listed[T any](o *outage, list iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for x, err := range list {
			if away := o.now(); away != nil {
				x, err = *new(T), away
			}
			if !yield(x, err) || err != nil {
				return
			}
		}
		if err := o.now(); err != nil {
			yield(*new(T), err)
		}
	}
}

type blobsAway struct {
	s *memblob.Store
	o *outage
}

func (b blobsAway) Put(ctx context.Context, key string, r io.Reader, size int64) error {
	_, err := during(b.o, func() (any, error) { return nil, b.s.Put(ctx, key, r, size) })
	return err
}
func (b blobsAway) Open(ctx context.Context, key string) (blob.Object, error) {
	return during(b.o, func() (blob.Object, error) { return b.s.Open(ctx, key) })
}
func (b blobsAway) Delete(ctx context.Context, key string) error {
	_, err := during(b.o, func() (any, error) { return nil, b.s.Delete(ctx, key) })
	return err
}
func (b blobsAway) List(ctx context.Context, prefix string) iter.Seq2[blob.Info, error] {
	return listed(b.o, b.s.List(ctx, prefix))
}

// filesAway has the methods that running items, uploads and sweeps use.
type filesAway struct {
	upload.Store
	o *outage
}

func (s filesAway) Create(ctx context.Context, f *upload.File) (*upload.File, error) {
	return during(s.o, func() (*upload.File, error) { return s.Store.Create(ctx, f) })
}
func (s filesAway) Get(ctx context.Context, key string) (*upload.File, error) {
	return during(s.o, func() (*upload.File, error) { return s.Store.Get(ctx, key) })
}
func (s filesAway) GetAll(ctx context.Context, keys []string) (map[string]*upload.File, error) {
	return during(s.o, func() (map[string]*upload.File, error) { return s.Store.GetAll(ctx, keys) })
}
func (s filesAway) Update(ctx context.Context, key string, fn func(*upload.File) error) (*upload.File, error) {
	return during(s.o, func() (*upload.File, error) { return s.Store.Update(ctx, key, fn) })
}
func (s filesAway) Delete(ctx context.Context, key string) error {
	_, err := during(s.o, func() (any, error) { return nil, s.Store.Delete(ctx, key) })
	return err
}
func (s filesAway) ExpiredBefore(ctx context.Context, t time.Time) iter.Seq2[*upload.File, error] {
	return listed(s.o, s.Store.ExpiredBefore(ctx, t))
}
func (s filesAway) OpenSessions(ctx context.Context) iter.Seq2[*upload.File, error] {
	return listed(s.o, s.Store.OpenSessions(ctx))
}
func (s filesAway) Identity(ctx context.Context) (string, error) {
	return during(s.o, func() (string, error) { return s.Store.Identity(ctx) })
}

type operationsAway struct {
	status.Store
	o *outage
}

func (s operationsAway) Create(ctx context.Context, op *status.Operation) (*status.Operation, error) {
	return during(s.o, func() (*status.Operation, error) { return s.Store.Create(ctx, op) })
}
func (s operationsAway) Get(ctx context.Context, id string) (*status.Operation, error) {
	return during(s.o, func() (*status.Operation, error) { return s.Store.Get(ctx, id) })
}
func (s operationsAway) Claim(ctx context.Context, ref status.Ref, worker string, lease time.Duration) (*status.Claim, error) {
	return during(s.o, func() (*status.Claim, error) { return s.Store.Claim(ctx, ref, worker, lease) })
}
func (s operationsAway) Heartbeat(ctx context.Context, worker string, lease time.Duration, progress map[status.Ref]float64) ([]status.Ref, error) {
	return during(s.o, func() ([]status.Ref, error) { return s.Store.Heartbeat(ctx, worker, lease, progress) })
}
func (s operationsAway) Finish(ctx context.Context, c *status.Claim, out status.Outcome) (*status.Operation, error) {
	return during(s.o, func() (*status.Operation, error) { return s.Store.Finish(ctx, c, out) })
}
func (s operationsAway) Pending(ctx context.Context, q status.PendingQuery) iter.Seq2[status.PendingItem, error] {
	return listed(s.o, s.Store.Pending(ctx, q))
}
func (s operationsAway) Load(ctx context.Context) ([]status.Load, error) {
	return during(s.o, func() ([]status.Load, error) { return s.Store.Load(ctx) })
}
func (s operationsAway) DeleteFinished(ctx context.Context, t time.Time) (int, error) {
	return during(s.o, func() (int, error) { return s.Store.DeleteFinished(ctx, t) })
}

// An outage of ten minutes, of the bucket, the database or both, costs no attempt and no
// result: whatever was queued, running or finishing completes soon after it, once.
func TestLongOutage(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ bucket, database bool }{
		"bucket": {true, false}, "database": {false, true}, "both": {true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				bucket, database := &outage{err: blob.ErrUnavailable}, &outage{err: status.ErrUnavailable}
				from, to := start.Add(5*time.Second), start.Add(10*time.Minute+5*time.Second)
				if tt.bucket {
					bucket.from, bucket.to = from, to
				}
				if tt.database {
					database.from, database.to = from, to
				}
				spec := fileops.Spec{Name: "shout", Engine: "go", Family: "text", Summary: "Works for a while.",
					Accepts: []fileops.Accept{{Formats: []format.Format{format.TXT}, Params: fileops.Schema{{Name: "time", Doc: "How long."}}}}}
				reg, err := fileops.NewRegistry(fileops.Func(spec, func(_ context.Context, job *fileops.Job) error {
					d, err := time.ParseDuration(job.Params.Get("time"))
					time.Sleep(d)
					return errors.Join(err, job.WriteBytes("result.txt", []byte("done")))
				}))
				systest.NoError(t, err)
				blobs, operations := memblob.New(), status.NewMemStore()
				w, err := worker.New(worker.Config{
					Actions: reg, Blobs: blobsAway{blobs, bucket}, TempDir: t.TempDir(), Log: slog.New(slog.DiscardHandler),
					Uploads:    upload.Options{Store: filesAway{new(upload.MemStore), database}},
					Operations: status.Config{Store: operationsAway{operations, database}, Exclusive: true, MaxAttempts: 1, Limits: map[string]int{"": 4}},
				})
				systest.NoError(t, err)
				ctx := t.Context()
				stop := systest.Start(t, w.Run)
				defer stop()
				// The first four are running when the outage starts; the last of
				// them finishes after it.
				const n = 10
				for i := range n {
					d := []string{"7s", "1m", "9m", "11m"}[i%4]
					systest.NoError(t, submit(ctx, w, w, fmt.Sprint(i), "hello", map[string]any{"time": d}))
				}
				time.Sleep(time.Until(to) - time.Second)
				synctest.Wait()
				waiting := 0
				for i := range n {
					op, err := operations.Get(ctx, fmt.Sprint(i))
					systest.NoError(t, err)
					if op.State.Final() {
						t.Errorf("operation %d is final in the outage: %+v", i, op.Items[0])
					}
					if wait := op.Items[0].Waiting; wait != nil && wait.Reason == status.WaitStorage {
						waiting++
					}
				}
				if tt.bucket && !tt.database && waiting < n-2 { // without one that works, and one that tries again
					t.Errorf("%d items say that they wait for the storage", waiting)
				}
				time.Sleep(2 * time.Second)
				for i := range n {
					op, err := final(ctx, w, fmt.Sprint(i))
					systest.NoError(t, err)
					if it := op.Items[0]; it.State != status.Completed || it.Attempt != 1 || len(it.Results) != 1 || it.Waiting != nil {
						t.Errorf("operation %d: %+v", i, it)
					}
				}
				// Three rounds of four items, each with a pause before it.
				if d := time.Since(to); d > 3*12*time.Minute {
					t.Errorf("everything is completed %v after the outage", d)
				}
				objects := 0
				for _, err := range blobs.List(ctx, "files/") {
					systest.NoError(t, err)
					objects++
				}
				if objects != 2*n {
					t.Errorf("%d objects are stored, want %d inputs and as many results", objects, n)
				}
			})
		})
	}
}

// Stopping a process is no failure of its items: they are released, at no attempt, and
// nothing is counted or logged as failed.
func TestStopIsNoFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		spec := fileops.Spec{Name: "shout", Engine: "go", Family: "text", Summary: "Works until it is stopped.",
			Accepts: []fileops.Accept{{Formats: []format.Format{format.TXT}}}}
		reg, err := fileops.NewRegistry(fileops.Func(spec, func(ctx context.Context, _ *fileops.Job) error {
			<-ctx.Done()
			return fileops.Fail(fileops.ErrEngine, ctx.Err(), "the engine has ended")
		}))
		systest.NoError(t, err)
		log, operations := new(logtest.Buffer), status.NewMemStore()
		w, err := worker.New(worker.Config{Actions: reg, Drain: time.Minute, Log: slog.New(slog.NewTextHandler(log, nil)), Operations: status.Config{Store: operations}})
		systest.NoError(t, err)
		stop := systest.Start(t, w.Run)
		systest.NoError(t, submit(t.Context(), w, w, "1", "hello", nil))
		synctest.Wait()
		stop()
		op, err := operations.Get(t.Context(), "1")
		if it := op.Items[0]; err != nil || it.State != status.Queued || it.Attempt != 0 || it.Restarts != 0 || it.Waiting != nil || it.Claims != 1 {
			t.Errorf("the item is %+v, %v; want it queued again, at no attempt", it, err)
		}
		all := prometheus.NewPedanticRegistry()
		all.MustRegister(w.Collectors()...)
		families, err := all.Gather()
		systest.NoError(t, err)
		for _, f := range families {
			switch f.GetName() {
			case "filewright_item_failures_total", "filewright_item_attempts_lost_total", "filewright_item_seconds":
				t.Errorf("%s: %v", f.GetName(), f.GetMetric())
			}
		}
		if s := log.String(); strings.Contains(s, "level=ERROR") || strings.Contains(s, "level=WARN") {
			t.Errorf("the log:\n%s", s)
		}
	})
}
