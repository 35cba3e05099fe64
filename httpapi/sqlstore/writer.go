package sqlstore

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
)

// A writer runs writing transactions one after another on one connection. Transactions
// that arrive while it is busy are committed together, because most of the time is
// spent waiting for the disk. With sixteen callers this made BenchmarkCreate and
// BenchmarkWork three to four times as fast.
type writer struct {
	*pool // of one connection

	mu    sync.Mutex
	busy  bool // a caller leads
	queue []*job
}

// maxBatch limits the number of transactions that are committed together.
const maxBatch = 64

// A job is a transaction that a caller waits for.
type job struct {
	ctx   context.Context
	f     func(context.Context, tx) error
	soft  bool // need not survive a crash of the machine
	err   error
	panic any
	wake  chan bool // true: lead the next batch; false: the job is finished
}

// run runs f in a transaction. Once f has started, ctx does not interrupt it, so that
// it is known whether it was committed. So f gets a context without cancellation. It
// may run in the goroutine of another caller, the one that leads the batch. A soft
// transaction may be lost if the machine crashes before a later one that is not soft.
func (w *writer) run(ctx context.Context, soft bool, f func(context.Context, tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	j := &job{ctx: context.WithoutCancel(ctx), f: f, soft: soft, wake: make(chan bool, 1)}
	w.mu.Lock()
	w.queue = append(w.queue, j)
	lead := !w.busy
	w.busy = true
	w.mu.Unlock()
	if !lead {
		select {
		case lead = <-j.wake:
		case <-ctx.Done():
			if w.withdraw(j) {
				return ctx.Err()
			}
			lead = <-j.wake
		}
	}
	if lead {
		w.lead()
	}
	if j.panic != nil {
		panic(j.panic)
	}
	return j.err
}

// withdraw removes a job from the queue and reports whether it did. It does not if the
// job has started or must lead.
func (w *writer) withdraw(j *job) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.Index(w.queue, j)
	if i < 0 || len(j.wake) > 0 {
		return false
	}
	w.queue = slices.Delete(w.queue, i, i+1)
	return true
}

// lead runs a batch that starts with the caller's job, and makes the next waiting
// caller lead.
func (w *writer) lead() {
	w.mu.Lock()
	n := min(len(w.queue), maxBatch)
	batch := slices.Clone(w.queue[:n])
	w.queue = slices.Delete(w.queue, 0, n)
	w.mu.Unlock()

	if err := w.commit(batch); err != nil {
		for _, j := range batch {
			if j.err == nil {
				j.err = err
			}
		}
	}

	w.mu.Lock()
	if w.busy = len(w.queue) > 0; w.busy {
		w.queue[0].wake <- true
	}
	w.mu.Unlock()
	for _, j := range batch[1:] {
		j.wake <- false
	}
}

// commit runs jobs in one transaction. A job that fails changes nothing and gets its
// own error; the returned error is for all others.
func (w *writer) commit(batch []*job) error {
	ctx := context.Background()
	t, err := w.get(ctx)
	if err != nil {
		return err
	}
	defer w.put(t)
	if err := t.sync(ctx, slices.ContainsFunc(batch, func(j *job) bool { return !j.soft })); err != nil {
		return err
	}
	if _, err := t.exec(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	committed := false
	defer func() {
		if !committed {
			t.rollback(ctx)
		}
	}()
	good := 0
	for _, j := range batch {
		if len(batch) == 1 {
			if j.call(t); j.err == nil {
				good++
			}
			break
		}
		if _, err := t.exec(ctx, "SAVEPOINT job"); err != nil {
			return err
		}
		if j.call(t); j.err == nil {
			good++
		} else if _, err := t.exec(ctx, "ROLLBACK TO job"); err != nil {
			return err
		}
		if _, err := t.exec(ctx, "RELEASE job"); err != nil {
			return err
		}
	}
	if good == 0 {
		return nil
	}
	_, err = t.exec(ctx, "COMMIT")
	committed = err == nil
	return err
}

// call runs the job and keeps a panic for the caller that waits.
func (j *job) call(t tx) {
	defer func() {
		if r := recover(); r != nil {
			j.panic = r
			j.err = fmt.Errorf("transaction panicked: %v\n%s", r, debug.Stack())
		}
	}()
	j.err = j.f(j.ctx, t)
}
