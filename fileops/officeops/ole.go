package officeops

import (
	"context"
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
	switch f.Format() {
	case format.VSD, format.PUB:
		// LibreOffice shows what it finds before the damage.
		name := map[format.Format]string{format.VSD: "visiodocument", format.PUB: "contents"}[f.Format()]
		r, ok, err := c.Stream(name)
		if err == nil && ok {
			_, err = io.Copy(io.Discard, fileops.ContextReader(ctx, r))
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil || !ok {
			return damaged(errors.Join(err, compound.ErrDamaged))
		}
	case format.DOC:
		b, ok, err := head(c, "worddocument", 512)
		if err != nil || !ok || len(b) < 32 {
			return damaged(errors.Join(err, compound.ErrDamaged))
		}
		if compound.WordEncrypted(b) {
			return protected()
		}
	case format.XLS:
		b, ok, err := head(c, "workbook", 64<<10)
		if !ok && err == nil {
			b, ok, err = head(c, "book", 64<<10)
		}
		if err != nil || !ok {
			return damaged(errors.Join(err, compound.ErrDamaged))
		}
		if compound.ExcelEncrypted(b) {
			return errMaybeProtected
		}
	case format.PPT:
		if _, ok, err := head(c, "powerpoint document", 0); err != nil || !ok {
			return damaged(errors.Join(err, compound.ErrDamaged))
		}
		b, ok, err := head(c, "current user", 64)
		if err != nil {
			return damaged(err)
		}
		if ok && compound.PowerPointEncrypted(b) {
			return protected()
		}
	}
	return nil
}
