package pdfops

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/pdfops/internal/pdf"
	"github.com/filewright/filewright/fileops/pdfops/internal/typeset"
	"github.com/filewright/filewright/internal/pagelist"
	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"
)

// A sheet is the visible part of a page, upright for its reader. Its origin is the
// lower left corner. Lengths are in points.
type sheet struct {
	w, h float64
	user pdf.Matrix // takes points of the sheet to the user space of the page
}

// newSheet returns the sheet of a page.
func newSheet(d *pdf.Document, p pdf.Page) sheet {
	box := [4]float64{0, 0, 612, 792} // for pages without a valid box
	for i, key := range []string{"MediaBox", "CropBox"} {
		v, ok := d.Numbers(p.Attr(key), 4)
		if !ok {
			continue
		}
		x0, y0, x1, y1 := min(v[0], v[2]), min(v[1], v[3]), max(v[0], v[2]), max(v[1], v[3])
		if i > 0 {
			x0, y0, x1, y1 = max(x0, box[0]), max(y0, box[1]), min(x1, box[2]), min(y1, box[3])
		}
		if x1 > x0 && y1 > y0 && !math.IsInf(x1-x0+y1-y0, 0) {
			box = [4]float64{x0, y0, x1, y1}
		}
	}
	unit, ok := d.Number(p.Dict["UserUnit"])
	if !ok || unit <= 0 {
		unit = 1
	}
	s := sheet{w: (box[2] - box[0]) * unit, h: (box[3] - box[1]) * unit}
	u := 1 / unit
	switch ((d.Integer(p.Attr("Rotate"))%360 + 360) % 360) / 90 {
	case 0:
		s.user = pdf.Matrix{u, 0, 0, u, box[0], box[1]}
	case 1:
		s.user = pdf.Matrix{0, u, -u, 0, box[2], box[1]}
		s.w, s.h = s.h, s.w
	case 2:
		s.user = pdf.Matrix{-u, 0, 0, -u, box[2], box[3]}
	case 3:
		s.user = pdf.Matrix{0, -u, u, 0, box[0], box[3]}
		s.w, s.h = s.h, s.w
	}
	return s
}

// place returns the lower left corner of a box of w × h at a position such as
// "bottom-center", at a distance from the edges.
func (s sheet) place(position string, w, h, margin float64) (x, y float64) {
	vertical, horizontal := splitPosition(position)
	switch x = (s.w - w) / 2; horizontal {
	case "left":
		x = margin
	case "right":
		x = s.w - margin - w
	}
	switch y = (s.h - h) / 2; vertical {
	case "top":
		y = s.h - margin - h
	case "bottom":
		y = margin
	}
	return x, y
}

// splitPosition returns the parts of a position. "center" has no parts.
func splitPosition(position string) (vertical, horizontal string) {
	for i := range len(position) {
		if position[i] == '-' {
			return position[:i], position[i+1:]
		}
	}
	return "", ""
}

// markable reads the input for an action that draws on the chosen pages. Each page is
// an object of its own. chosen is sorted. The caller must close the document.
func (t Tools) markable(ctx context.Context, job *fileops.Job) (d *pdf.Document, pages []pdf.Page, chosen []int, err error) {
	if d, pages, err = t.loadPages(ctx, job); err != nil {
		return nil, nil, nil, err
	}
	if chosen, err = pagelist.Parse(job.Params.Get("pages"), len(pages)); err != nil {
		return nil, nil, nil, errors.Join(err, d.Close())
	}
	slices.Sort(chosen)
	seen := make(map[int]bool)
	for _, p := range pages {
		if nr := p.Ref.ObjectNumber.Value(); nr == 0 || seen[nr] {
			d.SeparatePages(pages)
			var refs []types.IndirectRef
			for _, p := range pages {
				refs = append(refs, p.Ref)
			}
			d.Catalog()["Pages"] = d.AddPageTree(refs)
			break
		} else {
			seen[nr] = true
		}
	}
	return d, pages, chosen, nil
}

// lineOf sets a line of text for the parameter that it comes from.
func lineOf(s *typeset.Setter, param, text string) (typeset.Line, error) {
	l, err := s.Line(text)
	if err != nil {
		return l, &fileops.ParamError{Param: param, Reason: "cannot be drawn: " + err.Error()}
	}
	return l, nil
}

// fonts returns the directories of fonts.
func (t Tools) fonts() []string {
	if t.FontDirs == nil {
		return typeset.HostFonts()
	}
	return t.FontDirs
}
