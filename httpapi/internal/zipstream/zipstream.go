// Package zipstream writes ZIP archives of stored files whose layout is known in advance.
//
// The files are stored without compression, so the size of an [Archive] and the place of each byte
// in it follow from the names and sizes of its files. An Archive is an io.ReadSeeker:
// http.ServeContent can answer a request for any range of it, without a copy of the archive.
//
// The format is that of PKWARE's APPNOTE.TXT 6.3.10, with UTF-8 names (4.4.4, bit 11) and ZIP64
// records (4.5.3) where sizes need them.
package zipstream

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"sync"
	"time"
)

// A File is a file of an archive. Its content must not change.
type File struct {
	Name     string // unique in the archive
	Size     int64
	Modified time.Time

	// Key identifies the content, for [Sums].
	Key string

	// Open opens the content. The archive closes it.
	Open func(context.Context) (Content, error)
}

// Content is the content of a file.
type Content interface {
	io.ReaderAt
	io.Closer
}

// sumFirst is the size up to which the checksum of a file is computed before the file is sent. It
// is then in the header of the file, where programs that read an archive from a pipe expect it. The
// checksum of a larger file follows the file, because reading the file twice would take too long.
const sumFirst = 8 << 20

// Sums remembers the checksums of files by key, so that an interrupted download continues without
// reading what the client already has. The zero value is ready for use, and safe for concurrent
// use.
type Sums struct {
	mu sync.Mutex
	m  map[string]uint32
}

// maxSums bounds the memory of Sums.
const maxSums = 1 << 14

func (s *Sums) get(key string) (uint32, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum, ok := s.m[key]
	return sum, ok
}

func (s *Sums) put(key string, sum uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.m == nil {
		s.m = make(map[string]uint32)
	}
	for old := range s.m {
		if len(s.m) < maxSums {
			break
		}
		delete(s.m, old) // any entry
	}
	s.m[key] = sum
}

// An Archive is a ZIP archive that is built while it is read. It is not safe for concurrent use.
// Close releases the file that it reads.
type Archive struct {
	ctx     context.Context
	entries []entry
	sums    *Sums
	dirAt   int64 // start of the central directory
	size    int64
	pos     int64

	open    Content // of entries[current]
	current int
	sum     uint32 // checksum of the first summed bytes of entries[current]
	summed  int64
	made    []byte // the header, descriptor or directory at madeAt
	madeAt  int64
}

// An entry is a file with its place in the archive.
type entry struct {
	File
	at     int64 // start of its header
	data   int64 // start of its content
	follow int64 // start of its data descriptor, or the end of its content
	end    int64
	sum    uint32
	known  bool // sum is known
}

// later reports whether the checksum follows the content.
func (e *entry) later() bool { return e.Size > sumFirst }

// large reports whether the entry needs 64-bit sizes.
func (e *entry) large() bool { return e.Size >= math.MaxUint32 }

// Lengths of the records without their variable parts.
const (
	headerLen       = 30
	largeHeaderLen  = 20 // of the ZIP64 extra field in a header
	directoryLen    = 46
	timeLen         = 9 // of the extended timestamp
	endLen          = 22
	largeEndLen     = 56
	locatorLen      = 20
	descriptorLen   = 16
	largeDescriptor = 24
	maxName         = 1000 // bytes
)

// New returns the archive of files. It opens them when it reads them, until ctx is done.
func New(ctx context.Context, files []File, sums *Sums) (*Archive, error) {
	a := &Archive{ctx: ctx, sums: sums, current: -1}
	var directory int64
	for _, f := range files {
		if f.Size < 0 || f.Name == "" || len(f.Name) > maxName {
			return nil, fmt.Errorf("zipstream: invalid file of %d bytes", f.Size)
		}
		e := entry{File: f, at: a.dirAt}
		e.data = e.at + headerLen + int64(len(f.Name)) + timeLen
		if e.large() {
			e.data += largeHeaderLen
		}
		e.follow = e.data + f.Size
		e.end = e.follow
		if e.later() {
			e.end += descriptorLen
			if e.large() {
				e.end += largeDescriptor - descriptorLen
			}
		}
		e.sum, e.known = sums.get(f.Key)
		a.entries = append(a.entries, e)
		a.dirAt = e.end
		directory += directoryLen + int64(len(f.Name)) + timeLen + int64(len(e.directoryExtra()))
	}
	a.size = a.dirAt + directory + endLen
	if a.largeEnd(directory) {
		a.size += largeEndLen + locatorLen
	}
	return a, nil
}

