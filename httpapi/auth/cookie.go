package auth

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/httpapi/account"
)

// CookieName is the cookie that holds the token of a session.
const CookieName = "filewright_session"

// SetCookie has a browser keep the token of a session. Scripts cannot read it, it is
// sent by pages of the service only, and over TLS only if r came so.
func (a *Accounts) SetCookie(w http.ResponseWriter, r *http.Request, token string) {
	c := a.cookie(r, token)
	c.MaxAge = int(a.cfg.SessionLife.Seconds())
	http.SetCookie(w, c)
}

// ClearCookie has a browser forget the token of a session.
func (a *Accounts) ClearCookie(w http.ResponseWriter, r *http.Request) {
	c := a.cookie(r, "")
	c.MaxAge = -1
	http.SetCookie(w, c)
}

func (a *Accounts) cookie(r *http.Request, token string) *http.Cookie {
	return &http.Cookie{
		Name: CookieName, Value: token, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: a.base(r).Scheme == "https",
	}
}

// base returns the public address of the service.
func (a *Accounts) base(r *http.Request) *url.URL {
	return httpapi.PublicURL(r, a.cfg.BaseURL, a.cfg.TrustProxy)
}

// From returns where a request comes from, for [Accounts.Login]. Behind a proxy that
// is trusted the address is the one that it names; of IPv6 it is the network.
func (a *Accounts) From(r *http.Request) Client {
	return Client{Address: httpapi.ClientNetwork(r, a.cfg.TrustProxy), Agent: r.UserAgent()}
}

// Current returns the account whose session cookie a request has. It fails with
// ErrNoSession if there is none that counts.
func (a *Accounts) Current(r *http.Request) (*account.Account, error) {
	c, err := r.Cookie(CookieName)
	if err != nil {
		return nil, ErrNoSession
	}
	return a.Session(r.Context(), c.Value)
}

// errMustChange is told to who has not yet replaced a password that was given out.
var errMustChange error = httpapi.NewProblem(http.StatusForbidden, "forbidden", "the password must be changed first")

// Authenticate implements httpapi.Authenticator. A request has an API key or, if it
// comes from a page of the service, the cookie of a session. Sessions have all
// scopes; only those of administrators may manage other accounts.
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
	return httpapi.Principal{Account: acct.ID, Scopes: httpapi.DefaultScopes | httpapi.ScopeAdmin, Administrator: acct.Administrator}, nil
}

// sameOrigin reports whether a browser says that a request was made by a page of the
// service, or by a person who has typed its address. Whatever else sends requests
// has the cookie only if it was given it.
func (a *Accounts) sameOrigin(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "same-origin":
		return true
	case "none":
		return r.Method == http.MethodGet || r.Method == http.MethodHead
	case "":
		// Browsers leave it out where there is no TLS, and some are old.
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
