package blob

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"time"
)

// ErrUnavailable is matched by the errors of a store that does not answer, that
// asks to be spared for a while, or that its operator has to repair: it refuses the
// credentials, or its bucket is gone. The same call may succeed later.
var ErrUnavailable = errors.New("the store is unavailable")

// ErrPartSize is matched by the error about a part that is smaller than the
// store permits. It matches [ErrPart].
var ErrPartSize = fmt.Errorf("part is too small: %w", ErrPart)

// A DirectUploader is a Store to which clients can send the parts of an object
// by themselves, as they can to S3. The parts are out of the reach of the
// program until [DirectUploader.CommitDirect] makes them an object. It has one
// method for each step in the life of such an upload.
//
// Such a store has a clock of its own, which may differ from ours by as much
// as it tolerates in signed requests: a quarter of an hour.
type DirectUploader interface {
	// BeginDirect begins the upload of an object of size bytes, in so many
	// equal parts, the last of which may be shorter. The error matches
	// errors.ErrUnsupported if the store does not permit that; then nothing
	// has happened, and the parts can be taken in by an [Assembly].
	BeginDirect(ctx context.Context, key string, size int64, parts int) (DirectUpload, error)

	// PresignPart returns a URL to which part n can be PUT for the time ttl,
	// in whole seconds, until the upload ends. If size is not negative the
	// URL is good only for that many bytes. It is an absolute URL.
	PresignPart(ctx context.Context, u DirectUpload, n int, size int64, ttl time.Duration) (*url.URL, error)

	// DirectParts returns the parts that have arrived, by number. An upload
	// that has ended, in whatever way, matches fs.ErrNotExist.
	DirectParts(ctx context.Context, u DirectUpload) ([]DirectPart, error)

	// CommitDirect makes the object of parts and ends the upload. The object
	// appears as a whole, or not at all, and then CommitDirect can be
	// repeated. The error matches [ErrPartETag] if one of parts is not what
	// arrived last under its number, and [ErrPartSize] if one that is not
	// the last is too small. Whether parts are all that have arrived is not
	// looked at.
	CommitDirect(ctx context.Context, u DirectUpload, parts []DirectPart) error

	// AbortDirect ends the upload and removes what has arrived. It is not an
	// error if there is no such upload.
	AbortDirect(ctx context.Context, u DirectUpload) error

	// ListDirect yields the uploads that have not ended, in any order. Among
	// them may be those that Put or Compose has left behind when its process
	// died. Stores that cannot tell, yield none.
	ListDirect(ctx context.Context) iter.Seq2[DirectUpload, error]
}

// A DirectUpload names an upload of a [DirectUploader].
type DirectUpload struct {
	Key   string // of the object that it will be
	ID    string // given by the store, which never uses it again
	Begun time.Time
}

// A DirectPart is a part that a client has sent to a [DirectUploader].
type DirectPart struct {
	Part
	Size int64 // bytes
}

// A Linker is a Store from which clients can fetch objects by themselves.
type Linker interface {
	// Link returns an absolute URL under which an object can be fetched by
	// GET. It does not look whether there is one. The error matches
	// errors.ErrUnsupported if clients cannot reach the store.
	Link(ctx context.Context, key string, o LinkOptions) (*url.URL, error)

	// Origin returns the web origin of links and of the URLs of a [DirectUploader],
	// for policies of pages. It is empty if clients cannot reach the store.
	Origin(ctx context.Context) (string, error)
}

// LinkOptions say what a link gives.
type LinkOptions struct {
	TTL                time.Duration // lifetime; at least a second, at most 7 days
	ContentType        string        // header of the answer; "" leaves it to the store
	ContentDisposition string        // header of the answer; "" sends none
}