// Size returns the size of the archive in bytes.
func (a *Archive) Size() int64 { return a.size }

// Close closes the file that is open.
func (a *Archive) Close() error {
	if a.open == nil {
		return nil
	}
	err := a.open.Close()
	a.open, a.current = nil, -1
	return err
}

// Seek implements io.Seeker.
func (a *Archive) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += a.pos
	case io.SeekEnd:
		offset += a.size
	}
	if offset < 0 {
		return 0, errors.New("zipstream: seek before the start")
	}
	a.pos = offset
	return offset, nil
}

// Prepare computes the checksums of the files that start before offset. A read from there then
// starts soon.
func (a *Archive) Prepare(offset int64) error {
	for i := range a.entries {
		if e := &a.entries[i]; e.data < offset && !e.known {
			if err := a.compute(i); err != nil {
				return err
			}
		}
	}
	return nil
}

// Read implements io.Reader.
func (a *Archive) Read(p []byte) (n int, err error) {
	if a.pos >= a.size {
		return 0, io.EOF
	}
	i := a.at(a.pos)
	switch {
	case i == len(a.entries):
		n, err = a.copyMade(p, a.dirAt, a.directory)
	case a.pos < a.entries[i].data:
		n, err = a.copyMade(p, a.entries[i].at, func() ([]byte, error) { return a.header(i) })
	case a.pos < a.entries[i].follow:
		n, err = a.readContent(i, p)
	default:
		n, err = a.copyMade(p, a.entries[i].follow, func() ([]byte, error) { return a.descriptor(i) })
	}
	a.pos += int64(n)
	return n, err
}

