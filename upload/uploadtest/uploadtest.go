// Package uploadtest tests whether a store of file records fulfils the contract of
// upload.Store.
package uploadtest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/upload"
)

// Run tests a store. open returns an empty store for one test and registers its cleanup
// with t.Cleanup. Stores need to keep times only to the millisecond.
func Run(t *testing.T, open func(t *testing.T) upload.Store) {
	for _, tt := range []struct {
		name string
		f    func(t *testing.T, s upload.Store)
	}{
		{"CreateGet", testCreateGet},
		{"GetAll", testGetAll},
		{"Missing", testMissing},
		{"Copies", testCopies},
		{"Update", testUpdate},
		{"UpdateFails", testUpdateFails},
		{"UpdateConcurrent", testUpdateConcurrent},
		{"Delete", testDelete},
		{"Idempotency", testIdempotency},
		{"IdempotencyWindow", testIdempotencyWindow},
		{"IdempotencyConcurrent", testIdempotencyConcurrent},
		{"Parts", testParts},
		{"PartsConcurrent", testPartsConcurrent},
		{"ExpiredBefore", testExpiredBefore},
		{"ExpiredBeforeWithChanges", testExpiredBeforeWithChanges},
		{"Expire", testExpire},
		{"OpenSessions", testOpenSessions},
		{"NewestReady", testNewestReady},
		{"Identity", testIdentity},
		{"All", testAll},
		{"Context", testContext},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.f(t, open(t))
		})
	}
}

var start = time.Date(2025, 2, 28, 23, 59, 58, 123e6, time.UTC)

func file(key string) *upload.File {
	return &upload.File{
		Key:         key,
		Owner:       "owner",
		Name:        "Täst \"名前\".pdf",
		ContentType: "application/pdf",
		Size:        5 << 40,
		State:       upload.Open,
		Object:      "files/" + key,
		UploadID:    "upload-" + key,
		Parts:       10_000,
		Fingerprint: "fp",
		Created:     start,
		Expires:     start.Add(time.Hour),
	}
}

func create(t *testing.T, s upload.Store, f *upload.File) {
	t.Helper()
	got, err := s.Create(t.Context(), f)
	if err != nil {
		t.Fatalf("Create(%s) = %v", f.Key, err)
	}
	if got.Key != f.Key {
		t.Fatalf("Create(%s) = %s", f.Key, got.Key)
	}
}

