package webhook

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/filewright/filewright/status"
)

// maxResponse is how much of an answer is kept, and read.
const maxResponse = 1 << 10

// grace is how long attempts may go on when Run is told to stop.
const grace = 5 * time.Second

// Run sends what is due until ctx is done. Attempts that are under way then get
// some seconds to end. It returns nil if it ended because of ctx, and must not be
// called again before it has returned. Any number of processes may do it on one
// database.
func (w *Webhooks) Run(ctx context.Context) error {
	if !w.running.CompareAndSwap(false, true) {
		return errors.New("webhooks are being sent already")
	}
	defer w.running.Store(false)
	if w.cfg.Exclusive {
		if err := w.store.Recover(ctx); err != nil && ctx.Err() == nil {
			w.cfg.Log.Error("some webhooks are sent late", "err", err) // when their leases end
		}
	}
	base, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	s := &sender{w: w, base: base, freed: make(chan struct{}, 1), endpoints: make(map[string]int), accounts: make(map[string]int)}
	var sweeping sync.WaitGroup
	sweeping.Go(func() { Sweep(ctx, w.store, w.cfg.Retention, w.cfg.Log) })
	s.run(ctx)
	timer := time.AfterFunc(grace, stop)
	s.sending.Wait()
	timer.Stop()
	sweeping.Wait()
	return nil
}

// waiting is for how long deliveries that are due wait for somebody to send them.
const waiting = 30 * 24 * time.Hour

