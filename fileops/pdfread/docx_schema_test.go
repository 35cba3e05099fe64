package pdfread_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
)

// schemaOrder is the order of child elements that ECMA-376, part 1, annex A
// requires. It lists only elements that the writer uses.
var schemaOrder = map[string][]string{
	"pPr": {
		"pStyle", "keepNext", "keepLines", "pageBreakBefore", "framePr", "widowControl", "numPr", "pBdr", "shd", "tabs", "autoSpaceDE", "autoSpaceDN",
		"bidi", "spacing", "ind", "contextualSpacing", "jc", "textDirection", "outlineLvl", "rPr", "sectPr",
	},
	"rPr": {
		"rStyle", "rFonts", "b", "bCs", "i", "iCs", "caps", "smallCaps", "strike", "color", "spacing", "w", "kern", "position", "sz", "szCs",
		"highlight", "u", "bdr", "shd", "vertAlign", "rtl", "lang",
	},
	"tblPr":  {"tblStyle", "tblpPr", "bidiVisual", "tblW", "jc", "tblInd", "tblBorders", "shd", "tblLayout", "tblCellMar", "tblLook"},
	"tcPr":   {"tcW", "gridSpan", "vMerge", "tcBorders", "shd", "noWrap", "tcMar", "textDirection", "vAlign"},
	"trPr":   {"cantSplit", "trHeight", "tblHeader"},
	"tbl":    {"tblPr", "tblGrid", "tr"},
	"tr":     {"trPr", "tc"},
	"sectPr": {"headerReference", "footerReference", "footnotePr", "type", "pgSz", "pgMar", "pgNumType", "cols", "titlePg"},
	"lvl":    {"start", "numFmt", "lvlText", "lvlJc", "pPr", "rPr"},
	"style":  {"name", "basedOn", "next", "qFormat", "pPr", "rPr", "tblPr"},
	"settings": {
		"defaultTabStop", "evenAndOddHeaders", "characterSpacingControl", "footnotePr", "compat",
	},
	"numbering":   {"abstractNum", "num"},
	"styles":      {"docDefaults", "style"},
	"docDefaults": {"rPrDefault", "pPrDefault"},
	"inline":      {"extent", "docPr", "graphic"},
	"anchor":      {"simplePos", "positionH", "positionV", "extent", "effectExtent", "wrapNone", "docPr", "cNvGraphicFramePr", "graphic"},
	"wsp":         {"cNvSpPr", "spPr", "txbx", "bodyPr"},
	"pic":         {"nvPicPr", "blipFill", "spPr"},
	"footnotePr":  {"numFmt", "numStart", "numRestart", "footnote"},
	"tblBorders":  {"top", "left", "bottom", "right", "insideH", "insideV"},
	"ind":         {},
}

// checkSchema checks the order of elements in all parts of a document. It also
// checks that cells end with a paragraph and that references have a target.
func checkSchema(t *testing.T, parts map[string][]byte) {
	t.Helper()
	ids := make(map[string]bool)
	for _, l := range strings.Split(string(parts["word/_rels/document.xml.rels"]), `Id="`)[1:] {
		id, _, _ := strings.Cut(l, `"`)
		ids[id] = true
	}
	for name, b := range parts {
		if !strings.HasPrefix(name, "word/") || !strings.HasSuffix(name, ".xml") {
			continue
		}
		type open struct {
			name string
			at   int // in the order
			last string
		}
		var stack []open
		d := xml.NewDecoder(bytes.NewReader(b))
		for {
			tok, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			switch e := tok.(type) {
			case xml.StartElement:
				if n := len(stack); n > 0 {
					p := &stack[n-1]
					if order, ok := schemaOrder[p.name]; ok {
						switch at := slices.Index(order, e.Name.Local); {
						case at < 0:
							t.Errorf("%s: %s in %s", name, e.Name.Local, p.name)
						case at < p.at && (p.name != "sectPr" || at > 1):
							t.Errorf("%s: %s after %s in %s", name, e.Name.Local, order[p.at], p.name)
						default:
							p.at = at
						}
					}
					p.last = e.Name.Local
				}
				for _, a := range e.Attr {
					if a.Name.Space == "http://schemas.openxmlformats.org/officeDocument/2006/relationships" && !ids[a.Value] {
						t.Errorf("%s: %s leads nowhere", name, a.Value)
					}
				}
				stack = append(stack, open{name: e.Name.Local})
			case xml.EndElement:
				if top := stack[len(stack)-1]; top.name == "tc" && top.last != "p" {
					t.Errorf("%s: a cell ends with %s", name, top.last)
				}
				stack = stack[:len(stack)-1]
			}
		}
	}
}
