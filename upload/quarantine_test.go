package upload_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/upload"
	"github.com/filewright/filewright/upload/blob"
	"github.com/filewright/filewright/upload/blob/memblob"
)

// quarantined returns the content in quarantine.
func (e *env) quarantined() (all []upload.Quarantined) {
	e.t.Helper()
	for q, err := range e.Quarantined(e.t.Context()) {
		systest.NoError(e.t, err)
		all = append(all, q)
	}
	return all
}

func (e *env) mustSweep() {
	e.t.Helper()
	if _, err := e.Sweep(e.t.Context()); err != nil {
		e.t.Fatal(err)
	}
}

func (e *env) forget(files ...*upload.File) {
	e.t.Helper()
	for _, f := range files {
		systest.NoError(e.t, e.store.Delete(e.t.Context(), f.Key))
	}
}

// remember restores records, like a restored database.
func (e *env) remember(files ...*upload.File) {
	e.t.Helper()
	for _, f := range files {
		if _, err := e.store.Create(e.t.Context(), f); err != nil {
			e.t.Fatal(err)
		}
	}
}

const day = 24 * time.Hour

func TestQuarantine(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, records func(testing.TB) upload.Store, blobs func(testing.TB) blob.Store) {
		ctx := t.Context()
		e := newEnv(t, blobs(t), upload.Options{Store: records(t), FileTTL: -1})
		e.mustBind(false)
		files := e.add(4)
		e.forget(files[1:]...)
		e.mustSweep()
		if q := e.quarantined(); len(q) > 0 {
			t.Errorf("young content is in quarantine: %+v", q)
		}
		e.clock.advance(day + time.Minute)
		e.mustSweep()
		moved := e.clock.now().UTC().Truncate(time.Second)
		q := e.quarantined()
		if len(q) != 3 || e.objects() != 1 {
			t.Fatalf("in quarantine are %+v, and %d objects elsewhere", q, e.objects())
		}
		for _, q := range q {
			if q.Object != "files/"+q.File || q.Size != 5 || !q.Since.Equal(moved) {
				t.Errorf("in quarantine is %+v", q)
			}
		}

		// Content that a record needs again is restored: manually, or by the next
		// sweep.
		e.remember(files[1], files[2])
		for i, want := range []bool{true, false} {
			for _, q := range q {
				if q.File != files[1].Key {
					continue
				}
				if got, err := e.Restore(ctx, q.Key); got != want || err != nil {
					t.Errorf("Restore %d = %t, %v", i, got, err)
				}
			}
		}
		e.intact(files[:2])
		e.clock.advance(8 * day) // and is not deleted, although its time in quarantine is over
		e.mustSweep()
		e.intact(files[:3])
		if q := e.quarantined(); len(q) > 0 || e.objects() != 3 {
			t.Errorf("after 8 days in quarantine are %+v, and %d objects elsewhere", q, e.objects())
		}

		// Content with a record cannot be quarantined, nor can objects that are not
		// files.
		if moved, err := e.Quarantine(ctx, files[0].Object); moved || err != nil {
			t.Errorf("Quarantine of a file = %t, %v", moved, err)
		}
		if moved, err := e.Quarantine(ctx, "files/none"); moved || err != nil {
			t.Errorf("Quarantine of nothing = %t, %v", moved, err)
		}
		for _, key := range []string{upload.IdentityKey, "quarantine/x"} {
			if _, err := e.Quarantine(ctx, key); err == nil {
				t.Errorf("Quarantine of %s succeeds", key)
			}
		}
		if _, err := e.Restore(ctx, files[0].Object); err == nil {
			t.Error("Restore of a file succeeds")
		}
		e.intact(files[:3])
		e.mustBind(false)
	})
}

func TestQuarantineOff(t *testing.T) {
	t.Parallel()
	each(t, upload.Options{Quarantine: -1}, func(t *testing.T, e *env) {
		e.forget(e.add(3)...)
		e.clock.advance(day + time.Minute)
		e.mustSweep()
		if q := e.quarantined(); len(q) > 0 || e.objects() > 0 {
			t.Errorf("%d objects and %+v are left", e.objects(), q)
		}
	})
}

