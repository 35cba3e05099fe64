package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/httpapi/gotenberg"
	"github.com/filewright/filewright/status/webhook"
)

// gotenbergConfig configures the routes of Gotenberg.
type gotenbergConfig struct {
	on      bool
	account string // of requests without an API key; "" refuses them
	urls    bool   // clients may name files and pages by URLs
}

func (g *gotenbergConfig) register(fs *flagSet) {
	fs.BoolVar(&g.on, "gotenberg", false, "serve the routes of Gotenberg at /forms/, /health and /version, for its clients; they send an API key as Authorization: Bearer or as the password of basic authentication")
	fs.BoolVar(&g.urls, "gotenberg-urls", false, "load pages and files from URLs for clients of Gotenberg; addresses that are not public only if --webhook-allow has them")
	fs.StringVar(&g.account, "gotenberg-account", "", "`name` of the account of requests to /forms/ without an API key; default: they are refused. Only for a server that strangers cannot reach")
}

// check checks flags that depend on each other.
func (g *gotenbergConfig) check(webhooks bool) error {
	switch {
	case !g.on && (g.account != "" || g.urls):
		return errors.New("--gotenberg-account and --gotenberg-urls require --gotenberg")
	case g.urls && !webhooks:
		return errors.New("--gotenberg-urls requires --webhooks")
	}
	return nil
}

// serveGotenberg adds the routes of Gotenberg to a service.
func (a *app) serveGotenberg(cfg *serverConfig, api *httpapi.Config) (err error) {
	c := &cfg.gotenberg
	if !c.on {
		return nil
	}
	routes := gotenberg.Config{
		URLs: c.urls, Webhooks: a.db.Transfers(), Secrets: api.Secrets, Exclusive: cfg.cluster.url == "", Lease: cfg.cluster.lease, Log: a.log,
	}
	if cfg.webhooks.send {
		routes.Outbound, routes.Refused = webhook.NewTransport(cfg.webhooks.allow), webhook.ErrNotPublic
	}
	if a.forms, err = gotenberg.New(routes); err != nil {
		return err
	}
	api.Extensions = append(api.Extensions, a.forms.Extension)
	if c.account == "" {
		return nil
	}
	api.Auth = gotenberg.Auth(api.Auth, func(ctx context.Context) (httpapi.Principal, error) {
		acct, err := a.accounts.ByName(ctx, c.account)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return httpapi.Principal{}, fmt.Errorf("%w: --gotenberg-account: there is no account %q", httpapi.ErrUnauthenticated, c.account)
		case err != nil:
			return httpapi.Principal{}, err
		case !acct.Disabled.IsZero():
			return httpapi.Principal{}, fmt.Errorf("%w: the account is disabled", httpapi.ErrForbidden)
		}
		return httpapi.Principal{Account: acct.ID}, nil
	})
	return nil
}
