// Package otlp sends spans to an OpenTelemetry collector: OTLP over HTTP, as protobuf.
//
// Spans are sent in batches in the background. If the collector is slow or does not respond, the
// newest spans are dropped and the work goes on.
//
// The OpenTelemetry library reads attributes of this process from the variable
// OTEL_RESOURCE_ATTRIBUTES, if it is set.
package otlp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/filewright/filewright/trace"
)

// Config configures a [Tracer]. Endpoint is required.
type Config struct {
	// Endpoint is the base URL of the collector, such as http://127.0.0.1:4318. Spans go to
	// /v1/traces below it.
	Endpoint string

	Header http.Header // of each request, for example with a token of the collector; may be nil

	// Sample is the share of new traces that are recorded, from 0 to 1. A trace that another program
	// started is recorded if that program says so in its traceparent.
	Sample float64

	Version string // of the service
	Node    string // name of this process

	Queue    int           // spans that wait for the collector; more are dropped. 0: 4096
	Interval time.Duration // longest wait of a span for its batch; 0: 5 seconds
	Timeout  time.Duration // of a batch, with its retries; 0: 10 seconds

	Transport http.RoundTripper // nil: a new http.Transport that uses no proxy
	Log       *slog.Logger      // nil discards
}

// A Tracer is a [trace.Tracer] that sends its spans to a collector.
type Tracer struct {
	provider *sdktrace.TracerProvider
	tracer   oteltrace.Tracer
}

// Values of attributes are cut to this number of bytes, and spans have at most so many attributes.
const (
	maxValue      = 256
	maxAttributes = 32
)

// New checks cfg and returns a tracer. The caller must call [Tracer.Close].
func New(cfg Config) (*Tracer, error) {
	u, err := url.Parse(cfg.Endpoint)
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Host == "", u.RawQuery != "", u.Fragment != "":
		return nil, errors.New("otlp: the endpoint must be a URL such as http://127.0.0.1:4318")
	case u.User != nil:
		return nil, errors.New("otlp: the endpoint must not contain a password; use a header")
	case !(cfg.Sample >= 0 && cfg.Sample <= 1):
		return nil, fmt.Errorf("otlp: the share of recorded traces is %v, but must be from 0 to 1", cfg.Sample)
	}
	cfg.Timeout = cmp.Or(cfg.Timeout, 10*time.Second)
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	if cfg.Transport == nil {
		cfg.Transport = &http.Transport{MaxIdleConns: 1, IdleConnTimeout: time.Minute, TLSHandshakeTimeout: 10 * time.Second, ForceAttemptHTTP2: true}
	}
	client := &client{url: u.JoinPath("v1", "traces").String(), header: cfg.Header, transport: cfg.Transport}
	queue := cmp.Or(cfg.Queue, 4096)
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(&exporter{SpanExporter: otlptrace.NewUnstarted(client), log: cfg.Log},
			sdktrace.WithMaxQueueSize(queue), sdktrace.WithMaxExportBatchSize(min(queue, 512)),
			sdktrace.WithBatchTimeout(cmp.Or(cfg.Interval, 5*time.Second)), sdktrace.WithExportTimeout(cfg.Timeout)),
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(cfg.Sample))),
		sdktrace.WithRawSpanLimits(sdktrace.SpanLimits{AttributeValueLengthLimit: maxValue, AttributeCountLimit: maxAttributes}),
		sdktrace.WithResource(resource.NewSchemaless(
			attribute.String("service.name", "filewright"),
			attribute.String("service.version", cfg.Version),
			attribute.String("service.instance.id", cfg.Node))),
	)
	return &Tracer{provider: provider, tracer: provider.Tracer("github.com/filewright/filewright", oteltrace.WithInstrumentationVersion(cfg.Version))}, nil
}

// Close sends the spans that have ended, as far as the collector accepts them before ctx is done.
// Later spans are dropped.
func (t *Tracer) Close(ctx context.Context) error { return t.provider.Shutdown(ctx) }

// kinds are the kinds of OpenTelemetry. It is constant.
var kinds = map[trace.Kind]oteltrace.SpanKind{
	trace.Internal: oteltrace.SpanKindInternal,
	trace.Server:   oteltrace.SpanKindServer,
	trace.Client:   oteltrace.SpanKindClient,
	trace.Consumer: oteltrace.SpanKindConsumer,
}

// Start implements [trace.Tracer].
func (t *Tracer) Start(parent, name string, kind trace.Kind, at time.Time) trace.Recorder {
	ctx := context.Background()
	if trace.Valid(parent) {
		// Valid has checked the digits.
		id, _ := oteltrace.TraceIDFromHex(parent[3:35])
		span, _ := oteltrace.SpanIDFromHex(parent[36:52])
		var flags oteltrace.TraceFlags
		if trace.Sampled(parent) {
			flags = oteltrace.FlagsSampled
		}
		ctx = oteltrace.ContextWithRemoteSpanContext(ctx, oteltrace.NewSpanContext(oteltrace.SpanContextConfig{
			TraceID: id, SpanID: span, TraceFlags: flags, Remote: true,
		}))
	}
	_, s := t.tracer.Start(ctx, name, oteltrace.WithTimestamp(at), oteltrace.WithSpanKind(kinds[kind]))
	return recorder{s}
}

type recorder struct{ span oteltrace.Span }

// Traceparent implements [trace.Recorder].
func (r recorder) Traceparent() string {
	c := r.span.SpanContext()
	if !c.IsValid() {
		return ""
	}
	return "00-" + c.TraceID().String() + "-" + c.SpanID().String() + "-" + c.TraceFlags().String()
}

// Rename implements [trace.Recorder].
func (r recorder) Rename(name string) { r.span.SetName(name) }

// Set implements [trace.Recorder].
func (r recorder) Set(key string, value any) {
	switch v := value.(type) {
	case string:
		r.span.SetAttributes(attribute.String(key, v))
	case int64:
		r.span.SetAttributes(attribute.Int64(key, v))
	case bool:
		r.span.SetAttributes(attribute.Bool(key, v))
	}
}

// End implements [trace.Recorder].
func (r recorder) End(code string) {
	if code != "" {
		r.span.SetAttributes(attribute.String("error.type", code))
		r.span.SetStatus(codes.Error, code)
	}
	r.span.End()
}

// An exporter logs when the collector fails and when it works again. It returns no errors: the
// OpenTelemetry library would report each one to a global handler.
type exporter struct {
	sdktrace.SpanExporter
	log    *slog.Logger
	failed bool
}

// ExportSpans implements [sdktrace.SpanExporter].
func (e *exporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := e.SpanExporter.ExportSpans(ctx, spans)
	switch {
	case err != nil && !e.failed:
		e.log.Warn("cannot send spans to the collector; they are dropped until it accepts them again", "err", err)
	case err == nil && e.failed:
		e.log.Info("the collector accepts spans again")
	}
	e.failed = err != nil
	return nil
}
