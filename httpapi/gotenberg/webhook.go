package gotenberg

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// A hook says where the result of a request goes.
type hook struct {
	URL, Method           string
	ErrorURL, ErrorMethod string            `json:",omitempty"` // ErrorURL may be ""
	EventsURL             string            `json:",omitempty"` // may be ""
	Extra                 map[string]string `json:",omitempty"`
	Parent                string            `json:",omitempty"` // traceparent of the client, or ""
}

// hook reads the webhook headers of a request. It returns nil if there are none.
func (c *call) hook() (*hook, error) {
	get := c.r.Header.Get
	h := &hook{URL: get("Gotenberg-Webhook-Url"), ErrorURL: get("Gotenberg-Webhook-Error-Url"), EventsURL: get("Gotenberg-Webhook-Events-Url")}
	switch {
	case h.URL == "":
		return nil, nil
	case c.cfg.Outbound == nil:
		return nil, refuse(http.StatusForbidden, "Webhooks are off")
	case h.ErrorURL == "" && h.EventsURL == "":
		return nil, refuse(http.StatusBadRequest, "At least one of 'Gotenberg-Webhook-Error-Url' or 'Gotenberg-Webhook-Events-Url' headers must be provided")
	}
	for _, u := range []string{h.URL, h.ErrorURL, h.EventsURL} {
		if u != "" && !webURL(u) {
			return nil, refuse(http.StatusForbidden, "Forbidden")
		}
	}
	var err error
	method := func(name string) string {
		m := strings.ToUpper(get(name))
		switch m {
		case "":
			return http.MethodPost
		case http.MethodPost, http.MethodPatch, http.MethodPut:
		default:
			err = refuse(http.StatusBadRequest, "Invalid '%s' header value: expected 'POST', 'PATCH' or 'PUT', but got '%s'", name, m)
		}
		return m
	}
	h.Method = method("Gotenberg-Webhook-Method")
	if h.ErrorURL != "" {
		h.ErrorMethod = method("Gotenberg-Webhook-Error-Method")
	}
	if err != nil {
		return nil, err
	}
	const extra = "Gotenberg-Webhook-Extra-Http-Headers"
	if v := get(extra); v != "" {
		if err := json.Unmarshal([]byte(v), &h.Extra); err != nil {
			return nil, refuse(http.StatusBadRequest, "Invalid '%s' header value: %v", extra, err)
		}
	}
	if p := get("traceparent"); traceParent.MatchString(p) {
		h.Parent = p
	}
	return h, nil
}

// traceParent matches the header traceparent (W3C Trace Context, 3.2).
var traceParent = regexp.MustCompile(`^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`)

// webURL reports whether a text is the URL of a web server.
func webURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.User == nil
}

// attemptTimeout bounds one request to a webhook.
const attemptTimeout = 30 * time.Second

// deliver sends the result to its webhook once. For final see attempt.
func (c *call) deliver(to *hook, docs []doc) (final bool, err error) {
	o, err := c.open(docs)
	if err != nil {
		return true, err
	}
	defer o.Close()
	header := http.Header{"Content-Type": {o.contentType}}
	if _, own := to.Extra["Content-Disposition"]; !own {
		header.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": o.name}))
	}
	return c.attempt(to, to.Method, to.URL, header, o, o.size)
}

// tell sends a report to a webhook once. For final see attempt.
func (c *call) tell(to *hook, method, target string, report any) (final bool, err error) {
	b, err := json.Marshal(report)
	if err != nil {
		return true, err
	}
	return c.attempt(to, method, target, http.Header{"Content-Type": {"application/json"}}, bytes.NewReader(b), int64(len(b)))
}

// attempt sends a request once. final reports whether another attempt is useless.
func (c *call) attempt(to *hook, method, target string, header http.Header, body io.Reader, size int64) (final bool, err error) {
	ctx, cancel := context.WithTimeout(c.ctx, attemptTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, target, io.NopCloser(body))
	if err != nil {
		return true, err
	}
	req.ContentLength = size
	req.Header.Set("User-Agent", "Gotenberg")
	for name, v := range to.Extra {
		req.Header.Set(name, v)
	}
	for name, values := range header {
		req.Header[name] = values
	}
	req.Header.Set(traceHeader, c.trace)
	if to.Parent != "" {
		var id [8]byte
		_, _ = rand.Read(id[:]) // it never fails
		req.Header.Set("Traceparent", to.Parent[:36]+hex.EncodeToString(id[:])+to.Parent[52:])
	}
	resp, err := c.cfg.Outbound.RoundTrip(req)
	if err != nil {
		return false, fmt.Errorf("the webhook cannot be reached: %w", errors.Join(err, errUnreachable))
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10) // so that the connection can be used again
	if resp.StatusCode >= 300 {
		return resp.StatusCode < 500 && resp.StatusCode != http.StatusTooManyRequests, fmt.Errorf("the webhook answered with %d: %w", resp.StatusCode, errUnreachable)
	}
	return false, nil
}

// errUnreachable is the error of a webhook that does not accept a request.
var errUnreachable = &answer{status: http.StatusBadGateway, text: "The result could not be sent to the webhook"}
