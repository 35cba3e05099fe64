// Package oidc logs users in with OpenID Connect: the authorization code flow with PKCE (OpenID
// Connect Core 1.0, RFC 7636).
//
// A [Provider] starts a login, which sends the browser to the provider, and finishes it when the
// browser comes back. Between the two, the server keeps nothing: state, nonce and verifier are in a
// ticket, sealed, which the caller stores in a cookie.
//
//	p, err := oidc.New(oidc.Config{Issuer: "https://id.example.com", ClientID: "filewright", Secrets: secrets})
//	...
//	to, ticket, err := p.Start(ctx, redirect, auth.LoginRequest{Next: "usage"})
//	...
//	user, request, err := p.Finish(ctx, redirect, ticket, query)
//	token, acct, err := accounts.LoginExternal(ctx, user, from)
package oidc

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	gooidc "github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/httpapi/auth"
	"github.com/filewright/filewright/internal/seal"
)

// Config configures a [Provider]. Issuer, ClientID and Secrets are required.
type Config struct {
	Issuer       string // URL, exactly as the provider states it; https, or http on a loopback address
	ClientID     string
	ClientSecret string   // "": a public client
	Name         string   // name of the provider for people; "": single sign-on
	Scopes       []string // requested scopes; nil: openid, profile and email

	// NameClaim is the claim with the login name of a new account; "": preferred_username. A name
	// from the claim email counts only if email_verified is true.
	NameClaim string

	// GroupsClaim is the claim with the groups of a user; "": groups. It is a list of names, one
	// name, or an object whose members are the names. A dot leads into an object:
	// realm_access.roles.
	GroupsClaim string

	Groups      []string // users must be in one of these groups; nil: all users
	AdminGroups []string // members are administrators, others are not; nil: roles stay as they are
	Existing    bool     // log in to existing accounts only; false: new users get an account
	LogoutToo   bool     // a logout also ends the session at the provider

	Secrets [][]byte // seal tickets; the first seals, all open

	Transport http.RoundTripper // nil: http.DefaultTransport
	Log       *slog.Logger      // nil discards
}

// Limits of requests to the provider and of a login.
const (
	requestTime = 15 * time.Second
	maxAnswer   = 1 << 20 // bytes of a response
	loginTime   = 15 * time.Minute
	maxTicket   = 3500 // bytes; browsers keep cookies up to 4 KiB
	maxNext     = 1000 // bytes of LoginRequest.Next
)

// Errors of a login.
var (
	// ErrUnavailable reports that the provider does not respond as it should.
	ErrUnavailable error = httpapi.NewProblem(http.StatusBadGateway, "bad_gateway", "the sign-in provider does not respond; try again later")

	// ErrExpired reports a login that took too long, was finished before or was started in another
	// browser.
	ErrExpired error = httpapi.NewProblem(http.StatusBadRequest, "bad_request", "the login has expired; start again")

	// ErrRefused reports that the provider or the user refused the login.
	ErrRefused error = httpapi.NewProblem(http.StatusForbidden, "forbidden", "the sign-in provider refused the login")

	// ErrGroup reports a user who is in none of Config.Groups.
	ErrGroup error = httpapi.NewProblem(http.StatusForbidden, "forbidden", "this user is in no group that may use this service")
)

// A Provider is an OpenID Connect provider. It is safe for concurrent use.
type Provider struct {
	cfg    Config
	log    *slog.Logger
	client *http.Client
	sealer seal.Sealer

	mu   sync.Mutex
	last *discovered // nil: the provider has not responded yet
}

// discovered is the configuration that a provider publishes.
type discovered struct {
	provider *gooidc.Provider
	verifier *gooidc.IDTokenVerifier
	logout   string // end_session_endpoint
	iss      bool   // authorization_response_iss_parameter_supported
	userinfo bool   // there is a UserInfo endpoint
}

