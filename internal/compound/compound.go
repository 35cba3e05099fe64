// Package compound reads and writes compound files ([MS-CFB]). A compound file
// contains a small file system. The Office formats before 2007 and all encrypted
// Office formats use it.
//
// [Open] reads the tables of a file; [File.Stream] then reads streams of the
// root storage, and [File.Storage] opens another storage. [Names] lists the root entries even of a damaged file. [Write]
// writes a file. A damaged or truncated file results in [ErrDamaged]. The size
// of the file bounds the memory, regardless of its tables.
//
// [MS-CFB]: https://learn.microsoft.com/openspecs/windows_protocols/ms-cfb
package compound

import (
	"encoding/binary"
	"errors"
	"io"
	"iter"
	"maps"
	"strings"
	"unicode/utf16"
)

// Magic is the start of every compound file.
const Magic = "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"

// ErrDamaged reports that a file is not a compound file, or is damaged or
// truncated.
var ErrDamaged = errors.New("compound: the file is damaged or truncated")

const (
	free       = 0xffffffff
	end        = 0xfffffffe
	fatSector  = 0xfffffffd
	difSector  = 0xfffffffc
	firstMark  = 0xfffffffa // numbers from here on are not sectors
	none       = 0xffffffff // no directory entry
	miniCutoff = 4096       // smaller streams are in mini sectors
	miniSize   = 64
	entrySize  = 128

	maxSectors = 1 << 26 // for a file of 32 GiB
)

// A File is an open compound file. It is safe for concurrent use.
type File struct {
	r       io.ReaderAt
	size    int64
	shift   uint16            // log2 of the sector size
	fat     []uint32          // by sector: next sector
	miniFAT []uint32          // the same for mini sectors of 64 bytes
	mini    []uint32          // sectors of the stream that contains the mini sectors
	streams map[string]stream // of the storage, by lower case name

	entries  [][]byte          // of the directory
	storages map[string]uint32 // the first child of each storage in this one, by lower case name
	above    int               // storages around this one
}

type stream struct {
	start uint32
	size  int64
}

// Open reads the allocation tables and the directory of the file in the first
// size bytes of r. A directory with more than maxEntries entries counts as
// damage; 0 means the maximum for the file's size.
func Open(r io.ReaderAt, size int64, maxEntries int) (*File, error) {
	f, head, err := header(r, size)
	if err != nil {
		return nil, err
	}
	le := binary.LittleEndian
	tables, err := f.tables(head)
	if err != nil {
		return nil, err
	}
	if f.fat, err = f.table(tables); err != nil {
		return nil, err
	}
	chain, err := f.chain(f.fat, le.Uint32(head[60:]), f.sectors())
	if err != nil {
		return nil, err
	}
	if f.miniFAT, err = f.table(chain); err != nil {
		return nil, err
	}
	if err := f.readDirectory(le.Uint32(head[48:]), maxEntries); err != nil {
		return nil, err
	}
	return f, nil
}

// header reads the header of a file.
func header(r io.ReaderAt, size int64) (*File, []byte, error) {
	head := make([]byte, 512)
	if _, err := r.ReadAt(head, 0); err != nil || string(head[:8]) != Magic {
		return nil, nil, ErrDamaged
	}
	f := &File{r: r, size: size, shift: binary.LittleEndian.Uint16(head[30:])}
	if f.shift != 9 && f.shift != 12 || size>>f.shift > maxSectors {
		return nil, nil, ErrDamaged
	}
	return f, head, nil
}

// Names returns the names, in lower case, of the entries of the root storage of
// the file in the first size bytes of r. Unlike [Open] it ignores the types of
// entries and reads only the first 64 sectors of the directory. It also returns
// the names that it finds in a damaged or truncated file.
func Names(r io.ReaderAt, size int64) []string {
	f, head, err := header(r, size)
	if err != nil {
		return nil
	}
	var entries [][]byte
	n := binary.LittleEndian.Uint32(head[48:])
	for range 64 { // bounds a loop in the chain
		s, err := f.sector(n)
		if err != nil {
			break
		}
		for ; len(s) >= entrySize; s = s[entrySize:] {
			entries = append(entries, s[:entrySize])
		}
		if n, err = f.next(head, n); err != nil || n >= firstMark {
			break
		}
	}
	if len(entries) == 0 {
		return nil
	}
	var names []string
	for name := range rootEntries(entries) {
		names = append(names, name)
	}
	return names
}

// next returns the sector that follows n in its chain. It reads only the needed
// sector of the allocation table.
func (f *File) next(head []byte, n uint32) (uint32, error) {
	per := uint32(1) << (f.shift - 2) // entries per sector
	i, at := n/per, n%per
	table := head[76:]
	if i >= 109 {
		i -= 109
		list, err := f.sector(binary.LittleEndian.Uint32(head[68:]))
		for range 256 { // bounds a loop in the chain
			if err != nil || i < per-1 {
				break
			}
			i -= per - 1
			list, err = f.sector(binary.LittleEndian.Uint32(list[4*(per-1):]))
		}
		if err != nil || i >= per-1 {
			return 0, ErrDamaged
		}
		table = list
	}
	next, err := f.numbers(binary.LittleEndian.Uint32(table[4*i:]))
	if err != nil {
		return 0, err
	}
	return next[at], nil
}

