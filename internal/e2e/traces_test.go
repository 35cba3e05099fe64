//go:build linux

package e2e

import (
	"cmp"
	"compress/gzip"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// A tracedSpan is a span that a collector received, with the ID of the process that sent it.
type tracedSpan struct {
	*tracepb.Span
	node string
}

func (s tracedSpan) attr(key string) string {
	for _, kv := range s.Attributes {
		if kv.Key == key {
			return kv.Value.GetStringValue()
		}
	}
	return ""
}

// A spanCollector is an OTLP receiver that decodes the official protocol.
type spanCollector struct {
	*httptest.Server
	mu    sync.Mutex
	spans []tracedSpan
	text  strings.Builder // everything that arrived
}

func newSpanCollector(t *testing.T) *spanCollector {
	c := new(spanCollector)
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req tracepb.TracesData // has the encoding of ExportTraceServiceRequest
		z, err := gzip.NewReader(r.Body)
		if err == nil {
			var b []byte
			if b, err = io.ReadAll(z); err == nil {
				err = proto.Unmarshal(b, &req)
			}
		}
		if err != nil || r.Header.Get("X-Token") != "collector-token" {
			t.Errorf("request to the collector: %v, headers %v", err, r.Header)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		fmt.Fprintln(&c.text, &req)
		for _, rs := range req.ResourceSpans {
			node := ""
			for _, kv := range rs.Resource.Attributes {
				if kv.Key == "service.instance.id" {
					node = kv.Value.GetStringValue()
				}
			}
			for _, ss := range rs.ScopeSpans {
				for _, s := range ss.Spans {
					c.spans = append(c.spans, tracedSpan{s, node})
				}
			}
		}
	}))
	t.Cleanup(c.Close)
	return c
}

// find returns the spans of a trace with a name.
func (c *spanCollector) find(id, name string) (list []tracedSpan) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.spans {
		if hex.EncodeToString(s.TraceId) == id && s.Name == name {
			list = append(list, s)
		}
	}
	return list
}

