package extract

import (
	"strings"

	"github.com/filewright/filewright/fileops/pdfread/internal/model"
)

// Programs that open a document rarely have the fonts of a PDF file. A font that
// ships with common office programs keeps its name. Other fonts are replaced by
// common ones, with characters scaled to their original width. This keeps line
// and page breaks.

// officeFonts are prefixes of the names of fonts that keep their name.
var officeFonts = []string{
	"times new roman", "arial", "courier new", "calibri", "cambria", "candara", "consolas", "constantia", "corbel", "aptos",
	"verdana", "tahoma", "trebuchet", "georgia", "segoe", "comic sans", "impact", "century", "book antiqua",
	"bookman", "palatino", "franklin gothic", "gill sans", "lucida", "symbol", "wingdings", "webdings",
	"liberation", "dejavu", "noto", "carlito", "caladea",
}

// Flags of fonts (ISO 32000-1, table 123).
const (
	flagFixedPitch = 1 << 0
	flagSerif      = 1 << 1
)

// standIn returns the replacement of a font family for Latin text.
func standIn(family, base string, flags int) string {
	low := strings.ToLower(family)
	for _, f := range officeFonts {
		if strings.HasPrefix(low, f) {
			return family
		}
	}
	if strings.Contains(low, "dingbats") {
		return model.SymbolFont
	}
	low += " " + strings.ToLower(base)
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(low, w) {
				return true
			}
		}
		return false
	}
	switch {
	case flags&flagFixedPitch != 0 || has("mono", "courier", "typewriter", "console", "code"):
		return "Courier New"
	case has("sans", "gothic", "grotesk", "helvet", "univers", "frutiger", "myriad", "roboto", "futura"):
		return "Arial"
	case flags&flagSerif != 0 || has("serif", "roman", "times", "mincho", "garamond", "minion", "caslon", "baskerville", "bodoni", "sabon", "song", "ming"):
		return "Times New Roman"
	}
	return "Arial"
}
