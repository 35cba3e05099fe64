package dataops_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/dataops"
	"github.com/filewright/filewright/internal/systest"
)

// pythonRows reads delimited values with Python's csv module.
func pythonRows(t *testing.T, text, delimiter string) (rows [][]string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "in.csv")
	systest.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	out, err := exec.Command("/usr/bin/python3", "-c", `import csv, json, sys
print(json.dumps(list(csv.reader(open(sys.argv[1], newline="", encoding="utf-8"), delimiter=sys.argv[2]))))`, path, delimiter).Output()
	systest.NoError(t, err)
	systest.NoError(t, json.Unmarshal(out, &rows))
	return rows
}

func converted(t *testing.T, name, text string, args fileops.Args) string {
	t.Helper()
	dir := t.TempDir()
	systest.NoError(t, fileops.Run(t.Context(), dataops.Convert(), args, fileops.ToDir(dir), fileops.Bytes(name, []byte(text))))
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	b := systest.ReadFile(t, files[0])
	return string(b)
}

func TestDelimiter(t *testing.T) {
	t.Parallel()
	want := [][]string{{"id", "note"}, {"007", "a;b,c|d\te"}, {"1.50", "say \"hi\"\nthere"}, {"1/2", "Äpfel"}}
	var b strings.Builder
	b.WriteString("[")
	for i, row := range want[1:] {
		if i > 0 {
			b.WriteString(",")
		}
		obj, err := json.Marshal(map[string]string{"id": row[0], "note": row[1]})
		systest.NoError(t, err)
		b.Write(obj)
	}
	b.WriteString("]")
	for name, char := range map[string]string{"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"} {
		for _, given := range []string{name, char} {
			csv := converted(t, "in.json", b.String(), fileops.Args{"convert_to": "csv", "delimiter": given})
			if got := pythonRows(t, csv, char); !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %q", given, got)
			}
			// The way back gives the same cells, with a detected or a given separator.
			for _, args := range []fileops.Args{{"convert_to": "json"}, {"convert_to": "json", "delimiter": given}} {
				var back []map[string]string
				if err := json.Unmarshal([]byte(converted(t, "in.csv", csv, args)), &back); err != nil || len(back) != 3 || back[0]["id"] != "007" || back[1]["note"] != want[2][1] {
					t.Errorf("%v: %v, %v", args, back, err)
				}
			}
			tsv := converted(t, "in.csv", csv, fileops.Args{"convert_to": "tsv", "delimiter": given})
			if got := pythonRows(t, tsv, "\t"); !reflect.DeepEqual(got, want) {
				t.Errorf("tsv of %s: %q", given, got)
			}
			csv = converted(t, "in.tsv", tsv, fileops.Args{"convert_to": "csv", "delimiter": given})
			if got := pythonRows(t, csv, char); !reflect.DeepEqual(got, want) {
				t.Errorf("%s of tsv: %q", given, got)
			}
		}
	}
	var p *fileops.ParamError
	for _, args := range []fileops.Args{{"convert_to": "html", "delimiter": "comma"}, {"convert_to": "csv", "delimiter": "x"}} {
		err := fileops.Run(t.Context(), dataops.Convert(), args, fileops.ToDir(t.TempDir()), fileops.Bytes("in.json", []byte(b.String())))
		if !errors.As(err, &p) {
			t.Errorf("%v: %v", args, err)
		}
	}
}

func TestTableOfCSV(t *testing.T) {
	t.Parallel()
	const in = "a;b\n1;x|y\n2;z;more\n3\n"
	if got, want := converted(t, "in.csv", in, fileops.Args{"convert_to": "md"}), "| a   | b    |"; !strings.Contains(strings.Join(strings.Fields(got), " "), strings.Join(strings.Fields(want), " ")) || !strings.Contains(got, "more") || !strings.Contains(got, `x\|y`) {
		t.Errorf("got %s", got)
	}
	html := converted(t, "in.csv", in, fileops.Args{"convert_to": "html"})
	if strings.Count(html, "<tr") != 4 || strings.Count(html, "<th") < 2 || !strings.Contains(html, "more") {
		t.Errorf("got %s", html)
	}
	// A given separator is not questioned.
	if got := converted(t, "in.csv", "a;b,c\n1;2,3\n", fileops.Args{"convert_to": "tsv", "delimiter": "comma"}); got != "a;b\tc\n1;2\t3\n" {
		t.Errorf("got %q", got)
	}
}
