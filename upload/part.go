package upload

import (
	"context"
	"crypto/md5"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"strconv"
	"sync"

	"github.com/filewright/filewright/upload/blob"
)

// PutOptions holds the request headers of a body.
type PutOptions struct {
	Size       int64  // Content-Length; -1 if unknown
	ContentMD5 string // header Content-MD5; "" if missing
}

// PutPart stores a body that was sent to a URL from Start, and returns its ETag without
// quotes. It does not read the body before it has checked the URL, the size and the
// state of the session.
//
// A part may be sent again until the session is completed; the last acknowledged body
// counts. Two bodies for the same part are stored one after the other.
func (m *Manager) PutPart(ctx context.Context, method string, u *url.URL, r io.Reader, o PutOptions) (etag string, err error) {
	t, err := m.signer.verify(method, u, m.now())
	if err != nil {
		return "", err
	}
	digest, err := parseDigest(o.ContentMD5, t.part)
	if err != nil {
		return "", err
	}
	if o.Size > t.max {
		return "", errPartTooLarge(t.part, o.Size, t.max)
	}
	unlock, err := m.lock(ctx, t.key+"/"+strconv.Itoa(t.part))
	if err != nil {
		return "", err
	}
	defer unlock()
	f, old, err := m.beginPart(ctx, t, o.Size)
	if err != nil {
		return "", err
	}
	defer m.arriving.remove(t.key, t.part)

	p, err := m.writePart(ctx, m.assembly(f), t.part, old, r, o, digest)
	if err != nil {
		return "", err
	}
	if err := m.recordPart(ctx, f, old, p); err != nil {
		return "", err
	}
	return p.ETag, nil
}

// writePart stores a body and checks it. It does not touch old, the part that it
// replaces, if any.
func (m *Manager) writePart(ctx context.Context, a *blob.Assembly, n int, old *Part, r io.Reader, o PutOptions, digest *[md5.Size]byte) (p Part, err error) {
	b := newBody(r)
	defer b.digest.close()
	var w blob.AssembledPart
	if old == nil {
		w, err = a.WritePart(ctx, n, b, o.Size)
	} else {
		w, err = a.ReplacePart(ctx, old.assembled(), b, o.Size)
	}
	written := err == nil
	fault := b.check(ctx, n, o.Size, w.Size, err)
	switch {
	case fault != nil:
		err = fault
	case err != nil:
		err = fmt.Errorf("store part %d: %w", n, err)
	case digest != nil && *digest != b.sum():
		err = &Error{Kind: ErrDigest, Part: n, Message: fmt.Sprintf("part %d does not match its Content-MD5", n)}
	}
	p = Part{Number: n, Size: w.Size, Staged: w.Staged, Revision: w.Revision}
	if err != nil {
		if written && old != nil {
			m.dropPart(ctx, a, p)
		}
		return Part{}, err
	}
	p.ETag = b.etag()
	return p, nil
}

// recordPart records a stored part, in place of old if that is not nil.
func (m *Manager) recordPart(ctx context.Context, f *File, old *Part, p Part) error {
	a := m.assembly(f)
	if old != nil {
		// The session may have been completed with the old part, or is being completed
		// now, or that was interrupted.
		unlock, err := m.lock(ctx, f.Key)
		if err != nil {
			return err
		}
		defer unlock()
		if err := m.resume(ctx, f); err != nil {
			return err
		}
	}
	err := m.store.AddPart(ctx, f.Key, p)
	if errors.Is(err, fs.ErrNotExist) { // completed or deleted in the meantime
		if _, err = m.get(ctx, "", f.Key); err == nil {
			err = errComplete(p.Number)
		}
		if old != nil || errors.Is(err, fs.ErrNotExist) {
			m.dropPart(ctx, a, p)
		}
		return err
	}
	if err != nil { // it may have been recorded
		return fmt.Errorf("record part %d: %w", p.Number, err)
	}
	if old != nil {
		m.dropPart(ctx, a, *old)
	}
	return nil
}

func errComplete(part int) error {
	return &Error{Kind: ErrConflict, Part: part, Message: "the upload is already complete"}
}

// dropPart removes the object of an unneeded part.
func (m *Manager) dropPart(ctx context.Context, a *blob.Assembly, p Part) {
	if err := a.DropPart(context.WithoutCancel(ctx), p.assembled()); err != nil {
		m.log.Warn("cannot remove content of a part", "err", err)
	}
}

