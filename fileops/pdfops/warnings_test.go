package pdfops_test

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/internal/systest"
)

// warned returns the codes of the warnings of a run that must succeed.
func warned(t *testing.T, a fileops.Action, args fileops.Args, in ...*fileops.File) []string {
	t.Helper()
	var codes []string
	r := fileops.Runner{TempDir: t.TempDir(), Warn: func(w fileops.Warning) {
		codes = append(codes, w.Code)
		if w.Message == "" || strings.Contains(w.Message, "%!") {
			t.Errorf("warning %+v", w)
		}
	}}
	systest.NoError(t, r.Run(t.Context(), a, args, fileops.SinkFunc(func(context.Context, *fileops.File) error { return nil }), in...))
	slices.Sort(codes)
	return codes
}

// A result that lost something says so.
func TestWarnings(t *testing.T) {
	t.Parallel()
	signed := bytes.Replace(fieldsFile("/SigFlags 3", "/FT/Sig/V<</Type/Sig/Filter/Adobe.PPKLite/ByteRange[0 1 2 3]/Contents<00>>>"), []byte("/Catalog"), []byte("/Catalog "+strings.Repeat(" ", 64<<10)), 1)
	plain := func() *fileops.File { return pdf("plain.pdf", simple("plain")) }
	pdfa := handmade("1.4",
		"<</Type/Catalog/Pages 2 0 R/Metadata 4 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>", "<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>",
		stream("/Type/Metadata/Subtype/XML", "<pdfaid:part>1</pdfaid:part>"))
	damaged := bytes.Replace(simple("damaged"), []byte("<</Type/Font/"), []byte("<</Type(Font/"), 1)
	open := encryptedWith(t, rich("open"), []string{"--compress-streams=n", "--object-streams=disable"}, "", "boss", "128", "--use-aes=y", "--extract=n")
	many := fieldsFile("/NeedAppearances true", "/FT/Tx/V"+utf16Text("\u0e01\u0e02"))
	xfa := fieldsFile("/XFA(x)", "/FT/Tx/V(x)")
	for name, tools := range variants(t) {
		tools.FontDirs = []string{} // what a host without fonts cannot draw
		for _, tt := range []struct {
			what   string
			action fileops.Action
			args   fileops.Args
			in     []*fileops.File
			want   []string
		}{
			{"nothing lost", tools.Merge(), nil, []*fileops.File{plain(), pdf("b.pdf", rich("b"))}, nil},
			{"one file", tools.Merge(), nil, []*fileops.File{pdf("a.pdf", signed)}, nil},
			{"signed", tools.Merge(), nil, []*fileops.File{plain(), pdf("a.pdf", signed)}, []string{fileops.WarnSignatureInvalid}},
			{"encrypted", tools.Merge(), nil, []*fileops.File{plain(), pdf("a.pdf", open)}, []string{fileops.WarnProtectionRemoved}},
			{"encrypted alone", tools.Merge(), nil, []*fileops.File{pdf("a.pdf", open)}, []string{fileops.WarnProtectionRemoved}},
			{"compressed", tools.Compress(), nil, []*fileops.File{pdf("a.pdf", open)}, []string{fileops.WarnProtectionRemoved}},
			{"XFA", tools.Merge(), nil, []*fileops.File{plain(), pdf("a.pdf", xfa)}, []string{fileops.WarnContentDropped}},
			{"PDF/A", tools.Merge(), nil, []*fileops.File{pdf("a.pdf", pdfa), plain()}, []string{fileops.WarnMetadataDropped}},
			{"second is PDF/A", tools.Merge(), nil, []*fileops.File{plain(), pdf("a.pdf", pdfa)}, nil},
			{"Thai", tools.Merge(), nil, []*fileops.File{plain(), pdf("a.pdf", many)}, []string{fileops.WarnFontsSubstituted}},
			{"lock", tools.Lock(), fileops.Args{"password": "p"}, []*fileops.File{pdf("a.pdf", signed)}, []string{fileops.WarnSignatureInvalid}},
			{"unlock", tools.Unlock(), fileops.Args{"password": ""}, []*fileops.File{pdf("a.pdf", open)}, nil},
		} {
			t.Run(name+"/"+tt.what, func(t *testing.T) {
				t.Parallel()
				if got := warned(t, tt.action, tt.args, tt.in...); !slices.Equal(got, tt.want) {
					t.Errorf("warnings %v, want %v", got, tt.want)
				}
			})
		}
		if name == "pure" { // qpdf repairs it
			if got := warned(t, tools.Merge(), nil, plain(), pdf("a.pdf", damaged)); !slices.Equal(got, []string{fileops.WarnContentDropped}) {
				t.Errorf("damaged: warnings %v", got)
			}
		}
	}
}
