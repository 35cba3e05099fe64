package fontfile

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// CFF converts the font to the Compact Font Format, with the given glyphs, their
// components, and .notdef. Outlines, widths, hints and the encoding stay the
// same.
func (t *Type1) CFF(names map[string]bool) ([]byte, error) {
	programs := make(map[string]glyphProgram)
	steps := 4_000_000
	todo := append([]string{".notdef"}, slices.Sorted(maps.Keys(names))...)
	for len(todo) > 0 {
		name := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if _, done := programs[name]; done || !t.Has(name) {
			continue
		}
		p, err := t.program(name, &steps)
		if err != nil {
			return nil, err
		}
		programs[name] = p
		if len(p.accented) == 4 {
			for _, c := range p.accented[2:] {
				part := StandardName(byte(c))
				if c < 0 || c > 255 || !t.Has(part) {
					return nil, ErrFormat
				}
				todo = append(todo, part)
			}
		}
	}
	c := &CFF{names: [][]byte{[]byte(t.name)}, encoding: make(map[byte]int)}
	// Encoded glyphs come first, so that the encoding is a plain list.
	var order []string
	at := make(map[string]int)
	put := func(name string) {
		if _, ok := programs[name]; ok {
			if _, twice := at[name]; !twice {
				at[name] = len(order)
				order = append(order, name)
			}
		}
	}
	put(".notdef")
	for code := range 256 {
		put(t.encoding[byte(code)])
	}
	for _, name := range t.order {
		put(name)
	}
	for code, name := range t.encoding {
		if g, ok := at[name]; ok && g > 0 {
			c.encoding[code] = g
		}
	}
	for _, name := range order {
		n, ok := standardNumbers()[name]
		if !ok {
			n = len(standardNames()) + len(c.strings)
			c.strings = append(c.strings, []byte(name))
		}
		if n > 0xffff {
			return nil, ErrFormat
		}
		c.charset = append(c.charset, n)
		c.glyphs = append(c.glyphs, programs[name].encode())
	}
	c.fds = []fontDict{{private: t.privateDict(), has: true}}
	// FontBBox is omitted. The descriptor has it, and with it poppler would place
	// glyphs differently than in a Type 1 font.
	if !slices.Equal(t.matrix, []float64{0.001, 0, 0, 0.001, 0, 0}) {
		c.top = append(c.top, newOperator(1207, t.matrix...))
	}
	for _, op := range []int{opCharset, opEncoding, opCharStrings} {
		c.top = append(c.top, newOperator(op, 3)) // a placeholder offset
	}
	c.top = append(c.top, newOperator(opPrivate, 0, 0))
	return c.encode(), nil
}

// privateDict translates the Type 1 private dictionary.
func (t *Type1) privateDict() []operator {
	var out []operator
	for _, k := range []struct {
		key   string
		op    int
		delta bool
	}{
		{"/BlueValues", 6, true}, {"/OtherBlues", 7, true}, {"/FamilyBlues", 8, true}, {"/FamilyOtherBlues", 9, true},
		{"/BlueScale", 1209, false}, {"/BlueShift", 1210, false}, {"/BlueFuzz", 1211, false},
		{"/StdHW", 10, false}, {"/StdVW", 11, false}, {"/StemSnapH", 1212, true}, {"/StemSnapV", 1213, true},
		{"/LanguageGroup", 1217, false}, {"/ExpansionFactor", 1218, false},
	} {
		v := numbersAfter(t.private, k.key)
		if len(v) == 0 || len(v) > 14 || !k.delta && len(v) != 1 {
			continue
		}
		if k.delta {
			for i := len(v) - 1; i > 0; i-- {
				v[i] -= v[i-1]
			}
		}
		out = append(out, newOperator(k.op, v...))
	}
	if wordAfter(t.private, "/ForceBold") == "true" {
		out = append(out, newOperator(1214, 1))
	}
	return out
}

func newOperator(op int, args ...float64) operator {
	o := operator{op: op, args: args}
	for _, v := range args {
		if v == math.Trunc(v) && math.Abs(v) < 1e9 {
			o.raw = put32(append(o.raw, 29), int(int32(v)))
			continue
		}
		// A real number in nibbles (Technical Note 5176, table 5).
		s := strconv.FormatFloat(v, 'g', 10, 64)
		var nibbles []byte
		for i := 0; i < len(s); i++ {
			switch c := s[i]; {
			case c >= '0' && c <= '9':
				nibbles = append(nibbles, c-'0')
			case c == '.':
				nibbles = append(nibbles, 10)
			case c == '-':
				nibbles = append(nibbles, 14)
			case c == 'e' && strings.HasPrefix(s[i:], "e-"):
				nibbles = append(nibbles, 12)
				i++
			case c == 'e':
				nibbles = append(nibbles, 11)
			}
		}
		nibbles = append(nibbles, 15)
		if len(nibbles)%2 == 1 {
			nibbles = append(nibbles, 15)
		}
		o.raw = append(o.raw, 30)
		for i := 0; i < len(nibbles); i += 2 {
			o.raw = append(o.raw, nibbles[i]<<4|nibbles[i+1])
		}
	}
	return o
}

