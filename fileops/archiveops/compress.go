package archiveops

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/zip"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
)

// Limits bound the work of [Compress] and [Convert]. Zero fields mean the
// defaults.
type Limits struct {
	// Entries limits the entries of an archive. 0 means 10 000.
	Entries int

	// Unpacked limits the total size of all entries in bytes. 0 means 4 GiB.
	Unpacked int64

	// Ratio limits the size of an entry of more than 10 MiB, relative to its
	// compressed data. 0 means 200. Compress does not unpack entries above the
	// limit; it copies them.
	Ratio int64
}

// orDefault returns l with defaults for zero fields. l may be nil.
func (l *Limits) orDefault() Limits {
	if l == nil {
		l = new(Limits)
	}
	return Limits{
		Entries:  cmp.Or(max(l.Entries, 0), 10_000),
		Unpacked: cmp.Or(max(l.Unpacked, 0), 4<<30),
		Ratio:    cmp.Or(max(l.Ratio, 0), 200),
	}
}

// ratioFrom is the size in bytes above which Limits.Ratio applies.
const ratioFrom = 10 << 20

// Compress returns the action "compress" for ZIP archives. It recompresses every
// entry and keeps the smaller form, with the same names, times, permissions and
// comments. It copies entries that are encrypted or use a method other than
// Deflate. If the archive would shrink by less than three per cent, the result
// is the input. All levels of compression_value are equal, because compression
// is lossless.
//
// l may be nil.
func Compress(l *Limits) fileops.Action {
	c := &recompressor{limits: l.orDefault()}
	return fileops.Func(fileops.Spec{
		Name: "compress", Engine: engineName, Family: "archive",
		Summary: "Makes ZIP archives smaller without changing what is in them.",
		Accepts: []fileops.Accept{{Formats: []format.Format{format.ZIP}, Params: fileops.Schema{fileops.Compression("Accepted for all formats; archives lose nothing at any level.")}}},
	}, c.do)
}

type recompressor struct{ limits Limits }

// bestUpTo is the size in bytes up to which an entry is compressed at the
// strongest level. That is slow on some content (1.5 MB/s in one case). The
// level for larger entries is three times faster and one to two per cent weaker.
const (
	bestUpTo  = 64 << 20
	bestLevel = 9
	longLevel = 7
)

// worthwhile is the largest size of a useful result, relative to the input.
const worthwhile = 0.97

func (c *recompressor) do(ctx context.Context, job *fileops.Job) error {
	in := job.Input()
	zr, err := zip.NewReader(in.Reader(), in.Size())
	if err != nil {
		return fileops.Fail(fileops.ErrCorruptInput, err, "the archive is damaged and cannot be read")
	}
	if err := c.check(zr, in.Size()); err != nil {
		return err
	}
	dir, err := job.Dir()
	if err != nil {
		return err
	}
	path := filepath.Join(dir, "smaller.zip")
	if err := c.rewrite(ctx, job, zr, path, dir); err != nil {
		return err
	}
	st, err := os.Stat(path)
	if err != nil {
		return err
	}
	if float64(st.Size()) >= worthwhile*float64(in.Size()) {
		return job.Keep(in)
	}
	return job.Best(in, path)
}

// check rejects archives that are built to harm programs that unpack them.
func (c *recompressor) check(zr *zip.Reader, size int64) error {
	if n := len(zr.File); n > c.limits.Entries {
		return fileops.Fail(fileops.ErrLimit, nil, "the archive has %d entries, more than the limit of %d; split it first", n, c.limits.Entries)
	}
	var packed, unpacked uint64
	for _, f := range zr.File {
		if packed += f.CompressedSize64; f.CompressedSize64 > uint64(size) || packed > uint64(size) {
			// They share data: a few kilobytes can claim to be petabytes (D. Fifield, A
			// better zip bomb, 2019).
			return fileops.Fail(fileops.ErrCorruptInput, nil, "the entries of the archive overlap or are incomplete")
		}
		if !c.renewable(f) {
			continue
		}
		if unpacked += f.UncompressedSize64; f.UncompressedSize64 > uint64(c.limits.Unpacked) || unpacked > uint64(c.limits.Unpacked) {
			return fileops.Fail(fileops.ErrLimit, nil, "the archive unpacks to more than the limit of %d bytes; split it first", c.limits.Unpacked)
		}
	}
	return nil
}

// renewable reports whether an entry can be recompressed.
func (c *recompressor) renewable(f *zip.File) bool {
	const encrypted, strong, patched = 1, 1 << 6, 1 << 5
	switch {
	case f.Flags&(encrypted|strong|patched) != 0,
		f.Method != zip.Deflate && f.Method != zip.Store,
		f.Name == "mimetype", // containers with this entry require it uncompressed
		f.UncompressedSize64 == 0, strings.HasSuffix(f.Name, "/"):
		return false
	}
	return f.UncompressedSize64 <= ratioFrom || f.UncompressedSize64 <= uint64(c.limits.Ratio)*f.CompressedSize64
}

// A renewal is an entry on its way to the new archive.
type renewal struct {
	file *zip.File
	data *spool // nil: copy the existing data
	err  error
	done chan struct{}
}

