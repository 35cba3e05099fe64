package pdfread_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/pdfread"
	"github.com/filewright/filewright/internal/systest"
)

// A sheet of a test document: lines of text over a red band, which the faulty conversion
// of the tests loses.
func band(text ...string) pdfPage {
	return pdfPage{content: "0.8 0.1 0.1 rg 60 100 470 300 re f 0 g " + lines("F1", 12, 72, 760, 18, text...)}
}

func plain(text ...string) pdfPage {
	return pdfPage{content: lines("F1", 12, 72, 760, 18, text...)}
}

// printing returns an action that prints DOCX files by a function.
func printing(do func(docx []byte) ([]byte, error)) fileops.Action {
	spec := fileops.Spec{Name: "convert", Engine: "printer", Accepts: []fileops.Accept{{
		Formats: []format.Format{format.DOCX}, Params: fileops.Schema{fileops.Enum("convert_to", "Format.", "pdf")},
	}}}
	return fileops.Func(spec, func(_ context.Context, job *fileops.Job) error {
		b, err := io.ReadAll(job.Input().Reader())
		if err != nil {
			return err
		}
		pdf, err := do(b)
		if err != nil {
			return err
		}
		return job.WriteBytes("print.pdf", pdf)
	})
}

// instead returns a conversion that reads another file than its input.
func instead(convert fileops.Action, pdf []byte) fileops.Action {
	return fileops.Wrap(convert, func(ctx context.Context, job *fileops.Job, _ func(context.Context, *fileops.Job) error) error {
		return fileops.Run(ctx, convert, job.Params.Args(), fileops.SinkFunc(func(_ context.Context, f *fileops.File) error {
			b, err := io.ReadAll(f.Reader())
			if err != nil {
				return err
			}
			return job.WriteBytes(f.Name(), b)
		}), fileops.Bytes("in.pdf", pdf))
	})
}

// prove runs a proof and returns the main part of the document and the codes of the
// warnings with their texts.
func prove(t *testing.T, p pdfread.Proof, args fileops.Args, pdf []byte) (main string, warnings []string) {
	t.Helper()
	var out []result
	r := fileops.Runner{TempDir: t.TempDir(), Warn: func(w fileops.Warning) { warnings = append(warnings, w.Code+": "+w.Message) }}
	systest.NoError(t, r.Run(t.Context(), p.Action(), args, collect(&out), fileops.Bytes("in.pdf", pdf)))
	if len(out) != 1 || out[0].name != "in.docx" {
		t.Fatalf("results %v", out)
	}
	return string(unzip(t, out[0].b)["word/document.xml"]), warnings
}

var toWord = fileops.Args{"convert_to": "docx"}

// The page that lost its band gets boxes over a picture, and the other one still flows.
// LibreOffice prints.
func TestProofPrints(t *testing.T) {
	t.Parallel()
	e := newEngine(t, pdfread.Options{})
	words := strings.Fields(prose(3, 240))
	var text []string // lines
	for i := range 30 {
		text = append(text, strings.Join(words[8*i:8*i+8], " "))
	}
	original := pages(plain(text[:10]...), band(text[10:20]...), plain(text[20:]...))
	p := pdfread.Proof{
		Convert: instead(e.Convert(), pages(plain(text[:10]...), plain(text[10:20]...), plain(text[20:]...))),
		Keep:    e.Keep(), Compare: e.Compare(),
		Print: printing(func(docx []byte) ([]byte, error) { return office(t, "print.docx", docx, "pdf"), nil }),
	}
	main, warnings := prove(t, p, toWord, original)
	if n := strings.Count(main, `name="Page `); n != 1 {
		t.Errorf("%d pages are pictures with boxes, want 1", n)
	}
	if want := "layout_simplified: Flowing text cannot show page 2, so text boxes over a picture do."; len(warnings) != 1 || warnings[0] != want {
		t.Errorf("warnings %q, want %q", warnings, want)
	}
	for _, w := range words {
		if !strings.Contains(main, w) {
			t.Errorf("%q is missing", w)
		}
	}
}

