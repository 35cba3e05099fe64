package fontfile

import "math"

// A charstringScan follows Type 2 charstrings (Adobe Technical Note 5177) to
// find the subroutines that they use.
type charstringScan struct {
	font   *CFF
	global []bool
	local  [][]bool
	steps  int

	fd    int
	stack []float64
	hints int
	done  bool
	parts []byte
}

// glyph scans a glyph. It returns the standard encoding codes of its components.
func (s *charstringScan) glyph(g int) ([]byte, error) {
	s.stack, s.hints, s.done, s.parts, s.fd = s.stack[:0], 0, false, nil, 0
	if s.font.cid {
		s.fd = int(s.font.fdOf[g])
	}
	err := s.run(s.font.glyphs[g], 0)
	return s.parts, err
}

func (s *charstringScan) push(v float64) { s.stack = append(s.stack, v) }

// call executes the subroutine whose number is on the stack.
func (s *charstringScan) call(subrs [][]byte, used []bool, depth int) error {
	if len(s.stack) == 0 {
		return ErrFormat
	}
	v := s.stack[len(s.stack)-1]
	s.stack = s.stack[:len(s.stack)-1]
	bias := 32768
	switch {
	case len(subrs) < 1240:
		bias = 107
	case len(subrs) < 33900:
		bias = 1131
	}
	if math.IsNaN(v) || v != math.Trunc(v) {
		return ErrFormat
	}
	i := int(v) + bias
	if i < 0 || i >= len(subrs) {
		return ErrFormat
	}
	used[i] = true
	return s.run(subrs[i], depth+1)
}

func (s *charstringScan) run(b []byte, depth int) error {
	if depth > 10 {
		return ErrFormat
	}
	for i := 0; i < len(b) && !s.done; {
		if s.steps--; s.steps < 0 || len(s.stack) > 192 {
			return ErrFormat
		}
		v := b[i]
		i++
		switch {
		case v == 28:
			s.push(float64(i16(b, i)))
			i += 2
		case v == 255:
			s.push(float64(int32(u32(b, i))) / 65536)
			i += 4
		case v >= 251:
			if i >= len(b) {
				return ErrFormat
			}
			s.push(-(float64(v)-251)*256 - float64(b[i]) - 108)
			i++
		case v >= 247:
			if i >= len(b) {
				return ErrFormat
			}
			s.push((float64(v)-247)*256 + float64(b[i]) + 108)
			i++
		case v >= 32:
			s.push(float64(v) - 139)
		case v == 1 || v == 3 || v == 18 || v == 23: // stems
			s.hints += len(s.stack) / 2
			s.stack = s.stack[:0]
		case v == 19 || v == 20: // hintmask, cntrmask
			s.hints += len(s.stack) / 2
			s.stack = s.stack[:0]
			i += (s.hints + 7) / 8
		case v == 10:
			if err := s.call(s.font.fds[s.fd].subrs, s.local[s.fd], depth); err != nil {
				return err
			}
		case v == 29:
			if err := s.call(s.font.global, s.global, depth); err != nil {
				return err
			}
		case v == 11:
			return nil
		case v == 14:
			if n := len(s.stack); n >= 4 {
				for _, c := range s.stack[n-2:] {
					if !(c >= 0 && c <= 255) {
						return ErrFormat
					}
					s.parts = append(s.parts, byte(c))
				}
			}
			s.done = true
		case v == 12:
			if i >= len(b) {
				return ErrFormat
			}
			if err := s.escape(b[i]); err != nil {
				return err
			}
			i++
		default: // paths
			s.stack = s.stack[:0]
		}
		if i > len(b) {
			return ErrFormat
		}
	}
	return nil
}

// escape handles two-byte operators. It does not compute the results of
// arithmetic.
func (s *charstringScan) escape(op byte) error {
	pops, pushes := 0, 0
	switch op {
	case 34, 35, 36, 37, 0: // flex, dotsection
		s.stack = s.stack[:0]
		return nil
	case 3, 4, 10, 11, 12, 15, 24: // and or add sub div eq mul
		pops, pushes = 2, 1
	case 5, 9, 14, 21, 26, 29: // not abs neg get sqrt index
		pops, pushes = 1, 1
	case 18: // drop
		pops = 1
	case 20: // put
		pops = 2
	case 22: // ifelse
		pops, pushes = 4, 1
	case 23: // random
		pushes = 1
	case 27: // dup
		pops, pushes = 1, 2
	case 28: // exch
		pops, pushes = 2, 2
	default: // includes roll
		return ErrFormat
	}
	if len(s.stack) < pops {
		return ErrFormat
	}
	s.stack = s.stack[:len(s.stack)-pops]
	for range pushes {
		s.push(math.NaN())
	}
	return nil
}
