package pdfops

import (
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/filewright/filewright/fileops"
	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"
)

// A document is a PDF file in memory: its indirect objects by number.
// Generations are of no interest once a file is read.
type document struct {
	objects map[int]types.Object // streams are *types.StreamDict
	root    int                  // the catalog
	info    int                  // 0 if there is none
	last    int                  // highest number in use
	id      []byte               // permanent part of the file identifier, may be nil
	version string               // "1.7"
	skipped map[int]bool         // objects that could not be parsed
	bounds  Limits

	encrypted bool // as a file
}

// Limits bound what the actions work on. Zero fields mean the defaults.
type Limits struct {
	Pages  int   // of a document, and of all that are merged together; 0 means 5,000
	Pixels int64 // of a picture that becomes a page, width times height; 0 means 100 million
}

func (l Limits) pages() int {
	if l.Pages <= 0 {
		return maxPages
	}
	return l.Pages
}

// checkPixels refuses pictures that are larger than is allowed.
func (l Limits) checkPixels(width, height int) error {
	most := l.Pixels
	if most <= 0 {
		most = maxPixels
	}
	if width <= 0 || height <= 0 || int64(width) <= most/int64(height) {
		return nil
	}
	text := fmt.Sprintf("%d pixels", most)
	if most%1_000_000 == 0 {
		text = fmt.Sprintf("%d megapixels", most/1_000_000)
	}
	return fileops.Fail(fileops.ErrLimit, nil, "the picture has %d × %d pixels, more than the limit of %s; make it smaller first", width, height, text)
}

func newDocument() *document {
	return &document{objects: make(map[int]types.Object), version: "1.5"}
}

func refTo(nr int) types.IndirectRef { return types.IndirectRef{ObjectNumber: types.Integer(nr)} }

// add adds an indirect object.
func (d *document) add(o types.Object) types.IndirectRef {
	d.last++
	d.objects[d.last] = o
	return refTo(d.last)
}

// addStream adds a stream with the given encoded content.
func (d *document) addStream(dict types.Dict, raw []byte) types.IndirectRef {
	return d.add(&types.StreamDict{Dict: dict, Raw: raw})
}

// resolve follows references. A missing object is null, that is nil.
func (d *document) resolve(o types.Object) types.Object {
	for range 32 {
		ref, ok := o.(types.IndirectRef)
		if !ok {
			return o
		}
		o = d.objects[ref.ObjectNumber.Value()]
	}
	return nil
}

// dict returns a dictionary, also that of a stream, or nil.
func (d *document) dict(o types.Object) types.Dict {
	switch v := d.resolve(o).(type) {
	case types.Dict:
		return v
	case *types.StreamDict:
		return v.Dict
	}
	return nil
}

func (d *document) stream(o types.Object) *types.StreamDict {
	s, _ := d.resolve(o).(*types.StreamDict)
	return s
}

func (d *document) array(o types.Object) types.Array {
	a, _ := d.resolve(o).(types.Array)
	return a
}

func (d *document) name(o types.Object) string {
	n, _ := d.resolve(o).(types.Name)
	return string(n)
}

func (d *document) number(o types.Object) (float64, bool) {
	switch v := d.resolve(o).(type) {
	case types.Integer:
		return float64(v), true
	case types.Float:
		return float64(v), true
	}
	return 0, false
}

// integer returns 0 for what is not a number.
func (d *document) integer(o types.Object) int {
	f, _ := d.number(o)
	return int(f)
}

// numbers returns an array of exactly n numbers.
func (d *document) numbers(o types.Object, n int) ([]float64, bool) {
	a := d.array(o)
	if len(a) != n {
		return nil, false
	}
	out := make([]float64, n)
	for i := range a {
		var ok bool
		if out[i], ok = d.number(a[i]); !ok {
			return nil, false
		}
	}
	return out, true
}

func (d *document) boolean(o types.Object) bool {
	b, _ := d.resolve(o).(types.Boolean)
	return bool(b)
}

