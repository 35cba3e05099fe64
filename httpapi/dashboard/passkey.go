package dashboard

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"slices"

	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/httpapi/account"
	"github.com/filewright/filewright/httpapi/auth"
)

// A passkeyCard shows the passkeys of a user in the settings.
type passkeyCard struct {
	Offered  bool // the user may add one
	Password bool // changes need the current password
	List     []passkeyRow
	Name     string // submitted name of a new passkey
	Error    string
}

// A passkeyRow is a passkey in the settings.
type passkeyRow struct{ *account.Passkey }

// Key returns the credential ID for a form.
func (p passkeyRow) Key() string { return base64.RawURLEncoding.EncodeToString(p.ID) }

// Synced reports whether the device copies the passkey to others of its user (WebAuthn, section 6.1.3).
func (p passkeyRow) Synced() bool { return p.Flags&(1<<4) != 0 }

func (d *Dashboard) fillPasskeys(v *visit, c *passkeyCard) error {
	c.Offered, c.Password = d.cfg.Accounts.PasskeysAt(v.r), v.who.Password != ""
	all, err := d.cfg.Accounts.Passkeys(v.r.Context(), v.who.ID)
	for _, p := range all {
		c.List = append(c.List, passkeyRow{p})
	}
	slices.Reverse(c.List)
	return err
}

// passkeyError returns the message for a user error, or "".
func passkeyError(err error) string {
	var p *httpapi.Problem
	switch {
	case tooMany(err) != nil:
		return "Too many attempts. Please wait a minute and try again."
	case errors.Is(err, auth.ErrCredentials):
		return "The current password is wrong."
	case errors.Is(err, auth.ErrNoSession):
		return "This took too long. Please try again."
	case errors.Is(err, auth.ErrOnlyLogin):
		return "This is the only way to log in to this account. Add another passkey first."
	case errors.As(err, &p) && p.Status < 500:
		return sentence(p.Detail)
	}
	return ""
}

// sendPasskeyRequest answers a script with a request for a passkey.
func (d *Dashboard) sendPasskeyRequest(v *visit, q auth.PasskeyRequest, err error) error {
	var answer any = q
	status := http.StatusOK
	if err != nil {
		text := passkeyError(err)
		if text == "" {
			return err
		}
		answer, status = struct {
			Error string `json:"error"`
		}{text}, http.StatusUnprocessableEntity
	}
	v.w.Header().Set("Content-Type", "application/json")
	v.w.WriteHeader(status)
	return json.NewEncoder(v.w).Encode(answer)
}

func (d *Dashboard) newPasskey(v *visit) error {
	q, err := d.cfg.Accounts.NewPasskey(v.r, v.who, v.r.FormValue("password"))
	return d.sendPasskeyRequest(v, q, err)
}

func (d *Dashboard) addPasskey(v *visit) error {
	name := v.r.FormValue("name")
	_, err := d.cfg.Accounts.AddPasskey(v.r, v.who, name, v.r.FormValue("ticket"), []byte(v.r.FormValue("credential")))
	return d.passkeyChanged(v, err, "passkey-added", name)
}

func (d *Dashboard) removePasskey(v *visit) error {
	id, err := base64.RawURLEncoding.DecodeString(v.r.FormValue("passkey"))
	if err != nil {
		return fs.ErrNotExist
	}
	err = d.cfg.Accounts.RemovePasskey(v.r.Context(), v.who, id, v.r.FormValue("password"))
	return d.passkeyChanged(v, err, "passkey-removed", "")
}

// passkeyChanged answers a form with the settings.
func (d *Dashboard) passkeyChanged(v *visit, err error, what, name string) error {
	if err == nil {
		return d.done(v, what, "settings")
	}
	text := passkeyError(err)
	if text == "" {
		return err
	}
	return d.showSettings(v, http.StatusUnprocessableEntity, settingsPage{Passkeys: passkeyCard{Error: text, Name: name}})
}

// askPasskey answers a script of the login pages with a request for a passkey.
func (d *Dashboard) askPasskey(v *visit) error {
	q, err := d.cfg.Accounts.AskPasskey(v.r, v.r.FormValue("code"))
	return d.sendPasskeyRequest(v, q, err)
}

func (d *Dashboard) loginPasskey(v *visit) error {
	to := next(v.r.FormValue("next"))
	token, _, err := d.cfg.Accounts.LoginPasskey(v.r, v.r.FormValue("ticket"), []byte(v.r.FormValue("credential")))
	switch text := passkeyError(err); {
	case err == nil:
		d.cfg.Accounts.SetCookie(v.w, v.r, token)
		return d.redirect(v, to)
	case errors.Is(err, auth.ErrCredentials):
		return d.showLogin(v, http.StatusForbidden, loginForm{Next: to, Error: "This account is disabled."})
	case text != "":
		return d.showLogin(v, http.StatusUnauthorized, loginForm{Next: to, Error: text})
	}
	return err
}
