package archiveops

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"slices"

	"github.com/klauspost/compress/zip"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/report"
)

// Inspect returns the action "inspect" for archives and compressed files: it counts
// their files and adds up the sizes. An archive whose names are encrypted is only
// reported as encrypted. l may be nil.
func Inspect(l *Limits) fileops.Action {
	c := &converter{limits: l.orDefault()}
	return c.inspect()
}

// countedEntries limits the entries that are counted. Their headers are read, but nothing is
// unpacked, so there may be more than other actions accept.
const countedEntries = 1_000_000

func (c *converter) inspect() fileops.Action {
	counting := *c
	counting.limits.Entries = max(c.limits.Entries, countedEntries)
	return fileops.Func(report.Spec(c.name(), "archive", "Describes an archive as JSON.", c.reads()), counting.report)
}

func (c *converter) report(ctx context.Context, job *fileops.Job) error {
	return c.twice(ctx, job, func() bool { return true }, func(in content) error { return c.reportContent(ctx, job, in) })
}

func (c *converter) reportContent(ctx context.Context, job *fileops.Job, content content) error {
	r := report.New(job)
	a := new(report.Archive)
	in, err := c.directory(ctx, job, content, true)
	if err != nil {
		return err
	}
	if in == nil {
		s, err := c.open(ctx, content)
		if err != nil {
			return err
		}
		if !s.isTar {
			a.Files = 1
			if a.Unpacked, err = io.Copy(io.Discard, struct{ io.Reader }{s}); err != nil {
				return s.failure(err)
			}
			s.warn(job)
			r.Archive = a
			return r.Write(job)
		}
		in = s
	}
	err = in.walk(func(h *tar.Header, _ io.Reader) error {
		switch kindOf(h) {
		case aFile, unreadable:
			a.Files++
			a.Unpacked += h.Size
		case aFolder:
			a.Folders++
		case aLink, aSymlink:
			a.Links++
		}
		return nil
	}, func() int64 { return a.Unpacked })
	switch {
	case errors.Is(err, fileops.ErrPasswordRequired):
		r.Encrypted = true
		return r.Write(job)
	case err != nil:
		return err
	}
	if s, ok := in.(*stream); ok {
		s.warn(job)
	}
	r.Encrypted = encrypted(in)
	r.Archive = a
	return r.Write(job)
}

// encrypted reports whether an entry of an archive is encrypted. A listed archive must have been
// walked.
func encrypted(in archive) bool {
	switch a := in.(type) {
	case *zipArchive:
		return slices.ContainsFunc(a.files, func(f *zip.File) bool { return f.Flags&flagEncrypted != 0 })
	case *listed:
		return a.encrypted || a.in.Format() == format.SevenZip && a.unpacked > 0 && a.anySecret()
	}
	return false
}

// warnPasswordUnused warns if the job has a password and no entry of the archive is encrypted.
func (c *converter) warnPasswordUnused(ctx context.Context, job *fileops.Job, in content) error {
	if !job.Params.Has("password") {
		return nil
	}
	a, err := c.directory(ctx, job, in, true)
	if err != nil || a == nil {
		return err
	}
	if l, ok := a.(*listed); ok {
		if err := l.walk(func(*tar.Header, io.Reader) error { return nil }, nil); err != nil {
			return err
		}
	}
	if !encrypted(a) {
		job.WarnPasswordUnused()
	}
	return nil
}
