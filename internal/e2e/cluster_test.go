//go:build linux

package e2e

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/filewright/filewright/internal/pgtest"
	"github.com/filewright/filewright/internal/systest"
)

// A cluster is a set of servers that share a database and a directory.
type cluster struct {
	t     *testing.T
	pg    *pgtest.Server
	url   string
	blobs string

	mu  sync.Mutex
	key string // printed by the first server
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	pg := pgtest.Own(t)
	return &cluster{t: t, pg: pg, url: pg.Database(t), blobs: filepath.Join(t.TempDir(), "blobs")}
}

// node starts a server.
func (c *cluster) node(role string, flags ...string) *server {
	c.t.Helper()
	s := start(c.t, filepath.Join(c.t.TempDir(), role), append([]string{"--database-url", c.url, "--blob-url", c.blobs,
		"--role", role, "--lease", "4s"}, flags...)...)
	c.mu.Lock()
	defer c.mu.Unlock()
	s.key = cmp.Or(s.key, c.key)
	c.key = s.key
	return s
}

// number returns the result of a query for one number.
func (c *cluster) number(text string, args ...any) (n int) {
	c.t.Helper()
	conn, err := pgx.Connect(c.t.Context(), c.url)
	systest.NoError(c.t, err)
	defer conn.Close(c.t.Context())
	systest.NoError(c.t, conn.QueryRow(c.t.Context(), text, args...).Scan(&n))
	return n
}

// supports waits until a server knows the workers and reports that something is supported, or is
// not.
func (s *server) supports(t testing.TB, want bool, ext, action string) {
	t.Helper()
	eventually(t, fmt.Sprintf("%s of %s is supported: %v", action, ext, want), func() bool {
		r := s.request(t, "POST", "/api/v1/supported-operation", map[string]any{"ext": ext, "action": action})
		if r.status != 200 && r.status != 503 {
			t.Fatalf("supported-operation: %s", r.raw)
		}
		return r.status == 200 && r.body["supported"] == want
	})
}

