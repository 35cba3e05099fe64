//go:build linux

// Package kills kills the real server at random moments, hundreds of times, while clients use it.
// It then checks everything that the server has acknowledged.
package kills

import (
	"bufio"
	"bytes"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/filewright/filewright/fileops/fileopstest"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/systest"
)

// scale returns the number of repetitions: the value of a flag if set, else full, or short with
// -short.
func scale(flag, full, short int) int {
	switch {
	case flag > 0:
		return flag
	case testing.Short():
		return short
	}
	return full
}

var killsFlag = flag.Int("kills", 0, "how often the server of TestNothingIsLost is ended; 0: 130, or 20 with -short")

// binary is refserver, always built without the race detector: it should start quickly, and other
// tests look for races.
var binary string

func TestMain(m *testing.M) { systest.MainWith(m, &binary, "../../cmd/refserver") }

// A host is a place where servers run one after the other, on the same data and port. For customers
// it can also stand for several such places.
type host struct {
	dir, addr string
	engines   bool // servers have external engines
	flags     []string
	env       []string // in addition to the test's environment
	key       string
	client    *http.Client
	addrs     []string // addresses of the servers for customers
	strict    bool     // customers repeat only requests that no server has received

	started, stopped, early int          // servers; early: killed before they were ready
	boot                    atomic.Int64 // duration of the latest start
	uploads, operations     atomic.Int64 // acknowledged to customers

	mu      sync.Mutex
	trouble []string // error log lines of servers
}

func newHost(t *testing.T, flags ...string) *host {
	t.Helper()
	// The port is free now, and nobody else requests it by number.
	h := &host{dir: filepath.Join(t.TempDir(), "data"), addr: systest.FreeAddr(t), flags: flags,
		client: newClient(30 * time.Second)}
	h.addrs = []string{h.addr}
	out, err := exec.Command(binary, "keys", "create", "--data-dir", h.dir, "--name", "test").Output()
	if err != nil {
		t.Fatalf("keys create: %v", err)
	}
	for _, f := range strings.Fields(string(out)) {
		if strings.HasPrefix(f, "fw_") {
			h.key = f
		}
	}
	if h.key == "" {
		t.Fatalf("no key in %q", out)
	}
	return h
}

func newClient(timeout time.Duration) *http.Client {
	return &http.Client{Timeout: timeout, Transport: &http.Transport{MaxIdleConnsPerHost: 8}}
}

// A run is one process of the server.
type run struct {
	cmd   *exec.Cmd
	ready chan struct{} // closed when the server is ready
	ended chan struct{} // closed when its output has ended
	err   *bytes.Buffer
}

func (h *host) start(t *testing.T) *run {
	t.Helper()
	args := []string{"serve", "--listen", h.addr, "--data-dir", h.dir, "--cache-dir", systest.CodeCache(), "--log-level", "warn"}
	if !h.engines {
		args = append(args, "--ffmpeg", "none", "--soffice", "none", "--pandoc", "none", "--chromium", "none", "--tesseract", "none")
	}
	r := &run{cmd: exec.Command(binary, append(args, h.flags...)...), ready: make(chan struct{}), ended: make(chan struct{}), err: new(bytes.Buffer)}
	r.cmd.Stderr = r.err
	r.cmd.Env = append(os.Environ(), h.env...)
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := r.cmd.StdoutPipe()
	if err == nil {
		err = r.cmd.Start()
	}
	systest.NoError(t, err)
	h.started++
	began := time.Now()
	go func() {
		defer close(r.ended)
		for sc := bufio.NewScanner(out); sc.Scan(); {
			if strings.Contains(sc.Text(), "is ready at") {
				h.boot.Store(int64(time.Since(began)))
				close(r.ready)
			}
		}
	}()
	return r
}

// wait waits until the server is ready.
func (r *run) wait(t *testing.T) {
	t.Helper()
	select {
	case <-r.ready:
	case <-r.ended:
		t.Fatalf("the server does not start: %s", r.err)
	case <-time.After(2 * time.Minute):
		r.cmd.Process.Kill()
		t.Fatalf("the server does not become ready: %s", r.err)
	}
}

