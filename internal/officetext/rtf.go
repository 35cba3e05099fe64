package officetext

import (
	"bytes"
	"context"
	"strconv"
	"strings"
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
	write := func(r rune) {
		switch {
		case replaced > 0:
			replaced--
		case !g.skip && !g.hidden:
			out.WriteRune(r)
		}
	}
	const maxDepth = 1 << 16
	for i, n := 0, 0; i < len(b); n++ {
		if n%65536 == 0 && ctx.Err() != nil {
			return ""
		}
		c := b[i]
		i++
		switch c {
		case '{':
			if len(groups) >= maxDepth {
				return out.String()
			}
			groups = append(groups, g)
			replaced = 0
			continue
		case '}':
			replaced = 0
			if len(groups) == 0 {
				return out.String()
			}
			g, groups = groups[len(groups)-1], groups[:len(groups)-1]
			continue
		case '\r', '\n':
			continue
		case '\\':
		default:
			if c < 0x80 {
				write(rune(c))
			} else if replaced > 0 {
				replaced--
			}
			continue
		}
		if i >= len(b) {
			break
		}
		if c = b[i]; !isLetter(c) {
			i++
			switch c {
			case '\'':
				if v, err := strconv.ParseUint(string(b[i:min(i+2, len(b))]), 16, 8); err == nil && v < 0x80 {
					write(rune(v))
				} else if replaced > 0 {
					replaced--
				}
				i = min(i+2, len(b))
			case '*':
				g.skip = g.skip || !all
			case '~', '_', '-', '|', ':':
				write(' ')
			default:
				write(rune(c))
			}
			continue
		}
		start := i
		for i < len(b) && isLetter(b[i]) && i-start < 32 {
			i++
		}
		word := string(b[start:i])
		start = i
		if i < len(b) && b[i] == '-' {
			i++
		}
		for i < len(b) && b[i] >= '0' && b[i] <= '9' && i-start < 12 {
			i++
		}
		value, err := strconv.Atoi(string(b[start:i]))
		given := err == nil
		if i < len(b) && b[i] == ' ' {
			i++
		}
		switch word {
		case "bin":
			i += min(max(value, 0), len(b)-i)
		case "u":
			replaced = 0
			write(rune(uint16(value)))
			replaced = g.unicode
		case "uc":
			g.unicode = max(value, 0)
		case "v", "deleted":
			g.hidden = !all && (!given || value != 0)
		case "plain":
			g.hidden = false
		case "par", "line", "tab", "cell", "row", "sect", "page":
			write('\n')
		default:
			switch {
			case word == "fonttbl" || word == "stylesheet" || word == "pict" || word == "colortbl" || word == "themedata" || word == "datastore":
				g.skip = true
			case rtfUnseen[word]:
				g.skip = g.skip || !all
			}
		}
	}
	return out.String()
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
