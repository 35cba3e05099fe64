package upload_test

import (
	"bytes"
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/upload"
	"github.com/filewright/filewright/upload/blob"
	"github.com/filewright/filewright/upload/blob/s3blob"
)

const mib = 1 << 20

// send sends a PUT like a client of a bucket.
func send(t testing.TB, u *url.URL, data []byte) (etag string, code int) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, u.String(), bytes.NewReader(data))
	systest.NoError(t, err)
	req.Header.Set("Content-Type", "application/pdf")
	resp, err := http.DefaultClient.Do(req)
	systest.NoError(t, err)
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
	return strings.Trim(resp.Header.Get("ETag"), `"`), resp.StatusCode
}

func (e *env) send(u *url.URL, data []byte) string {
	e.t.Helper()
	etag, code := send(e.t, u, data)
	if code != http.StatusOK || etag != fmt.Sprintf("%x", md5.Sum(data)) {
		e.t.Fatalf("PUT = %d, ETag %s", code, etag)
	}
	return etag
}

// incomplete returns the number of unfinished uploads in the bucket.
func incomplete(t testing.TB, s *s3blob.Store) (n int) {
	t.Helper()
	for _, err := range s.ListDirect(t.Context()) {
		systest.NoError(t, err)
		n++
	}
	return n
}

func newDirect(t testing.TB, o upload.Options) (*env, *s3blob.Store) {
	t.Helper()
	s := openBucket(t, false)
	return newEnv(t, s, o), s
}

func TestDirect(t *testing.T) {
	t.Parallel()
	e, s := newDirect(t, upload.Options{})
	for _, parts := range [][][]byte{
		{noise(100)},
		cut(noise(11*mib), 2),
		sizes(noise(17*mib), 8*mib, 8*mib, mib), // cut into equal chunks by another rule
		sizes(noise(11*mib), 5*mib, 6*mib),      // the last is not the shortest
		sizes(noise(15*mib), 7*mib, 8*mib, 0),   // an empty part at the end
	} {
		var size int
		for _, p := range parts {
			size += len(p)
		}
		f, urls := e.start(int64(size), len(parts))
		if f.UploadID == "" || f.Object == "" {
			t.Errorf("session %+v", f)
		}
		etags := make([]string, len(parts))
		for i := len(parts) - 1; i >= 0; i-- {
			if !urls[i].IsAbs() || !strings.HasPrefix(urls[i].String(), s3Server.Endpoint) {
				t.Fatalf("part %d of %d bytes goes to %s", i+1, size, urls[i].Host)
			}
			etags[i] = e.send(urls[i], parts[i])
		}
		ready, again, err := e.Complete(t.Context(), "alice", f.Key, f.Object, f.UploadID, list(etags...))
		if err != nil || again || ready.State != upload.Ready || ready.ETag != etagOf(parts) {
			t.Fatalf("Complete = %+v, %v, %v, want ETag %s", ready, again, err, etagOf(parts))
		}
		if !bytes.Equal(e.content(ready), bytes.Join(parts, nil)) {
			t.Error("the file is not what was sent")
		}
		if _, again, err := e.Complete(t.Context(), "alice", f.Key, "", "", nil); !again || err != nil {
			t.Errorf("the second Complete = %v, %v", again, err)
		}
		if _, code := send(t, urls[0], noise(len(parts[0])%1000)); code < 400 {
			t.Errorf("PUT after completion = %d", code)
		}
		if !bytes.Equal(e.content(ready), bytes.Join(parts, nil)) {
			t.Error("the file has changed")
		}
		systest.Check(t, e.Delete(t.Context(), "alice", f.Key))
	}
	if n := e.objects() + incomplete(t, s); n != 0 {
		t.Errorf("%d objects and uploads are left", n)
	}
}

