package worker

import (
	"context"
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/filewright/filewright/internal/exemplar"
	"github.com/filewright/filewright/status"
	"github.com/filewright/filewright/trace"
)

// metrics count the attempts at items.
type metrics struct {
	items     *prometheus.HistogramVec
	failures  *prometheus.CounterVec
	postponed *prometheus.CounterVec
	lost      *prometheus.CounterVec
	warnings  *prometheus.CounterVec
}

func newMetrics() *metrics {
	return &metrics{
		items: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "filewright_item_seconds", Help: "Duration of an attempt at an item, by action and engine.",
			Buckets: []float64{.01, .05, .25, 1, 5, 30, 120, 600, 1800}}, []string{"action", "engine"}),
		failures:  prometheus.NewCounterVec(prometheus.CounterOpts{Name: "filewright_item_failures_total", Help: "Failed attempts at items by action, engine and error code."}, []string{"action", "engine", "code"}),
		postponed: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "filewright_item_waits_total", Help: "Postponed attempts at items, which do not count, by missing resource."}, []string{"reason"}),
		lost:      prometheus.NewCounterVec(prometheus.CounterOpts{Name: "filewright_item_attempts_lost_total", Help: "Attempts that count against the limit of an item, by reason: crash (the engine died) or error."}, []string{"reason"}),
		warnings:  prometheus.NewCounterVec(prometheus.CounterOpts{Name: "filewright_item_warnings_total", Help: "Warnings about results by action and warning code."}, []string{"action", "code"}),
	}
}

// collectors returns the metrics of m and collectors that read from w at each scrape.
func (m *metrics) collectors(w *Worker) []prometheus.Collector {
	all := []prometheus.Collector{
		m.items, m.failures, m.postponed, m.lost, m.warnings, queueCollector{w.tracker.Stats},
		prometheus.NewCounterFunc(
			prometheus.CounterOpts{Name: "filewright_items_rescued_total", Help: "Items that this process took over from workers that died, froze or lost the database, and from its predecessor."},
			func() float64 { return float64(w.tracker.Rescued()) }),
		prometheus.NewGaugeFunc(
			prometheus.GaugeOpts{Name: "filewright_sweep_refused_objects", Help: "Stored objects without a record that the last sweep did not remove because they were too many."},
			func() float64 { return float64(w.uploads.SweepRefused()) }),
		prometheus.NewCounterFunc(
			prometheus.CounterOpts{Name: "filewright_orphans_removed_total", Help: "Stored objects without a record that sweeps of this process removed or moved to quarantine."},
			func() float64 { return float64(w.uploads.OrphansRemoved()) }),
		prometheus.NewGaugeFunc(
			prometheus.GaugeOpts{Name: "filewright_sweep_overdue_seconds", Help: "Time for which the expired file that has waited longest has not been removed."},
			func() float64 {
				ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
				defer cancel()
				d, err := w.uploads.SweepOverdue(ctx)
				if err != nil {
					return math.NaN()
				}
				return d.Seconds()
			}),
		prometheus.NewCounterFunc(
			prometheus.CounterOpts{Name: "filewright_content_lost_total", Help: "Files whose content was found missing or of the wrong size; each file counts once for each process."},
			func() float64 { return float64(w.uploads.LostContents()) }),
	}
	if _, err := w.uploads.FreeSpace(context.Background()); err != nil {
		return all // the store cannot report it
	}
	return append(all, prometheus.NewGaugeFunc(
		prometheus.GaugeOpts{Name: "filewright_storage_free_bytes", Help: "Free space where uploads and results are kept."},
		func() float64 {
			n, err := w.uploads.FreeSpace(context.Background())
			if err != nil {
				return math.NaN()
			}
			return float64(n)
		}))
}

// attempt records one attempt, which has the span of ctx; code is that of its failure, or empty.
func (m *metrics) attempt(ctx context.Context, action, engine, code string, d time.Duration) {
	exemplar.Observe(m.items.WithLabelValues(action, engine), d, trace.Of(ctx).Traceparent())
	if code != "" {
		m.failures.WithLabelValues(action, engine, code).Inc()
	}
}

// charged counts an attempt that counts against the limit of its item.
func (m *metrics) charged(crash bool) {
	reason := "error"
	if crash {
		reason = "crash"
	}
	m.lost.WithLabelValues(reason).Inc()
}

// A queueCollector reads the tracker at each scrape.
type queueCollector struct {
	stats func(context.Context) ([]status.QueueStats, error)
}

var (
	queuedDesc  = prometheus.NewDesc("filewright_items_queued", "Queued items, by family of actions.", []string{"family"}, nil)
	runningDesc = prometheus.NewDesc("filewright_items_running", "Running items, by family of actions.", []string{"family"}, nil)
	waitingDesc = prometheus.NewDesc("filewright_items_waiting", "Queued items that wait for a resource, by family of actions and resource.", []string{"family", "reason"}, nil)
	oldestDesc  = prometheus.NewDesc("filewright_oldest_queued_seconds", "Age of the oldest queued item, by family of actions.", []string{"family"}, nil)
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
