package upload_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/upload"
	"github.com/filewright/filewright/upload/blob"
)

// add creates n files and returns them.
func (e *env) add(n int) []*upload.File {
	e.t.Helper()
	files := make([]*upload.File, n)
	for i := range files {
		var err error
		if files[i], err = e.Add(e.t.Context(), upload.File{Owner: "alice", Size: 5}, strings.NewReader("bytes"), ""); err != nil {
			e.t.Fatal(err)
		}
	}
	return files
}

// intact fails the test unless all files can be read.
func (e *env) intact(files []*upload.File) {
	e.t.Helper()
	for _, f := range files {
		if got := string(e.content(f)); got != "bytes" {
			e.t.Errorf("content of %s is %q", f.Key, got)
		}
	}
}

func (e *env) bind(adopt bool) error {
	return e.Bind(e.t.Context(), upload.BindOptions{Adopt: adopt, Records: "the database D", Content: "the files F"})
}

func (e *env) mustBind(adopt bool) {
	e.t.Helper()
	if err := e.bind(adopt); err != nil {
		e.t.Fatalf("Bind = %v", err)
	}
}

// refused fails the test unless Bind rejects the pair of stores.
func (e *env) refused() {
	e.t.Helper()
	err := e.bind(false)
	var ie *upload.IdentityError
	if !errors.Is(err, upload.ErrIdentity) || !errors.As(err, &ie) || ie.Records != "the database D" || ie.Content != "the files F" || ie.Reason == "" {
		e.t.Errorf("Bind = %v, want an IdentityError", err)
	}
}

func TestBind(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, records func(testing.TB) upload.Store, blobs func(testing.TB) blob.Store) {
		ctx := t.Context()
		e := newEnv(t, blobs(t), upload.Options{Store: records(t)})
		with := func(s upload.Store, b blob.Store) *env { return newEnv(t, b, upload.Options{Store: s}) }
		e.mustBind(false)
		files := e.add(3)
		e.mustBind(false)

		// Another database, an empty one, another store, an empty one.
		other := with(records(t), blobs(t))
		other.mustBind(false)
		other.refusedWith(e.store, other.blobs)
		other.refusedWith(other.store, e.blobs)
		other.refusedWith(records(t), e.blobs)
		other.refusedWith(e.store, blobs(t))
		e.mustBind(false)
		other.mustBind(false)

		// An installation older than identities: the content decides.
		old := with(records(t), blobs(t))
		oldFiles := old.add(3)
		old.refusedWith(old.store, blobs(t))
		old.refusedWith(records(t), old.blobs)
		if err := old.blobs.Delete(ctx, oldFiles[2].Object); err != nil { // lost
			t.Fatal(err)
		}
		old.mustBind(false)
		old.refusedWith(records(t), old.blobs)
		old.intact(oldFiles[:2])

		// A start that was interrupted between the two.
		systest.NoError(t, old.blobs.Delete(ctx, upload.IdentityKey))
		old.mustBind(false)
		fresh := with(records(t), blobs(t))
		fresh.mustBind(false)
		with(fresh.store, blobs(t)).mustBind(false) // without a file there is nothing to lose

		// An operator decides.
		lost := with(records(t), e.blobs)
		lost.refused()
		lost.mustBind(true)
		lost.mustBind(false)
		e.refused()
		e.intact(files)
		e.mustBind(true)
		lost.refused()
		e.intact(files)
	})
}

func (e *env) refusedWith(s upload.Store, b blob.Store) {
	e.t.Helper()
	newEnv(e.t, b, upload.Options{Store: s}).refused()
}

// Servers that start at the same moment agree.
func TestBindConcurrently(t *testing.T) {
	t.Parallel()
	for _, adopt := range []bool{false, true} {
		t.Run(fmt.Sprint(adopt), func(t *testing.T) {
			eachPair(t, func(t *testing.T, records func(testing.TB) upload.Store, blobs func(testing.TB) blob.Store) {
				s, b := records(t), blobs(t)
				var wg sync.WaitGroup
				for range 4 {
					e := newEnv(t, b, upload.Options{Store: s})
					wg.Go(func() {
						systest.Check(t, e.bind(adopt))
					})
				}
				wg.Wait()
				newEnv(t, b, upload.Options{Store: s}).mustBind(false)
			})
		})
	}
}

func TestBindDamaged(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, records func(testing.TB) upload.Store, blobs func(testing.TB) blob.Store) {
		e := newEnv(t, blobs(t), upload.Options{Store: records(t)})
		e.mustBind(false)
		if err := e.blobs.Put(t.Context(), upload.IdentityKey, strings.NewReader("{"), 1); err != nil {
			t.Fatal(err)
		}
		if err := e.bind(false); err == nil {
			t.Error("Bind accepts an identity that is cut off")
		}
	})
}
