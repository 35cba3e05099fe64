package officeops

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"unicode/utf16"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
)

// An oleFile is a compound file, as the formats before 2007 use it ([MS-CFB]).
// Only as much of it is read as is needed to tell whether it is complete and
// whether it is encrypted.
type oleFile struct {
	r          io.ReaderAt
	size       int64
	sectorSize int64
	fat        []uint32
	miniFAT    []uint32
	mini       []uint32             // sectors of the mini stream
	streams    map[string]oleStream // of the root storage, by name in lower case
}

type oleStream struct {
	start uint32
	size  int64
}

const (
	endOfChain  = 0xfffffffe
	maxRegular  = 0xfffffff9 // largest number of a sector
	miniCutoff  = 4096       // smaller streams are in the mini stream
	miniSize    = 64
	maxOLEChain = 1 << 22 // sectors: 2 GiB
)

// errMaybeProtected tells that a workbook is encrypted, but perhaps with the
// password that every reader knows: that is how Excel 97 stores one that is
// only protected against changes.
var errMaybeProtected = errors.New("the workbook may be protected by a password")

var errOLE = errors.New("ole: the compound file is damaged or cut off")

func openOLE(r io.ReaderAt, size int64) (*oleFile, error) {
	head := make([]byte, 512)
	if _, err := r.ReadAt(head, 0); err != nil {
		return nil, errOLE
	}
	le := binary.LittleEndian
	shift := le.Uint16(head[30:])
	if shift != 9 && shift != 12 {
		return nil, errOLE
	}
	o := &oleFile{r: r, size: size, sectorSize: 1 << shift}
	var difat []uint32
	for i := range 109 {
		difat = append(difat, le.Uint32(head[76+4*i:]))
	}
	next := le.Uint32(head[68:])
	for n := le.Uint32(head[72:]); n > 0 && next <= maxRegular && len(difat) < maxOLEChain; n-- {
		s, err := o.numbers(next)
		if err != nil {
			return nil, err
		}
		difat = append(difat, s[:len(s)-1]...)
		next = s[len(s)-1]
	}
	count := int(le.Uint32(head[44:]))
	for _, n := range difat[:min(count, len(difat))] {
		s, err := o.numbers(n)
		if err != nil {
			return nil, err
		}
		o.fat = append(o.fat, s...)
	}
	chain, err := o.chain(o.fat, le.Uint32(head[60:]))
	if err != nil {
		return nil, err
	}
	for _, n := range chain {
		s, err := o.numbers(n)
		if err != nil {
			return nil, err
		}
		o.miniFAT = append(o.miniFAT, s...)
	}
	return o, o.readDirectory(le.Uint32(head[48:]))
}

// readDirectory finds the streams of the root storage: what is embedded in the
// document has streams of the same names further down. The entries of a storage
// form a binary tree; case does not count in names ([MS-CFB] 2.6.4).
func (o *oleFile) readDirectory(start uint32) error {
	chain, err := o.chain(o.fat, start)
	if err != nil {
		return err
	}
	var entries [][]byte
	for _, n := range chain {
		s, err := o.sector(n)
		if err != nil {
			return err
		}
		for ; len(s) >= 128; s = s[128:] {
			entries = append(entries, s[:128])
		}
	}
	if len(entries) == 0 {
		return errOLE
	}
	le := binary.LittleEndian
	root := entries[0]
	if o.mini, err = o.chain(o.fat, le.Uint32(root[116:])); err != nil {
		return err
	}
	o.streams = make(map[string]oleStream)
	seen := make(map[uint32]bool)
	for queue := []uint32{le.Uint32(root[76:])}; len(queue) > 0; queue = queue[1:] {
		n := queue[0]
		if int64(n) >= int64(len(entries)) || seen[n] {
			continue
		}
		seen[n] = true
		e := entries[n]
		queue = append(queue, le.Uint32(e[68:]), le.Uint32(e[72:]))
		if ln := int(le.Uint16(e[64:])); e[66] == 2 && ln >= 2 && ln <= 64 { // a stream
			u := make([]uint16, ln/2-1)
			for i := range u {
				u[i] = le.Uint16(e[2*i:])
			}
			o.streams[strings.ToLower(string(utf16.Decode(u)))] = oleStream{le.Uint32(e[116:]), int64(le.Uint32(e[120:]))}
		}
	}
	return nil
}

