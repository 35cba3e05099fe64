package upload_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/upload"
	"github.com/filewright/filewright/upload/blob/memblob"
)

func TestStartLimits(t *testing.T) {
	t.Parallel()
	e := newEnv(t, memblob.New(), upload.Options{MaxSize: 100 << 30, MaxParts: 50})
	for _, tt := range []struct {
		name  string
		size  int64
		parts int
		kind  error // nil: no error
	}{
		{"empty", 0, 1, nil},
		{"no parts means one", 10, 0, nil},
		{"largest part", upload.MaxPart, 1, nil},
		{"above the largest part", upload.MaxPart + 1, 1, upload.ErrInvalid},
		{"above the largest part, default", upload.MaxPart + 1, 0, upload.ErrInvalid},
		{"two parts", upload.MaxPart + 1, 2, nil},
		{"parts too large", 2*upload.MaxPart + 1, 2, upload.ErrInvalid},
		{"most parts", 10, 50, nil},
		{"too many parts", 10, 51, upload.ErrInvalid},
		{"negative size", -1, 1, upload.ErrInvalid},
		{"negative parts", 1, -1, upload.ErrInvalid},
		{"largest file", 100 << 30, 20, nil},
		{"file too large", 100<<30 + 1, 50, upload.ErrTooLarge},
		{"overflow", 1<<63 - 1, 50, upload.ErrTooLarge},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f, urls, err := e.Start(t.Context(), upload.Request{Name: "a", Size: tt.size, Parts: tt.parts})
			if tt.kind != nil {
				wantKind(t, "Start", err, tt.kind)
				return
			}
			if err != nil || len(urls) != max(1, tt.parts) || f.Parts != max(1, tt.parts) {
				t.Errorf("Start = %+v, %d URLs, %v", f, len(urls), err)
			}
		})
	}
}

func TestSignature(t *testing.T) {
	t.Parallel()
	secrets := [][]byte{bytes.Repeat([]byte("a"), 32), bytes.Repeat([]byte("b"), 32), bytes.Repeat([]byte("c"), 32)}
	store, blobs := new(upload.MemStore), memblob.New()
	e := newEnv(t, blobs, upload.Options{Store: store, Secrets: secrets[1:2], URLPath: "/x/y/"})
	f, urls := e.start(10, 2)
	_, others := e.start(10, 2)
	good := urls[0]
	if !strings.HasPrefix(good.String(), "/x/y/"+f.Key+"/"+f.UploadID+"/1?") {
		t.Errorf("URL is %s", good)
	}
	set := func(key, value string) *url.URL {
		u, q := *good, good.Query()
		if value == "" {
			q.Del(key)
		} else {
			q.Set(key, value)
		}
		u.RawQuery = q.Encode()
		return &u
	}
	path := func(p string) *url.URL {
		u := *good
		u.Path = p
		return &u
	}
	sig := good.Query().Get("signature")
	for name, tt := range map[string]struct {
		method string
		u      *url.URL
	}{
		"GET":                     {"GET", good},
		"POST":                    {"POST", good},
		"lower case":              {"put", good},
		"other part":              {"PUT", path(urls[1].Path)},
		"other session":           {"PUT", path(others[0].Path)},
		"part 01":                 {"PUT", path(strings.TrimSuffix(good.Path, "1") + "01")},
		"part 0":                  {"PUT", path(strings.TrimSuffix(good.Path, "1") + "0")},
		"other prefix":            {"PUT", path("/x/" + strings.TrimPrefix(good.Path, "/x/y/"))},
		"no path":                 {"PUT", path("")},
		"longer path":             {"PUT", path(good.Path + "/")},
		"later":                   {"PUT", set("expires", fmt.Sprint(time.Now().Add(48*time.Hour).Unix()))},
		"larger":                  {"PUT", set("max", "11")},
		"plus sign":               {"PUT", set("max", "+10")},
		"no max":                  {"PUT", set("max", "")},
		"no signature":            {"PUT", set("signature", "")},
		"no key id":               {"PUT", set("kid", "")},
		"unknown key id":          {"PUT", set("kid", "000000000000")},
		"signature cut":           {"PUT", set("signature", sig[:20])},
		"signature of other part": {"PUT", set("signature", urls[1].Query().Get("signature"))},
		"signature padded":        {"PUT", set("signature", sig+"=")},
		"broken query":            {"PUT", &url.URL{Path: good.Path, RawQuery: good.RawQuery + "&%zz"}},
	} {
		_, err := e.PutPart(t.Context(), tt.method, tt.u, unread{t}, upload.PutOptions{Size: 5})
		wantKind(t, name, err, upload.ErrSignature)
	}
	e.put(good, noise(5))

	// Rotation: a new secret signs, the old one is still accepted, then not.
	for _, tt := range []struct {
		name    string
		secrets [][]byte
		ok      bool
	}{
		{"new first", [][]byte{secrets[0], secrets[1]}, true},
		{"new last", [][]byte{secrets[1], secrets[2]}, true},
		{"old gone", [][]byte{secrets[0], secrets[2]}, false},
	} {
		r := newEnv(t, blobs, upload.Options{Store: store, Secrets: tt.secrets, URLPath: "/x/y/"})
		_, err := r.PutPart(t.Context(), "PUT", good, bytes.NewReader(noise(5)), upload.PutOptions{Size: 5})
		if tt.ok && err != nil || !tt.ok && !errors.Is(err, upload.ErrSignature) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}

	// A URL that this process did not issue but that has its signature.
	r := newEnv(t, memblob.New(), upload.Options{Secrets: secrets[1:2], URLPath: "/x/y/"})
	_, err := r.PutPart(t.Context(), "PUT", good, unread{t}, upload.PutOptions{Size: 5})
	wantKind(t, "URL of a session that is gone", err, fs.ErrNotExist)

	e.clock.advance(time.Hour - time.Second)
	e.put(good, noise(5))
	e.clock.advance(time.Second)
	_, err = e.PutPart(t.Context(), "PUT", good, unread{t}, upload.PutOptions{Size: 5})
	wantKind(t, "expired URL", err, upload.ErrURLExpired)
}

