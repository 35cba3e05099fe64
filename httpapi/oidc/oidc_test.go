package oidc_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/filewright/filewright/httpapi/auth"
	"github.com/filewright/filewright/httpapi/oidc"
	"github.com/filewright/filewright/internal/oidctest"
	"github.com/filewright/filewright/internal/systest"
)

var secrets = [][]byte{[]byte("0123456789abcdef0123456789abcdef")}

const redirect = "http://127.0.0.1:9/dashboard/login/oidc/callback"

// A fake is a provider with defects.
type fake struct {
	*httptest.Server
	key *rsa.PrivateKey

	mu        sync.Mutex
	challenge string         // of the login
	nonce     string         // of the login
	claims    map[string]any // changes of the ID token
	info      map[string]any // UserInfo response
	other     *rsa.PrivateKey
	down      bool
	requests  int
}

var signer = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

func newFake(t *testing.T) *fake {
	t.Helper()
	key, err := signer()
	systest.NoError(t, err)
	f := &fake{key: key}
	answer := func(w http.ResponseWriter, v any) {
		w.Header().Set("Content-Type", "application/json")
		systest.NoError(t, json.NewEncoder(w).Encode(v))
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{
			"issuer": f.URL, "authorization_endpoint": f.URL + "/auth", "token_endpoint": f.URL + "/token", "jwks_uri": f.URL + "/keys",
			"userinfo_endpoint": f.URL + "/userinfo", "end_session_endpoint": f.URL + "/logout", "id_token_signing_alg_values_supported": []string{"RS256"},
		})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "k", Algorithm: "RS256", Use: "sig"}}})
	})
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, r *http.Request) {
		sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
		if r.FormValue("code") != "code" || base64.RawURLEncoding.EncodeToString(sum[:]) != f.challenge {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			answer(w, map[string]any{"error": "invalid_grant"})
			return
		}
		answer(w, map[string]any{"access_token": "access", "token_type": "Bearer", "id_token": f.token(t)})
	})
	mux.HandleFunc("GET /userinfo", func(w http.ResponseWriter, _ *http.Request) { answer(w, f.info) })
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.requests++
		if f.down {
			http.Error(w, "down", http.StatusServiceUnavailable)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(f.Close)
	return f
}

// token returns the ID token of a login.
func (f *fake) token(t *testing.T) string {
	claims := map[string]any{
		"iss": f.URL, "aud": "filewright", "sub": "42", "nonce": f.nonce, "exp": time.Now().Add(time.Minute).Unix(), "iat": time.Now().Unix(),
		"preferred_username": "ada", "groups": []string{"staff"},
	}
	for name, v := range f.claims {
		if claims[name] = v; v == nil {
			delete(claims, name)
		}
	}
	key := f.key
	if f.other != nil {
		key = f.other
	}
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: key, KeyID: "k"}}, nil)
	systest.NoError(t, err)
	b, err := json.Marshal(claims)
	systest.NoError(t, err)
	signed, err := s.Sign(b)
	systest.NoError(t, err)
	text, err := signed.CompactSerialize()
	systest.NoError(t, err)
	return text
}

// login runs a login at the provider. change may change the query of the response.
func (f *fake) login(t *testing.T, p *oidc.Provider, change func(url.Values)) (auth.ExternalUser, auth.LoginRequest, error) {
	t.Helper()
	to, ticket, err := p.Start(t.Context(), redirect, auth.LoginRequest{Next: "usage"})
	systest.NoError(t, err)
	u, err := url.Parse(to)
	systest.NoError(t, err)
	q := u.Query()
	if q.Get("code_challenge_method") != "S256" || q.Get("response_type") != "code" || q.Get("redirect_uri") != redirect || q.Get("state") == "" {
		t.Errorf("request %s", to)
	}
	f.challenge, f.nonce = q.Get("code_challenge"), q.Get("nonce")
	back := url.Values{"state": {q.Get("state")}, "code": {"code"}}
	if change != nil {
		change(back)
	}
	return p.Finish(t.Context(), redirect, ticket, back)
}

