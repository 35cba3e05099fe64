package httpapi

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"time"
)

// A requestInfo holds the request's fields for log lines.
type requestInfo struct {
	id       string
	trace    string    // ID of the trace; "": none
	who      Principal // zero until authentication
	started  string    // ID of the operation that the request submitted
	replayed bool      // repeats a request with the same idempotency key
	internal bool      // arrived through Service.Internal
}

type requestInfoKey struct{}

// infoOf returns the info of a request. It is empty for requests that did not pass ServeHTTP.
func infoOf(r *http.Request) *requestInfo {
	if info, ok := r.Context().Value(requestInfoKey{}).(*requestInfo); ok {
		return info
	}
	return new(requestInfo)
}

// requestID returns the ID of a request that passed ServeHTTP.
func requestID(r *http.Request) string { return infoOf(r).id }

// logOf returns a logger for lines about a request.
func (n *Node) logOf(r *http.Request) *slog.Logger { return n.log.With(logFields(r)...) }

// logFields returns the fields by which log lines identify a request.
func logFields(r *http.Request) []any {
	info := infoOf(r)
	args := []any{"request_id", info.id}
	if info.who.Account != "" {
		args = append(args, "account", info.who.Account, "key", info.who.KeyID)
	}
	for _, p := range [...]struct{ name, param string }{{"operation", "main_task_id"}, {"file", "file_key"}} {
		if v := r.PathValue(p.param); v != "" && len(v) <= 64 {
			args = append(args, p.name, v)
		}
	}
	if info.trace != "" {
		args = append(args, "trace_id", info.trace)
	}
	if info.started != "" {
		args = append(args, "operation", info.started)
	}
	return args
}

// logRequest logs an answered request. It omits the query, which may contain a signature. Probes
// are logged only if they fail, and not while engines start.
func (n *Node) logRequest(r *http.Request, rec *recorder, d time.Duration) {
	level := slog.LevelDebug
	if n.cfg.LogRequests && (!isProbe(rec.route) || rec.status >= 400 && !n.starting()) {
		level = slog.LevelInfo
	}
	if !n.log.Enabled(r.Context(), level) {
		return
	}
	// A logger of its own for each request would take longer than its only line.
	n.log.Log(r.Context(), level, "request", append(logFields(r),
		"method", knownMethod(r.Method), "route", cmp.Or(rec.route, "other"), "status", rec.status, "bytes", rec.bytes, "duration", d)...)
}

// isProbe reports whether a route is requested by monitoring, every few seconds.
func isProbe(route string) bool {
	return route == "/healthz" || route == "/readyz" || route == "/metrics"
}

// withInfo returns the request with info in its context.
func withInfo(r *http.Request, info *requestInfo) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), requestInfoKey{}, info))
}
