package compress

import (
	"context"
	"crypto/sha256"
	"maps"
	"regexp"
	"slices"

	"github.com/filewright/filewright/fileops/pdfops/internal/fontfile"
	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"

	"github.com/filewright/filewright/fileops/pdfops/internal/pdf"
)

// A fontProgram is an embedded font file with the objects that use it.
type fontProgram struct {
	nr          int    // of the stream
	key         string // in the descriptors: FontFile, FontFile2, FontFile3
	descriptors []int
	fonts       []int // simple fonts and CIDFonts
	fixed       bool  // must stay unchanged
	whole       bool  // must keep all glyphs
}

// fontPrograms finds the embedded font files, and the Type0 fonts of each
// CIDFont. Fonts in which form fields can be filled in are marked whole. Fonts
// with a dictionary that is a direct object are marked fixed.
func fontPrograms(d *pdf.Document) ([]*fontProgram, map[int][]int) {
	byDescriptor := make(map[int]*fontProgram)
	programs := make(map[int]*fontProgram)
	parents := make(map[int][]int) // Type0 fonts by CIDFont
	order := d.Reachable()
	typed := typedFonts(d)
	seen := make(visited)
	program := func(descriptor types.Object) *fontProgram {
		dict := d.Dict(descriptor)
		for _, key := range []string{"FontFile", "FontFile2", "FontFile3"} {
			ref, ok := dict[key].(types.IndirectRef)
			if !ok || d.Stream(ref) == nil {
				continue
			}
			p := programs[ref.ObjectNumber.Value()]
			if p == nil {
				p = &fontProgram{nr: ref.ObjectNumber.Value(), key: key}
				programs[p.nr] = p
			}
			p.fixed = p.fixed || p.key != key
			own, ok := descriptor.(types.IndirectRef)
			if !ok {
				p.fixed = true
			} else if nr := own.ObjectNumber.Value(); byDescriptor[nr] == nil {
				byDescriptor[nr] = p
				p.descriptors = append(p.descriptors, nr)
			}
			return p
		}
		return nil
	}
	var inspect func(o types.Object, nr int)
	inspect = func(o types.Object, nr int) {
		switch v := o.(type) {
		case types.Dict:
			if desc, ok := v["FontDescriptor"]; ok {
				if p := program(desc); p != nil {
					p.fonts = append(p.fonts, nr)
					p.fixed = p.fixed || nr == 0
				}
			}
			for _, kid := range descendants(d, v) {
				if ref, ok := kid.(types.IndirectRef); ok {
					parents[ref.ObjectNumber.Value()] = append(parents[ref.ObjectNumber.Value()], nr)
				}
			}
			if dr := d.Dict(v["DR"]); dr != nil && !seen.again(v["DR"]) && !seen.again(dr["Font"]) {
				for name, font := range d.Dict(dr["Font"]) {
					if typed(name) {
						keepWhole(d, font, program)
					}
				}
			}
			for _, k := range slices.Sorted(maps.Keys(v)) {
				inspect(v[k], 0)
			}
		case types.Array:
			for _, e := range v {
				inspect(e, 0)
			}
		case *types.StreamDict:
			inspect(v.Dict, 0)
		}
	}
	for _, nr := range order {
		inspect(d.Objects[nr], nr)
	}
	var out []*fontProgram
	for _, nr := range slices.Sorted(maps.Keys(programs)) {
		out = append(out, programs[nr])
	}
	return out, parents
}

// descendants returns the CIDFont of a Type0 font, as an array of one element (ISO
// 32000-2, table 119).
func descendants(d *pdf.Document, font types.Dict) types.Array {
	kids := d.Array(font["DescendantFonts"])
	return kids[:min(1, len(kids))]
}

// visited holds the numbers of objects that were seen. Many objects may share
// one, and going through it for each of them would take long.
type visited map[int]bool

// again reports whether o is a reference that was seen before.
func (v visited) again(o types.Object) bool {
	ref, ok := o.(types.IndirectRef)
	nr := ref.ObjectNumber.Value()
	before := v[nr]
	if ok {
		v[nr] = true
	}
	return ok && before
}

