package remote

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/internal/backoff"
	"github.com/filewright/filewright/internal/netguard"
	"github.com/filewright/filewright/internal/seal"
	"github.com/filewright/filewright/status"
	"github.com/filewright/filewright/status/transfer"
	"github.com/filewright/filewright/trace"
	"github.com/filewright/filewright/upload"
	"github.com/filewright/filewright/upload/blob"
)

// DeliveryConfig configures [Deliveries]. The zero value is usable.
type DeliveryConfig struct {
	Store transfer.Store // accepted deliveries; nil: in memory

	// Secrets encrypt URLs and headers in the store: the first encrypts, all decrypt. Each has at
	// least 16 bytes. nil: one random secret, so accepted deliveries fail after a restart.
	Secrets [][]byte

	// Allow lists networks that requests may go to although they are not public: private, loopback,
	// link-local and so on.
	Allow []netip.Prefix

	TLS *tls.Config // of requests; nil: the default

	// Schedule holds the pauses between a failed attempt and the next. nil: that of webhooks, 5
	// seconds, 5 and 30 minutes, 2, 5, 10, 14, 20 and 24 hours.
	Schedule []time.Duration

	Total    time.Duration // longest attempt; 0: 1 hour
	Header   time.Duration // from the last byte to the header of the response; 0: 1 minute
	Workers  int           // operations whose results are delivered at once; 0: 16. An account gets at most a quarter of them
	Accepted int           // unfinished deliveries of an account; 0: 10000

	Retention time.Duration // of the states of finished deliveries, and of those of disabled accounts before they fail; 0: 7 days

	// Exclusive declares that no other process delivers: deliveries of an earlier process continue at
	// once. Otherwise they continue when no process has renewed its claim for Lease (0: 30 seconds).
	Exclusive bool
	Lease     time.Duration

	// Tracer records a span for each attempt, in the trace of the operation; requests then have its
	// traceparent. nil: none.
	Tracer trace.Tracer

	Log *slog.Logger // nil discards
}

// Deliveries writes the results of operations to URLs. Its method Extension adds the member deliver to
// POST /do of a service, and Run does the work.
type Deliveries struct {
	cfg       DeliveryConfig
	runner    *transfer.Runner
	sealer    seal.Sealer
	transport http.RoundTripper
	svc       *httpapi.Service

	mu      sync.Mutex
	waiting map[string]bool // operations of this process that are not final
	without map[string]bool // operations that are known to have no targets; they never get any
}

// kindDelivery is the kind of the transfers. Their IDs are those of the operations.
const kindDelivery = "delivery"

// NewDeliveries checks cfg. It starts nothing.
func NewDeliveries(cfg DeliveryConfig) (*Deliveries, error) {
	if cfg.Schedule == nil {
		cfg.Schedule = backoff.Days()
	}
	for _, d := range cfg.Schedule {
		if d <= 0 {
			return nil, fmt.Errorf("remote: invalid duration %v in DeliveryConfig.Schedule", d)
		}
	}
	cfg.Total = cmp.Or(cfg.Total, time.Hour)
	cfg.Header = cmp.Or(cfg.Header, time.Minute)
	cfg.Accepted = cmp.Or(cfg.Accepted, 10000)
	cfg.Retention = cmp.Or(cfg.Retention, 7*24*time.Hour)
	if cfg.Store == nil {
		cfg.Store = new(transfer.MemStore)
	}
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	sealer, err := newSealer("filewright deliveries v1", cfg.Secrets)
	if err != nil {
		return nil, err
	}
	d := &Deliveries{cfg: cfg, sealer: sealer, waiting: make(map[string]bool), without: make(map[string]bool)}
	d.transport = netguard.NewTransport(netguard.Options{Allow: cfg.Allow, TLS: cfg.TLS})
	d.runner = transfer.NewRunner(transfer.Config{
		Store: cfg.Store, Kind: kindDelivery, Handler: d, Workers: cfg.Workers, Retention: cfg.Retention, Exclusive: cfg.Exclusive, Lease: cfg.Lease, Log: cfg.Log,
	})
	return d, nil
}

// Extension adds deliver to a service: it is for httpapi.Config.Extensions, of one service.
func (d *Deliveries) Extension(svc *httpapi.Service) httpapi.Extension {
	d.svc = svc
	return httpapi.Extension{Delivery: d}
}

// Run delivers until ctx is done; running deliveries then have Limits.Drain to finish. Any number of
// processes may run deliveries of one store. The service of Extension must exist.
func (d *Deliveries) Run(ctx context.Context) error { return d.runner.Run(ctx, d.svc.Limits().Drain) }

