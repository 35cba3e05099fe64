package dataops

import (
	"bytes"
	"fmt"
	"html"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/filewright/filewright/fileops/format"
)

// A tableWriter writes a table row by row. Cells are valid UTF-8.
type tableWriter interface {
	start(header [][]byte, width int) error // header is nil if columns have no names
	row(cells [][]byte) error
	close() error
}

// newTableWriter returns a writer for the format to. comma is the separator of
// CSV; 0 means the default.
func newTableWriter(w io.Writer, to format.Format, title string, comma byte) tableWriter {
	switch to {
	case format.HTML:
		return &htmlWriter{w: w, title: strings.ToValidUTF8(title, "\ufffd")}
	case format.MD:
		return &mdWriter{w: w}
	case format.TSV:
		return newCSVWriter(w, '\t', "\t\"\r\n")
	}
	// Quote every common separator inside a cell. Otherwise programs that detect the
	// separator, like this package, could choose the wrong one.
	if comma == 0 {
		comma = ','
	}
	return newCSVWriter(w, comma, ",;|\t\"\r\n")
}

// A csvWriter writes separated values (RFC 4180, but with \n between rows).
type csvWriter struct {
	w       io.Writer
	comma   byte
	class   [256]byte // flags for each byte: special, control or 0
	buf     []byte
	cleaned []byte
}

// Classes of bytes.
const (
	special byte = 1 << iota // requires quotes around the cell
	control                  // does not occur in text files
)

func newCSVWriter(w io.Writer, comma byte, quote string) *csvWriter {
	c := &csvWriter{w: w, comma: comma}
	for i := range c.class {
		if b := byte(i); b < '\b' || b > '\r' && b < ' ' && b != 0x1b || b == 0x7f {
			c.class[i] = control
		}
	}
	for _, b := range []byte(quote) {
		c.class[b] = special
	}
	return c
}

func (c *csvWriter) start(header [][]byte, _ int) error {
	if header == nil {
		return nil
	}
	return c.row(header)
}

func (c *csvWriter) row(cells [][]byte) error {
	c.buf = c.buf[:0]
	for i, cell := range cells {
		var found byte
		for _, b := range cell {
			found |= c.class[b]
		}
		if found&control != 0 {
			cell = c.clean(cell)
		}
		if i > 0 {
			c.buf = append(c.buf, c.comma)
		}
		if found&special == 0 && !quoted(cell, i == 0, len(cells) == 1) {
			c.buf = append(c.buf, cell...)
			continue
		}
		c.buf = append(c.buf, '"')
		for len(cell) > 0 {
			n := bytes.IndexByte(cell, '"') + 1
			if n == 0 {
				c.buf = append(c.buf, cell...)
				break
			}
			c.buf = append(append(c.buf, cell[:n]...), '"')
			cell = cell[n:]
		}
		c.buf = append(c.buf, '"')
	}
	c.buf = append(c.buf, '\n')
	_, err := c.w.Write(c.buf)
	return err
}

// clean replaces control characters by U+FFFD.
func (c *csvWriter) clean(cell []byte) []byte {
	c.cleaned = c.cleaned[:0]
	for _, b := range cell {
		if c.class[b] == control {
			c.cleaned = append(c.cleaned, "\ufffd"...)
		} else {
			c.cleaned = append(c.cleaned, b)
		}
	}
	return c.cleaned
}

// quoted reports whether a cell without special bytes needs quotes. A row must
// not be an empty line, and a file must not start with a byte order mark or a
// "sep=" line.
func quoted(cell []byte, first, only bool) bool {
	switch {
	case len(cell) == 0:
		return only
	case first && (bytes.HasPrefix(cell, []byte("\ufeff")) || len(cell) > 3 && bytes.EqualFold(cell[:4], []byte("sep="))):
		return true
	}
	return cell[0] == ' ' || cell[len(cell)-1] == ' '
}

func (c *csvWriter) close() error { return nil }

// An htmlWriter writes a document with a table.
type htmlWriter struct {
	w     io.Writer
	title string
	buf   []byte
}

const htmlHead = `<!DOCTYPE html>
<html>
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>%s</title>
<style>
body { font-family: system-ui, sans-serif; margin: 2rem; color: #222; background: #fff }
table { border-collapse: collapse; font-size: 0.9rem }
th, td { border: 1px solid #ccc; padding: 0.3rem 0.6rem; text-align: left; vertical-align: top; white-space: pre-wrap }
th { background: #f0f0f0; position: sticky; top: 0 }
tbody tr:nth-child(even) { background: #f8f8f8 }
</style>
</head>
<body>
<table>
`