// typedFonts returns a function that reports whether text can be set in a font of
// the form's default resources: by a user, a script or a viewer that makes
// appearances. Then its default appearance names the font.
func typedFonts(d *pdf.Document) func(name string) bool {
	form := d.Dict(d.Catalog()["AcroForm"])
	if form["XFA"] != nil {
		return func(string) bool { return true }
	}
	open := d.Boolean(form["NeedAppearances"])
	names := make(map[string]bool)
	seen := make(visited)
	d.Each(func(v types.Dict) {
		if kind := d.Name(v["FT"]); (kind == "Tx" || kind == "Ch") && d.Integer(v["Ff"])&readOnly == 0 || v["JS"] != nil {
			open = true
		}
		if v["DA"] == nil || seen.again(v["DA"]) {
			return
		}
		name := ""
		for l := pdf.NewLexer(d.Text(v["DA"])); ; {
			t := l.Next()
			switch {
			case t.Kind == pdf.TokenName:
				name = t.Text
			case t.Text == "Tf":
				names[name] = true
			}
			if t.Kind == pdf.TokenEnd {
				return
			}
		}
	})
	return func(name string) bool { return open && names[name] }
}

const readOnly = 1 // flag of a field (ISO 32000-2, table 227)

// nameFonts makes fonts and their descriptors indirect objects, so that they can
// be told apart and changed. Some programs write them as direct objects.
func nameFonts(d *pdf.Document) {
	indirect := func(o types.Object) types.Object {
		if dict, ok := o.(types.Dict); ok {
			return d.Add(dict)
		}
		return o
	}
	seen := make(visited)
	var font func(v types.Dict, depth int)
	font = func(v types.Dict, depth int) {
		if o := v["FontDescriptor"]; o != nil {
			v["FontDescriptor"] = indirect(o)
		}
		kids := descendants(d, v)
		for i, kid := range kids {
			kids[i] = indirect(kid)
			if dict := d.Dict(kid); dict != nil && depth == 0 {
				font(dict, depth+1)
			}
		}
	}
	d.Each(func(v types.Dict) {
		if d.Name(v["Type"]) == "Font" {
			font(v, 0)
		}
		if v["Font"] == nil || seen.again(v["Font"]) {
			return
		}
		fonts := d.Dict(v["Font"])
		for _, name := range slices.Sorted(maps.Keys(fonts)) {
			if dict, ok := fonts[name].(types.Dict); ok && d.Name(dict["Type"]) == "Font" {
				font(dict, 0)
				fonts[name] = indirect(dict)
			}
		}
	})
}

func keepWhole(d *pdf.Document, font types.Object, program func(types.Object) *fontProgram) {
	dict := d.Dict(font)
	if p := program(dict["FontDescriptor"]); p != nil {
		p.whole = true
	}
	for _, kid := range descendants(d, dict) {
		if p := program(d.Dict(kid)["FontDescriptor"]); p != nil {
			p.whole = true
		}
	}
}

// subsetFonts removes unused glyphs from embedded fonts. Type 1 fonts become
// CFF, which compresses far better. Fonts that cannot be parsed stay unchanged.
func subsetFonts(ctx context.Context, d *pdf.Document, uses *fontUses) error {
	if uses.unsure || d.Dict(d.Catalog()["Names"])["Templates"] != nil {
		return nil
	}
	programs, parents := fontPrograms(d)
	programs = slices.DeleteFunc(programs, func(p *fontProgram) bool { return p.fixed })
	s := &subsetter{doc: d, uses: uses, parents: parents}
	results := make([]*fontResult, len(programs))
	err := inParallel(ctx, len(programs), func(i int) error {
		results[i] = s.subset(programs[i])
		return nil
	}, func(float64) {})
	if err != nil {
		return err
	}
	for i, r := range results {
		if r != nil {
			replaceFont(d, programs[i], r, parents)
		}
	}
	return nil
}

// A fontResult is a new font file.
type fontResult struct {
	data  []byte
	cff   bool // converted from Type 1 to CFF
	names []string
}

type subsetter struct {
	doc     *pdf.Document
	uses    *fontUses
	parents map[int][]int
}

// subset returns the font with only the glyphs in use, or nil if it must stay
// unchanged.
func (s *subsetter) subset(p *fontProgram) *fontResult {
	stream := s.doc.Stream(pdf.Ref(p.nr))
	b, err := pdf.Decode(stream)
	if err != nil {
		return nil
	}
	var r *fontResult
	switch {
	case p.whole && p.key != "FontFile":
	case p.key == "FontFile":
		r = s.type1(p, b)
	case p.key == "FontFile2":
		r = s.trueType(p, b)
	case s.doc.Name(stream.Dict["Subtype"]) == "Type1C", s.doc.Name(stream.Dict["Subtype"]) == "CIDFontType0C":
		r = s.cff(p, b)
	}
	if r == nil {
		return nil
	}
	before := len(stream.Raw)
	if r.data = pdf.Deflate(r.data); len(r.data) > before*98/100 {
		return nil
	}
	return r
}

