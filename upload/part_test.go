package upload_test

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/upload"
	"github.com/filewright/filewright/upload/blob"
)

func TestPutPart(t *testing.T) {
	t.Parallel()
	each(t, upload.Options{}, func(t *testing.T, e *env) {
		ctx := t.Context()
		f, urls := e.start(10, 2)
		put := func(part int, r io.Reader, o upload.PutOptions) (string, error) {
			return e.PutPart(ctx, "PUT", urls[part-1], r, o)
		}
		recorded := func(want ...int) {
			t.Helper()
			_, parts, err := e.store.Parts(ctx, f.Key)
			var got []int
			for _, p := range parts {
				got = append(got, p.Number)
			}
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("parts %v are recorded, want %v", got, want)
			}
		}
		sum := md5.Sum([]byte("hello"))
		right, wrong := base64.StdEncoding.EncodeToString(sum[:]), base64.StdEncoding.EncodeToString(make([]byte, 16))
		broken := errors.New("broken")
		for _, tt := range []struct {
			name string
			r    io.Reader
			o    upload.PutOptions
			kind error
		}{
			{"short", strings.NewReader("hell"), upload.PutOptions{Size: 5}, upload.ErrInvalid},
			{"short, cause", strings.NewReader(""), upload.PutOptions{Size: 5}, io.ErrUnexpectedEOF},
			{"short, large", strings.NewReader("hell"), upload.PutOptions{Size: 8}, upload.ErrInvalid},
			{"broken", io.MultiReader(strings.NewReader("he"), iotest.ErrReader(broken)), upload.PutOptions{Size: 5}, upload.ErrInvalid},
			{"broken, cause", iotest.ErrReader(broken), upload.PutOptions{Size: 9}, broken},
			{"wrong digest", strings.NewReader("hello"), upload.PutOptions{Size: 5, ContentMD5: wrong}, upload.ErrDigest},
			{"digest not base64", unread{t}, upload.PutOptions{Size: 5, ContentMD5: "%%"}, upload.ErrDigest},
			{"digest of other length", unread{t}, upload.PutOptions{Size: 5, ContentMD5: "AAAA"}, upload.ErrDigest},
			{"larger than the file", unread{t}, upload.PutOptions{Size: 11}, upload.ErrTooLarge},
			{"size unknown, longer", strings.NewReader("hello!"), upload.PutOptions{Size: -1}, upload.ErrInvalid},
			{"size unknown, broken", io.MultiReader(strings.NewReader("hello"), iotest.ErrReader(broken)), upload.PutOptions{Size: -1}, broken},
		} {
			_, err := put(1, tt.r, tt.o)
			wantKind(t, tt.name, err, tt.kind)
			recorded()
		}

		etag, err := put(1, strings.NewReader("hello"), upload.PutOptions{Size: -1, ContentMD5: right})
		if err != nil || etag != hex.EncodeToString(sum[:]) {
			t.Fatalf("size unknown: %q, %v", etag, err)
		}
		recorded(1)

		// With part 1 stored, 5 bytes are left for part 2, and 10 for part 1.
		_, err = put(2, unread{t}, upload.PutOptions{Size: 6})
		wantKind(t, "larger than what is left", err, upload.ErrTooLarge)
		for _, n := range []int{10, 3, 5} {
			e.put(urls[0], noise(n))
			recorded(1)
		}
		e1, e2 := e.put(urls[0], []byte("hello")), e.put(urls[1], []byte("world"))
		done, _, err := e.Complete(ctx, "alice", f.Key, "", "", list(e1, e2))
		systest.NoError(t, err)
		_, err = put(1, unread{t}, upload.PutOptions{Size: 5})
		wantKind(t, "part of a completed upload", err, upload.ErrConflict)
		if got := e.content(done); string(got) != "helloworld" {
			t.Errorf("content is %q", got)
		}
		if n := e.objects(); n != 1 {
			t.Errorf("%d objects and staging areas, want 1", n)
		}
		systest.NoError(t, e.Delete(ctx, "alice", f.Key))
		_, err = put(1, unread{t}, upload.PutOptions{Size: 5})
		wantKind(t, "part of a deleted upload", err, fs.ErrNotExist)
	})
}

