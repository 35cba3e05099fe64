package otlp_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/filewright/filewright/internal/logtest"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/trace"
	"github.com/filewright/filewright/trace/otlp"
)

// A collector decodes requests with the official protocol.
type collector struct {
	*httptest.Server
	mu     sync.Mutex
	status int // of the next response; 0: 200
	token  string
	spans  []*tracepb.Span
}

func newCollector(t *testing.T) *collector {
	c := new(collector)
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.status != 0 {
			w.WriteHeader(c.status)
			c.status = 0
			return
		}
		var req tracepb.TracesData // has the encoding of ExportTraceServiceRequest
		z, err := gzip.NewReader(r.Body)
		if err == nil {
			var b []byte
			if b, err = io.ReadAll(z); err == nil {
				err = proto.Unmarshal(b, &req)
			}
		}
		if err != nil || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" {
			t.Errorf("%s %s: %v", r.Method, r.URL, err)
		}
		c.token = r.Header.Get("X-Token")
		for _, rs := range req.ResourceSpans {
			for _, ss := range rs.ScopeSpans {
				c.spans = append(c.spans, ss.Spans...)
			}
		}
	}))
	t.Cleanup(c.Close)
	return c
}

func newTracer(t *testing.T, cfg otlp.Config) *otlp.Tracer {
	tr, err := otlp.New(cfg)
	systest.NoError(t, err)
	return tr
}

func TestSpans(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	c.status = http.StatusServiceUnavailable // it is repeated
	tr := newTracer(t, otlp.Config{Endpoint: c.URL, Sample: 1, Header: http.Header{"X-Token": {"secret"}}})
	ctx, root := trace.Root(t.Context(), tr, "", "root", trace.Server, time.Time{})
	_, child := trace.Start(ctx, "child", trace.Client)
	child.String("text", strings.Repeat("x", 1000))
	child.Int("n", 7)
	child.Bool("b", true)
	child.End("too_large")
	root.End("")
	systest.NoError(t, tr.Close(t.Context()))
	if len(c.spans) != 2 || c.token != "secret" {
		t.Fatalf("%d spans, token %q", len(c.spans), c.token)
	}
	one, two := c.spans[0], c.spans[1]
	if one.Name != "child" || two.Name != "root" || !bytes.Equal(one.ParentSpanId, two.SpanId) || !bytes.Equal(one.TraceId, two.TraceId) ||
		one.Kind != tracepb.Span_SPAN_KIND_CLIENT || two.Kind != tracepb.Span_SPAN_KIND_SERVER || one.Status.GetCode() != tracepb.Status_STATUS_CODE_ERROR {
		t.Errorf("spans %v, %v", one, two)
	}
	for _, kv := range one.Attributes {
		if kv.Key == "text" && len(kv.Value.GetStringValue()) != 256 {
			t.Errorf("an attribute has %d bytes", len(kv.Value.GetStringValue()))
		}
	}
}

func TestSampling(t *testing.T) {
	t.Parallel()
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0"
	c := newCollector(t)
	tr := newTracer(t, otlp.Config{Endpoint: c.URL, Sample: 0})
	for parent, name := range map[string]string{"": "new", parent + "0": "not sampled", parent + "1": "sampled", parent + "b": "sampled, with other flags", parent + "a": "other flags"} {
		_, s := trace.Root(t.Context(), tr, parent, name, trace.Internal, time.Time{})
		if id := trace.ID(s.Traceparent()); id == "" || parent != "" && id != trace.ID(parent) {
			t.Errorf("%s: trace %q", name, s.Traceparent())
		}
		s.End("")
	}
	systest.NoError(t, tr.Close(t.Context()))
	for _, s := range c.spans {
		if !strings.HasPrefix(s.Name, "sampled") {
			t.Errorf("%q was recorded", s.Name)
		}
	}
	if len(c.spans) != 2 {
		t.Errorf("%d spans, want 2", len(c.spans))
	}
}

// A collector that is gone costs spans, never time of the work.
func TestDeadCollector(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	c.Close()
	log := new(logtest.Buffer)
	tr := newTracer(t, otlp.Config{Endpoint: c.URL, Sample: 1, Queue: 8, Interval: time.Millisecond, Timeout: 20 * time.Millisecond, Log: slog.New(slog.NewTextHandler(log, nil))})
	for range 10000 {
		_, s := trace.Root(t.Context(), tr, "", "work", trace.Internal, time.Time{})
		s.End("")
	}
	systest.Until(t, "the failure is logged", func() bool { return strings.Contains(log.String(), "cannot send spans") })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	systest.NoError(t, tr.Close(ctx))
	if n := strings.Count(log.String(), "cannot send spans"); n != 1 {
		t.Errorf("the failure is logged %d times", n)
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	for _, cfg := range []otlp.Config{{}, {Endpoint: "127.0.0.1:4318"}, {Endpoint: "http://user:password@host"}, {Endpoint: "http://host", Sample: 2}} {
		if _, err := otlp.New(cfg); err == nil || strings.Contains(err.Error(), "password@") {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}
