package ooxml

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/klauspost/compress/zip"
)

// A Value is the content of a cell.
type Value struct {
	Text   string  // if Style.Kind is PlainStyle
	Number float64 // otherwise
	Style  Style
}

const (
	nsSheet  = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
	bookType = "application/vnd.openxmlformats-officedocument.spreadsheetml."

	maxCellText = 32_767 // characters; limit of programs
)

// A Workbook is a list of sheets.
type Workbook struct{ Sheets []Sheet }

// A Sheet is one sheet of a workbook.
type Sheet struct {
	Name   string // at most 31 characters, without []:*?/\
	Header int    // number of header rows, in bold
	Rows   [][]Value
}

// A StyleKind is the type of a value.
type StyleKind int

// The types of values.
const (
	PlainStyle StyleKind = iota // text
	GeneralStyle
	NumberStyle
	PercentStyle
	DateStyle
)

// A Style is the display format of a value. Styles are comparable with ==.
type Style struct {
	Kind     StyleKind
	Decimals int
	Grouped  bool
	Currency string
	Before   bool // the currency precedes the number
	header   bool
	wrap     bool
}

// Code returns the number format code (ECMA-376, part 1, 18.8.31).
func (s Style) Code() string {
	switch s.Kind {
	case PlainStyle, GeneralStyle:
		return "General"
	case DateStyle:
		return "yyyy-mm-dd"
	}
	code := "0"
	if s.Grouped {
		code = "#,##0"
	}
	if s.Decimals > 0 {
		code += "." + strings.Repeat("0", s.Decimals)
	}
	switch {
	case s.Kind == PercentStyle:
		return code + "%"
	case s.Currency != "" && s.Before:
		return `"` + s.Currency + `"` + code
	case s.Currency != "":
		return code + ` "` + s.Currency + `"`
	}
	return code
}

// Write writes the workbook. Equal workbooks result in equal files.
func (b *Workbook) Write(ctx context.Context, w io.Writer) error {
	z := zip.NewWriter(w)
	var styles []Style
	index := map[Style]int{{}: 0}
	styles = append(styles, Style{})
	style := func(s Style) int {
		i, ok := index[s]
		if !ok {
			i = len(styles)
			index[s] = i
			styles = append(styles, s)
		}
		return i
	}
	part := func(name string, fn func(out *bufio.Writer)) error {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		f, err := z.Create(name)
		if err != nil {
			return err
		}
		out := bufio.NewWriter(f)
		out.WriteString(Header)
		fn(out)
		return out.Flush()
	}
	for i, s := range b.Sheets {
		if err := part(fmt.Sprintf("xl/worksheets/sheet%d.xml", i+1), func(out *bufio.Writer) { s.write(out, style) }); err != nil {
			return err
		}
	}
	for _, p := range []struct {
		name string
		fn   func(*bufio.Writer)
	}{
		{"[Content_Types].xml", b.contentTypes},
		{"_rels/.rels", func(out *bufio.Writer) {
			out.WriteString(`<Relationships xmlns="` + PackageNS + `relationships"><Relationship Id="rId1" Type="` + RelationshipNS + `/officeDocument" Target="xl/workbook.xml"/></Relationships>`)
		}},
		{"xl/workbook.xml", b.book},
		{"xl/_rels/workbook.xml.rels", func(out *bufio.Writer) {
			out.WriteString(`<Relationships xmlns="` + PackageNS + `relationships">`)
			for i := range b.Sheets {
				fmt.Fprintf(out, `<Relationship Id="rId%d" Type="%s/worksheet" Target="worksheets/sheet%d.xml"/>`, i+1, RelationshipNS, i+1)
			}
			fmt.Fprintf(out, `<Relationship Id="rId%d" Type="%s/styles" Target="styles.xml"/></Relationships>`, len(b.Sheets)+1, RelationshipNS)
		}},
		{"xl/styles.xml", func(out *bufio.Writer) { writeStyles(out, styles) }},
	} {
		if err := part(p.name, p.fn); err != nil {
			return err
		}
	}
	return z.Close()
}

func (b *Workbook) contentTypes(out *bufio.Writer) {
	out.WriteString(`<Types xmlns="` + PackageNS + `content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>` +
		`<Default Extension="xml" ContentType="application/xml"/><Override PartName="/xl/workbook.xml" ContentType="` + bookType + `sheet.main+xml"/>` +
		`<Override PartName="/xl/styles.xml" ContentType="` + bookType + `styles+xml"/>`)
	for i := range b.Sheets {
		fmt.Fprintf(out, `<Override PartName="/xl/worksheets/sheet%d.xml" ContentType="%sworksheet+xml"/>`, i+1, bookType)
	}
	out.WriteString(`</Types>`)
}

func (b *Workbook) book(out *bufio.Writer) {
	out.WriteString(`<workbook xmlns="` + nsSheet + `" xmlns:r="` + RelationshipNS + `"><sheets>`)
	for i, s := range b.Sheets {
		fmt.Fprintf(out, `<sheet name="%s" sheetId="%d" r:id="rId%d"/>`, Escape(s.Name), i+1, i+1)
	}
	out.WriteString(`</sheets></workbook>`)
}

