package webops

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	_ "image/jpeg"
	_ "image/png"
	"maps"
	"path/filepath"
	"testing"

	_ "golang.org/x/image/webp"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/internal/systest"
)

// shoot takes a picture of a page.
func shoot(t *testing.T, page string, args fileops.Args) (image.Image, string, error) {
	t.Helper()
	all := fileops.Args{"convert_to": "png"}
	maps.Copy(all, args)
	path, err := try(t, shared.Screenshot(), "page.html", page, all)
	if err != nil {
		return nil, "", err
	}
	found, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
	systest.NoError(t, err)
	path = found[0]
	b := systest.ReadFile(t, path)
	img, kind, err := image.Decode(bytes.NewReader(b))
	systest.NoError(t, err)
	return img, kind + " " + filepath.Base(path), nil
}

const shotPage = `<!doctype html><style>body { margin: 0; height: 1500px } div { margin: 400px 0 0 20px; width: 300px; height: 200px; background: #f00 }
	@media print { div { background: #00f } }</style><p>text</p><div id="target"></div>`

// The picture has the size and the colours that the parameters choose.
func TestScreenshot(t *testing.T) {
	t.Parallel()
	at := func(img image.Image, x, y int) string {
		c := color.NRGBAModel.Convert(img.At(x, y)).(color.NRGBA)
		return fmt.Sprintf("%02x%02x%02x%02x", c.R&0xf0, c.G&0xf0, c.B&0xf0, c.A&0xf0)
	}
	for name, c := range map[string]struct {
		args  fileops.Args
		w, h  int
		file  string
		x, y  int
		color string
	}{
		"whole page":  {fileops.Args{"width": 800, "height": 600}, 800, 1900, "png page.png", 790, 20, "f0f0f0f0"},
		"clip":        {fileops.Args{"width": 640, "height": 480, "clip": true, "convert_to": "jpeg"}, 640, 480, "jpeg page.jpg", 100, 470, "f00000f0"},
		"selector":    {fileops.Args{"selector": "#target", "density": 2}, 600, 400, "png page.png", 300, 200, "f00000f0"},
		"print":       {fileops.Args{"selector": "#target", "media": "print"}, 300, 200, "png page.png", 150, 100, "0000f0f0"},
		"transparent": {fileops.Args{"width": 400, "height": 100, "clip": true, "transparent": true, "convert_to": "webp"}, 400, 100, "webp page.webp", 390, 90, "00000000"},
	} {
		img, file, err := shoot(t, shotPage, c.args)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		b := img.Bounds()
		if name == "whole page" { // the margins of the paragraph depend on the font
			c.h = b.Dy()
		}
		if b.Dx() != c.w || b.Dy() != c.h || file != c.file || b.Dy() < 100 {
			t.Errorf("%s: %v %s, want %d × %d %s", name, b, file, c.w, c.h, c.file)
		}
		if got := at(img, c.x, c.y); got != c.color {
			t.Errorf("%s: pixel %s, want %s", name, got, c.color)
		}
	}
	img, _, err := shoot(t, `<p id=a></p><script>a.textContent = "x"; a.style = "width: 77px; height: 33px"</script>`, fileops.Args{"javascript": true, "selector": "#a"})
	if err != nil || img.Bounds().Dx() != 77 {
		t.Errorf("scripts: %v, error %v", img, err)
	}
	for _, c := range []struct {
		args fileops.Args
		want error
	}{
		{fileops.Args{"selector": "#missing"}, fileops.ErrParameter},
		{fileops.Args{"selector": "##"}, fileops.ErrParameter},
		{fileops.Args{"density": 4, "width": 8192}, fileops.ErrLimit},
	} {
		if _, _, err := shoot(t, shotPage, c.args); !errors.Is(err, c.want) {
			t.Errorf("%v: error is %v, want one that matches %v", c.args, err, c.want)
		}
	}
}
