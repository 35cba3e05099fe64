package httpapi_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/internal/apicheck"
	"github.com/filewright/filewright/internal/logtest"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/status"
	"github.com/filewright/filewright/upload"
	"github.com/filewright/filewright/upload/blob"
	"github.com/filewright/filewright/upload/blob/memblob"
)

// shout is a test action that writes text in capitals. With a password it checks that the secret
// reaches the action and nothing else.
func shout() fileops.Action {
	spec := fileops.Spec{
		Name: "convert", Engine: "go", Family: "text", Summary: "Writes text in capitals.",
		Accepts: []fileops.Accept{{Formats: []format.Format{format.TXT}, Params: fileops.Schema{
			fileops.Enum("convert_to", "Target.", "md"),
			{Name: "password", Doc: "Not needed.", Secret: true},
			{Name: "second_key", Doc: "A second file.", Type: fileops.Upload, Formats: []format.Format{format.TXT, format.MD}},
			{Name: "mode", Doc: "What to do.", Enum: []string{"work", "panic", "hang", "unavailable", "warn"}, Default: "work"},
		}}},
	}
	return fileops.Func(spec, func(ctx context.Context, job *fileops.Job) error {
		b, err := job.Input().ReadAll(1 << 20)
		if err != nil {
			return err
		}
		if f := job.Extra["second_key"]; f != nil {
			more, err := f.ReadAll(1 << 20)
			if err != nil {
				return err
			}
			b = append(b, more...)
		}
		switch job.Params.Get("mode") {
		case "panic":
			panic("as asked")
		case "hang":
			<-ctx.Done()
			return ctx.Err()
		case "unavailable":
			return fileops.Fail(fileops.ErrUnavailable, nil, "")
		case "warn":
			job.Warn(fileops.WarnLinksDropped, "%d links were left out", 3)
		}
		return job.WriteBytes(fileops.ResultName(job.Input(), format.MD), bytes.ToUpper(b))
	})
}

// api is a service under test. It checks every response against the service's own OpenAPI document.
type api struct {
	*httptest.Server
	svc    *httpapi.Service
	check  *apicheck.Checker
	log    *logtest.Buffer
	client *http.Client
}

func serve(t *testing.T, cfg httpapi.Config) *api {
	t.Helper()
	a := &api{log: &logtest.Buffer{}, client: http.DefaultClient}
	a.start(t, cfg, httptest.NewServer)
	return a
}

// start starts the service with a server that listen creates.
func (a *api) start(t *testing.T, cfg httpapi.Config, listen func(http.Handler) *httptest.Server) {
	t.Helper()
	cfg.Log = slog.New(slog.NewTextHandler(a.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	cfg.TempDir = t.TempDir()
	if cfg.Actions == nil {
		cfg.Actions = []fileops.Action{shout()}
	}
	if cfg.Auth == nil {
		cfg.Auth = httpapi.StaticKeys("key-a", "key-b")
	}
	svc, err := httpapi.New(cfg)
	systest.NoError(t, err)
	a.svc = svc
	a.Server = listen(svc)
	t.Cleanup(a.Close)
	systest.Start(t, svc.Run)
	a.learn(t)
}

// learn loads the service's current document for checking responses.
func (a *api) learn(t *testing.T) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", a.URL+"/openapi.json", nil)
	systest.NoError(t, err)
	_, doc := systest.SendBy(t, a.client, req)
	a.check = checker(t, doc)
}

// checkers holds the checkers of documents. Most services of these tests have the same document, and
// compiling its schemas takes a quarter of a second.
var checkers sync.Map // [sha256.Size]byte -> func() (*apicheck.Checker, error)

func checker(t *testing.T, doc []byte) *apicheck.Checker {
	t.Helper()
	compile, _ := checkers.LoadOrStore(sha256.Sum256(doc), sync.OnceValues(func() (*apicheck.Checker, error) { return apicheck.New(doc) }))
	c, err := compile.(func() (*apicheck.Checker, error))()
	systest.NoError(t, err)
	return c
}

func (a *api) call(t *testing.T, key, method, path, body string) (int, map[string]any) {
	t.Helper()
	if !strings.HasPrefix(path, "http") {
		path = a.URL + path
	}
	req, err := http.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	systest.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+key)
	resp, raw := systest.SendBy(t, a.client, req)
	if err := a.check.Response(method, req.URL.Path, resp.StatusCode, resp.Header, raw); err != nil {
		t.Errorf("%s %s: %v\n%s", method, req.URL.Path, err, raw)
	}
	var m map[string]any
	json.Unmarshal(raw, &m)
	if m == nil {
		m = map[string]any{"raw": string(raw), "etag": resp.Header.Get("ETag")}
	}
	return resp.StatusCode, m
}

func (a *api) upload(t *testing.T, key, name, content string) string {
	t.Helper()
	st, m := a.call(t, key, "POST", "/api/v1/initiate-upload", fmt.Sprintf(`{"file_name":%q,"size":%d,"mime_type":"text/plain"}`, name, len(content)))
	if st != 200 {
		t.Fatalf("initiate: %d %v", st, m)
	}
	st, put := a.call(t, "", "PUT", m["presigned_urls"].([]any)[0].(string), content)
	if st != 200 {
		t.Fatalf("put: %d %v", st, put)
	}
	st, done := a.call(t, key, "POST", "/api/v1/complete-upload", fmt.Sprintf(`{"file_key":%q,"object_name":%q,"upload_id":%q,"parts":[{"part_number":1,"etag":%s}]}`,
		m["file_key"], m["object_name"], m["upload_id"], put["etag"]))
	if st != 200 {
		t.Fatalf("complete: %d %v", st, done)
	}
	return m["file_key"].(string)
}

func (a *api) convert(t *testing.T, key, params string) map[string]any {
	t.Helper()
	file := a.upload(t, key, "a.txt", "hello")
	st, m := a.call(t, key, "POST", "/api/v1/do", fmt.Sprintf(`{"action":"convert","file_keys":[%q],"parameters":%s}`, file, params))
	if st != 200 {
		t.Fatalf("do: %d %v", st, m)
	}
	_, m = a.call(t, key, "GET", fmt.Sprintf("/api/v1/status/%s?wait=20s", m["main_task_id"]), "")
	return m
}

