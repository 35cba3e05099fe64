// Package pdfpack makes PDF files smaller that other programs have just written. It moves
// their objects into compressed object streams and their cross-reference table into a
// compressed stream (ISO 32000-2, 7.5.7 and 7.5.8), as PDF 1.5 allows. Streams stay as
// they are, byte for byte. LibreOffice and Chromium write tagged files whose objects take
// two to five times the room that they need.
//
// The package knows the files that such programs write: one classic cross-reference
// table, one generation of objects, no encryption. It leaves all others unchanged.
package pdfpack

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"

	"github.com/klauspost/compress/zlib"

	"github.com/filewright/filewright/internal/plainpdf"
)

// File packs the file at path in place. It reports whether the file changed: a file that
// would not become smaller, or that this package does not know, stays as it is.
func File(path string) (packed bool, err error) {
	in, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return false, err
	}
	temp := path + ".packed"
	out, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm())
	if err != nil {
		return false, err
	}
	defer os.Remove(temp) // it fails if the file was renamed
	n, err := Write(out, in, info.Size())
	err = errors.Join(err, out.Close())
	if errors.Is(err, ErrUnknown) || err == nil && n >= info.Size() {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, os.Rename(temp, path)
}

// ErrUnknown means that a file is not of the kind that this package packs.
var ErrUnknown = plainpdf.ErrUnknown

const (
	// perStream is the number of objects in an object stream. A reader must inflate
	// all of them to read one.
	perStream = 200

	// largest limits the bytes of an object that is not a stream, and of the dictionary of
	// a stream. Larger ones make the file unknown.
	largest = 1 << 20
)

// Write writes a packed copy of a PDF file of size bytes and returns its size. If it
// returns an error, out has received an unfinished file.
func Write(out io.Writer, in io.ReaderAt, size int64) (int64, error) {
	p := &packer{in: in, size: size, w: bufio.NewWriterSize(out, 64<<10)}
	err := p.pack()
	return p.off, errors.Join(err, p.w.Flush())
}

// An entry says where an object is.
type entry struct {
	at     int64 // offset in the input; 0 if the object is not in use
	to     int64 // offset in the output, or number of the object stream
	index  int32 // index in the object stream
	packed bool
}

type packer struct {
	in      io.ReaderAt
	size    int64
	w       *bufio.Writer
	off     int64 // bytes written
	objects []entry
	trailer plainpdf.Dict
	start   int64 // offset of the table

	ahead   []byte // bytes of the input from aheadAt on
	aheadAt int64

	index, body []byte // of the next object stream
	part        []int  // its objects
	zip         *zlib.Writer
}

func (p *packer) pack() error {
	if err := p.readTable(); err != nil {
		return err
	}
	if err := p.header(); err != nil {
		return err
	}
	order := make([]int, 0, len(p.objects))
	for nr, e := range p.objects {
		if e.at > 0 {
			order = append(order, nr)
		}
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(p.objects[a].at, p.objects[b].at) })
	for i, nr := range order {
		end := p.start
		if i+1 < len(order) {
			end = p.objects[order[i+1]].at
		}
		if err := p.object(nr, end); err != nil {
			return err
		}
	}
	if err := p.flush(); err != nil {
		return err
	}
	return p.table()
}

func (p *packer) write(b []byte) error {
	n, err := p.w.Write(b)
	p.off += int64(n)
	return err
}

// read returns the bytes from offset at to end.
func (p *packer) read(at, end int64) ([]byte, error) {
	if at < 0 || end > p.size || end < at || end-at > largest {
		return nil, ErrUnknown
	}
	b := make([]byte, end-at)
	_, err := p.in.ReadAt(b, at)
	if errors.Is(err, io.EOF) {
		err = nil // at the end of the file
	}
	return b, err
}

// peek is read for parts of the file in their order. The bytes are valid until the next call.
func (p *packer) peek(at, end int64) ([]byte, error) {
	if at < p.aheadAt || end > p.aheadAt+int64(len(p.ahead)) {
		var err error
		if p.ahead, err = p.read(at, min(p.size, at+max(end-at, 256<<10))); err != nil {
			return nil, err
		}
		p.aheadAt = at
	}
	return p.ahead[at-p.aheadAt : end-p.aheadAt], nil
}

