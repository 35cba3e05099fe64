package upload_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/upload"
	"github.com/filewright/filewright/upload/blob"
)

var errCrash = errors.New("crash")

// A crasher lets some steps of a store happen and then fails all further ones, like a
// killed process.
type crasher struct {
	mu   sync.Mutex
	left int // steps until the crash
	mode crashMode
	dead bool
}

type crashMode int

const (
	crashBefore crashMode = iota // the last step does not happen
	crashDuring                  // its content is cut off
	crashAfter                   // it happens, but the response is lost
	crashModes
)

func (c *crasher) step(do func(cut bool) error) error {
	c.mu.Lock()
	c.left--
	alive, last := !c.dead, c.left == 0
	c.dead = c.dead || last
	c.mu.Unlock()
	switch {
	case !alive:
		return errCrash
	case !last:
		return do(false)
	case c.mode == crashDuring:
		do(true)
	case c.mode == crashAfter:
		do(false)
	}
	return errCrash
}

func cutReader(cut bool, r io.Reader, n int64) io.Reader {
	if cut {
		return io.MultiReader(io.LimitReader(r, n/2), iotest.ErrReader(errCrash))
	}
	return r
}

type crashBlobs struct {
	blob.Store
	c *crasher
}

func (s crashBlobs) Put(ctx context.Context, key string, r io.Reader, n int64) error {
	return s.c.step(func(cut bool) error { return s.Store.Put(ctx, key, cutReader(cut, r, n), n) })
}

func (s crashBlobs) Delete(ctx context.Context, key string) error {
	return s.c.step(func(bool) error { return s.Store.Delete(ctx, key) })
}

type crashStager struct {
	crashBlobs
	blob.Stager
}

func (s crashStager) Stage(ctx context.Context, id string, n int64) error {
	return s.c.step(func(bool) error { return s.Stager.Stage(ctx, id, n) })
}

func (s crashStager) WriteStaged(ctx context.Context, id string, off int64, r io.Reader, n int64) (k int64, err error) {
	err = s.c.step(func(cut bool) (err error) {
		k, err = s.Stager.WriteStaged(ctx, id, off, cutReader(cut, r, n), n)
		return err
	})
	return k, err
}

func (s crashStager) CommitStaged(ctx context.Context, id, key string, pieces []blob.Piece) error {
	return s.c.step(func(bool) error { return s.Stager.CommitStaged(ctx, id, key, pieces) })
}

type crashStore struct {
	upload.Store
	c *crasher
}

func (s crashStore) Create(ctx context.Context, f *upload.File) (g *upload.File, err error) {
	err = s.c.step(func(bool) (err error) { g, err = s.Store.Create(ctx, f); return err })
	return g, err
}

func (s crashStore) Update(ctx context.Context, key string, fn func(*upload.File) error) (f *upload.File, err error) {
	err = s.c.step(func(bool) (err error) { f, err = s.Store.Update(ctx, key, fn); return err })
	return f, err
}

func (s crashStore) Delete(ctx context.Context, key string) error {
	return s.c.step(func(bool) error { return s.Store.Delete(ctx, key) })
}

func (s crashStore) AddPart(ctx context.Context, key string, p upload.Part) error {
	return s.c.step(func(bool) error { return s.Store.AddPart(ctx, key, p) })
}

// A client sends each part of a list until it is acknowledged, one part twice, and
// completes the upload. It keeps the acknowledgements across crashes.
type client struct {
	parts [][]byte
	acked []string // ETags
	redo  int      // index of the part to be sent twice; -1 when that is done
	old   []byte   // the content sent first
}

// run does the remaining steps until an error.
func (c *client) run(ctx context.Context, m *upload.Manager) (*upload.File, error) {
	size := len(bytes.Join(c.parts, nil))
	f, urls, err := m.Start(ctx, upload.Request{Owner: "alice", Name: "a", Size: int64(size), Parts: len(c.parts), IdempotencyKey: "k"})
	if err != nil {
		return nil, err
	}
	put := func(u *url.URL, b []byte) (string, error) {
		return m.PutPart(ctx, http.MethodPut, u, bytes.NewReader(b), upload.PutOptions{Size: int64(len(b))})
	}
	for i, p := range c.parts {
		if c.redo == i {
			if _, err := put(urls[i], c.old); err != nil {
				return nil, err
			}
			c.redo = -1
		}
		if c.acked[i] == "" {
			if c.acked[i], err = put(urls[i], p); err != nil {
				return nil, err
			}
		}
	}
	f, _, err = m.Complete(ctx, "alice", f.Key, f.Object, f.UploadID, list(c.acked...))
	return f, err
}

