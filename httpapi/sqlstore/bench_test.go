package sqlstore_test

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/filewright/filewright/httpapi/sqlstore"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/status"
)

var benchID atomic.Int64

func benchOperation() *status.Operation {
	op := &status.Operation{
		ID: fmt.Sprintf("op-%08d", benchID.Add(1)), Owner: "alice", Action: "convert",
		Args:    []byte(`{"convert_to":"pdf"}`),
		Created: time.Now().UTC().Truncate(time.Millisecond),
	}
	for i := range 5 {
		op.Items = append(op.Items, status.Item{
			Queue: "office", Inputs: []status.File{{Key: fmt.Sprint("in", i), Name: "report.docx", Size: 12345}},
		})
	}
	return op
}

// BenchmarkCreate stores operations of five items.
func BenchmarkCreate(b *testing.B) {
	for _, n := range []int{1, 8} {
		b.Run(fmt.Sprintf("callers=%d", n*runtime.GOMAXPROCS(0)), func(b *testing.B) {
			s := open(b).Operations()
			b.SetParallelism(n)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := s.Create(b.Context(), benchOperation()); err != nil {
						b.Error(err)
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "op/s")
		})
	}
}

// BenchmarkWork claims and finishes items.
func BenchmarkWork(b *testing.B) {
	work(b, open(b).Operations())
}

// work claims and finishes b.N items.
func work(b *testing.B, s *sqlstore.Operations) {
	b.Helper()
	var ops []*status.Operation
	for range b.N/5 + 1 {
		op, err := s.Create(b.Context(), benchOperation())
		systest.NoError(b, err)
		ops = append(ops, op)
	}
	var next atomic.Int64
	b.ResetTimer()
	b.SetParallelism(8)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			i := int(next.Add(1) - 1)
			c, err := s.Claim(b.Context(), status.Ref{Operation: ops[i/5].ID, Index: i % 5}, "w", time.Minute)
			if err != nil {
				b.Error(err)
				return
			}
			o := status.Outcome{Results: []status.File{{Key: "out", Name: "report.pdf", Size: 54321}}}
			if _, err := s.Finish(b.Context(), c, o); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "item/s")
}

// BenchmarkGet reads operations of five items while others are written.
func BenchmarkGet(b *testing.B) {
	s := open(b).Operations()
	var ids []string
	for range 1000 {
		op, err := s.Create(b.Context(), benchOperation())
		systest.NoError(b, err)
		ids = append(ids, op.ID)
	}
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan int)
	go func() {
		n := 0
		for ctx.Err() == nil {
			if _, err := s.Create(b.Context(), benchOperation()); err != nil {
				b.Error(err)
			}
			n++
			time.Sleep(5 * time.Millisecond)
		}
		done <- n
	}()
	b.ResetTimer()
	b.SetParallelism(8)
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			if _, err := s.Get(b.Context(), ids[i%len(ids)]); err != nil {
				b.Error(err)
			}
		}
	})
	b.StopTimer()
	cancel()
	n := <-done
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "read/s")
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "write/s")
}

// BenchmarkTracker measures the time from Submit to the start of the handler.
func BenchmarkTracker(b *testing.B) {
	for name, store := range map[string]status.Store{"memory": status.NewMemStore(), "sqlite": open(b).Operations()} {
		b.Run(name, func(b *testing.B) {
			started := make(chan struct{}, 1)
			tr, err := status.New(status.Config{
				Store: store,
				Handler: status.HandlerFunc(func(context.Context, *status.Claim, func(float64)) status.Outcome {
					started <- struct{}{}
					return status.Outcome{}
				}),
			})
			systest.NoError(b, err)
			ctx, cancel := context.WithCancel(b.Context())
			done := make(chan error, 1)
			go func() { done <- tr.Run(ctx, time.Second) }()
			op := status.Operation{Owner: "alice", Items: []status.Item{{Queue: "pdf"}}}
			for b.Loop() {
				if _, err := tr.Submit(ctx, op); err != nil {
					b.Fatal(err)
				}
				<-started
			}
			b.StopTimer()
			cancel()
			systest.Check(b, <-done)
		})
	}
}