// If S3 would refuse to join the parts, clients send them to us.
func TestDirectOrNot(t *testing.T) {
	t.Parallel()
	e, s := newDirect(t, upload.Options{})
	for _, parts := range [][][]byte{{{}}, cut(noise(9*mib), 2), cut(noise(20_000), 3), {{}, {}}} {
		data := bytes.Join(parts, nil)
		f, urls := e.start(int64(len(data)), len(parts))
		var etags []string
		for i, p := range parts {
			if urls[i].IsAbs() {
				t.Fatalf("part of %d bytes goes to %s", len(p), urls[i].Host)
			}
			etags = append(etags, e.put(urls[i], p))
		}
		ready, _, err := e.Complete(t.Context(), "alice", f.Key, f.Object, f.UploadID, list(etags...))
		if err != nil || ready.ETag != etagOf(parts) {
			t.Fatalf("Complete = %+v, %v", ready, err)
		}
		if !bytes.Equal(e.content(ready), data) {
			t.Error("the file is not what was sent")
		}
	}
	if n := incomplete(t, s); n != 0 {
		t.Errorf("%d uploads are left", n)
	}
}

// A bucket completes an upload without checking whether parts are missing. The Manager
// checks, and the session can be completed afterwards.
func TestDirectFaults(t *testing.T) {
	t.Parallel()
	e, _ := newDirect(t, upload.Options{})
	parts := cut(noise(16*mib), 3)
	f, urls := e.start(16*mib, 3)
	complete := func(parts ...blob.Part) error {
		_, _, err := e.Complete(t.Context(), "alice", f.Key, f.Object, f.UploadID, parts)
		return err
	}
	one, two := e.send(urls[0], parts[0]), e.send(urls[1], parts[1])
	wantKind(t, "Complete without part 3", complete(list(one, two, two)...), upload.ErrMissingPart)
	short := e.send(urls[2], parts[2][:100])
	wantKind(t, "Complete with a short part", complete(list(one, two, short)...), upload.ErrSizeMismatch)
	three := e.send(urls[2], parts[2])
	wantKind(t, "Complete with an old ETag", complete(list(one, two, short)...), upload.ErrPartETag)
	wantKind(t, "Complete with two of three parts", complete(list(one, two)...), upload.ErrMissingPart)
	wantKind(t, "Complete in another order", complete(blob.Part{Number: 2, ETag: two}, blob.Part{Number: 1, ETag: one}, blob.Part{Number: 3, ETag: three}), upload.ErrPartOrder)
	_, _, err := e.Complete(t.Context(), "alice", f.Key, f.Object, "other", list(one, two, three))
	wantKind(t, "Complete of another upload", err, upload.ErrInvalid)

	// Sizes that S3 rejects.
	small, large := e.send(urls[0], parts[0][:mib]), e.send(urls[1], append(parts[0][mib:len(parts[0]):len(parts[0])], parts[1]...))
	wantKind(t, "Complete with a small part", complete(list(small, large, three)...), upload.ErrInvalid)
	if _, err := e.Ready(t.Context(), "alice", f.Key); !errors.Is(err, upload.ErrIncomplete) {
		t.Errorf("the session is not open: %v", err)
	}

	one, two = e.send(urls[0], parts[0]), e.send(urls[1], parts[1])
	systest.NoError(t, complete(list(one, two, three)...))
	if !bytes.Equal(e.content(f), bytes.Join(parts, nil)) {
		t.Error("the file is not what was sent")
	}
}

// The size of a single part is signed.
func TestDirectSize(t *testing.T) {
	t.Parallel()
	e, _ := newDirect(t, upload.Options{})
	_, urls := e.start(10, 1)
	for _, n := range []int{9, 11} {
		if _, code := send(t, urls[0], noise(n)); code != http.StatusForbidden {
			t.Errorf("PUT of %d bytes = %d", n, code)
		}
	}
	e.send(urls[0], noise(10))
}

