package worktime

import (
	"context"
	"sync"
	"time"
)

type taskKey struct{}

// A task collects the meters of work whose parts are not known when it starts.
type task struct {
	start time.Time

	mu     sync.Mutex
	own    time.Duration // wall time before the first meter
	meters []Meter
}

// Task returns a context that ends with cause like a context of [Context]. Its meters are those that
// [Add] receives with the context. Until the first of them, wall time counts as work.
func Task(ctx context.Context, limit time.Duration, cause error) (context.Context, context.CancelFunc) {
	t := &task{start: time.Now()}
	return Context(context.WithValue(ctx, taskKey{}, t), limit, cause, t.usage)
}

// Add makes all work that m measures a part of the task of ctx, if ctx has one.
func Add(ctx context.Context, m Meter) {
	t, ok := ctx.Value(taskKey{}).(*task)
	if !ok {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.meters) == 0 {
		t.own = time.Since(t.start)
	}
	t.meters = append(t.meters, m)
}

// Since returns a meter of the work that m measures from now on. It is for processes that work for
// one task after another.
func Since(m Meter) Meter {
	start := m()
	return func() Usage {
		u := m()
		return Usage{Worked: u.Worked - start.Worked, Waited: u.Waited - start.Waited}
	}
}

func (t *task) usage() Usage {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.meters) == 0 {
		return Usage{Worked: time.Since(t.start)}
	}
	all := Usage{Worked: t.own}
	for _, m := range t.meters {
		u := m()
		all.Worked += u.Worked
		all.Waited += u.Waited
	}
	return all
}
