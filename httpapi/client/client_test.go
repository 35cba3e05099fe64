package client_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/httpapi/client"
	"github.com/filewright/filewright/internal/systest"
)

// capitals is a test action that writes text in capitals, and fails for the text "bad".
func capitals() fileops.Action {
	return fileops.Func(fileops.Spec{
		Name: "convert", Engine: "go", Family: "text", Summary: "Writes text in capitals.",
		Accepts: []fileops.Accept{{Formats: []format.Format{format.TXT}, Params: fileops.Schema{fileops.Enum("convert_to", "Target.", "md")}}},
	}, func(_ context.Context, job *fileops.Job) error {
		b, err := job.Input().ReadAll(64 << 20)
		if err != nil {
			return err
		}
		if string(b) == "bad" {
			return fileops.Fail(fileops.ErrCorruptInput, nil, "the text is bad")
		}
		job.Warn(fileops.WarnLinksDropped, "a link was left out")
		return job.WriteBytes(fileops.ResultName(job.Input(), format.MD), bytes.ToUpper(b))
	})
}

// plain is a test action that makes text of Markdown.
func plain() fileops.Action {
	return fileops.Func(fileops.Spec{
		Name: "convert", Engine: "go", Family: "text", Summary: "Makes text.",
		Accepts: []fileops.Accept{{Formats: []format.Format{format.MD}, Params: fileops.Schema{fileops.Enum("convert_to", "Target.", "txt")}}},
	}, func(_ context.Context, job *fileops.Job) error {
		return job.Write(fileops.ResultName(job.Input(), format.TXT), func(w io.Writer) error {
			_, err := io.Copy(w, job.Input().Reader())
			return err
		})
	})
}

// serve starts a service and returns a client of it.
func serve(t *testing.T) *client.Client {
	t.Helper()
	svc, err := httpapi.New(httpapi.Config{
		Actions: []fileops.Action{capitals(), plain()}, Auth: httpapi.StaticKeys("key-a", "key-b"), TempDir: t.TempDir(),
	})
	systest.NoError(t, err)
	srv := httptest.NewServer(svc)
	t.Cleanup(srv.Close)
	systest.Start(t, svc.Run)
	return &client.Client{BaseURL: srv.URL + "/", Key: "key-a", PartSize: 1 << 20}
}

func TestFlow(t *testing.T) {
	t.Parallel()
	c := serve(t)
	ctx := t.Context()
	content := bytes.Repeat([]byte("a line of text\n"), 300_000) // 4.5 MB, five parts
	dir := t.TempDir()
	in := filepath.Join(dir, "a.txt")
	systest.NoError(t, os.WriteFile(in, content, 0o600))
	var sent []int64
	key, err := c.UploadFile(ctx, in, &client.UploadOptions{Progress: func(n, total int64) {
		if total != int64(len(content)) {
			t.Errorf("total %d", total)
		}
		sent = append(sent, n)
	}})
	systest.NoError(t, err)
	if len(sent) != 5 || !slices.IsSorted(sent) || sent[4] != int64(len(content)) {
		t.Errorf("progress %v", sent)
	}
	id, err := c.Do(ctx, client.Request{Action: "convert", FileKeys: []string{key}, Parameters: map[string]any{"convert_to": "md"}, Notes: map[string]string{"order": "7"}})
	systest.NoError(t, err)
	states := 0
	op, err := c.Wait(ctx, id, func(*client.Operation) { states++ })
	systest.NoError(t, err)
	if op.Err() != nil || op.ID != id || op.Notes["order"] != "7" || op.Progress != 100 || op.Finished.IsZero() || states == 0 {
		t.Fatalf("%+v after %d states", op, states)
	}
	f := op.Files[0]
	if f.Name != "a.md" || f.InputKey != key || f.Size != int64(len(content)) || f.Expires.IsZero() || len(f.Warnings) != 1 || f.Warnings[0].Code != "links_dropped" {
		t.Errorf("file %+v", f)
	}
	out := filepath.Join(dir, "a.md")
	systest.NoError(t, c.DownloadFile(ctx, f.DownloadLink, out))
	if got, _ := os.ReadFile(out); !bytes.Equal(got, bytes.ToUpper(content)) {
		t.Errorf("result of %d bytes", len(got))
	}
	if err := c.DownloadFile(ctx, f.DownloadLink, out); !errors.Is(err, fs.ErrExist) {
		t.Errorf("the second download: %v", err)
	}
	if again, err := c.Wait(ctx, id, nil); err != nil || again.Status != "completed" {
		t.Errorf("%+v, %v", again, err)
	}
	systest.NoError(t, c.Delete(ctx, key))
	if _, err := c.Do(ctx, client.Request{Action: "convert", FileKeys: []string{key}, Parameters: map[string]any{"convert_to": "md"}}); err == nil {
		t.Error("a deleted file was accepted")
	}
}

