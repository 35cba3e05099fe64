package remote

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	_ "embed"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/internal/netguard"
	"github.com/filewright/filewright/internal/seal"
	"github.com/filewright/filewright/status/transfer"
	"github.com/filewright/filewright/trace"
	"github.com/filewright/filewright/upload"
)

// ImportConfig configures [Imports]. The zero value is usable.
type ImportConfig struct {
	Store transfer.Store // accepted imports; nil: in memory

	// Secrets encrypt URLs and headers in the store: the first encrypts, all decrypt. Each has at
	// least 16 bytes. nil: one random secret, so accepted imports fail after a restart.
	Secrets [][]byte

	// Allow lists networks that requests may go to although they are not public: private, loopback,
	// link-local and so on.
	Allow []netip.Prefix

	TLS *tls.Config // of requests; nil: the default

	// Timeout is the longest time that a client may wait for an import, and Wait the time without
	// the member wait. 0: 10 minutes and 1 minute.
	Timeout, Wait time.Duration

	// Limits of one import. The size, the least rate and the longest pause are those of the service
	// (httpapi.Limits).
	Total     time.Duration // the whole import; 0: 1 hour
	Header    time.Duration // until the header of each response; 0: 30 seconds
	Redirects int           // 0: 5; negative: none

	Workers  int // concurrent imports; 0: 16. An account gets at most a quarter of them
	Accepted int // unfinished imports of an account; 0: 100

	Retention time.Duration // of failed imports, and of those of disabled accounts before they fail; 0: 24 hours

	// Exclusive declares that no other process runs imports: those of an earlier process continue at
	// once. Otherwise they continue when no process has renewed its claim for Lease (0: 30 seconds).
	Exclusive bool
	Lease     time.Duration

	// Tracer records a span for each attempt, in the trace of the request that started the import.
	// nil: none.
	Tracer trace.Tracer

	Log *slog.Logger // nil discards
}

// Imports reads files from URLs. Its method Extension adds the endpoint to a service, and Run does the
// work.
type Imports struct {
	cfg    ImportConfig
	runner *transfer.Runner
	sealer seal.Sealer
	svc    *httpapi.Service
	fetch  fetcher
}

//go:embed openapi.yaml
var document []byte

// kindImport is the kind of the transfers. Their IDs are the keys of the files.
const kindImport = "import"

// maxClaims bounds how often an import is started. A server that dies again and again must not repeat
// the same import forever.
const maxClaims = 20

// NewImports checks cfg. It starts nothing.
func NewImports(cfg ImportConfig) (*Imports, error) {
	cfg.Timeout = cmp.Or(cfg.Timeout, 10*time.Minute)
	cfg.Wait = min(cmp.Or(cfg.Wait, time.Minute), cfg.Timeout)
	cfg.Total = cmp.Or(cfg.Total, time.Hour)
	cfg.Header = cmp.Or(cfg.Header, 30*time.Second)
	cfg.Redirects = max(0, cmp.Or(cfg.Redirects, 5))
	cfg.Accepted = cmp.Or(cfg.Accepted, 100)
	if cfg.Store == nil {
		cfg.Store = new(transfer.MemStore)
	}
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	sealer, err := newSealer("filewright imports v1", cfg.Secrets)
	if err != nil {
		return nil, err
	}
	i := &Imports{cfg: cfg, sealer: sealer}
	i.runner = transfer.NewRunner(transfer.Config{
		Store: cfg.Store, Kind: kindImport, Handler: i, Workers: cfg.Workers, Retention: cfg.Retention, Exclusive: cfg.Exclusive, Lease: cfg.Lease, Log: cfg.Log,
	})
	i.fetch = fetcher{
		transport: netguard.NewTransport(netguard.Options{Allow: cfg.Allow, TLS: cfg.TLS}),
		allow:     cfg.Allow, redirects: cfg.Redirects, header: cfg.Header,
	}
	return i, nil
}

// newSealer returns a sealer for secrets, or for a random secret.
func newSealer(purpose string, secrets [][]byte) (seal.Sealer, error) {
	for _, s := range secrets {
		if len(s) < upload.MinSecret {
			return nil, errors.New("remote: a secret is shorter than 16 bytes")
		}
	}
	if secrets == nil {
		secret := make([]byte, 32)
		rand.Read(secret) // never fails, see its documentation
		secrets = [][]byte{secret}
	}
	return seal.New(purpose, secrets)
}

