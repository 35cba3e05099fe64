//go:build linux

package e2e

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/systest"
)

// The server is killed repeatedly while clients upload files and create operations. Everything
// acknowledged survives: every upload with its bytes, and every operation once. Each operation
// finishes.
func TestKilledAtAnyMoment(t *testing.T) {
	t.Parallel()
	t.Run("directory", func(t *testing.T) {
		t.Parallel()
		killedAtAnyMoment(t, scale(8, 3))
	})
	t.Run("bucket", func(t *testing.T) {
		t.Parallel()
		killedAtAnyMoment(t, scale(5, 2), "--blob-url", bucketURL("killed", ""))
	})
}

func killedAtAnyMoment(t *testing.T, kills int, flags ...string) {
	dir := filepath.Join(t.TempDir(), "data")
	// On a busy machine a server here may live shorter than a file takes.
	flags = append(slices.Concat(noEngines, flags), "--drain", "1s", "--max-attempts", "100")
	s := start(t, dir, flags...)
	key := s.key

	var (
		mu      sync.Mutex
		current = s
		files   = map[string]string{} // file_key → SHA-256 of the acknowledged content
		tasks   = map[string]string{} // idempotency key → main_task_id
	)
	now := func() *server {
		mu.Lock()
		defer mu.Unlock()
		return current
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	// again retries a request until a server answers it, like a client.
	again := func(method string, path func(*server) string, body any, headers ...string) *response {
		for ctx.Err() == nil {
			s := now()
			r, err := s.try(ctx, method, path(s), body, headers...)
			if err == nil && r.status < 500 {
				return r
			}
			time.Sleep(20 * time.Millisecond)
		}
		return nil
	}
	fixed := func(p string) func(*server) string { return func(*server) string { return p } }
	photo := jpg(t).b
	var wg sync.WaitGroup
	for client := range 3 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(client), 7))
			for n := 0; ctx.Err() == nil; n++ {
				b, name := photo, "photo.jpg"
				if n%2 == 0 {
					b, name = make([]byte, 50_000+rng.IntN(200_000)), "data.bin"
					for i := range b {
						b[i] = byte(rng.Uint32())
					}
				}
				idem := fmt.Sprintf("%d-%d", client, n)
				init := again("POST", fixed("/api/v1/initiate-upload"), map[string]any{"file_name": name, "size": len(b), "mime_type": "application/octet-stream"}, "Idempotency-Key", "u"+idem)
				if init == nil || init.status != 200 {
					continue
				}
				u := init.body["presigned_urls"].([]any)[0].(string)
				_, part, ours := strings.Cut(u, "/v1/upload/")
				put := again("PUT", func(s *server) string {
					if ours {
						return s.url + "/v1/upload/" + part
					}
					return u
				}, b)
				if put == nil {
					continue
				}
				if put.status != 200 {
					t.Errorf("PUT: %d %s", put.status, put.raw)
					continue
				}
				done := again("POST", fixed("/api/v1/complete-upload"), map[string]any{"file_key": init.str("file_key"), "object_name": init.str("object_name"), "upload_id": init.str("upload_id"),
					"parts": []any{map[string]any{"etag": strings.Trim(put.header.Get("ETag"), `"`), "part_number": 1}}})
				if done == nil {
					continue
				}
				if done.status != 200 {
					t.Errorf("complete-upload: %d %s", done.status, done.raw)
					continue
				}
				sum := sha256.Sum256(b)
				mu.Lock()
				files[init.str("file_key")] = hex.EncodeToString(sum[:])
				mu.Unlock()
				body := map[string]any{"action": "zip", "file_keys": []string{init.str("file_key")}}
				if name == "photo.jpg" {
					body = map[string]any{"action": "convert", "file_keys": []string{init.str("file_key"), init.str("file_key")}, "parameters": map[string]any{"convert_to": "webp"}}
				}
				if op := again("POST", fixed("/api/v1/do"), body, "Idempotency-Key", "o"+idem); op != nil {
					if op.status != 200 {
						t.Errorf("do: %d %s", op.status, op.raw)
						continue
					}
					mu.Lock()
					tasks["o"+idem] = op.str("main_task_id")
					mu.Unlock()
				}
			}
		})
	}
	rng := rand.New(rand.NewPCG(3, 4))
	for range kills {
		time.Sleep(time.Duration(200+rng.IntN(700)) * time.Millisecond)
		now().kill()
		next := start(t, dir, flags...)
		next.key = key
		mu.Lock()
		current = next
		mu.Unlock()
	}
	eventually(t, "enough uploads and operations", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(files) >= 10 && len(tasks) >= 10
	})
	stop()
	wg.Wait()

	s = now()
	for idem, id := range tasks {
		r := s.await(t, id)
		if r.str("operation_status") != "completed" {
			t.Errorf("operation %s: %s", idem, r.raw)
			continue
		}
		seen := map[string]bool{}
		for _, e := range r.elements() {
			k := e["file_key"].(string)
			if seen[k] {
				t.Errorf("operation %s has result %s twice", idem, k)
			}
			seen[k] = true
			if e["status"] != "completed" {
				t.Errorf("operation %s: %v", idem, e)
				continue
			}
			if d := s.want(t, 200, "", "GET", e["download_link"].(string), nil); float64(len(d.raw)) != e["size"] {
				t.Errorf("result %s has %d bytes, not %v", k, len(d.raw), e["size"])
			}
		}
	}
	for k, want := range files {
		d := s.want(t, 200, "", "GET", "/v1/download/"+k, nil)
		if sum := sha256.Sum256(d.raw); hex.EncodeToString(sum[:]) != want {
			t.Errorf("file %s is not what was acknowledged", k)
		}
	}
	// The listed operations are the acknowledged ones, and at most one more for each client, which
	// was being created when the client stopped.
	listed := 0
	for cursor := ""; ; {
		r := s.want(t, 200, "", "GET", "/api/v1/operations?limit=200&cursor="+cursor, nil)
		listed += len(r.body["operations"].([]any))
		if cursor = r.str("next_cursor"); cursor == "" {
			break
		}
	}
	if listed < len(tasks) || listed > len(tasks)+3 {
		t.Errorf("%d operations exist, %d were acknowledged", listed, len(tasks))
	}
	if err := s.stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
	if left, _ := os.ReadDir(filepath.Join(dir, "scratch")); len(left) != 0 {
		t.Errorf("scratch left behind: %v", left)
	}
	if out := tool(t, "/usr/bin/python3", "-c", "import sqlite3,sys; print(sqlite3.connect(sys.argv[1]).execute('pragma integrity_check').fetchone()[0])", filepath.Join(dir, "filewright.db")); strings.TrimSpace(out) != "ok" {
		t.Errorf("database: %s", out)
	}
	t.Logf("%d kills, %d uploads, %d operations", kills, len(files), len(tasks))
}