func newProvider(t *testing.T, c oidc.Config) *oidc.Provider {
	t.Helper()
	c.ClientID, c.Secrets = "filewright", secrets
	p, err := oidc.New(c)
	systest.NoError(t, err)
	return p
}

func TestLogin(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	for name, tt := range map[string]struct {
		config oidc.Config
		claims map[string]any
		info   map[string]any
		name   string
		admin  *bool
		err    error
	}{
		"plain":                   {name: "ada"},
		"administrator":           {config: oidc.Config{AdminGroups: []string{"root", "staff"}}, name: "ada", admin: &yes},
		"no administrator":        {config: oidc.Config{AdminGroups: []string{"root"}}, name: "ada", admin: &no},
		"permitted group":         {config: oidc.Config{Groups: []string{"staff"}}, name: "ada"},
		"administrators may":      {config: oidc.Config{Groups: []string{"x"}, AdminGroups: []string{"staff"}}, name: "ada", admin: &yes},
		"no permitted group":      {config: oidc.Config{Groups: []string{"root"}}, err: oidc.ErrGroup},
		"one group as text":       {config: oidc.Config{Groups: []string{"a"}}, claims: map[string]any{"groups": "a"}, name: "ada"},
		"groups in an object":     {config: oidc.Config{Groups: []string{"a"}, GroupsClaim: "realm.roles"}, claims: map[string]any{"realm": map[string]any{"roles": []string{"a"}}}, name: "ada"},
		"groups as members":       {config: oidc.Config{Groups: []string{"a"}}, claims: map[string]any{"groups": map[string]any{"a": 1}}, name: "ada"},
		"groups from UserInfo":    {config: oidc.Config{Groups: []string{"a"}}, claims: map[string]any{"groups": nil}, info: map[string]any{"sub": "42", "groups": []string{"a"}}, name: "ada"},
		"UserInfo cannot replace": {claims: map[string]any{"preferred_username": nil}, info: map[string]any{"sub": "42", "iss": "x", "preferred_username": "bob"}, name: "bob"},
		"UserInfo of another":     {claims: map[string]any{"preferred_username": nil}, info: map[string]any{"sub": "43", "preferred_username": "bob"}, err: oidc.ErrRefused},
		"verified address":        {config: oidc.Config{NameClaim: "email"}, claims: map[string]any{"email": "a@b.example", "email_verified": true}, name: "a@b.example"},
		"unverified address":      {config: oidc.Config{NameClaim: "email"}, claims: map[string]any{"email": "admin", "email_verified": false}, name: "42"},
		"two audiences":           {claims: map[string]any{"aud": []string{"filewright", "b"}, "azp": "filewright"}, name: "ada"},
		"party missing":           {claims: map[string]any{"aud": []string{"filewright", "b"}}, err: oidc.ErrRefused},
		"other party":             {claims: map[string]any{"azp": "b"}, err: oidc.ErrRefused},
		"other audience":          {claims: map[string]any{"aud": "b"}, err: oidc.ErrRefused},
		"other issuer":            {claims: map[string]any{"iss": "https://evil.example"}, err: oidc.ErrRefused},
		"other nonce":             {claims: map[string]any{"nonce": "x"}, err: oidc.ErrRefused},
		"no nonce":                {claims: map[string]any{"nonce": nil}, err: oidc.ErrRefused},
		"expired":                 {claims: map[string]any{"exp": 1}, err: oidc.ErrRefused},
		"other access token":      {claims: map[string]any{"at_hash": "x"}, err: oidc.ErrRefused},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			f.claims, f.info = tt.claims, tt.info
			tt.config.Issuer = f.URL
			u, r, err := f.login(t, newProvider(t, tt.config), nil)
			if !errors.Is(err, tt.err) {
				t.Fatalf("error %v, want %v", err, tt.err)
			}
			if err != nil {
				return
			}
			if u.Name != tt.name || u.Subject != "42" || u.Issuer != f.URL || !u.Create || r.Next != "usage" || (u.Administrator == nil) != (tt.admin == nil) || tt.admin != nil && *u.Administrator != *tt.admin {
				t.Errorf("user %+v, request %+v", u, r)
			}
		})
	}
}

