package documentops

import (
	"context"
	"math"
	"strconv"
	"strings"
)

// A need is the largest display size of a picture over all its uses.
type need struct {
	width, height float64 // inches, of the whole picture including cropped parts
	unknown       bool    // the size of some use is unknown
	fixed         bool    // its pixel size matters, because it is tiled
}

// needs maps each referenced picture to its need.
type needs map[*entry]*need

func (n needs) of(e *entry) *need {
	if n[e] == nil {
		n[e] = new(need)
	}
	return n[e]
}

// emu is the number of English metric units in an inch.
const emu = 914400

// needs determines the display sizes of pictures. The display size is the extent of
// the shape that a picture fills (ISO/IEC 29500-1, 20.1.7.6, 20.1.8.13, 20.1.8.14).
func (p *opc) needs(ctx context.Context) (needs, error) {
	out := make(needs)
	slide, err := p.slideSize(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range p.sources {
		images := make(map[string]*entry)
		for _, l := range s.links {
			if l.to != nil && (l.kind == "image" || l.kind == "hdphoto") {
				images[l.id] = l.to
			}
		}
		part := p.find(s.part)
		if len(images) == 0 || part == nil {
			continue
		}
		text, ok, err := part.text(ctx, maxPart)
		if err != nil {
			return nil, err
		}
		if !ok {
			for _, e := range images {
				out.of(e).fixed = true
			}
			continue
		}
		d := &drawing{images: images, needs: out, slide: slide, scale: [][2]float64{{1, 1}}}
		if err := d.read(text); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// slideSize returns the extent of a slide, or zero if there are no slides.
func (p *opc) slideSize(ctx context.Context) (size [2]float64, err error) {
	e := p.main()
	if e == nil {
		return size, nil
	}
	text, ok, err := e.text(ctx, maxIndex)
	if err != nil || !ok {
		return size, err
	}
	for t, err := range tags(text) {
		if err != nil {
			return size, err
		}
		if !t.closing && t.name() == "sldSz" {
			return extent(t), nil
		}
	}
	return size, nil
}

func extent(t tag) (size [2]float64) {
	for a := range t.attrs() {
		n, err := strconv.ParseInt(a.value, 10, 64)
		switch {
		case err != nil || n < 0:
		case a.name == "cx":
			size[0] = float64(n)
		case a.name == "cy":
			size[1] = float64(n)
		}
	}
	return size
}

// A drawing reads the shapes in a part.
type drawing struct {
	images map[string]*entry // by relationship identifier
	needs  needs
	slide  [2]float64

	open   []string     // open elements, from the root
	shapes []*shape     // open shapes
	scale  [][2]float64 // of the open groups: page units per group unit
	group  [2]float64   // extent of the group whose properties are open
}

// A shape is an object that has an extent and may show pictures.
type shape struct {
	depth int
	size  [2]float64
	fills []fill
}

// A fill is a use of a picture.
type fill struct {
	entry         *entry
	left, top     float64 // cropped fractions of the picture or, if negative, of the shape
	right, bottom float64
	boxW, boxH    float64 // fraction of the shape that is filled
	tiled         bool
}

func isShape(name string) bool {
	switch name {
	case "pic", "sp", "wsp", "cxnSp", "graphicFrame", "bg":
		return true
	}
	return false
}

func (d *drawing) read(text []byte) error {
	for t, err := range tags(text) {
		if err != nil {
			return err
		}
		name := t.name()
		if !t.closing {
			d.start(t, name)
			d.open = append(d.open, name)
			if len(d.open) > 10000 {
				return damaged(errXML)
			}
		}
		if (t.closing || t.empty) && len(d.open) > 0 {
			d.open = d.open[:len(d.open)-1]
			d.end(name)
		}
	}
	return nil
}

func (d *drawing) parent(n int) string {
	if len(d.open) < n {
		return ""
	}
	return d.open[len(d.open)-n]
}

func (d *drawing) start(t tag, name string) {
	var top *shape
	if len(d.shapes) > 0 {
		top = d.shapes[len(d.shapes)-1]
	}
	switch {
	case isShape(name):
		s := &shape{depth: len(d.open)}
		if name == "bg" {
			s.size = d.slide
		}
		d.shapes = append(d.shapes, s)
	case name == "grpSp" || name == "wgp":
		d.scale = append(d.scale, d.scale[len(d.scale)-1])
		d.group = [2]float64{}
	case name == "ext" && d.parent(1) == "xfrm":
		if d.parent(2) == "grpSpPr" {
			d.group = extent(t)
		} else if top != nil && top.size[0] == 0 {
			top.size = extent(t)
		}
	case name == "chExt" && d.parent(2) == "grpSpPr" && len(d.scale) > 1:
		child, now := extent(t), &d.scale[len(d.scale)-1]
		for i := range now {
			if child[i] > 0 && d.group[i] > 0 {
				now[i] *= d.group[i] / child[i]
			}
		}
	case top != nil && len(top.fills) > 0 && d.parent(1) == "blipFill":
		f := &top.fills[len(top.fills)-1]
		switch name {
		case "srcRect":
			f.left, f.top, f.right, f.bottom = inset(t)
		case "tile":
			f.tiled = true
		}
	case name == "fillRect" && top != nil && len(top.fills) > 0:
		f := &top.fills[len(top.fills)-1]
		l, t, r, b := inset(t)
		f.boxW, f.boxH = 1-l-r, 1-t-b
	}
	for a := range t.attrs() {
		e := d.images[a.value]
		if a.prefix == "" || e == nil {
			continue
		}
		switch {
		case name == "blip" && top != nil && d.parent(1) == "blipFill":
			top.fills = append(top.fills, fill{entry: e, boxW: 1, boxH: 1})
		case name == "picture", name == "fill", name == "background": // of a sheet, of a VML shape, of a page
			d.needs.of(e).fixed = true
		default:
			d.needs.of(e).unknown = true
		}
	}
}

// inset parses the edges of a rectangle relative to another, in thousandths of a
// percent or in percentages (ISO/IEC 29500-1, 20.1.10.40).
func inset(t tag) (left, top, right, bottom float64) {
	for a := range t.attrs() {
		v, div := a.value, 100000.0
		if s, ok := strings.CutSuffix(v, "%"); ok {
			v, div = s, 100
		}
		n, err := strconv.ParseFloat(v, 64)
		if err != nil || math.IsNaN(n) || math.Abs(n/div) > 100 {
			continue
		}
		switch n /= div; a.name {
		case "l":
			left = n
		case "t":
			top = n
		case "r":
			right = n
		case "b":
			bottom = n
		}
	}
	return left, top, right, bottom
}

func (d *drawing) end(name string) {
	switch {
	case isShape(name) && len(d.shapes) > 0 && d.shapes[len(d.shapes)-1].depth == len(d.open):
		s := d.shapes[len(d.shapes)-1]
		d.shapes = d.shapes[:len(d.shapes)-1]
		for _, f := range s.fills {
			d.use(s, f)
		}
	case (name == "grpSp" || name == "wgp") && len(d.scale) > 1:
		d.scale = d.scale[:len(d.scale)-1]
	}
}

// use records that a picture fills a shape.
func (d *drawing) use(s *shape, f fill) {
	n := d.needs.of(f.entry)
	k := d.scale[len(d.scale)-1]
	w := s.size[0] * k[0] / emu * f.boxW / max(0.01, 1-max(0, f.left)-max(0, f.right))
	h := s.size[1] * k[1] / emu * f.boxH / max(0.01, 1-max(0, f.top)-max(0, f.bottom))
	switch {
	case f.tiled:
		n.fixed = true
	case w <= 0 || h <= 0:
		n.unknown = true
	default:
		n.width, n.height = max(n.width, w), max(n.height, h)
	}
}
