package officeops

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/charset"
	"github.com/filewright/filewright/internal/delimited"
)

// Maximum rows and columns of LibreOffice and Excel, and of Excel 97.
const (
	maxRows, maxColumns       = 1 << 20, 16384
	maxRowsXLS, maxColumnsXLS = 65536, 256
)

// A table describes the format of a file of separated values.
type table struct {
	text    *charset.Text
	comma   rune
	columns []byte // LibreOffice's column types; 0 means standard
	rows    int
	width   int  // maximum columns of a row
	german  bool // numbers like 1.234,5 instead of 1,234.5
}

// Types of columns (LibreOffice help, Filter Options for CSV, token 5).
const (
	columnText = 2
	columnYMD  = 5
)

var (
	isoDate      = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}$`)
	decimalComma = regexp.MustCompile(`^[-+]?\d+(\.\d{3})*,\d+$`)
	exponent     = regexp.MustCompile(`^\d+[eE]\d+$`) // an article number, because programs write 1.2e6 or 12e+5
	decimalPoint = regexp.MustCompile(`^[-+]?\d+(,\d{3})*\.\d+$`)
)

// inspect detects the format of a text of separated values. The separator of TSV is a
// tab. comma is the separator of a CSV file, or 0 if it is unknown. inspect holds at most
// one row in memory, and rejects the rows that [delimited.Reader] rejects.
func inspect(ctx context.Context, text *charset.Text, from format.Format, comma rune) (*table, error) {
	if from == format.TSV {
		comma = '\t'
	}
	known := byte(comma)
	if comma >= utf8.RuneSelf {
		known = 0x01 // any byte that is not a separator, to detect only a line "sep=;"
	}
	found, _, err := delimited.Sniff(fileops.ContextReader(ctx, text.Reader()), known)
	if err != nil {
		return nil, err
	}
	t := &table{text: text, comma: rune(found)}
	if found == known && comma != 0 {
		t.comma = comma
	}
	type column struct{ values, dates, keep int }
	var columns []column
	commas, points := 0, 0
	err = t.each(ctx, func(r *delimited.Reader) error {
		t.rows++
		t.width = max(t.width, r.Len())
		if t.rows > maxRows || t.width > maxColumns {
			return fileops.Fail(fileops.ErrLimit, nil, "the file has more than %d rows or %d columns, the limits of a sheet", maxRows, maxColumns)
		}
		for i := range r.Len() {
			if i >= len(columns) {
				columns = append(columns, column{})
			}
			v := bytes.TrimSpace(r.Cell(i))
			if len(v) == 0 {
				continue
			}
			c := &columns[i]
			if t.rows > 1 { // the first row may be a heading
				c.values++
			}
			switch {
			case mustStayText(v):
				c.keep++
			case isoDate.Match(v):
				c.dates++
			case t.comma != ',' && decimalComma.Match(v):
				commas++
			case decimalPoint.Match(v):
				points++
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	t.german = commas > points
	for _, c := range columns {
		kind := byte(0)
		switch {
		case c.keep > 0:
			kind = columnText
		case c.dates > 0 && c.dates >= c.values:
			kind = columnYMD
		}
		t.columns = append(t.columns, kind)
	}
	return t, nil
}

// content returns the text without a line that declares the separator.
func (t *table) content(ctx context.Context) (io.Reader, error) {
	_, rest, err := delimited.Sniff(fileops.ContextReader(ctx, t.text.Reader()), 0)
	return rest, err
}

// each calls do for each row.
func (t *table) each(ctx context.Context, do func(*delimited.Reader) error) error {
	rest, err := t.content(ctx)
	if err != nil {
		return err
	}
	r := delimited.NewReader(rest, t.comma)
	r.LazyQuotes = true
	for {
		err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = do(r)
		}
		if err != nil {
			return err
		}
	}
}

// mustStayText reports whether a value would lose information as a number: article and
// telephone numbers, and numbers with too many digits.
func mustStayText(v []byte) bool {
	if v[0] == '+' {
		return len(v) > 1 && v[1] >= '0' && v[1] <= '9'
	}
	if exponent.Match(v) {
		return true
	}
	v = bytes.TrimPrefix(v, []byte("-"))
	digits := 0
	for _, c := range v {
		switch {
		case c >= '0' && c <= '9':
			digits++
		case c != '.' && c != ',':
			return false
		}
	}
	if digits > 15 {
		return true
	}
	return len(v) > 1 && v[0] == '0' && v[1] >= '0' && v[1] <= '9'
}

// options returns the LibreOffice filter options for the text. They are: separator,
// quote, UTF-8, first line, column types, language, quoted fields are text, detect
// special numbers, …, evaluate formulas.
func (t *table) options() string {
	var types []string
	for i, kind := range t.columns {
		if kind != 0 {
			types = append(types, fmt.Sprintf("%d/%d", i+1, kind))
		}
	}
	language := 1033 // en-US
	if t.german {
		language = 1031 // de-DE
	}
	return fmt.Sprintf("%d,34,76,1,%s,%d,false,false,false,false,false,0,false", t.comma, strings.Join(types, "/"), language)
}

// rewrite writes the values with another separator.
func (t *table) rewrite(ctx context.Context, w io.Writer, comma rune) error {
	out := csv.NewWriter(w)
	out.Comma = comma
	var row []string
	err := t.each(ctx, func(r *delimited.Reader) error {
		row = row[:0]
		for i := range r.Len() {
			row = append(row, string(r.Cell(i)))
		}
		return out.Write(row)
	})
	if err != nil {
		return err
	}
	out.Flush()
	return out.Error()
}

// sheetName returns the sheet name for a file, within the rules of Excel.
func sheetName(file string) string {
	name := strings.Map(func(r rune) rune {
		if strings.ContainsRune(`[]*?:/\`, r) || r < ' ' {
			return '_'
		}
		return r
	}, format.Base(file))
	name = strings.Trim(strings.ToValidUTF8(name, "_"), "' ")
	if r := []rune(name); len(r) > 31 {
		name = strings.TrimRight(string(r[:31]), "' ")
	}
	return name
}
