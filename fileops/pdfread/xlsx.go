package pdfread

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

// This file writes a workbook as Office Open XML (ECMA-376, part 1, 18): values
// only, with number formats.

const (
	nsSheet  = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
	bookType = "application/vnd.openxmlformats-officedocument.spreadsheetml."

	maxCellText = 32_767 // characters; what programs accept
)

// A workbook is sheets of values.
type workbook struct{ sheets []worksheet }

type worksheet struct {
	name   string // at most 31 characters, none of []:*?/\
	header int    // rows in bold print
	rows   [][]value
}

type styleKind int

const (
	plainStyle styleKind = iota // text
	generalStyle
	numberStyle
	percentStyle
	dateStyle
)

// A cellStyle is how a value is shown. Styles are compared with ==.
type cellStyle struct {
	kind     styleKind
	decimals int
	grouped  bool
	currency string
	before   bool // the currency stands before the number
	header   bool
	wrap     bool
}

// code returns the number format (18.8.31).
func (s cellStyle) code() string {
	switch s.kind {
	case plainStyle, generalStyle:
		return "General"
	case dateStyle:
		return "yyyy-mm-dd"
	}
	code := "0"
	if s.grouped {
		code = "#,##0"
	}
	if s.decimals > 0 {
		code += "." + strings.Repeat("0", s.decimals)
	}
	switch {
	case s.kind == percentStyle:
		return code + "%"
	case s.currency != "" && s.before:
		return `"` + s.currency + `"` + code
	case s.currency != "":
		return code + ` "` + s.currency + `"`
	}
	return code
}

// write writes the workbook. The result depends on nothing but b.
func (b *workbook) write(ctx context.Context, w io.Writer) error {
	z := zip.NewWriter(w)
	var styles []cellStyle
	index := map[cellStyle]int{{}: 0}
	styles = append(styles, cellStyle{})
	style := func(s cellStyle) int {
		i, ok := index[s]
		if !ok {
			i = len(styles)
			index[s] = i
			styles = append(styles, s)
		}
		return i
	}
	part := func(name string, fn func(out *bufio.Writer)) error {
		if err := cancelled(ctx); err != nil {
			return err
		}
		f, err := z.Create(name)
		if err != nil {
			return err
		}
		out := bufio.NewWriter(f)
		out.WriteString(xmlHead)
		fn(out)
		return out.Flush()
	}
	for i, s := range b.sheets {
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
			out.WriteString(`<Relationships xmlns="` + nsPkg + `relationships"><Relationship Id="rId1" Type="` + nsRel + `/officeDocument" Target="xl/workbook.xml"/></Relationships>`)
		}},
		{"xl/workbook.xml", b.book},
		{"xl/_rels/workbook.xml.rels", func(out *bufio.Writer) {
			out.WriteString(`<Relationships xmlns="` + nsPkg + `relationships">`)
			for i := range b.sheets {
				fmt.Fprintf(out, `<Relationship Id="rId%d" Type="%s/worksheet" Target="worksheets/sheet%d.xml"/>`, i+1, nsRel, i+1)
			}
			fmt.Fprintf(out, `<Relationship Id="rId%d" Type="%s/styles" Target="styles.xml"/></Relationships>`, len(b.sheets)+1, nsRel)
		}},
		{"xl/styles.xml", func(out *bufio.Writer) { writeStyles(out, styles) }},
	} {
		if err := part(p.name, p.fn); err != nil {
			return err
		}
	}
	return z.Close()
}

func (b *workbook) contentTypes(out *bufio.Writer) {
	out.WriteString(`<Types xmlns="` + nsPkg + `content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>` +
		`<Default Extension="xml" ContentType="application/xml"/><Override PartName="/xl/workbook.xml" ContentType="` + bookType + `sheet.main+xml"/>` +
		`<Override PartName="/xl/styles.xml" ContentType="` + bookType + `styles+xml"/>`)
	for i := range b.sheets {
		fmt.Fprintf(out, `<Override PartName="/xl/worksheets/sheet%d.xml" ContentType="%sworksheet+xml"/>`, i+1, bookType)
	}
	out.WriteString(`</Types>`)
}

func (b *workbook) book(out *bufio.Writer) {
	out.WriteString(`<workbook xmlns="` + nsSheet + `" xmlns:r="` + nsRel + `"><sheets>`)
	for i, s := range b.sheets {
		fmt.Fprintf(out, `<sheet name="%s" sheetId="%d" r:id="rId%d"/>`, escape(s.name), i+1, i+1)
	}
	out.WriteString(`</sheets></workbook>`)
}

func (s *worksheet) write(out *bufio.Writer, style func(cellStyle) int) {
	out.WriteString(`<worksheet xmlns="` + nsSheet + `"><sheetViews><sheetView workbookViewId="0">`)
	if s.header > 0 {
		fmt.Fprintf(out, `<pane ySplit="%d" topLeftCell="A%d" activePane="bottomLeft" state="frozen"/>`, s.header, s.header+1)
	}
	out.WriteString(`</sheetView></sheetViews><cols>`)
	for k, wide := range s.widths() {
		fmt.Fprintf(out, `<col min="%d" max="%d" width="%d" customWidth="1"/>`, k+1, k+1, wide)
	}
	out.WriteString(`</cols><sheetData>`)
	for i, row := range s.rows {
		fmt.Fprintf(out, `<row r="%d">`, i+1)
		for k, v := range row {
			ref := columnName(k) + strconv.Itoa(i+1)
			st := v.style
			st.header = i < s.header
			if st.kind != plainStyle {
				fmt.Fprintf(out, `<c r="%s" s="%d"><v>%s</v></c>`, ref, style(st), strconv.FormatFloat(v.number, 'g', -1, 64))
				continue
			}
			if v.text == "" {
				continue
			}
			text := v.text
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

// widths returns those of the columns, in characters.
func (s *worksheet) widths() []int {
	var out []int
	for _, row := range s.rows {
		for k, v := range row {
			for len(out) <= k {
				out = append(out, 8)
			}
			n := 12
			if v.style.kind == plainStyle {
				n = 0
				for line := range strings.SplitSeq(v.text, "\n") {
					n = max(n, utf8.RuneCountInString(line)+2)
				}
			}
			out[k] = min(max(out[k], n), 60)
		}
	}
	return out
}

// escapeLines is escape for text with line breaks.
func escapeLines(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = escape(l)
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

// writeStyles writes the formats of cells (18.8).
func writeStyles(out *bufio.Writer, styles []cellStyle) {
	const firstOwn = 164 // numbers below it are built in
	var codes []string
	for _, s := range styles {
		if c := s.code(); c != "General" && !slices.Contains(codes, c) {
			codes = append(codes, c)
		}
	}
	out.WriteString(`<styleSheet xmlns="` + nsSheet + `">`)
	if len(codes) > 0 {
		fmt.Fprintf(out, `<numFmts count="%d">`, len(codes))
		for i, c := range codes {
			fmt.Fprintf(out, `<numFmt numFmtId="%d" formatCode="%s"/>`, firstOwn+i, escape(c))
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
		if i := slices.Index(codes, s.code()); i >= 0 {
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
