package typeset

import (
	"bytes"
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-text/typesetting/font"
	"github.com/go-text/typesetting/font/opentype"
	"github.com/go-text/typesetting/font/opentype/tables"
	"golang.org/x/image/font/gofont/goregular"

	"github.com/filewright/filewright/fileops/pdfops/internal/fontfile"
)

// A source is a font that can be embedded.
type source struct {
	face *font.Face
	name string // PostScript name
	head head

	// One of the two holds the outlines.
	outlines *fontfile.TrueType
	compact  *fontfile.CFF
}

// head holds the measures of a font in thousandths of its size.
type head struct {
	box             [4]float64
	ascent, descent float64
	capHeight       float64
}

// maxFontFile is the size of the largest font file that is read.
const maxFontFile = 64 << 20

// builtin returns a font for Latin, Greek and Cyrillic.
func builtin() *source {
	face, err := font.ParseTTF(bytes.NewReader(goregular.TTF))
	if err != nil { // impossible: a constant
		panic(err)
	}
	outlines, err := fontfile.ParseTrueType(goregular.TTF)
	if err != nil {
		panic(err)
	}
	return &source{face: face, name: "GoRegular", outlines: outlines, head: measure(face)}
}

// files returns the font files below dirs. Regular fonts without serifs come first.
func files(dirs []string) []string {
	var out []string
	for _, dir := range dirs {
		// A directory that cannot be read has no fonts.
		_ = filepath.WalkDir(dir, func(p string, _ fs.DirEntry, err error) error {
			ext := strings.ToLower(filepath.Ext(p))
			if err == nil && slices.Contains([]string{".ttf", ".otf", ".ttc", ".otc"}, ext) {
				out = append(out, p)
			}
			return nil
		})
	}
	slices.SortFunc(out, func(a, b string) int {
		return cmp.Or(rank(a)-rank(b), cmp.Compare(a, b))
	})
	return out
}

// rank returns a small number for a font file that suits text on a page.
func rank(path string) (n int) {
	name := strings.ToLower(filepath.Base(path))
	for _, style := range []string{"bold", "italic", "oblique", "light", "thin", "black", "condensed", "narrow", "medium", "mono", "display", "emoji"} {
		if strings.Contains(name, style) {
			n += 4
		}
	}
	if !strings.HasPrefix(name, "notosans") {
		n++
	}
	if strings.Contains(name, "serif") {
		n++
	}
	return n
}

// open returns the first font in a file that has all the characters, or nil.
func open(path string, chars []rune) *source {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() || st.Size() > maxFontFile {
		return nil
	}
	loaders, err := opentype.NewLoaders(f)
	if err != nil {
		return nil
	}
	for _, l := range loaders {
		if !covers(l, chars) {
			continue
		}
		if s := load(l); s != nil {
			return s
		}
	}
	return nil
}

// covers reports whether a font has all the characters. It reads only the font's map
// of characters.
func covers(l *opentype.Loader, chars []rune) bool {
	b, err := l.RawTable(opentype.MustNewTag("cmap"))
	if err != nil {
		return false
	}
	table, _, err := tables.ParseCmap(b)
	if err != nil {
		return false
	}
	m, _, err := font.ProcessCmap(table, tables.FPNone)
	if err != nil {
		return false
	}
	for _, r := range chars {
		if g, ok := m.Lookup(r); !ok || g == 0 {
			return false
		}
	}
	return true
}

// load reads a font. It returns nil if the font cannot be embedded.
func load(l *opentype.Loader) *source {
	if l.HasTable(opentype.MustNewTag("fvar")) {
		return nil // its outlines depend on axes
	}
	// Bit 1 forbids embedding unless other bits permit it (OpenType, OS/2, fsType).
	if os2, err := l.RawTable(opentype.MustNewTag("OS/2")); err == nil && len(os2) > 9 && os2[9]&0x0f == 2 {
		return nil
	}
	ft, err := font.NewFont(l)
	if err != nil {
		return nil
	}
	s := &source{face: font.NewFace(ft)}
	parts := make(map[string][]byte)
	for _, tag := range l.Tables() {
		switch name := tag.String(); name {
		case "OS/2", "cvt ", "fpgm", "glyf", "head", "hhea", "hmtx", "loca", "maxp", "prep", "CFF ":
			if parts[name], err = l.RawTable(tag); err != nil {
				return nil
			}
		}
	}
	switch {
	case parts["glyf"] != nil:
		s.outlines, err = fontfile.NewTrueType(parts)
	case parts["CFF "] != nil:
		s.compact, err = fontfile.ParseCFF(parts["CFF "])
	default:
		return nil // bitmaps
	}
	if err != nil {
		return nil
	}
	s.name = postScriptName(ft.Describe().Family)
	s.head = measure(s.face)
	return s
}

// postScriptName returns a name without characters that a PostScript name lacks.
func postScriptName(family string) string {
	name := strings.Map(func(r rune) rune {
		if r > '0'-1 && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			return r
		}
		return -1
	}, family)
	return cmp.Or(name, "Font")
}

// measure returns the measures of a font.
func measure(f *font.Face) head {
	h := head{box: [4]float64{0, -250, 1000, 1000}, ascent: 900, descent: -250}
	scale := 1000 / float64(max(f.Upem(), 1))
	if e, ok := f.FontHExtents(); ok {
		h.ascent, h.descent = float64(e.Ascender)*scale, float64(e.Descender)*scale
		h.box[1], h.box[3] = h.descent, h.ascent
	}
	h.capHeight = 0.7 * h.ascent
	return h
}
