// Package pdfa makes and checks PDF documents for archiving: PDF/A-1, 2 and 3 at conformance level B
// (ISO 19005-1, -2 and -3), and tagged documents for PDF/UA-1 (ISO 14289-1).
//
//	losses := pdfa.Prepare(d, pages, 2)
//	if reasons := pdfa.Check(d, pages, 2); len(reasons) == 0 {
//		pdfa.Claim(d, pdfa.Standard{Part: 2})
//	}
//
// Prepare changes only what no page shows. Check covers the clauses about the structure of the file,
// fonts, colours, transparency, annotations, actions and attachments. It does not compare the widths
// of glyphs in dictionaries with those in font programs.
package pdfa

import (
	"encoding/binary"
	"maps"
	"slices"

	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"

	"github.com/filewright/filewright/fileops/pdfops/internal/pdf"
)

// A Standard is what a document claims to conform to.
type Standard struct {
	Part int  // of PDF/A, at level B; 0 for none
	UA   bool // PDF/UA-1
}

// Losses counts what Prepare removed.
type Losses struct {
	Scripts     int // and other actions that PDF/A forbids
	Attachments int
	Hidden      int // annotations
	XFA         bool
	Packets     int // XMP packets of objects
}

// Prepare changes a document as part of PDF/A requires, as far as that changes no page. The pages must
// be those of the document.
func Prepare(d *pdf.Document, pages []pdf.Page, part int) (l Losses) {
	d.SeparatePages(pages)
	refs := make([]types.IndirectRef, len(pages))
	for i, p := range pages {
		refs[i] = p.Ref
	}
	catalog := d.Catalog()
	catalog["Pages"] = d.AddPageTree(refs)
	l.actions(d)
	l.catalog(d, part)
	for _, p := range pages {
		l.annotations(d, p)
	}
	for nr, v := range dicts(d) {
		if v["Metadata"] != nil && nr != d.Root {
			delete(v, "Metadata")
			l.Packets++
		}
		switch {
		case d.Name(v["Type"]) == "ExtGState":
			delete(v, "TR")
			if tr := v["TR2"]; tr != nil && d.Name(tr) != "Default" {
				delete(v, "TR2")
			}
			delete(v, "HTP")
		case d.Name(v["Subtype"]) == "Image":
			delete(v, "Alternates")
			delete(v, "OPI")
			if d.Boolean(v["Interpolate"]) {
				delete(v, "Interpolate") // a hint to viewers
			}
		case d.Name(v["Subtype"]) == "Form":
			delete(v, "OPI")
		}
		if part == 1 && d.Name(v["Subtype"]) == "CIDFontType2" {
			listGlyphs(d, v)
		}
		if part > 1 && d.Name(v["Type"]) == "FontDescriptor" {
			delete(v, "CIDSet") // optional, and wrong in many files
			delete(v, "CharSet")
		}
	}
	for _, nr := range d.Reachable() {
		if s := d.Stream(pdf.Ref(nr)); s != nil && hasLZW(s) {
			if b, err := pdf.Decode(s); err == nil {
				pdf.SetContent(s, pdf.Deflate(b), types.PDFFilter{Name: "FlateDecode"})
			}
		}
	}
	return l
}

// listGlyphs adds the list of the glyphs in a TrueType font that the dictionary of a subset must have in
// part 1 (ISO 19005-1, 6.3.5), if character codes are glyph numbers.
func listGlyphs(d *pdf.Document, font types.Dict) {
	descriptor := d.Dict(font["FontDescriptor"])
	file := d.Stream(descriptor["FontFile2"])
	if file == nil || descriptor["CIDSet"] != nil || d.Name(font["CIDToGIDMap"]) != "Identity" {
		return
	}
	b, err := pdf.Decode(file)
	if err != nil {
		return
	}
	n := glyphs(b)
	set := make([]byte, (n+7)/8)
	for i := range n {
		set[i/8] |= 0x80 >> (i % 8)
	}
	if n > 0 {
		ref := d.AddStream(types.Dict{}, nil)
		pdf.SetContent(d.Stream(ref), pdf.Deflate(set), types.PDFFilter{Name: "FlateDecode"})
		descriptor["CIDSet"] = ref
	}
}

