package gotenberg

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/internal/seal"
	"github.com/filewright/filewright/status/transfer"
	"github.com/filewright/filewright/upload"
)

// kindWebhook is the kind of the transfers. Each is a request whose result goes to a webhook.
const kindWebhook = "gotenberg"

// Limits of the requests whose results go to webhooks.
const (
	maxWebhooks = 1000 // of an account that are not finished
	maxWorkers  = 128  // that a process works on
	maxOfOwner  = 64   // of an account that a process works on
	maxStarts   = 10   // of the steps of a request. A server that dies again and again must not repeat it forever
)

// attempts is how often each webhook is tried. The pause before the second attempt is firstPause, and
// doubles with each attempt.
const (
	attempts   = 5
	firstPause = time.Second
)

// A job is an accepted request.
type job struct {
	Path      string // after prefix
	Values    map[string][]string
	Files     []jobFile
	Output    string `json:",omitempty"` // see call.output
	Trace     string
	RequestID string
	Key       string `json:",omitempty"` // ID of the API key
	Hook      *hook
}

// A jobFile is a file of a form.
type jobFile struct {
	Field, Name, Key string
	Size             int64
}

// A progress is the state of a job.
type progress struct {
	Starts   int       // of the steps
	Keys     []string  `json:",omitempty"` // of all files so far, to be deleted at the end
	Docs     []jobDoc  `json:",omitempty"` // results
	Failure  *jobError `json:",omitempty"` // of the steps, or of sending the result
	Phase    phase     // what follows
	Attempts int       `json:",omitempty"` // in this phase
	Ended    time.Time `json:",omitzero"`  // when the last phase began
}

type jobDoc struct{ Key, Name string }

type jobError struct {
	Message string `json:"message"`
	Status  int    `json:"status"`
}

// A phase is a part of the work on a job.
type phase int

const (
	phaseSteps phase = iota
	phaseResult
	phaseError
	phaseEvent
	phaseOver
)

func (p *progress) encode() []byte {
	b, err := json.Marshal(p)
	if err != nil { // strings and numbers cannot fail to encode
		panic(err)
	}
	return b
}

// next starts a phase.
func (p *progress) next(to phase) { p.Phase, p.Attempts = to, 0 }

// fail notes an error and starts the phase that reports it.
func (p *progress) fail(a *answer) {
	p.Failure = &jobError{a.text, a.status}
	p.next(phaseError)
}

// A running is a job while its steps run.
type running struct {
	ctx  context.Context // ends when the process stops or another one has taken over
	id   string          // of the transfer
	n    int             // submitted operations
	p    *progress
	save func([]byte) error
}

// next returns the key of the next operation, or "" if r is nil. The steps of a job are always the
// same, so after a restart a finished step is not repeated.
func (r *running) next() string {
	if r == nil {
		return ""
	}
	r.n++
	return fmt.Sprintf("gotenberg-%s-%d", r.id, r.n)
}

// note stores the keys of the files that are to be deleted at the end. If it fails, they expire.
func (r *running) note(keys []string) {
	if r != nil {
		r.p.Keys = keys
		_ = r.save(r.p.encode())
	}
}

// errStopping is the error of a request whose steps the end of the process interrupts.
var errStopping = &answer{status: http.StatusServiceUnavailable, text: "The service is shutting down"}

// continues reports whether steps that failed with err go on later, perhaps in another process.
func (c *call) continues(err error) bool {
	return c.later != nil && (errors.Is(err, errStopping) || c.stopping.Load() || c.later.ctx.Err() != nil)
}

// prepare makes what works for webhooks.
func (g *Routes) prepare() error {
	for _, s := range g.cfg.Secrets {
		if len(s) < upload.MinSecret {
			return errors.New("gotenberg: a secret is shorter than 16 bytes")
		}
	}
	secrets := g.cfg.Secrets
	if secrets == nil {
		secret := make([]byte, 32)
		rand.Read(secret) // never fails, see its documentation
		secrets = [][]byte{secret}
	}
	var err error
	if g.sealer, err = seal.New("filewright gotenberg v1", secrets); err != nil {
		return err
	}
	g.runner = transfer.NewRunner(transfer.Config{
		Store: g.cfg.Webhooks, Kind: kindWebhook, Handler: (*webhooks)(g), Workers: maxWorkers, PerOwner: maxOfOwner,
		Exclusive: g.cfg.Exclusive, Lease: g.cfg.Lease, Log: g.cfg.Log,
	})
	return nil
}

