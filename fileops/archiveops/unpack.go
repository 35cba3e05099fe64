package archiveops

import (
	"bufio"
	"compress/bzip2"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/ulikunitz/xz"
	"github.com/ulikunitz/xz/lzma"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/safezip"
)

// A stream reads and unpacks an input within the limits.
type stream struct {
	ctx      context.Context
	limits   safezip.Limits
	progress func(float64) // may be nil

	raw      *bufio.Reader // the input
	size     int64         // of the input
	consumed int64         // bytes read from the input, including read-ahead
	packed   io.Reader     // decompresses raw; nil if the input is not compressed
	head     *bufio.Reader // source of Read
	unpacked int64

	isTar bool
	time  time.Time // of a compressed file; zero if unknown
	name  string    // original name of a gzip file; "" if unknown
	end   bool      // Read has returned io.EOF
	open  bool      // the tar archive has no end mark
	extra bool      // other data follows the compressed data
	at    int64     // bytes that Read has returned
	err   error     // not caused by the input
}

// maxDictionary is the largest accepted dictionary or window in bytes. The dictionary
// determines the memory for unpacking. xz -9 and zstd --ultra -22 use this size.
const maxDictionary = 128 << 20

// open opens the input and starts to read it.
func (c *converter) open(ctx context.Context, f content) (*stream, error) {
	s := &stream{ctx: ctx, limits: c.limits, size: f.Size()}
	s.raw = bufio.NewReaderSize(readerFunc(func(p []byte) (int, error) { return s.readInput(f.Reader(), p) }), 64<<10)
	var err error
	switch f.Format() {
	case format.TAR:
		s.head, s.isTar = s.raw, true
		return s, nil
	case format.TarBZ2, format.BZ2:
		s.packed = &bunzip{bzip2.NewReader(s.raw), s}
	case format.TarXZ, format.XZ:
		s.packed, err = newXZ(s.raw)
	case format.TarZst, format.Zst:
		var d *zstd.Decoder
		// With one goroutine the decoder needs no Close.
		d, err = zstd.NewReader(s.raw, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxDictionary), zstd.WithDecoderLowmem(true))
		s.packed = d
	case format.TarLZ4, format.LZ4:
		s.packed = noPanic{&lz4Frames{raw: s.raw, trailing: &s.extra}}
	case format.TarLZMA, format.LZMA, format.TarLZ, format.LZ:
		// The extension tlz stands for both.
		if head, _ := s.raw.Peek(len(lzipMagic)); string(head) == lzipMagic {
			s.packed, err = newLzip(s.raw, &s.extra)
		} else {
			s.packed, err = newLZMA(s.raw, &s.extra)
		}
	default:
		var gz *gzip.Reader
		if gz, err = gzip.NewReader(s.raw); err == nil {
			gz.Multistream(false)
			s.time, s.name = gz.ModTime, gz.Name
			s.packed = &gunzip{gz, s.raw, &s.extra}
		}
	}
	if err != nil {
		return nil, s.failure(err)
	}
	s.head = bufio.NewReaderSize(readerFunc(s.unpack), 64<<10)
	switch f.Format() {
	case format.GZ, format.BZ2, format.XZ, format.Zst, format.LZ4, format.LZMA, format.LZ:
		first, err := s.head.Peek(512)
		if err != nil && err != io.EOF {
			return nil, s.failure(err)
		}
		s.isTar = isTarHeader(first)
	default:
		s.isTar = true
	}
	return s, nil
}

// unpack reads unpacked data and counts it.
func (s *stream) unpack(p []byte) (int, error) {
	n, err := s.packed.Read(p)
	s.unpacked += int64(n)
	if n > 0 {
		if err := s.check(s.unpacked); err != nil {
			s.err = err
			return 0, err
		}
	}
	return n, err
}

// lz4Frames reads a file with one or more frames, some of which may be skippable (LZ4 Frame
// Format 1.6.4). A frame of the legacy format extends to the end of the file. Other data may
// follow the last frame.
type lz4Frames struct {
	raw      *bufio.Reader
	frame    *lz4.Reader // nil between two frames; continues with the next frame itself
	trailing *bool       // set if other data follows
}

// Read implements io.Reader.
func (l *lz4Frames) Read(p []byte) (int, error) {
	for {
		if l.frame != nil {
			n, err := l.frame.Read(p)
			switch {
			case errors.Is(err, io.EOF):
				l.frame, err = nil, nil
			case errors.Is(err, lz4.ErrInvalidFrame): // the first frame has its magic number
				*l.trailing, err = true, io.EOF
			}
			if n > 0 || err != nil {
				return n, err
			}
			continue
		}
		head, err := l.raw.Peek(4)
		if len(head) == 0 && errors.Is(err, io.EOF) {
			return 0, io.EOF
		}
		if err != nil {
			return 0, io.ErrUnexpectedEOF
		}
		if magic := binary.LittleEndian.Uint32(head); magic&^0xF != 0x184D2A50 {
			l.frame = lz4.NewReader(l.raw)
			continue
		}
		var skip [8]byte
		if _, err := io.ReadFull(l.raw, skip[:]); err != nil {
			return 0, io.ErrUnexpectedEOF
		}
		if _, err := io.CopyN(io.Discard, l.raw, int64(binary.LittleEndian.Uint32(skip[4:]))); err != nil {
			return 0, io.ErrUnexpectedEOF
		}
	}
}

