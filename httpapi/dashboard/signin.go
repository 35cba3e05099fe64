package dashboard

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/httpapi/account"
	"github.com/filewright/filewright/httpapi/auth"
)

// A SignIn logs users in with a provider, such as oidc.Provider.
type SignIn interface {
	// Name returns the provider's name for people.
	Name() string

	// Start starts a login that comes back to the URL redirect. It returns the URL of the provider
	// to send the browser to, and a ticket to keep in a cookie.
	Start(ctx context.Context, redirect string, r auth.LoginRequest) (to, ticket string, err error)

	// Finish returns the user of a login by the ticket and the query of the request to redirect. For
	// user errors it returns an httpapi.Problem.
	Finish(ctx context.Context, redirect, ticket string, query url.Values) (auth.ExternalUser, auth.LoginRequest, error)

	// LogoutURL returns the URL that ends the session at the provider and comes back to after; "":
	// the session there continues.
	LogoutURL(ctx context.Context, after string) string
}

// ticketCookie keeps the ticket of a login while the browser is at the provider. Browsers send it when
// they come back from there, as it is SameSite=Lax.
const (
	ticketCookie = "filewright_oidc"
	ticketTime   = 15 * time.Minute
)

func (d *Dashboard) setTicket(v *visit, ticket string) {
	c := &http.Cookie{
		Name: d.cfg.Accounts.CookieName(v.r, ticketCookie), Value: ticket, Path: "/", HttpOnly: true,
		Secure: d.cfg.Accounts.Secure(v.r), SameSite: http.SameSiteLaxMode, MaxAge: int(ticketTime.Seconds()),
	}
	if ticket == "" {
		c.MaxAge = -1
	}
	http.SetCookie(v.w, c)
}

// callback returns the URL at which the browser comes back from the provider.
func (d *Dashboard) callback(v *visit) string {
	return d.cfg.Accounts.URL(v.r, Path[1:]+"login/oidc/callback")
}

func (d *Dashboard) startSignIn(v *visit) error {
	return d.toProvider(v, auth.LoginRequest{Next: next(v.r.URL.Query().Get("next")), Invite: v.r.URL.Query().Get("invitation")})
}

// connect starts a login that connects the visitor's account to a user of the provider. Browsers send
// the session only with requests of the dashboard itself, so no other site can start it.
func (d *Dashboard) connect(v *visit) error {
	return d.toProvider(v, auth.LoginRequest{Next: "settings", Account: v.who.ID})
}

func (d *Dashboard) toProvider(v *visit, r auth.LoginRequest) error {
	to, ticket, err := d.cfg.SignIn.Start(v.r.Context(), d.callback(v), r)
	if err != nil {
		return d.signInFailed(v, err)
	}
	d.setTicket(v, ticket)
	http.Redirect(v.w, v.r, to, http.StatusSeeOther)
	return nil
}

func (d *Dashboard) finishSignIn(v *visit) error {
	ctx := v.r.Context()
	ticket := ""
	if c, err := v.r.Cookie(d.cfg.Accounts.CookieName(v.r, ticketCookie)); err == nil {
		ticket = c.Value
	}
	d.setTicket(v, "")
	user, r, err := d.cfg.SignIn.Finish(ctx, d.callback(v), ticket, v.r.URL.Query())
	if err != nil {
		return d.signInFailed(v, err)
	}
	if r.Account != "" {
		if err := d.cfg.Accounts.Connect(ctx, r.Account, user); err != nil {
			return d.signInFailed(v, err)
		}
		d.setFlash(v, "connected")
		return d.goOn(v, "Connected", "Your account is connected.", Path+next(r.Next))
	}
	var token string
	if r.Invite != "" && d.cfg.Accounts.HasMembers() {
		token, err = d.cfg.Accounts.JoinExternal(ctx, r.Invite, user, d.cfg.Accounts.From(v.r))
	} else {
		token, _, err = d.cfg.Accounts.LoginExternal(ctx, user, d.cfg.Accounts.From(v.r))
	}
	if err != nil {
		return d.signInFailed(v, err)
	}
	d.cfg.Accounts.SetCookie(v.w, v.r, token)
	return d.goOn(v, "Logged in", "You are logged in.", Path+next(r.Next))
}

// goOn answers with a page that leads to another URL. A redirect would not do: on a way that starts
// at another site, browsers do not send the session (SameSite=Strict), and after a form they may not
// go to another site (form-action).
func (d *Dashboard) goOn(v *visit, title, text, to string) error {
	v.w.Header().Set("Refresh", "0; url="+to)
	v.who = nil
	return d.render(v, http.StatusOK, page{Template: "continue", Title: title, Plain: true, Body: struct{ Title, Text, To string }{title, text, to}})
}

// signInFailed answers with the login page and a message, unless the error is not a user error.
func (d *Dashboard) signInFailed(v *visit, err error) error {
	var p *httpapi.Problem
	if !errors.As(err, &p) || p.Status >= 500 && p.Status != http.StatusBadGateway {
		return err
	}
	text := sentence(p.Detail)
	switch {
	case errors.Is(err, account.ErrNameTaken):
		text = "An account with your name is already in use. If it is yours, log in with its password and connect it in Settings. Otherwise ask an administrator."
	case errors.Is(err, auth.ErrCredentials):
		text = "This account is disabled."
	}
	return d.showLogin(v, p.Status, loginForm{Error: text})
}

// providerLogout returns the URL that ends the session at the provider, if the visitor logged in
// there, else "".
func (d *Dashboard) providerLogout(v *visit, method string) string {
	if d.cfg.SignIn == nil || method != account.MethodExternal {
		return ""
	}
	return d.cfg.SignIn.LogoutURL(v.r.Context(), d.cfg.Accounts.URL(v.r, Path[1:]+"login"))
}

// A signInCard shows the connections of an account in the settings.
type signInCard struct {
	Provider   string // "": no provider
	Identities []account.Identity
	Error      string
}

func (d *Dashboard) fillSignIn(v *visit, c *signInCard) (err error) {
	if d.cfg.SignIn == nil {
		return nil
	}
	c.Provider = d.cfg.SignIn.Name()
	c.Identities, err = d.cfg.Accounts.Identities(v.r.Context(), v.who.ID)
	return err
}

func (d *Dashboard) disconnect(v *visit) error {
	err := d.cfg.Accounts.Disconnect(v.r.Context(), v.who.ID, v.r.FormValue("issuer"), v.r.FormValue("subject"))
	if errors.Is(err, auth.ErrOnlyLogin) {
		return d.showSettings(v, http.StatusConflict, settingsPage{SignIn: signInCard{Error: "This is the only way to log in to this account. Ask an administrator for a password first."}})
	}
	if err != nil {
		return err
	}
	return d.done(v, "disconnected", "settings")
}

// sentence turns the detail of a problem into a sentence.
func sentence(detail string) string {
	if detail == "" {
		return ""
	}
	return strings.ToUpper(detail[:1]) + detail[1:] + "."
}
