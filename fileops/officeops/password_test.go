package officeops_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/specimen"
	"github.com/filewright/filewright/internal/systest"
)

// lockFilters are the filters by which LibreOffice writes a format with a password.
var lockFilters = map[format.Format]string{
	format.DOCX: "MS Word 2007 XML", format.XLSX: "Calc MS Excel 2007 XML", format.DOC: "MS Word 97", format.XLS: "MS Excel 97",
	format.ODT: "writer8", format.ODS: "calc8", format.ODP: "impress8",
}

var (
	lockAll  sync.Once
	lockedBy map[format.Format][]byte
)

// locked returns a fixture that another LibreOffice has encrypted with the password sesame. That
// encrypts all of them at once, because its start takes longer.
func locked(t testing.TB, f format.Format) *fileops.File {
	t.Helper()
	lockAll.Do(func() {
		dir := t.TempDir()
		var lines bytes.Buffer
		for f, filter := range lockFilters {
			systest.NoError(t, json.NewEncoder(&lines).Encode(map[string]string{
				"in": save(t, "plain."+string(f), bytesOf(t, fixture(t, f))), "out": filepath.Join(dir, string(f)), "filter": filter, "newPassword": "sesame",
			}))
		}
		cmd := exec.CommandContext(t.Context(), "/usr/bin/python3", "../documentops/testdata/office.py", "soffice", t.TempDir())
		cmd.Stdin, cmd.Stderr = &lines, os.Stderr
		answer, err := cmd.Output()
		if err != nil || strings.Count(string(answer), "true") != len(lockFilters) {
			t.Fatalf("%v: %s", err, answer)
		}
		all := make(map[format.Format][]byte)
		for f := range lockFilters {
			all[f] = systest.ReadFile(t, filepath.Join(dir, string(f)))
		}
		lockedBy = all
	})
	if lockedBy == nil {
		t.Fatal("another test could not encrypt the fixtures")
	}
	return fileops.Bytes("locked."+string(f), lockedBy[f])
}

// lockedPPT returns an encrypted presentation.
func lockedPPT(t testing.TB, password string) *fileops.File {
	t.Helper()
	b, err := specimen.LockPPT(bytesOf(t, fixture(t, format.PPT)), password)
	systest.NoError(t, err)
	return fileops.Bytes("locked.ppt", b)
}

// only runs an action and returns its result and the codes of its warnings.
func only(t testing.TB, a fileops.Action, args fileops.Args, in ...*fileops.File) (out *fileops.File, codes []string, err error) {
	t.Helper()
	r := fileops.Runner{Warn: func(w fileops.Warning) { codes = append(codes, w.Code) }}
	err = r.Run(t.Context(), a, args, fileops.SinkFunc(func(_ context.Context, f *fileops.File) error {
		b, err := io.ReadAll(f.Reader())
		out = fileops.Bytes(f.Name(), b)
		return err
	}), in...)
	return out, codes, err
}

func TestPasswords(t *testing.T) {
	t.Parallel()
	for _, f := range append(slices.Collect(maps.Keys(lockFilters)), format.PPT) {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			var in *fileops.File
			if f == format.PPT { // LibreOffice does not write encrypted ones
				in = lockedPPT(t, "sesame")
			} else {
				in = locked(t, f)
			}
			with := func(password string) fileops.Args {
				args := fileops.Args{"convert_to": "pdf"}
				if password != "" {
					args["password"] = password
				}
				return args
			}
			if _, _, err := only(t, office.Convert(), with(""), in); !errors.Is(err, fileops.ErrPasswordRequired) {
				t.Errorf("no password: %v", err)
			}
			if _, _, err := only(t, office.Convert(), with("no"), in); !errors.Is(err, fileops.ErrWrongPassword) {
				t.Errorf("wrong password: %v", err)
			}
			pdf, codes, err := only(t, office.Convert(), with("sesame"), in)
			systest.NoError(t, err)
			want := latin
			if f == format.ODP || f == format.PPT {
				want = "The quick brown fox"
			}
			if text := textOf(t, format.PDF, bytesOf(t, pdf)); !strings.Contains(text, want) {
				t.Errorf("the text is missing: %s", text)
			}
			if sheet := f == format.XLSX || f == format.XLS; slices.Contains(codes, fileops.WarnFormulasRecalculated) != sheet {
				t.Errorf("warnings %v", codes)
			}
			if f == format.DOCX || f == format.XLSX {
				return
			}
			open, _, err := only(t, office.Unlock(), fileops.Args{"password": "sesame"}, in)
			systest.NoError(t, err)
			if _, _, err = only(t, office.Convert(), with(""), open); err != nil {
				t.Errorf("after unlock: %v", err)
			}
			if _, _, err := only(t, office.Unlock(), fileops.Args{"password": "sesame"}, open); !errors.Is(err, fileops.ErrNotEncrypted) {
				t.Errorf("unlock twice: %v", err)
			}
		})
	}
	t.Run("merge and pandoc", func(t *testing.T) {
		t.Parallel()
		in := locked(t, format.DOCX)
		out, _, err := only(t, office.Merge(), fileops.Args{"password": "sesame"}, fixture(t, format.DOCX), in)
		systest.NoError(t, err)
		if n := strings.Count(textOf(t, format.DOCX, bytesOf(t, out)), latin); n < 2 {
			t.Errorf("the merged document has the text %d times", n)
		}
		md, _, err := only(t, office.Convert(), fileops.Args{"convert_to": "md", "password": "sesame"}, in)
		if err != nil || !strings.Contains(string(bytesOf(t, md)), latin) {
			t.Errorf("md: %v", err)
		}
	})
}

