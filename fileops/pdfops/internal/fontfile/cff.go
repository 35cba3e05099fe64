package fontfile

import (
	"math"
	"slices"
)

// A CFF is a font program in the Compact Font Format (Adobe Technical Note
// 5176), as embedded in a PDF file: one font, without an OpenType wrapper.
type CFF struct {
	names, strings, global [][]byte
	top                    []operator
	glyphs                 [][]byte // charstrings
	charset                []int    // names (string numbers) or CIDs by glyph
	encoding               map[byte]int
	cid                    bool
	fds                    []fontDict
	fdOf                   []byte // by glyph, for cid
}

// A fontDict holds what charstrings share: a private dictionary and subroutines.
type fontDict struct {
	dict    []operator // of FDArray, nil if the font has no FDArray
	private []operator
	subrs   [][]byte
	has     bool // whether a private dictionary exists
}

// An operator is an entry of a DICT with its operands.
type operator struct {
	op   int // the escape 12 x is 1200 + x
	args []float64
	raw  []byte // the encoded operands
}

const (
	opCharset     = 15
	opEncoding    = 16
	opCharStrings = 17
	opPrivate     = 18
	opSubrs       = 19
	opROS         = 1230
	opFDArray     = 1236
	opFDSelect    = 1237
)

// ParseCFF parses a font. The result aliases b.
func ParseCFF(b []byte) (*CFF, error) {
	if len(b) < 4 || b[0] != 1 {
		return nil, ErrFormat
	}
	c := &CFF{}
	at := int(b[2])
	var tops [][]byte
	for _, to := range []*[][]byte{&c.names, &tops, &c.strings, &c.global} {
		var err error
		if *to, at, err = readIndex(b, at); err != nil {
			return nil, err
		}
	}
	if len(c.names) != 1 || len(tops) != 1 {
		return nil, ErrFormat
	}
	var err error
	if c.top, err = readDict(tops[0]); err != nil {
		return nil, err
	}
	if t, ok := find(c.top, 1206); ok && t != 2 {
		return nil, ErrFormat // Type 1 charstrings
	}
	off, ok := find(c.top, opCharStrings)
	if !ok {
		return nil, ErrFormat
	}
	if c.glyphs, _, err = readIndex(b, off); err != nil {
		return nil, err
	}
	if len(c.glyphs) == 0 || len(c.glyphs) > maxGlyphs {
		return nil, ErrFormat
	}
	_, c.cid = find(c.top, opROS)
	if err := c.readCharset(b); err != nil {
		return nil, err
	}
	if !c.cid {
		fd := fontDict{}
		if err := fd.readPrivate(b, c.top); err != nil {
			return nil, err
		}
		c.fds = []fontDict{fd}
		err := c.readEncoding(b)
		return c, err
	}
	err = c.readFDs(b)
	return c, err
}

// Glyphs returns the number of glyphs in the font.
func (c *CFF) Glyphs() int { return len(c.glyphs) }

// ByCID reports whether CIDs, not names, identify the glyphs.
func (c *CFF) ByCID() bool { return c.cid }

// Name returns the name of a glyph. It is valid only if ByCID is false.
func (c *CFF) Name(glyph int) string {
	if glyph == 0 {
		return ".notdef"
	}
	n := c.charset[glyph]
	if s := standardNames(); n < len(s) {
		return s[n]
	}
	if n -= len(standardNames()); n < len(c.strings) {
		return string(c.strings[n])
	}
	return ""
}

// CID returns the CID of a glyph. It is valid only if ByCID is true.
func (c *CFF) CID(glyph int) int { return c.charset[glyph] }

// Encoded returns the glyph of a code in the font's encoding, or 0.
func (c *CFF) Encoded(code byte) int { return c.encoding[code] }

