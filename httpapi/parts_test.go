package httpapi_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/internal/systest"
)

func initiate(size int64, parts int) string {
	return fmt.Sprintf(`{"file_name":"a.bin","size":%d,"mime_type":"application/octet-stream","parts":%d}`, size, parts)
}

// A file can have as many parts as any published client uses. Beyond that, parts have at least 5
// MiB.
func TestPartCounts(t *testing.T) {
	t.Parallel()
	a := serve(t, httpapi.Config{Limits: httpapi.Limits{Rate: httpapi.Unlimited()}})
	const mib = 1 << 20
	for _, size := range []int64{0, 1, 75, 5*mib - 1, 5 * mib, 5*mib + 1, 30*mib + 7, 499 * mib, 500*mib + 1, 4 << 30} {
		parts := min(max((size+5*mib-1)/(5*mib), 1), 100) // the formula of published clients
		if st, m := a.call(t, "key-a", "POST", "/api/v1/initiate-upload", initiate(size, int(parts))); st != 200 || len(m["presigned_urls"].([]any)) != int(parts) {
			t.Errorf("%d bytes in %d parts: %d %v", size, parts, st, m)
		}
	}
	for _, tt := range []struct {
		size    int64
		parts   int
		allowed string // "" if the number is accepted
	}{
		{0, 100, ""}, {75, 100, ""}, {75, 101, "1-100"}, {75, 10_000, "1-100"}, {501 * mib, 101, ""}, {501 * mib, 102, "1-101"},
		{50_000 * mib, 10_000, ""}, {49_990 * mib, 10_000, "1-9998"}, {5 << 40, 10_001, "1-10000"}, {5 << 40, 1 << 60, "1-10000"},
	} {
		st, m := a.call(t, "key-a", "POST", "/api/v1/initiate-upload", initiate(tt.size, tt.parts))
		if tt.allowed == "" {
			if st != 200 || len(m["presigned_urls"].([]any)) != tt.parts {
				t.Errorf("%d bytes in %d parts: %d %v", tt.size, tt.parts, st, m["detail"])
			}
			continue
		}
		if st != 400 || m["error"] != "invalid_request" || m["param"] != "parts" || !reflect.DeepEqual(m["allowed"], []any{tt.allowed}) {
			t.Errorf("%d bytes in %d parts: %d %.300v", tt.size, tt.parts, st, m)
		}
	}
}

// A streamed response is the same in all envelopes, and its URLs work.
func TestManyParts(t *testing.T) {
	t.Parallel()
	parts := systest.Scale(10_000, 1500)
	for _, envelope := range []httpapi.Envelope{httpapi.EnvelopeDual, httpapi.EnvelopePlain, httpapi.EnvelopeData} {
		a := serve(t, httpapi.Config{Envelope: envelope})
		body := initiate(int64(parts)*5<<20, parts)
		req, err := http.NewRequestWithContext(t.Context(), "POST", a.URL+"/api/v1/initiate-upload", strings.NewReader(body))
		systest.NoError(t, err)
		req.Header.Set("Authorization", "Bearer key-a")
		req.Header.Set("Idempotency-Key", "once")
		replay := req.Clone(t.Context())
		replay.Body = io.NopCloser(strings.NewReader(body))
		var keys []any
		for _, req := range []*http.Request{req, replay} {
			resp, err := http.DefaultClient.Do(req)
			systest.NoError(t, err)
			raw, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil || resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "application/json" {
				t.Fatalf("%d %v %.200s", resp.StatusCode, err, raw)
			}
			if err := a.check.Response("POST", req.URL.Path, 200, resp.Header, raw); err != nil && envelope != httpapi.EnvelopeData {
				t.Errorf("%v: %.300s", err, raw)
			}
			m := decodeJSON(t, raw)
			data, _ := m["data"].(map[string]any)
			delete(m, "data")
			switch envelope {
			case httpapi.EnvelopeDual:
				if !reflect.DeepEqual(m, data) {
					t.Error("the two copies differ")
				}
			case httpapi.EnvelopeData:
				m = data
			}
			urls, _ := m["presigned_urls"].([]any)
			if len(urls) != parts {
				t.Fatalf("%d URLs", len(urls))
			}
			keys = append(keys, m["file_key"])
			for _, n := range []int{0, parts / 2, parts - 1} {
				url := urls[n].(string)
				if !strings.Contains(url, fmt.Sprintf("/%d?", n+1)) {
					t.Errorf("URL %d: %s", n, url)
				}
				if st, m := a.call(t, "", "PUT", url, "x"); st != 200 {
					t.Errorf("PUT of part %d: %d %v", n+1, st, m)
				}
			}
		}
		if keys[0] != keys[1] {
			t.Errorf("the replay is of another session: %v", keys)
		}
	}
}

// Every hundred parts count as one more request. A request that costs more than the bucket's size
// passes when the bucket is full.
func TestPartsCost(t *testing.T) {
	t.Parallel()
	a := serve(t, httpapi.Config{Limits: httpapi.Limits{Rate: httpapi.Rate{PerSecond: 0.001, Burst: 60}}})
	many := initiate(3000*5<<20, 3000)
	for i, want := range []int{200, 429} {
		if st, m := a.call(t, "key-a", "POST", "/api/v1/initiate-upload", many); st != want || want == 429 && m["error"] != "rate_limit_exceeded" {
			t.Errorf("request %d: %d %.300v", i+1, st, m)
		}
	}
	// 60 - 31 - 1 remain for small requests.
	for i := range 29 {
		want := 200
		if i == 28 {
			want = 429
		}
		if st, m := a.call(t, "key-a", "POST", "/api/v1/initiate-upload", initiate(5, 1)); st != want {
			t.Fatalf("request %d: %d %v", i+1, st, m)
		}
	}
	many = initiate(2000*5<<20, 2000) // costs 21
	b := serve(t, httpapi.Config{Limits: httpapi.Limits{Rate: httpapi.Rate{PerSecond: 1000, Burst: 20}}})
	var wg sync.WaitGroup
	var mu sync.Mutex
	seen := make(map[int]int)
	for range 8 {
		wg.Go(func() {
			st, _ := b.call(t, "key-a", "POST", "/api/v1/initiate-upload", many)
			mu.Lock()
			defer mu.Unlock()
			seen[st]++
		})
	}
	wg.Wait()
	if seen[200]+seen[429] != 8 || seen[200] == 0 {
		t.Errorf("answers: %v", seen)
	}
}

func decodeJSON(t *testing.T, raw []byte) (m map[string]any) {
	t.Helper()
	if err := json.Unmarshal(raw, &m); err != nil {
		t.Fatalf("%v: %.300s", err, raw)
	}
	return m
}