// A gunzip reads a file with one or more members (RFC 1952, 2.2). It ignores
// zero padding after the last member, which tapes have. Other data may follow, too.
type gunzip struct {
	gz       *gzip.Reader
	raw      *bufio.Reader
	trailing *bool // set if other data follows
}

// Read implements io.Reader.
func (g *gunzip) Read(p []byte) (int, error) {
	for {
		n, err := g.gz.Read(p)
		if n > 0 && errors.Is(err, io.EOF) {
			err = nil
		}
		if n > 0 || !errors.Is(err, io.EOF) {
			return n, err
		}
		b, err := g.raw.Peek(1)
		for err == nil && b[0] == 0 {
			_, _ = g.raw.Discard(1) // it was peeked
			b, err = g.raw.Peek(1)
			*g.trailing = err == nil && b[0] != 0 // a member does not follow zeros
		}
		const magic = "\x1f\x8b"
		if b, _ := g.raw.Peek(len(magic)); string(b) != magic[:len(b)] {
			*g.trailing = true
		}
		if *g.trailing {
			return 0, io.EOF
		}
		if err != nil {
			return 0, err
		}
		if err := g.gz.Reset(g.raw); err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return 0, err
		}
		g.gz.Multistream(false)
	}
}

// A bunzip reads a file with one or more streams of bzip2. Other data may follow them.
type bunzip struct {
	bz2 io.Reader
	s   *stream
}

// Read implements io.Reader.
func (b *bunzip) Read(p []byte) (int, error) {
	n, err := b.bz2.Read(p)
	if errors.Is(err, bzip2.StructuralError("bad magic value in continuation file")) {
		b.s.extra = true
		return n, io.EOF
	}
	return n, err
}

// newXZ returns a reader of xz data. It checks the memory that the first block
// requires (The .xz File Format 1.1, 3.1 and 5.3.1). In practice later blocks have
// the same filters.
func newXZ(r *bufio.Reader) (io.Reader, error) {
	head, err := r.Peek(12 + 24)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(head) > 14 && head[12] != 0 {
		flags, at := head[13], 14
		for _, present := range []bool{flags&0x40 != 0, flags&0x80 != 0} {
			for present && at < len(head) { // sizes, with variable length
				at++
				present = head[at-1]&0x80 != 0
			}
		}
		const lzma2 = 0x21
		for at+2 < len(head) && head[at] != lzma2 {
			at += 2 + int(head[at+1]) // preceding filters
		}
		if at+2 < len(head) {
			if bits := int(head[at+2] & 0x3f); bits > 40 || (2|uint64(bits)&1)<<(bits/2+11) > maxDictionary {
				return nil, errDictionary()
			}
		}
	}
	z, err := xz.NewReader(r)
	if err != nil {
		return nil, err
	}
	return noPanic{z}, nil
}

// newLZMA returns a reader of LZMA_Alone data. It checks the memory that the header
// requires. It sets trailing if other data follows.
func newLZMA(r *bufio.Reader, trailing *bool) (io.Reader, error) {
	head, err := r.Peek(lzma.HeaderLen)
	if err != nil {
		return nil, err
	}
	if binary.LittleEndian.Uint32(head[1:]) > maxDictionary {
		return nil, errDictionary()
	}
	z, err := lzma.NewReader(r)
	if err != nil {
		return nil, err
	}
	return noPanic{readerFunc(func(p []byte) (int, error) {
		n, err := z.Read(p)
		if errors.Is(err, io.EOF) {
			_, none := r.Peek(1)
			*trailing = none == nil
		}
		return n, err
	})}, nil
}

// errDictionary returns the error for data with a dictionary above maxDictionary.
func errDictionary() error {
	return fileops.Fail(fileops.ErrLimit, nil, "unpacking the file needs more than the limit of %d MiB of memory", maxDictionary>>20)
}

// noPanic turns panics of a decoder into errors. Hostile input can make decoders
// panic.
type noPanic struct{ r io.Reader }

func (p noPanic) Read(b []byte) (n int, err error) {
	defer func() {
		if v := recover(); v != nil {
			n, err = 0, fmt.Errorf("decoder: %v", v)
		}
	}()
	return p.r.Read(b)
}

var errTooMany = errors.New("more content than the archive declares")