// end sends a signal to the server and waits for its end.
func (h *host) end(t *testing.T, r *run, sig os.Signal) {
	t.Helper()
	r.cmd.Process.Signal(sig)
	stuck := time.AfterFunc(time.Minute, func() { r.cmd.Process.Kill() })
	<-r.ended
	err := r.cmd.Wait()
	if !stuck.Stop() {
		t.Errorf("the server did not end by %v: %s", sig, r.err)
	}
	if sig == syscall.SIGTERM {
		h.stopped++
		if err != nil {
			t.Errorf("told to stop, the server ends with %v: %s", err, r.err)
		}
	}
	for line := range strings.Lines(r.err.String()) {
		if strings.Contains(line, "level=ERROR") || strings.Contains(line, "panic") {
			h.complain("%s", line)
		}
	}
	h.client.CloseIdleConnections()
}

// complain adds an error to trouble.
func (h *host) complain(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.trouble = append(h.trouble, fmt.Sprintf(format, args...))
}

// An answer is a server's response.
type answer struct {
	status int
	header http.Header
	raw    []byte
	body   map[string]any
	at     time.Time // time of arrival
}

func (a *answer) str(name string) string { s, _ := a.body[name].(string); return s }

// patience is how long a client retries a request. On a busy machine a server may be killed
// many times in a row before it is ready.
const patience = 10 * time.Minute

