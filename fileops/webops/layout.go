package webops

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/internal/pagelist"
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
	"a2":      {millimetres(420), millimetres(594)},
	"a3":      {millimetres(297), millimetres(420)},
	"a4":      {millimetres(210), millimetres(297)},
	"a5":      {millimetres(148), millimetres(210)},
	"a6":      {millimetres(105), millimetres(148)},
	"letter":  {612, 792},
	"legal":   {612, 1008},
	"tabloid": {792, 1224},
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
	side := func(name string) fileops.Param {
		return fileops.Param{Name: "margin_" + name, Doc: "Margin at the " + name + " in points; if absent, that of margin.", Type: fileops.Number, Max: 1000}
	}
	template := func(name string) fileops.Param {
		return fileops.Param{
			Name: name, Min: 1, Max: maxTemplate,
			Doc: "HTML of the " + name + " of each page. Elements with the classes pageNumber, totalPages, title and date get these values.",
		}
	}
	length := func(name, doc string) fileops.Param {
		return fileops.Param{Name: name, Doc: doc + " of the paper in points; it takes the place of that of page_size.", Type: fileops.Number, Min: 36, Max: maxSide}
	}
	return fileops.Schema{
		fileops.Enum("convert_to", "Format of the result.", "pdf"),
		{Name: "page_size", Doc: "Size of the page; auto " + sizeDoc + ".", Enum: []string{auto, "a4", "letter", "legal", "a3", "a5", "a2", "a6", "tabloid"}, Default: auto},
		length("paper_width", "Width"), length("paper_height", "Height"),
		{Name: "orientation", Doc: "Orientation of the page; auto " + orientationDoc + ".", Enum: []string{auto, portrait, landscape}, Default: auto},
		{Name: "margin", Doc: marginDoc + ".", Type: fileops.Number, Max: 200},
		side("top"), side("right"), side("bottom"), side("left"),
		{Name: "scale", Doc: "Scale of the content, from 0.1 to 2; if absent, 1.", Type: fileops.Number, Min: 0.1, Max: 2},
		{Name: "pages", Doc: "Pages to print, such as 1-3,5,-1 (negative: from the end), in the order of the document; all by default.", Pattern: pagelist.Pattern, Min: 1, Max: 1000, Scope: fileops.ScopeContent},
		template("header"), template("footer"),
		{Name: "page_numbers", Doc: "Whether each page has its number at the bottom, unless footer is given.", Type: fileops.Boolean, Default: false},
		{Name: "print_background", Doc: "Whether the colours and pictures behind the text are printed.", Type: fileops.Boolean, Default: true},
		{Name: "bookmarks", Doc: "Whether the PDF has the headings as bookmarks; they need tags.", Type: fileops.Boolean, Default: true},
		{Name: "tagged", Doc: "Whether the PDF has tags, which describe its structure to screen readers.", Type: fileops.Boolean, Default: true},
	}
}

// singlePage returns the parameter of web pages that puts all content on one page.
func singlePage() fileops.Param {
	return fileops.Param{Name: "single_page", Doc: "Whether the result has one page, as high as the content, up to 5 m.", Type: fileops.Boolean, Default: false}
}

// drawingParameters returns the parameters that make sense for one drawing.
func drawingParameters(all fileops.Schema) fileops.Schema {
	return slices.DeleteFunc(all, func(p fileops.Param) bool {
		switch p.Name {
		case "header", "footer", "pages", "scale", "bookmarks":
			return true
		}
		return false
	})
}

// A layout is the page layout, from the parameters and the document.
type layout struct {
	page    size
	margin  sides
	given   sides // margins from the parameters; NaN if absent
	scale   float64
	header  string // template; "" if there is none
	footer  string
	colours bool
	follow  bool   // @page rules of the document take precedence
	plain   bool   // without tags and bookmarks
	flat    bool   // without bookmarks
	pages   string // list of pages; "" means all
	single  bool   // all content on one page
}

// sides are lengths in points.
type sides struct{ top, right, bottom, left float64 }

// numbered is the template of the page number. The browser fills it in and applies no
// style to it.
const numbered = `<div style="width:100%;text-align:center;font:8px 'Liberation Sans','Noto Sans',sans-serif;color:#555">` +
	`<span class="pageNumber"></span> / <span class="totalPages"></span></div>`

// minEdge is the minimum margin for a header or footer, in points.
const minEdge = 28

