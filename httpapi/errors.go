package httpapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"net/http"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/status"
	"github.com/filewright/filewright/upload"
	"github.com/filewright/filewright/upload/blob"
)

// A Problem is the body of an error response (RFC 9457), plus members that existing clients read.
// It implements error: an [Authenticator] or a [Quota] may return a Problem to decide the response.
type Problem struct {
	Type      string   `json:"type"`
	Title     string   `json:"title"`
	Status    int      `json:"status"`
	Detail    string   `json:"detail"`
	Slug      string   `json:"error"`             // stable name for programs
	Message   string   `json:"message"`           // equal to Detail
	Code      int      `json:"code"`              // equal to Status
	RequestID string   `json:"request_id"`        // set when the response is sent
	Param     string   `json:"param,omitempty"`   // member, header or path parameter of the request that caused the error
	Allowed   []string `json:"allowed,omitempty"` // accepted values

	// MaxBytes is the size of the largest file that the operation accepts; 0 for other errors.
	MaxBytes int64 `json:"max_bytes,omitempty"`

	// ErrorCode and MainTaskID describe an operation whose files have all failed.
	ErrorCode  string `json:"error_code,omitempty"`
	MainTaskID string `json:"main_task_id,omitempty"`

	// Quota describes the exceeded quota; nil for other errors.
	Quota *QuotaUse `json:"quota,omitempty"`

	// Checks and Dependencies are members of readyz responses.
	Checks       map[string]string `json:"checks,omitempty"`
	Dependencies []dependencyEntry `json:"dependencies,omitempty"`

	// RetryAfter is sent as the Retry-After header in whole seconds; 0: no header.
	RetryAfter time.Duration `json:"-"`

	// Authenticate is sent as WWW-Authenticate.
	Authenticate string `json:"-"`
}

// Error implements error.
func (p *Problem) Error() string { return p.Slug + ": " + p.Detail }

func problem(code int, slug, detail string, args ...any) *Problem {
	return &Problem{Status: code, Slug: slug, Detail: fmt.Sprintf(detail, args...)}
}

func invalid(param, detail string, args ...any) *Problem {
	p := problem(http.StatusBadRequest, "invalid_request", detail, args...)
	p.Param = param
	return p
}

// asProblem maps an error to the Problem that the client gets. Unlisted errors become an internal
// error, whose text appears only in the log.
func asProblem(err error) *Problem {
	var p *Problem
	if errors.As(err, &p) {
		c := *p
		return &c
	}
	var param *fileops.ParamError
	if errors.As(err, &param) {
		p := problem(http.StatusBadRequest, "unsupported_operation", "%s", param.Error())
		if param.Missing {
			p.Slug = "invalid_request"
		}
		p.Param, p.Allowed = "parameters."+param.Param, param.Allowed
		return p
	}
	var unsupported *fileops.UnsupportedError
	if errors.As(err, &unsupported) {
		p := problem(http.StatusBadRequest, "unsupported_operation", "%s", unsupported.Error())
		p.Param, p.Allowed = "action", unsupported.Actions
		return p
	}
	if p := asQuotaProblem(err); p != nil {
		return p
	}
	var full *status.QueueFullError
	if errors.As(err, &full) {
		p := problem(http.StatusTooManyRequests, "queue_full", "the service has too many queued files; try again later")
		if full.Owner {
			p.Detail = "your account has too many queued files; try again later"
		}
		p.RetryAfter = full.RetryAfter
		return p
	}
	for _, m := range errorMap {
		if errors.Is(err, m.err) {
			detail, param := m.detail, m.param
			var public *upload.Error
			switch {
			case errors.Is(m.err, os.ErrDeadlineExceeded):
			case errors.As(err, &public):
				detail, param = public.Message, cmp.Or(public.Param, param)
			case detail == "":
				detail = err.Error()
			}
			return &Problem{Status: m.status, Slug: m.slug, Detail: detail, Param: param, RetryAfter: m.retry}
		}
	}
	return problem(http.StatusInternalServerError, "internal_error", "internal error; give the request ID to the operator of the service")
}

