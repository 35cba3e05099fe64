package archiveops

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/engine"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/safezip"
)

// A bsdtar is the program of libarchive. It translates archives to tar archives, and tar
// archives to others. It never writes files of an archive to the disk.
type bsdtar struct {
	*engine.Program
	limits engine.Limits
}

// tarOverhead returns the most bytes of headers and padding of a tar archive.
func tarOverhead(l safezip.Limits) int64 { return 1<<20 + int64(l.Entries)*(8<<10) }

// read translates the input to a tar archive in the scratch space, or stdin if it is not
// nil. The caller must call release.
func (b *bsdtar) read(ctx context.Context, job *fileops.Job, l safezip.Limits, stdin io.Reader) (tar content, release func(), err error) {
	in, err := job.Path(job.Input())
	if err != nil {
		return nil, nil, err
	}
	if stdin != nil {
		in = "-"
	}
	inputs, err := job.InputDir()
	if err != nil {
		return nil, nil, err
	}
	dir, err := job.Dir()
	if err != nil {
		return nil, nil, err
	}
	largest, dense := l.Unpacked, false
	if n := max(10<<20, job.Input().Size()*min(l.Ratio, 1<<20)); n < largest {
		largest, dense = n, true
	}
	f, err := os.CreateTemp(dir, "content-*.tar")
	if err != nil {
		return nil, nil, err
	}
	path, name := f.Name(), filepath.Base(f.Name())
	out := &capped{w: f, left: largest + tarOverhead(l)}
	// bsdtar must not open the result: It leaves out entries with the device and inode numbers of its
	// output, to keep an archive from containing itself. Entries of cpio archives and RPM packages have
	// the numbers of the computer that made them.
	err = b.Run(ctx, engine.Cmd{
		Args: []string{"-c", "-f", "-", "--format", "pax", "@" + in}, Dir: dir, Stdin: stdin, Stdout: out,
		Access: engine.Access{Read: []string{inputs}},
		Limits: b.limits.Or(engine.Limits{CPU: 10 * time.Minute, Memory: 2 << 30}),
	})
	closed := f.Close()
	var exit *engine.ExitError
	switch {
	case errors.Is(out.err, errFull) && dense:
		return nil, nil, l.TooDense()
	case errors.Is(out.err, errFull):
		return nil, nil, l.TooLarge()
	case out.err != nil:
		return nil, nil, out.err
	case err == nil && closed != nil:
		return nil, nil, closed
	case err == nil:
	case !errors.As(err, &exit):
		return nil, nil, err
	case exit.Limit():
		return nil, nil, fileops.Fail(fileops.ErrLimit, err, "the archive takes more %s than is allowed; try a smaller one", exit.Which())
	case exit.Signal != 0:
		return nil, nil, fileops.Fail(fileops.ErrEngine, err, "the archive could not be read")
	default:
		return nil, nil, fileops.Fail(fileops.ErrCorruptInput, err, "the archive is damaged, incomplete or of a variant that cannot be read")
	}
	return openPart(path, name)
}

// A capped writer passes on at most left bytes. It keeps its error, because of a program whose
// output cannot be written only the exit status remains.
type capped struct {
	w    io.Writer
	left int64
	err  error
}

// Write implements io.Writer.
func (c *capped) Write(b []byte) (n int, err error) {
	if int64(len(b)) > c.left {
		c.err = errFull
		return 0, c.err
	}
	n, c.err = c.w.Write(b)
	c.left -= int64(n)
	return n, c.err
}

var errFull = errors.New("archiveops: the unpacked archive is too large")

// sizeOf returns the size of a file, or 0.
func sizeOf(path string) int64 {
	st, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return st.Size()
}

// openPart opens a file of the scratch space as a content. The caller must call release.
func openPart(path, name string) (c *part, release func(), err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	st, err := f.Stat()
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return &part{name: name, r: f, size: st.Size()}, func() { f.Close() }, nil
}

// translate reads a tar archive and writes it in another format to a new file. The result
// has at most largest bytes, or any size if largest is 0.
func (b *bsdtar) translate(ctx context.Context, job *fileops.Job, tar io.Reader, path string, to format.Format, largest int64) error {
	dir, err := job.Dir()
	if err != nil {
		return err
	}
	// Without compression options in the argument of --format, bsdtar uses LZMA for 7z.
	args := map[format.Format][]string{
		format.SevenZip: {"--format", "7zip"},
		format.TarXZ:    {"--format", "pax", "--xz"},
		format.TarBZ2:   {"--format", "pax", "--bzip2"},
	}[to]
	cmd := engine.Cmd{
		Args: append([]string{"-c", "-f", path}, append(args, "@-")...), Dir: dir, Stdin: tar,
		Limits: b.limits.Or(engine.Limits{CPU: time.Hour, Memory: 2 << 30}),
	}
	if largest > 0 && to != format.SevenZip { // it writes 7z by way of a file of packed content
		cmd.Limits.FileSize = largest + 1 // one more, to detect an overflow
	}
	return b.Run(ctx, cmd)
}
