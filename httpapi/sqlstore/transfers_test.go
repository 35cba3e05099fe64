package sqlstore_test

import (
	"testing"
	"time"

	"github.com/filewright/filewright/httpapi/account"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/status/transfer"
	"github.com/filewright/filewright/status/transfer/transfertest"
)

func TestTransfers(t *testing.T) {
	t.Parallel()
	transfertest.Run(t, func(t *testing.T) transfer.Store { return open(t).Transfers() })
}

// Nothing is transferred for a disabled account. What has waited for long can be claimed to end it.
func TestTransfersOfDisabledAccount(t *testing.T) {
	t.Parallel()
	db := open(t)
	systest.NoError(t, db.Accounts().Create(t.Context(), &account.Account{ID: "alice"}))
	disable := func(at time.Time) {
		t.Helper()
		_, err := db.Accounts().Update(t.Context(), "alice", func(a *account.Account) error { a.Disabled = at; return nil })
		systest.NoError(t, err)
	}
	disable(time.Now())
	s := db.Transfers()
	systest.NoError(t, s.Add(t.Context(), &transfer.Transfer{Kind: "k", ID: "a", Owner: "alice", Due: s.Now()}, 1))
	if c, err := s.Claim(t.Context(), "k", time.Minute, nil); c != nil || err != nil {
		t.Errorf("claimed %+v, error %v", c, err)
	}
	if c, err := s.Abandoned(t.Context(), "k", time.Minute, s.Now().Add(-time.Hour)); c != nil || err != nil {
		t.Errorf("abandoned %+v before its time, error %v", c, err)
	}
	systest.NoError(t, s.Add(t.Context(), &transfer.Transfer{Kind: "k", ID: "old", Owner: "alice", Due: s.Now().Add(-2 * time.Hour)}, 2))
	if c, err := s.Abandoned(t.Context(), "k", time.Minute, s.Now().Add(-time.Hour)); c == nil || c.ID != "old" || err != nil {
		t.Errorf("abandoned %+v, error %v", c, err)
	} else {
		c.Finished = s.Now()
		systest.NoError(t, s.Record(t.Context(), c))
	}
	disable(time.Time{})
	if c, err := s.Abandoned(t.Context(), "k", time.Minute, s.Now()); c != nil || err != nil {
		t.Errorf("abandoned %+v of an account that is not disabled, error %v", c, err)
	}
	if c, err := s.Claim(t.Context(), "k", time.Minute, nil); c == nil || err != nil {
		t.Errorf("claimed %+v, error %v", c, err)
	}
}
