package imagefile

// A Palette numbers up to 256 colours in order of appearance. It is an
// open-addressed hash table that stays mostly empty.
type Palette struct {
	Colours []uint32

	keys  [1024]uint32
	slots [1024]uint16 // number of the colour plus one; 0 means free
}

func (p *Palette) slot(colour uint32) uint32 {
	i := (colour * 0x9e3779b1) >> 22
	for p.slots[i] != 0 && p.keys[i] != colour {
		i = (i + 1) & 1023
	}
	return i
}

// Add returns the number of a colour. It reports false if the colour is new and
// the palette is full.
func (p *Palette) Add(colour uint32) (number byte, ok bool) {
	i := p.slot(colour)
	if p.slots[i] == 0 {
		if len(p.Colours) == 256 {
			return 0, false
		}
		p.Colours = append(p.Colours, colour)
		p.keys[i], p.slots[i] = colour, uint16(len(p.Colours))
	}
	return byte(p.slots[i] - 1), true
}

// Depth returns the number of bits for a colour number in PNG and PDF: 1, 2, 4
// or 8.
func (p *Palette) Depth() int {
	switch n := len(p.Colours); {
	case n <= 2:
		return 1
	case n <= 4:
		return 2
	case n <= 16:
		return 4
	}
	return 8
}

// PackRow packs numbers of depth bits into dst, most significant bits first. dst
// must be zero.
func PackRow(dst, numbers []byte, depth int) {
	if depth == 8 {
		copy(dst, numbers)
		return
	}
	for x, v := range numbers {
		at := x * depth
		dst[at/8] |= v << (8 - depth - at%8)
	}
}