// ask retries a request until a server answers it, like a client. It returns nil if ctx is done
// first.
func (h *host) ask(ctx context.Context, method, path string, body any, headers ...string) *answer {
	b, raw := body.([]byte)
	if !raw && body != nil {
		b, _ = json.Marshal(body)
	}
	ours := strings.HasPrefix(path, "/")
	rest := path
	for _, addr := range h.addrs { // a presigned URL may contain any of them
		rest = strings.TrimPrefix(rest, "http://"+addr)
	}
	var last error
	turn := rand.IntN(len(h.addrs))
	for began := time.Now(); ctx.Err() == nil; turn++ {
		url := rest
		if strings.HasPrefix(rest, "/") {
			url = "http://" + h.addrs[turn%len(h.addrs)] + rest
		}
		if time.Since(began) > patience {
			h.complain("%s %s has no answer: %v", method, path, last)
			return nil
		}
		req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(b))
		if err != nil {
			panic(err)
		}
		if ours {
			req.Header.Set("Authorization", "Bearer "+h.key)
		}
		if !raw && body != nil {
			req.Header.Set("Content-Type", "application/json")
		}
		for i := 0; i < len(headers); i += 2 {
			req.Header.Set(headers[i], headers[i+1])
		}
		resp, err := h.client.Do(req)
		if err == nil {
			a := &answer{status: resp.StatusCode, header: resp.Header}
			a.raw, err = io.ReadAll(resp.Body)
			resp.Body.Close()
			if a.at = time.Now(); err == nil && a.status < 500 && a.status != http.StatusTooManyRequests {
				if strings.Contains(resp.Header.Get("Content-Type"), "json") && !strings.Contains(path, "/download/") {
					json.Unmarshal(a.raw, &a.body)
				}
				return a
			}
			last = fmt.Errorf("%d %s, %w", a.status, a.raw, err)
			if h.strict && (err != nil || a.status != http.StatusServiceUnavailable) {
				h.complain("%s %s: %v", method, path, last)
				return nil
			}
		} else {
			last = err
			if h.strict && ctx.Err() == nil && !unreceived(err) {
				h.complain("%s %s: %v", method, path, err)
				return nil
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	return nil
}

// unreceived reports whether an error may be that of a connection that the server did not accept or
// closed while it was idle. In the latter case the client sees, depending on when it writes, a reset,
// the end, a broken pipe, or that its own transport has closed the connection after the end.
func unreceived(err error) bool {
	return slices.ContainsFunc([]error{syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EPIPE, io.EOF, net.ErrClosed}, func(target error) bool { return errors.Is(err, target) })
}

// blocks returns the checksums of the blocks of b.
func blocks(b []byte) (sums []uint32) {
	for block := range slices.Chunk(b, 1<<10) {
		sums = append(sums, crc32.ChecksumIEEE(block))
	}
	return sums
}

// differs describes how b differs from the uploaded bytes.
func (u *upload) differs(b []byte) string {
	var wrong []int
	for i, sum := range blocks(b) {
		if i >= len(u.sums) || sum != u.sums[i] {
			wrong = append(wrong, i)
		}
	}
	return fmt.Sprintf("%d bytes of %q, which has %d in parts of %d; other blocks of 1 KiB of %d: %v", len(b), u.name, u.size, u.part, len(u.sums), wrong)
}

// An upload is an acknowledged upload.
type upload struct {
	key  string
	name string
	sum  [32]byte
	size int
	part int       // bytes of each part except the last
	sums []uint32  // CRC-32 of each block of 1 KiB, to locate differences
	done time.Time // time of the response
	gone bool      // deleted; the deletion is acknowledged unless unsure
	// unsure: the customer was stopped before a response, so the deletion may or may not have
	// reached a server.
	unsure bool
}

// An operation is an acknowledged operation.
type operation struct {
	idem, id  string
	body      map[string]any
	results   int // expected number
	cancelled bool
	final     string    // its files when it was first final
	asked     time.Time // time of the acknowledgement
}

// A customer uses the server until it is stopped, and records all responses.
type customer struct {
	h   *host
	t   *testing.T
	rng *rand.Rand
	no  int
	n   int           // number of the next step
	ttl time.Duration // lifetime of files; 0: longer than the test

	uploads    []*upload
	operations []*operation
}

// fresh reports whether something created at a time must still exist.
func (c *customer) fresh(since time.Time) bool {
	return c.ttl == 0 || time.Since(since) < c.ttl*3/4
}

func (c *customer) work(ctx context.Context) {
	for ; ctx.Err() == nil; c.n++ {
		idem := fmt.Sprintf("%d-%d", c.no, c.n)
		switch k := c.rng.IntN(10); {
		case k < 3 || len(c.uploads) < 3:
			c.upload(ctx, idem)
		case k < 6:
			c.begin(ctx, idem)
		case k < 7:
			c.again(ctx)
		case k < 8:
			c.cancel(ctx)
		case k < 9:
			c.look(ctx, pick(c.rng, c.operations))
		default:
			c.remove(ctx)
		}
	}
}

func pick[T any](rng *rand.Rand, list []*T) *T {
	if len(list) == 0 {
		return nil
	}
	return list[max(0, len(list)-1-rng.IntN(10))]
}

// content returns a file of one of a few types.
func (c *customer) content() (name string, b []byte) {
	switch c.rng.IntN(3) {
	case 0:
		f := fileopstest.Sample(c.t, format.PNG)
		b, _ := f.Bytes()
		return "picture.png", b
	case 1:
		f := fileopstest.Sample(c.t, format.PDF)
		b, _ := f.Bytes()
		return "paper.pdf", b
	}
	b = make([]byte, c.rng.IntN(300_000))
	if c.rng.IntN(8) == 0 { // the server preallocates disk space for it
		b = make([]byte, 4<<20+c.rng.IntN(4<<20))
	}
	for i := range b {
		b[i] = byte(c.rng.Uint32())
	}
	return "data.bin", b
}

func (c *customer) upload(ctx context.Context, idem string) {
	name, b := c.content()
	c.send(ctx, idem, name, b)
}

// send uploads a file.
func (c *customer) send(ctx context.Context, idem, name string, b []byte) {
	parts := 1 + c.rng.IntN(3)
	request := map[string]any{"file_name": name, "size": len(b), "mime_type": "application/octet-stream", "parts": parts}
	begun := time.Now()
	// On a busy machine a short lifetime may end before the upload.
	late := func(a *answer) bool {
		return !c.fresh(begun) && (a.status == 403 || a.status == 404 || a.status == 410)
	}
	start := c.h.ask(ctx, "POST", "/api/v1/initiate-upload", request, "Idempotency-Key", "u"+idem)
	if start == nil || late(start) {
		return
	}
	if start.status != 200 {
		c.t.Errorf("initiate-upload: %d %s", start.status, start.raw)
		return
	}
	size := (len(b) + parts - 1) / parts
	var list []any
	for i, u := range start.body["presigned_urls"].([]any) {
		part := b[min(i*size, len(b)):min((i+1)*size, len(b))]
		put := c.h.ask(ctx, "PUT", u.(string), part)
		if put == nil || late(put) {
			return
		}
		if put.status != 200 {
			c.t.Errorf("PUT: %d %s", put.status, put.raw)
			return
		}
		etag := strings.Trim(put.header.Get("ETag"), `"`)
		if want := fmt.Sprintf("%x", md5.Sum(part)); etag != want {
			c.t.Errorf("PUT: the ETag is %s, want %s", etag, want)
		}
		list = append(list, map[string]any{"etag": etag, "part_number": i + 1})
	}
	if c.rng.IntN(4) == 0 {
		// A repeated request has the same response from every server.
		twice := c.h.ask(ctx, "POST", "/api/v1/initiate-upload", request, "Idempotency-Key", "u"+idem)
		if twice != nil && c.fresh(begun) && twice.str("file_key") != start.str("file_key") {
			c.t.Errorf("initiate-upload again: %d %s, want %s", twice.status, twice.raw, start.str("file_key"))
		}
	}
	done := c.h.ask(ctx, "POST", "/api/v1/complete-upload", map[string]any{"file_key": start.str("file_key"), "object_name": start.str("object_name"), "upload_id": start.str("upload_id"), "parts": list})
	if done == nil || late(done) {
		return
	}
	if done.status != 200 {
		c.t.Errorf("complete-upload: %d %s", done.status, done.raw)
		return
	}
	c.uploads = append(c.uploads, &upload{key: start.str("file_key"), name: name, sum: sha256.Sum256(b), size: len(b), part: size, sums: blocks(b), done: done.at})
	c.h.uploads.Add(1)
}

// some returns existing uploads with a name.
func (c *customer) some(name string, n int) (keys []string) {
	for _, u := range slices.Backward(c.uploads) {
		if len(keys) < n && !u.gone && c.fresh(u.done) && (name == "" || u.name == name) {
			keys = append(keys, u.key)
		}
	}
	return keys
}

func (c *customer) begin(ctx context.Context, idem string) {
	op := &operation{idem: "o" + idem}
	var keys []string
	parameters := map[string]any{}
	action := []string{"zip", "convert", "merge", "lock", "steps"}[c.rng.IntN(5)]
	switch action {
	case "zip":
		keys, op.results = c.some("", 3), 1
	case "convert":
		keys = c.some("picture.png", 2)
		op.results, parameters["convert_to"] = len(keys), "webp"
	case "merge":
		keys, op.results = c.some("paper.pdf", 2), 1
	case "lock":
		keys, op.results, parameters["password"] = c.some("paper.pdf", 1), 1, "pass"
	case "steps":
		keys, op.results = c.some("picture.png", 2), 1
	}
	if len(keys) == 0 || action == "merge" && len(keys) < 2 {
		return
	}
	op.body = map[string]any{"action": action, "file_keys": keys, "parameters": parameters}
	if action == "steps" {
		op.body = map[string]any{"file_keys": keys, "steps": []map[string]any{
			{"action": "convert", "parameters": map[string]any{"convert_to": "pdf"}},
			{"action": "merge"},
			{"action": "lock", "parameters": map[string]any{"password": "pass"}},
		}}
	}
	a := c.h.ask(ctx, "POST", "/api/v1/do", op.body, "Idempotency-Key", op.idem)
	switch {
	case a == nil:
	case a.status == 200:
		op.id, op.asked = a.str("main_task_id"), a.at
		c.operations = append(c.operations, op)
		c.h.operations.Add(1)
	case c.ttl == 0:
		c.t.Errorf("do: %d %s", a.status, a.raw)
	}
}

// again repeats a request with a known response.
func (c *customer) again(ctx context.Context) {
	op := pick(c.rng, c.operations)
	if op == nil || !c.fresh(op.asked) {
		return
	}
	a := c.h.ask(ctx, "POST", "/api/v1/do", op.body, "Idempotency-Key", op.idem)
	if a != nil && c.fresh(op.asked) && (a.status != 200 || a.str("main_task_id") != op.id) {
		c.t.Errorf("do again: %d %s, want %s", a.status, a.raw, op.id)
	}
}

func (c *customer) cancel(ctx context.Context) {
	op := pick(c.rng, c.operations)
	if op == nil || op.final != "" {
		return
	}
	op.cancelled = true // perhaps: the response may get lost
	if a := c.h.ask(ctx, "DELETE", "/api/v1/status/"+op.id, nil); a != nil && a.status != 200 && a.status != 202 && a.status != 204 && c.fresh(op.asked) {
		c.t.Errorf("cancel: %d %s", a.status, a.raw)
	}
}

// look reads the status of an operation. A final status must not change.
func (c *customer) look(ctx context.Context, op *operation) *answer {
	if op == nil {
		return nil
	}
	a := c.h.ask(ctx, "GET", "/api/v1/status/"+op.id, nil)
	if a == nil || !c.fresh(op.asked) {
		return a
	}
	if a.status != 200 {
		c.t.Errorf("status: %d %s", a.status, a.raw)
		return a
	}
	if st := a.str("operation_status"); st != "completed" && st != "failed" {
		if op.final != "" {
			c.t.Errorf("operation %s was final and is %s", op.id, st)
		}
		return a
	}
	files, _ := json.Marshal(a.body["files_data"])
	if op.final == "" {
		op.final = string(files)
	} else if op.final != string(files) {
		c.t.Errorf("operation %s ended twice:\n%s\n%s", op.id, op.final, files)
	}
	return a
}

// remove deletes an upload that no operation uses.
func (c *customer) remove(ctx context.Context) {
	u := pick(c.rng, c.uploads)
	if u == nil || u.gone || !c.fresh(u.done) {
		return
	}
	for _, op := range c.operations {
		if slices.Contains(op.body["file_keys"].([]string), u.key) {
			return
		}
	}
	u.gone = true
	// If the first response was lost, the next is 404.
	a := c.h.ask(ctx, "DELETE", "/api/v1/files/"+u.key, nil)
	u.unsure = a == nil
	if a != nil && a.status != 200 && a.status != 204 && a.status != 404 && c.fresh(u.done) {
		c.t.Errorf("delete: %d %s", a.status, a.raw)
	}
}

// harass runs servers on a host while customers use them, and kills each after a random time: most
// by SIGKILL, some by SIGTERM, some before they are ready. It returns with a ready server running.
func harass(t *testing.T, h *host, kills int, seed uint64, customers []*customer) *run {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	rng := rand.New(rand.NewPCG(seed, 1))
	r := h.start(t)
	r.wait(t)
	for _, c := range customers {
		wg.Go(func() { c.work(ctx) })
	}
	for range kills {
		sig := syscall.SIGKILL
		switch rng.IntN(8) {
		case 0:
			sig = syscall.SIGTERM
			r.wait(t)
		case 1:
			select {
			case <-r.ready:
			case <-time.After(time.Duration(rng.Int64N(h.boot.Load() + 1))):
				h.early++
			}
		default:
			r.wait(t)
		}
		select {
		case <-r.ready:
			time.Sleep(time.Duration(rng.IntN(500)) * time.Millisecond)
		default:
		}
		h.end(t, r, sig)
		r = h.start(t)
	}
	r.wait(t)
	// On a busy machine the servers did not live long enough for much work.
	systest.Until(t, "80 uploads and operations", func() bool { return h.uploads.Load() >= 80 && h.operations.Load() >= 80 })
	return r
}

// await waits until an operation is final.
func (c *customer) await(op *operation) *answer {
	for range 120 {
		a := c.h.ask(c.t.Context(), "GET", "/api/v1/status/"+op.id+"?wait=5s", nil)
		if a == nil {
			return nil
		}
		if st := a.str("operation_status"); a.status != 200 || st == "completed" || st == "failed" {
			return c.look(c.t.Context(), op)
		}
	}
	c.t.Errorf("operation %s does not end", op.id)
	return nil
}

// query checks the integrity of the database and returns the result of a query for one number.
func query(t *testing.T, dir, q string, args ...any) (n int) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "filewright.db")+"?mode=ro")
	systest.NoError(t, err)
	defer db.Close()
	var verdict string
	if err := db.QueryRow("PRAGMA integrity_check").Scan(&verdict); err != nil || verdict != "ok" {
		t.Fatalf("the database is damaged: %s, %v", verdict, err)
	}
	systest.NoError(t, db.QueryRow(q, args...).Scan(&n))
	return n
}

