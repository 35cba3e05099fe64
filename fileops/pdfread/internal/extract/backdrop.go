package extract

import (
	"github.com/filewright/filewright/fileops/pdfread/internal/geom"
	"github.com/filewright/filewright/fileops/pdfread/internal/model"
	"github.com/filewright/filewright/fileops/pdfread/internal/pdfium"
)

// backdropDPI is the resolution of backdrops.
const backdropDPI = 150

// Backdrop draws a page without the text that [Extractor.Sheet] returns for it,
// except for askew text. If whole is set, it draws all text. turn are the quarter
// turns counterclockwise that make a scan upright. Backdrop returns nil if the
// result is blank.
func (x *Extractor) Backdrop(p *pdfium.Page, whole bool, turn int) *model.Media {
	in := x.In
	view := p.Matrix()
	x.flatten(p)
	glyphs, objects := x.glyphs(p, view)
	for obj, st := range objects {
		// Text that clips what follows must go on clipping.
		if !whole && !st.hidden && st.turn != model.Askew {
			in.Call("FPDFTextObj_SetTextRenderMode", obj, textInvisible)
		}
	}
	s := &model.Sheet{W: p.W, H: p.H}
	if turn == 0 {
		turn = direction(glyphs)
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
		return nil
	}
	return w.drawn(geom.Rect{L: 0, T: 0, R: s.W, B: s.H})
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
