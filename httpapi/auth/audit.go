package auth

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/httpapi/account"
	"github.com/filewright/filewright/httpapi/internal/gcra"
)

// refusedRate limits the recorded refusals, such as wrong passwords, so that strangers cannot fill the
// database.
var refusedRate = gcra.Rate{PerSecond: 1.0 / 60, Burst: 1000}

// auditSweep is the interval between two removals of old audit entries, and auditBatch the number that
// one transaction removes.
const (
	auditSweep = time.Hour
	auditBatch = 1000
)

type actorKey struct{}

// WithActor returns a context whose changes are recorded as those of an actor.
func WithActor(ctx context.Context, a account.Actor) context.Context {
	return context.WithValue(ctx, actorKey{}, a)
}

// HasAudit reports whether changes are recorded.
func (a *Accounts) HasAudit() bool { return a.cfg.Audit != nil }

// AuditEntries returns entries of the audit log, newest first.
func (a *Accounts) AuditEntries(ctx context.Context, q account.AuditQuery) (account.AuditPage, error) {
	return a.cfg.Audit.Entries(ctx, q)
}

// Audit calls change and records it as e, if possible in the transaction of the change. Time is set, and
// Actor if it is zero. A change that fails because of wrong credentials is recorded as refused; other
// failures are not recorded. A nil change has just succeeded.
func (a *Accounts) Audit(ctx context.Context, e account.AuditEntry, change func(context.Context) error) error {
	if change == nil {
		change = func(context.Context) error { return nil }
	}
	if a.cfg.Audit == nil {
		return change(ctx)
	}
	e.Time = time.Now().UTC().Truncate(time.Millisecond)
	if e.Actor == (account.Actor{}) {
		e.Actor = a.actor(ctx)
	}
	with, pending := account.WithAudit(ctx, &e)
	err := change(with)
	switch {
	case pending.Stored():
		return err
	case err == nil:
	case errors.Is(err, ErrCredentials), errors.Is(err, ErrCode), errors.Is(err, ErrPasskey), errors.Is(err, ErrPasskeyCopied):
		if !a.refusals.Take("", refusedRate, a.refusals.Now(), 1).OK {
			return err
		}
		e.Refused = true
	default:
		return err
	}
	// The change cannot be undone, and its entry is needed even if the client has gone.
	if failed := a.cfg.Audit.Record(context.WithoutCancel(ctx), &e); failed != nil {
		a.cfg.Log.Error("cannot store an audit entry", "action", e.Action, "account", e.Account, "login", e.Actor.Login, "key", e.Actor.Key, "object", e.Object, "refused", e.Refused, "err", failed)
	}
	return err
}

// actor returns the actor of a context, with its name.
func (a *Accounts) actor(ctx context.Context) account.Actor {
	who, _ := ctx.Value(actorKey{}).(account.Actor)
	if who.Name != "" {
		return who
	}
	switch {
	case who.Login != "":
		if acct, err := a.store.Get(ctx, who.Login); err == nil {
			who.Name = acct.Name
		}
	case who.Key != "":
		if k, err := a.keys.store.Get(ctx, who.Key); err == nil {
			who.Name = k.Name
		}
	}
	return who
}

// entry returns an audit entry for a change of a login.
func (a *Accounts) entry(ctx context.Context, action, login string) account.AuditEntry {
	e := account.AuditEntry{Account: login, Action: action, Object: login}
	if a.cfg.Audit == nil {
		return e
	}
	if acct, err := a.store.Get(ctx, login); err == nil {
		e.Account, e.Name = acct.Owner(), acct.Name
	}
	return e
}

// login records a login of an account, which change makes; nil: of an unknown name.
func (a *Accounts) login(ctx context.Context, acct *account.Account, method string, from Client, change func(context.Context) error) error {
	e := account.AuditEntry{Action: account.AuditLogin, Actor: account.Actor{Address: from.Address}, Detail: methodText(method)}
	if acct != nil {
		e.Account, e.Object, e.Name = acct.Owner(), acct.ID, acct.Name
		e.Actor.Login, e.Actor.Name = acct.ID, acct.Name
	}
	return a.Audit(ctx, e, change)
}

func methodText(method string) string {
	switch method {
	case account.MethodPassword:
		return "password"
	case account.MethodExternal:
		return "sign-in provider"
	}
	return method
}

// Actor returns who makes a request that [Accounts.Authenticate] accepted.
func (a *Accounts) Actor(r *http.Request) account.Actor {
	p, _ := httpapi.PrincipalOf(r.Context())
	return account.Actor{Login: p.Login, Key: p.KeyID, Address: a.From(r).Address}
}

// Changed implements [httpapi.Auditor]: it records the changes of sessions.
func (a *Accounts) Changed(r *http.Request, action, object string) {
	p, _ := httpapi.PrincipalOf(r.Context())
	if p.Login == "" {
		return
	}
	ctx := WithActor(r.Context(), a.Actor(r))
	_ = a.Audit(ctx, account.AuditEntry{Account: p.Account, Action: action, Object: object}, nil) // it cannot fail
}

// SweepAudit removes audit entries that are older than keep, until ctx is done.
func (a *Accounts) SweepAudit(ctx context.Context, keep time.Duration) {
	if a.cfg.Audit == nil || keep < 0 {
		return
	}
	t := time.NewTicker(min(auditSweep, max(keep/4, time.Second)))
	defer t.Stop()
	for {
		removed, err := a.deleteAudit(ctx, time.Now().Add(-keep))
		if err != nil && ctx.Err() == nil {
			a.cfg.Log.Error("cannot delete old audit entries", "err", err)
		}
		a.swept.Set(removed, err)
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

// deleteAudit removes the entries before a time, in batches.
func (a *Accounts) deleteAudit(ctx context.Context, before time.Time) (removed int, err error) {
	for {
		n, err := a.cfg.Audit.DeleteBefore(ctx, before, auditBatch)
		removed += n
		if err != nil || n < auditBatch {
			return removed, err
		}
	}
}

// LastSweep returns when [Accounts.SweepAudit] of this process last removed old entries, and the
// result. The time is zero if it has not yet.
func (a *Accounts) LastSweep() (at time.Time, removed int, err error) { return a.swept.Last() }

var _ httpapi.Auditor = (*Accounts)(nil)
