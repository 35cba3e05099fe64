package standard_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/standard"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/internal/tinypdf"
)

// pdfOfLines returns a PDF file of one page with lines of text.
func pdfOfLines(lines ...string) []byte {
	content := "BT /F1 12 Tf 18 TL 72 760 Td"
	for _, l := range lines {
		content += fmt.Sprintf(" (%s) Tj T*", l)
	}
	content += " ET"
	return tinypdf.File("1.4", "<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>",
		"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Resources<</Font<</F1 4 0 R>>>>/Contents 5 0 R>>",
		"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>", tinypdf.Stream("", content))
}

// With ProofPrint, Word documents of PDF files are compared with their print: in isolated
// processes, and also on the way to other document formats. Without it, they are not.
func TestProofPrint(t *testing.T) {
	t.Parallel()
	in := fileops.Bytes("a.pdf", pdfOfLines("The quick brown fox jumps over the lazy dog.", "Every letter of it reaches the document."))
	for _, tt := range []struct {
		proof bool
		to    []string
		want  int
	}{{true, []string{"docx", "odt", "txt"}, 2}, {false, []string{"docx"}, 0}} {
		t.Run(fmt.Sprint(tt.proof), func(t *testing.T) {
			t.Parallel()
			o := few(t)
			o.LibreOffice, o.OfficeWorkers, o.ProofPrint, o.CacheDir = "", 1, tt.proof, systest.CodeCache()
			s := standard.Probe(t.Context(), o)
			defer s.Close()
			reg, err := fileops.NewRegistry(s.Actions()...)
			systest.NoError(t, err)
			var log bytes.Buffer
			r := fileops.Runner{TempDir: t.TempDir(), Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
			for _, to := range tt.to {
				a, params, err := reg.Resolve("convert", []format.Format{format.PDF}, fileops.Args{"convert_to": to})
				systest.NoError(t, err)
				n := 0
				systest.NoError(t, r.Do(t.Context(), a, params, fileops.SinkFunc(func(context.Context, *fileops.File) error { n++; return nil }), in))
				if n != 1 {
					t.Errorf("%s: %d results", to, n)
				}
			}
			if got := strings.Count(log.String(), "a document was compared with its print"); got != tt.want || strings.Contains(log.String(), "not compared") {
				t.Errorf("%d documents were compared, want %d:\n%s", got, tt.want, log.String())
			}
		})
	}
}