// A part that is sent again and fails keeps the acknowledged part.
func TestPutPartAgainFails(t *testing.T) {
	t.Parallel()
	backends := append(slices.Clone(backends), struct {
		name string
		open func(t testing.TB) blob.Store
	}{"shared files", newSharedFS})
	wrong := base64.StdEncoding.EncodeToString(make([]byte, 16))
	data := [2][]byte{noise(3 << 19), noise(1 << 20)} // larger and smaller than usual
	for _, times := range []int{1, 3} {               // number of successful sends before
		for _, b := range backends {
			t.Run(fmt.Sprintf("%s, %d", b.name, times), func(t *testing.T) {
				t.Parallel()
				ctx := t.Context()
				e := newEnv(t, b.open(t), upload.Options{})
				f, urls := e.start(5<<19, 2)
				etags := make([]string, 2)
				for i := range 2 {
					for n := range times {
						if n < times-1 {
							e.put(urls[i], noise(len(data[i])-n-1))
							continue
						}
						etags[i] = e.put(urls[i], data[i])
					}
				}
				for i, u := range urls {
					n := len(data[i])
					other := noise(n + 7)[:n]
					for name, o := range map[string]struct {
						r io.Reader
						upload.PutOptions
					}{
						"wrong digest":   {bytes.NewReader(other), upload.PutOptions{Size: int64(n), ContentMD5: wrong}},
						"short":          {bytes.NewReader(other[:n-1]), upload.PutOptions{Size: int64(n)}},
						"broken":         {io.MultiReader(bytes.NewReader(other[:n-1]), iotest.ErrReader(errStore)), upload.PutOptions{Size: int64(n)}},
						"no length":      {bytes.NewReader(append(slices.Clone(other), other...)), upload.PutOptions{Size: -1}},
						"broken at once": {iotest.ErrReader(errStore), upload.PutOptions{Size: int64(n)}},
					} {
						if _, err := e.PutPart(ctx, "PUT", u, o.r, o.PutOptions); err == nil {
							t.Errorf("PutPart succeeds: %s", name)
						}
					}
				}
				done, _, err := e.Complete(ctx, "alice", f.Key, "", "", list(etags...))
				if err != nil || !bytes.Equal(e.content(done), slices.Concat(data[0], data[1])) {
					t.Errorf("Complete = %+v, %v", done, err)
				}
				if n := e.objects(); n != 1 {
					t.Errorf("%d objects and staging areas, want 1", n)
				}
			})
		}
	}
}

// An upload that is completed while a part is sent again contains the earlier part.
func TestCompleteWhilePartIsSentAgain(t *testing.T) {
	t.Parallel()
	each(t, upload.Options{}, func(t *testing.T, e *env) {
		f, urls := e.start(10, 2)
		etags := []string{e.put(urls[0], []byte("hello")), e.put(urls[1], []byte("world"))}
		var done *upload.File
		completing := readerFunc(func(b []byte) (n int, err error) {
			if done == nil {
				if done, _, err = e.Complete(t.Context(), "alice", f.Key, "", "", list(etags...)); err != nil {
					t.Error(err)
				}
				return copy(b, "HELLO"), nil
			}
			return 0, io.EOF
		})
		_, err := e.PutPart(t.Context(), "PUT", urls[0], completing, upload.PutOptions{Size: 5})
		wantKind(t, "PutPart", err, upload.ErrConflict)
		if got := string(e.content(done)); got != "helloworld" || e.objects() != 1 {
			t.Errorf("content is %q, and there are %d objects", got, e.objects())
		}
	})
}

// The same, if the process that completes the upload crashes before it records that.
func TestCompleteInterruptedWhilePartIsSentAgain(t *testing.T) {
	t.Parallel()
	each(t, upload.Options{}, func(t *testing.T, e *env) {
		f, urls := e.start(10, 2)
		etags := []string{e.put(urls[0], []byte("hello")), e.put(urls[1], []byte("world"))}
		crashing := newEnv(t, e.blobs, upload.Options{Store: noUpdates{e.store}})
		body := strings.NewReader("HELLO")
		completing := readerFunc(func(b []byte) (int, error) {
			if body.Len() == 5 {
				if _, _, err := crashing.Complete(t.Context(), "alice", f.Key, "", "", list(etags...)); !errors.Is(err, errStore) {
					t.Errorf("Complete = %v", err)
				}
			}
			return body.Read(b)
		})
		_, err := e.PutPart(t.Context(), "PUT", urls[0], completing, upload.PutOptions{Size: 5})
		wantKind(t, "PutPart", err, upload.ErrConflict)
		done, again, err := e.Complete(t.Context(), "alice", f.Key, "", "", list(etags...))
		if err != nil || !again {
			t.Fatalf("Complete = %v, %v", again, err)
		}
		if got := string(e.content(done)); got != "helloworld" || e.objects() != 1 {
			t.Errorf("content is %q, and there are %d objects", got, e.objects())
		}
	})
}

