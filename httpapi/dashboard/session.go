package dashboard

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/httpapi/auth"
)

const (
	themeCookie = "filewright_theme"
	flashCookie = "filewright_flash"
)

// A flash is a message that one page shows once after an action.
type flash struct{ Kind, Icon, Text string }

// flashes are all messages. The cookie contains only a name, so that nobody can forge a message.
var flashes = map[string]*flash{
	"password":        {"ok", "check", "Password changed. Your other sessions have ended."},
	"revoked":         {"ok", "check", "API key revoked. Requests with it now fail."},
	"key-saved":       {"ok", "check", "API key saved."},
	"cancelled":       {"ok", "check", "Operation cancelled."},
	"deleted":         {"ok", "check", "Operation and results deleted."},
	"again":           {"ok", "check", "Started again."},
	"bulk-none":       {"warn", "alert", "No operation is selected."},
	"bulk-empty":      {"warn", "alert", "The selected operations have no results, or their results have expired."},
	"bulk-cancel":     {"ok", "check", "cancelled"},
	"bulk-delete":     {"ok", "check", "deleted"},
	"bulk-again":      {"ok", "check", "started again"},
	"hook-saved":      {"ok", "check", "Webhook saved."},
	"hook-deleted":    {"ok", "check", "Webhook deleted."},
	"hook-enabled":    {"ok", "check", "Webhook enabled."},
	"hook-disabled":   {"ok", "check", "Webhook disabled. No more events are sent to it."},
	"test":            {"ok", "check", "Test event sent."},
	"replayed":        {"ok", "check", "queued again"},
	"replay":          {"ok", "check", "Delivery queued again."},
	"session":         {"ok", "check", "Session ended."},
	"sessions":        {"ok", "check", "All other sessions ended."},
	"account-saved":   {"ok", "check", "Account saved."},
	"account-off":     {"ok", "check", "Account disabled. Its sessions have ended and its keys are refused."},
	"account-gone":    {"ok", "check", "Account deleted. Its files and operations expire."},
	"account-on":      {"ok", "check", "Account enabled."},
	"factor-off":      {"ok", "check", "Second factor turned off."},
	"passkey-added":   {"ok", "check", "Passkey added."},
	"passkey-removed": {"ok", "check", "Passkey removed."},
	"joined":          {"ok", "check", "Welcome. You are logged in."},
	"left":            {"ok", "check", "You have left the account."},
	"role":            {"ok", "check", "Role changed."},
	"member-gone":     {"ok", "check", "Member removed. The sessions have ended."},
	"invitation-gone": {"ok", "check", "Invitation revoked."},
	"connected":       {"ok", "check", "Connected. You can now log in with the provider."},
	"disconnected":    {"ok", "check", "Disconnected. You can no longer log in with the provider."},
	"logout":          {"ok", "check", "You are logged out."},
}

// cookie returns a cookie of the dashboard.
func (d *Dashboard) cookie(v *visit, name, value, path string, age time.Duration) {
	c := &http.Cookie{
		Name: name, Value: value, Path: path, HttpOnly: true, SameSite: http.SameSiteStrictMode,
		MaxAge: int(age / time.Second),
	}
	if value == "" {
		c.MaxAge = -1
	}
	http.SetCookie(v.w, c)
}

// done redirects to a page that shows the message for what.
func (d *Dashboard) done(v *visit, what, to string) error {
	d.setFlash(v, what)
	return d.redirect(v, to)
}

// setFlash lets the next page show the message for what.
func (d *Dashboard) setFlash(v *visit, what string) {
	d.cookie(v, flashCookie, what, Path, time.Minute)
}

func (d *Dashboard) takeFlash(v *visit) *flash {
	c, err := v.r.Cookie(flashCookie)
	if err != nil {
		return nil
	}
	d.cookie(v, flashCookie, "", Path, 0)
	name, counts, ok := strings.Cut(c.Value, ".")
	f := flashes[name]
	if f == nil || !ok {
		return f
	}
	var good, bad int
	if _, err := fmt.Sscanf(counts, "%d.%d", &good, &bad); err != nil {
		return nil
	}
	n := &flash{f.Kind, f.Icon, plural(good, "operation", "operations") + " " + f.Text + "."}
	if name == "replayed" {
		n.Text = plural(good, "failed delivery", "failed deliveries") + " " + f.Text + "."
	}
	if bad > 0 {
		n.Kind, n.Icon = "warn", "alert"
		n.Text += " " + plural(bad, "operation was", "operations were") + " left out: " + map[string]string{
			"bulk-cancel": "they no longer exist.", "bulk-delete": "only finished operations can be deleted.", "bulk-again": "their files have expired, or a parameter is secret and must be entered again.",
		}[name]
	}
	return n
}

// next returns the path below Path to go to after a form.
func next(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.IsAbs() || u.Host != "" || strings.HasPrefix(u.Path, "/") || strings.Contains(text, "\\") || strings.Contains(u.Path, "..") {
		return ""
	}
	return text
}

func (d *Dashboard) toLogin(v *visit) {
	if v.r.Header.Get("Accept") == "application/json" || v.r.Header.Get("Accept") == "text/event-stream" {
		http.Error(v.w, "the session has expired", http.StatusUnauthorized)
		return
	}
	to := Path + "login"
	if v.r.Method == http.MethodGet {
		if here := strings.TrimPrefix(v.r.URL.RequestURI(), Path); here != "" {
			to += "?next=" + url.QueryEscape(here)
		}
	}
	http.Redirect(v.w, v.r, to, http.StatusSeeOther)
}