// glyphs returns the number of glyphs of a TrueType font, or 0 if it is damaged (ISO/IEC 14496-22,
// 5.1.2).
func glyphs(b []byte) int {
	const header, record = 12, 16
	if len(b) < header {
		return 0
	}
	tables := int(binary.BigEndian.Uint16(b[4:]))
	for i := range tables {
		at := header + i*record
		if at+record > len(b) {
			break
		}
		if string(b[at:at+4]) != "maxp" {
			continue
		}
		if off := int(binary.BigEndian.Uint32(b[at+8:])); off >= 0 && off+6 <= len(b) {
			return int(binary.BigEndian.Uint16(b[off+4:]))
		}
	}
	return 0
}

func hasLZW(s *types.StreamDict) bool {
	return slices.ContainsFunc(s.FilterPipeline, func(f types.PDFFilter) bool { return f.Name == "LZWDecode" })
}

// allowedActions are the kinds of actions that all parts of PDF/A allow.
var allowedActions = []string{"GoTo", "GoToR", "Thread", "URI", "Named", "SubmitForm"}

// allowedNames are the named actions that PDF/A allows.
var allowedNames = []string{"NextPage", "PrevPage", "FirstPage", "LastPage"}

// actions removes the actions that PDF/A forbids.
func (l *Losses) actions(d *pdf.Document) {
	allowed := func(o types.Object) bool {
		a := d.Dict(o)
		kind := d.Name(a["S"])
		return a != nil && slices.Contains(allowedActions, kind) && (kind != "Named" || slices.Contains(allowedNames, d.Name(a["N"])))
	}
	for _, v := range dicts(d) {
		if v["AA"] != nil {
			delete(v, "AA")
			l.Scripts++
		}
		for _, key := range []string{"A", "PA", "OpenAction"} {
			o := v[key]
			isAction := key == "OpenAction" && d.Array(o) == nil || d.Dict(o) != nil && d.Name(d.Dict(o)["S"]) != "" && d.Name(v["Type"]) != "StructElem"
			if key == "A" && d.Dict(v["A"])["O"] != nil {
				continue // attributes of a structure element
			}
			if o != nil && isAction && !allowed(o) {
				delete(v, key)
				l.Scripts++
			}
		}
		if next := v["Next"]; next != nil && d.Name(v["S"]) != "" {
			list := d.Array(next)
			if list == nil {
				list = types.Array{next}
			}
			if slices.ContainsFunc(list, func(o types.Object) bool { return !allowed(o) }) {
				delete(v, "Next")
				l.Scripts++
			}
		}
	}
}

// catalog changes the entries of the catalog.
func (l *Losses) catalog(d *pdf.Document, part int) {
	catalog := d.Catalog()
	if names := d.Dict(catalog["Names"]); names != nil {
		if names["JavaScript"] != nil {
			delete(names, "JavaScript")
			l.Scripts++
		}
		delete(names, "AlternatePresentations")
		if part < 3 && names["EmbeddedFiles"] != nil {
			d.TreeLeaves(names["EmbeddedFiles"], "Names", func(types.Object, types.Object) { l.Attachments++ })
			delete(names, "EmbeddedFiles")
		}
	}
	if part < 3 {
		delete(catalog, "AF")
	} else {
		related(d)
	}
	for _, key := range []string{"Perms", "DSS", "Requirements", "Collection", "SpiderInfo", "PieceInfo"} {
		delete(catalog, key)
	}
	if form := d.Dict(catalog["AcroForm"]); form != nil {
		delete(form, "NeedAppearances")
		if form["XFA"] != nil {
			delete(form, "XFA")
			l.XFA = true
		}
	}
	delete(catalog, "NeedsRendering")
	if oc := d.Dict(catalog["OCProperties"]); oc != nil && part > 1 {
		configs := slices.Clone(d.Array(oc["Configs"]))
		for _, o := range append(configs, oc["D"]) {
			if c := d.Dict(o); c != nil {
				delete(c, "AS")
				if len(d.Text(c["Name"])) == 0 {
					c["Name"] = pdf.TextString("Default")
				}
			}
		}
	}
}

