package archiveops

import (
	"archive/tar"
	"context"
	"errors"
	"io"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/report"
)

// Inspect returns the action "inspect" for archives and compressed files: it counts
// their files and adds up the sizes. An archive whose names are encrypted is only
// reported as encrypted. l may be nil.
func Inspect(l *Limits) fileops.Action {
	c := &converter{limits: l.orDefault()}
	spec := report.Spec(engineName, "archive", "Describes an archive as JSON.", []format.Format{
		format.ZIP, format.SevenZip, format.RAR, format.TAR, format.TarGZ, format.TarBZ2, format.TarXZ, format.TarZst, format.GZ, format.BZ2, format.XZ, format.Zst,
	})
	return fileops.Func(spec, c.inspect)
}

func (c *converter) inspect(ctx context.Context, job *fileops.Job) error {
	r := report.New(job)
	a := new(report.Archive)
	var in archive
	listed := c.listed(ctx, job)
	switch {
	case listed != nil:
		listed.headersOnly = true
		in = listed
	case job.Input().Format() == format.ZIP:
		z, err := openZIP(ctx, c.limits, job.Input(), "")
		if err != nil {
			return err
		}
		for _, f := range z.files {
			r.Encrypted = r.Encrypted || f.Flags&flagEncrypted != 0
		}
		in = z
	default:
		s, err := c.open(ctx, job.Input())
		if err != nil {
			return err
		}
		if !s.isTar {
			a.Files = 1
			if a.Unpacked, err = io.Copy(io.Discard, struct{ io.Reader }{s}); err != nil {
				return s.failure(err)
			}
			r.Archive = a
			return r.Write(job)
		}
		in = s
	}
	err := in.walk(func(h *tar.Header, _ io.Reader) error {
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
	if listed != nil {
		r.Encrypted = listed.encrypted || job.Input().Format() == format.SevenZip && a.Unpacked > 0 && listed.anySecret()
	}
	r.Archive = a
	return r.Write(job)
}
