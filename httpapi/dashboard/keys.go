package dashboard

import (
	"cmp"
	"errors"
	"io/fs"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/httpapi/account"
	"github.com/filewright/filewright/httpapi/auth"
	"github.com/filewright/filewright/status"
)

type keysPage struct {
	Keys   []*account.Key // valid keys
	Old    []*account.Key // expired and revoked keys
	Raw    string         // the key just created
	New    *account.Key
	Rolled bool // New replaces a key
	Form   keyForm
	Scopes []scopeChoice
	Open   bool // the form is open at first
}

// A keyForm holds the submitted values of the key form.
type keyForm struct {
	Name, Expires, Rate string
	Addresses           string
	Scopes              []string
	NameError           string
	ScopeError          string
	RateError           string
	AddressError        string
}

// Has reports whether a scope is selected.
func (f keyForm) Has(scope string) bool { return slices.Contains(f.Scopes, scope) }

type scopeChoice struct{ Name, Title, Text string }

var scopeChoices = []scopeChoice{
	{"upload", "Upload", "Upload and delete files"},
	{"operate", "Operate", "Start and cancel operations"},
	{"read", "Read", "View operations, results and formats"},
	{"admin", "Admin", "Manage keys, webhooks and usage through the admin API"},
}

var expiries = map[string]time.Duration{
	"": 0, "7": 7 * 24 * time.Hour, "30": 30 * 24 * time.Hour, "90": 90 * 24 * time.Hour, "365": 365 * 24 * time.Hour,
}

func (d *Dashboard) keys(v *visit) error {
	return d.showKeys(v, http.StatusOK, keysPage{Form: keyForm{Scopes: []string{"upload", "operate", "read"}}})
}

func (d *Dashboard) showKeys(v *visit, code int, b keysPage) error {
	all, err := d.cfg.Accounts.Keys().List(v.r.Context(), v.owner())
	if err != nil {
		return err
	}
	now := time.Now()
	for _, k := range all {
		if k.Valid(now) {
			b.Keys = append(b.Keys, k)
		} else {
			b.Old = append(b.Old, k)
		}
	}
	newest := func(x, y *account.Key) int { return y.Created.Compare(x.Created) }
	slices.SortStableFunc(b.Keys, newest)
	slices.SortStableFunc(b.Old, newest)
	b.Old = b.Old[:min(len(b.Old), 20)]
	b.Scopes = scopeChoices
	b.Open = b.Open || len(b.Keys) == 0 && b.Raw == ""
	return d.render(v, code, page{Template: "keys", Title: "API keys", Nav: "keys", Body: b})
}

// readKey reads the submitted form. It sets the errors of the form for invalid values.
func readKey(r *http.Request) (f keyForm, scopes httpapi.Scope, rate httpapi.Rate, addresses []netip.Prefix) {
	f = keyForm{
		Name: strings.TrimSpace(r.FormValue("name")), Expires: r.FormValue("expires"), Rate: strings.TrimSpace(r.FormValue("rate")),
		Scopes: r.Form["scope"], Addresses: strings.TrimSpace(r.FormValue("addresses")),
	}
	if f.Name == "" || len(f.Name) > 100 {
		f.NameError = "Enter a name of up to 100 characters."
	}
	scopes, err := httpapi.ParseScope(strings.Join(f.Scopes, " "))
	if err != nil || scopes == 0 {
		f.ScopeError = "Choose at least one permission."
	}
	if f.Rate != "" {
		perSecond, err := strconv.ParseFloat(f.Rate, 64)
		if err != nil || !(perSecond > 0 && perSecond <= 1e6) {
			f.RateError = "Enter a number above 0, or leave empty."
		}
		rate = httpapi.Rate{PerSecond: perSecond, Burst: max(1, int(10*perSecond))}
	}
	if addresses, err = auth.ParseAddresses(f.Addresses); err != nil {
		f.AddressError = sentence(httpapi.ProblemOf(err).Detail)
	}
	return f, scopes, rate, addresses
}

