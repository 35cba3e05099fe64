package s3blob_test

import (
	"bytes"
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/upload/blob"
	"github.com/filewright/filewright/upload/blob/s3blob"
)

const mib = 1 << 20

func noise(seed, n int) []byte {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)}).Read(b)
	return b
}

// send sends a request without the store.
func send(t testing.TB, method string, u *url.URL, body []byte, h http.Header) (int, http.Header, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, u.String(), bytes.NewReader(body))
	systest.NoError(t, err)
	maps.Copy(req.Header, h)
	resp, b := systest.Send(t, req)
	return resp.StatusCode, resp.Header, b
}

func content(t testing.TB, s blob.Store, key string) []byte {
	t.Helper()
	o, err := s.Open(t.Context(), key)
	systest.NoError(t, err)
	defer o.Close()
	b, err := io.ReadAll(blob.NewReader(o))
	systest.NoError(t, err)
	return b
}

// uploads returns the number of incomplete multipart uploads.
func uploads(t testing.TB, s *s3blob.Store) (n int) {
	t.Helper()
	for _, err := range s.ListDirect(t.Context()) {
		systest.NoError(t, err)
		n++
	}
	return n
}

func begin(t testing.TB, s *s3blob.Store, key string, size int64, parts int) blob.DirectUpload {
	t.Helper()
	u, err := s.BeginDirect(t.Context(), key, size, parts)
	systest.NoError(t, err)
	return u
}

func presign(t testing.TB, s *s3blob.Store, u blob.DirectUpload, n int, size int64, ttl time.Duration) *url.URL {
	t.Helper()
	link, err := s.PresignPart(t.Context(), u, n, size, ttl)
	systest.NoError(t, err)
	return link
}

func TestDirect(t *testing.T) {
	t.Parallel()
	s := open(t, config())
	data := noise(1, 12*mib+5)
	u := begin(t, s, "files/a", int64(len(data)), 2)
	cut := 6*mib + 3
	for n, part := range map[int][]byte{2: data[cut:], 1: noise(2, 100)} {
		if code, h, b := send(t, http.MethodPut, presign(t, s, u, n, -1, time.Hour), part, nil); code != 200 || h.Get("ETag") != fmt.Sprintf("%q", fmt.Sprintf("%x", md5.Sum(part))) {
			t.Fatalf("PUT of part %d: %d, ETag %s: %s", n, code, h.Get("ETag"), b)
		}
	}
	parts, err := s.DirectParts(t.Context(), u)
	if err != nil || len(parts) != 2 {
		t.Fatal(parts, err)
	}
	if err := s.CommitDirect(t.Context(), u, parts); !errors.Is(err, blob.ErrPartSize) {
		t.Errorf("CommitDirect with a part of 100 bytes = %v", err)
	}
	stale := parts[0]
	// The last body counts.
	if code, _, b := send(t, http.MethodPut, presign(t, s, u, 1, -1, time.Hour), data[:cut], nil); code != 200 {
		t.Fatalf("%d: %s", code, b)
	}
	if parts, err = s.DirectParts(t.Context(), u); err != nil || len(parts) != 2 || parts[0].Size != int64(cut) || parts[1].Number != 2 {
		t.Fatal(parts, err)
	}
	stale.Size = parts[0].Size
	if err := s.CommitDirect(t.Context(), u, []blob.DirectPart{stale, parts[1]}); !errors.Is(err, blob.ErrPartETag) {
		t.Errorf("CommitDirect with the ETag of what was there before = %v", err)
	}
	// MinIO lists uploads only for the complete name of an object, and removes
	// leftovers itself.
	if n := uploads(t, s); n != 1 && (n != 0 || *bucketURL == "") {
		t.Errorf("%d uploads are listed, want 1", n)
	}
	if _, err := s.Open(t.Context(), "files/a"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("before the end, Open = %v", err)
	}
	late := presign(t, s, u, 1, -1, time.Hour)
	for range 2 { // the response to the first may be lost
		systest.NoError(t, s.CommitDirect(t.Context(), u, parts))
		if !bytes.Equal(content(t, s, "files/a"), data) {
			t.Fatal("the object is not what was sent")
		}
	}
	if n := uploads(t, s); n != 0 {
		t.Errorf("%d uploads are listed after the end", n)
	}
	if code, _, _ := send(t, http.MethodPut, late, []byte("late"), nil); code != http.StatusNotFound {
		t.Errorf("PUT after the end = %d", code)
	}
	if _, err := s.DirectParts(t.Context(), u); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("DirectParts after the end = %v", err)
	}
	if !bytes.Equal(content(t, s, "files/a"), data) {
		t.Error("the object has changed")
	}
}

