// Package textlayer reads the text of PDF files as LibreOffice writes them. It is made for a check of
// such a file against its source, which needs the letters but not their places: an engine for all PDF
// files takes a hundred times as long for it.
//
// A file that uses anything else is [ErrUnknown]. A font whose characters are unknown has no text, so the
// text may be less than that of the pages, but not more.
package textlayer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf16"

	"github.com/klauspost/compress/zlib"

	"github.com/filewright/filewright/internal/plainpdf"
)

// ErrUnknown means that a file is not of the kind that this package reads.
var ErrUnknown = errors.New("textlayer: a file of another kind")

// ErrLong means that a file has too many pages. It is an [ErrUnknown].
var ErrLong = fmt.Errorf("%w: too many pages", ErrUnknown)

// Limits of what is read. A file beyond them is [ErrUnknown].
const (
	maxInflated = 256 << 20 // bytes of all streams together, each time that they are read
	minInflated = 1 << 10   // what a shorter stream and a node of the tree count: they may contain each other often
	maxMappings = 1 << 18   // of the ranges of a font, which may be the same
	maxDepth    = 10        // of the tree of pages, and of drawings in drawings
)

// Text returns the text of the pages of a file, in the order in which it is drawn. After each piece of
// text and after each page is a line break. A file with more than pages pages is [ErrLong].
func Text(ctx context.Context, pdf []byte, pages int) (string, error) {
	t, err := plainpdf.ReadTable(bytes.NewReader(pdf), int64(len(pdf)))
	if err != nil {
		return "", ErrUnknown
	}
	r := &reader{ctx: ctx, pdf: pdf, table: t, left: maxInflated, pages: pages, fonts: make(map[string]*font)}
	root := r.dict(t.Trailer.Get("Root"))
	ok := root != nil && r.tree(root.Get("Pages"), nil, 0)
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	switch {
	case r.pages < 0:
		return "", ErrLong
	case !ok:
		return "", ErrUnknown
	}
	return r.text.String(), nil
}

// A reader reads a file. Its methods report false for a file of another kind.
type reader struct {
	ctx   context.Context
	pdf   []byte
	table plainpdf.Table
	left  int64            // how many bytes may still be inflated
	pages int              // how many may still be read
	fonts map[string]*font // by the text of the reference
	zip   io.ReadCloser
	text  strings.Builder
}

// object returns a scanner after the start of the object that value refers to. If value is no reference,
// it is that of value itself.
func (r *reader) object(value []byte) (s plainpdf.Scanner, ok bool) {
	ref := plainpdf.Scanner{B: value}
	nr, ok := ref.Integer()
	if !ok {
		return plainpdf.Scanner{B: value}, len(value) > 0
	}
	if generation, ok := ref.Integer(); !ok || generation != 0 || ref.Keyword() != "R" {
		return plainpdf.Scanner{B: value}, true // a number
	}
	if nr >= int64(len(r.table.Objects)) || r.table.Objects[nr] == 0 {
		return s, false
	}
	s = plainpdf.Scanner{B: r.pdf[:r.table.Start], At: int(r.table.Objects[nr])}
	n, ok1 := s.Integer()
	_, ok2 := s.Integer()
	return s, ok1 && ok2 && n == nr && s.Keyword() == "obj"
}

// dict returns the dictionary that value is or refers to, or nil.
func (r *reader) dict(value []byte) plainpdf.Dict {
	s, ok := r.object(value)
	if !ok {
		return nil
	}
	d, _ := s.Dict()
	return d
}

// stream returns the dictionary and the inflated content of the stream that value refers to.
func (r *reader) stream(value []byte) (d plainpdf.Dict, content []byte, ok bool) {
	s, ok := r.object(value)
	if !ok {
		return nil, nil, false
	}
	d, ok = s.Dict()
	if !ok || s.Keyword() != "stream" {
		return nil, nil, false
	}
	if !s.Next("\r\n") && !s.Next("\n") {
		return nil, nil, false
	}
	at, ok := r.object(d.Get("Length"))
	if !ok {
		return nil, nil, false
	}
	length, ok := at.Integer()
	if !ok || length > int64(len(s.B)-s.At) {
		return nil, nil, false
	}
	raw := s.B[s.At : s.At+int(length)]
	r.left -= minInflated
	switch filter := string(d.Get("Filter")); {
	case filter == "" && int64(len(raw)) <= r.left:
		r.left -= int64(len(raw))
		return d, raw, true
	case filter == "/FlateDecode" && d.Get("DecodeParms") == nil:
		content, err := r.inflate(raw)
		return d, content, err == nil
	}
	return nil, nil, false
}

func (r *reader) inflate(raw []byte) ([]byte, error) {
	var err error
	if r.zip == nil {
		r.zip, err = zlib.NewReader(bytes.NewReader(raw))
	} else {
		err = r.zip.(zlib.Resetter).Reset(bytes.NewReader(raw), nil)
	}
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(r.zip, r.left+1))
	if r.left -= int64(len(content)); r.left < 0 {
		return nil, ErrUnknown
	}
	return content, err
}

// tree reads the pages below a node of the tree of pages. resources are those of the nodes above it.
func (r *reader) tree(node, resources []byte, depth int) bool {
	d := r.dict(node)
	r.left -= minInflated
	if d == nil || depth > maxDepth || r.left < 0 {
		return false
	}
	if own := d.Get("Resources"); own != nil {
		resources = own
	}
	if string(d.Get("Type")) == "/Page" {
		if r.pages--; r.pages < 0 || r.ctx.Err() != nil {
			return false
		}
		return r.page(d, resources)
	}
	kids, ok := r.references(d.Get("Kids"))
	if !ok {
		return false
	}
	for _, k := range kids {
		if !r.tree(k, resources, depth+1) {
			return false
		}
	}
	return true
}

