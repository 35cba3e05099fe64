package archiveops

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/zip"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/safezip"
)

// Convert returns the action "convert" between archives. It reads ZIP, tar, 7z and
// rar archives, Debian packages, and files compressed by gzip, bzip2, xz, Zstandard,
// LZ4, LZMA or lzip, and writes ZIP, tar, tar.gz and tar.zst. The action of an [Engine] with
// bsdtar also reads disc images (ISO 9660), cabinets, cpio, ar and LHA archives and RPM
// packages, and writes 7z, tar.xz and tar.bz2. A compressed file may contain a tar
// archive or a single file, which gets the input's name without its extension. Of a
// Debian package, the files that it installs are read. The parameter password opens
// encrypted ZIP, 7z and rar archives; without it they fail with
// [fileops.ErrPasswordRequired].
//
// Convert keeps folders, times and the execute permission; except in ZIP archives, all
// permissions. It makes paths safe and unique by the rules of [EntryNames]. Absolute
// paths and paths with ".." become relative. A hard link becomes a copy of its file.
// Symbolic links stay links, except in ZIP archives, if their target is relative and
// inside the archive. Other symbolic links,
// devices and hard links to files that do not precede them are omitted, with a
// warning. A truncated archive is an error, and so is an archive without files or
// folders. A tar archive without an end mark, and unknown data after compressed data,
// give a warning.
//
// Limits apply to unpacked sizes, including copies of hard links and holes of
// sparse files. Limits.Ratio applies to the whole input. Above any limit the
// action fails with [fileops.ErrLimit]. The action unpacks the input twice: the
// first pass checks that it is intact. 7z and rar archives have a directory, so
// they are unpacked only once. l may be nil.
func Convert(l *Limits) fileops.Action {
	c := &converter{limits: l.orDefault()}
	return c.convert()
}

func (c *converter) convert() fileops.Action {
	spec := fileops.Spec{
		Name: "convert", Engine: c.name(), Family: "archive",
		Summary: "Converts archives and compressed files to other archives.",
	}
	for _, f := range c.reads() {
		params := fileops.Schema{fileops.Enum("convert_to", "Format of the result.", c.targets(f)...)}
		if hasPassword(f) {
			params = append(params, fileops.Param{Name: "password", Doc: "Opens an encrypted archive.", Min: 1, Max: 1024, Secret: true, Scope: fileops.ScopeInput})
		}
		spec.Accepts = addFormat(spec.Accepts, f, params)
	}
	return fileops.Func(spec, c.do)
}

type converter struct {
	limits safezip.Limits
	tar    *bsdtar // nil if it is not installed
}

const (
	// convertLevel is the compression level: Zip's default.
	convertLevel = 5

	// surveyPart is the fraction of the progress that the first pass reports.
	surveyPart = 0.2

	// maxTarget is the longest target of a hard link in bytes: the longest path on
	// Linux.
	maxTarget = 4096
)

func (c *converter) do(ctx context.Context, job *fileops.Job) error {
	// A result of a run that fails is not delivered.
	return c.twice(ctx, job, func() bool { return true }, func(in content) error { return c.convertContent(ctx, job, in) })
}

func (c *converter) convertContent(ctx context.Context, job *fileops.Job, in content) error {
	s, err := c.survey(ctx, job, in)
	if err != nil {
		return err
	}
	e := &extraction{converter: c, survey: s, in: in, held: make(map[string]*io.SectionReader)}
	defer e.close()
	to := format.Format(job.Params.Get("convert_to"))
	name := fileops.ResultName(job.Input(), to)
	if to == format.ZIP {
		err = job.Write(name, func(w io.Writer) error { return e.zip(ctx, job, w) })
	} else {
		err = e.write(ctx, job, name, to)
	}
	if err == nil {
		err = c.warnPasswordUnused(ctx, job, in)
	}
	if err == nil && e.skipped > 0 {
		job.Log.Warn("archive entries left out", "links", e.links, "other", e.skipped-e.links)
		if e.links > 0 {
			job.Warn(fileops.WarnLinksDropped, "%d links in the archive were left out.", e.links)
		}
		if other := e.skipped - e.links; other > 0 {
			job.Warn(fileops.WarnContentDropped, "%d special entries of the archive, such as devices, were left out.", other)
		}
	}
	return err
}

