package upload

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/filewright/filewright/upload/blob"
)

// Complete finishes a session, so that it becomes a Ready file. The result again
// reports whether it was finished before, which is not an error; then parts is ignored.
// objectName and uploadID may be empty; otherwise they must be the session's. For owner
// see [Manager.Get].
//
// parts must list all parts of the session in order, with the ETags that PutPart
// returned, in the form described at [blob.Part.Sum]. If the list is wrong, the session
// stays open and can be completed later.
func (m *Manager) Complete(ctx context.Context, owner, key, objectName, uploadID string, parts []blob.Part) (f *File, again bool, err error) {
	unlock, err := m.lock(ctx, key)
	if err != nil {
		return nil, false, err
	}
	defer unlock()
	f, stored, err := m.getParts(ctx, owner, key)
	if err != nil {
		return nil, false, err
	}
	switch {
	case m.expired(f):
		return nil, false, errExpired("upload")
	case f.UploadID == "":
		return nil, false, errNotFound() // a result, not an upload
	case objectName != "" && objectName != f.Object:
		return nil, false, &Error{Kind: ErrInvalid, Param: "object_name", Message: "object_name does not match this upload"}
	case uploadID != "" && uploadID != f.UploadID:
		return nil, false, &Error{Kind: ErrInvalid, Param: "upload_id", Message: "upload_id does not match this upload"}
	}
	if f, err = m.settle(ctx, f); err != nil {
		return nil, false, err
	}
	if f.State == Ready {
		return f, true, nil
	}

	if f.Direct() {
		f, err = m.completeDirect(ctx, f, parts)
		return f, false, err
	}

	if err := checkParts(f, parts, stored); err != nil {
		return nil, false, err
	}
	list := make([]blob.AssembledPart, len(stored))
	for i, p := range stored {
		list[i] = p.assembled()
	}
	if err := m.assembly(f).Commit(ctx, f.Object, list); err != nil {
		return nil, false, fmt.Errorf("complete upload: %w", err)
	}
	f, err = m.markReady(ctx, f, stored)
	return f, false, err
}

// checkParts compares the client's list with the stored parts.
func checkParts(f *File, listed []blob.Part, stored []Part) error {
	fault := func(kind error, part int, format string, args ...any) error {
		return &Error{Kind: kind, Part: part, Message: fmt.Sprintf(format, args...)}
	}
	last := 0
	for _, p := range listed {
		if p.Number <= last {
			if last == 0 {
				return fault(ErrPartOrder, p.Number, "part number %d: numbers start at 1", p.Number)
			}
			return fault(ErrPartOrder, p.Number, "part %d is listed after part %d; the numbers must ascend", p.Number, last)
		}
		last = p.Number
	}
	if last > f.Parts {
		return fault(ErrMissingPart, last, "part %d is listed, but the upload has %d parts", last, f.Parts)
	}
	// The numbers ascend from 1 to at most f.Parts, so at a gap a number differs from
	// its index.
	for i := range f.Parts {
		if i >= len(listed) || listed[i].Number != i+1 {
			return fault(ErrMissingPart, i+1, "part %d of %d is not listed", i+1, f.Parts)
		}
		if i >= len(stored) || stored[i].Number != i+1 {
			return fault(ErrMissingPart, i+1, "part %d of %d has not been uploaded", i+1, f.Parts)
		}
	}
	var size int64
	for i, p := range stored {
		got, err := listed[i].Sum()
		if err != nil {
			return fault(ErrPartETag, p.Number, "the ETag of part %d is not a hex MD5", p.Number)
		}
		if want, err := (blob.Part{Number: p.Number, ETag: p.ETag}).Sum(); err != nil || got != want {
			return fault(ErrPartETag, p.Number, "the ETag of part %d does not match its latest upload", p.Number)
		}
		size += p.Size
	}
	if size != f.Size {
		return fault(ErrSizeMismatch, 0, "the parts have %d bytes, but the declared size is %d", size, f.Size)
	}
	return nil
}

// markReady records that the object of a session exists.
func (m *Manager) markReady(ctx context.Context, f *File, stored []Part) (*File, error) {
	list := make([]blob.Part, len(stored))
	for i, p := range stored {
		list[i] = blob.Part{Number: p.Number, ETag: p.ETag}
	}
	etag, err := blob.ETag(list)
	if err != nil {
		return nil, fmt.Errorf("part records: %w", err)
	}
	return m.markReadyAs(ctx, f, etag)
}

func (m *Manager) markReadyAs(ctx context.Context, f *File, etag string) (*File, error) {
	now := m.now()
	ready, err := m.store.Update(ctx, f.Key, func(f *File) error {
		f.State, f.ETag, f.Expires = Ready, etag, m.fileExpires(now)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("record completion: %w", err)
	}
	return ready, nil
}

// interrupted reports whether the completion of a session may have been interrupted after
// its object was created.
func (m *Manager) interrupted(ctx context.Context, f *File) (bool, error) {
	if !f.interruptible() {
		return false, nil
	}
	_, err := blob.Stat(ctx, m.blobs, f.Object)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("stat content: %w", err)
	}
	return true, nil
}

// resume is settle for a record that may be outdated.
func (m *Manager) resume(ctx context.Context, f *File) error {
	interrupted, err := m.interrupted(ctx, f)
	if err != nil || !interrupted {
		return err
	}
	now, err := m.store.Get(ctx, f.Key)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		_, err = m.settle(ctx, now)
	}
	return err
}

// interruptible reports whether the completion of the session may have been
// interrupted. For a direct upload, the ETag is recorded before the bucket joins the
// parts.
func (f *File) interruptible() bool {
	return f.State == Open && (!f.Direct() || f.ETag != "")
}

// settle finishes an Open session whose completion was interrupted after its object was
// created. The lock of the session must be held.
func (m *Manager) settle(ctx context.Context, f *File) (*File, error) {
	if !f.interruptible() {
		return f, nil
	}
	i, err := blob.Stat(ctx, m.blobs, f.Object)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return nil, fmt.Errorf("stat content: %w", err)
	}
	if i.Size != f.Size {
		// Some stores keep a partial object when its sender dies. Completing the
		// session replaces it.
		return f, nil
	}
	if f.Direct() {
		m.log.Info("finished an interrupted completion")
		return m.markReadyAs(ctx, f, f.ETag)
	}
	_, stored, err := m.store.Parts(ctx, f.Key)
	if err != nil {
		return nil, fmt.Errorf("part records: %w", err)
	}
	var size int64
	for _, p := range stored {
		size += p.Size
	}
	if len(stored) != f.Parts || size != f.Size {
		// The records were restored from a backup older than the content. The records
		// decide: the session is open.
		if err := m.blobs.Delete(ctx, f.Object); err != nil {
			return nil, fmt.Errorf("remove content newer than its record: %w", err)
		}
		return f, nil
	}
	m.log.Info("finished an interrupted completion")
	return m.markReady(ctx, f, stored)
}
