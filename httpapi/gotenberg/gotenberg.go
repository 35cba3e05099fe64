// Package gotenberg serves the routes of Gotenberg (https://gotenberg.dev), so that its clients can
// use this service: they change the host name and go on. It is an extension of the service.
//
//	g, err := gotenberg.New(gotenberg.Config{})
//	...
//	svc, err := httpapi.New(httpapi.Config{
//		Actions:    actions,
//		Auth:       gotenberg.Auth(httpapi.StaticKeys(key), nil),
//		Extensions: []func(*httpapi.Service) httpapi.Extension{g.Extension},
//	})
//	...
//	go g.Run(ctx) // sends webhooks
//	http.ListenAndServe("127.0.0.1:3000", g.Handler(svc))
//
// The files of a form are uploads, and each step of a request is an operation: quotas, limits,
// fairness and the isolation of engines apply as to every other operation. When the response is
// complete, the files of all steps are deleted.
//
// Names and values on the wire, status codes and messages are those of Gotenberg 8. Form fields that
// the service does not know are ignored. docs/gotenberg.md lists the differences.
package gotenberg

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/internal/seal"
	"github.com/filewright/filewright/status/transfer"
)

// Config configures the routes. The zero value is usable.
type Config struct {
	// Timeout is the longest time that a request may take, with all its steps. 0: 10 minutes.
	Timeout time.Duration

	// Outbound sends requests to URLs of clients: webhooks, and downloads if URLs is set. It must refuse
	// addresses that clients may not reach, as webhook.NewTransport does. nil: there are none.
	Outbound http.RoundTripper

	// Webhooks keeps the accepted requests whose results go to webhooks. nil: in memory, so they end with
	// the process.
	Webhooks transfer.Store

	// Secrets encrypt accepted requests in the store: the first encrypts, all decrypt. Each has at least
	// 16 bytes. nil: one random secret, so accepted requests fail after a restart.
	Secrets [][]byte

	// Exclusive declares that no other process works on the store: the requests of an earlier process
	// continue at once. Otherwise they continue when no process has renewed its claim for Lease (0: 30
	// seconds).
	Exclusive bool
	Lease     time.Duration

	// Refused matches the errors of Outbound for addresses that it refuses. nil: they look like others.
	Refused error

	// URLs lets clients name files and pages by URLs. LoadTime is the longest time to load a page with
	// its parts. 0: 30 seconds.
	URLs     bool
	LoadTime time.Duration

	// Version is what GET /version returns. "": Version.
	Version string

	Log *slog.Logger // of the work for webhooks; nil discards
}

// Version is the version of Gotenberg whose wire format the package follows.
const Version = "8"

// Routes are the routes of one service.
type Routes struct {
	cfg     Config
	svc     *httpapi.Service
	bundles chan struct{} // held while a page and its assets are in memory

	handlers map[string]handler // by path
	runner   *transfer.Runner   // works for webhooks
	sealer   seal.Sealer
	stopping atomic.Bool // the process ends; what is accepted continues later
}

// New checks c. The routes work once Extension has been called.
func New(c Config) (*Routes, error) {
	c.Timeout, c.LoadTime, c.Version = cmp.Or(c.Timeout, 10*time.Minute), cmp.Or(c.LoadTime, 30*time.Second), cmp.Or(c.Version, Version)
	if c.Webhooks == nil {
		c.Webhooks = new(transfer.MemStore)
	}
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	g := &Routes{cfg: c, bundles: make(chan struct{}, max(2, runtime.GOMAXPROCS(0)))}
	g.handlers = map[string]handler{
		"libreoffice/convert":          convertOffice,
		"chromium/convert/html":        convertHTML,
		"chromium/convert/markdown":    convertMarkdown,
		"chromium/convert/url":         convertURL,
		"chromium/screenshot/html":     screenshot(fromHTML),
		"chromium/screenshot/markdown": screenshot(fromMarkdown),
		"chromium/screenshot/url":      screenshot(fromURL),
		"pdfengines/bookmarks/read":    readBookmarks,
		"pdfengines/bookmarks/write":   writeBookmarks,
		"pdfengines/embed":             embedPDF,
		"pdfengines/factur-x":          invoicePDF,
		"pdfengines/merge":             mergePDF,
		"pdfengines/split":             splitPDF,
		"pdfengines/convert":           convertPDF,
		"pdfengines/rotate":            rotatePDF,
		"pdfengines/encrypt":           encryptPDF,
		"pdfengines/flatten":           flattenPDF,
		"pdfengines/optimize":          optimizePDF,
		"pdfengines/watermark":         markPDF("watermark"),
		"pdfengines/stamp":             markPDF("stamp"),
		"pdfengines/metadata/read":     readMetadata,
		"pdfengines/metadata/write":    writeMetadata,
	}
	err := g.prepare()
	return g, err
}

