package pdfops

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/pdfops/internal/pdf"
	"github.com/filewright/filewright/fileops/raster"
	"github.com/filewright/filewright/internal/pagelist"
	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"
)

// A TextReader recognizes the text of scanned pages. A pdfread.Engine is one.
type TextReader interface {
	// Language returns the parameter for the language of the text. ok is false if the
	// reader cannot recognize text.
	Language() (p fileops.Param, ok bool)

	// RecognizePages returns the scanned pages of a PDF file in memory, or with force
	// all pages, with their text. progress receives fractions from 0 to 1.
	RecognizePages(ctx context.Context, pdf []byte, language string, force bool, progress func(float64)) ([]raster.TextPage, error)
}

// OCR returns the action "ocr". It adds the text of scanned pages to them, so that it
// can be found and copied. The pages look as before: the text is invisible, and nothing
// else of a page changes. In tagged documents the text is an artifact.
//
// Pages that already have text stay untouched, except with the parameter force. Then
// invisible text, such as that of an earlier recognition, is replaced, and recognized
// words are added where such a page has no readable text, as in its pictures. Invisible
// text stays in tagged documents, because their structure refers to it, and on pages
// without recognized words.
//
// The result is not encrypted. OCR returns nil without a [Tools.Reader] that recognizes
// text.
func (t Tools) OCR() fileops.Action {
	if t.Reader == nil {
		return nil
	}
	language, ok := t.Reader.Language()
	if !ok {
		return nil
	}
	spec := t.pageSpec("ocr", "Adds the text of scanned pages, so that it can be found and copied.", language, fileops.Param{
		Name: "force", Type: fileops.Boolean, Default: false, Scope: fileops.ScopeContent,
		Doc: "Also recognises pages that already have text, replaces invisible text of an earlier recognition, and adds what is not text yet.",
	})
	spec.Engine += " + " + "pdfium"
	spec.MaxBytes = pdf.MaxFile // pdfium reads it into memory
	return fileops.Func(spec, func(ctx context.Context, job *fileops.Job) error {
		return t.ocr(ctx, job, job.Params.Get(language.Name))
	})
}

func (t Tools) ocr(ctx context.Context, job *fileops.Job, language string) error {
	d, pages, err := t.loadPages(ctx, job)
	if err != nil {
		return err
	}
	defer d.Close()
	before, err := plainCopy(d)
	if err != nil {
		return err
	}
	input, force := before, job.Params.Bool("force")
	hidden := new(hiddenText)
	if force && d.Dict(d.Catalog()["StructTreeRoot"]) == nil {
		if hidden = removeHiddenText(d, pages); len(hidden.removed) > 0 {
			var bare bytes.Buffer
			if err := d.Write(&bare, false, nil); err != nil {
				return err
			}
			input = bare.Bytes()
		}
	}
	found, err := t.Reader.RecognizePages(ctx, input, language, force, func(done float64) { job.Progress(0.95 * done) })
	if err != nil {
		return err
	}
	layer := newTextLayer(d)
	var changed []int
	seen := make(map[int]bool)
	for _, p := range found {
		if p.Page >= len(pages) {
			return fmt.Errorf("page %d of %d was recognized", p.Page+1, len(pages))
		}
		page := pages[p.Page]
		nr := page.Ref.ObjectNumber.Value()
		if len(p.Words) == 0 || nr != 0 && seen[nr] {
			continue // a page can occur twice in the tree
		}
		seen[nr] = true
		layer.add(page, p)
		changed = append(changed, p.Page)
	}
	replaced := make(map[int]bool)
	for i := range hidden.removed {
		if replaced[i] = slices.Contains(changed, i); !replaced[i] {
			hidden.restore(i, pages[i])
		}
	}
	if len(changed) == 0 {
		if len(found) > 0 {
			job.Warn(fileops.WarnTextUnreliable, "No text was found on the scanned pages (%s).", pagelist.Count(len(found)))
		}
		if !d.Encrypted {
			return job.Keep(job.Input())
		}
		return writePure(job, d, d.IsPDFA1(), nil)
	}
	layer.finish()
	if err := t.checkLayer(ctx, d, before, changed, replaced); err != nil {
		return err
	}
	job.Warn(fileops.WarnTextRecognized, "The text of %s was recognised and may contain errors.", pagelist.Count(len(changed)))
	return writePure(job, d, d.IsPDFA1(), nil)
}

