package sqlstore_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/filewright/filewright/httpapi/sqlstore"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/status"
	"github.com/filewright/filewright/upload"
)

// The transaction that ends an operation of several steps makes the results of all steps but the last
// expire, unless they are kept. Each item counts as an item of its action.
func TestStepsEnd(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(testing.TB) *sqlstore.DB{"sqlite": open, "postgres": openPostgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, ctx := open(t), t.Context()
			ops := db.Operations()
			later := time.Now().Add(time.Hour).Truncate(time.Millisecond)
			create := func(id string, keep bool) {
				t.Helper()
				_, err := ops.Create(ctx, &status.Operation{
					ID: id, Owner: "alice", Action: "steps", Created: time.Now(), Items: []status.Item{{Queue: "q", Inputs: []status.File{{Key: "in", Size: 1}}}},
					Steps: []status.Step{{Action: "convert", Keep: keep}, {Action: "merge", Keep: keep}, {Action: "lock", Keep: keep}},
				})
				systest.NoError(t, err)
			}
			finish := func(id string, item int) *status.Operation {
				t.Helper()
				c, err := ops.Claim(ctx, status.Ref{Operation: id, Index: item}, "w", time.Minute)
				systest.NoError(t, err)
				key := fmt.Sprint(id, item)
				_, err = db.Files().Create(ctx, &upload.File{Key: key, Owner: "alice", State: upload.Ready, Size: 10, Task: id, Created: time.Now(), Expires: later})
				systest.NoError(t, err)
				op, err := ops.Finish(ctx, c, status.Outcome{
					Results: []status.File{{Key: key, Size: 10}},
					Next: func(*status.Operation) []status.Item {
						return []status.Item{{Queue: "q", Inputs: []status.File{{Key: key, Size: 10}}}}
					},
				})
				systest.NoError(t, err)
				return op
			}
			expired := func(keys ...string) {
				t.Helper()
				var got []string
				for f, err := range db.Files().ExpiredBefore(ctx, later.Add(-time.Minute)) {
					systest.NoError(t, err)
					got = append(got, f.Key)
				}
				slices.Sort(got)
				if !slices.Equal(got, keys) {
					t.Errorf("expired are %q, want %q", got, keys)
				}
			}
			create("done", false)
			finish("done", 0)
			finish("done", 1)
			expired()
			if op := finish("done", 2); op.State != status.Completed {
				t.Errorf("%+v", op)
			}
			expired("done0", "done1")
			create("kept", true)
			for i := range 3 {
				finish("kept", i)
			}
			create("gone", false)
			finish("gone", 0)
			_, err := ops.Cancel(ctx, "alice", "gone")
			systest.NoError(t, err)
			expired("done0", "done1", "gone0")

			list, err := db.Usage(ctx, "alice", time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
			systest.NoError(t, err)
			items := make(map[string]int)
			for _, u := range list {
				items[u.Action] += u.Items
			}
			if want := map[string]int{"convert": 3, "merge": 2, "lock": 2}; !maps.Equal(items, want) {
				t.Errorf("usage %v, want %v", items, want)
			}
		})
	}
}
