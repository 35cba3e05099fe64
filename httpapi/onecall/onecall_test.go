package onecall_test

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/httpapi/onecall"
	"github.com/filewright/filewright/httpapi/sqlstore"
	"github.com/filewright/filewright/internal/apicheck"
	"github.com/filewright/filewright/internal/logtest"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/status"
	"github.com/filewright/filewright/upload"
	"github.com/filewright/filewright/upload/blob/fsblob"
)

// actions are convert (text in capitals, with parameters of all types) and zip (all files joined).
func actions(started chan<- struct{}) []fileops.Action {
	convert := fileops.Spec{Name: "convert", Engine: "go", Family: "text", Summary: "Writes text in capitals.", Accepts: []fileops.Accept{{
		Formats: []format.Format{format.TXT}, Params: fileops.Schema{
			fileops.Enum("convert_to", "Target.", "md"),
			{Name: "mode", Doc: "What to do.", Enum: []string{"work", "fail", "hang", "warn", "lines"}, Default: "work"},
			{Name: "times", Doc: "How often.", Type: fileops.Integer, Min: 1, Max: 5, Default: 1},
			{Name: "exclaim", Doc: "With an exclamation mark.", Type: fileops.Boolean},
			{Name: "set", Doc: "Fields.", Type: fileops.Object, Min: 1, Max: 5},
			{Name: "words", Doc: "Words.", Type: fileops.List, Min: 1, Max: 5},
			{Name: "after_key", Doc: "A text to append.", Type: fileops.Upload, Formats: []format.Format{format.TXT}},
		},
	}}}
	do := func(ctx context.Context, job *fileops.Job) error {
		b, err := job.Input().ReadAll(1 << 20)
		if err != nil {
			return err
		}
		mode := job.Params.Get("mode")
		if strings.Contains(string(b), "broken") {
			mode = "fail"
		}
		switch mode {
		case "fail":
			return fileops.Fail(fileops.ErrCorruptInput, nil, "the file is damaged")
		case "hang":
			started <- struct{}{}
			<-ctx.Done()
			return ctx.Err()
		case "warn":
			job.Warn(fileops.WarnLinksDropped, "3 links were left out")
			job.Warn(fileops.WarnLinksDropped, "4 links were left out")
			job.Warn(fileops.WarnFontsSubstituted, "a font was replaced")
		case "lines":
			for i, line := range strings.Split(string(b), "\n") {
				if err := job.WriteBytes(fmt.Sprintf("line-%d.md", i+1), []byte(line)); err != nil {
					return err
				}
			}
			return nil
		}
		out := bytes.Repeat(bytes.ToUpper(b), job.Params.Int("times"))
		if job.Params.Bool("exclaim") {
			out = append(out, '!')
		}
		for name, v := range job.Params.Object("set") {
			out = fmt.Appendf(out, " %s=%v", name, v)
		}
		for _, word := range job.Params.List("words") {
			out = append(out, " "+word...)
		}
		if f := job.Extra["after_key"]; f != nil {
			b, err := f.ReadAll(1 << 20)
			if err != nil {
				return err
			}
			out = append(out, b...)
		}
		return job.WriteBytes(fileops.ResultName(job.Input(), format.MD), out)
	}
	join := fileops.Spec{Name: "zip", Engine: "go", Family: "text", Joint: true, Summary: "Joins files.", Accepts: []fileops.Accept{{Formats: []format.Format{format.Any}}}}
	return []fileops.Action{fileops.Func(convert, do), fileops.Func(join, func(ctx context.Context, job *fileops.Job) error {
		var all []byte
		for _, in := range job.Inputs {
			b, err := in.ReadAll(1 << 20)
			if err != nil {
				return err
			}
			all = append(all, b...)
		}
		return job.WriteBytes("all.txt", all)
	})}
}

// A server is a service with a database and files in a directory.
type server struct {
	*httptest.Server
	svc     *httpapi.Service
	db      *sqlstore.DB
	check   *apicheck.Checker
	dir     string
	started chan struct{} // receives when a file with mode=hang is being processed
}

