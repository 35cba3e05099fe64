//go:build linux

// Package e2e tests the built refserver over HTTP, with real engines and real files. Other programs
// judge the results. Every response is checked against the server's own OpenAPI document.
package e2e

import (
	"bufio"
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/filewright/filewright/internal/apicheck"
	"github.com/filewright/filewright/internal/logtest"
	"github.com/filewright/filewright/internal/s3test"
	"github.com/filewright/filewright/internal/systest"
)

var (
	binary  string // the built refserver
	shared  *server
	buckets *s3test.Server
	checker *apicheck.Checker
)

// TestMain builds the server and starts the server that most tests share.
func TestMain(m *testing.M) {
	os.Exit(func() (code int) {
		dir, err := os.MkdirTemp("", "e2e-")
		if err != nil {
			log.Fatal(err)
		}
		defer os.RemoveAll(dir)
		binary = filepath.Join(dir, "refserver")
		if err := systest.Build(binary, "../../cmd/refserver", buildFlags...); err != nil {
			log.Fatal(err)
		}
		if buckets, err = s3test.New(); err != nil {
			log.Fatal(err)
		}
		defer buckets.Close()
		if err := buckets.MakeBucket(context.Background(), bucket); err != nil {
			log.Fatal(err)
		}
		shared, err = launch(filepath.Join(dir, "data"), "--cors-origins", "https://app.example.com", "--log-level", "debug", "--rate-burst", "20000")
		if err != nil {
			log.Fatal("start: ", err)
		}
		defer func() {
			if err := shared.stop(); err != nil {
				log.Print("the shared server ends with ", err)
				code = 1
			}
			if strings.Contains(shared.err.String(), "DATA RACE") {
				log.Print(shared.err)
				code = 1
			}
		}()
		if checker, err = apicheck.Fetch(shared.url); err != nil {
			log.Fatal("openapi document: ", err)
		}
		code = m.Run()
		// All documented endpoints should have been called. Some states, such as a full disk,
		// belong to other tests.
		if all := flag.Lookup("test.run").Value.String() == ""; all {
			for _, u := range checker.Unseen() {
				if !strings.ContainsAny(u[len(u)-3:], "0123456789") {
					log.Print("documented, but never called: ", u)
					code = 1
				}
			}
		}
		return code
	}())
}

// A server is a running refserver.
type server struct {
	cmd      *exec.Cmd
	dir      string
	url, key string
	banner   string // output up to readiness, and the credentials of the first start
	out      *logtest.Buffer
	err      *logtest.Buffer
}

var (
	readyLine = regexp.MustCompile(`is ready at (https?://\S+) `)
	addrLine  = regexp.MustCompile(`Listening on (http://\S+)`) // with a public URL, the line before it
	keyLine   = regexp.MustCompile(`API key, shown only this once: (\S+)`)
)

// launch starts a server on its own port and waits until it is ready. All test servers share the
// cache of compiled code, unless flags say otherwise.
func launch(dir string, flags ...string) (*server, error) { return launchBy(nil, dir, flags...) }

// launchBy is like launch, but starts the server through a program that executes its last
// arguments. One document at a time needs fewer LibreOffice processes, which start slowly.
func launchBy(by []string, dir string, flags ...string) (*server, error) {
	return launchProgram(append(slices.Clone(by), binary), nil, dir, append([]string{"--cache-dir", systest.CodeCache(), "--concurrency", "office=1"}, flags...)...)
}

