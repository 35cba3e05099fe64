package dashboard

import (
	"cmp"
	"errors"
	"io/fs"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/httpapi/account"
	"github.com/filewright/filewright/httpapi/auth"
)

type accountsPage struct {
	Accounts []*account.Account
	Form     accountForm
	Password string // one-time password of the account just created
	New      *account.Account
}

// An accountForm holds the submitted values of the account form.
type accountForm struct {
	Name          string
	Administrator bool
	Stored        string // with a unit, or "" for no limit
	PerDay        string // like Stored
	Operations    string // a number, or "" for no limit
	Parallel      string // like Operations
	Error         string
	Param         string // the field that Error belongs to; "": none
}

// ErrorOf returns the error of a field.
func (f accountForm) ErrorOf(param string) string {
	if f.Param == param {
		return f.Error
	}
	return ""
}

func (d *Dashboard) accounts(v *visit) error { return d.showAccounts(v, http.StatusOK, accountsPage{}) }

func (d *Dashboard) showAccounts(v *visit, code int, b accountsPage) error {
	var err error
	if b.Accounts, err = d.cfg.Accounts.List(v.r.Context()); err != nil {
		return err
	}
	return d.render(v, code, page{Template: "accounts", Title: "Accounts", Nav: "accounts", Body: b})
}

// readAccount reads the submitted form. It sets the form's Error for invalid values.
func readAccount(r *http.Request) (f accountForm, limits account.Limits) {
	f = accountForm{
		Name: strings.TrimSpace(r.FormValue("name")), Administrator: r.FormValue("administrator") != "",
		Stored: strings.TrimSpace(r.FormValue("stored")), PerDay: strings.TrimSpace(r.FormValue("per_day")),
		Operations: strings.TrimSpace(r.FormValue("operations")), Parallel: strings.TrimSpace(r.FormValue("parallel")),
	}
	bad := func(param, text string) {
		if f.Error == "" {
			f.Param, f.Error = param, text
		}
	}
	number := func(param, text string) int64 {
		if text == "" {
			return 0
		}
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || n < 0 {
			bad(param, "Enter a whole number, or leave empty for no limit.")
		}
		return n
	}
	size := func(param, text string) int64 {
		n, ok := parseBytes(text)
		if !ok {
			bad(param, "Enter a size such as 500 MB or 20 GB, or leave empty for no limit.")
		}
		return n
	}
	limits = account.Limits{
		StoredBytes: size("stored", f.Stored), BytesPerDay: size("per_day", f.PerDay),
		OperationsPerDay: number("operations", f.Operations), Parallel: int(number("parallel", f.Parallel)),
	}
	return f, limits
}

var byteUnits = []struct {
	name string
	n    float64
}{{"tib", 1 << 40}, {"gib", 1 << 30}, {"mib", 1 << 20}, {"kib", 1 << 10}, {"tb", 1e12}, {"gb", 1e9}, {"mb", 1e6}, {"kb", 1e3}, {"b", 1}}