func serve(t *testing.T, cfg httpapi.Config, c onecall.Config) *server {
	t.Helper()
	s := &server{dir: t.TempDir(), started: make(chan struct{}, 10)}
	var err error
	s.db, err = sqlstore.Open(t.Context(), sqlstore.Options{Path: filepath.Join(s.dir, "db"), Exclusive: true})
	systest.NoError(t, err)
	t.Cleanup(func() { s.db.Close() })
	blobs, err := fsblob.New(filepath.Join(s.dir, "blobs"))
	systest.NoError(t, err)
	t.Cleanup(func() { blobs.Close() })
	systest.NoError(t, os.Mkdir(filepath.Join(s.dir, "scratch"), 0o700))
	cfg.Actions, cfg.Files, cfg.Operations, cfg.Blobs, cfg.TempDir = actions(s.started), s.db.Files(), s.db.Operations(), blobs, filepath.Join(s.dir, "scratch")
	cfg.Limits.Drain = time.Millisecond // some actions never end
	cfg.Log = slog.New(slog.NewTextHandler(&logtest.Buffer{}, nil))
	if cfg.Auth == nil {
		cfg.Auth = httpapi.StaticKeys("key")
	}
	cfg.Extensions = append(cfg.Extensions, onecall.New(c))
	s.svc, err = httpapi.New(cfg)
	systest.NoError(t, err)
	systest.Start(t, s.svc.Run)
	s.Server = httptest.NewServer(s.svc)
	t.Cleanup(s.Close)
	s.check, err = apicheck.Fetch(s.URL)
	systest.NoError(t, err)
	return s
}

type field = systest.Part

// send sends a request and checks the response against the OpenAPI document.
func (s *server) send(t *testing.T, path, contentType string, body io.Reader, header ...string) (*http.Response, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "POST", s.URL+path, body)
	systest.NoError(t, err)
	req.Header.Set("Authorization", "Bearer key")
	req.Header.Set("Content-Type", contentType)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, b := systest.SendBy(t, http.DefaultClient, req)
	if err := s.check.Response("POST", req.URL.Path, resp.StatusCode, resp.Header, b); err != nil {
		t.Errorf("%s: %v\n%s", path, err, b)
	}
	return resp, b
}

func (s *server) form(t *testing.T, action string, fields ...field) (*http.Response, []byte) {
	t.Helper()
	body, contentType := systest.Form(t, fields...)
	return s.send(t, "/api/v1/run/"+action, contentType, bytes.NewReader(body))
}

// left lists the files, records and scratch files that exist.
func (s *server) left(t *testing.T) (left []string) {
	t.Helper()
	for f, err := range s.db.Files().All(context.Background()) {
		systest.NoError(t, err)
		if f.State != upload.Expired { // the others bar the keys of results that a late worker might add
			left = append(left, "record "+f.Name)
		}
	}
	for _, dir := range []string{"blobs", "scratch"} {
		left = append(left, systest.Regular(t, filepath.Join(s.dir, dir))...)
	}
	return left
}

func (s *server) operations(t *testing.T) (all []*status.Operation) {
	t.Helper()
	resp, b := get(t, s.URL+"/api/v1/operations")
	if resp.StatusCode != 200 {
		t.Fatalf("%d %s", resp.StatusCode, b)
	}
	var list struct {
		Operations []struct {
			ID string `json:"main_task_id"`
		}
	}
	systest.NoError(t, json.Unmarshal(b, &list))
	for _, one := range list.Operations {
		op, err := s.db.Operations().Get(t.Context(), one.ID)
		systest.NoError(t, err)
		all = append(all, op)
	}
	return all
}

func get(t *testing.T, url string) (*http.Response, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
	systest.NoError(t, err)
	req.Header.Set("Authorization", "Bearer key")
	return systest.SendBy(t, http.DefaultClient, req)
}

// empty waits until nothing is left: the response comes before the deletion.
func (s *server) empty(t *testing.T, base []string) {
	t.Helper()
	systest.Until(t, "nothing left", func() bool { return slices.Equal(s.left(t), base) })
}

