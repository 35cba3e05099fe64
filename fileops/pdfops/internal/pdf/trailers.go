package pdf

import (
	"bytes"
	"context"
	"strconv"

	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"
)

// This file finds the encryption dictionary in the raw bytes of a file, because
// pdfcpu returns nothing of a file that it cannot decrypt. pdfcpu also treats a
// file as unencrypted if its encryption dictionary is a direct object.

const (
	// dictWindow is the number of bytes that are parsed for one dictionary.
	dictWindow = 16 << 10

	// mostTries limits the trailers, and the encryption dictionaries, that are
	// parsed: a hostile file may have one every ten bytes. A normal file has one
	// trailer for each time it was saved.
	mostTries = 1000
)

// FindSecurity returns the encryption of a file, or nil if it has none. It checks
// ctx between the dictionaries that it parses.
func FindSecurity(ctx context.Context, data []byte) (*Security, error) {
	if !bytes.Contains(data, []byte("/Encrypt")) {
		return nil, nil
	}
	s := trailerSearch{ctx: ctx, data: data}
	trailers, ok := s.linked()
	if !ok {
		// The table is damaged. pdfcpu and qpdf may recover any part of the file, so
		// any trailer counts. The last one is the newest.
		trailers = s.scattered()
	}
	if s.err != nil {
		return nil, s.err
	}
	sec, err := s.security(trailers)
	if sec != nil {
		sec.newest = sec.newest && ok && s.base == 0
	}
	return sec, err
}

// A trailerSearch searches for trailers and the objects that they refer to.
type trailerSearch struct {
	ctx  context.Context
	data []byte
	base int   // offset of the document in its file
	err  error // why the search stopped
}

// dict parses the dictionary at an offset. It returns nil if there is no
// dictionary.
func (s *trailerSearch) dict(at int) types.Dict {
	if s.err != nil {
		return nil
	}
	if s.ctx.Err() != nil {
		s.err = context.Cause(s.ctx)
		return nil
	}
	l := Lexer{b: s.data[at:min(len(s.data), at+dictWindow)]}
	l.skipSpace() // and comments
	if !bytes.HasPrefix(l.b[l.pos:], []byte("<<")) {
		return nil
	}
	o, err := parseObject(s.ctx, string(l.b[l.pos:]))
	d, ok := o.(types.Dict)
	if err != nil || !ok {
		return nil
	}
	return d
}

// linked returns the trailers that the file refers to, from the newest to the
// oldest (ISO 32000-2, 7.5.5 and 7.5.6). It ignores data elsewhere that looks
// like a trailer, for example in an attached PDF file. It reports whether the
// newest trailer is at the stated offset and has a catalog.
func (s *trailerSearch) linked() ([]types.Dict, bool) {
	at, ok := lastTable(s.data)
	// Offsets may count from the header, which may not be at the start, or from the
	// last header of several concatenated files.
	for _, base := range []int{0, bytes.Index(s.data[:min(len(s.data), 1024)], []byte("%PDF-")), bytes.LastIndex(s.data, []byte("%PDF-"))} {
		if base >= 0 && s.section(base+at) != nil {
			s.base = base
			break
		}
	}
	var out []types.Dict
	seen := make(map[int]bool)
	for ok && !seen[at] && len(out) < mostTries {
		seen[at] = true
		d := s.section(s.base + at)
		if d == nil {
			break
		}
		out = append(out, d)
		var prev types.Integer
		prev, ok = d["Prev"].(types.Integer)
		at = prev.Value()
	}
	return out, len(out) > 0 && out[0]["Root"] != nil
}

// lastTable returns the offset after the last startxref.
func lastTable(data []byte) (int, bool) {
	const mark = "startxref"
	i := bytes.LastIndex(data, []byte(mark))
	if i < 0 {
		return 0, false
	}
	return number(data[i+len(mark):])
}

// section returns the trailer of the cross-reference section at an offset, or
// nil.
func (s *trailerSearch) section(at int) types.Dict {
	if at < 0 || at >= len(s.data) {
		return nil
	}
	rest := bytes.TrimLeft(s.data[at:], " \t\r\n\f\x00")
	at = len(s.data) - len(rest)
	if bytes.HasPrefix(rest, []byte("xref")) {
		const mark = "trailer"
		i := bytes.Index(rest, []byte(mark))
		if i < 0 || len(bytes.Trim(rest[len("xref"):i], "0123456789nf \t\r\n\f\x00")) > 0 {
			return nil
		}
		return s.dict(at + i + len(mark))
	}
	head := rest[:min(len(rest), 40)]
	i := bytes.Index(head, []byte("obj"))
	if i < 0 || len(bytes.Trim(head[:i], "0123456789 \t\r\n")) > 0 {
		return nil
	}
	if d := s.dict(at + i + len("obj")); d != nil && d["Type"] == types.Name("XRef") {
		return d
	}
	return nil
}

