package officeops

import (
	"bufio"
	"html"
	"io"
	"unicode"
)

// maxText is how large a text file may be, in bytes.
const maxText = 128 << 20

// textToHTML makes a page of plain text in UTF-8: a paragraph for each block between
// empty lines, with its line breaks and indents. White space at the end of a line is
// left out. It holds no line in memory.
func textToHTML(w io.Writer, text io.Reader, title string) error {
	b := bufio.NewWriter(w)
	b.WriteString("<!DOCTYPE html>\n<html><head><meta charset=\"utf-8\"><title>" + html.EscapeString(title) +
		"</title><style>p { white-space: pre-wrap }</style></head><body>\n")
	r := bufio.NewReaderSize(text, 64<<10)
	const maxSpace = 4096 // characters of white space in a row that are kept
	var (
		inside bool   // in a paragraph
		empty  = true // nothing but white space so far in the line
		cr     bool   // the character before was a carriage return
		space  []rune // before the next character of the line
	)
	endLine := func() {
		if empty && inside {
			b.WriteString("</p>\n")
			inside = false
		}
		empty, space = true, space[:0]
	}
	for {
		c, _, err := r.ReadRune()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		afterCR := cr
		cr = c == '\r'
		switch {
		case c == '\n' && afterCR:
			continue
		case c == '\n' || c == '\r':
			endLine()
			continue
		case c == '\f':
			endLine()
			endLine()
			continue
		case unicode.IsSpace(c):
			if len(space) < maxSpace {
				space = append(space, c)
			}
			continue
		}
		if empty {
			if inside {
				b.WriteString("<br>")
			} else {
				b.WriteString("<p>")
			}
			inside = true
		}
		indent := empty
		for _, s := range space {
			switch {
			case indent && s == '\t':
				b.WriteString("&#160;&#160;&#160;&#160;")
			case indent && s == ' ':
				b.WriteString("&#160;")
			default:
				indent = false
				b.WriteRune(s)
			}
		}
		empty, space = false, space[:0]
		switch c { // as html.EscapeString
		case '&', '<', '>', '"', '\'':
			b.WriteString(html.EscapeString(string(c)))
		default:
			b.WriteRune(c)
		}
	}
	endLine()
	if inside {
		b.WriteString("</p>\n")
	}
	b.WriteString("</body></html>\n")
	return b.Flush()
}
