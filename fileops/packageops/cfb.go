package packageops

import (
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"unicode/utf16"
)

// A compound file is a small file system in a file: sectors chained by an
// allocation table ([MS-CFB]). Encrypted Office files are packed in one.
type compoundFile struct {
	r       io.ReaderAt
	size    int64
	shift   uint16              // of the size of a sector
	fat     []uint32            // next sector of each
	miniFAT []uint32            // the same for the sectors of 64 bytes
	mini    []uint32            // sectors of the stream that holds those
	streams map[string]cfbEntry // of the root storage, by name in lower case
}

type cfbEntry struct {
	start uint32
	size  int64
}

const (
	cfbMagic      = "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
	cfbFree       = 0xffffffff
	cfbEnd        = 0xfffffffe
	cfbFATSector  = 0xfffffffd
	cfbDIFSector  = 0xfffffffc
	cfbMaxSector  = 0xfffffffa // numbers from here on are marks
	cfbMiniCutoff = 4096       // streams below that are in mini sectors
	cfbMiniSize   = 64
	cfbNone       = 0xffffffff // no entry of the directory

	maxCFBEntries = 4096
	maxCFBSectors = 1 << 26 // of a file of 32 GiB
)

var errCFB = errors.New("packageops: the compound file is damaged or cut off")

// openCompound reads the allocation tables and the directory.
func openCompound(r io.ReaderAt, size int64) (*compoundFile, error) {
	head := make([]byte, 512)
	if _, err := r.ReadAt(head, 0); err != nil || string(head[:8]) != cfbMagic {
		return nil, errCFB
	}
	le := binary.LittleEndian
	c := &compoundFile{r: r, size: size, shift: le.Uint16(head[30:])}
	if c.shift != 9 && c.shift != 12 || size>>c.shift > maxCFBSectors {
		return nil, errCFB
	}
	var tables []uint32 // sectors with the allocation table
	for i := range 109 {
		tables = append(tables, le.Uint32(head[76+4*i:]))
	}
	next := le.Uint32(head[68:])
	for n := 0; next < cfbMaxSector; n++ {
		list, err := c.numbers(next)
		if err != nil || int64(n) > c.sectors() {
			return nil, errCFB
		}
		tables = append(tables, list[:len(list)-1]...)
		next = list[len(list)-1]
	}
	count := int64(le.Uint32(head[44:]))
	if count > int64(len(tables)) || count > c.sectors() {
		return nil, errCFB
	}
	for _, n := range tables[:count] {
		list, err := c.numbers(n)
		if err != nil {
			return nil, err
		}
		c.fat = append(c.fat, list...)
	}
	chain, err := c.chain(c.fat, le.Uint32(head[60:]), c.sectors())
	if err != nil {
		return nil, err
	}
	for _, n := range chain {
		list, err := c.numbers(n)
		if err != nil {
			return nil, err
		}
		c.miniFAT = append(c.miniFAT, list...)
	}
	return c, c.readDirectory(le.Uint32(head[48:]))
}

func (c *compoundFile) sectors() int64 { return c.size>>c.shift + 1 }

func (c *compoundFile) sector(n uint32) ([]byte, error) {
	b := make([]byte, 1<<c.shift)
	k, err := c.r.ReadAt(b, (int64(n)+1)<<c.shift)
	if k == 0 || err != nil && !errors.Is(err, io.EOF) { // the last one may be short
		return nil, errCFB
	}
	return b, nil
}

