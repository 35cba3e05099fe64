package pdfops

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/pdfops/internal/pdf"
	"github.com/filewright/filewright/fileops/pdfops/internal/typeset"
	"github.com/filewright/filewright/internal/pagelist"
	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"
)

// Watermark returns the action "watermark" for PDF files. It draws "text" over the
// content of the chosen pages, within the visible part of each page and upright for its
// reader. A line break in the text starts a new line.
//
// "scale" is the width of the text as a part of the width of the page, or of its diagonal
// at the position diagonal. Text that would be higher than the page is drawn smaller.
//
// The text is an artifact, so it is not part of the text of a tagged document (ISO
// 32000-2, 14.8.2.2). PDF/A-1 does not allow transparency; with an opacity below 1 the
// result no longer claims to conform to it. The result is not encrypted.
func (t Tools) Watermark() fileops.Action {
	spec := t.pageSpec("watermark", "Draws a text over pages.", fileops.Param{
		Name: "text", Required: true, Min: 1, Max: 1000,
		Doc: "Text of the watermark; a line break starts a new line.",
	}, fileops.Param{
		Name: "opacity", Type: fileops.Number, Default: 0.4, Min: 0.01, Max: 1,
		Doc: "How much the watermark covers, from 0.01 to 1 (opaque).",
	}, fileops.Param{
		Name: "position", Default: "center",
		Enum: []string{
			"center", "diagonal", "tile", "top-left", "top-center", "top-right", "center-left", "center-right",
			"bottom-left", "bottom-center", "bottom-right",
		},
		Aliases: map[string]string{"top": "top-center", "bottom": "bottom-center", "left": "center-left", "right": "center-right", "center-center": "center"},
		Doc:     "Place of the watermark: at an edge, a corner or in the middle, along the diagonal, or repeated over the page.",
	}, fileops.Param{
		Name: "scale", Type: fileops.Number, Min: 0.02, Max: 1,
		Doc: "Width of the watermark as a part of the page's; by default 0.6 for center and diagonal, else 0.25.",
	}, fileops.Param{
		Name: "pages", Pattern: pagelist.Pattern, Min: 1, Max: 1000,
		Doc: "Pages to mark, such as 1-3,5,-1 (negative: from the end); all if absent.",
	})
	return fileops.Func(spec, func(ctx context.Context, job *fileops.Job) error {
		d, pages, chosen, err := t.markable(ctx, job)
		if err != nil {
			return err
		}
		defer d.Close()
		opacity := job.Params.Float("opacity")
		set := typeset.New(d, t.fonts())
		m, err := textMark(d, set, job.Params.Get("text"), opacity)
		if err != nil {
			return err
		}
		if opacity < 1 && d.IsPDFA1() {
			d.DropPDFA()
			job.Warn(fileops.WarnMetadataDropped, "The file claims to conform to PDF/A-1, which allows no transparency; the result does not conform to it.")
		}
		position, scale := job.Params.Get("position"), job.Params.Float("scale")
		if scale == 0 {
			scale = 0.25
			if position == "center" || position == "diagonal" {
				scale = 0.6
			}
		}
		for i, at := range chosen {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			s := newSheet(d, pages[at])
			c := &canvas{doc: d, page: pages[at], names: make(map[int]string)}
			c.write("/Artifact<</Type/Pagination/Subtype/Watermark>>BDC\n")
			for _, to := range m.places(s, position, scale) {
				c.draw(m.form, to.Times(s.user))
			}
			c.write("EMC\n")
			c.finish()
			job.Progress(0.9 * float64(i+1) / float64(len(chosen)))
		}
		if err := set.Finish(); err != nil {
			return err
		}
		return writePure(job, d, d.IsPDFA1(), nil)
	})
}

// A mark is a form XObject to draw on pages. Its lower left corner is the origin.
type mark struct {
	form types.IndirectRef
	w, h float64
}

