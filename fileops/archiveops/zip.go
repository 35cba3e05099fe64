package archiveops

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/zip"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
)

// engineName is the name of the library in logs and in the capability matrix.
const engineName = "klauspost/compress"

// blockSize is the number of bytes that are compressed at a time. Each block uses the
// last 32 KiB of its predecessor as dictionary, so the blocks compress almost as well
// as the whole file.
const (
	blockSize  = 1 << 20
	windowSize = 32 << 10
)

// Zip returns the action "zip", which packs files of any kind into files.zip, in
// the given order.
//
// Its parameter level is store, fast, default or best. At any level,
// incompressible content is stored. With a password of 1 to 99 bytes the content
// is encrypted with AES-256 in WinZip's format (AE-2). Names, sizes and times stay
// readable. 7-Zip and WinZip unpack such archives, but Info-ZIP does not.
func Zip() fileops.Action {
	spec := fileops.Spec{
		Name: "zip", Engine: engineName, Family: "archive", Joint: true,
		Summary: "Packs files into a ZIP archive.",
		Results: map[format.Format]format.Format{format.Any: format.ZIP},
		Accepts: []fileops.Accept{{Formats: []format.Format{format.Any}, Params: fileops.Schema{{
			Name: "level", Doc: "Compression level; stronger levels take longer.",
			Default: "default", Enum: []string{"store", "fast", "default", "best"},
		}, {
			Name: "password", Doc: "Encrypts the content with AES-256; names stay readable.",
			Min: 1, Max: maxPassword, Secret: true,
		}}}},
	}
	return fileops.Func(spec, func(ctx context.Context, job *fileops.Job) error {
		level := map[string]int{"store": 0, "fast": 1, "default": 5, "best": 9}[job.Params.Get("level")]
		return job.Write("files.zip", func(w io.Writer) error {
			p := &packer{job: job, level: level, password: job.Params.Get("password"), zw: zip.NewWriter(w)}
			return p.run(ctx, p.inputs)
		})
	})
}

// A packer writes one archive. One goroutine reads the content and splits it
// into blocks. Workers compress the blocks. The caller's goroutine writes them
// in order.
type packer struct {
	job      *fileops.Job
	level    int
	password string // "" means no encryption
	zw       *zip.Writer

	start       float64 // of progress
	total, done int64
	blocks      sync.Pool     // of *block; each has buffers of a megabyte
	trial       *flate.Writer // see compressible
}

// An entry is a file or folder that is being written to the archive.
type entry struct {
	file *fileops.File // content of an entry that is stored and larger than a block
	head zip.FileHeader
	out  io.Writer // destination of an entry with several blocks
	seal *sealer   // nil means no encryption
}

// A block is a task for a worker. The worker compresses data. If data is nil
// because the entry is stored, it computes the checksum of the whole file.
type block struct {
	entry       *entry
	data        []byte // uncompressed
	dict        []byte // data that precedes it
	first, last bool
	out         bytes.Buffer
	crc         uint32 // of the file up to here
	err         error
	done        chan struct{}

	buffer []byte // buffer of data
	window []byte // buffer of dict
}

