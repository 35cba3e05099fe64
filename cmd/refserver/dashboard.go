package main

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/httpapi/dashboard"
	"github.com/filewright/filewright/httpapi/dashboard/thumbnail"
	"github.com/filewright/filewright/upload/blob"
)

// handler returns the HTTP handler: the service behind the documentation and the dashboard. end ends
// the requests of open pages, so that the server can shut down.
func (a *app) handler(ctx context.Context, cfg *serverConfig) (h http.Handler, end func(), err error) {
	if a.service == nil {
		return workerOnly(a.node), func() {}, nil
	}
	service := withDocs(a.service, a.log, a.service.OpenAPI)
	if !cfg.dashboard {
		return compressed(service), func() {}, nil
	}
	connect, err := a.uploadOrigins(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("--blob-url: %w", err)
	}
	var nodes func(context.Context) ([]dashboard.SystemNode, error)
	if a.cluster != nil {
		nodes = a.cluster.systemNodes
	}
	var drawer dashboard.Thumbnailer
	if a.set != nil {
		actions, err := fileops.NewRegistry(a.set.Actions()...)
		if err != nil {
			return nil, nil, err
		}
		drawer = thumbnail.New(thumbnail.Config{Actions: actions, TempDir: filepath.Join(a.dataDir, "scratch"), Log: a.log})
	}
	d, err := dashboard.New(dashboard.Config{
		Nodes: nodes, Failures: a.db.Failures, Thumbnails: drawer,
		Service: a.service, Accounts: a.accounts, Webhooks: a.hooks, SignIn: a.signIn, Version: version(), OneCall: cfg.runTimeout > 0, Imports: a.imports != nil, Connect: connect, Log: a.log,
	})
	if err != nil {
		return nil, nil, err
	}
	return compressed(withDashboard(d, service)), d.Close, nil
}

// withDashboard redirects browsers from the root to the dashboard. It passes all other requests to
// the service.
func withDashboard(dash, service http.Handler) http.Handler {
	prefix := strings.TrimSuffix(dashboard.Path, "/")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch path := r.URL.Path; {
		case strings.HasPrefix(path, dashboard.Path):
			dash.ServeHTTP(w, r)
		case path == prefix, path == "/" && r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "text/html"):
			http.Redirect(w, r, dashboard.Path, http.StatusSeeOther)
		default:
			service.ServeHTTP(w, r)
		}
	})
}

// uploadOrigins returns the origins for uploads that go straight to the bucket.
func (a *app) uploadOrigins(ctx context.Context) ([]string, error) {
	b, ok := blob.As[blob.Linker](a.blobs)
	if !ok {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	origin, err := b.Origin(ctx)
	if err != nil || origin == "" {
		return nil, err
	}
	return []string{origin}, nil
}
