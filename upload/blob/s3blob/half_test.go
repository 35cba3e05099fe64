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

	"github.com/filewright/filewright/upload/blob"
	"github.com/filewright/filewright/upload/blob/s3blob"
)

// An end is where the process of a store ends: in the middle of the first large
// body that it sends, which the server gets the beginning of. Nobody sends or hears
// anything after it.
type end struct {
	t          *testing.T
	to         string // the server
	proxy      http.Handler
	least      int64 // bytes of the body
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

// sendHalf returns once the server has done with what it has got.
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

// Whoever dies while he sends an object leaves none, nor half of one in the place
// of another. Some servers keep what they have got of a body that breaks off, and
// only one whose sum was announced, or that is a part of something, is safe.
func TestHalfOfABody(t *testing.T) {
	t.Parallel()
	target, err := url.Parse(where.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	const size = 300 << 10
	data := noise(7, size)
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
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
					if err := healthy.Put(t.Context(), key, bytes.NewReader(content), int64(len(content))); err != nil {
						t.Fatal(err)
					}
				}
				if err := do(ctx, open(t, c)); err == nil || !e.came.Load() {
					t.Fatalf("error is %v, ended: %t", err, e.came.Load())
				}
				if i, err := blob.Stat(t.Context(), healthy, "new"); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("an object is there: %+v, %v", i, err)
				}
				// Its successor does it once more.
				if err := do(t.Context(), healthy); err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(content(t, healthy, "new"), data) {
					t.Error("the object is not what was stored")
				}
			})
		}
	}
}