// Ended makes the results of an operation be delivered at once. It is for httpapi.Config.OnFinal;
// without it they are delivered some seconds later.
func (d *Deliveries) Ended(ctx context.Context, op *status.Operation) {
	d.mu.Lock()
	waits := d.waiting[op.ID]
	delete(d.waiting, op.ID)
	d.mu.Unlock()
	if !waits && d.cfg.Exclusive {
		return
	}
	Hasten(d.cfg.Store, d.cfg.Log)(ctx, op) // another process may have accepted the operation
	if waits {
		d.runner.Wake()
	}
}

// Hasten returns a function for httpapi.Config.OnFinal of a process that runs operations but no
// deliveries: other processes of the store then deliver results within a second. log may be nil.
func Hasten(store transfer.Store, log *slog.Logger) func(context.Context, *status.Operation) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return func(ctx context.Context, op *status.Operation) {
		if err := store.Hasten(ctx, kindDelivery, op.ID); err != nil {
			log.Warn("the delivery of an operation starts late", "operation", op.ID, "err", err)
		}
	}
}

// Placeholders in the URL of a target.
const (
	placeIndex = "{index}" // the number of the result, from 1
	placeName  = "{name}"  // its file name
)

// expand returns the URL of a target for the n-th result.
func expand(text string, n int, name string) string {
	return strings.NewReplacer(placeIndex, strconv.Itoa(n), placeName, url.PathEscape(name)).Replace(text)
}

// forAll reports whether targets are one URL for all results.
func forAll(targets []httpapi.DeliveryTarget) bool {
	return len(targets) == 1 && expand(targets[0].URL, 1, "a") != targets[0].URL
}

// CheckDelivery implements [httpapi.Delivery].
func (d *Deliveries) CheckDelivery(op *status.Operation, targets []httpapi.DeliveryTarget) error {
	if !forAll(targets) && len(op.Steps) == 0 && len(targets) < len(op.Items) { // a later step may join files
		return httpapi.Invalid("deliver", "deliver has %d URLs for %d results; give one for each result, or one URL with %s or %s", len(targets), len(op.Items), placeIndex, placeName)
	}
	for n, t := range targets {
		param := fmt.Sprintf("deliver[%d].url", n)
		u, err := netguard.Check(expand(t.URL, 1, "a"), d.cfg.Allow)
		if err == nil {
			// A placeholder elsewhere would let file names choose the server.
			if v, verr := netguard.Check(expand(t.URL, 2, "b"), d.cfg.Allow); verr != nil || v.Host != u.Host {
				return httpapi.Invalid(param, "%s can have placeholders only in its path and query", param)
			}
		}
		if err != nil {
			p := refused(param, err).problem()
			p.Param = param
			return p
		}
		if err := checkHeaders(fmt.Sprintf("deliver[%d].headers", n), t.Headers); err != nil {
			return err
		}
	}
	return nil
}

// AddDelivery implements [httpapi.Delivery].
func (d *Deliveries) AddDelivery(ctx context.Context, op *status.Operation, targets []httpapi.DeliveryTarget) error {
	plain, err := json.Marshal(targets)
	if err != nil {
		return err
	}
	d.mu.Lock()
	if len(d.waiting) >= maxKnown { // operations of other processes; what is forgotten starts late
		clear(d.waiting)
	}
	d.waiting[op.ID] = true
	d.mu.Unlock()
	err = d.cfg.Store.Add(ctx, &transfer.Transfer{
		Kind: kindDelivery, ID: op.ID, Owner: op.Owner, Request: d.sealer.Seal(plain, op.ID), Due: d.cfg.Store.Now().Add(firstLook),
	}, d.cfg.Accepted)
	if err != nil {
		d.forget(op.ID)
	}
	if errors.Is(err, transfer.ErrLimit) {
		p := httpapi.NewProblem(http.StatusTooManyRequests, "queue_full", "your account has %d unfinished deliveries; wait until some have ended", d.cfg.Accepted)
		p.RetryAfter = time.Minute
		return p
	}
	return err
}

// DropDelivery implements [httpapi.Delivery].
func (d *Deliveries) DropDelivery(ctx context.Context, operation string) error {
	d.forget(operation)
	return d.runner.Cancel(ctx, operation)
}

func (d *Deliveries) forget(operation string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.waiting, operation)
}

// maxKnown bounds what is remembered of operations.
const maxKnown = 10000

