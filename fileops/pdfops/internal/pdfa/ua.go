package pdfa

import (
	"bytes"
	"slices"
	"strings"

	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"

	"github.com/filewright/filewright/fileops/pdfops/internal/pdf"
)

// PrepareUA changes entries of a tagged document that PDF/UA-1 requires and that no page shows.
func PrepareUA(d *pdf.Document, pages []pdf.Page) {
	catalog := d.Catalog()
	view := d.Dict(catalog["ViewerPreferences"])
	if view == nil {
		view = types.Dict{}
		catalog["ViewerPreferences"] = view
	}
	view["DisplayDocTitle"] = types.Boolean(true) // ISO 14289-1, 7.1
	for _, p := range pages {
		if len(d.Array(p.Dict["Annots"])) > 0 {
			p.Dict["Tabs"] = types.Name("S") // ISO 14289-1, 7.18.3
		}
	}
}

// CheckUA returns the reasons why a document cannot claim to conform to PDF/UA-1. It checks what a
// program can: tags for all content, the language, the title, text for figures, fonts, and tags of
// annotations. Whether tags make sense is for people to judge.
func CheckUA(d *pdf.Document, pages []pdf.Page) []string {
	c := &checker{doc: d}
	catalog := d.Catalog()
	root := d.Dict(catalog["StructTreeRoot"])
	if root == nil || root["K"] == nil || !d.Boolean(d.Dict(catalog["MarkInfo"])["Marked"]) {
		return []string{"the document has no tags"}
	}
	if len(d.Text(catalog["Lang"])) == 0 {
		c.fail("the document has no language")
	}
	if strings.TrimSpace(pdf.Unicode(d.Text(d.Dict(pdf.Ref(d.Info))["Title"]))) == "" {
		c.fail("the document has no title")
	}
	for _, v := range dicts(d) {
		switch d.Name(v["Type"]) {
		case "Font":
			c.font(v)
			if kind := d.Name(v["Subtype"]); kind == "Type0" && d.Stream(v["ToUnicode"]) == nil {
				c.fail("the font %s has no text for its glyphs", d.Name(v["BaseFont"]))
			}
		case "StructElem", "":
			if kind := c.role(root, d.Name(v["S"])); v["P"] != nil && (kind == "Figure" || kind == "Formula") && v["Alt"] == nil && v["ActualText"] == nil {
				c.fail("a figure has no description")
			}
		}
	}
	for i, p := range pages {
		b, complete := d.Content(p.Dict["Contents"])
		if !complete || !tagged(b) {
			c.fail("page %d has content without tags", i+1)
		}
		for _, o := range d.Array(p.Dict["Annots"]) {
			a := d.Dict(o)
			if kind := d.Name(a["Subtype"]); kind != "Popup" && a["StructParent"] == nil {
				c.fail("page %d has an annotation without tags", i+1)
			}
		}
	}
	return c.reasons
}

// role returns the standard type of a structure element.
func (c *checker) role(root types.Dict, kind string) string {
	roles := c.doc.Dict(root["RoleMap"])
	for range 8 {
		to := c.doc.Name(roles[kind])
		if to == "" {
			break
		}
		kind = to
	}
	return kind
}

// painters are the operators that show something.
var painters = []string{"Tj", "TJ", "'", "\"", "Do", "sh", "EI", "f", "F", "f*", "B", "B*", "b", "b*", "S", "s"}

// tagged reports whether all content of a stream is in marked content with an identifier, or an
// artifact.
func tagged(b []byte) bool {
	lexer := pdf.NewLexer(b)
	var open []bool     // whether each sequence counts
	var names []string  // operands of the next operator
	const mostNames = 8 // that matter
	dict := false       // an operand is a dictionary
	for t := lexer.Next(); t.Kind != pdf.TokenEnd; t = lexer.Next() {
		switch t.Kind {
		case pdf.TokenName:
			if len(names) < mostNames {
				names = append(names, t.Text)
			}
		case pdf.TokenOther:
			dict = true
		case pdf.TokenString: // the lexer takes the start of a dictionary for one
			if bytes.Contains(t.Raw, []byte("/MCID")) {
				names = append(names, "MCID")
			}
		case pdf.TokenOperator:
			artifact := len(names) > 0 && names[0] == "Artifact"
			switch {
			case t.Text == "BMC":
				open = append(open, artifact)
			case t.Text == "BDC":
				listed := !dict && len(names) == 2 && names[0] != "OC" // its properties are a resource
				open = append(open, artifact || listed || slices.Contains(names, "MCID"))
			case t.Text == "EMC":
				open = open[:max(0, len(open)-1)]
			case t.Text == "ID":
				lexer.SkipInlineImage()
				if !slices.Contains(open, true) {
					return false
				}
			case slices.Contains(painters, t.Text) && !slices.Contains(open, true):
				return false
			}
			names, dict = names[:0], false
		}
	}
	return true
}
