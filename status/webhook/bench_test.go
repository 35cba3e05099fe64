package webhook_test

import (
	"fmt"
	"testing"
)

// BenchmarkSend sends a backlog of deliveries to four endpoints of four accounts on
// this machine.
func BenchmarkSend(b *testing.B) {
	for name, open := range databases {
		b.Run(name, func(b *testing.B) {
			db := open(b)
			w := newHooks(b, db, nil)
			r := receive(b, nil)
			for i := range 4 {
				create(b, w, fmt.Sprint("account", i), r.URL)
			}
			n := b.N/2 + 1 // each makes two deliveries
			for i := range n {
				one(b, db, fmt.Sprint("account", i%4), fmt.Sprint("op", i))
			}
			b.ResetTimer()
			run(b, w)
			r.wait(b, 2*n)
			b.ReportMetric(float64(2*n)/b.Elapsed().Seconds(), "delivery/s")
		})
	}
}
