package upload

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"time"

	"github.com/filewright/filewright/upload/blob"
)

// Direct reports whether the client sends the parts to the blob store itself (see
// blob.DirectUploader). Then UploadID is the store's ID, which never looks like ours.
func (f *File) Direct() bool { return f.UploadID != "" && !isID(f.UploadID) }

func (f *File) directUpload() blob.DirectUpload {
	return blob.DirectUpload{Key: f.Object, ID: f.UploadID, Begun: f.Created}
}

// errNoDirect is the error for direct sessions that were started with another store.
var errNoDirect = fmt.Errorf("the store does not support direct uploads: %w", errors.ErrUnsupported)

// directStore returns the blob store, for direct sessions.
func (m *Manager) directStore() (blob.DirectUploader, error) {
	if d, ok := blob.As[blob.DirectUploader](m.blobs); ok {
		return d, nil
	}
	return nil, errNoDirect
}

// beginDirect makes f a direct session if the store permits it. This happens before the
// record is created, so that the kind of a record never changes. Sweep finds uploads
// that a crash in between leaves behind.
func (m *Manager) beginDirect(ctx context.Context, f *File) error {
	d, ok := blob.As[blob.DirectUploader](m.blobs)
	if !ok {
		return nil
	}
	u, err := d.BeginDirect(ctx, f.Object, f.Size, f.Parts)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return nil
	case err != nil:
		return err
	case u.ID == "" || isID(u.ID):
		return errors.Join(errors.New("the store returned an upload ID in the format of file keys"), d.AbortDirect(ctx, u))
	}
	f.UploadID = u.ID
	return nil
}

// abortDirect aborts a direct session in the store.
func (m *Manager) abortDirect(ctx context.Context, f *File) error {
	if !f.Direct() {
		return nil
	}
	d, ok := blob.As[blob.DirectUploader](m.blobs)
	if !ok {
		return nil // the store is another one now, which cannot reach the upload
	}
	return d.AbortDirect(ctx, f.directUpload())
}

// directURLs returns a function that returns the store's URL for each part.
func (m *Manager) directURLs(ctx context.Context, f *File, now time.Time) (func(part int) (*url.URL, error), error) {
	d, err := m.directStore()
	if err != nil {
		return nil, err
	}
	// The size of a single part is known. With several parts the client chooses the
	// sizes.
	size := int64(-1)
	if f.Parts == 1 {
		size = f.Size
	}
	ttl := max(m.urlExpires(f, now).Sub(now), time.Second).Truncate(time.Second)
	return func(part int) (*url.URL, error) {
		return d.PresignPart(ctx, f.directUpload(), part, size, ttl)
	}, nil
}

// completeDirect finishes a direct session. Only the store knows which parts have
// arrived, but it would silently leave out unlisted parts.
func (m *Manager) completeDirect(ctx context.Context, f *File, listed []blob.Part) (*File, error) {
	d, err := m.directStore()
	if err != nil {
		return nil, fmt.Errorf("complete upload: %w", err)
	}
	arrived, err := d.DirectParts(ctx, f.directUpload())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errExpired("upload") // aborted by a lifecycle rule of the bucket
	}
	if err != nil {
		return nil, fmt.Errorf("parts of the upload: %w", err)
	}
	stored := make([]Part, len(arrived))
	list := make([]blob.Part, len(arrived))
	for i, p := range arrived {
		stored[i] = Part{Number: p.Number, ETag: p.ETag, Size: p.Size}
		list[i] = p.Part
	}
	if err := checkParts(f, listed, stored); err != nil {
		return nil, err
	}
	etag, err := blob.ETag(list)
	if err != nil {
		return nil, fmt.Errorf("parts of the upload: %w", err)
	}
	// A process that recovers the session needs the ETag.
	if _, err := m.store.Update(ctx, f.Key, func(f *File) error { f.ETag = etag; return nil }); err != nil {
		return nil, fmt.Errorf("record ETag: %w", err)
	}
	if n := len(arrived); n > 1 && arrived[n-1].Size == 0 {
		arrived = arrived[:n-1] // an empty part adds nothing, and some stores reject it
	}
	err = d.CommitDirect(ctx, f.directUpload(), arrived)
	switch {
	case errors.Is(err, blob.ErrPartSize):
		return nil, &Error{Kind: ErrInvalid, Cause: err, Message: "a part is too small: all parts except the last need at least 5 MiB"}
	case errors.Is(err, blob.ErrPartETag):
		return nil, &Error{Kind: ErrPartETag, Cause: err, Message: "a part was uploaded again during the request"}
	case err != nil:
		return nil, fmt.Errorf("complete upload: %w", err)
	}
	return m.markReadyAs(ctx, f, etag)
}

// maxLinkTTL is the longest lifetime of a link. A download that has started continues
// after it.
const maxLinkTTL = time.Hour

// Link returns an absolute URL from which a file can be fetched by GET for at most an
// hour. f is a record just read by [Manager.Get]. The URL is nil if the blob store has
// no links. For owner and the errors see [Manager.Open]. o.TTL is ignored.
func (m *Manager) Link(ctx context.Context, owner string, f *File, o blob.LinkOptions) (*url.URL, error) {
	if owner != "" && f.Owner != owner {
		return nil, errNotFound()
	}
	if err := m.ready(f); err != nil {
		return nil, err
	}
	l, ok := blob.As[blob.Linker](m.blobs)
	if !ok {
		return nil, nil
	}
	// Otherwise the client would follow the URL to an error of the store.
	i, err := blob.Stat(ctx, m.blobs, f.Object)
	if err == nil {
		err = checkSize(f, i)
	}
	if err != nil {
		return nil, m.contentError(ctx, owner, f, err)
	}
	o.TTL = maxLinkTTL
	if !f.Expires.IsZero() {
		o.TTL = max(min(o.TTL, f.Expires.Sub(m.now())).Truncate(time.Second), time.Second)
	}
	u, err := l.Link(ctx, f.Object, o)
	if errors.Is(err, errors.ErrUnsupported) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("link to content: %w", err)
	}
	return u, nil
}
