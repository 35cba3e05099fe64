// Package exemplar connects metrics with traces.
package exemplar

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/filewright/filewright/trace"
)

// Observe records a duration in a histogram of seconds. If parent is the traceparent of a recorded
// trace, the histogram keeps its ID as an exemplar.
func Observe(o prometheus.Observer, d time.Duration, parent string) {
	if with, ok := o.(prometheus.ExemplarObserver); ok && trace.Sampled(parent) {
		with.ObserveWithExemplar(d.Seconds(), prometheus.Labels{"trace_id": trace.ID(parent)})
		return
	}
	o.Observe(d.Seconds())
}
