package fontfile

import (
	"bytes"
	"slices"
)

// Subset writes the font with the outlines of the given glyphs, their
// components, and glyph 0. Other glyphs and unused subroutines become empty, so
// all numbers stay the same.
func (c *CFF) Subset(glyphs map[int]bool) ([]byte, error) {
	sub, _, err := c.subset(glyphs, []byte{11}) // return
	if err != nil {
		return nil, err
	}
	return sub.encode(), nil
}

// SubsetByCID writes the font with the given glyphs and glyph 0, without places for the
// others: the numbers of glyphs change, and their CIDs stay. The font must be
// CID-keyed (see [CFF.ByCID]).
func (c *CFF) SubsetByCID(glyphs map[int]bool) ([]byte, error) {
	sub, keep, err := c.subset(glyphs, nil) // no glyph calls them, and they can be most of the font
	if err != nil {
		return nil, err
	}
	if !c.cid {
		return nil, ErrFormat
	}
	all, charset, fdOf := sub.glyphs, sub.charset, sub.fdOf
	sub.glyphs, sub.charset, sub.fdOf = nil, nil, nil
	for g, k := range keep {
		if k {
			sub.glyphs, sub.charset, sub.fdOf = append(sub.glyphs, all[g]), append(sub.charset, charset[g]), append(sub.fdOf, fdOf[g])
		}
	}
	return sub.encode(), nil
}

// subset returns the font with only the given glyphs, and which glyphs it has. An unused
// subroutine becomes without.
func (c *CFF) subset(glyphs map[int]bool, without []byte) (sub *CFF, keep []bool, err error) {
	s := charstringScan{
		font: c, global: make([]bool, len(c.global)), local: make([][]bool, len(c.fds)),
		steps: 4_000_000,
	}
	for i, fd := range c.fds {
		s.local[i] = make([]bool, len(fd.subrs))
	}
	keep = make([]bool, len(c.glyphs))
	todo := []int{0}
	for g := range glyphs {
		todo = append(todo, g)
	}
	for len(todo) > 0 {
		g := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if g < 0 || g >= len(keep) || keep[g] {
			continue
		}
		keep[g] = true
		parts, err := s.glyph(g)
		if err != nil {
			return nil, nil, err
		}
		for _, code := range parts { // an accented letter, composed by standard encoding
			name := StandardName(code)
			for i := range c.glyphs {
				if name != "" && c.Name(i) == name {
					todo = append(todo, i)
				}
			}
		}
	}
	empty := func(items [][]byte, used []bool, with []byte) [][]byte {
		out := slices.Clone(items)
		for i := range out {
			if !used[i] && len(out[i]) > 0 {
				out[i] = with
			}
		}
		return out
	}
	copied := *c
	sub = &copied
	sub.glyphs = empty(c.glyphs, keep, []byte{14}) // endchar
	sub.global = empty(c.global, s.global, without)
	sub.fds = slices.Clone(c.fds)
	for i := range sub.fds {
		sub.fds[i].subrs = empty(c.fds[i].subrs, s.local[i], without)
	}
	return sub, keep, nil
}

