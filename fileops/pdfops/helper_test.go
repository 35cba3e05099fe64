package pdfops_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/engine"
	"github.com/filewright/filewright/fileops/pdfops"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/internal/tinypdf"
)

// cell reports whether to test the cell in row i and column j of a table. With
// -short, only each row and each column is tested, on diagonals that are n cells
// apart. n is the smaller dimension.
func cell(i, j, n int) bool { return !testing.Short() || i%n == j%n }

// variants returns the tools with which every action is tested.
func variants(t testing.TB) map[string]pdfops.Tools {
	t.Helper()
	return map[string]pdfops.Tools{"pure": {}, "qpdf": {QPDF: findQPDF(t)}}
}

func findQPDF(t testing.TB) *engine.Program {
	t.Helper()
	p, err := engine.NewSandbox().Find(t.Context(), []string{"--version"}, "qpdf")
	systest.NoError(t, err)
	return p
}

// try runs an action and returns its results in memory.
func try(ctx context.Context, t testing.TB, a fileops.Action, args fileops.Args, in ...*fileops.File) ([]*fileops.File, error) {
	t.Helper()
	var out []*fileops.File
	r := fileops.Runner{TempDir: t.TempDir()}
	err := r.Run(ctx, a, args, fileops.SinkFunc(func(_ context.Context, f *fileops.File) error {
		b, err := io.ReadAll(f.Reader())
		out = append(out, fileops.Bytes(f.Name(), b))
		return err
	}), in...)
	return out, err
}

// run runs an action that must return one result.
func run(t testing.TB, a fileops.Action, args fileops.Args, in ...*fileops.File) *fileops.File {
	t.Helper()
	out, err := try(t.Context(), t, a, args, in...)
	systest.NoError(t, err)
	if len(out) != 1 {
		t.Fatalf("%d results", len(out))
	}
	return out[0]
}

// fails runs an action that must fail with an error of the given kind. It
// returns the user-facing message.
func fails(t testing.TB, kind error, a fileops.Action, args fileops.Args, in ...*fileops.File) string {
	t.Helper()
	out, err := try(t.Context(), t, a, args, in...)
	if !errors.Is(err, kind) {
		t.Fatalf("error is %v, want %v; %d results", err, kind, len(out))
	}
	return fileops.Message(err)
}

func pdf(name string, b []byte) *fileops.File { return fileops.Bytes(name, b) }

func content(t testing.TB, f *fileops.File) []byte {
	t.Helper()
	b, ok := f.Bytes()
	if !ok {
		t.Fatal("file is not in memory")
	}
	return b
}

// save writes a file to disk, for other programs.
func save(t testing.TB, f *fileops.File) string {
	t.Helper()
	p := filepath.Join(t.TempDir(), "f"+filepath.Ext(f.Name()))
	systest.NoError(t, os.WriteFile(p, content(t, f), 0o600))
	return p
}

// shell runs a program that must succeed and returns its standard output.
var shell = systest.Run

// encrypted encrypts a file with qpdf.
func encrypted(t testing.TB, plain []byte, args ...string) []byte {
	t.Helper()
	in := save(t, pdf("in.pdf", plain))
	out := filepath.Join(t.TempDir(), "out.pdf")
	all := append([]string{"--allow-weak-crypto", "--encrypt"}, args...)
	shell(t, "qpdf", append(all, "--", in, out)...)
	b := systest.ReadFile(t, out)
	return b
}

// sound checks a PDF file with qpdf.
func sound(t testing.TB, f *fileops.File) {
	t.Helper()
	p := save(t, f)
	shell(t, "qpdf", "--check", p)
}

// summary counts the contents of a PDF file, as qpdf reports them.
type summary struct {
	Pages, Outlines, Links, Widgets, Fields, Attachments, Labels int
	Tagged                                                       bool
	Version                                                      string
}