// scattered returns all dictionaries of the file that look like trailers, the
// last one first.
func (s *trailerSearch) scattered() []types.Dict {
	var out []types.Dict
	last := func(end int, mark string) int { return bytes.LastIndex(s.data[:max(0, end)], []byte(mark)) }
	const inTable, inStream = "trailer", "/XRef"
	table, stream := last(len(s.data), inTable), last(len(s.data), inStream)
	for tries := 0; max(table, stream) >= 0 && tries < mostTries && s.err == nil; tries++ {
		var at int
		if table > stream {
			at = table + len(inTable)
			table = last(table, inTable)
		} else {
			at = dictBefore(s.data, stream)
			stream = last(stream, inStream)
		}
		if at < 0 || !bytes.Contains(s.data[at:min(len(s.data), at+dictWindow)], []byte("/Encrypt")) {
			continue
		}
		if d := s.dict(at); d != nil {
			out = append(out, d)
		}
	}
	return out
}

// security returns the encryption of the first trailer whose encryption is
// complete. If there is none, it returns the error of the first trailer.
func (s *trailerSearch) security(trailers []types.Dict) (*Security, error) {
	var first error
	var broken *Security
	wanted := make(map[int]types.Dict) // encryption dictionaries by object number
	for _, d := range trailers {
		if ref, ok := d["Encrypt"].(types.IndirectRef); ok {
			wanted[ref.ObjectNumber.Value()] = nil
		}
	}
	s.find(wanted)
	for i, d := range trailers {
		if d["Encrypt"] == nil || d["Root"] == nil {
			continue
		}
		dict, _ := d["Encrypt"].(types.Dict)
		if ref, ok := d["Encrypt"].(types.IndirectRef); ok {
			dict = wanted[ref.ObjectNumber.Value()]
		}
		sec, err := newSecurity(dict, d)
		if sec != nil {
			sec.base, sec.newest = s.base, i == 0
		}
		if err == nil {
			return sec, nil
		}
		if first == nil {
			first, broken = err, sec
		}
	}
	if s.err != nil {
		return nil, s.err
	}
	return broken, first
}

// find fills in the encryption dictionaries that are indirect objects, in one
// pass over the file. They are never in object streams. If several have the same
// number, the last and newest one counts.
func (s *trailerSearch) find(wanted map[int]types.Dict) {
	missing, tries := len(wanted), 0
	end := len(s.data)
	for n := 1; missing > 0 && tries < mostTries && s.err == nil; n++ {
		i := bytes.LastIndex(s.data[:end], []byte("obj"))
		if i < 0 {
			return
		}
		end = i
		if n%(1<<16) == 0 && s.ctx.Err() != nil {
			s.err = context.Cause(s.ctx)
			return
		}
		head := bytes.TrimRight(s.data[max(0, i-40):i], " \t\r\n\f\x00")
		head = bytes.TrimRight(bytes.TrimRight(head, "0123456789"), " \t\r\n\f\x00")
		nr, err := strconv.Atoi(string(lastDigits(head)))
		if err != nil {
			continue
		}
		if known, ok := wanted[nr]; !ok || known != nil {
			continue
		}
		tries++
		if d := s.dict(i + len("obj")); d != nil && d["Filter"] != nil {
			wanted[nr] = d
			missing--
		}
	}
}

// number returns the number at the start of b, after white space.
func number(b []byte) (int, bool) {
	n, err := strconv.Atoi(string(firstDigits(bytes.TrimLeft(b[:min(len(b), 40)], " \t\r\n\f\x00"))))
	return n, err == nil
}

// dictBefore returns the start of the dictionary, in an indirect object, that
// contains the offset at.
func dictBefore(data []byte, at int) int {
	from := max(0, at-8<<10)
	obj := bytes.LastIndex(data[from:at], []byte("obj"))
	if obj < 0 {
		return -1
	}
	i := bytes.Index(data[from+obj:at], []byte("<<"))
	if i < 0 {
		return -1
	}
	return from + obj + i
}