// textMark returns a mark with centred lines of text in gray.
func textMark(d *pdf.Document, set *typeset.Setter, text string, opacity float64) (mark, error) {
	const size = 100.0
	var m mark
	var lines []typeset.Line
	for part := range strings.Lines(strings.TrimSpace(text)) {
		l, err := lineOf(set, "text", strings.TrimSpace(part))
		if err != nil {
			return m, err
		}
		if l.Width == 0 { // an empty line
			l.Ascent, l.Descent = 0.95, -0.2
		}
		lines = append(lines, l)
		m.w, m.h = max(m.w, l.Width*size), m.h+(l.Ascent-l.Descent)*size
	}
	if m.w == 0 {
		return m, &fileops.ParamError{Param: "text", Reason: "has no visible characters"}
	}
	fonts, names := types.Dict{}, make(map[int]string)
	b := []byte("BT 0.5 g\n")
	resources := types.Dict{"Font": fonts}
	if opacity < 1 {
		resources["ExtGState"] = types.Dict{"G": types.Dict{"ca": types.Float(opacity), "CA": types.Float(opacity)}}
		b = []byte("/G gs BT 0.5 g\n")
	}
	y := m.h
	for _, l := range lines {
		b = append(b, operands(1, 0, 0, 1, (m.w-l.Width*size)/2, y-l.Ascent*size)...)
		b = set.Append(append(b, "Tm\n"...), l, size, func(font types.IndirectRef) string {
			nr := font.ObjectNumber.Value()
			if names[nr] == "" {
				names[nr] = fmt.Sprintf("F%d", len(names))
				fonts[names[nr]] = font
			}
			return names[nr]
		})
		y -= (l.Ascent - l.Descent) * size
	}
	// Glyphs may reach beyond the height and width that their font gives.
	box := types.NewNumberArray(-size, -size, m.w+size, m.h+size)
	m.form = d.AddStream(types.Dict{"Type": types.Name("XObject"), "Subtype": types.Name("Form"), "BBox": box, "Resources": resources}, nil)
	pdf.SetContent(d.Stream(m.form), pdf.Deflate(append(b, "ET\n"...)), types.PDFFilter{Name: "FlateDecode"})
	return m, nil
}

// places returns the transformations that take a mark to a sheet. For scale, see
// [Tools.Watermark].
func (m mark) places(s sheet, position string, scale float64) []pdf.Matrix {
	angle, length := 0.0, scale*s.w
	switch position {
	case "diagonal":
		angle, length = math.Atan2(s.h, s.w), scale*math.Hypot(s.w, s.h)
	case "tile":
		angle = math.Pi / 6
	}
	sin, cos := math.Sincos(angle)
	// The box around the turned mark must fit the page.
	bw, bh := m.w*cos+m.h*sin, m.w*sin+m.h*cos
	margin := min(numberMargin, s.w/20, s.h/20)
	k := min(length/m.w, (s.w-2*margin)/bw, (s.h-2*margin)/bh)
	bw, bh = bw*k, bh*k
	at := func(x, y float64) pdf.Matrix { // the lower left corner of the box
		x, y = x+bw/2, y+bh/2
		return pdf.Matrix{1, 0, 0, 1, -m.w / 2, -m.h / 2}.Times(pdf.Matrix{k * cos, k * sin, -k * sin, k * cos, x, y})
	}
	if position != "tile" {
		return []pdf.Matrix{at(s.place(position, bw, bh, margin))}
	}
	var out []pdf.Matrix
	gapX, gapY := 0.06*s.w, 0.06*s.h
	columns, rows := int((s.w+gapX)/(bw+gapX)), int((s.h+gapY)/(bh+gapY))
	columns, rows = max(1, columns), max(1, rows)
	for row := range rows {
		for column := range columns {
			x := (float64(column)+0.5)*s.w/float64(columns) - bw/2
			y := (float64(row)+0.5)*s.h/float64(rows) - bh/2
			out = append(out, at(x, y))
		}
	}
	return out
}