// zip writes the result as a ZIP archive.
func (e *extraction) zip(ctx context.Context, job *fileops.Job, w io.Writer) error {
	p := &packer{job: job, level: convertLevel, zw: zip.NewWriter(w), start: surveyPart, total: e.total}
	return p.run(ctx, func(emit func(*block) bool) {
		err := e.extract(ctx, job, func(path string, t time.Time, mode fs.FileMode, r io.Reader, size int64) error {
			entry := &entry{head: newHeader(path, t, mode)}
			entry.head.UncompressedSize64 = uint64(size)
			return p.cut(entry, r, emit)
		})
		if err != nil {
			fail(emit, err)
		}
	})
}

// A survey is the result of the first pass over the input.
type survey struct {
	single bool // one compressed file
	time   time.Time
	total  int64           // total size in bytes
	wanted map[string]bool // keys of files that hard links refer to
}

// An archive is an input with entries. It describes them with tar headers.
type archive interface {
	// walk calls visit for every entry. size returns the number of bytes to pack so
	// far.
	walk(visit func(*tar.Header, io.Reader) error, size func() int64) error
}

// survey reads all of the input, or its directory.
func (c *converter) survey(ctx context.Context, job *fileops.Job, content content) (*survey, error) {
	s := &survey{wanted: make(map[string]bool)}
	if directory, err := c.directory(ctx, job, content, true); directory != nil || err != nil {
		if err != nil {
			return nil, err
		}
		return s, c.count(s, directory)
	}
	in, err := c.open(ctx, content)
	if err != nil {
		return nil, err
	}
	in.progress = func(done float64) { job.Progress(surveyPart * done) }
	s.single, s.time = !in.isTar, in.time
	if s.single {
		s.total, err = io.Copy(io.Discard, struct{ io.Reader }{in})
		in.warn(job)
		return s, in.failure(err)
	}
	if err := c.count(s, in); err != nil {
		if in.open && errors.Is(err, fileops.ErrUnsupportedInput) {
			err = fileops.Fail(fileops.ErrCorruptInput, err, "the archive has neither files nor an end mark; it is incomplete")
		}
		return nil, err
	}
	in.warn(job)
	if content != job.Input() && c.limits.Dense(uint64(s.total), uint64(job.Input().Size())) {
		return nil, c.limits.TooDense() // the stream itself was not compressed
	}
	return s, nil
}

// count adds up the entries of an archive.
func (c *converter) count(s *survey, in archive) error {
	sizes := make(map[string]int64)
	found := false
	add := func(n int64) error {
		if n > c.limits.Unpacked-s.total {
			return c.limits.TooLarge()
		}
		s.total += n
		return nil
	}
	err := in.walk(func(h *tar.Header, _ io.Reader) error {
		switch kindOf(h) {
		case aFile:
			found = true
			if key, ok := linkKey(h.Name); ok {
				sizes[key] = h.Size
			}
			return add(h.Size)
		case aLink:
			target, ok := linkKey(h.Linkname)
			if !ok {
				break
			}
			n, ok := sizes[target]
			if !ok {
				break
			}
			s.wanted[target] = true
			if key, ok := linkKey(h.Name); ok {
				sizes[key] = n
			}
			return add(n)
		case aFolder:
			if len(safeParts(h.Name)) > 0 {
				found = true
			}
		}
		return nil
	}, func() int64 { return s.total })
	if err != nil {
		return err
	}
	if !found {
		return fileops.Fail(fileops.ErrUnsupportedInput, nil, "the archive has no files")
	}
	return nil
}

// An extraction is the second pass over the input.
type extraction struct {
	*converter
	*survey
	in    content
	paths tree

	symlink func(path, target string, t time.Time) error // adds a link; nil if the result has neither links nor all permissions

	links, skipped int
	omitted        func(k kind, name string) error // handles entries that cannot be unpacked; nil counts them

	store *os.File                     // content of the targets of hard links
	size  int64                        // of store
	held  map[string]*io.SectionReader // targets of hard links in store, by key
}

// An adder adds a file, or a folder if mode says so, to the result.
type adder func(path string, t time.Time, mode fs.FileMode, r io.Reader, size int64) error