func (s *Sheet) write(out *bufio.Writer, style func(Style) int) {
	out.WriteString(`<worksheet xmlns="` + nsSheet + `"><sheetViews><sheetView workbookViewId="0">`)
	if s.Header > 0 {
		fmt.Fprintf(out, `<pane ySplit="%d" topLeftCell="A%d" activePane="bottomLeft" state="frozen"/>`, s.Header, s.Header+1)
	}
	out.WriteString(`</sheetView></sheetViews><cols>`)
	for k, wide := range s.widths() {
		fmt.Fprintf(out, `<col min="%d" max="%d" width="%d" customWidth="1"/>`, k+1, k+1, wide)
	}
	out.WriteString(`</cols><sheetData>`)
	for i, row := range s.Rows {
		fmt.Fprintf(out, `<row r="%d">`, i+1)
		for k, v := range row {
			ref := columnName(k) + strconv.Itoa(i+1)
			st := v.Style
			st.header = i < s.Header
			if st.Kind != PlainStyle {
				fmt.Fprintf(out, `<c r="%s" s="%d"><v>%s</v></c>`, ref, style(st), strconv.FormatFloat(v.Number, 'g', -1, 64))
				continue
			}
			if v.Text == "" {
				continue
			}
			text := v.Text
			if utf8.RuneCountInString(text) > maxCellText {
				text = string([]rune(text)[:maxCellText])
			}
			st.wrap = strings.Contains(text, "\n")
			fmt.Fprintf(out, `<c r="%s" s="%d" t="inlineStr"><is><t xml:space="preserve">%s</t></is></c>`, ref, style(st), escapeLines(text))
		}
		out.WriteString(`</row>`)
	}
	out.WriteString(`</sheetData></worksheet>`)
}

// widths returns the column widths in characters.
func (s *Sheet) widths() []int {
	var out []int
	for _, row := range s.Rows {
		for k, v := range row {
			for len(out) <= k {
				out = append(out, 8)
			}
			n := 12
			if v.Style.Kind == PlainStyle {
				n = 0
				for line := range strings.SplitSeq(v.Text, "\n") {
					n = max(n, utf8.RuneCountInString(line)+2)
				}
			}
			out[k] = min(max(out[k], n), 60)
		}
	}
	return out
}

// escapeLines is Escape for text with line breaks.
func escapeLines(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = Escape(l)
	}
	return strings.Join(lines, "\n")
}

// columnName returns the letters of a column, counted from 0 (18.3.1.4).
func columnName(k int) string {
	name := ""
	for k++; k > 0; k = (k - 1) / 26 {
		name = string(rune('A'+(k-1)%26)) + name
	}
	return name
}

// writeStyles writes the cell formats (18.8).
func writeStyles(out *bufio.Writer, styles []Style) {
	const firstOwn = 164 // lower numbers are built in
	var codes []string
	for _, s := range styles {
		if c := s.Code(); c != "General" && !slices.Contains(codes, c) {
			codes = append(codes, c)
		}
	}
	out.WriteString(`<styleSheet xmlns="` + nsSheet + `">`)
	if len(codes) > 0 {
		fmt.Fprintf(out, `<numFmts count="%d">`, len(codes))
		for i, c := range codes {
			fmt.Fprintf(out, `<numFmt numFmtId="%d" formatCode="%s"/>`, firstOwn+i, Escape(c))
		}
		out.WriteString(`</numFmts>`)
	}
	out.WriteString(`<fonts count="2"><font><sz val="11"/><name val="Calibri"/></font><font><b/><sz val="11"/><name val="Calibri"/></font></fonts>` +
		`<fills count="2"><fill><patternFill patternType="none"/></fill><fill><patternFill patternType="gray125"/></fill></fills>` +
		`<borders count="1"><border><left/><right/><top/><bottom/><diagonal/></border></borders>` +
		`<cellStyleXfs count="1"><xf numFmtId="0" fontId="0" fillId="0" borderId="0"/></cellStyleXfs>`)
	fmt.Fprintf(out, `<cellXfs count="%d">`, len(styles))
	for _, s := range styles {
		id, font := 0, 0
		if i := slices.Index(codes, s.Code()); i >= 0 {
			id = firstOwn + i
		}
		if s.header {
			font = 1
		}
		fmt.Fprintf(out, `<xf numFmtId="%d" fontId="%d" fillId="0" borderId="0" xfId="0" applyNumberFormat="%d" applyFont="%d"`, id, font, min(1, id), font)
		if s.wrap {
			out.WriteString(` applyAlignment="1"><alignment vertical="top" wrapText="1"/></xf>`)
		} else {
			out.WriteString(`/>`)
		}
	}
	out.WriteString(`</cellXfs></styleSheet>`)
}
