package otlp

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/filewright/filewright/internal/backoff"
)

// A client sends batches to a collector. The client of OpenTelemetry links gRPC and reads the
// environment, so this package has its own.
type client struct {
	url       string
	header    http.Header
	transport http.RoundTripper
}

// Start implements [otlptrace.Client].
func (c *client) Start(context.Context) error { return nil }

// Stop implements [otlptrace.Client].
func (c *client) Stop(context.Context) error { return nil }

// UploadTraces implements [otlptrace.Client]. It repeats the request while the collector is
// overloaded or unreachable and ctx is not done (OTLP specification, "OTLP/HTTP Response").
func (c *client) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	// ExportTraceServiceRequest has the same encoding, but its package links gRPC.
	plain, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	if err != nil {
		return err
	}
	var body bytes.Buffer
	z := gzip.NewWriter(&body)
	if _, err := z.Write(plain); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	for b := backoff.New(500*time.Millisecond, 5*time.Second); ; {
		after, retry, err := c.post(ctx, body.Bytes())
		if err == nil || !retry {
			return err
		}
		if after > 0 && backoff.Sleep(ctx, after) != nil || after == 0 && b.Wait(ctx) != nil {
			return err
		}
	}
}

// post sends a request. It reports whether the request may be repeated and after which pause; 0:
// unknown.
func (c *client) post(ctx context.Context, body []byte) (after time.Duration, retry bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return 0, false, err
	}
	for name, values := range c.header {
		req.Header[name] = values
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	req.Header.Set("Content-Encoding", "gzip")
	req.Header.Set("User-Agent", "Filewright-OTLP")
	// No http.Client: it would follow redirects with the headers.
	resp, err := c.transport.RoundTrip(req)
	if err != nil {
		return 0, true, err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // the connection can be used again
	if resp.StatusCode/100 == 2 {
		return 0, false, nil
	}
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		retry = true
		if n, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && n > 0 {
			after = time.Duration(min(n, 60)) * time.Second
		}
	}
	return after, retry, fmt.Errorf("the collector responded with %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
}

var _ otlptrace.Client = (*client)(nil)
