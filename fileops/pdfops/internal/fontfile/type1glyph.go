package fontfile

import (
	"math"
	"slices"
)

// A glyphProgram is the drawing of a Type 1 charstring, ready for Type 2.
type glyphProgram struct {
	width    float64
	parts    []segment
	accented []float64 // adx ady bchar achar, of seac
}

// A segment is a piece of a path under one set of stem hints.
type segment struct {
	h, v []stem
	path []pathOp
}

type stem struct{ start, width float64 }

// A pathOp moves, or draws a line or a curve, relative to the previous point.
type pathOp struct {
	kind byte // 'm', 'l', 'c'
	d    [6]float64
}

// A t1Machine interprets Type 1 charstrings (chapter 6).
type t1Machine struct {
	font  *Type1
	stack []float64
	ps    []float64
	steps int

	x, y     float64 // current point
	ox, oy   float64 // end of the written path
	sbx, sby float64
	open     bool // a subpath has started
	flex     bool
	flexAt   [][2]float64
	flexFrom [2]float64
	done     bool
	out      glyphProgram
	cur      segment
}

func (t *Type1) program(name string, steps *int) (glyphProgram, error) {
	m := t1Machine{font: t, steps: *steps}
	if err := m.run(t.glyphs[name], 0); err != nil {
		return glyphProgram{}, err
	}
	*steps = m.steps
	if !m.done {
		return glyphProgram{}, ErrFormat
	}
	m.out.parts = append(m.out.parts, m.cur)
	return m.out, nil
}

