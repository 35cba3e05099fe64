package pdfops

import (
	"bytes"
	"fmt"
	"maps"

	"github.com/filewright/filewright/fileops/pdfops/internal/pdf"
	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"
)

// A canvas draws on top of the content of a page.
type canvas struct {
	doc       *pdf.Document
	page      pdf.Page
	names     map[int]string // of resources, by object number
	resources types.Dict     // of the page, once something is drawn
	own       map[string]types.Dict
	blend     string // name of the graphics state that multiplies
	buf       bytes.Buffer
}

// write adds text to the content.
func (c *canvas) write(s string) { c.buf.WriteString(s) }

// draw draws a form XObject, which must be an indirect object.
func (c *canvas) draw(form types.Object, m pdf.Matrix) {
	ref, ok := form.(types.IndirectRef)
	if !ok {
		return
	}
	s := c.doc.Stream(form)
	s.Dict["Type"], s.Dict["Subtype"] = types.Name("XObject"), types.Name("Form")
	name := c.resource("XObject", ref)
	fmt.Fprintf(&c.buf, "q %scm /%s Do Q\n", operands(m[:]...), name)
}

// operands returns numbers for a content stream, each followed by a space.
func operands(v ...float64) string {
	var b []byte
	for _, f := range v {
		b = append(pdf.AppendFloat(b, f), ' ')
	}
	return string(b)
}

// resource adds an object to the resources of the page, unless it is there, and returns
// its name.
func (c *canvas) resource(kind string, ref types.IndirectRef) string {
	nr := ref.ObjectNumber.Value()
	name := c.names[nr]
	if name == "" {
		name = c.add(kind, ref)
		c.names[nr] = name
	}
	return name
}

// multiply saves the graphics state and makes colours darken what is below them.
func (c *canvas) multiply() {
	if c.blend == "" {
		c.blend = c.add("ExtGState", types.Dict{"BM": types.Name("Multiply")})
	}
	fmt.Fprintf(&c.buf, "q /%s gs\n", c.blend)
}

// add adds a resource to the page and returns its name.
func (c *canvas) add(kind string, o types.Object) string {
	if c.resources == nil { // other pages may share them
		c.resources = maps.Clone(c.doc.Dict(c.page.Attr("Resources")))
		if c.resources == nil {
			c.resources = types.Dict{}
		}
		c.page.Dict["Resources"] = c.resources
		c.own = make(map[string]types.Dict)
	}
	own := c.own[kind]
	if own == nil {
		if own = maps.Clone(c.doc.Dict(c.resources[kind])); own == nil {
			own = types.Dict{}
		}
		c.resources[kind], c.own[kind] = own, own
	}
	name := fmt.Sprintf("Fw%d", len(own))
	name = unique(name, func(s string) bool { return own[s] != nil })
	own[name] = o
	return name
}

// finish adds what was drawn to the page. The old content keeps its graphics state
// to itself, even if it does not restore it.
func (c *canvas) finish() {
	if c.buf.Len() == 0 {
		return
	}
	d, p := c.doc, c.page
	contents := types.Array{c.stream("q\n")}
	if parts := d.Array(p.Dict["Contents"]); parts != nil {
		contents = append(contents, parts...)
	} else if d.Stream(p.Dict["Contents"]) != nil {
		contents = append(contents, p.Dict["Contents"])
	}
	open := c.unrestored() + 1
	p.Dict["Contents"] = append(contents, c.stream(string(bytes.Repeat([]byte("Q\n"), open))+c.buf.String()))
}

func (c *canvas) stream(content string) types.IndirectRef {
	s := &types.StreamDict{Dict: types.Dict{}}
	pdf.SetContent(s, pdf.Deflate([]byte(content)), types.PDFFilter{Name: "FlateDecode"})
	return c.doc.Add(s)
}

// unrestored returns how many graphics states the content of the page saves and
// does not restore.
func (c *canvas) unrestored() (open int) {
	b, _ := c.doc.Content(c.page.Dict["Contents"])
	lexer := pdf.NewLexer(b)
	for {
		t := lexer.Next()
		switch {
		case t.Kind == pdf.TokenEnd:
			return open
		case t.Kind != pdf.TokenOperator:
		case t.Text == "q":
			open++
		case t.Text == "Q":
			open = max(0, open-1)
		case t.Text == "ID":
			lexer.SkipInlineImage()
		}
	}
}
