package fileops

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/filewright/filewright/fileops/format"
)

// A File is a named, immutable, random-access file. It is both the input and the output
// of an [Action], so the result of one action can be the input of the next without a
// copy.
//
// A File has exactly one backing: memory or a local path. Readers work on both.
// [File.Bytes] and [File.Path] give engines direct access to a specific backing when no
// copy is needed.
//
// A File is a description, not a handle: several runs may use it concurrently, and each
// run opens and closes it separately.
type File struct {
	name string
	path string // "" if the file is in memory
	own  bool   // path is the caller's own name for the file
	data []byte // used if path is ""
	f    *os.File
	size int64
}

// Path returns a File for a path on the local disk. It does not access the disk: a run
// opens and closes the file, so callers need neither an error check nor a Close.
func Path(path string) *File {
	return &File{name: filepath.Base(path), path: path, own: true}
}

// Bytes returns a File with the content b. The caller must not change b afterwards.
func Bytes(name string, b []byte) *File {
	return &File{name: filepath.Base(name), data: b, size: int64(len(b))}
}

// Named returns a copy of f with another name, for content whose path does not show its
// format.
func (f *File) Named(name string) *File {
	g := *f
	g.name, g.own = filepath.Base(name), false
	return &g
}

// Name returns the base name with its extension. It is never a path.
func (f *File) Name() string { return f.name }

// Size returns the length in bytes. It is known for files in memory and, during a run,
// for the run's inputs and results.
func (f *File) Size() int64 { return f.size }

// Format returns the format named by the extension.
func (f *File) Format() format.Format { return format.Parse(f.name) }

// Reader returns a new, independent reader positioned at the start. It implements
// io.Reader, io.Seeker and io.ReaderAt and needs no Close. For a file on disk it works
// only during a run.
func (f *File) Reader() *io.SectionReader {
	if f.path == "" {
		return io.NewSectionReader(bytes.NewReader(f.data), 0, f.size)
	}
	return io.NewSectionReader(f.f, 0, f.size)
}

// Bytes returns the content without copying it, if the file is in memory.
func (f *File) Bytes() (b []byte, ok bool) { return f.data, f.path == "" }

// Path returns the path, if the file is on the local disk. Engines that always need a
// path use [Job.Path].
func (f *File) Path() (path string, ok bool) { return f.path, f.path != "" }

// ReadAll returns the content, without copying it if the file is in memory. It fails
// with [ErrLimit] if the file is larger than limit bytes.
func (f *File) ReadAll(limit int64) ([]byte, error) {
	if f.size > limit {
		return nil, Fail(ErrLimit, nil, "the file has %d bytes, more than the limit of %d for this operation", f.size, limit)
	}
	if b, ok := f.Bytes(); ok {
		return b, nil
	}
	b := make([]byte, f.size)
	if _, err := io.ReadFull(f.Reader(), b); err != nil {
		return nil, err
	}
	return b, nil
}

// LinkTo makes f's content available at path, which must not exist. It makes a hard link
// to a file on disk if the file system supports that, else a copy that only this user
// may read. It works during and outside of a run. The content must not be changed.
func (f *File) LinkTo(path string) error {
	if f.path != "" && os.Link(f.path, path) == nil {
		// A hard link to a symbolic link would resolve from another directory.
		if st, err := os.Lstat(path); err == nil && st.Mode().IsRegular() {
			return nil
		}
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	g := *f // a separate handle
	g.f = nil
	return g.during(func() error {
		w, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		_, err = io.Copy(w, g.Reader())
		return errors.Join(err, w.Close())
	})
}

// handle returns an open copy of f, which the caller closes.
func (f *File) handle() (*File, error) {
	g := *f
	g.f = nil
	if err := g.open(); err != nil {
		if f.own {
			err = &pathError{what: fmt.Sprintf("cannot read %q", f.path), err: err}
		}
		return nil, err
	}
	return &g, nil
}

func (f *File) open() error {
	if f.path == "" || f.f != nil {
		return nil
	}
	st, err := os.Stat(f.path) // before opening, because opening a pipe can block forever
	if err != nil {
		return err
	}
	if !st.Mode().IsRegular() {
		return fmt.Errorf("open %s: %w", f.path, errNotRegular)
	}
	h, err := os.Open(f.path)
	if err != nil {
		return err
	}
	if st, err = h.Stat(); err != nil {
		h.Close()
		return err
	}
	f.f, f.size = h, st.Size()
	return nil
}

var errNotRegular = errors.New("not a regular file")

func (f *File) close() error {
	if f.f == nil {
		return nil
	}
	err := f.f.Close()
	f.f = nil
	return err
}

// during calls do while f is open and returns the error of either.
func (f *File) during(do func() error) error {
	if err := f.open(); err != nil {
		return err
	}
	return errors.Join(do(), f.close())
}

// keepIn moves f's content, if it is on disk, to a new path in dir.
func (f *File) keepIn(dir string) (*File, error) {
	if f.path == "" {
		return f, nil
	}
	d, err := os.MkdirTemp(dir, "step-")
	if err != nil {
		return nil, err
	}
	p := filepath.Join(d, filepath.Base(f.path))
	return &File{name: f.name, path: p}, os.Rename(f.path, p)
}

// ResultName returns the name of a result that is made from in: the base name of in with
// the extension of the format to.
func ResultName(in *File, to format.Format) string {
	return format.Base(in.Name()) + "." + string(to)
}

// PageName returns the name of the result for one of total pages, counted from 1:
// "report-001.png". The number has at least three digits, so that names sort by page. A
// single page is named like any other result.
func PageName(in *File, to format.Format, page, total int) string {
	if total <= 1 {
		return ResultName(in, to)
	}
	width := max(3, len(fmt.Sprint(total)))
	return fmt.Sprintf("%s-%0*d.%s", format.Base(in.Name()), width, page, to)
}
