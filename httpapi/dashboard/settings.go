package dashboard

import (
	"errors"
	"io/fs"
	"net/http"
	"strings"

	"github.com/filewright/filewright/httpapi/auth"
)

type settingsPage struct {
	Password passwordForm
	Sessions []sessionRow
	SignIn   signInCard
	Factor   factorCard
	Passkeys passkeyCard
}

// A sessionRow is a session in the settings.
type sessionRow struct {
	auth.Session
	Current bool
}

// Browser describes the browser of a session by its User-Agent.
func (s sessionRow) Browser() string { return browserOf(s.Agent) }

// clientOf describes the client of a request by its User-Agent: a browser in words, any other program
// as it names itself.
func clientOf(agent string) string {
	if strings.HasPrefix(agent, "Mozilla/") {
		return browserOf(agent)
	}
	return agent
}

func browserOf(agent string) string {
	name := ""
	for _, b := range [][2]string{{"Edg/", "Edge"}, {"OPR/", "Opera"}, {"Firefox/", "Firefox"}, {"Chrome/", "Chrome"}, {"Safari/", "Safari"}, {"curl/", "curl"}} {
		if strings.Contains(agent, b[0]) {
			name = b[1]
			break
		}
	}
	system := ""
	for _, b := range [][2]string{{"Android", "Android"}, {"iPhone", "iPhone"}, {"iPad", "iPad"}, {"Windows", "Windows"}, {"Mac OS X", "macOS"}, {"Linux", "Linux"}} {
		if strings.Contains(agent, b[0]) {
			system = b[1]
			break
		}
	}
	switch {
	case name == "":
		return "A browser"
	case system == "":
		return name
	}
	return name + " on " + system
}

func (d *Dashboard) settings(v *visit) error {
	return d.showSettings(v, http.StatusOK, settingsPage{})
}

func (d *Dashboard) showSettings(v *visit, code int, b settingsPage) error {
	all, err := d.cfg.Accounts.Sessions(v.r.Context(), v.who.ID)
	if err != nil {
		return err
	}
	current := d.cfg.Accounts.SessionID(v.token)
	for _, s := range all {
		b.Sessions = append(b.Sessions, sessionRow{s, s.ID == current})
	}
	if err := d.fillFactor(v, &b.Factor); err != nil {
		return err
	}
	if err := d.fillPasskeys(v, &b.Passkeys); err != nil {
		return err
	}
	if err := d.fillSignIn(v, &b.SignIn); err != nil {
		return err
	}
	return d.render(v, code, page{Template: "settings", Title: "Settings", Nav: "settings", Body: b})
}

func (d *Dashboard) changePassword(v *visit) error {
	return d.setPassword(v, "settings", func(form passwordForm) error {
		return d.showSettings(v, http.StatusUnprocessableEntity, settingsPage{Password: form})
	})
}

// endSessions ends one session of the visitor, or all except the current session.
func (d *Dashboard) endSessions(v *visit) error {
	if id := v.r.FormValue("session"); id != "" {
		if err := d.cfg.Accounts.EndSession(v.r.Context(), v.who.ID, id); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return d.done(v, "session", "settings")
	}
	if err := d.cfg.Accounts.EndOtherSessions(v.r.Context(), v.who.ID, v.token); err != nil {
		return err
	}
	return d.done(v, "sessions", "settings")
}
