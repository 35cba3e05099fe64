package officetext

import (
	"bytes"
	"context"
	"path"
	"strings"
)

// readXLSX reads a workbook (ECMA-376 part 1, 18). Only cells with a shared or an inline
// string count: others are formulas, whose values may change, or numbers.
func readXLSX(ctx context.Context, z *archive, firstSheet bool) (t Text) {
	book := z.read("xl/workbook.xml")
	targets := map[string]string{}
	scan(ctx, z.read("xl/_rels/workbook.xml.rels"), func(e element) {
		if e.name == "Relationship" {
			target := e.attr("Target")
			if !strings.HasPrefix(target, "/") {
				target = path.Join("xl", target)
			}
			targets[e.attr("Id")] = strings.TrimPrefix(target, "/")
		}
	}, ignore, ignore)

	type entry struct {
		part   string
		hidden bool
		areas  []area
	}
	var sheets []entry
	inName, printed := -1, ""
	scan(ctx, book, func(e element) {
		switch e.name {
		case "sheet":
			state := e.attr("state")
			sheets = append(sheets, entry{part: targets[e.attr("id")], hidden: state != "" && state != "visible"})
		case "definedName":
			if inName = -1; e.attr("name") == "_xlnm.Print_Area" {
				inName, printed = e.number("localSheetId", -1), ""
			}
		}
	}, func(name string) {
		if name != "definedName" || inName < 0 || inName >= len(sheets) {
			return
		}
		areas, ok := parseAreas(printed, ",")
		sheets[inName].areas = areas
		sheets[inName].hidden = sheets[inName].hidden || !ok
		inName = -1
	}, func(s string) {
		if inName >= 0 {
			printed += s
		}
	})
	if len(sheets) == 0 {
		return t
	}
	shared := sharedStrings(ctx, z.read("xl/sharedStrings.xml"))
	blank := blankStyles(ctx, z.read("xl/styles.xml"))
	if firstSheet {
		sheets = sheets[:1]
		sheets[0].areas = nil
	}
	var b strings.Builder
	for _, s := range sheets {
		if s.hidden || s.part == "" {
			continue
		}
		found := &sheet{areas: s.areas, hiddenRows: map[int]bool{}}
		if readSheet(ctx, z.read(s.part), shared, blank, found) {
			found.shown(&t, &b)
		}
	}
	t.Text = b.String()
	return t
}

func ignore(string) {}

// sharedStrings returns the table of strings, without phonetic hints.
func sharedStrings(ctx context.Context, b []byte) (all []string) {
	var s strings.Builder
	phonetic, in := 0, false
	scan(ctx, b, func(e element) {
		switch e.name {
		case "si":
			s.Reset()
		case "rPh":
			phonetic++
		case "t":
			in = true
		}
	}, func(name string) {
		switch name {
		case "si":
			all = append(all, s.String())
		case "rPh":
			phonetic--
		case "t":
			in = false
		}
	}, func(text string) {
		if in && phonetic == 0 {
			s.WriteString(text)
		}
	})
	return all
}

// blankStyles returns the numbers of the cell styles that may show no value: their
// number format has an empty section.
func blankStyles(ctx context.Context, b []byte) map[int]bool {
	formats := map[string]bool{}
	styles := map[int]bool{}
	inCells, n := false, 0
	scan(ctx, b, func(e element) {
		switch e.name {
		case "numFmt":
			code := e.attr("formatCode")
			if strings.Contains(code, ";;") || strings.HasPrefix(code, ";") || strings.HasSuffix(code, ";") {
				formats[e.attr("numFmtId")] = true
			}
		case "cellXfs":
			inCells = true
		case "xf":
			if inCells {
				styles[n] = formats[e.attr("numFmtId")]
				n++
			}
		}
	}, func(name string) { inCells = inCells && name != "cellXfs" }, ignore)
	return styles
}

