package account

import (
	"context"
	"net/url"
	"sync/atomic"
	"time"
)

// Actions of an [AuditEntry].
const (
	AuditLogin             = "login"
	AuditLogout            = "logout"
	AuditSessionEnd        = "session.end"
	AuditPasswordChange    = "password.change"
	AuditPasswordReset     = "password.reset"
	AuditFactorEnable      = "second_factor.enable"
	AuditFactorDisable     = "second_factor.disable"
	AuditPasskeyAdd        = "passkey.add"
	AuditPasskeyRemove     = "passkey.remove"
	AuditIdentityAdd       = "identity.add"
	AuditIdentityRemove    = "identity.remove"
	AuditInvitationCreate  = "invitation.create"
	AuditInvitationRevoke  = "invitation.revoke"
	AuditMemberJoin        = "member.join"
	AuditMemberRole        = "member.role"
	AuditMemberRemove      = "member.remove"
	AuditKeyCreate         = "key.create"
	AuditKeyUpdate         = "key.update"
	AuditKeyRoll           = "key.roll"
	AuditKeyRevoke         = "key.revoke"
	AuditWebhookCreate     = "webhook.create"
	AuditWebhookUpdate     = "webhook.update"
	AuditWebhookEnable     = "webhook.enable"
	AuditWebhookDisable    = "webhook.disable"
	AuditWebhookRotate     = "webhook.rotate"
	AuditWebhookTest       = "webhook.test"
	AuditWebhookReplay     = "webhook.replay"
	AuditWebhookDelete     = "webhook.delete"
	AuditAccountCreate     = "account.create"
	AuditAccountUpdate     = "account.update"
	AuditAccountEnable     = "account.enable"
	AuditAccountDisable    = "account.disable"
	AuditAccountExport     = "account.export"
	AuditAccountDelete     = "account.delete"
	AuditOperationRunAgain = "operation.run_again"
	AuditOperationCancel   = "operation.cancel"
	AuditOperationDelete   = "operation.delete"
	AuditFileDelete        = "file.delete"
)

// AuditActions returns all actions of audit entries.
func AuditActions() []string {
	return []string{
		AuditLogin, AuditLogout, AuditSessionEnd, AuditPasswordChange, AuditPasswordReset, AuditFactorEnable, AuditFactorDisable,
		AuditPasskeyAdd, AuditPasskeyRemove, AuditIdentityAdd, AuditIdentityRemove,
		AuditInvitationCreate, AuditInvitationRevoke, AuditMemberJoin, AuditMemberRole, AuditMemberRemove,
		AuditKeyCreate, AuditKeyUpdate, AuditKeyRoll, AuditKeyRevoke,
		AuditWebhookCreate, AuditWebhookUpdate, AuditWebhookEnable, AuditWebhookDisable, AuditWebhookRotate, AuditWebhookTest, AuditWebhookReplay, AuditWebhookDelete,
		AuditAccountCreate, AuditAccountUpdate, AuditAccountEnable, AuditAccountDisable, AuditAccountExport, AuditAccountDelete,
		AuditOperationRunAgain, AuditOperationCancel, AuditOperationDelete, AuditFileDelete,
	}
}

// An Actor is who changes something: a login or an API key. If both are empty it is the system, such
// as a command on the server.
type Actor struct {
	Login   string // ID of the login
	Key     string // ID of the API key
	Name    string // of the login or the key at that time
	Address string // of the client; for IPv6 its network
}

// System reports whether the system acted, not somebody at an address.
func (a Actor) System() bool { return a.Login == "" && a.Key == "" && a.Address == "" }

// An AuditEntry records a change. It contains no secrets.
type AuditEntry struct {
	ID      string // set by the store
	Time    time.Time
	Account string // account that was changed; "": none
	Actor   Actor
	Action  string // an Audit constant
	Object  string // ID of what was changed
	Name    string // its name at that time
	Detail  string // such as the changed properties
	Refused bool   // the change was refused, for example because of a wrong password
}

// An AuditQuery selects audit entries. The zero value selects all, newest first.
type AuditQuery struct {
	Account  string    // entries of this account; "": all
	Who      string    // part of the name of the actor, or its ID or address; "": any
	System   bool      // entries of the system only
	Action   string    // "": any
	From, To time.Time // From <= Time < To; zero: no limit
	After    string    // entries after this cursor, which is the Next of an AuditPage
	Limit    int       // maximum number of entries; 0: 50
}

// An AuditPage is a part of the audit log.
type AuditPage struct {
	Entries []AuditEntry
	Next    string // cursor of the next page; "": this is the last one
	Scanned bool   // the page is short because the store looked through many entries
}

// An AuditStore keeps the audit log.
type AuditStore interface {
	// Record stores an entry.
	Record(ctx context.Context, e *AuditEntry) error

	// Entries returns entries, newest first. The error for an invalid cursor matches fs.ErrNotExist.
	Entries(ctx context.Context, q AuditQuery) (AuditPage, error)

	// DeleteBefore removes the oldest limit entries before t, with those of the same millisecond, and
	// returns their number.
	DeleteBefore(ctx context.Context, t time.Time, limit int) (int, error)
}

// AuditWebhook returns an entry for a webhook of an account. Its name is the host of its URL: the rest
// of the URL may contain secrets.
func AuditWebhook(action, account, id, address string) AuditEntry {
	e := AuditEntry{Account: account, Action: action, Object: id}
	if u, err := url.Parse(address); err == nil {
		e.Name = u.Host
	}
	return e
}

type auditKey struct{}

// A PendingAudit is an entry to store in the transaction of the change that it describes.
type PendingAudit struct {
	Entry  *AuditEntry
	stored atomic.Bool
}

// WithAudit returns a context for one change. The next transaction with this context that changes
// something also stores the entry, if the store can do so.
func WithAudit(ctx context.Context, e *AuditEntry) (context.Context, *PendingAudit) {
	p := &PendingAudit{Entry: e}
	return context.WithValue(ctx, auditKey{}, p), p
}

// AuditOf returns the entry of a context that no transaction has stored; nil: none.
func AuditOf(ctx context.Context) *PendingAudit {
	p, _ := ctx.Value(auditKey{}).(*PendingAudit)
	if p == nil || p.stored.Load() {
		return nil
	}
	return p
}

// Done records that a transaction stored the entry.
func (p *PendingAudit) Done() { p.stored.Store(true) }

// Stored reports whether a transaction has stored the entry.
func (p *PendingAudit) Stored() bool { return p.stored.Load() }
