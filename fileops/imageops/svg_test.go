//go:build cgo

package imageops_test

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"image/color"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/internal/systest"
)

// drawing returns an SVG with all kinds of editor data.
func drawing() string {
	var b strings.Builder
	b.WriteString(`<?xml version="1.0" encoding="UTF-8" standalone="no"?>
<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd">
<!-- Created with an editor -->
<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"
  xmlns:inkscape="http://www.inkscape.org/namespaces/inkscape" xmlns:sodipodi="http://sodipodi.sourceforge.net/DTD/sodipodi-0.dtd"
  xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:dc="http://purl.org/dc/elements/1.1/"
  width="200mm" height="150mm" viewBox="0 0 200 150" id="root" inkscape:version="1.2">
  <title>A   title</title>
  <metadata><rdf:RDF><dc:title>secret author</dc:title></rdf:RDF></metadata>
  <sodipodi:namedview id="base" inkscape:zoom="3.14"><inkscape:grid type="xy"/></sodipodi:namedview>
  <defs>
    <linearGradient id="fade" x1="0.123456789" x2="1"><stop offset="0" stop-color="#ff0000"/><stop offset="1" stop-color="#0000ff"/></linearGradient>
    <style type="text/css"><!-- .a > .b { fill: url(#fade) } --> .c  { stroke : green }</style>
  </defs>
  <!-- the curves -->
  <g inkscape:label="Layer 1" inkscape:groupmode="layer" id="layer1" style="fill:none;-inkscape-font-specification:'Sans Bold';stroke:#222222">
`)
	for k := range 12 {
		fmt.Fprintf(&b, "    <path class=\"c\" id=\"p%d\" sodipodi:nodetypes=\"ccc\" d=\"m %.12f,%.12f ", k, 10.123456789+float64(k), 20.987654321)
		for i := range 40 {
			fmt.Fprintf(&b, "c %.12f,%.12f %.12f,%.12f %.12f,%.12f ", 0.33333333333, math.Sin(float64(i))/3, 1.1111111111, math.Cos(float64(i*k)), 3.70370370370, 0.1234567891)
		}
		b.WriteString("\" />\n")
	}
	b.WriteString(`  </g>
  <path d="M150 20a25.123456789 12.3456789 30 11.5.5l3 3h-5.000001v5ZM170,100 A 10 10 0 0 1 190,100 Z" fill="url(#fade)"/>
  <a xlink:href="https://example.com/?a=1&amp;b=2"><rect x="20.000000001" y="100.5000000" width="60.12345678" height="12.000" rx="2" fill="#ffcc00"/></a>
  <text x="20.123456" y="130" font-size="8" xml:space="preserve">Hello,  <tspan font-weight="bold">big</tspan> <tspan>world</tspan> &lt;3</text>
  <polygon points="100.123456789,100.987654321 120.5555555,110.4444444 95.1111111,118.0000000" fill="teal"/>
</svg>
`)
	return b.String()
}

// rendered draws an SVG with librsvg.
func rendered(t testing.TB, f *fileops.File) *fileops.File {
	t.Helper()
	return made(t, "out.png", "vips", "svgload", save(t, f), "OUT", "--dpi", "144")
}

// said returns the texts, and the attributes that can be referenced.
func said(t testing.TB, svg []byte) (out []string) {
	t.Helper()
	dec := xml.NewDecoder(bytes.NewReader(svg))
	dropped := 0
	for {
		tok, err := dec.Token()
		if err == io.EOF {
			return out
		}
		systest.NoError(t, err)
		switch tok := tok.(type) {
		case xml.StartElement:
			if dropped > 0 || tok.Name.Local == "metadata" || strings.Contains(tok.Name.Space, "sodipodi") {
				dropped++
				continue
			}
			for _, a := range tok.Attr {
				if slices.Contains([]string{"id", "class", "href", "fill", "transform", "viewBox", "onclick"}, a.Name.Local) {
					out = append(out, a.Name.Local+"="+a.Value)
				}
			}
		case xml.EndElement:
			dropped = max(0, dropped-1)
		case xml.CharData:
			if s := string(tok); dropped == 0 && strings.TrimSpace(s) != "" {
				out = append(out, s)
			}
		}
	}
}

func TestCompressDrawing(t *testing.T) {
	t.Parallel()
	in := fileops.Bytes("in.svg", []byte(drawing()))
	before := decoded(t, rendered(t, in))
	last := in.Size()
	for _, level := range []string{"less", "recommended", "extreme"} {
		out := one(t, engine(t).Compress(), fileops.Args{"compression_value": level}, in)
		if out.Size() >= last {
			t.Errorf("%s: %d bytes after %d", level, out.Size(), last)
		}
		last = out.Size()
		got := string(content(t, out))
		for _, gone := range []string{"inkscape", "sodipodi", "secret author", "Created with", "the curves", "0.33333333"} {
			if strings.Contains(got, gone) {
				t.Errorf("%s: %q is still there", level, gone)
			}
		}
		if want, got := said(t, content(t, in)), said(t, content(t, out)); !slices.Equal(want, got) {
			t.Errorf("%s: texts and references became\n%q\nwant\n%q", level, got, want)
		}
		if !strings.Contains(got, "</tspan> <tspan>") || !strings.Contains(got, "<!-- .a > .b") {
			t.Errorf("%s: white space or a style has changed", level)
		}
		after := decoded(t, rendered(t, out))
		if s := min(ssim(before, after, color.White), ssim(before, after, color.Black)); s < 0.998 {
			t.Errorf("%s: similarity %.4f", level, s)
		}
		t.Logf("%s: %.1f %%", level, 100*float64(out.Size())/float64(in.Size()))
	}
}

