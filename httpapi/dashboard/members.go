package dashboard

import (
	"archive/zip"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/httpapi/account"
	"github.com/filewright/filewright/httpapi/auth"
	"github.com/filewright/filewright/status"
)

type membersPage struct {
	Members     []memberRow
	Invitations []*account.Invitation
	Roles       []account.Role // that the visitor may give
	Table       []roleRow
	Form        inviteForm
	Link        string // of the invitation just created
	Error       string

	Confirm     string // text that confirms the deletion of the account
	DeleteError string
}

// A memberRow is a login in the list.
type memberRow struct {
	*account.Account
	Self       bool
	Changeable bool // the visitor may change the role
	Removable  bool
}

// A roleRow explains a role.
type roleRow struct {
	Role account.Role
	Text string
}

// An inviteForm holds the submitted values of a new invitation.
type inviteForm struct{ Role, Note, Expires, Error string }

// permissionTexts describe permissions, in the order in which roles have them.
var permissionTexts = map[account.Permission]string{
	account.View:    "sees operations, results, usage, keys and webhooks",
	account.Operate: "uploads files, starts, cancels and deletes operations",
	account.Manage:  "manages keys and webhooks",
	account.Invite:  "manages members who are not owners",
	account.Own:     "manages owners, exports and deletes the account",
}

// roleName returns the name of a role for people.
func roleName(r account.Role) string {
	if r == "" {
		return ""
	}
	return strings.ToUpper(string(r[:1])) + string(r[1:])
}

// invitationLives are how long an invitation is valid, by the choice in the form.
var invitationLives = map[string]time.Duration{"1": 24 * time.Hour, "7": 7 * 24 * time.Hour, "30": 30 * 24 * time.Hour}

func (d *Dashboard) members(v *visit) error { return d.showMembers(v, http.StatusOK, membersPage{}) }

func (d *Dashboard) showMembers(v *visit, code int, b membersPage) error {
	ctx := v.r.Context()
	all, err := d.cfg.Accounts.Members(ctx, v.owner())
	if err != nil {
		return err
	}
	for _, m := range all {
		self := m.ID == v.who.ID
		grant := v.who.Role.MayGrant(m.Role)
		b.Members = append(b.Members, memberRow{Account: m, Self: self, Changeable: grant, Removable: (self || grant) && !m.Administrator})
	}
	if v.who.Role.May(account.Invite) {
		if b.Invitations, err = d.cfg.Accounts.Invitations(ctx, v.owner()); err != nil {
			return err
		}
	}
	for _, r := range account.Roles() {
		if v.who.Role.MayGrant(r) {
			b.Roles = append(b.Roles, r)
		}
		var texts []string
		for _, p := range r.Permissions() {
			texts = append(texts, permissionTexts[p])
		}
		b.Table = append(b.Table, roleRow{r, strings.Join(texts, "; ")})
	}
	if b.Form == (inviteForm{}) {
		b.Form = inviteForm{Role: string(account.RoleMember), Expires: "7"}
	}
	if v.who.Role.May(account.Own) {
		acct, err := d.cfg.Accounts.Get(ctx, v.owner())
		if err != nil {
			return err
		}
		b.Confirm = accountName(acct)
	}
	return d.render(v, code, page{Template: "members", Title: "Members", Nav: "members", Body: b})
}

// memberError returns the status and message for a user error; the message is "" for others.
func memberError(err error) (int, string) {
	var p *httpapi.Problem
	switch {
	case errors.Is(err, auth.ErrBreached):
		return http.StatusUnprocessableEntity, textBreached
	case errors.Is(err, auth.ErrWeakPassword):
		return http.StatusUnprocessableEntity, "Choose another password: 10 to 200 characters, not common and not your name."
	case errors.Is(err, account.ErrNameTaken):
		return http.StatusConflict, "This name is taken. Choose another one."
	case errors.As(err, &p) && p.Status < 500:
		return p.Status, sentence(p.Detail)
	}
	return 0, ""
}

// memberChanged answers a form with the list of members.
func (d *Dashboard) memberChanged(v *visit, err error, what string) error {
	if err == nil {
		return d.done(v, what, "members")
	}
	code, text := memberError(err)
	if text == "" {
		return err
	}
	return d.showMembers(v, code, membersPage{Error: text})
}

