package upload

import (
	"errors"

	"github.com/filewright/filewright/upload/blob"
)

// Kinds of errors of a [Manager]. If a file is missing or belongs to another owner, the
// error matches fs.ErrNotExist instead; if the disk is full, syscall.ENOSPC.
var (
	// ErrInvalid: the request is invalid in any state.
	ErrInvalid = errors.New("invalid request")

	// ErrMissingPart: a part is not in the list, was not uploaded, or does not belong
	// to the session. It matches [blob.ErrPart], as the next two do.
	ErrMissingPart = blob.ErrMissingPart

	// ErrPartOrder: the part numbers of a list do not ascend from 1.
	ErrPartOrder = blob.ErrPartOrder

	// ErrPartETag: a part in the list is not the one that was uploaded last.
	ErrPartETag = blob.ErrPartETag

	// ErrSizeMismatch: the parts do not add up to the declared size.
	ErrSizeMismatch = errors.New("parts do not add up to the size")

	// ErrTooLarge: a file or part is larger than allowed.
	ErrTooLarge = errors.New("too large")

	// ErrSignature: the server did not issue the URL, or did not issue it for this
	// method.
	ErrSignature = errors.New("invalid signature")

	// ErrURLExpired: the URL has expired.
	ErrURLExpired = errors.New("upload URL has expired")

	// ErrIncomplete: the file has not been uploaded completely.
	ErrIncomplete = errors.New("upload is not complete")

	// ErrExpired: the file or session existed but has expired.
	ErrExpired = errors.New("expired")

	// ErrContentLost: the record of a file is complete, but its content is not in the
	// store, or has another size. For a store that does not respond see
	// [blob.ErrUnavailable].
	ErrContentLost = errors.New("content lost")

	// ErrConflict: the state does not permit the request, such as a part for a
	// completed session, or an idempotency key that another request used.
	ErrConflict = errors.New("conflict")

	// ErrDigest: the bytes do not match the Content-MD5 sent with them.
	ErrDigest = errors.New("bad digest")
)

// An Error is an error for the client. Its message has no details of the store. Other
// errors of a [Manager] are not meant for the client.
type Error struct {
	Kind    error  // one of the variables above, or fs.ErrNotExist
	Message string // for people; names parts and sizes where that helps
	Part    int    // number of the part that caused it; 0: no part
	Param   string // name of the wrong value, such as "size"; may be empty
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