// createAll creates records concurrently, which is faster.
func createAll(t *testing.T, s upload.Store, files []*upload.File) {
	t.Helper()
	var wg sync.WaitGroup
	for some := range slices.Chunk(files, 50) {
		wg.Go(func() {
			for _, f := range some {
				if _, err := s.Create(t.Context(), f); err != nil {
					t.Errorf("Create(%s) = %v", f.Key, err)
				}
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

// same reports whether two records are equal; it compares only the instants of times.
func same(a, b *upload.File) bool {
	if a == nil || b == nil || !a.Created.Equal(b.Created) || !a.Expires.Equal(b.Expires) || a.Expires.IsZero() != b.Expires.IsZero() {
		return false
	}
	x, y := *a, *b
	x.Created, x.Expires, y.Created, y.Expires = time.Time{}, time.Time{}, time.Time{}, time.Time{}
	return x == y
}

func want(t *testing.T, s upload.Store, f *upload.File) {
	t.Helper()
	if got, err := s.Get(t.Context(), f.Key); err != nil || !same(got, f) {
		t.Errorf("Get(%s) = %+v, %v\nwant %+v", f.Key, got, err, f)
	}
}

func wantErr(t *testing.T, what string, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Errorf("%s = %v, want %v", what, err, target)
	}
}

func testCreateGet(t *testing.T, s upload.Store) {
	full := file("full")
	full.State, full.ETag, full.Task, full.IdempotencyKey = upload.Ready, "etag-2", "task", "idem"
	forever := file("forever")
	forever.Expires = time.Time{}
	empty := &upload.File{Key: "empty", State: upload.Expired, Created: start}
	for _, f := range []*upload.File{full, forever, empty} {
		got, err := s.Create(t.Context(), f)
		if err != nil || !same(got, f) {
			t.Fatalf("Create = %+v, %v\nwant %+v", got, err, f)
		}
	}
	for _, f := range []*upload.File{full, forever, empty} {
		want(t, s, f)
	}
	_, err := s.Create(t.Context(), file("full"))
	wantErr(t, "Create with a key that there is", err, fs.ErrExist)
	want(t, s, full)
}

func testGetAll(t *testing.T, s upload.Store) {
	if got, err := s.GetAll(t.Context(), nil); len(got) > 0 || err != nil {
		t.Errorf("GetAll of nothing = %v, %v", got, err)
	}
	const n = 1100 // more than a store may query at a time
	var keys []string
	for i := range n {
		keys = append(keys, fmt.Sprintf("f%04d", i))
		if i%100 == 7 {
			create(t, s, file(keys[i]))
		}
	}
	got, err := s.GetAll(t.Context(), append(keys, keys[7], "", "o'"))
	if err != nil || len(got) != n/100 {
		t.Errorf("GetAll = %d records, %v", len(got), err)
	}
	for key, f := range got {
		if !same(f, file(key)) {
			t.Errorf("GetAll has %s = %+v", key, f)
		}
	}
}

func testMissing(t *testing.T, s upload.Store) {
	create(t, s, file("other"))
	for _, key := range []string{"none", "", "othe", "other2", "OTHER", "o%", "a'b"} {
		_, err := s.Get(t.Context(), key)
		wantErr(t, "Get", err, fs.ErrNotExist)
		_, err = s.Update(t.Context(), key, func(*upload.File) error {
			t.Error("fn is called without a record")
			return nil
		})
		wantErr(t, "Update", err, fs.ErrNotExist)
		wantErr(t, "AddPart", s.AddPart(t.Context(), key, upload.Part{Number: 1}), fs.ErrNotExist)
		_, _, err = s.Parts(t.Context(), key)
		wantErr(t, "Parts", err, fs.ErrNotExist)
		if err := s.Delete(t.Context(), key); err != nil {
			t.Errorf("Delete = %v", err)
		}
	}
	want(t, s, file("other"))
}

// Arguments and results belong to the caller: the store keeps copies.
func testCopies(t *testing.T, s upload.Store) {
	f := file("a")
	created, err := s.Create(t.Context(), f)
	systest.NoError(t, err)
	f.Name, created.Name = "changed", "changed"
	var kept *upload.File
	updated, err := s.Update(t.Context(), "a", func(f *upload.File) error {
		kept = f
		return nil
	})
	systest.NoError(t, err)
	got, err := s.Get(t.Context(), "a")
	systest.NoError(t, err)
	updated.Name, kept.Name, got.Name = "changed", "changed", "changed"
	for f, err := range s.ExpiredBefore(t.Context(), start.Add(2*time.Hour)) {
		systest.NoError(t, err)
		f.Name = "changed"
	}
	want(t, s, file("a"))
}

func testUpdate(t *testing.T, s upload.Store) {
	create(t, s, file("a"))
	create(t, s, file("b"))
	changed := file("a")
	changed.State, changed.ETag, changed.Size, changed.Name = upload.Ready, "e", 7, ""
	changed.Expires = time.Time{}
	got, err := s.Update(t.Context(), "a", func(f *upload.File) error {
		if !same(f, file("a")) {
			t.Errorf("fn gets %+v", f)
		}
		f.State, f.ETag, f.Size, f.Name, f.Expires = upload.Ready, "e", 7, "", time.Time{}
		return nil
	})
	if err != nil || !same(got, changed) {
		t.Errorf("Update = %+v, %v", got, err)
	}
	want(t, s, changed)
	want(t, s, file("b"))
}

func testUpdateFails(t *testing.T, s upload.Store) {
	create(t, s, file("a"))
	broken := errors.New("broken")
	got, err := s.Update(t.Context(), "a", func(f *upload.File) error {
		f.State = upload.Ready
		return fmt.Errorf("outer: %w", broken)
	})
	wantErr(t, "Update", err, broken)
	if got != nil {
		t.Errorf("Update = %+v with an error", got)
	}
	want(t, s, file("a"))
}

func testUpdateConcurrent(t *testing.T, s upload.Store) {
	f := file("a")
	f.Size = 0
	create(t, s, f)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 10 {
				if _, err := s.Update(t.Context(), "a", func(f *upload.File) error {
					f.Size++
					return nil
				}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	f.Size = 80
	want(t, s, f)
}

func testDelete(t *testing.T, s upload.Store) {
	f := file("a")
	f.IdempotencyKey = "idem"
	create(t, s, f)
	create(t, s, file("b"))
	for _, key := range []string{"a", "b"} {
		systest.NoError(t, s.AddPart(t.Context(), key, upload.Part{Number: 1, ETag: key}))
	}
	systest.NoError(t, s.Delete(t.Context(), "a"))
	_, err := s.Get(t.Context(), "a")
	wantErr(t, "Get after Delete", err, fs.ErrNotExist)
	want(t, s, file("b"))

	// Neither the parts nor the idempotency key exist again.
	f.Created = start.Add(time.Second)
	create(t, s, f)
	want(t, s, f)
	wantParts(t, s, "a")
	wantParts(t, s, "b", upload.Part{Number: 1, ETag: "b"})
}

func testIdempotency(t *testing.T, s upload.Store) {
	first := file("first")
	first.IdempotencyKey = "idem"
	create(t, s, first)

	again := file("again")
	again.IdempotencyKey, again.Fingerprint, again.Created = "idem", "other", start.Add(time.Hour)
	got, err := s.Create(t.Context(), again)
	if err != nil || !same(got, first) {
		t.Fatalf("Create with the same idempotency key = %+v, %v", got, err)
	}
	_, err = s.Get(t.Context(), "again")
	wantErr(t, "Get of what was not stored", err, fs.ErrNotExist)

	// The current record is returned, whatever its state.
	first.State, first.ETag = upload.Ready, "e"
	if _, err := s.Update(t.Context(), "first", func(f *upload.File) error {
		f.State, f.ETag = upload.Ready, "e"
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Create(t.Context(), again); err != nil || !same(got, first) {
		t.Errorf("Create with the same idempotency key = %+v, %v", got, err)
	}

	// Keys are per owner, and the empty key does not count.
	other := file("other")
	other.Owner, other.IdempotencyKey = "other", "idem"
	create(t, s, other)
	nobody := file("nobody")
	nobody.Owner, nobody.IdempotencyKey = "", "idem"
	create(t, s, nobody)
	another := file("another")
	another.IdempotencyKey = "IDEM"
	create(t, s, another)
	create(t, s, file("no1"))
	create(t, s, file("no2"))
}

func testIdempotencyWindow(t *testing.T, s upload.Store) {
	old := file("old")
	old.IdempotencyKey = "idem"
	create(t, s, old)
	at := func(key string, d time.Duration) *upload.File {
		f := file(key)
		f.IdempotencyKey, f.Created = "idem", start.Add(d)
		return f
	}
	if got, err := s.Create(t.Context(), at("within", 24*time.Hour-time.Millisecond)); err != nil || !same(got, old) {
		t.Fatalf("Create within 24 hours = %+v, %v", got, err)
	}
	fresh := at("fresh", 24*time.Hour)
	create(t, s, fresh)
	want(t, s, fresh)
	old.IdempotencyKey = ""
	want(t, s, old)
	if got, err := s.Create(t.Context(), at("within", 25*time.Hour)); err != nil || !same(got, fresh) {
		t.Errorf("Create after the key has a new owner = %+v, %v", got, err)
	}
	// The old record still exists after it lost the key.
	systest.NoError(t, s.Delete(t.Context(), "old"))
	if got, err := s.Create(t.Context(), at("within", 25*time.Hour)); err != nil || !same(got, fresh) {
		t.Errorf("Create after the old record was deleted = %+v, %v", got, err)
	}
}

func testIdempotencyConcurrent(t *testing.T, s upload.Store) {
	var wg sync.WaitGroup
	keys := make([]string, 16)
	for i := range keys {
		wg.Go(func() {
			f := file(fmt.Sprint("k", i))
			f.IdempotencyKey = "idem"
			got, err := s.Create(t.Context(), f)
			if err != nil {
				t.Error(err)
				return
			}
			keys[i] = got.Key
		})
	}
	wg.Wait()
	slices.Sort(keys)
	if winners := slices.Compact(keys); len(winners) != 1 {
		t.Errorf("the same idempotency key has made %q", winners)
	}
	n := 0
	for range s.ExpiredBefore(t.Context(), start.Add(2*time.Hour)) {
		n++
	}
	if n != 1 {
		t.Errorf("%d records are stored", n)
	}
}

func wantParts(t *testing.T, s upload.Store, key string, want ...upload.Part) {
	t.Helper()
	f, got, err := s.Parts(t.Context(), key)
	if err == nil {
		want, err := s.Get(t.Context(), key)
		if err != nil || !same(f, want) {
			t.Errorf("Parts(%s) = %+v, Get = %+v, %v", key, f, want, err)
		}
	}
	if err != nil || len(got) != len(want) || len(got) > 0 && !reflect.DeepEqual(got, want) {
		t.Errorf("Parts(%s) = %+v, %v\nwant %+v", key, got, err, want)
	}
}

func testParts(t *testing.T, s upload.Store) {
	create(t, s, file("a"))
	create(t, s, file("b"))
	wantParts(t, s, "a")
	var all []upload.Part
	for _, n := range []int{10, 2, 10_000, 1, 9, 100} {
		p := upload.Part{Number: n, ETag: fmt.Sprintf("%032x", n), Size: int64(n) << 33, Staged: n%2 == 0}
		all = append(all, p)
		systest.NoError(t, s.AddPart(t.Context(), "a", p))
	}
	slices.SortFunc(all, func(a, b upload.Part) int { return a.Number - b.Number })
	wantParts(t, s, "a", all...)
	wantParts(t, s, "b")

	// Replacing changes all fields of a part, and no other part.
	all[1] = upload.Part{Number: 2, ETag: "new", Size: 0, Staged: false, Revision: 1<<31 - 1}
	all[2] = upload.Part{Number: 9, ETag: "new", Size: 1, Staged: true}
	for _, p := range all[1:3] {
		systest.NoError(t, s.AddPart(t.Context(), "a", p))
	}
	wantParts(t, s, "a", all...)
	want(t, s, file("a"))

	// A file that is not open gets no more parts.
	done := file("done")
	done.State = upload.Ready
	create(t, s, done)
	wantErr(t, "AddPart", s.AddPart(t.Context(), "done", upload.Part{Number: 1}), fs.ErrNotExist)
	wantParts(t, s, "done")
}

func testPartsConcurrent(t *testing.T, s upload.Store) {
	create(t, s, file("a"))
	var wg sync.WaitGroup
	var all []upload.Part
	for n := 1; n <= 40; n++ {
		p := upload.Part{Number: n, ETag: "e", Size: int64(n)}
		all = append(all, p)
		wg.Go(func() {
			if err := errors.Join(
				s.AddPart(t.Context(), "a", upload.Part{Number: n, ETag: "old"}),
				s.AddPart(t.Context(), "a", p),
			); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	wantParts(t, s, "a", all...)
}

func expired(t *testing.T, s upload.Store, at time.Time) (keys []string) {
	t.Helper()
	for f, err := range s.ExpiredBefore(t.Context(), at) {
		systest.NoError(t, err)
		keys = append(keys, f.Key)
	}
	return keys
}

func testExpiredBefore(t *testing.T, s upload.Store) {
	if got := expired(t, s, start.Add(1e6*time.Hour)); got != nil {
		t.Errorf("an empty store has %q", got)
	}
	for i, state := range []upload.State{upload.Open, upload.Ready, upload.Expired, upload.Ready} {
		f := file(fmt.Sprint("f", i))
		f.State, f.Expires = state, start.Add(time.Duration(10-i)*time.Minute)
		create(t, s, f)
	}
	forever := file("forever")
	forever.Expires = time.Time{}
	create(t, s, forever)

	for _, tt := range []struct {
		at   time.Duration
		want []string
	}{
		{7 * time.Minute, nil},
		{7*time.Minute + time.Millisecond, []string{"f3"}},
		{9 * time.Minute, []string{"f3", "f2"}},
		{time.Hour, []string{"f3", "f2", "f1", "f0"}},
		{100_000 * time.Hour, []string{"f3", "f2", "f1", "f0"}},
	} {
		if got := expired(t, s, start.Add(tt.at)); !slices.Equal(got, tt.want) {
			t.Errorf("expired after %v: %q, want %q", tt.at, got, tt.want)
		}
	}
	for f, err := range s.ExpiredBefore(t.Context(), start.Add(8*time.Minute)) {
		w := file("f3")
		w.State, w.Expires = upload.Ready, start.Add(7*time.Minute)
		if err != nil || !same(f, w) {
			t.Errorf("ExpiredBefore yields %+v, %v\nwant %+v", f, err, w)
		}
	}
	for range s.ExpiredBefore(t.Context(), start.Add(time.Hour)) {
		break
	}
	if got := expired(t, s, start.Add(time.Hour)); len(got) != 4 {
		t.Errorf("after an iteration that was left there are %q", got)
	}
}

// Like Manager.Sweep, with so many records that a store may read them in pages.
func testExpiredBeforeWithChanges(t *testing.T, s upload.Store) {
	const n = 1100
	all := make([]*upload.File, n)
	for i := range n {
		all[i] = file(fmt.Sprintf("f%03d", i))
		all[i].Expires = start.Add(time.Duration(i/50) * time.Minute) // many at the same time
	}
	createAll(t, s, all)
	seen := make(map[string]int)
	at := start.Add(time.Hour)
	for f, err := range s.ExpiredBefore(t.Context(), at) {
		systest.NoError(t, err)
		seen[f.Key]++
		switch len(seen) % 3 {
		case 0:
			err = s.Delete(t.Context(), f.Key)
		case 1:
			_, err = s.Update(t.Context(), f.Key, func(f *upload.File) error {
				f.State, f.Expires = upload.Expired, at.Add(24*time.Hour)
				return nil
			})
		case 2:
			_, err = s.Get(t.Context(), f.Key)
		}
		systest.NoError(t, err)
	}
	if len(seen) != n {
		t.Errorf("%d of %d records are seen", len(seen), n)
	}
	for key, times := range seen {
		if times != 1 {
			t.Errorf("%s is seen %d times", key, times)
		}
	}
	if got := expired(t, s, at); len(got) != (n+1)/3 {
		t.Errorf("%d records are left, want %d", len(got), (n+1)/3)
	}
}

func testExpire(t *testing.T, s upload.Store) {
	at, until := start.Add(time.Hour), start.Add(48*time.Hour)
	states := []upload.State{upload.Ready, upload.Open, upload.Expired, upload.Ready, upload.Ready}
	const n = 1500 // more than a store may change at a time
	var keys []string
	var all []*upload.File
	files := make(map[string]*upload.File)
	for i := range n {
		f := file(fmt.Sprintf("f%04d", i))
		f.State, f.Owner, f.Size = states[i%5], fmt.Sprint("owner", i%3), int64(i)
		switch i % 5 {
		case 3:
			f.Expires = at.Add(time.Millisecond)
		case 4:
			f.Expires = time.Time{}
		}
		if i%50 == 0 {
			f.IdempotencyKey = fmt.Sprint("idem", i)
		}
		keys, all = append(keys, f.Key), append(all, f)
		files[f.Key] = f
	}
	createAll(t, s, all)
	expire := func(keys []string, until time.Time) (ended []string) {
		t.Helper()
		all, err := s.Expire(t.Context(), keys, at, until)
		systest.NoError(t, err)
		for _, f := range all {
			if !same(f, files[f.Key]) {
				t.Errorf("Expire returns %+v\nwant %+v", f, files[f.Key])
			}
			ended = append(ended, f.Key)
		}
		slices.Sort(ended)
		return ended
	}
	if got := expire(nil, until); got != nil {
		t.Errorf("Expire of nothing = %q", got)
	}
	last := keys[n-5:] // one of each
	if got := expire(append(last, "none", last[0]), time.Time{}); !slices.Equal(got, last[:1]) {
		t.Errorf("Expire without records to be kept = %q", got)
	}
	if got := expire(keys, until); len(got) != n/5-1 {
		t.Errorf("Expire ends %d files, want %d", len(got), n/5-1)
	}
	if got := expire(keys, until); got != nil {
		t.Errorf("Expire of the same = %q", got)
	}
	there, err := s.GetAll(t.Context(), keys)
	systest.NoError(t, err)
	for i, key := range keys {
		want := files[key]
		switch {
		case i%5 == 2 || i == n-5:
			want = nil
		case i%5 == 0:
			want.State, want.Expires = upload.Expired, until
		}
		if got := there[key]; (got != nil || want != nil) && !same(got, want) {
			t.Errorf("after Expire %s is %+v, want %+v", key, got, want)
		}
	}
}

// With so many records that a store may read them in pages, while the caller completes
// them like Manager.Recover.
func testOpenSessions(t *testing.T, s upload.Store) {
	for range s.OpenSessions(t.Context()) {
		t.Error("an empty store has an open session")
	}
	const n = 250
	states := []upload.State{upload.Open, upload.Ready, upload.Open, upload.Expired}
	want := make(map[string]bool)
	for i := range n {
		f := file(fmt.Sprintf("f%03d", i))
		f.State = states[i%len(states)]
		if want[f.Key] = f.State == upload.Open; i%10 == 0 {
			f.Expires = time.Time{}
		}
		create(t, s, f)
	}
	for range s.OpenSessions(t.Context()) {
		break
	}
	seen := make(map[string]bool)
	for f, err := range s.OpenSessions(t.Context()) {
		systest.NoError(t, err)
		if !want[f.Key] || seen[f.Key] || f.State != upload.Open {
			t.Errorf("OpenSessions yields %s in state %s; seen before: %t", f.Key, f.State, seen[f.Key])
		}
		seen[f.Key] = true
		if len(seen)%2 == 0 {
			continue
		}
		if _, err := s.Update(t.Context(), f.Key, func(f *upload.File) error {
			f.State = upload.Ready
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	if len(seen) != n/2 {
		t.Errorf("OpenSessions yields %d of %d sessions", len(seen), n/2)
	}
	left := 0
	for range s.OpenSessions(t.Context()) {
		left++
	}
	if left != len(seen)/2 {
		t.Errorf("%d open sessions are left, want %d", left, len(seen)/2)
	}
}

func testNewestReady(t *testing.T, s upload.Store) {
	newest := func(n int) (keys []string) {
		t.Helper()
		files, err := s.NewestReady(t.Context(), n)
		systest.NoError(t, err)
		for _, f := range files {
			keys = append(keys, f.Key)
		}
		return keys
	}
	if got := newest(3); got != nil {
		t.Errorf("an empty store has %q", got)
	}
	for i, state := range []upload.State{upload.Ready, upload.Open, upload.Ready, upload.Expired, upload.Ready} {
		f := file(fmt.Sprint("f", i))
		f.State, f.Created = state, start.Add(time.Duration(i*7%5)*time.Minute) // 0, 2, 4, 1, 3
		create(t, s, f)
	}
	for n, want := range map[int][]string{2: {"f2", "f4"}, 5: {"f2", "f4", "f0"}} {
		if got := newest(n); !slices.Equal(got, want) {
			t.Errorf("NewestReady(%d) = %q, want %q", n, got, want)
		}
	}
}

func testIdentity(t *testing.T, s upload.Store) {
	ctx := t.Context()
	is := func(want string) {
		t.Helper()
		if got, err := s.Identity(ctx); got != want || err != nil {
			t.Errorf("Identity = %q, %v, want %q", got, err, want)
		}
	}
	replace := func(old, by, want string) {
		t.Helper()
		if got, err := s.ReplaceIdentity(ctx, old, by); got != want || err != nil {
			t.Errorf("ReplaceIdentity(%q, %q) = %q, %v, want %q", old, by, got, err, want)
		}
		is(want)
	}
	is("")
	var wg sync.WaitGroup
	won := make([]string, 8)
	for i := range won {
		wg.Go(func() {
			var err error
			if won[i], err = s.ReplaceIdentity(ctx, "", fmt.Sprint("id", i)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	is(won[0])
	if len(slices.Compact(won)) != 1 {
		t.Errorf("callers got different identities: %q", won)
	}
	first := won[0]
	replace("", "late", first)
	replace("other", "late", first)
	replace(first, "second", "second")
	replace(first, "third", "second")
}

func testAll(t *testing.T, s upload.Store) {
	for range s.All(t.Context()) {
		t.Error("an empty store has a record")
	}
	const n = 1050
	states := []upload.State{upload.Open, upload.Ready, upload.Expired}
	for i := range n {
		// Keys with every kind of character, in random order.
		f := file(fmt.Sprintf("%c%04d", "a2z7ch"[i%6], (i*977)%n))
		f.State = states[i%len(states)]
		if i%10 == 0 {
			f.Expires = time.Time{}
		}
		create(t, s, f)
	}
	last, seen := "", 0
	for f, err := range s.All(t.Context()) {
		systest.NoError(t, err)
		if f.Key <= last {
			t.Fatalf("%s comes after %s", f.Key, last)
		}
		last = f.Key
		if seen++; seen%100 == 0 {
			systest.NoError(t, s.Delete(t.Context(), f.Key))
		}
	}
	if seen != n {
		t.Errorf("All yields %d of %d records", seen, n)
	}
	for _, err := range s.All(t.Context()) {
		systest.NoError(t, err)
		seen--
		if seen < n/2 {
			break
		}
	}
	if seen != n/2-1 {
		t.Errorf("All went on after it was stopped, to %d", seen)
	}
}

func testContext(t *testing.T, s upload.Store) {
	create(t, s, file("a"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Create(ctx, file("b"))
	wantErr(t, "Create", err, context.Canceled)
	_, err = s.Get(ctx, "a")
	wantErr(t, "Get", err, context.Canceled)
	_, err = s.Update(ctx, "a", func(f *upload.File) error { f.Size = 1; return nil })
	wantErr(t, "Update", err, context.Canceled)
	wantErr(t, "Delete", s.Delete(ctx, "a"), context.Canceled)
	wantErr(t, "AddPart", s.AddPart(ctx, "a", upload.Part{Number: 1}), context.Canceled)
	_, _, err = s.Parts(ctx, "a")
	wantErr(t, "Parts", err, context.Canceled)
	last := errors.New("nothing")
	for _, err := range s.ExpiredBefore(ctx, start.Add(2*time.Hour)) {
		last = err
	}
	wantErr(t, "ExpiredBefore", last, context.Canceled)
	last = errors.New("nothing")
	for _, err := range s.OpenSessions(ctx) {
		last = err
	}
	wantErr(t, "OpenSessions", last, context.Canceled)
	_, err = s.GetAll(ctx, []string{"a"})
	wantErr(t, "GetAll", err, context.Canceled)
	_, err = s.Expire(ctx, []string{"a"}, start.Add(2*time.Hour), time.Time{})
	wantErr(t, "Expire", err, context.Canceled)
	_, err = s.NewestReady(ctx, 1)
	wantErr(t, "NewestReady", err, context.Canceled)
	_, err = s.Identity(ctx)
	wantErr(t, "Identity", err, context.Canceled)
	_, err = s.ReplaceIdentity(ctx, "", "id")
	wantErr(t, "ReplaceIdentity", err, context.Canceled)
	want(t, s, file("a"))
	wantParts(t, s, "a")
}
