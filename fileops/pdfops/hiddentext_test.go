package pdfops_test

import (
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/pdfops"
	"github.com/filewright/filewright/fileops/raster"
)

// layered returns a page with visible and invisible text, in its content and in forms.
// more are entries of the catalog.
func layered(more string) *fileops.File {
	const font = "/Font<</F 9 0 R>>"
	return pdf("a.pdf", handmade("1.7",
		"<</Type/Catalog/Pages 2 0 R"+more+">>", "<</Type/Pages/Kids[3 0 R]/Count 1/Resources<<"+font+"/XObject<</Layer 5 0 R/Inherits 6 0 R/Stamp 7 0 R>>>>>>",
		"<</Type/Page/Parent 2 0 R/MediaBox[0 0 400 300]/Contents 4 0 R>>",
		stream("", `BT /F 10 Tf 20 20 Td (visible) Tj ET
q 3 Tr BT /F 10 Tf 20 40 Td (old1) Tj [(old2) 30 (old3)] TJ (old4) ' ET Q
BT /F 10 Tf 20 60 Td (again) Tj ET
q BT /F 10 Tf 3 Tr 20 80 Td (mixed) Tj 0 Tr (both) Tj ET Q
/Layer Do q 3 Tr /Inherits Do Q /Inherits Do q 3 Tr /Inherits Do Q /Stamp Do`),
		stream("/Type/XObject/Subtype/Form/BBox[0 0 400 300]/Resources<<"+font+">>", "BT 3 Tr /F 10 Tf 20 100 Td (old5) Tj ET"),
		stream("/Type/XObject/Subtype/Form/BBox[0 0 400 300]/Resources<<"+font+">>", "BT /F 10 Tf 20 120 Td (depends) Tj ET"),
		stream("/Type/XObject/Subtype/Form/BBox[0 0 400 300]/Resources<<"+font+"/XObject<</Layer 5 0 R/Loop 8 0 R>>>>", "/Layer Do /Loop Do BT /F 10 Tf 20 140 Td (stamp) Tj ET"),
		stream("/Type/XObject/Subtype/Form/BBox[0 0 400 300]/Resources<</XObject<</Loop 8 0 R>>>>", "/Loop Do"),
		"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"))
}

// With force, the layer of an earlier recognition is replaced. Text that can be seen stays.
func TestOCRReplacesHiddenText(t *testing.T) {
	t.Parallel()
	tools := pdfops.Tools{Reader: &reader{width: 400, height: 300, pages: []int{0}, words: []raster.TextWord{{Text: "found", X: 100, Y: 50, DX: 60, Size: 20}}}}
	nothing := pdfops.Tools{Reader: &reader{width: 400, height: 300, pages: []int{0}}}
	all := []string{"visible", "again", "mixedboth", "stamp", "depends", "old1", "old2", "old3", "old4", "old5"}
	kept := all[:5]
	for name, tt := range map[string]struct {
		tools pdfops.Tools
		force bool
		more  string
		want  []string
		times int // of old5
	}{
		"force":         {tools, true, "", append([]string{"found"}, kept...), 0},
		"no force":      {tools, false, "", append([]string{"found"}, all...), 2},
		"nothing found": {nothing, true, "", all, 2},
		"tagged":        {tools, true, "/StructTreeRoot<</Type/StructTreeRoot>>/MarkInfo<</Marked true>>", append([]string{"found"}, all...), 2},
	} {
		in := layered(tt.more)
		out := run(t, tt.tools.OCR(), fileops.Args{"force": tt.force}, in)
		sound(t, out)
		text := shell(t, "pdftotext", "-raw", save(t, out), "-")
		joined := strings.Join(strings.Fields(text), "")
		for _, w := range all {
			wanted := false
			for _, v := range tt.want {
				wanted = wanted || v == w
			}
			if strings.Contains(joined, w) != wanted {
				t.Errorf("%s: %s: text %q", name, w, text)
			}
		}
		if tt.want[0] == "found" && !strings.Contains(joined, "found") || tt.times == 0 && strings.Contains(joined, "old") {
			t.Errorf("%s: text %q", name, text)
		}
		if a, b := shell(t, "pdftoppm", "-r", "72", save(t, in)), shell(t, "pdftoppm", "-r", "72", save(t, out)); a != b {
			t.Errorf("%s: the page looks different", name)
		}
	}
}
