// Package admin provides the API for managing accounts: endpoints below /api/v1/admin, as
// extensions of the service.
//
//	svc, err := httpapi.New(httpapi.Config{
//		Auth:       accounts,
//		Extensions: admin.New(admin.Config{Accounts: accounts, Operations: db}),
//		...
//	})
//
// Requests need an API key with the scope admin, or a user's session. A key manages its own
// account, which "self" stands for in a path. The keys of an administrator manage all accounts. For
// other callers, foreign accounts look missing.
package admin

import (
	"context"
	_ "embed"
	"io/fs"
	"net/http"
	"time"

	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/httpapi/account"
	"github.com/filewright/filewright/httpapi/auth"
	"github.com/filewright/filewright/status"
	"github.com/filewright/filewright/status/webhook"
)

// Config configures the endpoints. Accounts and Operations are required.
type Config struct {
	Accounts   *auth.Accounts
	Operations Operations        // *sqlstore.DB implements it
	Webhooks   *webhook.Webhooks // nil: no endpoints for webhooks
}

// Operations reads the operations of all accounts.
type Operations interface {
	// Summaries returns operations, newest first. If operation q.Before does not exist, the error
	// matches fs.ErrNotExist.
	Summaries(ctx context.Context, q status.SummaryQuery) ([]status.Summary, error)

	// Failures counts the errors of failed items since a time, most frequent first.
	Failures(ctx context.Context, since time.Time) ([]status.FailureCount, error)
}

//go:embed openapi.yaml
var document []byte

// New returns the extensions for httpapi.Config.Extensions.
func New(c Config) []func(*httpapi.Service) httpapi.Extension {
	extensions := []func(*httpapi.Service) httpapi.Extension{c.accounts}
	if c.Webhooks != nil {
		extensions = append(extensions, c.webhooks)
	}
	return extensions
}

func (c Config) accounts(svc *httpapi.Service) httpapi.Extension {
	a := &api{c, svc}
	return httpapi.Extension{OpenAPI: document, Routes: []httpapi.Route{
		a.route("GET", "/overview", a.overview),
		a.route("GET", "/operations", a.listOperations),
		a.route("GET", "/accounts", a.listAccounts),
		a.route("POST", "/accounts", a.createAccount),
		a.route("GET", "/accounts/{account}", a.of(a.getAccount)),
		a.route("PATCH", "/accounts/{account}", a.of(a.updateAccount)),
		a.route("DELETE", "/accounts/{account}", a.of(a.deleteAccount)),
		a.route("POST", "/accounts/{account}/password", a.of(a.resetPassword)),
		a.route("GET", "/accounts/{account}/usage", a.of(a.usage)),
		a.route("GET", "/accounts/{account}/keys", a.of(a.listKeys)),
		a.route("POST", "/accounts/{account}/keys", a.of(a.createKey)),
		a.route("GET", "/accounts/{account}/keys/{key}", a.of(a.getKey)),
		a.route("PATCH", "/accounts/{account}/keys/{key}", a.of(a.updateKey)),
		a.route("DELETE", "/accounts/{account}/keys/{key}", a.of(a.revokeKey)),
	}}
}

// prefix is the start of all paths.
const prefix = "/api/v1/admin"

// A handler returns the body of the response.
type handler = func(http.ResponseWriter, *http.Request) (any, error)

func (a *api) route(method, path string, h handler) httpapi.Route {
	return httpapi.Route{Method: method, Path: prefix + path, Scope: httpapi.ScopeAdmin, Handler: func(w http.ResponseWriter, r *http.Request) {
		v, err := h(w, r.WithContext(auth.WithActor(r.Context(), a.cfg.Accounts.Actor(r))))
		if err != nil {
			a.svc.Fail(w, r, err)
			return
		}
		a.svc.Reply(w, v)
	}}
}

// An api handles the requests.
type api struct {
	cfg Config
	svc *httpapi.Service
}

// of returns a handler that calls h with the account in the request's path.
func (a *api) of(h func(http.ResponseWriter, *http.Request, *account.Account) (any, error)) handler {
	return func(w http.ResponseWriter, r *http.Request) (any, error) {
		acct, err := a.account(r)
		if err != nil {
			return nil, err
		}
		return h(w, r, acct)
	}
}

// account returns the account in the path of a request if the caller may manage it.
func (a *api) account(r *http.Request) (*account.Account, error) {
	id := r.PathValue("account")
	p, _ := httpapi.PrincipalOf(r.Context())
	if id == "self" {
		id = p.Account
	}
	if id != p.Account && !p.Administrator {
		return nil, fs.ErrNotExist
	}
	return a.cfg.Accounts.Get(r.Context(), id)
}

// administrator returns an error unless the caller is an administrator.
func administrator(r *http.Request) error {
	if p, _ := httpapi.PrincipalOf(r.Context()); !p.Administrator {
		return httpapi.NewProblem(http.StatusForbidden, "forbidden", "this requires an administrator")
	}
	return nil
}
