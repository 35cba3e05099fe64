package pdf

import (
	"bytes"
	"context"
	"crypto/aes"
	"errors"
	"io"
	"slices"
	"strconv"

	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"
)

// This file reads large documents without their streams. pdfcpu copies the content of
// every stream into memory. For a mapped file that it must read, it gets a view of the file in which long
// streams have a length of a few bytes; afterwards, Raw of these streams becomes a slice
// of the mapping. Object numbers, offsets and everything else are those of the file.

// A Mapping is a file in the address space of the process. The kernel reads the parts
// that are used, and drops them again. The file must not be truncated while it is
// mapped.
type Mapping struct {
	data []byte
	read int // bytes used since the last release
}

const (
	// mappedStream is the smallest content of a stream that stays in the file.
	mappedStream = 4 << 10

	// window is the number of bytes of a mapping that stay in memory after use.
	window = 32 << 20
)

// Map maps a file. It fails with errors.ErrUnsupported if the system cannot map files,
// or if the file does not fit into the address space.
func Map(path string) (*Mapping, error) {
	data, err := mapFile(path)
	if err != nil {
		return nil, err
	}
	return &Mapping{data: data}, nil
}

// Close unmaps the file. Documents that were read from it cannot be used afterwards.
func (m *Mapping) Close() error {
	if m == nil || m.data == nil {
		return nil
	}
	data := m.data
	m.data = nil
	return unmapFile(data)
}

// used reports that n bytes of the mapping were read.
func (m *Mapping) used(n int) {
	if m == nil {
		return
	}
	if m.read += n; m.read > window {
		m.read = 0
		releaseMapped(m.data)
	}
}

// used reports that n bytes of streams were read.
func (d *Document) used(n int) {
	for _, m := range d.Files {
		m.used(n)
	}
}

// Close unmaps the files of the document.
func (d *Document) Close() error {
	if d == nil {
		return nil
	}
	var errs []error
	for _, m := range d.Files {
		errs = append(errs, m.Close())
	}
	d.Files = nil
	return errors.Join(errs...)
}

// A source is the content of a file.
type source struct {
	data []byte
	file *Mapping // that data is in; nil if data is in memory
}

// index returns the offset of the first key from an offset on, or -1.
func (s source) index(from int, key string) int {
	if s.file == nil {
		if i := bytes.Index(s.data[from:], []byte(key)); i >= 0 {
			return from + i
		}
		return -1
	}
	for from < len(s.data) {
		end := min(len(s.data), from+window)
		if i := bytes.Index(s.data[from:end], []byte(key)); i >= 0 {
			s.file.used(i)
			return from + i
		}
		s.file.used(end - from)
		if end == len(s.data) {
			break
		}
		from = end - len(key) + 1
	}
	return -1
}

// A patch gives a stream another length in the view for pdfcpu.
type patch struct {
	at         int // of the text after the key /Length of the dictionary
	text       []byte
	start, end int // of the content of the stream
}

// A patched is a reader of a source with patches, in the order of their offsets.
type patched struct {
	source
	patches []patch
	pos     int64
}

func (p *patched) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += p.pos
	case io.SeekEnd:
		offset += int64(len(p.data))
	}
	if offset < 0 {
		return 0, errors.New("seek before the start")
	}
	p.pos = offset
	return offset, nil
}

func (p *patched) Read(b []byte) (int, error) {
	if p.pos >= int64(len(p.data)) {
		return 0, io.EOF
	}
	from := int(p.pos)
	n := copy(b, p.data[from:])
	p.file.used(n)
	p.pos += int64(n)
	for _, c := range p.patches[p.search(from):] {
		if c.at >= from+n {
			break
		}
		// Either end of the text may be outside of b.
		for i, v := range c.text {
			if at := c.at + i - from; at >= 0 && at < n {
				b[at] = v
			}
		}
	}
	return n, nil
}

// search returns the index of the first patch whose text ends after an offset.
func (p *patched) search(at int) int {
	i, _ := slices.BinarySearchFunc(p.patches, at, func(c patch, at int) int {
		if c.at+len(c.text) <= at {
			return -1
		}
		return 1
	})
	return i
}

