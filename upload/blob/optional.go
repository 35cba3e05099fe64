package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"time"
)

// A Decorator is a Store around another one. What the other one can do better counts
// as the decorator's own unless the decorator has that role itself: see [As].
//
// A decorator that changes keys or bytes, such as one that encrypts, must not be a
// Decorator in this sense, because calls of a role of the inner store pass it by.
type Decorator interface {
	Store
	Unwrap() Store
}

// As returns the role T of a store: a [Composer], a [Volume], a [Remote], a [Stager], a
// [DirectUploader] or a [Linker]. It looks at s and then, layer by layer, at the stores
// inside a [Decorator].
func As[T any](s Store) (role T, ok bool) {
	for {
		if role, ok = s.(T); ok {
			return role, true
		}
		d, is := s.(Decorator)
		if !is {
			return role, false
		}
		s = d.Unwrap()
	}
}

// A Composer is a Store that makes objects of what is there already, without moving
// the bytes through the caller.
type Composer interface {
	// Compose makes an object of others, in order, and removes those as well
	// as it can. It leaves them alone if it fails.
	Compose(ctx context.Context, key string, from []string) error

	// PutFile stores the regular file at path under key. It may move the file, so
	// nobody may write to it any more.
	PutFile(ctx context.Context, key, path string) error
}

// A Volume is a Store in a file system.
type Volume interface {
	// Move gives an object another key, replacing what is there, in one atomic step.
	Move(ctx context.Context, from, to string) error

	// FreeSpace returns how many bytes more can be stored.
	FreeSpace(ctx context.Context) (int64, error)

	// Sweep removes temporary data made before t and returns how many items
	// it removed. Neither objects nor staging areas are temporary.
	Sweep(ctx context.Context, t time.Time) (int, error)
}

// A Remote is a Store for which each call is a request over a network.
type Remote interface {
	// Stat returns the Info of an object. Its errors are those of Open.
	Stat(ctx context.Context, key string) (Info, error)

	// DeleteAll deletes objects in few requests, and returns the errors of those that
	// it could not delete, by key. It is not an error if there is no such object.
	DeleteAll(ctx context.Context, keys []string) map[string]error

	// Check fails if the store does not answer or refuses the credentials.
	Check(ctx context.Context) error
}

// Compose joins objects in any store: it makes key of the objects named by
// from, in order, and then removes those. If it fails they are still there; if
// only the removing fails that is not an error, because the object is complete.
// Without a [Composer] the bytes are read and stored again, one object at a
// time. key must not be one of from.
func Compose(ctx context.Context, s Store, key string, from []string) error {
	if c, ok := As[Composer](s); ok {
		return c.Compose(ctx, key, from)
	}
	r := &objectsReader{ctx: ctx, store: s, keys: from}
	defer r.close()
	var size int64
	for _, k := range from {
		i, err := Stat(ctx, s, k)
		if err != nil {
			return err
		}
		size += i.Size
	}
	if err := s.Put(ctx, key, r, size); err != nil {
		return err
	}
	r.close()
	for _, k := range from {
		s.Delete(ctx, k)
	}
	return nil
}

// An objectsReader reads objects one after the other and has no more than one
// of them open: there may be thousands.
type objectsReader struct {
	ctx   context.Context
	store Store
	keys  []string
	open  Object
	r     *io.SectionReader
}

func (r *objectsReader) Read(b []byte) (int, error) {
	for {
		if r.r != nil {
			n, err := r.r.Read(b)
			if n > 0 || err != io.EOF {
				return n, err
			}
			r.close()
		}
		if len(r.keys) == 0 {
			return 0, io.EOF
		}
		o, err := r.store.Open(r.ctx, r.keys[0])
		if err != nil {
			return 0, err
		}
		r.open, r.r, r.keys = o, NewReader(o), r.keys[1:]
	}
}

func (r *objectsReader) close() {
	if r.open != nil {
		r.open.Close()
	}
	r.open, r.r = nil, nil
}

// PutFile stores a local file in any store. The file may be gone afterwards. It
// must be a regular file, not a symbolic link to one: that is an error matching
// fs.ErrInvalid, because the file often comes from a process that is not
// trusted.
func PutFile(ctx context.Context, s Store, key, path string) error {
	if p, ok := As[Composer](s); ok {
		return p.PutFile(ctx, key, path)
	}
	f, err := OpenRegular(path)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	return s.Put(ctx, key, f, st.Size())
}