func first(m map[string]any) map[string]any { return m["files_data"].([]any)[0].(map[string]any) }

func TestFlowInMemory(t *testing.T) {
	t.Parallel()
	var final []*status.Operation
	var mu sync.Mutex
	a := serve(t, httpapi.Config{OnFinal: func(_ context.Context, op *status.Operation) {
		mu.Lock()
		defer mu.Unlock()
		final = append(final, op)
	}})
	m := a.convert(t, "key-a", `{"convert_to":"md","password":"very secret"}`)
	if m["operation_status"] != "completed" {
		t.Fatalf("%v", m)
	}
	if _, d := a.call(t, "", "GET", first(m)["download_link"].(string), ""); d["raw"] != "HELLO" {
		t.Errorf("result %v", d)
	}
	if strings.Contains(a.log.String(), "very secret") {
		t.Error("the password is in the log")
	}
	// Watchers of the status hear of the end first.
	systest.Until(t, "OnFinal", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(final) > 0
	})
	mu.Lock()
	defer mu.Unlock()
	if len(final) != 1 || final[0].ID != m["main_task_id"] || final[0].Args != nil {
		t.Errorf("OnFinal saw %+v", final)
	}
}

// The parameters of a queued operation are encrypted in the store.
func TestSecretsAreSealed(t *testing.T) {
	t.Parallel()
	store := status.NewMemStore()
	a := serve(t, httpapi.Config{Operations: store, Concurrency: map[string]int{}})
	file := a.upload(t, "key-a", "a.txt", "hello")
	_, m := a.call(t, "key-a", "POST", "/api/v1/do", fmt.Sprintf(`{"action":"convert","file_keys":[%q],"parameters":{"convert_to":"md","password":"very secret"}}`, file))
	op, err := store.Get(t.Context(), m["main_task_id"].(string))
	systest.NoError(t, err)
	if len(op.Args) == 0 || bytes.Contains(op.Args, []byte("secret")) || bytes.Contains(op.Args, []byte("convert_to")) {
		t.Errorf("stored parameters %q", op.Args)
	}
	if op.State != status.Queued {
		t.Errorf("a process without workers works: %v", op.State)
	}
}

func TestFailingActions(t *testing.T) {
	t.Parallel()
	a := serve(t, httpapi.Config{Limits: httpapi.Limits{TaskTime: 300 * time.Millisecond, MaxAttempts: 1, MaxWait: time.Second}})
	for mode, want := range map[string]string{"panic": "engine_failed", "hang": "timeout", "unavailable": "waited_too_long"} {
		m := a.convert(t, "key-a", fmt.Sprintf(`{"convert_to":"md","mode":%q}`, mode))
		if f := first(m); m["operation_status"] != "failed" || f["error_code"] != want || strings.Contains(fmt.Sprint(f["error_message"]), "asked") {
			t.Errorf("%s: %v", mode, m)
		}
	}
	if m := a.convert(t, "key-a", `{"convert_to":"md"}`); m["operation_status"] != "completed" {
		t.Errorf("after the failures: %v", m)
	}
}

// The status and webhooks list the losses of a result.
func TestWarnings(t *testing.T) {
	t.Parallel()
	final := make(chan *status.Operation, 2)
	a := serve(t, httpapi.Config{OnFinal: func(_ context.Context, op *status.Operation) { final <- op }})
	m := a.convert(t, "key-a", `{"convert_to":"md","mode":"warn"}`)
	want := []any{map[string]any{"code": "links_dropped", "message": "3 links were left out"}}
	if got := first(m)["warnings"]; !reflect.DeepEqual(got, want) {
		t.Errorf("warnings %v, want %v", got, want)
	}
	op := <-final
	for _, kind := range []string{"fileTask.completed", "operation.completed"} {
		if b, err := a.svc.Notification(kind, time.Now(), op); err != nil || !bytes.Contains(b, []byte(`"warnings":[{"code":"links_dropped"`)) {
			t.Errorf("%s: %s, %v", kind, b, err)
		}
	}
	if m := a.convert(t, "key-a", `{"convert_to":"md"}`); first(m)["warnings"] != nil {
		t.Errorf("a result that lost nothing: %v", m)
	}
}

func TestInputGone(t *testing.T) {
	t.Parallel()
	store := status.NewMemStore()
	blobs := memblob.New()
	a := serve(t, httpapi.Config{Operations: store, Blobs: blobs, Concurrency: map[string]int{"text": 1}})
	hang := a.upload(t, "key-a", "h.txt", "x")
	st, h := a.call(t, "key-a", "POST", "/api/v1/do", fmt.Sprintf(`{"action":"convert","file_keys":[%q],"parameters":{"convert_to":"md","mode":"hang"}}`, hang))
	if st != 200 {
		t.Fatal(h)
	}
	file := a.upload(t, "key-a", "a.txt", "hello")
	_, m := a.call(t, "key-a", "POST", "/api/v1/do", fmt.Sprintf(`{"action":"convert","file_keys":[%q],"parameters":{"convert_to":"md"}}`, file))
	a.call(t, "key-a", "DELETE", "/api/v1/files/"+file, "")
	a.call(t, "key-a", "DELETE", "/api/v1/status/"+h["main_task_id"].(string), "")
	_, m = a.call(t, "key-a", "GET", fmt.Sprintf("/api/v1/status/%s?wait=20s", m["main_task_id"]), "")
	if first(m)["error_code"] != "input_expired" {
		t.Errorf("%v", m)
	}
}