func (c *CFF) readCharset(b []byte) error {
	n := len(c.glyphs)
	c.charset = append(make([]int, 0, n), 0)
	off, _ := find(c.top, opCharset)
	switch {
	case c.cid && off <= 2: // viewers use CIDs as glyph numbers here
		for g := 1; g < n; g++ {
			c.charset = append(c.charset, g)
		}
		return nil
	case off == 0: // ISOAdobe
		if n > 229 {
			return ErrFormat
		}
		for g := 1; g < n; g++ {
			c.charset = append(c.charset, g)
		}
		return nil
	case off <= 2 || off >= len(b):
		return ErrFormat // Expert
	}
	format := b[off]
	at := off + 1
	for len(c.charset) < n {
		first, left := u16(b, at), 0
		at += 2
		switch format {
		case 0:
		case 1:
			if at >= len(b) {
				return ErrFormat
			}
			left = int(b[at])
			at++
		case 2:
			left = u16(b, at)
			at += 2
		default:
			return ErrFormat
		}
		if at > len(b) {
			return ErrFormat
		}
		for i := 0; i <= left && len(c.charset) < n; i++ {
			c.charset = append(c.charset, first+i)
		}
	}
	return nil
}

func (c *CFF) readEncoding(b []byte) error {
	c.encoding = make(map[byte]int)
	off, _ := find(c.top, opEncoding)
	switch {
	case off == 0: // standard
		byName := make(map[string]int)
		for g := range c.glyphs {
			byName[c.Name(g)] = g
		}
		for code := range 256 {
			if g := byName[StandardName(byte(code))]; g != 0 {
				c.encoding[byte(code)] = g
			}
		}
		return nil
	case off == 1 || off+2 > len(b):
		return ErrFormat // Expert
	}
	at, n := off+2, int(b[off+1])
	glyph := 1
	switch b[off] & 0x7f {
	case 0:
		if at+n > len(b) {
			return ErrFormat
		}
		for _, code := range b[at : at+n] {
			c.encoding[code] = glyph
			glyph++
		}
		at += n
	case 1:
		if at+2*n > len(b) {
			return ErrFormat
		}
		for i := range n {
			for k := range int(b[at+2*i+1]) + 1 {
				c.encoding[byte(int(b[at+2*i])+k)] = glyph
				glyph++
			}
		}
		at += 2 * n
	default:
		return ErrFormat
	}
	if b[off]&0x80 != 0 && at < len(b) {
		for i := range int(b[at]) {
			e := at + 1 + 3*i
			if e+3 > len(b) {
				return ErrFormat
			}
			if g := slices.Index(c.charset, u16(b, e+1)); g > 0 {
				c.encoding[b[e]] = g
			}
		}
	}
	for code, g := range c.encoding {
		if g >= len(c.glyphs) {
			delete(c.encoding, code)
		}
	}
	return nil
}

// readFDs reads the font dictionaries of a CID font, and the assignment of
// glyphs to them.
func (c *CFF) readFDs(b []byte) error {
	off, ok := find(c.top, opFDArray)
	sel, ok2 := find(c.top, opFDSelect)
	if !ok || !ok2 || sel >= len(b) {
		return ErrFormat
	}
	dicts, _, err := readIndex(b, off)
	if err != nil {
		return err
	}
	if len(dicts) == 0 || len(dicts) > 256 {
		return ErrFormat
	}
	for _, raw := range dicts {
		d, err := readDict(raw)
		if err != nil {
			return err
		}
		fd := fontDict{dict: d}
		if err := fd.readPrivate(b, d); err != nil {
			return err
		}
		c.fds = append(c.fds, fd)
	}
	n := len(c.glyphs)
	switch b[sel] {
	case 0:
		if sel+1+n > len(b) {
			return ErrFormat
		}
		c.fdOf = slices.Clone(b[sel+1 : sel+1+n])
	case 3:
		ranges := u16(b, sel+1)
		if sel+5+3*ranges > len(b) {
			return ErrFormat
		}
		c.fdOf = make([]byte, n)
		for i := range ranges {
			at := sel + 3 + 3*i
			for g := u16(b, at); g < min(n, u16(b, at+3)); g++ {
				c.fdOf[g] = b[at+2]
			}
		}
	default:
		return ErrFormat
	}
	for _, fd := range c.fdOf {
		if int(fd) >= len(c.fds) {
			return ErrFormat
		}
	}
	return nil
}

func (f *fontDict) readPrivate(b []byte, dict []operator) error {
	i := slices.IndexFunc(dict, func(o operator) bool { return o.op == opPrivate })
	if i < 0 {
		return nil
	}
	if len(dict[i].args) != 2 {
		return ErrFormat
	}
	size, off := int(dict[i].args[0]), int(dict[i].args[1])
	if size < 0 || off < 0 || size > len(b) || off > len(b)-size {
		return ErrFormat
	}
	var err error
	if f.private, err = readDict(b[off : off+size]); err != nil {
		return err
	}
	f.has = true
	if rel, ok := find(f.private, opSubrs); ok && rel != 0 {
		f.subrs, _, err = readIndex(b, off+rel)
	}
	return err
}

