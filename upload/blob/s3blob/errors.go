package s3blob

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"

	"github.com/minio/minio-go/v7"

	"github.com/filewright/filewright/upload/blob"
)

// A failure is an error of the store. Its text has neither keys of objects, which are
// capabilities, nor URLs, which may be signed. It does not wrap network errors:
// io.ErrUnexpectedEOF from the connection to the store must not look like one from the
// caller's reader.
type failure struct {
	text string
	kind error // nil if there is none
}

func (f *failure) Error() string { return f.text }

func (f *failure) Unwrap() error { return f.kind }

// fail describes an error of the client library.
func fail(op string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("s3: %s: %w", op, contextError(err))
	}
	var own *failure
	if errors.As(err, &own) {
		return err
	}
	var resp minio.ErrorResponse
	if errors.As(err, &resp) {
		return &failure{"s3: " + op + ": " + describe(resp), kindOf(resp)}
	}
	var ca x509.UnknownAuthorityError
	var cert *tls.CertificateVerificationError
	switch { // the operator can fix these, too
	case errors.As(err, &cert):
		return &failure{fmt.Sprintf("s3: %s: %v", op, cert), blob.ErrUnavailable}
	case errors.As(err, &ca):
		return &failure{fmt.Sprintf("s3: %s: %v", op, ca), blob.ErrUnavailable}
	}
	return &failure{"s3: " + op + ": " + network(err), blob.ErrUnavailable}
}

// network describes an error that is not the server's. The client library puts
// URLs into some of them.
func network(err error) string {
	var timeout interface{ Timeout() bool }
	var on *net.OpError
	switch {
	case errors.Is(err, errSilent) || errors.As(err, &timeout) && timeout.Timeout():
		return errSilent.Error()
	case errors.As(err, &on):
		return on.Error()
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	if text := err.Error(); !strings.Contains(text, "/") {
		return text
	}
	return "the connection broke off"
}

func contextError(err error) error {
	if errors.Is(err, context.Canceled) {
		return context.Canceled
	}
	return context.DeadlineExceeded
}

// errFull is the error of a bucket without space. It also matches blob.ErrUnavailable:
// nobody can look at the space of a bucket, so only the next request shows whether there
// is space again.
var errFull = fmt.Errorf("%w: %w", syscall.ENOSPC, blob.ErrUnavailable)

// kindOf returns the error that callers of a store match for a response.
func kindOf(r minio.ErrorResponse) error {
	switch r.Code {
	case minio.NoSuchKey, minio.NoSuchUpload:
		return fs.ErrNotExist
	case "InvalidPart", "InvalidPartOrder":
		return blob.ErrPartETag
	case "EntityTooSmall":
		return blob.ErrPartSize
	case "SlowDown", "SlowDownRead", "SlowDownWrite", "Throttling", "ThrottlingException", "RequestLimitExceeded",
		"RequestThrottled", "RequestTimeout", "InternalError", "ServiceUnavailable", "OperationAborted", existingDirectory,
		"ExpiredToken", "RequestTimeTooSkewed": // the host renews its token or sets its clock
		return blob.ErrUnavailable
	case "InsufficientStorage", "QuotaExceeded", "XMinioStorageFull", "XMinioAdminBucketQuotaExceeded":
		return errFull
	}
	switch r.StatusCode {
	case http.StatusInsufficientStorage:
		return errFull
	case http.StatusTooManyRequests, http.StatusRequestTimeout:
		return blob.ErrUnavailable
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound:
		// A key was revoked, a policy changed, the bucket is gone. The operator can fix
		// that, and nothing is known about the object.
		return blob.ErrUnavailable
	}
	if r.StatusCode >= 500 {
		return blob.ErrUnavailable
	}
	return nil
}

// describe names an error of the server. It omits a message that comes from a proxy
// instead of the server.
func describe(r minio.ErrorResponse) string {
	hint := map[string]string{
		minio.NoSuchBucket:      "there is no such bucket",
		minio.AccessDenied:      "the credentials do not permit this",
		"InvalidAccessKeyId":    "the access key is not known",
		"SignatureDoesNotMatch": "the secret key is wrong",
		"ExpiredToken":          "the session token has expired",
		"InvalidToken":          "the session token is not valid",
	}[r.Code]
	switch {
	case !isCode(r.Code):
		return fmt.Sprintf("HTTP status %d", r.StatusCode)
	case hint != "":
		return r.Code + ": " + hint
	}
	return fmt.Sprintf("%s: %.200s", r.Code, r.Message)
}

func isCode(s string) bool {
	for _, c := range []byte(s) {
		if (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

func hasCode(err error, code string) bool {
	var resp minio.ErrorResponse
	return errors.As(err, &resp) && resp.Code == code
}