// restore replaces the content that pdfcpu read of a stream by that of the file.
func (p *patched) restore(s *types.StreamDict) error {
	at := int(s.StreamOffset)
	if at <= 0 || at > len(p.data) {
		return nil
	}
	i, _ := slices.BinarySearchFunc(p.patches, at, func(c patch, at int) int { return c.end - at })
	if i < len(p.patches) && p.patches[i].start == at {
		raw := p.data[at:p.patches[i].end:p.patches[i].end]
		n := int64(len(raw))
		s.Raw, s.StreamLength, s.StreamLengthObjNr = raw, &n, nil
		s.Dict["Length"] = types.Integer(n)
		return nil
	}
	if i < len(p.patches) && p.patches[i].at < at {
		return errors.New("a stream starts at an unexpected offset")
	}
	// Content with something that looks like a stream, such as an attached PDF file.
	if n := len(s.Raw); n > 0 && at+n <= len(p.data) {
		if j := p.search(at); j < len(p.patches) && p.patches[j].at < at+n {
			s.Raw = p.data[at : at+n : at+n]
		}
	}
	return nil
}

// patches finds the long streams of the file. A stream that it misses is read into
// memory.
func (s source) patches(ctx context.Context) ([]patch, error) {
	const key = "stream"
	var out []patch
	for at := 0; ; {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		i := s.index(at, key)
		if i < 0 {
			return out, nil
		}
		if c, ok := s.patch(ctx, at, i); ok {
			if c.end-c.start >= mappedStream {
				out = append(out, c)
			}
			at = c.end
		} else {
			at = i + len(key)
		}
	}
}

// patch returns the patch for the stream with the keyword at an offset, whose object is
// after another offset. It reports false unless the length of the stream is certain.
func (s source) patch(ctx context.Context, after, keyword int) (c patch, ok bool) {
	const length = "/Length"
	start := keyword + len("stream")
	for start < len(s.data) && s.data[start] == ' ' {
		start++
	}
	switch rest := s.data[start:]; {
	case bytes.HasPrefix(rest, []byte("\r\n")):
		start += 2
	case bytes.HasPrefix(rest, []byte("\n")), bytes.HasPrefix(rest, []byte("\r")):
		start++
	default:
		return c, false
	}
	from := max(after, keyword-dictWindow)
	obj := bytes.LastIndex(s.data[from:keyword], []byte("obj"))
	if obj < 0 {
		return c, false
	}
	from += obj + len("obj")
	text := s.data[from:keyword]
	if n := len(bytes.TrimRight(text, " \t\r\n\f\x00")); n < 2 || string(text[n-2:n]) != ">>" || bytes.IndexByte(text, '%') >= 0 {
		return c, false
	}
	// The only key of that name. Others begin with it, such as those of fonts.
	at := -1
	for i := 0; ; {
		j := bytes.Index(text[i:], []byte(length))
		if j < 0 {
			break
		}
		i += j + len(length)
		if i < len(text) && bytes.IndexByte([]byte(" \t\r\n"), text[i]) >= 0 {
			if at >= 0 {
				return c, false
			}
			at = i
		}
	}
	if at < 0 {
		return c, false
	}
	value := bytes.TrimLeft(text[at:], " \t\r\n")
	number := firstDigits(value)
	n, err := strconv.Atoi(string(number))
	if err != nil || n < 0 {
		return c, false
	}
	end := at + len(text[at:]) - len(value) + len(number)
	if m := referenceTail(value[len(number):]); m > 0 {
		end += m
		if n, ok = s.lengthAfter(start, n); !ok {
			return c, false
		}
	}
	if n > len(s.data)-start || !ended(s.data[start+n:]) || end-at < 2 {
		return c, false
	}
	if n >= mappedStream {
		o, err := parseObject(ctx, string(bytes.TrimLeft(text, " \t\r\n")))
		d, _ := o.(types.Dict)
		if err != nil || d == nil || d["Length"] == nil || d["F"] != nil || d["Type"] == types.Name("ObjStm") || d["Type"] == types.Name("XRef") {
			return c, false
		}
	}
	c = patch{at: from + at, text: bytes.Repeat([]byte(" "), end-at), start: start, end: start + n}
	c.text[1] = '1'
	return c, true
}

// referenceTail returns the length of " 0 R" at the start of b, or 0.
func referenceTail(b []byte) int {
	rest := bytes.TrimLeft(b, " \t\r\n")
	if len(rest) == len(b) {
		return 0
	}
	digits := firstDigits(rest)
	tail := bytes.TrimLeft(rest[len(digits):], " \t\r\n")
	if len(digits) == 0 || len(tail) == len(rest)-len(digits) || !bytes.HasPrefix(tail, []byte("R")) {
		return 0
	}
	return len(b) - len(tail) + 1
}

