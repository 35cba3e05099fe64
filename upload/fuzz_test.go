package upload_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/upload"
	"github.com/filewright/filewright/upload/blob"
	"github.com/filewright/filewright/upload/blob/memblob"
)

// Only issued URLs are accepted, and no URL causes a panic.
func FuzzUploadURL(f *testing.F) {
	var n byte
	o := upload.Options{Secrets: [][]byte{bytes.Repeat([]byte("s"), 32), bytes.Repeat([]byte("t"), 32)}}
	o.SetRand(readerFunc(func(b []byte) (int, error) { // the same ids in every process
		for i := range b {
			n += 7
			b[i] = n
		}
		return len(b), nil
	}))
	o.SetClock(func() time.Time { return time.Unix(1_700_000_000, 0) })
	m, err := upload.NewManager(memblob.New(), &o)
	systest.NoError(f, err)
	_, urls, err := m.Start(f.Context(), upload.Request{Size: 10, Parts: 2})
	systest.NoError(f, err)
	good := make(map[string]bool)
	for _, u := range urls {
		good[u.Path+"?"+u.RawQuery] = true
		f.Add(u.Path, u.RawQuery)
		f.Add(u.Path, strings.Replace(u.RawQuery, "max=10", "max=99", 1))
		f.Add(strings.TrimSuffix(u.Path, "1")+"2", u.RawQuery)
	}
	f.Add("", "")
	f.Add("/v1/upload///", "expires=1&max=-1&kid=&signature=%00")
	f.Fuzz(func(t *testing.T, path, query string) {
		u := &url.URL{Path: path, RawQuery: query}
		_, err := m.PutPart(t.Context(), http.MethodPut, u, strings.NewReader("x"), upload.PutOptions{Size: 1})
		if err == nil {
			// The fields may be in another order, or escaped.
			q := u.Query()
			canonical := fmt.Sprintf("%s?expires=%s&max=%s&kid=%s&signature=%s", path, q.Get("expires"), q.Get("max"), q.Get("kid"), q.Get("signature"))
			if !good[canonical] {
				t.Fatalf("%s?%s is accepted", path, query)
			}
			return
		}
		var told *upload.Error
		if !errors.Is(err, upload.ErrSignature) || !errors.As(err, &told) {
			t.Fatalf("PutPart = %v", err)
		}
		if _, err := m.PutPart(t.Context(), http.MethodGet, u, unread{t}, upload.PutOptions{Size: 1}); !errors.Is(err, upload.ErrSignature) {
			t.Fatalf("PutPart with GET = %v", err)
		}
	})
}

// Only the right list of parts completes an upload, and it does so even after any wrong
// list.
func FuzzComplete(f *testing.F) {
	f.Add(1, "5d41402abc4b2a76b9719d911017c592", 2, "7d793037a0760186574b0282f2f435e7", 0, "")
	f.Add(2, "7d793037a0760186574b0282f2f435e7", 1, "5d41402abc4b2a76b9719d911017c592", 3, "x")
	f.Add(1, "5d41402abc4b2a76b9719d911017c592", 2, "5d41402abc4b2a76b9719d911017c592", 0, "")
	f.Add(1, "\"5D41402ABC4B2A76B9719D911017C592\"", 2, "", 1<<62, "")
	f.Fuzz(func(t *testing.T, n1 int, e1 string, n2 int, e2 string, n3 int, e3 string) {
		e := newEnv(t, memblob.New(), upload.Options{})
		file, urls := e.start(10, 2)
		right := list(e.put(urls[0], []byte("hello")), e.put(urls[1], []byte("world")))
		parts := []blob.Part{{Number: n1, ETag: e1}, {Number: n2, ETag: e2}}
		if n3 != 0 {
			parts = append(parts, blob.Part{Number: n3, ETag: e3})
		}
		same := len(parts) == 2
		for i, p := range parts[:2] {
			same = same && p.Number == i+1 && strings.EqualFold(strings.Trim(p.ETag, "\" \t"), right[i].ETag)
		}
		_, again, err := e.Complete(t.Context(), "alice", file.Key, "", "", parts)
		if same != (err == nil) || again {
			t.Fatalf("Complete(%+v) = %v, %v", parts, again, err)
		}
		if err != nil && !errors.Is(err, blob.ErrPart) {
			t.Fatalf("Complete(%+v) = %v", parts, err)
		}
		done, again, err := e.Complete(t.Context(), "alice", file.Key, "", "", right)
		if err != nil || again != same || string(e.content(done)) != "helloworld" {
			t.Fatalf("Complete = %v, %v", again, err)
		}
	})
}
