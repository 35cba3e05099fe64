package fontfile

import (
	"encoding/binary"
	"iter"
	"maps"
	"slices"
	"strings"
)

// A TrueType is a font program with TrueType outlines (ISO/IEC 14496-22).
type TrueType struct {
	tables map[string][]byte
	glyphs int
	loca   []int // offsets in glyf, one more than glyphs
	cmaps  []charMap
	names  map[string][]int // glyphs by name, from the table post
}

// A charMap is a subtable of cmap.
type charMap struct {
	platform, encoding int
	glyph              map[int]int // by code
}

// ParseTrueType parses a font. The result aliases b.
func ParseTrueType(b []byte) (*TrueType, error) {
	if v := u32(b, 0); len(b) < 12 || v != 0x00010000 && v != 0x74727565 {
		return nil, ErrFormat
	}
	tables := make(map[string][]byte)
	n := u16(b, 4)
	for i := range n {
		at := 12 + 16*i
		if at+16 > len(b) {
			return nil, ErrFormat
		}
		off, length := u32(b, at+8), u32(b, at+12)
		if off > len(b) {
			continue // irrelevant platform
		}
		tables[string(b[at:at+4])] = b[off:min(len(b), off+length)]
	}
	return NewTrueType(tables)
}

// NewTrueType returns a font with the given tables, by name. Tables for other purposes
// than outlines may be missing.
func NewTrueType(tables map[string][]byte) (*TrueType, error) {
	t := &TrueType{tables: tables}
	head, maxp, hhea := t.tables["head"], t.tables["maxp"], t.tables["hhea"]
	if len(head) < 54 || len(maxp) < 6 || len(hhea) < 36 {
		return nil, ErrFormat
	}
	t.glyphs = u16(maxp, 4)
	loca, glyf := t.tables["loca"], t.tables["glyf"]
	long := u16(head, 50) != 0
	for i := range t.glyphs + 1 {
		var off int
		switch {
		case long && 4*i+4 <= len(loca):
			off = u32(loca, 4*i)
		case !long && 2*i+2 <= len(loca):
			off = 2 * u16(loca, 2*i)
		default:
			return nil, ErrFormat
		}
		if off > len(glyf) || i > 0 && off < t.loca[i-1] {
			return nil, ErrFormat
		}
		t.loca = append(t.loca, off)
	}
	if t.glyphs == 0 {
		return nil, ErrFormat
	}
	if err := t.readCmap(); err != nil {
		return nil, err
	}
	t.readPost()
	return t, nil
}

// readCmap reads the subtables that map character codes to glyphs (OpenType, cmap).
func (t *TrueType) readCmap() error {
	b := t.tables["cmap"]
	budget := 4 * maxGlyphs // entries in all subtables together
	for i := range min(u16(b, 2), 32) {
		at := 4 + 8*i
		off := u32(b, at+4)
		if at+8 > len(b) || off+6 > len(b) {
			continue
		}
		m := charMap{u16(b, at), u16(b, at+2), make(map[int]int)}
		entries := cmapFormat(b[off:])
		if entries == nil {
			// Other formats are for characters for which PDF fonts have no codes, or
			// viewers cannot read them either.
			if m.platform == 3 && m.encoding <= 1 || m.platform == 1 {
				return ErrFormat
			}
			entries = func(func(int, int) bool) {}
		}
		for code, glyph := range entries {
			if glyph != 0 {
				m.glyph[code] = glyph
			}
			if budget--; budget <= 0 {
				return ErrFormat
			}
		}
		t.cmaps = append(t.cmaps, m)
	}
	return nil
}

// cmapFormat returns the codes and glyphs of a subtable, or nil for an unknown
// format. Glyph 0 means no glyph.
func cmapFormat(s []byte) iter.Seq2[int, int] {
	switch u16(s, 0) {
	case 0:
		return byteEntries(s)
	case 4:
		return segmentEntries(s)
	case 6:
		return trimmedEntries(s)
	case 12:
		return groupEntries(s)
	}
	return nil
}

// byteEntries returns the entries of format 0: one glyph for each byte.
func byteEntries(s []byte) iter.Seq2[int, int] {
	return func(yield func(code, glyph int) bool) {
		for c := range min(256, len(s)-6) {
			if !yield(c, int(s[6+c])) {
				return
			}
		}
	}
}

