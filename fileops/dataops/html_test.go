package dataops_test

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/dataops"
	"github.com/filewright/filewright/internal/systest"
)

// TestHTMLTable reads converted tables with Python's csv module.
func TestHTMLTable(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, in string
		want     [][]string
	}{
		{"plain", `<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>x, "y"</td></tr></table>`, [][]string{{"a", "b"}, {"1", `x, "y"`}}},
		{"ends left out", `<table><caption>C<tr><th>a<th>b<tr><td>1<td>x</table>`, [][]string{{"a", "b"}, {"1", "x"}}},
		{"groups", `<table><thead><tr><th>a<tbody><tr><td>1<tr><td>2<tfoot><tr><td>3</table>`, [][]string{{"a"}, {"1"}, {"2"}, {"3"}}},
		{"cells without a row", `<table><td>1<td>2</table>`, [][]string{{"1", "2"}}},
		{"capitals", `<TABLE><TR><TD>1</TD></TR></TABLE>`, [][]string{{"1"}}},
		{"no end", `<p>x<table><tr><td>1<td>2`, [][]string{{"1", "2"}}},
		{"entities", `<table><tr><td>&lt;&amp;&eacute;&#x1F600;&nbsp;x</table>`, [][]string{{"<&é😀 x"}}},
		{"white space", "<table><tr><td>\n  a \n <b>b</b>c <td> </table>", [][]string{{"a bc", ""}}},
		{"lines", `<table><tr><td>a<br>b<p>c</p><p>d</p>e<ul><li>f<li>g</ul></table>`, [][]string{{"a\nb\nc\nd\ne\nf\ng"}}},
		{"pre", "<table><tr><td><pre>a  b\n c</pre><td>d\n e</table>", [][]string{{"a  b\n c", "d e"}}},
		{"scripts", `<table><tr><td>a<script>"<td>b"</script><style>c</style><!-- d -->e</table>`, [][]string{{"ae"}}},
		{"colspan", `<table><tr><th colspan=2>a<th>b<tr><td>1<td>2<td>3</table>`, [][]string{{"a", "", "b"}, {"1", "2", "3"}}},
		{"rowspan", `<table><tr><td rowspan=2>a<td>b<tr><td>c<tr><td>d<td>e</table>`, [][]string{{"a", "b"}, {"", "c"}, {"d", "e"}}},
		{"both", `<table><tr><td>a<td rowspan=2 colspan=2>b<td>c<tr><td>d<td>e</table>`, [][]string{{"a", "b", "", "c"}, {"d", "", "", "e"}}},
		{"rowspan at the end", `<table><tr><td>a<td rowspan=3>b<tr><td>c<tr><td>d</table>`, [][]string{{"a", "b"}, {"c", ""}, {"d", ""}}},
		{"rowspan 0 ends with its group", `<table><tbody><tr><td rowspan=0>a<td>b<tr><td>c<tbody><tr><td>d<td>e</table>`, [][]string{{"a", "b"}, {"", "c"}, {"d", "e"}}},
		{"nonsense spans", `<table><tr><td colspan=x rowspan=-2>a<td colspan=0>b<td colspan=1001>c<td colspan=" 2 ">d<td>e</table>`, [][]string{{"a", "b", "c", "d", "", "e"}}},
		{"an inner table is one of its own", `<table><tr><td>a<table><tr><td>x</table>b<td>c</table>`, [][]string{{"a\nb", "c"}}},
		{"the largest", `<table><tr><td>menu</table><table><tr><td>1<td>2<tr><td>3<td>4</table><table><tr><td>a<td>b<td>c</table>`, [][]string{{"1", "2"}, {"3", "4"}}},
		{"layout", `<table><tr><td><table><tr><td>1<td>2</table></table>`, [][]string{{"1", "2"}}},
		{"windows-1252", "<meta charset=windows-1252><table><tr><td>\xc4pfel \x80", [][]string{{"Äpfel €"}}},
		{"declared otherwise", "<meta http-equiv=Content-Type content='text/html; charset=koi8-r'><table><tr><td>\xf0\xd2\xc9\xd7\xc5\xd4", [][]string{{"Привет"}}},
		{"byte order mark", "\xff\xfe" + strings.Join(strings.Split("<table><tr><td>x", ""), "\x00") + "\x00", [][]string{{"x"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			in := tt.in
			if !strings.HasPrefix(in, "\xff\xfe") {
				in = "<!DOCTYPE html><title>t</title>" + in
			}
			for f, comma := range map[string]string{"csv": ",", "tsv": "\t"} {
				name, out, err := convert(t, "page.html", in, to(f))
				if err != nil || name != "page."+f {
					t.Fatal(name, err)
				}
				if got := pythonRows(t, out, comma); !reflect.DeepEqual(got, tt.want) {
					t.Errorf("%s: got %q, want %q", f, got, tt.want)
				}
			}
		})
	}
}