// OpenRegular opens a regular file for reading. Anything else, and also a
// symbolic link, is an error that matches fs.ErrInvalid.
func OpenRegular(path string) (*os.File, error) {
	before, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !before.Mode().IsRegular() {
		return nil, fmt.Errorf("not a regular file: %w", fs.ErrInvalid)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	// The name may have been given to something else in between.
	if st, err := f.Stat(); err != nil || !os.SameFile(before, st) {
		f.Close()
		return nil, fmt.Errorf("file changed while it was opened: %w", fs.ErrInvalid)
	}
	return f, nil
}

// DeleteAll deletes objects from any store. It returns the errors of those that could not
// be deleted, by key.
func DeleteAll(ctx context.Context, s Store, keys []string) map[string]error {
	if d, ok := As[Remote](s); ok {
		return d.DeleteAll(ctx, keys)
	}
	failed := make(map[string]error)
	for _, key := range keys {
		if err := s.Delete(ctx, key); err != nil {
			failed[key] = err
		}
	}
	return failed
}

// Move gives an object another key in any store. Without a [Volume] it is copied, by the
// store itself where that is a [Composer], and then removed as well as possible.
func Move(ctx context.Context, s Store, from, to string) error {
	if m, ok := As[Volume](s); ok {
		return m.Move(ctx, from, to)
	}
	return Compose(ctx, s, to, []string{from})
}

// Sweep removes temporary data made before t from any store. t must be so long
// ago that no operation that was running then is still running.
func Sweep(ctx context.Context, s Store, t time.Time) (int, error) {
	if w, ok := As[Volume](s); ok {
		return w.Sweep(ctx, t)
	}
	return 0, nil
}

// Check fails if a store does not answer. Without a [Remote] it looks for a key.
func Check(ctx context.Context, s Store) error {
	if r, ok := As[Remote](s); ok {
		return r.Check(ctx)
	}
	if _, err := Stat(ctx, s, "ready"); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// FreeSpace returns how many bytes more can be stored in any store. It is an error
// that matches errors.ErrUnsupported if that cannot be known.
func FreeSpace(ctx context.Context, s Store) (int64, error) {
	if t, ok := As[Volume](s); ok {
		return t.FreeSpace(ctx)
	}
	return 0, fmt.Errorf("free space: %w", errors.ErrUnsupported)
}

// A Stager is a Store with staging areas, in which an object is put together
// out of order and in place. An area has an id, which is one element of a
// valid key, and a size. It has one method for each step in the life of an
// area. Use it by an [Assembly], which also works without one.
type Stager interface {
	// Stage makes an area of size bytes. It does nothing if there is one
	// already. It fails early, with an error that matches syscall.ENOSPC, if
	// the store has no room for it.
	Stage(ctx context.Context, id string, size int64) error

	// WriteStaged writes what r yields, at most n bytes, at an offset of the
	// area and returns how much that was. It reads no more than n bytes, and
	// it is not an error if r ends earlier. What was written is durable when
	// it returns; if it fails, the range may have any content and takes no
	// more room than before, if that can be helped. Different ranges may be
	// written concurrently. It is an
	// error that matches fs.ErrNotExist if there is no such area, and one
	// that matches fs.ErrInvalid if the range is not within it.
	WriteStaged(ctx context.Context, id string, off int64, r io.Reader, n int64) (int64, error)

	// CommitStaged makes an object of pieces, in order, and removes the area
	// and the objects among the pieces as well as it can. The object appears as a whole and
	// durably, or not at all; if it fails, area and objects are as before,
	// but for ranges that no piece covers. If the pieces are the area from
	// its beginning to its end no byte is moved.
	CommitStaged(ctx context.Context, id, key string, pieces []Piece) error

	// AbortStaged removes an area. It is not an error if there is none.
	AbortStaged(ctx context.Context, id string) error

	// ListStaged yields the areas, in any order. Info.Key is the id.
	ListStaged(ctx context.Context) iter.Seq2[Info, error]
}

// A Piece is a part of an object that [Stager] commits: Size bytes of the area
// at Off, or, if Key is not empty, the object Key, whose size is Size.
type Piece struct {
	Key  string
	Off  int64 // bytes
	Size int64 // bytes
}