// Run works on the requests whose results go to webhooks until ctx is done. Running steps then have
// Limits.Drain to finish. The rest continues at the next start, or in another process with the same
// store. The service of Extension must exist.
func (g *Routes) Run(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() { g.stopping.Store(true) })()
	return g.runner.Run(ctx, g.svc.Limits().Drain)
}

// accept stores a request whose result goes to a webhook. Its files then belong to the job.
func (c *call) accept(to *hook, requestID string) error {
	who, _ := httpapi.PrincipalOf(c.r.Context())
	j := job{Path: strings.TrimPrefix(c.r.URL.Path, prefix), Values: c.form.values, Output: c.output, Trace: c.trace, RequestID: requestID, Key: who.KeyID, Hook: to}
	for _, f := range c.form.files {
		j.Files = append(j.Files, jobFile{f.field, f.name, f.key, f.size})
	}
	plain, err := json.Marshal(j)
	if err != nil {
		return err
	}
	if err := c.keep(c.keys); err != nil {
		return err
	}
	p := progress{Keys: c.keys}
	t := &transfer.Transfer{Kind: kindWebhook, ID: uuid.NewString(), Owner: c.owner, State: p.encode(), Due: c.cfg.Webhooks.Now()}
	t.Request = c.sealer.Seal(plain, t.ID)
	// A client that goes away now has perhaps seen the response already.
	err = c.cfg.Webhooks.Add(context.WithoutCancel(c.ctx), t, maxWebhooks)
	if errors.Is(err, transfer.ErrLimit) {
		return refuse(http.StatusTooManyRequests, "The request queue is full. Retry shortly.")
	}
	c.runner.Wake()
	return err
}

// keep makes files available for a run of all steps and all attempts to send the result.
func (c *call) keep(keys []string) error {
	for _, key := range keys {
		if err := c.svc.Uploads().Keep(c.ctx, c.owner, key, time.Now().Add(c.cfg.Timeout+time.Hour)); err != nil {
			return err
		}
	}
	return nil
}

// webhooks implements [transfer.Handler].
type webhooks Routes

// call returns the call of a job.
func (w *webhooks) call(ctx context.Context, t *transfer.Transfer, j *job, p *progress) *call {
	c := &call{Routes: (*Routes)(w), ctx: ctx, owner: t.Owner, trace: j.Trace, output: j.Output, keys: p.Keys}
	c.r = httpapi.Resumed(ctx, httpapi.Principal{Account: t.Owner, KeyID: j.Key}, j.RequestID)
	c.form.values = j.Values
	for _, f := range j.Files {
		c.form.files = append(c.form.files, file{f.Field, f.Name, f.Key, f.Size})
	}
	return c
}

// Handle implements [transfer.Handler]: it makes one attempt at the current phase, and at those that
// follow without a pause.
func (w *webhooks) Handle(ctx context.Context, t *transfer.Transfer, save func([]byte) error) transfer.Result {
	var p progress
	var j job
	plain, ok := w.sealer.Open(t.Request, t.ID)
	if !ok || json.Unmarshal(plain, &j) != nil || json.Unmarshal(t.State, &p) != nil {
		w.cfg.Log.Error("cannot read an accepted request: it was encrypted with another secret; its files expire", "transfer", t.ID)
		return transfer.Result{Remove: true}
	}
	c := w.call(ctx, t, &j, &p)
	for p.Phase != phaseOver {
		from := p.Phase
		wait := c.advance(t.ID, &j, &p, save)
		if ctx.Err() != nil {
			return transfer.Result{}
		}
		if p.Phase == from {
			return transfer.Result{State: p.encode(), Retry: wait}
		}
		if err := save(p.encode()); err != nil && ctx.Err() == nil {
			c.cfg.Log.Warn("cannot record a request; it may be repeated", "trace", c.trace, "err", err)
		}
	}
	<-c.svc.Discard(c.r, c.owner, p.Keys)
	return transfer.Result{Remove: true}
}