// Extension adds the endpoint to a service: it is for httpapi.Config.Extensions, of one service.
func (i *Imports) Extension(svc *httpapi.Service) httpapi.Extension {
	i.svc = svc
	return httpapi.Extension{OpenAPI: document, Files: i, Routes: []httpapi.Route{{
		Method: http.MethodPost, Path: "/api/v1/import", Handler: i.serve, Scope: httpapi.ScopeUpload,
	}}}
}

// Run imports files until ctx is done; running imports then have Limits.Drain to finish. Any number of processes may run imports of one store. The
// service of Extension must exist.
func (i *Imports) Run(ctx context.Context) error {
	limits := i.svc.Limits()
	i.fetch.rate, i.fetch.stall = max(0, limits.MinRate), limits.Stall
	return i.runner.Run(ctx, limits.Drain)
}

// An importRequest is the body of POST /import.
type importRequest struct {
	URL      string            `json:"url"`
	FileName string            `json:"file_name"`
	Headers  map[string]string `json:"headers"`
	Wait     waitText          `json:"wait"`
}

// A waitText is a time such as "30s", or a number of seconds.
type waitText string

// UnmarshalJSON implements json.Unmarshaler.
func (t *waitText) UnmarshalJSON(b []byte) error {
	var text string
	if json.Unmarshal(b, &text) == nil {
		*t = waitText(text)
	} else {
		*t = waitText(b) // a number; ParseWait refuses everything else
	}
	return nil
}

// A job is the sealed part of an import.
type job struct {
	URL      string            `json:"url"`
	FileName string            `json:"file_name,omitempty"`
	Headers  map[string]string `json:"headers,omitempty"`
	Trace    string            `json:"trace,omitempty"` // traceparent of the request
}

// A report is the public part of an import.
type report struct {
	FileName string   `json:"file_name,omitempty"`
	Failure  *failure `json:"failure,omitempty"`
}

type importResponse struct {
	FileKey string `json:"file_key"`
	State   string `json:"state"`
}

// serve answers POST /import.
func (i *Imports) serve(w http.ResponseWriter, r *http.Request) {
	who, _ := httpapi.PrincipalOf(r.Context())
	key, wait, err := i.accept(w, r, who.Account)
	if err != nil {
		i.svc.Fail(w, r, err)
		return
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Time{})
	f, err := i.svc.File(r.Context(), who.Account, key, wait)
	switch {
	case r.Context().Err() != nil: // the client has gone without learning the key
		i.discard(r, who.Account, key)
	case err != nil:
		i.discard(r, who.Account, key)
		i.svc.Fail(w, r, err)
	case f.State == httpapi.FileFailed:
		i.discard(r, who.Account, key)
		i.svc.Fail(w, r, (&failure{f.ErrorCode, f.ErrorMessage}).problem())
	case f.State == httpapi.FileImporting:
		w.Header().Set("Location", i.svc.Link("/api/v1/files/"+key))
		i.svc.ReplyStatus(w, http.StatusAccepted, importResponse{key, f.State})
	default:
		i.svc.Reply(w, importResponse{key, f.State})
	}
}

