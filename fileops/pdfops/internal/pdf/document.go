// Package pdf is an object model of PDF files (ISO 32000-2) with pdfcpu's types
// and, for unusual files, its parser.
//
//	d, err := pdf.Parse(ctx, data)
//	pages, err := d.Pages(5000)
//	...
//	err = d.Write(out, false, nil)
//
// A [Document] holds the indirect objects, with pdfcpu's types. Its methods
// resolve references and read values without errors: a missing value, or one of
// another type, is zero. [Decode] and [SetContent] read and replace the content
// of streams. [NewLexer] returns a lexer that splits content streams into
// tokens.
//
// A [Security] is the encryption of an existing file. An [Encryption] encrypts a
// new one. Only Parse, ParseComplete and [Security.Decrypt] call pdfcpu, with
// their own limits, and only for files that do not follow the standard closely:
// [ParseSound] and [Security.DecryptSound] read the others.
package pdf

import (
	"bytes"
	"encoding/hex"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"
)

// A Document is a PDF file in memory: its indirect objects by number.
// Generations are ignored.
type Document struct {
	Objects map[int]types.Object // streams are *types.StreamDict
	Root    int                  // the catalog
	Info    int                  // 0 if absent
	Last    int                  // highest number in use
	ID      []byte               // permanent part of the file identifier; may be nil
	Version string               // "1.7"
	skipped map[int]bool         // objects that could not be parsed, or not completely

	unsigned bool // no signature was in the file; false if that is not known

	Encrypted bool // the file was encrypted

	Files []*Mapping // that the content of streams is in; closed with the document
}

// New returns an empty document.
func New() *Document {
	return &Document{Objects: make(map[int]types.Object), Version: "1.5"}
}

// Ref returns a reference to an object.
func Ref(nr int) types.IndirectRef { return types.IndirectRef{ObjectNumber: types.Integer(nr)} }

// Add adds an indirect object and returns a reference to it.
func (d *Document) Add(o types.Object) types.IndirectRef {
	d.Last++
	d.Objects[d.Last] = o
	return Ref(d.Last)
}

// AddStream adds a stream with encoded content and returns a reference to it.
func (d *Document) AddStream(dict types.Dict, raw []byte) types.IndirectRef {
	return d.Add(&types.StreamDict{Dict: dict, Raw: raw})
}

// Resolve follows references. A missing object is null, which is nil.
func (d *Document) Resolve(o types.Object) types.Object {
	for range 32 {
		ref, ok := o.(types.IndirectRef)
		if !ok {
			return o
		}
		o = d.Objects[ref.ObjectNumber.Value()]
	}
	return nil
}

// Dict returns a dictionary, including that of a stream, or nil.
func (d *Document) Dict(o types.Object) types.Dict {
	switch v := d.Resolve(o).(type) {
	case types.Dict:
		return v
	case *types.StreamDict:
		return v.Dict
	}
	return nil
}

// Stream returns a stream, or nil.
func (d *Document) Stream(o types.Object) *types.StreamDict {
	s, _ := d.Resolve(o).(*types.StreamDict)
	return s
}

// Array returns an array, or nil.
func (d *Document) Array(o types.Object) types.Array {
	a, _ := d.Resolve(o).(types.Array)
	return a
}

// Name returns a name without its slash, or "".
func (d *Document) Name(o types.Object) string {
	n, _ := d.Resolve(o).(types.Name)
	return string(n)
}

// Number returns an integer or a real number.
func (d *Document) Number(o types.Object) (float64, bool) {
	switch v := d.Resolve(o).(type) {
	case types.Integer:
		return float64(v), true
	case types.Float:
		return float64(v), true
	}
	return 0, false
}

// Integer returns a number truncated to an integer, or 0.
func (d *Document) Integer(o types.Object) int {
	f, _ := d.Number(o)
	return int(f)
}

// Numbers returns the elements of an array. It reports false unless the array
// has exactly n numbers.
func (d *Document) Numbers(o types.Object, n int) ([]float64, bool) {
	a := d.Array(o)
	if len(a) != n {
		return nil, false
	}
	out := make([]float64, n)
	for i := range a {
		var ok bool
		if out[i], ok = d.Number(a[i]); !ok {
			return nil, false
		}
	}
	return out, true
}

// Boolean returns a boolean, or false.
func (d *Document) Boolean(o types.Object) bool {
	b, _ := d.Resolve(o).(types.Boolean)
	return bool(b)
}

// Text returns the bytes of a string, or nil if o is not a string.
func (d *Document) Text(o types.Object) []byte {
	switch v := d.Resolve(o).(type) {
	case types.StringLiteral:
		b, err := types.Unescape(string(v))
		if err != nil {
			return nil
		}
		return append([]byte{}, b...)
	case types.HexLiteral:
		return unhex(string(v))
	}
	return nil
}

// unhex decodes a hexadecimal string without its delimiters. A missing last digit
// is 0 (ISO 32000-2, 7.3.4.3).
func unhex(s string) []byte {
	s = strings.Map(func(r rune) rune {
		if strings.ContainsRune(" \t\r\n\f\x00", r) {
			return -1
		}
		return r
	}, s)
	if len(s)%2 == 1 {
		s += "0"
	}
	b, err := hex.DecodeString(s)
	if err != nil {
		return nil
	}
	return append([]byte{}, b...)
}