// launchProgram starts a server of another build, as another user if as is not nil.
func launchProgram(command []string, as *syscall.Credential, dir string, flags ...string) (*server, error) {
	s := &server{dir: dir, out: &logtest.Buffer{}, err: &logtest.Buffer{}}
	argv := append(slices.Clone(command), append([]string{"serve", "--listen", "127.0.0.1:0", "--data-dir", dir}, flags...)...)
	s.cmd = exec.Command(argv[0], argv[1:]...)
	s.cmd.Stderr = s.err
	s.cmd.Env = append(os.Environ(), "AWS_ACCESS_KEY_ID="+s3test.AccessKey, "AWS_SECRET_ACCESS_KEY="+s3test.SecretKey)
	// The server must not outlive killed tests.
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Credential: as}
	stdout, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	ready := make(chan struct{})
	go func() {
		// The server writes the whole banner at once, which fits into the buffer.
		r := bufio.NewReaderSize(stdout, 64<<10)
		for listening := false; ; {
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			io.WriteString(s.out, line)
			if m := addrLine.FindStringSubmatch(line); m != nil {
				s.url = m[1]
			}
			if m := readyLine.FindStringSubmatch(line); m != nil {
				if s.url == "" {
					s.url = m[1]
				}
				listening = true
			}
			if listening && r.Buffered() == 0 {
				close(ready)
				io.Copy(s.out, r)
				return
			}
		}
	}()
	select {
	case <-ready:
	case <-time.After(60 * time.Second):
		s.cmd.Process.Kill()
		s.cmd.Wait()
		return nil, fmt.Errorf("not ready: %s%s", s.out, s.err)
	}
	s.banner = s.out.String()
	if m := keyLine.FindStringSubmatch(s.banner); m != nil {
		s.key = m[1]
	}
	return s, nil
}

// start is launch for a test: the server stops when the test ends.
func start(t *testing.T, dir string, flags ...string) *server {
	t.Helper()
	s, err := launch(dir, flags...)
	systest.NoError(t, err)
	t.Cleanup(func() {
		s.kill()
		if strings.Contains(s.err.String(), "DATA RACE") {
			t.Error("the server has a data race")
		}
		if t.Failed() {
			t.Logf("log of the server:\n%s", tail(s.err.String(), 8000))
		}
	})
	return s
}

// startLean is like start without the external programs, of which some start slowly. It still has
// the engines that are linked in: images, data, archives, PDF.
func startLean(t *testing.T, dir string, flags ...string) *server {
	t.Helper()
	return start(t, dir, append(slices.Clone(noEngines), flags...)...)
}

// eventually polls until ok returns true.
var eventually = systest.Until

// scale returns full, or short with -short.
func scale(full, short int) int {
	if testing.Short() {
		return short
	}
	return full
}

func tail(s string, n int) string {
	if len(s) > n {
		return "…" + s[len(s)-n:]
	}
	return s
}

// stop stops the server like an operator, and returns its exit error.
func (s *server) stop() error {
	s.cmd.Process.Signal(syscall.SIGTERM)
	done := make(chan error, 1)
	go func() { done <- s.cmd.Wait() }()
	select {
	case err := <-done:
		return err
	case <-time.After(60 * time.Second):
		s.cmd.Process.Kill()
		<-done
		return fmt.Errorf("it did not stop")
	}
}

// kill kills the server without warning.
func (s *server) kill() {
	if s.cmd.ProcessState == nil {
		s.cmd.Process.Kill()
		s.cmd.Wait()
	}
}

// A response is a response that was read and checked.
type response struct {
	status int
	header http.Header
	raw    []byte
	body   map[string]any // of a JSON response
}

func (r *response) str(name string) string { s, _ := r.body[name].(string); return s }

// request sends a request with the server's key. body may be nil, a string or []byte to send
// unchanged, or any other value to send as JSON. headers are pairs; an empty value removes a
// header.
func (s *server) request(t testing.TB, method, path string, body any, headers ...string) *response {
	t.Helper()
	r, err := s.try(t.Context(), method, path, body, headers...)
	systest.NoError(t, err)
	return r
}