// A parameter can name a second file by its key. The file follows the rules of inputs.
func TestFileOfParameter(t *testing.T) {
	t.Parallel()
	a := serve(t, httpapi.Config{Concurrency: map[string]int{"text": 1}})
	params := func(second, mode string) string {
		return fmt.Sprintf(`{"convert_to":"md","second_key":%q,"mode":%q}`, second, mode)
	}
	second := a.upload(t, "key-a", "b.txt", " world")
	m := a.convert(t, "key-a", params(second, "work"))
	if m["operation_status"] != "completed" {
		t.Fatalf("%v", m)
	}
	if _, d := a.call(t, "", "GET", first(m)["download_link"].(string), ""); d["raw"] != "HELLO WORLD" {
		t.Errorf("result %v", d)
	}

	file := a.upload(t, "key-a", "a.txt", "hello")
	do := func(second string) (int, map[string]any) {
		return a.call(t, "key-a", "POST", "/api/v1/do", fmt.Sprintf(`{"action":"convert","file_keys":[%q],"parameters":%s}`, file, params(second, "work")))
	}
	_, open := a.call(t, "key-a", "POST", "/api/v1/initiate-upload", `{"file_name":"c.txt","size":5,"mime_type":"text/plain"}`)
	deleted := a.upload(t, "key-a", "d.txt", "x")
	a.call(t, "key-a", "DELETE", "/api/v1/files/"+deleted, "")
	for what, tt := range map[string]struct {
		key, slug string
		status    int
	}{
		"no key":               {"", "unsupported_operation", 400},
		"nonsense":             {"../etc/passwd", "not_found", 404},
		"of another account":   {a.upload(t, "key-b", "b.txt", "x"), "not_found", 404},
		"deleted":              {deleted, "not_found", 404},
		"not yet uploaded":     {open["file_key"].(string), "upload_incomplete", 409},
		"of another format":    {a.upload(t, "key-a", "b.png", "x"), "unsupported_operation", 400},
		"without an extension": {a.upload(t, "key-a", "b", "x"), "unsupported_operation", 400},
	} {
		if st, m := do(tt.key); st != tt.status || m["error"] != tt.slug || m["param"] != "parameters.second_key" {
			t.Errorf("%s: %d %v", what, st, m)
		}
	}
	if st, m := a.call(t, "key-a", "POST", "/api/v1/supported-operation", `{"ext":"txt","action":"convert"}`); st != 200 || !strings.Contains(fmt.Sprint(m["parameters"].(map[string]any)["second_key"]), "file-key") {
		t.Errorf("supported-operation: %v", m)
	}

	// It is deleted while the operation waits.
	hang := a.upload(t, "key-a", "h.txt", "x")
	_, h := a.call(t, "key-a", "POST", "/api/v1/do", fmt.Sprintf(`{"action":"convert","file_keys":[%q],"parameters":{"convert_to":"md","mode":"hang"}}`, hang))
	_, m = do(second)
	a.call(t, "key-a", "DELETE", "/api/v1/files/"+second, "")
	a.call(t, "key-a", "DELETE", "/api/v1/status/"+h["main_task_id"].(string), "")
	_, m = a.call(t, "key-a", "GET", fmt.Sprintf("/api/v1/status/%s?wait=20s", m["main_task_id"]), "")
	if f := first(m); f["error_code"] != "input_expired" || !strings.Contains(fmt.Sprint(f["error_message"]), "second_key") {
		t.Errorf("%v", m)
	}
}

// brokenFinish is a store that fails to record outcomes.
type brokenFinish struct{ status.Store }

func (brokenFinish) Finish(context.Context, *status.Claim, status.Outcome) (*status.Operation, error) {
	return nil, errors.New("the store is out of order")
}

// unrecorded returns the configuration of a service that died after an item finished and before it
// was recorded. It also returns the operation's ID and a function that lists the one result record.
func unrecorded(t *testing.T) (cfg httpapi.Config, ops status.Store, id string, results func() []*upload.File) {
	t.Helper()
	cfg = httpapi.Config{Auth: httpapi.StaticKeys("key-a"), Actions: []fileops.Action{shout()}, Files: new(upload.MemStore), Blobs: memblob.New(),
		Secrets: [][]byte{[]byte("0123456789abcdef")}, Log: slog.New(slog.DiscardHandler)}
	cfg.Limits.Drain = time.Millisecond
	ops = status.NewMemStore()
	results = func() (out []*upload.File) {
		for f, err := range cfg.Files.ExpiredBefore(t.Context(), time.Now().Add(1e4*time.Hour)) {
			systest.NoError(t, err)
			if f.Task != "" {
				out = append(out, f)
			}
		}
		return out
	}

	cfg.Operations = brokenFinish{ops}
	svc, err := httpapi.New(cfg)
	systest.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- svc.Run(ctx) }()
	a := &api{Server: httptest.NewServer(svc), client: http.DefaultClient}
	defer a.Close()
	a.learn(t)
	st, m := a.call(t, "key-a", "POST", "/api/v1/do", fmt.Sprintf(`{"action":"convert","file_keys":[%q],"parameters":{"convert_to":"md"}}`, a.upload(t, "key-a", "a.txt", "hello")))
	if st != 200 {
		t.Fatalf("do: %d %v", st, m)
	}
	systest.Until(t, "a result", func() bool { return len(results()) > 0 })
	stop()
	if err := <-done; err != nil {
		t.Logf("Run = %v", err) // the outcome could not be recorded
	}
	if n := len(results()); n != 1 {
		t.Fatalf("%d results, want that of the attempt that was not recorded", n)
	}
	id, _ = m["main_task_id"].(string)
	return cfg, ops, id, results
}

// The process dies before it records an item as completed. Its result is removed when the item
// restarts.
func TestUnrecordedResult(t *testing.T) {
	t.Parallel()
	cfg, ops, id, results := unrecorded(t)
	before := results()
	cfg.Operations = ops
	b := serve(t, cfg)
	_, m := b.call(t, "key-a", "GET", fmt.Sprintf("/api/v1/status/%s?wait=30s", id), "")
	after := results()
	if m["operation_status"] != "completed" || len(after) != 1 || after[0].Key != first(m)["file_key"] || after[0].Key == before[0].Key {
		t.Errorf("%v, results %+v", m, after)
	}
	if _, err := blob.Stat(t.Context(), cfg.Blobs, before[0].Object); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the content of the first attempt: %v", err)
	}
}