func TestRun(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Config{}, onecall.Config{})
	base := s.left(t)
	file := field{"file", "Grüße.txt", "hello"}
	to := field{"convert_to", "", "md"}
	for _, tt := range []struct {
		name   string
		action string
		fields []field
		want   string
	}{
		{"fields after the file", "convert", []field{file, to}, "HELLO"},
		{"fields before the file", "convert", []field{to, file}, "HELLO"},
		{"typed fields", "CONVERT", []field{to, {"times", "", "2"}, {"exclaim", "", "true"}, {"set", "", `{"a":1}`}, {"words", "", `["x","y"]`}, file}, "HELLOHELLO! a=1 x y"},
		{"a file that a parameter names", "convert", []field{to, {"after_key", "b.txt", " and more"}, file}, "HELLO and more"},
		{"several files at once", "create_zip", []field{file, {"file", "b.pdf", " world"}}, "hello world"},
		{"an empty file", "zip", []field{{"file", "a.txt", ""}}, ""},
		{"with notes and wait", "convert", []field{file, to, {"notes", "", `{"k":"v"}`}, {"wait", "", "100h"}}, "HELLO"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			resp, b := s.form(t, tt.action, tt.fields...)
			if resp.StatusCode != 200 || string(b) != tt.want || resp.ContentLength != int64(len(tt.want)) {
				t.Fatalf("%d %q", resp.StatusCode, b)
			}
			s.empty(t, base)
		})
	}
	resp, _ := s.form(t, "convert", file, to)
	if d := resp.Header.Get("Content-Disposition"); d != `attachment; filename="Gr__e.md"; filename*=UTF-8''Gr%C3%BC%C3%9Fe.md` {
		t.Errorf("Content-Disposition %s", d)
	}
	if ct := resp.Header.Get("Content-Type"); ct != "text/markdown; charset=utf-8" {
		t.Errorf("Content-Type %s", ct)
	}
	_, b := get(t, s.URL+"/api/v1/status/"+resp.Header.Get("X-Main-Task-Id"))
	if !strings.Contains(string(b), `"operation_status":"completed"`) {
		t.Errorf("status %s", b)
	}
	// The members of one request are not those of another form of body.
	resp, b = s.send(t, "/api/v1/run/convert?convert_to=md&times=3&file_name="+url.QueryEscape("Grüße.txt"), "application/x-www-form-urlencoded", strings.NewReader("ab"), "Range", "bytes=1-2", "If-None-Match", "*")
	if resp.StatusCode != 200 || string(b) != "ABABAB" {
		t.Errorf("raw body: %d %s", resp.StatusCode, b)
	}
	// Without a Content-Length.
	resp, b = s.send(t, "/api/v1/run/convert?convert_to=md&file_name=a.txt", "text/plain", io.MultiReader(strings.NewReader("a"), strings.NewReader("b")))
	if resp.StatusCode != 200 || string(b) != "AB" {
		t.Errorf("chunked body: %d %s", resp.StatusCode, b)
	}
	s.empty(t, base)
}

// The codes of the warnings are in a header.
func TestWarnings(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Config{}, onecall.Config{})
	resp, b := s.form(t, "convert", field{"file", "a.txt", "x"}, field{"convert_to", "", "md"}, field{"mode", "", "warn"})
	if got := resp.Header.Get("X-Warnings"); resp.StatusCode != 200 || got != "links_dropped,fonts_substituted" {
		t.Errorf("%d %q %s", resp.StatusCode, got, b)
	}
}

// Files that are kept are files like others.
func TestKeep(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Config{}, onecall.Config{})
	resp, b := s.form(t, "convert", field{"keep", "", "true"}, field{"file", "a.txt", "hello"}, field{"convert_to", "", "md"})
	if resp.StatusCode != 200 {
		t.Fatalf("%d %s", resp.StatusCode, b)
	}
	op, err := s.db.Operations().Get(t.Context(), resp.Header.Get("X-Main-Task-Id"))
	systest.NoError(t, err)
	in, err := s.svc.Uploads().Ready(t.Context(), op.Owner, op.Items[0].Inputs[0].Key)
	systest.NoError(t, err)
	if sum := md5.Sum([]byte("hello")); in.ETag != hex.EncodeToString(sum[:]) || in.Size != 5 {
		t.Errorf("input %+v", in)
	}
	if resp, b := get(t, s.URL+"/v1/download/"+op.Items[0].Results[0].Key); string(b) != "HELLO" {
		t.Errorf("result: %d %s", resp.StatusCode, b)
	}
	_, b = get(t, s.URL+"/api/v1/status/"+op.ID)
	if want := `"download_url":"/api/v1/operations/` + op.ID + `/download"`; !strings.Contains(string(b), want) {
		t.Errorf("status %s", b)
	}
}