// New returns a provider. It sends no request: the provider's configuration is read at the first
// login, so that the server starts while the provider is down.
func New(c Config) (*Provider, error) {
	u, err := url.Parse(c.Issuer)
	switch {
	case err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.Scheme != "https" && u.Scheme != "http":
		return nil, fmt.Errorf("invalid issuer %q: expected a URL such as https://id.example.com", c.Issuer)
	case u.Scheme == "http" && !loopback(u.Hostname()):
		return nil, fmt.Errorf("invalid issuer %q: only an issuer on a loopback address may use http", c.Issuer)
	case c.ClientID == "":
		return nil, errors.New("the client ID is missing")
	case len(c.Secrets) == 0:
		return nil, errors.New("oidc: Config.Secrets is required")
	}
	c.Name = cmp.Or(c.Name, "single sign-on")
	c.NameClaim = cmp.Or(c.NameClaim, "preferred_username")
	c.GroupsClaim = cmp.Or(c.GroupsClaim, "groups")
	if c.Scopes == nil {
		c.Scopes = []string{gooidc.ScopeOpenID, "profile", "email"}
	}
	if !slices.Contains(c.Scopes, gooidc.ScopeOpenID) {
		c.Scopes = append([]string{gooidc.ScopeOpenID}, c.Scopes...)
	}
	p := &Provider{cfg: c, log: cmp.Or(c.Log, slog.New(slog.DiscardHandler))}
	transport := c.Transport
	if transport == nil {
		transport = http.DefaultTransport
	}
	p.client = &http.Client{Transport: limited{transport}, Timeout: requestTime}
	p.sealer, err = seal.New("filewright oidc login v1", c.Secrets)
	return p, err
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// limited bounds the size of responses.
type limited struct{ http.RoundTripper }

func (l limited) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := l.RoundTripper.RoundTrip(r)
	if err == nil {
		resp.Body = http.MaxBytesReader(nil, resp.Body, maxAnswer)
	}
	return resp, err
}

// Name returns the provider's name for people.
func (p *Provider) Name() string { return p.cfg.Name }

// discover returns the provider's configuration. It is read once.
func (p *Provider) discover(ctx context.Context) (*discovered, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last != nil {
		return p.last, nil
	}
	provider, err := gooidc.NewProvider(gooidc.ClientContext(ctx, p.client), p.cfg.Issuer)
	if err != nil {
		return nil, p.unavailable("discovery", err)
	}
	d := &discovered{provider: provider, verifier: provider.Verifier(&gooidc.Config{ClientID: p.cfg.ClientID})}
	var more struct {
		Logout   string `json:"end_session_endpoint"`
		Iss      bool   `json:"authorization_response_iss_parameter_supported"`
		UserInfo string `json:"userinfo_endpoint"`
	}
	if err := provider.Claims(&more); err != nil {
		return nil, p.unavailable("discovery", err)
	}
	d.logout, d.iss, d.userinfo = more.Logout, more.Iss, more.UserInfo != ""
	p.last = d
	return d, nil
}

// unavailable logs an error of the provider and returns ErrUnavailable.
func (p *Provider) unavailable(what string, err error) error {
	p.log.Error("the sign-in provider failed", "issuer", p.cfg.Issuer, "request", what, "err", err)
	return ErrUnavailable
}

// A ticket is a login that has started. It is sealed.
type ticket struct {
	auth.LoginRequest
	State, Nonce, Verifier string
	Redirect               string
	Expires                time.Time
}

// ticketID binds sealed tickets to their purpose.
const ticketID = "login"

// Start starts a login. It returns the URL to send the browser to, and a ticket for [Provider.Finish],
// which must be kept in a cookie of that browser. The provider sends the browser back to redirect.
func (p *Provider) Start(ctx context.Context, redirect string, r auth.LoginRequest) (to, sealed string, err error) {
	d, err := p.discover(ctx)
	if err != nil {
		return "", "", err
	}
	if len(r.Next) > maxNext {
		r.Next = ""
	}
	if len(r.Invite) > maxNext {
		r.Invite = ""
	}
	t := ticket{LoginRequest: r, State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(), Redirect: redirect, Expires: time.Now().Add(loginTime)}
	plain, err := json.Marshal(t)
	if err != nil {
		return "", "", err
	}
	to = p.oauth(d, redirect).AuthCodeURL(t.State, gooidc.Nonce(t.Nonce), oauth2.S256ChallengeOption(t.Verifier))
	return to, base64.RawURLEncoding.EncodeToString(p.sealer.Seal(plain, ticketID)), nil
}

