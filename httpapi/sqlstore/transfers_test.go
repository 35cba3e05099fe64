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

// Nothing is transferred for a disabled account, and nothing is lost.
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
	disable(time.Time{})
	if c, err := s.Claim(t.Context(), "k", time.Minute, nil); c == nil || err != nil {
		t.Errorf("claimed %+v, error %v", c, err)
	}
}