// find returns the first operand of an operator. It reports false if the operand
// is missing or cannot be an offset.
func find(dict []operator, op int) (int, bool) {
	for _, o := range dict {
		if o.op == op && len(o.args) > 0 {
			if v := o.args[0]; v >= 0 && v < math.MaxInt32 {
				return int(v), true
			}
		}
	}
	return 0, false
}

// readIndex reads an INDEX. It returns its items and the offset after it.
func readIndex(b []byte, at int) ([][]byte, int, error) {
	if at < 0 || at+2 > len(b) {
		return nil, 0, ErrFormat
	}
	n := u16(b, at)
	if n == 0 {
		return nil, at + 2, nil
	}
	if at+3 > len(b) {
		return nil, 0, ErrFormat
	}
	size := int(b[at+2])
	start := at + 3
	data := start + (n+1)*size - 1
	if size < 1 || size > 4 || data > len(b) {
		return nil, 0, ErrFormat
	}
	offset := func(i int) int {
		v := 0
		for _, x := range b[start+i*size:][:size] {
			v = v<<8 | int(x)
		}
		return v
	}
	items := make([][]byte, 0, n)
	from := offset(0)
	if from != 1 {
		return nil, 0, ErrFormat
	}
	for i := range n {
		to := offset(i + 1)
		if to < from || to > len(b)-data {
			return nil, 0, ErrFormat
		}
		items = append(items, b[data+from:data+to])
		from = to
	}
	return items, data + from, nil
}

func appendIndex(b []byte, items [][]byte) []byte {
	b = put16(b, len(items))
	if len(items) == 0 {
		return b
	}
	total := 1
	for _, i := range items {
		total += len(i)
	}
	size := 1
	for v := total; v > 255; v >>= 8 {
		size++
	}
	b = append(b, byte(size))
	put := func(v int) {
		for i := size - 1; i >= 0; i-- {
			b = append(b, byte(v>>(8*i)))
		}
	}
	off := 1
	put(off)
	for _, i := range items {
		off += len(i)
		put(off)
	}
	for _, i := range items {
		b = append(b, i...)
	}
	return b
}

func readDict(b []byte) ([]operator, error) {
	var out []operator
	var cur operator
	start := 0
	for i := 0; i < len(b); {
		switch v := b[i]; {
		case v <= 21:
			cur.op = int(v)
			cur.raw = b[start:i]
			i++
			if v == 12 {
				if i >= len(b) {
					return nil, ErrFormat
				}
				cur.op = 1200 + int(b[i])
				i++
			}
			out = append(out, cur)
			cur, start = operator{}, i
		case v == 28:
			cur.args = append(cur.args, float64(i16(b, i+1)))
			i += 3
		case v == 29:
			cur.args = append(cur.args, float64(int32(u32(b, i+1))))
			i += 5
		case v == 30:
			for i++; i < len(b) && b[i]&15 != 15; i++ {
			}
			i++
			cur.args = append(cur.args, math.NaN()) // no real number is used
		case v >= 32 && v <= 246:
			cur.args = append(cur.args, float64(v)-139)
			i++
		case v >= 247 && v <= 254:
			if i+1 >= len(b) {
				return nil, ErrFormat
			}
			n := (float64(v)-247)*256 + float64(b[i+1]) + 108
			if v >= 251 {
				n = -(float64(v)-251)*256 - float64(b[i+1]) - 108
			}
			cur.args = append(cur.args, n)
			i += 2
		default:
			return nil, ErrFormat
		}
		if i > len(b) || len(cur.args) > 513 {
			return nil, ErrFormat
		}
	}
	return out, nil
}

// appendDict writes a DICT. set replaces operands with five-byte integers, so
// that the length is known before their values.
func appendDict(b []byte, dict []operator, set map[int][]int) []byte {
	for _, o := range dict {
		if v, ok := set[o.op]; ok {
			for _, n := range v {
				b = put32(append(b, 29), n)
			}
		} else {
			b = append(b, o.raw...)
		}
		if o.op >= 1200 {
			b = append(b, 12, byte(o.op-1200))
		} else {
			b = append(b, byte(o.op))
		}
	}
	return b
}