// A process is killed at every step, in every way, and another one continues from the
// state that it left behind.
func TestCrash(t *testing.T) {
	t.Parallel()
	for _, b := range backends {
		for name, parts := range map[string][][]byte{
			"usual":     cut(noise(10_000), 3),
			"displaced": sizes(noise(10_000), 2_000, 5_000, 3_000),
			"one":       cut(noise(10_000), 1),
		} {
			for mode := range crashModes {
				t.Run(fmt.Sprintf("%s, %s, %d", b.name, name, mode), func(t *testing.T) {
					t.Parallel()
					crashes := 0
					for step := 1; ; step++ {
						if !crashAt(t, b.open(t), parts, step, mode) {
							break
						}
						crashes++
					}
					if crashes < 4+len(parts) {
						t.Errorf("only %d crashes", crashes)
					}
				})
			}
		}
	}
}

// crashAt reports whether there was a crash.
func crashAt(t *testing.T, blobs blob.Store, parts [][]byte, step int, mode crashMode) bool {
	t.Helper()
	ctx := t.Context()
	c := &crasher{left: step, mode: mode}
	store := new(upload.MemStore)
	var crashing blob.Store = crashBlobs{blobs, c}
	if s, ok := blob.As[blob.Stager](blobs); ok {
		crashing = crashStager{crashBlobs{blobs, c}, s}
	}
	secrets := [][]byte{make([]byte, 32)}
	e := newEnv(t, crashing, upload.Options{Store: crashStore{store, c}, Secrets: secrets})
	cl := &client{parts: parts, acked: make([]string, len(parts)), redo: len(parts) - 1, old: noise(len(parts[len(parts)-1]))[1:]}
	f, err := cl.run(ctx, e.Manager)
	crashed := errors.Is(err, errCrash)
	if err != nil && !crashed {
		t.Fatalf("step %d: %v", step, err)
	}
	if crashed {
		acked := slices.Clone(cl.acked)
		e = newEnv(t, blobs, upload.Options{Store: store, Secrets: secrets})
		if _, err := e.Recover(ctx); err != nil {
			t.Fatalf("step %d: Recover: %v", step, err)
		}
		f, err = cl.run(ctx, e.Manager)
		if errors.Is(err, upload.ErrConflict) {
			t.Fatalf("step %d: a part was not acknowledged, but the upload is complete", step)
		}
		if err != nil {
			t.Fatalf("step %d: after a crash with %d parts acknowledged: %v", step, len(acked), err)
		}
	}
	e = newEnv(t, blobs, upload.Options{Store: store})
	if got := e.content(f); !bytes.Equal(got, bytes.Join(parts, nil)) || f.ETag != etagOf(parts) {
		t.Fatalf("step %d: content has %d bytes, ETag %s", step, len(got), f.ETag)
	}
	// The leftovers are removed, and nothing else.
	e = newEnv(t, blobs, upload.Options{Store: store, Grace: time.Hour})
	e.clock.advance(2 * time.Hour)
	if _, err := e.Sweep(ctx); err != nil {
		t.Fatal(err)
	}
	if n := e.objects(); n != 1 {
		t.Fatalf("step %d: %d objects and staging areas are left", step, n)
	}
	return crashed
}

// openOnly is a store that supports only the list of open sessions: Recover must not
// read the files, of which there may be millions.
type openOnly struct {
	upload.Store
	t testing.TB
}

func (s openOnly) ExpiredBefore(context.Context, time.Time) iter.Seq2[*upload.File, error] {
	s.t.Error("the records of all files are read")
	return func(func(*upload.File, error) bool) {}
}

func (s openOnly) Get(ctx context.Context, key string) (*upload.File, error) {
	s.t.Errorf("the record of %s is read, whose completion was not interrupted", key)
	return s.Store.Get(ctx, key)
}

