package webops

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math"
	"os"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/charset"
)

// Limits of screenshots.
const (
	maxShotSide   = 16_384     // pixels, the limit of the browser's canvas
	maxShotPixels = 64_000_000 // of a screenshot, width times height
)

// Screenshot returns the action "screenshot" for web pages: a picture of the page as a screen shows it,
// without pages. The window has width × height CSS pixels. The picture is as high as the page, or as the
// window with clip, or it shows the first element for selector. Scripts and what a page can load are as
// for [Engine.Convert].
//
// It fails with [fileops.ErrLimit] if a side of the picture is longer than 16,384 pixels, or if it has
// more than 64 megapixels, and with [fileops.ErrParameter] if selector has no visible element.
func (e *Engine) Screenshot() fileops.Action {
	side := func(name string, usual int) fileops.Param {
		return fileops.Param{Name: name, Doc: "Inner " + name + " of the window in CSS pixels.", Type: fileops.Integer, Min: 1, Max: 8192, Default: usual}
	}
	schema := fileops.Schema{
		{Name: "convert_to", Doc: "Format of the picture.", Enum: []string{"png", "jpg", "webp"}, Default: "png", Aliases: map[string]string{"jpeg": "jpg"}},
		side("width", 1280), side("height", 720),
		{Name: "clip", Doc: "Whether the picture ends at the bottom of the window; otherwise it shows the whole page.", Type: fileops.Boolean, Default: false},
		{Name: "selector", Doc: "CSS selector of the element to show; the whole page by default.", Min: 1, Max: 1000},
		{Name: "density", Doc: "Pixels of the picture for each CSS pixel.", Type: fileops.Number, Min: 0.1, Max: 4, Default: 1.0},
		{Name: "quality", Doc: "Quality of a jpg or webp; if absent, 90.", Type: fileops.Integer, Min: 1, Max: 100},
		{Name: "transparent", Doc: "Whether the picture is transparent where the page has no background; png and webp only.", Type: fileops.Boolean, Default: false},
	}
	for _, p := range scriptParameters() {
		if p.Name != "media" { // a screenshot shows what a screen shows, unless the caller wants the printed style
			schema = append(schema, p)
			continue
		}
		p.Enum, p.Default = []string{screen, "print"}, screen
		schema = append(schema, p)
	}
	return fileops.Func(fileops.Spec{
		Name: "screenshot", Engine: e.prog.Name + " " + e.prog.Version, Family: "web",
		Summary: "Takes a picture of a web page.",
		Accepts: []fileops.Accept{{Formats: []format.Format{format.HTML}, Params: schema}},
	}, e.screenshot)
}

func (e *Engine) screenshot(ctx context.Context, job *fileops.Job) error {
	b, err := job.Input().ReadAll(maxText)
	if err != nil {
		return err
	}
	p := job.Params
	to := format.Format(p.Get("convert_to"))
	pg := page{
		html: prepare(charset.DecodeHTML(b)), title: format.Base(job.Input().Name()), media: p.Get("media"),
		lost: func(l losses) { l.warn(job) }, most: maxOutput,
		shot: &shot{
			to: to, width: p.Int("width"), height: p.Int("height"), clip: p.Bool("clip"), selector: p.Get("selector"),
			density: p.Float("density"), quality: cmp.Or(p.Int("quality"), 90), clear: p.Bool("transparent") && to != format.JPG,
		},
	}
	if pg.features, err = mediaFeatures(p); err != nil {
		return err
	}
	if pg.scripts, err = newScripts(job, e.pool.opts.ScriptTime); err != nil {
		return err
	}
	if most := job.MaxOutput(); most > 0 {
		pg.most = min(pg.most, most)
	}
	return e.write(ctx, job, pg, to)
}

// A shot says which picture of a page is taken.
type shot struct {
	to            format.Format
	width, height int // of the window in CSS pixels
	clip          bool
	selector      string
	density       float64
	quality       int
	clear         bool
}

