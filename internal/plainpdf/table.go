// Package plainpdf reads the objects of PDF files as programs write them in one go: with one classic
// cross-reference table, one generation of objects and no encryption. LibreOffice and Chromium write
// such files. It does not repair anything: a file of another kind is [ErrUnknown].
package plainpdf

import (
	"bytes"
	"errors"
	"io"
)

// ErrUnknown means that a file is not of the kind that this package reads.
var ErrUnknown = errors.New("plainpdf: a file of another kind")

// A Table says where the objects of a file are.
type Table struct {
	Objects []int64 // offsets, by object number; 0 if the number is not in use
	Trailer Dict
	Start   int64 // the offset of the table, at which the last object ends
}

// entrySize is the number of bytes of an entry of the table.
const entrySize = 20

// maxObjects limits the number of objects: 8 bytes of memory each, and 20 for the table.
const maxObjects = 1 << 21

// maxTable limits the bytes of the table and the trailer.
const maxTable = entrySize*maxObjects + 1<<20

// ReadTable reads the cross-reference table and the trailer of a file of size bytes.
func ReadTable(r io.ReaderAt, size int64) (Table, error) {
	var t Table
	tail, err := read(r, max(0, size-1024), size)
	if err != nil {
		return t, err
	}
	const end = "startxref"
	at := bytes.LastIndex(tail, []byte(end))
	if at < 0 {
		return t, ErrUnknown
	}
	s := Scanner{B: tail[at+len(end):]}
	n, ok := s.Integer()
	if !ok || n >= size {
		return t, ErrUnknown
	}
	t.Start = n
	b, err := read(r, t.Start, size)
	if err != nil {
		return t, err
	}
	s = Scanner{B: b}
	if s.Keyword() != "xref" {
		return t, ErrUnknown
	}
	for {
		s.Space()
		if s.Next("trailer") {
			break
		}
		if err := t.section(&s, size); err != nil {
			return t, err
		}
	}
	if t.Trailer, ok = s.Dict(); !ok {
		return t, ErrUnknown
	}
	for _, k := range []string{"Encrypt", "Prev", "XRefStm"} {
		if t.Trailer.Get(k) != nil {
			return t, ErrUnknown
		}
	}
	return t, nil
}

// section reads the entries of objects with consecutive numbers.
func (t *Table) section(s *Scanner, size int64) error {
	first, ok1 := s.Integer()
	count, ok2 := s.Integer()
	if !ok1 || !ok2 || first+count > min(maxObjects, size/entrySize) {
		return ErrUnknown
	}
	t.Objects = append(t.Objects, make([]int64, max(0, int(first+count)-len(t.Objects)))...)
	for i := range count {
		at, ok1 := s.Integer()
		generation, ok2 := s.Integer()
		kind := s.Keyword()
		switch {
		case !ok1 || !ok2:
			return ErrUnknown
		case kind == "n" && generation == 0 && at > 0 && at < t.Start:
			t.Objects[first+i] = at
		case kind != "f":
			return ErrUnknown
		}
	}
	return nil
}

// read returns the bytes from offset at to end.
func read(r io.ReaderAt, at, end int64) ([]byte, error) {
	if end-at > maxTable {
		return nil, ErrUnknown
	}
	b := make([]byte, end-at)
	_, err := r.ReadAt(b, at)
	if errors.Is(err, io.EOF) {
		err = nil // at the end of the file
	}
	return b, err
}