func TestIdempotentStart(t *testing.T) {
	t.Parallel()
	each(t, upload.Options{}, func(t *testing.T, e *env) {
		ctx := t.Context()
		r := upload.Request{Owner: "alice", Name: "a", ContentType: "text/plain", Size: 4, Parts: 2, IdempotencyKey: "k"}
		f, urls, err := e.Start(ctx, r)
		systest.NoError(t, err)
		e1 := e.put(urls[0], []byte("ab"))
		e.clock.advance(2 * time.Hour)
		f2, urls2, err := e.Start(ctx, r)
		if err != nil || f2.Key != f.Key || f2.UploadID != f.UploadID {
			t.Fatalf("Start again = %+v, %v", f2, err)
		}
		_, err = e.PutPart(ctx, "PUT", urls[1], unread{t}, upload.PutOptions{Size: 2})
		wantKind(t, "old URL", err, upload.ErrURLExpired)
		e2 := e.put(urls2[1], []byte("cd"))

		other := r
		other.Size = 5
		_, _, err = e.Start(ctx, other)
		wantKind(t, "other request", err, upload.ErrConflict)
		other = r
		other.Fingerprint = "body hash"
		_, _, err = e.Start(ctx, other)
		wantKind(t, "other fingerprint", err, upload.ErrConflict)
		other = r
		other.Owner = "bob"
		if f3, _, err := e.Start(ctx, other); err != nil || f3.Key == f.Key {
			t.Errorf("same key of another owner: %+v, %v", f3, err)
		}

		done, _, err := e.Complete(ctx, "alice", f.Key, "", "", list(e1, e2))
		if err != nil || string(e.content(done)) != "abcd" {
			t.Fatal(err)
		}
		if f2, urls, err = e.Start(ctx, r); err != nil || f2.Key != f.Key || f2.State != upload.Ready || len(urls) != 2 {
			t.Errorf("Start of a completed upload = %+v, %v", f2, err)
		}
		e.clock.advance(25 * time.Hour)
		if f2, _, err = e.Start(ctx, r); err != nil || f2.Key == f.Key {
			t.Errorf("Start after a day = %+v, %v", f2, err)
		}
		e.clock.advance(time.Second) // 24 hours are the lifetime of both the session and the key
		var wg sync.WaitGroup
		keys := make([]string, 8)
		r.IdempotencyKey = "concurrent"
		for i := range keys {
			wg.Go(func() {
				f, _, err := e.Start(ctx, r)
				if err != nil {
					t.Error(err)
					return
				}
				keys[i] = f.Key
			})
		}
		wg.Wait()
		slices.Sort(keys)
		if keys = slices.Compact(keys); len(keys) != 1 {
			t.Errorf("concurrent requests have made %q", keys)
		}
	})
}
