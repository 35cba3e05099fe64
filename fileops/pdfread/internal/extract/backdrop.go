package extract

import (
	"math"
	"slices"

	"github.com/filewright/filewright/fileops/pdfread/internal/geom"
	"github.com/filewright/filewright/fileops/pdfread/internal/model"
	"github.com/filewright/filewright/fileops/pdfread/internal/pdfium"
)

// backdropDPI is the resolution of backdrops.
const backdropDPI = 150

// Backdrop draws a page without the text that [Extractor.Sheet] returns for it,
// except for askew text, into f.Picture, unless it is blank. Of f.Rules it keeps
// those that are visible in the picture.
func (x *Extractor) Backdrop(p *pdfium.Page, f *model.Fixed) {
	in, turn := x.In, f.Turn
	view := p.Matrix()
	x.flatten(p)
	glyphs, objects := x.glyphs(p, view)
	for obj, st := range objects {
		// Text that clips what follows must go on clipping.
		if !f.Whole && !st.hidden && st.turn != model.Askew {
			in.Call("FPDFTextObj_SetTextRenderMode", obj, textInvisible)
		}
	}
	s := &model.Sheet{W: p.W, H: p.H}
	if turn == 0 {
		turn = x.direction(glyphs)
	}
	if turn%2 == 1 {
		s.W, s.H = s.H, s.W
	}
	w := &walker{x: x, page: p, sheet: s, turn: turn}
	defer w.finishShot()
	dpi := x.dpi
	x.dpi = backdropDPI
	defer func() { x.dpi = dpi }()
	if !w.shoot() || blank(in.Bytes(w.shotPix, 4*w.shotW*w.shotH)) {
		f.Rules = nil
		return
	}
	w.scale *= s.W / f.W // the page may be smaller in the document
	f.Rules = slices.DeleteFunc(slices.Clone(f.Rules), func(r *model.Rule) bool { return !w.visible(r) })
	w.scale *= f.W / s.W
	f.Picture = w.drawn(geom.Rect{L: 0, T: 0, R: s.W, B: s.H})
}

// visible reports whether most points of a rule have about its colour in the
// rendered page: nothing covers it, and it is not dashed.
func (w *walker) visible(r *model.Rule) bool {
	const points, least = 32, 28
	pix := w.x.In.Bytes(w.shotPix, 4*w.shotW*w.shotH)
	reach := int(math.Ceil(r.Width / 2 * w.scale))
	found := 0
	for i := range points {
		along := r.From + (r.To-r.From)*(float64(i)+0.5)/points
		for d := -reach; d <= reach; d++ {
			x, y := int(along*w.scale), int(r.Pos*w.scale)+d
			if !r.Horizontal {
				x, y = int(r.Pos*w.scale)+d, int(along*w.scale)
			}
			if x < 0 || y < 0 || x >= w.shotW || y >= w.shotH || pix == nil {
				continue
			}
			at := 4 * (y*w.shotW + x)
			if near(pix[at:at+3:at+3], r.Colour) {
				found++
				break
			}
		}
	}
	return found >= least
}

// near reports whether a pixel has a colour, at least for the most part: thin
// lines mix with the paper.
func near(pix []byte, colour uint32) bool {
	var miss, paper int
	for i, p := range pix {
		c := int(colour >> (16 - 8*i) & 255)
		miss += max(int(p)-c, c-int(p))
		paper += 255 - c
	}
	return miss <= 40 || 3*miss <= 2*paper
}

// blank reports whether all pixels are white or almost white.
func blank(pix []byte) bool {
	for i := 0; i+3 < len(pix); i += 4 {
		if min(pix[i], pix[i+1], pix[i+2]) < 0xf8 {
			return false
		}
	}
	return true
}
