package dashboard

import (
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"math"
	"net/http"
	"strconv"
	"strings"

	"rsc.io/qr"

	"github.com/filewright/filewright/httpapi/account"
	"github.com/filewright/filewright/httpapi/auth"
)

// A codeForm asks for a code of the second factor after the password.
type codeForm struct {
	Ticket, Next, Error string
	App                 bool // the account has an authenticator app
	Passkey             bool // the browser may offer a passkey of the account
}

func (d *Dashboard) loginCode(v *visit) error {
	form := codeForm{Ticket: v.r.FormValue("ticket"), Next: next(v.r.FormValue("next")), App: true, Passkey: v.r.FormValue("passkey") != "" && d.cfg.Accounts.PasskeysAt(v.r)}
	status := http.StatusUnauthorized
	token, _, err := d.cfg.Accounts.LoginCode(v.r.Context(), form.Ticket, v.r.FormValue("code"), d.cfg.Accounts.From(v.r))
	switch {
	case tooMany(err) != nil:
		status = http.StatusTooManyRequests
		v.w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(tooMany(err).RetryAfter.Seconds()))))
		form.Error = "Too many wrong codes. Please wait five minutes and try again."
	case errors.Is(err, auth.ErrNoSession), errors.Is(err, auth.ErrCredentials):
		return d.showLogin(v, status, loginForm{Next: form.Next, Error: "The login has expired. Please start again."})
	case errors.Is(err, auth.ErrCode):
		form.Error = "Wrong or used code. The app shows a new code every 30 seconds."
	case err != nil:
		return err
	default:
		d.cfg.Accounts.SetCookie(v.w, v.r, token)
		return d.redirect(v, form.Next)
	}
	return d.render(v, status, page{Template: "code", Title: "Log in", Plain: true, Body: form})
}

// A factorCard shows the second factor in the settings.
type factorCard struct {
	Offered bool
	Factor  *account.Factor // nil: none
	Error   string
}

func (d *Dashboard) fillFactor(v *visit, c *factorCard) (err error) {
	c.Offered = d.cfg.Accounts.HasFactors() && v.who.Password != ""
	if !c.Offered {
		return nil
	}
	c.Factor, err = d.cfg.Accounts.Factor(v.r.Context(), v.who.ID)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

type factorPage struct {
	Name     string
	Setup    auth.FactorSetup
	Code     template.HTML // QR code
	Error    string
	Recovery []string // of the factor that was just turned on
}

func (d *Dashboard) newFactor(v *visit) error {
	if v.who.Password == "" {
		return fs.ErrNotExist
	}
	setup, err := d.cfg.Accounts.NewFactor(v.who)
	if err != nil {
		return err
	}
	return d.showFactor(v, http.StatusOK, factorPage{Setup: setup})
}

func (d *Dashboard) showFactor(v *visit, code int, b factorPage) (err error) {
	b.Name = v.who.Name
	if b.Recovery == nil {
		if b.Code, err = qrCode(b.Setup.URL); err != nil {
			return err
		}
	}
	return d.render(v, code, page{Template: "factor", Title: "Second factor", Nav: "settings", Body: b})
}

func (d *Dashboard) enableFactor(v *visit) error {
	setup, err := d.cfg.Accounts.OpenSetup(v.who, v.r.FormValue("ticket"))
	if errors.Is(err, auth.ErrNoSession) {
		return d.redirect(v, "settings/second-factor")
	}
	if err != nil {
		return err
	}
	b := factorPage{Setup: setup}
	b.Recovery, err = d.cfg.Accounts.EnableFactor(v.r.Context(), v.who.ID, setup.Ticket, v.r.FormValue("password"), v.r.FormValue("code"))
	switch {
	case err == nil:
		return d.showFactor(v, http.StatusOK, b)
	case factorError(err) != "":
		b.Error = factorError(err)
		return d.showFactor(v, http.StatusUnprocessableEntity, b)
	}
	return err
}

// factorError returns the message for a user error, or "".
func factorError(err error) string {
	switch {
	case tooMany(err) != nil:
		return "Too many attempts. Please wait a minute and try again."
	case errors.Is(err, auth.ErrCredentials):
		return "The current password is wrong."
	case errors.Is(err, auth.ErrCode):
		return "Wrong code. Check the clock of the device with the app."
	}
	return ""
}

func (d *Dashboard) disableFactor(v *visit) error {
	err := d.cfg.Accounts.DisableFactor(v.r.Context(), v.who.ID, v.r.FormValue("password"))
	if text := factorError(err); text != "" {
		return d.showSettings(v, http.StatusUnprocessableEntity, settingsPage{Factor: factorCard{Error: text}})
	}
	if err != nil {
		return err
	}
	return d.done(v, "factor-off", "settings")
}

// qrCode returns a QR code of a text as an SVG element, dark on light in every theme.
func qrCode(text string) (template.HTML, error) {
	c, err := qr.Encode(text, qr.M)
	if err != nil {
		return "", err
	}
	const quiet = 4 // modules around the code
	var path strings.Builder
	for y := range c.Size {
		for x := range c.Size {
			if c.Black(x, y) {
				fmt.Fprintf(&path, "M%d %dh1v1h-1z", x+quiet, y+quiet)
			}
		}
	}
	size := c.Size + 2*quiet
	return template.HTML(fmt.Sprintf(`<svg id="qr" role="img" aria-label="QR code of the secret" width="220" height="220" viewBox="0 0 %d %d" shape-rendering="crispEdges"><path fill="#fff" d="M0 0h%dv%dH0z"/><path fill="#000" d="%s"/></svg>`, size, size, size, size, &path)), nil
}