// segmentEntries returns the entries of format 4: segments of codes. Each has a
// difference to the glyph numbers, or an offset to a list of glyphs.
func segmentEntries(s []byte) iter.Seq2[int, int] {
	return func(yield func(code, glyph int) bool) {
		segments := u16(s, 6) / 2
		for k := range segments {
			end, start := u16(s, 14+2*k), u16(s, 16+2*segments+2*k)
			delta, at := u16(s, 16+4*segments+2*k), 16+6*segments+2*k
			offset := u16(s, at)
			for c := start; c <= end && c != 0xffff; c++ {
				g := c + delta
				if offset != 0 {
					if g = u16(s, at+offset+2*(c-start)); g != 0 {
						g += delta
					}
				}
				if !yield(c, g&0xffff) {
					return
				}
			}
		}
	}
}

// trimmedEntries returns the entries of format 6: a list of glyphs for
// consecutive codes.
func trimmedEntries(s []byte) iter.Seq2[int, int] {
	return func(yield func(code, glyph int) bool) {
		first := u16(s, 6)
		for k := range u16(s, 8) {
			if !yield(first+k, u16(s, 10+2*k)) {
				return
			}
		}
	}
}

// groupEntries returns the entries of format 12: groups of consecutive codes and
// glyphs.
func groupEntries(s []byte) iter.Seq2[int, int] {
	return func(yield func(code, glyph int) bool) {
		for k := range min(u32(s, 12), len(s)/12) {
			start, end, glyph := u32(s, 16+12*k), u32(s, 20+12*k), u32(s, 24+12*k)
			for c := start; c <= end; c++ {
				if !yield(c, glyph+c-start) {
					return
				}
			}
		}
	}
}

// readPost reads the glyph names that are not in the Macintosh order.
func (t *TrueType) readPost() {
	b := t.tables["post"]
	if u32(b, 0) != 0x00020000 {
		return
	}
	t.names = make(map[string][]int)
	n := u16(b, 32)
	var own []string
	for at := 34 + 2*n; at < len(b); {
		k := int(b[at])
		if at+1+k > len(b) {
			break
		}
		own = append(own, string(b[at+1:at+1+k]))
		at += 1 + k
	}
	mac := strings.Fields(macText)
	for g := range min(n, t.glyphs) {
		i := u16(b, 34+2*g)
		switch {
		case i < len(mac):
			t.names[mac[i]] = append(t.names[mac[i]], g)
		case i-258 >= 0 && i-258 < len(own):
			t.names[own[i-258]] = append(t.names[own[i-258]], g)
		}
	}
}

// ForCode returns every glyph that a viewer could show for a code of a simple
// font, regardless of the encoding. It looks the code up in all cmap subtables,
// by its characters in every encoding, and by name, which may be "". known
// reports whether these are all: a viewer may know other names.
func (t *TrueType) ForCode(code byte, name string) (glyphs []int, known bool) {
	c := int(code)
	glyphs = append(glyphs, c)
	chars := Chars(code)
	names := []string{StandardName(code)}
	var named rune = -1
	if name != "" {
		names = append(names, name)
		if r, ok := Char(name); ok {
			chars, named = append(chars, r), r
		}
		// No name of the Adobe Glyph List has an underscore: it joins the names of a
		// ligature. Some programs make up others, such as no_break_space.
		for part := range strings.SplitSeq(name, "_") {
			if r, ok := Char(part); ok && part != name {
				chars = append(chars, r)
			}
		}
	}
	for _, r := range chars {
		names = append(names, Names(r)...)
	}
	for _, m := range t.cmaps {
		for _, k := range []int{c, 0xf000 + c, 0xf100 + c, 0xf200 + c} {
			glyphs = append(glyphs, m.glyph[k])
		}
		for _, r := range chars {
			glyphs = append(glyphs, m.glyph[int(r)])
			if m.platform == 1 {
				if b, ok := macCode(r); ok {
					glyphs = append(glyphs, m.glyph[int(b)])
				}
			}
		}
	}
	for _, s := range names {
		glyphs = append(glyphs, t.names[s]...)
	}
	return glyphs, name == "" || named >= 0 || len(t.names[name]) > 0 || strings.Contains(name, "_")
}

// neededTables lists the tables that a font in a PDF file needs (ISO 32000-2,
// 9.9.1).
var neededTables = []string{"OS/2", "cvt ", "fpgm", "glyf", "head", "hhea", "hmtx", "loca", "maxp", "prep"}