// checkLayer compares pages of the result with those of the original. Pages whose
// invisible text was replaced need not have more text than before.
func (t Tools) checkLayer(ctx context.Context, d *pdf.Document, before []byte, pages []int, replaced map[int]bool) error {
	if t.Renderer == nil {
		return nil
	}
	const dpi, most = 50, 10 // pages, because each takes as long as drawing twice
	var after bytes.Buffer
	if err := d.Write(&after, d.IsPDFA1(), nil); err != nil {
		return err
	}
	pages = pages[:min(len(pages), most)]
	old, err := t.Renderer.Views(ctx, before, pages, dpi)
	if err != nil {
		return err
	}
	now, err := t.Renderer.Views(ctx, after.Bytes(), pages, dpi)
	if err != nil {
		return err
	}
	for i := range old {
		if old[i].Width != now[i].Width || !bytes.Equal(old[i].Pix, now[i].Pix) {
			return fileops.Fail(fileops.ErrEngine, fmt.Errorf("page %d looks different", pages[i]+1), "the text could not be added without changing a page")
		}
		least := len(old[i].Text)
		if replaced[pages[i]] {
			least = 0
		}
		if old[i].Width > 0 && len(now[i].Text) <= least {
			return fileops.Fail(fileops.ErrEngine, fmt.Errorf("page %d has no more text than before", pages[i]+1), "the text could not be added to a page")
		}
	}
	return nil
}

// A textLayer adds invisible text to pages. All text has one font,
// whose codes number the characters of the text.
type textLayer struct {
	doc    *pdf.Document
	font   types.IndirectRef
	tagged bool
	codes  map[rune]uint16
	runes  []rune // by code, from 1
}

func newTextLayer(d *pdf.Document) *textLayer {
	return &textLayer{
		doc: d, font: d.Add(types.Dict{}), codes: make(map[rune]uint16),
		tagged: d.Dict(d.Catalog()["StructTreeRoot"]) != nil,
	}
}

// glyphWidth is the width of every glyph in thousandths of the font size.
const glyphWidth = 500

// add adds the words of p to a page.
func (l *textLayer) add(page pdf.Page, p raster.TextPage) {
	c := &canvas{doc: l.doc, page: page, names: make(map[int]string)}
	font := c.add("Font", l.font)
	if l.tagged {
		c.write("/Artifact BMC\n")
	}
	c.write("BT\n3 Tr\n")
	place := userSpace(l.doc, page, p.Width, p.Height)
	for _, w := range p.Words {
		l.word(c, font, w, place)
	}
	c.write("ET\n")
	if l.tagged {
		c.write("EMC\n")
	}
	c.finish()
}

// word writes a word. A space follows it, because some programs do not take gaps for
// spaces.
func (l *textLayer) word(c *canvas, font string, w raster.TextWord, place func(x, y float64) (float64, float64)) {
	x0, y0 := place(w.X, w.Y)
	x1, y1 := place(w.X+w.DX, w.Y+w.DY)
	length := math.Hypot(x1-x0, y1-y0)
	shown := math.Hypot(w.DX, w.DY)
	if !(length > 0) || !(shown > 0) {
		return
	}
	size := w.Size * length / shown
	cos, sin := (x1-x0)/length, (y1-y0)/length
	text := w.Text
	if isRightToLeft(text) {
		text = visual(text) // as programs write such text; those that read it expect that
	}
	hex, n := l.encode(text)
	if n == 0 {
		return
	}
	// The size is that of the font, and the width of the word decides the scale along the
	// line.
	along := length * 1000 / (glyphWidth * float64(n))
	fmt.Fprintf(&c.buf, "/%s %sTf %sTz ", font, number(size), number(100*along/size))
	for _, v := range [...]float64{cos, sin, -sin, cos, x0, y0} {
		c.write(number(v))
	}
	fmt.Fprintf(&c.buf, "Tm <%s> Tj\n", hex)
}

// number returns a number for a content stream, with a space.
func number(v float64) string { return operands(math.Round(v*1e4) / 1e4) }

// encode returns text and a space as codes in hexadecimal digits, and the number of
// characters of text.
func (l *textLayer) encode(text string) (hex string, n int) {
	var b strings.Builder
	for _, r := range text + " " {
		code := l.codes[r]
		if code == 0 {
			if len(l.runes) >= math.MaxUint16 {
				continue
			}
			l.runes = append(l.runes, r)
			code = uint16(len(l.runes))
			l.codes[r] = code
		}
		fmt.Fprintf(&b, "%04x", code)
		n++
	}
	return b.String(), n - 1
}

func isRightToLeft(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool {
		return unicode.In(r, unicode.Hebrew, unicode.Arabic, unicode.Syriac, unicode.Thaana, unicode.Nko)
	})
}

// visual returns the characters of a word in a right-to-left script from left to right.
// Numbers keep their direction, and marks follow their letter.
func visual(s string) string {
	var parts []string // reversed at the end
	kept := false      // the last part is a number
	for _, r := range s {
		number := unicode.IsDigit(r)
		if n := len(parts); n > 0 && (unicode.IsMark(r) || number && kept) {
			parts[n-1] += string(r)
		} else {
			parts = append(parts, string(r))
		}
		kept = number
	}
	slices.Reverse(parts)
	return strings.Join(parts, "")
}

