package sqlstore_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/filewright/filewright/httpapi/sqlstore"
	"github.com/filewright/filewright/status"
	"github.com/filewright/filewright/status/webhook"
)

// BenchmarkFinish claims and finishes the items of operations with five items: for an
// account without a webhook, while other accounts have webhooks, and for an account
// with one.
func BenchmarkFinish(b *testing.B) {
	for name, open := range map[string]func(testing.TB) *sqlstore.DB{"sqlite": open, "postgres": openPostgres} {
		for _, webhooks := range []string{"none", "others", "operations", "all"} {
			b.Run(name+"/webhooks="+webhooks, func(b *testing.B) {
				db := open(b)
				s := db.Operations()
				register := func(account string, n int, events ...string) {
					for i := range n {
						w := &webhook.StoredEndpoint{Endpoint: webhook.Endpoint{ID: fmt.Sprint(account, i), Account: account, URL: "http://127.0.0.1:9/", Events: events, Created: time.Now()}, Secret: []byte("x")}
						if err := db.Webhooks().Create(b.Context(), w, n+1); err != nil {
							b.Fatal(err)
						}
					}
				}
				switch webhooks {
				case "others":
					register("bob", 1000)
				case "operations":
					register("alice", 1, webhook.OperationCompleted)
				case "all":
					register("alice", 1)
				}
				var ops []*status.Operation
				for range b.N/5 + 1 {
					op, err := s.Create(b.Context(), benchOperation())
					if err != nil {
						b.Fatal(err)
					}
					ops = append(ops, op)
				}
				var next atomic.Int64
				b.ResetTimer()
				b.SetParallelism(8)
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						i := int(next.Add(1) - 1)
						c, err := s.Claim(b.Context(), status.Ref{Operation: ops[i/5].ID, Index: i % 5}, "w", time.Minute)
						if err != nil {
							b.Error(err)
							return
						}
						o := status.Outcome{Results: []status.File{{Key: "out", Name: "report.pdf", Size: 54321}}}
						if _, err := s.Finish(b.Context(), c, o); err != nil {
							b.Error(err)
							return
						}
					}
				})
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "item/s")
			})
		}
	}
}