func TestRecoverReadsOpenSessions(t *testing.T) {
	t.Parallel()
	each(t, upload.Options{}, func(t *testing.T, e *env) {
		f, urls := e.start(5, 1)
		if _, _, err := e.Complete(t.Context(), "alice", f.Key, "", "", list(e.put(urls[0], []byte("hello")))); err != nil {
			t.Fatal(err)
		}
		e.start(5, 1)
		m := newEnv(t, e.blobs, upload.Options{Store: openOnly{e.store, t}})
		if n, err := m.Recover(t.Context()); n != 0 || err != nil {
			t.Errorf("Recover = %d, %v", n, err)
		}
	})
}

// The crash that Recover repairs.
func TestRecover(t *testing.T) {
	t.Parallel()
	each(t, upload.Options{}, func(t *testing.T, e *env) {
		ctx := t.Context()
		interrupt := func() (*upload.File, []*url.URL, []string) {
			f, urls := e.start(10, 2)
			etags := []string{e.put(urls[0], []byte("hello")), e.put(urls[1], []byte("world"))}
			broken := newEnv(t, e.blobs, upload.Options{Store: noUpdates{e.store}})
			if _, _, err := broken.Complete(ctx, "alice", f.Key, "", "", list(etags...)); !errors.Is(err, errStore) {
				t.Fatalf("Complete = %v", err)
			}
			return f, urls, etags
		}
		ready := func(f *upload.File) {
			t.Helper()
			if got := e.content(f); string(got) != "helloworld" {
				t.Errorf("content is %q", got)
			}
			got, err := e.Get(ctx, "alice", f.Key)
			want := etagOf([][]byte{[]byte("hello"), []byte("world")})
			if err != nil || got.State != upload.Ready || got.ETag != want || !got.Expires.After(f.Created) {
				t.Errorf("Get = %+v, %v", got, err)
			}
		}

		f, _, _ := interrupt()
		other, _ := e.start(5, 1)
		if n, err := e.Recover(ctx); n != 1 || err != nil {
			t.Errorf("Recover = %d, %v", n, err)
		}
		ready(f)
		if n, err := e.Recover(ctx); n != 0 || err != nil {
			t.Errorf("Recover again = %d, %v", n, err)
		}
		if g, err := e.Get(ctx, "alice", other.Key); err != nil || g.State != upload.Open {
			t.Errorf("another session: %+v, %v", g, err)
		}

		// Records from a backup may be older than the content.
		early, urls := e.start(10, 2)
		systest.NoError(t, e.blobs.Put(ctx, early.Object, strings.NewReader("helloWORLD"), 10))
		if n, err := e.Recover(ctx); n != 0 || err != nil {
			t.Errorf("Recover = %d, %v", n, err)
		}
		if _, _, err := e.Complete(ctx, "alice", early.Key, "", "", list(e.put(urls[0], []byte("hello")), e.put(urls[1], []byte("world")))); err != nil {
			t.Errorf("Complete = %v", err)
		}
		ready(early)

		// Some stores keep a partial object when its sender dies.
		half, urls := e.start(10, 2)
		etags := []string{e.put(urls[0], []byte("hello")), e.put(urls[1], []byte("world"))}
		systest.NoError(t, e.blobs.Put(ctx, half.Object, strings.NewReader("hellow"), 6))
		if n, err := e.Recover(ctx); n != 0 || err != nil {
			t.Errorf("Recover = %d, %v", n, err)
		}
		if _, again, err := e.Complete(ctx, "alice", half.Key, "", "", list(etags...)); err != nil || again {
			t.Errorf("Complete = %v, %v", again, err)
		}
		ready(half)

		// Without Recover, a client that calls again finds it complete.
		f, _, etags = interrupt()
		if _, again, err := e.Complete(ctx, "alice", f.Key, "", "", list(etags...)); err != nil || !again {
			t.Errorf("Complete = %v, %v", again, err)
		}
		ready(f)
		f, urls, _ = interrupt()
		_, err := e.PutPart(ctx, "PUT", urls[0], unread{t}, upload.PutOptions{Size: 5})
		wantKind(t, "PutPart", err, upload.ErrConflict)
		ready(f)

		// A client that does not call again leaves nothing behind.
		interrupt()
		e.clock.advance(25 * time.Hour)
		if n, err := e.Sweep(ctx); n != 7 || err != nil {
			t.Errorf("Sweep = %d, %v", n, err)
		}
		if n := e.objects(); n != 0 {
			t.Errorf("%d objects and staging areas are left", n)
		}
	})
}

type noUpdates struct{ upload.Store }

func (noUpdates) Update(context.Context, string, func(*upload.File) error) (*upload.File, error) {
	return nil, errStore
}
