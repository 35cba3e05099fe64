package auth

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/httpapi/account"
)

// CookieName is the name of the cookie with the session token. Over TLS it has the prefix "__Host-":
// browsers then refuse a cookie that another host of the domain or a page without TLS has set.
const CookieName = "filewright_session"

// hostPrefix is the prefix of cookies that only this host can set, over TLS (RFC 6265bis,
// section 4.1.3.2).
const hostPrefix = "__Host-"

// CookieName returns the name of a cookie for a request: name with the prefix "__Host-" over TLS,
// else name alone. Such a cookie must be Secure and have the path "/".
func (a *Accounts) CookieName(r *http.Request, name string) string {
	if a.Secure(r) {
		return hostPrefix + name
	}
	return name
}

// Secure reports whether the client sent a request over TLS.
func (a *Accounts) Secure(r *http.Request) bool { return a.base(r).Scheme == "https" }

// Token returns the session token of a request, or "".
func (a *Accounts) Token(r *http.Request) string {
	c, err := r.Cookie(a.CookieName(r, CookieName))
	if err != nil {
		return ""
	}
	return c.Value
}

// SetCookie sets the session cookie. Scripts cannot read it, browsers send it only from pages of
// the service, and it is Secure if r came over TLS.
func (a *Accounts) SetCookie(w http.ResponseWriter, r *http.Request, token string) {
	c := a.cookie(r, token)
	c.MaxAge = int(a.cfg.SessionLife.Seconds())
	http.SetCookie(w, c)
}

// ClearCookie deletes the session cookie.
func (a *Accounts) ClearCookie(w http.ResponseWriter, r *http.Request) {
	c := a.cookie(r, "")
	c.MaxAge = -1
	http.SetCookie(w, c)
}

func (a *Accounts) cookie(r *http.Request, token string) *http.Cookie {
	return &http.Cookie{
		Name: a.CookieName(r, CookieName), Value: token, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: a.Secure(r),
	}
}

// URL returns the public address of a path of the service, such as "dashboard/".
func (a *Accounts) URL(r *http.Request, path string) string { return a.base(r).String() + path }

// base returns the public address of the service.
func (a *Accounts) base(r *http.Request) *url.URL {
	return httpapi.PublicURL(r, a.cfg.BaseURL, a.cfg.TrustProxy)
}

// From returns the client of a request, for [Accounts.Login]. Behind a trusted proxy the address is
// the one that the proxy added. For IPv6 it is the network.
func (a *Accounts) From(r *http.Request) Client {
	return Client{Address: httpapi.ClientNetwork(r, a.cfg.TrustProxy), Agent: r.UserAgent()}
}

// Current returns the account of a request's session cookie. It fails with ErrNoSession without a
// valid session.
func (a *Accounts) Current(r *http.Request) (*account.Account, error) {
	return a.Session(r.Context(), a.Token(r))
}

// errMustChange is the error for a session whose one-time password is still unchanged.
var errMustChange error = httpapi.NewProblem(http.StatusForbidden, "forbidden", "change the password first")

// Authenticate implements httpapi.Authenticator. A request has an API key or, if it comes from a
// page of the service, a session cookie. Sessions have the scopes of the login's role; only those of
// administrators may manage other accounts.
func (a *Accounts) Authenticate(r *http.Request) (httpapi.Principal, error) {
	if httpapi.Key(r) != "" || !a.sameOrigin(r) {
		return a.keys.Authenticate(r)
	}
	acct, err := a.Current(r)
	if errors.Is(err, ErrNoSession) {
		return httpapi.Principal{}, httpapi.ErrUnauthenticated
	}
	if err != nil {
		return httpapi.Principal{}, err
	}
	if acct.MustChange {
		return httpapi.Principal{}, errMustChange
	}
	scopes, err := a.scopes(r.Context(), acct)
	if err != nil {
		return httpapi.Principal{}, err
	}
	return httpapi.Principal{Account: acct.Owner(), Login: acct.ID, Scopes: scopes, Administrator: acct.Administrator}, nil
}

// sameOrigin reports whether a request comes from a page of the service or from a typed address. It
// trusts the browser's headers: other clients have the cookie only if somebody gave it to them.
func (a *Accounts) sameOrigin(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "same-origin":
		return true
	case "none":
		return r.Method == http.MethodGet || r.Method == http.MethodHead
	case "":
		// Browsers omit the header without TLS, and old browsers do not know it.
		origin := r.Header.Get("Origin")
		if origin == "" {
			return true
		}
		u, err := url.Parse(origin)
		base := a.base(r)
		return err == nil && u.Host != "" && strings.EqualFold(u.Host, base.Host) && u.Scheme == base.Scheme
	}
	return false
}

var _ httpapi.Authenticator = (*Accounts)(nil)
