package officeops

import (
	"bufio"
	"errors"
	"html"
	"io"
	"unicode"
)

// maxText is the maximum size of a text file in bytes.
const maxText = 128 << 20

// textToHTML converts plain UTF-8 text to a page. Each block between empty lines becomes
// a paragraph that keeps its line breaks and indents. textToHTML drops white space at the
// end of a line, and never holds a whole line in memory.
func textToHTML(w io.Writer, text io.Reader, title string) error {
	b := bufio.NewWriter(w)
	b.WriteString("<!DOCTYPE html>\n<html><head><meta charset=\"utf-8\"><title>" + html.EscapeString(title) +
		"</title><style>p { white-space: pre-wrap }</style></head><body>\n")
	r := bufio.NewReaderSize(text, 64<<10)
	const maxSpace = 4096 // maximum run of white space that is kept, in characters
	var (
		inside bool   // in a paragraph
		empty  = true // the line has only white space so far
		cr     bool   // the previous character was a carriage return
		space  []rune // pending white space before the next character of the line
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
		if errors.Is(err, io.EOF) {
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
		switch c { // as in html.EscapeString
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