// restrict sets the form's error for scopes that the visitor may not give.
func (d *Dashboard) restrict(v *visit, f *keyForm, scopes httpapi.Scope) error {
	if scopes&httpapi.ScopeAdmin == 0 {
		return nil
	}
	allowed, err := d.cfg.Accounts.MayAdminister(v.r.Context(), v.who)
	if err == nil && !allowed {
		f.ScopeError = "Members of this account may not create keys with the permission Admin: it manages the server."
	}
	return err
}

// Wrong reports whether the form has an error.
func (f keyForm) Wrong() bool {
	return cmp.Or(f.NameError, f.ScopeError, f.RateError, f.AddressError) != ""
}

// expiry returns when a key expires whose form has the given choice; zero: never.
func expiry(choice string) time.Time {
	life, ok := expiries[choice]
	if !ok {
		life = expiries["30"]
	}
	if life == 0 {
		return time.Time{}
	}
	return time.Now().Add(life)
}

func (d *Dashboard) createKey(v *visit) error {
	f, scopes, rate, addresses := readKey(v.r)
	if err := d.restrict(v, &f, scopes); err != nil {
		return err
	}
	if f.Wrong() {
		return d.showKeys(v, http.StatusUnprocessableEntity, keysPage{Form: f, Open: true})
	}
	raw, key, err := d.cfg.Accounts.Keys().Create(v.r.Context(), auth.NewKey{Name: f.Name, Account: v.owner(), Expires: expiry(f.Expires), Scopes: scopes, Rate: rate, Addresses: addresses})
	if err != nil {
		return err
	}
	return d.showKeys(v, http.StatusOK, keysPage{Raw: raw, New: key, Form: keyForm{Scopes: []string{"upload", "operate", "read"}}})
}

// A keyPage shows one key.
type keyPage struct {
	*account.Key
	State  string // "" if the key is valid
	Form   keyForm
	Scopes []scopeChoice
	Latest []*operationRow // operations of the key
	Use    actionUse       // of the last 30 days
}

// ownKey returns the key in the path of a request.
func (d *Dashboard) ownKey(v *visit) (*account.Key, error) {
	k, err := d.cfg.Accounts.Keys().Get(v.r.Context(), v.r.PathValue("id"))
	if err == nil && k.Account != v.owner() {
		err = fs.ErrNotExist
	}
	return k, err
}

func (d *Dashboard) key(v *visit) error {
	k, err := d.ownKey(v)
	if err != nil {
		return err
	}
	f := keyForm{Name: k.Name, Scopes: scopesOf(k.Scopes), Expires: "keep", Addresses: k.Addresses}
	if k.Rate > 0 {
		f.Rate = strconv.FormatFloat(k.Rate, 'g', -1, 64)
	}
	return d.showKey(v, http.StatusOK, k, f)
}

func (d *Dashboard) showKey(v *visit, code int, k *account.Key, f keyForm) error {
	b := keyPage{Key: k, Form: f, Scopes: scopeChoices}
	if now := time.Now(); !k.Revoked.IsZero() {
		b.State = "Revoked"
	} else if !k.Valid(now) {
		b.State = "Expired"
	}
	found, err := d.cfg.Service.Operations().History(v.r.Context(), status.HistoryQuery{Owner: v.owner(), Key: k.ID, Limit: 8})
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	today := time.Now()
	all, err := d.cfg.Accounts.UsageBy(v.r.Context(), v.owner(), account.UsageByKey, today.AddDate(0, 0, -29), today)
	if err != nil {
		return err
	}
	_, b.Use = byAction(slices.DeleteFunc(all, func(u account.Usage) bool { return u.Group != k.ID }))
	for _, op := range found.Operations {
		b.Latest = append(b.Latest, row(op))
	}
	return d.render(v, code, page{Template: "key", Title: k.Name, Nav: "keys", Body: b})
}

