package webhook

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/filewright/filewright/internal/netguard"
	"github.com/filewright/filewright/status"
	"github.com/filewright/filewright/trace"
)

// maxResponse is how many bytes of a response body are read and stored.
const maxResponse = 1 << 10

// grace is how long running attempts may take to finish when Run stops.
const grace = 5 * time.Second

// Run sends due deliveries until ctx is done. Running attempts then get five seconds to
// finish. It returns nil if ctx ended it, and must not be called again before it has
// returned. Any number of processes may call Run on one database.
func (w *Webhooks) Run(ctx context.Context) error {
	if !w.running.CompareAndSwap(false, true) {
		return errors.New("webhooks are already being sent")
	}
	defer w.running.Store(false)
	if w.cfg.Exclusive {
		if err := w.store.Recover(ctx); err != nil && ctx.Err() == nil {
			w.cfg.Log.Error("cannot release claimed webhooks; they are sent late", "err", err) // when their leases lapse
		}
	}
	base, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	s := &sender{w: w, base: base, freed: make(chan struct{}, 1), endpoints: make(map[string]int), accounts: make(map[string]int)}
	var sweeping sync.WaitGroup
	sweeping.Go(func() {
		sweep(ctx, w.store, w.cfg.Retention, w.cfg.Log, w.swept.Set)
	})
	s.run(ctx)
	timer := time.AfterFunc(grace, stop)
	s.sending.Wait()
	timer.Stop()
	sweeping.Wait()
	return nil
}

// waiting is how long due deliveries wait for a sender.
const waiting = 30 * 24 * time.Hour

// Sweep removes old deliveries from a store, at once and then periodically until ctx is
// done. It removes deliveries that finished longer than retention ago (0: 7 days,
// negative: none). It also removes those that have been due for 30 days, or for
// retention if that is longer, because no process sends or the account is disabled.
// [Webhooks.Run] does the same; Sweep is for programs that do not call it. log may be
// nil.
func Sweep(ctx context.Context, store Outbox, retention time.Duration, log *slog.Logger) {
	sweep(ctx, store, retention, log, func(int, error) {})
}