// Several results, and failures among them, are a ZIP. Nothing but failures is a problem.
func TestSeveral(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Config{}, onecall.Config{})
	base := s.left(t)
	to := field{"convert_to", "", "md"}
	read := func(resp *http.Response, b []byte) map[string]string {
		t.Helper()
		if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "application/zip" || resp.ContentLength != int64(len(b)) {
			t.Fatalf("%d %v %s", resp.StatusCode, resp.Header, b)
		}
		z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
		systest.NoError(t, err)
		files := make(map[string]string)
		for _, f := range z.File {
			r, err := f.Open()
			systest.NoError(t, err)
			content, err := io.ReadAll(r)
			systest.NoError(t, err)
			files[f.Name] = string(content)
		}
		return files
	}
	files := read(s.form(t, "convert", to, field{"file", "a.txt", "one"}, field{"file", "A.txt", "two"}, field{"file", "a.txt", "three"}))
	if len(files) != 3 || files["a.md"] != "ONE" || files["A (2).md"] != "TWO" || files["a (3).md"] != "THREE" {
		t.Errorf("%v", files)
	}
	files = read(s.form(t, "convert", to, field{"file", "a.txt", "one"}, field{"file", "b.txt", "broken"}))
	var failed []map[string]string
	systest.NoError(t, json.Unmarshal([]byte(files["errors.json"]), &failed))
	if len(files) != 2 || files["a.md"] != "ONE" || len(failed) != 1 || failed[0]["file_name"] != "b.txt" || failed[0]["error_code"] != "corrupt_input" || failed[0]["error_message"] != "the file is damaged" {
		t.Errorf("%v", files)
	}
	resp, b := s.form(t, "convert", to, field{"mode", "", "lines"}, field{"file", "poem.txt", "a\nb"})
	if d := resp.Header.Get("Content-Disposition"); d != `attachment; filename="poem.zip"` {
		t.Error(d)
	}
	if files = read(resp, b); len(files) != 2 || files["line-2.md"] != "b" {
		t.Errorf("%v", files)
	}
	resp, b = s.form(t, "convert", to, field{"file", "a.txt", "broken"}, field{"file", "b.txt", "broken"})
	var p map[string]any
	systest.NoError(t, json.Unmarshal(b, &p))
	if resp.StatusCode != 422 || p["error"] != "operation_failed" || p["error_code"] != "corrupt_input" || p["main_task_id"] != resp.Header.Get("X-Main-Task-Id") || p["detail"] != "the file is damaged (and 1 more files failed)" {
		t.Errorf("%d %s", resp.StatusCode, b)
	}
	s.empty(t, base)
}

// What takes longer than wait continues without the client.
func TestLonger(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Config{}, onecall.Config{})
	body, contentType := systest.Form(t, field{"file", "a.txt", "x"}, field{"convert_to", "", "md"}, field{"mode", "", "hang"}, field{"wait", "", "10ms"})
	resp, b := s.send(t, "/api/v1/run/convert", contentType, bytes.NewReader(body))
	var got map[string]any
	systest.NoError(t, json.Unmarshal(b, &got))
	if id := resp.Header.Get("X-Main-Task-Id"); resp.StatusCode != 202 || id == "" || got["main_task_id"] != id || resp.Header.Get("Location") != "/api/v1/status/"+id {
		t.Fatalf("%d %s", resp.StatusCode, b)
	}
	<-s.started
	if resp, b := get(t, s.URL+resp.Header.Get("Location")); resp.StatusCode != 200 || !strings.Contains(string(b), `"running"`) {
		t.Errorf("%d %s", resp.StatusCode, b)
	}
	if resp, b := get(t, s.URL+"/api/v1/operations/"+resp.Header.Get("X-Main-Task-Id")+"/download"); resp.StatusCode != 409 {
		t.Errorf("download before the end: %d %s", resp.StatusCode, b)
	}
}

