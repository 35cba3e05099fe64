package remote

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/netguard"
)

// A fetcher reads from URLs.
type fetcher struct {
	transport http.RoundTripper
	allow     []netip.Prefix
	redirects int           // most redirects
	header    time.Duration // until the header of each response
	rate      int64         // least bytes per second over stall; 0: any progress
	stall     time.Duration // also the longest pause
}

// open requests a URL and follows redirects. It returns the response and its URL. cancel ends ctx; it
// is called with the failure if the server is too slow.
func (f *fetcher) open(ctx context.Context, cancel context.CancelCauseFunc, text string, headers map[string]string) (*http.Response, *url.URL, error) {
	u, err := netguard.Check(text, f.allow)
	if err != nil {
		return nil, nil, refused("the URL", err)
	}
	for hop := 0; ; hop++ {
		resp, err := f.request(ctx, cancel, u, headers)
		if err != nil {
			return nil, nil, err
		}
		switch resp.StatusCode {
		case http.StatusOK:
			if e := resp.Header.Get("Content-Encoding"); encoded(e) {
				resp.Body.Close()
				return nil, nil, failed(codeEncoding, "the server of the URL compressed its response with %q although that was not requested", clean(e))
			}
			return resp, u, nil
		case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
			resp.Body.Close()
		default:
			resp.Body.Close()
			return nil, nil, failed(codeStatus, "the server of the URL responded with %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
		}
		if hop == f.redirects {
			return nil, nil, failed(codeRedirect, "the URL has more than %d redirects", f.redirects)
		}
		to, err := u.Parse(resp.Header.Get("Location"))
		if err != nil || resp.Header.Get("Location") == "" {
			return nil, nil, failed(codeRedirect, "the server of the URL redirects to an invalid URL")
		}
		next, err := netguard.Check(to.String(), f.allow)
		if err != nil {
			return nil, nil, refused("a URL that the server redirects to", err)
		}
		sameOrigin, err := netguard.Redirect(u, next)
		if err != nil {
			return nil, nil, failed(codeRedirect, "%v", err)
		}
		if !sameOrigin {
			headers = nil
		}
		u = next
	}
}

// encoded reports whether a Content-Encoding changes the bytes. Buckets keep "aws-chunked" as a trace
// of how an object was uploaded.
func encoded(list string) bool {
	for e := range strings.SplitSeq(list, ",") {
		if e = strings.ToLower(strings.TrimSpace(e)); e != "" && e != "identity" && e != "aws-chunked" {
			return true
		}
	}
	return false
}

// request sends one request. The response must start within f.header.
func (f *fetcher) request(ctx context.Context, cancel context.CancelCauseFunc, u *url.URL, headers map[string]string) (*http.Response, error) {
	late := time.AfterFunc(f.header, func() {
		cancel(failed(codeTimeout, "the server of the URL did not respond within %s", f.header))
	})
	defer late.Stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, failed("invalid_request", "the URL is not valid")
	}
	req.URL.Fragment = ""
	req.Header.Set("User-Agent", "Filewright-Import")
	req.Header.Set("Accept", "*/*")
	setHeaders(req.Header, headers)
	req.Header.Set("Accept-Encoding", "identity")
	resp, err := f.transport.RoundTrip(req)
	if err == nil {
		return resp, nil
	}
	return nil, unreachable(ctx, err)
}

// unreachable returns the failure for an error of a request.
func unreachable(ctx context.Context, err error) error {
	var why *failure
	switch cause := context.Cause(ctx); {
	case errors.As(cause, &why):
		return why
	case cause != nil:
		return cause
	case errors.Is(err, netguard.ErrNotPublic):
		return failed(codeAddress, "the URL leads to an address that is not public")
	}
	return failed(codeUnreachable, "cannot read the URL: %s", netguard.Reason(err, "no response in time"))
}

// clean makes a text of a foreign server harmless in messages.
func clean(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return -1
		}
		return r
	}, s)
	return s[:min(len(s), 40)]
}

// A pacedReader fails if its bytes arrive too slowly. Only the time spent waiting for them counts.
type pacedReader struct {
	r      io.Reader
	stall  time.Duration
	least  int64 // bytes in each period of stall
	cancel context.CancelCauseFunc
	err    error // other than io.EOF

	mu     sync.Mutex
	timer  *time.Timer
	got    int64         // bytes in this period
	waited time.Duration // in this period, before the current Read
}

// newPacedReader returns a reader that ends the request of r with cancel if r is too slow.
func (f *fetcher) newPacedReader(r io.Reader, cancel context.CancelCauseFunc) *pacedReader {
	least := max(1, f.rate*int64(f.stall/time.Millisecond)/1000)
	p := &pacedReader{r: r, stall: f.stall, least: least, cancel: cancel}
	p.timer = time.AfterFunc(time.Hour, p.expired)
	p.timer.Stop()
	return p
}

// expired is called when a Read has waited until the end of the period.
func (p *pacedReader) expired() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.got < p.least {
		p.cancel(failed(codeTimeout, "the server of the URL is too slow: it sent %d bytes in %s", p.got, p.stall))
		return
	}
	p.got, p.waited = 0, 0
	p.timer.Reset(p.stall)
}

// Read implements io.Reader.
func (p *pacedReader) Read(b []byte) (int, error) {
	p.mu.Lock()
	p.timer.Reset(p.stall - p.waited)
	p.mu.Unlock()
	start := time.Now()
	n, err := p.r.Read(b)
	took := time.Since(start)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer.Stop()
	p.got += int64(n)
	p.waited = min(p.waited+took, p.stall-time.Millisecond)
	if p.got >= p.least {
		p.got, p.waited = 0, 0
	}
	if err != nil && err != io.EOF {
		p.err = err
	}
	return n, err
}

// nameOf returns the name of an imported file: the given name, or else that of the response, or else
// that of one of the URLs. A name without a known extension gets that of the content type.
func nameOf(given string, header http.Header, urls ...*url.URL) string {
	if strings.TrimSpace(given) != "" {
		return given
	}
	name := ""
	if _, params, err := mime.ParseMediaType(header.Get("Content-Disposition")); err == nil {
		name = params["filename"]
	}
	if strings.TrimSpace(name) == "" {
		for _, u := range urls {
			base := path.Base(u.Path)
			if base == "." || base == "/" {
				continue
			}
			if name == "" || !hasFormat(name) && hasFormat(base) {
				name = base
			}
		}
	}
	if !hasFormat(name) {
		if f := formatOf(header.Get("Content-Type")); f != "" {
			if strings.TrimSpace(name) == "" {
				name = "file"
			}
			name += "." + string(f)
		}
	}
	return name
}

func hasFormat(name string) bool {
	return strings.Contains(name, ".") && format.Parse(name).Known()
}

// formatOf returns the only format of a content type, or "".
func formatOf(contentType string) (found format.Format) {
	mt, _, err := mime.ParseMediaType(contentType)
	switch {
	case err != nil, mt == "application/octet-stream":
		return ""
	case mt == "text/plain":
		return format.TXT
	}
	for f := range format.Known() {
		if f.MIME() == mt {
			if found != "" {
				return ""
			}
			found = f
		}
	}
	return found
}

// contentType returns the content type of an imported file: that of the response unless it says
// nothing.
func contentType(header http.Header, name string) string {
	mt, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil || mt == "application/octet-stream" || mt == "binary/octet-stream" {
		return format.Parse(name).MIME()
	}
	return header.Get("Content-Type")
}
