package imageops

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"image"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/engine"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/imagefile"
)

// A turner turns and mirrors JPEG files without decoding their pixels, with jpegtran
// (Debian package libjpeg-turbo-progs).
type turner struct {
	Path    string `json:"path"` // "" if there is none
	Version string `json:"version"`
}

// jpegtran describes jpegtran without any probed data.
func jpegtran() fileops.Dependency {
	return fileops.Dependency{Name: "jpegtran", Purpose: "turning JPEG photos without losses", Packages: []string{"libjpeg-turbo-progs"}}
}

// findTurner looks for jpegtran.
func findTurner(ctx context.Context, o Options) (turner, error) {
	p, err := o.Sandbox.Find(ctx, []string{"-version"}, cmp.Or(o.JPEGTran, "jpegtran"))
	if err != nil {
		return turner{}, err
	}
	return turner{p.Path, p.Version}, nil
}

// errLossy means that a JPEG file can be turned only by encoding it again.
var errLossy = errors.New("imageops: no lossless transformation")

// turnJPEG returns a JPEG file whose upright picture is turned clockwise and then flipped as
// p says. The pixels are not encoded again, so nothing is lost, and all metadata stay. It
// fails with errLossy if that is impossible: if the sides of the picture are not multiples
// of its blocks, or if parts of the file would not be turned.
func (e *Engine) turnJPEG(ctx context.Context, job *fileops.Job, src source, h header, p plan) ([]byte, error) {
	const baseline, progressive = 0xc0, 0xc2
	info := jpegInfo(src.data)
	if e.turner.Path == "" || src.format != format.JPG || info.Bits != 8 || info.Process < baseline || info.Process > progressive ||
		h.pages > 1 || hasGainMap(src) || hasVideo(src) {
		return nil, errLossy
	}
	in, err := job.Path(job.Input())
	if err != nil {
		return nil, err
	}
	inputs, err := job.InputDir()
	if err != nil {
		return nil, err
	}
	work, err := job.TempDir("turned-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	const name = "turned.jpg"
	args := []string{"-copy", "all", "-perfect", "-optimize"}
	if info.Process == progressive {
		args[len(args)-1] = "-progressive"
	}
	args = append(args, transformation(info.Orientation, p.turn, p.flip)...)
	program := engine.Program{Name: "jpegtran", Path: e.turner.Path, Version: e.turner.Version, Sandbox: e.opts.Sandbox}
	err = program.Run(ctx, engine.Cmd{
		Args: append(args, "-outfile", filepath.Join(work, name), in), Dir: work,
		Access: engine.Access{Read: []string{inputs}},
		Limits: e.opts.Run.Or(engine.Limits{CPU: 2 * time.Minute, Memory: 4 << 30, FileSize: 2*int64(len(src.data)) + 1<<20, Processes: 1}),
	})
	var exit *engine.ExitError
	if errors.As(err, &exit) { // also for a damaged file, about which the codec knows more
		return nil, errLossy
	}
	if err != nil {
		return nil, err
	}
	f, err := engine.Open(work, name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, errLossy
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	b := make([]byte, st.Size())
	if _, err := f.ReadAt(b, 0); err != nil {
		return nil, err
	}
	b = imagefile.Upright(b)
	return b, e.sameTurned(ctx, src, source{b, format.JPG}, p)
}

// sameTurned fails unless a picture shows another one turned and flipped.
func (e *Engine) sameTurned(ctx context.Context, from, to source, p plan) error {
	const side, most = 128, 8 // pixels, and mean difference of samples
	small := plan{width: side, height: side}
	got, err := e.codec.pixels(ctx, to, small)
	if err != nil {
		return fileops.Fail(fileops.ErrEngine, err, "the result cannot be read")
	}
	small.turn, small.flip = p.turn, p.flip
	want, err := e.codec.pixels(ctx, from, small)
	if err != nil {
		return e.blame(ctx, from, p, err)
	}
	if g, w := got.Bounds().Size(), want.Bounds().Size(); max(g.X-w.X, w.X-g.X, g.Y-w.Y, w.Y-g.Y) > 1 {
		return fileops.Fail(fileops.ErrEngine, fmt.Errorf("%v became %v pixels", w, g), "the result has another size")
	}
	if d := meanDifference(got, want); d > most {
		return fileops.Fail(fileops.ErrEngine, fmt.Errorf("the mean difference is %.1f", d), "the result looks different")
	}
	return nil
}

// meanDifference returns the mean difference of the samples of two pictures, from 0 to 255, where
// both have pixels.
func meanDifference(a, b image.Image) float64 {
	var sum, n float64
	size := a.Bounds().Intersect(b.Bounds())
	for y := size.Min.Y; y < size.Max.Y; y++ {
		for x := size.Min.X; x < size.Max.X; x++ {
			r1, g1, b1, _ := a.At(x, y).RGBA()
			r2, g2, b2, _ := b.At(x, y).RGBA()
			for _, d := range []int{int(r1) - int(r2), int(g1) - int(g2), int(b1) - int(b2)} {
				sum += float64(max(d, -d)) / 257
				n++
			}
		}
	}
	return sum / max(n, 1)
}

// transformation returns the arguments of jpegtran for a picture with an orientation of EXIF
// (0 or 1 to 8) that is made upright, turned clockwise and then flipped.
func transformation(orientation, turn int, flip string) []string {
	// Each transformation is a horizontal flip, or none, and then a turn.
	flipped, angle := false, 0
	switch orientation {
	case 2:
		flipped = true
	case 3:
		angle = 180
	case 4:
		flipped, angle = true, 180
	case 5:
		flipped, angle = true, 270
	case 6:
		angle = 90
	case 7:
		flipped, angle = true, 90
	case 8:
		angle = 270
	}
	angle += turn
	switch flip { // a turn and then a flip are the flip and then the opposite turn
	case "horizontal":
		flipped, angle = !flipped, 360-angle%360
	case "vertical":
		flipped, angle = !flipped, 360-angle%360+180
	}
	switch angle %= 360; {
	case !flipped && angle == 0:
		return nil
	case !flipped:
		return []string{"-rotate", fmt.Sprint(angle)}
	case angle == 0:
		return strings.Fields("-flip horizontal")
	case angle == 180:
		return strings.Fields("-flip vertical")
	case angle == 270:
		return []string{"-transpose"}
	default:
		return []string{"-transverse"}
	}
}

// turned turns or mirrors a picture without losses, if that is possible, and reports whether
// it did.
func (e *Engine) turned(ctx context.Context, job *fileops.Job, src source, h header, p plan) (done bool, err error) {
	b, err := e.turnJPEG(ctx, job, src, h, p)
	switch {
	case errors.Is(err, errLossy):
		if e.turner.Path != "" && src.format == format.JPG {
			job.Warn(fileops.WarnRecompressed, "The picture was compressed again, with small losses, because its sides are not multiples of its blocks, or because parts of the file cannot be turned.")
		}
		return false, nil
	case err != nil:
		return false, err
	}
	return true, job.WriteBytes(job.Input().Name(), b)
}