func (c *compoundFile) numbers(n uint32) ([]uint32, error) {
	b, err := c.sector(n)
	if err != nil {
		return nil, err
	}
	out := make([]uint32, len(b)/4)
	for i := range out {
		out[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	return out, nil
}

// chain follows a chain in a table. It has at most limit sectors.
func (c *compoundFile) chain(table []uint32, start uint32, limit int64) ([]uint32, error) {
	var out []uint32
	for n := start; n < cfbMaxSector; n = table[n] {
		if int64(n) >= int64(len(table)) || int64(len(out)) >= limit {
			return nil, errCFB
		}
		out = append(out, n)
	}
	return out, nil
}

// readDirectory finds the streams of the root storage, whose entries form a
// binary tree ([MS-CFB] 2.6.4).
func (c *compoundFile) readDirectory(start uint32) error {
	chain, err := c.chain(c.fat, start, min(c.sectors(), maxCFBEntries/4))
	if err != nil {
		return err
	}
	var entries [][]byte
	for _, n := range chain {
		s, err := c.sector(n)
		if err != nil {
			return err
		}
		for ; len(s) >= 128; s = s[128:] {
			entries = append(entries, s[:128])
		}
	}
	if len(entries) == 0 {
		return errCFB
	}
	le := binary.LittleEndian
	if c.mini, err = c.chain(c.fat, le.Uint32(entries[0][116:]), c.sectors()); err != nil {
		return err
	}
	c.streams = make(map[string]cfbEntry)
	seen := make(map[uint32]bool)
	for queue := []uint32{le.Uint32(entries[0][76:])}; len(queue) > 0; queue = queue[1:] {
		n := queue[0]
		if int64(n) >= int64(len(entries)) || seen[n] {
			continue
		}
		seen[n] = true
		e := entries[n]
		queue = append(queue, le.Uint32(e[68:]), le.Uint32(e[72:]))
		if length := int(le.Uint16(e[64:])); e[66] == 2 && length >= 2 && length <= 64 { // a stream
			u := make([]uint16, length/2-1)
			for i := range u {
				u[i] = le.Uint16(e[2*i:])
			}
			size := int64(le.Uint32(e[120:]))
			if c.shift == 12 { // version 3 may have rubbish in the upper half
				size |= int64(le.Uint32(e[124:])) << 32
			}
			c.streams[strings.ToLower(string(utf16.Decode(u)))] = cfbEntry{le.Uint32(e[116:]), size}
		}
	}
	return nil
}

// open returns a reader of a stream of the root storage; ok is false if there is
// none of that name.
func (c *compoundFile) open(name string) (r *io.SectionReader, ok bool, err error) {
	e, ok := c.streams[strings.ToLower(name)]
	if !ok {
		return nil, false, nil
	}
	if e.size < 0 || e.size > c.size {
		return nil, true, errCFB
	}
	s := &cfbStream{file: c, small: e.size < cfbMiniCutoff, unit: 1 << c.shift}
	table := c.fat
	if s.small {
		table, s.unit = c.miniFAT, cfbMiniSize
	}
	if s.chain, err = c.chain(table, e.start, c.size/s.unit+1); err != nil || int64(len(s.chain))*s.unit < e.size {
		return nil, true, errCFB
	}
	return io.NewSectionReader(s, 0, e.size), true, nil
}

// A cfbStream reads a stream by its chain.
type cfbStream struct {
	file  *compoundFile
	chain []uint32
	unit  int64 // bytes in a sector
	small bool
}

// ReadAt implements io.ReaderAt.
func (s *cfbStream) ReadAt(p []byte, off int64) (n int, err error) {
	for len(p) > 0 {
		i := off / s.unit
		if off < 0 || i >= int64(len(s.chain)) {
			return n, io.EOF
		}
		in := off % s.unit
		at := (int64(s.chain[i])+1)<<s.file.shift + in
		if s.small {
			pos := int64(s.chain[i]) * cfbMiniSize
			k := pos >> s.file.shift
			if k >= int64(len(s.file.mini)) {
				return n, errCFB
			}
			at = (int64(s.file.mini[k])+1)<<s.file.shift + pos&(1<<s.file.shift-1) + in
		}
		want := min(int64(len(p)), s.unit-in)
		k, err := s.file.r.ReadAt(p[:want], at)
		n += k
		if int64(k) < want {
			if err == nil || errors.Is(err, io.EOF) {
				err = errCFB
			}
			return n, err
		}
		p, off = p[want:], off+want
	}
	return n, nil
}