// newLayout returns the layout for the parameters. turn makes auto mean landscape.
func newLayout(p fileops.Params, margin float64, turn bool) layout {
	l := layout{
		scale: cmp.Or(p.Float("scale"), 1), pages: p.Get("pages"),
		header: cleanTemplate(p.Get("header")), footer: cleanTemplate(p.Get("footer")),
		colours: p.Bool("print_background"), plain: !p.Bool("tagged"), flat: !p.Bool("bookmarks"),
	}
	if l.footer == "" && p.Bool("page_numbers") {
		l.footer = numbered
	}
	least := sides{}
	if l.header != "" {
		least.top = minEdge
	}
	if l.footer != "" {
		least.bottom = minEdge
	}
	for _, m := range []struct {
		name                 string
		given, result, least *float64
	}{
		{"top", &l.given.top, &l.margin.top, &least.top},
		{"right", &l.given.right, &l.margin.right, &least.right},
		{"bottom", &l.given.bottom, &l.margin.bottom, &least.bottom},
		{"left", &l.given.left, &l.margin.left, &least.left},
	} {
		value := margin
		*m.given = math.NaN()
		for _, name := range []string{"margin", "margin_" + m.name} {
			if p.Has(name) {
				value = p.Float(name)
				*m.given = max(value, *m.least)
			}
		}
		*m.result = max(value, *m.least)
	}
	name, orientation := p.Get("page_size"), p.Get("orientation")
	if name == auto {
		name = "a4"
	}
	l.page = paper[name]
	if orientation == landscape || orientation == auto && turn {
		l.page = l.page.turned()
	}
	l.page = size{cmp.Or(p.Float("paper_width"), l.page.width), cmp.Or(p.Float("paper_height"), l.page.height)}
	return l
}

// sized reports whether the parameters choose the size or orientation of the page.
func sized(p fileops.Params) bool {
	return p.Get("page_size") != auto || p.Get("orientation") != auto || p.Has("paper_width") || p.Has("paper_height")
}

// inner returns the area between the margins, in points of the content.
func (l layout) inner() size {
	return size{(l.page.width - l.margin.left - l.margin.right) / l.scale, (l.page.height - l.margin.top - l.margin.bottom) / l.scale}
}

// rule returns declarations for @page that override the size and margins of the
// document's own style as far as the parameters choose them.
func (l layout) rule(sized bool) string {
	rule := ""
	if sized {
		// Without this rule the style of a page decides its orientation.
		rule = "size: " + css(l.page.width) + " " + css(l.page.height) + " !important; "
	}
	for _, m := range []struct {
		name          string
		given, result float64
	}{
		{"top", l.given.top, l.margin.top}, {"right", l.given.right, l.margin.right},
		{"bottom", l.given.bottom, l.margin.bottom}, {"left", l.given.left, l.margin.left},
	} {
		if sized || !math.IsNaN(m.given) {
			rule += "margin-" + m.name + ": " + css(m.result) + " !important; "
		}
	}
	return rule
}

// chosen returns the page ranges in the browser's form for a document with total pages.
// It returns "" for all pages.
func (l layout) chosen(total int) (string, error) {
	pages, err := pagelist.Parse(l.pages, total)
	if err != nil || len(pages) == total {
		return "", err
	}
	slices.Sort(pages)
	out := ""
	for i := 0; i < len(pages); {
		first := i
		for i++; i < len(pages) && pages[i] == pages[i-1]+1; i++ {
		}
		out += fmt.Sprintf(",%d-%d", pages[first]+1, pages[i-1]+1)
	}
	return out[1:], nil
}

func (l layout) params() printParams {
	inches := func(points float64) float64 { return points / pointsPerInch }
	p := printParams{
		PaperWidth: inches(l.page.width), PaperHeight: inches(l.page.height), Scale: l.scale,
		MarginTop: inches(l.margin.top), MarginLeft: inches(l.margin.left), MarginRight: inches(l.margin.right), MarginBottom: inches(l.margin.bottom),
		PrintBackground: l.colours, PreferCSSPageSize: l.follow,
		GenerateTaggedPDF: !l.plain, GenerateDocumentOutline: !l.plain && !l.flat,
	}
	if l.header != "" || l.footer != "" {
		p.DisplayHeaderFooter = true
		p.HeaderTemplate, p.FooterTemplate = cmp.Or(l.header, "<span></span>"), cmp.Or(l.footer, "<span></span>")
	}
	return p
}

// css returns a length for a style sheet.
func css(points float64) string {
	return strconv.FormatFloat(math.Round(points*1000)/1000, 'f', -1, 64) + "pt"
}