// userSpace returns the function that maps positions in points from the top left corner
// of a shown page, which has the given size, to user space (ISO 32000-2, 14.11.2).
func userSpace(d *pdf.Document, page pdf.Page, width, height float64) func(x, y float64) (float64, float64) {
	box := pageBox(d, page)
	w, h := box[2]-box[0], box[3]-box[1]
	turn := (d.Integer(page.Attr("Rotate"))%360 + 360) % 360 / 90
	return func(x, y float64) (float64, float64) {
		u, v := x/width, y/height
		switch turn {
		case 1:
			return box[0] + v*w, box[1] + u*h
		case 2:
			return box[2] - u*w, box[1] + v*h
		case 3:
			return box[2] - v*w, box[3] - u*h
		}
		return box[0] + u*w, box[3] - v*h
	}
}

// pageBox returns the visible part of a page in user space: the part of its crop box
// within its media box.
func pageBox(d *pdf.Document, page pdf.Page) [4]float64 {
	read := func(key string) (box [4]float64, ok bool) {
		v, ok := d.Numbers(page.Attr(key), 4)
		if !ok {
			return box, false
		}
		box = [4]float64{min(v[0], v[2]), min(v[1], v[3]), max(v[0], v[2]), max(v[1], v[3])}
		return box, box[2] > box[0] && box[3] > box[1]
	}
	media, ok := read("MediaBox")
	if !ok {
		media = [4]float64{0, 0, 612, 792}
	}
	if crop, ok := read("CropBox"); ok {
		crop = [4]float64{max(crop[0], media[0]), max(crop[1], media[1]), min(crop[2], media[2]), min(crop[3], media[3])}
		if crop[2] > crop[0] && crop[3] > crop[1] {
			return crop
		}
	}
	return media
}

// finish completes the font (ISO 32000-2, 9.7).
func (l *textLayer) finish() {
	d := l.doc
	font := d.Dict(l.font)
	deflated := func(dict types.Dict, b []byte) types.IndirectRef {
		dict["Filter"] = types.Name("FlateDecode")
		return d.AddStream(dict, pdf.Deflate(b))
	}
	glyphs := make([]byte, 2*(len(l.runes)+1)) // every code has glyph 1
	for i := 3; i < len(glyphs); i += 2 {
		glyphs[i] = 1
	}
	file := blankFont()
	name := types.Name("FwGlyphless")
	descriptor := d.Add(types.Dict{
		"Type": types.Name("FontDescriptor"), "FontName": name, "Flags": types.Integer(1 | 1<<2), // fixed pitch, symbolic
		"FontBBox": types.NewIntegerArray(0, -200, glyphWidth, 800), "ItalicAngle": types.Integer(0),
		"Ascent": types.Integer(800), "Descent": types.Integer(-200), "CapHeight": types.Integer(700), "StemV": types.Integer(80),
		"FontFile2": deflated(types.Dict{"Length1": types.Integer(len(file))}, file),
	})
	descendant := d.Add(types.Dict{
		"Type": types.Name("Font"), "Subtype": types.Name("CIDFontType2"), "BaseFont": name, "FontDescriptor": descriptor,
		"CIDSystemInfo": types.Dict{"Registry": types.StringLiteral("Adobe"), "Ordering": types.StringLiteral("Identity"), "Supplement": types.Integer(0)},
		"DW":            types.Integer(glyphWidth), "CIDToGIDMap": deflated(types.Dict{}, glyphs),
	})
	font["Type"], font["Subtype"], font["BaseFont"], font["Encoding"] = types.Name("Font"), types.Name("Type0"), name, types.Name("Identity-H")
	font["DescendantFonts"] = types.Array{descendant}
	font["ToUnicode"] = deflated(types.Dict{}, l.toUnicode())
}

// toUnicode returns the CMap that maps codes to characters (ISO 32000-2, 9.10.3).
func (l *textLayer) toUnicode() []byte {
	var b bytes.Buffer
	b.WriteString("/CIDInit /ProcSet findresource begin\n12 dict begin\nbegincmap\n" +
		"/CIDSystemInfo <</Registry (Adobe) /Ordering (UCS) /Supplement 0>> def\n/CMapName /Adobe-Identity-UCS def\n/CMapType 2 def\n" +
		"1 begincodespacerange\n<0000> <ffff>\nendcodespacerange\n")
	const block = 100 // entries that a block may have
	for from := 0; from < len(l.runes); from += block {
		part := l.runes[from:min(from+block, len(l.runes))]
		fmt.Fprintf(&b, "%d beginbfchar\n", len(part))
		for i, r := range part {
			fmt.Fprintf(&b, "<%04x> <%x>\n", from+i+1, utf16Bytes(r))
		}
		b.WriteString("endbfchar\n")
	}
	b.WriteString("endcmap\nCMapName currentdict /CMap defineresource pop\nend\nend\n")
	return b.Bytes()
}
