//go:build linux

package e2e

import (
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/filewright/filewright/internal/browsertest"
)

// A store serves one file and takes results, as a bucket does with presigned URLs.
type store struct {
	*httptest.Server
	asked chan string // method and path of each request

	mu   sync.Mutex
	hang bool // requests get no complete response
	put  map[string]string
}

func newStore(t *testing.T) *store {
	s := &store{asked: make(chan string, 100), put: make(map[string]string)}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		hang := s.hang
		s.mu.Unlock()
		s.asked <- r.Method + " " + r.URL.Path
		if r.Method == http.MethodGet {
			io.WriteString(w, "a,b\n")
		}
		if hang {
			if r.Method == http.MethodGet { // a status would accept a result
				http.NewResponseController(w).Flush()
			}
			<-r.Context().Done()
			return
		}
		if r.Method == http.MethodGet {
			io.WriteString(w, "1,2\n")
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.put[r.URL.Path] = string(body)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *store) setHang(hang bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hang = hang
}

func (s *store) got(path string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.put[path]
}

// throughURLs imports a file and delivers a result. The server that works on either is killed, and
// next returns the server that continues.
func throughURLs(t *testing.T, s *server, next func(*server) *server) {
	t.Helper()
	bucket := newStore(t)
	bucket.setHang(true)
	r := s.want(t, 202, "", "POST", "/api/v1/import", map[string]any{"url": bucket.URL + "/in/table.csv", "wait": "0s"})
	key := r.str("file_key")
	if asked := <-bucket.asked; asked != "GET /in/table.csv" {
		t.Fatal(asked)
	}
	s.kill()
	bucket.setHang(false)
	s = next(s)
	eventually(t, "the import has ended", func() bool {
		r = s.want(t, 200, "", "GET", "/api/v1/files/"+key+"?wait=10s", nil)
		return r.str("state") != "importing"
	})
	if r.str("state") != "ready" || r.str("file_name") != "table.csv" || r.body["size"] != 8.0 {
		t.Fatalf("%s", r.raw)
	}
	<-bucket.asked

	bucket.setHang(true)
	task := s.want(t, 200, "", "POST", "/api/v1/do", map[string]any{"action": "convert", "file_keys": []string{key}, "parameters": map[string]any{"convert_to": "tsv"},
		"deliver": []any{map[string]any{"url": bucket.URL + "/out/{index}-{name}"}}}).str("main_task_id")
	if asked := <-bucket.asked; asked != "PUT /out/1-table.tsv" {
		t.Fatal(asked)
	}
	s.kill()
	bucket.setHang(false)
	s = next(s)
	var state any
	eventually(t, "the delivery has ended", func() bool {
		r := s.want(t, 200, "", "GET", "/api/v1/status/"+task, nil)
		state = r.elements()[0]["delivery"].(map[string]any)["state"]
		return state != "pending"
	})
	if got := bucket.got("/out/1-table.tsv"); state != "delivered" || got != "a\tb\n1\t2\n" {
		t.Errorf("%v: %q", state, got)
	}
}

// Imports and deliveries survive the death of the server.
func TestURLs(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	launch := func(before *server) *server {
		s := startLean(t, dir, "--url-allow", "127.0.0.1")
		if before != nil {
			s.key = before.key
		}
		return s
	}
	s := launch(nil)
	throughURLs(t, s, func(before *server) *server { s = launch(before); return s })
	// The input and the result are left, and no scratch file.
	if files := slices.DeleteFunc(s.dataFiles(t), s.lasting); len(files) != 2 {
		t.Errorf("files %q", files)
	}
	// Without --url-allow, addresses like that of the store are refused.
	shared.want(t, 400, "url_address", "POST", "/api/v1/import", map[string]any{"url": "http://127.0.0.1/"})
	shared.want(t, 400, "url_address", "POST", "/api/v1/import", map[string]any{"url": "http://localhost:1/"})
	key := shared.upload(t, "a.csv", []byte("x"), 1)
	shared.want(t, 200, "", "GET", "/api/v1/files/"+key, nil)
	shared.want(t, 400, "url_address", "POST", "/api/v1/do", map[string]any{"action": "convert", "file_keys": []string{key}, "parameters": map[string]any{"convert_to": "tsv"},
		"deliver": []any{map[string]any{"url": "http://169.254.169.254/"}}})
}

// In a cluster, another server continues.
func TestURLsInCluster(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	flags := append(slices.Clone(noEngines), "--url-allow", "127.0.0.1")
	worker := c.node("worker", noEngines...) // results do not depend on the servers that are killed
	throughURLs(t, c.node("api", flags...), func(*server) *server {
		s := c.node("api", flags...)
		s.supports(t, true, "csv", "convert")
		return s
	})
	if err := worker.stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
}

// The page to try everything reads a file from a URL.
func TestDashboardImports(t *testing.T) {
	t.Parallel()
	s := startLean(t, filepath.Join(t.TempDir(), "data"), "--url-allow", "127.0.0.1")
	bucket := newStore(t)
	tab := browsertest.Open(t)
	login(t, s, tab)
	tab.Go(s.url + "/dashboard/try")
	refused := tab.Expect("400")
	tab.Fill("#url", "http://127.0.0.2/table.csv")
	tab.Click("#fetch")
	tab.Wait(`document.querySelector("#import-problem .note")?.textContent.includes("non-public address")`)
	refused()
	tab.Eval(`document.querySelector("#url").value = ""`, nil) // what was typed stays otherwise
	tab.Fill("#url", bucket.URL+"/in/table.csv")
	tab.Click("#fetch")
	tab.Wait(`document.querySelector("#files .file-name")?.textContent === "table.csv"`)
	settled(tab)
	tab.Accessible()
	choose(tab, "convert_to", "tsv")
	tab.Click("#start")
	tab.Wait(`document.querySelector("#state .completed")`)
	if b := fetchResult(t, s, tab); string(b) != "a\tb\n1\t2\n" {
		t.Errorf("result %q", b)
	}
	if calls := tab.Text("#calls"); !strings.Contains(calls, "/api/v1/import") || strings.Contains(calls, "initiate-upload") {
		t.Errorf("as curl: %s", calls)
	}
	tab.NoProblems()
}