// beginPart checks whether a part may be written. old is the one that it replaces, or
// nil.
func (m *Manager) beginPart(ctx context.Context, t ticket, size int64) (f *File, old *Part, err error) {
	// Only this process receives these parts, so its own lock is enough to add up their sizes.
	unlock, err := m.locks.lock(ctx, t.key)
	if err != nil {
		return nil, nil, err
	}
	defer unlock()
	sizes := m.arriving.sizes(t.key) // first, because an arriving part is recorded before it leaves this list
	f, parts, err := m.getParts(ctx, "", t.key)
	if err != nil {
		return nil, nil, err
	}
	if f.UploadID != t.upload || t.part > f.Parts {
		return nil, nil, errNotFound()
	}
	if m.expired(f) {
		return nil, nil, errExpired("upload")
	}
	if interrupted, err := m.interrupted(ctx, f); err != nil {
		return nil, nil, err
	} else if interrupted {
		unlock, err := m.lockOthers(ctx, t.key)
		if err != nil {
			return nil, nil, err
		}
		defer unlock()
		if err := m.resume(ctx, f); err != nil {
			return nil, nil, err
		}
		if f, parts, err = m.getParts(ctx, "", t.key); err != nil {
			return nil, nil, err
		}
	}
	if f.State != Open {
		return nil, nil, errComplete(t.part)
	}
	for i, p := range parts {
		sizes[p.Number] = p.Size
		if p.Number == t.part {
			old = &parts[i]
		}
	}
	left := f.Size
	for n, size := range sizes {
		if n != t.part {
			left -= size
		}
	}
	if size < 0 { // limits how many bytes are accepted
		_, size = m.assembly(f).Slot(t.part)
	}
	if size > max(left, 0) {
		return nil, nil, errPartTooLarge(t.part, size, max(left, 0))
	}
	if err := m.room(ctx, size); err != nil {
		return nil, nil, fmt.Errorf("store part %d: %w", t.part, err)
	}
	m.arriving.add(t.key, t.part, size)
	return f, old, nil
}

// arrivals holds the sizes of the parts that are being received, by file key and
// number. Without it, concurrent parts could together exceed the size of the file.
type arrivals struct {
	mu sync.Mutex
	m  map[string]map[int]int64
}

func (a *arrivals) add(key string, part int, size int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.m == nil {
		a.m = make(map[string]map[int]int64)
	}
	if a.m[key] == nil {
		a.m[key] = make(map[int]int64)
	}
	a.m[key][part] = size
}

func (a *arrivals) remove(key string, part int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if delete(a.m[key], part); len(a.m[key]) == 0 {
		delete(a.m, key)
	}
}

// sizes returns a copy of the sizes of a file's parts.
func (a *arrivals) sizes(key string) map[int]int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	sizes := make(map[int]int64, len(a.m[key]))
	maps.Copy(sizes, a.m[key])
	return sizes
}

func errPartTooLarge(part int, size, limit int64) error {
	return &Error{Kind: ErrTooLarge, Part: part, Message: fmt.Sprintf("part %d has %d bytes; at most %d remain", part, size, limit)}
}

func parseDigest(s string, part int) (*[md5.Size]byte, error) {
	if s == "" {
		return nil, nil
	}
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil || len(b) != md5.Size {
		return nil, &Error{Kind: ErrDigest, Part: part, Message: "Content-MD5 is not a base64 MD5"}
	}
	return (*[md5.Size]byte)(b), nil
}

// A body computes the MD5 of the bytes read through it, and records whether the reader
// failed.
type body struct {
	r      io.Reader
	digest *digest
	n      int64
	err    error // other than io.EOF
}

func newBody(r io.Reader) *body { return &body{r: r, digest: newDigest()} }

func (b *body) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	b.digest.write(p[:n])
	b.n += int64(n)
	if err != nil && err != io.EOF {
		b.err = err
	}
	return n, err
}

func (b *body) sum() [md5.Size]byte { return b.digest.sum() }

func (b *body) etag() string {
	sum := b.sum()
	return hex.EncodeToString(sum[:])
}

// check returns the error that the sender of the body caused, or nil. err is the
// error of the store, stored the number of bytes that it stored.
func (b *body) check(ctx context.Context, part int, size, stored int64, err error) error {
	fault := func(cause error, format string, args ...any) error {
		return &Error{Kind: ErrInvalid, Part: part, Cause: cause, Message: fmt.Sprintf("part %d: ", part) + fmt.Sprintf(format, args...)}
	}
	switch {
	case errors.Is(b.err, os.ErrDeadlineExceeded): // net/http also cancels the context
		return fault(b.err, "timeout while reading the body, after %d bytes", b.n)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case b.err != nil:
		return fault(b.err, "cannot read the body after %d bytes", b.n)
	case size >= 0 && b.n < size && (err == nil || errors.Is(err, io.ErrUnexpectedEOF)):
		return fault(io.ErrUnexpectedEOF, "the body has %d bytes instead of %d", b.n, size)
	case size < 0 && errors.Is(err, io.ErrUnexpectedEOF):
		return fault(err, "the body needs a Content-Length")
	case size < 0 && err == nil:
		// The store reads at most the usual size of the part. The body must end there.
		var one [1]byte
		if n, rerr := io.ReadFull(b.r, one[:]); n > 0 {
			return fault(nil, "the body is longer than %d bytes and needs a Content-Length", stored)
		} else if rerr != io.EOF {
			return fault(rerr, "cannot read the body after %d bytes", b.n)
		}
	}
	return nil
}
