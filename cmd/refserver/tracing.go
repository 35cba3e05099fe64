package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/filewright/filewright/trace/otlp"
)

// tracingConfig configures traces.
type tracingConfig struct {
	endpoint string // "": off
	header   http.Header
	sample   float64
}

func (c *tracingConfig) register(fs *flagSet) {
	fs.StringVar(&c.endpoint, "otlp-endpoint", "", "base `URL` of an OpenTelemetry collector, such as http://127.0.0.1:4318, to which this server sends traces (OTLP over HTTP, /v1/traces); default: no traces")
	fs.secret["otlp-headers"] = true
	fs.Func("otlp-headers", "comma-separated `headers` of requests to the collector, name=value, such as an access token; better set in the environment as "+envName("otlp-headers"), func(v string) (err error) {
		c.header, err = parseHeaders(v)
		return err
	})
	c.sample = 1
	fs.Func("otlp-sample", "`share` of new traces that are recorded, from 0 to 1; a request whose traceparent is sampled is always recorded [1]", func(v string) (err error) {
		c.sample, err = strconv.ParseFloat(v, 64)
		if err == nil && !(c.sample >= 0 && c.sample <= 1) {
			err = errors.New("must be a number from 0 to 1")
		}
		return err
	})
}

// parseHeaders parses headers. Its errors do not repeat values, which may be secret.
func parseHeaders(v string) (http.Header, error) {
	h := make(http.Header)
	for i, one := range splitList(v) {
		name, value, ok := strings.Cut(one, "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if !ok || !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			return nil, fmt.Errorf("element %d is not a header such as name=value", i+1)
		}
		h.Add(name, value)
	}
	return h, nil
}

// newTracer returns the tracer of this server, or nil if there are no traces.
func (c *tracingConfig) newTracer(node string, log *slog.Logger) (*otlp.Tracer, error) {
	if c.endpoint == "" {
		if c.header != nil {
			return nil, errors.New("--otlp-headers requires --otlp-endpoint")
		}
		return nil, nil
	}
	t, err := otlp.New(otlp.Config{Endpoint: c.endpoint, Header: c.header, Sample: c.sample, Version: version(), Node: node, Log: log})
	if err != nil {
		return nil, fmt.Errorf("--otlp-endpoint: %w", err)
	}
	return t, nil
}

// flushTime is how long a stopping server sends its last spans.
const flushTime = 3 * time.Second

// closeTracer sends the last spans.
func (a *app) closeTracer() {
	if a.tracer == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), flushTime)
	defer cancel()
	if err := a.tracer.Close(ctx); err != nil {
		a.log.Warn("the last spans were not sent", "err", err)
	}
}