// The result is also removed if the operation is cancelled, so that the item does not restart.
func TestUnrecordedResultOfCancelled(t *testing.T) {
	t.Parallel()
	cfg, ops, id, results := unrecorded(t)
	before := results()
	if _, err := ops.Cancel(t.Context(), before[0].Owner, id); err != nil {
		t.Fatal(err)
	}
	final := make(chan *status.Operation, 1)
	cfg.Operations, cfg.OnFinal = ops, func(_ context.Context, op *status.Operation) { final <- op }
	serve(t, cfg)
	if op := <-final; op.State != status.Failed || op.Items[0].Error == nil || op.Items[0].Error.Code != status.CodeCancelled {
		t.Errorf("operation is %+v", op)
	}
	if after := results(); len(after) != 0 {
		t.Errorf("results %+v", after)
	}
	if _, err := blob.Stat(t.Context(), cfg.Blobs, before[0].Object); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the content of the attempt: %v", err)
	}
}

// deaf is a store that reports success but renews no claim.
type deaf struct{ status.Store }

func (deaf) Heartbeat(context.Context, string, time.Duration, map[status.Ref]float64) ([]status.Ref, error) {
	return nil, nil
}

// registered records what happens to the records of results.
type registered struct {
	upload.Store
	errs chan error
}

func (r registered) Create(ctx context.Context, f *upload.File) (*upload.File, error) {
	g, err := r.Store.Create(ctx, f)
	if f.Task != "" {
		r.errs <- err
	}
	return g, err
}

// A service that lost its claim without noticing registers no results after another service has
// restarted the item: it might die before it can remove them.
func TestLateResult(t *testing.T) {
	t.Parallel()
	files, ops := new(upload.MemStore), status.NewMemStore()
	cfg := httpapi.Config{Auth: httpapi.StaticKeys("key-a"), Files: files, Blobs: memblob.New(), Operations: ops,
		Secrets: [][]byte{[]byte("0123456789abcdef")}, Shared: true, Lease: 300 * time.Millisecond}
	begun, goOn := make(chan bool), make(chan bool)
	slow := shout()
	late := cfg
	late.Actions = []fileops.Action{fileops.Func(slow.Spec(), func(ctx context.Context, job *fileops.Job) error {
		begun <- true
		<-goOn
		return slow.Do(ctx, job)
	})}
	errs := make(chan error, 1)
	late.Operations, late.Files = deaf{ops}, registered{files, errs}
	a := serve(t, late)
	st, m := a.call(t, "key-a", "POST", "/api/v1/do", fmt.Sprintf(`{"action":"convert","file_keys":[%q],"parameters":{"convert_to":"md"}}`, a.upload(t, "key-a", "a.txt", "hello")))
	if st != 200 {
		t.Fatalf("do: %d %v", st, m)
	}
	<-begun
	b := serve(t, cfg)
	_, m = b.call(t, "key-a", "GET", fmt.Sprintf("/api/v1/status/%s?wait=30s", m["main_task_id"]), "")
	if m["operation_status"] != "completed" {
		t.Fatalf("%v", m)
	}
	goOn <- true
	if err := <-errs; !errors.Is(err, fs.ErrExist) {
		t.Errorf("the late result: %v", err)
	}
	if _, d := b.call(t, "", "GET", first(m)["download_link"].(string), ""); d["raw"] != "HELLO" {
		t.Errorf("the result: %v", d)
	}
}

// quota is one quota shared by all accounts.
type quota struct {
	mu         sync.Mutex
	left       int64 // bytes
	operations int
	plain      bool // returns a plain error
	settled    []string
}

func (q *quota) Reserve(ctx context.Context, u httpapi.Use) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if p, ok := httpapi.PrincipalOf(ctx); !ok || p.Account != u.Account {
		return errors.New("reserved for somebody else")
	}
	switch {
	case u.Bytes > q.left && q.plain:
		return fmt.Errorf("%w: bytes per day", httpapi.ErrQuota)
	case u.Bytes > q.left:
		return &httpapi.QuotaError{What: "stored_bytes", Limit: 10, Used: 10 - q.left}
	case u.Operations > q.operations:
		return &httpapi.QuotaError{What: "pages", Limit: 3, Used: 2, Reset: time.Now().Add(90 * time.Second)}
	}
	q.left, q.operations = q.left-u.Bytes, q.operations-u.Operations
	return nil
}

func (q *quota) Settle(_ context.Context, u httpapi.Use, s httpapi.Settlement) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	what := "operation"
	if u.File != "" {
		what = fmt.Sprintf("%d bytes", u.Bytes)
	}
	q.settled = append(q.settled, what+" "+s.String())
	if s != httpapi.Kept {
		q.left, q.operations = q.left+u.Bytes, q.operations+u.Operations
	}
	return nil
}

// want waits until exactly the listed uses are settled.
func (q *quota) want(t *testing.T, settled ...string) {
	t.Helper()
	slices.Sort(settled)
	systest.Until(t, fmt.Sprintf("%q is settled", settled), func() bool {
		q.mu.Lock()
		defer q.mu.Unlock()
		return slices.Equal(slices.Sorted(slices.Values(q.settled)), settled)
	})
}

