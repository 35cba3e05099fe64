package tables

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/filewright/filewright/internal/ooxml"
)

// This file finds numbers in the text of cells. The rest of its column decides
// how an ambiguous number is read, then its table, the document and last the
// language. An undecided number stays text.

// A numeral is a piece of text that may be a number.
type numeral struct {
	negative bool
	digits   string // with separators
	percent  bool
	currency string // currency sign or ""
	before   bool   // the currency sign precedes the number
}

var numeralForm = regexp.MustCompile(`^(\()?\s*([-+−–]?)\s*([$€£¥]?)\s*([-−]?)\s*(\d[\d.,'’\x{a0}\x{202f}\x{2009} ]*|[.,]\d+)\s*(%?)\s*([€£$¥]?)\s*(\))?$`)

// Notations of numbers: group separator and decimal separator.
var (
	plainDigits = regexp.MustCompile(`^\d+$`)
	pointForm   = regexp.MustCompile(`^(\d{1,3}(,\d{3})+|\d{1,3}(['’\x{a0}\x{202f}\x{2009} ]\d{3})+|\d*)(\.\d+)?$`)
	commaForm   = regexp.MustCompile(`^(\d{1,3}(\.\d{3})+|\d{1,3}(['’\x{a0}\x{202f}\x{2009} ]\d{3})+|\d*)(,\d+)?$`)
)

func parseNumeral(s string) (n numeral, ok bool) {
	m := numeralForm.FindStringSubmatch(strings.TrimSpace(s))
	if m == nil || (m[1] == "") != (m[8] == "") || m[3] != "" && m[7] != "" || m[2] != "" && m[4] != "" || m[6] != "" && m[3]+m[7] != "" {
		return numeral{}, false
	}
	n = numeral{
		negative: m[1] != "" || m[2] != "" && m[2] != "+" || m[4] != "", digits: strings.TrimRight(m[5], "\u00a0\u202f\u2009 "),
		percent: m[6] != "", currency: m[3] + m[7], before: m[3] != "",
	}
	if m[1] != "" && m[2]+m[4] != "" {
		return numeral{}, false
	}
	return n, true
}

// forms reports whether a numeral can be read with a decimal point, and with a
// decimal comma.
func (n numeral) forms() (point, comma bool) {
	if significant(n.digits) > 15 { // more digits than a sheet can hold
		return false, false
	}
	return pointForm.MatchString(n.digits), commaForm.MatchString(n.digits)
}

func significant(s string) int {
	return strings.Count(strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return '0'
		}
		return -1
	}, s), "0")
}

// number returns the value and the number of digits in the fraction.
func (n numeral) number(comma bool) (v float64, fraction int, grouped bool) {
	sep := byte('.')
	if comma {
		sep = ','
	}
	whole, frac := n.digits, ""
	if i := strings.LastIndexByte(n.digits, sep); i >= 0 {
		whole, frac = n.digits[:i], n.digits[i+1:]
	}
	bare := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, whole)
	v, _ = strconv.ParseFloat("0"+bare+"."+frac+"0", 64)
	if n.negative {
		v = -v
	}
	return v, len(frac), bare != whole
}

// A convention is the known notation of numbers.
type convention int

const (
	unknownConvention convention = iota
	decimalPoint
	decimalCommas
	mixedConvention
)

// and combines the conventions of two parts of a document.
func (c convention) and(d convention) convention {
	switch {
	case c == unknownConvention || c == d:
		return d
	case d == unknownConvention:
		return c
	}
	return mixedConvention
}

// conventionOf returns the convention that a text implies, if it is a number.
func conventionOf(s string) convention {
	n, ok := parseNumeral(s)
	if !ok {
		return unknownConvention
	}
	switch point, comma := n.forms(); {
	case point && !comma:
		return decimalPoint
	case comma && !point:
		return decimalCommas
	}
	return unknownConvention
}

// documentConvention returns the convention of the document, for tables that
// imply no convention.
func documentConvention(gs []*Grid, lang string) convention {
	c := unknownConvention
	for _, g := range gs {
		for _, row := range g.rows {
			for _, s := range row {
				c = c.and(conventionOf(s))
			}
		}
	}
	if c == unknownConvention {
		switch base, _, _ := strings.Cut(strings.ToLower(lang), "-"); base {
		case "en", "zh", "ja", "ko", "he", "th":
			c = decimalPoint
		case "de", "fr", "es", "it", "pt", "nl", "pl", "ru", "cs", "da", "sv", "nb", "no", "fi", "tr", "el", "hu", "ro":
			c = decimalCommas
		}
	}
	return c
}

// values returns the content of the cells. document is the convention of the
// other tables.
func (g *Grid) values(document convention) [][]ooxml.Value {
	whole := unknownConvention
	columns := make([]convention, len(g.rows[0]))
	codes := make([]bool, len(columns)) // columns of identifiers: their numbers start with zeros
	for _, row := range g.rows {
		for k, s := range row {
			c := conventionOf(s)
			columns[k], whole = columns[k].and(c), whole.and(c)
			if len(s) > 1 && s[0] == '0' && plainDigits.MatchString(s) {
				codes[k] = true
			}
		}
	}
	for k, c := range columns {
		if c == unknownConvention {
			c = whole
		}
		if c == unknownConvention {
			c = document
		}
		columns[k] = c
	}
	out := make([][]ooxml.Value, len(g.rows))
	for i, row := range g.rows {
		out[i] = make([]ooxml.Value, len(row))
		for k, s := range row {
			out[i][k] = cellValue(s, columns[k], codes[k], i < g.header)
		}
	}
	return out
}

// cellValue converts a cell of a column. code keeps numbers without separators
// as text.
func cellValue(s string, c convention, code, header bool) ooxml.Value {
	text := ooxml.Value{Text: s}
	if d, err := time.Parse(time.DateOnly, s); err == nil && d.Year() >= 1900 && d.Year() < 10000 && d.After(firstSafeDay) {
		return ooxml.Value{Number: float64(d.Unix()/86400 + 25569), Style: ooxml.Style{Kind: ooxml.DateStyle}} // days since 1899-12-30
	}
	n, ok := parseNumeral(s)
	if !ok || header && plainDigits.MatchString(s) {
		return text
	}
	point, comma := n.forms()
	useComma := false
	switch {
	case plainDigits.MatchString(n.digits):
		if !point || code || len(n.digits) > 1 && n.digits[0] == '0' {
			return text
		}
	case point && comma: // 1,234 or 1.234, or 1 234
		switch {
		case !strings.ContainsAny(n.digits, ".,"):
		case c == decimalPoint:
		case c == decimalCommas:
			useComma = true
		default:
			return text
		}
	case comma:
		useComma = true
	case !point:
		return text
	}
	v, fraction, grouped := n.number(useComma)
	if fraction > 12 {
		return text
	}
	st := ooxml.Style{Kind: ooxml.NumberStyle, Decimals: fraction, Grouped: grouped, Currency: n.currency, Before: n.before}
	if n.percent {
		st.Kind, v = ooxml.PercentStyle, v/100
	}
	if !n.percent && n.currency == "" && !grouped && fraction == 0 {
		st = ooxml.Style{Kind: ooxml.GeneralStyle}
	}
	return ooxml.Value{Number: v, Style: st}
}

// firstSafeDay follows the dates on which programs disagree: Excel has a 29
// February 1900.
var firstSafeDay = time.Date(1900, 3, 1, 0, 0, 0, 0, time.UTC)
