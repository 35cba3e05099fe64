package upload_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/upload"
	"github.com/filewright/filewright/upload/blob"
	"github.com/filewright/filewright/upload/blob/memblob"
)

// check returns the findings of a check, as "kind name", sorted. names maps keys to
// names.
func (e *env) check(o upload.CheckOptions, names map[string]string) ([]string, upload.CheckCounts) {
	e.t.Helper()
	found := []string{}
	counts, err := e.Check(e.t.Context(), o, func(d upload.Difference) error {
		line := fmt.Sprint(d.Kind, " ", cmp.Or(names[d.Key], d.Key))
		if d.Repaired {
			line += " repaired"
		}
		found = append(found, line)
		return nil
	})
	if err != nil {
		e.t.Fatalf("Check = %v", err)
	}
	slices.Sort(found)
	return found, counts
}

// A check finds each kind of difference, on every kind of store, and nothing else.
func TestCheck(t *testing.T) {
	t.Parallel()
	each(t, upload.Options{SessionTTL: 1000 * time.Hour, FileTTL: 1000 * time.Hour, KeepExpired: 1000 * time.Hour}, func(t *testing.T, e *env) {
		ctx := t.Context()
		names := make(map[string]string)
		check := func(o upload.CheckOptions) ([]string, upload.CheckCounts) {
			o.SetSecondLook(time.Millisecond)
			return e.check(o, names)
		}
		add := func(name, content string, expires time.Time) *upload.File {
			t.Helper()
			f, err := e.Add(ctx, upload.File{Owner: "alice", Size: int64(len(content)), Expires: expires}, strings.NewReader(content), "")
			systest.NoError(t, err)
			names[f.Key] = name
			return f
		}
		put := func(key, content string) {
			t.Helper()
			systest.NoError(t, e.blobs.Put(ctx, key, strings.NewReader(content), int64(len(content))))
		}
		remove := func(key string) {
			t.Helper()
			systest.NoError(t, e.blobs.Delete(ctx, key))
		}
		begin := func(name string, parts int) (*upload.File, []*url.URL) {
			f, urls := e.start(10, parts)
			names[f.Key] = name
			return f, urls
		}
		complete := func(name string, data ...[]byte) *upload.File {
			f, urls := begin(name, len(data))
			var etags []string
			for i, d := range data {
				etags = append(etags, e.put(urls[i], d))
			}
			f, _, err := e.Complete(ctx, "alice", f.Key, "", "", list(etags...))
			systest.NoError(t, err)
			return f
		}
		for range 5 {
			add("whole", "abc", time.Time{})
		}
		complete("one part", noise(10))
		complete("parts", noise(3), noise(7))
		begin("begun", 2)
		_, urls := begin("half sent", 2)
		e.put(urls[0], noise(5))
		_, urls = begin("sent in unusual parts", 2)
		e.put(urls[0], noise(7)) // a separate object on every store
		e.put(urls[1], noise(3))
		expired := add("expired", "abc", e.clock.now().Add(time.Hour))
		systest.NoError(t, e.Delete(ctx, "alice", add("deleted", "abc", time.Time{}).Key))
		e.clock.advance(2 * time.Hour)
		if _, err := e.Sweep(ctx); err != nil {
			t.Fatal(err)
		}
		if found, counts := check(upload.CheckOptions{Deep: true}); len(found) != 0 || counts.Records != 11 || counts.Objects != 7 || counts.Uploads != 3 || counts.Recent != 0 || counts.Verified != 2 || counts.Bytes != 35 {
			t.Errorf("a whole store: %q, %+v", found, counts)
		}

		remove(add("missing", "abc", time.Time{}).Object)
		put(add("truncated", "abc", time.Time{}).Object, "ab")
		remove(add("about to expire", "abc", e.clock.now().Add(30*time.Second)).Object)
		put(complete("damaged", noise(10)).Object, strings.Repeat("x", 10))
		put(complete("damaged part", noise(3), noise(7)).Object, strings.Repeat("x", 10))
		put(add("a result whose checksum is not known", "abc", time.Time{}).Object, "xyz")
		nobody := strings.Repeat("z", 26)
		names[nobody] = "nobody"
		put("files/"+nobody, "abc")
		put("files/strange", "abc")
		put(expired.Object, "abc")
		put("parts/"+nobody+"/1", "abc")
		want := []string{"missing_part unstaged part lost", "leftover nobody"}
		f, urls := begin("unstaged part lost", 2)
		e.put(urls[0], noise(7))
		remove("parts/" + f.Key + "/1")
		if s, ok := blob.As[blob.Stager](e.blobs); ok {
			f, urls = begin("area lost", 1)
			e.put(urls[0], noise(10))
			systest.NoError(t, s.AbortStaged(ctx, f.Key))
			systest.NoError(t, s.Stage(ctx, nobody, 10))
			want = append(want, "missing_part area lost", "leftover nobody")
		}
		want = append(want, "missing missing", "wrong_size truncated")

		// Young content without a record may still get one.
		found, counts := check(upload.CheckOptions{})
		slices.Sort(want)
		if young := slices.DeleteFunc(slices.Clone(want), func(s string) bool { return strings.HasPrefix(s, "leftover") }); !slices.Equal(found, young) || counts.Recent != 3 {
			t.Errorf("found %q, want %q; %d are young", found, young, counts.Recent)
		}
		e.clock.advance(25 * time.Hour)
		want = append(want, "damaged damaged", "damaged damaged part", "orphan nobody", "orphan strange", "orphan expired")
		slices.Sort(want)
		found, counts = check(upload.CheckOptions{Deep: true})
		if !slices.Equal(found, want) || counts.Recent != 0 {
			t.Errorf("found %q, want %q; %d are young", found, want, counts.Recent)
		}

		// A repair touches only content that no record needs.
		for i, line := range want {
			if strings.HasPrefix(line, "leftover") || strings.HasPrefix(line, "orphan") {
				want[i] += " repaired"
			}
		}
		if found, _ = check(upload.CheckOptions{Deep: true, Repair: true}); !slices.Equal(found, want) {
			t.Errorf("repair: found %q, want %q", found, want)
		}
		want = slices.DeleteFunc(want, func(s string) bool { return strings.HasSuffix(s, "repaired") })
		if found, counts = check(upload.CheckOptions{Deep: true}); !slices.Equal(found, want) || counts.Quarantined != 3 {
			t.Errorf("after the repair: found %q, want %q; %d in quarantine", found, want, counts.Quarantined)
		}

		// Content in quarantine is restored if its record exists again.
		f = add("known again", "abc", time.Time{})
		systest.NoError(t, e.store.Delete(ctx, f.Key))
		if moved, err := e.Quarantine(ctx, f.Object); !moved || err != nil {
			t.Fatal(moved, err)
		}
		if _, err := e.store.Create(ctx, f); err != nil {
			t.Fatal(err)
		}
		with := func(more ...string) []string {
			more = append(more, want...)
			slices.Sort(more)
			return more
		}
		if found, _ = check(upload.CheckOptions{}); !slices.Equal(found, slices.DeleteFunc(with("quarantined known again", "missing known again"), func(s string) bool { return strings.HasPrefix(s, "damaged") })) {
			t.Errorf("with lost content in quarantine: found %q", found)
		}
		if found, _ = check(upload.CheckOptions{Deep: true, Repair: true}); !slices.Equal(found, with("quarantined known again repaired")) {
			t.Errorf("restored: found %q", found)
		}
		if found, counts = check(upload.CheckOptions{Deep: true}); !slices.Equal(found, want) || counts.Quarantined != 3 || string(e.content(f)) != "abc" {
			t.Errorf("after the restoration: found %q, want %q; %d in quarantine", found, want, counts.Quarantined)
		}

		// A check does not compare content with records that belong to another store.
		systest.NoError(t, e.Bind(ctx, upload.BindOptions{Adopt: true}))
		if found, _ = check(upload.CheckOptions{Deep: true}); !slices.Equal(found, want) {
			t.Errorf("with an identity: found %q, want %q", found, want)
		}
		other, err := upload.NewManager(e.blobs, nil)
		systest.NoError(t, err)
		if _, err := other.Check(ctx, upload.CheckOptions{Repair: true}, func(upload.Difference) error { return errStore }); !errors.Is(err, upload.ErrIdentity) {
			t.Errorf("with other records: %v", err)
		}
	})
}