// cids returns the CIDs that the document shows in a CIDFont. It reports false
// if a font that uses it maps codes to other CIDs.
func (s *subsetter) cids(nr int) (map[int]bool, bool) {
	out := make(map[int]bool)
	for _, parent := range s.parents[nr] {
		if parent == 0 || s.doc.Name(s.doc.Dict(pdf.Ref(parent))["Encoding"]) != "Identity-H" {
			return nil, false
		}
		maps.Copy(out, s.uses.codes[parent])
	}
	return out, len(s.parents[nr]) > 0
}

// codes returns the codes that the document shows in a simple font. Each has its
// glyph name in the font's encoding, or "".
func (s *subsetter) codes(nr int) (map[byte]string, bool) {
	encoding := s.doc.Dict(pdf.Ref(nr))["Encoding"]
	base := s.doc.Name(encoding)
	names := make(map[int]string)
	if dict := s.doc.Dict(encoding); dict != nil {
		base = s.doc.Name(dict["BaseEncoding"])
		at := 0
		for _, o := range s.doc.Array(dict["Differences"]) {
			if n, ok := s.doc.Number(o); ok {
				at = int(n)
			} else {
				names[at] = s.doc.Name(o)
				at++
			}
		}
	}
	if base == "MacExpertEncoding" {
		return nil, false
	}
	out := make(map[byte]string)
	for c := range s.uses.codes[nr] {
		if c < 256 {
			out[byte(c)] = names[c]
		}
	}
	return out, true
}

func (s *subsetter) trueType(p *fontProgram, b []byte) *fontResult {
	font, err := fontfile.ParseTrueType(b)
	if err != nil {
		return nil
	}
	keep := make(map[int]bool)
	lookup := false
	for _, nr := range p.fonts {
		dict := s.doc.Dict(pdf.Ref(nr))
		switch s.doc.Name(dict["Subtype"]) {
		case "TrueType":
			lookup = true
			codes, ok := s.codes(nr)
			if !ok {
				return nil
			}
			for c, name := range codes {
				glyphs, known := font.ForCode(c, name)
				if !known {
					return nil
				}
				for _, g := range glyphs {
					keep[g] = true
				}
			}
		case "CIDFontType2":
			cids, ok := s.cids(nr)
			if !ok {
				return nil
			}
			toGlyph, ok := s.cidToGlyph(dict["CIDToGIDMap"])
			if !ok {
				return nil
			}
			for c := range cids {
				keep[toGlyph(c)] = true
			}
			// Without ToUnicode some programs read the text from the font's tables.
			for _, parent := range s.parents[nr] {
				lookup = lookup || s.doc.Stream(s.doc.Dict(pdf.Ref(parent))["ToUnicode"]) == nil
			}
		default:
			return nil
		}
	}
	out, err := font.Subset(keep, lookup)
	if err != nil {
		return nil
	}
	return &fontResult{data: out}
}

func (s *subsetter) cidToGlyph(o types.Object) (func(int) int, bool) {
	if o == nil || s.doc.Name(o) == "Identity" {
		return func(cid int) int { return cid }, true
	}
	stream := s.doc.Stream(o)
	if stream == nil {
		return nil, false
	}
	table, err := pdf.Decode(stream)
	return func(cid int) int {
		if 2*cid+1 >= len(table) {
			return 0
		}
		return int(table[2*cid])<<8 | int(table[2*cid+1])
	}, err == nil
}

// namesOf returns the names of all glyphs that a viewer could show for a code.
func namesOf(c byte, name string) []string {
	chars := fontfile.Chars(c)
	if r, ok := fontfile.Char(name); ok {
		chars = append(chars, r)
	}
	out := []string{name, fontfile.StandardName(c)}
	for _, r := range chars {
		out = append(out, fontfile.Names(r)...)
	}
	return out
}

