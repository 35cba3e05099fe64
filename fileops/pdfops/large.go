package pdfops

import (
	"context"
	"errors"
	"os"

	"github.com/filewright/filewright/fileops"

	"github.com/filewright/filewright/fileops/pdfops/internal/pdf"
)

// mapFrom is the size of files whose streams stay in the file. Smaller files are faster
// to read into memory.
const mapFrom = 64 << 20

// loadLarge is [Tools.load] for a file whose streams stay in the file. It fails with
// errors.ErrUnsupported if the file must be read into memory instead.
func (t Tools) loadLarge(ctx context.Context, job *fileops.Job, f *fileops.File, path, who string) (*pdf.Document, error) {
	if f.Size() > pdf.MaxMapped {
		return nil, tooLarge(f, pdf.MaxMapped)
	}
	d, err := t.mapped(ctx, path)
	if err == nil || ctx.Err() == nil && errors.Is(err, errors.ErrUnsupported) {
		return d, err
	}
	partial, encrypted := d, errors.Is(err, pdf.ErrMapped)
	switch {
	case ctx.Err() != nil:
		return nil, errors.Join(context.Cause(ctx), d.Close())
	case errors.Is(err, pdf.ErrManyPages):
		return nil, manyPages(t, err, who)
	case !encrypted && f.Size() <= pdf.MaxFile: // in memory, more can be read and repaired
		return nil, errors.Join(errors.ErrUnsupported, err, d.Close())
	case t.QPDF != nil:
		if d, err = t.mappedRewritten(ctx, job, f, encrypted, who); err == nil {
			return d, partial.Close()
		}
	case partial == nil:
		err = tooLarge(f, pdf.MaxFile)
	}
	switch {
	case ctx.Err() != nil:
		return nil, errors.Join(context.Cause(ctx), partial.Close())
	case partial != nil:
		return partial, nil // with everything that could be read
	case f.Size() <= pdf.MaxFile && !errors.Is(err, fileops.ErrPasswordRequired) && !errors.Is(err, fileops.ErrWrongPassword):
		return nil, errors.Join(errors.ErrUnsupported, err)
	}
	return nil, err
}

// mapped reads a document and leaves its streams in the file.
func (t Tools) mapped(ctx context.Context, path string) (*pdf.Document, error) {
	m, err := pdf.Map(path)
	if err != nil {
		return nil, err
	}
	d, err := pdf.ParseMapped(ctx, m, t.Limits.pages())
	if d == nil {
		return nil, errors.Join(err, m.Close())
	}
	return d, err
}

// mappedRewritten maps the file that qpdf makes of a damaged or encrypted one.
func (t Tools) mappedRewritten(ctx context.Context, job *fileops.Job, f *fileops.File, maybe bool, who string) (*pdf.Document, error) {
	pw, encrypted := []byte(nil), false
	if maybe {
		in, err := job.Path(f)
		if err != nil {
			return nil, err
		}
		state := lockClosed
		for _, form := range append([][]byte{nil}, pdf.PasswordForms(job.Params.Get("password"))...) {
			if state, err = t.probe(ctx, job, in, form); err != nil {
				return nil, err
			}
			if state != lockClosed {
				pw, encrypted = form, state == lockOpen
				break
			}
		}
		switch {
		case state != lockClosed:
		case job.Params.Has("password"):
			return nil, fileops.Fail(fileops.ErrWrongPassword, nil, "the password does not open %s", who)
		default:
			return nil, fileops.Fail(fileops.ErrPasswordRequired, nil, "%s is protected by a password; unlock it first", who)
		}
	}
	path, err := t.rewriteTo(ctx, job, f, pw, false)
	if err != nil {
		return nil, failed(err)
	}
	defer os.Remove(path) // the mapping keeps the file
	d, err := t.mapped(ctx, path)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case d == nil && errors.Is(err, pdf.ErrMapped):
		return nil, tooLarge(f, pdf.MaxFile) // the word is in the content, or qpdf does not see the encryption
	case d == nil && errors.Is(err, pdf.ErrManyPages):
		return nil, manyPages(t, err, who)
	case d == nil:
		return nil, fileops.Fail(fileops.ErrCorruptInput, err, "%s is damaged and could not be repaired", who)
	}
	d.Encrypted = encrypted
	return d, nil
}

func manyPages(t Tools, err error, who string) error {
	return fileops.Fail(fileops.ErrLimit, err, "%s has more than the limit of %d pages; split it first", who, t.Limits.pages())
}

// tooLarge returns the error of a file above a limit of bytes.
func tooLarge(f *fileops.File, most int64) error {
	return fileops.Fail(fileops.ErrLimit, nil, "the file has %d bytes, more than the limit of %d for this operation", f.Size(), most)
}
