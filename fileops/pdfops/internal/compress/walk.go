package compress

import (
	"context"
	"fmt"
	"math"

	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"

	"github.com/filewright/filewright/fileops/pdfops/internal/pdf"
)

// A drawnSize is the largest size at which a picture is drawn, in points.
type drawnSize struct{ width, height float64 }

// A walker follows the content of pages into forms, tiling patterns, soft masks,
// glyphs and annotations. It records the drawn size of each picture and the
// characters that each font shows.
type walker struct {
	doc   *pdf.Document
	sizes map[int]drawnSize // by object number of the picture
	seen  map[string]bool   // forms by number and matrix
	// steps is the number of operators that may still be read; nested forms can
	// expand to billions. At 0 the sizes may be too small, so no picture may be
	// scaled down.
	steps int

	fonts *fontUses
	shown []*pageUse // by page
	// textOnly is set for content whose size is unknown.
	textOnly bool

	page0 types.Dict   // resources of the page, the viewers' last resort
	forms map[int]bool // streams whose content was followed
}

const maxSteps = 20_000_000

func newWalker(d *pdf.Document) *walker {
	return &walker{doc: d, sizes: make(map[int]drawnSize), seen: make(map[string]bool), steps: maxSteps,
		fonts: newFontUses(d), forms: make(map[int]bool)}
}

// complete reports whether all content was seen.
func (w *walker) complete() bool { return w.steps > 0 }