// prefix is the path prefix of all routes with files.
const prefix = "/forms/"

const versionPath = "/version"

// ours reports whether a path is one of the routes.
func ours(path string) bool { return strings.HasPrefix(path, prefix) || path == versionPath }

// Extension is a function for httpapi.Config.Extensions.
func (g *Routes) Extension(svc *httpapi.Service) httpapi.Extension {
	g.svc = svc
	var e httpapi.Extension
	for path, h := range g.handlers {
		e.Routes = append(e.Routes, httpapi.Route{
			Method: http.MethodPost, Path: prefix + path, Handler: g.serve(h),
			Scope: httpapi.ScopeUpload | httpapi.ScopeOperate | httpapi.ScopeRead,
		})
	}
	e.Routes = append(e.Routes, httpapi.Route{Method: http.MethodGet, Path: versionPath, Handler: func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(traceHeader, traceOf(r))
		plain(w, http.StatusOK, g.cfg.Version)
	}})
	return e
}

// Handler returns next with the route that needs no key, GET /health. For the other routes it accepts
// an API key as the password of HTTP basic authentication too.
func (g *Routes) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		read := r.Method == http.MethodGet || r.Method == http.MethodHead
		switch path := r.URL.Path; {
		case path == "/health" && read:
			w.Header().Set(traceHeader, traceOf(r))
			g.health(w)
		case ours(path):
			if _, key, ok := r.BasicAuth(); ok {
				r = r.Clone(r.Context())
				r.Header.Set("Authorization", "Bearer "+key)
			}
			next.ServeHTTP(w, r)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// Auth returns next with an account for requests to the routes that have no credentials. With a nil
// function they are refused, as everywhere else. Requests that a browser sends for a page of another
// site are refused too: such a page could otherwise use a service on the visitor's host.
func Auth(next httpapi.Authenticator, account func(context.Context) (httpapi.Principal, error)) httpapi.Authenticator {
	return httpapi.AuthFunc(func(r *http.Request) (httpapi.Principal, error) {
		foreign := r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != ""
		if account != nil && !foreign && ours(r.URL.Path) && r.Header.Get("Authorization") == "" && httpapi.Key(r) == "" {
			return account(r.Context())
		}
		return next.Authenticate(r)
	})
}

// health answers GET /health. A module is up if its engine is offered.
func (g *Routes) health(w http.ResponseWriter) {
	type module struct {
		Status    string    `json:"status"`
		Timestamp time.Time `json:"timestamp"`
	}
	now := time.Now().UTC()
	status, code := "up", http.StatusOK
	details := make(map[string]module)
	for name, file := range map[string]string{"chromium": "page.html", "libreoffice": "document.docx"} {
		m := module{"up", now}
		if g.svc.Check("convert", file, map[string]any{"convert_to": "pdf"}) != nil {
			m.Status, status, code = "down", "down", http.StatusServiceUnavailable
		}
		details[name] = m
	}
	writeJSON(w, code, struct {
		Status  string            `json:"status"`
		Details map[string]module `json:"details"`
	}{status, details})
}
