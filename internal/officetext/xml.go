package officetext

import (
	"bytes"
	"context"
	"html"
	"strconv"
	"strings"
)

// An element is a start tag of XML.
type element struct {
	name  string // without prefix
	attrs []byte
	empty bool // <name/>
}

// attr returns the value of an attribute, whose name has no prefix.
func (e element) attr(name string) string {
	for rest := e.attrs; ; {
		before, after, found := bytes.Cut(rest, []byte("="))
		if !found {
			return ""
		}
		after = bytes.TrimLeft(after, whiteSpace)
		if len(after) == 0 || after[0] != '"' && after[0] != '\'' {
			rest = after
			continue
		}
		value, next, closed := bytes.Cut(after[1:], after[:1])
		if !closed {
			return ""
		}
		before = bytes.TrimRight(before, whiteSpace)
		if own, ok := bytes.CutSuffix(before, []byte(name)); ok && (len(own) == 0 || bytes.IndexByte([]byte(whiteSpace+":"), own[len(own)-1]) >= 0) {
			return html.UnescapeString(string(value))
		}
		rest = next
	}
}

// whiteSpace is that of XML.
const whiteSpace = " \t\r\n"

func (e element) isTrue(name string) bool {
	v := e.attr(name)
	return v == "1" || v == "true"
}

func (e element) number(name string, missing int) int {
	n, err := strconv.Atoi(e.attr(name))
	if err != nil {
		return missing
	}
	return n
}

// scan calls start, end and text for the tags and character data of XML, up to its end
// or to the first tag that is not closed.
func scan(ctx context.Context, b []byte, start func(element), end, text func(string)) {
	for n := 0; len(b) > 0; n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return
		}
		i := bytes.IndexByte(b, '<')
		if i < 0 {
			return
		}
		if i > 0 {
			text(html.UnescapeString(string(b[:i])))
		}
		b = b[i:]
		switch {
		case bytes.HasPrefix(b, []byte("<!--")):
			b = after(b, "-->")
			continue
		case bytes.HasPrefix(b, []byte("<![CDATA[")):
			rest := after(b, "]]>")
			text(string(bytes.TrimSuffix(b[len("<![CDATA["):len(b)-len(rest)], []byte("]]>"))))
			b = rest
			continue
		}
		j := bytes.IndexByte(b, '>')
		if j < 0 {
			return
		}
		t := b[1:j]
		b = b[j+1:]
		if len(t) == 0 || t[0] == '?' || t[0] == '!' {
			continue
		}
		if t[0] == '/' {
			end(local(t[1:]))
			continue
		}
		e := element{empty: t[len(t)-1] == '/'}
		t = bytes.TrimSuffix(t, []byte("/"))
		k := bytes.IndexAny(t, whiteSpace)
		if k < 0 {
			k = len(t)
		}
		e.name, e.attrs = local(t[:k]), t[k:]
		start(e)
		if e.empty {
			end(e.name)
		}
	}
}

// after returns what follows sep in b, or nothing.
func after(b []byte, sep string) []byte {
	_, rest, _ := bytes.Cut(b, []byte(sep))
	return rest
}

// local returns a name without its prefix.
func local(name []byte) string {
	return string(bytes.TrimSpace(name[bytes.IndexByte(name, ':')+1:]))
}

// A cell is a cell with text. Rows and columns are counted from 0.
type cell struct {
	row, column int
	text        string
}

// A sheet has the parts of a sheet that decide which cells show.
type sheet struct {
	areas         []area // the print ranges; all if there are none
	hiddenRows    map[int]bool
	hiddenColumns []area
	merged        []area
	cells         []cell
	numbers       []cell
}

// An area is a range of cells, with its last row and column.
type area struct{ row, column, lastRow, lastColumn int }

func (a area) contains(row, column int) bool {
	return row >= a.row && row <= a.lastRow && column >= a.column && column <= a.lastColumn
}

// maxCovered is the number of cells that merged cells may cover: those of a sheet with
// more are not known.
const maxCovered = 1 << 18

// cellEnd separates the cells of [Text].
const cellEnd = 0

// shown adds the cells that show.
func (s *sheet) shown(t *Text, b *strings.Builder) {
	if len(s.areas) > 100 || len(s.hiddenColumns) > 1000 {
		return
	}
	covered := map[[2]int]bool{}
	for _, m := range s.merged {
		n := (m.lastRow - m.row + 1) * (m.lastColumn - m.column + 1)
		if n <= 0 || n > maxCovered || len(covered)+n > maxCovered {
			return
		}
		for r := m.row; r <= m.lastRow; r++ {
			for c := m.column; c <= m.lastColumn; c++ {
				covered[[2]int{r, c}] = r != m.row || c != m.column
			}
		}
	}
	in := func(areas []area, c cell) bool {
		for _, a := range areas {
			if a.contains(c.row, c.column) {
				return true
			}
		}
		return false
	}
	shows := func(c cell) bool {
		return !s.hiddenRows[c.row] && !in(s.hiddenColumns, c) && !covered[[2]int{c.row, c.column}] && (len(s.areas) == 0 || in(s.areas, c))
	}
	for _, c := range s.cells {
		if shows(c) {
			b.WriteString(c.text)
			b.WriteByte(cellEnd)
		}
	}
	for _, c := range s.numbers {
		if shows(c) {
			t.Numbers++
		}
	}
}

// parseAreas reads ranges such as Sheet1!$A$1:$C$9,Sheet1!E1:F9, or those of OpenDocument:
// Sheet1.A1:Sheet1.C9. ok is false if it does not understand one.
func parseAreas(s, separator string) (areas []area, ok bool) {
	for part := range strings.SplitSeq(s, separator) {
		first, last, found := strings.Cut(lastName(part), ":")
		if !found {
			last = first
		}
		a, ok1 := parseCell(first)
		b, ok2 := parseCell(lastName(last))
		if !ok1 || !ok2 || len(areas) > 1000 {
			return nil, false
		}
		areas = append(areas, area{a.row, a.column, b.row, b.column})
	}
	return areas, true
}

// lastName removes the name of a sheet from a reference.
func lastName(s string) string {
	s = strings.TrimSpace(s)
	if i := strings.LastIndexByte(s, '!'); i >= 0 {
		return s[i+1:]
	}
	from, to, found := strings.Cut(s, ":")
	from = from[strings.LastIndexByte(from, '.')+1:]
	if !found {
		return from
	}
	return from + ":" + to[strings.LastIndexByte(to, '.')+1:]
}

// parseCell reads the name of a cell, such as B7 or $B$7.
func parseCell(s string) (c cell, ok bool) {
	s = strings.TrimPrefix(s, "$")
	letters := 0
	for letters < len(s) && 'A' <= s[letters] && s[letters] <= 'Z' {
		c.column = c.column*26 + int(s[letters]-'A') + 1
		letters++
	}
	c.column--
	digits := strings.TrimPrefix(s[letters:], "$")
	n, err := strconv.ParseUint(digits, 10, 32)
	c.row = int(n) - 1
	return c, err == nil && 1 <= letters && letters <= 3 && len(digits) <= 7
}