// The forms of pages that a proof chooses, by what the printer shows of each draft.
func TestProofChooses(t *testing.T) {
	t.Parallel()
	e := newEngine(t, pdfread.Options{})
	text := strings.Fields(prose(5, 20))
	original := pages(band(text[:10]...), band(text[10:]...))
	lost := pages(plain(text[:10]...), band(text[10:]...))
	spread := pages(band(text[:5]...), band(text[5:10]...), band(text[10:]...)) // the first page takes two
	empty := pages(pdfPage{}, pdfPage{})
	boxes := func(docx string) bool { return strings.Contains(docx, "<wps:txbx>") }
	picture := func(docx string) bool {
		return boxes(docx) && strings.Index(docx, "<wps:txbx>") < strings.Index(docx, `name="Page `)
	}
	for _, tt := range []struct {
		name  string
		args  fileops.Args
		print func(docx string) []byte
		codes string // of the warnings, with the pages
	}{
		{"as good as the file", nil, func(string) []byte { return original }, ""},
		{"a page with boxes is better", nil, func(docx string) []byte {
			if boxes(docx) {
				return original
			}
			return lost
		}, "layout_simplified page 1"},
		{"a page takes two", nil, func(docx string) []byte {
			if boxes(docx) {
				return original
			}
			return spread
		}, "layout_simplified page 1"},
		{"only a picture is better", nil, func(docx string) []byte {
			if picture(docx) {
				return original
			}
			return empty
		}, "page_as_image pages 1, 2"},
		{"nothing is better", nil, func(string) []byte { return empty }, ""},
		{"a page of a selection", fileops.Args{"pages": "2,1"}, func(docx string) []byte {
			if boxes(docx) {
				return pages(band(text[10:]...), band(text[:10]...))
			}
			return pages(band(text[10:]...), plain(text[:10]...))
		}, "layout_simplified page 1"},
		{"no print", nil, func(string) []byte { return nil }, ""},
		{"a page is missing", nil, func(string) []byte { return pages(plain(text...)) }, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			args := fileops.Args{"convert_to": "docx"}
			for k, v := range tt.args {
				args[k] = v
			}
			p := pdfread.Proof{Convert: e.Convert(), Keep: e.Keep(), Compare: e.Compare(), Print: printing(func(docx []byte) ([]byte, error) {
				if pdf := tt.print(string(unzip(t, docx)["word/document.xml"])); pdf != nil {
					return pdf, nil
				}
				return nil, errors.New("out of paper")
			})}
			main, warnings := prove(t, p, args, original)
			got := strings.Join(warnings, "\n")
			code, where, _ := strings.Cut(tt.codes, " ")
			switch {
			case tt.codes == "" && (got != "" || boxes(main)):
				t.Errorf("warnings %q, want none, and flowing text", got)
			case tt.codes != "" && (len(warnings) != 1 || !strings.HasPrefix(got, code+": ") || !strings.Contains(got, where+",") || !boxes(main)):
				t.Errorf("warnings %q, want %s, and boxes", got, tt.codes)
			}
			if picture(main) != (code == "page_as_image") {
				t.Errorf("pages are pictures: %v", picture(main))
			}
		})
	}
}

// Other formats are not printed.
func TestProofOfText(t *testing.T) {
	t.Parallel()
	e := newEngine(t, pdfread.Options{})
	p := pdfread.Proof{Convert: e.Convert(), Keep: e.Keep(), Compare: e.Compare(), Print: printing(func([]byte) ([]byte, error) {
		t.Error("printed")
		return nil, errors.New("no printer")
	})}
	var out []result
	systest.NoError(t, fileops.Run(t.Context(), p.Action(), fileops.Args{"convert_to": "txt"}, collect(&out), fileops.Bytes("in.pdf", pages(plain("some text")))))
	if len(out) != 1 || string(out[0].b) != "some text\n\f" {
		t.Errorf("%v", out)
	}
}