func (e *extraction) extract(ctx context.Context, job *fileops.Job, add adder) error {
	if directory, err := e.directory(ctx, job, e.in, false); directory != nil || err != nil {
		if err != nil {
			return err
		}
		return e.pack(job, directory, add)
	}
	in, err := e.open(ctx, e.in)
	if err != nil {
		return err
	}
	if e.single {
		t := e.time
		if t.IsZero() {
			t = modified(job.Input(), time.Now())
		}
		name := EntryNames([]string{format.Base(job.Input().Name())})[0]
		return in.failure(add(name, t, 0o644, in, e.total))
	}
	return e.pack(job, in, add)
}

// pack passes every entry of an archive to add.
func (e *extraction) pack(job *fileops.Job, in archive, add adder) error {
	return in.walk(func(h *tar.Header, r io.Reader) error {
		mode := e.mode(h)
		size := h.Size
		key, named := linkKey(h.Name)
		switch kindOf(h) {
		case aFolder:
			path, ok := e.paths.folder(h.Name)
			if !ok {
				return nil
			}
			return add(path, h.ModTime, fs.ModeDir|mode, r, 0)
		case aFile:
			if named && e.wanted[key] {
				held, err := e.hold(job, r, size)
				if err != nil {
					return err
				}
				e.held[key] = held
				r = io.NewSectionReader(held, 0, size)
			}
		case aLink:
			target, ok := linkKey(h.Linkname)
			held := e.held[target]
			if !ok || held == nil {
				return e.omit(aLink, h.Name)
			}
			size = held.Size()
			if named && e.wanted[key] {
				e.held[key] = held
			}
			r = io.NewSectionReader(held, 0, size)
		case aSymlink:
			if target, ok := e.target(h, r); ok {
				return e.symlink(e.paths.file(h.Name), target, h.ModTime)
			}
			return e.omit(aSymlink, h.Name)
		case ignored:
			return nil
		default:
			return e.omit(kindOf(h), h.Name)
		}
		return add(e.paths.file(h.Name), h.ModTime, mode, r, size)
	}, func() int64 { return 0 })
}

// omit handles an entry that cannot be unpacked.
func (e *extraction) omit(k kind, name string) error {
	if e.omitted != nil {
		return e.omitted(k, name)
	}
	if e.skipped++; k == aLink || k == aSymlink {
		e.links++
	}
	return nil
}

// hold copies the content of a hard link's target to an unlinked file.
func (e *extraction) hold(job *fileops.Job, r io.Reader, size int64) (*io.SectionReader, error) {
	if e.store == nil {
		dir, err := job.Dir()
		if err != nil {
			return nil, err
		}
		if e.store, err = os.CreateTemp(dir, "links-"); err != nil {
			return nil, err
		}
		if err := os.Remove(e.store.Name()); err != nil {
			return nil, err
		}
	}
	if _, err := io.CopyN(e.store, r, size); err != nil {
		return nil, err
	}
	e.size += size
	return io.NewSectionReader(e.store, e.size-size, size), nil
}

func (e *extraction) close() {
	if e.store != nil {
		e.store.Close() // temporary, so an error does not matter
	}
}

// A kind is the type of an entry in the result.
type kind int

const (
	other   kind = iota
	ignored      // not an entry, such as a global header
	aFile
	aFolder
	aLink
	aSymlink
	unreadable // compressed by an unknown method
)

// typeUnreadable is the type flag of an entry that is compressed by an unknown method.
const typeUnreadable = 1

func kindOf(h *tar.Header) kind {
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeCont, tar.TypeGNUSparse:
		if strings.HasSuffix(h.Name, "/") && h.Size == 0 {
			return aFolder // as in GNU tar
		}
		return aFile
	case tar.TypeDir:
		return aFolder
	case tar.TypeLink:
		return aLink
	case tar.TypeSymlink:
		return aSymlink
	case tar.TypeXGlobalHeader:
		return ignored
	case typeUnreadable:
		return unreadable
	}
	return other
}