// accept checks a request and stores it.
func (i *Imports) accept(w http.ResponseWriter, r *http.Request, owner string) (key string, wait time.Duration, err error) {
	var req importRequest
	if err := i.svc.Decode(w, r, &req); err != nil {
		return "", 0, err
	}
	if _, err := netguard.Check(req.URL, i.cfg.Allow); err != nil {
		p := refused("url", err).problem()
		p.Param = "url"
		return "", 0, p
	}
	if err := checkHeaders("headers", req.Headers); err != nil {
		return "", 0, err
	}
	if len(req.FileName) > 1000 {
		return "", 0, httpapi.Invalid("file_name", "file_name has more than 1000 bytes")
	}
	wait = i.cfg.Wait
	if text := cmp.Or(string(req.Wait), r.URL.Query().Get("wait")); text != "" {
		if wait, err = httpapi.ParseWait(text); err != nil {
			return "", 0, err
		}
		wait = min(wait, i.cfg.Timeout)
	}
	var bits [16]byte
	rand.Read(bits[:]) // never fails, see its documentation
	key = upload.KeyOf(bits)
	plain, err := json.Marshal(job{req.URL, req.FileName, req.Headers, trace.Of(r.Context()).Traceparent()})
	if err != nil {
		return "", 0, err
	}
	state, err := json.Marshal(report{FileName: shown(req.FileName)})
	if err != nil {
		return "", 0, err
	}
	err = i.cfg.Store.Add(r.Context(), &transfer.Transfer{
		Kind: kindImport, ID: key, Owner: owner, Request: i.sealer.Seal(plain, key), State: state, Due: i.cfg.Store.Now(),
	}, i.cfg.Accepted)
	if errors.Is(err, transfer.ErrLimit) {
		p := httpapi.NewProblem(http.StatusTooManyRequests, "queue_full", "your account has %d unfinished imports; wait until some have ended", i.cfg.Accepted)
		p.RetryAfter = 5 * time.Second
		return "", 0, p
	}
	if err != nil {
		return "", 0, err
	}
	i.runner.Wake()
	return key, wait, nil
}

// shown returns a file name as responses show it.
func shown(name string) string {
	if strings.TrimSpace(name) == "" {
		return ""
	}
	return upload.CleanName(name)
}

// discard forgets an import that its client knows nothing of, and its file.
func (i *Imports) discard(r *http.Request, owner, key string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), time.Minute)
	defer cancel()
	err := i.runner.Cancel(ctx, key)
	if derr := i.svc.Uploads().Delete(ctx, owner, key); err == nil && !errors.Is(derr, fs.ErrNotExist) {
		err = derr
	}
	if err != nil {
		i.svc.Log(r).Warn("cannot forget an import; its file expires", "err", err)
	}
}

// PendingFile implements [httpapi.FileSource].
func (i *Imports) PendingFile(ctx context.Context, owner, key string) (*httpapi.FileInfo, error) {
	all, err := i.cfg.Store.Get(context.WithoutCancel(ctx), kindImport, key)
	if err != nil {
		return nil, err
	}
	t := all[key]
	if t == nil || t.Owner != owner {
		return nil, fs.ErrNotExist
	}
	if t.Finished.IsZero() && ctx.Err() == nil {
		if t, err = i.runner.Wait(ctx, key); err != nil {
			return nil, err
		}
		if t == nil {
			return nil, fs.ErrNotExist
		}
	}
	var rep report
	if err := json.Unmarshal(t.State, &rep); err != nil {
		return nil, err
	}
	f := &httpapi.FileInfo{FileKey: key, State: httpapi.FileImporting, FileName: rep.FileName, CreatedAt: t.Created}
	if rep.Failure != nil {
		f.State, f.ErrorCode, f.ErrorMessage = httpapi.FileFailed, rep.Failure.Code, rep.Failure.Message
	}
	return f, nil
}

// DropFile implements [httpapi.FileSource].
func (i *Imports) DropFile(ctx context.Context, owner, key string) error {
	all, err := i.cfg.Store.Get(ctx, kindImport, key)
	if err != nil {
		return err
	}
	if t := all[key]; t == nil || t.Owner != owner {
		return fs.ErrNotExist
	}
	return i.runner.Cancel(ctx, key)
}

// Handle implements [transfer.Handler].
func (i *Imports) Handle(ctx context.Context, t *transfer.Transfer, _ func([]byte) error) transfer.Result {
	var rep report
	_ = json.Unmarshal(t.State, &rep) // only the name in messages
	err := i.run(ctx, t)
	if err == nil {
		if errors.Is(context.Cause(ctx), transfer.ErrCancelled) {
			i.remove(context.WithoutCancel(ctx), t)
		}
		return transfer.Result{Remove: true} // the record of the file replaces it
	}
	if ctx.Err() != nil {
		return transfer.Result{} // it continues elsewhere
	}
	if !errors.As(err, &rep.Failure) {
		rep.Failure = i.explain(t, err)
	}
	state, err := json.Marshal(rep)
	if err != nil { // strings cannot fail to encode
		panic(err)
	}
	return transfer.Result{State: state, Finished: true}
}