func (h *htmlWriter) start(header [][]byte, _ int) error {
	if _, err := fmt.Fprintf(h.w, htmlHead, html.EscapeString(h.title)); err != nil {
		return err
	}
	if header != nil {
		if _, err := io.WriteString(h.w, "<thead>\n"); err != nil {
			return err
		}
		if err := h.cells(header, "th"); err != nil {
			return err
		}
		if _, err := io.WriteString(h.w, "</thead>\n"); err != nil {
			return err
		}
	}
	_, err := io.WriteString(h.w, "<tbody>\n")
	return err
}

func (h *htmlWriter) row(cells [][]byte) error { return h.cells(cells, "td") }

func (h *htmlWriter) cells(cells [][]byte, tag string) error {
	h.buf = append(h.buf[:0], "<tr>"...)
	for _, cell := range cells {
		h.buf = append(append(append(h.buf, '<'), tag...), '>')
		for i, c := range cell {
			switch {
			case c == '&':
				h.buf = append(h.buf, "&amp;"...)
			case c == '<':
				h.buf = append(h.buf, "&lt;"...)
			case c == '>':
				h.buf = append(h.buf, "&gt;"...)
			case c == '"':
				h.buf = append(h.buf, "&#34;"...)
			case c == '\n' && i > 0 && cell[i-1] == '\r':
				// done
			case c == '\n', c == '\r':
				h.buf = append(h.buf, "<br>"...)
			case c < ' ' && c != '\t', c == 0x7f:
				h.buf = append(h.buf, "\ufffd"...) // not allowed in HTML
			default:
				h.buf = append(h.buf, c)
			}
		}
		h.buf = append(append(append(h.buf, "</"...), tag...), '>')
	}
	h.buf = append(h.buf, "</tr>\n"...)
	_, err := h.w.Write(h.buf)
	return err
}

func (h *htmlWriter) close() error {
	_, err := io.WriteString(h.w, "</tbody>\n</table>\n</body>\n</html>\n")
	return err
}

// An mdWriter writes a table of GitHub Flavored Markdown (its specification,
// section 4.10).
type mdWriter struct {
	w   io.Writer
	buf []byte
}

func (m *mdWriter) start(header [][]byte, width int) error {
	if header == nil {
		// A table must have a header.
		for i := range width {
			header = append(header, fmt.Appendf(nil, "column_%d", i+1))
		}
	}
	if err := m.row(header); err != nil {
		return err
	}
	_, err := io.WriteString(m.w, "|"+strings.Repeat(" --- |", width)+"\n")
	return err
}

func (m *mdWriter) row(cells [][]byte) error {
	m.buf = append(m.buf[:0], '|')
	for _, cell := range cells {
		m.buf = append(m.buf, ' ')
		m.cell(cell)
		m.buf = append(m.buf, " |"...)
	}
	m.buf = append(m.buf, '\n')
	_, err := m.w.Write(m.buf)
	return err
}

// cell appends a text escaped for a table.
func (m *mdWriter) cell(cell []byte) {
	for i, c := range cell {
		switch c {
		case '\\', '|', '*', '`', '[', ']', '~', '$':
			m.buf = append(m.buf, '\\', c)
		case '_':
			// Inside a word it has no meaning.
			before, _ := utf8.DecodeLastRune(cell[:i])
			after, _ := utf8.DecodeRune(cell[i+1:])
			if !wordRune(before) || !wordRune(after) {
				m.buf = append(m.buf, '\\')
			}
			m.buf = append(m.buf, c)
		case '&':
			m.buf = append(m.buf, "&amp;"...)
		case '<':
			m.buf = append(m.buf, "&lt;"...)
		case '>':
			m.buf = append(m.buf, "&gt;"...)
		case '\r':
			m.buf = append(m.buf, "<br>"...)
		case '\n':
			if i == 0 || cell[i-1] != '\r' {
				m.buf = append(m.buf, "<br>"...)
			}
		case '\t':
			m.buf = append(m.buf, ' ')
		default:
			if c < ' ' || c == 0x7f {
				m.buf = append(m.buf, "\ufffd"...)
				continue
			}
			m.buf = append(m.buf, c)
		}
	}
}

func wordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

func (m *mdWriter) close() error { return nil }
