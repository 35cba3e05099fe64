package webops

import (
	"fmt"
	"math"
	"strconv"

	"github.com/filewright/filewright/fileops"
)

// Points in an inch, and CSS pixels in an inch.
const (
	pointsPerInch = 72
	pixelsPerInch = 96
)

// A size is the size of a page or picture in points.
type size struct{ width, height float64 }

func (s size) turned() size { return size{s.height, s.width} }

// paper lists the supported page sizes (ISO 216; ANSI Y14.1). It is read-only.
var paper = map[string]size{
	"a3":     {millimetres(297), millimetres(420)},
	"a4":     {millimetres(210), millimetres(297)},
	"a5":     {millimetres(148), millimetres(210)},
	"letter": {612, 792},
	"legal":  {612, 1008},
}

func millimetres(n float64) float64 { return n / 25.4 * pointsPerInch }

const (
	auto      = "auto"
	portrait  = "portrait"
	landscape = "landscape"
)

// parameters returns the parameters of a conversion to PDF. sizeDoc and orientationDoc
// describe the value auto; margin is the default in points.
func parameters(sizeDoc, orientationDoc string, margin float64) fileops.Schema {
	marginDoc := fmt.Sprintf("Margin on each side in points (1/72 inch); if absent, %v", margin)
	return fileops.Schema{
		fileops.Enum("convert_to", "Format of the result.", "pdf"),
		{Name: "page_size", Doc: "Size of the page; auto " + sizeDoc + ".", Enum: []string{auto, "a4", "letter", "legal", "a3", "a5"}, Default: auto},
		{Name: "orientation", Doc: "Orientation of the page; auto " + orientationDoc + ".", Enum: []string{auto, portrait, landscape}, Default: auto},
		{Name: "margin", Doc: marginDoc + ".", Type: fileops.Number, Max: 200},
		{Name: "page_numbers", Doc: "Whether each page has its number at the bottom.", Type: fileops.Boolean, Default: false},
		{Name: "print_background", Doc: "Whether the colours and pictures behind the text are printed.", Type: fileops.Boolean, Default: true},
	}
}

// A layout is the page layout, from the parameters and the document.
type layout struct {
	page    size
	margin  float64
	numbers bool
	colours bool
	follow  bool // @page rules of the document take precedence
	plain   bool // without tags and bookmarks
}

// footer is the template of the page number. The browser fills it in and applies no
// style to it.
const footer = `<div style="width:100%;text-align:center;font:8px 'Liberation Sans','Noto Sans',sans-serif;color:#555">` +
	`<span class="pageNumber"></span> / <span class="totalPages"></span></div>`

// minFooter is the minimum margin for the footer, in points.
const minFooter = 28

// newLayout returns the layout for the parameters. turn makes auto mean landscape.
func newLayout(p fileops.Params, margin float64, turn bool) layout {
	l := layout{margin: margin, numbers: p.Bool("page_numbers"), colours: p.Bool("print_background")}
	if p.Has("margin") {
		l.margin = p.Float("margin")
	}
	name, orientation := p.Get("page_size"), p.Get("orientation")
	if name == auto {
		name = "a4"
	}
	l.page = paper[name]
	if orientation == landscape || orientation == auto && turn {
		l.page = l.page.turned()
	}
	return l
}

// inner returns the area between the margins.
func (l layout) inner() size {
	return size{l.page.width - 2*l.margin, l.page.height - l.margin - l.bottom()}
}

func (l layout) bottom() float64 {
	if l.numbers {
		return max(l.margin, minFooter)
	}
	return l.margin
}

func (l layout) params() printParams {
	inches := func(points float64) float64 { return points / pointsPerInch }
	p := printParams{
		PaperWidth: inches(l.page.width), PaperHeight: inches(l.page.height),
		MarginTop: inches(l.margin), MarginLeft: inches(l.margin), MarginRight: inches(l.margin), MarginBottom: inches(l.bottom()),
		PrintBackground: l.colours, PreferCSSPageSize: l.follow,
		GenerateTaggedPDF: !l.plain, GenerateDocumentOutline: !l.plain,
	}
	if l.numbers {
		p.DisplayHeaderFooter = true
		p.HeaderTemplate, p.FooterTemplate = "<span></span>", footer
	}
	return p
}

// css returns a length for a style sheet.
func css(points float64) string {
	return strconv.FormatFloat(math.Round(points*1000)/1000, 'f', -1, 64) + "pt"
}