// rewrite writes the new archive. Entries are compressed concurrently and
// written in order.
func (c *recompressor) rewrite(ctx context.Context, job *fileops.Job, zr *zip.Reader, path, dir string) (err error) {
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	zw := zip.NewWriter(out)
	if err := zw.SetComment(zr.Comment); err != nil {
		return err
	}

	ctx, cancel := context.WithCancel(ctx)
	workers := runtime.GOMAXPROCS(0)
	order, work := make(chan *renewal, workers), make(chan *renewal, workers)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() {
		defer close(order)
		defer close(work)
		for _, f := range zr.File {
			r := &renewal{file: f, done: make(chan struct{})}
			for _, to := range [...]chan *renewal{order, work} {
				select {
				case to <- r:
				case <-ctx.Done():
					return
				}
			}
		}
	})
	for range workers {
		wg.Go(func() {
			var w *flate.Writer
			for r := range work {
				if c.renewable(r.file) {
					w, r.err = r.compress(ctx, w, dir)
				}
				if r.file.UncompressedSize64 > bestUpTo {
					w = nil // w has another level
				}
				close(r.done)
			}
		})
	}
	total, done := uint64(1), uint64(0)
	for _, f := range zr.File {
		total += f.CompressedSize64
	}
	for r := range order {
		select {
		case <-r.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if r.err == nil {
			r.err = r.write(ctx, zw)
		}
		if r.data != nil {
			r.err = errors.Join(r.err, r.data.close())
		}
		if r.err != nil {
			return r.err
		}
		done += r.file.CompressedSize64
		job.Progress(float64(done) / float64(total))
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return zw.Close()
}

// compress compresses the content of an entry into a spool if that makes it
// smaller. It returns the writer that it used: w, or a new one for another
// level.
func (r *renewal) compress(ctx context.Context, w *flate.Writer, dir string) (*flate.Writer, error) {
	damaged := func(err error) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fileops.Fail(fileops.ErrCorruptInput, err, "an entry of the archive is damaged")
	}
	rc, err := r.file.Open()
	if err != nil {
		return w, damaged(err)
	}
	defer rc.Close()
	s := &spool{dir: dir}
	long := r.file.UncompressedSize64 > bestUpTo
	if w == nil || long {
		level := bestLevel
		if long {
			level = longLevel
		}
		if w, err = flate.NewWriter(s, level); err != nil {
			return nil, err
		}
	} else {
		w.Reset(s)
	}
	buf := make([]byte, 256<<10)
	for {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
			break
		}
		var n int
		if n, err = rc.Read(buf); n > 0 {
			if _, werr := w.Write(buf[:n]); werr != nil {
				return w, errors.Join(werr, s.close())
			}
		}
		if err != nil {
			break
		}
	}
	if err != io.EOF {
		return w, errors.Join(damaged(err), s.close())
	}
	if err := w.Close(); err != nil {
		return w, errors.Join(err, s.close())
	}
	if uint64(s.size) >= r.file.CompressedSize64 {
		return w, s.close()
	}
	r.data = s
	return w, nil
}

// write writes an entry when it is its turn.
func (r *renewal) write(ctx context.Context, zw *zip.Writer) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	h := r.file.FileHeader
	h.Extra = withoutZIP64(h.Extra)
	if strings.HasSuffix(h.Name, "/") {
		// A folder has no content, but some tools compress it anyway.
		h.Method, h.CRC32, h.CompressedSize64, h.UncompressedSize64 = zip.Store, 0, 0, 0
		h.Flags &^= 8
		_, err := zw.CreateRaw(&h)
		return err
	}
	var from io.Reader
	var err error
	if r.data != nil {
		h.Method, h.CompressedSize64 = zip.Deflate, uint64(r.data.size)
		h.Flags &^= 8 | 6 // sizes are known, and the level flags describe the old encoder
		if from, err = r.data.reader(); err != nil {
			return err
		}
	} else if from, err = r.file.OpenRaw(); err != nil {
		return fileops.Fail(fileops.ErrCorruptInput, err, "an entry of the archive is damaged")
	}
	w, err := zw.CreateRaw(&h)
	if err != nil {
		return err
	}
	n, err := io.Copy(w, from)
	if err == nil && uint64(n) != h.CompressedSize64 {
		err = fileops.Fail(fileops.ErrCorruptInput, nil, "an entry of the archive is incomplete")
	}
	return err
}

// withoutZIP64 removes the extra field with the 64-bit sizes, because the writer
// adds it (APPNOTE 4.5.3).
func withoutZIP64(extra []byte) []byte {
	var out []byte
	for b := extra; len(b) >= 4; {
		n := 4 + int(binary.LittleEndian.Uint16(b[2:]))
		if n > len(b) {
			return slices.Concat(out, b) // malformed: keep it unchanged
		}
		if binary.LittleEndian.Uint16(b) != 1 {
			out = append(out, b[:n]...)
		}
		b = b[n:]
	}
	return out
}

// A spool buffers written data: a little in memory, the rest in an unlinked
// file.
type spool struct {
	dir  string
	buf  bytes.Buffer
	file *os.File
	size int64
}

// spoolMemory is the number of bytes that stay in memory.
const spoolMemory = 4 << 20

func (s *spool) Write(p []byte) (int, error) {
	if s.file == nil && s.buf.Len()+len(p) > spoolMemory {
		f, err := os.CreateTemp(s.dir, "entry-")
		if err != nil {
			return 0, err
		}
		s.file = f
		if err := os.Remove(f.Name()); err != nil {
			return 0, err
		}
		if _, err := f.Write(s.buf.Bytes()); err != nil {
			return 0, err
		}
		s.buf = bytes.Buffer{}
	}
	s.size += int64(len(p))
	if s.file != nil {
		return s.file.Write(p)
	}
	return s.buf.Write(p)
}

func (s *spool) reader() (io.Reader, error) {
	if s.file == nil {
		return bytes.NewReader(s.buf.Bytes()), nil
	}
	if _, err := s.file.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("read back an entry: %w", err)
	}
	return s.file, nil
}

func (s *spool) close() error {
	s.buf = bytes.Buffer{}
	if s.file == nil {
		return nil
	}
	f := s.file
	s.file = nil
	return f.Close()
}