// sweep is Sweep, which calls done after each removal.
func sweep(ctx context.Context, store Outbox, retention time.Duration, log *slog.Logger, done func(int, error)) {
	if retention < 0 {
		return
	}
	retention = cmp.Or(retention, keep)
	t := time.NewTicker(max(100*time.Millisecond, min(time.Minute, retention/4)))
	defer t.Stop()
	for {
		now := store.Now()
		n, err := store.Sweep(ctx, now.Add(-retention), now.Add(-max(retention, waiting)))
		done(n, err)
		if err != nil && ctx.Err() == nil && log != nil {
			log.Error("cannot delete old webhook deliveries", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

// clearing is the pause between two batches of deliveries to remove.
const clearing = 100 * time.Millisecond

// A sender makes the attempts of one Run.
type sender struct {
	w       *Webhooks
	base    context.Context
	sending sync.WaitGroup
	freed   chan struct{} // holds a token if an attempt has finished

	mu        sync.Mutex
	busy      int
	endpoints map[string]int // running attempts by endpoint
	accounts  map[string]int
}

func (s *sender) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-s.w.store.Wake():
		case <-s.freed:
		}
		if ctx.Err() != nil {
			return
		}
		next, err := s.round(ctx)
		if err != nil && ctx.Err() == nil {
			s.w.cfg.Log.Error("cannot claim webhook deliveries", "err", err)
			next = time.Second
		}
		timer.Reset(min(s.w.cfg.Poll, max(next, time.Millisecond)))
	}
}

// round starts the due attempts for which there are free slots, and returns the time
// until the next one is due. Accounts with the fewest running attempts come first. No
// endpoint takes more than its share of the free slots.
func (s *sender) round(ctx context.Context) (next time.Duration, err error) {
	due, err := s.w.store.Due(ctx)
	if err != nil {
		return 0, err
	}
	now := s.w.store.Now()
	next = s.w.cfg.Poll
	ready := due[:0]
	for _, d := range due {
		switch wait := d.At.Sub(now); {
		case d.At.IsZero():
			next = min(next, clearing)
		case wait > 0:
			next = min(next, wait)
			continue
		}
		ready = append(ready, d)
	}
	s.mu.Lock()
	accounts, endpoints := clone(s.accounts), clone(s.endpoints)
	s.mu.Unlock()
	slices.SortFunc(ready, func(a, b DueEndpoint) int {
		return cmp.Or(cmp.Compare(accounts[a.Account], accounts[b.Account]),
			cmp.Compare(endpoints[a.ID], endpoints[b.ID]), a.At.Compare(b.At))
	})
	for i, d := range ready {
		n := s.reserve(d, len(ready)-i)
		if n == 0 {
			continue // an attempt that finishes makes room
		}
		out, err := s.w.store.Claim(ctx, d.ID, n, s.w.cfg.Lease)
		s.release(d, n-len(out))
		if err != nil {
			return 0, err
		}
		for _, o := range out {
			s.sending.Go(func() {
				defer func() {
					s.release(d, 1)
					select {
					case s.freed <- struct{}{}:
					default:
					}
				}()
				s.w.attempt(s.base, o)
			})
		}
	}
	return next, nil
}

func clone(m map[string]int) map[string]int {
	c := make(map[string]int, len(m))
	maps.Copy(c, m)
	return c
}

// reserve takes slots for attempts at an endpoint and returns their number; wanting
// endpoints share the free slots.
func (s *sender) reserve(d DueEndpoint, wanting int) int {
	limit := s.w.cfg.Endpoint
	if d.Failing {
		limit = 1 // every attempt may run into the timeout
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	free := s.w.cfg.Workers - s.busy
	n := min(limit-s.endpoints[d.ID], max(1, s.w.cfg.Workers/4)-s.accounts[d.Account], (free+wanting-1)/wanting)
	if n <= 0 {
		return 0
	}
	s.busy += n
	s.endpoints[d.ID] += n
	s.accounts[d.Account] += n
	return n
}

// release returns slots.
func (s *sender) release(d DueEndpoint, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy -= n
	for m, key := range map[*map[string]int]string{&s.endpoints: d.ID, &s.accounts: d.Account} {
		if (*m)[key] -= n; (*m)[key] == 0 {
			delete(*m, key)
		}
	}
}

// attempt makes one attempt at a delivery and stores its result.
func (w *Webhooks) attempt(ctx context.Context, o *ClaimedDelivery) {
	r := AttemptResult{FailingLimit: w.cfg.DisableAfter, FailingGap: failingGap}
	r.Attempt, r.Body = w.traced(ctx, o)
	if ctx.Err() != nil && r.Attempt.Status == 0 {
		if err := w.store.Release(context.WithoutCancel(ctx), o); err != nil {
			w.logOf(o).Error("webhook delivery delayed", "err", err)
		}
		return
	}
	a := r.Attempt
	r.Delivered = a.Status >= 200 && a.Status < 300
	if a.Status == http.StatusGone {
		r.Disable = "the endpoint responded with 410 Gone"
	}
	if o.Step < len(w.cfg.Schedule) {
		r.Retry = w.cfg.Schedule[o.Step]
	}
	w.count(a, r.Delivered)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	disabled, err := w.store.Record(ctx, o, r)
	switch {
	case errors.Is(err, status.ErrLost): // another process has claimed it, or it was deleted
	case err != nil:
		w.logOf(o).Error("cannot record a webhook delivery; it may be sent again", "err", err)
	case disabled:
		w.cfg.Log.Warn("webhook endpoint disabled", "endpoint", o.Endpoint, "account", o.Account)
	}
}

// traced sends the request of a delivery in a span of the trace of its operation.
func (w *Webhooks) traced(ctx context.Context, o *ClaimedDelivery) (Attempt, []byte) {
	if w.cfg.Tracer == nil || o.Trace == "" {
		return w.send(ctx, o)
	}
	ctx, span := trace.Root(ctx, w.cfg.Tracer, o.Trace, "webhook", trace.Client, time.Time{})
	a, body := w.send(ctx, o)
	span.String("filewright.operation", o.Operation)
	span.String("filewright.delivery", o.ID)
	span.String("filewright.event", o.Type)
	span.Int("filewright.attempt", int64(o.Attempts+1))
	span.Int("http.response.status_code", int64(a.Status))
	code := ""
	if outcome := outcomeOf(a, a.Status >= 200 && a.Status < 300); outcome != outcomeDelivered {
		code = outcomeNames[outcome]
	}
	span.End(code)
	return a, body
}

// logOf returns a logger for lines about a delivery.
func (w *Webhooks) logOf(o *ClaimedDelivery) *slog.Logger {
	log := w.cfg.Log.With("delivery", o.ID)
	if id := trace.ID(o.Trace); id != "" {
		log = log.With("trace_id", id)
	}
	return log
}

// send sends the request of a delivery.
func (w *Webhooks) send(ctx context.Context, o *ClaimedDelivery) (a Attempt, body []byte) {
	started := time.Now()
	a = Attempt{At: w.store.Now(), URL: o.Webhook.URL}
	defer func() { a.Took = time.Since(started) }()
	failed := func(msg string, err error) {
		a.Error = msg
		w.logOf(o).Error("cannot send a webhook", "err", err)
	}
	body = o.Payload
	if body == nil {
		var err error
		if body, err = w.payload(ctx, o); err != nil {
			failed("cannot create the request", err)
			return a, nil
		}
	}
	keys, err := w.keysOf(o.Webhook, time.Now())
	if err != nil {
		failed(err.Error(), err)
		return a, body
	}
	ctx, cancel := context.WithTimeout(ctx, w.cfg.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, o.Webhook.URL, bytes.NewReader(body))
	if err != nil {
		failed("invalid URL", err)
		return a, body
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "Filewright-Webhook")
	if parent := trace.Of(ctx).Traceparent(); parent != "" {
		req.Header.Set("Traceparent", parent)
	}
	sign(req.Header, o.ID, time.Now(), body, keys)
	// No http.Client: it would follow redirects and keep cookies.
	resp, err := w.client.RoundTrip(req)
	if err != nil {
		a.Error = w.explain(err)
		w.logOf(o).Debug("webhook failed", "endpoint", o.Endpoint, "err", err)
		return a, body
	}
	defer resp.Body.Close()
	a.Status = resp.StatusCode
	start, _ := io.ReadAll(io.LimitReader(resp.Body, maxResponse)) // a read error does not matter: the status decides
	a.Response = strings.ReplaceAll(strings.ToValidUTF8(string(start), "\ufffd"), "\x00", "\ufffd")
	if a.Status >= 300 && a.Status < 400 {
		a.Error = "redirects are not followed"
	}
	return a, body
}

// payload makes the body of a delivery. It recovers from a panic of Config.Payload.
func (w *Webhooks) payload(ctx context.Context, o *ClaimedDelivery) (body []byte, err error) {
	defer func() {
		if r := recover(); r != nil {
			body, err = nil, errors.New("Config.Payload panicked")
			w.logOf(o).Error("payload of a webhook panicked", "panic", r)
		}
	}()
	if o.Event == nil {
		return nil, errors.New("the event has no data")
	}
	body, err = w.cfg.Payload(ctx, Event{Type: o.Type, Time: o.Created, Operation: o.Event})
	if err == nil && len(body) == 0 {
		err = errors.New("the body is empty")
	}
	return body, err
}

// explain returns the reason, for the account, why there was no response.
func (w *Webhooks) explain(err error) string {
	return netguard.Reason(err, "no response within "+w.cfg.Timeout.String())
}

// Outcomes of attempts, for counting.
const (
	outcomeDelivered = iota // acknowledged
	outcomeRefused          // a response with another status
	outcomeNoAnswer         // no response
	outcomeBlocked          // the address is not public
	outcomes
)

var outcomeNames = [outcomes]string{"delivered", "refused", "no_answer", "blocked"}

func (w *Webhooks) count(a Attempt, delivered bool) { w.counts[outcomeOf(a, delivered)].Add(1) }

// outcomeOf returns the outcome of an attempt.
func outcomeOf(a Attempt, delivered bool) int {
	outcome := outcomeNoAnswer
	switch {
	case delivered:
		outcome = outcomeDelivered
	case a.Status != 0:
		outcome = outcomeRefused
	case a.Error == netguard.ErrNotPublic.Error():
		outcome = outcomeBlocked
	}
	return outcome
}

// Stats are numbers about deliveries.
type Stats struct {
	Pending int           // unfinished deliveries, in all processes
	Overdue time.Duration // how long the oldest due delivery has been due

	// Attempts counts the attempts of this process by outcome: "delivered", "refused"
	// (a status other than 2xx), "no_answer", "blocked" (the address is not public).
	Attempts map[string]int64
}

// Stats returns numbers about deliveries.
func (w *Webhooks) Stats(ctx context.Context) (Stats, error) {
	s := Stats{Attempts: make(map[string]int64)}
	for i := range w.counts {
		s.Attempts[outcomeNames[i]] = w.counts[i].Load()
	}
	n, since, err := w.store.Pending(ctx)
	if s.Pending = n; !since.IsZero() {
		s.Overdue = max(0, w.store.Now().Sub(since))
	}
	return s, err
}
