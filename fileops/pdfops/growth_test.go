package pdfops_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/pdfops"
	"github.com/filewright/filewright/internal/systest"
)

// Objects that many others share are not gone through once for each of them, and
// trees whose nodes have several parents do not multiply. Otherwise these files
// would take hours.
func TestSharedObjects(t *testing.T) {
	t.Parallel()
	many := systest.Scale(40_000, 20_000)
	repeat := func(format string) string { return strings.Repeat(format, many) }
	numbered := func(format string) string {
		var b strings.Builder
		for i := range many {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	// The last objects are 6 and so on.
	file := func(catalog, page string, more ...string) []byte {
		return handmade("1.7", append([]string{
			"<</Type/Catalog/Pages 2 0 R" + catalog + ">>", "<</Type/Pages/Kids[3 0 R]/Count 1>>",
			"<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 100]/Contents 4 0 R" + page + ">>",
			stream("", "BT /F 24 Tf 20 40 Td (x) Tj ET"+strings.Repeat(" ", 4000)), "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
		}, more...)...)
	}
	tree := []string{"<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R 4 0 R]/Count 1>>", "<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>"}
	for i := 4; i < 60; i++ {
		tree = append(tree, fmt.Sprintf("<</Type/Pages/Kids[%d 0 R %d 0 R]>>", i+1, i+1))
	}
	tree = append(tree, "<</Type/Pages/Kids[]>>")
	for name, tt := range map[string]struct {
		in      []byte
		refused bool
	}{
		"page tree":          {handmade("1.7", tree...), true},
		"fonts":              {file("", "/Resources<</Font 6 0 R>>/X["+repeat("<</Font 6 0 R>>")+"]", "<<"+numbered("/F%d 5 0 R")+">>"), false},
		"descendants":        {file("", "/X["+repeat("<</Type/Font/DescendantFonts 6 0 R>>")+"]", "["+repeat("5 0 R ")+"]"), false},
		"default resources":  {file("", "/X["+repeat("<</DR<</Font 6 0 R>>>>")+"]", "<<"+numbered("/F%d 5 0 R")+">>"), false},
		"default appearance": {file("", "/X["+repeat("<</DA 6 0 R>>")+"]", "("+repeat("/F 1 Tf ")+")"), false},
		"number tree":        {file("/PageLabels<</Kids["+repeat("<</Nums 6 0 R>>")+"]>>", "", "["+numbered("%d<</S/D>>")+"]"), false},
		"names":              {file("/Names<</Dests<</Kids["+repeat("<</Names 6 0 R>>")+"]>>>>", "", "["+numbered("(%d)[3 0 R/Fit]")+"]"), false},
		"parent tree":        {file("/StructTreeRoot<</K[]/ParentTree<</Kids["+repeat("<</Nums 6 0 R>>")+"]>>>>", "", "["+numbered("%d 5 0 R ")+"]"), false},
		"structure":          {file("/StructTreeRoot<</K["+repeat("<</S/P/K 6 0 R>>")+"]>>", "", "["+repeat("<</S/P>>")+"]"), false},
		"choices":            {file("/AcroForm<</NeedAppearances true/Fields[<</FT/Ch/Opt 6 0 R/V(x)/Ff 131072/Kids["+repeat("<</Subtype/Widget/Rect[0 0 9 9]>>")+"]>>]>>", "", "["+repeat("(x)")+"]"), false},
		"values":             {file("/AcroForm<</NeedAppearances true/Fields[<</FT/Tx/V 6 0 R/Kids["+repeat("<</Subtype/Widget/Rect[0 0 9 9]>>")+"]>>]>>", "", "("+repeat("words ")+")"), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, a := range []fileops.Action{pdfops.Merge(), pdfops.Compress(), pdfops.Split(), pdfops.Flatten(), pdfops.PageNumbers()} {
				in := []*fileops.File{pdf("a.pdf", tt.in)}
				if a.Spec().Joint {
					in = append(in, pdf("b.pdf", simple("b")))
				}
				if _, err := try(t.Context(), t, a, nil, in...); (err != nil) != tt.refused {
					t.Errorf("%s: %v", a.Spec().Name, err)
				}
			}
		})
	}
}

// Fields that share their widgets, choices or values are not gone through once for each
// of them.
func TestSharedFields(t *testing.T) {
	t.Parallel()
	many := systest.Scale(20_000, 10_000)
	repeat := func(format string, n int) string { return strings.Repeat(format, n) }
	values := make(map[string]any)
	for i := range 5_000 {
		values[fmt.Sprint("f", i)] = "x"
	}
	var named strings.Builder
	for i := range 5_000 {
		fmt.Fprintf(&named, "<</T(f%d)/FT/Ch/Ff 131072/Opt 4 0 R/Kids 5 0 R>>", i)
	}
	file := func(fields string, more ...string) []byte {
		return handmade("1.7", append([]string{
			"<</Type/Catalog/Pages 2 0 R/AcroForm<</Fields[" + fields + "]>>>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>", "<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>",
		}, more...)...)
	}
	for name, tt := range map[string]struct {
		in     []byte
		fields map[string]any
		reason string // "" if the form is filled in
	}{
		"kids":    {file(repeat("<</T(a)/FT/Tx/Kids 4 0 R>>", many), "["+repeat("<</Subtype/Widget/Rect[0 0 9 9]>>", many)+"]"), map[string]any{"a": "x"}, "too large"},
		"nested":  {file(repeat("<</T(a)/FT/Tx/Kids 4 0 R>>", many), "["+repeat("<</T(b)/Rect[0 0 9 9]>>", many)+"]"), map[string]any{"a.b": "x"}, "too large"},
		"names":   {file(repeat("<</T(a)/FT/Tx>>", many)), map[string]any{"a": strings.Repeat("long ", 1000)}, "too large"},
		"choices": {file(named.String(), "["+repeat("(x)", many)+"]", "[]"), values, "too large"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := try(t.Context(), t, pdfops.FillForm(), fileops.Args{"fields": tt.fields}, pdf("a.pdf", tt.in))
			if (err != nil) != (tt.reason != "") || err != nil && !strings.Contains(err.Error(), tt.reason) {
				t.Errorf("error %v, want %q", err, tt.reason)
			}
		})
	}
}
