package compress

import (
	"slices"
	"testing"
)

// useOf returns the use of a page: pictures, and characters of font 1.
func useOf(text string, pictures ...int) *pageUse {
	s := newPageUse()
	for _, nr := range pictures {
		s.pictures[nr] = true
	}
	for _, c := range text {
		codes := s.codes[1]
		codes.add(int(c))
		s.codes[1] = codes
	}
	return s
}

func TestChoosePages(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		changes changes
		pages   []*pageUse
		want    []int
	}{
		"no page":            {changes{}, nil, nil},
		"one page":           {changes{}, []*pageUse{useOf("a")}, []int{0}},
		"nothing changed":    {changes{}, []*pageUse{useOf("a"), useOf("b", 5), useOf("c")}, []int{0, 2}},
		"the riskiest":       {changes{risks: map[int]float64{5: 1, 6: 3, 7: 2}}, []*pageUse{useOf("", 5), useOf("", 5), useOf("", 6), useOf("", 7), useOf("")}, []int{0, 2}},
		"risks add up":       {changes{risks: map[int]float64{5: 3, 6: 2, 7: 2}}, []*pageUse{useOf(""), useOf("", 5), useOf("", 6, 7)}, []int{0, 2}},
		"each kind":          {changes{kinds: map[int]string{5: "a", 6: "b", 7: "a", 8: "c"}}, []*pageUse{useOf("", 5), useOf("", 7), useOf("", 6), useOf("", 8), useOf("")}, []int{0, 2, 3}},
		"each character":     {changes{fonts: map[int]bool{1: true}}, []*pageUse{useOf("ab"), useOf("ba"), useOf("abc"), useOf("bcde")}, []int{0, 3}},
		"unchanged fonts":    {changes{fonts: map[int]bool{2: true}}, []*pageUse{useOf("ab"), useOf("xy"), useOf("z")}, []int{0, 2}},
		"no more than these": {changes{fonts: map[int]bool{1: true}}, []*pageUse{useOf("a"), useOf("b"), useOf("cd"), useOf("efg"), useOf("h\uffff\u1000"), useOf("i")}, []int{0, 2, 3, 4}},
	} {
		if got := c.changes.choose(c.pages); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestBitset(t *testing.T) {
	t.Parallel()
	var a, b bitset
	for _, n := range []int{0, 63, 64, 65535} {
		a.add(n)
	}
	b.add(64)
	b.add(1)
	if n := a.missing(b); n != 3 {
		t.Errorf("%d missing, want 3", n)
	}
	b.unite(a)
	if n := a.missing(b); n != 0 {
		t.Errorf("%d missing after all were added", n)
	}
	if n := b.missing(a); n != 1 {
		t.Errorf("%d missing, want 1", n)
	}
}
