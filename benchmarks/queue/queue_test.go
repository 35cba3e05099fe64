// Package queue measures how fast operations are accepted, processed and polled: embedded in one
// process with SQLite, and shared by several processes with PostgreSQL.
//
//	go test -bench . ./benchmarks/queue
package queue

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/filewright/filewright/httpapi/sqlstore"
	"github.com/filewright/filewright/internal/pgtest"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/status"
	"github.com/filewright/filewright/status/riverqueue"
)

// itemsPerOperation is the number of items of each operation.
const itemsPerOperation = 5

// server is the shared PostgreSQL server of all benchmarks. It waits for fsync, as in production.
var server *pgtest.Server

func TestMain(m *testing.M) {
	code := m.Run()
	if server != nil {
		server.Close()
	}
	os.Exit(code)
}

// A bench is a database with a dispatcher.
type bench struct {
	db         *sqlstore.DB
	dispatcher status.Dispatcher // nil: in this process
}

// onDatabases runs a benchmark on SQLite, embedded, and on PostgreSQL with River.
func onDatabases(b *testing.B, f func(b *testing.B, open func() bench)) {
	open := func(b *testing.B, o sqlstore.Options) *sqlstore.DB {
		db, err := sqlstore.Open(b.Context(), o)
		systest.NoError(b, err)
		b.Cleanup(func() { db.Close() })
		return db
	}
	b.Run("sqlite", func(b *testing.B) {
		f(b, func() bench {
			return bench{db: open(b, sqlstore.Options{Path: filepath.Join(b.TempDir(), "bench.db")})}
		})
	})
	b.Run("postgres", func(b *testing.B) {
		if server == nil {
			var err error
			if server, err = pgtest.Start(pgtest.Options{Durable: true}); err != nil {
				b.Fatal(err)
			}
		}
		url := server.Database(b)
		f(b, func() bench {
			db := open(b, sqlstore.Options{URL: url})
			queue, err := riverqueue.New(b.Context(), db, nil)
			systest.NoError(b, err)
			return bench{db, queue}
		})
	})
}

func newOperation(owner string) status.Operation {
	op := status.Operation{Owner: owner, Action: "convert", Args: []byte(`{"convert_to":"pdf"}`)}
	for i := range itemsPerOperation {
		op.Items = append(op.Items, status.Item{Queue: "office", Inputs: []status.File{{Key: fmt.Sprint("in", i), Name: "report.docx", Size: 12345}}})
	}
	return op
}

// BenchmarkSubmit stores operations of five items for a few owners.
func BenchmarkSubmit(b *testing.B) {
	onDatabases(b, func(b *testing.B, open func() bench) {
		n := open()
		tr, err := status.New(status.Config{Store: n.db.Operations(), Dispatcher: n.dispatcher})
		systest.NoError(b, err)
		var next atomic.Int64
		b.SetParallelism(8)
		b.ResetTimer()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := tr.Submit(b.Context(), newOperation(fmt.Sprint("owner", next.Add(1)%8))); err != nil {
					b.Error(err)
				}
			}
		})
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "op/s")
	})
}

// BenchmarkThrough submits operations of five items and processes them, in two processes if the
// database can be shared. The action itself takes no time.
func BenchmarkThrough(b *testing.B) {
	onDatabases(b, func(b *testing.B, open func() bench) {
		var trackers []*status.Tracker
		var left atomic.Int64
		left.Store(int64(b.N))
		done := make(chan struct{})
		ctx, stop := context.WithCancel(b.Context())
		var running sync.WaitGroup
		for range 2 {
			n := open()
			tr, err := status.New(status.Config{
				Store: n.db.Operations(), Dispatcher: n.dispatcher, Limits: map[string]int{"office": 8},
				Handler: status.HandlerFunc(func(context.Context, *status.Claim, func(float64)) status.Outcome {
					return status.Outcome{Results: []status.File{{Key: "out", Name: "report.pdf", Size: 54321}}}
				}),
				OnFinal: func(context.Context, *status.Operation) {
					if left.Add(-1) == 0 {
						close(done)
					}
				},
			})
			systest.NoError(b, err)
			trackers = append(trackers, tr)
			running.Go(func() { tr.Run(ctx, time.Second) })
			if n.dispatcher == nil {
				break
			}
		}
		b.ResetTimer()
		var submitting sync.WaitGroup
		var next atomic.Int64
		for range 8 {
			submitting.Go(func() {
				for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
					if _, err := trackers[0].Submit(b.Context(), newOperation(fmt.Sprint("owner", i%8))); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		submitting.Wait()
		<-done
		b.StopTimer()
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "op/s")
		b.ReportMetric(float64(b.N*itemsPerOperation)/b.Elapsed().Seconds(), "item/s")
		stop()
		running.Wait()
	})
}

// BenchmarkStart measures the time from Submit to the start of an item, in another process if the
// database can be shared.
func BenchmarkStart(b *testing.B) {
	onDatabases(b, func(b *testing.B, open func() bench) {
		started := make(chan time.Time, 1)
		worker := open()
		cfg := status.Config{Store: worker.db.Operations(), Dispatcher: worker.dispatcher, Limits: map[string]int{"office": 2},
			Handler: status.HandlerFunc(func(context.Context, *status.Claim, func(float64)) status.Outcome {
				started <- time.Now()
				return status.Outcome{}
			})}
		tr, err := status.New(cfg)
		systest.NoError(b, err)
		ctx, stop := context.WithCancel(b.Context())
		done := make(chan error, 1)
		go func() { done <- tr.Run(ctx, time.Second) }()
		api := tr
		if worker.dispatcher != nil {
			n := open()
			if api, err = status.New(status.Config{Store: n.db.Operations(), Dispatcher: n.dispatcher}); err != nil {
				b.Fatal(err)
			}
		}
		op := newOperation("owner")
		op.Items = op.Items[:1]
		var took []time.Duration
		for b.Loop() {
			start := time.Now()
			if _, err := api.Submit(ctx, op); err != nil {
				b.Fatal(err)
			}
			took = append(took, (<-started).Sub(start))
		}
		stop()
		systest.Check(b, <-done)
		slices.Sort(took)
		for _, p := range []int{50, 99} {
			b.ReportMetric(float64(took[len(took)*p/100].Microseconds())/1000, fmt.Sprintf("p%d-ms", p))
		}
	})
}

// BenchmarkPoll reads operations of five items: first queued, then final operations.
func BenchmarkPoll(b *testing.B) {
	for _, final := range []bool{false, true} {
		b.Run(map[bool]string{false: "waiting", true: "final"}[final], func(b *testing.B) {
			onDatabases(b, func(b *testing.B, open func() bench) {
				n := open()
				tr, err := status.New(status.Config{Store: n.db.Operations(), Dispatcher: n.dispatcher})
				systest.NoError(b, err)
				var ids []string
				for range 100 {
					op, err := tr.Submit(b.Context(), newOperation("owner"))
					systest.NoError(b, err)
					if final {
						if _, err := tr.Cancel(b.Context(), "owner", op.ID); err != nil {
							b.Fatal(err)
						}
						if _, err := tr.Get(b.Context(), "owner", op.ID); err != nil {
							b.Fatal(err)
						}
					}
					ids = append(ids, op.ID)
				}
				var next atomic.Int64
				b.SetParallelism(8)
				b.ResetTimer()
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						if _, err := tr.Get(b.Context(), "owner", ids[int(next.Add(1))%len(ids)]); err != nil {
							b.Error(err)
						}
					}
				})
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "poll/s")
			})
		})
	}
}
