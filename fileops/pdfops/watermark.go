package pdfops

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/pdfops/internal/pdf"
	"github.com/filewright/filewright/fileops/pdfops/internal/typeset"
	"github.com/filewright/filewright/internal/pagelist"
	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"
)

// Watermark returns the action "watermark" for PDF files. It draws "text" or the picture
// "image_key" over the content of the chosen pages, within the visible part of each page
// and upright for its reader. A line break in the text starts a new line. A picture is
// stored once, without loss, however many pages show it.
//
// "scale" is the width of the mark as a part of the width of the page, or of its diagonal
// at the position diagonal. A mark that would be higher than the page is drawn smaller.
//
// The mark is an artifact, so it is not part of the text of a tagged document (ISO
// 32000-2, 14.8.2.2). PDF/A-1 does not allow transparency; with an opacity below 1 or a
// picture with transparent parts the result no longer claims to conform to it. The result
// is not encrypted.
func (t Tools) Watermark() fileops.Action {
	params := fileops.Watermark(true, format.PNG, format.JPG)
	spec := t.pageSpec("watermark", "Draws a text or a picture over pages.", append(params, fileops.Param{
		Name: "pages", Pattern: pagelist.Pattern, Min: 1, Max: 1000,
		Doc: "Pages to mark, such as 1-3,5,-1 (negative: from the end); all if absent.",
	})...)
	spec.Accepts[0].Changes = fileops.WatermarkMarks(params)
	return fileops.Func(spec, func(ctx context.Context, job *fileops.Job) error {
		d, pages, chosen, err := t.markable(ctx, job)
		if err != nil {
			return err
		}
		opacity := job.Params.Float("opacity")
		set := typeset.New(d, t.fonts())
		var m mark
		if f := job.Extra["image_key"]; f != nil {
			m, err = t.pictureMark(d, f, opacity)
		} else {
			m, err = textMark(d, set, job.Params.Get("text"), opacity)
		}
		if err != nil {
			return err
		}
		switch {
		case (opacity < 1 || m.clear) && d.IsPDFA1():
			d.DropPDFA()
			job.Warn(fileops.WarnMetadataDropped, "The file claims to conform to PDF/A-1, which allows no transparency; the result does not conform to it.")
		case m.unfit && d.Claims(anyPDFA):
			d.DropPDFA()
			job.Warn(fileops.WarnMetadataDropped, "The file claims to conform to PDF/A, which does not allow the kind of the picture; the result does not conform to it. A picture in RGB with 8 bits is allowed.")
		}
		position, scale := job.Params.Get("position"), fileops.WatermarkScale(job.Params)
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
	form  types.IndirectRef
	w, h  float64
	clear bool // it has transparent parts
	unfit bool // its colours are not allowed in PDF/A
}

// anyPDFA is in the metadata of documents that claim to conform to PDF/A.
const anyPDFA = "pdfaid:part"

// pictureMark returns a mark with a picture.
func (t Tools) pictureMark(d *pdf.Document, f *fileops.File, opacity float64) (m mark, err error) {
	p, err := t.loadPicture(d, f)
	if err != nil {
		return m, &fileops.Failure{Kind: fileops.ErrParameter, Message: `parameter "image_key": ` + fileops.Message(err), Err: err}
	}
	image := d.Stream(p.image).Dict
	m.clear = image["SMask"] != nil || image["Mask"] != nil
	if d.Claims(anyPDFA) {
		space, ok := calibrated(image["ColorSpace"])
		image["ColorSpace"] = space
		m.unfit = !ok || image["BitsPerComponent"] == types.Integer(16) && d.IsPDFA1()
	}
	m.w, m.h = float64(p.width), float64(p.height)
	if p.orientation >= 5 {
		m.w, m.h = m.h, m.w
	}
	resources := types.Dict{"XObject": types.Dict{"Im": p.image}}
	var b []byte
	if opacity < 1 {
		resources["ExtGState"] = types.Dict{"G": types.Dict{"ca": types.Float(opacity), "CA": types.Float(opacity)}}
		b = append(b, "/G gs "...)
	}
	u := upright(p.orientation).Times(pdf.Matrix{m.w, 0, 0, m.h, 0, 0})
	b = append(append(b, operands(u[:]...)...), "cm /Im Do\n"...)
	m.form = d.AddStream(types.Dict{"Type": types.Name("XObject"), "Subtype": types.Name("Form"), "BBox": types.NewNumberArray(0, 0, m.w, m.h), "Resources": resources}, b)
	return m, nil
}

// calibrated returns a colour space with its device colours replaced by those of sRGB,
// which are the same on every device. PDF/A requires that unless the document describes a
// device with such colours (ISO 19005-2, 6.2.4.3). It reports false for CMYK, which has no
// such equivalent.
func calibrated(space types.Object) (types.Object, bool) {
	white := types.NewNumberArray(0.9505, 1, 1.089)
	switch space := space.(type) {
	case types.Array:
		if len(space) > 1 && space[0] == types.Name("Indexed") {
			base, ok := calibrated(space[1])
			out := slices.Clone(space)
			out[1] = base
			return out, ok
		}
	case types.Name:
		switch space {
		case "DeviceGray":
			return types.Array{types.Name("CalGray"), types.Dict{"WhitePoint": white, "Gamma": types.Float(2.2)}}, true
		case "DeviceRGB":
			return types.Array{types.Name("CalRGB"), types.Dict{
				"WhitePoint": white, "Gamma": types.NewNumberArray(2.2, 2.2, 2.2),
				"Matrix": types.NewNumberArray(0.4124, 0.2126, 0.0193, 0.3576, 0.7152, 0.1192, 0.1805, 0.0722, 0.9505),
			}}, true
		case "DeviceCMYK":
			return space, false
		}
	}
	return space, true
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