// related completes the attachments for PDF/A-3: each is related to the document (ISO 19005-3, 6.8).
func related(d *pdf.Document) {
	catalog := d.Catalog()
	af := slices.Clone(d.Array(catalog["AF"]))
	d.TreeLeaves(d.Dict(catalog["Names"])["EmbeddedFiles"], "Names", func(_, o types.Object) {
		spec := d.Dict(o)
		if spec == nil {
			return
		}
		if d.Name(spec["AFRelationship"]) == "" {
			spec["AFRelationship"] = types.Name("Unspecified")
		}
		for _, pair := range [][2]string{{"F", "UF"}, {"UF", "F"}} {
			if spec[pair[0]] == nil {
				spec[pair[0]] = spec[pair[1]]
			}
		}
		file := d.Dict(d.Dict(spec["EF"])["F"])
		if file != nil && d.Name(file["Subtype"]) == "" {
			file["Subtype"] = types.Name("application/octet-stream")
		}
		if ref, ok := o.(types.IndirectRef); ok && !slices.Contains(af, types.Object(ref)) {
			af = append(af, ref)
		}
	})
	if len(af) > 0 {
		catalog["AF"] = af
	}
}

// Flags of annotations (ISO 32000-2, table 167).
const (
	flagInvisible    = 1 << 0
	flagHidden       = 1 << 1
	flagPrint        = 1 << 2
	flagNoView       = 1 << 5
	flagToggleNoView = 1 << 8
)

// annotations changes the annotations of a page. It removes those that are not shown.
func (l *Losses) annotations(d *pdf.Document, p pdf.Page) {
	annots := d.Array(p.Dict["Annots"])
	kept := types.Array{}
	for _, o := range annots {
		a := d.Dict(o)
		if a == nil {
			continue
		}
		kind, flags := d.Name(a["Subtype"]), d.Integer(a["F"])
		if kind != "Popup" && flags&(flagHidden|flagNoView|flagInvisible) != 0 && (kind != "Widget" || a["Parent"] == nil && a["FT"] == nil) {
			l.Hidden++
			continue
		}
		if kind != "Popup" {
			if kind == "Widget" && flags&(flagHidden|flagNoView) != 0 {
				delete(a, "AP") // a field that is not shown keeps its value, without an area
				a["Rect"] = types.Array{types.Integer(0), types.Integer(0), types.Integer(0), types.Integer(0)}
			}
			a["F"] = types.Integer(flags&^(flagHidden|flagNoView|flagInvisible|flagToggleNoView) | flagPrint)
		}
		if ap := d.Dict(a["AP"]); len(ap) > 1 && ap["N"] != nil {
			a["AP"] = types.Dict{"N": ap["N"]}
		}
		kept = append(kept, o)
	}
	switch {
	case len(kept) == 0:
		delete(p.Dict, "Annots")
	case len(kept) < len(annots):
		p.Dict["Annots"] = kept
	}
}

// dicts returns the dictionaries of the objects that the document uses, each with the number of the
// indirect object that it is in. Nested dictionaries have the number 0.
func dicts(d *pdf.Document) func(func(int, types.Dict) bool) {
	return func(yield func(int, types.Dict) bool) {
		var walk func(nr int, o types.Object) bool
		walk = func(nr int, o types.Object) bool {
			switch v := o.(type) {
			case types.Dict:
				if !yield(nr, v) {
					return false
				}
				for _, k := range slices.Sorted(maps.Keys(v)) {
					if !walk(0, v[k]) {
						return false
					}
				}
			case types.Array:
				for _, e := range v {
					if !walk(0, e) {
						return false
					}
				}
			case *types.StreamDict:
				return walk(nr, v.Dict)
			}
			return true
		}
		for _, nr := range d.Reachable() {
			if !walk(nr, d.Objects[nr]) {
				return
			}
		}
	}
}
