package blob

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"time"
)

// ErrUnavailable matches the errors of a store that does not respond, that asks clients
// to slow down, that refuses the credentials, or whose bucket is gone. The same call
// may succeed later.
var ErrUnavailable = errors.New("the store is unavailable")

// ErrPartSize matches the error for a part that is smaller than the store permits. It
// matches [ErrPart].
var ErrPartSize = fmt.Errorf("part is too small: %w", ErrPart)

// A DirectUploader is a Store to which clients can send the parts of an object
// directly, as to S3. The program cannot read the parts until
// [DirectUploader.CommitDirect] joins them to an object. The interface has one method
// for each step of such an upload.
//
// Such a store has its own clock, which may differ from ours by as much as it tolerates
// in signed requests: a quarter of an hour.
type DirectUploader interface {
	// BeginDirect starts the upload of an object of size bytes, in the given number of
	// equal parts, of which the last may be shorter. The error matches
	// errors.ErrUnsupported if the store does not permit that; then nothing has
	// changed, and an [Assembly] can receive the parts.
	BeginDirect(ctx context.Context, key string, size int64, parts int) (DirectUpload, error)

	// PresignPart returns an absolute URL to which part n can be PUT for the time ttl,
	// in whole seconds, until the upload ends. If size is not negative, the URL is
	// valid only for that many bytes.
	PresignPart(ctx context.Context, u DirectUpload, n int, size int64, ttl time.Duration) (*url.URL, error)

	// DirectParts returns the parts that have arrived, by number. If the upload has
	// ended, in whatever way, the error matches fs.ErrNotExist.
	DirectParts(ctx context.Context, u DirectUpload) ([]DirectPart, error)

	// CommitDirect creates the object from parts and ends the upload. The object
	// appears completely, or not at all; then CommitDirect can be repeated. The error
	// matches [ErrPartETag] if a part is not the last one received under its number,
	// and [ErrPartSize] if a part other than the last is too small. CommitDirect does
	// not check whether parts lists all received parts.
	CommitDirect(ctx context.Context, u DirectUpload, parts []DirectPart) error

	// AbortDirect ends the upload and removes its parts. It is not an error if the
	// upload does not exist.
	AbortDirect(ctx context.Context, u DirectUpload) error

	// ListDirect yields the unfinished uploads, in any order. They may include uploads
	// that a Put or Compose left behind when its process died. Stores that cannot list
	// them yield none.
	ListDirect(ctx context.Context) iter.Seq2[DirectUpload, error]
}

// A DirectUpload names an upload of a [DirectUploader].
type DirectUpload struct {
	Key   string // of the future object
	ID    string // assigned by the store, which never reuses it
	Begun time.Time
}

// A DirectPart is a part that a client has sent to a [DirectUploader].
type DirectPart struct {
	Part
	Size int64 // bytes
}

// A Linker is a Store from which clients can fetch objects directly.
type Linker interface {
	// Link returns an absolute URL from which an object can be fetched by GET. It does
	// not check whether the object exists. The error matches errors.ErrUnsupported if
	// clients cannot reach the store.
	Link(ctx context.Context, key string, o LinkOptions) (*url.URL, error)

	// Origin returns the web origin of links and of the URLs of a [DirectUploader], for
	// the Content-Security-Policy of pages. It is empty if clients cannot reach the
	// store.
	Origin(ctx context.Context) (string, error)
}

// LinkOptions configure a link.
type LinkOptions struct {
	TTL                time.Duration // lifetime; at least a second, at most 7 days
	ContentType        string        // response header; "" leaves it to the store
	ContentDisposition string        // response header; "" sends none
}
