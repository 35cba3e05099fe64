// Package remote connects a service to URLs. [Imports] are POST /api/v1/import, which reads a file
// from a URL. [Deliveries] are deliver in POST /do, which writes results to URLs. Each is an extension
// of the service and works without the other.
//
//	imports, err := remote.NewImports(remote.ImportConfig{Store: db.Transfers(), Secrets: secrets})
//	...
//	svc, err := httpapi.New(httpapi.Config{
//		Actions:    actions,
//		Auth:       httpapi.StaticKeys(key),
//		Extensions: []func(*httpapi.Service) httpapi.Extension{imports.Extension},
//	})
//	...
//	err = imports.Run(ctx)
//
// Requests go only to public addresses, unless the configuration allows others. The address that is
// dialled decides, so neither names, redirects nor DNS rebinding lead into the network of the server.
package remote

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/internal/netguard"
)

// A failure is why a transfer failed: a stable name for programs, and a text for people that reveals
// nothing about the server's network.
type failure struct {
	Code    string `json:"error_code"`
	Message string `json:"error_message"`
}

// Error implements error.
func (f *failure) Error() string { return f.Code + ": " + f.Message }

func failed(code, format string, args ...any) *failure {
	return &failure{code, fmt.Sprintf(format, args...)}
}

// Codes of failures, beside those of the service. They are also slugs of problems.
const (
	codeScheme      = "url_scheme"       // the URL is neither http nor https
	codeCredentials = "url_credentials"  // the URL contains a user name or password
	codeAddress     = "url_address"      // the address is not public
	codeRedirect    = "url_redirect"     // too many redirects, from https to http, or invalid
	codeUnreachable = "url_unreachable"  // no connection
	codeStatus      = "url_status"       // another status than 200
	codeTimeout     = "url_timeout"      // no response in time, or too slow
	codeIncomplete  = "url_incomplete"   // the response ends early
	codeEncoding    = "url_encoding"     // the response is compressed though that was not requested
	codeDisabled    = "account_disabled" // the account was disabled for too long before the transfer
)

// statuses are the HTTP statuses of failures.
var statuses = map[string]int{
	"invalid_request": http.StatusBadRequest, codeScheme: http.StatusBadRequest, codeCredentials: http.StatusBadRequest, codeAddress: http.StatusBadRequest,
	codeRedirect: http.StatusUnprocessableEntity, codeUnreachable: http.StatusUnprocessableEntity, codeStatus: http.StatusUnprocessableEntity,
	codeDisabled: http.StatusUnprocessableEntity, codeTimeout: http.StatusUnprocessableEntity, codeIncomplete: http.StatusUnprocessableEntity, codeEncoding: http.StatusUnprocessableEntity,
	"too_large": http.StatusRequestEntityTooLarge, "quota_exceeded": http.StatusTooManyRequests,
	"insufficient_storage": http.StatusInsufficientStorage, "unavailable": http.StatusServiceUnavailable,
}

// problem returns the response for a failure.
func (f *failure) problem() *httpapi.Problem {
	status, ok := statuses[f.Code]
	if !ok {
		return httpapi.NewProblem(http.StatusInternalServerError, "internal_error", "%s", f.Message)
	}
	p := httpapi.NewProblem(status, f.Code, "%s", f.Message)
	switch status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusInsufficientStorage:
		p.RetryAfter = time.Minute
	}
	return p
}

// refused returns the failure for an error of [netguard.Check]. what is the subject of the sentence.
func refused(what string, err error) *failure {
	var bad *netguard.URLError
	if !errors.As(err, &bad) {
		return failed("internal_error", "internal error")
	}
	code := map[string]string{netguard.RuleScheme: codeScheme, netguard.RuleCredentials: codeCredentials, netguard.RuleAddress: codeAddress}[bad.Rule]
	code = cmp.Or(code, "invalid_request")
	return failed(code, "%s %s", what, bad.Why)
}

// Limits of the headers that a client sets.
const (
	maxHeaders     = 20
	maxHeaderBytes = 8 << 10
)

// reserved lists the headers that the transfer itself sets, and those of one connection.
var reserved = map[string]bool{
	"Accept-Encoding": true, "Connection": true, "Content-Length": true, "Expect": true, "Host": true, "Keep-Alive": true,
	"Proxy-Connection": true, "Range": true, "Te": true, "Trailer": true, "Transfer-Encoding": true, "Upgrade": true,
}

// checkHeaders returns an error about the request member param unless requests can have these headers.
func checkHeaders(param string, headers map[string]string) error {
	if len(headers) > maxHeaders {
		return httpapi.Invalid(param, "%s has more than %d entries", param, maxHeaders)
	}
	n := 0
	for name, value := range headers {
		n += len(name) + len(value)
		switch canonical := http.CanonicalHeaderKey(name); {
		case !httpguts.ValidHeaderFieldName(name):
			return httpapi.Invalid(param, "%s has an invalid header name", param)
		case !httpguts.ValidHeaderFieldValue(value):
			return httpapi.Invalid(param, "the value of the header %s is invalid", canonical)
		case reserved[canonical], strings.HasPrefix(canonical, "Proxy-"):
			return httpapi.Invalid(param, "the header %s cannot be set", canonical)
		}
	}
	if n > maxHeaderBytes {
		return httpapi.Invalid(param, "%s has more than %d bytes", param, maxHeaderBytes)
	}
	return nil
}

// setHeaders sets the headers of a client.
func setHeaders(to http.Header, headers map[string]string) {
	for name, value := range headers {
		to.Set(name, value)
	}
}