// text returns the bytes of a string, nil if o is none.
func (d *document) text(o types.Object) []byte {
	switch v := d.resolve(o).(type) {
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

// unhex decodes the inside of a hexadecimal string; a last digit that is
// missing is 0 (ISO 32000-2, 7.3.4.3).
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

// textString returns s as a text string object (ISO 32000-2, 7.9.2.2).
func textString(s string) types.HexLiteral {
	if strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) < 0 {
		return types.NewHexLiteral([]byte(s))
	}
	b := []byte{0xfe, 0xff}
	for _, u := range utf16.Encode([]rune(s)) {
		b = append(b, byte(u>>8), byte(u))
	}
	return types.NewHexLiteral(b)
}

func (d *document) catalog() types.Dict { return d.dict(refTo(d.root)) }

// A page is a leaf of the page tree.
type page struct {
	ref  types.IndirectRef // 0 if the page is a direct object
	dict types.Dict
	// inherited attributes that dict does not have itself
	inherited types.Dict
}

// attr returns an attribute, be it inherited or not.
func (p page) attr(key string) types.Object {
	if v, ok := p.dict[key]; ok && v != nil {
		return v
	}
	return p.inherited[key]
}

var errPages = errors.New("the page tree is damaged")

// inheritable are the attributes that page tree nodes hand down
// (ISO 32000-2, 7.7.3.4).
func inheritable() []string { return []string{"Resources", "MediaBox", "CropBox", "Rotate"} }

// pages returns the pages in order. What is no page is left out; /Count is not
// believed.
func (d *document) pages() ([]page, error) {
	var out []page
	onPath := make(map[int]bool)
	var walk func(o types.Object, inherited types.Dict, depth int) error
	walk = func(o types.Object, inherited types.Dict, depth int) error {
		ref, _ := o.(types.IndirectRef)
		nr := ref.ObjectNumber.Value()
		if nr != 0 && onPath[nr] || depth > 64 {
			return errPages
		}
		dict := d.dict(o)
		if dict == nil {
			return nil
		}
		kids := d.array(dict["Kids"])
		if kids == nil {
			if t := d.name(dict["Type"]); t == "Pages" || t == "Template" {
				return nil
			}
			if len(out) >= d.bounds.pages() {
				return errManyPages
			}
			out = append(out, page{ref: ref, dict: dict, inherited: inherited})
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
	if err := walk(d.catalog()["Pages"], types.Dict{}, 0); err != nil {
		return nil, err
	}
	if len(out) == 0 {
		return nil, errPages
	}
	return out, nil
}

var errManyPages = errors.New("the document has too many pages")

// each calls f for every dictionary in the document, those of streams and
// nested ones included, in a fixed order.
func (d *document) each(f func(types.Dict)) {
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
	for _, nr := range slices.Sorted(maps.Keys(d.objects)) {
		walk(d.objects[nr])
	}
}

// references calls f for the number of every object that o refers to directly,
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
		referencesIn(v.Dict, "Length", f) // which is written anew
	}
}

// referencesIn is references for a dictionary, except for one key.
func referencesIn(v types.Dict, except string, f func(nr int)) {
	var few [16]string
	keys := few[:0]
	for k, o := range v {
		switch o.(type) {
		case types.IndirectRef, types.Dict, types.Array, *types.StreamDict:
			if k != except {
				keys = append(keys, k) // others need not be sorted
			}
		}
	}
	slices.Sort(keys)
	for _, k := range keys {
		references(v[k], f)
	}
}

// reachable returns the numbers of the objects that the catalog and the
// information dictionary lead to, breadth first.
func (d *document) reachable() []int {
	var order []int
	seen := make(map[int]bool)
	visit := func(nr int) {
		if o, ok := d.objects[nr]; ok && o != nil && !seen[nr] {
			seen[nr] = true
			order = append(order, nr)
		}
	}
	visit(d.root)
	visit(d.info)
	for i := 0; i < len(order); i++ {
		references(d.objects[order[i]], visit)
	}
	return order
}

// incomplete tells whether an object that is needed could not be parsed.
func (d *document) incomplete() bool {
	if len(d.skipped) == 0 {
		return false
	}
	missing := false
	for _, nr := range d.reachable() {
		references(d.objects[nr], func(to int) { missing = missing || d.skipped[to] })
	}
	return missing
}

// signed tells whether the document carries a signature, which any change to
// the file would break.
func (d *document) signed() bool {
	found := false
	d.each(func(v types.Dict) {
		if _, ok := v["ByteRange"]; ok {
			if _, ok := v["Contents"]; ok {
				found = true
			}
		}
	})
	return found
}

// replace maps every reference in o by f, in place, and returns o.
func replace(o types.Object, f func(nr int) int) types.Object {
	switch v := o.(type) {
	case types.IndirectRef:
		return refTo(f(v.ObjectNumber.Value()))
	case types.Dict:
		for k, e := range v {
			v[k] = replace(e, f)
		}
	case types.Array:
		for i, e := range v {
			v[i] = replace(e, f)
		}
	case *types.StreamDict:
		replace(v.Dict, f)
	}
	return o
}
