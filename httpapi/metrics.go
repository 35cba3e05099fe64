package httpapi

import (
	"context"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/filewright/filewright/status"
)

// metrics are the numbers of one service, in a registry of its own: a program
// may hold several services.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	latency  *prometheus.HistogramVec
	sent     prometheus.Counter
	uploaded prometheus.Counter
	items    *prometheus.HistogramVec
	failures *prometheus.CounterVec
	putOff   *prometheus.CounterVec
	lost     *prometheus.CounterVec
}

func newMetrics(stats func(context.Context) ([]status.QueueStats, error), engines []Engine, sandbox *Sandbox) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "filewright_http_requests_total", Help: "Requests by route, method and status code."}, []string{"route", "method", "code"}),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "filewright_http_request_seconds", Help: "Duration of requests by route, bodies included.",
			Buckets: []float64{.001, .005, .025, .1, .5, 2, 10, 60, 600}}, []string{"route"}),
		sent:     prometheus.NewCounter(prometheus.CounterOpts{Name: "filewright_http_sent_bytes_total", Help: "Bytes of response bodies."}),
		uploaded: prometheus.NewCounter(prometheus.CounterOpts{Name: "filewright_uploaded_bytes_total", Help: "Bytes of uploaded parts."}),
		items: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "filewright_item_seconds", Help: "Work on one item by action and engine.",
			Buckets: []float64{.01, .05, .25, 1, 5, 30, 120, 600, 1800}}, []string{"action", "engine"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "filewright_item_failures_total", Help: "Failed attempts at items by action, engine and error code."}, []string{"action", "engine", "code"}),
		putOff:   prometheus.NewCounterVec(prometheus.CounterOpts{Name: "filewright_item_waits_total", Help: "Attempts at items that were put off and do not count, by what was missing."}, []string{"reason"}),
		lost:     prometheus.NewCounterVec(prometheus.CounterOpts{Name: "filewright_item_attempts_lost_total", Help: "Attempts that count against the limit of an item, by reason: crash (the engine died) or error."}, []string{"reason"}),
	}
	engineUp := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "filewright_engine_available", Help: "1 if the engine can be used."}, []string{"engine", "version"})
	for _, e := range engines {
		up := 0.0
		if e.Err == nil {
			up = 1
		}
		engineUp.WithLabelValues(e.Name, e.Version).Set(up)
	}
	m.registry.MustRegister(m.requests, m.latency, m.sent, m.uploaded, m.items, m.failures, m.putOff, m.lost, engineUp, queueCollector{stats},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if sandbox != nil {
		tier := prometheus.NewGauge(prometheus.GaugeOpts{Name: "filewright_sandbox_tier", Help: "3 if files and system calls of the engines are confined and they have namespaces of their own, 2 without namespaces, 1 if only files or system calls are confined, 0 if neither."})
		tier.Set(float64(sandbox.Tier))
		m.registry.MustRegister(tier)
	}
	return m
}

// watchSpace adds a gauge of what can still be uploaded, if that is known.
func (m *metrics) watchSpace(free func(context.Context) (int64, error)) {
	if _, err := free(context.Background()); err != nil {
		return
	}
	m.registry.MustRegister(prometheus.NewGaugeFunc(
		prometheus.GaugeOpts{Name: "filewright_storage_free_bytes", Help: "Free space where uploads and results are kept."},
		func() float64 {
			n, err := free(context.Background())
			if err != nil {
				return math.NaN()
			}
			return float64(n)
		}))
}

// watchSweep adds a gauge of what a sweep has not dared to remove.
func (m *metrics) watchSweep(refused func() int64) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(
		prometheus.GaugeOpts{Name: "filewright_sweep_refused_objects", Help: "Stored objects without a record that the last sweep did not remove because they were too many."},
		func() float64 { return float64(refused()) }))
}

// watchContents adds the counter of contents that were found lost.
func (m *metrics) watchContents(lost func() int64) {
	m.registry.MustRegister(prometheus.NewCounterFunc(
		prometheus.CounterOpts{Name: "filewright_content_lost_total", Help: "Files whose content was found missing or of the wrong size; each file counts once for each process."},
		func() float64 { return float64(lost()) }))
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

func (m *metrics) request(r *http.Request, rec *recorder, d time.Duration) {
	route := rec.route
	if route == "" {
		route = "other"
	}
	m.requests.WithLabelValues(route, knownMethod(r.Method), strconv.Itoa(rec.status)).Inc()
	m.latency.WithLabelValues(route).Observe(d.Seconds())
	m.sent.Add(float64(rec.bytes))
}

// knownMethod keeps a client from making up labels.
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

func (m *metrics) item(action, engine, code string, d time.Duration) {
	m.items.WithLabelValues(action, engine).Observe(d.Seconds())
	if code != "" {
		m.failures.WithLabelValues(action, engine, code).Inc()
	}
}

// charged counts an attempt that counts.
func (m *metrics) charged(crash bool) {
	reason := "error"
	if crash {
		reason = "crash"
	}
	m.lost.WithLabelValues(reason).Inc()
}

// watchRescues adds a counter of the items that were taken over from other workers.
func (m *metrics) watchRescues(rescued func() int64) {
	m.registry.MustRegister(prometheus.NewCounterFunc(
		prometheus.CounterOpts{Name: "filewright_items_rescued_total", Help: "Items that this process took over from workers that died, froze or lost the database, and from its predecessor."},
		func() float64 { return float64(rescued()) }))
}

// A queueCollector asks the tracker when the metrics are read.
type queueCollector struct {
	stats func(context.Context) ([]status.QueueStats, error)
}

var (
	queuedDesc  = prometheus.NewDesc("filewright_items_queued", "Items that wait, by family of actions.", []string{"family"}, nil)
	runningDesc = prometheus.NewDesc("filewright_items_running", "Items that are worked on, by family of actions.", []string{"family"}, nil)
	waitingDesc = prometheus.NewDesc("filewright_items_waiting", "Queued items whose last attempt was put off, by family of actions and what was missing.", []string{"family", "reason"}, nil)
	oldestDesc  = prometheus.NewDesc("filewright_oldest_queued_seconds", "How long the oldest waiting item has waited, by family of actions.", []string{"family"}, nil)
)

// Describe implements prometheus.Collector.
func (c queueCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- queuedDesc
	ch <- runningDesc
	ch <- waitingDesc
	ch <- oldestDesc
}

// Collect implements prometheus.Collector.
func (c queueCollector) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	stats, err := c.stats(ctx)
	if err != nil {
		ch <- prometheus.NewInvalidMetric(queuedDesc, err)
		return
	}
	for _, q := range stats {
		ch <- prometheus.MustNewConstMetric(queuedDesc, prometheus.GaugeValue, float64(q.Queued), q.Queue)
		ch <- prometheus.MustNewConstMetric(runningDesc, prometheus.GaugeValue, float64(q.Running), q.Queue)
		for reason, n := range q.Waiting {
			ch <- prometheus.MustNewConstMetric(waitingDesc, prometheus.GaugeValue, float64(n), q.Queue, reason)
		}
		ch <- prometheus.MustNewConstMetric(oldestDesc, prometheus.GaugeValue, q.Oldest.Seconds(), q.Queue)
	}
}