// contents returns the files in a server's store, except its identity and quarantined files.
func (h *host) contents(t *testing.T) []string {
	return slices.DeleteFunc(systest.Regular(t, filepath.Join(h.dir, "blobs")), func(path string) bool {
		return filepath.Base(path) == "identity" || strings.Contains(path, "/=quarantine/")
	})
}

// quarantined returns the keys of the files with quarantined content.
func (h *host) quarantined(t *testing.T) (keys []string) {
	for _, path := range systest.Regular(t, filepath.Join(h.dir, "blobs", "obj")) {
		if strings.Contains(path, "/=quarantine/") {
			keys = append(keys, filepath.Base(path))
		}
	}
	return keys
}

func (h *host) crew(t *testing.T, n int, ttl time.Duration) (out []*customer) {
	for i := range n {
		out = append(out, &customer{h: h, t: t, rng: rand.New(rand.NewPCG(uint64(i), 9)), no: i, ttl: ttl})
	}
	return out
}

// An account counts what the customers own at the end.
type account struct{ uploads, removed, operations, cancelled, results int }

// audit checks that everything acknowledged exists. It waits for operations to finish.
func audit(t *testing.T, h *host, customers []*customer) (n account) {
	t.Helper()
	listed := map[string]bool{} // results
	for _, c := range customers {
		for _, op := range c.operations {
			n.operations++
			a := c.await(op)
			if a == nil || a.status != 200 {
				t.Errorf("operation %s: %+v", op.id, a)
				continue
			}
			files := a.body["files_data"].([]any)
			if op.cancelled {
				n.cancelled++
			} else if a.str("operation_status") != "completed" || len(files) != op.results {
				t.Errorf("operation %s: %s, want %d results", op.id, a.raw, op.results)
			}
			for _, e := range files {
				e := e.(map[string]any)
				if e["status"] != "completed" {
					if !op.cancelled {
						t.Errorf("operation %s: %v", op.id, e)
					}
					continue
				}
				key := e["file_key"].(string)
				if listed[key] {
					t.Errorf("result %s exists twice", key)
				}
				listed[key] = true
				if d := h.ask(t.Context(), "GET", e["download_link"].(string), nil); d == nil || d.status != 200 || float64(len(d.raw)) != e["size"] {
					t.Errorf("result %s cannot be downloaded, or has not %v bytes: %+v", key, e["size"], d)
				}
			}
		}
		for _, u := range c.uploads {
			d := h.ask(t.Context(), "GET", "/v1/download/"+u.key, nil)
			switch {
			case d == nil:
				t.Errorf("upload %s: no answer", u.key)
			case u.gone:
				n.removed++
				if !u.unsure && d.status != 404 && d.status != 410 {
					t.Errorf("upload %s was deleted and is there: %d", u.key, d.status)
				}
			case d.status != 200 || sha256.Sum256(d.raw) != u.sum:
				t.Errorf("upload %s is not what was acknowledged: %d, %s; %s", u.key, d.status, u.differs(d.raw), d.header)
				if again := h.ask(t.Context(), "GET", "/v1/download/"+u.key, nil); again != nil {
					t.Logf("the same asked for again: %d, %s", again.status, u.differs(again.raw))
				}
			default:
				n.uploads++
			}
		}
	}
	n.results = len(listed)
	return n
}