// header copies the first line with a version that has object streams.
func (p *packer) header() error {
	b, err := p.read(0, min(p.size, 8))
	if err != nil {
		return err
	}
	if len(b) < 8 || string(b[:5]) != "%PDF-" || b[6] != '.' {
		return ErrUnknown
	}
	if string(b) < "%PDF-1.5" {
		b = []byte("%PDF-1.5")
	}
	return p.write(append(b, "\n%\xe2\xe3\xcf\xd3\n"...))
}

// readTable reads the cross-reference table and the trailer.
func (p *packer) readTable() error {
	t, err := plainpdf.ReadTable(p.in, p.size)
	if err != nil {
		return err
	}
	p.start, p.trailer, p.objects = t.Start, t.Trailer, make([]entry, len(t.Objects))
	for nr, at := range t.Objects {
		p.objects[nr].at = at
	}
	return nil
}

// object copies the object between its offset and end.
func (p *packer) object(nr int, end int64) error {
	at := p.objects[nr].at
	b, err := p.peek(at, min(end, at+largest))
	if err != nil {
		return err
	}
	s := plainpdf.Scanner{B: b}
	n, ok1 := s.Integer()
	generation, ok2 := s.Integer()
	if !ok1 || !ok2 || n != int64(nr) || generation != 0 || s.Keyword() != "obj" {
		return ErrUnknown
	}
	s.Space()
	from := s.At
	if !s.Value() {
		return ErrUnknown
	}
	value := s.B[from:s.At]
	switch s.Keyword() {
	case "endobj":
		return p.add(nr, value)
	case "stream":
		head := plainpdf.Scanner{B: value}
		if d, ok := head.Dict(); ok {
			return p.stream(nr, d, s.B[s.At:], at+int64(s.At), end)
		}
	}
	return ErrUnknown
}

// add appends an object to the next object stream.
func (p *packer) add(nr int, value []byte) error {
	p.index = append(strconv.AppendInt(p.index, int64(nr), 10), ' ')
	p.index = append(strconv.AppendInt(p.index, int64(len(p.body)), 10), ' ')
	p.body = append(append(p.body, value...), '\n')
	p.part = append(p.part, nr)
	if len(p.part) < perStream {
		return nil
	}
	return p.flush()
}

// flush writes the object stream.
func (p *packer) flush() error {
	if len(p.part) == 0 {
		return nil
	}
	nr := len(p.objects)
	p.objects = append(p.objects, entry{at: 1, to: p.off})
	for i, o := range p.part {
		p.objects[o].packed, p.objects[o].to, p.objects[o].index = true, int64(nr), int32(i)
	}
	d := plainpdf.Dict{item("Type", []byte("/ObjStm")), item("N", decimal(len(p.part))), item("First", decimal(len(p.index)))}
	err := p.deflated(nr, d, append(p.index, p.body...))
	p.index, p.body, p.part = p.index[:0], p.body[:0], p.part[:0]
	return err
}

// deflated writes a compressed stream.
func (p *packer) deflated(nr int, d plainpdf.Dict, data []byte) error {
	var b bytes.Buffer
	if p.zip == nil {
		var err error
		if p.zip, err = zlib.NewWriterLevel(&b, 7); err != nil {
			return err
		}
	} else {
		p.zip.Reset(&b)
	}
	if _, err := p.zip.Write(data); err != nil {
		return err
	}
	if err := p.zip.Close(); err != nil {
		return err
	}
	d = append(d, item("Filter", []byte("/FlateDecode")), item("Length", decimal(b.Len())))
	head := fmt.Appendf(nil, "%d 0 obj\n%sstream\n", nr, d.Text())
	return cmp.Or(p.write(head), p.write(b.Bytes()), p.write([]byte("\nendstream\nendobj\n")))
}

func item(key string, value []byte) plainpdf.Item { return plainpdf.Item{Key: key, Value: value} }

