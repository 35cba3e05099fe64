package mediaops

import (
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"

	ffmpeg "github.com/u2takey/ffmpeg-go"
	"golang.org/x/image/draw"
	"golang.org/x/image/math/f64"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/imagefile"
)

// maxStamp limits the pixels of a picture to draw, which is held in memory.
const maxStamp = 16_000_000

// Watermark returns the action "watermark" for video. It draws "text", white with a dark
// outline, or the picture "image_key" over every frame. "scale" is the width of the mark
// as a part of the width of the frame. A mark that would be higher than the frame is drawn
// smaller. The result has the format, sound, tags and subtitles of the input; the picture
// is encoded at high quality. Text needs an ffmpeg with libass.
func (e *Engine) Watermark() fileops.Action {
	spec := fileops.Spec{Name: "watermark", Engine: e.name(), Family: "media", Summary: "Draws a text or a picture over videos."}
	if formats := e.rewritten(func(t target) bool { return t.kind == video }); len(formats) > 0 {
		params := fileops.Watermark(e.letters, format.PNG, format.JPG)
		spec.Accepts = []fileops.Accept{{Formats: formats, Params: params, Changes: fileops.WatermarkMarks(params)}}
	}
	return fileops.Func(spec, e.watermark)
}

func (e *Engine) watermark(ctx context.Context, job *fileops.Job) error {
	e = e.within(job)
	in := job.Input()
	t, m, err := e.own(ctx, job)
	if err != nil {
		return err
	}
	v, err := m.video()
	if err != nil {
		return err
	}
	r := request{time: -1, volume: -1, crf: t.fine()}
	w, h := t.shape(r).size(v)
	if r.stamp, err = e.stamp(ctx, job, w, h); err != nil {
		return err
	}
	return job.WriteFile(in.Name(), func(path string) error { return e.transcode(ctx, job, m, t, r, path) })
}

// fine returns the constant rate factor for results that should look like their input, or
// 0 for the usual quality of the encoder.
func (t target) fine() int {
	if maxCRF[t.video] == 0 {
		return 0
	}
	return map[string]int{"libx264": 18, "libvpx-vp9": 24}[t.video]
}

// A stamp is a picture that is drawn over every frame.
type stamp struct {
	path string // of a PNG file
	x, y int
}

// over draws a stamp over pictures. s may be nil.
func (s *stamp) over(pictures node, pixels string) node {
	if s == nil {
		return pictures
	}
	drawn := ffmpeg.Filter([]node{pictures, ownInput(s.path, "png_pipe")}, "overlay", ffmpeg.Args{fmt.Sprintf("x=%d", s.x), fmt.Sprintf("y=%d", s.y)})
	if pixels == "" {
		return drawn
	}
	return filter(drawn, step{"format", pixels})
}

