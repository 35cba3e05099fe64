package documentops_test

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/documentops"
	"github.com/filewright/filewright/fileops/fileopstest"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/compound"
	"github.com/filewright/filewright/internal/specimen"
	"github.com/filewright/filewright/internal/systest"
)

// converted runs Convert and returns the result with its warnings.
func converted(t testing.TB, in *fileops.File) (b []byte, warnings string, err error) {
	t.Helper()
	r := fileops.Runner{Warn: func(w fileops.Warning) { warnings += w.Code + " " }}
	err = r.Run(t.Context(), documentops.Convert(nil), fileops.Args{"convert_to": string(in.Format().Plain())}, fileops.SinkFunc(func(_ context.Context, f *fileops.File) error {
		var err error
		b, err = io.ReadAll(f.Reader())
		return err
	}), in)
	return b, warnings, err
}

// A template or a document with macros becomes a plain document without them. All other
// parts stay as they are.
func TestPlain(t *testing.T) {
	t.Parallel()
	for _, f := range format.WithVariants(format.DOCX, format.XLSX, format.PPTX, format.ODT, format.ODS, format.ODP, format.DOC) {
		plain := f.Plain()
		if plain == f || testing.Short() && plain == format.DOC {
			continue
		}
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			in := specimen.Of(t, f)
			if got := format.Sniff(in.Reader(), in.Size()); got != f && f != format.DOT {
				t.Fatalf("the specimen is %s", got)
			}
			b, warnings, err := converted(t, in)
			systest.NoError(t, err)
			if got := format.Sniff(bytes.NewReader(b), int64(len(b))); got != plain {
				t.Errorf("the result is %s", got)
			}
			want := ""
			if strings.HasSuffix(string(f), "m") {
				want = "macros_dropped "
			}
			if warnings != want {
				t.Errorf("warnings %q, want %q", warnings, want)
			}
			if f == format.DOT {
				word := streamOf(t, b, "WordDocument")
				if word[10]&1 != 0 {
					t.Error("it is still a template")
				}
				return
			}
			source := content(t, in)
			for name, data := range partsOf(t, b) {
				if strings.Contains(data, "acroEnabled") || strings.Contains(data, "vbaProject\"") && strings.HasSuffix(name, ".rels") || strings.HasSuffix(name, "vbaProject.bin") {
					t.Errorf("%s has a rest of the macros", name)
				}
				switch name {
				case "[Content_Types].xml", "mimetype", "META-INF/manifest.xml", "word/_rels/document.xml.rels", "xl/_rels/workbook.xml.rels", "ppt/_rels/presentation.xml.rels":
					continue
				}
				if data != string(part(t, source, name)) {
					t.Errorf("%s changed", name)
				}
			}
			if !strings.HasPrefix(string(plain), "od") {
				checkPackage(t, b)
			}
		})
	}
}

func streamOf(t testing.TB, b []byte, name string) []byte {
	t.Helper()
	f, err := compound.Open(bytes.NewReader(b), int64(len(b)), 0)
	systest.NoError(t, err)
	s, ok, err := f.Stream(name)
	systest.NoError(t, err)
	if !ok {
		t.Fatalf("no stream %s", name)
	}
	data := make([]byte, s.Size())
	_, err = s.ReadAt(data, 0)
	systest.NoError(t, err)
	return data
}

// partsOf returns the parts of a package by name.
func partsOf(t testing.TB, b []byte) map[string]string {
	t.Helper()
	z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	systest.NoError(t, err)
	out := make(map[string]string)
	for _, e := range z.File {
		out[e.Name] = string(part(t, b, e.Name))
	}
	return out
}

func TestPlainRefuses(t *testing.T) {
	t.Parallel()
	xlsm := content(t, specimen.Of(t, format.XLSM))
	rels := string(part(t, xlsm, "xl/_rels/workbook.xml.rels"))
	sheets := strings.Replace(rels, "/worksheet\"", "/xlMacrosheet\"", 1)
	if sheets == rels {
		t.Fatal("no sheet")
	}
	docm := content(t, specimen.Of(t, format.DOCM))
	locked := must(t, documentops.Lock(nil), fileops.Args{"password": "x"}, fileops.Bytes("a.docm", docm))
	for name, tt := range map[string]struct {
		in   *fileops.File
		want error
	}{
		"macro sheets": {fileops.Bytes("a.xlsm", rezip(t, xlsm, map[string][]byte{"xl/_rels/workbook.xml.rels": []byte(sheets)})), fileops.ErrUnsupportedInput},
		"locked":       {fileops.Bytes("a.docm", locked), fileops.ErrPasswordRequired},
		"cut off":      {fileops.Bytes("a.docm", docm[:len(docm)-30]), fileops.ErrCorruptInput},
		"other":        {fileops.Bytes("a.dotx", content(t, specimen.Of(t, format.XLSX))), fileops.ErrFormatMismatch},
	} {
		if _, _, err := converted(t, tt.in); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
	}
}

func TestPlainSuite(t *testing.T) {
	t.Parallel()
	fileopstest.Run(t, fileopstest.Suite{Action: documentops.Convert(nil), Concurrency: 4})
}
