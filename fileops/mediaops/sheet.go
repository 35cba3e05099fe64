package mediaops

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"

	ffmpeg "github.com/u2takey/ffmpeg-go"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
)

const (
	maxSheet   = 25_000_000 // pixels of a sheet, which is held in memory
	maxCount   = 400        // pictures of a sheet
	atOnce     = 8          // pictures of one run of ffmpeg, which opens the input for each
	widestWebP = 16383      // pixels of a side
)

// sheetEncoders are the encoders of the formats of sheets. They are read-only.
var sheetEncoders = map[format.Format]string{format.JPG: "mjpeg", format.PNG: "png", format.WebP: "libwebp"}

// Thumbnail returns the action "thumbnail" for sheets of several pictures of a video, side
// by side in rows: "count" of them, or one each "interval" seconds. "width" and "height"
// are the box that each picture fits into.
//
// With count, the video is divided into as many equal parts, and each picture is from the
// middle of a part. With interval, the first picture is from the start.
func (e *Engine) Thumbnail() fileops.Action {
	spec := fileops.Spec{Name: "thumbnail", Engine: e.name(), Family: "media", Summary: "Makes a sheet of pictures of a video."}
	params := fileops.Thumbnail(e.sheets...)
	videos := slices.DeleteFunc(slices.Sorted(maps.Keys(e.sources)), func(f format.Format) bool { return f.Family() != format.Video })
	if params != nil && len(videos) > 0 {
		params = append(params,
			fileops.Param{Name: "count", Type: fileops.Integer, Min: 2, Max: maxCount, OneOf: "spacing", Doc: "Number of pictures of a sheet; width and height are those of each picture."},
			fileops.Param{Name: "interval", Type: fileops.Number, Min: 0.1, Max: 360000, OneOf: "spacing", Doc: "Seconds between the pictures of a sheet, instead of count."},
			fileops.Param{Name: "columns", Type: fileops.Integer, Min: 1, Max: maxCount, Doc: "Pictures in a row of a sheet; without it, the square root of their number, rounded up."},
		)
		spec.Accepts = []fileops.Accept{{Formats: videos, Params: params, Changes: []string{"count", "interval"}}}
	}
	return fileops.Func(spec, e.sheet)
}

func (e *Engine) sheet(ctx context.Context, job *fileops.Job) error {
	e = e.within(job)
	m, err := e.probe(ctx, job, job.Input())
	if err != nil {
		return err
	}
	v, err := m.video()
	if err != nil {
		return err
	}
	to := format.Format(job.Params.Get("convert_to"))
	g, err := gridOf(job.Params, m, v, to)
	if err != nil {
		return err
	}
	pix, err := e.grid(ctx, job, m, v, g)
	if err != nil {
		return err
	}
	dir, err := job.Dir()
	if err != nil {
		return err
	}
	raw := filepath.Join(dir, "sheet.rgb")
	if err := os.WriteFile(raw, pix, 0o600); err != nil {
		return err
	}
	return job.WriteFile(fileops.ResultName(job.Input(), to), func(path string) error {
		w, h := g.columns*g.w, g.rows()*g.h
		out := func() node {
			in := ffmpeg.Input("file:"+raw, opts{
				"f": "rawvideo", "protocol_whitelist": "file,pipe", "format_whitelist": "rawvideo", "pixel_format": "rgb24", "video_size": fmt.Sprintf("%dx%d", w, h),
			})
			o := opts{"c:v:0": sheetEncoders[to], "frames:v:0": 1, "map_metadata": -1}
			switch to {
			case format.JPG:
				o["q:v:0"] = 3
				in = filter(in, step{"format", "yuvj420p"})
			case format.WebP:
				o["quality"] = 80
			}
			return e.output(path, "image2pipe", e.maxOutput, []node{in}, o)
		}
		err := e.run(ctx, job, pass{out: out, path: path, limit: e.maxOutput, still: true, from: 0.95, to: 1})
		if errors.Is(err, errFull) {
			return e.tooLarge()
		}
		return err
	})
}

// A grid says which pictures are on a sheet.
type grid struct {
	times   []float64 // seconds
	columns int
	w, h    int // pixels of a picture
}

func (g grid) rows() int { return (len(g.times) + g.columns - 1) / g.columns }

