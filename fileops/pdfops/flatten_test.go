package pdfops_test

import (
	"bytes"
	"fmt"
	"image"
	"image/draw"
	"slices"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/pdfops"
	"github.com/filewright/filewright/internal/imagefile"
)

// Fields and annotations look as before, and are no longer there.
func TestFlatten(t *testing.T) {
	t.Parallel()
	note := func(dict string) string {
		return "<</Type/Annot/Rect[20 20 120 60]" + dict + ">>"
	}
	const red = "1 0 0 rg 0 0 50 20 re f"
	annotated := func(dict, form string, more ...string) []byte {
		return handmade("1.7", append([]string{
			"<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1/Rotate 90>>",
			// The content neither restores its state nor draws in the usual space.
			"<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 200]/Contents 4 0 R/Annots[5 0 R]/Resources<</XObject<</Fw 6 0 R>>>>>>",
			stream("", "q .5 0 0 .5 30 30 cm q 0 0 1 rg 0 0 99 99 re f"),
			note(dict + "/AP<</N 6 0 R>>"), stream("/Type/XObject/Subtype/Form"+form, red),
		}, more...)...)
	}
	for name, tt := range map[string]struct {
		in   []byte
		left int // annotations
	}{
		"fields":          {fieldsFile("/NeedAppearances true", "/FT/Tx/V(typed)", "/FT/Btn/V/On/AS/On/MK<</CA(4)>>", "/FT/Ch/V(one)/Opt[(one)(two)]/Ff 131072"), 0},
		"stamp":           {annotated("/Subtype/Stamp", "/BBox[0 0 50 20]"), 0},
		"highlight":       {annotated("/Subtype/Highlight/QuadPoints[20 60 120 60 20 20 120 20]", "/BBox[0 0 50 20]"), 0},
		"turned form":     {annotated("/Subtype/Stamp", "/BBox[0 0 50 20]/Matrix[0 1 -1 0 7 9]"), 0},
		"states":          {bytes.Replace(annotated("/Subtype/Widget/AS/On", "/BBox[0 0 50 20]"), []byte("/N 6 0 R"), []byte("/N<</On 6 0 R/Off 4 0 R>>"), 1), 0},
		"hidden":          {annotated("/Subtype/Stamp/F 2", "/BBox[0 0 50 20]"), 0},
		"hidden layer":    {bytes.Replace(annotated("/Subtype/Stamp/OC 7 0 R", "/BBox[0 0 50 20]", "<</Type/OCG/Name(L)>>"), []byte("/Catalog"), []byte("/Catalog/OCProperties<</OCGs[7 0 R]/D<</OFF[7 0 R]>>>>"), 1), 0},
		"link":            {annotated("/Subtype/Link/Border[0 0 1]/A<</S/URI/URI(https://example.org)>>", "/BBox[0 0 50 20]"), 1},
		"left to viewers": {bytes.Replace(annotated("/Subtype/Square/C[1 0 0]", "/BBox[0 0 50 20]"), []byte("/AP<</N 6 0 R>>"), nil, 1), 1},
	} {
		in := pdf("a.pdf", tt.in)
		out := run(t, pdfops.Flatten(), nil, in)
		sound(t, out)
		before, after := drawn(t, save(t, in), 1), drawn(t, save(t, out), 1)
		if name == "highlight" { // poppler draws the original by itself, as colour above the content
			if !bytes.Contains(inflated(t, content(t, out)), []byte("/BM /Multiply")) {
				t.Errorf("%s: hides what is below", name)
			}
		} else if name == "fields" { // viewers make the appearances of the original; the text is compared instead
			if text := strings.Join(strings.Fields(shell(t, "pdftotext", save(t, out), "-")), " "); !strings.Contains(text, "typed") || !strings.Contains(text, "one") {
				t.Errorf("%s: text %q", name, text)
			}
		} else if s := imagefile.Similarity(grayOf(before), grayOf(after)); s < 0.999 {
			t.Errorf("%s: looks different: %.4f", name, s)
		}
		b := inflated(t, content(t, out))
		if n := bytes.Count(b, []byte("/Type /Annot")); n != tt.left || bytes.Contains(b, []byte("/AcroForm")) {
			t.Errorf("%s: %d annotations, want %d", name, n, tt.left)
		}
	}
}