// For direct uploads, the bucket knows the parts.
func TestCheckDirect(t *testing.T) {
	t.Parallel()
	e, s := newDirect(t, upload.Options{})
	whole, urls := e.start(10, 1)
	etag := e.send(urls[0], noise(10))
	if _, _, err := e.Complete(t.Context(), "alice", whole.Key, "", "", list(etag)); err != nil {
		t.Fatal(err)
	}
	_, urls = e.start(10, 1)
	e.send(urls[0], noise(10))
	if found, counts := e.check(upload.CheckOptions{Deep: true}, nil); len(found) != 0 || counts.Uploads != 1 || counts.Bytes != 10 || counts.Verified != 0 {
		t.Errorf("a whole store: %q, %+v", found, counts)
	}
	lost, _ := e.start(10, 1)
	systest.NoError(t, s.AbortDirect(t.Context(), blob.DirectUpload{Key: lost.Object, ID: lost.UploadID}))
	if found, _ := e.check(upload.CheckOptions{}, nil); !slices.Equal(found, []string{"missing_part " + lost.Key}) {
		t.Errorf("found %q", found)
	}
}

// A check during uploads, completions, part replacements, deletions and expiry finds no
// difference, however short the grace.
func TestCheckBesideWork(t *testing.T) {
	t.Parallel()
	for _, b := range backends {
		if b.name == "bucket" {
			continue // slow; the e2e tests have one
		}
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			m, err := upload.NewManager(b.open(t), &upload.Options{FileTTL: time.Minute + 200*time.Millisecond})
			systest.NoError(t, err)
			e := &env{Manager: m, t: t}
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			var done atomic.Int64
			for w := range 4 {
				wg.Go(func() {
					for n := 0; ctx.Err() == nil; n++ {
						f, urls := e.start(10, 2)
						etags := []string{e.put(urls[0], noise(5)), e.put(urls[1], noise(5))}
						etags[1] = e.put(urls[1], noise(5))
						if (n+w)%3 > 0 {
							if _, _, err := e.Complete(t.Context(), "alice", f.Key, "", "", list(etags...)); err != nil {
								t.Error(err)
							}
						}
						if n%2 == 0 {
							systest.Check(t, e.Delete(t.Context(), "alice", f.Key))
						}
						done.Add(1)
					}
				})
			}
			var counts upload.CheckCounts
			for uploads, records := int64(systest.Scale(300, 60)), int64(systest.Scale(100, 30)); done.Load() < uploads || counts.Records < records; {
				var found []string
				// The grace is a little longer than the time between storing content
				// and recording it.
				found, counts = e.check(upload.CheckOptions{Grace: 500 * time.Millisecond, Deep: true}, nil)
				if len(found) > 0 {
					t.Errorf("%d differences after %d uploads: %q", len(found), done.Load(), found)
					break
				}
			}
			cancel()
			wg.Wait()
		})
	}
}

