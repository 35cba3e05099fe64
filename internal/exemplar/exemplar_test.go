package exemplar_test

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/filewright/filewright/internal/exemplar"
	"github.com/filewright/filewright/internal/systest"
)

func TestObserve(t *testing.T) {
	t.Parallel()
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0"
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "h", Buckets: []float64{1, 2}})
	exemplar.Observe(h, time.Second/2, "")
	exemplar.Observe(h, time.Second/2, parent+"0")
	exemplar.Observe(h, time.Second*3/2, parent+"1")
	registry := prometheus.NewRegistry()
	registry.MustRegister(h)
	families, err := registry.Gather()
	systest.NoError(t, err)
	got := families[0].Metric[0].Histogram
	b := got.Bucket
	if got.GetSampleCount() != 3 || b[0].Exemplar != nil || b[1].Exemplar == nil {
		t.Fatalf("histogram %v", got)
	}
	if l := b[1].Exemplar.Label; len(l) != 1 || l[0].GetName() != "trace_id" || l[0].GetValue() != parent[3:35] {
		t.Errorf("exemplar %v", l)
	}
}

func TestOff(t *testing.T) {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "h", Buckets: []float64{1}})
	if n := testing.AllocsPerRun(100, func() { exemplar.Observe(h, time.Second, "") }); n != 0 {
		t.Errorf("without a trace there are %v allocations", n)
	}
}
