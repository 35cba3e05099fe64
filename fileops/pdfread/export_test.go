package pdfread

import (
	"fmt"
)

// ParsePages makes parsePages testable.
func ParsePages(s string, total int) ([]int, error) { return parsePages(s, total) }

// PagesPattern is the pattern of the parameter pages.
const PagesPattern = pagesPattern

// Compiled tells whether pdfium was compiled, once that is decided.
func (e *Engine) Compiled() bool {
	<-e.starter.ready
	return e.starter.lib != nil
}

// TableValues returns the content of the cells of a table, whose first header
// rows are its header, as text: numbers with their format behind them.
func TableValues(rows [][]string, header int, lang string) [][]string {
	g := &grid{rows: rows, header: header}
	var out [][]string
	for _, row := range g.values(decimalComma([]*grid{g}, lang)) {
		var line []string
		for _, v := range row {
			s := v.text
			if v.style.kind != plainStyle {
				s = fmt.Sprint(v.number) + " as " + v.style.code()
			}
			line = append(line, s)
		}
		out = append(out, line)
	}
	return out
}
