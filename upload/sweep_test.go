package upload_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/upload"
	"github.com/filewright/filewright/upload/blob"
	"github.com/filewright/filewright/upload/blob/memblob"
)

func TestSweep(t *testing.T) {
	t.Parallel()
	o := upload.Options{SessionTTL: 2 * time.Hour, FileTTL: 3 * time.Hour, KeepExpired: 48 * time.Hour, URLTTL: 4 * time.Hour}
	each(t, o, func(t *testing.T, e *env) {
		ctx := t.Context()
		sweep := func(want int) {
			t.Helper()
			if n, err := e.Sweep(ctx); n != want || err != nil {
				t.Errorf("Sweep = %d, %v, want %d", n, err, want)
			}
		}
		open, urls := e.start(10, 2)
		e.put(urls[0], noise(9))
		e1 := e.put(urls[0], noise(5))
		big, bigURLs := e.start(10, 2)
		e.put(bigURLs[1], noise(9))
		done, doneURLs := e.start(4, 1)
		etag := e.put(doneURLs[0], noise(4))
		forever, err := e.Add(ctx, upload.File{Owner: "alice", Expires: e.clock.now().Add(1e4 * time.Hour)}, strings.NewReader(""), "")
		systest.NoError(t, err)
		sweep(0)
		e.clock.advance(time.Hour)
		if done, _, err = e.Complete(ctx, "alice", done.Key, "", "", list(etag)); err != nil {
			t.Fatal(err)
		}
		e.clock.advance(time.Hour)

		// The expiry time decides, not the sweep.
		for range 2 {
			_, err = e.PutPart(ctx, "PUT", urls[1], unread{t}, upload.PutOptions{Size: 5})
			wantKind(t, "URL that ends with its session", err, upload.ErrURLExpired)
			wantKind(t, "Complete", second(e.Complete(ctx, "alice", open.Key, "", "", list(e1, e1))), upload.ErrExpired)
			_, err = e.Ready(ctx, "alice", big.Key)
			wantKind(t, "Ready", err, upload.ErrExpired)
			if f, err := e.Get(ctx, "alice", open.Key); err != nil || f.State != upload.Expired {
				t.Errorf("Get = %+v, %v", f, err)
			}
			if n, err := e.Sweep(ctx); err != nil || n != 0 && n != 2 {
				t.Errorf("Sweep = %d, %v", n, err)
			}
		}
		if n := e.objects(); n != 2 {
			t.Errorf("%d objects or staging areas, want 2", n)
		}
		if len(e.content(done)) != 4 {
			t.Error("the completed file is gone")
		}
		e.clock.advance(2 * time.Hour)
		_, _, err = e.Open(ctx, "", done.Key)
		wantKind(t, "Open", err, upload.ErrExpired)
		_, err = e.Get(ctx, "bob", done.Key)
		wantKind(t, "Get of another's expired file", err, fs.ErrNotExist)
		sweep(1)
		_, _, err = e.Open(ctx, "", done.Key)
		wantKind(t, "Open", err, upload.ErrExpired)
		sweep(0)
		e.clock.advance(48 * time.Hour)
		overdue := func(want time.Duration) {
			t.Helper()
			if d, err := e.SweepOverdue(ctx); d.Round(time.Minute) != want || err != nil {
				t.Errorf("a sweep is overdue for %v, %v; want %v", d, err, want)
			}
		}
		overdue(2 * time.Hour) // the record of the session that expired first
		sweep(0)               // removes records, no content
		overdue(0)
		for _, f := range []*upload.File{open, big, done} {
			_, err = e.Get(ctx, "alice", f.Key)
			wantKind(t, "Get", err, fs.ErrNotExist)
		}
		e.content(forever)
		if n := e.objects(); n != 1 {
			t.Errorf("%d objects, want 1", n)
		}
	})
}