// persist retries a request until the response is 200, like a client while servers and databases
// fail and return.
func persist(t *testing.T, servers []*server, n int, method, path string, body any, headers ...string) *response {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; n++ {
		ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
		r, err := servers[n%len(servers)].try(ctx, method, path, body, headers...)
		cancel()
		if err == nil && r.status == 200 {
			return r
		}
		if time.Now().After(end) {
			t.Errorf("%s %s: %v, error %v", method, path, r, err)
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// TestCluster runs many operations on two API nodes and three workers. Meanwhile a worker is
// killed, the database crashes, and an API node is killed. Every operation finishes once and has
// one result for each of its files.
func TestCluster(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	api := []*server{c.node("api")}
	empty := api[0].want(t, 200, "", "GET", "/api/v1/formats", nil)
	if n := len(empty.body["formats"].([]any)); n != 0 {
		t.Errorf("%d formats without a worker, want none", n)
	}
	convert := map[string]any{"ext": "csv", "action": "convert"}
	if r := api[0].want(t, 503, "unavailable", "POST", "/api/v1/supported-operation", convert); r.header.Get("Retry-After") == "" {
		t.Error("before the first worker: no Retry-After")
	}
	workers := make([]*server, 3)
	queues := []string{"data,archive,image", "data,archive", "image,archive"}
	var starting sync.WaitGroup
	for i := range workers {
		starting.Go(func() {
			workers[i] = c.node("worker", append(slices.Clone(noEngines), "--queues", queues[i], "--concurrency", "image=1,data=1,archive=1")...)
		})
	}
	api = append(api, c.node("api"))
	starting.Wait()
	if t.Failed() {
		return
	}
	told := 0 // outputs with the first administrator
	for _, s := range slices.Concat(api, workers) {
		told += len(passwordLine.FindAllString(s.banner, -1))
	}
	if told != 1 || !passwordLine.MatchString(api[0].banner) {
		t.Errorf("the password of the administrator was printed %d times", told)
	}
	for _, s := range api {
		s.supports(t, true, "csv", "convert")
		s.supports(t, true, "png", "convert")
		s.supports(t, true, "txt", "zip")
		s.supports(t, false, "mp4", "compress") // no worker runs that family
	}
	workers[0].want(t, 200, "", "GET", "/healthz", nil)
	workers[0].ready(t)
	if r, err := workers[0].try(t.Context(), "GET", "/api/v1/operations", nil); err == nil && r.status != 404 {
		t.Errorf("a worker answers a client with %d", r.status)
	}

	// Both API nodes get parts of one file.
	parts := api[0].initiate(t, "both.txt", 4000, 4)
	var list []map[string]any
	for i, u := range parts.urls {
		u = strings.Replace(u, api[0].url, api[i%2].url, 1)
		list = append(list, map[string]any{"part_number": i + 1, "etag": api[i%2].put(t, u, []byte(strings.Repeat(fmt.Sprint(i), 1000)))})
	}
	api[1].want(t, 200, "", "POST", "/api/v1/complete-upload", map[string]any{"file_key": parts.key, "object_name": parts.object, "upload_id": parts.id, "parts": list})

	image := api[0].upload(t, "dot.jpg", jpg(t).b, 1)
	table := api[1].upload(t, "table.csv", []byte("name,count\nx,1\n"), 1)
	requests := []map[string]any{
		{"action": "convert", "file_keys": []string{image, image}, "parameters": map[string]any{"convert_to": "webp"}},
		{"action": "convert", "file_keys": []string{table, table, table}, "parameters": map[string]any{"convert_to": "json"}},
		{"action": "zip", "file_keys": []string{table, parts.key}},
	}
	results := []int{2, 3, 1}
	operations := scale(90, 36)
	tasks := make([]string, operations)
	var clients sync.WaitGroup
	accepted := make(chan struct{}) // without a buffer: the clients are never far ahead of what happens to the servers
	for k := range 3 {
		clients.Go(func() {
			for i := k; i < operations; i += 3 {
				r := persist(t, api, i, "POST", "/api/v1/do", requests[i%3], "Idempotency-Key", fmt.Sprint("key", i))
				if r == nil {
					return
				}
				tasks[i] = r.str("main_task_id")
				select {
				case accepted <- struct{}{}:
				case <-t.Context().Done():
					return
				}
			}
		})
	}
	after := func(n int) {
		for range n {
			select {
			case <-accepted:
			case <-t.Context().Done():
			}
		}
	}
	after(operations / 6)
	workers[0].kill()
	after(operations / 6)
	systest.NoError(t, c.pg.Kill())
	eventually(t, "the server notices", func() bool { return api[0].request(t, "GET", "/readyz", nil).status == 503 })
	systest.NoError(t, c.pg.Up())
	after(operations / 6)
	api[1].kill()
	go func() {
		for range accepted {
		}
	}()
	clients.Wait()
	close(accepted)
	if t.Failed() {
		return
	}

	known := make(map[string]bool)
	for i, task := range tasks {
		var r *response
		for {
			if r = persist(t, api[:1], 0, "GET", "/api/v1/status/"+task+"?wait=30s", nil); r == nil || r.str("operation_status") == "completed" || r.str("operation_status") == "failed" {
				break
			}
		}
		if r == nil || r.str("operation_status") != "completed" || len(r.elements()) != results[i%3] {
			t.Fatalf("operation %d: %s", i, r.raw)
		}
		for _, e := range r.elements() {
			if key := e["file_key"].(string); known[key] {
				t.Errorf("result %s is there twice", key)
			} else {
				known[key] = true
			}
			d := api[0].want(t, 200, "", "GET", e["download_link"].(string), nil)
			if float64(len(d.raw)) != e["size"] {
				t.Errorf("%v has %d bytes, status says %v", e["file_name"], len(d.raw), e["size"])
			}
		}
	}
	slices.Sort(tasks)
	if n, stored := len(slices.Compact(tasks)), c.number(`SELECT count(*) FROM operations`); n != operations || stored != operations {
		t.Errorf("%d tasks and %d operations in the database, want %d", n, stored, operations)
	}
	if n := c.number(`SELECT count(*) FROM items WHERE finished_ms IS NULL`); n != 0 {
		t.Errorf("%d items have not ended", n)
	}
	for _, w := range workers[1:] {
		if err := w.stop(); err != nil {
			t.Errorf("a worker ends with %v", err)
		}
	}

	// Without workers, a new server offers the capabilities of the last ones.
	late := c.node("api")
	if r := late.want(t, 200, "", "POST", "/api/v1/supported-operation", convert); r.body["supported"] != true {
		t.Errorf("without workers: %s", r.raw)
	}
	waits := late.want(t, 200, "", "POST", "/api/v1/do", requests[1])
	again := c.node("worker", noEngines...)
	if r := persist(t, []*server{late}, 0, "GET", "/api/v1/status/"+waits.str("main_task_id")+"?wait=30s", nil); r == nil || r.str("operation_status") != "completed" {
		t.Errorf("accepted without workers: %v", r)
	}
	systest.Check(t, again.stop())
}

// TestFrozen freezes a worker while it processes an item. Another worker takes over, and the result
// of the first is dropped when it continues. Then one node cancels an operation that another node
// processes.
func TestFrozen(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	api := c.node("api")
	frozen := c.node("worker", "--queues", "media")
	api.supports(t, true, "mp4", "compress")
	long := makeFile(t, "long.mp4", "", "ffmpeg", "-nostdin", "-v", "error", "-f", "lavfi", "-i", "testsrc2=size=640x360:rate=30:duration=8",
		"-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "long.mp4")
	task := api.begin(t, "compress", nil, long)
	running := func(task string) {
		t.Helper()
		eventually(t, "it runs", func() bool {
			return api.want(t, 200, "", "GET", "/api/v1/status/"+task, nil).elements()[0]["status"] == "running"
		})
	}
	running(task)
	systest.NoError(t, frozen.cmd.Process.Signal(syscall.SIGSTOP))
	other := c.node("worker", "--queues", "media")
	if r := api.await(t, task); r.str("operation_status") != "completed" || len(r.elements()) != 1 {
		t.Fatalf("operation of a frozen worker: %s", r.raw)
	}
	systest.NoError(t, frozen.cmd.Process.Signal(syscall.SIGCONT))
	eventually(t, "the frozen worker notices that it is late", func() bool { return strings.Contains(frozen.err.String(), "claim lost") })
	if n := c.number(`SELECT count(*) FROM files WHERE task = $1`, task); n != 1 {
		t.Errorf("%d results, want 1", n)
	}
	if n := c.number(`SELECT max(token) FROM items`); n != 2 {
		t.Errorf("the work was begun %d times, want twice", n)
	}
	if attempts, restarts := c.number(`SELECT max(attempt) FROM items`), c.number(`SELECT max(restarts) FROM items`); attempts != 1 || restarts != 1 {
		t.Errorf("%d attempts and %d restarts, want one of each: a worker that freezes is not the fault of the file", attempts, restarts)
	}

	task = api.begin(t, "compress", nil, long)
	running(task)
	api.want(t, 200, "", "DELETE", "/api/v1/status/"+task, nil)
	if r := api.await(t, task); r.elements()[0]["error_code"] != "cancelled" {
		t.Errorf("cancelled operation: %s", r.raw)
	}
	for _, w := range []*server{frozen, other} {
		if err := w.stop(); err != nil {
			t.Errorf("a worker ends with %v", err)
		}
	}
}