// stamp makes the stamp that the parameters of job describe, for frames of w × h pixels.
func (e *Engine) stamp(ctx context.Context, job *fileops.Job, w, h int) (*stamp, error) {
	l := markLayout{position: job.Params.Get("position"), scale: fileops.WatermarkScale(job.Params), w: w, h: h}
	if l.position == "diagonal" {
		l.angle = math.Atan2(float64(h), float64(w))
	}
	var mark *image.RGBA
	var err error
	if f := job.Extra["image_key"]; f != nil {
		mark, err = l.picture(f)
	} else {
		mark, err = e.lettering(ctx, job, l, job.Params.Get("text"))
	}
	if err != nil {
		return nil, err
	}
	drawn, at := l.arrange(l.turned(mark), job.Params.Float("opacity"))
	dir, err := job.Dir()
	if err != nil {
		return nil, err
	}
	s := &stamp{path: filepath.Join(dir, "stamp.png"), x: at.X, y: at.Y}
	out, err := os.OpenFile(s.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	return s, errors.Join((&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(out, drawn), out.Close())
}

// A markLayout says how large a mark is and where it is in frames of w × h pixels.
type markLayout struct {
	position string
	scale    float64
	angle    float64 // by which it is turned to the left
	w, h     int
}

// fit returns the factor that makes a mark of w × h pixels as large as it is drawn.
func (l markLayout) fit(w, h float64) float64 {
	sin, cos := math.Sincos(l.angle)
	return min(l.scale*float64(l.w)/(w*cos+h*sin), 0.9*float64(l.h)/(w*sin+h*cos))
}

// picture returns the picture in f, upright and as large as it is drawn.
func (l markLayout) picture(f *fileops.File) (*image.RGBA, error) {
	bad := func(reason string, a ...any) (*image.RGBA, error) {
		return nil, &fileops.ParamError{Param: "image_key", Reason: fmt.Sprintf(reason, a...)}
	}
	read, config := png.Decode, png.DecodeConfig
	orientation := 1
	if f.Format() == format.JPG {
		read, config = jpeg.Decode, jpeg.DecodeConfig
		b, err := f.ReadAll(maxStamp * 4)
		if err != nil {
			return bad("has more than %d bytes", maxStamp*4)
		}
		if info, err := imagefile.ReadJPEG(b); err == nil {
			orientation = max(1, info.Orientation)
		}
	}
	c, err := config(f.Reader())
	if err != nil {
		return bad("is a picture that is damaged and cannot be read")
	}
	if c.Width <= 0 || c.Height <= 0 || c.Width > maxStamp/c.Height {
		return bad("is a picture of %d × %d pixels, more than the limit of %d megapixels; make it smaller first", c.Width, c.Height, maxStamp/1_000_000)
	}
	m, err := read(f.Reader())
	if err != nil {
		return bad("is a picture that is damaged and cannot be read")
	}
	w, h := float64(c.Width), float64(c.Height)
	if orientation >= 5 {
		w, h = h, w
	}
	k := l.fit(w, h)
	out := image.NewRGBA(image.Rect(0, 0, side(w*k), side(h*k)))
	t := upright(orientation, float64(c.Width), float64(c.Height), float64(out.Rect.Dx())/w, float64(out.Rect.Dy())/h)
	// The kernel covers several pixels of a large source, so fine lines do not break.
	draw.CatmullRom.Transform(out, t, m, m.Bounds(), draw.Src, nil)
	return out, nil
}

func side(x float64) int { return max(1, int(math.Round(x))) }

// upright returns the transformation that turns a picture of w × h pixels with an EXIF
// orientation (Exif 2.3, table 5) upright and then scales it by kx and ky.
func upright(orientation int, w, h, kx, ky float64) f64.Aff3 {
	a := map[int]f64.Aff3{
		1: {1, 0, 0, 0, 1, 0}, 2: {-1, 0, w, 0, 1, 0}, 3: {-1, 0, w, 0, -1, h}, 4: {1, 0, 0, 0, -1, h},
		5: {0, 1, 0, 1, 0, 0}, 6: {0, -1, h, 1, 0, 0}, 7: {0, -1, h, -1, 0, w}, 8: {0, 1, 0, -1, 0, w},
	}[min(orientation, 8)]
	for i := range 3 {
		a[i], a[3+i] = a[i]*kx, a[3+i]*ky
	}
	return a
}

// turned returns a mark turned by the angle of l.
func (l markLayout) turned(m *image.RGBA) *image.RGBA {
	if l.angle == 0 {
		return m
	}
	sin, cos := math.Sincos(l.angle)
	w, h := float64(m.Rect.Dx()), float64(m.Rect.Dy())
	out := image.NewRGBA(image.Rect(0, 0, side(w*cos+h*sin), side(w*sin+h*cos)))
	draw.CatmullRom.Transform(out, f64.Aff3{cos, sin, 0, -sin, cos, w * sin}, m, m.Rect, draw.Over, nil)
	return out
}

// arrange returns what is drawn over frames, and where: a mark once, or repeated.
func (l markLayout) arrange(m *image.RGBA, opacity float64) (*image.RGBA, image.Point) {
	for i, v := range m.Pix {
		m.Pix[i] = uint8(math.Round(float64(v) * opacity))
	}
	w, h := m.Rect.Dx(), m.Rect.Dy()
	if l.position == "tile" {
		out := image.NewRGBA(image.Rect(0, 0, l.w, l.h))
		for y := h / 4; y < l.h; y += h + h/2 + 1 {
			for x := w / 4; x < l.w; x += w + w/2 + 1 {
				draw.Copy(out, image.Pt(x, y), m, m.Rect, draw.Src, nil)
			}
		}
		return out, image.Point{}
	}
	gap := min(l.w, l.h) / 30
	x, y := (l.w-w)/2, (l.h-h)/2
	down, across, _ := strings.Cut(l.position, "-")
	switch down {
	case "top":
		y = gap
	case "bottom":
		y = l.h - h - gap
	}
	switch across {
	case "left":
		x = gap
	case "right":
		x = l.w - w - gap
	}
	const even = ^1 // two pixels share their colour in most videos
	return m, image.Pt(max(0, min(x, l.w-w))&even, max(0, min(y, l.h-h))&even)
}

// lettering returns a text as large as it is drawn. libass draws it, so that it can be in
// any script for which the host has a font.
func (e *Engine) lettering(ctx context.Context, job *fileops.Job, l markLayout, text string) (*image.RGBA, error) {
	text = strings.TrimSpace(text)
	const least = 16 // pixels of a side
	if min(l.w, l.h) < least {
		return nil, &fileops.ParamError{Param: "text", Reason: fmt.Sprintf("does not fit into a video of %d × %d pixels", l.w, l.h)}
	}
	size := l.fit(float64(longestLine(text))*0.5, 1.2*float64(strings.Count(text, "\n")+1))
	for range 4 { // the extent grows almost, but not exactly, with the size
		m, err := e.drawText(ctx, job, l, text, size)
		if err != nil {
			return nil, err
		}
		box := visible(m)
		switch {
		case box.Empty():
			return nil, &fileops.ParamError{Param: "text", Reason: "has no visible characters"}
		case box.Dx() >= l.w || box.Dy() >= l.h: // cut off
			size /= 2
			continue
		}
		k := l.fit(float64(box.Dx()), float64(box.Dy()))
		if k > 0.97 && k < 1.03 {
			out := image.NewRGBA(image.Rect(0, 0, box.Dx(), box.Dy()))
			draw.Copy(out, image.Point{}, m, box, draw.Src, nil)
			return out, nil
		}
		size *= k
		if size < 3 { // pixels
			break
		}
	}
	return nil, &fileops.ParamError{Param: "text", Reason: "is too long for this video"}
}

// longestLine returns the number of characters of the longest line.
func longestLine(text string) (most int) {
	for line := range strings.Lines(text) {
		most = max(most, len([]rune(line)))
	}
	return max(most, 1)
}

// visible returns the box around the pixels that are not transparent.
func visible(m *image.RGBA) (box image.Rectangle) {
	for y := range m.Rect.Dy() {
		row := m.Pix[y*m.Stride:][:4*m.Rect.Dx()]
		for x := range m.Rect.Dx() {
			if row[4*x+3] > 8 {
				box = box.Union(image.Rect(x, y, x+1, y+1))
			}
		}
	}
	return box
}

// script is a subtitle for the whole duration, in the format Advanced SubStation Alpha.
const script = `[Script Info]
ScriptType: v4.00+
PlayResX: %d
PlayResY: %d
WrapStyle: 2
ScaledBorderAndShadow: yes

[V4+ Styles]
Format: Name, Fontname, Fontsize, PrimaryColour, OutlineColour, BackColour, Bold, BorderStyle, Outline, Shadow, Alignment, MarginL, MarginR, MarginV, Encoding
Style: Mark, Sans, %.2f, &H00FFFFFF, &H60000000, &H60000000, -1, 1, %.2f, 0, 5, 0, 0, 0, -1

[Events]
Format: Layer, Start, End, Style, Text
Dialogue: 0, 0:00:00.00, 0:01:00.00, Mark, %s
`

// drawText draws a text in the middle of a transparent picture as large as a frame.
func (e *Engine) drawText(ctx context.Context, job *fileops.Job, l markLayout, text string, size float64) (*image.RGBA, error) {
	dir, err := job.Dir()
	if err != nil {
		return nil, err
	}
	const name = "stamp.ass" // it needs no quotes in a filter
	// A backslash and a brace would start commands; the word joiner after a backslash is
	// invisible.
	safe := strings.NewReplacer("\r\n", `\N`, "\n", `\N`, "\r", `\N`, `\`, "\\\u2060", "{", `\{`).Replace(text)
	if err := os.WriteFile(filepath.Join(dir, name), fmt.Appendf(nil, script, l.w, l.h, size, size/24, safe), 0o600); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "stamp.rgba")
	bytes := int64(4 * l.w * l.h)
	out := func() node {
		blank := ffmpeg.Input(fmt.Sprintf("color=c=black@0:s=%dx%d:r=25,format=rgba", l.w, l.h), opts{"f": "lavfi", "protocol_whitelist": "file,pipe", "format_whitelist": "lavfi"})
		drawn := filter(blank, step{"subtitles", "filename=" + name, "alpha=1"}, step{"format", "rgba"})
		return e.output(path, "rawvideo", bytes+1, []node{drawn}, opts{"c:v:0": "rawvideo", "frames:v:0": 1})
	}
	if err := e.run(ctx, job, pass{out: out, path: path, limit: bytes + 1, still: true}); err != nil {
		return nil, err
	}
	m := image.NewRGBA(image.Rect(0, 0, l.w, l.h))
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if _, err := io.ReadFull(f, m.Pix); err != nil {
		return nil, fileops.Fail(fileops.ErrEngine, err, "")
	}
	clamp(m)
	return m, nil
}

// clamp makes the samples of a picture premultiplied ones, which are at most their
// opacity.
func clamp(m *image.RGBA) {
	for i := 0; i < len(m.Pix); i += 4 {
		c := color.RGBA{m.Pix[i], m.Pix[i+1], m.Pix[i+2], m.Pix[i+3]}
		m.Pix[i], m.Pix[i+1], m.Pix[i+2] = min(c.R, c.A), min(c.G, c.A), min(c.B, c.A)
	}
}
