package archiveops

import (
	"bytes"
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
	"github.com/filewright/filewright/internal/safezip"
)

// Limits limit the work of the actions. Zero fields mean the defaults.
type Limits struct {
	// Entries limits the entries of an archive. 0 means 10,000.
	Entries int

	// Unpacked limits the total size of all entries in bytes. 0 means 4 GiB.
	Unpacked int64

	// Ratio limits the ratio of the unpacked to the compressed size of an entry of
	// more than 10 MiB. 0 means 500. Compress copies entries above the limit without
	// unpacking them.
	Ratio int64
}

// orDefault returns l with defaults for zero fields. l may be nil.
func (l *Limits) orDefault() safezip.Limits {
	if l == nil {
		l = new(Limits)
	}
	return safezip.Limits(*l).OrDefault(4 << 30)
}

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
		Summary: "Makes ZIP archives smaller without changing their content.",
		Accepts: []fileops.Accept{{Formats: []format.Format{format.ZIP}, Params: fileops.Schema{fileops.Compression("Accepted for all formats; archives are lossless at every level.")}}},
	}, c.do)
}

type recompressor struct{ limits safezip.Limits }

// bestUpTo is the size in bytes up to which an entry is compressed at the
// strongest level. That is slow on some content (1.5 MB/s in one case). The
// level for larger entries is three times faster and one to two per cent weaker.
const (
	bestUpTo  = 64 << 20
	bestLevel = 9
	longLevel = 7
)

// worthwhile is the largest ratio of result size to input size that counts as
// smaller.
const worthwhile = 0.97

func (c *recompressor) do(ctx context.Context, job *fileops.Job) error {
	in := job.Input()
	zr, err := c.open(in)
	if err != nil {
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

// open reads the directory of an archive. It rejects archive bombs, which are built
// to harm programs that unpack them.
func (c *recompressor) open(in *fileops.File) (*zip.Reader, error) {
	zr, err := c.limits.Open(in.Reader(), in.Size())
	if err == nil {
		err = c.limits.Check(zr.File, in.Size(), func(f *zip.File) bool { return !recompressible(c.limits, f) })
	}
	switch {
	case errors.Is(err, fileops.ErrLimit):
		return nil, err
	case errors.Is(err, safezip.ErrOverlap):
		return nil, fileops.Fail(fileops.ErrCorruptInput, err, "the entries of the archive overlap or are incomplete")
	case err != nil:
		return nil, fileops.Fail(fileops.ErrCorruptInput, err, "the archive is damaged and cannot be read")
	}
	for _, f := range zr.File {
		if f.Method == zip.Store && f.Flags&flagEncrypted == 0 && f.CompressedSize64 != f.UncompressedSize64 {
			return nil, fileops.Fail(fileops.ErrCorruptInput, nil, "an entry of the archive is damaged: it is stored, but its sizes differ")
		}
	}
	return zr, nil
}

// recompressible reports whether an entry can be recompressed.
func recompressible(l safezip.Limits, f *zip.File) bool {
	const encrypted, strong, patched = 1, 1 << 6, 1 << 5
	switch {
	case f.Flags&(encrypted|strong|patched) != 0,
		f.Method != zip.Deflate && f.Method != zip.Store,
		f.Name == "mimetype", // documents with this entry require it uncompressed
		f.UncompressedSize64 == 0, strings.HasSuffix(f.Name, "/"):
		return false
	}
	return !l.Dense(f.UncompressedSize64, f.CompressedSize64)
}

// A recompression is an entry that is being written to the new archive.
type recompression struct {
	file *zip.File
	data *spool // nil means to copy the existing data
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
	order, work := make(chan *recompression, workers), make(chan *recompression, workers)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() {
		defer close(order)
		defer close(work)
		for _, f := range zr.File {
			r := &recompression{file: f, done: make(chan struct{})}
			for _, to := range [...]chan *recompression{order, work} {
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
			w := worker{dir: dir, buf: make([]byte, 256<<10), writers: make(map[int]*flate.Writer)}
			for r := range work {
				if recompressible(c.limits, r.file) {
					r.err = w.compress(ctx, r)
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

// A worker compresses entries one after the other. It keeps its memory, which takes longer to allocate
// than a short entry takes to compress.
type worker struct {
	dir     string // for entries that do not fit into memory
	buf     []byte
	writers map[int]*flate.Writer // by level
}

// writer returns a writer to out.
func (w *worker) writer(out io.Writer, level int) (*flate.Writer, error) {
	if f := w.writers[level]; f != nil {
		f.Reset(out)
		return f, nil
	}
	f, err := flate.NewWriter(out, level)
	if err != nil {
		return nil, err
	}
	w.writers[level] = f
	return f, nil
}

// compress compresses the content of an entry into a spool, and keeps the spool if it is smaller.
func (w *worker) compress(ctx context.Context, r *recompression) error {
	damaged := func(err error) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fileops.Fail(fileops.ErrCorruptInput, err, "an entry of the archive is damaged")
	}
	rc, err := r.file.Open()
	if err != nil {
		return damaged(err)
	}
	defer rc.Close()
	s := &spool{dir: w.dir}
	level := bestLevel
	if r.file.UncompressedSize64 > bestUpTo {
		level = longLevel
	}
	out, err := w.writer(s, level)
	if err != nil {
		return err
	}
	for {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
			break
		}
		var n int
		if n, err = rc.Read(w.buf); n > 0 {
			if _, werr := out.Write(w.buf[:n]); werr != nil {
				return errors.Join(werr, s.close())
			}
		}
		if err != nil {
			break
		}
	}
	if !errors.Is(err, io.EOF) {
		return errors.Join(damaged(err), s.close())
	}
	if err := out.Close(); err != nil {
		return errors.Join(err, s.close())
	}
	if uint64(s.size) >= r.file.CompressedSize64 {
		return s.close()
	}
	r.data = s
	return nil
}

// write appends the entry to the new archive.
func (r *recompression) write(ctx context.Context, zw *zip.Writer) error {
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
			return slices.Concat(out, b) // keep malformed data unchanged
		}
		if binary.LittleEndian.Uint16(b) != 1 {
			out = append(out, b[:n]...)
		}
		b = b[n:]
	}
	return out
}

// A spool buffers data in memory, and in an unlinked file once it exceeds
// spoolMemory.
type spool struct {
	dir  string
	buf  bytes.Buffer
	file *os.File
	size int64
}

// spoolMemory is the maximum number of bytes in memory.
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
