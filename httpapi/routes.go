package httpapi

import (
	"crypto/subtle"
	"fmt"
	"net/http"
	"strings"

	"github.com/julienschmidt/httprouter"
)

// A route is one endpoint of the API. A test compares the routes with the OpenAPI document.
type route struct {
	method, path string
	handler      http.HandlerFunc
	scope        Scope // required scope of the API key; 0: any key
	open         bool  // needs no API key
	noAlias      bool  // served only under its own path
}

// prefixes are the path prefixes of the API. The documents use the first.
var prefixes = [...]string{"/api/v1", "/v1/biz", "/v1/external"}

// probes are the endpoints of every process, with or without the API.
func (n *Node) probes() []route {
	return []route{
		{method: "GET", path: "/healthz", handler: n.healthz, open: true, noAlias: true},
		{method: "GET", path: "/readyz", handler: n.readyz, open: true, noAlias: true},
		{method: "GET", path: "/metrics", handler: n.serveMetrics, open: true, noAlias: true},
	}
}

func (s *Service) routes() []route {
	return append(s.probes(), []route{
		{method: "POST", path: "/api/v1/initiate-upload", handler: s.initiateUpload, scope: ScopeUpload},
		{method: "POST", path: "/api/v1/complete-upload", handler: s.completeUpload, scope: ScopeUpload},
		{method: "POST", path: "/api/v1/do", handler: s.do, scope: ScopeOperate},
		{method: "POST", path: "/api/v1/supported-operation", handler: s.supportedOperation, scope: ScopeRead},
		{method: "GET", path: "/api/v1/supported-operation", handler: s.supportedOperation, scope: ScopeRead},
		{method: "GET", path: "/api/v1/status/:main_task_id", handler: s.operationStatus, scope: ScopeRead},
		{method: "DELETE", path: "/api/v1/status/:main_task_id", handler: s.cancel, scope: ScopeOperate},
		{method: "GET", path: "/api/v1/status/:main_task_id/:file_key", handler: s.fileStatus, scope: ScopeRead},
		{method: "GET", path: "/api/v1/operations", handler: s.listOperations, scope: ScopeRead},
		{method: "GET", path: "/api/v1/operations/:main_task_id/download", handler: s.downloadResults, scope: ScopeRead},
		{method: "GET", path: "/api/v1/formats", handler: s.formats, scope: ScopeRead},
		{method: "GET", path: "/api/v1/files/:file_key", handler: s.fileInfo, scope: ScopeRead},
		{method: "DELETE", path: "/api/v1/files/:file_key", handler: s.deleteFile, scope: ScopeUpload},
		{method: "GET", path: "/api/v1/download/:file_key", handler: s.download, open: true, noAlias: true},

		{method: "POST", path: "/v1/external/upload", handler: s.initiateUpload, scope: ScopeUpload, noAlias: true},
		{method: "GET", path: "/v1/download/:file_key", handler: s.download, open: true, noAlias: true},
		{method: "PUT", path: uploadPath + "*part", handler: s.putPart, open: true, noAlias: true},

		{method: "GET", path: "/openapi.json", handler: s.openAPIJSON, open: true, noAlias: true},
		{method: "GET", path: "/openapi-3.0.json", handler: s.openAPI30, open: true, noAlias: true},
		{method: "GET", path: "/openapi.yaml", handler: s.openAPIYAML, open: true, noAlias: true},
		{method: "GET", path: "/docs", handler: s.docs, open: true, noAlias: true}, // of refserver: its documentation
		{method: "GET", path: "/docs/api", handler: s.docs, open: true, noAlias: true},
	}...)
}

// uploadPath is the path prefix of upload URLs.
const uploadPath = "/v1/upload/"

// route builds the router. The handlers check API keys themselves.
func (n *Node) route(routes []route) (err error) {
	router := httprouter.New()
	// A redirect would make clients repeat a PUT of gigabytes, or drop its body.
	router.RedirectTrailingSlash = false
	router.RedirectFixedPath = false
	router.NotFound = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.fail(w, r, problem(http.StatusNotFound, "not_found", "unknown endpoint %s", r.URL.Path))
	})
	router.MethodNotAllowed = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := problem(http.StatusMethodNotAllowed, "method_not_allowed", "method %s is not allowed; allowed: %s", r.Method, w.Header().Get("Allow"))
		p.Allowed = strings.Split(w.Header().Get("Allow"), ", ")
		n.fail(w, r, p)
	})
	defer func() {
		// The router panics if a path is invalid or occurs twice.
		if p := recover(); p != nil {
			err = fmt.Errorf("httpapi: routes: %v", p)
		}
	}()
	for _, rt := range routes {
		for i, prefix := range prefixes {
			path := rt.path
			if i > 0 {
				if rt.noAlias {
					break
				}
				path = prefix + strings.TrimPrefix(path, prefixes[0])
			}
			handle(router, rt, path)
		}
	}
	n.router = router
	return nil
}

func handle(router *httprouter.Router, rt route, path string) {
	adapter := func(w http.ResponseWriter, r *http.Request, params httprouter.Params) {
		for _, p := range params {
			r.SetPathValue(p.Key, p.Value)
		}
		if rec, ok := w.(*recorder); ok {
			rec.route = rt.path
			if len(params) == 1 {
				rec.param = params[0].Key
			}
		}
		rt.handler(w, r)
	}
	router.Handle(rt.method, path, adapter)
	if rt.method == http.MethodGet && rt.open { // endpoints behind a key return JSON, for which nobody uses HEAD
		router.Handle(http.MethodHead, path, adapter)
	}
}

func (n *Node) healthz(w http.ResponseWriter, r *http.Request) {
	n.reply(w, struct {
		Status string `json:"status"`
	}{"ok"})
}

// serveMetrics answers GET /metrics.
func (n *Node) serveMetrics(w http.ResponseWriter, r *http.Request) {
	if !n.mayInspect(r) {
		if n.cfg.MetricsToken == "" {
			n.fail(w, r, problem(http.StatusNotFound, "not_found", "unknown endpoint %s", r.URL.Path))
			return
		}
		n.fail(w, r, problem(http.StatusUnauthorized, "unauthorized", "metrics require the operator's token: Authorization: Bearer <token>"))
		return
	}
	n.metrics.handler().ServeHTTP(w, r)
}

// Internal returns a handler for the operator's network: /healthz, /readyz with all details, and
// /metrics, regardless of Config.HideDetails.
func (n *Node) Internal() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/healthz", "/readyz", "/metrics":
			n.serve(w, r, &requestInfo{internal: true})
		default:
			http.NotFound(w, r)
		}
	})
}

// mayInspect reports whether a request may see metrics and the details of readyz.
func (n *Node) mayInspect(r *http.Request) bool {
	token := n.cfg.MetricsToken
	return !n.cfg.HideDetails || infoOf(r).internal || token != "" && subtle.ConstantTimeCompare([]byte(Key(r)), []byte(token)) == 1
}
