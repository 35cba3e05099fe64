package sqlstore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/filewright/filewright/httpapi/sqlstore"
	"github.com/filewright/filewright/internal/systest"
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
				register := func(account string, n int, events ...string) {
					for i := range n {
						w := &webhook.StoredEndpoint{Endpoint: webhook.Endpoint{ID: fmt.Sprint(account, i), Account: account, URL: "http://127.0.0.1:9/", Events: events, Created: time.Now()}, Secret: []byte("x")}
						systest.NoError(b, db.Webhooks().Create(b.Context(), w, n+1))
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
				work(b, db.Operations())
			})
		}
	}
}