func (d *Dashboard) updateKey(v *visit) error {
	k, err := d.ownKey(v)
	if err != nil {
		return err
	}
	f, scopes, rate, addresses := readKey(v.r)
	if err := d.restrict(v, &f, scopes); err != nil {
		return err
	}
	if f.Wrong() {
		return d.showKey(v, http.StatusUnprocessableEntity, k, f)
	}
	c := auth.KeyChange{Name: &f.Name, Scopes: &scopes, Addresses: &addresses}
	if f.Rate != "" || k.Rate > 0 { // the form does not show that a key has no limit
		c.Rate = &rate
	}
	if f.Expires != "keep" {
		at := expiry(f.Expires)
		c.Expires = &at
	}
	if _, err := d.cfg.Accounts.Keys().Update(v.r.Context(), k.ID, c); err != nil {
		return err
	}
	return d.done(v, "key-saved", "keys/"+url.PathEscape(k.ID))
}

// overlaps are how long a key that is rolled stays valid, by the choice in the form.
var overlaps = map[string]time.Duration{"0": 0, "1": time.Hour, "24": 24 * time.Hour, "168": 7 * 24 * time.Hour}

// rollKey replaces a key by a new one with the same name, permissions, rate and lifetime. The old
// key stays valid for a while, so that programs can change over.
func (d *Dashboard) rollKey(v *visit) error {
	k, err := d.ownKey(v)
	if err != nil {
		return err
	}
	overlap, ok := overlaps[v.r.FormValue("overlap")]
	now := time.Now()
	if !ok || !k.Valid(now) {
		return fs.ErrNotExist
	}
	scopes, err := httpapi.ParseScope(k.Scopes)
	if err != nil {
		return err
	}
	f := keyForm{Name: k.Name, Scopes: scopesOf(k.Scopes), Expires: "keep", Addresses: k.Addresses}
	if err := d.restrict(v, &f, scopes); err != nil {
		return err
	}
	if f.Wrong() {
		return d.showKey(v, http.StatusUnprocessableEntity, k, f)
	}
	addresses, err := auth.ParseAddresses(k.Addresses)
	if err != nil {
		return err
	}
	n := auth.NewKey{Name: k.Name, Account: k.Account, Scopes: scopes, Rate: httpapi.Rate{PerSecond: k.Rate, Burst: k.Burst}, Addresses: addresses, Replaces: k.ID}
	if !k.Expires.IsZero() {
		n.Expires = now.Add(k.Expires.Sub(k.Created))
	}
	raw, fresh, err := d.cfg.Accounts.Keys().Create(v.r.Context(), n)
	if err != nil {
		return err
	}
	if overlap == 0 {
		err = d.cfg.Accounts.Keys().Revoke(v.r.Context(), k.ID)
	} else if end := now.Add(overlap); k.Expires.IsZero() || end.Before(k.Expires) {
		_, err = d.cfg.Accounts.Keys().Update(v.r.Context(), k.ID, auth.KeyChange{Expires: &end})
	}
	if err != nil {
		return err
	}
	return d.showKeys(v, http.StatusOK, keysPage{Raw: raw, New: fresh, Rolled: true, Form: keyForm{Scopes: []string{"upload", "operate", "read"}}})
}

func (d *Dashboard) revokeKey(v *visit) error {
	return d.revoke(v, v.owner(), v.r.PathValue("id"), "keys")
}

// revoke revokes a key of an account and redirects to a page.
func (d *Dashboard) revoke(v *visit, owner, id, to string) error {
	keys, err := d.cfg.Accounts.Keys().List(v.r.Context(), owner)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(keys, func(k *account.Key) bool { return k.ID == id }) {
		return fs.ErrNotExist
	}
	if err := d.cfg.Accounts.Keys().Revoke(v.r.Context(), id); err != nil {
		return err
	}
	return d.done(v, "revoked", to)
}

// scopesOf returns the scope names of a key.
func scopesOf(scopes string) []string {
	s, err := httpapi.ParseScope(scopes)
	if err != nil || s == 0 {
		s = httpapi.DefaultScopes
	}
	return strings.Fields(s.String())
}
