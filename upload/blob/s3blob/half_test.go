package s3blob_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/upload/blob"
	"github.com/filewright/filewright/upload/blob/s3blob"
)

// An end is a proxy that simulates the death of a store's process in the middle of the
// first large body. The server gets the start of that body, and afterwards no request
// or response passes.
type end struct {
	t          *testing.T
	to         string // the server
	proxy      http.Handler
	least      int64 // minimum size of the body in bytes
	near, came atomic.Bool
	stop       context.CancelFunc
}

func (e *end) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPut && r.ContentLength >= e.least && !e.near.Swap(true) {
		if err := e.sendHalf(r); err != nil {
			e.t.Errorf("half of a body: %v", err)
		}
		e.came.Store(true)
		e.stop()
	}
	if e.came.Load() {
		panic(http.ErrAbortHandler)
	}
	e.proxy.ServeHTTP(w, r)
}

// sendHalf sends half of a body and returns when the server has processed it.
func (e *end) sendHalf(r *http.Request) error {
	c, err := net.Dial("tcp", e.to)
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Minute))
	body, err := io.ReadAll(io.LimitReader(r.Body, r.ContentLength/2))
	if err != nil {
		return err
	}
	half := r.Clone(r.Context())
	half.Body = io.NopCloser(bytes.NewReader(body))
	buf := bufio.NewWriter(c)
	if err := half.Write(buf); err == nil {
		return errors.New("it was whole")
	}
	if err := errors.Join(buf.Flush(), c.(*net.TCPConn).CloseWrite()); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, c)
	return err
}

// A process that dies while it sends an object leaves no object, and no half object in
// place of another. Some servers keep a partial body; only a body with a declared
// checksum, or a part of a multipart upload, is safe.
func TestHalfOfABody(t *testing.T) {
	t.Parallel()
	target, err := url.Parse(where.Endpoint)
	systest.NoError(t, err)
	const size = 300 << 10
	data := noise(7, size)
	path := filepath.Join(t.TempDir(), "file")
	systest.NoError(t, os.WriteFile(path, data, 0o600))
	put := func(ctx context.Context, s *s3blob.Store) error {
		return s.Put(ctx, "new", bytes.NewReader(data), size)
	}
	putFile := func(ctx context.Context, s *s3blob.Store) error { return s.PutFile(ctx, "new", path) }
	compose := func(ctx context.Context, s *s3blob.Store) error {
		return s.Compose(ctx, "new", []string{"parts/a/1", "parts/a/2"})
	}
	for name, do := range map[string]func(context.Context, *s3blob.Store) error{"Put": put, "PutFile": putFile, "Compose": compose} {
		for how, tt := range map[string]struct {
			tls    bool
			memory int64
		}{"": {}, " without memory": {memory: 1}, " by TLS": {tls: true}, " by TLS without memory": {true, 1}} {
			t.Run(name+how, func(t *testing.T) {
				t.Parallel()
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				e := &end{t: t, to: target.Host, proxy: proxyTo(target), least: size / 2, stop: stop}
				c := config()
				healthy := open(t, c)
				var ts *httptest.Server
				if tt.tls {
					ts = httptest.NewTLSServer(e)
					c.Transport = &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
				} else {
					ts = httptest.NewServer(e)
				}
				t.Cleanup(ts.Close)
				c.Endpoint, c.Memory = ts.URL, tt.memory
				for key, content := range map[string][]byte{"parts/a/1": data[:100_000], "parts/a/2": data[100_000:]} {
					systest.NoError(t, healthy.Put(t.Context(), key, bytes.NewReader(content), int64(len(content))))
				}
				if err := do(ctx, open(t, c)); err == nil || !e.came.Load() {
					t.Fatalf("error is %v, ended: %t", err, e.came.Load())
				}
				if i, err := blob.Stat(t.Context(), healthy, "new"); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("an object is there: %+v, %v", i, err)
				}
				// The next process repeats it.
				systest.NoError(t, do(t.Context(), healthy))
				if !bytes.Equal(content(t, healthy, "new"), data) {
					t.Error("the object is not what was stored")
				}
			})
		}
	}
}