// lengthAfter returns the length of the stream that starts at an offset, if it is in the
// object with the number nr directly after the stream.
func (s source) lengthAfter(start, nr int) (int, bool) {
	const mark = "endstream"
	i := s.index(start, mark)
	if i < 0 {
		return 0, false
	}
	const tail = 200 // bytes of endobj and the start of the next object
	got := bytes.Fields(s.data[i+len(mark) : min(len(s.data), i+len(mark)+tail)])
	if len(got) < 5 || string(got[0]) != "endobj" || string(got[1]) != strconv.Itoa(nr) || string(got[3]) != "obj" {
		return 0, false
	}
	n, err := strconv.Atoi(string(got[4]))
	return n, err == nil && n >= 0
}

// ended reports whether a stream ends at the start of b.
func ended(b []byte) bool {
	b = b[:min(len(b), 16)]
	return bytes.HasPrefix(bytes.TrimLeft(b, "\r\n "), []byte("endstream"))
}

// markCut marks the streams of d, which was read from data, that do not end where their entry Length
// says: pdfcpu may have cut them.
func (d *Document) markCut(data []byte) {
	for nr, o := range d.Objects {
		s, ok := o.(*types.StreamDict)
		if !ok {
			continue
		}
		start := int(s.StreamOffset)
		if start <= 0 || start > len(data) || !slices.ContainsFunc(d.lengths(s), func(n int) bool {
			return n >= 0 && n <= len(data)-start && ended(data[start+n:])
		}) {
			d.skipped[nr] = true
		}
	}
}

// lengths returns the possible lengths of a stream in its file. pdfcpu replaces Length when it
// decrypts a stream. AES makes content longer, by the initialization vector and padding, which some
// programs leave out (ISO 32000-2, 7.6.3.1).
func (d *Document) lengths(s *types.StreamDict) []int {
	if !d.Encrypted {
		return []int{d.Integer(s.Dict["Length"])}
	}
	n := len(s.Raw)
	whole := (n + aes.BlockSize - 1) / aes.BlockSize * aes.BlockSize
	return []int{n, aes.BlockSize + whole, aes.BlockSize + whole + aes.BlockSize}
}

// ParseMapped is [ParseComplete] for a mapped file. Long streams of the document are
// parts of the mapping, which the document then owns. It fails with ErrMapped if the
// file is encrypted.
func ParseMapped(ctx context.Context, m *Mapping, mostPages int) (*Document, error) {
	s := source{m.data, m}
	encrypts := s.index(0, "/Encrypt") >= 0
	var d *Document
	if !encrypts {
		d = s.quick(ctx, nil)
	}
	if d == nil {
		var err error
		if d, err = s.patiently(ctx, encrypts); err != nil {
			return nil, err
		}
	}
	d, err := d.complete(mostPages)
	if d != nil {
		d.Files = []*Mapping{m}
	}
	return d, err
}

// patiently makes pdfcpu read a mapped file. encrypts says that it may be encrypted.
func (s source) patiently(ctx context.Context, encrypts bool) (*Document, error) {
	if s.hasHugeNumber() {
		return nil, errTooLarge
	}
	if encrypts {
		if sec, err := FindSecurity(ctx, s.data); sec != nil || err != nil {
			return nil, ErrMapped
		}
	}
	patches, err := s.patches(ctx)
	if err != nil {
		return nil, err
	}
	view := &patched{source: s, patches: patches}
	view.fixVersion()
	d, err := readView(ctx, view)
	if err == nil {
		d.markCut(s.data)
	}
	return d, err
}

// ErrMapped reports that a file may be encrypted. Encrypted files cannot be read through
// a mapping.
var ErrMapped = errors.New("an encrypted file cannot be mapped")

// fixVersion is [withKnownVersion] as a patch.
func (p *patched) fixVersion() {
	head := p.data[:min(len(p.data), 1024)]
	known := withKnownVersion(head)
	for i := range head {
		if head[i] != known[i] {
			const length = 3
			p.patches = slices.Insert(p.patches, 0, patch{at: i, text: known[i:min(len(known), i+length)], start: -1, end: -1})
			return
		}
	}
}