// A direct part that is sent again with a wrong checksum keeps the earlier one. A part
// whose connection breaks does so in Amazon S3, but not in versitygw 1.8.0 (its issue
// 2414).
func TestDirectPartAgainFails(t *testing.T) {
	t.Parallel()
	e := newEnv(t, openBucket(t, false), upload.Options{})
	f, urls := e.start(11*mib, 2)
	parts := [][]byte{noise(6 * mib), noise(5 * mib)}
	etags := []string{e.send(urls[0], parts[0]), e.send(urls[1], parts[1])}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, urls[0].String(), bytes.NewReader(noise(6*mib + 1)[1:]))
	systest.NoError(t, err)
	req.Header.Set("Content-MD5", "AAAAAAAAAAAAAAAAAAAAAA==")
	resp, err := http.DefaultClient.Do(req)
	systest.NoError(t, err)
	if resp.Body.Close(); resp.StatusCode != http.StatusBadRequest {
		t.Errorf("PUT with a wrong digest = %d", resp.StatusCode)
	}
	done, _, err := e.Complete(t.Context(), "alice", f.Key, "", "", list(etags...))
	if err != nil || !bytes.Equal(e.content(done), slices.Concat(parts...)) {
		t.Errorf("Complete = %+v, %v", done, err)
	}
}

func TestDirectIdempotent(t *testing.T) {
	t.Parallel()
	e, s := newDirect(t, upload.Options{})
	r := upload.Request{Owner: "alice", Name: "a.pdf", Size: 10, IdempotencyKey: "k"}
	f, _, err := e.Start(t.Context(), r)
	systest.NoError(t, err)
	same, urls, err := e.Start(t.Context(), r)
	if err != nil || same.Key != f.Key || same.UploadID != f.UploadID {
		t.Fatalf("Start again = %+v, %v, want %+v", same, err, f)
	}
	if n := incomplete(t, s); n != 1 {
		t.Errorf("%d uploads, want 1", n)
	}
	etag := e.send(urls[0], noise(10))
	if _, _, err := e.Complete(t.Context(), "alice", f.Key, "", "", list(etag)); err != nil {
		t.Fatal(err)
	}
}

// A sweep removes expired and unknown content from the bucket.
func TestDirectSweep(t *testing.T) {
	t.Parallel()
	e, s := newDirect(t, upload.Options{SessionTTL: 30 * time.Minute, FileTTL: 3 * time.Hour, Grace: 5 * time.Hour, Exclusive: true})
	ctx := t.Context()
	f, urls := e.start(12*mib, 2)
	e.send(urls[0], noise(6*mib))
	deleted, urls2 := e.start(10, 1)
	e.send(urls2[0], noise(10))
	systest.NoError(t, e.Delete(ctx, "alice", deleted.Key))
	if _, code := send(t, urls2[0], noise(10)); code != http.StatusNotFound {
		t.Errorf("PUT after Delete = %d", code)
	}
	ready, urls3 := e.start(10, 1)
	if _, _, err := e.Complete(ctx, "alice", ready.Key, "", "", list(e.send(urls3[0], noise(10)))); err != nil {
		t.Fatal(err)
	}
	orphan, err := s.BeginDirect(ctx, "files/"+strings.Repeat("a", 26), 10, 1)
	systest.NoError(t, err)
	sweep := func(after time.Duration, ended, uploads, objects int) {
		t.Helper()
		e.clock.advance(after)
		if n, err := e.Sweep(ctx); n != ended || err != nil {
			t.Errorf("Sweep = %d, %v, want %d", n, err, ended)
		}
		if n := incomplete(t, s); n != uploads {
			t.Errorf("%d uploads, want %d", n, uploads)
		}
		if n := e.objects(); n != objects {
			t.Errorf("%d objects, want %d", n, objects)
		}
	}
	sweep(0, 0, 2, 1)
	sweep(time.Hour, 1, 1, 1) // the session
	if _, code := send(t, urls[1], noise(10)); code != http.StatusNotFound {
		t.Errorf("PUT after the session has expired = %d", code)
	}
	sweep(3*time.Hour, 1, 1, 0) // the file
	sweep(5*time.Hour, 0, 0, 0) // the orphan
	systest.Check(t, s.AbortDirect(ctx, orphan))
	wantKind(t, "the session", func() error { _, err := e.Ready(ctx, "alice", f.Key); return err }(), upload.ErrExpired)
}