func summarize(t testing.TB, f *fileops.File) summary {
	t.Helper()
	p := save(t, f)
	var v struct {
		Pages []struct {
			Object string
			Images []any
		}
		Outlines    []any
		Pagelabels  []any
		Attachments map[string]any
		Acroform    struct{ Fields []any }
		Qpdf        []map[string]any
	}
	systest.NoError(t, json.Unmarshal([]byte(shell(t, "qpdf", "--json=2", p)), &v))
	var s summary
	s.Pages, s.Fields, s.Attachments, s.Labels = len(v.Pages), len(v.Acroform.Fields), len(v.Attachments), len(v.Pagelabels)
	var count func([]any)
	count = func(items []any) {
		for _, i := range items {
			s.Outlines++
			if m, ok := i.(map[string]any); ok {
				kids, _ := m["kids"].([]any)
				count(kids)
			}
		}
	}
	count(v.Outlines)
	var walk func(any)
	walk = func(o any) {
		switch v := o.(type) {
		case []any:
			for _, e := range v {
				walk(e)
			}
		case map[string]any:
			switch v["/Subtype"] {
			case "/Link":
				s.Links++
			case "/Widget":
				s.Widgets++
			}
			if v["/StructTreeRoot"] != nil {
				s.Tagged = true
			}
			for _, e := range v {
				walk(e)
			}
		}
	}
	for _, objects := range v.Qpdf {
		for _, o := range objects {
			walk(o)
		}
	}
	return s
}

// handmade builds a PDF file from objects 1, 2, …; the first is the catalog.
func handmade(version string, objects ...string) []byte { return tinypdf.File(version, objects...) }

func stream(dict, data string) string { return tinypdf.Stream(dict, data) }

// simple returns a one-page document with a text.
func simple(text string) []byte {
	return handmade("1.4",
		"<</Type/Catalog/Pages 2 0 R>>",
		"<</Type/Pages/Kids[3 0 R]/Count 1>>",
		"<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 200]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>",
		stream("", "BT /F 24 Tf 20 100 Td ("+text+") Tj ET"),
		"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>")
}

// rich returns a two-page document with bookmarks, a link to a named
// destination, form fields, page labels, an attachment, a layer and tags. The
// names are always the same.
func rich(text string) []byte {
	return handmade("1.7",
		`<</Type/Catalog/Pages 2 0 R/Outlines 6 0 R/Names<</Dests 9 0 R/EmbeddedFiles 10 0 R>>/Dests<</old[4 0 R/Fit]>>`+
			`/AcroForm<</Fields[13 0 R]/DA(/F 12 Tf 0 g)/DR<</Font<</F 5 0 R>>>>>>/PageLabels<</Nums[0<</S/r>>]>>`+
			`/StructTreeRoot 17 0 R/MarkInfo<</Marked true>>/OCProperties<</OCGs[16 0 R]/D<</OFF[16 0 R]/Order[16 0 R]>>>>/AF[11 0 R]>>`,
		`<</Type/Pages/Kids[3 0 R 4 0 R]/Count 2/MediaBox[0 0 300 200]/Resources<</Font<</F 5 0 R>>/Properties<</L 16 0 R>>>>>>`,
		`<</Type/Page/Parent 2 0 R/Contents 14 0 R/Annots[13 0 R 15 0 R]/StructParents 0>>`,
		`<</Type/Page/Parent 2 0 R/Contents 18 0 R/Annots[19 0 R]>>`,
		`<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>`,
		`<</Type/Outlines/First 7 0 R/Last 8 0 R/Count 2>>`,
		`<</Title(One)/Parent 6 0 R/Next 8 0 R/Dest(two)>>`,
		`<</Title(Two)/Parent 6 0 R/Prev 7 0 R/A<</S/GoTo/D(two)>>>>`,
		`<</Names[(two)[4 0 R/XYZ 0 200 null]]>>`,
		`<</Names[(note.txt)11 0 R]>>`,
		`<</Type/Filespec/F(note.txt)/UF(note.txt)/EF<</F 12 0 R>>/AFRelationship/Data>>`,
		stream("/Type/EmbeddedFile", "note of "+text),
		`<</Type/Annot/Subtype/Widget/FT/Tx/T(field)/V(`+text+`)/Rect[10 10 100 30]/P 3 0 R/F 4>>`,
		stream("", "/P<</MCID 0>>BDC BT /F 24 Tf 20 100 Td ("+text+") Tj ET EMC /OC/L BDC BT /F 24 Tf 20 60 Td (hidden) Tj ET EMC"),
		`<</Type/Annot/Subtype/Link/Rect[10 150 100 170]/Border[0 0 1]/Dest(two)>>`,
		`<</Type/OCG/Name(Layer)>>`,
		`<</Type/StructTreeRoot/K 20 0 R/ParentTree<</Nums[0[20 0 R]]>>>>`,
		stream("", "BT /F 24 Tf 20 100 Td (second "+text+") Tj ET"),
		`<</Type/Annot/Subtype/Link/Rect[10 150 100 170]/Dest/old>>`,
		`<</Type/StructElem/S/P/P 17 0 R/Pg 3 0 R/K 0>>`,
	)
}