// unread returns the number of bytes that have arrived on the server's connections but that it has
// not read.
func (s *server) unread(t *testing.T) (n int64) {
	t.Helper()
	_, port, err := net.SplitHostPort(strings.TrimPrefix(s.url, "http://"))
	systest.NoError(t, err)
	number, _ := strconv.Atoi(port)
	b, err := os.ReadFile("/proc/net/tcp") // proc(5): number, local address, remote address, state, send queue:receive queue, …
	systest.NoError(t, err)
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if !strings.HasSuffix(f[1], fmt.Sprintf(":%04X", number)) || f[3] != "01" { // established
			continue
		}
		_, received, _ := strings.Cut(f[4], ":")
		size, err := strconv.ParseInt(received, 16, 64)
		systest.NoError(t, err)
		n += size
	}
	return n
}

// A graceful stop releases running items, and the next start finishes them.
func TestStopAndGoOn(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	// With an empty cache the server is still compiling when it is stopped.
	flags := []string{"--soffice", "none", "--chromium", "none"} // they start slowly
	s := start(t, dir, append(flags, "--drain", "300ms", "--cache-dir", filepath.Join(dir, "cache"))...)
	long := makeFile(t, "long.mp4", "", "ffmpeg", "-nostdin", "-v", "error", "-f", "lavfi", "-i", "testsrc2=size=640x360:rate=30:duration=8",
		"-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "long.mp4")
	task := s.begin(t, "compress", nil, long)
	eventually(t, "there is progress", func() bool {
		return s.want(t, 200, "", "GET", "/api/v1/status/"+task, nil).elements()[0]["progress"].(float64) > 0
	})
	// A waiting client gets a response before the connection closes.
	waiting, sent := make(chan *response, 1), make(chan struct{})
	go func() {
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { close(sent) }})
		r, _ := s.try(ctx, "GET", "/api/v1/status/"+task+"?wait=30s", nil)
		waiting <- r
	}()
	<-sent
	eventually(t, "the server has read the request", func() bool { return s.unread(t) == 0 })
	if err := s.stop(); err != nil {
		t.Fatalf("stop: %v", err)
	}
	if r := <-waiting; r == nil || r.status != 200 {
		t.Error("the client that waited got no answer")
	}
	again := start(t, dir, flags...)
	again.key = s.key
	if r := again.await(t, task); r.str("operation_status") != "completed" {
		t.Errorf("after the restart: %s", r.raw)
	}
}