// A brokenStore fails to list and is unavailable for calls about single objects. before
// is called before a list.
type brokenStore struct {
	blob.Store
	listed, away error
	before       func()
}

func (s *brokenStore) List(ctx context.Context, prefix string) iter.Seq2[blob.Info, error] {
	return func(yield func(blob.Info, error) bool) {
		if s.before != nil {
			s.before()
		}
		if s.listed != nil {
			yield(blob.Info{}, s.listed)
			return
		}
		s.Store.List(ctx, prefix)(yield)
	}
}

func (s *brokenStore) Open(ctx context.Context, key string) (blob.Object, error) {
	if s.away != nil {
		return nil, s.away
	}
	return s.Store.Open(ctx, key)
}

// A check that cannot read the store fails and reports nothing as lost.
func TestCheckFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &brokenStore{Store: memblob.New()}
		e := newEnv(t, store, upload.Options{})
		f, err := e.Add(t.Context(), upload.File{Size: 3}, strings.NewReader("abc"), "")
		systest.NoError(t, err)
		none := func(d upload.Difference) error {
			t.Errorf("found %+v", d)
			return nil
		}
		store.listed = errStore
		if _, err := e.Check(t.Context(), upload.CheckOptions{}, none); !errors.Is(err, errStore) {
			t.Errorf("the list fails: %v", err)
		}
		store.listed, store.away = nil, blob.ErrUnavailable
		if _, err := e.Check(t.Context(), upload.CheckOptions{Deep: true}, none); !errors.Is(err, blob.ErrUnavailable) {
			t.Errorf("the store is away: %v", err)
		}
		systest.NoError(t, store.Delete(t.Context(), f.Object))
		if _, err := e.Check(t.Context(), upload.CheckOptions{}, none); !errors.Is(err, blob.ErrUnavailable) {
			t.Errorf("the store is away, and lists nothing: %v", err)
		}
		store.away = nil
		if _, err := e.Check(t.Context(), upload.CheckOptions{}, func(upload.Difference) error { return errStore }); !errors.Is(err, errStore) {
			t.Errorf("who is called fails: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := e.Check(ctx, upload.CheckOptions{}, none); !errors.Is(err, context.Canceled) {
			t.Errorf("it is cancelled: %v", err)
		}
	})
}