// TextString returns s as a text string object (ISO 32000-2, 7.9.2.2).
func TextString(s string) types.HexLiteral {
	if strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) < 0 {
		return types.NewHexLiteral([]byte(s))
	}
	b := []byte{0xfe, 0xff}
	for _, u := range utf16.Encode([]rune(s)) {
		b = append(b, byte(u>>8), byte(u))
	}
	return types.NewHexLiteral(b)
}

// Unicode decodes the bytes of a text string: UTF-16 or UTF-8 with a byte order
// mark, or PDFDocEncoding.
func Unicode(b []byte) string {
	switch {
	case bytes.HasPrefix(b, []byte{0xfe, 0xff}), bytes.HasPrefix(b, []byte{0xff, 0xfe}):
		var units []uint16
		for i := 2; i+1 < len(b); i += 2 {
			if b[0] == 0xfe {
				units = append(units, uint16(b[i])<<8|uint16(b[i+1]))
			} else {
				units = append(units, uint16(b[i+1])<<8|uint16(b[i]))
			}
		}
		return string(utf16.Decode(units))
	case bytes.HasPrefix(b, []byte("\xef\xbb\xbf")):
		return strings.ToValidUTF8(string(b[3:]), "\ufffd")
	}
	low, high := []rune(from18), []rune(from80)
	out := make([]rune, 0, len(b))
	for _, c := range b {
		switch {
		case c >= 0x18 && c < 0x20:
			out = append(out, low[c-0x18])
		case c >= 0x80 && int(c-0x80) < len(high):
			out = append(out, high[c-0x80])
		default:
			out = append(out, rune(c))
		}
	}
	return string(out)
}

// Catalog returns the root of the document.
func (d *Document) Catalog() types.Dict { return d.Dict(Ref(d.Root)) }

// A Page is a leaf of the page tree.
type Page struct {
	Ref  types.IndirectRef // 0 if the page is a direct object
	Dict types.Dict
	// Inherited holds attributes of ancestor nodes that Dict lacks.
	Inherited types.Dict
}

// Attr returns an attribute of the page or of its ancestors.
func (p Page) Attr(key string) types.Object {
	if v, ok := p.Dict[key]; ok && v != nil {
		return v
	}
	return p.Inherited[key]
}

// SeparatePages makes each page an object of its own, which has the attributes
// that it inherits: a page can be a direct object, or occur twice in the tree.
func (d *Document) SeparatePages(pages []Page) {
	seen := make(map[int]bool)
	for i := range pages {
		p := &pages[i]
		for key, v := range p.Inherited {
			if p.Dict[key] == nil {
				p.Dict[key] = v
			}
		}
		if nr := p.Ref.ObjectNumber.Value(); nr == 0 || seen[nr] {
			p.Dict = maps.Clone(p.Dict)
			p.Ref = d.Add(p.Dict)
		}
		seen[p.Ref.ObjectNumber.Value()] = true
	}
}

var errPages = errors.New("the page tree is damaged")

// inheritable returns the page attributes that pages inherit from the page tree
// (ISO 32000-2, 7.7.3.4).
func inheritable() []string { return []string{"Resources", "MediaBox", "CropBox", "Rotate"} }