// tables returns the sectors of the allocation table. The header lists 109 of them; a
// chain of sectors lists the rest.
func (f *File) tables(head []byte) ([]uint32, error) {
	le := binary.LittleEndian
	var tables []uint32
	for i := range 109 {
		tables = append(tables, le.Uint32(head[76+4*i:]))
	}
	next := le.Uint32(head[68:])
	for n := int64(0); next < firstMark; n++ {
		list, err := f.numbers(next)
		if err != nil || n > f.sectors() {
			return nil, ErrDamaged
		}
		tables = append(tables, list[:len(list)-1]...)
		next = list[len(list)-1]
	}
	count := int64(le.Uint32(head[44:]))
	if count > int64(len(tables)) || count > f.sectors() {
		return nil, ErrDamaged
	}
	return tables[:count], nil
}

func (f *File) sectors() int64 { return f.size>>f.shift + 1 }

func (f *File) sector(n uint32) ([]byte, error) {
	b := make([]byte, 1<<f.shift)
	k, err := f.r.ReadAt(b, (int64(n)+1)<<f.shift)
	if k == 0 || err != nil && !errors.Is(err, io.EOF) { // the last sector may be short
		return nil, ErrDamaged
	}
	return b, nil
}

// numbers returns the 32-bit numbers in a sector.
func (f *File) numbers(n uint32) ([]uint32, error) {
	b, err := f.sector(n)
	if err != nil {
		return nil, err
	}
	out := make([]uint32, len(b)/4)
	for i := range out {
		out[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	return out, nil
}

// table returns the 32-bit numbers in sectors.
func (f *File) table(sectors []uint32) ([]uint32, error) {
	var out []uint32
	for _, n := range sectors {
		list, err := f.numbers(n)
		if err != nil {
			return nil, err
		}
		out = append(out, list...)
	}
	return out, nil
}

// chain follows a chain of at most limit sectors in a table. If start is not a
// sector, the chain is empty.
func (f *File) chain(table []uint32, start uint32, limit int64) ([]uint32, error) {
	var out []uint32
	for n := start; n < firstMark; n = table[n] {
		if int64(n) >= int64(len(table)) || int64(len(out)) >= limit {
			return nil, ErrDamaged
		}
		out = append(out, n)
	}
	return out, nil
}

// directory returns the entries of the directory.
func (f *File) directory(start uint32, most int) ([][]byte, error) {
	limit := f.sectors()
	if most > 0 {
		limit = min(limit, int64(most)*entrySize>>f.shift)
	}
	chain, err := f.chain(f.fat, start, limit)
	if err != nil {
		return nil, err
	}
	var out [][]byte
	for _, n := range chain {
		s, err := f.sector(n)
		if err != nil {
			return nil, err
		}
		for ; len(s) >= entrySize; s = s[entrySize:] {
			out = append(out, s[:entrySize])
		}
	}
	if len(out) == 0 {
		return nil, ErrDamaged
	}
	return out, nil
}

// readDirectory finds the streams and storages of the root storage.
func (f *File) readDirectory(start uint32, most int) error {
	entries, err := f.directory(start, most)
	if err != nil {
		return err
	}
	le := binary.LittleEndian
	root := entries[0]
	if f.mini, err = f.chain(f.fat, le.Uint32(root[116:]), f.sectors()); err != nil {
		return err
	}
	f.entries = entries
	f.list(le.Uint32(root[76:]))
	return nil
}

// list finds the streams and storages of a storage whose first child is given.
func (f *File) list(child uint32) {
	le := binary.LittleEndian
	f.streams, f.storages = make(map[string]stream), make(map[string]uint32)
	for name, e := range childEntries(f.entries, child) {
		switch e[66] {
		case storageEntry:
			f.storages[name] = le.Uint32(e[76:])
		case streamEntry:
			size := int64(le.Uint32(e[120:]))
			if f.shift == 12 { // version 3 may have garbage in the upper half
				size |= int64(le.Uint32(e[124:])) << 32
			}
			f.streams[name] = stream{le.Uint32(e[116:]), size}
		}
	}
}

// Types of directory entries.
const (
	storageEntry = 1
	streamEntry  = 2
)

// maxDepth is the number of storages inside each other that [File.Storage] opens. A
// damaged file could contain itself.
const maxDepth = 32

// Storages yields the names, in lower case, of the storages in this one, in no
// particular order.
func (f *File) Storages() iter.Seq[string] { return maps.Keys(f.storages) }

// Storage returns a storage of this one. The other methods of the result are about the
// content of that storage. Names ignore case. ok is false if it does not exist.
func (f *File) Storage(name string) (sub *File, ok bool) {
	child, ok := f.storages[strings.ToLower(name)]
	if !ok || f.above >= maxDepth {
		return nil, false
	}
	g := *f
	g.above++
	g.list(child)
	return &g, true
}

// Offset returns the offset in the file of a stream's first byte.
func (f *File) Offset(name string) (int64, error) {
	r, ok, err := f.Stream(name)
	if err != nil {
		return 0, err
	}
	if !ok || r.Size() == 0 {
		return 0, ErrDamaged
	}
	e := f.streams[strings.ToLower(name)]
	s := &streamReader{file: f, chain: []uint32{e.start}, small: e.size < miniCutoff}
	off, ok := s.at(0)
	if !ok {
		return 0, ErrDamaged
	}
	return off, nil
}

// rootEntries returns the directory entries of the root storage, by lower case name.
func rootEntries(entries [][]byte) iter.Seq2[string, []byte] {
	return childEntries(entries, binary.LittleEndian.Uint32(entries[0][76:]))
}

// childEntries returns the directory entries of a storage, by lower case name. They form
// a binary tree ([MS-CFB] 2.6.4). Objects embedded in a document have streams of the same
// names in other storages.
func childEntries(entries [][]byte, child uint32) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		le := binary.LittleEndian
		seen := make(map[uint32]bool)
		for queue := []uint32{child}; len(queue) > 0; queue = queue[1:] {
			n := queue[0]
			if int64(n) >= int64(len(entries)) || seen[n] {
				continue
			}
			seen[n] = true
			e := entries[n]
			queue = append(queue, le.Uint32(e[68:]), le.Uint32(e[72:]))
			if name, ok := entryName(e); ok && !yield(name, e) {
				return
			}
		}
	}
}