// A QuotaUse describes the use of a quota.
type QuotaUse struct {
	What  string    `json:"what"`           // "stored_bytes", "bytes_per_day", "operations_per_day" or another name
	Limit int64     `json:"limit"`          // largest permitted use
	Used  int64     `json:"used"`           // current use, without the refused request
	Reset time.Time `json:"reset,omitzero"` // when the period restarts; zero: when files are deleted or expire
}

// A QuotaError reports an exceeded quota. It matches [ErrQuota]; clients get a text made from its
// fields. Any error with the same method Exceeded is handled in the same way.
type QuotaError struct {
	What  string // see QuotaUse
	Limit int64
	Used  int64
	Reset time.Time
}

// Error implements error.
func (e *QuotaError) Error() string {
	return fmt.Sprintf("quota exceeded: %s: %d of %d used", e.What, e.Used, e.Limit)
}

// Is makes e match [ErrQuota].
func (e *QuotaError) Is(target error) bool { return target == ErrQuota }

// Exceeded returns the fields of e.
func (e *QuotaError) Exceeded() (what string, limit, used int64, reset time.Time) {
	return e.What, e.Limit, e.Used, e.Reset
}

// quotaText describes an exceeded quota for people.
func quotaText(what string, limit, used int64) string {
	switch what {
	case "stored_bytes":
		return fmt.Sprintf("your files use %d of %d bytes of storage; delete some, or wait until they expire", used, limit)
	case "bytes_per_day":
		return fmt.Sprintf("%d of %d bytes of uploads per day used", used, limit)
	case "operations_per_day":
		return fmt.Sprintf("%d of %d operations per day used", used, limit)
	}
	return fmt.Sprintf("quota %s exceeded: %d of %d used", what, used, limit)
}

// asQuotaProblem returns nil if the error is not about a quota.
func asQuotaProblem(err error) *Problem {
	var e interface {
		Exceeded() (what string, limit, used int64, reset time.Time)
	}
	if !errors.As(err, &e) {
		return nil
	}
	what, limit, used, reset := e.Exceeded()
	reset = stamp(reset)
	p := problem(http.StatusTooManyRequests, "quota_exceeded", "%s", quotaText(what, limit, used))
	if !reset.IsZero() {
		p.Detail += "; it resets at " + reset.Format(time.RFC3339)
	}
	p.Quota = &QuotaUse{What: what, Limit: limit, Used: used, Reset: reset}
	p.RetryAfter = time.Minute
	if !reset.IsZero() {
		p.RetryAfter = max(time.Second, time.Until(reset))
	}
	return p
}

