package webhook

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

var (
	pendingDesc  = prometheus.NewDesc("filewright_webhooks_pending", "Unfinished deliveries, of all servers.", nil, nil)
	overdueDesc  = prometheus.NewDesc("filewright_webhooks_overdue_seconds", "Age of the oldest due delivery.", nil, nil)
	attemptsDesc = prometheus.NewDesc("filewright_webhook_attempts_total", "Requests by result.", []string{"outcome"}, nil)
)

// Collectors returns collectors that export [Webhooks.Stats], for
// httpapi.Config.Collectors.
func (w *Webhooks) Collectors() []prometheus.Collector { return []prometheus.Collector{collector{w}} }

type collector struct{ w *Webhooks }

// Describe implements prometheus.Collector.
func (c collector) Describe(ch chan<- *prometheus.Desc) {
	ch <- pendingDesc
	ch <- overdueDesc
	ch <- attemptsDesc
}

// Collect implements prometheus.Collector.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	s, err := c.w.Stats(ctx)
	for outcome, n := range s.Attempts {
		ch <- prometheus.MustNewConstMetric(attemptsDesc, prometheus.CounterValue, float64(n), outcome)
	}
	if err != nil {
		ch <- prometheus.NewInvalidMetric(pendingDesc, err)
		return
	}
	ch <- prometheus.MustNewConstMetric(pendingDesc, prometheus.GaugeValue, float64(s.Pending))
	ch <- prometheus.MustNewConstMetric(overdueDesc, prometheus.GaugeValue, s.Overdue.Seconds())
}