// Pages returns the pages in order. It skips nodes that are not pages, and
// ignores /Count. It fails with ErrManyPages if there are more than most.
func (d *Document) Pages(most int) ([]Page, error) {
	var out []Page
	onPath := make(map[int]bool)
	// Nodes without pages that are reachable on many ways could multiply.
	steps := 2 * (most + len(d.Objects))
	var walk func(o types.Object, inherited types.Dict, depth int) error
	walk = func(o types.Object, inherited types.Dict, depth int) error {
		if steps--; steps < 0 {
			return errPages
		}
		ref, _ := o.(types.IndirectRef)
		nr := ref.ObjectNumber.Value()
		if nr != 0 && onPath[nr] || depth > 64 {
			return errPages
		}
		dict := d.Dict(o)
		if dict == nil {
			return nil
		}
		kids := d.Array(dict["Kids"])
		if kids == nil {
			if t := d.Name(dict["Type"]); t == "Pages" || t == "Template" {
				return nil
			}
			if len(out) >= most {
				return ErrManyPages
			}
			out = append(out, Page{Ref: ref, Dict: dict, Inherited: inherited})
			return nil
		}
		onPath[nr] = true
		defer delete(onPath, nr)
		for _, key := range inheritable() {
			if v, ok := dict[key]; ok {
				inherited = maps.Clone(inherited)
				inherited[key] = v
			}
		}
		for _, kid := range kids {
			if err := walk(kid, inherited, depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	if err := walk(d.Catalog()["Pages"], types.Dict{}, 0); err != nil {
		return nil, err
	}
	if len(out) == 0 {
		return nil, errPages
	}
	return out, nil
}

// ErrManyPages reports that a document has more pages than allowed.
var ErrManyPages = errors.New("the document has too many pages")

// Each calls f once for each dictionary of the document, including nested dictionaries
// and those of streams, in a fixed order. It skips objects that f adds.
func (d *Document) Each(f func(types.Dict)) {
	var walk func(types.Object)
	walk = func(o types.Object) {
		switch v := o.(type) {
		case types.Dict:
			f(v)
			for _, k := range slices.Sorted(maps.Keys(v)) {
				walk(v[k])
			}
		case types.Array:
			for _, e := range v {
				walk(e)
			}
		case *types.StreamDict:
			walk(v.Dict)
		}
	}
	for _, nr := range slices.Sorted(maps.Keys(d.Objects)) {
		walk(d.Objects[nr])
	}
}

// references calls f for the number of every object to which o refers directly,
// in a fixed order.
func references(o types.Object, f func(nr int)) {
	switch v := o.(type) {
	case types.IndirectRef:
		f(v.ObjectNumber.Value())
	case types.Dict:
		referencesIn(v, "", f)
	case types.Array:
		for _, e := range v {
			references(e, f)
		}
	case *types.StreamDict:
		referencesIn(v.Dict, "Length", f) // rewritten on output
	}
}

// referencesIn is references for a dictionary. It skips one key.
func referencesIn(v types.Dict, except string, f func(nr int)) {
	var few [16]string
	keys := few[:0]
	for k, o := range v {
		switch o.(type) {
		case types.IndirectRef, types.Dict, types.Array, *types.StreamDict:
			if k != except {
				keys = append(keys, k) // other values need no sorting
			}
		}
	}
	slices.Sort(keys)
	for _, k := range keys {
		references(v[k], f)
	}
}

// Reachable returns the numbers of the objects that are reachable from the
// catalog and the information dictionary, breadth first.
func (d *Document) Reachable() []int {
	var order []int
	seen := make(map[int]bool)
	visit := func(nr int) {
		if o, ok := d.Objects[nr]; ok && o != nil && !seen[nr] {
			seen[nr] = true
			order = append(order, nr)
		}
	}
	visit(d.Root)
	visit(d.Info)
	for i := 0; i < len(order); i++ {
		references(d.Objects[order[i]], visit)
	}
	return order
}

// Incomplete reports whether a reachable object could not be parsed completely.
func (d *Document) Incomplete() bool {
	if len(d.skipped) == 0 {
		return false
	}
	missing := false
	for _, nr := range d.Reachable() {
		references(d.Objects[nr], func(to int) { missing = missing || d.skipped[to] })
	}
	return missing
}

// Signed reports whether the document has a signature. Any change of the file
// breaks it.
func (d *Document) Signed() bool {
	if d.unsigned {
		return false
	}
	found := false
	d.Each(func(v types.Dict) {
		if _, ok := v["ByteRange"]; ok {
			if _, ok := v["Contents"]; ok {
				found = true
			}
		}
	})
	return found
}

// isReference reports whether o is a reference. Replace changes other objects in place.
func isReference(o types.Object) bool {
	_, ok := o.(types.IndirectRef)
	return ok
}

// Replace replaces the number in every reference in o by the result of f, in
// place, and returns o.
func Replace(o types.Object, f func(nr int) int) types.Object {
	switch v := o.(type) {
	case types.IndirectRef:
		return Ref(f(v.ObjectNumber.Value()))
	case types.Dict:
		for k, e := range v {
			if n := Replace(e, f); isReference(e) {
				v[k] = n
			}
		}
	case types.Array:
		for i, e := range v {
			if n := Replace(e, f); isReference(e) {
				v[i] = n
			}
		}
	case *types.StreamDict:
		Replace(v.Dict, f)
	}
	return o
}

// IsPDFA1 reports whether a document claims to conform to PDF/A-1, which allows
// neither object nor cross-reference streams.
func (d *Document) IsPDFA1() bool {
	return d.Claims(`pdfaid:part>1<`, `pdfaid:part="1"`, `pdfaid:part='1'`)
}

// Claims reports whether the metadata of the document contains one of the texts.
func (d *Document) Claims(texts ...string) bool {
	s := d.Stream(d.Catalog()["Metadata"])
	if s == nil {
		return false
	}
	b, err := Decode(s)
	if err != nil {
		return false
	}
	for _, t := range texts {
		if bytes.Contains(b, []byte(t)) {
			return true
		}
	}
	return false
}

var standardClaim = regexp.MustCompile(`<(pdfaid:\w+)>[^<]*</pdfaid:\w+\s*>|\spdfaid:\w+\s*=\s*("[^"]*"|'[^']*')`)

// DropPDFA removes the claim to conform to PDF/A from the metadata of the document.
func (d *Document) DropPDFA() {
	s := d.Stream(d.Catalog()["Metadata"])
	if s == nil {
		return
	}
	if b, err := Decode(s); err == nil {
		SetContent(s, standardClaim.ReplaceAll(b, nil))
	}
}

// DeviceSpace returns the device colour space with n components.
func DeviceSpace(n int) types.Name {
	switch n {
	case 1:
		return "DeviceGray"
	case 3:
		return "DeviceRGB"
	}
	return "DeviceCMYK"
}
