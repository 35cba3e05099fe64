package remote

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/filewright/filewright/status/transfer"
)

// Collectors returns metrics of the imports, for httpapi.Config.Collectors.
func (i *Imports) Collectors() []prometheus.Collector {
	return []prometheus.Collector{&collector{
		store: i.cfg.Store, kind: kindImport,
		pending: prometheus.NewDesc("filewright_imports_pending", "Unfinished imports, of all servers.", nil, nil),
		overdue: prometheus.NewDesc("filewright_imports_overdue_seconds", "How long the oldest unfinished import has been due.", nil, nil),
	}}
}

// Collectors returns metrics of the deliveries, for httpapi.Config.Collectors.
func (d *Deliveries) Collectors() []prometheus.Collector {
	return []prometheus.Collector{&collector{
		store: d.cfg.Store, kind: kindDelivery,
		pending: prometheus.NewDesc("filewright_deliveries_pending", "Unfinished deliveries of results to URLs, of all servers.", nil, nil),
		overdue: prometheus.NewDesc("filewright_deliveries_overdue_seconds", "How long the oldest unfinished delivery has been due.", nil, nil),
	}}
}

// A collector exports the number and the age of the unfinished transfers of a kind.
type collector struct {
	store            transfer.Store
	kind             string
	pending, overdue *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	ch <- c.pending
	ch <- c.overdue
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	n, since, err := c.store.Pending(ctx, c.kind)
	if err != nil {
		ch <- prometheus.NewInvalidMetric(c.pending, err)
		return
	}
	late := time.Duration(0)
	if !since.IsZero() {
		late = max(0, c.store.Now().Sub(since))
	}
	ch <- prometheus.MustNewConstMetric(c.pending, prometheus.GaugeValue, float64(n))
	ch <- prometheus.MustNewConstMetric(c.overdue, prometheus.GaugeValue, late.Seconds())
}