// GiveUp implements [transfer.Handler].
func (i *Imports) GiveUp(t *transfer.Transfer) []byte {
	var rep report
	_ = json.Unmarshal(t.State, &rep) // only the name in messages
	rep.Failure = failed(codeDisabled, "the account was disabled before the file was imported; import it again")
	state, err := json.Marshal(rep)
	if err != nil { // strings cannot fail to encode
		panic(err)
	}
	return state
}

// remove deletes the file of an import that was cancelled while the file was stored.
func (i *Imports) remove(ctx context.Context, t *transfer.Transfer) {
	if err := i.svc.Uploads().Delete(ctx, t.Owner, t.ID); err != nil && !errors.Is(err, fs.ErrNotExist) {
		i.cfg.Log.Warn("cannot delete the file of a cancelled import; it expires", "file", t.ID, "err", err)
	}
}

// explain returns the failure for an error of the service.
func (i *Imports) explain(t *transfer.Transfer, err error) *failure {
	p := httpapi.ProblemOf(err)
	if p.Status >= 500 {
		i.cfg.Log.Error("import failed", "file", t.ID, "err", err)
	}
	if _, ok := statuses[p.Slug]; !ok {
		return failed("internal_error", "internal error; try again")
	}
	return failed(p.Slug, "%s", p.Detail)
}

// run imports a file.
func (i *Imports) run(ctx context.Context, t *transfer.Transfer) error {
	started := time.Now()
	var j job
	plain, ok := i.sealer.Open(t.Request, t.ID)
	if !ok || json.Unmarshal(plain, &j) != nil {
		return failed("internal_error", "cannot read the accepted request: it was encrypted with another secret")
	}
	if t.Claims > maxClaims {
		return failed("internal_error", "the import was interrupted too often")
	}
	if t.Claims > 1 {
		// An earlier attempt may have stored the file.
		if _, err := i.svc.Uploads().Get(ctx, t.Owner, t.ID); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if j.Trace == "" { // the request was not traced
		_, err := i.receive(ctx, t, &j)
		return err
	}
	ctx, span := trace.Root(ctx, i.cfg.Tracer, j.Trace, "import", trace.Client, time.Time{})
	f, err := i.receive(ctx, t, &j)
	span.Int("filewright.attempt", int64(t.Claims))
	span.Int("filewright.queue_ms", max(0, started.Sub(t.Created).Milliseconds()))
	if f != nil {
		span.Int("filewright.bytes", f.Size)
	}
	span.End(i.codeOf(ctx, err))
	return err
}

// codeOf returns the error code of an attempt, "" for success.
func (i *Imports) codeOf(ctx context.Context, err error) string {
	var why *failure
	switch {
	case err == nil:
		return ""
	case errors.As(err, &why):
		return why.Code
	case ctx.Err() != nil:
		return "interrupted"
	}
	return httpapi.ProblemOf(err).Slug
}

// receive reads the file of an import and stores it. The file is nil if another process stored it.
func (i *Imports) receive(ctx context.Context, t *transfer.Transfer, j *job) (*upload.File, error) {
	reading, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	total := time.AfterFunc(i.cfg.Total, func() {
		cancel(failed(codeTimeout, "the file did not arrive within %s", i.cfg.Total))
	})
	defer total.Stop()
	resp, last, err := i.fetch.open(reading, cancel, j.URL, j.Headers)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	first, err := url.Parse(j.URL)
	if err != nil {
		return nil, err
	}
	name := nameOf(j.FileName, resp.Header, first, last)
	body := i.fetch.newPacedReader(resp.Body, cancel)
	f, err := i.svc.Uploads().Receive(reading, upload.Request{
		Key: t.ID, Owner: t.Owner, Name: name, ContentType: contentType(resp.Header, name), Size: resp.ContentLength,
	}, body)
	var why *failure
	switch {
	case errors.Is(err, fs.ErrExist): // another process stored it
		return nil, nil
	case errors.As(context.Cause(reading), &why) && err != nil:
		return nil, why
	case err != nil && ctx.Err() == nil && body.err != nil:
		return nil, failed(codeIncomplete, "the response of the URL ends early or is malformed")
	}
	return f, err
}
