package jpegenc

import (
	"math/bits"
	"slices"
)

// A scan writes a band of coefficients.
type scan struct {
	comps     []*component
	from, to  int // in zigzag order; 0, 0 for DC of all components
	out       []byte
	acc       uint64
	n         uint
	counting  bool
	counts    [2][256]int
	codes     [2]codes
	endOfBand int // blocks
}

// script returns the scans of a file: first a blurred picture, then its details.
func script(comps []*component) []*scan {
	scans := []*scan{{comps: comps}}
	const split = 8
	scans = append(scans, &scan{comps: comps[:1], from: 1, to: split})
	for i := range comps[1:] {
		scans = append(scans, &scan{comps: comps[i+1 : i+2], from: 1, to: 63})
	}
	return append(scans, &scan{comps: comps[:1], from: split + 1, to: 63})
}

// write sets s.out to the tables and data of the scan.
func (s *scan) write() {
	s.counting = true
	s.blocks()
	s.counting = false
	for i := range s.counts {
		if i == 1 && (s.from > 0 || len(s.comps) == 1) {
			break
		}
		lengths := codeLengths(&s.counts[i])
		class := byte(0)
		if s.from > 0 {
			class = 1
		}
		s.out = s.codes[i].set(s.out, &lengths, class<<4|byte(i))
	}
	s.out = append(s.out, 0xff, 0xda, 0, byte(6+2*len(s.comps)), byte(len(s.comps)))
	for _, c := range s.comps {
		table := 0
		if s.from == 0 {
			table = c.table << 4
		}
		s.out = append(s.out, byte(c.id), byte(table))
	}
	s.out = append(s.out, byte(s.from), byte(s.to), 0)
	s.blocks()
	s.emit(1<<7-1, 7) // pad with ones
}

// blocks codes the blocks of a scan, or counts their symbols.
func (s *scan) blocks() {
	if s.from > 0 {
		c := s.comps[0]
		for y := range c.down {
			for x := range c.across {
				s.band(c.block(y*c.stride+x), c.nonzero[y*c.stride+x])
			}
		}
		s.flush()
		return
	}
	var last [3]int
	dc := func(i, x, y int) {
		c := s.comps[i]
		v := int(c.block(y*c.stride + x)[0])
		s.value(c.table, 0, v-last[i])
		last[i] = v
	}
	if len(s.comps) == 1 {
		for y := range s.comps[0].down {
			for x := range s.comps[0].across {
				dc(0, x, y)
			}
		}
		return
	}
	first := s.comps[0]
	for my := range first.rows / first.v {
		for mx := range first.stride / first.h {
			for i, c := range s.comps {
				for v := range c.v {
					for h := range c.h {
						dc(i, mx*c.h+h, my*c.v+v)
					}
				}
			}
		}
	}
}

// band codes a block (T.81, G.1.2.2).
func (s *scan) band(b []int16, nonzero uint64) {
	last := s.from - 1
	for left := nonzero & (2<<s.to - 1<<s.from); left != 0; left &= left - 1 {
		i := bits.TrailingZeros64(left)
		run := i - last - 1
		s.flush()
		for ; run > 15; run -= 16 {
			s.symbol(0, 0xf0)
		}
		s.value(0, run<<4, int(b[i]))
		last = i
	}
	if last < s.to {
		if s.endOfBand++; s.endOfBand == 0x7fff {
			s.flush()
		}
	}
}

// flush codes the blocks that have ended.
func (s *scan) flush() {
	if s.endOfBand > 0 {
		n := bits.Len(uint(s.endOfBand)) - 1
		s.symbol(0, n<<4)
		s.emit(uint64(s.endOfBand)&(1<<n-1), uint(n))
		s.endOfBand = 0
	}
}

// value codes a value whose symbol is the sum of high and its number of bits.
func (s *scan) value(table, high, v int) {
	a := v
	if v < 0 {
		a, v = -v, v-1
	}
	n := bits.Len(uint(a))
	s.symbol(table, high|n)
	s.emit(uint64(v)&(1<<n-1), uint(n))
}

func (s *scan) symbol(table, symbol int) {
	if s.counting {
		s.counts[table][symbol]++
		return
	}
	c := &s.codes[table]
	s.emit(uint64(c.code[symbol]), uint(c.length[symbol]))
}

func (s *scan) emit(v uint64, n uint) {
	if s.counting {
		return
	}
	s.acc = s.acc<<n | v
	for s.n += n; s.n >= 8; s.n -= 8 {
		b := byte(s.acc >> (s.n - 8))
		if s.out = append(s.out, b); b == 0xff {
			s.out = append(s.out, 0)
		}
	}
}

// codes is a Huffman table.
type codes struct {
	code   [256]uint16
	length [256]uint8
}

// set builds a table from the lengths of its codes, and appends its segment to a
// file (T.81, B.2.4.2 and annex C).
func (c *codes) set(out []byte, lengths *[256]uint8, id byte) []byte {
	var symbols []byte
	var number [17]byte
	code := 0
	for n := 1; n <= 16; n++ {
		for symbol, l := range lengths {
			if int(l) == n {
				c.code[symbol], c.length[symbol] = uint16(code), l
				symbols = append(symbols, byte(symbol))
				number[n]++
				code++
			}
		}
		code <<= 1
	}
	out = append(out, 0xff, 0xc4, byte((19+len(symbols))>>8), byte(19+len(symbols)), id)
	return append(append(out, number[1:]...), symbols...)
}

// codeLengths returns the lengths of an optimal Huffman code for symbols that occur
// as often as counts says. They are at most 16 bits, and the code of all ones is
// not used (T.81, K.2). A symbol that does not occur has the length 0.
func codeLengths(counts *[256]int) (lengths [256]uint8) {
	type node struct{ weight, left, right, symbol int }
	var nodes []node
	var open []int
	for symbol, n := range counts {
		if n > 0 {
			open = append(open, len(nodes))
			nodes = append(nodes, node{n, -1, -1, symbol})
		}
	}
	if len(open) == 0 {
		return lengths
	}
	// The reserved code is that of a symbol that occurs less than any other.
	open = append(open, len(nodes))
	nodes = append(nodes, node{0, -1, -1, 256})
	rarer := func(a, b int) int { return nodes[b].weight - nodes[a].weight }
	for len(open) > 1 {
		slices.SortStableFunc(open, rarer)
		a, b := open[len(open)-2], open[len(open)-1]
		open = append(open[:len(open)-2], len(nodes))
		nodes = append(nodes, node{nodes[a].weight + nodes[b].weight, a, b, -1})
	}
	var number [258]int // of codes of each length
	var walk func(i, depth int)
	walk = func(i, depth int) {
		if nodes[i].left < 0 {
			number[depth]++
			return
		}
		walk(nodes[i].left, depth+1)
		walk(nodes[i].right, depth+1)
	}
	walk(open[0], 0)
	for i := len(number) - 1; i > 16; i-- {
		for number[i] > 0 { // T.81, figure K.3
			j := i - 2
			for number[j] == 0 {
				j--
			}
			number[i] -= 2
			number[i-1]++
			number[j+1] += 2
			number[j]--
		}
	}
	longest := 16
	for number[longest] == 0 {
		longest--
	}
	number[longest]-- // the reserved code
	var order []int
	for symbol, n := range counts {
		if n > 0 {
			order = append(order, symbol)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return counts[b] - counts[a] })
	for n := 1; n <= 16; n++ {
		for range number[n] {
			lengths[order[0]] = uint8(n)
			order = order[1:]
		}
	}
	return lengths
}
