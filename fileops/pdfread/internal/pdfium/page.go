package pdfium

import (
	"math"

	"github.com/filewright/filewright/fileops/pdfread/internal/geom"
)

// Matrix returns the matrix from content coordinates to those of the displayed
// page. pdfium provides only a conversion of integers.
func (p *Page) Matrix() geom.Matrix {
	const unit = 100.0 // device pixels per point
	in := p.in
	at := func(x, y float64) (float64, float64) {
		in.Call("FPDF_PageToDevice", p.Ptr, 0, 0, uint64(math.Round(p.W*unit)), uint64(math.Round(p.H*unit)), 0,
			math.Float64bits(x), math.Float64bits(y), in.Arg(0), in.Arg(1))
		return float64(in.OutInt(0)) / unit, float64(in.OutInt(1)) / unit
	}
	const far = 1000.0
	e, f := at(0, 0)
	ax, ay := at(far, 0)
	cx, cy := at(0, far)
	return geom.Matrix{A: (ax - e) / far, B: (ay - f) / far, C: (cx - e) / far, D: (cy - f) / far, E: e, F: f}
}

// OutMatrix returns the FS_MATRIX in the scratch space.
func (in *Instance) OutMatrix() geom.Matrix {
	var v [6]float64
	in.OutFloats(v[:])
	return geom.Matrix{A: v[0], B: v[1], C: v[2], D: v[3], E: v[4], F: v[5]}
}

// OutField returns the 32-bit number at a byte offset in the scratch space.
func (in *Instance) OutField(offset uint32) uint32 {
	v, _ := in.Module.Memory().ReadUint32Le(in.Out + offset)
	return v
}

// PlainText returns the text of the page in content order, in UTF-16.
func (p *Page) PlainText() string {
	in := p.in
	text := in.Call("FPDFText_LoadPage", p.Ptr)
	if text == 0 {
		return ""
	}
	defer in.Call("FPDFText_ClosePage", text)
	n := min(in.Int("FPDFText_CountChars", text), MaxChars)
	if n <= 0 {
		return ""
	}
	buf := in.malloc(2 * (n + 1))
	if in.Err != nil {
		return ""
	}
	defer in.free(buf)
	got := in.Int("FPDFText_GetText", text, 0, uint64(n), uint64(buf))
	return Utf16String(in.Bytes(buf, 2*min(got, n+1)))
}
