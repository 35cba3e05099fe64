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

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
)

// Limits of the sheets of LibreOffice and Excel, and of those of Excel 97.
const (
	maxRows, maxColumns       = 1 << 20, 16384
	maxRowsXLS, maxColumnsXLS = 65536, 256
)

// A table says how to read a file of separated values.
type table struct {
	comma   rune
	skip    int    // bytes of a line "sep=;" before the data
	columns []byte // of LibreOffice's column types, 0 means standard
	rows    int
	width   int  // most columns in a row
	german  bool // 1.234,5 rather than 1,234.5
}

// Types of columns (LibreOffice help, Filter Options for CSV, token 5).
const (
	columnText = 2
	columnYMD  = 5
)

var (
	isoDate      = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}$`)
	decimalComma = regexp.MustCompile(`^[-+]?\d+(\.\d{3})*,\d+$`)
	decimalPoint = regexp.MustCompile(`^[-+]?\d+(,\d{3})*\.\d+$`)
)

// inspect finds out how a text of separated values is to be read. from decides
// on the separator only if it is TSV; comma is that of a CSV file if it is known,
// otherwise 0.
func inspect(ctx context.Context, text []byte, from format.Format, comma rune) (*table, error) {
	t := &table{comma: '\t'}
	if line, _, _ := bytes.Cut(text[:min(len(text), 16)], []byte("\n")); len(line) < len(text) {
		if s := strings.TrimRight(string(line), "\r"); len(s) == 5 && strings.EqualFold(s[:4], "sep=") {
			t.comma, t.skip = rune(s[4]), len(line)+1 // Excel's own way to say it
			from = format.TSV
		}
	}
	switch {
	case from == format.TSV:
	case comma != 0:
		t.comma = comma
	default:
		t.comma = separator(ctx, text)
	}
	type column struct{ values, dates, keep int }
	var columns []column
	commas, points := 0, 0
	r := t.reader(ctx, text)
	for {
		rec, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		var bad *csv.ParseError
		if err != nil && !errors.As(err, &bad) {
			return nil, err
		}
		t.rows++
		t.width = max(t.width, len(rec))
		if t.rows > maxRows || t.width > maxColumns {
			return nil, fileops.Fail(fileops.ErrLimit, nil, "the file has more than %d rows or %d columns, which a sheet cannot hold", maxRows, maxColumns)
		}
		for i, v := range rec {
			if i >= len(columns) {
				columns = append(columns, column{})
			}
			v = strings.TrimSpace(v)
			if v == "" {
				continue
			}
			c := &columns[i]
			if t.rows > 1 { // the first row may be a heading
				c.values++
			}
			switch {
			case mustStayText(v):
				c.keep++
			case isoDate.MatchString(v):
				c.dates++
			case t.comma != ',' && decimalComma.MatchString(v):
				commas++
			case decimalPoint.MatchString(v):
				points++
			}
		}
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

func (t *table) reader(ctx context.Context, text []byte) *csv.Reader {
	r := csv.NewReader(fileops.ContextReader(ctx, bytes.NewReader(text[t.skip:])))
	r.Comma, r.LazyQuotes, r.FieldsPerRecord = t.comma, true, -1
	return r
}

// mustStayText tells whether a value would lose something as a number: article
// and telephone numbers, and what has more digits than a number can hold.
func mustStayText(v string) bool {
	if v[0] == '+' {
		return len(v) > 1 && v[1] >= '0' && v[1] <= '9'
	}
	digits := 0
	for _, c := range strings.TrimPrefix(v, "-") {
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
	v = strings.TrimPrefix(v, "-")
	return len(v) > 1 && v[0] == '0' && v[1] >= '0' && v[1] <= '9'
}

// separator returns the one of the usual separators that cuts most lines into
// the same number of fields.
func separator(ctx context.Context, text []byte) rune {
	sample := text[:min(len(text), 64<<10)]
	if len(sample) < len(text) {
		if i := bytes.LastIndexByte(sample, '\n'); i > 0 {
			sample = sample[:i]
		}
	}
	best, bestScore := ',', 0.0
	for _, c := range []rune{',', ';', '\t', '|'} {
		t := &table{comma: c}
		r := t.reader(ctx, sample)
		counts, lines := make(map[int]int), 0
		for ; lines < 500; lines++ {
			rec, err := r.Read()
			if err != nil {
				break
			}
			counts[len(rec)]++
		}
		for n, k := range counts {
			if n < 2 {
				continue
			}
			// How many lines agree counts more than how many fields there are.
			share := float64(k) / float64(lines)
			if s := share*share*share + 0.01*float64(min(n, 10)); s > bestScore {
				best, bestScore = c, s
			}
		}
	}
	return best
}

// options returns the filter options that make LibreOffice read the text so:
// separator, quote, UTF-8, first line, column types, language, quoted fields
// are text, detect special numbers, …, evaluate formulas.
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
func (t *table) rewrite(ctx context.Context, w io.Writer, text []byte, comma rune) error {
	out := csv.NewWriter(w)
	out.Comma = comma
	in := t.reader(ctx, text)
	in.ReuseRecord = true
	for {
		rec, err := in.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		var bad *csv.ParseError
		if err != nil && !errors.As(err, &bad) {
			return err
		}
		if err := out.Write(rec); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// sheetName returns the name of a sheet made from a file: what Excel allows.
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
