package imageops

import (
	"fmt"
	"image"
	"math"
	"strconv"
	"strings"

	"github.com/filewright/filewright/fileops"
)

// Values of the parameter flip.
const (
	flipHorizontal = "horizontal" // left and right change places
	flipVertical   = "vertical"   // top and bottom change places
)

// cropPattern is the regular expression of the parameter crop.
const cropPattern = `[0-9]{1,6},[0-9]{1,6},[1-9][0-9]{0,5},[1-9][0-9]{0,5}|[0-9]{1,5}(\.[0-9]{1,4})?:[0-9]{1,5}(\.[0-9]{1,4})?`

// A cropping is the part of an upright picture to keep: a box in pixels, or the largest
// centred part with a ratio of width to height. The zero value keeps everything.
type cropping struct {
	box   image.Rectangle
	ratio float64
}

// parseCrop reads a value of the parameter crop: "x,y,width,height" or "width:height".
func parseCrop(s string) (cropping, error) {
	if s == "" {
		return cropping{}, nil
	}
	if w, h, ok := strings.Cut(s, ":"); ok {
		across, err1 := strconv.ParseFloat(w, 64)
		down, err2 := strconv.ParseFloat(h, 64)
		if err1 != nil || err2 != nil || !(across > 0 && down > 0) {
			return cropping{}, badCrop("must be a box x,y,width,height or a ratio such as 16:9")
		}
		return cropping{ratio: across / down}, nil
	}
	var x, y, w, h int
	if n, err := fmt.Sscanf(s, "%d,%d,%d,%d", &x, &y, &w, &h); n != 4 || err != nil || w < 1 || h < 1 {
		return cropping{}, badCrop("must be a box x,y,width,height or a ratio such as 16:9")
	}
	return cropping{box: image.Rect(x, y, x+w, y+h)}, nil
}

func badCrop(format string, args ...any) error {
	return &fileops.ParamError{Param: "crop", Reason: fmt.Sprintf(format, args...)}
}

// of returns the part of an upright picture of w × h pixels to keep. It fails with
// *[fileops.ParamError] if the box is not within the picture.
func (c cropping) of(w, h int) (image.Rectangle, error) {
	all := image.Rect(0, 0, w, h)
	switch {
	case !c.box.Empty():
		if !c.box.In(all) {
			return all, badCrop("is not within the picture, which has %d × %d pixels", w, h)
		}
		return c.box, nil
	case c.ratio > 0:
		cw, ch := w, h
		if c.ratio*float64(h) < float64(w) {
			cw = max(1, int(math.Round(c.ratio*float64(h))))
		} else {
			ch = max(1, int(math.Round(float64(w)/c.ratio)))
		}
		x, y := (w-cw)/2, (h-ch)/2
		return image.Rect(x, y, x+cw, y+ch), nil
	}
	return all, nil
}

// reshapes reports whether a plan crops, rotates, flips or picks frames.
func (t plan) reshapes() bool {
	return t.crop != (cropping{}) || t.turn != 0 || t.flip != "" || len(t.frames) > 0
}

// shaped returns the size of an upright picture of w × h pixels after the plan has
// cropped and rotated it.
func (t plan) shaped(w, h int) (width, height int) {
	if r, err := t.crop.of(w, h); err == nil {
		w, h = r.Dx(), r.Dy()
	}
	if t.turn%180 != 0 {
		return h, w
	}
	return w, h
}
