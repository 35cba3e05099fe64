//go:build linux

package e2e

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/filewright/filewright/internal/systest"
)

// "make soak" sets everyDeed.
var everyDeed = flag.Bool("every-deed", false, "do with each hostile file all that the server offers for it")

// serverGrowth limits the additional memory of the server process in bytes while it handles
// untrusted requests and files. Work that needs more runs in separate processes.
const serverGrowth = 200 << 20

// guard watches the memory of the server process itself, without its children, until check is
// called. check fails the test if the memory grew too much.
func (o *overseer) guard(t *testing.T) (check func(when string) int64) {
	t.Helper()
	pid := o.cmd.Process.Pid
	// Memory that earlier cases left behind counts.
	before := min(resident(t, pid, "VmRSS:"), o.base)
	// The high-water mark is exact if it can be reset (proc_pid_clear_refs(5)).
	exact := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0o200) == nil
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	var peak int64
	wg.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			peak = max(peak, resident(t, pid, "VmRSS:"))
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	})
	return func(when string) int64 {
		t.Helper()
		cancel()
		wg.Wait()
		if exact {
			peak = max(peak, resident(t, pid, "VmHWM:"))
		}
		if peak == 0 || before == 0 {
			t.Errorf("%s: nothing is known of the memory of the server", when)
		}
		if more := peak - before; more > serverGrowth {
			t.Errorf("%s: the server grew by %d MiB, from %d", when, more>>20, before>>20)
		}
		return peak - before
	}
}

// resident returns a number of bytes from the status of a process, or 0 if it has ended.
func resident(t *testing.T, pid int, field string) int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Error(err)
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == field {
			n, _ := strconv.ParseInt(f[1], 10, 64)
			return n << 10
		}
	}
	return 0
}

// repeated returns a text of n bytes.
func repeated(head, s string, n int, tail string) func() []byte {
	return func() []byte {
		return slices.Concat([]byte(head), bytes.Repeat([]byte(s), n/len(s)), []byte(tail))
	}
}

// numbered returns a text of n numbered pieces.
func numbered(head, piece string, n int, tail string) func() []byte {
	return func() []byte {
		var b bytes.Buffer
		b.WriteString(head)
		for i := range n {
			fmt.Fprintf(&b, piece, i)
		}
		b.WriteString(tail)
		return b.Bytes()
	}
}