// references returns the elements of an array of references.
func (r *reader) references(array []byte) (all [][]byte, ok bool) {
	s, ok := r.object(array)
	if !ok {
		return nil, false
	}
	if s.Space(); !s.Next("[") {
		return nil, false
	}
	for {
		if s.Space(); s.Next("]") {
			return all, true
		}
		from := s.At
		if !s.Value() {
			return nil, false
		}
		all = append(all, s.B[from:s.At])
	}
}

// page reads the text of a page.
func (r *reader) page(d plainpdf.Dict, resources []byte) bool {
	contents := d.Get("Contents")
	if contents == nil {
		return true
	}
	parts := [][]byte{contents}
	if s, ok := r.object(contents); !ok {
		return false
	} else if s.Space(); s.Next("[") {
		if parts, ok = r.references(contents); !ok {
			return false
		}
	}
	var all []byte
	for _, p := range parts {
		_, content, ok := r.stream(p)
		if !ok {
			return false
		}
		all = append(append(all, content...), '\n')
	}
	ok := r.content(all, r.dict(resources), 0)
	r.text.WriteByte('\n')
	return ok
}

// A font maps codes to text.
type font struct {
	wide bool // a code has two bytes
	text map[uint16]string
}

// font returns the font of a name in the resources. A font that cannot be read has no text.
func (r *reader) font(fonts plainpdf.Dict, name string) *font {
	ref := fonts.Get(name)
	if f := r.fonts[string(ref)]; f != nil {
		return f
	}
	f := &font{}
	r.fonts[string(ref)] = f
	d := r.dict(ref)
	f.wide = string(d.Get("Subtype")) == "/Type0"
	if f.wide && string(d.Get("Encoding")) != "/Identity-H" {
		return f
	}
	if unicodes := d.Get("ToUnicode"); unicodes != nil {
		if _, cmap, ok := r.stream(unicodes); ok {
			f.text = readCMap(cmap)
		}
	} else if string(d.Get("Encoding")) == "/WinAnsiEncoding" {
		f.text = make(map[uint16]string)
		for c := uint16(' '); c < 0x7f; c++ { // the others are hardly worth a table
			f.text[c] = string(rune(c))
		}
	}
	return f
}

// appendText appends the text of a string in a font.
func (f *font) appendText(to *strings.Builder, codes []byte) {
	if !f.wide {
		for _, c := range codes {
			to.WriteString(f.text[uint16(c)])
		}
		return
	}
	for ; len(codes) >= 2; codes = codes[2:] {
		to.WriteString(f.text[uint16(codes[0])<<8|uint16(codes[1])])
	}
}

// readCMap reads the mappings of a ToUnicode CMap (ISO 32000-2, 9.10.3).
func readCMap(b []byte) map[uint16]string {
	all := make(map[uint16]string)
	left := maxMappings
	s := plainpdf.Scanner{B: b}
	for {
		switch word := s.Keyword(); word {
		case "beginbfchar":
			for {
				from, ok1 := hexString(&s)
				to, ok2 := hexString(&s)
				if !ok1 || !ok2 {
					break
				}
				all[code(from)] = utf16Text(to)
			}
		case "beginbfrange":
			for {
				first, ok1 := hexString(&s)
				last, ok2 := hexString(&s)
				to, ok3 := hexString(&s)
				if !ok1 || !ok2 || !ok3 || len(to) < 2 {
					break
				}
				for n, c := int(code(last))-int(code(first)), 0; c <= n && left > 0; c++ {
					left--
					all[code(first)+uint16(c)] = utf16Text(to)
					to[len(to)-1]++ // a range ends where the last byte would overflow
				}
			}
		case "":
			if s.Space(); s.At == len(s.B) {
				return all
			}
			if !s.Value() {
				s.At = min(s.At+1, len(s.B)) // a bracket alone
			}
		}
	}
}

func code(b []byte) uint16 {
	n := uint16(0)
	for _, c := range b {
		n = n<<8 | uint16(c)
	}
	return n
}

// hexString reads a hexadecimal string. It reports false, and reads nothing, if there is none.
func hexString(s *plainpdf.Scanner) ([]byte, bool) {
	s.Space()
	if at := s.At; s.Next("<<") || !s.Next("<") {
		s.At = at
		return nil, false
	}
	i := bytes.IndexByte(s.B[s.At:], '>')
	if i < 0 {
		return nil, false
	}
	digits := s.B[s.At : s.At+i]
	s.At += i + 1
	return unhex(digits), true
}

func unhex(digits []byte) []byte {
	b := make([]byte, 0, (len(digits)+1)/2)
	half, high := false, byte(0)
	for _, c := range digits {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		default:
			continue // white space
		}
		if half = !half; half {
			high = c << 4
		} else {
			b = append(b, high|c)
		}
	}
	if half {
		b = append(b, high)
	}
	return b
}

// utf16Text decodes text in UTF-16BE.
func utf16Text(b []byte) string {
	units := make([]uint16, 0, len(b)/2)
	for ; len(b) >= 2; b = b[2:] {
		units = append(units, uint16(b[0])<<8|uint16(b[1]))
	}
	return string(utf16.Decode(units))
}