func (m *t1Machine) run(b []byte, depth int) error {
	if depth > 10 {
		return ErrFormat
	}
	for i := 0; i < len(b) && !m.done; {
		if m.steps--; m.steps < 0 || len(m.stack) > 48 || len(m.ps) > 48 {
			return ErrFormat
		}
		v := b[i]
		i++
		switch {
		case v == 255:
			if i+4 > len(b) {
				return ErrFormat
			}
			m.stack = append(m.stack, float64(int32(u32(b, i))))
			i += 4
		case v >= 247:
			if i >= len(b) {
				return ErrFormat
			}
			n := (float64(v)-247)*256 + float64(b[i]) + 108
			if v >= 251 {
				n = -(float64(v)-251)*256 - float64(b[i]) - 108
			}
			m.stack = append(m.stack, n)
			i++
		case v >= 32:
			m.stack = append(m.stack, float64(v)-139)
		case v == 11: // return
			return nil
		case v == 10: // callsubr
			n, ok := m.pop()
			sub, known := m.font.subrs[int(n)]
			if !ok || !known {
				return ErrFormat
			}
			if err := m.run(sub, depth+1); err != nil {
				return err
			}
		default:
			op := int(v)
			if v == 12 {
				if i >= len(b) {
					return ErrFormat
				}
				op = 1200 + int(b[i])
				i++
			}
			if err := m.operator(op); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *t1Machine) pop() (float64, bool) {
	n := len(m.stack)
	if n == 0 {
		return 0, false
	}
	v := m.stack[n-1]
	m.stack = m.stack[:n-1]
	return v, true
}

// operator executes a command. Most commands consume and clear the whole stack.
func (m *t1Machine) operator(op int) error {
	need := map[int]int{1: 2, 3: 2, 4: 1, 5: 2, 6: 1, 7: 1, 8: 6, 9: 0, 13: 2, 14: 0, 21: 2, 22: 1, 30: 4, 31: 4,
		1200: 0, 1201: 6, 1202: 6, 1206: 5, 1207: 4, 1212: 2, 1216: 2, 1217: 0, 1233: 2}
	n, known := need[op]
	if !known || len(m.stack) < n {
		return ErrFormat
	}
	switch op {
	case 1212: // div
		k := len(m.stack)
		if m.stack[k-1] == 0 {
			return ErrFormat
		}
		m.stack = append(m.stack[:k-2], m.stack[k-2]/m.stack[k-1])
		return nil
	case 1216:
		return m.otherSubr()
	case 1217: // pop
		k := len(m.ps)
		if k == 0 {
			return ErrFormat
		}
		m.stack = append(m.stack, m.ps[k-1])
		m.ps = m.ps[:k-1]
		return nil
	}
	a := m.stack[len(m.stack)-n:]
	switch op {
	case 1:
		m.hint(&m.cur.h, stem{a[0] + m.sby, a[1]})
	case 3:
		m.hint(&m.cur.v, stem{a[0] + m.sbx, a[1]})
	case 1202: // hstem3
		for k := 0; k < 6; k += 2 {
			m.hint(&m.cur.h, stem{a[k] + m.sby, a[k+1]})
		}
	case 1201: // vstem3
		for k := 0; k < 6; k += 2 {
			m.hint(&m.cur.v, stem{a[k] + m.sbx, a[k+1]})
		}
	case 4:
		m.move(0, a[0])
	case 21:
		m.move(a[0], a[1])
	case 22:
		m.move(a[0], 0)
	case 5:
		m.line(a[0], a[1])
	case 6:
		m.line(a[0], 0)
	case 7:
		m.line(0, a[0])
	case 8:
		m.curve(a[0], a[1], a[2], a[3], a[4], a[5])
	case 30: // vhcurveto
		m.curve(0, a[0], a[1], a[2], a[3], 0)
	case 31: // hvcurveto
		m.curve(a[0], 0, a[1], a[2], 0, a[3])
	case 9: // closepath
		m.open = false
	case 13: // hsbw
		m.sbx, m.out.width = a[0], a[1]
		m.x = a[0]
	case 1207: // sbw
		if a[3] != 0 {
			return ErrFormat
		}
		m.sbx, m.sby, m.out.width = a[0], a[1], a[2]
		m.x, m.y = a[0], a[1]
	case 1206: // seac: the accent is placed by its left side bearing
		m.out.accented = []float64{a[1] + m.sbx - a[0], a[2], a[3], a[4]}
		m.done = true
	case 14:
		m.done = true
	case 1233: // setcurrentpoint after a flex: already at that point
	}
	m.stack = m.stack[:0]
	return nil
}

// hint adds a stem to one of the lists of the current segment. After a drawing
// operator it starts a new segment.
func (m *t1Machine) hint(list *[]stem, s stem) {
	if len(m.cur.path) > 0 {
		m.out.parts = append(m.out.parts, m.cur)
		m.cur.path = nil
		m.cur.h, m.cur.v = slices.Clone(m.cur.h), slices.Clone(m.cur.v)
	}
	if !slices.Contains(*list, s) {
		*list = append(*list, s)
	}
}

// newHints starts a segment without stems.
func (m *t1Machine) newHints() {
	if len(m.cur.path) > 0 {
		m.out.parts = append(m.out.parts, m.cur)
	}
	m.cur = segment{}
}

func (m *t1Machine) move(dx, dy float64) {
	m.x, m.y = m.x+dx, m.y+dy
	if !m.flex {
		m.open = false
	}
}

// begin writes the initial move of a subpath.
func (m *t1Machine) begin() {
	if m.open {
		return
	}
	m.open = true
	m.cur.path = append(m.cur.path, pathOp{'m', [6]float64{m.x - m.ox, m.y - m.oy}})
	m.ox, m.oy = m.x, m.y
}

func (m *t1Machine) line(dx, dy float64) {
	m.begin()
	m.cur.path = append(m.cur.path, pathOp{'l', [6]float64{dx, dy}})
	m.x, m.y = m.x+dx, m.y+dy
	m.ox, m.oy = m.x, m.y
}

func (m *t1Machine) curve(d ...float64) {
	m.begin()
	m.cur.path = append(m.cur.path, pathOp{'c', [6]float64(d)})
	m.x, m.y = m.x+d[0]+d[2]+d[4], m.y+d[1]+d[3]+d[5]
	m.ox, m.oy = m.x, m.y
}

func (m *t1Machine) otherSubr() error {
	which, _ := m.pop()
	count, _ := m.pop()
	n := int(count)
	if n < 0 || n > len(m.stack) || count != math.Trunc(count) {
		return ErrFormat
	}
	args := append([]float64(nil), m.stack[len(m.stack)-n:]...)
	m.stack = m.stack[:len(m.stack)-n]
	m.ps = m.ps[:0]
	switch int(which) {
	case 1:
		m.flex, m.flexAt, m.flexFrom = true, m.flexAt[:0], [2]float64{m.x, m.y}
	case 2:
		if !m.flex || len(m.flexAt) >= 7 {
			return ErrFormat
		}
		m.flexAt = append(m.flexAt, [2]float64{m.x, m.y})
	case 0:
		if !m.flex || len(m.flexAt) != 7 || n != 3 {
			return ErrFormat
		}
		m.flex = false
		p := m.flexAt
		m.x, m.y = m.flexFrom[0], m.flexFrom[1]
		for _, k := range []int{1, 4} {
			x, y := m.x, m.y
			m.curve(p[k][0]-x, p[k][1]-y, p[k+1][0]-p[k][0], p[k+1][1]-p[k][1], p[k+2][0]-p[k+1][0], p[k+2][1]-p[k+1][1])
		}
		m.ps = []float64{args[2], args[1]}
	case 3:
		if n != 1 {
			return ErrFormat
		}
		m.newHints()
		m.ps = []float64{args[0]}
	case 12, 13: // counter control: hints only
	default:
		return ErrFormat
	}
	return nil
}