// A sweep that would remove too much removes nothing, until an operator decides.
func TestSweepRefuses(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, records func(testing.TB) upload.Store, blobs func(testing.TB) blob.Store) {
		ctx := t.Context()
		var log bytes.Buffer
		e := newEnv(t, blobs(t), upload.Options{Store: records(t), FileTTL: -1, SessionTTL: 1000 * day, SweepCount: 4, SweepShare: 0.3, Log: slog.New(slog.NewTextHandler(&log, nil))})
		e.mustBind(false)
		files := e.add(10)
		e.forget(files[:3]...)
		for i := range 2 { // each counts as one object
			f, urls := e.start(10, 5)
			for _, u := range urls {
				e.put(u, noise(2))
			}
			e.put(urls[0], noise(10)[:1])
			if i == 0 {
				e.forget(f)
			}
		}
		everything := func() (keys []string) {
			t.Helper()
			for i, err := range e.blobs.List(ctx, "") {
				systest.NoError(t, err)
				keys = append(keys, i.Key)
			}
			return keys
		}
		before := e.objects()
		sweep := func(refused int64) {
			t.Helper()
			log.Reset()
			e.clock.advance(day + time.Minute)
			e.mustSweep()
			if got := e.SweepRefused(); got != refused {
				t.Errorf("%d objects are refused, want %d", got, refused)
			}
			if logged := strings.Contains(log.String(), fmt.Sprintf("level=ERROR msg=\"sweep refused: too many objects without a record\" without_record=%d objects=", refused)); logged != (refused > 0) {
				t.Errorf("log: %s", &log)
			}
		}
		sweep(0) // 4 of 12 are more than the share, but not more than the number
		if q := e.quarantined(); len(q) != 3 || e.objects() > before-4 {
			t.Errorf("of %d objects %d are left, in quarantine are %+v", before, e.objects(), q)
		}
		after := everything()
		e.forget(files[3:9]...)
		sweep(6)
		if now := everything(); fmt.Sprint(now) != fmt.Sprint(after) {
			t.Errorf("a sweep that refuses has changed %q to %q", after, now)
		}
		e.mustBind(true)
		e.clock.advance(day - time.Minute) // the operator may notice a mistake until then
		e.mustSweep()
		if now := everything(); fmt.Sprint(now) != fmt.Sprint(after) {
			t.Errorf("a sweep soon after an adoption has changed %q to %q", after, now)
		}
		sweep(0)
		if q := e.quarantined(); len(q) != 9 {
			t.Errorf("in quarantine are %+v", q)
		}
		e.clock.advance(3 * day) // three were quarantined 7 days ago, but adopted later
		sweep(0)
		if q := e.quarantined(); len(q) != 9 {
			t.Errorf("in quarantine are %+v", q)
		}
		e.clock.advance(3 * day)
		sweep(0)
		if q := e.quarantined(); len(q) != 0 {
			t.Errorf("in quarantine are %+v", q)
		}
		e.intact(files[9:])
	})
}

// By default a sweep removes up to a hundred objects or one percent, whichever is more.
func TestSweepRefusesByDefault(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ files, orphans, refused int }{
		{0, 100, 0}, {0, 101, 101}, {9_898, 101, 101}, {9_999, 101, 0},
	} {
		ctx := t.Context()
		e := newEnv(t, memblob.New(), upload.Options{FileTTL: -1})
		e.mustBind(false)
		for i := range tt.files + tt.orphans {
			key := fmt.Sprintf("%026d", i)
			systest.NoError(t, e.blobs.Put(ctx, "files/"+key, strings.NewReader("x"), 1))
			if i >= tt.orphans {
				if _, err := e.store.Create(ctx, &upload.File{Key: key, State: upload.Ready, Object: "files/" + key, Size: 1}); err != nil {
					t.Fatal(err)
				}
			}
		}
		e.clock.advance(day + time.Minute)
		e.mustSweep()
		if got, removed := e.SweepRefused(), e.OrphansRemoved(); got != int64(tt.refused) || removed != int64(tt.orphans-tt.refused) {
			t.Errorf("%d of %d objects without a record: %d refused, %d removed, want %d refused", tt.orphans, tt.files+tt.orphans, got, removed, tt.refused)
		}
	}
}

// The store may be replaced while the server runs, for example when a mount goes away.
func TestSweepOfOtherStore(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, records func(testing.TB) upload.Store, blobs func(testing.TB) blob.Store) {
		e := newEnv(t, blobs(t), upload.Options{Store: records(t), FileTTL: -1})
		e.mustBind(false)
		files := e.add(3)
		other := newEnv(t, blobs(t), upload.Options{Store: records(t)})
		other.mustBind(false)
		wrong := newEnv(t, e.blobs, upload.Options{Store: other.store})
		wrong.clock.advance(2 * day)
		wrong.mustSweep()
		e.intact(files)
		if q := e.quarantined(); len(q) > 0 {
			t.Errorf("in quarantine are %+v", q)
		}
	})
}