// A file that cannot be expired now does not block the others, and is expired later.
func TestSweepGoesOn(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, records func(testing.TB) upload.Store, blobs func(testing.TB) blob.Store) {
		e := newEnv(t, blobs(t), upload.Options{Store: records(t), KeepExpired: 30 * day})
		files := e.add(7)
		open, urls := e.start(5, 1)
		e.put(urls[0], noise(5))
		e.clock.advance(2 * day)
		bad := newEnv(t, badBlobs{e.blobs, map[string]bool{files[1].Object: true}}, upload.Options{Store: badRecords{e.store, files[2].Key}, KeepExpired: 30 * day})
		bad.clock.advance(2 * day)
		for n, want := range []int{6, 0} { // five files and the session
			got, err := bad.Sweep(t.Context())
			if got != want || !errors.Is(err, errStore) {
				t.Errorf("Sweep %d = %d, %v, want %d and errStore", n, got, err, want)
			}
		}
		for i, f := range append(files, open) {
			want := upload.Expired
			if i == 1 || i == 2 {
				want = upload.Ready
			}
			if got, err := e.store.Get(t.Context(), f.Key); err != nil || got.State != want {
				t.Errorf("file %d = %+v, %v, want %s", i, got, err, want)
			}
		}
		if n, err := e.Sweep(t.Context()); n != 2 || err != nil {
			t.Errorf("Sweep = %d, %v, want 2", n, err)
		}
		if n := e.objects(); n != 0 {
			t.Errorf("%d objects are left", n)
		}
	})
}

// badBlobs is a store that cannot delete some objects.
type badBlobs struct {
	blob.Store
	bad map[string]bool
}

func (s badBlobs) Delete(ctx context.Context, key string) error {
	if s.bad[key] {
		return errStore
	}
	return s.Store.Delete(ctx, key)
}

// badRecords is a store that cannot change one of its records.
type badRecords struct {
	upload.Store
	bad string
}

func (s badRecords) Expire(ctx context.Context, keys []string, at, until time.Time) ([]*upload.File, error) {
	if slices.Contains(keys, s.bad) {
		return nil, errStore
	}
	return s.Store.Expire(ctx, keys, at, until)
}

func (s badRecords) Update(ctx context.Context, key string, fn func(*upload.File) error) (*upload.File, error) {
	if key == s.bad {
		return nil, errStore
	}
	return s.Store.Update(ctx, key, fn)
}

// A file whose lifetime is extended after it was listed stays.
func TestSweepProlonged(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, records func(testing.TB) upload.Store, blobs func(testing.TB) blob.Store) {
		s := &staleRecords{Store: records(t)}
		e := newEnv(t, blobs(t), upload.Options{Store: s})
		files := e.add(3)
		e.clock.advance(2 * day)
		for f, err := range s.Store.ExpiredBefore(t.Context(), e.clock.now()) {
			systest.NoError(t, err)
			s.stale = append(s.stale, f)
		}
		if _, err := s.Update(t.Context(), files[1].Key, func(f *upload.File) error {
			f.Expires = f.Expires.Add(10 * day)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if n, err := e.Sweep(t.Context()); n != 2 || err != nil {
			t.Errorf("Sweep = %d, %v, want 2", n, err)
		}
		e.intact(files[1:2])
	})
}

type staleRecords struct {
	upload.Store
	stale []*upload.File
}

func (s *staleRecords) ExpiredBefore(context.Context, time.Time) iter.Seq2[*upload.File, error] {
	return func(yield func(*upload.File, error) bool) {
		for _, f := range s.stale {
			if !yield(f, nil) {
				return
			}
		}
	}
}

// A process with exclusive use of the store need not wait to remove the leftovers of a
// crash.
func TestSweepLeftBehind(t *testing.T) {
	t.Parallel()
	each(t, upload.Options{}, func(t *testing.T, e *env) {
		ctx := t.Context()
		old, young := "files/"+strings.Repeat("y", 26), "files/"+strings.Repeat("z", 26)
		put := func(key string) time.Time {
			t.Helper()
			systest.NoError(t, e.blobs.Put(ctx, key, strings.NewReader("x"), 1))
			info, err := blob.Stat(ctx, e.blobs, key)
			systest.NoError(t, err)
			return info.ModTime
		}
		ready, err := e.Add(ctx, upload.File{Owner: "alice", Size: 2}, strings.NewReader("ab"), "")
		systest.NoError(t, err)
		before := put(old)
		var start time.Time // by the clock of the store
		systest.Until(t, "the store's clock advances", func() bool {
			start = put(young)
			return start.Sub(before) >= time.Millisecond
		})
		o := &upload.Options{Store: e.store, Exclusive: true}
		o.SetClock(func() time.Time { return start.Add(time.Second) }) // the clock of a store may lag by a second
		m, err := upload.NewManager(e.blobs, o)
		systest.NoError(t, err)
		for range 2 {
			if _, err := m.Sweep(ctx); err != nil {
				t.Fatal(err)
			}
		}
		for key, want := range map[string]bool{old: false, young: true, ready.Object: true} {
			if _, err := blob.Stat(ctx, e.blobs, key); (err == nil) != want {
				t.Errorf("%s: %v, want it to exist: %v", key, err, want)
			}
		}
	})
}

