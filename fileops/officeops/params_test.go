package officeops_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/systest"
)

func convertWith(t *testing.T, in *fileops.File, args fileops.Args) (b []byte, err error) {
	t.Helper()
	err = fileops.Run(t.Context(), office.Convert(), args, fileops.SinkFunc(func(_ context.Context, f *fileops.File) error {
		var err error
		b, err = io.ReadAll(f.Reader())
		return err
	}), in)
	return b, err
}

func TestPDFA(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		from  format.Format
		value string
		part  string
	}{{format.DOCX, "1b", "1"}, {format.PPTX, "2b", "2"}, {format.XLSX, "3b", "3"}} {
		b, err := convertWith(t, fixture(t, tt.from), fileops.Args{"convert_to": "pdf", "pdfa": tt.value})
		systest.NoError(t, err)
		path := save(t, "a.pdf", b)
		if got := strings.Fields(tool(t, "exiftool", "-s3", "-XMP-pdfaid:Part", "-XMP-pdfaid:Conformance", path)); len(got) != 2 || got[0] != tt.part || got[1] != "B" && got[1] != "A" {
			t.Errorf("%s as %s: part and conformance %v", tt.from, tt.value, got)
		}
		if js := tool(t, "qpdf", "--json", path); !strings.Contains(js, "/GTS_PDFA1") || !strings.Contains(js, "/DestOutputProfile") {
			t.Errorf("%s as %s has no output intent", tt.from, tt.value)
		}
		for _, line := range strings.Split(tool(t, "pdffonts", path), "\n")[2:] {
			if f := strings.Fields(line); len(f) > 5 && f[len(f)-5] != "yes" {
				t.Errorf("%s: a font is not embedded: %s", tt.from, line)
			}
		}
	}
	if _, err := convertWith(t, fixture(t, format.DOCX), fileops.Args{"convert_to": "odt", "pdfa": "2b"}); err == nil {
		t.Error("pdfa is accepted for odt")
	}
}

func TestSheet(t *testing.T) {
	t.Parallel()
	for _, f := range []format.Format{format.XLSX, format.XLS, format.ODS} {
		for _, tt := range []struct{ sheet, want string }{{"", "Zellwert"}, {"Other", "on the second sheet"}, {"2", "on the second sheet"}, {"Fruit", "Zellwert"}} {
			args := fileops.Args{"convert_to": "csv"}
			if tt.sheet != "" {
				args["sheet"] = tt.sheet
			}
			b, err := convertWith(t, fixture(t, f), args)
			if err != nil || !strings.Contains(string(b), tt.want) {
				t.Errorf("%s, sheet %q: %q, %v", f, tt.sheet, b, err)
			}
		}
		for _, bad := range []string{"3", "0", "fruits"} {
			if _, err := convertWith(t, fixture(t, f), fileops.Args{"convert_to": "tsv", "sheet": bad}); !errors.Is(err, fileops.ErrUnsupportedInput) {
				t.Errorf("%s, sheet %q: %v", f, bad, err)
			}
		}
	}
}

func TestDelimiter(t *testing.T) {
	t.Parallel()
	ambiguous := fileops.Bytes("a.csv", []byte("a,b|c,d\n1,2|3,4\n"))
	for _, tt := range []struct {
		in              *fileops.File
		to, delim, want string
	}{
		{ambiguous, "tsv", "|", "a,b\tc,d\n1,2\t3,4\n"},
		{ambiguous, "tsv", ",", "a\tb|c\td\n1\t2|3\t4\n"},
		{fileops.Bytes("a.tsv", []byte("a\tb\n1;x\t2\n")), "csv", ";", "a;b\n\"1;x\";2\n"},
		{fixture(t, format.XLSX), "csv", "|", "name|count"},
		{fixture(t, format.XLSX), "csv", "tab", "name\tcount"},
	} {
		b, err := convertWith(t, tt.in, fileops.Args{"convert_to": tt.to, "delimiter": tt.delim})
		if err != nil || !strings.HasPrefix(string(b), tt.want) {
			t.Errorf("%s to %s by %q: %q, %v", tt.in.Name(), tt.to, tt.delim, b, err)
		}
	}
	b, err := convertWith(t, ambiguous, fileops.Args{"convert_to": "xlsx", "delimiter": "|"})
	systest.NoError(t, err)
	if got := tool(t, "unzip", "-p", save(t, "a.xlsx", b), "xl/sharedStrings.xml"); !strings.Contains(got, "a,b") {
		t.Errorf("cells %s", got)
	}
	for _, bad := range []string{`"`, "ab", "\n"} {
		if _, err := convertWith(t, ambiguous, fileops.Args{"convert_to": "tsv", "delimiter": bad}); err == nil {
			t.Errorf("delimiter %q is accepted", bad)
		}
	}
}

// Every sheet becomes a result, and text has the chosen encoding.
func TestAllSheets(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		in   *fileops.File
		args fileops.Args
		want map[string]string
	}{
		{fixture(t, format.XLSX), fileops.Args{"convert_to": "csv"}, map[string]string{"Fruit": "Zellwert", "Other": "on the second sheet"}},
		{fixture(t, format.XLS), fileops.Args{"convert_to": "tsv"}, map[string]string{"Fruit": "Zellwert", "Other": "on the second sheet"}},
		{book(), fileops.Args{"convert_to": "csv", "bom": true}, map[string]string{"First": "\ufeffS1R1\n", "3": "\ufeffS2R1\n", "Third": "\ufeffS3R1\n"}},
	} {
		got := map[string]string{}
		tt.args["sheet"] = "all"
		err := fileops.Run(t.Context(), office.Convert(), tt.args, fileops.SinkFunc(func(_ context.Context, f *fileops.File) error {
			b, err := io.ReadAll(f.Reader())
			got[f.Name()] = string(b)
			return err
		}), tt.in)
		if err != nil || len(got) != len(tt.want) {
			t.Errorf("%s: %q, %v", tt.in.Name(), got, err)
		}
		for sheet, want := range tt.want {
			name := format.Base(tt.in.Name()) + "-" + sheet + "." + tt.args["convert_to"].(string)
			if !strings.Contains(got[name], want) {
				t.Errorf("%s: %q in %s, want %q", tt.in.Name(), got[name], name, want)
			}
		}
	}
	b, err := convertWith(t, fixture(t, format.ODS), fileops.Args{"convert_to": "csv", "output_encoding": "windows-1252"})
	if err != nil || !strings.Contains(string(b), "\xc4pfel") || !strings.Contains(string(b), "???") {
		t.Errorf("in windows-1252: %q, %v", b, err)
	}
	b, err = convertWith(t, pagedText(), fileops.Args{"convert_to": "txt", "output_encoding": "utf-16le"})
	if err != nil || !strings.HasPrefix(string(b), "\xff\xfeO\x00u\x00t\x00") {
		t.Errorf("text in UTF-16: %.40q, %v", b, err)
	}
}