// parseBytes parses a number of bytes with a unit; "" is 0.
func parseBytes(text string) (int64, bool) {
	if text == "" {
		return 0, true
	}
	s, unit := strings.ToLower(strings.ReplaceAll(text, " ", "")), 1.0
	for _, u := range byteUnits {
		if rest, ok := strings.CutSuffix(s, u.name); ok {
			s, unit = rest, u.n
			break
		}
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || !(f >= 0) || f*unit > 1<<60 {
		return 0, false
	}
	return int64(f * unit), true
}

// limitText formats a number of bytes for parseBytes.
func limitText(n int64) string {
	if n == 0 {
		return ""
	}
	for _, u := range []struct {
		name string
		n    int64
	}{{" TB", 1e12}, {" TiB", 1 << 40}, {" GB", 1e9}, {" GiB", 1 << 30}, {" MB", 1e6}, {" MiB", 1 << 20}, {" kB", 1e3}} {
		if n%u.n == 0 {
			return strconv.FormatInt(n/u.n, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10) + " B"
}

// wrong reports whether err is a user error, and then puts it into the form.
func (f *accountForm) wrong(err error) bool {
	var p *httpapi.Problem
	if !errors.As(err, &p) || p.Status >= 500 {
		return false
	}
	f.Error, f.Param = strings.ToUpper(p.Detail[:1])+p.Detail[1:]+".", p.Param
	if errors.Is(err, account.ErrNameTaken) {
		f.Param = "name"
	}
	return true
}

func (d *Dashboard) createAccount(v *visit) error {
	f, limits := readAccount(v.r)
	if f.Error != "" {
		return d.showAccounts(v, http.StatusUnprocessableEntity, accountsPage{Form: f})
	}
	acct, password, err := d.cfg.Accounts.Create(v.r.Context(), auth.NewAccount{Name: f.Name, Administrator: f.Administrator, Limits: &limits})
	if err != nil {
		if !f.wrong(err) {
			return err
		}
		return d.showAccounts(v, http.StatusUnprocessableEntity, accountsPage{Form: f})
	}
	return d.showAccounts(v, http.StatusOK, accountsPage{Password: password, New: acct})
}

type accountPage struct {
	Acct     *account.Account
	Self     bool
	Form     accountForm
	Password string // one-time password just created
	Used     *used
	Total    actionUse // of the last 30 days
	Keys     []*account.Key
	Factor   bool // the account has a second factor or a passkey

	Confirm     string // text that confirms the deletion
	DeleteError string
}

func (d *Dashboard) account(v *visit) error {
	return d.showAccount(v, http.StatusOK, v.r.PathValue("id"), accountPage{})
}

func (d *Dashboard) showAccount(v *visit, code int, id string, b accountPage) error {
	ctx := v.r.Context()
	var err error
	if b.Acct, err = d.cfg.Accounts.Get(ctx, id); err != nil {
		return err
	}
	b.Self, b.Confirm = b.Acct.ID == v.who.ID, accountName(b.Acct)
	passkeys, err := d.cfg.Accounts.Passkeys(ctx, id)
	if err != nil {
		return err
	}
	switch _, err := d.cfg.Accounts.Factor(ctx, id); {
	case err == nil || len(passkeys) > 0:
		b.Factor = true
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if b.Form.Error == "" {
		l := b.Acct.Limits
		b.Form = accountForm{Name: b.Acct.Name, Administrator: b.Acct.Administrator, Stored: limitText(l.StoredBytes), PerDay: limitText(l.BytesPerDay)}
		if l.OperationsPerDay > 0 {
			b.Form.Operations = strconv.FormatInt(l.OperationsPerDay, 10)
		}
		if l.Parallel > 0 {
			b.Form.Parallel = strconv.Itoa(l.Parallel)
		}
	}
	if b.Used, err = d.used(ctx, b.Acct); err != nil {
		return err
	}
	today := time.Now()
	all, err := d.cfg.Accounts.Usage(ctx, id, today.AddDate(0, 0, -29), today)
	if err != nil {
		return err
	}
	_, b.Total = byAction(all)
	keys, err := d.cfg.Accounts.Keys().List(ctx, id)
	if err != nil {
		return err
	}
	for _, k := range keys {
		if k.Valid(today) {
			b.Keys = append(b.Keys, k)
		}
	}
	slices.SortStableFunc(b.Keys, func(x, y *account.Key) int { return y.Created.Compare(x.Created) })
	return d.render(v, code, page{Template: "account", Title: cmp.Or(b.Acct.Name, b.Acct.ID), Nav: "accounts", Body: b})
}

func (d *Dashboard) updateAccount(v *visit) error {
	id := v.r.PathValue("id")
	f, limits := readAccount(v.r)
	if f.Error != "" {
		return d.showAccount(v, http.StatusUnprocessableEntity, id, accountPage{Form: f})
	}
	c := auth.Change{Limits: &limits, Administrator: &f.Administrator}
	if f.Name != "" {
		c.Name = &f.Name
	}
	if _, err := d.cfg.Accounts.Update(v.r.Context(), id, c); err != nil {
		if !f.wrong(err) {
			return err
		}
		return d.showAccount(v, http.StatusUnprocessableEntity, id, accountPage{Form: f})
	}
	return d.done(v, "account-saved", "accounts/"+url.PathEscape(id))
}

func (d *Dashboard) accountAction(v *visit) error {
	ctx, id := v.r.Context(), v.r.PathValue("id")
	to := "accounts/" + url.PathEscape(id)
	var f accountForm
	switch what := v.r.PathValue("what"); what {
	case "delete":
		acct, err := d.cfg.Accounts.Get(ctx, id)
		if err != nil {
			return err
		}
		if strings.TrimSpace(v.r.FormValue("confirm")) != accountName(acct) {
			return d.showAccount(v, http.StatusUnprocessableEntity, id, accountPage{DeleteError: "Enter the name exactly as it is shown: " + accountName(acct)})
		}
		if id == v.who.ID {
			return d.showAccount(v, http.StatusUnprocessableEntity, id, accountPage{DeleteError: "You cannot delete your own account."})
		}
		err = d.cfg.Accounts.Delete(ctx, id)
		switch {
		case err == nil:
			return d.done(v, "account-gone", "accounts")
		case f.wrong(err):
			return d.showAccount(v, http.StatusUnprocessableEntity, id, accountPage{DeleteError: f.Error})
		}
		return err
	case "password":
		password, err := d.cfg.Accounts.ResetPassword(ctx, id)
		switch {
		case err == nil:
			return d.showAccount(v, http.StatusOK, id, accountPage{Password: password})
		case f.wrong(err):
			return d.showAccount(v, http.StatusUnprocessableEntity, id, accountPage{Form: f})
		}
		return err
	case "second-factor":
		if err := d.cfg.Accounts.RemoveFactor(ctx, id); err != nil {
			return err
		}
		return d.done(v, "factor-off", to)
	case "enable", "disable":
		off := what == "disable"
		_, err := d.cfg.Accounts.Update(ctx, id, auth.Change{Disabled: &off})
		switch {
		case err == nil && off:
			return d.done(v, "account-off", to)
		case err == nil:
			return d.done(v, "account-on", to)
		case f.wrong(err):
			acct, gerr := d.cfg.Accounts.Get(ctx, id)
			if gerr != nil {
				return gerr
			}
			f.Name, f.Administrator = acct.Name, acct.Administrator
			return d.showAccount(v, http.StatusUnprocessableEntity, id, accountPage{Form: f})
		}
		return err
	}
	return fs.ErrNotExist
}

func (d *Dashboard) revokeAccountKey(v *visit) error {
	id := v.r.PathValue("id")
	return d.revoke(v, id, v.r.PathValue("key"), "accounts/"+url.PathEscape(id))
}