func TestSweepOrphans(t *testing.T) {
	t.Parallel()
	each(t, upload.Options{Grace: 10 * time.Hour, KeepExpired: -1, SessionTTL: 1e3 * time.Hour, FileTTL: -1}, func(t *testing.T, e *env) {
		ctx := t.Context()
		put := func(key string) {
			t.Helper()
			systest.NoError(t, e.blobs.Put(ctx, key, strings.NewReader("x"), 1))
		}
		exists := func(key string) bool {
			t.Helper()
			_, err := blob.Stat(ctx, e.blobs, key)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
			return err == nil
		}
		open, urls := e.start(10, 2)
		e1 := e.put(urls[0], noise(3))
		e2 := e.put(urls[1], noise(7))
		ready, err := e.Add(ctx, upload.File{Owner: "alice", Size: 2}, strings.NewReader("ab"), "")
		if err != nil || !ready.Expires.IsZero() {
			t.Fatal(ready, err)
		}
		nobody := strings.Repeat("z", 26)
		ended := strings.Repeat("y", 26)
		if _, err := e.store.Create(ctx, &upload.File{Key: ended, State: upload.Expired, Object: "files/" + ended}); err != nil {
			t.Fatal(err)
		}
		orphans := []string{"files/" + nobody, "files/" + ended, "files/strange", "files/" + ready.Key + "/x", "parts/" + nobody + "/1", "parts/" + ready.Key + "/1"}
		for _, key := range append(orphans, "other/"+nobody) {
			put(key)
		}
		area := blob.Assembly{Store: e.blobs, ID: nobody, Size: 10, Parts: 1}
		systest.NoError(t, area.Begin(ctx))
		before := e.objects()
		sweep := func() {
			t.Helper()
			if n, err := e.Sweep(ctx); n != 0 || err != nil {
				t.Fatalf("Sweep = %d, %v", n, err)
			}
		}
		sweep()
		if n := e.objects(); n != before {
			t.Errorf("Sweep has removed %d young objects", before-n)
		}
		e.clock.advance(11 * time.Hour)
		sweep()
		for _, key := range orphans {
			if exists(key) {
				t.Errorf("%s is left", key)
			}
		}
		if !exists("other/" + nobody) {
			t.Error("what is none of our business was removed")
		}
		want := before - len(orphans)
		if _, ok := blob.As[blob.Stager](e.blobs); ok {
			want--
		}
		if n := e.objects(); n != want {
			t.Errorf("%d objects and staging areas, want %d", n, want)
		}
		if n := e.OrphansRemoved(); n != int64(before-want) {
			t.Errorf("%d orphans are counted, want %d", n, before-want)
		}

		// Content with a record is still complete.
		done, _, err := e.Complete(ctx, "alice", open.Key, "", "", list(e1, e2))
		if err != nil || !bytes.Equal(e.content(done), append(noise(3), noise(7)...)) {
			t.Errorf("%+v, %v", done, err)
		}
		e.content(ready)
	})
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	e := newEnv(t, memblob.New(), upload.Options{})
	open, _ := e.start(5, 1)
	f, urls := e.start(5, 1)
	if _, _, err := e.Start(ctx, upload.Request{Size: 1, Parts: 10_001}); !errors.Is(err, upload.ErrInvalid) {
		t.Errorf("10001 parts: %v", err)
	}
	if _, _, err := e.Start(ctx, upload.Request{Size: 5<<40 + 1, Parts: 10_000}); !errors.Is(err, upload.ErrTooLarge) {
		t.Errorf("above 5 TiB: %v", err)
	}
	etag := e.put(urls[0], noise(5))
	e.clock.advance(12 * time.Hour)
	if _, _, err := e.Complete(ctx, "alice", f.Key, "", "", list(etag)); err != nil {
		t.Fatal(err)
	}
	at := e.clock.now()
	for _, tt := range []struct {
		after      time.Duration
		open, file upload.State // "" is unknown
	}{
		{12*time.Hour - time.Second, upload.Open, upload.Ready},
		{12 * time.Hour, upload.Expired, upload.Ready},
		{24*time.Hour - time.Second, upload.Expired, upload.Ready},
		{24 * time.Hour, upload.Expired, upload.Expired},
		{(12+7*24)*time.Hour - time.Second, upload.Expired, upload.Expired},
		{(12 + 7*24) * time.Hour, "", upload.Expired},
		{(24 + 7*24) * time.Hour, "", ""},
	} {
		e.clock.advance(at.Add(tt.after).Sub(e.clock.now()))
		if _, err := e.Sweep(ctx); err != nil {
			t.Fatal(err)
		}
		for key, want := range map[string]upload.State{open.Key: tt.open, f.Key: tt.file} {
			switch got, err := e.Get(ctx, "alice", key); {
			case want == "":
				wantKind(t, "Get", err, fs.ErrNotExist)
			case err != nil || got.State != want:
				t.Errorf("after %v: %+v, %v, want %s", tt.after, got, err, want)
			}
		}
	}
}