func (d *Dashboard) inviteMember(v *visit) error {
	f := inviteForm{Role: v.r.FormValue("role"), Note: strings.TrimSpace(v.r.FormValue("note")), Expires: v.r.FormValue("expires")}
	secret, _, err := d.cfg.Accounts.Invite(v.r.Context(), v.who, account.Role(f.Role), f.Note, invitationLives[f.Expires])
	if err != nil {
		code, text := memberError(err)
		if text == "" {
			return err
		}
		f.Error = text
		return d.showMembers(v, code, membersPage{Form: f})
	}
	return d.showMembers(v, http.StatusOK, membersPage{Link: d.cfg.Accounts.URL(v.r, Path[1:]+"join?invitation="+url.QueryEscape(secret))})
}

func (d *Dashboard) revokeInvitation(v *visit) error {
	return d.memberChanged(v, d.cfg.Accounts.RevokeInvitation(v.r.Context(), v.who, v.r.PathValue("id")), "invitation-gone")
}

func (d *Dashboard) setRole(v *visit) error {
	return d.memberChanged(v, d.cfg.Accounts.SetRole(v.r.Context(), v.who, v.r.PathValue("id"), account.Role(v.r.FormValue("role"))), "role")
}

func (d *Dashboard) removeMember(v *visit) error {
	id := v.r.PathValue("id")
	err := d.cfg.Accounts.RemoveMember(v.r.Context(), v.who, id)
	if err == nil && id == v.who.ID {
		d.cfg.Accounts.ClearCookie(v.w, v.r)
		return d.done(v, "left", "login")
	}
	return d.memberChanged(v, err, "member-gone")
}

// A joinForm is the page of an invitation.
type joinForm struct {
	Secret, Name, Error string
	Account             string // name of the account
	Invitation          *account.Invitation
	Password            bool   // passwords are accepted
	Provider            string // name of the sign-in provider; "": none
	Here                string // login name of the visitor; "": not logged in
}

func (d *Dashboard) joinPage(v *visit) error {
	return d.showJoin(v, http.StatusOK, joinForm{Secret: v.r.URL.Query().Get("invitation")})
}

func (d *Dashboard) showJoin(v *visit, code int, f joinForm) error {
	i, acct, err := d.cfg.Accounts.OpenInvitation(v.r.Context(), f.Secret)
	if errors.Is(err, auth.ErrInvitation) {
		d.fail(v, http.StatusNotFound, "Invitation not valid", sentence(auth.ErrInvitation.Error()))
		return nil
	}
	if err != nil {
		return err
	}
	f.Invitation, f.Account, f.Password = i, accountName(acct), d.cfg.Accounts.PasswordLogin()
	if d.cfg.SignIn != nil {
		f.Provider = d.cfg.SignIn.Name()
	}
	if v.who != nil {
		f.Here = v.who.Name
	}
	v.who = nil
	return d.render(v, code, page{Template: "join", Title: "Invitation", Plain: true, Body: f})
}

func (d *Dashboard) join(v *visit) error {
	f := joinForm{Secret: v.r.FormValue("invitation"), Name: strings.TrimSpace(v.r.FormValue("name"))}
	if v.r.FormValue("new") != v.r.FormValue("again") {
		f.Error = "The passwords do not match."
		return d.showJoin(v, http.StatusUnprocessableEntity, f)
	}
	token, err := d.cfg.Accounts.Join(v.r.Context(), f.Secret, f.Name, v.r.FormValue("new"), d.cfg.Accounts.From(v.r))
	if err != nil {
		code, text := memberError(err)
		if text == "" {
			return err
		}
		f.Error = text
		return d.showJoin(v, code, f)
	}
	d.cfg.Accounts.SetCookie(v.w, v.r, token)
	return d.done(v, "joined", "")
}