func (s *server) try(ctx context.Context, method, path string, body any, headers ...string) (*response, error) {
	var rd io.Reader
	contentType := "application/json"
	switch b := body.(type) {
	case nil:
		contentType = ""
	case string:
		rd = strings.NewReader(b)
	case []byte:
		rd = bytes.NewReader(b)
	default:
		j, err := json.Marshal(b)
		if err != nil {
			return nil, err
		}
		rd = bytes.NewReader(j)
	}
	url := path
	if strings.HasPrefix(path, "/") {
		url = s.url + path
	}
	req, err := http.NewRequestWithContext(ctx, method, url, rd)
	if err != nil {
		return nil, err
	}
	if s.key != "" && strings.HasPrefix(path, "/") {
		req.Header.Set("Authorization", "Bearer "+s.key)
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
		if headers[i+1] == "" {
			req.Header.Del(headers[i])
		}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	r := &response{status: resp.StatusCode, header: resp.Header, raw: raw}
	content := strings.Contains(req.URL.Path, "/download/") && resp.StatusCode < 400 // the file determines the type
	if strings.Contains(resp.Header.Get("Content-Type"), "json") && !content {
		if err := json.Unmarshal(raw, &r.body); err != nil {
			return nil, fmt.Errorf("%s %s: %w: %s", method, path, err, raw)
		}
	}
	if checker != nil && !strings.HasPrefix(url, buckets.Endpoint) && !strings.HasPrefix(url, otherOrigin(buckets.Endpoint)) {
		if err := checker.Response(method, req.URL.Path, resp.StatusCode, resp.Header, raw); err != nil {
			return nil, fmt.Errorf("%s %s answers %d with something that the OpenAPI document does not describe: %w\n%s", method, path, resp.StatusCode, err, tail(string(raw), 2000))
		}
	}
	return r, nil
}

// want sends a request and checks the status and, for an error, the slug.
func (s *server) want(t testing.TB, status int, slug, method, path string, body any, headers ...string) *response {
	t.Helper()
	r := s.request(t, method, path, body, headers...)
	if r.status != status || slug != "" && r.str("error") != slug {
		t.Fatalf("%s %s: %d %s, want %d %s", method, path, r.status, r.raw, status, slug)
	}
	if slug != "" {
		if r.header.Get("Content-Type") != "application/problem+json" || r.str("message") != r.str("detail") || r.body["code"] != float64(status) ||
			r.str("request_id") == "" || r.str("request_id") != r.header.Get("X-Request-Id") {
			t.Errorf("%s %s: bad problem: %s", method, path, r.raw)
		}
	}
	return r
}

// ready waits until readyz answers that the server is ready, and returns the answer.
func (s *server) ready(t testing.TB, headers ...string) (r *response) {
	t.Helper()
	eventually(t, "the server is ready", func() bool {
		r = s.request(t, "GET", "/readyz", nil, headers...)
		return r.status == 200
	})
	return r
}

// A session is an initiated upload.
type session struct {
	key, object, id string
	urls            []string
}

func (s *server) initiate(t testing.TB, name string, size, parts int) session {
	t.Helper()
	r := s.want(t, 200, "", "POST", "/api/v1/initiate-upload", map[string]any{"file_name": name, "size": size, "mime_type": "application/octet-stream", "parts": parts})
	up := session{key: r.str("file_key"), object: r.str("object_name"), id: r.str("upload_id")}
	for _, u := range r.body["presigned_urls"].([]any) {
		up.urls = append(up.urls, u.(string))
	}
	if up.key == "" || up.object == "" || up.id == "" || len(up.urls) != max(parts, 1) {
		t.Fatalf("bad session: %s", r.raw)
	}
	return up
}

// put sends one part and returns its ETag.
func (s *server) put(t testing.TB, url string, b []byte) string {
	t.Helper()
	r := s.want(t, 200, "", "PUT", url, b, "Content-Type", "application/octet-stream")
	sum := md5.Sum(b)
	etag := strings.Trim(r.header.Get("ETag"), `"`)
	if etag != hex.EncodeToString(sum[:]) {
		t.Fatalf("ETag %s, want the MD5 %x", etag, sum)
	}
	return etag
}

// upload uploads b in parts and returns its file key.
func (s *server) upload(t testing.TB, name string, b []byte, parts int) string {
	t.Helper()
	up := s.initiate(t, name, len(b), parts)
	chunk := (len(b) + len(up.urls) - 1) / len(up.urls)
	var list []map[string]any
	for i, u := range up.urls {
		list = append(list, map[string]any{"part_number": i + 1, "etag": s.put(t, u, b[min(i*chunk, len(b)):min((i+1)*chunk, len(b))])})
	}
	r := s.want(t, 200, "", "POST", "/api/v1/complete-upload", map[string]any{"file_key": up.key, "object_name": up.object, "upload_id": up.id, "parts": list})
	if r.str("file_key") != up.key || !strings.Contains(r.str("message"), "ETag") {
		t.Fatalf("complete-upload: %s", r.raw)
	}
	return up.key
}

// A file is an input or a result.
type file struct {
	name string
	b    []byte
}

// begin uploads files and starts an operation on them.
func (s *server) begin(t testing.TB, action string, params map[string]any, files ...file) string {
	t.Helper()
	var keys []string
	for _, f := range files {
		keys = append(keys, s.upload(t, f.name, f.b, 1))
	}
	return s.want(t, 200, "", "POST", "/api/v1/do", map[string]any{"action": action, "file_keys": keys, "parameters": params}).str("main_task_id")
}

// await waits until an operation is final.
func (s *server) await(t testing.TB, task string) *response {
	t.Helper()
	for range 40 {
		r := s.want(t, 200, "", "GET", "/api/v1/status/"+task+"?wait=30s", nil)
		if st := r.str("operation_status"); st == "completed" || st == "failed" {
			return r
		}
	}
	t.Fatal("the operation does not end")
	return nil
}

// elements returns files_data.
func (r *response) elements() []map[string]any {
	var out []map[string]any
	for _, e := range r.body["files_data"].([]any) {
		out = append(out, e.(map[string]any))
	}
	return out
}

// run runs an operation that must succeed, and downloads the results.
func (s *server) run(t testing.TB, action string, params map[string]any, files ...file) []file {
	t.Helper()
	r := s.await(t, s.begin(t, action, params, files...))
	if r.str("operation_status") != "completed" {
		t.Fatalf("%s %v: %s", action, params, r.raw)
	}
	var out []file
	for _, e := range r.elements() {
		if e["status"] != "completed" || e["progress"] != 100.0 {
			t.Fatalf("%s %v: %v", action, params, e)
		}
		link := e["download_link"].(string)
		if link != "/v1/download/"+e["file_key"].(string) {
			t.Errorf("download_link %q", link)
		}
		d := s.want(t, 200, "", "GET", link, nil, "Authorization", "")
		if float64(len(d.raw)) != e["size"] {
			t.Errorf("%v has %d bytes, status says %v", e["file_name"], len(d.raw), e["size"])
		}
		out = append(out, file{e["file_name"].(string), d.raw})
	}
	return out
}

// one is run for an operation with one result.
func (s *server) one(t testing.TB, action string, params map[string]any, files ...file) file {
	t.Helper()
	out := s.run(t, action, params, files...)
	if len(out) != 1 {
		t.Fatalf("%s %v: %d results, want 1", action, params, len(out))
	}
	return out[0]
}

// fails runs an operation on one file that must fail, and checks the error code.
func (s *server) fails(t testing.TB, code, action string, params map[string]any, f file) string {
	t.Helper()
	r := s.await(t, s.begin(t, action, params, f))
	e := r.elements()[0]
	if r.str("operation_status") != "failed" || e["status"] != "failed" || e["error_code"] != code {
		t.Fatalf("%s %s: %s, want %s", action, f.name, r.raw, code)
	}
	msg, _ := e["error_message"].(string)
	for _, leak := range []string{s.dir, "/tmp", "/usr", ".go:", "exit status"} {
		if msg == "" || strings.Contains(msg, leak) {
			t.Errorf("%s %s: message %q is empty or tells too much", action, f.name, msg)
		}
	}
	return msg
}

// save writes a file for other programs.
func (f file) save(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), f.name)
	systest.NoError(t, os.WriteFile(path, f.b, 0o600))
	return path
}

// tool runs a program and returns its standard output. The test fails if the program fails.
var tool = systest.Run

// makeFile returns a file that a program writes in its current directory, see [systest.MadeBy].
func makeFile(t testing.TB, name string, stdin string, argv ...string) file {
	t.Helper()
	return file{name, systest.ReadFile(t, systest.MadeBy(t, name, stdin, argv...))}
}