// TestTraces follows an operation through two processes and its webhook.
func TestTraces(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	col := newSpanCollector(t)
	flags := []string{"--otlp-endpoint", col.URL, "--otlp-headers", "X-Token=collector-token", "--webhook-allow", "127.0.0.0/8", "--url-allow", "127.0.0.0/8"}
	api := c.node("api", flags...)
	pandoc := slices.Index(noEngines, "--pandoc")
	worker := c.node("worker", append(slices.Delete(slices.Clone(noEngines), pandoc, pandoc+2), flags[:4]...)...)
	api.supports(t, true, "md", "convert")
	h := newHook(t)
	close(h.hang)
	api.manager(t, "--database-url", c.url)
	api.want(t, 200, "", "POST", webhooks, map[string]any{"url": h.URL + "/secret-path", "events": []string{"operation.completed"}})

	const id, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	key := api.upload(t, "private-name.md", []byte("# Hello\n"), 1)
	task := api.want(t, 200, "", "POST", "/api/v1/do", map[string]any{"action": "convert", "parameters": map[string]any{"convert_to": "rst"}, "file_keys": []string{key}},
		"Traceparent", "00-"+id+"-"+parent+"-01").str("main_task_id")
	if r := api.await(t, task); r.str("operation_status") != "completed" {
		t.Fatalf("operation: %s", r.raw)
	}
	got, _ := h.wait(t, 1)
	header := got[0].Header.Get("Traceparent")
	one := func(name string) (found tracedSpan) {
		t.Helper()
		eventually(t, "a span "+name, func() bool {
			list := col.find(id, name)
			if len(list) > 0 {
				found = list[0]
			}
			return len(list) == 1 || len(list) > 1 && name == "engine run" // pandoc also reads the result
		})
		return found
	}
	request, submit, queue, attempt, hook := one("POST /api/v1/do"), one("submit"), one("queue"), one("attempt"), one("webhook")
	opened, run, put := one("store open"), one("engine run"), one("store put")
	for _, link := range []struct{ child, parent tracedSpan }{{submit, request}, {queue, submit}, {attempt, submit}, {opened, attempt}, {run, attempt}, {put, attempt}, {hook, submit}} {
		if string(link.child.ParentSpanId) != string(link.parent.SpanId) {
			t.Errorf("the parent of %q is not %q", link.child.Name, link.parent.Name)
		}
	}
	if hex.EncodeToString(request.ParentSpanId) != parent {
		t.Error("the request does not continue the trace of its client")
	}
	if attempt.node == submit.node || attempt.node != put.node || hook.node != submit.node {
		t.Errorf("nodes: submit %s, attempt %s, webhook %s", submit.node, attempt.node, hook.node)
	}
	if want := "00-" + id + "-" + hex.EncodeToString(hook.SpanId) + "-01"; header != want {
		t.Errorf("the webhook has the traceparent %q, want %q", header, want)
	}
	if submit.attr("filewright.operation") != task || attempt.attr("filewright.action") != "convert" || run.attr("filewright.program") != "pandoc" || request.attr("http.route") != "/api/v1/do" {
		t.Errorf("attributes: %v, %v, %v, %v", submit.Attributes, attempt.Attributes, run.Attributes, request.Attributes)
	}
	for name, s := range map[string]*server{"api": api, "worker": worker} {
		if !strings.Contains(s.err.String(), "trace_id="+id) {
			t.Errorf("%s: no log line has the ID of the trace", name)
		}
	}
	for s, metric := range map[*server]string{api: "filewright_http_request_seconds_bucket", worker: "filewright_item_seconds_bucket"} {
		r := s.request(t, "GET", "/metrics", nil, "Accept", "application/openmetrics-text; version=1.0.0")
		if !regexp.MustCompile(metric + `\{.*# \{trace_id="` + id + `"\}`).Match(r.raw) {
			t.Errorf("%s has no exemplar of the trace", metric)
		}
	}
	// Both steps of an operation wait in the queue, the second from the end of the first.
	const stepsID, importID = "1af7651916cd43dd8448eb211c80319c", "2af7651916cd43dd8448eb211c80319c"
	task = api.want(t, 200, "", "POST", "/api/v1/do", map[string]any{"file_keys": []string{key}, "steps": []map[string]any{
		step("convert", map[string]any{"convert_to": "rst"}), step("convert", map[string]any{"convert_to": "md"}),
	}}, "Traceparent", "00-"+stepsID+"-"+parent+"-01").str("main_task_id")
	if r := api.await(t, task); r.str("operation_status") != "completed" {
		t.Fatalf("steps: %s", r.raw)
	}
	var queues, attempts, submitted []tracedSpan
	eventually(t, "the spans of both steps", func() bool {
		queues, attempts, submitted = col.find(stepsID, "queue"), col.find(stepsID, "attempt"), col.find(stepsID, "submit")
		return len(queues) == 2 && len(attempts) == 2 && len(submitted) == 1
	})
	byStart := func(x, y tracedSpan) int { return cmp.Compare(x.StartTimeUnixNano, y.StartTimeUnixNano) }
	slices.SortFunc(queues, byStart)
	slices.SortFunc(attempts, byStart)
	for i, q := range queues {
		if string(q.ParentSpanId) != string(submitted[0].SpanId) || q.EndTimeUnixNano > attempts[i].EndTimeUnixNano {
			t.Errorf("queue span %d: %v, attempt %v, submit %v", i, q, attempts[i], submitted)
		}
	}
	const ms = 1_000_000 // times in the database have milliseconds
	if queues[1].StartTimeUnixNano+ms < attempts[0].StartTimeUnixNano {
		t.Errorf("the second step was queued at %d, before the first ran at %d", queues[1].StartTimeUnixNano, attempts[0].StartTimeUnixNano)
	}
	// An import continues the trace of its request.
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "# Hello\n") }))
	defer origin.Close()
	api.want(t, 200, "", "POST", "/api/v1/import", map[string]any{"url": origin.URL + "/secret-url.md"}, "Traceparent", "00-"+importID+"-"+parent+"-01")
	eventually(t, "the span of the import", func() bool {
		imports, requests := col.find(importID, "import"), col.find(importID, "POST /api/v1/import")
		return len(imports) == 1 && len(requests) == 1 && string(imports[0].ParentSpanId) == string(requests[0].SpanId) && imports[0].EndTimeUnixNano <= requests[0].EndTimeUnixNano
	})
	col.mu.Lock()
	defer col.mu.Unlock()
	for _, secret := range []string{"private-name", "secret-path", "secret-url", "collector-token", api.key, key, "signature"} {
		if strings.Contains(col.text.String(), secret) {
			t.Errorf("the spans contain %q", secret)
		}
	}
}
