//go:build unix

package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/filewright/filewright/httpapi/sqlstore"
	"github.com/filewright/filewright/status"
	"github.com/filewright/filewright/status/riverqueue"
)

// nodeCommand is the first argument of a node process.
const nodeCommand = "node"

// A command is a line that a node reads; an answer is a line that it writes.
type command struct {
	Do   string        // "ready", "accept", "through", "pace", "poll", "latencies"
	Time time.Duration // duration of the measurement
	Rate float64       // "pace": operations per second
	What string        // "poll": "waiting", "final"
}

type answer struct {
	Rate      float64         // per second
	Latencies []time.Duration // from submission to start
	Error     string
}

// Queues of the measurements. No worker serves the second queue.
const (
	worked = "office"
	idle   = "idle"
)

// itemsPerOperation is the number of items of most operations.
const itemsPerOperation = 5

// A process is the state of a node inside its process.
type process struct {
	*status.Tracker

	mu        sync.Mutex
	latencies []time.Duration
}

// runNode runs the commands from standard input until its end.
func runNode(args []string) error {
	flags := flag.NewFlagSet(nodeCommand, flag.ContinueOnError)
	path := flags.String("path", "", "SQLite")
	url := flags.String("url", "", "PostgreSQL")
	work := flags.Int("work", 0, "items at a time")
	if err := flags.Parse(args); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	db, err := sqlstore.Open(ctx, sqlstore.Options{Path: *path, URL: *url})
	if err != nil {
		return err
	}
	defer db.Close()
	p := new(process)
	cfg := status.Config{
		Store: db.Operations(), Exclusive: *path != "",
		Limits:  map[string]int{worked: *work, "": -1},
		Handler: status.HandlerFunc(p.handle),
	}
	if *url != "" {
		if cfg.Dispatcher, err = riverqueue.New(ctx, db, nil); err != nil {
			return err
		}
	}
	if p.Tracker, err = status.New(cfg); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx, time.Second) }()
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var c command
		if err := in.Decode(&c); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		a, err := p.do(ctx, c)
		if err != nil {
			a.Error = err.Error()
		}
		if err := out.Encode(a); err != nil {
			return err
		}
	}
	cancel()
	return <-done
}

// handle processes an item. The parameters contain the submission time of the operation.
func (p *process) handle(_ context.Context, c *status.Claim, _ func(float64)) status.Outcome {
	if ns, err := strconv.ParseInt(string(c.Op.Args), 10, 64); err == nil {
		p.mu.Lock()
		p.latencies = append(p.latencies, time.Since(time.Unix(0, ns)))
		p.mu.Unlock()
	}
	return status.Outcome{Results: []status.File{{Key: "out", Name: "report.pdf", Size: 54321}}}
}

func newOperation(owner int, queue string, items int) status.Operation {
	op := status.Operation{Owner: fmt.Sprint("owner", owner%8), Action: "convert", Args: strconv.AppendInt(nil, time.Now().UnixNano(), 10)}
	for i := range items {
		op.Items = append(op.Items, status.Item{Queue: queue, Inputs: []status.File{{Key: fmt.Sprint("in", i), Name: "report.docx", Size: 12345}}})
	}
	return op
}

// do runs a command.
func (p *process) do(ctx context.Context, c command) (a answer, err error) {
	switch c.Do {
	case "ready":
		_, err := p.Stats(ctx)
		return a, err
	case "latencies":
		p.mu.Lock()
		defer p.mu.Unlock()
		a.Latencies, p.latencies = slices.Clone(p.latencies), nil
		return a, nil
	case "accept":
		a.Rate, err = repeat(ctx, 8, c.Time, func(ctx context.Context, i int) (int, error) {
			_, err := p.Submit(ctx, newOperation(i, idle, itemsPerOperation))
			return 1, err
		})
	case "through":
		// Enough at once that noticing their ends is not the bottleneck.
		a.Rate, err = repeat(ctx, 32, c.Time, func(ctx context.Context, i int) (int, error) {
			op, err := p.Submit(ctx, newOperation(i, worked, itemsPerOperation))
			if err != nil {
				return 0, err
			}
			_, err = p.Wait(ctx, op.Owner, op.ID)
			return itemsPerOperation, err
		})
	case "pace":
		err = p.pace(ctx, c)
	case "poll":
		a.Rate, err = p.poll(ctx, c)
	default:
		err = fmt.Errorf("unknown command %q", c.Do)
	}
	return a, err
}

// pace submits operations of one item at a fixed rate, and waits for the last operation.
func (p *process) pace(ctx context.Context, c command) error {
	tick := time.NewTicker(time.Duration(float64(time.Second) / c.Rate))
	defer tick.Stop()
	var last *status.Operation
	for i := range max(1, int(c.Time.Seconds()*c.Rate)) {
		<-tick.C
		op, err := p.Submit(ctx, newOperation(i, worked, 1))
		if err != nil {
			return err
		}
		last = op
	}
	_, err := p.Wait(ctx, last.Owner, last.ID)
	return err
}

// poll measures status requests.
func (p *process) poll(ctx context.Context, c command) (float64, error) {
	var ids []string
	for range 100 {
		op := newOperation(0, idle, itemsPerOperation)
		got, err := p.Submit(ctx, op)
		if err != nil {
			return 0, err
		}
		if c.What == "final" {
			if _, err := p.Cancel(ctx, got.Owner, got.ID); err != nil {
				return 0, err
			}
		}
		ids = append(ids, got.ID)
	}
	owner := newOperation(0, idle, 0).Owner
	return repeat(ctx, 8, c.Time, func(ctx context.Context, i int) (int, error) {
		_, err := p.Get(ctx, owner, ids[i%len(ids)])
		return 1, err
	})
}

// repeat calls f in n goroutines for the time d after a warm-up of a quarter of d. It returns the
// sum of the results of f per second.
func repeat(ctx context.Context, n int, d time.Duration, f func(ctx context.Context, i int) (int, error)) (float64, error) {
	var next, sum atomic.Int64
	var counting atomic.Bool
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make(chan error, n)
	var group sync.WaitGroup
	var ending atomic.Bool
	for range n {
		group.Go(func() {
			for !ending.Load() {
				v, err := f(ctx, int(next.Add(1)))
				if err != nil {
					errs <- err
					return
				}
				if counting.Load() {
					sum.Add(int64(v))
				}
			}
		})
	}
	time.Sleep(d / 4)
	counting.Store(true)
	start := time.Now()
	time.Sleep(d)
	counting.Store(false)
	took := time.Since(start)
	ending.Store(true)
	group.Wait()
	select {
	case err := <-errs:
		return 0, err
	default:
		return float64(sum.Load()) / took.Seconds(), nil
	}
}