func TestQuota(t *testing.T) {
	t.Parallel()
	q := &quota{left: 10, operations: 1}
	a := serve(t, httpapi.Config{Quota: q})
	file := a.upload(t, "key-a", "a.txt", "hello")
	q.want(t, "5 bytes kept")
	const six = `{"file_name":"a.txt","size":6,"mime_type":"text/plain"}`
	st, m := a.call(t, "key-a", "POST", "/api/v1/initiate-upload", six)
	used, _ := m["quota"].(map[string]any)
	if st != 429 || m["error"] != "quota_exceeded" || used["what"] != "stored_bytes" || used["limit"] != 10.0 || used["used"] != 5.0 || used["reset"] != nil {
		t.Errorf("%d %v", st, m)
	}
	q.mu.Lock()
	q.plain = true
	q.mu.Unlock()
	if st, m := a.call(t, "key-a", "POST", "/api/v1/initiate-upload", six); st != 429 || m["error"] != "quota_exceeded" || m["quota"] != nil || !strings.Contains(fmt.Sprint(m["detail"]), "bytes per day") {
		t.Errorf("%d %v", st, m)
	}

	// An operation. Its result is never refused.
	body := fmt.Sprintf(`{"action":"convert","file_keys":[%q],"parameters":{"convert_to":"md"}}`, file)
	_, op := a.call(t, "key-a", "POST", "/api/v1/do", body)
	_, op = a.call(t, "key-a", "GET", fmt.Sprintf("/api/v1/status/%s?wait=20s", op["main_task_id"]), "")
	q.want(t, "5 bytes kept", "operation kept", "5 bytes kept")
	st, m = a.call(t, "key-a", "POST", "/api/v1/do", body)
	used, _ = m["quota"].(map[string]any)
	if st != 429 || used["what"] != "pages" || used["reset"] == nil || !strings.Contains(fmt.Sprint(m["message"]), "quota pages exceeded: 2 of 3") {
		t.Errorf("%d %v", st, m)
	}

	// Deleted files free their quota.
	for _, key := range []string{file, first(op)["file_key"].(string)} {
		if st, m := a.call(t, "key-a", "DELETE", "/api/v1/files/"+key, ""); st != 200 {
			t.Error(m)
		}
	}
	q.want(t, "5 bytes kept", "operation kept", "5 bytes kept", "5 bytes freed", "5 bytes freed")
	st, m = a.call(t, "key-a", "POST", "/api/v1/initiate-upload", six)
	if st != 200 {
		t.Fatal(m)
	}
	if st, m := a.call(t, "key-a", "DELETE", "/api/v1/files/"+m["file_key"].(string), ""); st != 200 {
		t.Error(m)
	}
	q.want(t, "5 bytes kept", "operation kept", "5 bytes kept", "5 bytes freed", "5 bytes freed", "6 bytes released")
}

// A repeated request reserves nothing.
func TestQuotaAgain(t *testing.T) {
	t.Parallel()
	q := &quota{left: 100}
	a := serve(t, httpapi.Config{Quota: q})
	for range 2 {
		r, err := http.NewRequestWithContext(t.Context(), "POST", a.URL+"/api/v1/initiate-upload", strings.NewReader(`{"file_name":"a.txt","size":6,"mime_type":"text/plain"}`))
		systest.NoError(t, err)
		r.Header.Set("Authorization", "Bearer key-a")
		r.Header.Set("Idempotency-Key", "1")
		resp, err := http.DefaultClient.Do(r)
		systest.NoError(t, err)
		resp.Body.Close()
		if resp.StatusCode != 200 {
			t.Fatal(resp.Status)
		}
	}
	q.want(t, "6 bytes released")
}

// Expired files free their quota.
func TestQuotaExpires(t *testing.T) {
	t.Parallel()
	t.Run("sessions", func(t *testing.T) {
		t.Parallel()
		q := &quota{left: 100}
		a := serve(t, httpapi.Config{Quota: q, Retention: httpapi.Retention{Sessions: time.Millisecond, Sweep: 10 * time.Millisecond}})
		if st, m := a.call(t, "key-a", "POST", "/api/v1/initiate-upload", `{"file_name":"a.txt","size":6,"mime_type":"text/plain"}`); st != 200 {
			t.Fatal(m)
		}
		q.want(t, "6 bytes released")
	})
	t.Run("files", func(t *testing.T) {
		t.Parallel()
		q := &quota{left: 100}
		a := serve(t, httpapi.Config{Quota: q, Retention: httpapi.Retention{Files: time.Millisecond, Sweep: 10 * time.Millisecond}})
		a.upload(t, "key-a", "b.txt", "hello")
		q.want(t, "5 bytes kept", "5 bytes freed")
	})
}

func TestQueueFull(t *testing.T) {
	t.Parallel()
	a := serve(t, httpapi.Config{Concurrency: map[string]int{}, Limits: httpapi.Limits{Queued: 2}})
	file := a.upload(t, "key-a", "a.txt", "hello")
	body := fmt.Sprintf(`{"action":"convert","file_keys":[%q],"parameters":{"convert_to":"md"}}`, file)
	for range 2 {
		if st, m := a.call(t, "key-a", "POST", "/api/v1/do", body); st != 200 {
			t.Fatal(m)
		}
	}
	if st, m := a.call(t, "key-a", "POST", "/api/v1/do", body); st != 429 || m["error"] != "queue_full" {
		t.Errorf("%d %v", st, m)
	}
	// Other accounts are not affected.
	file = a.upload(t, "key-b", "a.txt", "hello")
	if st, m := a.call(t, "key-b", "POST", "/api/v1/do", fmt.Sprintf(`{"action":"convert","file_keys":[%q],"parameters":{"convert_to":"md"}}`, file)); st != 200 {
		t.Errorf("%d %v", st, m)
	}
}

// brokenStore is a blob store on a full disk.
type brokenStore struct{ blob.Store }

func (brokenStore) Put(context.Context, string, io.Reader, int64) error {
	return fmt.Errorf("write: %w", syscall.ENOSPC)
}

func TestDiskFull(t *testing.T) {
	t.Parallel()
	a := serve(t, httpapi.Config{Blobs: brokenStore{memblob.New()}})
	_, m := a.call(t, "key-a", "POST", "/api/v1/initiate-upload", `{"file_name":"a.txt","size":5,"mime_type":"text/plain"}`)
	st, m := a.call(t, "", "PUT", m["presigned_urls"].([]any)[0].(string), "hello")
	if st != 507 || m["error"] != "insufficient_storage" {
		t.Errorf("%d %v", st, m)
	}
}

