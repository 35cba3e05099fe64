package pdfread_test

import (
	"encoding/csv"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/pdfread"
)

// ruledTable draws a table with borders: columns of width w, rows of height h.
func ruledTable(x, y, w, h float64, rows [][]string) string {
	var b strings.Builder
	b.WriteString("0.5 w\n")
	wide, high := w*float64(len(rows[0])), h*float64(len(rows))
	for i := range len(rows) + 1 {
		fmt.Fprintf(&b, "%g %g m %g %g l S\n", x, y-h*float64(i), x+wide, y-h*float64(i))
	}
	for i := range len(rows[0]) + 1 {
		fmt.Fprintf(&b, "%g %g m %g %g l S\n", x+w*float64(i), y, x+w*float64(i), y-high)
	}
	for i, row := range rows {
		for k, s := range row {
			b.WriteString(lines("F1", 10, x+w*float64(k)+4, y-h*float64(i)-h+6, 12, s))
		}
	}
	return b.String()
}

func TestSheetOfTables(t *testing.T) {
	t.Parallel()
	e := newEngine(t, pdfread.Options{})
	head := []string{"Product", "Price", "Share"}
	first, second := [][]string{head}, [][]string{head}
	for i := range 30 {
		first = append(first, []string{fmt.Sprintf("item %d", i), fmt.Sprintf("%d,%03d.50", i+1, i), fmt.Sprintf("%d%%", i)})
	}
	for i := range 5 {
		second = append(second, []string{fmt.Sprintf("more %d", i), fmt.Sprintf("%d.25", i), "5%"})
	}
	other := [][]string{{"Ort", "Betrag"}, {"Bonn", "1.234,56"}, {"Essen", "2.000"}, {"Ulm", "(17,50)"}}
	pdf := pages(
		pdfPage{content: ruledTable(72, 780, 140, 22, first)},
		pdfPage{content: ruledTable(72, 780, 140, 22, second) + lines("F1", 11, 72, 500, 14, "A paragraph stands here, between them.") + ruledTable(72, 400, 120, 22, other)},
	)
	sheet := mustConvert(t, e, fileops.Args{"convert_to": "xlsx"}, pdf)[0]
	if sheet.name != "in.xlsx" {
		t.Errorf("result is %s", sheet.name)
	}
	parts := unzip(t, sheet.b)
	if n := strings.Count(string(parts["xl/workbook.xml"]), "<sheet "); n != 2 || !strings.Contains(string(parts["xl/workbook.xml"]), `name="Pages 1-2"`) {
		t.Fatalf("%s", parts["xl/workbook.xml"])
	}
	for _, v := range []string{"<v>1000.5</v>", "<v>0.29</v>", "<v>30029.5</v>"} {
		if !strings.Contains(string(parts["xl/worksheets/sheet1.xml"]), v) {
			t.Errorf("no %s in the first sheet", v)
		}
	}
	for _, v := range []string{"<v>1234.56</v>", "<v>2000</v>", "<v>-17.5</v>"} {
		if !strings.Contains(string(parts["xl/worksheets/sheet2.xml"]), v) {
			t.Errorf("no %s in the second sheet: %s", v, parts["xl/worksheets/sheet2.xml"])
		}
	}
	// Another program reads the same; it writes the first sheet.
	rows, err := csv.NewReader(strings.NewReader(string(office(t, "x.xlsx", sheet.b, "csv:Text - txt - csv (StarCalc):44,34,76,1,,0,false,true")))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 36 || !reflect.DeepEqual(rows[0], head) || rows[30][0] != "item 29" || rows[31][0] != "more 0" || rows[35][2] != "5%" || rows[2][1] != "2,001.50" {
		t.Errorf("%d rows: %q", len(rows), rows)
	}

	text := string(mustConvert(t, e, fileops.Args{"convert_to": "csv"}, pdf)[0].b)
	tables := strings.Split(text, "\r\n\r\n")
	if len(tables) != 2 || !strings.HasPrefix(text, "Product,Price,Share\r\nitem 0,\"1,000.50\",0%\r\n") || strings.Count(text, "Product") != 1 ||
		tables[1] != "Ort,Betrag\r\nBonn,\"1.234,56\"\r\nEssen,2.000\r\nUlm,\"(17,50)\"\r\n" {
		t.Errorf("%q", text)
	}
}

func TestNoTable(t *testing.T) {
	t.Parallel()
	e := newEngine(t, pdfread.Options{})
	for _, to := range []string{"xlsx", "csv"} {
		_, err := convert(t.Context(), t, e, fileops.Args{"convert_to": to}, fileops.Bytes("in.pdf", fixtures()["text"]))
		if !errors.Is(err, fileops.ErrUnsupportedInput) || !strings.Contains(fileops.Message(err), "no table was found") {
			t.Errorf("%s: %v", to, err)
		}
	}
}

func TestNumbers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, lang string
		rows, want string // columns are divided by spaces, rows by slashes; ~ stands for a space
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
		for _, row := range pdfread.TableValues(rows, 0, tt.lang) {
			got = append(got, strings.Join(row, " "))
		}
		if s := strings.Join(got, "/"); s != tt.want {
			t.Errorf("%s: got  %s\nwant %s", tt.name, s, tt.want)
		}
	}
	if got := pdfread.TableValues([][]string{{"Year", "2023"}, {"a", "5"}}, 1, ""); got[0][1] != "2023" || got[1][1] != "5 as General" {
		t.Errorf("a header of years: %v", got)
	}
}

func FuzzNumbers(f *testing.F) {
	f.Add("1,234.50", "de")
	f.Add("(€ 12 345,6)", "")
	f.Fuzz(func(t *testing.T, s, lang string) {
		for _, row := range pdfread.TableValues([][]string{{s, s + "0"}, {"1.5", "x"}}, 0, lang) {
			for _, v := range row {
				if strings.HasPrefix(v, "NaN") || strings.Contains(v, "Inf as ") {
					t.Errorf("%q is %s", s, v)
				}
			}
		}
	})
}
