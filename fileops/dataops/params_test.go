package dataops_test

import (
	"testing"

	"github.com/filewright/filewright/fileops"
)

// Parameters of the layout and the encoding of text.
func TestParameters(t *testing.T) {
	t.Parallel()
	const table = "name,n\nÄpfel,1\n,2\n"
	for _, tt := range []struct {
		name, in string
		args     fileops.Args
		want     string
	}{
		{"a.csv", table, fileops.Args{"convert_to": "json", "shape": "arrays"}, "[\n  [\"name\", \"n\"],\n  [\"Äpfel\", \"1\"],\n  [\"\", \"2\"]\n]\n"},
		{"a.csv", table, fileops.Args{"convert_to": "json", "shape": "arrays", "typed": true}, "[\n  [\"name\", \"n\"],\n  [\"Äpfel\", 1],\n  [null, 2]\n]\n"},
		{"a.csv", table, fileops.Args{"convert_to": "json", "shape": "lines", "typed": true}, "{\"name\": \"Äpfel\", \"n\": 1}\n{\"name\": null, \"n\": 2}\n"},
		{"a.csv", "1,\n3,4\n", fileops.Args{"convert_to": "json", "header": false, "typed": true}, "[\n  {\"column_1\": 1, \"column_2\": null},\n  {\"column_1\": 3, \"column_2\": 4}\n]\n"},
		{"a.tsv", "1\t2\n", fileops.Args{"convert_to": "json", "header": false, "shape": "arrays"}, "[\n  [\"1\", \"2\"]\n]\n"},
		{"a.csv", "only,names\n", fileops.Args{"convert_to": "json", "shape": "arrays"}, "[\n  [\"only\", \"names\"]\n]\n"},
		{"a.csv", "a,b\n1,2\n", fileops.Args{"convert_to": "md", "header": false}, "| column_1 | column_2 |\n| --- | --- |\n| a | b |\n| 1 | 2 |\n"},
		{"a.csv", "a;b\n1,5;2\n", fileops.Args{"convert_to": "csv", "delimiter": "semicolon"}, "a,b\n\"1,5\",2\n"},
		{"a.csv", table, fileops.Args{"convert_to": "csv", "output_delimiter": "tab", "output_encoding": "windows-1252"}, "name\tn\n\xc4pfel\t1\n\t2\n"},
		{"a.csv", "n\n\xe4\n", fileops.Args{"convert_to": "csv", "encoding": "latin1", "bom": true}, "\ufeffn\nä\n"},
		{"a.tsv", "a\tb\n", fileops.Args{"convert_to": "tsv", "bom": true}, "\ufeffa\tb\n"},
		{"a.json", `[{"a":"ä"}]`, fileops.Args{"convert_to": "csv", "output_encoding": "utf-16le"}, "\xff\xfea\x00\n\x00\xe4\x00\n\x00"},
		{"a.html", "<table><tr><td>a<tr><td>1</table>", fileops.Args{"convert_to": "json", "header": false, "shape": "lines"}, "{\"column_1\": \"a\"}\n{\"column_1\": \"1\"}\n"},
	} {
		if _, got, err := convert(t, tt.name, tt.in, tt.args); err != nil || got != tt.want {
			t.Errorf("%s %v: %q, %v; want %q", tt.name, tt.args, got, err, tt.want)
		}
	}
	for _, args := range []fileops.Args{{"convert_to": "csv"}, {"convert_to": "csv", "bom": true, "output_encoding": "latin1"}, {"convert_to": "csv", "output_encoding": "klingon"}, {"convert_to": "json", "bom": true}} {
		if _, _, err := convert(t, "a.csv", table, args); err == nil {
			t.Errorf("%v is accepted", args)
		}
	}
}

// What is written in another encoding is read again.
func TestEncodingsMeet(t *testing.T) {
	t.Parallel()
	const table = "Name;Größe\nÄpfel;5\n日本;6\n"
	for _, label := range []string{"utf-8", "utf-16le", "utf-16be", "shift_jis", "gb18030", "euc-kr"} {
		want := "[\n  {\"Name\": \"Äpfel\", \"Größe\": \"5\"},\n  {\"Name\": \"日本\", \"Größe\": \"6\"}\n]\n"
		in := table
		if label == "shift_jis" || label == "euc-kr" { // without umlauts
			in, want = "Name;Mass\n日本;6\n", "[\n  {\"Name\": \"日本\", \"Mass\": \"6\"}\n]\n"
		}
		_, coded, err := convert(t, "a.csv", in, fileops.Args{"convert_to": "csv", "output_encoding": label, "output_delimiter": "semicolon"})
		if err != nil {
			t.Fatal(err)
		}
		if _, got, err := convert(t, "a.csv", coded, fileops.Args{"convert_to": "json", "encoding": label}); err != nil || got != want {
			t.Errorf("%s: %q, %v", label, got, err)
		}
	}
}
