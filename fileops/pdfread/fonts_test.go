package pdfread_test

import (
	"bytes"
	"image/png"
	"slices"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/pdfread"
	"github.com/filewright/filewright/internal/systest"
)

// noembed returns a page with Japanese text in a font that the file does not
// contain, in the encoding 90ms-RKSJ-H.
func noembed() []byte {
	p := &pdfFile{}
	content := p.stream("", "BT /F1 40 Tf 40 40 Td <82a082a282a482a682a8> Tj ET")
	desc := p.add("<</Type/FontDescriptor/FontName/Ryumin-Light/Flags 6/ItalicAngle 0/Ascent 859/Descent -140/CapHeight 709/StemV 80/FontBBox[0 -140 1000 859]>>")
	cid := p.add("<</Type/Font/Subtype/CIDFontType0/BaseFont/Ryumin-Light/CIDSystemInfo<</Registry(Adobe)/Ordering(Japan1)/Supplement 2>>/DW 1000/FontDescriptor %s>>", desc)
	font := p.add("<</Type/Font/Subtype/Type0/BaseFont/Ryumin-Light-90ms-RKSJ-H/Encoding/90ms-RKSJ-H/DescendantFonts[%s]>>", cid)
	pages := len(p.objs) + 2
	page := p.add("<</Type/Page/Parent %d 0 R/MediaBox[0 0 300 120]/Resources<</Font<</F1 %s>>>>/Contents %s>>", pages, font, content)
	tree := p.add("<</Type/Pages/Kids[%s]/Count 1>>", page)
	return p.finish(p.add("<</Type/Catalog/Pages %s>>", tree))
}

func ink(t testing.TB, picture []byte) int {
	t.Helper()
	img, err := png.Decode(bytes.NewReader(picture))
	systest.NoError(t, err)
	n := 0
	for y := range img.Bounds().Dy() {
		for x := range img.Bounds().Dx() {
			if r, _, _, _ := img.At(x, y).RGBA(); r < 0x8000 {
				n++
			}
		}
	}
	return n
}

// Text in a font that is not embedded is drawn in a font of the host, and read.
func TestFontNotEmbedded(t *testing.T) {
	if !strings.Contains(tool(t, "fc-list", ":lang=ja", "file"), "/usr/share/fonts") {
		t.Fatal("the host has no Japanese font; see scripts/setup.sh")
	}
	pdf := noembed()
	e := newEngine(t, pdfread.Options{})
	var warnings []fileops.Warning
	var out []result
	r := fileops.Runner{TempDir: t.TempDir(), Warn: func(w fileops.Warning) { warnings = append(warnings, w) }}
	systest.NoError(t, r.Run(t.Context(), e.Convert(), fileops.Args{"convert_to": "png", "dpi": 72}, collect(&out), fileops.Bytes("in.pdf", pdf)))
	if n := ink(t, out[0].b); n < 500 {
		t.Errorf("%d dark pixels; five characters of 40 points have more", n)
	}
	if !slices.ContainsFunc(warnings, func(w fileops.Warning) bool {
		return w.Code == fileops.WarnFontsSubstituted && strings.Contains(w.Message, "Ryumin-Light")
	}) {
		t.Errorf("warnings %+v lack the font", warnings)
	}
	if text := mustConvert(t, e, fileops.Args{"convert_to": "txt"}, pdf); !strings.Contains(string(text[0].b), "あいうえお") {
		t.Errorf("text %q", text[0].b)
	}

	none := newEngine(t, pdfread.Options{FontDirs: []string{}})
	if n := ink(t, mustConvert(t, none, fileops.Args{"convert_to": "png", "dpi": 72}, pdf)[0].b); n != 0 {
		t.Errorf("%d dark pixels without fonts", n)
	}
}