type loginForm struct {
	Name, Next, Error string
	Provider          string // name of the sign-in provider; "": none
	Password          bool   // passwords are accepted
	Passkey           bool   // the browser may offer passkeys
}

// showLogin answers with the login page.
func (d *Dashboard) showLogin(v *visit, code int, form loginForm) error {
	form.Password = d.cfg.Accounts.PasswordLogin()
	form.Passkey = d.cfg.Accounts.PasskeysAt(v.r)
	if d.cfg.SignIn != nil {
		form.Provider = d.cfg.SignIn.Name()
	}
	return d.render(v, code, page{Template: "login", Title: "Log in", Plain: true, Body: form})
}

func (d *Dashboard) loginPage(v *visit) error {
	to := next(v.r.URL.Query().Get("next"))
	if v.who != nil {
		return d.redirect(v, to)
	}
	return d.showLogin(v, http.StatusOK, loginForm{Next: to})
}

func (d *Dashboard) login(v *visit) error {
	status := http.StatusUnauthorized
	var code *auth.CodeRequired
	form := loginForm{Name: strings.TrimSpace(v.r.FormValue("name")), Next: next(v.r.FormValue("next"))}
	token, _, err := d.cfg.Accounts.Login(v.r.Context(), form.Name, v.r.FormValue("password"), d.cfg.Accounts.From(v.r))
	switch {
	case tooMany(err) != nil:
		status = http.StatusTooManyRequests
		v.w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(tooMany(err).RetryAfter.Seconds()))))
		form.Error = "Too many attempts. Please wait a minute and try again."
	case errors.Is(err, auth.ErrCredentials):
		form.Error = "Wrong name or password."
	case errors.As(err, &code):
		return d.render(v, http.StatusOK, page{Template: "code", Title: "Log in", Plain: true, Body: codeForm{Ticket: code.Ticket, Next: form.Next, App: code.Code, Passkey: code.Passkey && d.cfg.Accounts.PasskeysAt(v.r)}})
	case errors.Is(err, auth.ErrNoPasswords):
		form.Error = "This server does not accept passwords."
	case err != nil:
		return err
	default:
		d.cfg.Accounts.SetCookie(v.w, v.r, token)
		return d.redirect(v, form.Next)
	}
	return d.showLogin(v, status, form)
}

// tooMany returns the problem of an error that reports too many attempts, else nil.
func tooMany(err error) *httpapi.Problem {
	var p *httpapi.Problem
	if errors.As(err, &p) && p.Status == http.StatusTooManyRequests {
		return p
	}
	return nil
}

func (d *Dashboard) logout(v *visit) error {
	method, err := d.cfg.Accounts.SessionMethod(v.r.Context(), v.who.ID, v.token)
	if err != nil {
		return err
	}
	if err := d.cfg.Accounts.Logout(v.r.Context(), v.token); err != nil && !errors.Is(err, auth.ErrNoSession) {
		return err
	}
	d.cfg.Accounts.ClearCookie(v.w, v.r)
	if to := d.providerLogout(v, method); to != "" {
		return d.goOn(v, "Logging out", "You are logged out here. Next, you are logged out of the sign-in provider.", to)
	}
	return d.done(v, "logout", "login")
}

// A passwordForm holds the errors of the password form.
type passwordForm struct{ OldError, NewError, AgainError string }

// passwordPage asks for a new password after a login with a one-time password.
func (d *Dashboard) passwordPage(v *visit) error {
	if !v.who.MustChange {
		return d.redirect(v, "settings")
	}
	return d.render(v, http.StatusOK, page{Template: "password", Title: "Choose a password", Plain: true, Body: passwordForm{}})
}

func (d *Dashboard) password(v *visit) error {
	return d.setPassword(v, "", func(form passwordForm) error {
		return d.render(v, http.StatusUnprocessableEntity, page{Template: "password", Title: "Choose a password", Plain: true, Body: form})
	})
}

// textBreached is the message for a new password that is in the list of breached ones.
const textBreached = "Choose another password: attackers know this one from a data breach."

// setPassword changes the visitor's password and redirects to another page. After a user error,
// again shows the form.
func (d *Dashboard) setPassword(v *visit, to string, again func(passwordForm) error) error {
	old, fresh := v.r.FormValue("old"), v.r.FormValue("new")
	if fresh != v.r.FormValue("again") {
		return again(passwordForm{AgainError: "The passwords do not match."})
	}
	token, err := d.cfg.Accounts.ChangePassword(v.r.Context(), v.who.ID, old, fresh, d.cfg.Accounts.From(v.r))
	switch {
	case errors.Is(err, auth.ErrCredentials):
		return again(passwordForm{OldError: "The current password is wrong."})
	case tooMany(err) != nil:
		return again(passwordForm{OldError: "Too many attempts. Please wait a minute and try again."})
	case errors.Is(err, auth.ErrBreached):
		return again(passwordForm{NewError: textBreached})
	case errors.Is(err, auth.ErrWeakPassword):
		return again(passwordForm{NewError: "Choose another password: 10 to 200 characters, not common, not your name and not the current password."})
	case err != nil:
		return err
	}
	d.cfg.Accounts.SetCookie(v.w, v.r, token)
	return d.done(v, "password", to)
}

func (d *Dashboard) setTheme(v *visit) error {
	theme := v.r.FormValue("theme")
	if theme != "light" && theme != "dark" {
		theme = ""
	}
	d.cookie(v, themeCookie, theme, Path, 400*24*time.Hour)
	if v.r.Header.Get("Accept") == "application/json" {
		v.w.WriteHeader(http.StatusNoContent)
		return nil
	}
	return d.redirect(v, next(v.r.FormValue("next")))
}