// entryName returns the lower case name in a directory entry, if its length is
// valid.
func entryName(e []byte) (string, bool) {
	length := int(binary.LittleEndian.Uint16(e[64:])) // bytes, with a trailing NUL
	if length < 2 || length > 64 {
		return "", false
	}
	u := make([]uint16, length/2-1)
	for i := range u {
		u[i] = binary.LittleEndian.Uint16(e[2*i:])
	}
	return strings.ToLower(string(utf16.Decode(u))), true
}

// Streams yields the names, in lower case, of the streams in the storage,
// in no particular order.
func (f *File) Streams() iter.Seq[string] { return maps.Keys(f.streams) }

// Stream returns a reader of a stream in the storage. Names ignore case. ok
// is false if the stream does not exist. A stream that extends beyond the file
// is an error.
func (f *File) Stream(name string) (r *io.SectionReader, ok bool, err error) {
	e, ok := f.streams[strings.ToLower(name)]
	if !ok {
		return nil, false, nil
	}
	if e.size < 0 || e.size > f.size {
		return nil, true, ErrDamaged
	}
	s := &streamReader{file: f, small: e.size < miniCutoff, unit: 1 << f.shift}
	table := f.fat
	if s.small {
		table, s.unit = f.miniFAT, miniSize
	}
	if s.chain, err = f.chain(table, e.start, f.size/s.unit+1); err != nil || !s.whole(e.size) {
		return nil, true, ErrDamaged
	}
	return io.NewSectionReader(s, 0, e.size), true, nil
}

// A streamReader reads a stream along its chain of sectors.
type streamReader struct {
	file  *File
	chain []uint32
	unit  int64 // bytes in a sector
	small bool
}

// at returns the offset of the i-th sector of the stream. ok is false if it is
// outside the stream of mini sectors.
func (s *streamReader) at(i int64) (off int64, ok bool) {
	n := int64(s.chain[i])
	if !s.small {
		return (n + 1) << s.file.shift, true
	}
	off = n * miniSize
	k := off >> s.file.shift
	if k >= int64(len(s.file.mini)) {
		return 0, false
	}
	return (int64(s.file.mini[k])+1)<<s.file.shift + off&(1<<s.file.shift-1), true
}

// whole reports whether the file contains size bytes of the stream.
func (s *streamReader) whole(size int64) bool {
	for i := int64(0); size > 0; i++ {
		if i >= int64(len(s.chain)) {
			return false
		}
		off, ok := s.at(i)
		if !ok || off+min(size, s.unit) > s.file.size {
			return false
		}
		size -= s.unit
	}
	return true
}

// ReadAt implements io.ReaderAt.
func (s *streamReader) ReadAt(p []byte, off int64) (n int, err error) {
	for len(p) > 0 {
		i := off / s.unit
		if off < 0 || i >= int64(len(s.chain)) {
			return n, io.EOF
		}
		in := off % s.unit
		at, ok := s.at(i)
		if !ok {
			return n, ErrDamaged
		}
		want := min(int64(len(p)), s.unit-in)
		k, err := s.file.r.ReadAt(p[:want], at+in)
		n += k
		if int64(k) < want {
			if err == nil || errors.Is(err, io.EOF) {
				err = ErrDamaged
			}
			return n, err
		}
		p, off = p[want:], off+want
	}
	return n, nil
}