// readSheet reads a sheet. It returns false if it is not known which rows are hidden.
func readSheet(ctx context.Context, b []byte, shared []string, blank map[int]bool, s *sheet) bool {
	known := true
	row, column := -1, -1
	kind, style := "", 0
	var value strings.Builder
	inValue := false
	scan(ctx, b, func(e element) {
		switch e.name {
		case "sheetFormatPr":
			known = known && !e.isTrue("zeroHeight")
		case "col":
			if e.isTrue("hidden") || e.attr("width") == "0" {
				s.hiddenColumns = append(s.hiddenColumns, area{0, e.number("min", 1) - 1, 1 << 30, e.number("max", 1) - 1})
			}
		case "row":
			row, column = e.number("r", row+2)-1, -1
			if e.isTrue("hidden") || e.attr("ht") == "0" {
				s.hiddenRows[row] = true
			}
		case "c":
			column++
			if c, ok := parseCell(e.attr("r")); ok {
				row, column = c.row, c.column
			}
			kind, style = e.attr("t"), e.number("s", 0)
			value.Reset()
		case "v", "t":
			inValue = true
		case "rPh":
			inValue = false
		case "mergeCell":
			if a, ok := parseAreas(e.attr("ref"), " "); ok {
				s.merged = append(s.merged, a...)
			}
		}
	}, func(name string) {
		switch name {
		case "v", "t":
			inValue = false
		case "c":
			v := value.String()
			if blank[style] || v == "" {
				return
			}
			switch kind {
			case "s":
				if n := (element{attrs: []byte(` n="` + v + `"`)}).number("n", -1); n >= 0 && n < len(shared) {
					s.cells = append(s.cells, cell{row, column, shared[n]})
				}
			case "inlineStr":
				s.cells = append(s.cells, cell{row, column, v})
			case "", "n":
				s.numbers = append(s.numbers, cell{row: row, column: column})
			}
		}
	}, func(text string) {
		if inValue {
			value.WriteString(text)
		}
	})
	return known
}

// repeatedText returns the text of cells that a workbook has in other places, or once for
// several cells. ok is false if the workbook is too large.
func repeatedText(ctx context.Context, z *archive) (text string, ok bool) {
	for _, e := range z.files {
		if e.UncompressedSize64 > maxPart && path.Ext(e.Name) == ".xml" {
			return "", false
		}
	}
	var out strings.Builder
	add := func(text string, times int) {
		for ; times > 0 && out.Len() < maxResult; times-- {
			out.WriteString(text)
			out.WriteByte(cellEnd)
		}
	}
	if content := z.read("content.xml"); content != nil {
		rows, columns, start := 1, 1, 0
		var row strings.Builder
		in := false
		scan(ctx, content, func(e element) {
			switch e.name {
			case "table-row":
				rows = e.number("number-rows-repeated", 1)
				row.Reset()
			case "table-cell":
				columns, start, in = e.number("number-columns-repeated", 1), row.Len(), true
			}
		}, func(name string) {
			switch name {
			case "table-row":
				add(row.String(), rows-1)
			case "table-cell":
				in = false
				if text := row.String()[start:]; text != "" {
					for ; columns > 1 && row.Len() < maxResult; columns-- {
						row.WriteString(text)
						add(text, 1)
					}
				}
			}
		}, func(text string) {
			if in && row.Len() < maxResult {
				row.WriteString(text)
			}
		})
		return out.String(), z.left > 0
	}
	shared := sharedStrings(ctx, z.read("xl/sharedStrings.xml"))
	for _, e := range z.files {
		if !strings.HasPrefix(e.Name, "xl/worksheets/") || path.Ext(e.Name) != ".xml" {
			continue
		}
		s := &sheet{hiddenRows: map[int]bool{}}
		readSheet(ctx, z.read(e.Name), shared, nil, s)
		for _, c := range s.cells {
			add(c.text, 1)
		}
	}
	return out.String(), z.left > 0
}