// Deliveries implements [httpapi.Delivery].
func (d *Deliveries) Deliveries(ctx context.Context, operations []string) (map[string]map[string]httpapi.DeliveryStatus, error) {
	// Most operations have no targets, and clients look at them often.
	var ids []string
	d.mu.Lock()
	for _, id := range operations {
		if !d.without[id] {
			ids = append(ids, id)
		}
	}
	d.mu.Unlock()
	if len(ids) == 0 {
		return nil, nil
	}
	all, err := d.cfg.Store.Get(ctx, kindDelivery, ids...)
	if err != nil {
		return nil, err
	}
	out := make(map[string]map[string]httpapi.DeliveryStatus)
	for id, t := range all {
		p, err := parseProgress(t.State)
		if err != nil {
			return nil, err
		}
		states := make(map[string]httpapi.DeliveryStatus)
		for _, f := range p.Files {
			states[f.Key] = f.status()
		}
		out[id] = states
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, id := range ids {
		if all[id] != nil {
			continue
		}
		if len(d.without) >= maxKnown {
			clear(d.without)
		}
		d.without[id] = true
	}
	return out, nil
}

// A progress is the public part of the deliveries of an operation.
type progress struct {
	Files []*delivery `json:"files,omitempty"` // empty: the operation was not final
	Trace string      `json:"trace,omitempty"` // status.Origin.Trace of the operation
}

// A delivery is that of one result.
type delivery struct {
	N        int       `json:"n"` // number of the element of files_data, from 1
	Key      string    `json:"key"`
	Name     string    `json:"name"`
	Type     string    `json:"type"`
	Attempts int       `json:"attempts,omitempty"`
	Next     time.Time `json:"next,omitzero"`
	Ended    time.Time `json:"ended,omitzero"` // zero: pending
	Failure  *failure  `json:"failure,omitempty"`
}

func parseProgress(state []byte) (p progress, err error) {
	if state != nil {
		err = json.Unmarshal(state, &p)
	}
	return p, err
}

func (p progress) encode() []byte {
	b, err := json.Marshal(p)
	if err != nil { // strings and numbers cannot fail to encode
		panic(err)
	}
	return b
}

// status returns the public view of a delivery.
func (f *delivery) status() httpapi.DeliveryStatus {
	s := httpapi.DeliveryStatus{State: httpapi.DeliveryPending, Attempts: f.Attempts, NextAttempt: f.Next}
	if f.Failure != nil {
		s.ErrorCode, s.ErrorMessage = f.Failure.Code, f.Failure.Message
	}
	switch {
	case f.Ended.IsZero():
	case f.Failure != nil:
		s.State, s.NextAttempt = httpapi.DeliveryFailed, time.Time{}
	default:
		s.State, s.NextAttempt, s.DeliveredAt = httpapi.DeliveryDelivered, time.Time{}, f.Ended
	}
	return s
}

// Times of looking at an operation that is not final. A look costs one read; the pause grows with the
// time that the operation has taken.
const (
	firstLook = 500 * time.Millisecond
	lastLook  = 15 * time.Second

	// orphaned is the age from which a delivery without an operation is given up.
	orphaned = time.Hour
)

// Handle implements [transfer.Handler].
func (d *Deliveries) Handle(ctx context.Context, t *transfer.Transfer, save func([]byte) error) transfer.Result {
	later := transfer.Result{Retry: max(firstLook, min(d.cfg.Store.Now().Sub(t.Created), lastLook))}
	p, err := parseProgress(t.State)
	if err == nil && len(p.Files) == 0 {
		var op *status.Operation
		op, err = d.svc.Operations().Get(ctx, t.Owner, t.ID)
		switch {
		case errors.Is(err, fs.ErrNotExist) && d.cfg.Store.Now().Sub(t.Created) > orphaned:
			return transfer.Result{Finished: true}
		case err != nil || !op.State.Final():
		default:
			d.forget(t.ID)
			p.Files, p.Trace = filesOf(op.Shown()), op.Origin.Trace
			if len(p.Files) == 0 { // everything failed
				return transfer.Result{Finished: true}
			}
			err = d.keep(ctx, t.Owner, p.Files, 0)
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) && ctx.Err() == nil {
		d.cfg.Log.Warn("a delivery is put off", "operation", t.ID, "err", err)
	}
	if err != nil || len(p.Files) == 0 {
		return later
	}
	var targets []httpapi.DeliveryTarget
	if plain, ok := d.sealer.Open(t.Request, t.ID); !ok || json.Unmarshal(plain, &targets) != nil {
		for _, f := range p.Files {
			f.end(d.cfg.Store.Now(), failed("internal_error", "cannot read the accepted request: it was encrypted with another secret"))
		}
	}
	for _, f := range p.Files {
		if !f.Ended.IsZero() || f.Next.After(d.cfg.Store.Now()) {
			continue
		}
		d.attempt(ctx, t, f, targets, p.Trace)
		if ctx.Err() != nil {
			return transfer.Result{}
		}
		if err := save(p.encode()); err != nil && !errors.Is(err, status.ErrLost) {
			d.cfg.Log.Warn("cannot record a delivery; it may be repeated", "operation", t.ID, "err", err)
		}
	}
	return p.result(d.cfg.Store.Now())
}

// result says whether all files have been delivered, and when to continue otherwise.
func (p progress) result(now time.Time) transfer.Result {
	result := transfer.Result{State: p.encode(), Finished: true}
	for _, f := range p.Files {
		if f.Ended.IsZero() {
			wait := max(0, f.Next.Sub(now))
			if result.Finished || wait < result.Retry {
				result.Retry = wait
			}
			result.Finished = false
		}
	}
	return result
}

// GiveUp implements [transfer.Handler].
func (d *Deliveries) GiveUp(t *transfer.Transfer) []byte {
	d.forget(t.ID)
	p, err := parseProgress(t.State)
	if err != nil {
		d.cfg.Log.Error("the state of a delivery cannot be read", "operation", t.ID, "err", err)
	}
	for _, f := range p.Files {
		if f.Ended.IsZero() {
			f.end(d.cfg.Store.Now(), failed(codeDisabled, "the account was disabled before the result was delivered"))
		}
	}
	return p.encode()
}

// filesOf returns the deliveries of the results of a final operation.
func filesOf(op *status.Operation) (files []*delivery) {
	n := 0
	for _, it := range op.Items {
		for _, res := range it.Results {
			n++
			files = append(files, &delivery{N: n, Key: res.Key, Name: res.Name, Type: res.ContentType})
		}
		if len(it.Results) == 0 {
			n++ // the input is an element of files_data
		}
	}
	return files
}

// keep makes results available for an attempt that starts after wait.
func (d *Deliveries) keep(ctx context.Context, owner string, files []*delivery, wait time.Duration) error {
	for _, f := range files {
		err := d.svc.Uploads().Keep(ctx, owner, f.Key, time.Now().Add(wait+d.cfg.Total+time.Hour))
		if err != nil && !gone(err) {
			return err
		}
	}
	return nil
}

// gone reports whether a result was deleted or has expired.
func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, upload.ErrExpired) || errors.Is(err, upload.ErrContentLost)
}