// errorMap is searched in order. An empty detail shows the error's own text, so only errors with a
// text for clients may have it. errorMap is read-only.
var errorMap = []struct {
	err    error
	status int
	slug   string
	detail string
	param  string
	retry  time.Duration
}{
	// Temporary conditions come first. An error of a dependency may also match a client error, as a
	// database timeout does.
	{syscall.ENOSPC, 507, "insufficient_storage", "the server has no space left; try again later", "", time.Minute},
	{syscall.EDQUOT, 507, "insufficient_storage", "the server has no space left; try again later", "", time.Minute},
	{blob.ErrUnavailable, 503, "unavailable", "the storage does not respond; try again later", "", 5 * time.Second},
	{status.ErrUnavailable, 503, "unavailable", "the database is temporarily unavailable; try again", "", 2 * time.Second},

	{errUnknown, 503, "unavailable", "no worker has started yet, so the supported operations are unknown; try again later", "", 5 * time.Second},

	{ErrUnauthenticated, 401, "unauthorized", "missing or invalid API key; send it as Authorization: Bearer <key>", "", 0},
	{ErrForbidden, 403, "forbidden", "the API key does not permit this", "", 0},
	{ErrQuota, 429, "quota_exceeded", "", "", time.Minute},
	{status.ErrQueueFull, 429, "queue_full", "too many queued files; try again later", "", 5 * time.Second},
	{os.ErrDeadlineExceeded, 408, "request_timeout", "timeout while reading the body of the request", "", 0},
	{upload.ErrURLExpired, 403, "url_expired", "the upload URL has expired; initiate the upload again", "", 0},
	{upload.ErrSignature, 403, "invalid_signature", "invalid upload URL signature", "", 0},
	{upload.ErrMissingPart, 400, "missing_part", "", "parts", 0},
	{upload.ErrPartOrder, 400, "part_order", "", "parts", 0},
	{upload.ErrPartETag, 400, "part_etag", "", "parts", 0},
	{upload.ErrSizeMismatch, 400, "size_mismatch", "", "", 0},
	{upload.ErrTooLarge, 413, "too_large", "", "", 0},
	{errIdempotency, 409, "conflict", "the Idempotency-Key was used for another request", "Idempotency-Key", 0},
	{upload.ErrConflict, 409, "conflict", "", "", 0},
	{upload.ErrDigest, 400, "invalid_request", "", "Content-MD5", 0},
	{upload.ErrIncomplete, 409, "upload_incomplete", "", "", 0},
	{upload.ErrExpired, 410, "expired", "the file or upload has expired and was deleted", "", 0},
	{upload.ErrContentLost, 410, "content_lost", "", "", 0},
	{upload.ErrInvalid, 400, "invalid_request", "", "", 0},
	{blob.ErrPart, 400, "missing_part", "", "parts", 0},
	{errors.ErrUnsupported, 400, "unsupported_operation", "", "action", 0},
	{fs.ErrNotExist, 404, "not_found", "not found, or it belongs to another account", "", 0},
	// Failing disks and network file systems, and too many open files.
	{syscall.EIO, 503, "unavailable", "the storage does not respond; try again later", "", 5 * time.Second},
	{syscall.EROFS, 503, "unavailable", "the storage does not respond; try again later", "", 5 * time.Second},
	{syscall.ESTALE, 503, "unavailable", "the storage does not respond; try again later", "", 5 * time.Second},
	{syscall.ETIMEDOUT, 503, "unavailable", "the storage does not respond; try again later", "", 5 * time.Second},
	{syscall.EMFILE, 503, "unavailable", "the server is too busy to respond in time", "", 5 * time.Second},
	{syscall.ENFILE, 503, "unavailable", "the server is too busy to respond in time", "", 5 * time.Second},
	{context.Canceled, 503, "unavailable", "the request was cancelled", "", time.Second}, // usually the client closed the connection
	{context.DeadlineExceeded, 503, "unavailable", "the server is too busy to respond in time", "", 5 * time.Second},
}

var errParam = errors.New("invalid parameter")

// fail answers a request with the Problem of an error.
func (n *Node) fail(w http.ResponseWriter, r *http.Request, err error) {
	p := asProblem(err)
	log := n.logOf(r).With("code", p.Slug)
	switch {
	case p.Status >= 500 && r.URL.Path != "/readyz" && r.Context().Err() == nil && !errors.Is(err, context.Canceled) && !errors.Is(err, errUnknown): // otherwise the client has disconnected, which is not an error of the service
		log.Error("request failed", "method", r.Method, "err", err)
	default:
		var param *fileops.ParamError
		if errors.As(err, &param) {
			err = errParam // errParam repeats names from the client, which may be misplaced secrets
		}
		log.LogAttrs(r.Context(), slog.LevelDebug, "request refused", slog.Any("err", err))
	}
	if rec, ok := w.(*recorder); ok && p.Param == "" && (p.Status == http.StatusNotFound || p.Status == http.StatusGone) {
		p.Param = rec.param // what the path names does not exist
	}
	p.Type = "/docs#error-" + p.Slug
	p.Title = http.StatusText(p.Status)
	p.Message, p.Code, p.RequestID = p.Detail, p.Status, requestID(r)
	if p.Authenticate == "" && p.Status == http.StatusUnauthorized {
		p.Authenticate = `Bearer realm="filewright"`
	}
	if p.Authenticate != "" {
		w.Header().Set("WWW-Authenticate", p.Authenticate)
	}
	if p.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(p.RetryAfter.Seconds()))))
	}
	b, err := marshal(p)
	if err != nil {
		panic(err)
	}
	writeJSON(w, p.Status, "application/problem+json", b)
}
