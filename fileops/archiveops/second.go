package archiveops

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"slices"

	"github.com/bodgit/sevenzip"
	"github.com/klauspost/compress/zip"
	"github.com/nwaples/rardecode/v2"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
)

// twice calls run with the content of the input. If the readers of this package reject a
// part of it that libarchive may read, twice calls run again with what bsdtar reads. It
// returns the first error if that fails, too. fresh reports whether run has had no effect
// so far.
func (c *converter) twice(ctx context.Context, job *fileops.Job, fresh func() bool, run func(content) error) error {
	in, release, err := c.content(ctx, job)
	if err != nil {
		return err
	}
	defer release()
	first := run(in)
	if c.tar == nil || !rejected(first) || !fresh() {
		return first
	}
	second, release, err := c.translated(ctx, job, in)
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return first
	}
	defer release()
	if err := run(second); err != nil {
		if ctx.Err() != nil || errors.Is(err, fileops.ErrLimit) {
			return err
		}
		return first
	}
	job.Log.Info("archive read by bsdtar", "err", first)
	job.Warn(fileops.WarnContentDropped, "The archive is damaged or unusual. It was read as far as another program could read it, so files may be missing.")
	return nil
}

// rejected reports whether an error means that the structure of an archive is unknown to
// the readers of this package, or that they unpack it wrong. A truncated archive is not
// among these errors: bsdtar reads the start of some.
func rejected(err error) bool {
	if !errors.Is(err, fileops.ErrCorruptInput) || errors.Is(err, io.ErrUnexpectedEOF) {
		return false
	}
	return errors.Is(err, tar.ErrHeader) || errors.Is(err, zip.ErrFormat) || errors.Is(err, errDamaged) ||
		slices.ContainsFunc([]error{rardecode.ErrBadBlockHeader, rardecode.ErrCorruptBlockHeader, rardecode.ErrCorruptFileHeader}, func(e error) bool { return errors.Is(err, e) }) ||
		errors.As(err, new(*sevenzip.ReadError))
}

// translated returns what bsdtar reads of an archive as a tar archive. The compression of
// a tar archive is removed here, because bsdtar does not verify all checksums.
func (c *converter) translated(ctx context.Context, job *fileops.Job, in content) (tar content, release func(), err error) {
	switch in.Format() {
	case format.ZIP, format.SevenZip, format.RAR:
		return c.tar.read(ctx, job, c.limits, nil)
	}
	s, err := c.open(ctx, in)
	if err != nil {
		return nil, nil, err
	}
	if !s.isTar {
		return nil, nil, errors.New("no archive")
	}
	tar, release, err = c.tar.read(ctx, job, c.limits, s)
	if err != nil {
		return nil, nil, err
	}
	if _, err := io.Copy(io.Discard, struct{ io.Reader }{s}); err != nil {
		release()
		return nil, nil, s.failure(err)
	}
	return tar, release, nil
}