// end records that no attempt follows.
func (f *delivery) end(at time.Time, why *failure) { f.Ended, f.Failure, f.Next = at, why, time.Time{} }

// attempt makes one attempt at a delivery.
func (d *Deliveries) attempt(ctx context.Context, t *transfer.Transfer, f *delivery, targets []httpapi.DeliveryTarget, parent string) {
	target := targets[0]
	if !forAll(targets) {
		if f.N > len(targets) {
			f.end(d.cfg.Store.Now(), failed("url_missing", "the operation has more results than deliver has URLs"))
			return
		}
		target = targets[f.N-1]
	}
	f.Attempts++
	err := d.traced(ctx, t, f, target, parent)
	if ctx.Err() != nil {
		return
	}
	now := d.cfg.Store.Now()
	if err == nil {
		f.end(now, nil)
		return
	}
	var why *failure
	if !errors.As(err, &why) {
		d.cfg.Log.Error("cannot deliver a result", "operation", t.ID, "file", f.Key, "err", err)
		why = failed("internal_error", "the server could not read the result")
	}
	if why.Code == codeGone || why.Code == codeResultGone || f.Attempts > len(d.cfg.Schedule) {
		f.end(now, why)
		return
	}
	wait := d.cfg.Schedule[f.Attempts-1]
	f.Failure, f.Next = why, now.Add(wait)
	if err := d.keep(ctx, t.Owner, []*delivery{f}, wait); err != nil {
		d.cfg.Log.Warn("cannot keep a result for its delivery", "file", f.Key, "err", err)
	}
}

// Codes of failures that no attempt follows.
const (
	codeGone       = "url_gone"    // the server of the URL responded with 410
	codeResultGone = "result_gone" // the result was deleted or has expired
)

