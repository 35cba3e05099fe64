// Package blob stores byte objects under keys. Uploads arrive here, actions read from
// here, and results end up here.
//
// A backend needs the four methods of [Store]. What some backends do better is in six
// roles:
//
//   - [Composer] makes objects of other objects and of local files,
//   - [Volume] is in a file system: it renames, and knows its free space,
//   - [Remote] saves requests over a network,
//   - [Stager] puts an object together in place, from parts in any order,
//   - [DirectUploader] receives parts from clients, and
//   - [Linker] serves objects to clients.
//
// The functions of this package use these roles where a store has them and do without
// where it has not, as io.Copy does with io.WriterTo. [As] finds a role, also that of
// the store inside a [Decorator].
//
// Backends are in the subpackages memblob, fsblob and s3blob. A new backend is done
// when blobtest.Run passes on it, and a new decorator when blobtest.RunDecorator does.
package blob

import (
	"context"
	"io"
	"iter"
	"os"
	"time"
)

// A Store is a blob backend. It must be safe for concurrent use. Objects change
// only as a whole: a reader sees all of the old one or all of the new one. Keys
// satisfy fs.ValidPath. A missing key is an error that matches fs.ErrNotExist. A
// store that cannot look for a key must not answer so: its error matches
// [ErrUnavailable], or is the one of the operating system.
//
// What Put has acknowledged survives a crash, if the backend is persistent.
type Store interface {
	// Put stores the size bytes of r under key, replacing what is there. It
	// fails with an error that matches io.ErrUnexpectedEOF if r is shorter;
	// it reads no more than size bytes.
	Put(ctx context.Context, key string, r io.Reader, size int64) error

	// Open opens an object.
	Open(ctx context.Context, key string) (Object, error)

	// Delete removes an object. It is not an error if there is none.
	Delete(ctx context.Context, key string) error

	// List yields the objects whose key starts with prefix, in key order.
	List(ctx context.Context, prefix string) iter.Seq2[Info, error]
}

// Info describes an object.
type Info struct {
	Key     string
	Size    int64 // bytes
	ModTime time.Time
}

// An Object is an open object. ReadAt may be called concurrently and observes
// the context given to Open. An Object may also be a [LocalObject] or a
// [MemoryObject], which readers need not copy.
type Object interface {
	io.ReaderAt
	io.Closer
	Info() Info
}

// A LocalObject is an Object in a file of this host. Its methods are valid until Close.
type LocalObject interface {
	LocalPath() string // "" if the file has no path any more
	File() *os.File    // for this object alone, and closed with it
}

// A MemoryObject is an Object in memory.
type MemoryObject interface {
	Bytes() []byte // must not be changed
}