// Sweep removes old deliveries from a store, now and from time to time until ctx is
// done: what was finished longer than retention ago (0: 7 days, negative: nothing ever),
// and what has been due for 30 days, or for retention if that is longer, because nobody
// sends or the account is disabled. [Webhooks.Run] does so, too; this is for programs
// that do not call it. log may be nil.
func Sweep(ctx context.Context, store Outbox, retention time.Duration, log *slog.Logger) {
	if retention < 0 {
		return
	}
	retention = cmp.Or(retention, keep)
	t := time.NewTicker(max(100*time.Millisecond, min(time.Minute, retention/4)))
	defer t.Stop()
	for {
		now := store.Now()
		if _, err := store.Sweep(ctx, now.Add(-retention), now.Add(-max(retention, waiting))); err != nil && ctx.Err() == nil && log != nil {
			log.Error("old deliveries of webhooks are not removed", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

// clearing is the time between two looks at deliveries that are to be cleared away,
// some at a time.
const clearing = 100 * time.Millisecond

// A sender makes the attempts of one Run.
type sender struct {
	w       *Webhooks
	base    context.Context
	sending sync.WaitGroup
	freed   chan struct{} // holds a token if an attempt has ended

	mu        sync.Mutex
	busy      int
	endpoints map[string]int // attempts under way
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
			s.w.cfg.Log.Error("webhooks are not sent", "err", err)
			next = time.Second
		}
		timer.Reset(min(s.w.cfg.Poll, max(next, time.Millisecond)))
	}
}

// round begins the attempts that are due and for which there is room, and returns
// when the next one is due. Endpoints of accounts that have the fewest under way
// come first, and none takes more than its share of what is free.
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
			continue // whoever ends makes room
		}
		out, err := s.w.store.Claim(ctx, d.ID, n, s.w.cfg.Lease)
		s.give(d, n-len(out))
		if err != nil {
			return 0, err
		}
		for _, o := range out {
			s.sending.Go(func() {
				defer func() {
					s.give(d, 1)
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
	for k, v := range m {
		c[k] = v
	}
	return c
}

// reserve takes places for attempts at an endpoint, one of so many that want
// some.
func (s *sender) reserve(d DueEndpoint, wanting int) int {
	limit := s.w.cfg.Endpoint
	if d.Failing {
		limit = 1 // it may have to wait for the timeout each time
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

// give gives places back.
func (s *sender) give(d DueEndpoint, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy -= n
	for m, key := range map[*map[string]int]string{&s.endpoints: d.ID, &s.accounts: d.Account} {
		if (*m)[key] -= n; (*m)[key] == 0 {
			delete(*m, key)
		}
	}
}

// attempt makes one attempt at a delivery and stores what came of it.
func (w *Webhooks) attempt(ctx context.Context, o *ClaimedDelivery) {
	r := AttemptResult{FailingLimit: w.cfg.DisableAfter, FailingGap: failingGap}
	r.Attempt, r.Body = w.send(ctx, o)
	if ctx.Err() != nil && r.Attempt.Status == 0 {
		if err := w.store.Release(context.WithoutCancel(ctx), o); err != nil {
			w.cfg.Log.Error("a webhook is sent late", "delivery", o.ID, "err", err)
		}
		return
	}
	a := r.Attempt
	r.Delivered = a.Status >= 200 && a.Status < 300
	if a.Status == http.StatusGone {
		r.Disable = "the endpoint answered 410 Gone"
	}
	if o.Step < len(w.cfg.Schedule) {
		r.Retry = w.cfg.Schedule[o.Step]
	}
	w.count(a, r.Delivered)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	disabled, err := w.store.Record(ctx, o, r)
	switch {
	case errors.Is(err, status.ErrLost): // somebody else has it, or it was deleted
	case err != nil:
		w.cfg.Log.Error("a webhook may be sent again", "delivery", o.ID, "err", err)
	case disabled:
		w.cfg.Log.Warn("webhook endpoint disabled", "endpoint", o.Endpoint, "account", o.Account)
	}
}

// send makes a request.
func (w *Webhooks) send(ctx context.Context, o *ClaimedDelivery) (a Attempt, body []byte) {
	began := time.Now()
	a = Attempt{At: w.store.Now(), URL: o.Webhook.URL}
	defer func() { a.Took = time.Since(began) }()
	failed := func(msg string, err error) {
		a.Error = msg
		w.cfg.Log.Error("a webhook cannot be sent", "delivery", o.ID, "err", err)
	}
	body = o.Payload
	if body == nil {
		var err error
		if body, err = w.payload(ctx, o); err != nil {
			failed("the request could not be made", err)
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
		failed("the URL is not valid", err)
		return a, body
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "Filewright-Webhook")
	sign(req.Header, o.ID, time.Now(), body, keys)
	// No http.Client: it would follow redirects and keep cookies.
	resp, err := w.client.RoundTrip(req)
	if err != nil {
		a.Error = w.explain(err)
		w.cfg.Log.Debug("webhook failed", "delivery", o.ID, "endpoint", o.Endpoint, "err", err)
		return a, body
	}
	defer resp.Body.Close()
	a.Status = resp.StatusCode
	start, _ := io.ReadAll(io.LimitReader(resp.Body, maxResponse)) // the status says all
	a.Response = strings.ReplaceAll(strings.ToValidUTF8(string(start), "\ufffd"), "\x00", "\ufffd")
	if a.Status >= 300 && a.Status < 400 {
		a.Error = "redirects are not followed"
	}
	return a, body
}

// payload makes the body of a delivery. It survives a panic.
func (w *Webhooks) payload(ctx context.Context, o *ClaimedDelivery) (body []byte, err error) {
	defer func() {
		if r := recover(); r != nil {
			body, err = nil, errors.New("Config.Payload panicked")
			w.cfg.Log.Error("payload of a webhook panicked", "delivery", o.ID, "panic", r)
		}
	}()
	if o.Event == nil {
		return nil, errors.New("there is nothing to make a body of")
	}
	body, err = w.cfg.Payload(ctx, Event{Type: o.Type, Time: o.Created, Operation: o.Event})
	if err == nil && len(body) == 0 {
		err = errors.New("the body is empty")
	}
	return body, err
}

// explain says for the account why there was no answer. What names mean inside of
// the server's network is not its business.
func (w *Webhooks) explain(err error) string {
	var dns *net.DNSError
	var cert *tls.CertificateVerificationError
	var plain tls.RecordHeaderError
	var timeout interface{ Timeout() bool }
	switch {
	case errors.Is(err, errNotPublic):
		return errNotPublic.Error()
	case errors.Is(err, context.DeadlineExceeded):
		return "there was no answer within " + w.cfg.Timeout.String()
	case errors.As(err, &dns):
		return "the name of the host could not be resolved"
	case errors.As(err, &cert):
		return "the certificate is not valid: " + cert.Err.Error()
	case errors.As(err, &plain):
		return "the server does not speak TLS"
	case errors.As(err, &timeout) && timeout.Timeout():
		return "the connection timed out"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the connection was refused"
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return "the host is not reachable"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "the connection was closed without an answer"
	}
	return "the request failed"
}

// Outcomes of attempts that are counted.
const (
	outcomeDelivered = iota // acknowledged
	outcomeRefused          // another status
	outcomeNoAnswer         // none
	outcomeBlocked          // the address is not public
	outcomes
)

var outcomeNames = [outcomes]string{"delivered", "refused", "no_answer", "blocked"}

func (w *Webhooks) count(a Attempt, delivered bool) {
	outcome := outcomeNoAnswer
	switch {
	case delivered:
		outcome = outcomeDelivered
	case a.Status != 0:
		outcome = outcomeRefused
	case a.Error == errNotPublic.Error():
		outcome = outcomeBlocked
	}
	w.counts[outcome].Add(1)
}

// Stats are numbers about deliveries.
type Stats struct {
	Pending int           // deliveries that are not finished, on all processes
	Overdue time.Duration // for how long the delivery has been due that has been for longest

	// Attempts counts those of this process by what came of them: "delivered",
	// "refused" (another status), "no_answer", "blocked" (the address is not
	// public).
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