func (s *subsetter) cff(p *fontProgram, b []byte) *fontResult {
	font, err := fontfile.ParseCFF(b)
	if err != nil {
		return nil
	}
	keep := make(map[int]bool)
	byName := make(map[string][]int)
	byChar := make(map[rune][]int)
	if !font.ByCID() {
		for g := range font.Glyphs() {
			name := font.Name(g)
			byName[name] = append(byName[name], g)
			if r, ok := fontfile.Char(name); ok {
				byChar[r] = append(byChar[r], g)
			}
		}
	}
	for _, nr := range p.fonts {
		switch s.doc.Name(s.doc.Dict(pdf.Ref(nr))["Subtype"]) {
		case "Type1", "MMType1":
			codes, ok := s.codes(nr)
			if !ok || font.ByCID() {
				return nil
			}
			for c, name := range codes {
				keep[font.Encoded(c)] = true
				for _, n := range namesOf(c, name) {
					for _, g := range byName[n] {
						keep[g] = true
					}
				}
				for _, r := range fontfile.Chars(c) {
					for _, g := range byChar[r] {
						keep[g] = true
					}
				}
			}
		case "CIDFontType0":
			cids, ok := s.cids(nr)
			if !ok {
				return nil
			}
			for g := range font.Glyphs() {
				if cids[g] || font.ByCID() && cids[font.CID(g)] {
					keep[g] = true
				}
			}
		default:
			return nil
		}
	}
	out, err := font.Subset(keep)
	if err != nil {
		return nil
	}
	return &fontResult{data: out}
}

func (s *subsetter) type1(p *fontProgram, b []byte) *fontResult {
	font, err := fontfile.ParseType1(b)
	if err != nil {
		return nil
	}
	keep := make(map[string]bool)
	for _, nr := range p.fonts {
		if s.doc.Name(s.doc.Dict(pdf.Ref(nr))["Subtype"]) != "Type1" {
			return nil
		}
		codes, ok := s.codes(nr)
		if !ok {
			return nil
		}
		for c, name := range codes {
			for _, n := range append(namesOf(c, name), font.Encoded(c)) {
				if font.Has(n) {
					keep[n] = true
				}
			}
		}
	}
	if p.whole {
		for _, n := range font.Names() {
			keep[n] = true
		}
	}
	out, err := font.CFF(keep)
	if err != nil {
		return nil
	}
	// The result must be readable by our own parser.
	if again, err := fontfile.ParseCFF(out); err != nil || again.Glyphs() == 0 {
		return nil
	}
	return &fontResult{data: out, cff: true, names: slices.Sorted(maps.Keys(keep))}
}

var subsetTag = regexp.MustCompile(`^[A-Z]{6}\+`)

// replaceFont replaces a font file and marks the names of its fonts as subsets
// (ISO 32000-2, 9.9.2).
func replaceFont(d *pdf.Document, p *fontProgram, r *fontResult, parents map[int][]int) {
	stream := d.Stream(pdf.Ref(p.nr))
	length := 0
	if b, err := pdf.Inflate(r.data); err == nil {
		length = len(b)
	}
	pdf.SetContent(stream, r.data, types.PDFFilter{Name: "FlateDecode"})
	switch {
	case r.cff:
		for _, k := range []string{"Length1", "Length2", "Length3"} {
			delete(stream.Dict, k)
		}
		stream.Dict["Subtype"] = types.Name("Type1C")
	case p.key == "FontFile2":
		stream.Dict["Length1"] = types.Integer(length)
	}
	sum := sha256.Sum256(r.data)
	tag := make([]byte, 0, 7)
	for _, v := range sum[:6] {
		tag = append(tag, 'A'+v%26)
	}
	tag = append(tag, '+')
	rename := func(dict types.Dict, key string) {
		if p.whole {
			return
		}
		if n, ok := d.Resolve(dict[key]).(types.Name); ok && !subsetTag.MatchString(string(n)) {
			dict[key] = types.Name(string(tag) + string(n))
		}
	}
	for _, nr := range p.descriptors {
		desc := d.Dict(pdf.Ref(nr))
		rename(desc, "FontName")
		if r.cff {
			desc["FontFile3"] = desc["FontFile"]
			delete(desc, "FontFile")
			if desc["CharSet"] != nil {
				list := ""
				for _, n := range r.names {
					if n != ".notdef" {
						list += "/" + n
					}
				}
				desc["CharSet"] = types.NewHexLiteral([]byte(list))
			}
		}
	}
	for _, nr := range p.fonts {
		rename(d.Dict(pdf.Ref(nr)), "BaseFont")
		for _, parent := range parents[nr] {
			rename(d.Dict(pdf.Ref(parent)), "BaseFont")
		}
	}
}
