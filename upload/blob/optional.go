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

// A Decorator is a Store that wraps another one. It inherits the roles of the inner
// store unless it has that role itself: see [As].
//
// A decorator that changes keys or bytes, such as one that encrypts, must not implement
// Decorator, because calls of the inner store's roles would bypass it.
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

// A Composer is a Store that creates objects from existing objects or files, without
// moving the bytes through the caller.
type Composer interface {
	// Compose joins objects, in order, to a new one and tries to remove them. If it
	// fails, it does not change them.
	Compose(ctx context.Context, key string, from []string) error

	// PutFile stores the regular file at path under key. It may move the file, so no
	// process may write to it afterwards.
	PutFile(ctx context.Context, key, path string) error
}

// A Volume is a Store in a file system.
type Volume interface {
	// Move gives an object another key, replacing an existing object, in one atomic
	// step.
	Move(ctx context.Context, from, to string) error

	// FreeSpace returns how many more bytes can be stored.
	FreeSpace(ctx context.Context) (int64, error)

	// Sweep removes temporary data created before t and returns the number of removed
	// items. Objects and staging areas are not temporary.
	Sweep(ctx context.Context, t time.Time) (int, error)
}

// A Remote is a Store for which each call is a request over a network.
type Remote interface {
	// Stat returns the Info of an object. Its errors are those of Open.
	Stat(ctx context.Context, key string) (Info, error)

	// DeleteAll deletes objects in few requests, and returns the errors of those that
	// it could not delete, by key. It is not an error if an object does not exist.
	DeleteAll(ctx context.Context, keys []string) map[string]error

	// Check fails if the store does not respond or refuses the credentials.
	Check(ctx context.Context) error
}

// Compose joins objects in any store: it creates the object key from those named by
// from, in order, and then removes them. If it fails, they still exist; if only the
// removal fails, that is not an error, because the new object is complete. Without a
// [Composer] the bytes are read and stored again, one object at a time. key must not be
// one of from.
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
		_ = s.Delete(ctx, k) // as with a Composer, the result counts
	}
	return nil
}

// An objectsReader reads objects one after the other and keeps only one open, because
// there may be thousands.
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

// PutFile stores a local file in any store. The file may be gone afterwards. It must be
// a regular file: for a symbolic link the error matches fs.ErrInvalid, because the file
// often comes from an untrusted process.
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

// OpenRegular opens a regular file for reading. For anything else, including a symbolic
// link, the error matches fs.ErrInvalid.
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
	// The path may have been replaced in between.
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

// Move gives an object another key in any store. Without a [Volume] it copies the
// object, within the store if that is a [Composer], and then tries to remove the
// original.
func Move(ctx context.Context, s Store, from, to string) error {
	if m, ok := As[Volume](s); ok {
		return m.Move(ctx, from, to)
	}
	return Compose(ctx, s, to, []string{from})
}

// Sweep removes temporary data created before t from any store. t must be so long ago
// that no call that was running then is still running.
func Sweep(ctx context.Context, s Store, t time.Time) (int, error) {
	if w, ok := As[Volume](s); ok {
		return w.Sweep(ctx, t)
	}
	return 0, nil
}

// Check fails if a store does not respond. Without a [Remote] it looks up a key.
func Check(ctx context.Context, s Store) error {
	if r, ok := As[Remote](s); ok {
		return r.Check(ctx)
	}
	if _, err := Stat(ctx, s, "ready"); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// FreeSpace returns how many more bytes any store can hold. If that is unknown, the
// error matches errors.ErrUnsupported.
func FreeSpace(ctx context.Context, s Store) (int64, error) {
	if t, ok := As[Volume](s); ok {
		return t.FreeSpace(ctx)
	}
	return 0, fmt.Errorf("free space: %w", errors.ErrUnsupported)
}

// A Stager is a Store with staging areas, in which an object is built in place from
// parts in any order. An area has an id, which is one element of a valid key, and a
// size. The interface has one method for each step in the life of an area. Use it
// through an [Assembly], which also works without a Stager.
type Stager interface {
	// Stage creates an area of size bytes. It does nothing if the area exists. If the
	// store has no space for it, Stage fails early with an error that matches
	// syscall.ENOSPC.
	Stage(ctx context.Context, id string, size int64) error

	// WriteStaged writes at most n bytes of r at an offset of the area and returns
	// their number. It reads at most n bytes, and it is not an error if r ends earlier.
	// The bytes are durable when it returns. If it fails, the range may have any
	// content and, if possible, takes no more space than before. Different ranges may
	// be written concurrently. The error matches fs.ErrNotExist if the area does not
	// exist, and fs.ErrInvalid if the range is not within it.
	WriteStaged(ctx context.Context, id string, off int64, r io.Reader, n int64) (int64, error)

	// CommitStaged creates an object from pieces, in order, and tries to remove the
	// area and the objects among the pieces. The object appears completely and durably,
	// or not at all. If it fails, area and objects are unchanged, except for ranges
	// that no piece covers. If the pieces are the area from start to end, no byte is
	// moved.
	CommitStaged(ctx context.Context, id, key string, pieces []Piece) error

	// AbortStaged removes an area. It is not an error if the area does not exist.
	AbortStaged(ctx context.Context, id string) error

	// ListStaged yields the areas, in any order. Info.Key is the id.
	ListStaged(ctx context.Context) iter.Seq2[Info, error]
}

// A Piece is a part of an object that a [Stager] commits: Size bytes of the area at
// Off, or, if Key is not empty, the object Key, whose size is Size.
type Piece struct {
	Key  string
	Off  int64 // bytes
	Size int64 // bytes
}
