// Package blob stores byte objects under keys. It holds uploads, the inputs of actions
// and their results.
//
// A backend needs the four methods of [Store]. Six optional roles cover what some
// backends do better:
//
//   - [Composer] creates objects from other objects and from local files,
//   - [Volume] is in a file system: it renames, and knows its free space,
//   - [Remote] saves requests over a network,
//   - [Stager] builds an object in place, from parts in any order,
//   - [DirectUploader] receives parts from clients, and
//   - [Linker] serves objects to clients.
//
// The functions of this package use these roles if a store has them and work without
// them otherwise, as io.Copy does with io.WriterTo. [As] finds a role, including roles
// of the store inside a [Decorator].
//
// Backends are in the subpackages memblob, fsblob and s3blob. A new backend must pass
// blobtest.Run, and a new decorator blobtest.RunDecorator.
package blob

import (
	"context"
	"io"
	"iter"
	"os"
	"time"
)

// A Store is a blob backend. It must be safe for concurrent use. Objects change only as
// a whole: a reader sees either the complete old object or the complete new one.
//
// Keys satisfy [ValidKey]; Put, Open and Delete fail for others with an error that matches
// fs.ErrInvalid. For a missing key the error matches fs.ErrNotExist. If the store cannot
// be reached, the error must not match that, but [ErrUnavailable], or be the operating
// system's. If ctx is done, also in the middle of a call, the error matches ctx.Err(),
// and Put has changed nothing.
//
// In a persistent backend, an object survives a crash once Put has returned.
type Store interface {
	// Put stores the size bytes of r under key, replacing an existing object. It reads
	// at most size bytes. If r is shorter, the error matches io.ErrUnexpectedEOF. A
	// negative size is an error.
	Put(ctx context.Context, key string, r io.Reader, size int64) error

	// Open opens an object.
	Open(ctx context.Context, key string) (Object, error)

	// Delete removes an object. It is not an error if the object does not exist.
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

// An Object is an open object. ReadAt may be called concurrently and observes the
// context given to Open. An Object may also be a [LocalObject] or a [MemoryObject],
// whose content readers need not copy.
type Object interface {
	io.ReaderAt
	io.Closer
	Info() Info
}

// A LocalObject is an Object in a file of this host. Its methods are valid until Close.
type LocalObject interface {
	LocalPath() string // "" if the file no longer has a path
	File() *os.File    // used only by this object, and closed with it
}

// A MemoryObject is an Object in memory.
type MemoryObject interface {
	Bytes() []byte // must not be changed
}
