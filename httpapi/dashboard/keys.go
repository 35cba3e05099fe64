package dashboard

import (
	"cmp"
	"io/fs"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/httpapi/account"
	"github.com/filewright/filewright/httpapi/auth"
)

type keysPage struct {
	Keys   []*account.Key // valid keys
	Old    []*account.Key // expired and revoked keys
	Raw    string         // the key just created
	New    *account.Key
	Form   keyForm
	Scopes []scopeChoice
	Open   bool // the form is open at first
}

// A keyForm holds the submitted values of the key form.
type keyForm struct {
	Name, Expires, Rate string
	Scopes              []string
	NameError           string
	ScopeError          string
	RateError           string
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

func (d *Dashboard) createKey(v *visit) error {
	f := keyForm{
		Name: strings.TrimSpace(v.r.FormValue("name")), Expires: v.r.FormValue("expires"), Rate: strings.TrimSpace(v.r.FormValue("rate")),
		Scopes: v.r.Form["scope"],
	}
	n := auth.NewKey{Name: f.Name, Account: v.owner()}
	if f.Name == "" || len(f.Name) > 100 {
		f.NameError = "Enter a name of up to 100 characters."
	}
	life, ok := expiries[f.Expires]
	if !ok {
		life = expiries["30"]
	}
	if life > 0 {
		n.Expires = time.Now().Add(life)
	}
	scopes, err := httpapi.ParseScope(strings.Join(f.Scopes, " "))
	if err != nil || scopes == 0 {
		f.ScopeError = "Choose at least one permission."
	}
	n.Scopes = scopes
	if f.Rate != "" {
		perSecond, err := strconv.ParseFloat(f.Rate, 64)
		if err != nil || !(perSecond > 0 && perSecond <= 1e6) {
			f.RateError = "Enter a number above 0, or leave empty."
		}
		n.Rate = httpapi.Rate{PerSecond: perSecond, Burst: max(1, int(10*perSecond))}
	}
	if cmp.Or(f.NameError, f.ScopeError, f.RateError) != "" {
		return d.showKeys(v, http.StatusUnprocessableEntity, keysPage{Form: f, Open: true})
	}
	raw, key, err := d.cfg.Accounts.Keys().Create(v.r.Context(), n)
	if err != nil {
		return err
	}
	return d.showKeys(v, http.StatusOK, keysPage{Raw: raw, New: key, Form: keyForm{Scopes: []string{"upload", "operate", "read"}}})
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