func (o *oleFile) sector(n uint32) ([]byte, error) {
	b := make([]byte, o.sectorSize)
	k, err := o.r.ReadAt(b, (int64(n)+1)*o.sectorSize)
	if k == 0 || err != nil && !errors.Is(err, io.EOF) { // the last sector may be short
		return nil, errOLE
	}
	return b, nil
}

func (o *oleFile) numbers(n uint32) ([]uint32, error) {
	b, err := o.sector(n)
	if err != nil {
		return nil, err
	}
	s := make([]uint32, len(b)/4)
	for i := range s {
		s[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	return s, nil
}

// chain follows a chain of sectors. A start that is no sector is an empty one.
func (o *oleFile) chain(table []uint32, start uint32) ([]uint32, error) {
	var chain []uint32
	for n := start; n <= maxRegular; n = table[n] {
		if int(n) >= len(table) || len(chain) > len(table) {
			return nil, errOLE // beyond the table, or a loop
		}
		chain = append(chain, n)
	}
	return chain, nil
}

// stream returns the first bytes of a stream, at least limit if it has as many,
// and checks that all of it is there. ok is false if there is no such stream.
func (o *oleFile) stream(name string, limit int64) (b []byte, ok bool, err error) {
	e, ok := o.streams[name]
	if !ok {
		return nil, false, nil
	}
	small := e.size < miniCutoff
	table, unit := o.fat, o.sectorSize
	if small {
		table, unit = o.miniFAT, miniSize
	}
	chain, err := o.chain(table, e.start)
	if err != nil {
		return nil, true, err
	}
	if int64(len(chain))*unit < e.size {
		return nil, true, errOLE
	}
	for i, n := range chain {
		at := (int64(n) + 1) * o.sectorSize
		if small {
			off := int64(n) * miniSize
			k := off / o.sectorSize
			if k >= int64(len(o.mini)) {
				return nil, true, errOLE
			}
			at = (int64(o.mini[k])+1)*o.sectorSize + off%o.sectorSize
		}
		length := max(0, min(unit, e.size-int64(i)*unit))
		if at+length > o.size {
			return nil, true, errOLE
		}
		if int64(len(b)) >= limit {
			continue
		}
		part := make([]byte, length)
		if _, err := o.r.ReadAt(part, at); err != nil {
			return nil, true, errOLE
		}
		b = append(b, part...)
	}
	return b, true, nil
}

// checkOLE tells whether the main stream of an old document is complete, and
// whether it is encrypted.
func checkOLE(ctx context.Context, f *fileops.File) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	o, err := openOLE(f.Reader(), f.Size())
	if err != nil {
		return damaged(err)
	}
	le := binary.LittleEndian
	switch f.Format() {
	case format.DOC: // FibBase.fEncrypted: [MS-DOC] 2.5.2
		b, ok, err := o.stream("worddocument", 512)
		if err != nil || !ok || len(b) < 32 {
			return damaged(errors.Join(err, errOLE))
		}
		if le.Uint16(b[10:])&0x0100 != 0 {
			return protected()
		}
	case format.XLS: // a FilePass record near the start: [MS-XLS] 2.4.117
		b, ok, err := o.stream("workbook", 64<<10)
		if !ok && err == nil {
			b, ok, err = o.stream("book", 64<<10)
		}
		if err != nil || !ok {
			return damaged(errors.Join(err, errOLE))
		}
		for len(b) >= 4 {
			kind, n := le.Uint16(b), int(le.Uint16(b[2:]))
			if kind == 0x2f {
				return errMaybeProtected
			}
			if kind == 0x0a || 4+n > len(b) { // end of the globals
				break
			}
			b = b[4+n:]
		}
	case format.PPT: // CurrentUserAtom.headerToken: [MS-PPT] 2.3.2
		if _, ok, err := o.stream("powerpoint document", 0); err != nil || !ok {
			return damaged(errors.Join(err, errOLE))
		}
		b, ok, err := o.stream("current user", 64)
		if err != nil {
			return damaged(err)
		}
		if ok && len(b) >= 16 && le.Uint32(b[12:]) == 0xf3d1c4df {
			return protected()
		}
	}
	return nil
}
