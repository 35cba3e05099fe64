package admin_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/httpapi/admin"
	"github.com/filewright/filewright/httpapi/auth"
	"github.com/filewright/filewright/httpapi/sqlstore"
	"github.com/filewright/filewright/internal/apicheck"
	"github.com/filewright/filewright/internal/logtest"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/status/webhook"
)

// serveWebhooks starts a service that processes items and sends webhooks.
func serveWebhooks(t *testing.T) *site {
	t.Helper()
	db, err := sqlstore.Open(t.Context(), sqlstore.Options{Path: filepath.Join(t.TempDir(), "filewright.db"), Exclusive: true})
	systest.NoError(t, err)
	systest.AtEnd(t, db.Close)
	s := &site{db: db, log: &logtest.Buffer{}}
	log := slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	s.accounts = auth.New(auth.Config{Accounts: db.Accounts(), Keys: db.Keys(), Sessions: db.Sessions(), Usage: db, Audit: db.Audit(), Log: log})
	hooks, err := webhook.New(webhook.Config{
		Store: db.Webhooks(), Secrets: [][]byte{[]byte("0123456789abcdef")}, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		Schedule: []time.Duration{time.Hour}, Endpoints: 3, Exclusive: true, Log: log,
		Payload: func(_ context.Context, e webhook.Event) ([]byte, error) {
			return s.svc.Notification(e.Type, e.Time, e.Operation)
		},
	})
	systest.NoError(t, err)
	copying := fileops.Func(fileops.Spec{
		Name: "copy", Engine: "test", Summary: "Copies a file.", Family: "copy",
		Accepts: []fileops.Accept{{Formats: []format.Format{format.Any}}},
	}, func(_ context.Context, job *fileops.Job) error {
		return job.Write("copy.txt", func(w io.Writer) error {
			_, err := io.Copy(w, job.Input().Reader())
			return err
		})
	})
	if s.svc, err = httpapi.New(httpapi.Config{
		Auth: s.accounts, Extensions: admin.New(admin.Config{Accounts: s.accounts, Operations: db, Webhooks: hooks}),
		Collectors: hooks.Collectors(),
		Actions:    []fileops.Action{copying}, Files: db.Files(), Operations: db.Operations(), TempDir: t.TempDir(), Log: log,
	}); err != nil {
		t.Fatal(err)
	}
	systest.Start(t, s.svc.Run)
	systest.Start(t, hooks.Run)
	s.Server = httptest.NewServer(s.svc)
	t.Cleanup(s.Close)
	if s.check, err = apicheck.Fetch(s.URL); err != nil {
		t.Fatal(err)
	}
	return s
}

// operate uploads a file and copies it.
func (s *site) operate(t *testing.T, key string) (id string) {
	t.Helper()
	up := s.call(t, 200, key, "POST", "/api/v1/initiate-upload", `{"file_name":"a.txt","size":5,"mime_type":"text/plain"}`)
	put, err := http.NewRequestWithContext(t.Context(), "PUT", up["presigned_urls"].([]any)[0].(string), strings.NewReader("hello"))
	systest.NoError(t, err)
	resp, err := http.DefaultClient.Do(put)
	systest.NoError(t, err)
	resp.Body.Close()
	s.call(t, 200, key, "POST", "/api/v1/complete-upload", fmt.Sprintf(`{"file_key":%q,"upload_id":%q,"parts":[{"etag":%q,"part_number":1}]}`,
		up["file_key"], up["upload_id"], strings.Trim(resp.Header.Get("ETag"), `"`)))
	return s.call(t, 200, key, "POST", "/api/v1/do", fmt.Sprintf(`{"action":"copy","file_keys":[%q],"notes":{"order":"7"}}`, up["file_key"]))["main_task_id"].(string)
}

// conforms checks a body against a schema of the document.
func (s *site) conforms(t *testing.T, schema string, body []byte) {
	t.Helper()
	resp, err := http.Get(s.URL + "/openapi.json")
	systest.NoError(t, err)
	defer resp.Body.Close()
	doc, err := jsonschema.UnmarshalJSON(resp.Body)
	systest.NoError(t, err)
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	systest.NoError(t, c.AddResource("doc.json", doc))
	compiled, err := c.Compile("doc.json#/components/schemas/" + schema)
	systest.NoError(t, err)
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err == nil {
		err = compiled.Validate(v)
	}
	if err != nil {
		t.Errorf("%s is no %s: %v", body, schema, err)
	}
}

