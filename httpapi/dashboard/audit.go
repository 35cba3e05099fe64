package dashboard

import (
	"context"
	"encoding/csv"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/filewright/filewright/httpapi/account"
	"github.com/filewright/filewright/status"
)

// record makes a change and records it in the audit log; see auth.Accounts.Audit.
func (d *Dashboard) record(v *visit, e account.AuditEntry, change func(context.Context) error) error {
	if e.Account == "" {
		e.Account = v.owner()
	}
	return d.cfg.Accounts.Audit(v.r.Context(), e, change)
}

// changeOperation cancels or deletes an operation of the visitor.
func (d *Dashboard) changeOperation(v *visit, action, id string) error {
	return d.record(v, account.AuditEntry{Action: action, Object: id}, func(ctx context.Context) error {
		if action == account.AuditOperationDelete {
			return d.cfg.Service.Forget(ctx, v.owner(), id)
		}
		_, err := d.cfg.Service.Operations().Cancel(ctx, v.owner(), id)
		return err
	})
}

// runAgain submits an operation of the visitor again.
func (d *Dashboard) runAgain(v *visit, id string) (*status.Operation, error) {
	op, err := d.cfg.Service.Again(v.r, v.owner(), id)
	if err != nil {
		return nil, err
	}
	return op, d.record(v, account.AuditEntry{Action: account.AuditOperationRunAgain, Object: op.ID, Detail: "again: " + id}, nil)
}

// auditTexts are the actions of audit entries for people.
var auditTexts = map[string]string{
	account.AuditLogin: "Logged in", account.AuditLogout: "Logged out", account.AuditSessionEnd: "Session ended",
	account.AuditPasswordChange: "Password changed", account.AuditPasswordReset: "Password reset",
	account.AuditFactorEnable: "Second factor turned on", account.AuditFactorDisable: "Second factor turned off",
	account.AuditPasskeyAdd: "Passkey added", account.AuditPasskeyRemove: "Passkey removed",
	account.AuditIdentityAdd: "Sign-in provider connected", account.AuditIdentityRemove: "Sign-in provider disconnected",
	account.AuditInvitationCreate: "Invitation created", account.AuditInvitationRevoke: "Invitation revoked",
	account.AuditMemberJoin: "Member joined", account.AuditMemberRole: "Role changed", account.AuditMemberRemove: "Member removed",
	account.AuditKeyCreate: "API key created", account.AuditKeyUpdate: "API key changed", account.AuditKeyRoll: "API key rolled", account.AuditKeyRevoke: "API key revoked",
	account.AuditWebhookCreate: "Webhook created", account.AuditWebhookUpdate: "Webhook changed", account.AuditWebhookEnable: "Webhook enabled", account.AuditWebhookDisable: "Webhook disabled",
	account.AuditWebhookRotate: "Webhook secret replaced", account.AuditWebhookTest: "Webhook tested", account.AuditWebhookReplay: "Webhook events sent again", account.AuditWebhookDelete: "Webhook deleted",
	account.AuditAccountCreate: "Account created", account.AuditAccountUpdate: "Account changed", account.AuditAccountEnable: "Account enabled", account.AuditAccountDisable: "Account disabled",
	account.AuditAccountExport: "Account exported", account.AuditAccountDelete: "Account deleted",
	account.AuditOperationRunAgain: "Operation run again", account.AuditOperationCancel: "Operation cancelled", account.AuditOperationDelete: "Operation deleted", account.AuditFileDelete: "File deleted",
}

// auditName returns an action of audit entries for people.
func auditName(action string) string {
	if text, ok := auditTexts[action]; ok {
		return text
	}
	return action
}

const auditPerPage = 50

// auditSystem is the filter value for entries of the system.
const auditSystem = "system"

// An auditForm holds the filters of the audit log, as the address has them.
type auditForm struct{ Who, Action, From, To, Account string }

// readAudit reads the filters of a request. It drops those that the visitor may not use or that are
// invalid.
func readAudit(v *visit) (f auditForm, q account.AuditQuery) {
	values := v.r.URL.Query()
	get := func(name string) string { return strings.TrimSpace(values.Get(name)) }
	f = auditForm{get("who"), get("action"), get("from"), get("to"), get("account")}
	if !slices.Contains(account.AuditActions(), f.Action) {
		f.Action = ""
	}
	if runes := []rune(f.Who); len(runes) > 100 {
		f.Who = string(runes[:100])
	}
	if !v.who.Administrator || f.Account == v.owner() {
		f.Account = ""
	}
	q = account.AuditQuery{Account: v.owner(), Who: f.Who, Action: f.Action, After: get("after"), Limit: auditPerPage}
	if strings.EqualFold(f.Who, auditSystem) {
		q.Who, q.System = "", true
	}
	switch f.Account {
	case "":
	case allAccounts:
		q.Account = ""
	default:
		q.Account = f.Account
	}
	q.From, q.To = days(&f.From, &f.To)
	return f, q
}

