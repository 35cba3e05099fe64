package httpapi

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/filewright/filewright/trace"
)

// isToken reports whether s has 1 to limit bytes, all of them letters, digits, '.', '_' or '-'.
func isToken(s string, limit int) bool {
	if s == "" || len(s) > limit {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}

// validHost reports whether a Host header is a name or an address with an optional port. It accepts
// underscores, which occur in names behind proxies.
func validHost(host string) bool {
	name := host
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		if _, err := strconv.ParseUint(host[i+1:], 10, 16); err != nil {
			return false
		}
		name = host[:i]
	}
	if v6, ok := strings.CutPrefix(name, "["); ok {
		addr, err := netip.ParseAddr(strings.TrimSuffix(v6, "]"))
		return err == nil && addr.Is6() && addr.Zone() == "" && strings.HasSuffix(v6, "]")
	}
	return isToken(name, 253)
}

func (n *Node) serve(w http.ResponseWriter, r *http.Request, info *requestInfo) {
	id := r.Header.Get("X-Request-Id")
	if !isToken(id, 64) {
		id = uuid.NewString()
	}
	w.Header().Set("X-Request-Id", id)
	info.id = id
	r = withInfo(r, info)
	var span *trace.Span
	if n.cfg.Tracer != nil && !isProbe(r.URL.Path) {
		r, span = n.startSpan(r, info)
	}
	slowest := pace{max(0, float64(n.cfg.Limits.MinRate)), n.cfg.Limits.Stall}
	rc := http.NewResponseController(w)
	out := &pacedWriter{ResponseWriter: w, rc: rc, credit: credit{slowest, slowest.stall}}
	if r.Body != nil && r.Body != http.NoBody {
		body := &pacedBody{ReadCloser: r.Body, rc: rc, credit: credit{slowest, slowest.stall}, sticky: r.ProtoMajor > 1}
		r.Body = body // of the service's copy of the request
		defer body.finish()
	}
	defer out.finish(r)
	rec := &recorder{pacedWriter: out}
	start := time.Now()
	defer func() {
		if p := recover(); p != nil {
			if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
				panic(p)
			}
			n.logOf(r).Error("handler panicked", "route", rec.route, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			if rec.status != 0 {
				panic(http.ErrAbortHandler) // too late for a response: close the connection
			}
			n.fail(rec, r, fmt.Errorf("panic: %v", p))
		}
		took := time.Since(start)
		n.metrics.request(r, rec, took, span.Traceparent())
		n.logRequest(r, rec, took)
		endSpan(span, r, rec)
	}()
	if len(r.TransferEncoding) > 0 {
		// net/http uses Transfer-Encoding and drops a Content-Length beside it before any handler
		// sees it. A proxy that uses the Content-Length would read the rest as another request. So
		// the connection must close (RFC 9112, 6.1).
		rec.Header().Set("Connection", "close")
	}
	if !validHost(r.Host) && (r.Host != "" || r.ProtoAtLeast(1, 1)) { // HTTP/1.0 has no Host header
		n.fail(rec, r, problem(http.StatusBadRequest, "invalid_request", "the Host header is not a host with an optional port"))
		return
	}
	if n.cors(rec, r) {
		return
	}
	n.router.ServeHTTP(rec, r)
}

// spanCode returns the error code for a span, "" for success.
func spanCode(err error) string {
	if err == nil {
		return ""
	}
	return asProblem(err).Slug
}

// startSpan starts the span of a request. It continues the trace of the traceparent header.
func (n *Node) startSpan(r *http.Request, info *requestInfo) (*http.Request, *trace.Span) {
	parent := r.Header.Get("Traceparent")
	if !trace.Valid(parent) {
		parent = ""
	}
	ctx, span := trace.Root(r.Context(), n.cfg.Tracer, parent, knownMethod(r.Method), trace.Server, time.Time{})
	info.trace = trace.ID(span.Traceparent())
	return r.WithContext(ctx), span
}

// endSpan ends the span of a request. Only failures of the service are failures of the span.
func endSpan(span *trace.Span, r *http.Request, rec *recorder) {
	if span == nil {
		return
	}
	method, route := knownMethod(r.Method), cmp.Or(rec.route, "other") // not the path, which can contain a name or a signature
	span.Rename(method + " " + route)
	span.String("http.request.method", method)
	span.String("http.route", route)
	span.Int("http.response.status_code", int64(rec.status))
	span.Int("http.response.body.size", rec.bytes)
	span.String("filewright.request", requestID(r))
	if id := infoOf(r).started; id != "" {
		span.String("filewright.operation", id)
	}
	code := ""
	if rec.status >= 500 {
		code = strconv.Itoa(rec.status)
	}
	span.End(code)
}

// cors answers preflight requests and adds the CORS headers to other responses. It reports whether
// it has answered the request.
func (n *Node) cors(w http.ResponseWriter, r *http.Request) bool {
	origin := r.Header.Get("Origin")
	preflight := r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != ""
	if origin == "" || len(n.cfg.Origins) == 0 {
		return false
	}
	h := w.Header()
	h.Add("Vary", "Origin")
	switch {
	case slices.Contains(n.cfg.Origins, "*"):
		h.Set("Access-Control-Allow-Origin", "*")
	case slices.Contains(n.cfg.Origins, origin):
		h.Set("Access-Control-Allow-Origin", origin)
	default:
		return false
	}
	h.Set("Access-Control-Expose-Headers", "ETag, X-Request-Id, Retry-After, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, Content-Disposition, Content-Range, Location, X-Main-Task-Id, X-Warnings")
	if !preflight {
		return false
	}
	h.Set("Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, PATCH, DELETE")
	h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Content-MD5, Idempotency-Key, X-D3-API-Key, X-Request-Id, Range")
	h.Set("Access-Control-Max-Age", "7200")
	w.WriteHeader(http.StatusNoContent)
	return true
}

// A recorder records the status and size of a response. It forwards ReadFrom, so that files are
// still sent with sendfile.
type recorder struct {
	*pacedWriter
	route  string
	param  string // the only parameter of the route, if it has exactly one
	status int
	bytes  int64
}

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 && status >= 200 {
		r.status = status
	}
	r.pacedWriter.WriteHeader(status)
}

func (r *recorder) Write(p []byte) (int, error) {
	r.status = cmp.Or(r.status, http.StatusOK)
	n, err := r.pacedWriter.Write(p)
	r.bytes += int64(n)
	return n, err
}

func (r *recorder) ReadFrom(src io.Reader) (int64, error) {
	r.status = cmp.Or(r.status, http.StatusOK)
	n, err := r.pacedWriter.ReadFrom(src)
	r.bytes += n
	return n, err
}