func TestSteps(t *testing.T) {
	t.Parallel()
	c := serve(t)
	ctx := t.Context()
	key, err := c.Upload(ctx, "a.txt", strings.NewReader("hello"), 5, nil)
	systest.NoError(t, err)
	convert := client.Step{Action: "convert", Parameters: map[string]any{"convert_to": "md"}}
	id, err := c.Do(ctx, client.Request{FileKeys: []string{key}, Steps: []client.Step{convert, {Action: "convert", Parameters: map[string]any{"convert_to": "txt"}}}, Keep: true})
	systest.NoError(t, err)
	op, err := c.Wait(ctx, id, nil)
	systest.NoError(t, err)
	if err := op.Err(); err != nil || op.Action != "steps" || len(op.Steps) != 2 || len(op.Files) != 1 {
		t.Fatalf("%+v, %v", op, err)
	}
	if kept := op.Steps[0]; kept.Status != "completed" || kept.Progress != 100 || len(kept.Files) != 1 || kept.Files[0].Name != "a.md" || op.Files[0].Name != "a.txt" || op.Files[0].InputKey != key {
		t.Errorf("%+v", op)
	}
	var refused *client.Error
	if _, err = c.Do(ctx, client.Request{FileKeys: []string{key}, Steps: []client.Step{convert, convert}}); !errors.As(err, &refused) || refused.Param != "steps[1].parameters.convert_to" || !slices.Equal(refused.Allowed, []string{"txt"}) {
		t.Errorf("two steps that do not fit: %+v", err)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	c := serve(t)
	ctx := t.Context()
	key, err := c.Upload(ctx, "b.txt", strings.NewReader("bad"), 3, nil)
	systest.NoError(t, err)
	id, err := c.Do(ctx, client.Request{Action: "convert", FileKeys: []string{key}, Parameters: map[string]any{"convert_to": "md"}})
	systest.NoError(t, err)
	op, err := c.Wait(ctx, id, nil)
	systest.NoError(t, err)
	var failed *client.FileError
	if err := op.Err(); !errors.As(err, &failed) || failed.Code != "corrupt_input" || failed.Message != "the text is bad" || failed.Key != key {
		t.Errorf("%v", err)
	}
	_, err = c.Do(ctx, client.Request{Action: "convert", FileKeys: []string{key}, Parameters: map[string]any{"convert_to": "gif"}})
	var e *client.Error
	if !errors.As(err, &e) || e.Status != 400 || e.Slug != "unsupported_operation" || e.Param != "parameters.convert_to" || !slices.Equal(e.Allowed, []string{"md"}) || e.RequestID == "" {
		t.Errorf("%+v", err)
	}
	_, err = c.Status(ctx, "00000000-0000-4000-8000-000000000000")
	if !errors.Is(err, &client.Error{Slug: "not_found"}) {
		t.Errorf("%v", err)
	}
	stranger := *c
	stranger.Key = "key-b"
	if _, err := stranger.Cancel(ctx, id); !errors.Is(err, &client.Error{Slug: "not_found"}) {
		t.Errorf("%v", err)
	}
	if can, err := c.Supported(ctx, "txt", "convert", nil); err != nil || !can.Supported || can.Parameters["convert_to"] == nil {
		t.Errorf("%+v, %v", can, err)
	}
	if can, err := c.Supported(ctx, "gif", "convert", nil); err != nil || can.Supported || can.Reason == "" {
		t.Errorf("%+v, %v", can, err)
	}
}

// A flaky transport breaks every other request, some after the server has answered, and cuts downloads.
type flaky struct {
	requests atomic.Int64
	ranges   atomic.Int64
}

func (f *flaky) RoundTrip(r *http.Request) (*http.Response, error) {
	n := f.requests.Add(1)
	if r.Header.Get("Range") != "" {
		f.ranges.Add(1)
	}
	if n%4 == 1 {
		return nil, errors.New("the connection broke before the request")
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil || n%4 != 3 {
		return resp, err
	}
	if r.Method != http.MethodGet || resp.ContentLength < 100_000 {
		resp.Body.Close()
		return nil, errors.New("the connection broke before the response")
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(io.LimitReader(resp.Body, 50_000+rand.Int64N(1000)), broken{}), resp.Body}
	return resp, nil
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// TestBreaks runs the flow over connections that break: nothing is done twice, and no byte is lost.
func TestBreaks(t *testing.T) {
	t.Parallel()
	c := serve(t)
	broken := new(flaky)
	c.HTTP = &http.Client{Transport: broken}
	c.Attempts = 20
	ctx := t.Context()
	content := bytes.Repeat([]byte("0123456789 abcdef\n"), 100_000)
	key, err := c.Upload(ctx, "a.txt", bytes.NewReader(content), int64(len(content)), nil)
	systest.NoError(t, err)
	id, err := c.Do(ctx, client.Request{Action: "convert", FileKeys: []string{key}, Parameters: map[string]any{"convert_to": "md"}})
	systest.NoError(t, err)
	op, err := c.Wait(ctx, id, func(*client.Operation) {})
	systest.NoError(t, err)
	for range 4 { // one of four downloads is cut
		var got bytes.Buffer
		n, err := c.Download(ctx, op.Files[0].DownloadLink, &got)
		systest.NoError(t, err)
		if n != int64(len(content)) || !bytes.Equal(got.Bytes(), bytes.ToUpper(content)) {
			t.Fatalf("%d bytes, %d expected", n, len(content))
		}
	}
	if broken.ranges.Load() == 0 {
		t.Error("no download was continued")
	}
}

// TestContinue sends an upload in two processes.
func TestContinue(t *testing.T) {
	t.Parallel()
	c := serve(t)
	c.Parallel = 1
	content := make([]byte, 3_500_000)
	for i := range content {
		content[i] = 'a' + byte(i%26)
	}
	u, err := c.Begin(t.Context(), "a.txt", int64(len(content)), "")
	systest.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	err = c.Send(ctx, u, bytes.NewReader(content), func(sent, _ int64) {
		if sent > 1<<20 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("the cancelled upload: %v", err)
	}
	stored, err := json.Marshal(u)
	systest.NoError(t, err)
	again := new(client.Upload)
	systest.NoError(t, json.Unmarshal(stored, again))
	first := int64(0)
	systest.NoError(t, c.Send(t.Context(), again, bytes.NewReader(content), func(sent, _ int64) {
		first = cmp.Or(first, sent)
	}))
	if first <= 1<<20 {
		t.Errorf("the first report after the pause says %d bytes", first)
	}
	var got bytes.Buffer
	if _, err := c.Download(t.Context(), "/v1/download/"+again.FileKey, &got); err != nil || !bytes.Equal(got.Bytes(), content) {
		t.Errorf("%d bytes, %v", got.Len(), err)
	}
}

// TestKeyStaysHome: a download link to another host does not get the API key.
func TestKeyStaysHome(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var seen []string
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, r.Header.Get("Authorization"))
		fmt.Fprint(w, "content")
	}))
	t.Cleanup(other.Close)
	c := &client.Client{BaseURL: "http://127.0.0.1:1/below", Key: "secret"}
	var got bytes.Buffer
	_, err := c.Download(t.Context(), other.URL+"/x", &got)
	systest.NoError(t, err)
	if !slices.Equal(seen, []string{""}) || got.String() != "content" {
		t.Errorf("headers %q, body %q", seen, got.String())
	}
}

// TestRetryAfter: an answer that refuses for now is repeated, and one that refuses for good is not.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for slug, want := range map[string]int64{"rate_limit_exceeded": 3, "quota_exceeded": 1} {
		var n atomic.Int64
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if n.Add(1) < 3 {
				w.WriteHeader(http.StatusTooManyRequests)
				fmt.Fprintf(w, `{"error":%q}`, slug)
				return
			}
			fmt.Fprint(w, `{"main_task_id":"1"}`)
		}))
		c := &client.Client{BaseURL: srv.URL}
		_, err := c.Do(t.Context(), client.Request{})
		if n.Load() != want || (err == nil) != (want == 3) {
			t.Errorf("%s: %d requests, %v", slug, n.Load(), err)
		}
		srv.Close()
	}
}