// run packs the blocks that read passes to emit. emit returns false to stop
// read.
func (p *packer) run(ctx context.Context, read func(emit func(*block) bool)) error {
	ctx, cancel := context.WithCancel(ctx)
	workers := runtime.GOMAXPROCS(0)
	// The capacity of the channels limits the memory.
	order, work := make(chan *block, 2*workers), make(chan *block, 2*workers)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() {
		defer close(order)
		defer close(work)
		read(func(b *block) bool {
			b.done = make(chan struct{})
			for _, c := range [...]chan *block{order, work} {
				select {
				case c <- b:
				case <-ctx.Done():
					return false
				}
			}
			return true
		})
	})
	for range workers {
		wg.Go(func() {
			c := &compressor{level: p.level, password: p.password}
			for b := range work {
				if ctx.Err() == nil {
					c.do(ctx, b)
				} else {
					b.err = context.Cause(ctx)
				}
				close(b.done)
			}
		})
	}
	for b := range order {
		select {
		case <-b.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err := p.write(ctx, b); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return p.zw.Close()
}

// inputs reads the inputs of the job.
func (p *packer) inputs(emit func(*block) bool) {
	var names []string
	for _, f := range p.job.Inputs {
		names = append(names, f.Name())
		p.total += f.Size()
	}
	now := time.Now()
	for i, name := range EntryNames(names) {
		f := p.job.Inputs[i]
		e := &entry{file: f, head: newHeader(name, modified(f, now), 0o644)}
		e.head.UncompressedSize64 = uint64(f.Size())
		if f.Size() > blockSize {
			small, err := p.compressible(f)
			if err != nil {
				fail(emit, err)
				return
			}
			if p.level == 0 || !small {
				if !emit(&block{entry: e, first: true, last: true}) {
					return
				}
				continue
			}
		}
		if err := p.cut(e, f.Reader(), emit); err != nil {
			fail(emit, fmt.Errorf("read an input: %w", err))
			return
		}
	}
}

// fail stops the run with an error.
func fail(emit func(*block) bool, err error) { emit(&block{first: true, last: true, err: err}) }

// errStopped is the error of cut after emit returned false.
var errStopped = errors.New("archiveops: the writer has stopped")

// cut reads the content of an entry, whose size is known, and splits it into
// blocks.
func (p *packer) cut(e *entry, r io.Reader, emit func(*block) bool) error {
	left := int64(e.head.UncompressedSize64)
	crc := uint32(0)
	b := p.block(e)
	b.first = true
	for {
		n := min(left, blockSize)
		b.data = b.buffer[:n]
		if _, err := io.ReadFull(r, b.data); err != nil {
			return err
		}
		crc = crc32.Update(crc, crc32.IEEETable, b.data)
		b.crc = crc
		left -= n
		if b.last = left == 0; b.last {
			break
		}
		next := p.block(e)
		next.window = append(next.window[:0], b.data[len(b.data)-windowSize:]...)
		next.dict = next.window
		if !emit(b) {
			return errStopped
		}
		b = next
	}
	if !emit(b) {
		return errStopped
	}
	return nil
}

// block returns a block with a buffer.
func (p *packer) block(e *entry) *block {
	b, ok := p.blocks.Get().(*block)
	if !ok {
		return &block{entry: e, buffer: make([]byte, blockSize), window: make([]byte, windowSize)}
	}
	b.out.Reset()
	*b = block{entry: e, buffer: b.buffer, window: b.window, out: b.out}
	return b
}

// compressible reports whether samples from the start, middle and end of a large file
// shrink. Samples of compressed formats must shrink more, because they may contain
// uncompressed headers.
func (p *packer) compressible(f *fileops.File) (bool, error) {
	const sample = 64 << 10
	var buf bytes.Buffer
	in := make([]byte, 3*sample)
	for i := range int64(3) {
		if _, err := f.Reader().ReadAt(in[i*sample:(i+1)*sample], (f.Size()-sample)*i/2); err != nil {
			return false, err
		}
	}
	if p.trial == nil {
		w, err := flate.NewWriter(&buf, 1)
		if err != nil {
			return false, err
		}
		p.trial = w
	}
	p.trial.Reset(&buf)
	if _, err := p.trial.Write(in); err != nil {
		return false, err
	}
	if err := p.trial.Close(); err != nil {
		return false, err
	}
	limit := 0.98
	switch format.Sniff(f.Reader(), f.Size()) {
	case format.JPG, format.PNG, format.WebP, format.GIF, format.AVIF, format.HEIC, format.JXL, format.JP2,
		format.MP3, format.FLAC, format.OGG, format.Opus, format.M4A, format.AAC, format.WMA,
		format.MP4, format.MOV, format.MKV, format.WebM, format.WMV, format.FLV, format.MPEG, format.M4V, format.ThGP,
		format.ZIP, format.GZ, format.SevenZip, format.RAR, format.DOCX, format.XLSX, format.PPTX,
		format.ODT, format.ODS, format.ODP, format.EPUB:
		limit = 0.9
	}
	return float64(buf.Len()) < limit*float64(len(in)), nil
}

// write writes a block that a worker has finished.
func (p *packer) write(ctx context.Context, b *block) error {
	if b.err != nil {
		return b.err
	}
	e, size := b.entry, int64(len(b.data))
	h := &e.head
	switch {
	case b.data == nil: // stored, and larger than a block
		h.Method, h.CRC32, h.CompressedSize64 = zip.Store, b.crc, h.UncompressedSize64
		w, err := p.create(e)
		if err != nil {
			return err
		}
		if err := p.copy(ctx, w, e.file); err != nil {
			return err
		}
		return e.finish()
	case b.first && b.last: // all header fields are known
		h.CRC32, h.CompressedSize64 = b.crc, uint64(b.out.Len())
		out := b.out.Bytes()
		if h.Method = zip.Deflate; len(out) >= len(b.data) {
			h.Method, h.CompressedSize64, out = zip.Store, h.UncompressedSize64, b.data
		}
		w, err := p.create(e)
		if err != nil {
			return err
		}
		if _, err := w.Write(out); err != nil {
			return err
		}
		if err := e.finish(); err != nil {
			return err
		}
	default:
		if b.first {
			h.Method = zip.Deflate
			h.Flags |= 8 // sizes and checksum follow the data
			w, err := p.create(e)
			if err != nil {
				return err
			}
			e.out = w
		}
		n, err := e.out.Write(b.out.Bytes())
		if err != nil {
			return err
		}
		if e.seal == nil {
			h.CRC32 = b.crc
		}
		h.CompressedSize64 += uint64(n)
		if b.last {
			h.CompressedSize = uint32(min(h.CompressedSize64, math.MaxUint32))
			if err := e.finish(); err != nil {
				return err
			}
		}
	}
	p.blocks.Put(b)
	p.progress(size)
	return nil
}

// create starts an entry.
func (p *packer) create(e *entry) (io.Writer, error) {
	h := &e.head
	if e.seal != nil {
		e.seal.mark(h)
	}
	w, err := createRaw(p.zw, h)
	if err != nil || e.seal == nil {
		return w, err
	}
	return e.seal, e.seal.start(w)
}

// createRaw starts an entry whose content is already compressed. If an entry of
// known size needs 64 bits, its local header gets the ZIP64 field (APPNOTE 4.5.3).
// The library writes the field only to the directory at the end of the archive. h
// must not change until then.
func createRaw(zw *zip.Writer, h *zip.FileHeader) (io.Writer, error) {
	extra := h.Extra
	if h.Flags&8 == 0 && max(h.UncompressedSize64, h.CompressedSize64) >= math.MaxUint32 {
		le := binary.LittleEndian
		wide := le.AppendUint16(le.AppendUint16(nil, 1), 16)
		wide = le.AppendUint64(le.AppendUint64(wide, h.UncompressedSize64), h.CompressedSize64)
		h.Extra = slices.Concat(wide, extra)
	}
	if max(h.UncompressedSize64, h.CompressedSize64) >= math.MaxUint32 {
		h.ReaderVersion = max(h.ReaderVersion, 45)
	}
	w, err := zw.CreateRaw(h)
	h.Extra = extra
	return w, err
}

// finish completes the content of an entry. The archive needs only the header after
// that, so finish releases the other fields.
func (e *entry) finish() (err error) {
	if e.seal != nil {
		err = e.seal.finish()
	}
	e.file, e.out, e.seal = nil, nil, nil
	return err
}

// copy stores a file whose checksum is known.
func (p *packer) copy(ctx context.Context, w io.Writer, f *fileops.File) error {
	r := f.Reader()
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n, err := io.CopyN(w, r, blockSize)
		p.progress(n)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (p *packer) progress(n int64) {
	if p.done += n; p.total > 0 {
		p.job.Progress(p.start + (1-p.start)*float64(p.done)/float64(p.total))
	}
}

// A compressor is the state that a worker keeps between blocks.
type compressor struct {
	level    int
	password string
	w        *flate.Writer
}

func (c *compressor) do(ctx context.Context, b *block) {
	if c.password != "" && b.first && b.err == nil {
		b.entry.seal, b.err = newSealer(c.password)
	}
	switch {
	case b.err != nil:
	case b.data == nil && c.password != "": // an encrypted entry has no checksum
	case b.data == nil:
		b.crc, b.err = checksum(ctx, b.entry.file)
	case c.level == 0 && b.first && b.last:
		// The result is longer than data, so store it.
		b.out.Write(b.data)
	default:
		b.err = c.compress(ctx, b)
	}
}

// compress compresses the data of b. All blocks except the last end at a byte
// boundary without an end mark, so that they can be concatenated (RFC 1951,
// 3.2.4: an empty stored block).
func (c *compressor) compress(ctx context.Context, b *block) (err error) {
	if c.w == nil {
		if c.w, err = flate.NewWriter(&b.out, c.level); err != nil {
			return err
		}
	}
	b.out.Grow(len(b.data)/2 + 64)
	c.w.ResetDict(&b.out, b.dict)
	for chunk := range slices.Chunk(b.data, 128<<10) { // short, to react to cancellation soon
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if _, err := c.w.Write(chunk); err != nil {
			return err
		}
	}
	if b.last {
		return c.w.Close()
	}
	return c.w.Flush()
}

func checksum(ctx context.Context, f *fileops.File) (uint32, error) {
	sum, r := crc32.NewIEEE(), f.Reader()
	for {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		if _, err := io.CopyN(sum, r, blockSize); errors.Is(err, io.EOF) {
			return sum.Sum32(), nil
		} else if err != nil {
			return 0, err
		}
	}
}

// modified returns the modification time of f, or now if it is unknown.
func modified(f *fileops.File, now time.Time) time.Time {
	if path, ok := f.Path(); ok {
		if st, err := os.Stat(path); err == nil {
			return st.ModTime()
		}
	}
	return now
}

// newHeader returns the header of an entry (APPNOTE 4.4, and Info-ZIP's
// "extended timestamp" 0x5455).
func newHeader(name string, t time.Time, mode fs.FileMode) zip.FileHeader {
	const unix, version = 3 << 8, 20
	h := zip.FileHeader{Name: name, CreatorVersion: unix | version, ReaderVersion: version}
	h.SetMode(mode)
	h.CreatorVersion = unix | version
	for i := range len(name) {
		if name[i] >= utf8.RuneSelf {
			h.Flags |= 1 << 11 // the name is UTF-8
			break
		}
	}
	t = t.UTC()
	if t.Year() >= 1980 && t.Year() < 2108 {
		h.ModifiedDate = uint16(t.Day() + int(t.Month())<<5 + (t.Year()-1980)<<9)
		h.ModifiedTime = uint16(t.Second()/2 + t.Minute()<<5 + t.Hour()<<11)
	} else {
		h.ModifiedDate = 1 + 1<<5
	}
	if s := t.Unix(); s >= 0 && s <= math.MaxInt32 {
		h.Extra = binary.LittleEndian.AppendUint32([]byte{'U', 'T', 5, 0, 1}, uint32(s))
	}
	return h
}