// A response is taken only for the login that this browser started, and once.
func TestResponse(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	p := newProvider(t, oidc.Config{Issuer: f.URL})
	for name, tt := range map[string]struct {
		change func(url.Values)
		err    error
	}{
		"other state":  {func(q url.Values) { q.Set("state", "x") }, oidc.ErrExpired},
		"no state":     {func(q url.Values) { q.Del("state") }, oidc.ErrExpired},
		"other issuer": {func(q url.Values) { q.Set("iss", "https://evil.example") }, oidc.ErrRefused},
		"same issuer":  {func(q url.Values) { q.Set("iss", f.URL) }, nil},
		"refused":      {func(q url.Values) { q.Set("error", "access_denied") }, oidc.ErrRefused},
		"no code":      {func(q url.Values) { q.Del("code") }, oidc.ErrRefused},
		"used code":    {func(q url.Values) { q.Set("code", "used") }, oidc.ErrExpired},
	} {
		if _, _, err := f.login(t, p, tt.change); !errors.Is(err, tt.err) {
			t.Errorf("%s: %v, want %v", name, err, tt.err)
		}
	}

	to, ticket, err := p.Start(t.Context(), redirect, auth.LoginRequest{Next: strings.Repeat("x", 5000)})
	systest.NoError(t, err)
	if len(ticket) > 3000 {
		t.Errorf("the ticket has %d bytes, too many for a cookie", len(ticket))
	}
	u, err := url.Parse(to)
	systest.NoError(t, err)
	q := url.Values{"state": {u.Query().Get("state")}, "code": {"code"}}
	for name, ticket := range map[string]string{"none": "", "changed": ticket[:20] + "AAAA" + ticket[24:], "long": strings.Repeat("A", 1<<20)} {
		if _, _, err := p.Finish(t.Context(), redirect, ticket, q); !errors.Is(err, oidc.ErrExpired) {
			t.Errorf("ticket %s: %v", name, err)
		}
	}
	if _, _, err := p.Finish(t.Context(), "https://other.example/", ticket, q); !errors.Is(err, oidc.ErrExpired) {
		t.Errorf("another redirect URI: %v", err)
	}

	// A token that somebody else signed.
	f.other, err = rsa.GenerateKey(rand.Reader, 2048)
	systest.NoError(t, err)
	if _, _, err := f.login(t, p, nil); !errors.Is(err, oidc.ErrRefused) {
		t.Errorf("another key: %v", err)
	}
}

