package archiveops

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"io/fs"
	"math"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/engine"
	"github.com/filewright/filewright/fileops/format"
)

// mode returns the permissions of an entry for the result. Some archives have none.
func (e *extraction) mode(h *tar.Header) fs.FileMode {
	usual := fs.FileMode(0o644)
	if kindOf(h) == aFolder {
		usual = 0o755
	}
	mode := fs.FileMode(h.Mode).Perm()
	switch {
	case e.symlink != nil && mode != 0:
		// Without these rights, the owner could not remove what he unpacks.
		if kindOf(h) == aFolder {
			return mode | 0o700
		}
		return mode | 0o600
	case mode&0o100 != 0:
		return 0o755
	}
	return usual
}

// target returns the target of a symbolic link, if the result can have it: a relative path
// that leads to a place inside the archive. The names of the path must be safe, because
// entries with other names are renamed.
func (e *extraction) target(h *tar.Header, content io.Reader) (string, bool) {
	if e.symlink == nil {
		return "", false
	}
	target := h.Linkname
	if target == "" && 0 < h.Size && h.Size <= maxTarget { // the content of the entry, except in tar archives
		b, err := io.ReadAll(io.LimitReader(content, h.Size))
		if err != nil {
			return "", false // walk reports the error
		}
		target = string(b)
	}
	if target == "" || len(target) > maxTarget || path.IsAbs(target) || strings.Contains(target, `\`) {
		return "", false
	}
	// A path may go up only at its start, through folders of the archive. Later folders may
	// be links, and what is above them depends on their targets.
	up := 0
	var down []string
	for _, name := range strings.Split(target, "/") {
		switch {
		case name == "" || name == ".":
		case name != "..":
			down = append(down, name)
		case len(down) > 0:
			return "", false
		default:
			up++
		}
	}
	if up >= len(safeParts(h.Name)) || !slices.Equal(down, safeParts(strings.Join(down, "/"))) {
		return "", false
	}
	return target, true
}

// write writes the result as a tar archive, compressed or not, or as a 7z archive.
func (e *extraction) write(ctx context.Context, job *fileops.Job, name string, to format.Format) error {
	switch to {
	case format.SevenZip, format.TarXZ, format.TarBZ2:
		return job.WriteFile(name, func(path string) error { return e.translated(ctx, job, path, to) })
	}
	return job.Write(name, func(w io.Writer) error {
		var z io.WriteCloser
		var err error
		switch to {
		case format.TarGZ:
			z = gzip.NewWriter(w)
		case format.TarZst:
			z, err = zstd.NewWriter(w)
		default:
			_, err = e.tar(ctx, job, w)
			return err
		}
		if err != nil {
			return err
		}
		_, err = e.tar(ctx, job, z)
		return errors.Join(err, z.Close())
	})
}

// translated writes the result with bsdtar, and checks it.
func (e *extraction) translated(ctx context.Context, job *fileops.Job, path string, to format.Format) error {
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := e.converter.tar.translate(ctx, job, r, path, to, job.MaxOutput())
		r.CloseWithError(errPipe) // so that the writer does not wait
		done <- err
	}()
	want, err := e.tar(ctx, job, w)
	w.CloseWithError(err) // nil is the end of the archive
	terr := <-done
	var exit *engine.ExitError
	switch {
	case err != nil && !errors.Is(err, errPipe):
		return err
	case errors.As(terr, &exit) && exit.Limit():
		if most := job.MaxOutput(); most > 0 && sizeOf(path) >= most {
			return job.TooMuch(terr)
		}
		return fileops.Fail(fileops.ErrLimit, terr, "the archive takes more %s than is allowed; try a smaller one", exit.Which())
	case exit != nil:
		return fileops.Fail(fileops.ErrEngine, terr, "the archive could not be written as %s", to.Title())
	case terr != nil:
		return terr
	case err != nil:
		return fileops.Fail(fileops.ErrEngine, err, "the archive could not be written as %s", to.Title())
	}
	got, err := e.recount(ctx, job, path, to)
	if err == nil && got != want {
		err = errors.New("the result has other entries than the archive")
	}
	if err != nil && ctx.Err() == nil {
		err = fileops.Fail(fileops.ErrEngine, err, "the engine did not produce a valid %s file", to)
	}
	return err
}

// errPipe is the error of writes to bsdtar after it has ended.
var errPipe = errors.New("archiveops: the archiver has ended")

// A tally counts the entries of an archive.
type tally struct {
	files, folders, links int
	size                  int64
}

// recount reads a result and counts its entries.
func (e *extraction) recount(ctx context.Context, job *fileops.Job, path string, f format.Format) (t tally, err error) {
	in, release, err := openPart(path, "result."+string(f))
	if err != nil {
		return t, err
	}
	defer release()
	c := &converter{limits: e.limits}
	c.limits.Ratio = math.MaxInt64 // the input was within the limit
	a, err := c.directory(ctx, job, in, true)
	if err == nil && a == nil {
		a, err = c.open(ctx, in)
	}
	if err != nil {
		return t, err
	}
	err = a.walk(func(h *tar.Header, _ io.Reader) error {
		switch kindOf(h) {
		case aFile:
			t.files++
			t.size += h.Size
		case aFolder:
			t.folders++
		case aSymlink:
			t.links++
		}
		return nil
	}, func() int64 { return t.size })
	return t, err
}

// tar writes the entries to w as a tar archive.
func (e *extraction) tar(ctx context.Context, job *fileops.Job, w io.Writer) (t tally, err error) {
	tw := tar.NewWriter(w)
	add := func(h tar.Header) error {
		h.Format = tar.FormatPAX // for times and long names
		if h.ModTime.IsZero() {
			h.ModTime = time.Unix(0, 0)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return tw.WriteHeader(&h)
	}
	e.symlink = func(path, target string, mod time.Time) error {
		t.links++
		return add(tar.Header{Typeflag: tar.TypeSymlink, Name: path, Linkname: target, Mode: 0o777, ModTime: mod})
	}
	err = e.extract(ctx, job, func(path string, mod time.Time, mode fs.FileMode, r io.Reader, size int64) error {
		h := tar.Header{Typeflag: tar.TypeReg, Name: path, Mode: int64(mode.Perm()), ModTime: mod, Size: size}
		if mode.IsDir() {
			h.Typeflag = tar.TypeDir
			t.folders++
		} else {
			t.files++
		}
		if err := add(h); err != nil || mode.IsDir() {
			return err
		}
		_, err := io.CopyN(tw, readerFunc(func(p []byte) (int, error) {
			n, err := r.Read(p)
			if t.size += int64(n); e.total > 0 {
				job.Progress(surveyPart + (1-surveyPart)*float64(min(t.size, e.total))/float64(e.total))
			}
			return n, err
		}), size)
		return err
	})
	if err == nil {
		err = tw.Close()
	}
	return t, err
}