func (p *Provider) oauth(d *discovered, redirect string) *oauth2.Config {
	return &oauth2.Config{ClientID: p.cfg.ClientID, ClientSecret: p.cfg.ClientSecret, Endpoint: d.provider.Endpoint(), RedirectURL: redirect, Scopes: p.cfg.Scopes}
}

// open returns the login of a sealed ticket.
func (p *Provider) open(sealed string) (t ticket, ok bool) {
	if len(sealed) > maxTicket {
		return t, false
	}
	b, err := base64.RawURLEncoding.DecodeString(sealed)
	if err != nil {
		return t, false
	}
	plain, ok := p.sealer.Open(b, ticketID)
	if !ok || json.Unmarshal(plain, &t) != nil || time.Now().After(t.Expires) {
		return t, false
	}
	return t, true
}

// Finish finishes a login with the ticket of [Provider.Start] and the query with which the provider
// sent the browser back. It fails with ErrExpired, ErrRefused, ErrGroup or ErrUnavailable.
func (p *Provider) Finish(ctx context.Context, redirect, sealed string, query url.Values) (u auth.ExternalUser, r auth.LoginRequest, err error) {
	t, ok := p.open(sealed)
	if !ok || t.Redirect != redirect || subtle.ConstantTimeCompare([]byte(t.State), []byte(query.Get("state"))) != 1 {
		return u, r, ErrExpired
	}
	r = t.LoginRequest
	d, err := p.discover(ctx)
	if err != nil {
		return u, r, err
	}
	// A response of another provider (RFC 9207).
	if iss := query.Get("iss"); iss != p.cfg.Issuer && (iss != "" || d.iss) {
		return u, r, p.refused("the response is from another issuer", nil)
	}
	if query.Has("error") || query.Get("code") == "" {
		return u, r, p.refused("the response has no code", fmt.Errorf("%.100q: %.300q", query.Get("error"), query.Get("error_description")))
	}
	ctx = gooidc.ClientContext(ctx, p.client)
	token, err := p.oauth(d, redirect).Exchange(ctx, query.Get("code"), oauth2.VerifierOption(t.Verifier))
	if err != nil {
		var answer *oauth2.RetrieveError
		if errors.As(err, &answer) && answer.ErrorCode == "invalid_grant" {
			return u, r, ErrExpired // the code was used before, or is too old
		}
		return u, r, p.unavailable("token", withoutBody(err))
	}
	raw, _ := token.Extra("id_token").(string)
	id, err := d.verifier.Verify(ctx, raw)
	if err != nil {
		return u, r, p.refused("invalid ID token", err)
	}
	claims, err := p.claims(ctx, d, id, token, t.Nonce)
	if err != nil {
		return u, r, err
	}
	u, err = p.user(id, claims)
	return u, r, err
}

// withoutBody removes the body of a response from an error. It could contain a token.
func withoutBody(err error) error {
	var answer *oauth2.RetrieveError
	if errors.As(err, &answer) && answer.Response != nil {
		return fmt.Errorf("status %s, error %.100q", answer.Response.Status, answer.ErrorCode)
	}
	return err
}

func (p *Provider) refused(why string, err error) error {
	p.log.Warn("login refused", "issuer", p.cfg.Issuer, "reason", why, "err", err)
	return ErrRefused
}

