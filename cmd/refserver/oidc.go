package main

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/filewright/filewright/httpapi/auth"
	"github.com/filewright/filewright/httpapi/dashboard"
	"github.com/filewright/filewright/httpapi/oidc"
)

// loginConfig configures how users log in to the dashboard.
type loginConfig struct {
	passwords bool
	list      string // path of a list of passwords; "": none
	oidc      oidc.Config
	accounts  string
}

// Values of --oidc-accounts.
const (
	oidcCreate   = "create"
	oidcExisting = "existing"
)

// minClientSecret is the least length of --oidc-client-secret.
const minClientSecret = 6

func (c *loginConfig) register(fs *flagSet) {
	o := &c.oidc
	fs.BoolVar(&c.passwords, "password-login", true, "accept passwords in the dashboard; false requires --oidc-issuer")
	fs.StringVar(&c.list, "password-list", "", "`file` with passwords that users may not choose: lines with SHA-1 hashes, sorted, as Have I Been Pwned publishes them; default: only the most common passwords are refused")
	fs.StringVar(&o.Issuer, "oidc-issuer", "", "issuer `URL` of an OpenID Connect provider with which users log in to the dashboard, such as https://id.example.com; its redirect URI is --public-url with dashboard/login/oidc/callback; default: none")
	fs.StringVar(&o.ClientID, "oidc-client-id", "", "client `ID` of this server at the provider")
	fs.token(&o.ClientSecret, minClientSecret, "oidc-client-secret", "client `secret` at the provider, of at least %d characters; default: a public client")
	fs.StringVar(&o.Name, "oidc-name", "", "`name` of the provider on the login page; default: single sign-on")
	fs.list(&o.Scopes, "oidc-scopes", "comma-separated `scopes` to request [openid,profile,email]")
	fs.StringVar(&o.NameClaim, "oidc-name-claim", "preferred_username", "`claim` with the login name of a new account; email counts only if it is verified")
	fs.StringVar(&o.GroupsClaim, "oidc-groups-claim", "groups", "`claim` with the groups of a user; a dot leads into an object: realm_access.roles")
	fs.list(&o.Groups, "oidc-groups", "comma-separated `groups` whose members may log in; default: all users of the provider")
	fs.list(&o.AdminGroups, "oidc-admin-groups", "comma-separated `groups` whose members are administrators, and other users of the provider are not; default: roles are set in the dashboard")
	c.accounts = oidcCreate
	fs.choice(&c.accounts, "oidc-accounts", "`accounts` of new users of the provider. create: they get one at the first login; existing: only users whose name an administrator has given to an account may log in", oidcCreate, oidcExisting)
	fs.BoolVar(&o.LogoutToo, "oidc-logout", false, "log out of the provider, too, when a user logs out of the dashboard")
}

// check checks flags that depend on each other.
func (c *loginConfig) check() error {
	switch {
	case c.oidc.Issuer == "" && c.oidc.ClientID != "":
		return errors.New("--oidc-client-id requires --oidc-issuer")
	case c.oidc.Issuer == "" && !c.passwords:
		return errors.New("--password-login=false requires --oidc-issuer")
	case c.oidc.Issuer != "" && c.oidc.ClientID == "":
		return errors.New("--oidc-issuer requires --oidc-client-id")
	}
	c.oidc.Existing = c.accounts == oidcExisting
	return nil
}

// breached opens the list of passwords, or returns nil if there is none.
func (c *loginConfig) breached() (*auth.PasswordList, error) {
	if c.list == "" {
		return nil, nil
	}
	l, err := auth.OpenPasswordList(c.list)
	if err != nil {
		return nil, fmt.Errorf("--password-list: %w", err)
	}
	return l, nil
}

// signIn returns the provider, or nil if there is none.
func (c *loginConfig) signIn(secrets [][]byte, log *slog.Logger) (dashboard.SignIn, error) {
	if c.oidc.Issuer == "" {
		return nil, nil
	}
	o := c.oidc
	o.Secrets, o.Log = secrets, log
	p, err := oidc.New(o)
	if err != nil {
		return nil, fmt.Errorf("--oidc-issuer: %w", err)
	}
	return p, nil
}
