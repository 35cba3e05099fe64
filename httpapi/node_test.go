package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/status"
	"github.com/filewright/filewright/upload"
	"github.com/filewright/filewright/upload/blob/memblob"
)

// A node without the API processes items that a service accepts, and answers only probes.
func TestNode(t *testing.T) {
	t.Parallel()
	shared := httpapi.Config{
		Blobs: memblob.New(), Files: new(upload.MemStore), Operations: status.NewMemStore(),
		Secrets: [][]byte{[]byte("0123456789abcdef0123456789abcdef")}, Shared: true,
	}
	api := shared
	api.Concurrency = map[string]int{} // processes nothing
	a := serve(t, api)

	shared.Actions, shared.TempDir, shared.Log = []fileops.Action{shout()}, t.TempDir(), slog.New(slog.DiscardHandler)
	shared.Engines = []httpapi.Engine{{Name: "go", Version: "1"}}
	shared.Checks = map[string]func(context.Context) error{"disk": func(context.Context) error { return nil }}
	node, err := httpapi.NewNode(shared)
	systest.NoError(t, err)
	key := a.upload(t, "key-a", "a.txt", "hello")
	_, m := a.call(t, "key-a", "POST", "/api/v1/do", fmt.Sprintf(`{"action":"convert","file_keys":[%q],"parameters":{"convert_to":"md"}}`, key))
	systest.Start(t, node.Run)
	if _, m = a.call(t, "key-a", "GET", fmt.Sprintf("/api/v1/status/%s?wait=20s", m["main_task_id"]), ""); m["operation_status"] != "completed" {
		t.Errorf("%v", m)
	}

	get := func(method, path string) (int, string) {
		w := httptest.NewRecorder()
		node.ServeHTTP(w, httptest.NewRequest(method, path, nil))
		b, err := io.ReadAll(w.Result().Body)
		systest.NoError(t, err)
		return w.Code, string(b)
	}
	if st, body := get("GET", "/healthz"); st != 200 || !strings.Contains(body, `"status":"ok"`) {
		t.Errorf("healthz: %d %s", st, body)
	}
	if st, body := get("GET", "/metrics"); st != 200 || !strings.Contains(body, `filewright_item_seconds_count{action="convert",engine="go"} 1`) ||
		!strings.Contains(body, "go_goroutines") {
		t.Errorf("metrics: %d %s", st, body)
	}
	for _, path := range []string{"/api/v1/formats", "/openapi.json", "/docs", "/v1/download/k3v7mzq2d5yhw6tcn4xrfa7p2e"} {
		if st, body := get("GET", path); st != 404 {
			t.Errorf("%s: %d %s", path, st, body)
		}
	}
	for _, engine := range []string{"go", "another"} {
		st, body := get("GET", "/readyz")
		var m struct {
			Checks  map[string]string
			Engines []struct{ Name string }
		}
		if err := json.Unmarshal([]byte(body), &m); err != nil || st != 200 || m.Checks["disk"] != "ok" || len(m.Engines) != 1 || m.Engines[0].Name != engine {
			t.Errorf("readyz: %d %s", st, body)
		}
		node.ShowEngines([]httpapi.Engine{{Name: "another"}})
	}
}

// A host program can collect the metrics of its services in its own registry, beside /metrics.
func TestRegisterer(t *testing.T) {
	t.Parallel()
	host := prometheus.NewRegistry()
	extra := prometheus.NewCounter(prometheus.CounterOpts{Name: "extra_total", Help: "Of the host."})
	for _, name := range []string{"a", "b"} {
		labelled := prometheus.WrapRegistererWith(prometheus.Labels{"service": name}, host)
		a := serve(t, httpapi.Config{Registerer: labelled, Collectors: []prometheus.Collector{extra}})
		if m := a.convert(t, "key-a", `{"convert_to":"md"}`); m["operation_status"] != "completed" {
			t.Fatalf("%v", m)
		}
		for _, metric := range []string{`filewright_item_seconds_count\{action="convert",engine="go"\}`, "go_threads"} {
			if n := a.metric(t, metric); n == 0 {
				t.Errorf("/metrics shows no %s", metric)
			}
		}
	}
	families, err := host.Gather()
	systest.NoError(t, err)
	found := make(map[string]int)
	for _, f := range families {
		found[f.GetName()] = len(f.GetMetric())
	}
	if found["filewright_item_seconds"] != 2 || found["extra_total"] != 2 || found["filewright_http_requests_total"] == 0 || found["go_threads"] != 0 {
		t.Errorf("the registry of the host has %v", found)
	}
	taken := prometheus.NewRegistry()
	taken.MustRegister(extra)
	if _, err := httpapi.New(httpapi.Config{Auth: httpapi.AllowAll(), Registerer: taken, Collectors: []prometheus.Collector{extra}}); err == nil || !strings.Contains(fmt.Sprint(err), "Config.Registerer") {
		t.Errorf("a collector that is there already: %v", err)
	}
}
