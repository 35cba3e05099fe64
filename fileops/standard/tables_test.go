package standard_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/internal/systest"
)

// sheetsOf reads an Excel workbook with Python. It returns the name of each sheet and
// its rows of numbers and texts.
const sheetsOf = `
import json, sys, zipfile, xml.etree.ElementTree as ET
M = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
z = zipfile.ZipFile(sys.argv[1])
shared = ["".join(t.text or "" for t in s.iter(M + "t")) for s in ET.fromstring(z.read("xl/sharedStrings.xml"))]
out = []
for i, s in enumerate(ET.fromstring(z.read("xl/workbook.xml")).find(M + "sheets")):
    rows = []
    for r in ET.fromstring(z.read("xl/worksheets/sheet%d.xml" % (i + 1))).iter(M + "row"):
        cells = [(c.get("r").rstrip("0123456789"), c.get("t"), c.findtext(M + "v")) for c in r if c.findtext(M + "v") is not None]
        rows.append([[a, shared[int(v)] if t == "s" else float(v)] for a, t, v in cells])
    out.append([s.get("name"), rows])
print(json.dumps(out))
`

// The tables of a page become the sheets of a workbook. No value becomes a date or loses
// a zero.
func TestTablesOfPage(t *testing.T) {
	t.Parallel()
	in := fileops.Bytes("page.html", []byte(`<!DOCTYPE html><meta charset="utf-8"><h1>Not in a table</h1>
		<table><caption>Obst</caption><tr><th>Sorte<th>Zahl<tr><td rowspan="2">Äpfel<td>1.5<tr><td>1/2</table>
		<table><tr><td>007<td>a<br>b</table>`))
	want := []any{
		[]any{"Obst", []any{
			[]any{[]any{"A", "Sorte"}, []any{"B", "Zahl"}}, []any{[]any{"A", "Äpfel"}, []any{"B", 1.5}}, []any{[]any{"B", "1/2"}},
		}},
		[]any{"Table 2", []any{[]any{[]any{"A", "007"}, []any{"B", "a\nb"}}}},
	}
	sheets := func(f *fileops.File) (got []any) {
		b, _ := f.Bytes()
		path := filepath.Join(t.TempDir(), "x.xlsx")
		systest.NoError(t, os.WriteFile(path, b, 0o600))
		out, err := exec.Command("/usr/bin/python3", "-c", sheetsOf, path).Output()
		systest.NoError(t, err)
		systest.NoError(t, json.Unmarshal(out, &got))
		return got
	}
	xlsx := mustRun(t, "convert", fileops.Args{"convert_to": "xlsx"}, in)[0]
	if got := sheets(xlsx); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
	ods := mustRun(t, "convert", fileops.Args{"convert_to": "ods", "sheet": "2"}, in)[0]
	if got := sheets(mustRun(t, "convert", fileops.Args{"convert_to": "xlsx"}, ods)[0]); !reflect.DeepEqual(got, want[1:]) {
		t.Errorf("the second table: got %v\nwant %v", got, want[1:])
	}
}