// linkKey returns the key of a path, by which hard links refer to files. ok is false
// for paths that are too long to store.
func linkKey(name string) (key string, ok bool) {
	if len(name) > maxTarget {
		return "", false
	}
	return path.Clean("/" + name), true
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// readInput reads the compressed input.
func (s *stream) readInput(r io.ReaderAt, p []byte) (int, error) {
	if s.ctx.Err() != nil {
		s.err = context.Cause(s.ctx)
		return 0, s.err
	}
	n, err := r.ReadAt(p, s.consumed)
	s.consumed += int64(n)
	if n > 0 && err == io.EOF {
		err = nil
	}
	if err != nil && err != io.EOF {
		s.err = err
	}
	if s.progress != nil {
		s.progress(float64(s.consumed) / float64(s.size))
	}
	return n, err
}

// check compares the unpacked size with the limits. The overhead of tar does not
// count.
func (s *stream) check(unpacked int64) error {
	limit := s.limits.Unpacked
	if s.isTar {
		limit += 1<<20 + int64(s.limits.Entries)*(8<<10)
	}
	if unpacked > limit {
		return s.limits.TooLarge()
	}
	if s.limits.Dense(uint64(unpacked), uint64(s.consumed)) {
		return s.limits.TooDense()
	}
	return nil
}

// Read implements io.Reader.
func (s *stream) Read(p []byte) (int, error) {
	n, err := s.head.Read(p)
	s.at += int64(n)
	s.end = s.end || err == io.EOF
	return n, err
}

// walk visits all entries of an archive. size returns the number of bytes to
// pack so far.
func (s *stream) walk(visit func(*tar.Header, io.Reader) error, size func() int64) error {
	tr := tar.NewReader(s)
	for n := 0; ; n++ {
		before := s.at
		h, err := tr.Next()
		switch {
		case errors.Is(err, io.EOF):
			// Two blocks of zeros mark the end, but one is enough. Some programs write none.
			s.open = s.end && s.at-before < 512
			// Verify the checksum, and detect trailing data.
			_, err = io.Copy(io.Discard, struct{ io.Reader }{s})
			if err == nil {
				err = s.check(size())
			}
			return s.failure(err)
		case err != nil && !errors.Is(err, tar.ErrInsecurePath): // safeParts makes the path safe
			return s.failure(err)
		case n >= s.limits.Entries:
			return s.limits.TooMany()
		}
		if err := visit(h, tr); err != nil {
			return s.failure(err)
		}
		if !sparse(h) { // the holes may be huge
			// Then what Next reads shows whether an end mark follows.
			if _, err := io.Copy(io.Discard, struct{ io.Reader }{tr}); err != nil {
				return s.failure(err)
			}
		}
	}
}

// sparse reports whether a file has holes, which its content does not contain.
func sparse(h *tar.Header) bool {
	for k := range h.PAXRecords {
		if strings.HasPrefix(k, "GNU.sparse.") {
			return true
		}
	}
	return h.Typeflag == tar.TypeGNUSparse
}

// failure turns an error into the error of the action. Errors that the system did
// not cause mean that the input is damaged.
func (s *stream) failure(err error) error {
	var known *fileops.Failure
	var system *fs.PathError
	switch {
	case err == nil, errors.Is(err, errStopped), errors.As(err, &known), errors.As(err, &system):
		return err
	case s.ctx.Err() != nil:
		return context.Cause(s.ctx)
	case s.err != nil:
		return s.err
	}
	return fileops.Fail(fileops.ErrCorruptInput, err, "the archive is damaged or incomplete")
}

// warn warns about data that is ignored, or may be missing, at the end of a stream that has
// been read.
func (s *stream) warn(job *fileops.Job) {
	if s.extra {
		job.Warn(fileops.WarnContentDropped, "Unknown data after the end of the compressed data was left out.")
	}
	if s.isTar && s.open {
		job.Warn(fileops.WarnContentDropped, "The archive has no end mark. Files may be missing if it was cut.")
	}
}

// isTarHeader reports whether b starts with a tar header. Only headers since
// POSIX.1-1988 have a magic number, so it verifies the checksum. Some programs
// compute the checksum with signed bytes.
func isTarHeader(b []byte) bool {
	if len(b) < 512 {
		return false
	}
	field := string(bytes.Trim(b[148:156], " \x00"))
	want, err := strconv.ParseInt(field, 8, 64)
	if err != nil {
		return false
	}
	var unsigned, signed int64
	for i, c := range b[:512] {
		if 148 <= i && i < 156 {
			c = ' '
		}
		unsigned += int64(c)
		signed += int64(int8(c))
	}
	return want == unsigned || want == signed
}
