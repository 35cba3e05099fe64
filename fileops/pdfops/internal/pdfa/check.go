package pdfa

import (
	"encoding/binary"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"

	"github.com/filewright/filewright/fileops/pdfops/internal/pdf"
)

// mostReasons bounds the reasons that Check returns.
const mostReasons = 20

// A checker collects the reasons why a document does not conform.
type checker struct {
	doc     *pdf.Document
	part    int
	known   map[string]bool // operators
	reasons []string
}

func (c *checker) fail(format string, args ...any) {
	if r := fmt.Sprintf(format, args...); !slices.Contains(c.reasons, r) && len(c.reasons) < mostReasons {
		c.reasons = append(c.reasons, r)
	}
}

// Check returns the reasons why a document does not conform to a part of PDF/A at level B, apart from
// its metadata and output intent, which [Claim] writes. Without reasons, it conforms as far as the
// package checks. The rules are stricter than the standard where that makes them simpler: colours
// that depend on a device must be gray or RGB.
func Check(d *pdf.Document, pages []pdf.Page, part int) []string {
	c := &checker{doc: d, part: part, known: make(map[string]bool)}
	for op := range strings.FieldsSeq(operators) {
		c.known[op] = true
	}
	c.objects()
	for i, p := range pages {
		c.page(i+1, p)
	}
	c.contents(pages)
	return c.reasons
}

// Limits of objects (ISO 19005-1, 6.1.12; ISO 19005-2, 6.1.13).
const (
	longestName  = 127
	mostElements = 8191 // of an array, in part 1
	mostEntries  = 4095 // of a dictionary, in part 1
	mostNested   = 28   // graphics states
)

// objects checks all objects.
func (c *checker) objects() {
	d := c.doc
	catalog := d.Catalog()
	if c.part == 1 && catalog["OCProperties"] != nil {
		c.fail("the document has layers")
	}
	if d.Encrypted && d.Incomplete() {
		c.fail("parts of the document cannot be read")
	}
	for _, nr := range d.Reachable() {
		if s := d.Stream(pdf.Ref(nr)); s != nil {
			c.stream(s)
		}
		c.values(d.Objects[nr])
	}
	for _, v := range dicts(d) {
		if c.part == 1 && len(v) > mostEntries {
			c.fail("a dictionary has more than %d entries", mostEntries)
		}
		switch d.Name(v["Type"]) {
		case "Font":
			c.font(v)
		case "ExtGState":
			c.state(v)
		case "Filespec", "F":
			c.attachment(v)
		}
		if v["EF"] != nil && c.part < 3 {
			c.fail("the document has attachments")
		}
		if group := d.Dict(v["Group"]); group != nil && d.Name(group["S"]) == "Transparency" && c.part == 1 {
			c.fail("the document has transparency groups")
		}
		switch kind := d.Name(v["S"]); {
		case v["S"] == nil || v["O"] != nil:
		case slices.Contains([]string{"Launch", "Sound", "Movie", "ResetForm", "ImportData", "JavaScript", "Hide", "SetOCGState", "Rendition", "Trans", "GoTo3DView"}, kind) &&
			(v["Type"] == nil || d.Name(v["Type"]) == "Action"):
			c.fail("the document has actions of the kind %s", kind)
		}
	}
}

// values checks values of an object and its elements.
func (c *checker) values(o types.Object) {
	switch v := o.(type) {
	case types.Name:
		switch {
		case len(v) > longestName:
			c.fail("a name has more than %d bytes", longestName)
		case v == "DeviceCMYK":
			c.fail("the document uses colours of the device CMYK")
		}
	case types.Array:
		if c.part == 1 && len(v) > mostElements {
			c.fail("an array has more than %d elements", mostElements)
		}
		for _, e := range v {
			c.values(e)
		}
	case types.Dict:
		for _, e := range v {
			c.values(e)
		}
	case *types.StreamDict:
		c.values(v.Dict)
	case types.Integer:
		if v > 1<<31-1 || v < -1<<31 {
			c.fail("a number is too large")
		}
	}
}