// gridOf returns the grid that the parameters describe for the video v of m.
func gridOf(p fileops.Params, m *media, v stream, to format.Format) (grid, error) {
	var g grid
	bad := func(param, reason string, a ...any) (grid, error) {
		return g, &fileops.ParamError{Param: param, Reason: fmt.Sprintf(reason, a...)}
	}
	param := "count"
	if p.Has("interval") {
		param = "interval"
	}
	length := m.duration
	if d := v.length(); d > 0 {
		length = min(d, m.duration)
	}
	if length <= 0 && m.source.demuxers[0] == "asf" && truncatedASF(m.file) > 0 {
		return g, fileops.Fail(fileops.ErrCorruptInput, nil, "the file is damaged or incomplete: its end is missing")
	}
	if length <= 0 {
		return bad(param, "cannot be used: the duration of the file is unknown")
	}
	if n := p.Int("count"); n > 0 {
		for i := range n {
			g.times = append(g.times, (float64(i)+0.5)*length/float64(n))
		}
	} else {
		interval := p.Float("interval")
		if n := math.Ceil(length / interval); n > maxCount {
			return bad(param, "is too small: the video takes %.1f seconds, so the sheet would have %.0f pictures, more than the limit of %d", length, n, maxCount)
		}
		for i := 0; i == 0 || float64(i)*interval < length; i++ {
			g.times = append(g.times, float64(i)*interval)
		}
	}
	g.columns = min(len(g.times), p.Int("columns"))
	if g.columns == 0 {
		g.columns = int(math.Ceil(math.Sqrt(float64(len(g.times)))))
	}
	width, height := fileops.ThumbnailBox(p)
	g.w, g.h = fit(v, float64(width), float64(height), false)
	if w, h := g.columns*g.w, g.rows()*g.h; w > maxSheet/h || to == format.WebP && max(w, h) > widestWebP || max(w, h) > 65535 {
		return bad(param, "makes a sheet of %d × %d pixels, which is too large; choose fewer or smaller pictures", w, h)
	}
	return g, nil
}

// grid returns the pixels of a sheet, three bytes each.
func (e *Engine) grid(ctx context.Context, job *fileops.Job, m *media, v stream, g grid) ([]byte, error) {
	dir, err := job.Dir()
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "pictures.rgb")
	size := int64(3 * g.w * g.h)
	// read returns the pictures at times, fewer if the video ends before the last ones.
	read := func(times []float64, from, to float64) ([]byte, error) {
		out := func() node {
			var all []node
			for _, at := range times {
				one := filter(pick(e.input(m, request{start: at}.window()), v), step{"trim", "end_frame=1"}, step{"setpts", "PTS-STARTPTS"})
				all = append(all, e.pictures(one, v, shape{width: float64(g.w), height: float64(g.h), fit: fitFill, pixels: "rgb24"}))
			}
			pictures := all[0]
			if len(all) > 1 {
				pictures, _ = join(all, 1, 0)
			}
			return e.output(path, "rawvideo", size*int64(len(times))+1, []node{pictures}, opts{"c:v:0": "rawvideo", "vsync": "passthrough"})
		}
		if err := e.run(ctx, job, pass{out: out, path: path, limit: size*int64(len(times)) + 1, still: true, from: from, to: to}); err != nil {
			return nil, err
		}
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return io.ReadAll(io.LimitReader(f, size*int64(len(times))))
	}
	sheet := make([]byte, int64(g.rows()*g.columns)*size)
	var last []byte
	for i := 0; i < len(g.times); i += atOnce {
		times := g.times[i:min(i+atOnce, len(g.times))]
		step := 0.95 / float64(len(g.times))
		from, to := float64(i)*step, float64(i+len(times))*step
		b, err := read(times, from, to)
		if err == nil && int64(len(b)) == size*int64(len(times)) {
			for k := range times {
				last = b[int64(k)*size:][:size]
				g.put(sheet, i+k, last)
			}
			continue
		}
		// A time is after the start of the last frame, or a part of the file is damaged.
		for k, at := range times {
			for _, at := range []float64{at, max(0, at-1)} {
				b, err = read([]float64{at}, from, to)
				if ctx.Err() != nil {
					return nil, context.Cause(ctx)
				}
				if err == nil && int64(len(b)) == size {
					last = b
					break
				}
			}
			if last == nil {
				return nil, noPicture(err)
			}
			g.put(sheet, i+k, last)
		}
	}
	return sheet, nil
}

// noPicture returns err, or a failure if a run succeeded without a picture.
func noPicture(err error) error {
	if err != nil {
		return err
	}
	return fileops.Fail(fileops.ErrCorruptInput, nil, "the file is damaged: nothing in it could be decoded")
}

// put copies a picture to its place on a sheet.
func (g grid) put(sheet []byte, i int, picture []byte) {
	row := 3 * g.w
	for y := range g.h {
		at := ((i/g.columns*g.h+y)*g.columns + i%g.columns) * row
		copy(sheet[at:at+row], picture[y*row:])
	}
}