func TestHTMLToJSON(t *testing.T) {
	t.Parallel()
	const in = `<html><table><caption>Fruit &amp; more</caption><tr><th>name<th>count<th><tr><td>Äpfel<td>3<td>1,5<tr><td>Birnen<td><td>x<td>y</table>
		<table><tr><th>b<tr><td>true</table>`
	for _, tt := range []struct {
		args fileops.Args
		want string
	}{
		{fileops.Args{}, `[{"name":"Äpfel","count":"3","column_3":"1,5"},{"name":"Birnen","count":"","column_3":"x","column_4":"y"}]`},
		{fileops.Args{"typed": true, "sheet": "fruit & MORE"}, `[{"name":"Äpfel","count":3,"column_3":"1,5"},{"name":"Birnen","count":null,"column_3":"x","column_4":"y"}]`},
		{fileops.Args{"typed": true, "sheet": "2"}, `[{"b":true}]`},
	} {
		tt.args["convert_to"] = "json"
		_, out, err := convert(t, "x.html", in, tt.args)
		systest.NoError(t, err)
		var got, want any
		if err := errors.Join(json.Unmarshal([]byte(out), &got), json.Unmarshal([]byte(tt.want), &want)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%v: got %s, want %s (%v)", tt.args, out, tt.want, err)
		}
	}
	if _, out, err := convert(t, "x.html", in, fileops.Args{"convert_to": "csv", "sheet": "2", "delimiter": "semicolon"}); err != nil || out != "b\ntrue\n" {
		t.Errorf("the second table: %q, %v", out, err)
	}
}

// A page written by another conversion survives the way back.
func TestHTMLBackAndForth(t *testing.T) {
	t.Parallel()
	const in = "a,b\n\"x <y> & \"\"z\"\"\",1\n\"line\nline\",\n"
	_, page, err := convert(t, "x.csv", in, to("html"))
	systest.NoError(t, err)
	if _, out, err := convert(t, "x.html", page, to("csv")); err != nil || out != in {
		t.Errorf("got %q, %v", out, err)
	}
}

func TestHTMLErrors(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, in, sheet string
		want            error
	}{
		{"no table", "<html><p>x", "", fileops.ErrUnsupportedInput},
		{"empty tables", "<html><table><tr><td> </table><table></table>", "", fileops.ErrUnsupportedInput},
		{"no such number", "<html><table><tr><td>x</table>", "2", fileops.ErrUnsupportedInput},
		{"number 0", "<html><table><tr><td>x</table>", "0", fileops.ErrUnsupportedInput},
		{"no such caption", "<html><table><caption>y</caption><tr><td>x</table>", "z", fileops.ErrUnsupportedInput},
		{"columns", "<html><table><tr>" + strings.Repeat("<td colspan=1000>x", 17) + "</table>", "", fileops.ErrLimit},
		{"cells", "<html><table>" + strings.Repeat("<tr>"+strings.Repeat("<td colspan=1000>x", 10), 450) + "</table>", "", fileops.ErrLimit},
		{"places below cells", "<html><table><tr>" + strings.Repeat("<td colspan=1000 rowspan=0>x", 16) + strings.Repeat("<tr>", 400) + "</table>", "", fileops.ErrLimit},
		{"one text", "<html><table><tr><td>" + strings.Repeat("x", 17<<20), "", fileops.ErrLimit},
		{"tables", "<html>" + strings.Repeat("<table>", 1001), "", fileops.ErrLimit},
		{"rows", "<html><table>" + strings.Repeat("<tr>", 1<<20+1) + "</table>", "", fileops.ErrLimit},
	} {
		args := fileops.Args{"convert_to": "csv"}
		if tt.sheet != "" {
			args["sheet"] = tt.sheet
		}
		if _, out, err := convert(t, "x.html", tt.in, args); !errors.Is(err, tt.want) {
			t.Errorf("%s: %.100q, %v", tt.name, out, err)
		}
	}
}

