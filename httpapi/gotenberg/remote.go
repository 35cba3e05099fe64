package gotenberg

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/net/html/charset"
)

// Parts of a page that the service loads itself.
const (
	maxParts    = 300 // of a page
	maxPartName = 2000
)

// A loader loads pages and their parts from URLs.
type loader struct {
	c         *call
	ctx       context.Context // done when loading has taken too long
	agent     string
	headers   []header
	cookies   []cookie
	mainFails []int64 // statuses of the page that fail the request
	partFails []int64 // statuses of parts that fail the request
	ignored   []string

	loads  int
	failed []string // parts with such a status
}

// An outcome is a response that was read.
type outcome struct {
	url         *url.URL // after redirects
	status      int
	contentType string
	body        []byte
}

// load requests a URL. The response has at most limit bytes.
func (l *loader) load(target *url.URL, limit int64) (*outcome, error) {
	if l.loads++; l.loads > maxParts || len(target.String()) > maxPartName {
		return nil, errors.New("too many parts")
	}
	set := func(r *http.Request) {
		r.Header = http.Header{"User-Agent": {l.agent}}
		for _, h := range l.headers {
			if h.scope == nil || h.scope.MatchString(r.URL.String()) {
				r.Header.Set(h.name, h.value)
			}
		}
		for _, c := range l.cookies {
			if c.matches(r.URL) {
				r.AddCookie(&http.Cookie{Name: c.Name, Value: c.Value})
			}
		}
	}
	req, err := http.NewRequestWithContext(l.ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return nil, err
	}
	set(req)
	client := http.Client{Transport: l.c.cfg.Outbound, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if err := redirectable(r, via); err != nil {
			return err
		}
		set(r) // headers and cookies are those for the new URL
		return nil
	}}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(body)) > limit {
		return nil, errTooLarge
	}
	return &outcome{resp.Request.URL, resp.StatusCode, resp.Header.Get("Content-Type"), body}, nil
}

var errTooLarge = refuse(http.StatusRequestEntityTooLarge, "The page has more than %d bytes with its resources", maxPage)

// matches reports whether a cookie is sent to a URL (RFC 6265, 5.4).
func (c cookie) matches(u *url.URL) bool {
	domain := strings.ToLower(strings.TrimPrefix(c.Domain, "."))
	if host, _, err := net.SplitHostPort(domain); err == nil {
		domain = host
	}
	host := strings.ToLower(u.Hostname())
	path := strings.TrimSuffix(c.Path, "/")
	return (host == domain || strings.HasSuffix(host, "."+domain) && net.ParseIP(host) == nil) && (!c.Secure || u.Scheme == "https") &&
		(path == "" || u.Path == path || strings.HasPrefix(u.Path, path+"/"))
}

// fails reports whether a status is one of those in list, where 499 stands for all of 400 to 499, and so
// on.
func fails(list []int64, status int) bool {
	return slices.ContainsFunc(list, func(n int64) bool {
		return n == int64(status) || n%100 == 99 && n/100 == int64(status)/100
	})
}

// netError returns the name that Chromium has for an error of a request.
func (g *Routes) netError(err error) string {
	var dns *net.DNSError
	var timeout interface{ Timeout() bool }
	switch {
	case g.denied(err):
		return "net::ERR_ACCESS_DENIED"
	case errors.As(err, &dns):
		return "net::ERR_NAME_NOT_RESOLVED"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "net::ERR_CONNECTION_REFUSED"
	case errors.As(err, &timeout) && timeout.Timeout():
		return "net::ERR_TIMED_OUT"
	}
	return "net::ERR_FAILED"
}

// denied reports whether Outbound refused an address.
func (g *Routes) denied(err error) bool {
	return g.cfg.Refused != nil && errors.Is(err, g.cfg.Refused)
}

// main loads the page itself.
func (l *loader) main(target string) (*outcome, error) {
	u, err := url.Parse(target)
	switch {
	case err != nil:
		return nil, refuse(http.StatusBadRequest, "Invalid URL: %v", err)
	case strings.EqualFold(u.Scheme, "file"):
		return nil, refuse(http.StatusBadRequest, "file:// URLs are not accepted on this route. Use the /convert/html or /convert/markdown routes to render local HTML")
	case !l.c.remote() || !webURL(target):
		return nil, refuse(http.StatusForbidden, "Forbidden")
	}
	got, err := l.load(u, maxPage)
	switch {
	case errors.Is(err, errTooLarge):
		return nil, err
	case l.c.denied(err):
		return nil, refuse(http.StatusForbidden, "Forbidden")
	case err != nil:
		return nil, refuse(http.StatusBadRequest, "Chromium returned %s", l.c.netError(err))
	case fails(l.mainFails, got.status):
		return nil, refuse(http.StatusConflict, "Invalid HTTP status code from the main page: %d: %s", got.status, http.StatusText(got.status))
	}
	return got, nil
}

// text returns a page in UTF-8.
func (o *outcome) text() ([]byte, error) {
	kind, _, _ := mime.ParseMediaType(o.contentType)
	switch {
	case strings.HasPrefix(kind, "image/"):
		return fmt.Appendf(nil, `<!doctype html><body style="margin:0"><img src="%s">`, dataURL(kind, o.body)), nil
	case strings.HasPrefix(kind, "text/"), kind == "application/xhtml+xml", kind == "":
	default:
		return nil, refuse(http.StatusBadRequest, "The URL leads to a file of the type '%s', not to a web page", kind)
	}
	r, err := charset.NewReader(bytes.NewReader(o.body), o.contentType)
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "The encoding of the page is unknown")
	}
	text, err := io.ReadAll(r)
	if kind == "text/plain" {
		return fmt.Appendf(nil, "\ufeff<!doctype html><pre>%s</pre>", escapeHTML(text)), err
	}
	return append([]byte("\ufeff"), bytes.TrimPrefix(text, []byte("\ufeff"))...), err
}

// part loads a part of a page. It returns nil if that fails.
func (l *loader) part(b *bundle, target *url.URL, kind string) (*outcome, error) {
	got, err := l.load(target, b.left)
	switch {
	case errors.Is(err, errTooLarge):
		return nil, err
	case l.c.ctx.Err() != nil:
		return nil, l.c.ctx.Err()
	case err != nil:
		b.lost(kind, l.c.netError(err))
		return nil, nil
	case got.status >= 400:
		ignored := slices.ContainsFunc(l.ignored, func(domain string) bool {
			host := strings.ToLower(target.Hostname())
			domain = strings.ToLower(domain)
			return host == domain || strings.HasSuffix(host, "."+domain)
		})
		if fails(l.partFails, got.status) && !ignored {
			l.failed = append(l.failed, fmt.Sprintf("%s - %d: %s", target, got.status, http.StatusText(got.status)))
		}
		return nil, nil
	}
	return got, nil
}

// remote reports whether clients may name URLs.
func (g *Routes) remote() bool { return g.cfg.URLs && g.cfg.Outbound != nil }

// convertURL answers POST /forms/chromium/convert/url.
func convertURL(c *call) ([]doc, error) { return c.print(fromURL) }

// fromURL reads the field url.
func fromURL(c *call, r *reader, p *page) source {
	target := ""
	r.require("url", func(v string) error { target = v; return nil })
	return func() ([]byte, *url.URL, error) {
		got, err := p.loader.main(target)
		if err != nil {
			return nil, nil, err
		}
		text, err := got.text()
		return text, got.url, err
	}
}
