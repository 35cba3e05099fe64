//go:build linux

package e2e

import (
	"bytes"
	"flag"
	"io"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/filewright/filewright/httpapi/sqlstore"
	"github.com/filewright/filewright/internal/systest"
)

var (
	oneCalls    = flag.Int("calls", 0, "how many `calls` TestOneCallLeavesNothing makes; 0: 300, or 30 with -short")
	oneCallSize = flag.Int64("call-bytes", 0, "`size` of the file of TestOneCallMemory; 0: 400 MiB, or 100 MiB with -short")
)

// call makes one call with a raw body and returns the response. The caller must close its body.
func (s *server) call(t *testing.T, query string, body io.Reader) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "POST", s.url+"/api/v1/run/"+query, body)
	systest.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+s.key)
	resp, err := http.DefaultClient.Do(req)
	systest.NoError(t, err)
	return resp
}

// dataFiles returns the files of the store and the scratch directory.
func (s *server) dataFiles(t *testing.T) (files []string) {
	t.Helper()
	for _, dir := range []string{"blobs", "scratch"} {
		files = append(files, systest.Regular(t, filepath.Join(s.dir, dir))...)
	}
	return files
}

func (s *server) goroutines(t *testing.T) int {
	t.Helper()
	m := regexp.MustCompile(`(?m)^go_goroutines (\d+)$`).FindSubmatch(s.want(t, 200, "", "GET", "/metrics", nil, "Authorization", "").raw)
	if m == nil {
		t.Fatal("no number of goroutines")
	}
	n, err := strconv.Atoi(string(m[1]))
	systest.NoError(t, err)
	return n
}

// Thousands of calls, good and bad, leave no file, no record and no goroutine behind, and the
// memory does not grow. The test logs the time of a call beyond that of its engine.
func TestOneCallLeavesNothing(t *testing.T) {
	t.Parallel()
	s := startLean(t, filepath.Join(t.TempDir(), "data"), "--rate", "0")
	calls := *oneCalls
	if calls == 0 {
		calls = scale(300, 30)
	}
	table := []byte("a,b\n1,2\n3,4\n")
	latency := make(map[string]time.Duration) // by operation
	one := func(i int) {
		t.Helper()
		query, body, want := "convert?file_name=table.csv&convert_to=json", table, 200
		switch i % 10 {
		case 3:
			query, body, want = "convert?file_name=broken.json&convert_to=csv", []byte("{"), 422
		case 6:
			query, want = "convert?file_name=table.csv&convert_to=json&shade=1", 400
		}
		began := time.Now()
		resp := s.call(t, query, bytes.NewReader(body))
		b, err := io.ReadAll(resp.Body)
		took := time.Since(began)
		resp.Body.Close()
		if err != nil || resp.StatusCode != want || want == 200 && !strings.Contains(string(b), `"a"`) {
			t.Fatalf("call %d: %d %s, %v", i, resp.StatusCode, b, err)
		}
		if want == 200 {
			latency[resp.Header.Get("X-Main-Task-Id")] = took
		}
	}
	// Until everything is warm. The code of pdfium is compiled in the background.
	resp := s.call(t, "convert?wait=10m&file_name=a.pdf&convert_to=png&pages=1", bytes.NewReader(pdf(t).b))
	if b, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != 200 {
		t.Fatalf("%d %s, %v", resp.StatusCode, b, err)
	}
	resp.Body.Close()
	for i := range 20 {
		one(i)
	}
	clear(latency)
	eventually(t, "the first files are deleted", func() bool { return len(s.dataFiles(t)) <= 1 })
	base, routines, memory := s.dataFiles(t), s.goroutines(t), resident(t, s.cmd.Process.Pid, "RssAnon:")
	for i := range calls {
		one(i)
	}
	eventually(t, "nothing is left", func() bool { return slices.Equal(s.dataFiles(t), base) })
	eventually(t, "no goroutine is left", func() bool { return s.goroutines(t) <= routines+10 })
	if now := resident(t, s.cmd.Process.Pid, "RssAnon:"); now > memory+100<<20 {
		t.Errorf("%d MiB of memory, before %d", now>>20, memory>>20)
	} else {
		t.Logf("%d calls: memory %d MiB, before %d", calls, now>>20, memory>>20)
	}
	systest.NoError(t, s.stop())
	db, err := sqlstore.Open(t.Context(), sqlstore.Options{Path: filepath.Join(s.dir, "filewright.db"), Exclusive: true})
	systest.NoError(t, err)
	defer db.Close()
	for f, err := range db.Files().All(t.Context()) {
		t.Errorf("record of %s (%s) left, %v", f.Name, f.State, err)
	}

	// The log has the time of each engine.
	var beyond, whole []time.Duration
	for _, m := range regexp.MustCompile(`msg="item completed".* operation=(\S+) .*duration=(\S+)`).FindAllStringSubmatch(s.err.String(), -1) {
		engine, err := time.ParseDuration(m[2])
		systest.NoError(t, err)
		if took, ok := latency[m[1]]; ok {
			beyond, whole = append(beyond, took-engine), append(whole, took)
		}
	}
	if len(beyond) == 0 {
		t.Fatal("no engine has logged its time")
	}
	slices.Sort(beyond)
	slices.Sort(whole)
	t.Logf("a call takes %v at p50; beyond its engine %v at p50, %v at p95", whole[len(whole)/2].Round(time.Microsecond),
		beyond[len(beyond)/2].Round(time.Microsecond), beyond[len(beyond)*95/100].Round(time.Microsecond))
}

// peakOfCall zips size random bytes in one call, and returns the most memory of the server.
func (s *server) peakOfCall(t *testing.T, size int64) (peak int64) {
	t.Helper()
	stop := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			peak = max(peak, resident(t, s.cmd.Process.Pid, "RssAnon:"))
			select {
			case <-tick.C:
			case <-stop:
				return
			}
		}
	})
	began := time.Now()
	resp := s.call(t, "zip?wait=10m&file_name=noise.bin", io.LimitReader(rand.NewChaCha8([32]byte{}), size))
	n, err := io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	close(stop)
	watch.Wait()
	if err != nil || resp.StatusCode != 200 || n < size || n != resp.ContentLength {
		t.Fatalf("%d, %d bytes of %d, %v", resp.StatusCode, n, resp.ContentLength, err)
	}
	t.Logf("%d MiB in and out in %v: memory at most %d MiB", size>>20, time.Since(began).Round(time.Second), peak>>20)
	return peak
}

// Memory does not grow with the file or the result.
func TestOneCallMemory(t *testing.T) {
	t.Parallel()
	size := *oneCallSize
	if size == 0 {
		size = int64(scale(400, 100)) << 20
	}
	s := startLean(t, filepath.Join(t.TempDir(), "data"))
	base := s.dataFiles(t)
	small, large := s.peakOfCall(t, size/4), s.peakOfCall(t, size)
	if large > small+80<<20 {
		t.Errorf("memory is at most %d MiB for %d MiB, and %d for %d", small>>20, size>>22, large>>20, size>>20)
	}
	eventually(t, "nothing is left", func() bool { return slices.Equal(s.dataFiles(t), base) })
}