// slowStore notices when its context is cancelled.
type slowStore struct{ upload.Store }

func (s slowStore) ExpiredBefore(ctx context.Context, t time.Time) iter.Seq2[*upload.File, error] {
	return func(yield func(*upload.File, error) bool) { yield(nil, ctx.Err()) }
}

func (s slowStore) OpenSessions(ctx context.Context) iter.Seq2[*upload.File, error] {
	return func(yield func(*upload.File, error) bool) { yield(nil, ctx.Err()) }
}

// Stopping is not a failure, even before anything has started.
func TestStoppedAtOnce(t *testing.T) {
	t.Parallel()
	svc, err := httpapi.New(httpapi.Config{Auth: httpapi.AllowAll(), Files: slowStore{new(upload.MemStore)}})
	systest.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := svc.Run(ctx); err != nil {
		t.Errorf("Run = %v", err)
	}
}

// stuckStore has more open and more expired sessions than one start can process.
type stuckStore struct {
	upload.Store
	asked chan string
}

func (s stuckStore) stuck(ctx context.Context, what string) iter.Seq2[*upload.File, error] {
	return func(yield func(*upload.File, error) bool) {
		s.asked <- what
		<-ctx.Done()
		yield(nil, ctx.Err())
	}
}

func (s stuckStore) ExpiredBefore(ctx context.Context, _ time.Time) iter.Seq2[*upload.File, error] {
	return s.stuck(ctx, "expired")
}

func (s stuckStore) OpenSessions(ctx context.Context) iter.Seq2[*upload.File, error] {
	return s.stuck(ctx, "open")
}

// Recovery at the start delays neither the work nor the shutdown.
func TestRecoverBesideTheWork(t *testing.T) {
	t.Parallel()
	s := stuckStore{new(upload.MemStore), make(chan string, 2)}
	a := serve(t, httpapi.Config{Files: s})
	<-s.asked
	<-s.asked
	m := a.convert(t, "key-a", `{"convert_to":"md"}`)
	if m["operation_status"] != "completed" {
		t.Errorf("status is %v", m)
	}
}

func TestReadiness(t *testing.T) {
	t.Parallel()
	a := serve(t, httpapi.Config{
		Checks:  map[string]func(context.Context) error{"database": func(context.Context) error { return errors.New("down at /var/lib/x") }},
		Engines: []httpapi.Engine{{Name: "ffmpeg", Err: errors.New("not found"), Hint: "install ffmpeg"}},
	})
	st, m := a.call(t, "", "GET", "/readyz", "")
	if st != 503 || m["error"] != "unavailable" || !strings.Contains(fmt.Sprint(m["detail"]), "database") || strings.Contains(fmt.Sprint(m), "/var/lib") {
		t.Errorf("%d %v", st, m)
	}
	if d := m["dependencies"].([]any)[0].(map[string]any); d["name"] != "database" || d["state"] != "failed" || d["since"] == nil || m["checks"].(map[string]any)["database"] != "failed" {
		t.Errorf("dependencies %v", m)
	}
	_, m = a.call(t, "key-a", "GET", "/api/v1/formats", "")
	if e := m["engines"].([]any)[0].(map[string]any); e["available"] != false || e["problem"] != "install ffmpeg" {
		t.Errorf("%v", e)
	}
}

// A service whose engines start is not ready, but works.
func TestStarting(t *testing.T) {
	t.Parallel()
	var started atomic.Bool
	a := serve(t, httpapi.Config{LogRequests: true, Starting: func() bool { return !started.Load() }})
	if st, m := a.call(t, "", "GET", "/readyz", ""); st != 503 || m["error"] != "unavailable" || m["detail"] != "not ready: engines are starting" {
		t.Errorf("%d %v", st, m)
	}
	if st, m := a.call(t, "", "GET", "/healthz", ""); st != 200 {
		t.Errorf("healthz: %d %v", st, m)
	}
	if m := a.convert(t, "key-a", `{"convert_to":"md"}`); m["operation_status"] != "completed" {
		t.Errorf("status is %v", m)
	}
	for line := range strings.SplitSeq(a.log.String(), "\n") {
		if strings.Contains(line, "level=INFO") && strings.Contains(line, "route=/readyz") {
			t.Errorf("a probe during the start is logged: %s", line)
		}
	}
	started.Store(true)
	if st, m := a.call(t, "", "GET", "/readyz", ""); st != 200 {
		t.Errorf("after the start: %d %v", st, m)
	}
}

// The operator can hide details and metrics.
func TestHiddenDetails(t *testing.T) {
	t.Parallel()
	a := serve(t, httpapi.Config{HideDetails: true, MetricsToken: "token-of-operator", Node: "host/1", Checks: map[string]func(context.Context) error{"database": func(context.Context) error { return nil }}})
	if st, m := a.call(t, "", "GET", "/readyz", ""); st != 200 || m["status"] != "ok" || m["checks"] != nil || m["engines"] != nil || m["node"] != nil {
		t.Errorf("to everybody: %d %v", st, m)
	}
	if st, m := a.call(t, "token-of-operator", "GET", "/readyz", ""); st != 200 || m["node"] != "host/1" || m["checks"].(map[string]any)["database"] != "ok" {
		t.Errorf("with the token: %d %v", st, m)
	}
	for key, want := range map[string]int{"": 401, "key-a": 401, "token-of-operator": 200} {
		if st, _ := a.call(t, key, "GET", "/metrics", ""); st != want {
			t.Errorf("metrics with the key %q: %d, want %d", key, st, want)
		}
	}
	internal := httptest.NewServer(a.svc.Internal())
	defer internal.Close()
	for path, want := range map[string]string{"/readyz": `"dependencies"`, "/metrics": `filewright_dependency_up{dependency="database"} 1`, "/healthz": "ok", "/api/v1/formats": "404"} {
		resp, err := http.Get(internal.URL + path)
		systest.NoError(t, err)
		b, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || !strings.Contains(string(b), want) {
			t.Errorf("%s: %v %s", path, err, b)
		}
	}
}