// A storm of requests with long responses, or with bodies of the largest permitted size, stays
// within the limit.
func TestServerMemoryInStorms(t *testing.T) {
	t.Parallel()
	o := oversee(t)
	keys := make([]string, 10_000)
	for i := range keys {
		keys[i] = strings.Repeat("a", 26)
	}
	body := func(v any) []byte {
		b, err := json.Marshal(v)
		systest.NoError(t, err)
		return b
	}
	for _, tt := range []struct {
		name, path string
		body       []byte
		n          int
		want       []int
	}{
		{"many parts", "/api/v1/initiate-upload", body(map[string]any{"file_name": "a", "size": 10_000 * 5 << 20, "mime_type": "a/b", "parts": 10_000}), 200, []int{200, 429, 507}},
		{"more parts than needed", "/api/v1/initiate-upload", body(map[string]any{"file_name": "a", "size": 9, "mime_type": "a/b", "parts": 10_000}), 200, []int{400, 429}},
		{"many files", "/api/v1/do", body(map[string]any{"action": "zip", "file_keys": keys}), 200, []int{413, 429}},
		{"long notes", "/api/v1/do", body(map[string]any{"action": "zip", "file_keys": keys[:1], "notes": map[string]string{"a": strings.Repeat("\x01", 150_000)}}), 200, []int{400, 404, 429}},
		{"many notes", "/api/v1/do", numbered(`{"action":"zip","file_keys":["aaaaaaaaaaaaaaaaaaaaaaaaaa"],"notes":{`, `"%d":"",`, 80_000, `"":""}}`)(), 200, []int{413, 429}},
		{"many parameters", "/api/v1/do", numbered(`{"action":"zip","file_keys":["aaaaaaaaaaaaaaaaaaaaaaaaaa"],"parameters":{"a":[`, `{"%d":{}},`, 60_000, `0]}}`)(), 200, []int{413, 429}},
		{"many arrays", "/api/v1/do", repeated(`{"action":"zip","parameters":{"a":`, "[", 500_000, "")(), 200, []int{413, 429}},
		{"few notes", "/api/v1/do", numbered(`{"action":"zip","file_keys":["aaaaaaaaaaaaaaaaaaaaaaaaaa"],"notes":{`, `"%d":"",`, 4000, `"":""}}`)(), 400, []int{400, 404, 429}},
		{"long list of parts", "/api/v1/complete-upload", repeated(`{"file_key":"aaaaaaaaaaaaaaaaaaaaaaaaaa","parts":[`, `{"etag":"d41d8cd98f00b204e9800998ecf8427e","part_number":1},`, 600_000, `{}]}`)(), 200, []int{400, 404, 429}},
		{"too long", "/api/v1/do", bytes.Repeat([]byte(" "), 8<<20), 100, []int{413, 429}},
	} {
		check := o.guard(t)
		began := time.Now()
		var wg sync.WaitGroup
		var mu sync.Mutex
		statuses, total := make(map[int]int), int64(0)
		for range tt.n / scale(1, 4) {
			wg.Go(func() {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, o.url+tt.path, bytes.NewReader(tt.body))
				if err != nil {
					t.Error(err)
					return
				}
				req.Header.Set("Authorization", "Bearer "+o.key)
				req.Header.Set("Content-Type", "application/json")
				resp, err := http.DefaultClient.Do(req)
				if err != nil { // disconnected while it sends a body that is too long
					return
				}
				defer resp.Body.Close()
				n, _ := io.Copy(io.Discard, resp.Body)
				mu.Lock()
				defer mu.Unlock()
				statuses[resp.StatusCode]++
				total += n
			})
		}
		wg.Wait()
		more := check(tt.name)
		for status := range statuses {
			if !slices.Contains(tt.want, status) {
				t.Errorf("%s: answers %v, want only %v", tt.name, statuses, tt.want)
			}
		}
		if len(statuses) == 0 {
			t.Errorf("%s: no answer", tt.name)
		}
		t.Logf("%s: %v, %d MiB in %v: the server grew by %d MiB", tt.name, statuses, total>>20, time.Since(began).Round(time.Millisecond), more>>20)
	}
}

// largeDocuments checks that a document of about 30 MB stays within the limit, whatever parts of it a
// reader would like to keep.
func largeDocuments(t *testing.T, o *overseer) {
	const size = 25 << 20
	var directory bytes.Buffer
	z := zip.NewWriter(&directory)
	for i := 0; directory.Len() < size/2; i++ { // as much again in the directory
		if _, err := z.CreateRaw(&zip.FileHeader{Name: fmt.Sprintf("word/media/%d.png", i)}); err != nil {
			t.Fatal(err)
		}
	}
	systest.NoError(t, z.Close())
	const flat = `<?xml version="1.0"?><office:document xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" office:mimetype="application/vnd.oasis.opendocument.text"`
	for _, tt := range []struct {
		name string
		b    []byte
		to   []string
	}{
		{"attributes.html", repeated("<html><p ", "a ", size, ">")(), []string{"docx", "pdf"}},
		{"value.html", repeated(`<html><p title="`, "&lt;", size, `">`)(), []string{"docx"}},
		{"text.html", repeated("<html><p>", "&amp; ", size, "")(), []string{"epub"}},
		{"attributes.fodt", numbered(flat, ` a%d="1"`, size/10, "></office:document>")(), []string{"pdf"}},
		{"text.fodt", repeated(flat+"><office:body>", "text &amp;", size, "</office:body></office:document>")(), []string{"pdf"}},
		{"directory.docx", directory.Bytes(), []string{"pdf"}},
	} {
		key := o.upload(t, tt.name, tt.b, 1)
		for _, to := range tt.to {
			when := tt.name + " to " + to
			check := o.guard(t)
			r := o.request(t, "POST", "/api/v1/do", map[string]any{"action": "convert", "file_keys": []string{key}, "parameters": map[string]any{"convert_to": to}})
			if r.status == 200 {
				o.ends(t, when, r.str("main_task_id"), time.Duration(scale(5, 2))*time.Second)
			}
			t.Logf("%s: %d, the server grew by %d MiB", when, r.status, check(when)>>20)
		}
	}
}