const (
	maxStems     = 96 // Technical Note 5177, appendix B
	maxArguments = 48
)

// encode writes the program as a Type 2 charstring.
func (p glyphProgram) encode() []byte {
	var h, v []stem
	for _, s := range p.parts {
		h, v = append(h, s.h...), append(v, s.v...)
	}
	h, v = sortStems(h), sortStems(v)
	masks := len(p.parts) > 1
	if len(h)+len(v) > maxStems || 2*len(h)+1 > maxArguments || 2*len(v)+1 > maxArguments {
		h, v, masks = nil, nil, false
	}
	if len(h)+len(v) == 0 {
		masks = false
	}
	w := type2Writer{}
	if p.width != 0 {
		w.args = append(w.args, p.width)
	}
	stems := func(list []stem, op, opMask byte) {
		if len(list) == 0 {
			return
		}
		at := 0.0
		for _, s := range list {
			w.args = append(w.args, s.start-at, s.width)
			at = s.start + s.width
		}
		if masks {
			op = opMask
		}
		w.flush(op)
	}
	stems(h, 1, 18)
	stems(v, 3, 23)
	for _, s := range p.parts {
		if masks {
			mask := make([]byte, (len(h)+len(v)+7)/8)
			for i, t := range append(slices.Clone(h), v...) {
				list := s.h
				if i >= len(h) {
					list = s.v
				}
				if slices.Contains(list, t) {
					mask[i/8] |= 0x80 >> (i % 8)
				}
			}
			w.end()
			w.flush(19)
			w.b = append(w.b, mask...)
		}
		for _, op := range s.path {
			w.path(op)
		}
	}
	w.end()
	if len(p.accented) == 4 {
		w.args = append(w.args, p.accented...)
	}
	w.flush(14)
	return w.b
}

func sortStems(list []stem) []stem {
	slices.SortFunc(list, func(a, b stem) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.width, b.width))
	})
	return slices.Compact(list)
}

// A type2Writer writes charstrings. It keeps the last operator open while more
// arguments may follow.
type type2Writer struct {
	b    []byte
	args []float64
	op   byte // the open operator, 0 if there is no open operator
}

func (w *type2Writer) flush(op byte) {
	for _, v := range w.args {
		w.b = appendType2Number(w.b, v)
	}
	w.b = append(w.b, op)
	w.args, w.op = w.args[:0], 0
}

func (w *type2Writer) end() {
	if w.op != 0 {
		w.flush(w.op)
	}
}

// extend adds arguments to the open operator. If that is not op, or they do not
// fit, it starts a new operator.
func (w *type2Writer) extend(op byte, args ...float64) {
	if w.op != op || len(w.args)+len(args) > maxArguments {
		w.end()
		w.op = op
	}
	w.args = append(w.args, args...)
}

func (w *type2Writer) path(p pathOp) {
	d := p.d
	switch {
	case p.kind == 'm':
		w.end()
		switch {
		case d[1] == 0:
			w.args = append(w.args, d[0])
			w.flush(22)
		case d[0] == 0:
			w.args = append(w.args, d[1])
			w.flush(4)
		default:
			w.args = append(w.args, d[0], d[1])
			w.flush(21)
		}
	case p.kind == 'l' && (d[0] == 0) != (d[1] == 0):
		// Horizontal and vertical lines alternate.
		flat, length := d[1] == 0, d[0]+d[1]
		if n := len(w.args); (w.op == 6 || w.op == 7) && n < maxArguments && (w.op == 6) == (n%2 == 0) == flat {
			w.args = append(w.args, length)
			return
		}
		w.end()
		w.op = 7
		if flat {
			w.op = 6
		}
		w.args = append(w.args, length)
	case p.kind == 'l':
		w.extend(5, d[0], d[1])
	case d[1] == 0 && d[4] == 0 || d[0] == 0 && d[5] == 0:
		// So do curves that start horizontally and end vertically, and the reverse.
		flat := d[1] == 0 && d[4] == 0
		args := []float64{d[1], d[2], d[3], d[4]}
		if flat {
			args = []float64{d[0], d[2], d[3], d[5]}
		}
		if n := len(w.args); (w.op == 30 || w.op == 31) && n+4 <= maxArguments && (w.op == 31) == (n/4%2 == 0) == flat {
			w.args = append(w.args, args...)
			return
		}
		w.end()
		w.op = 30
		if flat {
			w.op = 31
		}
		w.args = append(w.args, args...)
	default:
		w.extend(8, d[:]...)
	}
}

func appendType2Number(b []byte, v float64) []byte {
	n := int(math.Round(v))
	switch {
	case math.Abs(v-float64(n)) > 1e-6 || n > 32767 || n < -32768:
		return put32(append(b, 255), int(int32(math.Round(v*65536))))
	case n >= -107 && n <= 107:
		return append(b, byte(n+139))
	case n >= 108 && n <= 1131:
		n -= 108
		return append(b, byte(247+n>>8), byte(n))
	case n >= -1131 && n <= -108:
		n = -n - 108
		return append(b, byte(251+n>>8), byte(n))
	}
	return put16(append(b, 28), n)
}