// TestHTMLToWorkbook checks the XML. Package standard tests it with office
// programs.
func TestHTMLToWorkbook(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long ", 10)
	in := "<html><table><caption>'a/b'</caption><tr><td>1.5<td>007<td>x  &lt;<tr><td><pre>y\n  z</pre></table>" +
		"<table><tr><td>\x01&#xffff;</table><table><caption>" + long + "</caption><tr><td>1</table><table><caption>" + long + "</caption><tr><td>1</table>"
	_, out, err := convert(t, "x.html", in, to("fods"))
	systest.NoError(t, err)
	type cell struct {
		Type  string   `xml:"value-type,attr"`
		Value string   `xml:"value,attr"`
		P     []string `xml:"p"`
	}
	var doc struct {
		Tables []struct {
			Name string `xml:"name,attr"`
			Rows []struct {
				Cells []cell `xml:"table-cell"`
			} `xml:"table-row"`
		} `xml:"body>spreadsheet>table"`
	}
	if err := xml.Unmarshal([]byte(out), &doc); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var names []string
	for _, tb := range doc.Tables {
		names = append(names, tb.Name)
	}
	if want := []string{"a b", "Table 2", "long long long long long long l", "long long long long long lo (2)"}; len(names) != 4 || !slices.Equal(names, want) {
		t.Fatalf("sheets %q, want %q", names, want)
	}
	want := []cell{{"float", "1.5", []string{"1.5"}}, {"string", "", []string{"007"}}, {"string", "", []string{"x <"}}}
	if got := doc.Tables[0].Rows[0].Cells; !reflect.DeepEqual(got, want) {
		t.Errorf("cells %+v, want %+v", got, want)
	}
	if got := doc.Tables[0].Rows[1].Cells[0].P; len(got) != 2 || !strings.Contains(out, "<text:s/><text:s/>z") {
		t.Errorf("lines %q", got)
	}
	if _, out, err = convert(t, "x.html", in, fileops.Args{"convert_to": "fods", "sheet": "2"}); err != nil || strings.Count(out, "<table:table ") != 1 || !strings.Contains(out, `"Table 2"`) {
		t.Errorf("one table: %s, %v", out, err)
	}
}

func FuzzHTMLTables(f *testing.F) {
	for _, s := range []string{
		"<table><caption>c<tr><th>a<th colspan=2 rowspan=0>b<tr><td>1<table><td>x</table><tr></table>", "<table><tbody><td><pre>a\n b</tbody></table></table>",
		"<td>x<table><script></table><tr><td>&amp;&#0;", "\xff\xfe<\x00", "<table><tr><td>\x01'\uffff<select><td>",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		in := "<html>" + string(b)
		_, out, err := convert(t, "x.html", in, to("csv"))
		if err != nil {
			if fileops.Code(err) == "internal_error" {
				t.Fatal(err)
			}
			return
		}
		r := csv.NewReader(strings.NewReader(out))
		r.FieldsPerRecord = -1
		if rows, err := r.ReadAll(); err != nil || len(rows) == 0 {
			t.Fatalf("%q became %q: %v", in, out, err)
		}
		_, out, err = convert(t, "x.html", in, to("fods"))
		systest.NoError(t, err)
		d := xml.NewDecoder(strings.NewReader(out))
		for err == nil {
			_, err = d.Token()
		}
		if err != io.EOF {
			t.Fatalf("%q became %s: %v", in, out, err)
		}
		if _, out, err = convert(t, "x.html", in, to("json")); err == nil && !json.Valid([]byte(out)) {
			t.Fatalf("%q became %s", in, out)
		}
	})
}

func ExampleConvert_html() {
	page := fileops.Bytes("prices.html", []byte(`<!DOCTYPE html><h1>Prices</h1>
		<table><tr><th>item<th>price<tr><td rowspan="2">Tea<td>2.50<tr><td>3.00</table>`))
	err := fileops.Run(context.Background(), dataops.Convert(), fileops.Args{"convert_to": "csv"}, fileops.SinkFunc(func(_ context.Context, f *fileops.File) error {
		_, err := io.Copy(os.Stdout, f.Reader())
		return err
	}), page)
	fmt.Print(err)
	// Output:
	// item,price
	// Tea,2.50
	// ,3.00
	// <nil>
}