func decimal(n int) []byte { return strconv.AppendInt(nil, int64(n), 10) }

// stream copies a stream. data is what follows the keyword, as far as it was read, and at
// its offset. The length becomes a direct object: simple readers do not look into object
// streams for it.
func (p *packer) stream(nr int, d plainpdf.Dict, data []byte, at, end int64) error {
	switch { // ISO 32000-2, 7.3.8.1
	case bytes.HasPrefix(data, []byte("\r\n")):
		at += 2
	case bytes.HasPrefix(data, []byte("\n")):
		at++
	default:
		return ErrUnknown
	}
	length, ok := p.length(d.Get("Length"))
	if !ok || length < 0 || length > end-at {
		return ErrUnknown
	}
	rest, err := p.read(at+length, min(end, at+length+64))
	if err != nil {
		return err
	}
	s := plainpdf.Scanner{B: rest}
	if s.Keyword() != "endstream" || s.Keyword() != "endobj" {
		return ErrUnknown
	}
	d.Set("Length", strconv.AppendInt(nil, length, 10))
	p.objects[nr].to = p.off
	if err := p.write(fmt.Appendf(nil, "%d 0 obj\n%sstream\n", nr, d.Text())); err != nil {
		return err
	}
	n, err := io.Copy(p.w, io.NewSectionReader(p.in, at, length))
	p.off += n
	if err == nil && n < length {
		err = io.ErrUnexpectedEOF
	}
	return cmp.Or(err, p.write([]byte("\nendstream\nendobj\n")))
}

// length returns the value of a Length entry, which may be a reference.
func (p *packer) length(value []byte) (int64, bool) {
	s := plainpdf.Scanner{B: value}
	n, ok := s.Integer()
	if s.Space(); !ok || s.At == len(value) {
		return n, ok
	}
	if n < 0 || n >= int64(len(p.objects)) || p.objects[n].at == 0 {
		return 0, false
	}
	b, err := p.read(p.objects[n].at, min(p.size, p.objects[n].at+64))
	s = plainpdf.Scanner{B: b}
	nr, ok1 := s.Integer()
	_, ok2 := s.Integer()
	if err != nil || !ok1 || !ok2 || nr != n || s.Keyword() != "obj" {
		return 0, false
	}
	n, ok = s.Integer()
	return n, ok && s.Keyword() == "endobj"
}

// table writes the cross-reference stream.
func (p *packer) table() error {
	start, nr := p.off, len(p.objects)
	p.objects = append(p.objects, entry{at: 1, to: start})
	wide := 1 // bytes of an offset, or of the number of an object stream
	for n := max(start, int64(nr)); n > math.MaxUint8; n >>= 8 {
		wide++
	}
	columns := 1 + wide + 2
	rows := make([]byte, 0, len(p.objects)*(columns+1))
	row, above := make([]byte, columns), make([]byte, columns)
	for i, e := range p.objects {
		switch {
		case i == 0:
			row[0], e.to, e.index = 0, 0, math.MaxUint16
		case e.at == 0:
			row[0] = 0
		case e.packed:
			row[0] = 2
		default:
			row[0] = 1
		}
		for i := range wide {
			row[1+i] = byte(e.to >> (8 * (wide - 1 - i)))
		}
		row[1+wide], row[2+wide] = byte(e.index>>8), byte(e.index)
		rows = append(rows, 2) // PNG filter "up"
		for i := range row {
			rows = append(rows, row[i]-above[i])
		}
		copy(above, row)
	}
	d := plainpdf.Dict{item("Type", []byte("/XRef")), item("Size", decimal(len(p.objects))), item("W", fmt.Appendf(nil, "[1 %d 2]", wide)),
		item("DecodeParms", fmt.Appendf(nil, "<</Predictor 12/Columns %d>>", columns))}
	for _, it := range p.trailer {
		if it.Key != "Size" {
			d = append(d, it)
		}
	}
	return cmp.Or(p.deflated(nr, d, rows), p.write(fmt.Appendf(nil, "startxref\n%d\n%%%%EOF\n", start)))
}
