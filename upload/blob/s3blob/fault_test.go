package s3blob_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/filewright/filewright/internal/s3test"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/upload/blob"
	"github.com/filewright/filewright/upload/blob/blobtest"
	"github.com/filewright/filewright/upload/blob/s3blob"
)

// faulty returns the configuration for a prefix of the shared server behind a proxy. If
// fault responds to a request in place of the server, it returns true.
func faulty(t *testing.T, fault func(w http.ResponseWriter, r *http.Request) bool) s3blob.Config {
	t.Helper()
	target, err := url.Parse(where.Endpoint)
	systest.NoError(t, err)
	proxy := proxyTo(target)
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !fault(w, r) {
			proxy.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(ts.Close)
	c := config()
	c.Endpoint = ts.URL
	return c
}

func proxyTo(target *url.URL) http.Handler {
	return &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(target)
			p.Out.Host = p.In.Host // the signature covers it
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
}

func answer(w http.ResponseWriter, status int, code string) bool {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, `<?xml version="1.0" encoding="UTF-8"?><Error><Code>%s</Code><Message>Please reduce your request rate.</Message></Error>`, code)
	return true
}

// The server refuses every third request.
func TestSlowDown(t *testing.T) {
	t.Parallel()
	var n atomic.Int64
	s := open(t, faulty(t, func(w http.ResponseWriter, r *http.Request) bool {
		if n.Add(1)%3 == 0 {
			io.CopyN(io.Discard, r.Body, r.ContentLength/2) // in the middle of the body
			return answer(w, http.StatusServiceUnavailable, "SlowDown")
		}
		return false
	}))
	everything(t, s)
	if n.Load() < 10 {
		t.Errorf("%d requests only", n.Load())
	}
}

// Every third connection breaks, in the middle of the body if there is one.
func TestBrokenConnections(t *testing.T) {
	t.Parallel()
	var n atomic.Int64
	s := open(t, faulty(t, func(w http.ResponseWriter, r *http.Request) bool {
		if n.Add(1)%3 == 0 {
			io.CopyN(io.Discard, r.Body, r.ContentLength/2)
			panic(http.ErrAbortHandler)
		}
		return false
	}))
	everything(t, s)
}

// Responses break off after some of their bytes.
func TestBrokenAnswers(t *testing.T) {
	t.Parallel()
	var n atomic.Int64
	s := open(t, faulty(t, func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet || r.URL.RawQuery != "" || n.Add(1)%2 == 0 {
			return false
		}
		req, err := http.NewRequestWithContext(r.Context(), r.Method, where.Endpoint+r.URL.RequestURI(), nil)
		if err != nil {
			t.Error(err)
			return false
		}
		req.Header, req.Host = r.Header, r.Host
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Error(err)
			return false
		}
		defer resp.Body.Close()
		maps.Copy(w.Header(), resp.Header)
		w.WriteHeader(resp.StatusCode)
		io.CopyN(w, resp.Body, resp.ContentLength*2/3)
		http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}))
	everything(t, s)
}

// The store waits for a slow server.
func TestSlowServer(t *testing.T) {
	t.Parallel()
	s := open(t, faulty(t, func(w http.ResponseWriter, r *http.Request) bool {
		select {
		case <-time.After(50 * time.Millisecond):
		case <-r.Context().Done():
		}
		return false
	}))
	everything(t, s)
}

// everything uses all of a faulty store; no fault may reach the caller.
func everything(t *testing.T, s *s3blob.Store) {
	t.Helper()
	ctx := t.Context()
	large := noise(1, 17*mib)
	for key, data := range map[string][]byte{"parts/a/1": large, "parts/a/2": noise(2, 3*mib), "parts/a/3": []byte("x"), "parts/a/4": nil} {
		if err := s.Put(ctx, key, bytes.NewReader(data), int64(len(data))); err != nil {
			t.Fatalf("Put = %v", err)
		}
		if !bytes.Equal(content(t, s, key), data) {
			t.Errorf("%s is not what was put", key)
		}
	}
	if err := s.Compose(ctx, "files/a", []string{"parts/a/1", "parts/a/2", "parts/a/3", "parts/a/4"}); err != nil {
		t.Fatalf("Compose = %v", err)
	}
	whole := append(append(large[:len(large):len(large)], noise(2, 3*mib)...), 'x')
	if !bytes.Equal(content(t, s, "files/a"), whole) {
		t.Error("the object is not its parts")
	}
	n := 0
	for _, err := range s.List(ctx, "files/") {
		if err != nil {
			t.Fatalf("List = %v", err)
		}
		n++
	}
	if n != 1 {
		t.Errorf("%d objects", n)
	}
	u := begin(t, s, "files/b", 10, 1)
	if err := s.AbortDirect(ctx, u); err != nil {
		t.Errorf("AbortDirect = %v", err)
	}
	if err := s.Delete(ctx, "files/a"); err != nil {
		t.Errorf("Delete = %v", err)
	}
}