// at returns the index of the entry at an offset, or the number of entries for the directory.
func (a *Archive) at(offset int64) int {
	low, high := 0, len(a.entries)
	for low < high {
		if mid := (low + high) / 2; a.entries[mid].end <= offset {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low
}

// copyMade copies from a record that starts at an offset.
func (a *Archive) copyMade(p []byte, at int64, build func() ([]byte, error)) (int, error) {
	if a.made == nil || a.madeAt != at {
		b, err := build()
		if err != nil {
			return 0, err
		}
		a.made, a.madeAt = b, at
	}
	return copy(p, a.made[a.pos-at:]), nil
}

// use opens the content of an entry.
func (a *Archive) use(i int) error {
	if a.current == i {
		return nil
	}
	if err := a.Close(); err != nil {
		return err
	}
	c, err := a.entries[i].Open(a.ctx)
	if err != nil {
		return err
	}
	a.open, a.current, a.sum, a.summed = c, i, 0, 0
	return nil
}

func (a *Archive) readContent(i int, p []byte) (int, error) {
	if err := a.use(i); err != nil {
		return 0, err
	}
	e := &a.entries[i]
	off := a.pos - e.data
	p = p[:min(int64(len(p)), e.Size-off)]
	n, err := a.open.ReadAt(p, off)
	if n == len(p) {
		err = nil
	} else if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if off == a.summed && !e.known {
		a.sum = crc32.Update(a.sum, crc32.IEEETable, p[:n])
		a.summed += int64(n)
		a.finishSum(i)
	}
	return n, err
}

// finishSum records the checksum of the current entry once all of it is summed.
func (a *Archive) finishSum(i int) {
	if e := &a.entries[i]; a.summed == e.Size {
		e.sum, e.known = a.sum, true
		a.sums.put(e.Key, e.sum)
	}
}

// sumOf returns the checksum of an entry. It reads the file if it has not been read.
func (a *Archive) sumOf(i int) (uint32, error) {
	if !a.entries[i].known {
		if err := a.compute(i); err != nil {
			return 0, err
		}
	}
	return a.entries[i].sum, nil
}

func (a *Archive) compute(i int) error {
	if err := a.use(i); err != nil {
		return err
	}
	e := &a.entries[i]
	buf := make([]byte, min(256<<10, e.Size-a.summed))
	for a.summed < e.Size {
		if err := a.ctx.Err(); err != nil {
			return err
		}
		p := buf[:min(int64(len(buf)), e.Size-a.summed)]
		if n, err := a.open.ReadAt(p, a.summed); n < len(p) {
			if err == nil || errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
		a.sum = crc32.Update(a.sum, crc32.IEEETable, p)
		a.summed += int64(len(p))
	}
	a.finishSum(i)
	return nil
}

// Flags of an entry (APPNOTE 4.4.4).
const (
	flagLater = 1 << 3
	flagUTF8  = 1 << 11
)

func (e *entry) flags() uint16 {
	if e.later() {
		return flagUTF8 | flagLater
	}
	return flagUTF8
}

// version returns the version that is needed to extract the entry.
func (e *entry) version() uint16 {
	if e.large() {
		return 45
	}
	return 20
}

// limited returns n for a 32-bit field. The value that does not fit is in the ZIP64 field.
func limited(n int64) uint32 { return uint32(min(n, math.MaxUint32)) }

// header returns the header of an entry.
func (a *Archive) header(i int) ([]byte, error) {
	e := &a.entries[i]
	var sum uint32
	size := e.Size
	if e.later() {
		size = 0 // sum and sizes are in the descriptor
	} else {
		var err error
		if sum, err = a.sumOf(i); err != nil {
			return nil, err
		}
	}
	le := binary.LittleEndian
	b := le.AppendUint32(make([]byte, 0, e.data-e.at), 0x04034b50)
	b = e.appendCommon(b, sum, limited(size))
	extra := timeLen
	if e.large() {
		extra += largeHeaderLen
	}
	b = le.AppendUint16(b, uint16(len(e.Name)))
	b = le.AppendUint16(b, uint16(extra))
	b = append(b, e.Name...)
	b = e.appendTime(b)
	if e.large() {
		b = le.AppendUint16(b, 1) // the descriptor has the values, and its fields have 64 bits
		b = le.AppendUint16(b, 16)
		b = le.AppendUint64(b, 0)
		b = le.AppendUint64(b, 0)
	}
	return b, nil
}

// appendCommon appends the fields that a header and a directory entry share. The two sizes are
// equal, because nothing is compressed.
func (e *entry) appendCommon(b []byte, sum, size uint32) []byte {
	le := binary.LittleEndian
	date, clock := dosTime(e.Modified)
	b = le.AppendUint16(b, e.version())
	b = le.AppendUint16(b, e.flags())
	b = le.AppendUint16(b, 0) // stored
	b = le.AppendUint16(b, clock)
	b = le.AppendUint16(b, date)
	b = le.AppendUint32(b, sum)
	b = le.AppendUint32(b, size)
	return le.AppendUint32(b, size)
}

// appendTime appends the extended timestamp, because the other fields have no time zone.
func (e *entry) appendTime(b []byte) []byte {
	le := binary.LittleEndian
	b = le.AppendUint16(b, 0x5455)
	b = le.AppendUint16(b, timeLen-4)
	b = append(b, 1)
	return le.AppendUint32(b, uint32(e.Modified.Unix()))
}

// descriptor returns the data descriptor of an entry.
func (a *Archive) descriptor(i int) ([]byte, error) {
	sum, err := a.sumOf(i)
	if err != nil {
		return nil, err
	}
	e := &a.entries[i]
	le := binary.LittleEndian
	b := le.AppendUint32(nil, 0x08074b50)
	b = le.AppendUint32(b, sum)
	if e.large() {
		b = le.AppendUint64(b, uint64(e.Size))
		return le.AppendUint64(b, uint64(e.Size)), nil
	}
	b = le.AppendUint32(b, uint32(e.Size))
	return le.AppendUint32(b, uint32(e.Size)), nil
}

// directoryExtra returns the ZIP64 extra field of an entry of the directory, or nothing.
func (e *entry) directoryExtra() []byte {
	le := binary.LittleEndian
	var values []byte
	if e.large() {
		values = le.AppendUint64(values, uint64(e.Size))
		values = le.AppendUint64(values, uint64(e.Size))
	}
	if e.at >= math.MaxUint32 {
		values = le.AppendUint64(values, uint64(e.at))
	}
	if values == nil {
		return nil
	}
	b := le.AppendUint16(nil, 1)
	b = le.AppendUint16(b, uint16(len(values)))
	return append(b, values...)
}

// largeEnd reports whether the archive needs a ZIP64 end record.
func (a *Archive) largeEnd(directory int64) bool {
	return len(a.entries) >= math.MaxUint16 || a.dirAt >= math.MaxUint32 || directory >= math.MaxUint32
}

// directory returns the central directory and the end of the archive.
func (a *Archive) directory() ([]byte, error) {
	le := binary.LittleEndian
	b := make([]byte, 0, a.size-a.dirAt)
	for i := range a.entries {
		sum, err := a.sumOf(i)
		if err != nil {
			return nil, err
		}
		e := &a.entries[i]
		extra := e.directoryExtra()
		version := e.version()
		if extra != nil {
			version = 45
		}
		b = le.AppendUint32(b, 0x02014b50)
		b = le.AppendUint16(b, 3<<8|version) // made on Unix
		b = e.appendCommon(b, sum, limited(e.Size))
		b = le.AppendUint16(b, uint16(len(e.Name)))
		b = le.AppendUint16(b, uint16(timeLen+len(extra)))
		b = le.AppendUint16(b, 0)             // comment
		b = le.AppendUint16(b, 0)             // disk
		b = le.AppendUint16(b, 0)             // internal attributes
		b = le.AppendUint32(b, 0o100644<<16)  // mode
		b = le.AppendUint32(b, limited(e.at)) // offset
		b = append(b, e.Name...)
		b = e.appendTime(b)
		b = append(b, extra...)
	}
	length := int64(len(b))
	count := uint64(len(a.entries))
	if a.largeEnd(length) {
		end := a.dirAt + length
		b = le.AppendUint32(b, 0x06064b50)
		b = le.AppendUint64(b, largeEndLen-12)
		b = le.AppendUint16(b, 3<<8|45)
		b = le.AppendUint16(b, 45)
		b = le.AppendUint32(b, 0) // disk
		b = le.AppendUint32(b, 0) // disk of the directory
		b = le.AppendUint64(b, count)
		b = le.AppendUint64(b, count)
		b = le.AppendUint64(b, uint64(length))
		b = le.AppendUint64(b, uint64(a.dirAt))
		b = le.AppendUint32(b, 0x07064b50)
		b = le.AppendUint32(b, 0)
		b = le.AppendUint64(b, uint64(end))
		b = le.AppendUint32(b, 1)
	}
	short := uint16(min(count, math.MaxUint16))
	b = le.AppendUint32(b, 0x06054b50)
	b = le.AppendUint16(b, 0)
	b = le.AppendUint16(b, 0)
	b = le.AppendUint16(b, short)
	b = le.AppendUint16(b, short)
	b = le.AppendUint32(b, limited(length))
	b = le.AppendUint32(b, limited(a.dirAt))
	return le.AppendUint16(b, 0), nil
}

// dosTime returns a time in the format of MS-DOS, in UTC. The format starts in 1980.
func dosTime(t time.Time) (date, clock uint16) {
	t = t.UTC()
	if t.Year() < 1980 {
		return 1<<5 | 1, 0
	}
	return uint16(t.Day() + int(t.Month())<<5 + (min(t.Year(), 2107)-1980)<<9), uint16(t.Second()/2 + t.Minute()<<5 + t.Hour()<<11)
}