func TestPartAboveLimit(t *testing.T) {
	t.Parallel()
	e := newEnv(t, newFS(t, t.TempDir()), upload.Options{})
	_, urls := e.start(upload.MaxPart+10, 2)
	_, err := e.PutPart(t.Context(), "PUT", urls[0], unread{t}, upload.PutOptions{Size: upload.MaxPart + 1})
	wantKind(t, "part above 5 GiB", err, upload.ErrTooLarge)
}

func TestSamePartConcurrently(t *testing.T) {
	t.Parallel()
	each(t, upload.Options{}, func(t *testing.T, e *env) {
		f, urls := e.start(300_000, 3)
		var rest []string
		for i := range 2 {
			rest = append(rest, e.put(urls[i+1], noise(100_000 + i)[:100_000]))
		}
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				b := bytes.Repeat([]byte{byte(i)}, 100_000)
				if i%2 == 1 {
					b = b[:50_000]
				}
				if _, err := e.PutPart(t.Context(), "PUT", urls[0], iotest.HalfReader(bytes.NewReader(b)), upload.PutOptions{Size: int64(len(b))}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		last := e.put(urls[0], bytes.Repeat([]byte{99}, 100_000))
		done, _, err := e.Complete(t.Context(), "alice", f.Key, "", "", list(append([]string{last}, rest...)...))
		systest.NoError(t, err)
		if got := e.content(done); !bytes.Equal(got[:100_000], bytes.Repeat([]byte{99}, 100_000)) || len(got) != 300_000 {
			t.Error("the last one has not won")
		}
	})
}

// A slow body calls a function at the first read, and then waits.
type slow struct {
	reading chan<- struct{}
	goOn    <-chan struct{}
	r       io.Reader
	once    sync.Once
}

func (s *slow) Read(b []byte) (int, error) {
	s.once.Do(func() {
		close(s.reading)
		<-s.goOn
	})
	return s.r.Read(b)
}

// during calls f while a part is being sent, and returns the result of the part.
func during(e *env, u *url.URL, data []byte, f func()) (etag string, err error) {
	reading, goOn, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		etag, err = e.PutPart(e.t.Context(), "PUT", u, &slow{reading: reading, goOn: goOn, r: bytes.NewReader(data)}, upload.PutOptions{Size: int64(len(data))})
	}()
	<-reading
	f()
	close(goOn)
	<-done
	return etag, err
}

func TestWhilePartArrives(t *testing.T) {
	t.Parallel()
	each(t, upload.Options{}, func(t *testing.T, e *env) {
		ctx := t.Context()
		f, urls := e.start(10, 2)
		e1 := e.put(urls[0], []byte("aaaaa"))
		etag, err := during(e, urls[1], []byte("BBBBB"), func() {
			err := second(e.Complete(ctx, "alice", f.Key, "", "", list(e1, e1)))
			wantKind(t, "Complete while a part is sent", err, upload.ErrMissingPart)
			// Bytes in transit count.
			_, err = e.PutPart(ctx, "PUT", urls[0], unread{t}, upload.PutOptions{Size: 6})
			wantKind(t, "larger than what is left", err, upload.ErrTooLarge)
			// A call that waits for the same part can be cancelled.
			waiting, cancel := context.WithCancel(ctx)
			cancel()
			if _, err = e.PutPart(waiting, "PUT", urls[1], unread{t}, upload.PutOptions{Size: 5}); !errors.Is(err, context.Canceled) {
				t.Errorf("PutPart = %v", err)
			}
		})
		systest.NoError(t, err)
		done, _, err := e.Complete(ctx, "alice", f.Key, "", "", list(e1, etag))
		if err != nil || string(e.content(done)) != "aaaaaBBBBB" {
			t.Errorf("%+v, %v", done, err)
		}

		for name, size := range map[string]int{"deleted, in place": 5, "deleted, of its own": 8} {
			g, urls := e.start(10, 2)
			_, err = during(e, urls[0], noise(size), func() {
				systest.Check(t, e.Delete(ctx, "alice", g.Key))
			})
			wantKind(t, name, err, fs.ErrNotExist)
		}
		if n := e.objects(); n != 1 {
			t.Errorf("%d objects or staging areas, want 1", n)
		}

		_, urls = e.start(10, 1)
		cancelled, cancel := context.WithCancel(ctx)
		_, err = e.PutPart(cancelled, "PUT", urls[0], readerFunc(func(b []byte) (int, error) {
			cancel()
			b[0] = 'x'
			return 1, nil
		}), upload.PutOptions{Size: 10})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("PutPart = %v", err)
		}
	})
}
