package officeops_test

import (
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/engine"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/officeops"
)

func benchmark(b *testing.B, e *officeops.Engine, in *fileops.File, to format.Format) {
	b.Helper()
	if _, err := convert(b.Context(), e, in, to); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(in.Size())
	for b.Loop() {
		if _, err := convert(b.Context(), e, in, to); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkWarm converts with a running process.
func BenchmarkWarm(b *testing.B) {
	for name, c := range map[string]struct {
		in *fileops.File
		to format.Format
	}{
		"docx to pdf":          {fixture(b, format.DOCX), format.PDF},
		"docx 20 pages to pdf": {fileops.Bytes("x.docx", docx(pages(20))), format.PDF},
		"pptx to pdf":          {fixture(b, format.PPTX), format.PDF},
		"xlsx to pdf":          {fixture(b, format.XLSX), format.PDF},
		"csv to xlsx":          {fixture(b, format.CSV), format.XLSX},
		"md to pdf":            {fixture(b, format.MD), format.PDF},
	} {
		b.Run(name, func(b *testing.B) { benchmark(b, office, c.in, c.to) })
	}
}

// BenchmarkOneShot converts with a separate process for each document, like soffice
// --convert-to.
func BenchmarkOneShot(b *testing.B) {
	e, _, _ := find(b, officeops.Options{Python: engine.None})
	b.Run("docx to pdf", func(b *testing.B) { benchmark(b, e, fixture(b, format.DOCX), format.PDF) })
}

func BenchmarkPandoc(b *testing.B) {
	b.Run("docx to md", func(b *testing.B) { benchmark(b, office, fixture(b, format.DOCX), format.MD) })
}