// The commands that inspect a host work without a server.
func TestCommands(t *testing.T) {
	t.Parallel()
	if out := tool(t, binary, "doctor"); !strings.Contains(out, "ffmpeg") || !strings.Contains(out, "All engines work") {
		t.Errorf("doctor:\n%s", out)
	}
	if out := tool(t, binary, "formats", "docx"); !strings.Contains(out, "pdf") {
		t.Errorf("formats:\n%s", out)
	}
	if out := tool(t, binary, "health", "--listen", strings.TrimPrefix(shared.url, "http://")); out != "ready\n" {
		t.Errorf("health: %s", out)
	}
	if out := tool(t, binary, "--help"); !strings.Contains(out, "doctor") {
		t.Errorf("help:\n%s", out)
	}
	if out := tool(t, binary, "serve", "--help"); !strings.Contains(out, "--data-dir") || !strings.Contains(out, "[127.0.0.1:8080]") {
		t.Errorf("help:\n%s", out)
	}
	in := sample(t, format.PNG).save(t)
	out := filepath.Join(t.TempDir(), "x.webp")
	tool(t, binary, "convert", in, out)
	if w := strings.TrimSpace(tool(t, "vipsheader", "-f", "width", out)); w != "160" {
		t.Errorf("convert: width %s", w)
	}
}

// A missing engine is not advertised, and doctor says how to install it.
func TestMissingEngines(t *testing.T) {
	t.Parallel()
	s := startLean(t, filepath.Join(t.TempDir(), "data"))
	if !strings.Contains(s.banner, "Not available here: ffmpeg") {
		t.Errorf("banner: %s", s.banner)
	}
	for ext, want := range map[string]string{"docx": "[compress inspect lock reset_password unlock zip]", "html": "[convert inspect zip]", "mp4": "[zip]", "mp3": "[zip]"} {
		if r := s.want(t, 200, "", "POST", "/api/v1/supported-operation", map[string]any{"ext": ext}); fmt.Sprint(r.body["available_actions"]) != want {
			t.Errorf("%s: %s", ext, r.raw)
		}
	}
	// The tables of a page need no engine; rendering it does.
	if got := s.targets(t, "html"); !slices.Contains(got, "csv") || slices.Contains(got, "pdf") {
		t.Errorf("html becomes %v", got)
	}
	key := s.upload(t, "a.docx", []byte("x"), 1)
	s.want(t, 400, "unsupported_operation", "POST", "/api/v1/do", map[string]any{"action": "convert", "file_keys": []string{key}, "parameters": map[string]any{"convert_to": "pdf"}})
	s.ready(t)
	if len(s.targets(t, "pdf")) == 0 {
		t.Error("what needs no external program is gone too")
	}
}