// stream checks a stream.
func (c *checker) stream(s *types.StreamDict) {
	d := c.doc
	for _, key := range []string{"F", "FFilter", "FDecodeParms"} {
		if s.Dict[key] != nil {
			c.fail("a stream is in another file")
		}
	}
	for _, f := range s.FilterPipeline {
		switch {
		case f.Name == "LZWDecode", f.Name == "Crypt", c.part == 1 && f.Name == "JPXDecode":
			c.fail("a stream has the filter %s", f.Name)
		case f.Name == "JPXDecode" && s.Dict["ColorSpace"] == nil:
			c.fail("a picture in JPEG 2000 has no colour space")
		}
	}
	switch d.Name(s.Dict["Subtype"]) {
	case "PS":
		c.fail("the document has PostScript")
	case "Image":
		if !slices.Contains(intents, d.Name(s.Dict["Intent"])) {
			c.fail("a picture has an unknown rendering intent")
		}
		mask := d.Stream(s.Dict["SMask"])
		if c.part == 1 && (mask != nil || d.Integer(s.Dict["SMaskInData"]) != 0) {
			c.fail("a picture is transparent")
		}
		if bits := d.Integer(s.Dict["BitsPerComponent"]); bits == 16 && c.part == 1 {
			c.fail("a picture has 16 bits per component")
		}
	case "Form":
		if s.Dict["Ref"] != nil {
			c.fail("a form refers to another file")
		}
		if s.Dict["PS"] != nil || d.Name(s.Dict["Subtype2"]) == "PS" {
			c.fail("the document has PostScript")
		}
	}
	if n := d.Integer(s.Dict["N"]); n > 0 && s.Dict["Type"] == nil && s.Dict["First"] == nil && c.isProfile(s) {
		c.profile(s, n)
	}
}

// isProfile reports whether a stream is an ICC profile.
func (c *checker) isProfile(s *types.StreamDict) bool {
	b, err := pdf.Decode(s)
	return err == nil && len(b) >= 128 && string(b[36:40]) == "acsp"
}

// profile checks an ICC profile with n components (ISO 15076-1, 7.2).
func (c *checker) profile(s *types.StreamDict, n int) {
	b, err := pdf.Decode(s)
	if err != nil {
		return // checked before
	}
	newest := byte(4)
	if c.part == 1 {
		newest = 2
	}
	if b[8] > newest {
		c.fail("a colour profile has the version %d", b[8])
	}
	if class := string(b[12:16]); !slices.Contains([]string{"prtr", "mntr", "scnr", "spac"}, class) {
		c.fail("a colour profile has the class %q", class)
	}
	components := map[string]int{"GRAY": 1, "RGB ": 3, "Lab ": 3, "CMYK": 4}
	if components[string(b[16:20])] != n || int(binary.BigEndian.Uint32(b)) > len(b) {
		c.fail("a colour profile is damaged")
	}
}

// blendModes are the standard blend modes (ISO 32000-1, 11.3.5).
var blendModes = []string{
	"Normal", "Compatible", "Multiply", "Screen", "Overlay", "Darken", "Lighten", "ColorDodge", "ColorBurn",
	"HardLight", "SoftLight", "Difference", "Exclusion", "Hue", "Saturation", "Color", "Luminosity",
}

// intents are the rendering intents (ISO 32000-1, 8.6.5.8).
var intents = []string{"", "RelativeColorimetric", "AbsoluteColorimetric", "Perceptual", "Saturation"}

// state checks a graphics state.
func (c *checker) state(v types.Dict) {
	d := c.doc
	if c.part == 1 {
		if m := v["SMask"]; m != nil && d.Name(m) != "None" {
			c.fail("the document uses transparency")
		}
		for _, key := range []string{"CA", "ca"} {
			if a, ok := d.Number(v[key]); ok && a != 1 {
				c.fail("the document uses transparency")
			}
		}
	}
	modes := d.Array(v["BM"])
	if modes == nil && v["BM"] != nil {
		modes = types.Array{v["BM"]}
	}
	for _, m := range modes {
		switch mode := d.Name(m); {
		case c.part == 1 && mode != "Normal" && mode != "Compatible":
			c.fail("the document uses the blend mode %s", mode)
		case !slices.Contains(blendModes, mode):
			c.fail("the document uses the unknown blend mode %s", mode)
		}
	}
	if !slices.Contains(intents, d.Name(v["RI"])) {
		c.fail("the document uses an unknown rendering intent")
	}
	if d.Integer(v["OPM"]) == 1 && (d.Boolean(v["OP"]) || d.Boolean(v["op"])) {
		c.fail("the document overprints")
	}
}