func TestDirectAbort(t *testing.T) {
	t.Parallel()
	s := open(t, config())
	u := begin(t, s, "files/a", 10, 1)
	link := presign(t, s, u, 1, 10, time.Hour)
	if code, _, b := send(t, http.MethodPut, link, []byte("0123456789"), nil); code != 200 {
		t.Fatalf("%d: %s", code, b)
	}
	for range 2 {
		systest.NoError(t, s.AbortDirect(t.Context(), u))
	}
	if code, _, _ := send(t, http.MethodPut, link, []byte("0123456789"), nil); code != http.StatusNotFound {
		t.Errorf("PUT after the end = %d", code)
	}
	if err := s.CommitDirect(t.Context(), u, []blob.DirectPart{{Part: blob.Part{Number: 1, ETag: strings.Repeat("0", 32)}, Size: 10}}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("CommitDirect after the end = %v", err)
	}
	if n := uploads(t, s); n != 0 {
		t.Errorf("%d uploads are listed", n)
	}
}

func TestDirectUnsupported(t *testing.T) {
	t.Parallel()
	s := open(t, config())
	for _, tt := range []struct {
		size  int64
		parts int
		ok    bool
	}{
		{0, 1, false}, {1, 1, true}, {5 << 30, 1, true}, {5<<30 + 1, 1, false}, {10*mib - 1, 2, false}, {10 * mib, 2, true},
		{1 << 40, 10_001, false}, {10, 0, false}, {-1, 1, false}, {5 << 40, 1000, false},
	} {
		u, err := s.BeginDirect(t.Context(), "files/k", tt.size, tt.parts)
		if tt.ok {
			if err == nil {
				err = s.AbortDirect(t.Context(), u)
			}
			if err != nil {
				t.Errorf("%+v: %v", tt, err)
			}
		} else if !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%+v: %v", tt, err)
		}
	}
	c := config()
	c.Private = true
	private := open(t, c)
	if _, err := private.BeginDirect(t.Context(), "files/k", 1, 1); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("BeginDirect in a private bucket = %v", err)
	}
	if _, err := private.Link(t.Context(), "files/k", blob.LinkOptions{TTL: time.Minute}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("Link to a private bucket = %v", err)
	}
}

// A URL is valid for one part of one upload, by PUT, for a limited time.
func TestPresignedMisuse(t *testing.T) {
	t.Parallel()
	s := open(t, config())
	u := begin(t, s, "files/a", 10, 1)
	other := begin(t, s, "files/b", 10, 1)
	ten := []byte("0123456789")
	good := presign(t, s, u, 1, 10, time.Hour)
	with := func(change func(u *url.URL, q url.Values)) *url.URL {
		c := *good
		q := c.Query()
		change(&c, q)
		c.RawQuery = q.Encode()
		return &c
	}
	for name, tt := range map[string]struct {
		method string
		u      *url.URL
		body   []byte
	}{
		"another part":   {"PUT", with(func(_ *url.URL, q url.Values) { q.Set("partNumber", "2") }), ten},
		"another upload": {"PUT", with(func(_ *url.URL, q url.Values) { q.Set("uploadId", other.ID) }), ten},
		"another object": {"PUT", with(func(u *url.URL, _ url.Values) { u.Path = strings.Replace(u.Path, "files/a", "files/b", 1) }), ten},
		"as an object": {"PUT", with(func(_ *url.URL, q url.Values) {
			q.Del("partNumber")
			q.Del("uploadId")
		}), ten},
		"another method": {"DELETE", good, nil},
		"reading":        {"GET", good, nil},
		"more time":      {"PUT", with(func(_ *url.URL, q url.Values) { q.Set("X-Amz-Expires", "86400") }), ten},
		"more bytes":     {"PUT", good, append(ten, 'x')},
		"fewer bytes":    {"PUT", good, ten[:9]},
		"no signature":   {"PUT", with(func(_ *url.URL, q url.Values) { q.Del("X-Amz-Signature") }), ten},
	} {
		if code, _, b := send(t, tt.method, tt.u, tt.body, nil); code < 400 || code >= 500 {
			t.Errorf("%s: %d: %s", name, code, b)
		}
	}
	for _, u := range []blob.DirectUpload{u, other} {
		if parts, err := s.DirectParts(t.Context(), u); err != nil || len(parts) != 0 {
			t.Errorf("after that, parts are %v, %v", parts, err)
		}
	}
	short := presign(t, s, u, 1, 10, time.Second)
	systest.Until(t, "the URL for a second expires", func() bool {
		code, _, b := send(t, "PUT", short, ten, nil)
		if code != http.StatusOK && code != http.StatusForbidden {
			t.Fatalf("a URL for a second: %d: %s", code, b)
		}
		return code == http.StatusForbidden
	})
	if code, _, b := send(t, "PUT", good, ten, nil); code != 200 {
		t.Errorf("the URL itself: %d: %s", code, b)
	}
}