// intermediate counts the results of steps before the last that exist although their operation is
// completed.
const intermediate = `SELECT count(*) FROM operations o JOIN items i ON i.operation = o.id, json_each(i.results) r JOIN files f ON f.file_key = r.value ->> 'key'
	WHERE o.steps IS NOT NULL AND o.state = 'completed' AND f.state = 'ready' AND i.idx < (SELECT max(idx) FROM items WHERE operation = o.id)`

// Everything that a server has acknowledged survives it: every upload with its bytes, and every
// operation once, with results that exist and do not change. Nothing else remains: no unknown
// result, no content without a record, no scratch files, no damage to the database.
func TestNothingIsLost(t *testing.T) {
	t.Parallel()
	h := newHost(t, "--drain", "200ms")
	customers := h.crew(t, 4, 0)
	r := harass(t, h, scale(*killsFlag, 60, 20), 1, customers)

	found := audit(t, h, customers)
	if found.uploads < 50 || found.operations < 50 || found.removed == 0 || found.cancelled == 0 || h.stopped == 0 || h.early == 0 {
		t.Fatalf("%+v, %d servers stopped, %d early: the test shows nothing", found, h.stopped, h.early)
	}

	// Another start removes what the servers left behind, once it is old enough.
	h.end(t, r, syscall.SIGTERM)
	past := time.Now().Add(-time.Minute)
	for _, path := range h.contents(t) {
		systest.NoError(t, os.Chtimes(path, past, past))
	}
	r = h.start(t)
	r.wait(t)
	known := func() int {
		return query(t, h.dir, "SELECT (SELECT count(*) FROM files WHERE state = 'ready') + (SELECT count(*) FROM files f WHERE state = 'open' AND EXISTS (SELECT 1 FROM parts p WHERE p.file_key = f.file_key))")
	}
	systest.Until(t, "content without a record is removed", func() bool { return len(h.contents(t)) <= known()+open(t, h.dir) })
	systest.Until(t, "results of finished steps are removed", func() bool { return query(t, h.dir, intermediate) == 0 })
	h.end(t, r, syscall.SIGTERM)
	if n, want := len(h.contents(t)), known(); n > want+open(t, h.dir) {
		t.Errorf("%d objects, but only %d files have content", n, want)
	}
	// A kill between content and record leaves content behind, which must be in quarantine.
	for _, key := range h.quarantined(t) {
		if n := query(t, h.dir, "SELECT count(*) FROM files WHERE state <> 'expired' AND file_key = '"+key+"'"); n != 0 {
			t.Errorf("the content of %s, which has a record, is in quarantine", key)
		}
	}
	if left := systest.Regular(t, filepath.Join(h.dir, "scratch")); len(left) > 0 {
		t.Errorf("scratch left behind: %v", left)
	}
	// Nobody resumes cancelled operations. Their results expire.
	if n := query(t, h.dir, `SELECT count(*) FROM files f JOIN operations o ON o.id = f.task
		WHERE f.state = 'ready' AND o.cancelled = 0 AND o.finished_ms IS NOT NULL AND NOT EXISTS (
			SELECT 1 FROM items i, json_each(i.results) r WHERE i.operation = o.id AND r.value ->> 'key' = f.file_key)`); n != 0 {
		t.Errorf("%d results exist that no operation lists", n)
	}
	if n := query(t, h.dir, "SELECT count(*) FROM files WHERE task <> ''"); n < found.results {
		t.Errorf("%d results have a record, %d are listed", n, found.results)
	}
	if n := query(t, h.dir, "SELECT count(*) FROM operations"); n < found.operations || n > found.operations+len(customers) {
		t.Errorf("%d operations exist, %d were acknowledged", n, found.operations)
	}
	if n := query(t, h.dir, "SELECT count(*) FROM operations WHERE args IS NOT NULL"); n != 0 {
		t.Errorf("%d final operations still have their parameters", n)
	}
	if n := query(t, h.dir, `SELECT count(*) FROM operations o WHERE o.steps IS NOT NULL AND
			(SELECT count(*) FROM items i WHERE i.operation = o.id) <> (SELECT sum(COALESCE(s.value ->> 'items', 0)) FROM json_each(o.steps) s)`); n != 0 {
		t.Errorf("%d operations have other items than their steps", n)
	}
	if n := query(t, h.dir, "SELECT count(*) FROM operations WHERE steps IS NOT NULL AND state = 'completed'"); n == 0 {
		t.Error("no operation of several steps was completed: the test shows less than it should")
	}
	if n, want := query(t, h.dir, "SELECT COALESCE(sum(items - failed), 0) FROM usage"), query(t, h.dir, "SELECT count(*) FROM items WHERE state = 'completed'"); n != want {
		t.Errorf("%d items are accounted for, %d were completed", n, want)
	}
	for _, line := range h.trouble {
		t.Errorf("a server logs: %s", line)
	}
	t.Logf("%d servers, %d stopped, %d killed before they were ready; %+v", h.started, h.stopped, h.early, found)
}