// largeBody is the size from which a server is asked before it gets a body. A server that refuses a
// request and closes the connection meanwhile would otherwise look unreachable.
const largeBody = 1 << 20

// traced sends a result in a span of the trace of its operation.
func (d *Deliveries) traced(ctx context.Context, t *transfer.Transfer, f *delivery, target httpapi.DeliveryTarget, parent string) error {
	if d.cfg.Tracer == nil || parent == "" {
		return d.put(ctx, t.Owner, f, target)
	}
	ctx, span := trace.Root(ctx, d.cfg.Tracer, parent, "delivery", trace.Client, time.Time{})
	err := d.put(ctx, t.Owner, f, target)
	span.String("filewright.operation", t.ID)
	span.Int("filewright.result", int64(f.N))
	span.Int("filewright.attempt", int64(f.Attempts))
	code := ""
	if err != nil {
		code = "internal_error"
		var why *failure
		if errors.As(err, &why) {
			code = why.Code
		}
	}
	span.End(code)
	return err
}

// put sends a result.
func (d *Deliveries) put(ctx context.Context, owner string, f *delivery, target httpapi.DeliveryTarget) error {
	rec, obj, err := d.svc.Uploads().Open(ctx, owner, f.Key)
	if gone(err) {
		return failed(codeResultGone, "the result was deleted or has expired")
	}
	if err != nil {
		return err
	}
	defer obj.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	late := time.AfterFunc(d.cfg.Total, func() {
		cancel(failed(codeTimeout, "the result could not be sent within %s", d.cfg.Total))
	})
	defer late.Stop()
	body := &sentReader{r: blob.NewReader(obj)}
	defer d.watch(body, rec.Size, cancel)()
	text := expand(target.URL, f.N, f.Name)
	if _, err := netguard.Check(text, d.cfg.Allow); err != nil {
		return refused("the URL", err)
	}
	var in io.Reader = body
	if rec.Size == 0 {
		in = http.NoBody
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, text, in)
	if err != nil {
		return failed("invalid_request", "the URL is not valid")
	}
	req.ContentLength, req.URL.Fragment = rec.Size, ""
	req.Header.Set("Content-Type", f.Type)
	req.Header.Set("User-Agent", "Filewright-Delivery")
	if parent := trace.Of(ctx).Traceparent(); parent != "" {
		req.Header.Set("Traceparent", parent)
	}
	setHeaders(req.Header, target.Headers)
	if rec.Size >= largeBody {
		req.Header.Set("Expect", "100-continue")
	}
	resp, err := d.transport.RoundTrip(req)
	if err != nil {
		return unreachable(ctx, err)
	}
	defer resp.Body.Close()
	switch code := resp.StatusCode; {
	case code >= 200 && code <= 299:
		return nil
	case code == http.StatusGone:
		return failed(codeGone, "the server of the URL responded with 410 Gone")
	case code >= 300 && code <= 399:
		return failed(codeRedirect, "the server of the URL responded with %d; redirects are not followed", code)
	default:
		return failed(codeStatus, "the server of the URL responded with %d %s", code, http.StatusText(code))
	}
}

// A sentReader counts what was read.
type sentReader struct {
	r io.Reader
	n atomic.Int64
}

// Read implements io.Reader.
func (s *sentReader) Read(b []byte) (int, error) {
	n, err := s.r.Read(b)
	s.n.Add(int64(n))
	return n, err
}

// watch ends a request with cancel if its body of size bytes is read too slowly, or if it takes too
// long to respond afterwards.
func (d *Deliveries) watch(body *sentReader, size int64, cancel context.CancelCauseFunc) (stop func()) {
	limits := d.svc.Limits()
	least := max(1, limits.MinRate*int64(limits.Stall/time.Millisecond)/1000)
	done := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		every := time.NewTicker(limits.Stall)
		defer every.Stop()
		var before int64
		var idle time.Duration // since the body was sent
		for {
			select {
			case <-done:
				return
			case <-every.C:
			}
			n := body.n.Load()
			switch {
			case n >= size && before >= size:
				if idle += limits.Stall; idle >= d.cfg.Header {
					cancel(failed(codeTimeout, "the server of the URL did not respond within %s", d.cfg.Header))
					return
				}
			case n < size && n-before < least:
				cancel(failed(codeTimeout, "the server of the URL is too slow: it read %d bytes in %s", n-before, limits.Stall))
				return
			}
			before = n
		}
	})
	return func() { close(done); watching.Wait() }
}
