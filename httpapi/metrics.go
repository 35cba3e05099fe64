package httpapi

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/filewright/filewright/internal/exemplar"
)

// metrics are the metrics of one service. They have their own registry, which can also be a
// collector of another registry: a program may run several services.
type metrics struct {
	registry *prometheus.Registry
	runtime  *prometheus.Registry // Go runtime and process
	requests *prometheus.CounterVec
	latency  *prometheus.HistogramVec
	sent     prometheus.Counter
	uploaded prometheus.Counter
	traced   bool
}

// newMetrics returns the metrics of a service and registers additional collectors.
func newMetrics(cfg *Config, more []prometheus.Collector) (*metrics, error) {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		runtime:  prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "filewright_http_requests_total", Help: "Requests by route, method and status code."}, []string{"route", "method", "code"}),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "filewright_http_request_seconds", Help: "Duration of requests by route, including bodies.",
			Buckets: []float64{.001, .005, .025, .1, .5, 2, 10, 60, 600}}, []string{"route"}),
		sent:     prometheus.NewCounter(prometheus.CounterOpts{Name: "filewright_http_sent_bytes_total", Help: "Bytes of response bodies."}),
		traced:   cfg.Tracer != nil,
		uploaded: prometheus.NewCounter(prometheus.CounterOpts{Name: "filewright_uploaded_bytes_total", Help: "Bytes of uploaded parts."}),
	}
	engineUp := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "filewright_engine_available", Help: "1 if the engine is available, else 0."}, []string{"engine", "version"})
	for _, e := range cfg.Engines {
		up := 0.0
		if e.Err == nil {
			up = 1
		}
		engineUp.WithLabelValues(e.Name, e.Version).Set(up)
	}
	m.runtime.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.registry.MustRegister(m.requests, m.latency, m.sent, m.uploaded, engineUp)
	m.registry.MustRegister(more...)
	if cfg.Sandbox != nil {
		tier := prometheus.NewGauge(prometheus.GaugeOpts{Name: "filewright_sandbox_tier", Help: "Sandbox layers of the engines. 0: none; 1: files or system calls; 2: both; 3: and namespaces; 4: and PID namespaces and cgroups."})
		tier.Set(float64(cfg.Sandbox.Tier))
		m.registry.MustRegister(tier)
	}
	for _, c := range cfg.Collectors {
		if err := m.registry.Register(c); err != nil {
			return nil, fmt.Errorf("httpapi: Config.Collectors: %w", err)
		}
	}
	if cfg.Registerer != nil {
		if err := cfg.Registerer.Register(m.registry); err != nil {
			return nil, fmt.Errorf("httpapi: Config.Registerer: %w", err)
		}
	}
	return m, nil
}

// handler returns the handler of /metrics. Only the format of OpenMetrics has exemplars.
func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(prometheus.Gatherers{m.registry, m.runtime}, promhttp.HandlerOpts{EnableOpenMetrics: m.traced})
}

// request records a request; parent is the traceparent of its span, or "".
func (m *metrics) request(r *http.Request, rec *recorder, d time.Duration, parent string) {
	route := rec.route
	route = cmp.Or(route, "other")
	m.requests.WithLabelValues(route, knownMethod(r.Method), strconv.Itoa(rec.status)).Inc()
	exemplar.Observe(m.latency.WithLabelValues(route), d, parent)
	m.sent.Add(float64(rec.bytes))
}

// knownMethod bounds the label values that a client can create.
func knownMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return method
	}
	return "other"
}

func (m *metrics) received(n int64) {
	if n > 0 {
		m.uploaded.Add(float64(n))
	}
}
