package sqlstore_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/filewright/filewright/httpapi/account"
	"github.com/filewright/filewright/httpapi/sqlstore"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/status"
)

// Every item that finishes after it has started is counted once, on its day.
func TestUsage(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(testing.TB) *sqlstore.DB{"sqlite": open, "postgres": openPostgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			db := open(t)
			store := db.Operations()
			input := []status.File{{Key: "a", Name: "Report.DOCX", Size: 10}, {Key: "b", Name: "b.pdf", Size: 5}}
			for _, owner := range []string{"alice", "bob"} {
				for _, id := range []string{"1", "2"} {
					_, err := store.Create(ctx, &status.Operation{ID: owner + id, Owner: owner, Action: "convert", Origin: status.Origin{Key: "key" + id}, Created: time.Now(), Items: []status.Item{
						{Queue: "pdf", Inputs: input, State: status.Queued}, {Queue: "pdf", Inputs: input, State: status.Queued}, {Queue: "pdf", Inputs: input, State: status.Queued},
					}})
					systest.NoError(t, err)
				}
			}
			claim := func(id string, i int) *status.Claim {
				t.Helper()
				c, err := store.Claim(ctx, status.Ref{Operation: id, Index: i}, "w", time.Minute)
				systest.NoError(t, err)
				return c
			}
			finish := func(c *status.Claim, o status.Outcome) {
				t.Helper()
				if _, err := store.Finish(ctx, c, o); err != nil {
					t.Fatal(err)
				}
			}
			done := status.Outcome{Results: []status.File{{Key: "r", Size: 7}}}
			for _, id := range []string{"alice1", "alice2"} {
				first := claim(id, 0)
				finish(first, done)
				if _, err := store.Finish(ctx, first, done); !errors.Is(err, status.ErrLost) {
					t.Errorf("finished again: %v", err)
				}
				finish(claim(id, 1), status.Outcome{Retry: true, Error: &status.Error{Code: "x"}})
				finish(claim(id, 1), status.Outcome{Error: &status.Error{Code: "x"}})
				if _, err := store.Cancel(ctx, "alice", id); err != nil { // the third, which has not started
					t.Fatal(err)
				}
			}
			today := time.Now().UTC()
			from, to := today.Add(-time.Hour), today.Add(time.Hour) // midnight may be near
			sum := func(owner string) (u account.Usage) {
				t.Helper()
				list, err := db.Usage(ctx, owner, from, to)
				systest.NoError(t, err)
				for _, v := range list {
					if v.Action != "convert" || v.Day.After(today.Add(time.Hour)) || today.Sub(v.Day) > 25*time.Hour {
						t.Errorf("%+v", v)
					}
					u.Items, u.Failed, u.BytesIn, u.BytesOut, u.Work = u.Items+v.Items, u.Failed+v.Failed, u.BytesIn+v.BytesIn, u.BytesOut+v.BytesOut, u.Work+v.Work
				}
				return u
			}
			want := account.Usage{Items: 4, Failed: 2, BytesIn: 60, BytesOut: 14}
			got := sum("alice")
			if got.Work < 0 || got.Work > time.Hour {
				t.Errorf("work %v", got.Work)
			}
			if got.Work = 0; got != want {
				t.Errorf("usage %+v, want %+v", got, want)
			}
			if got := sum("bob"); got != (account.Usage{}) {
				t.Errorf("usage of who has only waiting items: %+v", got)
			}
			// The same items by key, format and error.
			groups := func(kind account.UsageKind) map[string]account.Usage {
				t.Helper()
				list, err := db.UsageBy(ctx, "alice", kind, from, to)
				systest.NoError(t, err)
				sums := make(map[string]account.Usage)
				for _, v := range list {
					u := sums[v.Group]
					sums[v.Group] = account.Usage{Items: u.Items + v.Items, Failed: u.Failed + v.Failed, BytesIn: u.BytesIn + v.BytesIn, BytesOut: u.BytesOut + v.BytesOut}
				}
				return sums
			}
			half := account.Usage{Items: 2, Failed: 1, BytesIn: 30, BytesOut: 7}
			for kind, want := range map[account.UsageKind]map[string]account.Usage{
				account.UsageByKey: {"key1": half, "key2": half}, account.UsageByFormat: {"docx": want}, account.UsageByError: {"x": {Items: 2, Failed: 2, BytesIn: 30}},
			} {
				if got := groups(kind); !maps.Equal(got, want) {
					t.Errorf("usage by %s: %+v, want %+v", kind, got, want)
				}
			}

			// The usage outlives the operations.
			if n, err := store.DeleteFinished(ctx, time.Now().Add(time.Hour)); n != 2 || err != nil {
				t.Errorf("DeleteFinished = %d, %v", n, err)
			}
			if got := sum("alice"); got.Items != 4 {
				t.Errorf("after the operations: %+v", got)
			}
			if list, err := db.Usage(ctx, "alice", from.Add(-72*time.Hour), today.Add(-48*time.Hour)); err != nil || !slices.Equal(list, nil) {
				t.Errorf("other days: %v, %v", list, err)
			}
		})
	}
}

// The names of files, which clients choose, create no groups without end.
func TestUsageOfUnusualFormats(t *testing.T) {
	t.Parallel()
	db := open(t)
	for i, name := range []string{"none", "a.", "a.tar.gz", "a.Ünicode", "a.verylongext", "a.b c", "a.mp4"} {
		id := fmt.Sprint(i)
		_, err := db.Operations().Create(t.Context(), &status.Operation{ID: id, Owner: "a", Action: "zip", Created: time.Now(), Items: []status.Item{{Queue: "q", State: status.Queued, Inputs: []status.File{{Name: name}}}}})
		systest.NoError(t, err)
		c, err := db.Operations().Claim(t.Context(), status.Ref{Operation: id}, "w", time.Minute)
		systest.NoError(t, err)
		_, err = db.Operations().Finish(t.Context(), c, status.Outcome{})
		systest.NoError(t, err)
	}
	list, err := db.UsageBy(t.Context(), "a", account.UsageByFormat, time.Now().AddDate(0, 0, -1), time.Now().AddDate(0, 0, 1))
	systest.NoError(t, err)
	got := make(map[string]int)
	for _, u := range list {
		got[u.Group] += u.Items
	}
	if want := map[string]int{"": 5, "gz": 1, "mp4": 1}; !maps.Equal(got, want) {
		t.Errorf("groups %v, want %v", got, want)
	}
}