// Flattened annotations are content of their structure elements.
func TestFlattenTags(t *testing.T) {
	t.Parallel()
	in := handmade("1.7",
		`<</Type/Catalog/Pages 2 0 R/StructTreeRoot 5 0 R/MarkInfo<</Marked true>>/AcroForm<</Fields[9 0 R 10 0 R]/DA(/F 12 Tf)/DR<</Font<</F 8 0 R>>>>/NeedAppearances true>>>>`,
		`<</Type/Pages/Kids[3 0 R]/Count 1>>`,
		`<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 200]/Contents 4 0 R/Annots[9 0 R 10 0 R]/StructParents 0/Resources<</Font<</F 8 0 R>>>>>>`,
		stream("", "/P<</MCID 0>>BDC BT /F 24 Tf 20 100 Td (paragraph) Tj ET EMC"),
		`<</Type/StructTreeRoot/K[6 0 R 7 0 R 11 0 R]/ParentTree<</Nums[0[6 0 R]1 7 0 R 2 11 0 R]>>/ParentTreeNextKey 3>>`,
		`<</Type/StructElem/S/P/P 5 0 R/Pg 3 0 R/K 0>>`,
		`<</Type/StructElem/S/Form/P 5 0 R/K<</Type/OBJR/Obj 9 0 R/Pg 3 0 R>>>>`,
		`<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>`,
		`<</Type/Annot/Subtype/Widget/FT/Tx/T(a)/V(alpha)/Rect[10 10 100 30]/P 3 0 R/StructParent 1>>`,
		`<</Type/Annot/Subtype/Widget/FT/Tx/T(b)/V(beta)/Rect[10 40 100 60]/P 3 0 R/StructParent 2>>`,
		`<</Type/StructElem/S/Form/P 5 0 R/K[<</Type/OBJR/Obj 10 0 R/Pg 3 0 R>>]>>`)
	out := run(t, pdfops.Flatten(), nil, pdf("a.pdf", in))
	sound(t, out)
	p := save(t, out)
	text := shell(t, "pdfinfo", "-struct-text", p)
	for _, want := range []string{"paragraph", "alpha", "beta"} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is in no element:\n%s", want, text)
		}
	}
	if q := readStructure(t, p); !slices.Equal(q.parents, []int{0}) || len(q.orphans) > 0 || !slices.Equal(q.content, []int{0}) {
		t.Errorf("%+v", q)
	}
}

func TestFlattenWarnings(t *testing.T) {
	t.Parallel()
	xfa := fieldsFile("/XFA(x)", "/FT/Tx/V(x)")
	if codes := warned(t, pdfops.Flatten(), nil, pdf("a.pdf", xfa)); !slices.Equal(codes, []string{fileops.WarnContentDropped}) {
		t.Errorf("warnings %q", codes)
	}
	scripted := bytes.Replace(fieldsFile("", "/FT/Tx/V(x)"), []byte("/Catalog"), []byte("/Catalog/Names<</JavaScript<</Names[(a)<</S/JavaScript/JS(1)>>]>>>>"), 1)
	if codes := warned(t, pdfops.Flatten(), nil, pdf("a.pdf", scripted)); !slices.Equal(codes, []string{fileops.WarnScriptNotRun}) {
		t.Errorf("warnings %q", codes)
	}
	if codes := warned(t, pdfops.Flatten(), nil, pdf("a.pdf", simple(fmt.Sprint(1)))); len(codes) > 0 {
		t.Errorf("warnings %q", codes)
	}
}

// grayOf returns the luminance of a picture.
func grayOf(m image.Image) *image.Gray {
	out := image.NewGray(m.Bounds())
	draw.Draw(out, out.Rect, m, m.Bounds().Min, draw.Src)
	return out
}