// Subset writes the font with the outlines of the given glyphs, their components
// and glyph 0. Other glyphs become empty; nil glyphs means all. It drops tables
// that viewers do not need. If lookup is set, the tables that map codes and
// names to glyphs stay.
func (t *TrueType) Subset(glyphs map[int]bool, lookup bool) ([]byte, error) {
	keep := make([]bool, t.glyphs)
	var visit func(g, depth int) error
	visit = func(g, depth int) error {
		if g < 0 || g >= t.glyphs || keep[g] {
			return nil
		}
		if depth > 32 {
			return ErrFormat
		}
		keep[g] = true
		parts, err := t.components(g)
		if err != nil {
			return err
		}
		for _, p := range parts {
			if err := visit(p, depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	if glyphs == nil {
		for g := range keep {
			keep[g] = true
		}
	} else {
		for _, g := range append([]int{0}, slices.Sorted(maps.Keys(glyphs))...) {
			if err := visit(g, 0); err != nil {
				return nil, err
			}
		}
	}
	out := make(map[string][]byte)
	for _, name := range neededTables {
		if b, ok := t.tables[name]; ok {
			out[name] = b
		}
	}
	if lookup {
		for _, name := range []string{"cmap", "post"} {
			if b, ok := t.tables[name]; ok {
				out[name] = b
			}
		}
	}
	var glyf []byte
	loca := []int{0}
	for g, k := range keep {
		if k {
			glyf = append(glyf, t.tables["glyf"][t.loca[g]:t.loca[g+1]]...)
			for len(glyf)%4 != 0 {
				glyf = append(glyf, 0)
			}
		}
		loca = append(loca, len(glyf))
	}
	var offsets []byte
	long := len(glyf) > 2*0xffff
	for _, off := range loca {
		if long {
			offsets = put32(offsets, off)
		} else {
			offsets = put16(offsets, off/2)
		}
	}
	head := slices.Clone(out["head"])
	head[50], head[51] = 0, 0
	if long {
		head[51] = 1
	}
	if len(glyf) == 0 {
		glyf = make([]byte, 4) // viewers treat an empty table as missing
	}
	out["head"], out["glyf"], out["loca"], out["hmtx"] = head, glyf, offsets, t.metrics(keep)
	return assemble(u32Bytes(0x00010000), out), nil
}

// metrics returns hmtx with zeros for dropped glyphs.
func (t *TrueType) metrics(keep []bool) []byte {
	b := slices.Clone(t.tables["hmtx"])
	long := u16(t.tables["hhea"], 34)
	for g, k := range keep {
		if k || g == long-1 { // the last advance applies to all following glyphs
			continue
		}
		from, to := 4*g, 4*g+4
		if g >= long {
			from = 4*long + 2*(g-long)
			to = from + 2
		}
		if to <= len(b) {
			clear(b[from:to])
		}
	}
	return b
}

// components returns the components of a composite glyph.
func (t *TrueType) components(g int) ([]int, error) {
	b := t.tables["glyf"][t.loca[g]:t.loca[g+1]]
	if len(b) < 10 || i16(b, 0) >= 0 {
		return nil, nil
	}
	var out []int
	for at := 10; ; {
		if at+4 > len(b) {
			return nil, ErrFormat
		}
		flags := u16(b, at)
		out = append(out, u16(b, at+2))
		at += 4
		if flags&0x0001 != 0 { // ARG_1_AND_2_ARE_WORDS
			at += 4
		} else {
			at += 2
		}
		switch {
		case flags&0x0008 != 0: // WE_HAVE_A_SCALE
			at += 2
		case flags&0x0040 != 0: // WE_HAVE_AN_X_AND_Y_SCALE
			at += 4
		case flags&0x0080 != 0: // WE_HAVE_A_TWO_BY_TWO
			at += 8
		}
		if flags&0x0020 == 0 { // MORE_COMPONENTS
			return out, nil
		}
	}
}

func u32Bytes(v int) []byte { return put32(nil, v) }

// assemble writes a font file from tables (ISO/IEC 14496-22, 4.3).
func assemble(version []byte, tables map[string][]byte) []byte {
	n := len(tables)
	power, log := 1, 0
	for power*2 <= n {
		power, log = power*2, log+1
	}
	out := put16(slices.Clone(version), n)
	out = put16(put16(put16(out, 16*power), log), 16*n-16*power)
	at := 12 + 16*n
	var body []byte
	headAt := -1
	for _, name := range slices.Sorted(maps.Keys(tables)) {
		b := tables[name]
		if name == "head" {
			b = slices.Clone(b)
			clear(b[8:12])
			headAt = at + len(body)
		}
		out = append(out, name...)
		out = put32(put32(put32(out, int(checksum(b))), at+len(body)), len(b))
		body = append(body, b...)
		for len(body)%4 != 0 {
			body = append(body, 0)
		}
	}
	out = append(out, body...)
	if headAt >= 0 {
		binary.BigEndian.PutUint32(out[headAt+8:], 0xb1b0afba-checksum(out))
	}
	return out
}

func checksum(b []byte) uint32 {
	var sum uint32
	for i := 0; i < len(b); i += 4 {
		var w [4]byte
		copy(w[:], b[i:])
		sum += binary.BigEndian.Uint32(w[:])
	}
	return sum
}
