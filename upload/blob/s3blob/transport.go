package s3blob

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// transport returns a transport whose connections fail when the server is silent.
func transport(silence time.Duration) *http.Transport {
	dial := net.Dialer{Timeout: 10 * time.Second}
	return &http.Transport{
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := dial.DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return &impatientConn{c, silence}, nil
		},
		MaxIdleConnsPerHost:   64,
		IdleConnTimeout:       silence / 2,
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: 10 * time.Second,
		DisableCompression:    true, // objects must arrive unchanged
	}
}

// An impatientConn fails if nothing can be read or written for a while.
type impatientConn struct {
	net.Conn
	silence time.Duration
}

func (c *impatientConn) Read(b []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(c.silence)); err != nil {
		return 0, err
	}
	return c.Conn.Read(b)
}

func (c *impatientConn) Write(b []byte) (int, error) {
	// While a body is being sent, the server sends nothing.
	if err := c.SetDeadline(time.Now().Add(c.silence)); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

// maxSilences is how many timeouts of a silent server one call of a [Store] accepts.
const maxSilences = 2

// A silenceCount counts the timeouts of a call. The client library repeats requests
// regardless of the time that they have taken.
type silenceCount struct{ atomic.Int32 }

type silenceCountKey struct{}

// countSilences returns the context of a new call, with its own count.
func countSilences(ctx context.Context) context.Context {
	return context.WithValue(ctx, silenceCountKey{}, new(silenceCount))
}

// silent counts err if it is a timeout, and reports whether the call must be given up.
func silent(ctx context.Context, err error) (enough bool) {
	p, ok := ctx.Value(silenceCountKey{}).(*silenceCount)
	if !ok {
		return false
	}
	var timeout interface{ Timeout() bool }
	if err != nil && ctx.Err() == nil && errors.As(err, &timeout) && timeout.Timeout() {
		p.Add(1)
	}
	return p.Load() >= maxSilences
}

var errSilent = errors.New("the server does not respond")

// A guarded transport gives up calls in which the server is silent. It also stops
// reading the body of a request once there is a response. http.Transport may continue
// to read it for a moment. At that time the client library may already read it from the
// start for a retry, or its owner may reuse it.
type guarded struct {
	http.RoundTripper
	observer Observer // may be nil
}

func (g guarded) RoundTrip(req *http.Request) (*http.Response, error) {
	if silent(req.Context(), nil) {
		if req.Body != nil {
			req.Body.Close()
		}
		return nil, errSilent
	}
	started := time.Now()
	resp, err := g.roundTrip(req)
	if g.observer != nil && req.Context().Err() == nil {
		status := 0
		if resp != nil {
			status = resp.StatusCode
		}
		g.observer.Observe(req.Method, status, time.Since(started))
	}
	silent(req.Context(), err)
	return resp, err
}

func (g guarded) roundTrip(req *http.Request) (*http.Response, error) {
	if req.Body == nil || req.Body == http.NoBody {
		return g.RoundTripper.RoundTrip(req)
	}
	b := &guardedBody{ReadCloser: req.Body}
	r := *req
	r.Body = b
	defer b.stop()
	return g.RoundTripper.RoundTrip(&r)
}

type guardedBody struct {
	mu sync.Mutex
	io.ReadCloser
	stopped bool
}

func (b *guardedBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped {
		return 0, io.EOF
	}
	return b.ReadCloser.Read(p)
}

func (b *guardedBody) stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stopped = true
}
