package gotenberg

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/filewright/filewright/httpapi"
)

// traceHeader names the correlation ID of a request, in requests and responses.
const traceHeader = "Gotenberg-Trace"

// outputHeader names the file of the response, without its extension.
const outputHeader = "Gotenberg-Output-Filename"

// traceOf returns the correlation ID of a request: the client's, or a new one.
func traceOf(r *http.Request) string {
	id := r.Header.Get(traceHeader)
	if id == "" || len(id) > 200 {
		return uuid.NewString()
	}
	return id
}

// An answer is an error with the status and the text of the response.
type answer struct {
	status int
	text   string
	retry  int // seconds; 0: no header
}

// Error implements error.
func (a *answer) Error() string { return a.text }

func refuse(status int, format string, args ...any) error {
	return &answer{status: status, text: fmt.Sprintf(format, args...)}
}

// answerOf returns the response for an error.
func answerOf(err error) *answer {
	var a *answer
	if errors.As(err, &a) {
		return a
	}
	var f *failure
	if errors.As(err, &f) {
		return &answer{status: statusOf(f.Code), text: f.Message}
	}
	var u *unreachable
	var b *badStatus
	switch {
	case errors.As(err, &u):
		return &answer{status: http.StatusBadRequest, text: fmt.Sprintf("Unable to download file from '%s': no response", u.url)}
	case errors.As(err, &b):
		return &answer{status: http.StatusBadRequest, text: fmt.Sprintf("Unable to download file from '%s': got status: '%s'", b.url, b.status)}
	}
	p := httpapi.ProblemOf(err)
	a = &answer{status: p.Status, text: p.Detail, retry: int(p.RetryAfter.Seconds())}
	if a.status >= 500 && a.status != http.StatusServiceUnavailable && a.status != http.StatusInsufficientStorage {
		a.text = http.StatusText(a.status)
	}
	return a
}

// plain answers with a text.
func plain(w http.ResponseWriter, status int, text string) {
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=UTF-8")
	h.Set("Content-Length", strconv.Itoa(len(text)))
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = strings.NewReader(text).WriteTo(w)
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		plain(w, http.StatusInternalServerError, http.StatusText(http.StatusInternalServerError))
		return
	}
	h := w.Header()
	if h.Get("Content-Type") == "" {
		h.Set("Content-Type", "application/json; charset=utf-8")
	}
	h.Set("Content-Length", strconv.Itoa(b.Len()))
	w.WriteHeader(status)
	_, _ = b.WriteTo(w)
}

// statusOf returns the HTTP status for the code of a failed operation.
func statusOf(code string) int {
	switch code {
	case "internal_error", "engine_failed":
		return http.StatusInternalServerError
	case "timeout", "waited_too_long", "cancelled", "engine_unavailable":
		return http.StatusServiceUnavailable
	}
	return http.StatusBadRequest
}
