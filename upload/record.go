package upload

import (
	"context"
	"iter"
	"time"

	"github.com/filewright/filewright/upload/blob"
)

// A State is the state of a [File].
type State string

// A file is Open until its upload is completed, then Ready. After its lifetime it is
// Expired: the content is gone, and only the record remains for a while, so that the
// owner learns why.
const (
	Open    State = "open"
	Ready   State = "ready"
	Expired State = "expired"
)

// A File is the record of an uploaded or produced file. While it is Open it is
// an upload session.
type File struct {
	Key         string // file_key: random, unguessable
	Owner       string // account that may use it
	Name        string // cleaned base name; never part of a path in the store
	ContentType string
	Size        int64 // bytes; declared while Open, actual when Ready
	State       State
	Object      string // object_name: key in the blob store
	UploadID    string // of the session; never empty for an uploaded file; the blob store's for direct uploads
	Parts       int    // number of parts of the session
	ETag        string // when Ready, without quotes; set before completion for direct uploads
	Task        string // the operation that produced it; "" for an upload

	// IdempotencyKey makes it safe to repeat the request for an upload: see
	// [Store.Create]. Fingerprint identifies the request that used the key.
	IdempotencyKey string
	Fingerprint    string

	Created time.Time

	// Expires is when the session or the content expires. For an Expired file it is
	// when the record is deleted. Zero means never.
	Expires time.Time

	repeated bool // returned to a repeated request, see Repeated
}

// Repeated reports whether Manager.Begin returned f to a request with the idempotency key of an
// earlier request.
func (f *File) Repeated() bool { return f.repeated }

// A Part records one received part.
type Part struct {
	Number   int    // from 1
	ETag     string // hex MD5 of the bytes, without quotes
	Size     int64  // bytes
	Staged   bool   // in its place in the staging area (see blob.Stager); else a separate object
	Revision int    // of that object, see blob.AssembledPart
}

func (p Part) assembled() blob.AssembledPart {
	return blob.AssembledPart{Number: p.Number, Size: p.Size, Staged: p.Staged, Revision: p.Revision}
}

// A Store keeps the records. Implementations must be safe for concurrent use. If a
// record is missing, the error matches fs.ErrNotExist.
type Store interface {
	// Create stores a record. If f.IdempotencyKey is not empty and f.Owner used it less
	// than 24 hours before f.Created, Create stores nothing and returns that record; an
	// older record loses the key. Otherwise the returned record equals f. If a record
	// with f.Key exists, in whatever state, the error matches fs.ErrExist.
	Create(ctx context.Context, f *File) (*File, error)
	Get(ctx context.Context, key string) (*File, error)

	// GetAll returns the existing records of keys, by key.
	GetAll(ctx context.Context, keys []string) (map[string]*File, error)

	// Update applies fn to the current record and stores the result, as one atomic
	// step. If fn fails, nothing changes and Update returns its error. fn must not call
	// the store.
	Update(ctx context.Context, key string, fn func(*File) error) (*File, error)

	// Expire expires the files with these keys whose Expires is set and not after at,
	// as one atomic step. Ready files become Expired, and their Expires becomes until;
	// Expire returns their previous records. It removes the records of Expired files
	// and, if until is zero, of Ready files. Open files do not change.
	Expire(ctx context.Context, keys []string, at, until time.Time) (ended []*File, err error)

	// Delete removes a record and its parts. It is not an error if the record does not
	// exist.
	Delete(ctx context.Context, key string) error

	// AddPart records a received part of an Open record, replacing one of the same
	// number. If the record is missing or not Open, the error matches fs.ErrNotExist.
	// Parts returns a consistent snapshot of a record and its parts, ordered by number.
	AddPart(ctx context.Context, key string, p Part) error
	Parts(ctx context.Context, key string) (*File, []Part, error)

	// ExpiredBefore yields the records whose Expires is set and before t, in
	// any state, oldest first. The caller may change the store between two
	// of them.
	ExpiredBefore(ctx context.Context, t time.Time) iter.Seq2[*File, error]

	// OpenSessions yields the Open records, in any order. It does not read other
	// records, however many there are. The caller may change the store between two of
	// them.
	OpenSessions(ctx context.Context) iter.Seq2[*File, error]

	// NewestReady returns the Ready records, newest first, at most n.
	NewestReady(ctx context.Context, n int) ([]*File, error)

	// Identity returns the text that identifies this store, or "" if it is not set.
	// ReplaceIdentity sets it to by if it equals old, as one atomic step, and returns
	// the resulting identity.
	Identity(ctx context.Context) (string, error)
	ReplaceIdentity(ctx context.Context, old, by string) (string, error)

	// All yields all records, ordered by the bytes of the key. It may omit records that
	// are created or deleted during the iteration. The caller may change the store
	// between two of them.
	All(ctx context.Context) iter.Seq2[*File, error]
}