// A backup taken while customers use the server contains everything acknowledged before. A server
// continues from the backup.
func TestBackup(t *testing.T) {
	t.Parallel()
	h := newHost(t, "--drain", "200ms")
	customers := h.crew(t, 3, 0)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var wg sync.WaitGroup
	r := h.start(t)
	r.wait(t)
	copied := filepath.Join(t.TempDir(), "copy")
	var begun time.Time
	for range 3 { // the second and third update the first
		work, pause := context.WithCancel(ctx)
		for _, c := range customers {
			wg.Go(func() { c.work(work) })
		}
		uploads, operations := h.uploads.Load()+int64(scale(0, 30, 10)), h.operations.Load()+int64(scale(0, 30, 10))
		systest.Until(t, "the customers use the server", func() bool { return h.uploads.Load() >= uploads && h.operations.Load() >= operations })
		begun = time.Now()
		if out, err := exec.Command(binary, "backup", "--data-dir", h.dir, copied).CombinedOutput(); err != nil {
			t.Fatalf("backup: %v\n%s", err, out)
		}
		pause()
		wg.Wait()
	}
	h.end(t, r, syscall.SIGKILL)

	h.dir = copied
	r = h.start(t)
	r.wait(t)
	uploads, operations := 0, 0
	for _, c := range customers {
		for _, u := range c.uploads {
			if u.gone || u.done.After(begun) {
				continue
			}
			uploads++
			if d := h.ask(t.Context(), "GET", "/v1/download/"+u.key, nil); d == nil || d.status != 200 || sha256.Sum256(d.raw) != u.sum {
				t.Errorf("upload %s is not in the copy: %+v", u.key, d)
			}
		}
		for _, op := range c.operations {
			if op.asked.After(begun) {
				continue
			}
			operations++
			op.final = "" // it may have finished differently since
			a := c.await(op)
			if a == nil || a.status != 200 || !op.cancelled && a.str("operation_status") != "completed" {
				t.Errorf("operation %s: %+v", op.id, a)
				continue
			}
			for _, e := range a.body["files_data"].([]any) {
				if e := e.(map[string]any); e["status"] == "completed" {
					if d := h.ask(t.Context(), "GET", e["download_link"].(string), nil); d == nil || d.status != 200 || float64(len(d.raw)) != e["size"] {
						t.Errorf("result %v: %+v", e, d)
					}
				}
			}
		}
	}
	if uploads < 20 || operations < 20 {
		t.Fatalf("%d uploads and %d operations: the test shows nothing", uploads, operations)
	}
	h.end(t, r, syscall.SIGTERM)
	for _, line := range h.trouble {
		t.Errorf("a server logs: %s", line)
	}
	t.Logf("%d uploads, %d operations", uploads, operations)
}