// window sets the size and background of the window.
func (s *session) window(ctx context.Context, sh *shot) error {
	err := s.call(ctx, "Emulation.setDeviceMetricsOverride", params{"width": sh.width, "height": sh.height, "deviceScaleFactor": sh.density, "mobile": false}, nil)
	if err != nil || !sh.clear {
		return err
	}
	return s.call(ctx, "Emulation.setDefaultBackgroundColorOverride", params{"color": params{"r": 0, "g": 0, "b": 0, "a": 0}}, nil)
}

// A box is a rectangle of a page in CSS pixels.
type box struct {
	X      float64 `json:"x"`
	Y      float64 `json:"y"`
	Width  float64 `json:"width"`
	Height float64 `json:"height"`
}

// area returns the part of the page that the picture shows.
func (s *session) area(ctx context.Context, sh *shot) (b box, err error) {
	if sh.selector == "" {
		var m struct {
			Content box `json:"cssContentSize"`
		}
		if err := s.call(ctx, "Page.getLayoutMetrics", nil, &m); err != nil {
			return b, err
		}
		b = box{0, 0, float64(sh.width), math.Max(math.Ceil(m.Content.Height), 1)}
		if sh.clip {
			b.Height = float64(sh.height)
		}
		return b, nil
	}
	selector, err := json.Marshal(sh.selector)
	if err != nil {
		return b, err
	}
	world, err := s.ownWorld(ctx)
	if err != nil {
		return b, err
	}
	var got struct {
		Result struct {
			Value *box `json:"value"`
		} `json:"result"`
		ExceptionDetails *exception `json:"exceptionDetails"`
	}
	call := params{"contextId": world, "returnByValue": true, "silent": true, "expression": `(() => {
		const e = document.querySelector(` + string(selector) + `);
		if (!e) return null;
		const r = e.getBoundingClientRect();
		return {x: r.x + scrollX, y: r.y + scrollY, width: r.width, height: r.height};
	})()`}
	if err := s.call(ctx, "Runtime.evaluate", call, &got); err != nil {
		return b, err
	}
	switch v := got.Result.Value; {
	case got.ExceptionDetails != nil:
		return b, &fileops.ParamError{Param: "selector", Reason: "is not valid: " + oneLine(got.ExceptionDetails.Exception.Description)}
	case v == nil || v.Width < 1 || v.Height < 1:
		return b, &fileops.ParamError{Param: "selector", Reason: "matches no visible element"}
	default:
		return *v, nil
	}
}

// capture writes the picture of the page to the file at path.
func (s *session) capture(ctx context.Context, sh *shot, path string, most int64) error {
	area, err := s.area(ctx, sh)
	if err != nil {
		return err
	}
	w, h := area.Width*sh.density, area.Height*sh.density
	switch {
	case w > maxShotSide || h > maxShotSide:
		return fileops.Fail(fileops.ErrLimit, nil, "the picture would have %.0f × %.0f pixels; a side may have %d", w, h, maxShotSide)
	case w*h > maxShotPixels:
		return fileops.Fail(fileops.ErrLimit, nil, "the picture would have %.0f × %.0f pixels, more than %d megapixels", w, h, maxShotPixels/1_000_000)
	}
	call := params{
		"format": map[format.Format]string{format.JPG: "jpeg"}[sh.to], "captureBeyondViewport": true,
		"clip": params{"x": area.X, "y": area.Y, "width": area.Width, "height": area.Height, "scale": 1},
	}
	if call["format"] == "" {
		call["format"] = string(sh.to)
	}
	if sh.to != format.PNG {
		call["quality"] = sh.quality
	}
	var got struct {
		Data string `json:"data"`
	}
	if err := s.call(ctx, "Page.captureScreenshot", call, &got); err != nil {
		var refused *protocolError
		if errors.As(err, &refused) {
			return fileops.Fail(fileops.ErrEngine, err, "the browser could not take a picture of the page")
		}
		return err
	}
	b, err := base64.StdEncoding.DecodeString(got.Data)
	switch {
	case err != nil:
		return err
	case int64(len(b)) > most:
		return fileops.Fail(fileops.ErrLimit, nil, "the result has more than the limit of %d bytes", most)
	}
	return os.WriteFile(path, b, 0o600)
}