// Dates in results that are data do not depend on the country.
func TestDatesInData(t *testing.T) {
	t.Parallel()
	const sheet = `<?xml version="1.0" encoding="UTF-8"?>
<office:document xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"
 xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" xmlns:style="urn:oasis:names:tc:opendocument:xmlns:style:1.0"
 xmlns:number="urn:oasis:names:tc:opendocument:xmlns:datastyle:1.0" office:version="1.3" office:mimetype="application/vnd.oasis.opendocument.spreadsheet">
<office:automatic-styles>
<number:date-style style:name="N1"><number:day number:style="long"/><number:text>.</number:text><number:month number:style="long"/><number:text>.</number:text><number:year number:style="long"/></number:date-style>
<number:date-style style:name="N2"><number:month/><number:text>/</number:text><number:day/><number:text>/</number:text><number:year/><number:text> </number:text><number:hours/><number:text>:</number:text><number:minutes number:style="long"/></number:date-style>
<style:style style:name="d" style:family="table-cell" style:data-style-name="N1"/>
<style:style style:name="t" style:family="table-cell" style:data-style-name="N2"/>
</office:automatic-styles>
<office:body><office:spreadsheet><table:table table:name="A"><table:table-row>
<table:table-cell table:style-name="d" office:value-type="date" office:date-value="2024-05-01"><text:p>01.05.2024</text:p></table:table-cell>
<table:table-cell table:style-name="t" office:value-type="date" office:date-value="2024-05-01T13:45:00"><text:p>5/1/24 13:45</text:p></table:table-cell>
<table:table-cell office:value-type="float" office:value="12.5"><text:p>12.5</text:p></table:table-cell>
</table:table-row></table:table></office:spreadsheet></office:body></office:document>`
	in := fileops.Bytes("dates.fods", []byte(sheet))
	for _, f := range []format.Format{format.FODS, format.XLSX} {
		src := in
		if f != format.FODS {
			b, err := convert(t.Context(), office, in, f)
			systest.NoError(t, err)
			src = fileops.Bytes("dates."+string(f), b)
		}
		b, err := convert(t.Context(), office, src, format.CSV)
		systest.NoError(t, err)
		if got, want := strings.TrimSpace(string(b)), "2024-05-01,2024-05-01T13:45:00,12.5"; got != want {
			t.Errorf("%s: got %q, want %q", f, got, want)
		}
	}
}

// 12E5 is an article number, and no 1200000.
func TestExponentsStayText(t *testing.T) {
	t.Parallel()
	book, err := convert(t.Context(), office, fileops.Bytes("in.csv", []byte("code,n\n12E5,1.5e3\n7A1,2\n")), format.XLSX)
	systest.NoError(t, err)
	b, err := convert(t.Context(), office, fileops.Bytes("in.xlsx", book), format.CSV)
	systest.NoError(t, err)
	if !strings.Contains(string(b), "12E5,") || strings.Contains(string(b), "1200000") {
		t.Errorf("got %s", b)
	}
}