// subset matches the name of a font that has some of its glyphs (ISO 32000-2, 9.9.2).
var subset = regexp.MustCompile(`^[A-Z]{6}\+`)

// font checks a font.
func (c *checker) font(v types.Dict) {
	d := c.doc
	name, kind := d.Name(v["BaseFont"]), d.Name(v["Subtype"])
	switch kind {
	case "Type3":
		return // its glyphs are content
	case "Type0":
		c.encoding(v)
		if d.Array(v["DescendantFonts"]) == nil {
			c.fail("the font %s is damaged", name)
		}
		return
	}
	descriptor := d.Dict(v["FontDescriptor"])
	var file *types.StreamDict
	for _, key := range []string{"FontFile", "FontFile2", "FontFile3"} {
		if s := d.Stream(descriptor[key]); s != nil {
			file = s
		}
	}
	if file == nil {
		c.fail("the font %s is not embedded", name)
		return
	}
	switch kind {
	case "CIDFontType2":
		if m := v["CIDToGIDMap"]; d.Stream(m) == nil && d.Name(m) != "Identity" {
			c.fail("the font %s has no map of glyphs", name)
		}
		fallthrough
	case "CIDFontType0":
		if c.part == 1 && subset.MatchString(name) && d.Stream(descriptor["CIDSet"]) == nil {
			c.fail("the font %s does not list its glyphs", name)
		}
	case "Type1", "MMType1":
		if c.part == 1 && subset.MatchString(name) && descriptor["CharSet"] == nil {
			c.fail("the font %s does not list its glyphs", name)
		}
	case "TrueType":
		const symbolic, nonsymbolic = 1 << 2, 1 << 5
		flags := d.Integer(descriptor["Flags"])
		encoding := d.Name(v["Encoding"])
		if e := d.Dict(v["Encoding"]); e != nil {
			if encoding = d.Name(e["BaseEncoding"]); e["Differences"] != nil {
				encoding = "Differences"
			}
		}
		switch {
		case flags&symbolic != 0 && v["Encoding"] != nil:
			c.fail("the font %s has symbols and an encoding", name)
		case flags&symbolic == 0 && encoding != "WinAnsiEncoding" && encoding != "MacRomanEncoding":
			c.fail("the font %s has an unusual encoding", name)
		}
	}
}

// encoding checks the encoding of a composite font.
func (c *checker) encoding(v types.Dict) {
	d := c.doc
	name := d.Name(v["Encoding"])
	switch {
	case d.Stream(v["Encoding"]) != nil, name == "Identity-H", name == "Identity-V":
	default:
		// Part 2 allows the predefined ones too, with conditions that are not checked here.
		c.fail("the font %s has the encoding %s, which is not embedded", d.Name(v["BaseFont"]), name)
	}
}

// attachment checks a file specification.
func (c *checker) attachment(v types.Dict) {
	d := c.doc
	if v["EF"] == nil || c.part < 3 {
		return
	}
	file := d.Stream(d.Dict(v["EF"])["F"])
	if file == nil || v["F"] == nil || v["UF"] == nil || v["AFRelationship"] == nil || file.Dict["Subtype"] == nil {
		c.fail("an attachment is not described")
	}
}

// annotationKinds are the kinds of annotations that part 1 allows. Part 2 allows more, which are rare.
var annotationKinds = []string{
	"Text", "Link", "FreeText", "Line", "Square", "Circle", "Highlight", "Underline", "Squiggly", "StrikeOut", "Stamp", "Ink", "Popup", "Widget", "PrinterMark", "TrapNet",
}