func TestLink(t *testing.T) {
	t.Parallel()
	s := open(t, config())
	data := noise(3, 300_000)
	systest.NoError(t, s.Put(t.Context(), "files/a", bytes.NewReader(data), int64(len(data))))
	disposition := `attachment; filename="a b.pdf"; filename*=UTF-8''%C3%A4.pdf`
	link, err := s.Link(t.Context(), "files/a", blob.LinkOptions{TTL: time.Minute, ContentType: "application/pdf", ContentDisposition: disposition})
	systest.NoError(t, err)
	code, h, b := send(t, "GET", link, nil, nil)
	if code != 200 || !bytes.Equal(b, data) || h.Get("Content-Type") != "application/pdf" || h.Get("Content-Disposition") != disposition {
		t.Errorf("GET = %d, %v, %d bytes", code, h, len(b))
	}
	code, h, b = send(t, "GET", link, nil, http.Header{"Range": {"bytes=100-199"}})
	if code != http.StatusPartialContent || !bytes.Equal(b, data[100:200]) {
		t.Errorf("GET of a range = %d, %v, %d bytes", code, h, len(b))
	}
	for _, method := range []string{"PUT", "DELETE"} {
		if code, _, _ := send(t, method, link, nil, nil); code != http.StatusForbidden {
			t.Errorf("%s = %d", method, code)
		}
	}
}

// Objects larger than a part are sent in several parts, from any source.
func TestLarge(t *testing.T) {
	t.Parallel()
	data := noise(4, 21*mib+13)
	path := filepath.Join(t.TempDir(), "f")
	systest.NoError(t, os.WriteFile(path, data, 0o600))
	ctx := t.Context()
	for _, memory := range []int64{0, 9 * mib, 1} {
		t.Run(fmt.Sprint("memory ", memory), func(t *testing.T) {
			t.Parallel()
			c := config()
			c.Memory = memory
			s := open(t, c)
			before := s.MemoryLeft()
			r := bytes.NewReader(append(data[:len(data):len(data)], "more"...))
			systest.NoError(t, s.Put(ctx, "k", struct{ io.Reader }{r}, int64(len(data))))
			if !bytes.Equal(content(t, s, "k"), data) || r.Len() != 4 {
				t.Errorf("the object is not what was put; %d bytes are left", r.Len())
			}
			err := s.Put(ctx, "k", bytes.NewReader(data[:len(data)-1]), int64(len(data)))
			if !errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, blob.ErrUnavailable) {
				t.Errorf("Put of too little = %v", err)
			}
			cancelled, cancel := context.WithCancel(ctx)
			err = s.Put(cancelled, "k", io.MultiReader(bytes.NewReader(data[:10*mib]), readerFunc(func(p []byte) (int, error) {
				cancel()
				return len(p), nil
			})), 1<<30)
			if !errors.Is(err, context.Canceled) {
				t.Errorf("Put that is cancelled = %v", err)
			}
			systest.NoError(t, s.PutFile(ctx, "f", path))
			for _, k := range []string{"k", "f"} {
				if !bytes.Equal(content(t, s, k), data) {
					t.Errorf("%s is not what was put", k)
				}
			}
			if n := uploads(t, s); n != 0 {
				t.Errorf("%d uploads are left", n)
			}
			if left := s.MemoryLeft(); left != before {
				t.Errorf("%d bytes of memory are missing", before-left)
			}
		})
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

func TestComposeLarge(t *testing.T) {
	t.Parallel()
	s := open(t, config())
	var all []byte
	var from []string
	for i, n := range []int{3 * mib, 9 * mib, 10, 0, 12 * mib, 2 * mib, 5 * mib, 1} {
		k := fmt.Sprint("parts/u/", i+1)
		data := noise(i, n)
		systest.NoError(t, s.Put(t.Context(), k, bytes.NewReader(data), int64(n)))
		all, from = append(all, data...), append(from, k)
	}
	if err := s.Compose(t.Context(), "whole", append(from[:len(from):len(from)], "parts/u/99")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Compose of something that is not there = %v", err)
	}
	systest.NoError(t, s.Compose(t.Context(), "whole", from))
	if !bytes.Equal(content(t, s, "whole"), all) {
		t.Error("the object is not its parts")
	}
	for i, err := range s.List(t.Context(), "") {
		if err != nil || i.Key != "whole" {
			t.Errorf("left: %v, %v", i, err)
		}
	}
	if n := uploads(t, s); n != 0 {
		t.Errorf("%d uploads are left", n)
	}
}

// An object that is too large for one copy is moved in several: nothing of it passes
// through this process.
func TestMoveLarge(t *testing.T) {
	t.Parallel()
	var copies, puts atomic.Int64
	s := open(t, faulty(t, func(_ http.ResponseWriter, r *http.Request) bool {
		switch {
		case r.Header.Get("X-Amz-Copy-Source") != "":
			copies.Add(1)
		case r.Method == http.MethodPut:
			puts.Add(1)
		}
		return false
	}))
	s.SetMaxCopy(16 * mib) // instead of 512 MiB
	data := noise(7, 45*mib+1)
	systest.NoError(t, s.Put(t.Context(), "files/a", bytes.NewReader(data), int64(len(data))))
	const to = "quarantine/20260102T030405Z/files/a"
	puts.Store(0)
	systest.NoError(t, blob.Move(t.Context(), s, "files/a", to))
	if c, p := copies.Load(), puts.Load(); c != 3 || p != 0 {
		t.Errorf("%d copies and %d other writes, want 3 and none", c, p)
	}
	if !bytes.Equal(content(t, s, to), data) {
		t.Error("the content has changed")
	}
	if _, err := blob.Stat(t.Context(), s, "files/a"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the old object: %v", err)
	}
	if err := blob.Move(t.Context(), s, to, "files/a"); err != nil { // back
		t.Fatal(err)
	}
	if !bytes.Equal(content(t, s, "files/a"), data) {
		t.Error("the restored content has changed")
	}
	if n := uploads(t, s); n != 0 {
		t.Errorf("%d uploads are left", n)
	}
}

// An object that is replaced while it is read must not yield a mixture.
func TestReplacedWhileRead(t *testing.T) {
	t.Parallel()
	s := open(t, config())
	old, replaced := noise(5, 3*mib), noise(6, 3*mib)
	put := func(b []byte) {
		t.Helper()
		systest.NoError(t, s.Put(t.Context(), "k", bytes.NewReader(b), int64(len(b))))
	}
	put(old)
	o, err := s.Open(t.Context(), "k")
	systest.NoError(t, err)
	defer o.Close()
	put(replaced)
	p := make([]byte, mib)
	if _, err := o.ReadAt(p, mib); err == nil || errors.Is(err, blob.ErrUnavailable) {
		t.Errorf("reading what was replaced: %v", err)
	}
	systest.NoError(t, s.Delete(t.Context(), "k"))
	if _, err := o.ReadAt(p, mib); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("reading what was deleted: %v", err)
	}
	o.Close()
	if _, err := o.ReadAt(p, 0); err == nil {
		t.Error("reading goes on after Close")
	}
}

