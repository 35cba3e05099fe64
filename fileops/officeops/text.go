package officeops

import (
	"bytes"
	"html"
	"strings"
	"unicode"
)

// maxText is how large a text file may be, in bytes. It is read into memory.
const maxText = 128 << 20

// textToHTML makes a page of plain text: a paragraph for each block between
// empty lines, with its line breaks and indents.
func textToHTML(text []byte, title string) []byte {
	var b bytes.Buffer
	b.WriteString("<!DOCTYPE html>\n<html><head><meta charset=\"utf-8\"><title>" + html.EscapeString(title) +
		"</title><style>p { white-space: pre-wrap }</style></head><body>\n")
	s := strings.NewReplacer("\r\n", "\n", "\r", "\n", "\f", "\n\n").Replace(string(text))
	inside := false
	for line := range strings.SplitSeq(s, "\n") {
		line = strings.TrimRightFunc(line, unicode.IsSpace)
		if line == "" {
			if inside {
				b.WriteString("</p>\n")
			}
			inside = false
			continue
		}
		if inside {
			b.WriteString("<br>")
		} else {
			b.WriteString("<p>")
		}
		inside = true
		rest := strings.TrimLeft(line, " \t")
		for _, c := range line[:len(line)-len(rest)] {
			if c == '\t' {
				b.WriteString("&#160;&#160;&#160;")
			}
			b.WriteString("&#160;")
		}
		b.WriteString(html.EscapeString(rest))
	}
	if inside {
		b.WriteString("</p>\n")
	}
	b.WriteString("</body></html>\n")
	return b.Bytes()
}