// Many objects are deleted in few requests, and one by one if the server does not
// support that.
func TestDeleteAll(t *testing.T) {
	t.Parallel()
	for _, has := range []bool{true, false} {
		t.Run(fmt.Sprint(has), func(t *testing.T) {
			t.Parallel()
			var many, single atomic.Int64
			s := open(t, faulty(t, func(w http.ResponseWriter, r *http.Request) bool {
				switch {
				case r.Method == http.MethodDelete:
					single.Add(1)
				case r.Method == http.MethodPost && r.URL.Query().Has("delete"):
					many.Add(1)
					return !has && answer(w, http.StatusNotImplemented, "NotImplemented")
				}
				return false
			}))
			var keys []string
			for i := range 40 {
				keys = append(keys, fmt.Sprint("files/", i))
				systest.NoError(t, s.Put(t.Context(), keys[i], strings.NewReader("x"), 1))
			}
			if failed := s.DeleteAll(t.Context(), keys); len(failed) > 0 {
				t.Errorf("DeleteAll = %v", failed)
			}
			for i := range s.List(t.Context(), "") {
				t.Errorf("%s is left", i.Key)
			}
			if has && (many.Load() != 1 || single.Load() != 0) || !has && single.Load() != 40 {
				t.Errorf("%d requests for many, %d for one", many.Load(), single.Load())
			}
		})
	}
}

// A permanent fault is an error that matches blob.ErrUnavailable and reveals no
// secrets.
func TestUnavailable(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(w http.ResponseWriter, r *http.Request) bool{
		"SlowDown": func(w http.ResponseWriter, r *http.Request) bool {
			return answer(w, http.StatusServiceUnavailable, "SlowDown")
		},
		"a proxy without a server": func(w http.ResponseWriter, r *http.Request) bool {
			w.WriteHeader(http.StatusBadGateway)
			fmt.Fprintf(w, "<html>cannot do %s %s with %v", r.Method, r.URL, r.Header)
			return true
		},
		"broken connections": func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, faulty(t, fault))
			for op, err := range operations(t.Context(), s) {
				if !errors.Is(err, blob.ErrUnavailable) {
					t.Errorf("%s = %v", op, err)
				}
				discreet(t, err)
			}
		})
	}
}

// A missing object is distinguished from a server that does not respond, and from a
// missing bucket.
func TestAway(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(w http.ResponseWriter) bool{
		"refused": func(w http.ResponseWriter) bool { return answer(w, http.StatusServiceUnavailable, "SlowDown") },
		"broken":  func(http.ResponseWriter) bool { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			blobtest.RunAway(t, func(t *testing.T) (blob.Store, func()) {
				var away atomic.Bool
				s := open(t, faulty(t, func(w http.ResponseWriter, _ *http.Request) bool { return away.Load() && fault(w) }))
				return s, func() { away.Store(true) }
			})
		})
	}
	c := config()
	c.Bucket = "nosuchbucket"
	s := open(t, c)
	_, oerr := s.Open(t.Context(), "files/a")
	_, serr := s.Stat(t.Context(), "files/a")
	for _, err := range []error{oerr, serr} {
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("in a missing bucket: %v", err)
		}
	}
}

// operations runs all methods of a store concurrently and returns their errors by name.
func operations(ctx context.Context, s *s3blob.Store) map[string]error {
	errs := make(map[string]error)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for op, f := range map[string]func() error{
		"Put":       func() error { return s.Put(ctx, "files/hiddenkey", strings.NewReader("abc"), 3) },
		"large Put": func() error { return s.Put(ctx, "files/hiddenkey", bytes.NewReader(make([]byte, 9*mib)), 9*mib) },
		"Open":      func() error { _, err := s.Open(ctx, "files/hiddenkey"); return err },
		"Delete":    func() error { return s.Delete(ctx, "files/hiddenkey") },
		"DeleteAll": func() error {
			failed := s.DeleteAll(ctx, []string{"files/hiddenkey", "files/hiddenkey1"})
			return cmp.Or(failed["files/hiddenkey"], failed["files/hiddenkey1"])
		},
		"Compose": func() error { return s.Compose(ctx, "files/hiddenkey", []string{"files/hiddenkey1"}) },
		"Check":   func() error { return s.Check(ctx) },
		"List": func() error {
			for _, err := range s.List(ctx, "files/hiddenkey") {
				return err
			}
			return nil
		},
		"BeginDirect": func() error { _, err := s.BeginDirect(ctx, "files/hiddenkey", 3, 1); return err },
		"DirectParts": func() error {
			_, err := s.DirectParts(ctx, blob.DirectUpload{Key: "files/hiddenkey", ID: "hiddenid"})
			return err
		},
		"CommitDirect": func() error {
			return s.CommitDirect(ctx, blob.DirectUpload{Key: "files/hiddenkey", ID: "hiddenid"}, []blob.DirectPart{{Part: blob.Part{Number: 1}, Size: 1}})
		},
		"AbortDirect": func() error { return s.AbortDirect(ctx, blob.DirectUpload{Key: "files/hiddenkey", ID: "hiddenid"}) },
		"ListDirect": func() error {
			for _, err := range s.ListDirect(ctx) {
				return err
			}
			return nil
		},
	} {
		wg.Go(func() {
			err := f()
			mu.Lock()
			defer mu.Unlock()
			errs[op] = err
		})
	}
	wg.Wait()
	return errs
}

// discreet checks that an error reveals no secrets.
func discreet(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		return
	}
	text := fmt.Sprintf("%v %+v", err, err)
	own, cerr := where.Credentials.GetWithContext(nil)
	if cerr != nil {
		t.Fatal(cerr)
	}
	for _, secret := range []string{own.SecretAccessKey, own.AccessKeyID, "hiddenkey", "hiddenid", "hiddensecret", "hiddentoken", "Signature", "Authorization"} {
		if strings.Contains(strings.ReplaceAll(text, "SignatureDoesNotMatch", ""), secret) {
			t.Errorf("the error shows %q: %v", secret, err)
		}
	}
}

func TestWrongCredentials(t *testing.T) {
	t.Parallel()
	own, err := where.Credentials.GetWithContext(nil)
	systest.NoError(t, err)
	for name, tt := range map[string]struct {
		creds *credentials.Credentials
		want  string
	}{
		"secret": {credentials.NewStaticV4(own.AccessKeyID, "hiddensecret", ""), "the secret key is wrong"},
		"key":    {credentials.NewStaticV4("hiddenkey", "hiddensecret", ""), "access key"},
		"none":   {credentials.NewStaticV4("", "", ""), "do not permit"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := config()
			c.Credentials = tt.creds
			s := open(t, c)
			if err := s.Check(t.Context()); err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), where.Bucket) {
				t.Errorf("Check = %v", err)
			}
			// A wrong key that the operator corrects costs no accepted work.
			for op, err := range operations(t.Context(), s) {
				if !errors.Is(err, blob.ErrUnavailable) || errors.Is(err, fs.ErrNotExist) {
					t.Errorf("%s = %v, want blob.ErrUnavailable", op, err)
				}
				discreet(t, err)
			}
		})
	}
}

// A full bucket is like a full disk and like an outage: nothing is wrong with the object,
// and a later request succeeds.
func TestFullBucket(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]struct {
		status int
		code   string
	}{
		"by code":   {http.StatusForbidden, "QuotaExceeded"},
		"by status": {http.StatusInsufficientStorage, "Nameless"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			full := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("Content-Type", "application/xml")
				w.WriteHeader(answer.status)
				fmt.Fprintf(w, "<Error><Code>%s</Code><Message>full</Message></Error>", answer.code)
			}))
			defer full.Close()
			c := config()
			c.Endpoint = full.URL
			err := open(t, c).Put(t.Context(), "key", strings.NewReader("content"), 7)
			if !errors.Is(err, syscall.ENOSPC) || !errors.Is(err, blob.ErrUnavailable) {
				t.Errorf("Put = %v", err)
			}
			discreet(t, err)
		})
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	systest.Check(t, open(t, config()).Check(t.Context()))
	c := config()
	c.Bucket = "no-such-bucket"
	s := open(t, c)
	if err := s.Check(t.Context()); err == nil || !strings.Contains(err.Error(), `"no-such-bucket"`) || !strings.Contains(err.Error(), "there is no such bucket") {
		t.Errorf("Check without a bucket = %v", err)
	}
	// A missing bucket must not look like a missing object.
	for op, err := range operations(t.Context(), s) {
		if !errors.Is(err, blob.ErrUnavailable) || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s without a bucket = %v, want blob.ErrUnavailable", op, err)
		}
	}
	c = config()
	c.Endpoint = "http://127.0.0.1:1"
	if err := open(t, c).Check(t.Context()); !errors.Is(err, blob.ErrUnavailable) {
		t.Errorf("Check without a server = %v", err)
	}
}

// The store gives up a server that stops responding, uses a killed server again after
// its restart, and finds all acknowledged objects.
func TestServerDies(t *testing.T) {
	t.Parallel()
	srv, err := s3test.New()
	systest.NoError(t, err)
	t.Cleanup(func() { srv.Close() })
	ctx := t.Context()
	systest.NoError(t, srv.MakeBucket(ctx, bucket))
	c := srv.Config(bucket)
	s := open(t, c)
	data := noise(1, 30*mib)
	systest.NoError(t, s.Put(ctx, "kept", bytes.NewReader(data), int64(len(data))))
	o, err := s.Open(ctx, "kept")
	systest.NoError(t, err)
	defer o.Close()
	first := make([]byte, mib)
	if _, err := o.ReadAt(first, 0); err != nil {
		t.Fatal(err)
	}

	// Killed in the middle of a large object, which therefore does not exist.
	half := 0
	err = s.Put(ctx, "lost", readerFunc(func(p []byte) (int, error) {
		if half += len(p); half > 20*mib {
			srv.Kill()
		}
		return len(p), nil
	}), 60*mib)
	if !errors.Is(err, blob.ErrUnavailable) {
		t.Errorf("Put to a server that dies = %v", err)
	}
	if _, err := o.ReadAt(first, 10*mib); !errors.Is(err, blob.ErrUnavailable) {
		t.Errorf("ReadAt from a dead server = %v", err)
	}
	systest.NoError(t, srv.Start())
	// Reading the same object continues.
	rest := make([]byte, len(data))
	if n, err := o.ReadAt(rest, 0); n != len(rest) || err != nil && err != io.EOF || !bytes.Equal(rest, data) {
		t.Errorf("ReadAt after the restart = %d, %v", n, err)
	}
	if _, err := s.Open(ctx, "lost"); err == nil {
		t.Error("an object that was not acknowledged is there, at least its beginning")
	}
	for u, err := range s.ListDirect(ctx) {
		if err != nil || u.Key != "lost" || time.Since(u.Begun) > time.Hour || time.Since(u.Begun) < -time.Hour {
			t.Errorf("left: %+v, %v", u, err)
		}
		systest.Check(t, s.AbortDirect(ctx, u))
	}
	if n := uploads(t, s); n != 0 {
		t.Errorf("%d uploads are left", n)
	}

	c.Silence = time.Second
	hasty := open(t, c)
	systest.NoError(t, srv.Freeze())
	for op, err := range operations(ctx, hasty) {
		if !errors.Is(err, blob.ErrUnavailable) {
			t.Errorf("%s on a frozen server = %v", op, err)
		}
		discreet(t, err)
	}
	systest.NoError(t, srv.Thaw())
	if !bytes.Equal(content(t, s, "kept"), data) {
		t.Error("the object has changed")
	}
}
