package mediaops

import (
	"fmt"
	"image/color"
	"maps"
	"slices"

	ffmpeg "github.com/u2takey/ffmpeg-go"

	"github.com/filewright/filewright/fileops"
)

// This package uses only the graph builder of ffmpeg-go: its Run logs command lines
// through a global, has no limits and reads the environment. Building panics on an
// invalid graph; arguments recovers from that.

type (
	node = *ffmpeg.Stream
	opts = ffmpeg.KwArgs
)

// arguments returns the command line for the output node out, without the log level.
func (e *Engine) arguments(out func() node) (args []string, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fileops.Fail(fileops.ErrEngine, fmt.Errorf("building the arguments: %v", p), "")
		}
	}()
	args = []string{
		"-hide_banner", "-nostdin", "-nostats", "-progress", "pipe:1", "-stats_period", "0.25", "-y",
		"-max_alloc", fmt.Sprint(maxAlloc), "-filter_threads", fmt.Sprint(e.threads),
	}
	return append(args, out().GetArgs()...), nil
}

// input returns the node of an input file, opened with all restrictions.
func (e *Engine) input(m *media, extra ...opts) node {
	o := opts(e.options(m.source))
	o["threads"] = e.threads
	if m.decoder != "" {
		o["c:v"] = m.decoder
	}
	for _, x := range extra {
		maps.Copy(o, x)
	}
	return ffmpeg.Input("file:"+m.path, o)
}

// ownInput returns the node of a file that this package has written.
func ownInput(path, demuxer string, extra ...opts) node {
	o := opts{"protocol_whitelist": "file,pipe", "format_whitelist": demuxer, "f": demuxer}
	for _, x := range extra {
		maps.Copy(o, x)
	}
	return ffmpeg.Input("file:"+path, o)
}

// output returns the node that writes streams to path, at most limit bytes.
func (e *Engine) output(path, muxer string, limit int64, streams []node, extra ...opts) node {
	o := opts{"f": muxer, "fs": limit, "threads": e.threads, "dn": ""}
	for _, x := range extra {
		maps.Copy(o, x)
	}
	return ffmpeg.Output(streams, "file:"+path, o)
}

// pick returns one stream of an input.
func pick(in node, s stream) node { return in.Get(fmt.Sprint(s.Index)) }

// A step is a filter and its arguments, positional or as key=value.
type step []string

// filter appends filters to a stream.
func filter(n node, steps ...step) node {
	for _, s := range steps {
		n = n.Filter(s[0], ffmpeg.Args(s[1:]))
	}
	return n
}

// onGround puts a stream with transparency on a background of one colour. It makes the
// background from the frames themselves with lutrgb, because drawbox crashes on RGBA in
// ffmpeg 5.1.
func onGround(n node, c color.NRGBA) node {
	split := filter(n, step{"format", "rgba"}).Split()
	ground := filter(split.Get("0"), step{"lutrgb", fmt.Sprintf("r=%d", c.R), fmt.Sprintf("g=%d", c.G), fmt.Sprintf("b=%d", c.B), "a=255"})
	return ffmpeg.Filter([]node{ground, split.Get("1")}, "overlay", ffmpeg.Args{"format=rgb"})
}

// join concatenates segments of v video and a audio streams each.
func join(streams []node, v, a int) (pictures, sound node) {
	out := ffmpeg.FilterMultiOutput(streams, "concat", ffmpeg.Args{
		fmt.Sprintf("n=%d", len(streams)/(v+a)), fmt.Sprintf("v=%d", v), fmt.Sprintf("a=%d", a),
	})
	if v > 0 {
		pictures = out.Get("0")
	}
	if a > 0 {
		sound = out.Get(fmt.Sprint(v))
	}
	return pictures, sound
}

// withPalette maps pictures to the colours of palette.
func withPalette(pictures, palette node) node {
	return ffmpeg.Filter([]node{pictures, palette}, "paletteuse", ffmpeg.Args{"dither=sierra2_4a", "diff_mode=rectangle"})
}

// numbered returns the option for stream number i: "c:s:0".
func numbered(option string, i int) string { return fmt.Sprintf("%s:%d", option, i) }

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }
