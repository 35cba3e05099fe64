package upload

import (
	"context"
	"iter"
	"time"

	"github.com/filewright/filewright/upload/blob"
)

// A State is the state of a [File].
type State string

// A file is Open until its upload is completed, then Ready. When its time is
// over it is Expired: the content is gone, and only the record remains for a
// while, so that the owner is told why.
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
	UploadID    string // of the session; never empty for an uploaded file; of direct uploads, the blob store's
	Parts       int    // number of parts of the session
	ETag        string // when Ready, without quotes; of direct uploads from before completion
	Task        string // the operation that produced it, "" for an upload

	// IdempotencyKey makes initiating the upload repeatable: see
	// [Store.Create]. Fingerprint identifies the request it belongs to.
	IdempotencyKey string
	Fingerprint    string

	Created time.Time

	// Expires is when the session or the content ends. Of an Expired file it
	// is when the record ends. Zero means never.
	Expires time.Time
}

// A Part records one part that has arrived.
type Part struct {
	Number   int    // from 1
	ETag     string // hex MD5 of the bytes, without quotes
	Size     int64  // bytes
	Staged   bool   // in place in the staging area (see blob.Stager); else an object of its own
	Revision int    // of that object, see blob.AssembledPart
}

func (p Part) assembled() blob.AssembledPart {
	return blob.AssembledPart{Number: p.Number, Size: p.Size, Staged: p.Staged, Revision: p.Revision}
}

// A Store keeps the records. Implementations must be safe for concurrent use.
// A missing record matches fs.ErrNotExist.
type Store interface {
	// Create stores a record. If f.IdempotencyKey is not empty and f.Owner
	// has a record with the same one, created after f.Created minus 24 hours,
	// nothing is stored and that record is returned; an older one loses the
	// key. Otherwise the returned record equals f. If there is a record of
	// f.Key, whatever its state, the error matches fs.ErrExist.
	Create(ctx context.Context, f *File) (*File, error)
	Get(ctx context.Context, key string) (*File, error)

	// GetAll returns the records of those keys that have one, by key.
	GetAll(ctx context.Context, keys []string) (map[string]*File, error)

	// Update applies fn to the current record and stores the result, as one
	// atomic step. If fn fails nothing changes and its error is returned.
	// fn must not call the store.
	Update(ctx context.Context, key string, fn func(*File) error) (*File, error)

	// Expire ends those of the files with these keys whose Expires is set and not
	// after at, as one atomic step. Ready ones become Expired, and their Expires is
	// until; they are returned as they were. Records of Expired ones are removed, and
	// of Ready ones, too, if until is zero. Open ones do not change.
	Expire(ctx context.Context, keys []string, at, until time.Time) (ended []*File, err error)

	// Delete removes a record and its parts. It is not an error if there is
	// none.
	Delete(ctx context.Context, key string) error

	// AddPart records a part that has arrived, replacing one of the same
	// number. Parts returns a record with its parts by number, as of one moment.
	AddPart(ctx context.Context, key string, p Part) error
	Parts(ctx context.Context, key string) (*File, []Part, error)

	// ExpiredBefore yields the records whose Expires is set and before t, in
	// any state, oldest first. The caller may change the store between two
	// of them.
	ExpiredBefore(ctx context.Context, t time.Time) iter.Seq2[*File, error]

	// OpenSessions yields the records that are Open, in any order. It reads
	// nothing else, however many other records there are. The caller may change
	// the store between two of them.
	OpenSessions(ctx context.Context) iter.Seq2[*File, error]

	// NewestReady returns the Ready records, the newest first, at most n.
	NewestReady(ctx context.Context, n int) ([]*File, error)

	// Identity returns the text that tells this store from others, "" as long as
	// there is none. ReplaceIdentity replaces it if it is old, as one atomic step,
	// and returns the one that the store has then.
	Identity(ctx context.Context) (string, error)
	ReplaceIdentity(ctx context.Context, old, by string) (string, error)

	// All yields all records by key, in the order of bytes. Records that are made or
	// deleted meanwhile may be missing. The caller may change the store between two of
	// them.
	All(ctx context.Context) iter.Seq2[*File, error]
}