// Everything that an operator watches has a value, before anything happens to it where that
// matters for alerts.
func TestMetrics(t *testing.T) {
	t.Parallel()
	a := serve(t, httpapi.Config{
		Checks:  map[string]func(context.Context) error{"database": func(context.Context) error { return nil }},
		Engines: []httpapi.Engine{{Name: "ffmpeg", Version: "5.1.9"}},
	})
	a.convert(t, "key-a", `{"convert_to":"md"}`)
	for _, tt := range []struct {
		pattern string
		least   float64
	}{
		{`filewright_dependency_up\{dependency="database"\}`, 1},
		{`filewright_dependency_check_seconds\{dependency="database"\}`, 0},
		{`filewright_http_requests_total\{code="200",method="POST",route="/api/v1/do"\}`, 1},
		{`filewright_http_request_seconds_count\{route="/api/v1/do"\}`, 1},
		{`filewright_http_sent_bytes_total`, 100},
		{`filewright_uploaded_bytes_total`, 5},
		{`filewright_item_seconds_count\{action="convert",engine="[^"]*"\}`, 1},
		{`filewright_items_rescued_total`, 0},
		{`filewright_engine_available\{engine="ffmpeg",version="5.1.9"\}`, 1},
		{`filewright_sweep_overdue_seconds`, 0},
		{`filewright_sweep_refused_objects`, 0},
		{`filewright_orphans_removed_total`, 0},
		{`filewright_content_lost_total`, 0},
	} {
		if got, ok := a.metrics(t, tt.pattern); !ok || got < tt.least {
			t.Errorf("%s: %v, %v; want at least %v", tt.pattern, got, ok, tt.least)
		}
	}
}

// Log lines about requests and items name the caller and the purpose. They contain no secret.
func TestLogLines(t *testing.T) {
	t.Parallel()
	a := serve(t, httpapi.Config{LogRequests: true})
	m := a.convert(t, "key-a", `{"convert_to":"md"}`)
	a.call(t, "", "GET", "/healthz", "")
	field := func(line, name string) string {
		_, v, _ := strings.Cut(line, " "+name+"=")
		v, _, _ = strings.Cut(v, " ")
		return v
	}
	var do, item string
	systest.Until(t, "the log line of the item", func() bool {
		for line := range strings.SplitSeq(a.log.String(), "\n") {
			switch {
			case strings.Contains(line, "msg=request ") && strings.Contains(line, "route=/api/v1/do"):
				do = line
			case strings.Contains(line, `msg="item completed"`):
				item = line
			case strings.Contains(line, "level=INFO") && strings.Contains(line, "route=/healthz"):
				t.Errorf("a probe is logged: %s", line)
			}
		}
		return item != ""
	})
	if field(do, "status") != "200" || field(do, "request_id") == "" || field(do, "account") == "" {
		t.Errorf("line of the request: %s", do)
	}
	for _, name := range []string{"request_id", "account", "key", "operation"} {
		if got, want := field(item, name), field(do, name); got == "" || got != want {
			t.Errorf("%s of the item is %q, that of its request %q: %s", name, got, want, item)
		}
	}
	if field(item, "operation") != m["main_task_id"] || field(item, "item") != "0" || field(item, "files") == "" {
		t.Errorf("line of the item: %s", item)
	}
	if log := a.log.String(); strings.Contains(log, "key-a") || strings.Contains(log, "signature=") {
		t.Error("the log has a credential")
	}
}

// named is a client that names itself.
type named string

func (n named) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("User-Agent", string(n))
	r.Header.Set("X-Forwarded-For", "192.0.2.1, 192.0.2.7")
	return http.DefaultTransport.RoundTrip(r)
}

// An operation has the name of its client, shortened and as valid text, and its address.
func TestClient(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"shop/1.0 (ü)": "shop/1.0 (ü)", "bad\xff": "bad", strings.Repeat("a", 299) + "ü": strings.Repeat("a", 299)} {
		for trust, address := range map[bool]string{false: "127.0.0.1", true: "192.0.2.7"} {
			ended := make(chan status.Origin, 2)
			a := serve(t, httpapi.Config{TrustProxy: trust, OnFinal: func(_ context.Context, op *status.Operation) { ended <- op.Origin }})
			a.client = &http.Client{Transport: named(name)}
			a.convert(t, "key-a", `{"convert_to":"md"}`)
			if got := <-ended; got.Client != want || got.Address != address {
				t.Errorf("client %q has the name %q and the address %q, want %q and %q", name, got.Client, got.Address, want, address)
			}
		}
	}
}

func TestSandboxIsShown(t *testing.T) {
	t.Parallel()
	a := serve(t, httpapi.Config{Sandbox: &httpapi.Sandbox{Tier: 1, Layers: []string{"seccomp"}, Missing: []string{"landlock: the kernel does not have it"}}})
	st, m := a.call(t, "", "GET", "/readyz", "")
	if got := fmt.Sprint(m["sandbox"]); st != 200 || got != "map[layers:[seccomp] missing:[landlock: the kernel does not have it] tier:1]" {
		t.Errorf("%d %v", st, got)
	}
	resp, err := http.Get(a.URL + "/metrics")
	systest.NoError(t, err)
	defer resp.Body.Close()
	if b, err := io.ReadAll(resp.Body); err != nil || !strings.Contains(string(b), "\nfilewright_sandbox_tier 1\n") {
		t.Errorf("no tier in the metrics: %v", err)
	}
}