// The configured time is the longest wait.
func TestTimeout(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Config{}, onecall.Config{Timeout: time.Millisecond})
	resp, b := s.form(t, "convert", field{"file", "a.txt", "x"}, field{"convert_to", "", "md"}, field{"mode", "", "hang"}, field{"wait", "", "1h"})
	if resp.StatusCode != 202 {
		t.Errorf("%d %s", resp.StatusCode, b)
	}
}

// A client that goes away takes its work and its files with it.
func TestClientGoesAway(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Config{}, onecall.Config{})
	base := s.left(t)
	body, contentType := systest.Form(t, field{"file", "a.txt", "x"}, field{"file", "b.txt", "y"}, field{"convert_to", "", "md"}, field{"mode", "", "hang"})
	ctx, leave := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() {
		req, err := http.NewRequestWithContext(ctx, "POST", s.URL+"/api/v1/run/convert", bytes.NewReader(body))
		if err == nil {
			req.Header.Set("Authorization", "Bearer key")
			req.Header.Set("Content-Type", contentType)
			_, err = http.DefaultClient.Do(req)
		}
		gone <- err
	}()
	<-s.started
	leave()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("client: %v", err)
	}
	systest.Until(t, "the end of the operation", func() bool {
		ops := s.operations(t)
		return len(ops) == 1 && ops[0].State == status.Failed && ops[0].Cancelled
	})
	s.empty(t, base)
}

