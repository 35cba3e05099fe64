package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/filewright/filewright/status"
)

// A requestInfo is what log lines say of a request.
type requestInfo struct {
	id       string
	who      Principal // zero until it is known
	internal bool      // came through Service.Internal
}

type requestInfoKey struct{}

// infoOf returns what is known of a request, an empty one for requests that did not
// come through ServeHTTP.
func infoOf(r *http.Request) *requestInfo {
	if info, ok := r.Context().Value(requestInfoKey{}).(*requestInfo); ok {
		return info
	}
	return new(requestInfo)
}

// requestID returns the ID of a request that went through ServeHTTP.
func requestID(r *http.Request) string { return infoOf(r).id }

// logOf returns a logger for lines about a request.
func (s *Service) logOf(r *http.Request) *slog.Logger {
	info := infoOf(r)
	args := []any{"request_id", info.id}
	if info.who.Account != "" {
		args = append(args, "account", info.who.Account, "key", info.who.KeyID)
	}
	for name, param := range map[string]string{"operation": "main_task_id", "file": "file_key"} {
		if v := r.PathValue(param); v != "" && len(v) <= 64 {
			args = append(args, name, v)
		}
	}
	return s.log.With(args...)
}

// logRequest writes the line of a request that was answered. The query is not in it: it
// may be a signature. Probes are only logged if they fail.
func (s *Service) logRequest(r *http.Request, rec *recorder, d time.Duration) {
	level := slog.LevelDebug
	probe := rec.route == "/healthz" || rec.route == "/readyz" || rec.route == "/metrics"
	if s.cfg.LogRequests && (!probe || rec.status >= 400) {
		level = slog.LevelInfo
	}
	if !s.log.Enabled(r.Context(), level) {
		return
	}
	route := rec.route
	if route == "" {
		route = "other"
	}
	s.logOf(r).Log(r.Context(), level, "request", "method", knownMethod(r.Method), "route", route, "status", rec.status, "bytes", rec.bytes, "duration", d)
}

// logOfItem returns a logger for lines about an item: files are named by their keys, as
// names may be private.
func (s *Service) logOfItem(c *status.Claim) *slog.Logger {
	files := make([]string, len(c.Item.Inputs))
	for i, f := range c.Item.Inputs {
		files[i] = f.Key
	}
	return s.log.With("request_id", c.Op.Origin.Request, "operation", c.Operation, "item", c.Index, "action", c.Op.Action,
		"account", c.Op.Owner, "key", c.Op.Origin.Key, "files", files)
}

// withInfo returns a request with info, and a context to find it in.
func withInfo(r *http.Request, info *requestInfo) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), requestInfoKey{}, info))
}
