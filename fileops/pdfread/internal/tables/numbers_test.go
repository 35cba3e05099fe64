package tables

import (
	"fmt"
	"strings"
	"testing"

	"github.com/filewright/filewright/internal/ooxml"
)

// tableValues returns the content of the cells of a table as text: numbers are
// followed by their format. The first header rows are the table's header.
func tableValues(rows [][]string, header int, lang string) [][]string {
	g := &Grid{rows: rows, header: header}
	var out [][]string
	for _, row := range g.values(documentConvention([]*Grid{g}, lang)) {
		var line []string
		for _, v := range row {
			s := v.Text
			if v.Style.Kind != ooxml.PlainStyle {
				s = fmt.Sprint(v.Number) + " as " + v.Style.Code()
			}
			line = append(line, s)
		}
		out = append(out, line)
	}
	return out
}

func TestNumbers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, lang string
		rows, want string // spaces separate columns, slashes separate rows; ~ stands for a space
	}{
		{"point", "", "1,234.50/7,000/2.5/12", "1234.5 as #,##0.00/7000 as #,##0/2.5 as 0.0/12 as General"},
		{"comma", "", "1.234,50/7.000/2,5/12", "1234.5 as #,##0.00/7000 as #,##0/2.5 as 0.0/12 as General"},
		{"nobody knows", "", "7,000/8.123", "7,000/8.123"},
		{"language", "de-AT", "7.000/8.123", "7000 as #,##0/8123 as #,##0"},
		{"other column tells", "", "7,000 1.5/8,123 2.75", "7000 as #,##0 1.5 as 0.0/8123 as #,##0 2.75 as 0.00"},
		{"mixed", "en", "1.234,50/1,234.50/1,234", "1234.5 as #,##0.00/1234.5 as #,##0.00/1,234"},
		{"spaces and quotes", "", "1~234,5/12'345.60", "1234.5 as #,##0.0/12345.6 as #,##0.00"},
		{"signs", "", "-5/−6.5/(1,200.00)/+3/- 4/(-4)", "-5 as General/-6.5 as 0.0/-1200 as #,##0.00/3 as General/-4 as General/(-4)"},
		{"percent", "", "12.5%/8~%/%", "0.125 as 0.0%/0.08 as 0%/%"},
		{"money", "", "$1,200.50/-$3/€5.25/7.10~€/$5%", `1200.5 as "$"#,##0.00/-3 as "$"0/5.25 as "€"0.00/7.1 as 0.00 "€"/$5%`},
		{"codes", "", "00123/45/4.5", "00123/45/4.5 as 0.0"},
		{"no numbers", "", "12-34/1.2.3/1,2,3/12:30/1/2", "12-34/1.2.3/1,2,3/12:30/1 as General/2 as General"},
		{"long", "", "12345678901234567/123456789012345", "12345678901234567/1.23456789012345e+14 as General"},
		{"dates", "", "2024-02-29/2023-02-29/1.2.2024/1899-12-31", "45351 as yyyy-mm-dd/2023-02-29/1.2.2024/1899-12-31"},
	} {
		var rows [][]string
		for line := range strings.SplitSeq(tt.rows, "/") {
			rows = append(rows, strings.Split(line, " "))
		}
		if tt.name == "signs" { // has cells with spaces
			rows = [][]string{{"-5"}, {"−6.5"}, {"(1,200.00)"}, {"+3"}, {"- 4"}, {"(-4)"}}
		}
		for _, row := range rows {
			for k := range row {
				row[k] = strings.ReplaceAll(row[k], "~", " ")
			}
		}
		var got []string
		for _, row := range tableValues(rows, 0, tt.lang) {
			got = append(got, strings.Join(row, " "))
		}
		if s := strings.Join(got, "/"); s != tt.want {
			t.Errorf("%s: got  %s\nwant %s", tt.name, s, tt.want)
		}
	}
	if got := tableValues([][]string{{"Year", "2023"}, {"a", "5"}}, 1, ""); got[0][1] != "2023" || got[1][1] != "5 as General" {
		t.Errorf("a header of years: %v", got)
	}
}

func FuzzNumbers(f *testing.F) {
	f.Add("1,234.50", "de")
	f.Add("(€ 12 345,6)", "")
	f.Fuzz(func(t *testing.T, s, lang string) {
		for _, row := range tableValues([][]string{{s, s + "0"}, {"1.5", "x"}}, 0, lang) {
			for _, v := range row {
				if strings.HasPrefix(v, "NaN") || strings.Contains(v, "Inf as ") {
					t.Errorf("%q is %s", s, v)
				}
			}
		}
	})
}
