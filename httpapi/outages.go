package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"syscall"
	"time"

	"github.com/filewright/filewright/status"
	"github.com/filewright/filewright/upload/blob"
)

// Outages keeps the log readable during the outage of a dependency. Every loop and request that
// needs the dependency then fails, and each would write a line. Outages writes one line at the
// first failure, one each minute during the outage, and one when the dependency is back. It counts
// the suppressed records.
//
// Outages wraps a [slog.Handler], so it covers everything that logs through it. A record belongs to
// an outage if one of its attributes is an error of that dependency. Records below [slog.LevelInfo]
// pass unchanged.
//
// A [Service] with Config.Outages reports the results of its Checks, which end outages.
type Outages struct {
	next slog.Handler
	of   func(error) string
	now  func() time.Time

	mu      sync.Mutex
	open    map[string]*outage
	settled map[string]time.Time // end of the last outage
}

// An outage is the time in which a dependency is unavailable.
type outage struct {
	began, last, line time.Time // times of the first record, the last record, the last written line
	unlogged          int       // records since the last line
	total             int
}

const (
	outageEvery  = time.Minute      // between two lines
	outageSettle = 10 * time.Second // after an outage, requests that started in it may still fail
)

// NewOutages wraps next. of returns the name of the dependency that an error belongs to, or "". nil
// means [DependencyOf].
func NewOutages(next slog.Handler, of func(error) string) *Outages {
	if of == nil {
		of = DependencyOf
	}
	return &Outages{next: next, of: of, now: time.Now, open: make(map[string]*outage), settled: make(map[string]time.Time)}
}

// DependencyOf returns the dependency that an error belongs to: "database" if it matches
// status.ErrUnavailable, "store" if it matches blob.ErrUnavailable, else "". A store that is full is
// not an outage: it answers, and its checks succeed.
func DependencyOf(err error) string {
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return ""
	case errors.Is(err, status.ErrUnavailable):
		return "database"
	case errors.Is(err, blob.ErrUnavailable):
		return "store"
	}
	return ""
}

// Handler returns the wrapping handler.
func (o *Outages) Handler() slog.Handler { return outageHandler{o, o.next} }

// failing counts a failure and writes the due lines. checked means that the failure comes from a
// check, not from a request that may have started before the dependency was back.
func (o *Outages) failing(name, what string, err error, checked bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.now()
	f := o.open[name]
	switch {
	case f == nil && !checked && now.Sub(o.settled[name]) < outageSettle:
		return
	case f == nil:
		o.open[name] = &outage{began: now, last: now, line: now, total: 1}
		o.write(now, slog.LevelError, "dependency failed", slog.String("dependency", name), slog.String("noticed", what), slog.Any("err", err))
		return
	}
	f.last = now
	f.total++
	if f.unlogged++; now.Sub(f.line) >= outageEvery {
		o.write(now, slog.LevelError, "dependency is still failing", slog.String("dependency", name), slog.Duration("for", now.Sub(f.began).Round(time.Second)),
			slog.Int("suppressed", f.unlogged), slog.Any("err", err))
		f.line, f.unlogged = now, 0
	}
}

// back ends the outage of a checked dependency.
func (o *Outages) back(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.end(name, o.now())
}

func (o *Outages) end(name string, now time.Time) {
	f := o.open[name]
	if f == nil {
		return
	}
	delete(o.open, name)
	o.settled[name] = now
	o.write(now, slog.LevelInfo, "dependency is back", slog.String("dependency", name),
		slog.Duration("after", now.Sub(f.began).Round(time.Millisecond)), slog.Int("suppressed", f.total-1))
}

// tick ends outages of unchecked dependencies after a while without failures.
func (o *Outages) tick(checked func(name string) bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.now()
	for name, f := range o.open {
		if !checked(name) && now.Sub(f.last) >= outageEvery {
			o.end(name, now)
		}
	}
}

func (o *Outages) write(now time.Time, level slog.Level, text string, attrs ...slog.Attr) {
	ctx := context.Background()
	if !o.next.Enabled(ctx, level) {
		return
	}
	r := slog.NewRecord(now, level, text, 0)
	r.AddAttrs(attrs...)
	_ = o.next.Handle(ctx, r) // the log package ignores this error too
}

// An outageHandler is a handler of Outages with a logger's attributes.
type outageHandler struct {
	o    *Outages
	next slog.Handler
}

func (h outageHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

func (h outageHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return outageHandler{h.o, h.next.WithAttrs(attrs)}
}

func (h outageHandler) WithGroup(name string) slog.Handler {
	return outageHandler{h.o, h.next.WithGroup(name)}
}

func (h outageHandler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < slog.LevelInfo {
		return h.next.Handle(ctx, r)
	}
	name, cause := "", error(nil)
	r.Attrs(func(a slog.Attr) bool {
		if err, ok := a.Value.Any().(error); ok {
			name, cause = h.o.of(err), err
		}
		return name == ""
	})
	if name == "" {
		return h.next.Handle(ctx, r)
	}
	h.o.failing(name, r.Message, cause, false)
	return nil
}

var _ slog.Handler = outageHandler{}
