package imageops_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"image"
	"image/color"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/imageops"
	"github.com/filewright/filewright/internal/systest"
)

// newEngine returns one shared engine for all tests.
var newEngine = sync.OnceValues(func() (*imageops.Engine, error) { return imageops.New(context.Background(), imageops.Options{}) })

func engine(t testing.TB) *imageops.Engine {
	t.Helper()
	e, err := newEngine()
	systest.NoError(t, err)
	return e
}

// run runs an action and returns its results in memory.
func run(ctx context.Context, a fileops.Action, args fileops.Args, in *fileops.File) ([]*fileops.File, error) {
	var out []*fileops.File
	err := fileops.Run(ctx, a, args, fileops.SinkFunc(func(_ context.Context, f *fileops.File) error {
		b, err := io.ReadAll(f.Reader())
		out = append(out, fileops.Bytes(f.Name(), b))
		return err
	}), in)
	return out, err
}

func mustRun(t testing.TB, a fileops.Action, args fileops.Args, in *fileops.File) []*fileops.File {
	t.Helper()
	out, err := run(t.Context(), a, args, in)
	systest.NoError(t, err)
	return out
}

func one(t testing.TB, a fileops.Action, args fileops.Args, in *fileops.File) *fileops.File {
	t.Helper()
	out := mustRun(t, a, args, in)
	if len(out) != 1 {
		t.Fatalf("%d results, want 1", len(out))
	}
	return out[0]
}

func content(t testing.TB, f *fileops.File) []byte {
	t.Helper()
	if path, ok := f.Path(); ok {
		b := systest.ReadFile(t, path)
		return b
	}
	b, _ := f.Bytes()
	return b
}

// save writes a file for external programs and returns its path.
func save(t testing.TB, f *fileops.File) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), f.Name())
	systest.NoError(t, os.WriteFile(path, content(t, f), 0o600))
	return path
}

// tool runs a program and returns its standard output. The test fails if the program fails.
var tool = systest.Run

// made runs an external program that writes a file, and returns that file. "OUT"
// in args stands for its path.
func made(t testing.TB, name, program string, args ...string) *fileops.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "OUT", path)
	}
	tool(t, program, args...)
	b := systest.ReadFile(t, path)
	return fileops.Bytes(name, b)
}

// tags returns the metadata that exiftool finds in a file.
func tags(t testing.TB, f *fileops.File) map[string]any {
	t.Helper()
	var all []map[string]any
	systest.NoError(t, json.Unmarshal([]byte(tool(t, "exiftool", "-json", "-n", "-G0", save(t, f))), &all))
	return all[0]
}

// decoded decodes a file to sRGB: PNG with the standard library, others with the vips program.
func decoded(t testing.TB, f *fileops.File) image.Image {
	t.Helper()
	if filepath.Ext(f.Name()) == ".png" {
		return pngOf(t, f)
	}
	key := [2]any{filepath.Ext(f.Name()), sha256.Sum256(content(t, f))}
	if m, ok := decodedBefore.Load(key); ok {
		return m.(image.Image)
	}
	m := pngOf(t, made(t, "out.png", "vips", "colourspace", save(t, f), "OUT[strip]", "srgb"))
	decodedBefore.Store(key, m)
	return m
}

// decodedBefore has the pictures that the vips program has decoded, by extension and checksum: many
// tests start from the same samples, and its start takes 60 ms.
var decodedBefore sync.Map

// difference returns the mean difference per channel, 0 to 255, of two pictures
// on white. It is 255 if their sizes differ.
func difference(a, b image.Image) float64 {
	if a.Bounds().Size() != b.Bounds().Size() {
		return 255
	}
	sum, size := 0.0, a.Bounds().Size()
	for y := range size.Y {
		for x := range size.X {
			p, q := onWhite(a.At(a.Bounds().Min.X+x, a.Bounds().Min.Y+y)), onWhite(b.At(b.Bounds().Min.X+x, b.Bounds().Min.Y+y))
			for k := range 3 {
				sum += math.Abs(p[k] - q[k])
			}
		}
	}
	return sum / float64(3*size.X*size.Y)
}

func onWhite(c color.Color) [3]float64 {
	r, g, b, a := c.RGBA()
	w := 0xffff - a
	return [3]float64{float64(r+w) / 257, float64(g+w) / 257, float64(b+w) / 257}
}

func encodePNG(t testing.TB, m image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	systest.NoError(t, png.Encode(&b, m))
	return b.Bytes()
}

// photo returns a picture with noise and soft structures, which compresses like
// a photograph.
func photo(w, h int) *image.RGBA {
	m := image.NewRGBA(image.Rect(0, 0, w, h))
	seed := uint32(1)
	for y := range h {
		for x := range w {
			seed = seed*1664525 + 1013904223
			n := int(seed>>24)%9 - 4
			v := 128 + 60*math.Sin(float64(x)/23) + 50*math.Cos(float64(y)/31+float64(x)/97)
			clamp := func(v float64) uint8 { return uint8(min(255, max(0, v))) }
			m.SetRGBA(x, y, color.RGBA{clamp(v + float64(n)), clamp(v*0.8 + float64(n) + 20), clamp(255 - v + float64(n)), 255})
		}
	}
	return m
}

func pngOf(t testing.TB, f *fileops.File) image.Image {
	t.Helper()
	m, err := png.Decode(bytes.NewReader(content(t, f)))
	systest.NoError(t, err)
	return m
}
