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

	"github.com/filewright/filewright/httpapi"
)

// maxWebhooks bounds the requests whose results go to webhooks.
const maxWebhooks = 1000

// Attempts to reach a webhook.
const (
	attempts       = 5
	attemptTimeout = 30 * time.Second
)

// A hook says where the result of a request goes.
type hook struct {
	url, method           string
	errorURL, errorMethod string // errorURL may be ""
	eventsURL             string // may be ""
	extra                 map[string]string
	parent                string // traceparent of the client, or ""
}

// hook reads the webhook headers of a request. It returns nil if there are none.
func (c *call) hook() (*hook, error) {
	get := c.r.Header.Get
	h := &hook{url: get("Gotenberg-Webhook-Url"), errorURL: get("Gotenberg-Webhook-Error-Url"), eventsURL: get("Gotenberg-Webhook-Events-Url")}
	switch {
	case h.url == "":
		return nil, nil
	case c.cfg.Outbound == nil:
		return nil, refuse(http.StatusForbidden, "Webhooks are off")
	case h.errorURL == "" && h.eventsURL == "":
		return nil, refuse(http.StatusBadRequest, "At least one of 'Gotenberg-Webhook-Error-Url' or 'Gotenberg-Webhook-Events-Url' headers must be provided")
	}
	for _, u := range []string{h.url, h.errorURL, h.eventsURL} {
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
	h.method = method("Gotenberg-Webhook-Method")
	if h.errorURL != "" {
		h.errorMethod = method("Gotenberg-Webhook-Error-Method")
	}
	if err != nil {
		return nil, err
	}
	const extra = "Gotenberg-Webhook-Extra-Http-Headers"
	if v := get(extra); v != "" {
		if err := json.Unmarshal([]byte(v), &h.extra); err != nil {
			return nil, refuse(http.StatusBadRequest, "Invalid '%s' header value: %v", extra, err)
		}
	}
	if p := get("traceparent"); traceParent.MatchString(p) {
		h.parent = p
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

// later runs the steps of a request and sends the result to its webhook. It returns at once, without
// waiting for that. c.remove is called at the end.
func (c *call) later(h handler, to *hook) error {
	if c.webhooks.Add(1) > maxWebhooks {
		c.webhooks.Add(-1)
		return refuse(http.StatusTooManyRequests, "The request queue is full. Retry shortly.")
	}
	c.r = httpapi.Detached(c.r)
	ctx, cancel := context.WithTimeout(c.r.Context(), c.cfg.Timeout)
	c.ctx = ctx
	go func() {
		defer c.webhooks.Add(-1)
		defer cancel()
		defer c.remove()
		docs, err := h(c)
		if err == nil && len(docs) == 0 {
			err = refuse(http.StatusBadRequest, "The webhook middleware can only work with multipart/form-data routes that results in output files")
		}
		if err == nil {
			err = c.deliver(to, docs)
		}
		c.tell(to, err)
	}()
	return nil
}

// deliver sends the result to the webhook.
func (c *call) deliver(to *hook, docs []doc) error {
	header := make(http.Header)
	open := func() (io.ReadCloser, int64, error) {
		o, err := c.output(docs)
		if err != nil {
			return nil, 0, err
		}
		header.Set("Content-Type", o.contentType)
		if _, own := to.extra["Content-Disposition"]; !own {
			header.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": o.name}))
		}
		return o, o.size, nil
	}
	return c.reach(to, to.method, to.url, header, open)
}

// tell reports the end of a request to its webhooks: err, or success.
func (c *call) tell(to *hook, err error) {
	event := map[string]any{"event": "webhook.success", "correlationId": c.trace}
	header := http.Header{"Content-Type": {"application/json"}}
	if err != nil {
		a := c.answerOf(err)
		// The time of the request may be over, but not that of the report.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), attempts*attemptTimeout)
		defer cancel()
		c.ctx = ctx
		body := map[string]any{"status": a.status, "message": a.text}
		event["event"], event["error"] = "webhook.error", body
		if to.errorURL != "" {
			if err := c.reach(to, to.errorMethod, to.errorURL, header, inMemory(body)); err != nil {
				c.svc.Log(c.r).Warn("cannot send an error to a webhook", "trace", c.trace, "err", err)
			}
		}
	}
	if to.eventsURL == "" {
		return
	}
	event["timestamp"] = time.Now().UTC().Format(time.RFC3339Nano)
	if err := c.reach(to, http.MethodPost, to.eventsURL, header, inMemory(event)); err != nil {
		c.svc.Log(c.r).Warn("cannot send an event to a webhook", "trace", c.trace, "err", err)
	}
}

// inMemory returns an opener of a body in JSON.
func inMemory(v any) func() (io.ReadCloser, int64, error) {
	b, err := json.Marshal(v)
	return func() (io.ReadCloser, int64, error) { return io.NopCloser(bytes.NewReader(b)), int64(len(b)), err }
}

// reach sends a request to a webhook, and repeats it when the webhook cannot be reached or fails.
func (c *call) reach(to *hook, method, target string, header http.Header, open func() (io.ReadCloser, int64, error)) error {
	var err error
	for n := range attempts {
		if n > 0 {
			select {
			case <-time.After(time.Second << (n - 1)):
			case <-c.ctx.Done():
				return c.ctx.Err()
			}
		}
		var final bool
		if final, err = c.attempt(to, method, target, header, open); err == nil || final {
			return err
		}
	}
	return err
}

// attempt sends a request once. final reports whether another attempt is useless.
func (c *call) attempt(to *hook, method, target string, header http.Header, open func() (io.ReadCloser, int64, error)) (final bool, err error) {
	ctx, cancel := context.WithTimeout(c.ctx, attemptTimeout)
	defer cancel()
	body, size, err := open()
	if err != nil {
		return true, err
	}
	defer body.Close()
	req, err := http.NewRequestWithContext(ctx, method, target, io.NopCloser(body))
	if err != nil {
		return true, err
	}
	req.ContentLength = size
	req.Header.Set("User-Agent", "Gotenberg")
	for name, v := range to.extra {
		req.Header.Set(name, v)
	}
	for name, values := range header {
		req.Header[name] = values
	}
	req.Header.Set(traceHeader, c.trace)
	if to.parent != "" {
		var id [8]byte
		_, _ = rand.Read(id[:]) // it never fails
		req.Header.Set("Traceparent", to.parent[:36]+hex.EncodeToString(id[:])+to.parent[52:])
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
