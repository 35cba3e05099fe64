package pdfium

import "strings"

// A FontList collects the names of fonts that a document uses without containing
// them.
type FontList struct {
	names []string
	known map[uint64]bool
}

// Names returns the names in order of first use.
func (l *FontList) Names() []string { return l.names }

// Add examines a font of the document.
func (l *FontList) Add(in *Instance, font uint64) {
	if font == 0 || l.known[font] {
		return
	}
	if l.known == nil {
		l.known = make(map[uint64]bool)
	}
	l.known[font] = true
	if in.Int("FPDFFont_GetIsEmbedded", font) != 0 {
		return
	}
	name := FontName(in, font)
	name, _, _ = strings.Cut(name, ",")
	if name == "" || isStandard(name) {
		return
	}
	for _, known := range l.names {
		if known == name {
			return
		}
	}
	l.names = append(l.names, name)
}

// FontName returns the name of a font in the file (BaseFont).
func FontName(in *Instance, font uint64) string {
	return CString(in.WithBuffer(1024, func(p, n uint64) int { return in.Int("FPDFFont_GetBaseFontName", font, p, n) }))
}

// isStandard reports whether every program has a font with the widths of the
// named one (ISO 32000-1, 9.6.2.2).
func isStandard(name string) bool {
	low := strings.ToLower(strings.NewReplacer(" ", "", "-", "").Replace(name))
	for _, prefix := range []string{"helvetica", "arial", "times", "courier", "symbol", "zapfdingbats"} {
		if rest, ok := strings.CutPrefix(low, prefix); ok {
			for _, style := range []string{"newroman", "new", "psmt", "mt", "ps", "roman", "bold", "italic", "oblique"} {
				rest = strings.Replace(rest, style, "", 1)
			}
			return rest == ""
		}
	}
	return false
}

// maxFontObjects limits the objects of a page that Fonts examines.
const maxFontObjects = 5000

// Fonts adds the fonts of the page to l. It ignores those of nested forms.
func (p *Page) Fonts(l *FontList) {
	in := p.in
	const text = 1 // FPDF_PAGEOBJ_TEXT
	for i := range min(in.Int("FPDFPage_CountObjects", p.Ptr), maxFontObjects) {
		if obj := in.Call("FPDFPage_GetObject", p.Ptr, uint64(i)); in.Int("FPDFPageObj_GetType", obj) == text {
			l.Add(in, in.Call("FPDFTextObj_GetFont", obj))
		}
	}
}