func TestAuthenticators(t *testing.T) {
	t.Parallel()
	a := serve(t, httpapi.Config{Auth: httpapi.AuthFunc(func(r *http.Request) (httpapi.Principal, error) {
		switch httpapi.Key(r) {
		case "forbidden":
			return httpapi.Principal{}, httpapi.ErrForbidden
		case "own":
			return httpapi.Principal{}, &httpapi.Problem{Status: 429, Slug: "rate_limit_exceeded", Detail: "slow down", RetryAfter: time.Second}
		case "nobody":
			return httpapi.Principal{}, nil
		}
		return httpapi.Principal{Account: "x"}, nil
	})})
	for key, want := range map[string]int{"forbidden": 403, "own": 429, "nobody": 401, "x": 200} {
		if st, m := a.call(t, key, "GET", "/api/v1/formats", ""); st != want {
			t.Errorf("%s: %d %v", key, st, m)
		}
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]httpapi.Config{
		"no authenticator":       {},
		"short secret":           {Auth: httpapi.AllowAll(), Secrets: [][]byte{[]byte("short")}},
		"absolute links to what": {Auth: httpapi.AllowAll(), AbsoluteLinks: true},
		"bad action":             {Auth: httpapi.AllowAll(), Actions: []fileops.Action{fileops.Func(fileops.Spec{Name: "No"}, nil)}},
	} {
		if _, err := httpapi.New(cfg); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func Example() {
	svc, err := httpapi.New(httpapi.Config{
		Actions: []fileops.Action{shout()},
		Auth:    httpapi.AllowAll(),
		Log:     slog.New(slog.DiscardHandler),
	})
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go svc.Run(ctx)

	rec := httptest.NewRecorder()
	svc.ServeHTTP(rec, httptest.NewRequest("GET", "/api/v1/supported-operation?ext=txt", nil))
	var answer struct {
		Actions []string `json:"available_actions"`
	}
	json.Unmarshal(rec.Body.Bytes(), &answer)
	fmt.Println(rec.Code, answer.Actions)
	// Output: 200 [convert]
}

// Cancelled after one of two files completed: the file stays completed and the operation fails.
func TestCancelledHalfway(t *testing.T) {
	t.Parallel()
	spec := fileops.Spec{Name: "convert", Engine: "go", Family: "text", Summary: "Hangs, or not.",
		Accepts: []fileops.Accept{{Formats: []format.Format{format.TXT}, Params: fileops.Schema{fileops.Enum("convert_to", "Target.", "md")}}}}
	a := serve(t, httpapi.Config{Actions: []fileops.Action{fileops.Func(spec, func(ctx context.Context, job *fileops.Job) error {
		if job.Input().Name() == "hangs.txt" {
			<-ctx.Done()
			return ctx.Err()
		}
		return job.WriteBytes("a.md", []byte("done"))
	})}})
	_, m := a.call(t, "key-a", "POST", "/api/v1/do", fmt.Sprintf(`{"action":"convert","file_keys":[%q,%q],"parameters":{"convert_to":"md"}}`,
		a.upload(t, "key-a", "a.txt", "hello"), a.upload(t, "key-a", "hangs.txt", "hello")))
	path := fmt.Sprint("/api/v1/status/", m["main_task_id"])
	systest.Until(t, "the first file is done", func() bool {
		_, m = a.call(t, "key-a", "GET", path, "")
		return first(m)["status"] == "completed"
	})
	a.call(t, "key-a", "DELETE", path, "")
	_, m = a.call(t, "key-a", "GET", path+"?wait=30s", "")
	second := m["files_data"].([]any)[1].(map[string]any)
	if m["operation_status"] != "failed" || first(m)["status"] != "completed" || second["error_code"] != "cancelled" {
		t.Errorf("after cancelling: %v", m)
	}
	resp, err := http.Get(a.URL + first(m)["download_link"].(string))
	systest.NoError(t, err)
	defer resp.Body.Close()
	if b, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != 200 || string(b) != "done" {
		t.Errorf("download: %d %q %v", resp.StatusCode, b, err)
	}
}

// do refuses files that are larger than the action reads, and supported-operation tells the limit.
func TestTooLargeForTheAction(t *testing.T) {
	t.Parallel()
	action := func(name string, most int64, joint bool) fileops.Action {
		return fileops.Func(fileops.Spec{
			Name: name, Engine: "go", Family: "text", Summary: "Does nothing.", Joint: joint, MaxBytes: most,
			Accepts: []fileops.Accept{{Formats: []format.Format{format.TXT}}},
		}, func(_ context.Context, job *fileops.Job) error { return job.Keep(job.Input()) })
	}
	a := serve(t, httpapi.Config{Actions: []fileops.Action{action("compress", 5, false), action("merge", 5, true), action("lock", 0, false)}})
	small, large := a.upload(t, "key-a", "small.txt", "12345"), a.upload(t, "key-a", "large.txt", "123456")
	for _, name := range []string{"compress", "merge"} {
		code, m := a.call(t, "key-a", "POST", "/api/v1/do", fmt.Sprintf(`{"action":%q,"file_keys":[%q,%q]}`, name, small, large))
		if code != 413 || m["error"] != "too_large" || m["max_bytes"] != 5.0 || m["param"] != "file_keys" || !strings.HasPrefix(fmt.Sprint(m["message"]), "large.txt: ") {
			t.Errorf("%s of a large file: %d %v", name, code, m)
		}
		if code, m = a.call(t, "key-a", "POST", "/api/v1/do", fmt.Sprintf(`{"action":%q,"file_keys":[%q]}`, name, small)); code != 200 {
			t.Errorf("%s of a small file: %d %v", name, code, m)
		}
	}
	if code, m := a.call(t, "key-a", "POST", "/api/v1/do", fmt.Sprintf(`{"action":"lock","file_keys":[%q]}`, large)); code != 200 {
		t.Errorf("lock, which has no limit: %d %v", code, m)
	}
	for query, want := range map[string]string{
		`{"ext":"txt"}`: "map[compress:map[max_bytes:5] merge:map[max_bytes:5]]", `{"ext":"txt","action":"merge"}`: "map[merge:map[max_bytes:5]]",
		`{"ext":"txt","action":"lock"}`: "<nil>",
	} {
		if _, m := a.call(t, "key-a", "POST", "/api/v1/supported-operation", query); fmt.Sprint(m["limits"]) != want {
			t.Errorf("limits of %s: %v, want %s", query, m["limits"], want)
		}
	}
}
