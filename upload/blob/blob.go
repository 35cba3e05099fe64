// Package blob stores byte objects under keys. It is the storage
// seam of the service: uploads arrive here, actions read from here, and results
// end up here.
//
// A backend needs the four methods of [Store]. What some backends can do
// better is in small optional interfaces ([Composer], [FilePutter],
// [Stager]); the functions of this package use them where they exist
// and do without where they do not, as io.Copy does with io.WriterTo.
//
// Backends live in subpackages (memblob, fsblob). A new backend is done
// when blobtest.Run passes on it.
package blob

import (
	"context"
	"io"
	"iter"
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
// the context given to Open. An object that is a local file or in memory also
// has one of the methods
//
//	LocalPath() string
//	Bytes() []byte
//
// so that readers can do without a copy. The path is valid until Close.
type Object interface {
	io.ReaderAt
	io.Closer
	Info() Info
}
