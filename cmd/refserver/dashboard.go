package main

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/filewright/filewright/httpapi/dashboard"
	"github.com/filewright/filewright/upload/blob/s3blob"
)

// handler returns what answers requests: the service with the dashboard before it.
// end ends what pages are waiting for, so that the server can be shut down.
func (a *app) handler(cfg *serverConfig) (h http.Handler, end func(), err error) {
	switch {
	case cfg.cluster.role == roleWorker:
		return workerOnly(a.service), func() {}, nil
	case !cfg.dashboard:
		return a.service, func() {}, nil
	}
	d, err := dashboard.New(dashboard.Config{
		Service: a.service, Accounts: a.accounts, Webhooks: a.hooks, Version: version, Connect: cfg.uploadOrigins(), Log: a.log,
	})
	if err != nil {
		return nil, nil, err
	}
	return withDashboard(d, a.service), d.Close, nil
}

// withDashboard sends people who open the root of the server to the dashboard, and
// leaves all that is not for people to the service.
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

// uploadOrigins returns where browsers send files that go straight to the bucket.
func (s *serverConfig) uploadOrigins() []string {
	if s.bucket == nil || s.bucket.Private {
		return nil
	}
	endpoint := s.bucket.PublicEndpoint
	if endpoint == "" {
		endpoint = s.bucket.Endpoint
	}
	if endpoint == "" {
		return []string{"https://*.amazonaws.com"}
	}
	if !strings.Contains(endpoint, "://") {
		endpoint = "https://" + endpoint
	}
	u, err := url.Parse(endpoint)
	if err != nil {
		return nil // the bucket could not be opened with it
	}
	origins := []string{u.Scheme + "://" + u.Host}
	if s.bucket.Addressing != s3blob.PathStyle {
		origins = append(origins, u.Scheme+"://"+s.bucket.Bucket+"."+u.Host)
	}
	return origins
}