// encode writes the font with a new charset and encoding.
func (c *CFF) encode() []byte {
	set := make(map[int][]int)
	for _, o := range c.top {
		switch o.op {
		case opCharset, opEncoding, opCharStrings, opFDArray, opFDSelect:
			set[o.op] = []int{0}
		case opPrivate:
			set[o.op] = []int{0, 0}
		}
	}
	build := func() []byte {
		b := []byte{1, 0, 4, 4}
		b = appendIndex(b, c.names)
		b = appendIndex(b, [][]byte{appendDict(nil, c.top, set)})
		b = appendIndex(b, c.strings)
		return appendIndex(b, c.global)
	}
	b := build() // to know its length
	place := func(op int, data []byte) {
		set[op] = []int{len(b)}
		b = append(b, data...)
	}
	if off, ok := find(c.top, opCharset); ok && off > 2 {
		place(opCharset, c.encodeCharset())
	} else if ok {
		set[opCharset] = []int{off}
	}
	if off, ok := find(c.top, opEncoding); ok && off > 1 && !c.cid {
		place(opEncoding, c.encodeEncoding())
	} else if ok {
		set[opEncoding] = []int{off}
	}
	place(opCharStrings, appendIndex(nil, c.glyphs))
	if c.cid {
		place(opFDSelect, c.encodeFDSelect())
		var dicts [][]byte
		for _, fd := range c.fds {
			own := make(map[int][]int)
			if fd.has {
				var at, size int
				b, at, size = fd.place(b)
				own[opPrivate] = []int{size, at}
			}
			dicts = append(dicts, appendDict(nil, fd.dict, own))
		}
		place(opFDArray, appendIndex(nil, dicts))
	} else if fd := c.fds[0]; fd.has {
		var at, size int
		b, at, size = fd.place(b)
		set[opPrivate] = []int{size, at}
	}
	head := build()
	copy(b, head)
	return b
}

// place appends the private dictionary, directly followed by its subroutines.
func (f fontDict) place(b []byte) (out []byte, at, size int) {
	priv := f.private
	set := make(map[int][]int)
	if len(f.subrs) > 0 {
		set[opSubrs] = []int{0}
		size = len(appendDict(nil, priv, set))
		set[opSubrs] = []int{size}
	} else {
		priv = slices.DeleteFunc(slices.Clone(priv), func(o operator) bool { return o.op == opSubrs })
	}
	at = len(b)
	b = appendDict(b, priv, set)
	size = len(b) - at
	if len(f.subrs) > 0 {
		b = appendIndex(b, f.subrs)
	}
	return b, at, size
}

// encodeCharset writes ranges (format 2), which are rarely longer than a list.
func (c *CFF) encodeCharset() []byte {
	b := []byte{2}
	for g := 1; g < len(c.charset); {
		n := 1
		for g+n < len(c.charset) && c.charset[g+n] == c.charset[g]+n {
			n++
		}
		b = put16(put16(b, c.charset[g]), n-1)
		g += n
	}
	if list := 1 + 2*(len(c.charset)-1); list < len(b) {
		b = []byte{0}
		for _, n := range c.charset[1:] {
			b = put16(b, n)
		}
	}
	return b
}

// encodeEncoding writes the first code of each leading glyph as a list, and all
// other codes as supplements.
func (c *CFF) encodeEncoding() []byte {
	first := make(map[int]byte)
	for code := 255; code >= 0; code-- {
		if g := c.encoding[byte(code)]; g > 0 {
			first[g] = byte(code)
		}
	}
	b := []byte{0, 0}
	for g := 1; g <= 255; g++ {
		code, ok := first[g]
		if !ok {
			break
		}
		b = append(b, code)
		b[1]++
	}
	var more []byte
	n := 0
	for code := range 256 {
		g := c.encoding[byte(code)]
		if g > 0 && (g > int(b[1]) || first[g] != byte(code)) && n < 255 {
			more = put16(append(more, byte(code)), c.charset[g])
			n++
		}
	}
	if n > 0 {
		b[0] |= 0x80
		b = append(append(b, byte(n)), more...)
	}
	return b
}

func (c *CFF) encodeFDSelect() []byte {
	b := put16([]byte{3}, 0)
	n := 0
	for g := 0; g < len(c.fdOf); {
		k := 1
		for g+k < len(c.fdOf) && c.fdOf[g+k] == c.fdOf[g] {
			k++
		}
		b = append(put16(b, g), c.fdOf[g])
		n++
		g += k
	}
	b[1], b[2] = byte(n>>8), byte(n)
	b = put16(b, len(c.fdOf))
	if len(b) > 1+len(c.fdOf) {
		return append([]byte{0}, bytes.Clone(c.fdOf)...)
	}
	return b
}