// sweepCalls counts what a sweep asks of the stores.
type sweepCalls struct {
	upload.Store
	n atomic.Int64
}

func (s *sweepCalls) Get(ctx context.Context, key string) (*upload.File, error) {
	s.n.Add(1)
	return s.Store.Get(ctx, key)
}

func (s *sweepCalls) GetAll(ctx context.Context, keys []string) (map[string]*upload.File, error) {
	s.n.Add(1)
	return s.Store.GetAll(ctx, keys)
}

func (s *sweepCalls) Update(ctx context.Context, key string, fn func(*upload.File) error) (*upload.File, error) {
	s.n.Add(1)
	return s.Store.Update(ctx, key, fn)
}

func (s *sweepCalls) Expire(ctx context.Context, keys []string, at, until time.Time) ([]*upload.File, error) {
	s.n.Add(1)
	return s.Store.Expire(ctx, keys, at, until)
}

// A sweep reads and changes the records of expired files in batches, not one by one.
func TestSweepInBatches(t *testing.T) {
	t.Parallel()
	const files = 1100
	s := &sweepCalls{Store: new(upload.MemStore)}
	e := newEnv(t, memblob.New(), upload.Options{Store: s, FileTTL: time.Hour})
	for range files {
		if _, err := e.Add(t.Context(), upload.File{Owner: "alice", Size: 1}, strings.NewReader("x"), ""); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := e.Sweep(t.Context()); err != nil { // looks for orphans too
		t.Fatal(err)
	}
	e.clock.advance(2 * time.Hour)
	s.n.Store(0)
	if n, err := e.Sweep(t.Context()); n != files || err != nil {
		t.Errorf("Sweep = %d, %v, want %d", n, err, files)
	}
	if n := s.n.Load(); n != 4 { // two calls for each thousand
		t.Errorf("%d calls of the record store for %d files, want 4", n, files)
	}
}

// While the host's clock is a day ahead, files look expired but are not removed.
func TestSweepClockJump(t *testing.T) {
	t.Parallel()
	start := time.Now()
	var jump, passed time.Duration
	o := upload.Options{FileTTL: time.Hour, Grace: time.Hour}
	o.SetClock(func() time.Time { return start.Add(passed + jump) })
	o.SetPast(func() time.Time { return start.Add(passed) })
	m, err := upload.NewManager(memblob.New(), &o)
	systest.NoError(t, err)
	f, err := m.Add(t.Context(), upload.File{Owner: "alice", Name: "a.txt"}, strings.NewReader("content"), "")
	systest.NoError(t, err)
	sweep := func(want int) {
		t.Helper()
		if n, err := m.Sweep(t.Context()); n != want || err != nil {
			t.Errorf("Sweep = %d, %v, want %d", n, err, want)
		}
	}
	jump = 24 * time.Hour
	if _, err := m.Ready(t.Context(), "alice", f.Key); !errors.Is(err, upload.ErrExpired) {
		t.Errorf("a day ahead: Ready = %v, want ErrExpired", err)
	}
	sweep(0)
	jump = 0
	if _, err := m.Ready(t.Context(), "alice", f.Key); err != nil {
		t.Errorf("after the jump back: Ready = %v", err)
	}
	passed = 2 * time.Hour
	sweep(1)
}