// page follows the content of a page and of its annotations.
func (w *walker) page(ctx context.Context, p pdf.Page) error {
	m := pdf.IdentityMatrix()
	if u, ok := w.doc.Number(p.Dict["UserUnit"]); ok && u > 0 {
		m[0], m[3] = u, u
	}
	resources := w.doc.Dict(p.Attr("Resources"))
	w.page0 = resources
	w.setPage(newPageUse())
	defer w.setPage(nil)
	if err := w.content(ctx, w.pageContent(p), resources, m, 0); err != nil {
		return err
	}
	for _, a := range w.doc.Array(p.Dict["Annots"]) {
		annot := w.doc.Dict(a)
		if annot == nil {
			continue
		}
		for _, state := range w.doc.Dict(annot["AP"]) {
			if w.doc.Stream(state) != nil {
				state = types.Dict{"": state}
			}
			for _, form := range w.doc.Dict(state) {
				if err := w.appearance(ctx, annot, form, m); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// setPage sets the page that the following pictures and characters belong to, or
// nil.
func (w *walker) setPage(s *pageUse) {
	if w.fonts.page = s; s != nil {
		w.shown = append(w.shown, s)
	}
}

// pageContent returns the content of a page. Incomplete content ends the walk.
func (w *walker) pageContent(p pdf.Page) []byte {
	b, complete := w.doc.Content(p.Dict["Contents"])
	if !complete {
		w.steps = 0
	}
	return b
}

// appearance follows an appearance stream, which is scaled from its bounding box
// to the rectangle of the annotation (ISO 32000-2, 12.5.5).
func (w *walker) appearance(ctx context.Context, annot types.Dict, form types.Object, m pdf.Matrix) error {
	s := w.doc.Stream(form)
	if s == nil {
		return nil
	}
	rect, ok := w.doc.Numbers(annot["Rect"], 4)
	box, ok2 := w.doc.Numbers(s.Dict["BBox"], 4)
	if ok && ok2 {
		fm := w.formMatrix(s)
		scale := func(from, to float64) float64 {
			if from == 0 || to == 0 {
				return 1
			}
			return math.Abs(to / from)
		}
		bw, bh := math.Abs(box[2]-box[0]), math.Abs(box[3]-box[1])
		tw := bw*math.Abs(fm[0]) + bh*math.Abs(fm[2])
		th := bw*math.Abs(fm[1]) + bh*math.Abs(fm[3])
		m = pdf.Matrix{scale(tw, rect[2]-rect[0]), 0, 0, scale(th, rect[3]-rect[1]), 0, 0}.Times(m)
	}
	return w.form(ctx, form, nil, m, 0)
}

func (w *walker) formMatrix(s *types.StreamDict) pdf.Matrix {
	m := pdf.IdentityMatrix()
	if v, ok := w.doc.Numbers(s.Dict["Matrix"], 6); ok {
		copy(m[:], v)
	}
	return m
}

// form follows a form, a pattern or a soft mask. resources are those of the
// surrounding content; they apply if the form has no resources.
func (w *walker) form(ctx context.Context, o types.Object, resources types.Dict, m pdf.Matrix, depth int) error {
	s := w.doc.Stream(o)
	if s == nil {
		return nil
	}
	m = w.formMatrix(s).Times(m)
	if ref, ok := o.(types.IndirectRef); ok {
		// The position is irrelevant, and so is a difference of 1/1000.
		key := fmt.Sprintf("%d %.3g %.3g %.3g %.3g", ref.ObjectNumber, m[0], m[1], m[2], m[3])
		if w.seen[key] {
			return nil
		}
		w.seen[key] = true
		w.forms[ref.ObjectNumber.Value()] = true
	}
	b, ok := w.decode(s)
	if !ok {
		return nil
	}
	if r := w.doc.Dict(s.Dict["Resources"]); r != nil {
		resources = r
	}
	return w.content(ctx, b, resources, m, depth+1)
}

// decode returns the content of a stream. If it cannot be decoded, the walk is not
// complete.
func (w *walker) decode(s *types.StreamDict) ([]byte, bool) {
	b, err := pdf.Decode(s)
	if err != nil {
		w.steps = 0
	}
	return b, err == nil
}

// content follows a content stream. ctm is the transformation to points.
func (w *walker) content(ctx context.Context, b []byte, resources types.Dict, ctm pdf.Matrix, depth int) error {
	if depth > 12 {
		w.steps = 0
		return nil
	}
	sub := func(kind, name string) types.Object {
		if o := w.doc.Dict(resources[kind])[name]; o != nil {
			return o
		}
		return w.doc.Dict(w.page0[kind])[name]
	}
	base := ctm
	type state struct {
		ctm  pdf.Matrix
		font types.Object
	}
	var (
		l       = pdf.NewLexer(b)
		stack   []state
		nums    []float64
		name    string
		strings [][]byte
		// A form inherits the font of the surrounding content.
		font types.Object = inheritedFont
	)
	for {
		t := l.Next()
		switch t.Kind {
		case pdf.TokenEnd:
			return nil
		case pdf.TokenNumber:
			nums = append(nums, t.Num)
			continue
		case pdf.TokenName:
			name = t.Text
			continue
		case pdf.TokenString:
			strings = append(strings, t.Raw)
			continue
		case pdf.TokenOther:
			continue
		}
		if w.steps--; w.steps <= 0 {
			w.steps = 0
			return nil
		}
		if w.steps%4096 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		var err error
		switch t.Text {
		case "q":
			stack = append(stack, state{ctm, font})
		case "Q":
			if n := len(stack); n > 0 {
				ctm, font, stack = stack[n-1].ctm, stack[n-1].font, stack[:n-1]
			}
		case "cm":
			if n := len(nums); n >= 6 {
				ctm = pdf.Matrix(nums[n-6:]).Times(ctm)
			}
		case "ID":
			l.SkipInlineImage()
		case "scn", "SCN":
			// The pattern space is the initial space of the content, not the current one
			// (ISO 32000-2, 8.7.3.1).
			if o := sub("Pattern", name); o != nil && w.doc.Integer(w.doc.Dict(o)["PatternType"]) == 1 {
				err = w.form(ctx, o, resources, base, depth)
			}
		case "gs":
			gs := w.doc.Dict(sub("ExtGState", name))
			if f := w.doc.Array(gs["Font"]); len(f) > 0 {
				font = f[0]
			}
			mask := w.doc.Dict(gs["SMask"])
			if mask["G"] != nil {
				err = w.form(ctx, mask["G"], resources, ctm, depth)
			}
		case "Tf":
			font = sub("Font", name)
			err = w.glyphs(ctx, font, resources, ctm, nums, depth)
		case "Tj", "TJ", "'", "\"":
			w.fonts.show(font, strings)
		case "Do":
			err = w.object(ctx, sub("XObject", name), resources, ctm, depth)
		}
		if err != nil {
			return err
		}
		nums, name, strings = nums[:0], "", strings[:0]
	}
}

// glyphs follows the glyphs of a Type 3 font.
func (w *walker) glyphs(ctx context.Context, o types.Object, resources types.Dict, ctm pdf.Matrix, nums []float64, depth int) error {
	font := w.doc.Dict(o)
	if w.doc.Name(font["Subtype"]) != "Type3" {
		return nil
	}
	// The text matrix is not followed. The code assumes that no glyph with colour
	// pictures is set in more than ten times its nominal size.
	size := 1.0
	if len(nums) > 0 && nums[len(nums)-1] != 0 {
		size = math.Max(1, math.Abs(nums[len(nums)-1])) * 10
	}
	m := pdf.Matrix{size, 0, 0, size, 0, 0}.Times(ctm)
	if v, ok := w.doc.Numbers(font["FontMatrix"], 6); ok {
		m = pdf.Matrix(v).Times(m)
	}
	if r := w.doc.Dict(font["Resources"]); r != nil {
		resources = r
	}
	for _, proc := range w.doc.Dict(font["CharProcs"]) {
		if err := w.form(ctx, proc, resources, m, depth); err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) object(ctx context.Context, o types.Object, resources types.Dict, ctm pdf.Matrix, depth int) error {
	s := w.doc.Stream(o)
	if s == nil {
		return nil
	}
	switch w.doc.Name(s.Dict["Subtype"]) {
	case "Form":
		return w.form(ctx, o, resources, ctm, depth)
	case "Image":
		ref, ok := o.(types.IndirectRef)
		if !ok {
			return nil
		}
		if w.textOnly {
			return nil
		}
		size := w.sizes[ref.ObjectNumber.Value()]
		size.width = math.Max(size.width, math.Hypot(ctm[0], ctm[1]))
		size.height = math.Max(size.height, math.Hypot(ctm[2], ctm[3]))
		w.sizes[ref.ObjectNumber.Value()] = size
		if p := w.fonts.page; p != nil {
			p.pictures[ref.ObjectNumber.Value()] = true
		}
	}
	return nil
}