// A file that is deleted, expires or is completed after its record was read is not a
// difference.
func TestCheckAfterChange(t *testing.T) {
	t.Parallel()
	store := &brokenStore{Store: memblob.New()}
	e := newEnv(t, store, upload.Options{})
	ctx := t.Context()
	add := func(expires time.Time) *upload.File {
		f, err := e.Add(ctx, upload.File{Owner: "alice", Size: 3, Expires: expires}, strings.NewReader("abc"), "")
		systest.NoError(t, err)
		return f
	}
	deleted := add(time.Time{})
	add(e.clock.now().Add(time.Hour))
	open, urls := e.start(10, 1)
	etag := e.put(urls[0], noise(10))
	store.before = func() {
		store.before = nil
		systest.Check(t, e.Delete(ctx, "alice", deleted.Key))
		e.clock.advance(2 * time.Hour)
		if n, err := e.Sweep(ctx); n != 1 || err != nil {
			t.Errorf("Sweep = %d, %v", n, err)
		}
		if _, _, err := e.Complete(ctx, "alice", open.Key, "", "", list(etag)); err != nil {
			t.Error(err)
		}
		add(time.Time{}) // its content is listed
	}
	o := upload.CheckOptions{Deep: true, Grace: time.Hour} // by our clock the content is older
	o.SetSecondLook(time.Millisecond)
	if found, counts := e.check(o, nil); len(found) > 0 || counts.Records != 3 || counts.Objects != 2 || counts.Recent != 0 {
		t.Errorf("found %q, %+v", found, counts)
	}
}

// Content whose record has just been deleted is not a difference.
func TestCheckDuringDeletion(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newEnv(t, memblob.New(), upload.Options{})
		slow, left := "files/"+strings.Repeat("a", 26), "files/"+strings.Repeat("b", 26)
		for _, key := range []string{slow, left} {
			systest.NoError(t, e.blobs.Put(t.Context(), key, strings.NewReader("abc"), 3))
		}
		e.clock.advance(25 * time.Hour)
		go func() {
			time.Sleep(time.Second)
			systest.Check(t, e.blobs.Delete(context.Background(), slow))
		}()
		found, _ := e.check(upload.CheckOptions{}, nil)
		if !slices.Equal(found, []string{"orphan " + left[len("files/"):]}) {
			t.Errorf("found %q", found)
		}
	})
}