// The server starts without the provider, and uses it when it is there.
func TestDown(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.down = true
	p := newProvider(t, oidc.Config{Issuer: f.URL, LogoutToo: true})
	if f.requests != 0 {
		t.Error("New sends requests")
	}
	if _, _, err := p.Start(t.Context(), redirect, auth.LoginRequest{}); !errors.Is(err, oidc.ErrUnavailable) {
		t.Errorf("Start: %v", err)
	}
	if u := p.LogoutURL(t.Context(), "https://a.example/"); u != "" {
		t.Errorf("LogoutURL %q", u)
	}
	f.down = false
	if _, _, err := f.login(t, p, nil); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	if u, want := p.LogoutURL(t.Context(), "https://a.example/"), f.URL+"/logout?client_id=filewright&post_logout_redirect_uri=https%3A%2F%2Fa.example%2F"; u != want {
		t.Errorf("LogoutURL %q, want %q", u, want)
	}
	if u := newProvider(t, oidc.Config{Issuer: f.URL}).LogoutURL(t.Context(), "https://a.example/"); u != "" {
		t.Errorf("LogoutURL without Config.LogoutToo: %q", u)
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	for issuer, ok := range map[string]bool{
		"https://id.example.com": true, "https://id.example.com/realms/a": true, "http://127.0.0.1:9998": true, "http://localhost:1/": true,
		"http://id.example.com": false, "id.example.com": false, "": false, "ftp://a.example": false, "https://a.example/?x=1": false,
	} {
		if _, err := oidc.New(oidc.Config{Issuer: issuer, ClientID: "a", Secrets: secrets}); (err == nil) != ok {
			t.Errorf("issuer %q: %v", issuer, err)
		}
	}
	if _, err := oidc.New(oidc.Config{Issuer: "https://a.example", Secrets: secrets}); err == nil {
		t.Error("no client ID is accepted")
	}
	if _, err := oidc.New(oidc.Config{Issuer: "https://a.example", ClientID: "a"}); err == nil {
		t.Error("no secret is accepted")
	}
}

// TestRealProvider logs in with the provider of github.com/zitadel/oidc.
func TestRealProvider(t *testing.T) {
	t.Parallel()
	issuer := oidctest.Start(t, redirect, "http://127.0.0.1:9/dashboard/login")
	p, err := oidc.New(oidc.Config{Issuer: issuer, ClientID: oidctest.ClientID, ClientSecret: oidctest.ClientSecret, Groups: []string{"staff"}, AdminGroups: []string{"admins"}, Secrets: secrets})
	systest.NoError(t, err)
	for _, tt := range []struct {
		user  string
		admin bool
		err   error
	}{{"ada", true, nil}, {"bob", false, nil}, {"eve", false, oidc.ErrGroup}} {
		to, ticket, err := p.Start(t.Context(), redirect, auth.LoginRequest{Account: "a"})
		systest.NoError(t, err)
		query := logIn(t, to, tt.user)
		u, r, err := p.Finish(t.Context(), redirect, ticket, query)
		if !errors.Is(err, tt.err) {
			t.Errorf("%s: %v, want %v", tt.user, err, tt.err)
		}
		if err != nil {
			continue
		}
		if u.Name != tt.user || u.Subject != "u-"+tt.user || *u.Administrator != tt.admin || r.Account != "a" {
			t.Errorf("%s: %+v", tt.user, u)
		}
		if _, _, err := p.Finish(t.Context(), redirect, ticket, query); !errors.Is(err, oidc.ErrExpired) {
			t.Errorf("%s: the same code again: %v", tt.user, err)
		}
	}
}

// logIn fills the form of the provider, and returns the query with which it sends the browser back.
func logIn(t *testing.T, to, user string) url.Values {
	t.Helper()
	var back *url.URL
	client := &http.Client{CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if strings.HasPrefix(r.URL.String(), redirect) {
			back = r.URL
			return http.ErrUseLastResponse
		}
		return nil
	}}
	do := func(method, link string, form url.Values) *http.Response {
		r, err := http.NewRequestWithContext(t.Context(), method, link, strings.NewReader(form.Encode()))
		systest.NoError(t, err)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		resp, err := client.Do(r)
		systest.NoError(t, err)
		resp.Body.Close()
		return resp
	}
	page := do("GET", to, nil).Request.URL
	id := page.Query().Get("authRequestID")
	if id == "" {
		t.Fatalf("login page %s", page)
	}
	page.RawQuery = ""
	do("POST", page.String(), url.Values{"id": {id}, "username": {user}, "password": {oidctest.Password}})
	if back == nil {
		t.Fatal("the provider does not send the browser back")
	}
	return back.Query()
}

func ExampleNew() {
	p, err := oidc.New(oidc.Config{
		Issuer: "https://id.example.com", ClientID: "filewright", ClientSecret: "…",
		AdminGroups: []string{"operators"}, Secrets: secrets,
	})
	fmt.Println(p.Name(), err)
	// Output: single sign-on <nil>
}