// Bad requests leave nothing: no file, no record, no scratch file and no operation.
func TestBadRequests(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Config{Limits: httpapi.Limits{FileSize: 1000, Files: 2, BodyBytes: 2000}}, onecall.Config{})
	base := s.left(t)
	file, to := field{"file", "a.txt", "hello"}, field{"convert_to", "", "md"}
	long := field{"file", "a.txt", strings.Repeat("x", 1001)}
	for _, tt := range []struct {
		name   string
		action string
		fields []field
		status int
		slug   string
		param  string
	}{
		{"no file", "convert", []field{to}, 400, "invalid_request", "file"},
		{"no parameter", "convert", []field{file}, 400, "invalid_request", "parameters.convert_to"},
		{"bad parameter", "convert", []field{file, {"convert_to", "", "mp3"}}, 400, "unsupported_operation", "parameters.convert_to"},
		{"bad type", "convert", []field{file, to, {"times", "", "many"}}, 400, "unsupported_operation", "parameters.times"},
		{"unknown field", "convert", []field{file, to, {"shade", "", "1"}}, 400, "unsupported_operation", "parameters.shade"},
		{"field twice", "convert", []field{file, to, to}, 400, "invalid_request", "convert_to"},
		{"file in another field", "convert", []field{{"upload", "a.txt", "x"}, to}, 400, "invalid_request", "upload"},
		{"file without a name", "convert", []field{{"file", "", "x"}, to}, 400, "invalid_request", "file"},
		{"file_name in a form", "convert", []field{file, to, {"file_name", "", "x"}}, 400, "invalid_request", "file_name"},
		{"unsupported file", "convert", []field{file, {"file", "b.exe", "x"}, to}, 400, "unsupported_operation", "action"},
		{"unknown action", "fold", []field{file}, 400, "unsupported_operation", "action"},
		{"too many files", "zip", []field{file, file, file}, 400, "invalid_request", "file"},
		{"file too large", "zip", []field{file, long}, 413, "too_large", ""},
		{"fields too large", "convert", []field{file, {"mode", "", strings.Repeat("x", 2001)}}, 413, "too_large", ""},
		{"bad wait", "convert", []field{file, to, {"wait", "", "soon"}}, 400, "invalid_request", "wait"},
		{"bad keep", "convert", []field{file, to, {"keep", "", "perhaps"}}, 400, "invalid_request", "keep"},
		{"bad notes", "convert", []field{file, to, {"notes", "", "[1]"}}, 400, "invalid_request", "notes"},
		{"too many notes", "convert", []field{file, to, {"notes", "", `{"a":"` + strings.Repeat("x", 1500) + `","b":1}`}}, 400, "invalid_request", "notes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			resp, b := s.form(t, tt.action, tt.fields...)
			expect(t, resp, b, tt.status, tt.slug, tt.param)
			s.empty(t, base)
		})
	}
	body, contentType := systest.Form(t, file, to)
	const path = "/api/v1/run/convert"
	for _, tt := range []struct {
		name, path, contentType, body string
		status                        int
		slug, param                   string
	}{
		{"not multipart", path, "multipart/form-data; boundary=x", "hello", 400, "invalid_request", "file"},
		{"another boundary", path, "multipart/form-data; boundary=x", string(body), 400, "invalid_request", "file"},
		{"no boundary", path, "multipart/form-data", string(body), 400, "invalid_request", ""},
		{"cut in a file", path, contentType, string(body[:bytes.Index(body, []byte("hello"))+2]), 400, "invalid_request", ""},
		{"cut in a field", path, contentType, string(body[:len(body)-70]), 400, "invalid_request", ""},
		{"cut before the end", path, contentType, string(body[:len(body)-5]), 400, "invalid_request", ""},
		{"empty form", path, contentType, "", 400, "invalid_request", "file"},
		{"raw without a name", path + "?convert_to=md", "text/plain", "hello", 400, "invalid_request", "file"},
		{"file in the query", path + "?file=x", "text/plain", "hello", 400, "invalid_request", "file"},
		{"raw, bad parameter", path + "?file_name=a.txt&convert_to=mp3", "text/plain", "hello", 400, "unsupported_operation", "parameters.convert_to"},
		{"raw, unknown parameter", path + "?file_name=a.txt&convert_to=md&x=1", "text/plain", "hello", 400, "unsupported_operation", "parameters.x"},
		{"raw, twice", path + "?file_name=a.txt&convert_to=md&convert_to=md", "text/plain", "hello", 400, "invalid_request", "convert_to"},
		{"raw, too large", path + "?file_name=a.txt&convert_to=md", "text/plain", strings.Repeat("x", 1001), 413, "too_large", ""},
		{"bad query", path + "?file_name=%zz", "text/plain", "hello", 400, "invalid_request", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			resp, b := s.send(t, tt.path, tt.contentType, strings.NewReader(tt.body))
			expect(t, resp, b, tt.status, tt.slug, tt.param)
			s.empty(t, base)
		})
	}
	// Without a Content-Length the size is known only later.
	resp, b := s.send(t, path+"?file_name=a.txt&convert_to=md", "text/plain", io.MultiReader(strings.NewReader(strings.Repeat("x", 1001))))
	expect(t, resp, b, 413, "too_large", "")
	resp, b = s.send(t, path+"?file_name=a.txt&convert_to=md", "text/plain", strings.NewReader("x"), "Content-Encoding", "gzip")
	expect(t, resp, b, 415, "unsupported_media_type", "")
	resp, b = s.send(t, path+"?file_name=a.txt&convert_to=md", "text/plain", strings.NewReader("x"), "Authorization", "Bearer wrong")
	expect(t, resp, b, 401, "unauthorized", "")
	s.empty(t, base)
	if ops := s.operations(t); len(ops) != 0 {
		t.Errorf("%d operations", len(ops))
	}
}

func expect(t *testing.T, resp *http.Response, b []byte, status int, slug, param string) {
	t.Helper()
	var p struct{ Error, Param string }
	json.Unmarshal(b, &p)
	if resp.StatusCode != status || p.Error != slug || p.Param != param {
		t.Errorf("%d %s", resp.StatusCode, b)
	}
}

// A body that ends before its Content-Length leaves nothing.
func TestTruncated(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Config{}, onecall.Config{})
	base := s.left(t)
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	systest.NoError(t, err)
	fmt.Fprintf(conn, "POST /api/v1/run/convert?file_name=a.txt&convert_to=md HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer key\r\nContent-Length: 100\r\n\r\nhello")
	systest.Until(t, "the arrival of the file", func() bool { return len(s.left(t)) > len(base) })
	conn.Close()
	s.empty(t, base)
	if ops := s.operations(t); len(ops) != 0 {
		t.Errorf("%d operations", len(ops))
	}
}