// open returns the number of open uploads, which may have a staging area.
func open(t *testing.T, dir string) int {
	return query(t, dir, "SELECT count(*) FROM files WHERE state = 'open'")
}

// Files, results and operations expire on time, whatever happens to the servers, and not earlier.
// Afterwards nothing of them remains in the store, the database or the scratch space.
func TestNothingStays(t *testing.T) {
	t.Parallel()
	ttl := time.Duration(scale(0, 20, 10)) * time.Second
	h := newHost(t, "--drain", "200ms", "--file-ttl", ttl.String(), "--operation-ttl", ttl.String(), "--url-ttl", "1m", "--session-ttl", ttl.String(), "--expired-ttl", "1s", "--quarantine", "-1s", "--sweep", "300ms")
	customers := h.crew(t, 3, ttl)
	r := harass(t, h, scale(0, 30, 10), 2, customers)

	uploads, there := 0, 0
	for _, c := range customers {
		for _, u := range c.uploads {
			uploads++
			d := h.ask(t.Context(), "GET", "/v1/download/"+u.key, nil)
			switch {
			case d == nil:
				t.Errorf("upload %s: no answer", u.key)
			case u.gone:
			case c.fresh(u.done):
				there++
				if d.status != 200 || sha256.Sum256(d.raw) != u.sum {
					t.Errorf("upload %s is not what was acknowledged %v ago: %d, %d bytes", u.key, time.Since(u.done), d.status, len(d.raw))
				}
			case time.Since(u.done) > ttl+10*time.Second && d.status == 200:
				t.Errorf("upload %s should have ended %v ago", u.key, time.Since(u.done)-ttl)
			}
		}
	}
	if uploads < 30 || there == 0 {
		t.Fatalf("%d uploads, %d of them still there: the test shows nothing", uploads, there)
	}
	left := func() string {
		files := query(t, h.dir, "SELECT count(*) FROM files")
		parts := query(t, h.dir, "SELECT count(*) FROM parts")
		operations := query(t, h.dir, "SELECT count(*) FROM operations")
		items := query(t, h.dir, "SELECT count(*) FROM items")
		return fmt.Sprint(files, parts, operations, items, h.contents(t), systest.Regular(t, filepath.Join(h.dir, "scratch")))
	}
	// A start removes what earlier servers left behind, but not content of the second before it, which
	// may be its own by the clock of the file system: the last kill may have left such content.
	time.Sleep(2 * time.Second)
	h.end(t, r, syscall.SIGTERM)
	r = h.start(t)
	r.wait(t)
	const nothing = "0 0 0 0 [] []"
	for deadline := time.Now().Add(ttl + time.Minute); left() != nothing && time.Now().Before(deadline); {
		time.Sleep(300 * time.Millisecond)
	}
	if got := left(); got != nothing {
		t.Errorf("left are files, parts, operations, items, content and scratch: %s", got)
	}
	h.end(t, r, syscall.SIGTERM)
	for _, line := range h.trouble {
		t.Errorf("a server logs: %s", line)
	}
}