// GiveUp implements [transfer.Handler].
func (w *webhooks) GiveUp(t *transfer.Transfer) []byte {
	var p progress
	if err := json.Unmarshal(t.State, &p); err != nil {
		w.cfg.Log.Error("the state of a request cannot be read", "transfer", t.ID, "err", err)
	}
	c := w.call(context.Background(), t, new(job), &p)
	<-c.svc.Discard(c.r, c.owner, p.Keys)
	return nil
}

// advance makes one attempt at a phase. If the phase stays the same, the next attempt follows after
// wait.
func (c *call) advance(id string, j *job, p *progress, save func([]byte) error) (wait time.Duration) {
	var final bool
	var err error
	switch p.Phase {
	case phaseSteps:
		c.steps(id, j, p, save)
		return time.Second // if the process stops
	case phaseResult:
		docs := make([]doc, len(p.Docs))
		for i, d := range p.Docs {
			docs[i] = doc{d.Key, d.Name}
		}
		final, err = c.deliver(j.Hook, docs)
	case phaseError:
		if j.Hook.ErrorURL != "" {
			final, err = c.tell(j.Hook, j.Hook.ErrorMethod, j.Hook.ErrorURL, p.Failure)
		}
	case phaseEvent:
		if j.Hook.EventsURL != "" {
			final, err = c.tell(j.Hook, http.MethodPost, j.Hook.EventsURL, p.event(c.trace))
		}
	}
	p.Attempts++
	if err != nil && !final && p.Attempts < attempts {
		return firstPause << (p.Attempts - 1)
	}
	if err != nil && c.ctx.Err() == nil {
		c.svc.Log(c.r).Warn("a webhook did not accept a request", "trace", c.trace, "err", err)
	}
	switch {
	case p.Phase == phaseResult && err != nil:
		p.fail(c.answerOf(err))
	case p.Phase == phaseEvent:
		p.next(phaseOver)
	default:
		p.Ended = time.Now().UTC()
		p.next(phaseEvent)
	}
	return 0
}

// steps runs the steps of a job. If they are interrupted, the phase stays the same.
func (c *call) steps(id string, j *job, p *progress, save func([]byte) error) {
	parent := c.ctx
	defer func() { c.ctx = parent }()
	h := c.handlers[j.Path]
	if p.Starts++; p.Starts > maxStarts || h == nil {
		p.fail(&answer{status: http.StatusInternalServerError, text: http.StatusText(http.StatusInternalServerError)})
		return
	}
	if err := save(p.encode()); err != nil && parent.Err() == nil {
		c.cfg.Log.Warn("cannot record a request; it may be repeated", "trace", c.trace, "err", err)
	}
	var cancel context.CancelFunc
	c.ctx, cancel = context.WithTimeout(parent, c.cfg.Timeout)
	defer cancel()
	c.later = &running{ctx: parent, id: id, p: p, save: save}
	docs, err := h(c)
	keys := make([]string, len(docs))
	for i, d := range docs {
		keys[i] = d.key
	}
	switch {
	case err != nil && c.continues(err):
		p.Starts-- // it did not crash
		return
	case err == nil && len(docs) == 0:
		err = refuse(http.StatusBadRequest, "The webhook middleware can only work with multipart/form-data routes that results in output files")
	case err == nil:
		err = c.keep(keys)
	}
	p.Keys = c.keys
	if err != nil {
		p.fail(c.answerOf(err))
		return
	}
	for _, d := range docs {
		p.Docs = append(p.Docs, jobDoc{d.key, d.name})
	}
	p.next(phaseResult)
}

// event returns the body of the request to the webhook for events.
func (p *progress) event(trace string) any {
	e := struct {
		Event         string    `json:"event"`
		CorrelationID string    `json:"correlationId"`
		Timestamp     string    `json:"timestamp"`
		Error         *jobError `json:"error,omitempty"`
	}{"webhook.success", trace, p.Ended.Format(time.RFC3339Nano), p.Failure}
	if p.Failure != nil {
		e.Event = "webhook.error"
	}
	return e
}