// readODS reads the sheets of an OpenDocument workbook (OpenDocument 1.3 part 3, 9).
// Repeated rows and columns count once.
func readODS(ctx context.Context, b []byte, firstSheet bool) Text {
	r := odsReader{firstSheet: firstSheet, hidden: make(map[string]bool)}
	scan(ctx, b, r.start, r.end, func(text string) {
		if r.skip == 0 && r.paragraphs > 0 {
			r.value.WriteString(text)
		}
	})
	if bytes.Contains(b, []byte("<number:text-style")) { // may replace the text of cells
		r.text.Loose = true
	}
	r.text.Text = r.out.String()
	return r.text
}

// An odsReader collects the cells that show of an OpenDocument spreadsheet.
type odsReader struct {
	firstSheet bool
	text       Text
	out        strings.Builder

	hidden map[string]bool // styles of tables that do not show
	style  string

	depth, skip int // while skip > 0, elements are left out that are deeper than it

	sheet         *sheet // nil outside a table that shows
	tables        int
	declared      int // columns
	row, rows     int // the present row, and how often it repeats
	column, cells int // likewise
	kind          string
	paragraphs    int
	value         strings.Builder
}

func (r *odsReader) start(e element) {
	r.depth++
	if r.skip > 0 {
		return
	}
	switch e.name {
	case "style":
		r.style = e.attr("name")
	case "table-properties":
		if e.attr("display") == "false" {
			r.hidden[r.style] = true
		}
	case "annotation", "shapes", "frame", "custom-shape", "tracked-changes", "forms":
		r.skip = r.depth
	case "table":
		r.startTable(e)
	case "table-column":
		n := e.number("number-columns-repeated", 1)
		if r.sheet != nil && e.invisible() {
			r.sheet.hiddenColumns = append(r.sheet.hiddenColumns, area{0, r.declared, 1 << 30, r.declared + n - 1})
		}
		r.declared += n
	case "table-row":
		r.rows, r.column = e.number("number-rows-repeated", 1), 0
		if r.sheet != nil && e.invisible() {
			r.sheet.hiddenRows[r.row] = true
		}
	case "table-cell", "covered-table-cell":
		r.cells = e.number("number-columns-repeated", 1)
		if r.kind = e.attr("value-type"); e.name != "table-cell" || e.attr("formula") != "" {
			r.kind = "other"
		}
		r.value.Reset()
	case "p":
		r.paragraphs++
	}
}

// invisible reports whether a row or column does not show.
func (e element) invisible() bool {
	v := e.attr("visibility")
	return v != "" && v != "visible"
}

func (r *odsReader) startTable(e element) {
	r.tables++
	r.row, r.declared, r.sheet = 0, 0, nil
	if r.hidden[e.attr("style-name")] || e.attr("print") == "false" || r.firstSheet && r.tables > 1 {
		return
	}
	areas, ok := []area(nil), true
	if ranges := e.attr("print-ranges"); ranges != "" {
		areas, ok = parseAreas(ranges, " ")
	}
	if r.firstSheet {
		areas = nil
	}
	if ok {
		r.sheet = &sheet{areas: areas, hiddenRows: map[int]bool{}}
	}
}

func (r *odsReader) end(name string) {
	if r.depth--; r.skip > 0 {
		if r.depth < r.skip {
			r.skip = 0
		}
		return
	}
	switch name {
	case "table":
		if r.sheet != nil {
			r.sheet.shown(&r.text, &r.out)
		}
		r.sheet = nil
	case "table-row":
		r.row += max(r.rows, 1)
	case "table-cell", "covered-table-cell":
		if r.sheet != nil {
			switch r.kind {
			case "string", "":
				r.sheet.cells = append(r.sheet.cells, cell{r.row, r.column, r.value.String()})
			case "float", "currency", "percentage", "date", "time":
				r.sheet.numbers = append(r.sheet.numbers, cell{row: r.row, column: r.column})
			}
		}
		r.column += max(r.cells, 1)
	case "p":
		r.paragraphs--
	}
}
