package webops

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"golang.org/x/net/html/charset"
)

// maxSide is the maximum side of a page in points (ISO 32000-1, annex C.2).
const maxSide = 14400

// svgPage shows a drawing as a picture in a page. It is then not a document of its own
// and cannot reference other files (SVG Integration, 3.6 "secure static mode"). The
// browser prints it as vectors and text.
func (e *Engine) svgPage(_ context.Context, job *fileops.Job, in []byte) (page, error) {
	s, err := svgSize(in)
	if err != nil {
		return page{}, fileops.Fail(fileops.ErrCorruptInput, err, "the drawing is damaged or cannot be read")
	}
	p := job.Params
	l := newLayout(p, 0, s.width > s.height)
	if p.Get("page_size") == auto && !p.Has("paper_width") && !p.Has("paper_height") {
		if p.Get("orientation") != auto && (p.Get("orientation") == landscape) != (s.width > s.height) {
			l.page = s.turned()
		} else {
			l.page = s
		}
		l.page.width += l.margin.left + l.margin.right
		l.page.height += l.margin.top + l.margin.bottom
	}
	inner := l.inner()
	if inner.width < 1 || inner.height < 1 {
		return page{}, fileops.Fail(fileops.ErrUnsupportedInput, nil, "there is no room between the margins")
	}
	if f := min(inner.width/s.width, inner.height/s.height); f < 1 {
		s.width, s.height = s.width*f, s.height*f
	}
	style := fmt.Sprintf("@page { size: %s %s; margin: %s %s %s %s } html, body { margin: 0; height: 100%% } "+
		"body { display: flex; align-items: center; justify-content: center; overflow: hidden } "+
		"img { width: %s; height: %s; flex: none }",
		css(l.page.width), css(l.page.height), css(l.margin.top), css(l.margin.right), css(l.margin.bottom), css(l.margin.left), css(s.width), css(s.height))
	l.follow = true // inches with a few decimals would leave a strip
	name := format.Base(job.Input().Name())
	img := `<img alt="` + html.EscapeString(name) + `" src="data:image/svg+xml;base64,` + base64.StdEncoding.EncodeToString(in) + `">`
	return page{html: document(name, style, img), layout: l, check: true, lost: func(losses) { svgLosses(in).warn(job) }}, nil
}

// drawing returns a decoder that reads drawings as browsers do: in any encoding, and
// damaged ones as far as possible.
func drawing(in []byte) *xml.Decoder {
	d := xml.NewDecoder(bytes.NewReader(in))
	d.Strict = false
	d.CharsetReader = charset.NewReaderLabel
	return d
}

// svgSize returns the natural size of a drawing (SVG 2, 8.2 and CSS Images 3, 5.1): its
// width and height, a missing one computed from its viewBox, and 300 × 150 pixels
// without any.
func svgSize(in []byte) (size, error) {
	d := drawing(in)
	for {
		t, err := d.Token()
		if err != nil {
			return size{}, err
		}
		root, ok := t.(xml.StartElement)
		if !ok {
			continue
		}
		if root.Name.Local != "svg" {
			return size{}, errors.New("the root element is not svg")
		}
		var w, h float64
		var box [4]float64
		for _, a := range root.Attr {
			if a.Name.Space != "" {
				continue
			}
			switch a.Name.Local {
			case "width":
				w = length(a.Value)
			case "height":
				h = length(a.Value)
			case "viewBox":
				for i, f := range strings.Fields(strings.ReplaceAll(a.Value, ",", " ")) {
					if i < len(box) {
						box[i], _ = strconv.ParseFloat(f, 64)
					}
				}
			}
		}
		return naturalSize(w, h, box[2], box[3]), nil
	}
}

func naturalSize(w, h, boxWidth, boxHeight float64) size {
	const px = float64(pointsPerInch) / pixelsPerInch
	ratio := 0.0
	if boxWidth > 0 && boxHeight > 0 && !math.IsInf(boxWidth, 0) && !math.IsInf(boxHeight, 0) {
		ratio = boxWidth / boxHeight
	}
	switch {
	case w > 0 && h > 0:
	case ratio > 0 && w > 0:
		h = w / ratio
	case ratio > 0 && h > 0:
		w = h * ratio
	case ratio > 0:
		w, h = boxWidth*px, boxHeight*px
	case w > 0:
		h = 150 * px
	case h > 0:
		w = 300 * px
	default:
		w, h = 300*px, 150*px
	}
	f := min(1, maxSide/w, maxSide/h)
	return size{max(w*f, 1), max(h*f, 1)}
}

// length returns an absolute length (CSS Values 4, 6.2) in points, or 0 if s is not an
// absolute length.
func length(s string) float64 {
	s = strings.ToLower(strings.TrimSpace(s))
	i := strings.LastIndexAny(s, "0123456789.") + 1
	n, err := strconv.ParseFloat(s[:i], 64)
	if err != nil || n <= 0 || n > 1e6 {
		return 0
	}
	switch s[i:] {
	case "", "px":
		return n * pointsPerInch / pixelsPerInch
	case "pt":
		return n
	case "pc":
		return n * 12
	case "in":
		return n * pointsPerInch
	case "cm":
		return millimetres(10 * n)
	case "mm":
		return millimetres(n)
	case "q":
		return millimetres(n / 4)
	}
	return 0 // relative to an unknown size
}