// claims checks the parts of an ID token that depend on the login, and returns its claims. Those that
// are missing come from the UserInfo endpoint.
func (p *Provider) claims(ctx context.Context, d *discovered, id *gooidc.IDToken, token *oauth2.Token, nonce string) (map[string]any, error) {
	var claims map[string]any
	if err := id.Claims(&claims); err != nil {
		return nil, p.refused("invalid claims", err)
	}
	if subtle.ConstantTimeCompare([]byte(id.Nonce), []byte(nonce)) != 1 {
		return nil, p.refused("the ID token has another nonce", nil)
	}
	// OpenID Connect Core 1.0, section 3.1.3.7, steps 4 and 5.
	if party, ok := claims["azp"]; ok && party != p.cfg.ClientID || !ok && len(id.Audience) > 1 {
		return nil, p.refused("the ID token is for another client", nil)
	}
	if id.AccessTokenHash != "" {
		if err := id.VerifyAccessToken(token.AccessToken); err != nil {
			return nil, p.refused("the ID token is for another access token", err)
		}
	}
	needGroups := p.cfg.Groups != nil || p.cfg.AdminGroups != nil
	if claims[p.cfg.NameClaim] != nil && (!needGroups || lookup(claims, p.cfg.GroupsClaim) != nil) || !d.userinfo {
		return claims, nil
	}
	info, err := d.provider.UserInfo(ctx, oauth2.StaticTokenSource(token))
	if err != nil {
		return nil, p.unavailable("userinfo", err)
	}
	if info.Subject != id.Subject {
		return nil, p.refused("the UserInfo response is for another user", nil)
	}
	var more map[string]any
	if err := info.Claims(&more); err != nil {
		return nil, p.unavailable("userinfo", err)
	}
	for name, v := range more {
		if _, ok := claims[name]; !ok {
			claims[name] = v
		}
	}
	return claims, nil
}

// user returns the user of an ID token with the groups and name in claims.
func (p *Provider) user(id *gooidc.IDToken, claims map[string]any) (u auth.ExternalUser, err error) {
	groups := names(lookup(claims, p.cfg.GroupsClaim))
	in := func(list []string) bool {
		return slices.ContainsFunc(list, func(g string) bool { return slices.Contains(groups, g) })
	}
	administrator := in(p.cfg.AdminGroups)
	if p.cfg.Groups != nil && !in(p.cfg.Groups) && !administrator {
		p.log.Warn("login refused", "issuer", p.cfg.Issuer, "reason", "no permitted group", "subject", id.Subject)
		return u, ErrGroup
	}
	u = auth.ExternalUser{Issuer: p.cfg.Issuer, Subject: id.Subject, Create: !p.cfg.Existing}
	if p.cfg.AdminGroups != nil {
		u.Administrator = &administrator
	}
	u.Name, _ = lookup(claims, p.cfg.NameClaim).(string)
	if p.cfg.NameClaim == "email" && !verified(claims) {
		u.Name = ""
	}
	if u.Name == "" {
		if u.Name, _ = claims["email"].(string); !verified(claims) {
			u.Name = id.Subject
		}
	}
	// A slash cannot be in a login name.
	u.Name = strings.ReplaceAll(u.Name, "/", "-")
	return u, nil
}

// verified reports whether the provider has verified the user's address. Some providers send a text.
func verified(claims map[string]any) bool {
	return claims["email"] != nil && (claims["email_verified"] == true || claims["email_verified"] == "true")
}

// lookup returns a claim. A dot leads into an object unless a claim has the whole name.
func lookup(claims map[string]any, name string) any {
	if v, ok := claims[name]; ok {
		return v
	}
	first, rest, ok := strings.Cut(name, ".")
	if inner, isObject := claims[first].(map[string]any); ok && isObject {
		return lookup(inner, rest)
	}
	return nil
}

// names returns the names in a claim.
func names(v any) (out []string) {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		for _, e := range v {
			if s, ok := e.(string); ok {
				out = append(out, s)
			}
		}
	case map[string]any:
		for name := range v {
			out = append(out, name)
		}
	}
	return out
}

// LogoutURL returns the URL at which a browser ends the session at the provider, and from which it
// comes back to after. It returns "" if Config.LogoutToo is not set, or if the provider has no such
// URL or does not respond (OpenID Connect RP-Initiated Logout 1.0).
func (p *Provider) LogoutURL(ctx context.Context, after string) string {
	if !p.cfg.LogoutToo {
		return ""
	}
	d, err := p.discover(ctx)
	if err != nil {
		return ""
	}
	u, err := url.Parse(d.logout)
	if err != nil || d.logout == "" {
		return ""
	}
	q := u.Query()
	q.Set("client_id", p.cfg.ClientID)
	q.Set("post_logout_redirect_uri", after)
	u.RawQuery = q.Encode()
	return u.String()
}
