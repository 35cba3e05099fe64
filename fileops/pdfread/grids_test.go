package pdfread_test

import (
	"encoding/csv"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/pdfread"
	"github.com/filewright/filewright/internal/systest"
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
	// LibreOffice reads the same values; it writes the first sheet.
	rows, err := csv.NewReader(strings.NewReader(string(office(t, "x.xlsx", sheet.b, "csv:Text - txt - csv (StarCalc):44,34,76,1,,0,false,true")))).ReadAll()
	systest.NoError(t, err)
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

// A table beside much other text is not the whole document, and the result says so.
func TestTextOutsideOfTables(t *testing.T) {
	t.Parallel()
	e := newEngine(t, pdfread.Options{})
	table := ruledTable(72, 780, 140, 22, [][]string{{"Product", "Price"}, {"Apples", "1.25"}, {"Pears", "2.50"}, {"Oranges", "3.75"}})
	prose := lines("F1", 11, 72, 500, 14, "A paragraph stands below the table and is longer than all", "of its cells together, so most of the document is lost.")
	for _, to := range []string{"csv", "xlsx"} {
		if _, codes := warned(t, e, to, pages(pdfPage{content: table})); len(codes) > 0 {
			t.Errorf("%s of a table: warnings %q", to, codes)
		}
		if _, codes := warned(t, e, to, pages(pdfPage{content: table + prose})); !slices.Equal(codes, []string{fileops.WarnContentDropped}) {
			t.Errorf("%s of a table and text: warnings %q", to, codes)
		}
	}
}
