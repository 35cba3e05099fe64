package upload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// receiveStep is the number of bytes after which Receive checks the free space again.
const receiveStep = 64 << 20

// Receive stores a file that arrives as a whole in r, without a session. The name, the
// content type and the owner are those of the request. Its Size is the number of bytes
// in r, or -1 if that is unknown; Parts and IdempotencyKey are ignored. If a file with
// its Key exists, in whatever state, the error matches fs.ErrExist, and that file does
// not change.
//
// Receive collects the bytes in Options.TempDir before it stores them, so that a body
// that ends early leaves nothing behind and memory does not grow with the file. The file
// is durable when Receive returns, and its ETag is the hex MD5 of its bytes. If the
// client is at fault, the error is an [*Error].
func (m *Manager) Receive(ctx context.Context, r Request, body io.Reader) (*File, error) {
	size := r.Size
	r.Size, r.Parts = max(size, 0), 1
	if r.Size > m.opts.MaxSize {
		return nil, errFileTooLarge(r.Size, m.opts.MaxSize)
	}
	if err := m.room(ctx, r.Size); err != nil {
		return nil, fmt.Errorf("receive file: %w", err)
	}
	id, err := m.newID()
	if err != nil {
		return nil, err
	}
	spool, err := os.CreateTemp(m.opts.TempDir, "receive-*")
	if err != nil {
		return nil, fmt.Errorf("receive file: %w", err)
	}
	defer os.Remove(spool.Name()) // storing may have moved it
	n, etag, err := m.spool(ctx, spool, body, size)
	if cerr := spool.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return nil, err
	}
	if r.Key != "" {
		// Another process may be receiving the same file.
		unlock, err := m.lock(ctx, r.Key)
		if err != nil {
			return nil, err
		}
		defer unlock()
		switch _, err := m.get(ctx, "", r.Key); {
		case err == nil:
			return nil, fmt.Errorf("receive file: %w", fs.ErrExist)
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
	}
	return m.addFile(ctx, File{
		Key: r.Key, Owner: r.Owner, Name: r.Name, ContentType: r.ContentType, Size: n, UploadID: id, Parts: 1, ETag: etag,
	}, nil, spool.Name())
}

// spool copies a body of size bytes, or of any size if size is negative, to a file.
func (m *Manager) spool(ctx context.Context, to *os.File, r io.Reader, size int64) (n int64, etag string, err error) {
	b := newBody(r)
	defer b.digest.close()
	buf := make([]byte, 64<<10)
	for next := int64(receiveStep); ; {
		if err := ctx.Err(); err != nil {
			return n, "", context.Cause(ctx)
		}
		k, rerr := b.Read(buf)
		if n += int64(k); n > m.opts.MaxSize {
			return n, "", errFileTooLarge(-1, m.opts.MaxSize)
		}
		if _, err := to.Write(buf[:k]); err != nil {
			return n, "", fmt.Errorf("receive file: %w", err)
		}
		if n >= next {
			next = n + receiveStep
			if err := m.room(ctx, 0); err != nil {
				return n, "", fmt.Errorf("receive file: %w", err)
			}
		}
		if rerr == nil {
			continue
		}
		switch {
		case errors.Is(b.err, os.ErrDeadlineExceeded): // net/http also cancels the context
			return n, "", &Error{Kind: ErrInvalid, Cause: b.err, Message: fmt.Sprintf("timeout while reading the file, after %d bytes", n)}
		case b.err != nil && ctx.Err() != nil:
			return n, "", context.Cause(ctx)
		case b.err != nil:
			return n, "", &Error{Kind: ErrInvalid, Cause: b.err, Message: fmt.Sprintf("cannot read the file after %d bytes: the body ends early or is malformed", n)}
		case size >= 0 && n != size:
			return n, "", &Error{Kind: ErrInvalid, Cause: io.ErrUnexpectedEOF, Message: fmt.Sprintf("the file has %d bytes instead of %d", n, size)}
		}
		return n, b.etag(), nil
	}
}

// errFileTooLarge is the error for a file of size bytes, or of an unknown size if size is
// negative.
func errFileTooLarge(size, limit int64) error {
	if size < 0 {
		return &Error{Kind: ErrTooLarge, Message: fmt.Sprintf("the file has more than %d bytes", limit)}
	}
	return &Error{Kind: ErrTooLarge, Message: fmt.Sprintf("the file has %d bytes; the limit is %d", size, limit)}
}
