package extract

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/filewright/filewright/fileops/pdfread/internal/model"
	"github.com/filewright/filewright/fileops/pdfread/internal/pdfium"
)

// font reads the names and flags of a font.
func (x *Extractor) font(ptr uint64) *model.Font {
	if f, ok := x.fonts[ptr]; ok {
		return f
	}
	in := x.In
	x.Missing.Add(in, ptr)
	// For a font that is not embedded, pdfium reports the family of its substitute.
	embedded := in.Int("FPDFFont_GetIsEmbedded", ptr) != 0
	base := pdfium.FontName(in, ptr)
	family := pdfium.CString(in.WithBuffer(1024, func(p, n uint64) int { return in.Int("FPDFFont_GetFamilyName", ptr, p, n) }))
	if !embedded && base != "" {
		family = ""
	}
	flags := in.Int("FPDFFont_GetFlags", ptr)
	weight := in.Int("FPDFFont_GetWeight", ptr)
	angle := 0
	if in.Ok("FPDFFont_GetItalicAngle", ptr, in.Arg(0)) {
		angle = in.OutInt(0)
	}
	f := nameFont(base, family, flags, weight, angle)
	// Two fonts of the file with the same appearance become one.
	if known, ok := x.names[f]; ok {
		x.fonts[ptr] = known
		return known
	}
	x.names[f] = &f
	x.fonts[ptr] = &f
	return &f
}

// normalise returns the text of a character. Ligatures and Arabic presentation
// forms become letters. Bullets in the private use area of symbol fonts become
// bullet characters.
func normalise(r rune, f *model.Font) string {
	if f != nil && r > ' ' && r < 0x100 && strings.HasPrefix(f.Name, "Wingdings") {
		if b, ok := symbolBullets[0xf000+r]; ok {
			return b
		}
	}
	switch {
	case r >= 0xfb00 && r <= 0xfdff || r >= 0xfe70 && r <= 0xfefc:
		return norm.NFKC.String(string(r))
	case r >= 0xf000 && r <= 0xf0ff:
		if b, ok := symbolBullets[r]; ok {
			return b
		}
		if r >= 0xf020 && r < 0xf07f { // the code of a character in a symbol font
			return string(r - 0xf000)
		}
	case r > unicode.MaxRune:
		return ""
	}
	return string(r)
}

// nameFont derives a font from the names and flags in the file.
func nameFont(base, family string, flags, weight, angle int) model.Font {
	if i := strings.IndexByte(base, '+'); i == 6 {
		base = base[i+1:]
	}
	var f model.Font
	low := strings.ToLower(base)
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(low, w) {
				return true
			}
		}
		return false
	}
	const forceBold, italic = 1 << 18, 1 << 6
	f.Bold = has("bold", "black", "heavy", "-demi", "semibold", "cmbx", "-medi") ||
		flags&forceBold != 0 || weight >= 600 && weight <= 1000 && !has("regular", "roman", "book", "medium", "light", "text")
	f.Italic = has("italic", "oblique", "cmti", "cmsl", "-ita", "reguital", "mediital") || flags&italic != 0 || angle != 0 && angle > -45 && angle < 45
	f.Name = fontFamily(base, family)
	f.Latin = standIn(f.Name, base, flags)
	return f
}

// fontFamily returns the name by which other programs know the font.
func fontFamily(base, family string) string {
	low := strings.ToLower(strings.NewReplacer(" ", "", "-", "", ",", "", "_", "").Replace(base))
	for _, k := range knownFonts {
		if strings.HasPrefix(low, k.prefix) {
			return k.name
		}
	}
	name := base
	if family != "" && !strings.ContainsFunc(family, func(r rune) bool { return r > unicode.MaxLatin1 || unicode.IsControl(r) }) {
		if i := strings.IndexByte(family, '+'); i == 6 {
			family = family[i+1:]
		}
		name = family
	}
	name, _, _ = strings.Cut(name, ",")
	name, style, _ := strings.Cut(name, "-")
	_ = style
	for _, suffix := range []string{"PSMT", "MT", "PS", "BoldItalic", "BoldOblique", "Bold", "Italic", "Oblique", "Regular"} {
		if s := strings.TrimSuffix(name, suffix); len(s) >= 3 {
			name = s
		}
	}
	name = strings.TrimSpace(name)
	if strings.Contains(name, " ") || name == "" {
		return name
	}
	// Systems call "LiberationSerif" "Liberation Serif".
	var b strings.Builder
	rs := []rune(name)
	for i, r := range rs {
		if i > 1 && unicode.IsUpper(r) && unicode.IsLower(rs[i-1]) {
			b.WriteByte(' ')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// knownFonts maps names that differ from the family name. TeX's fonts, which few
// systems have, map to a font with the same proportions.
var knownFonts = []struct{ prefix, name string }{
	{"timesnewroman", "Times New Roman"}, {"times", "Times New Roman"}, {"nimbusromno9l", "Times New Roman"}, {"nimbusroman", "Times New Roman"},
	{"arialnarrow", "Arial Narrow"}, {"arialblack", "Arial Black"}, {"arialunicode", "Arial Unicode MS"}, {"arial", "Arial"}, {"helveticaneue", "Helvetica Neue"}, {"helvetica", "Arial"}, {"nimbussan", "Arial"},
	{"couriernew", "Courier New"}, {"courier", "Courier New"}, {"nimbusmon", "Courier New"},
	{"cmtt", "Courier New"}, {"cmss", "Arial"}, {"cmr", "Times New Roman"}, {"cmb", "Times New Roman"}, {"cmti", "Times New Roman"},
	{"cmsl", "Times New Roman"}, {"cmcsc", "Times New Roman"}, {"cmmi", "Times New Roman"}, {"cmsy", "Cambria Math"}, {"cmex", "Cambria Math"},
	{"sfrm", "Times New Roman"}, {"sfbx", "Times New Roman"}, {"sfti", "Times New Roman"}, {"sftt", "Courier New"},
	{"lmroman", "Times New Roman"}, {"lmsans", "Arial"}, {"lmmono", "Courier New"},
	{"symbol", "Symbol"}, {"wingdings", "Wingdings"}, {"palatino", "Palatino Linotype"}, {"urwpalladio", "Palatino Linotype"},
	{"bookman", "Bookman Old Style"}, {"newcenturyschl", "Century Schoolbook"}, {"centuryschl", "Century Schoolbook"},
}

// symbolBullets are the characters of Symbol and Wingdings that Word and other
// programs use as bullets.
var symbolBullets = map[rune]string{
	0xf0b7: "•", 0xf0a7: "▪", 0xf0a8: "▪", 0xf06c: "●", 0xf06e: "■", 0xf071: "❑", 0xf075: "◆", 0xf0d8: "➢",
	0xf0e8: "➔", 0xf0fc: "✓", 0xf0a2: "○", 0xf0fb: "✗", 0xf076: "❖", 0xf0e0: "→", 0xf0de: "➢", 0xf02d: "–",
}
