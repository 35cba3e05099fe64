package dataops

import (
	"bufio"
	"context"
	"fmt"
	"html"
	"io"
	"strings"
	"unicode/utf8"
)

// A workbook is written as flat XML (OpenDocument 1.2, part 1, 3.1.2). It declares the
// type of each cell, so programs that convert it need not guess.
const (
	workbookHead = `<?xml version="1.0" encoding="UTF-8"?>
<office:document xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" office:version="1.2" office:mimetype="application/vnd.oasis.opendocument.spreadsheet">
<office:body><office:spreadsheet>
`
	workbookTail = "</office:spreadsheet></office:body>\n</office:document>\n"

	maxSheetName = 31 // characters; Excel's limit
)

// writeWorkbook writes a sheet for each table.
func writeWorkbook(ctx context.Context, w io.Writer, tables []*grid) error {
	out := bufio.NewWriter(w)
	out.WriteString(workbookHead)
	names := sheetNames(tables)
	for i, g := range tables {
		fmt.Fprintf(out, "<table:table table:name=\"%s\">\n", html.EscapeString(names[i]))
		for _, row := range g.rows {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			out.WriteString("<table:table-row>")
			for _, cell := range row {
				writeCell(out, cell)
			}
			if _, err := out.WriteString("</table:table-row>\n"); err != nil {
				return err
			}
		}
		out.WriteString("</table:table>\n")
	}
	out.WriteString(workbookTail)
	return out.Flush()
}

// writeCell writes a cell. out keeps the first error.
func writeCell(out *bufio.Writer, cell string) {
	switch {
	case cell == "":
		out.WriteString("<table:table-cell/>")
		return
	case isPlainNumber([]byte(cell)):
		fmt.Fprintf(out, `<table:table-cell office:value-type="float" office:value="%s">`, cell)
	default:
		out.WriteString(`<table:table-cell office:value-type="string">`)
	}
	for line := range strings.SplitSeq(cell, "\n") {
		out.WriteString("<text:p>")
		writeLine(out, line)
		out.WriteString("</text:p>")
	}
	out.WriteString("</table:table-cell>")
}

// writeLine writes a text without line ends. XML collapses consecutive spaces,
// so they are encoded.
func writeLine(out *bufio.Writer, line string) {
	before := ' '
	for _, r := range line {
		switch {
		case r == '\t':
			out.WriteString("<text:tab/>")
		case r == ' ' && before == ' ':
			out.WriteString("<text:s/>")
		case r == '&':
			out.WriteString("&amp;")
		case r == '<':
			out.WriteString("&lt;")
		case r == '>':
			out.WriteString("&gt;")
		case r == 0xfffe, r == 0xffff: // not allowed in XML
			out.WriteRune(utf8.RuneError)
		default:
			out.WriteRune(r)
		}
		before = r
	}
}

// sheetNames returns a sheet name for each table, derived from its caption if it has
// one. Every program accepts the names: they are unique, and have at most 31
// characters and no forbidden characters.
func sheetNames(tables []*grid) []string {
	used := make(map[string]bool)
	names := make([]string, len(tables))
	for i, g := range tables {
		name := strings.Map(func(r rune) rune {
			if strings.ContainsRune(`[]:*?/\`, r) || r < ' ' || r == 0xfffe || r == 0xffff {
				return ' '
			}
			return r
		}, g.name)
		name = strings.Trim(strings.Join(strings.Fields(name), " "), "'")
		if name == "" {
			name = fmt.Sprintf("Table %d", g.number)
		}
		names[i] = cut(name, "")
		for n := 2; used[strings.ToLower(names[i])]; n++ {
			names[i] = cut(name, fmt.Sprintf(" (%d)", n))
		}
		used[strings.ToLower(names[i])] = true
	}
	return names
}

// cut returns name and end. If they are too long together, it truncates name.
func cut(name, end string) string {
	n := 0
	for i, r := range name {
		if n += utf16Len(r); n+len(end) > maxSheetName {
			name = name[:i]
			break
		}
	}
	return strings.TrimRight(name, " '") + end
}

// utf16Len returns the number of characters that Excel counts for a rune.
func utf16Len(r rune) int {
	if r > 0xffff {
		return 2
	}
	return 1
}