// page checks a page and its annotations. n is its number.
func (c *checker) page(n int, p pdf.Page) {
	d := c.doc
	if box, ok := d.Numbers(p.Attr("MediaBox"), 4); ok && c.part > 1 {
		const least, most = 3, 14_400
		for _, side := range []float64{box[2] - box[0], box[3] - box[1]} {
			if side = max(side, -side); side < least || side > most {
				c.fail("page %d is too small or too large", n)
			}
		}
	}
	for _, o := range d.Array(p.Dict["Annots"]) {
		a := d.Dict(o)
		kind := d.Name(a["Subtype"])
		if !slices.Contains(annotationKinds, kind) {
			c.fail("page %d has an annotation of the kind %s", n, kind)
			continue
		}
		if ca, ok := d.Number(a["CA"]); ok && ca != 1 && c.part == 1 {
			c.fail("an annotation on page %d is transparent", n)
		}
		if kind == "Popup" || kind == "Link" {
			continue
		}
		rect, _ := d.Numbers(a["Rect"], 4)
		empty := len(rect) == 4 && rect[0] == rect[2] && rect[1] == rect[3]
		shown := d.Dict(d.Dict(a["AP"])["N"])
		switch {
		case shown == nil && !empty && (c.part > 1 || kind == "Widget"):
			c.fail("an annotation on page %d has no appearance", n)
		case shown != nil && kind == "Widget" && d.Stream(d.Dict(a["AP"])["N"]) == nil && c.fieldKind(a) != "Btn":
			c.fail("a field on page %d has several appearances", n)
		}
	}
}

// fieldKind returns the type of the field of a widget.
func (c *checker) fieldKind(a types.Dict) string {
	for range 32 {
		if t := c.doc.Name(a["FT"]); t != "" {
			return t
		}
		if a = c.doc.Dict(a["Parent"]); a == nil {
			break
		}
	}
	return ""
}

// operators are those of content streams (ISO 32000-1, annex A).
const operators = `b B b* B* BDC BI BMC BT BX c cm CS cs d d0 d1 Do DP EI EMC ET EX f F f* G g gs h i
		ID j J K k l m M MP n q Q re RG rg ri s S SC sc SCN scn sh T* Tc Td TD Tf Tj TJ TL Tm Tr Ts Tw Tz v w W W* y ' "
	true false null`

// contents checks the content streams of pages, forms, patterns and glyphs.
func (c *checker) contents(pages []pdf.Page) {
	d := c.doc
	for i, p := range pages {
		b, complete := d.Content(p.Dict["Contents"])
		if !complete {
			c.fail("the content of page %d cannot be read", i+1)
		}
		c.content(b, p.Attr("Resources") != nil)
	}
	for _, nr := range d.Reachable() {
		s := d.Stream(pdf.Ref(nr))
		if s == nil || d.Name(s.Dict["Subtype"]) != "Form" && d.Integer(s.Dict["PatternType"]) != 1 {
			continue
		}
		c.contentOf(s, s.Dict["Resources"])
	}
	for _, v := range dicts(d) {
		if d.Name(v["Subtype"]) == "Type3" {
			for _, glyph := range d.Dict(v["CharProcs"]) {
				if s := d.Stream(glyph); s != nil {
					c.contentOf(s, v["Resources"])
				}
			}
		}
	}
}

func (c *checker) contentOf(s *types.StreamDict, resources types.Object) {
	b, err := pdf.Decode(s)
	if err != nil {
		c.fail("a content stream cannot be read")
		return
	}
	c.content(b, resources != nil)
}

// content checks a content stream, which may use names only if it has resources of its own.
func (c *checker) content(b []byte, resources bool) {
	lexer := pdf.NewLexer(b)
	depth := 0
	name, inline := "", false
	for t := lexer.Next(); t.Kind != pdf.TokenEnd; t = lexer.Next() {
		switch t.Kind {
		case pdf.TokenName:
			name = t.Text
			if len(name) > longestName {
				c.fail("a name has more than %d bytes", longestName)
			}
			switch {
			case name == "DeviceCMYK", inline && name == "CMYK":
				c.fail("the document uses colours of the device CMYK")
			case inline && (name == "LZW" || name == "LZWDecode"):
				c.fail("a picture has the filter LZWDecode")
			}
		case pdf.TokenOperator:
			switch t.Text {
			case "q":
				if depth++; depth > mostNested {
					c.fail("graphics states are nested more than %d times", mostNested)
				}
			case "Q":
				depth--
			case "k", "K":
				c.fail("the document uses colours of the device CMYK")
			case "ri":
				if !slices.Contains(intents, name) {
					c.fail("the document uses an unknown rendering intent")
				}
			case "Tf", "Do", "gs", "sh":
				if !resources {
					c.fail("a content stream has no resources of its own")
				}
			case "BI":
				inline = true
			case "ID":
				lexer.SkipInlineImage()
				inline = false
			default:
				if !c.known[t.Text] {
					c.fail("a content stream has the unknown operator %.20q", t.Text)
				}
			}
		}
	}
}
