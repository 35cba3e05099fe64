package compress

import (
	"math/bits"
	"slices"

	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"

	"github.com/filewright/filewright/fileops/pdfops/internal/pdf"
)

const (
	comparedPages = 4 // pages of a document to compare, at most

	// newKind is the weight of a kind of change, in characters, in the choice of
	// pages to compare.
	newKind = 64
)

// A pageUse lists the pictures and characters that a page uses and that
// compression may change. A form that several pages show counts for the first of
// them.
type pageUse struct {
	pictures map[int]bool
	codes    map[int]bitset // by font
}

func newPageUse() *pageUse {
	return &pageUse{pictures: make(map[int]bool), codes: make(map[int]bitset)}
}

// A bitset is a set of small numbers.
type bitset []uint64

func (b *bitset) add(n int) {
	for n/64 >= len(*b) {
		*b = append(*b, 0)
	}
	(*b)[n/64] |= 1 << (n % 64)
}

// missing returns the number of members of b that are not in c.
func (b bitset) missing(c bitset) int {
	n := 0
	for i, v := range b {
		if i < len(c) {
			v &^= c[i]
		}
		n += bits.OnesCount64(v)
	}
	return n
}

func (b *bitset) unite(c bitset) {
	for len(*b) < len(c) {
		*b = append(*b, 0)
	}
	for i, v := range c {
		(*b)[i] |= v
	}
}

// changes lists the pictures and fonts of a document that were replaced.
type changes struct {
	kinds map[int]string  // by changed picture: kind of change
	risks map[int]float64 // by picture: fraction of a page that it may have changed
	fonts map[int]bool    // fonts with a new font file
}

// A snapshot identifies the data of pictures and fonts, to find replaced ones
// later.
type snapshot struct {
	data  map[int][]*byte // by picture or font: addresses of its encoded data
	forms map[int]string  // by picture: storage format
}

func takeSnapshot(d *pdf.Document, w *walker) snapshot {
	s := snapshot{data: make(map[int][]*byte), forms: make(map[int]string)}
	for nr := range w.sizes {
		s.data[nr], s.forms[nr] = pictureData(d, nr), pictureForm(d, nr)
	}
	for nr := range w.fonts.codes {
		s.data[nr] = fontData(d, nr)
	}
	return s
}

func pictureData(d *pdf.Document, nr int) []*byte {
	s := d.Stream(pdf.Ref(nr))
	if s == nil {
		return nil
	}
	return append(start(s), start(d.Stream(s.Dict["SMask"]))...)
}

// fontData returns the data of the font files of a font and its descendants.
func fontData(d *pdf.Document, nr int) []*byte {
	font := d.Dict(pdf.Ref(nr))
	var out []*byte
	for _, f := range append(types.Array{font}, descendants(d, font)...) {
		descriptor := d.Dict(d.Dict(f)["FontDescriptor"])
		for _, key := range []string{"FontFile", "FontFile2", "FontFile3"} {
			out = append(out, start(d.Stream(descriptor[key]))...)
		}
	}
	return out
}

func start(s *types.StreamDict) []*byte {
	if s == nil || len(s.Raw) == 0 {
		return nil
	}
	return []*byte{&s.Raw[0]}
}

// changes returns the pictures and fonts that were replaced since the snapshot.
func (s snapshot) changes(d *pdf.Document, w *walker) changes {
	c := changes{kinds: make(map[int]string), risks: make(map[int]float64), fonts: make(map[int]bool)}
	for nr := range w.sizes {
		if !slices.Equal(s.data[nr], pictureData(d, nr)) {
			c.kinds[nr] = s.forms[nr] + " > " + pictureForm(d, nr)
		}
	}
	for nr := range w.fonts.codes {
		if !slices.Equal(s.data[nr], fontData(d, nr)) {
			c.fonts[nr] = true
		}
	}
	return c
}

// pictureForm returns the storage format of a picture: everything that selects
// the code, here and in a viewer, that decodes it.
func pictureForm(d *pdf.Document, nr int) string {
	s := d.Stream(pdf.Ref(nr))
	if s == nil {
		return ""
	}
	space := s.Dict["ColorSpace"]
	form := d.Name(space)
	if a := d.Array(space); len(a) > 0 {
		form = d.Name(a[0])
	}
	if cs, ok := colourSpace(d, space); ok {
		form += string(rune('0' + cs.n))
	}
	for _, f := range s.FilterPipeline {
		form += " " + f.Name
	}
	for _, key := range []string{"BitsPerComponent", "ImageMask", "Decode"} {
		if v := s.Dict[key]; v != nil {
			form = string(pdf.AppendObject([]byte(form+" "+key), v))
		}
	}
	if mask := d.Stream(s.Dict["SMask"]); mask != nil {
		form += " with mask"
		for _, f := range mask.FilterPipeline {
			form += " " + f.Name
		}
	}
	return form
}

// choose returns the pages to compare: the first, the page with the highest
// risk, and pages with kinds of changes, fonts and characters that no chosen
// page has.
func (c changes) choose(pages []*pageUse) []int {
	if len(pages) == 0 {
		return nil
	}
	seen := coverage{kinds: make(map[string]bool), codes: make(map[int]bitset)}
	out := []int{0}
	seen.add(c, pages[0])
	if p := c.riskiest(pages); p > 0 {
		out = append(out, p)
		seen.add(c, pages[p])
	}
	for len(out) < min(comparedPages, len(pages)) {
		best, most := -1, 0
		for i, p := range pages {
			if n := seen.gain(c, p); n > most {
				best, most = i, n
			}
		}
		if best < 0 {
			break
		}
		out = append(out, best)
		seen.add(c, pages[best])
	}
	if last := len(pages) - 1; len(out) == 1 && last > 0 {
		out = append(out, last)
	}
	slices.Sort(out)
	return out
}

// riskiest returns the page that may differ most, or 0. It ignores the first
// page.
func (c changes) riskiest(pages []*pageUse) int {
	best, most := 0, 0.0
	for i, p := range pages[1:] {
		risk := 0.0
		for nr := range p.pictures {
			risk += c.risks[nr]
		}
		if risk > most {
			best, most = i+1, risk
		}
	}
	return best
}

// A coverage records what the chosen pages show.
type coverage struct {
	kinds map[string]bool
	codes map[int]bitset
}

func (v coverage) add(c changes, p *pageUse) {
	for nr := range p.pictures {
		if kind, ok := c.kinds[nr]; ok {
			v.kinds[kind] = true
		}
	}
	for font, codes := range p.codes {
		all := v.codes[font]
		all.unite(codes)
		v.codes[font] = all
	}
}

// gain returns how much a page adds to the coverage.
func (v coverage) gain(c changes, p *pageUse) int {
	n := 0
	fresh := make(map[string]bool)
	for nr := range p.pictures {
		if kind, ok := c.kinds[nr]; ok && !v.kinds[kind] && !fresh[kind] {
			fresh[kind] = true
			n += newKind
		}
	}
	for font, codes := range p.codes {
		if !c.fonts[font] {
			continue
		}
		if v.codes[font] == nil {
			n += newKind
		}
		n += codes.missing(v.codes[font])
	}
	return n
}