// query returns the address of the filters, with further pairs of names and values.
func (f auditForm) query(more ...string) string {
	values := url.Values{}
	pairs := append([]string{"who", f.Who, "action", f.Action, "from", f.From, "to", f.To, "account", f.Account}, more...)
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			values.Set(pairs[i], pairs[i+1])
		}
	}
	if len(values) == 0 {
		return ""
	}
	return "?" + values.Encode()
}

// Address is the address of the first page.
func (f auditForm) Address() string { return f.query() }

// An auditRow is an entry in the list.
type auditRow struct {
	account.AuditEntry
	Owner string // name of the account
	Link  string // page of the object; "": none
}

// Who returns the actor for people.
func (r auditRow) Who() string { return actorName(r.Actor) }

func actorName(a account.Actor) string {
	switch {
	case a.Name != "":
		return a.Name
	case a.Login != "":
		return short(a.Login)
	case a.Key != "":
		return short(a.Key)
	case a.System():
		return "System"
	}
	return "Unknown"
}

// What returns the changed object for people.
func (r auditRow) What() string {
	switch {
	case r.Name != "":
		return r.Name
	case r.Object != "":
		return short(r.Object)
	}
	return ""
}

// objectLink returns the page of a changed object of the visitor's account, or "".
func objectLink(e account.AuditEntry) string {
	id := url.PathEscape(e.Object)
	switch e.Action {
	case account.AuditKeyCreate, account.AuditKeyUpdate, account.AuditKeyRoll, account.AuditKeyRevoke:
		return "keys/" + id
	case account.AuditWebhookCreate, account.AuditWebhookUpdate, account.AuditWebhookEnable, account.AuditWebhookDisable, account.AuditWebhookRotate, account.AuditWebhookTest, account.AuditWebhookReplay:
		return "webhooks/" + id
	case account.AuditOperationCancel, account.AuditOperationRunAgain:
		return "operations/" + id
	}
	return ""
}

type auditPage struct {
	Form     auditForm
	Actions  []choiceOption
	Accounts []choiceOption // for administrators
	Rows     []auditRow
	Names    bool // the rows show their account
	Older    string
	Scanned  bool // there may be more matches on the next page
	First    bool
	Export   string
}

// Filtered reports whether the form hides entries.
func (f auditForm) Filtered() bool { f.Account = ""; return f != auditForm{} }

func (d *Dashboard) audit(v *visit) error {
	f, q := readAudit(v)
	ctx := v.r.Context()
	found, err := d.cfg.Accounts.AuditEntries(ctx, q)
	if err != nil {
		return err
	}
	b := auditPage{Form: f, First: q.After == "", Scanned: found.Scanned, Names: f.Account != "", Export: "audit.csv" + f.query()}
	for _, action := range account.AuditActions() {
		b.Actions = append(b.Actions, choiceOption{action, auditName(action)})
	}
	names := make(map[string]string)
	if v.who.Administrator {
		all, err := d.cfg.Accounts.List(ctx)
		if err != nil {
			return err
		}
		for _, a := range all {
			names[a.ID] = accountName(a)
			if a.ID != v.owner() {
				b.Accounts = append(b.Accounts, choiceOption{a.ID, accountName(a)})
			}
		}
	}
	for _, e := range found.Entries {
		r := auditRow{AuditEntry: e}
		if b.Names && e.Account != "" {
			r.Owner = names[e.Account]
			if r.Owner == "" {
				r.Owner = short(e.Account)
			}
		}
		if e.Account == v.owner() {
			r.Link = objectLink(e)
		}
		b.Rows = append(b.Rows, r)
	}
	if found.Next != "" {
		b.Older = "audit" + f.query("after", found.Next)
	}
	return d.render(v, http.StatusOK, page{Template: "audit", Title: "Audit log", Nav: "audit", Body: b})
}

// exportAudit answers GET …/audit.csv with the entries that the filters select. It writes while it
// reads, so the length of the log does not matter.
func (d *Dashboard) exportAudit(v *visit) error {
	_, q := readAudit(v)
	q.Limit = exportPage
	found, err := d.cfg.Accounts.AuditEntries(v.r.Context(), q)
	if err != nil {
		return err
	}
	return sendCSV(v, "audit.csv", func(w *csv.Writer) error { return d.writeAudit(v, w, q, found) })
}

// writeAudit writes the entries that q selects as CSV, starting with its first page.
func (d *Dashboard) writeAudit(v *visit, w *csv.Writer, q account.AuditQuery, found account.AuditPage) error {
	head := []string{"time", "actor", "login", "key", "address", "action", "outcome", "object", "name", "detail", "account"}
	read := true // found is the next page
	return writePages(v, w, head, func() (records [][]string, more bool, err error) {
		if !read {
			if found, err = d.cfg.Accounts.AuditEntries(v.r.Context(), q); err != nil {
				return nil, false, err
			}
		}
		for _, e := range found.Entries {
			outcome := "done"
			if e.Refused {
				outcome = "refused"
			}
			records = append(records, []string{e.Time.UTC().Format(time.RFC3339), actorName(e.Actor), e.Actor.Login, e.Actor.Key, e.Actor.Address, e.Action, outcome, e.Object, e.Name, e.Detail, e.Account})
		}
		q.After, read = found.Next, false
		return records, found.Next != "", nil
	})
}