// exportAccount answers GET …/account/export with a ZIP of what the account has: its logins, keys
// without secrets, usage and operations.
func (d *Dashboard) exportAccount(v *visit) error {
	ctx, owner := v.r.Context(), v.owner()
	acct, err := d.cfg.Accounts.Get(ctx, owner)
	if err != nil {
		return err
	}
	members, err := d.cfg.Accounts.Members(ctx, owner)
	if err != nil {
		return err
	}
	keys, err := d.cfg.Accounts.Keys().List(ctx, owner)
	if err != nil {
		return err
	}
	today := time.Now().UTC()
	usage, err := d.cfg.Accounts.Usage(ctx, owner, today.AddDate(0, 0, -400), today)
	if err != nil {
		return err
	}
	q := status.HistoryQuery{Owner: owner, Oldest: true, Limit: exportPage}
	first, err := d.cfg.Service.Operations().History(ctx, q)
	history := !errors.Is(err, errors.ErrUnsupported)
	if err != nil && history {
		return err
	}
	if err := d.record(v, account.AuditEntry{Action: account.AuditAccountExport, Object: owner, Name: acct.Name}, nil); err != nil {
		return err
	}
	h := v.w.Header()
	h.Set("Content-Type", "application/zip")
	h.Set("Content-Disposition", `attachment; filename="account.zip"`)
	out := zip.NewWriter(v.w)
	file := func(name string, write func(io.Writer) error) error {
		w, err := out.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate, Modified: today})
		if err != nil {
			return err
		}
		return write(w)
	}
	asJSON := func(value any) func(io.Writer) error {
		return func(w io.Writer) error {
			e := json.NewEncoder(w)
			e.SetIndent("", "  ")
			return e.Encode(value)
		}
	}
	err = errors.Join(
		file("account.json", asJSON(exportedAccount(acct))),
		file("members.json", asJSON(exportedMembers(members))),
		file("keys.json", asJSON(exportedKeys(keys))),
		file("usage.csv", func(w io.Writer) error { return writeUsage(w, "action", usage) }),
	)
	if err == nil && history {
		err = file("operations.csv", func(w io.Writer) error { return d.writeOperations(v, csv.NewWriter(w), q, first, false) })
	}
	if err == nil {
		err = out.Close()
	}
	if err != nil {
		panic(http.ErrAbortHandler) // so that the client does not take the file for complete
	}
	return nil
}

type accountExport struct {
	ID      string         `json:"id"`
	Name    string         `json:"name"`
	Created time.Time      `json:"created_at"`
	Limits  account.Limits `json:"limits"`
}

func exportedAccount(a *account.Account) accountExport {
	return accountExport{a.ID, a.Name, a.Created, a.Limits}
}

type memberExport struct {
	ID        string       `json:"id"`
	Name      string       `json:"name"`
	Role      account.Role `json:"role"`
	Created   time.Time    `json:"created_at"`
	LastLogin *time.Time   `json:"last_login_at,omitempty"`
}

func exportedMembers(all []*account.Account) []memberExport {
	list := []memberExport{}
	for _, m := range all {
		list = append(list, memberExport{m.ID, m.Name, m.Role, m.Created, timeOrNil(m.LastLogin)})
	}
	return list
}

type keyExport struct {
	ID       string     `json:"id"`
	Name     string     `json:"name"`
	Prefix   string     `json:"prefix"`
	Scopes   []string   `json:"scopes"`
	Created  time.Time  `json:"created_at"`
	LastUsed *time.Time `json:"last_used_at,omitempty"`
	Expires  *time.Time `json:"expires_at,omitempty"`
	Revoked  *time.Time `json:"revoked_at,omitempty"`
}

func exportedKeys(all []*account.Key) []keyExport {
	list := []keyExport{}
	for _, k := range all {
		list = append(list, keyExport{k.ID, k.Name, k.Prefix, scopesOf(k.Scopes), k.Created, timeOrNil(k.LastUsed), timeOrNil(k.Expires), timeOrNil(k.Revoked)})
	}
	return list
}

func timeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// deleteOwnAccount deletes the visitor's account.
func (d *Dashboard) deleteOwnAccount(v *visit) error {
	ctx := v.r.Context()
	acct, err := d.cfg.Accounts.Get(ctx, v.owner())
	if err != nil {
		return err
	}
	if strings.TrimSpace(v.r.FormValue("confirm")) != accountName(acct) {
		return d.showMembers(v, http.StatusUnprocessableEntity, membersPage{DeleteError: "Enter the name exactly as it is shown: " + accountName(acct)})
	}
	err = d.cfg.Accounts.Delete(ctx, acct.ID)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		code, text := memberError(err)
		if text == "" {
			return err
		}
		return d.showMembers(v, code, membersPage{DeleteError: text})
	}
	d.cfg.Accounts.ClearCookie(v.w, v.r)
	return d.done(v, "account-gone", "login")
}
