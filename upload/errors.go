package upload

import (
	"errors"

	"github.com/filewright/filewright/upload/blob"
)

// Kinds of errors of a [Manager]. What is not there, or belongs to another
// owner, matches fs.ErrNotExist instead. A disk that is full matches
// syscall.ENOSPC.
var (
	// ErrInvalid: the request makes no sense, whatever the state.
	ErrInvalid = errors.New("invalid request")

	// ErrMissingPart: a part is not in the list, was not uploaded, or is not
	// one of the session. It matches [blob.ErrPart], as the next two do.
	ErrMissingPart = blob.ErrMissingPart

	// ErrPartOrder: the part numbers of a list do not ascend from 1.
	ErrPartOrder = blob.ErrPartOrder

	// ErrPartETag: a part in the list is not the one that was uploaded last.
	ErrPartETag = blob.ErrPartETag

	// ErrSizeMismatch: the parts do not add up to the declared size.
	ErrSizeMismatch = errors.New("parts do not add up to the size")

	// ErrTooLarge: a file or part is larger than allowed.
	ErrTooLarge = errors.New("too large")

	// ErrSignature: the URL is not one that was given out, or the method is
	// not the one it is for.
	ErrSignature = errors.New("invalid signature")

	// ErrURLExpired: the URL was given out too long ago.
	ErrURLExpired = errors.New("upload URL has expired")

	// ErrIncomplete: the file has not been uploaded completely.
	ErrIncomplete = errors.New("upload is not complete")

	// ErrExpired: the file or session was there, but its time is over.
	ErrExpired = errors.New("expired")

	// ErrContentLost: the record of a file is complete, but its content is not in
	// the store, or has another size. A store that does not answer is another
	// matter: see [blob.ErrUnavailable].
	ErrContentLost = errors.New("content lost")

	// ErrConflict: the state does not permit it, as a part for a completed
	// session, or an idempotency key for another request.
	ErrConflict = errors.New("conflict")

	// ErrDigest: the bytes are not those of the Content-MD5 sent with them.
	ErrDigest = errors.New("bad digest")
)

// An Error is an error that the client is to be told of. It has no details of
// the store in it. Other errors of a [Manager] are not meant for the client.
type Error struct {
	Kind    error  // one of the variables above, or fs.ErrNotExist
	Message string // for people; names parts and sizes where that helps
	Part    int    // number of the part it is about; 0 if there is none
	Cause   error  // may be nil; not part of the message
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the kind and the cause.
func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Cause}
}
