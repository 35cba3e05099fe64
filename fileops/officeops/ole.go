package officeops

import (
	"context"
	"encoding/binary"
	"errors"
	"io"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/compound"
)

// errMaybeProtected reports that a workbook is encrypted, but perhaps with the default
// password that every reader knows. Excel 97 uses it for workbooks that are only
// protected against changes.
var errMaybeProtected = errors.New("the workbook may be protected by a password")

// head returns up to limit bytes from the start of a stream. ok is false if the stream
// does not exist.
func head(c *compound.File, name string, limit int64) (b []byte, ok bool, err error) {
	r, ok, err := c.Stream(name)
	if err != nil || !ok {
		return nil, ok, err
	}
	b, err = io.ReadAll(io.LimitReader(r, limit))
	return b, true, err
}

// checkOLE returns an error if the main stream of an old document is incomplete or
// encrypted.
func checkOLE(ctx context.Context, f *fileops.File) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	c, err := compound.Open(f.Reader(), f.Size(), 0)
	if err != nil {
		return damaged(err)
	}
	le := binary.LittleEndian
	switch f.Format() {
	case format.DOC: // FibBase.fEncrypted: [MS-DOC] 2.5.2
		b, ok, err := head(c, "worddocument", 512)
		if err != nil || !ok || len(b) < 32 {
			return damaged(errors.Join(err, compound.ErrDamaged))
		}
		if le.Uint16(b[10:])&0x0100 != 0 {
			return protected()
		}
	case format.XLS: // a FilePass record near the start: [MS-XLS] 2.4.117
		b, ok, err := head(c, "workbook", 64<<10)
		if !ok && err == nil {
			b, ok, err = head(c, "book", 64<<10)
		}
		if err != nil || !ok {
			return damaged(errors.Join(err, compound.ErrDamaged))
		}
		for len(b) >= 4 {
			kind, n := le.Uint16(b), int(le.Uint16(b[2:]))
			if kind == 0x2f {
				return errMaybeProtected
			}
			if kind == 0x0a || 4+n > len(b) { // end of the globals
				break
			}
			b = b[4+n:]
		}
	case format.PPT: // CurrentUserAtom.headerToken: [MS-PPT] 2.3.2
		if _, ok, err := head(c, "powerpoint document", 0); err != nil || !ok {
			return damaged(errors.Join(err, compound.ErrDamaged))
		}
		b, ok, err := head(c, "current user", 64)
		if err != nil {
			return damaged(err)
		}
		if ok && len(b) >= 16 && le.Uint32(b[12:]) == pptEncrypted {
			return protected()
		}
	}
	return nil
}