// TestCompressDrawingWithScript checks that nothing changes that a script could
// read.
func TestCompressDrawingWithScript(t *testing.T) {
	t.Parallel()
	const body = `<rect data-x="1" xmlns:i="http://www.inkscape.org/namespaces/inkscape" i:label="q" onclick="go(evt)" x="1.123456789123" y="2" width="50" height="50"/><script>function go(e) { /* <!-- kept --> */ }</script></svg>`
	in := fileops.Bytes("in.svg", []byte(`<svg xmlns="http://www.w3.org/2000/svg" width="100" height="100"><!-- `+strings.Repeat("words ", 100)+`-->`+body))
	out := one(t, engine(t).Compress(), fileops.Args{"compression_value": "extreme"}, in)
	if got := string(content(t, out)); got != `<svg xmlns="http://www.w3.org/2000/svg" width="100" height="100">`+body {
		t.Errorf("got %s", got)
	}
}

// TestCompressOddDrawings checks that drawings that cannot be parsed safely stay
// unchanged.
func TestCompressOddDrawings(t *testing.T) {
	t.Parallel()
	const blank = "          \n          \n          \n          \n"
	for name, s := range map[string]string{
		"entities":   `<!DOCTYPE svg [<!ENTITY c "#00ff00">]><svg xmlns="http://www.w3.org/2000/svg" width="40" height="40">` + blank + `<rect width="20" height="20" fill="&c;"/></svg>`,
		"latin-1":    `<?xml version="1.0" encoding="ISO-8859-1"?><svg xmlns="http://www.w3.org/2000/svg" width="40" height="40">` + blank + "<text y=\"20\">\xe4</text></svg>",
		"scaled up":  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1000 1000"><g transform="scale(10000)">` + blank + `<path d="M0.012345 0.012345L0.08 0.02L0.05 0.09z"/></g></svg>`,
		"bad path":   `<svg xmlns="http://www.w3.org/2000/svg" width="40" height="40">` + blank + `<path d="M 0 0 L 10 10 20.00000 x 5.000000"/></svg>`,
		"percentage": `<svg xmlns="http://www.w3.org/2000/svg" width="40" height="40">` + blank + `<rect x="10.000000%" width="50%" height="2em"/></svg>`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := fileops.Bytes("in.svg", []byte(s))
			out := one(t, engine(t).Compress(), fileops.Args{"compression_value": "extreme"}, in)
			before, after := decoded(t, rendered(t, in)), decoded(t, rendered(t, out))
			if sim := min(ssim(before, after, color.White), ssim(before, after, color.Black)); sim < 0.99 {
				t.Errorf("similarity %.4f: %s", sim, content(t, out))
			}
		})
	}
}

// Drawings without an area, such as collections of symbols, and those in UTF-16 are
// intact: they stay unchanged, and are not called damaged.
func TestCompressKeepsDrawings(t *testing.T) {
	t.Parallel()
	wide := []byte{0xff, 0xfe}
	for _, c := range `<svg xmlns="http://www.w3.org/2000/svg" width="10" height="10"><!-- note --><rect width="5" height="5"/></svg>` {
		wide = append(wide, byte(c), 0)
	}
	const open = `<svg xmlns="http://www.w3.org/2000/svg" `
	for name, s := range map[string]string{
		"symbols":        open + `><symbol id="a" viewBox="0 0 8 8"><path d="M0 0h8"/></symbol></svg>`,
		"hidden symbols": open + `width="0" height="0px"><defs><symbol id="a"><path d="M0 0h8"/></symbol></defs></svg>`,
		"empty box":      open + `viewBox="0 0 0 0"><symbol id="a"><path d="M0 0h8"/></symbol></svg>`,
		"UTF-16":         string(wide),
	} {
		in := fileops.Bytes("in.svg", []byte(s))
		out, err := run(t.Context(), engine(t).Compress(), nil, in)
		if err != nil || len(out) != 1 || string(content(t, out[0])) != s {
			t.Errorf("%s: %d results: %v", name, len(out), err)
		}
		if _, err := run(t.Context(), engine(t).Convert(), fileops.Args{"convert_to": "png"}, in); name != "UTF-16" && fileops.Code(err) != "unsupported_input" {
			t.Errorf("%s to png: %v", name, err)
		}
	}
	broken := fileops.Bytes("in.svg", []byte(open+`><symbol id="a"><path`))
	if _, err := run(t.Context(), engine(t).Compress(), nil, broken); fileops.Code(err) != "corrupt_input" {
		t.Errorf("broken: %v", err)
	}
}