// A client that asks first is refused before it sends the body.
func TestExpect(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Config{Limits: httpapi.Limits{FileSize: 1000}}, onecall.Config{})
	for _, tt := range []struct {
		name, target, header, want string
	}{
		{"no key", "convert?file_name=a.txt&convert_to=md", "Content-Length: 5", "HTTP/1.1 401 "},
		{"unknown action", "fold?file_name=a.txt", "Authorization: Bearer key\r\nContent-Length: 5", "HTTP/1.1 400 "},
		{"bad parameter", "convert?file_name=a.txt&convert_to=mp3", "Authorization: Bearer key\r\nContent-Length: 5", "HTTP/1.1 400 "},
		{"too large", "convert?file_name=a.txt&convert_to=md", "Authorization: Bearer key\r\nContent-Length: 1001", "HTTP/1.1 413 "},
		{"form too large", "convert", "Authorization: Bearer key\r\nContent-Type: multipart/form-data; boundary=x\r\nContent-Length: 9000000000", "HTTP/1.1 413 "},
		{"valid", "convert?file_name=a.txt&convert_to=md", "Authorization: Bearer key\r\nContent-Length: 5", "HTTP/1.1 100 "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			conn, err := net.Dial("tcp", s.Listener.Addr().String())
			systest.NoError(t, err)
			defer conn.Close()
			fmt.Fprintf(conn, "POST /api/v1/run/%s HTTP/1.1\r\nHost: x\r\n%s\r\nExpect: 100-continue\r\n\r\n", tt.target, tt.header)
			b := make([]byte, len(tt.want))
			if _, err := io.ReadFull(conn, b); err != nil || string(b) != tt.want {
				t.Errorf("%q, %v", b, err)
			}
		})
	}
}

// full refuses each use beyond a number of bytes.
type full struct {
	max      int64
	settled  chan string
	reserved chan int64
}

func (q full) Reserve(_ context.Context, u httpapi.Use) error {
	if u.File != "" {
		q.reserved <- u.Bytes
	}
	if u.Bytes > q.max {
		return &httpapi.QuotaError{What: "stored_bytes", Limit: q.max}
	}
	return nil
}

func (q full) Settle(_ context.Context, u httpapi.Use, as httpapi.Settlement) error {
	if u.File != "" && !u.Result {
		q.settled <- fmt.Sprintf("%s %d", as, u.Bytes)
	}
	return nil
}

// A file counts like an upload.
func TestQuota(t *testing.T) {
	t.Parallel()
	q := full{5, make(chan string, 10), make(chan int64, 10)}
	s := serve(t, httpapi.Config{Quota: q}, onecall.Config{})
	base := s.left(t)
	resp, b := s.form(t, "convert", field{"file", "a.txt", "123456"}, field{"convert_to", "", "md"})
	expect(t, resp, b, 429, "quota_exceeded", "")
	if n := <-q.reserved; n != 6 {
		t.Errorf("reserved %d bytes", n)
	}
	s.empty(t, base)
	resp, b = s.form(t, "convert", field{"file", "a.txt", "12345"}, field{"convert_to", "", "md"})
	if resp.StatusCode != 200 {
		t.Errorf("%d %s", resp.StatusCode, b)
	}
	if got := []string{<-q.settled, <-q.settled}; !slices.Equal(got, []string{"kept 5", "freed 5"}) {
		t.Errorf("settled %v", got)
	}
	s.empty(t, base)
}

// The key needs the scopes of all three steps.
func TestScope(t *testing.T) {
	t.Parallel()
	auth := httpapi.AuthFunc(func(*http.Request) (httpapi.Principal, error) {
		return httpapi.Principal{Account: "a", Scopes: httpapi.ScopeOperate | httpapi.ScopeRead}, nil
	})
	s := serve(t, httpapi.Config{Auth: auth}, onecall.Config{})
	resp, b := s.form(t, "convert", field{"file", "a.txt", "x"}, field{"convert_to", "", "md"})
	expect(t, resp, b, 403, "forbidden", "")
}