func TestWebhooks(t *testing.T) {
	t.Parallel()
	s := serveWebhooks(t)
	ada, key := s.account(t, "Ada", false)
	_, other := s.account(t, "Bob", false)
	_, boss := s.account(t, "Boss", true)
	type request struct {
		header http.Header
		body   []byte
	}
	got := make(chan request, 100)
	var code atomic.Int64
	code.Store(204)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		w.WriteHeader(int(code.Load()))
		if code.Load() != 204 {
			io.WriteString(w, "no")
		}
		got <- request{r.Header, b}
	}))
	t.Cleanup(receiver.Close)
	next := func() request {
		t.Helper()
		select {
		case r := <-got:
			return r
		case <-time.After(time.Minute):
			t.Fatal("waited in vain for a request")
			return request{}
		}
	}
	const hooks = "/api/v1/admin/accounts/self/webhooks"

	made := s.call(t, 200, key, "POST", hooks, fmt.Sprintf(`{"url":%q,"description":"shop","events":["operation.completed"]}`, receiver.URL))
	secret, id := made["secret"].(string), made["id"].(string)
	if made["account"] != ada || made["enabled"] != true || made["description"] != "shop" || fmt.Sprint(made["events"]) != "[operation.completed]" {
		t.Errorf("made %v", made)
	}
	one := hooks + "/" + id
	if e := s.call(t, 200, key, "GET", one, ""); e["secret"] != nil || e["url"] != receiver.URL {
		t.Errorf("webhook %v", e)
	}
	if all := s.call(t, 200, key, "GET", hooks, "")["webhooks"].([]any); len(all) != 1 {
		t.Errorf("webhooks %v", all)
	}

	// One event from the upload to the receiver.
	op := s.operate(t, key)
	r := next()
	wh, err := standardwebhooks.NewWebhook(secret)
	systest.NoError(t, err)
	systest.Check(t, wh.Verify(r.body, r.header))
	var body struct {
		Type      string
		Timestamp time.Time
		Payload   map[string]json.RawMessage
	}
	var task struct {
		ID, Status string
		Count      map[string]int
		Notes      map[string]string
		FileData   json.RawMessage `json:"file_data"`
	}
	systest.NoError(t, json.Unmarshal(r.body, &body))
	systest.NoError(t, json.Unmarshal(body.Payload["main_task"], &task))
	if body.Type != "operation.completed" || len(body.Payload) != 1 || task.ID != op || task.Status != "completed" || task.Notes["order"] != "7" ||
		fmt.Sprint(task.Count) != "map[failed:0 success:1 total:1]" {
		t.Errorf("body %s", r.body)
	}
	s.conforms(t, "OperationEvent", r.body)
	// Its elements equal those of the status.
	var want, have any
	status := s.call(t, 200, key, "GET", "/api/v1/status/"+op, "")
	want = status["files_data"]
	if err := json.Unmarshal(task.FileData, &have); err != nil || fmt.Sprint(have) != fmt.Sprint(want) {
		t.Errorf("file_data is %v, files_data %v, error %v", have, want, err)
	}

	// The delivery log.
	deliveries := s.call(t, 200, key, "GET", one+"/deliveries", "")["deliveries"].([]any)
	d := deliveries[0].(map[string]any)
	if len(deliveries) != 1 || d["id"] != r.header.Get("webhook-id") || d["main_task_id"] != op || d["type"] != "operation.completed" {
		t.Errorf("deliveries %v", deliveries)
	}
	delivery := one + "/deliveries/" + d["id"].(string)
	settled := func(path, state string, attempts int) (d map[string]any) {
		t.Helper()
		systest.Until(t, fmt.Sprintf("the delivery is %s after %d attempts", state, attempts), func() bool {
			d = s.call(t, 200, key, "GET", path, "")
			return d["state"] == state && d["attempts"] == float64(attempts)
		})
		return d
	}
	if d := settled(delivery, "delivered", 1); d["body"] != string(r.body) {
		t.Errorf("delivery %v", d)
	} else if log := d["log"].([]any)[0].(map[string]any); log["status"] != 204.0 || log["url"] != receiver.URL || log["manual"] != false {
		t.Errorf("log %v", log)
	}
	if d := s.call(t, 200, key, "POST", delivery+"/replay", ""); d["state"] != "pending" || d["id"] != r.header.Get("webhook-id") {
		t.Errorf("delivery %v", d)
	}
	if again := next(); again.header.Get("webhook-id") != r.header.Get("webhook-id") || string(again.body) != string(r.body) {
		t.Errorf("replayed %s", again.body)
	}
	settled(delivery, "delivered", 2)

	// Rotate the secret, send a test, and check refused requests.
	rotated := s.call(t, 200, key, "POST", one+"/secret", "")
	if rotated["secret"] == secret || rotated["previous_secret_until"] == nil {
		t.Errorf("rotated %v", rotated)
	}
	code.Store(500)
	tested := s.call(t, 200, key, "POST", one+"/test", "")
	r = next()
	for _, secret := range []string{secret, rotated["secret"].(string)} {
		if wh, err = standardwebhooks.NewWebhook(secret); err == nil {
			err = wh.Verify(r.body, r.header)
		}
		systest.Check(t, err)
	}
	failed := settled(one+"/deliveries/"+tested["id"].(string), "failed", 1)
	if log := failed["log"].([]any)[0].(map[string]any); failed["type"] != "webhook.test" || log["response"] != "no" || log["manual"] != true {
		t.Errorf("delivery %v", failed)
	}
	page := s.call(t, 200, key, "GET", one+"/deliveries?limit=1", "")
	if rest := s.call(t, 200, key, "GET", one+"/deliveries?limit=1&cursor="+page["next_cursor"].(string), ""); rest["next_cursor"] != nil || len(rest["deliveries"].([]any)) != 1 {
		t.Errorf("pages %v, %v", page, rest)
	}
	if list := s.call(t, 200, key, "GET", one+"/deliveries?state=failed", "")["deliveries"].([]any); len(list) != 1 {
		t.Errorf("failed %v", list)
	}
	for query, param := range map[string]string{"?state=done": "state", "?limit=0": "limit", "?limit=x": "limit"} {
		if p := s.call(t, 400, key, "GET", one+"/deliveries"+query, ""); p["param"] != param {
			t.Errorf("%s: %v", query, p)
		}
	}

	code.Store(204)
	s.call(t, 200, key, "PATCH", one, `{"events":["fileTask.completed"]}`)
	s.operate(t, key)
	r = next()
	s.conforms(t, "FileTaskEvent", r.body)
	settled(one+"/deliveries/"+r.header.Get("webhook-id"), "delivered", 1)

	if e := s.call(t, 200, boss, "PATCH", "/api/v1/admin/accounts/"+ada+"/webhooks/"+id, `{"enabled":false,"events":[]}`); e["enabled"] != false || e["disabled_reason"] == "" || fmt.Sprint(e["events"]) != "[]" {
		t.Errorf("webhook %v", e)
	}
	for body, param := range map[string]string{
		`{}`: "url", `{"url":"ftp://x/"}`: "url", `{"url":"http://10.0.0.1/"}`: "url", `{"url":7}`: "url",
		`{"url":"https://example.com/","events":["operation.done"]}`: "events", `{"url":"https://example.com/","description":"a\nb"}`: "description",
	} {
		if p := s.call(t, 400, key, "POST", hooks, body); p["param"] != param {
			t.Errorf("%s: %v", body, p)
		}
	}
	s.call(t, 400, key, "PATCH", one, `{"url":"http://[::1]/"}`)
	for range 2 {
		s.call(t, 200, key, "POST", hooks, `{"url":"https://example.com/"}`)
	}
	s.call(t, 409, key, "POST", hooks, `{"url":"https://example.com/"}`)

	// Foreign webhooks look missing.
	for _, path := range []string{"/api/v1/admin/accounts/" + ada + "/webhooks/" + id, one} {
		s.call(t, 404, other, "GET", path, "")
		s.call(t, 404, other, "PATCH", path, `{"enabled":true}`)
		s.call(t, 404, other, "DELETE", path, "")
		s.call(t, 404, other, "POST", path+"/secret", "")
		s.call(t, 404, other, "POST", path+"/test", "")
		s.call(t, 404, other, "GET", path+"/deliveries", "")
		s.call(t, 404, other, "GET", path+"/deliveries/"+d["id"].(string), "")
		s.call(t, 404, other, "POST", path+"/deliveries/"+d["id"].(string)+"/replay", "")
	}
	s.call(t, 404, key, "GET", hooks+"/other/deliveries/"+d["id"].(string), "")
	s.call(t, 401, "", "GET", hooks, "")

	s.call(t, 200, key, "DELETE", one, "")
	s.call(t, 404, key, "GET", one, "")
	s.call(t, 404, key, "GET", delivery, "")

	// Metrics for operators.
	resp, err := http.Get(s.URL + "/metrics")
	systest.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	systest.NoError(t, err)
	for _, line := range []string{"filewright_webhooks_pending 0", `filewright_webhook_attempts_total{outcome="delivered"} 3`, `filewright_webhook_attempts_total{outcome="refused"} 1`, "filewright_webhooks_overdue_seconds 0"} {
		if !strings.Contains(string(text), "\n"+line+"\n") {
			t.Errorf("the metrics have no %s", line)
		}
	}
	if strings.Contains(s.log.String(), secret) {
		t.Error("a secret is in the log")
	}
	if missing := s.unseen("/webhooks"); len(missing) > 0 {
		t.Errorf("not called: %v", missing)
	}
}