// Another process continues after one was killed.
func TestDirectRestart(t *testing.T) {
	t.Parallel()
	e, s := newDirect(t, upload.Options{})
	ctx := t.Context()
	parts := cut(noise(12*mib), 2)
	f, urls := e.start(12*mib, 2)
	etags := list(e.send(urls[0], parts[0]), e.send(urls[1], parts[1]))

	// Killed after the object was created, before it was recorded.
	forgetful := newEnv(t, s, upload.Options{Store: &failingUpdates{Store: e.store, after: 1}})
	if _, _, err := forgetful.Complete(ctx, "alice", f.Key, "", "", etags); !errors.Is(err, errStore) {
		t.Fatalf("Complete = %v", err)
	}
	next := newEnv(t, s, upload.Options{Store: e.store})
	if n, err := next.Recover(ctx); n != 1 || err != nil {
		t.Errorf("Recover = %d, %v", n, err)
	}
	ready, again, err := next.Complete(ctx, "alice", f.Key, "", "", etags)
	if err != nil || !again || ready.ETag != etagOf(parts) || !bytes.Equal(next.content(ready), bytes.Join(parts, nil)) {
		t.Errorf("Complete after a restart = %+v, %v, %v", ready, again, err)
	}

	// A store that has lost the upload because of a lifecycle rule of the bucket.
	f, urls = e.start(10, 1)
	etag := e.send(urls[0], noise(10))
	systest.NoError(t, s.AbortDirect(ctx, blob.DirectUpload{Key: f.Object, ID: f.UploadID}))
	_, _, err = e.Complete(ctx, "alice", f.Key, "", "", list(etag))
	wantKind(t, "Complete of a lost upload", err, upload.ErrExpired)
}

// failingUpdates fails after some updates.
type failingUpdates struct {
	upload.Store
	after int
}

func (s *failingUpdates) Update(ctx context.Context, key string, fn func(*upload.File) error) (*upload.File, error) {
	if s.after--; s.after < 0 {
		return nil, errStore
	}
	return s.Store.Update(ctx, key, fn)
}

func TestLink(t *testing.T) {
	t.Parallel()
	e, _ := newDirect(t, upload.Options{})
	ctx := t.Context()
	f, err := e.Add(ctx, upload.File{Owner: "alice", Name: "a.pdf", Size: 5}, strings.NewReader("hello"), "")
	systest.NoError(t, err)
	got, link, err := e.link(ctx, "alice", f.Key, blob.LinkOptions{ContentType: "application/pdf"})
	if err != nil || link == nil || got.Key != f.Key {
		t.Fatalf("Link = %v, %v, %v", got, link, err)
	}
	resp, err := http.Get(link.String())
	systest.NoError(t, err)
	defer resp.Body.Close()
	if b, err := io.ReadAll(resp.Body); err != nil || string(b) != "hello" || resp.Header.Get("Content-Type") != "application/pdf" {
		t.Errorf("GET = %q, %v, %v", b, err, resp.Header)
	}
	_, _, err = e.link(ctx, "bob", f.Key, blob.LinkOptions{})
	wantKind(t, "Link of somebody else", err, fs.ErrNotExist)
	open, _ := e.start(10, 1)
	_, _, err = e.link(ctx, "alice", open.Key, blob.LinkOptions{})
	wantKind(t, "Link to an open session", err, upload.ErrIncomplete)

	// A private store returns no links.
	private := newEnv(t, openBucket(t, true), upload.Options{})
	for _, e := range []*env{newEnv(t, newFS(t, t.TempDir()), upload.Options{}), private} {
		f, err := e.Add(ctx, upload.File{Owner: "alice", Name: "a.pdf", Size: 5}, strings.NewReader("hello"), "")
		systest.NoError(t, err)
		if _, link, err := e.link(ctx, "alice", f.Key, blob.LinkOptions{}); link != nil || err != nil {
			t.Errorf("Link = %v, %v", link, err)
		}
	}
}