// URLs for clients lead to the public endpoint. This process need not reach it, even if
// the region has to be queried.
func TestPublicEndpoint(t *testing.T) {
	t.Parallel()
	c := config()
	c.Region, c.PublicEndpoint, c.Addressing = "", "http://public.invalid:9000", s3blob.PathStyle
	s := open(t, c)
	origin, err := s.Origin(t.Context())
	if origin != c.PublicEndpoint || err != nil {
		t.Errorf("Origin = %q, %v, want %q", origin, err, c.PublicEndpoint)
	}
	link, err := s.Link(t.Context(), "files/a", blob.LinkOptions{TTL: time.Minute})
	if err != nil || !strings.HasPrefix(link.String(), origin+"/") {
		t.Errorf("Link = %v, %v", link, err)
	}
	u, err := s.BeginDirect(t.Context(), "files/a", 10, 1)
	systest.NoError(t, err)
	part := presign(t, s, u, 1, 10, time.Minute)
	if !strings.HasPrefix(part.String(), origin+"/") {
		t.Errorf("PresignPart = %v", part)
	}
	if *bucketURL == "" { // other servers may insist on their own host name
		at, err := url.Parse(where.Endpoint)
		systest.NoError(t, err)
		req, err := http.NewRequestWithContext(t.Context(), "PUT", at.Scheme+"://"+at.Host+part.RequestURI(), strings.NewReader("0123456789"))
		systest.NoError(t, err)
		req.Host = part.Host
		resp, err := http.DefaultClient.Do(req)
		systest.NoError(t, err)
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Errorf("PUT = %d", resp.StatusCode)
		}
	}
	c.Private = true
	if origin, err := open(t, c).Origin(t.Context()); origin != "" || err != nil {
		t.Errorf("Origin of a private bucket = %q, %v", origin, err)
	}
}
