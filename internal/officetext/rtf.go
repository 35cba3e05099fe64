package officetext

import (
	"bytes"
	"context"
	"strings"

	"github.com/filewright/filewright/internal/rtf"
)

// rtfUnseen are destinations whose text is not part of the body (Rich Text Format
// Specification 1.9.1).
var rtfUnseen = map[string]bool{
	"fonttbl": true, "colortbl": true, "stylesheet": true, "info": true, "pict": true, "object": true,
	"header": true, "headerl": true, "headerr": true, "headerf": true, "footer": true, "footerl": true, "footerr": true, "footerf": true,
	"footnote": true, "annotation": true, "fldinst": true, "listtable": true, "listoverridetable": true, "revtbl": true,
	"xe": true, "tc": true, "pntext": true, "bkmkstart": true, "bkmkend": true, "shp": true, "do": true,
	"filetbl": true, "themedata": true, "colorschememapping": true, "latentstyles": true, "datastore": true, "listtext": true,
}

// An rtfGroup is the state of a group.
type rtfGroup struct {
	skip    bool // another destination than the body
	hidden  bool
	unicode int // characters that replace a \u
}

// readRTF returns the text of a document: of its body, or with all, of everything but the
// tables at the start and binary data. Characters outside ASCII count only if they are
// written as Unicode, because others depend on the font.
func readRTF(ctx context.Context, b []byte, all bool) string {
	if !bytes.HasPrefix(bytes.TrimLeft(b, " \t\r\n"), []byte(`{\rtf`)) || isOLE(b) {
		return ""
	}
	var out strings.Builder
	g := rtfGroup{unicode: 1}
	var groups []rtfGroup
	replaced := 0 // characters to skip after a \u
	var wide rtf.Unicode
	write := func(r rune) {
		switch {
		case replaced > 0:
			replaced--
		case !g.skip && !g.hidden:
			out.WriteRune(r)
		}
	}
	const maxDepth = 1 << 16
	n := 0
	for t := range rtf.Tokens(b) {
		if n++; n%65536 == 0 && ctx.Err() != nil {
			return ""
		}
		switch t.Kind {
		case rtf.Open:
			if len(groups) >= maxDepth {
				return out.String()
			}
			groups, replaced = append(groups, g), 0
		case rtf.Close:
			if len(groups) == 0 {
				return out.String()
			}
			g, groups, replaced = groups[len(groups)-1], groups[:len(groups)-1], 0
		case rtf.Byte:
			if t.Char < 0x80 {
				write(rune(t.Char))
			} else if replaced > 0 {
				replaced--
			}
		case rtf.Symbol:
			switch t.Char {
			case '*':
				g.skip = g.skip || !all
			case '~', '_', '-', '|', ':':
				write(' ')
			default:
				write(rune(t.Char))
			}
		case rtf.Word:
			switch t.Name {
			case "u":
				replaced = 0
				for _, r := range wide.Add(t.N) {
					write(r)
				}
				replaced = g.unicode
			case "uc":
				g.unicode = max(t.N, 0)
			case "v", "deleted":
				g.hidden = !all && (!t.Given || t.N != 0)
			case "plain":
				g.hidden = false
			case "par", "line", "tab", "cell", "row", "sect", "page":
				write('\n')
			case "fonttbl", "stylesheet", "pict", "colortbl", "themedata", "datastore":
				g.skip = true
			default:
				g.skip = g.skip || rtfUnseen[t.Name] && !all
			}
		}
	}
	return out.String()
}
