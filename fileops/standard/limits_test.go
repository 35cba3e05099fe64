package standard_test

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/png"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/fileopstest"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/standard"
	"github.com/filewright/filewright/internal/hostile"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/internal/tinypdf"
)

// small are limits that the files of TestLimits are just below or just above.
var small = standard.Limits{
	Pixels: 40_000, Frames: 5, Pages: 4, Duration: 3 * time.Second, Entries: 20, Unpacked: 30 << 20, Ratio: 50, Cells: 500,
}

// made returns a file written by an external program.
func made(t *testing.T, name, program string, args ...string) *fileops.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	output(t, program, append(args, path)...)
	b := systest.ReadFile(t, path)
	return fileops.Bytes(name, b)
}

// blank returns a picture of the given size in any format that libvips writes.
func blank(t *testing.T, name string, w, h int) *fileops.File {
	t.Helper()
	dir := t.TempDir()
	out := filepath.Join(dir, name)
	output(t, "vips", "black", filepath.Join(dir, "a.v"), fmt.Sprint(w), fmt.Sprint(h), "--bands", "3")
	output(t, "vips", "copy", filepath.Join(dir, "a.v"), out)
	b := systest.ReadFile(t, out)
	return fileops.Bytes(name, b)
}

// recording returns sound, or sound and picture, of the given seconds.
func recording(t *testing.T, name string, seconds float64, size string) *fileops.File {
	t.Helper()
	args := []string{"-v", "error", "-f", "lavfi", "-i", fmt.Sprintf("sine=duration=%g", seconds)}
	if size != "" {
		args = append(args, "-f", "lavfi", "-i", fmt.Sprintf("color=red:size=%s:rate=5:duration=%g", size, seconds))
	}
	return made(t, name, "ffmpeg", args...)
}

// animation returns a GIF with the given number of frames.
func animation(t *testing.T, frames int) *fileops.File {
	t.Helper()
	g := new(gif.GIF)
	for i := range frames {
		g.Image = append(g.Image, image.NewPaletted(image.Rect(0, 0, 8, 8), color.Palette{color.White, color.Gray{uint8(i)}}))
		g.Delay = append(g.Delay, 10)
	}
	var b bytes.Buffer
	systest.NoError(t, gif.EncodeAll(&b, g))
	return fileops.Bytes("a.gif", b.Bytes())
}

// leaves returns a PDF file with n pages.
func leaves(n int) *fileops.File {
	kids := ""
	for i := range n {
		kids += fmt.Sprintf("%d 0 R ", 3+i)
	}
	objects := []string{"<</Type/Catalog/Pages 2 0 R>>", fmt.Sprintf("<</Type/Pages/Kids[%s]/Count %d>>", kids, n)}
	for range n {
		objects = append(objects, "<</Type/Page/Parent 2 0 R/MediaBox[0 0 72 72]/Resources<<>>>>")
	}
	return fileops.Bytes("a.pdf", tinypdf.File("1.4", objects...))
}

// entries returns an archive of n small files.
func entries(name string, n int) *fileops.File {
	var files []string
	for i := range n {
		files = append(files, fmt.Sprintf("%d.txt", i), "x")
	}
	return fileops.Bytes(name, []byte(hostile.Zip(files...)))
}

// dense returns f with one more entry that contains zeros.
func dense(t *testing.T, f *fileops.File, name string, size int) *fileops.File {
	t.Helper()
	b, _ := f.Bytes()
	zr, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	systest.NoError(t, err)
	var out bytes.Buffer
	zw := zip.NewWriter(&out)
	for _, e := range zr.File {
		systest.NoError(t, zw.Copy(e))
	}
	w, err := zw.Create(name)
	if err == nil {
		_, err = w.Write(make([]byte, size))
	}
	if err == nil {
		err = zw.Close()
	}
	systest.NoError(t, err)
	return fileops.Bytes(f.Name(), out.Bytes())
}

// cells returns a workbook with rows × columns cells, each stored or repeated.
func cells(rows, columns int) *fileops.File {
	return fileops.Bytes("a.fods", []byte(fmt.Sprintf(`<?xml version="1.0" encoding="UTF-8"?><office:document xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" office:version="1.2" office:mimetype="application/vnd.oasis.opendocument.spreadsheet"><office:body><office:spreadsheet><table:table table:name="t"><table:table-row table:number-rows-repeated="%d"><table:table-cell table:number-columns-repeated="%d" office:value-type="float" office:value="1"><text:p>1</text:p></table:table-cell><table:table-cell table:number-columns-repeated="900"/></table:table-row></table:table></office:spreadsheet></office:body></office:document>`, rows, columns)))
}

// A bounded is a limit of a family, with one file just below and one just above.
type bounded struct {
	limit        string
	action       string
	args         fileops.Args
	below, above []*fileops.File
	message      string // part of the message for users
}

func boundaries(t *testing.T) []bounded {
	one := func(f *fileops.File) []*fileops.File { return []*fileops.File{f} }
	to := func(f string) fileops.Args { return fileops.Args{"convert_to": f} }
	var all []bounded
	add := func(limit, action string, args fileops.Args, message string, below, above []*fileops.File) {
		all = append(all, bounded{limit: limit, action: action, args: args, below: below, above: above, message: message})
	}
	for _, name := range []string{"a.png", "a.jpg", "a.webp", "a.gif", "a.tiff", "a.avif", "a.jxl", "a.jp2"} {
		target := "png"
		if name == "a.png" {
			target = "jpg"
		}
		add("pixels", "convert", to(target), "pixels", one(blank(t, name, 200, 200)), one(blank(t, name, 200, 201)))
	}
	for _, f := range []string{"bmp", "heic"} {
		below := mustRun(t, "convert", to(f), blank(t, "a.png", 200, 200))
		add("pixels", "convert", to("png"), "pixels", below, mustRun(t, "convert", to(f), blank(t, "a.png", 200, 201)))
	}
	add("pixels", "convert", to("png"), "pixels", mustRun(t, "convert", to("ico"), blank(t, "a.png", 190, 190)), mustRun(t, "convert", to("ico"), blank(t, "a.png", 230, 230)))
	psd := func(height byte) []*fileops.File {
		b, _ := fileopstest.Sample(t, format.PSD).Bytes()
		b = bytes.Clone(b)
		copy(b[14:], []byte{0, 0, 4, height, 0, 0, 0, 40}) // height and width
		return one(fileops.Bytes("a.psd", b))
	}
	add("pixels", "convert", to("png"), "pixels", one(fileopstest.Sample(t, format.PSD)), psd(0))
	svg := func(side int) []*fileops.File {
		return one(fileops.Bytes("a.svg", fmt.Appendf(nil, `<svg xmlns="http://www.w3.org/2000/svg" width="200" height="%d"><rect width="9" height="9"/></svg>`, side)))
	}
	add("pixels", "convert", to("png"), "pixels", svg(200), svg(201))
	add("pixels", "compress", nil, "pixels", one(blank(t, "a.png", 200, 200)), one(blank(t, "a.png", 200, 201)))
	add("pixels", "convert", to("pdf"), "pixels", one(blank(t, "a.png", 200, 200)), one(blank(t, "a.png", 200, 201)))
	add("pixels", "convert", to("pdf"), "pixels", one(blank(t, "a.jpg", 200, 200)), one(blank(t, "a.jpg", 200, 201)))
	add("pixels", "convert", fileops.Args{"convert_to": "png", "dpi": 200}, "pixels", one(leaves(1)), nil)
	add("pixels", "convert", fileops.Args{"convert_to": "png", "dpi": 201}, "pixels", nil, one(leaves(1)))
	add("pixels", "convert", to("gif"), "pixels", one(recording(t, "a.mp4", 1, "200x200")), one(recording(t, "a.mp4", 1, "200x202")))
	add("frames", "convert", to("webp"), "frames", one(animation(t, 5)), one(animation(t, 6)))

	add("pages", "convert", to("png"), "4", one(leaves(4)), one(leaves(5)))
	add("pages", "convert", to("docx"), "4", nil, one(leaves(5)))
	add("pages", "convert", fileops.Args{"convert_to": "png", "pages": "2-5"}, "", one(leaves(5)), nil)
	add("pages", "compress", nil, "4", one(leaves(4)), one(leaves(5)))
	add("pages", "merge", nil, "together", []*fileops.File{leaves(2), leaves(2)}, []*fileops.File{leaves(2), leaves(3)})
	dot := blank(t, "a.png", 9, 9)
	add("pages", "merge", nil, "together", []*fileops.File{leaves(3), dot}, []*fileops.File{leaves(4), dot})

	for _, name := range []string{"a.mp3", "a.wav", "a.flac"} {
		target := "ogg"
		add("duration", "convert", to(target), "3s", one(recording(t, name, 2.8, "")), one(recording(t, name, 3.3, "")))
	}
	add("duration", "convert", to("webm"), "3s", one(recording(t, "a.mp4", 2.8, "64x64")), one(recording(t, "a.mp4", 3.4, "64x64")))
	add("duration", "convert", to("mp3"), "3s", one(recording(t, "a.mkv", 2.8, "64x64")), one(recording(t, "a.mkv", 3.4, "64x64")))
	add("duration", "compress", nil, "3s", one(recording(t, "a.mp4", 2.8, "64x64")), one(recording(t, "a.mp4", 3.4, "64x64")))
	second := recording(t, "a.mp3", 1.4, "")
	add("duration", "merge", nil, "together", []*fileops.File{second, second}, []*fileops.File{second, second, second})

	add("entries", "compress", nil, "20", one(entries("a.zip", 20)), one(entries("a.zip", 21)))
	add("entries", "lock", fileops.Args{"password": "x"}, "20", one(entries("a.zip", 20)), one(entries("a.zip", 21)))
	tarOf := func(n int) []*fileops.File {
		dir := t.TempDir()
		for i := range n {
			systest.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), []byte("x"), 0o600))
		}
		return one(made(t, "a.tar.gz", "bash", "-c", "cd "+dir+" && tar czf \"$0\" *"))
	}
	add("entries", "convert", to("zip"), "20", tarOf(20), tarOf(21))
	docx := fileopstest.Sample(t, format.DOCX)
	many := docx
	for i := range 25 {
		many = dense(t, many, fmt.Sprintf("docProps/x%d.txt", i), 1)
	}
	for action, args := range map[string]fileops.Args{"compress": nil, "lock": {"password": "x"}, "convert": to("pdf")} {
		add("entries", action, args, "20", one(docx), one(many))
	}
	odt := fileopstest.Sample(t, format.ODT)
	// Nearly 11 MB of zeros are 1000 times their compressed size.
	add("ratio", "compress", nil, "50", one(dense(t, odt, "x.bin", 9<<20)), one(dense(t, odt, "x.bin", 11<<20)))
	add("ratio", "convert", to("pdf"), "50", one(dense(t, docx, "x.bin", 9<<20)), one(dense(t, docx, "x.bin", 11<<20)))
	add("ratio", "convert", to("zip"), "50", nil, one(made(t, "a.tar.gz", "bash", "-c", "cd "+t.TempDir()+" && truncate -s 12M z && tar czf \"$0\" z")))
	add("unpacked", "convert", to("zip"), "limit", nil, one(made(t, "a.tar.gz", "bash", "-c", "cd "+t.TempDir()+" && head -c 31M /dev/urandom > z && tar czf \"$0\" z")))
	add("cells", "convert", to("pdf"), "cells", one(cells(50, 10)), one(cells(51, 10)))
	add("cells", "convert", to("png"), "cells", nil, one(cells(1_000_000, 1000)))
	return all
}

func formatsOf(in []*fileops.File) (out []format.Format) {
	for _, f := range in {
		out = append(out, f.Format())
	}
	return out
}

// do resolves and runs an action, and returns the size of its results.
func do(t *testing.T, s *standard.Set, most int64, action string, args fileops.Args, in []*fileops.File) (size int64, err error) {
	t.Helper()
	formats := formatsOf(in)
	a, params, err := registry(t, s).Resolve(action, formats, args)
	if err != nil {
		t.Fatalf("%s %v %v: %v", action, formats, args, err)
	}
	r := fileops.Runner{TempDir: t.TempDir(), MaxOutput: most}
	err = r.Do(t.Context(), a, params, fileops.SinkFunc(func(_ context.Context, f *fileops.File) error {
		size += f.Size()
		return nil
	}), in...)
	if es, derr := os.ReadDir(r.TempDir); derr != nil || len(es) > 0 {
		t.Errorf("%s: left %v in the scratch space, %v", action, es, derr)
	}
	return size, err
}

// external reports whether the engine for b never runs in a process of this program.
func external(t *testing.T, s *standard.Set, b bounded) bool {
	t.Helper()
	in := b.above
	if in == nil {
		in = b.below
	}
	a, _, err := registry(t, s).Resolve(b.action, formatsOf(in), b.args)
	systest.NoError(t, err)
	return slices.ContainsFunc([]string{"ffmpeg", "libreoffice", "pdfium"}, func(name string) bool {
		return strings.Contains(strings.ToLower(a.Spec().Engine), name)
	})
}

// Every limit applies to every family that it concerns, in this process and in isolated
// processes: a file just below passes, and a file just above fails with a message that
// names the limit.
func TestLimits(t *testing.T) {
	t.Parallel()
	table := boundaries(t)
	for name, isolate := range map[string]bool{"here": false, "isolated": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := standard.Probe(t.Context(), &standard.Options{
				CacheDir: systest.CodeCache(), TempDir: t.TempDir(), Isolate: isolate, Limits: small, OfficeWorkers: 1, Tesseract: standard.None, Chromium: standard.None,
			})
			systest.AtEnd(t, s.Close)
			ran := 0
			for _, b := range table {
				if isolate && external(t, s, b) {
					continue // isolation makes no difference for these
				}
				ran++
				what := b.limit + " " + b.action + " " + fmt.Sprint(b.args["convert_to"])
				if b.below != nil && !isolate { // other tests cover files below the limits of set
					if _, err := do(t, s, 0, b.action, b.args, b.below); err != nil {
						t.Errorf("%s of %s below the limit: %v", what, b.below[0].Name(), err)
					}
				}
				if b.above != nil {
					_, err := do(t, s, 0, b.action, b.args, b.above)
					if !errors.Is(err, fileops.ErrLimit) || !strings.Contains(fileops.Message(err), b.message) {
						t.Errorf("%s of %s above the limit: %v (%s)", what, b.above[0].Name(), err, fileops.Code(err))
					}
				}
			}
			if ran < 20 {
				t.Errorf("only %d limits were looked at", ran)
			}
		})
	}
}

// Results above the allowed size fail the run, whichever engine writes them.
func TestMaxOutput(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	pixels := image.NewRGBA(image.Rect(0, 0, 300, 300))
	rng := rand.NewChaCha8([32]byte{1})
	rng.Read(pixels.Pix)
	for i := 3; i < len(pixels.Pix); i += 4 {
		pixels.Pix[i] = 255
	}
	systest.NoError(t, png.Encode(&b, pixels))
	noise := fileops.Bytes("a.png", b.Bytes())
	sound := recording(t, "a.mp3", 5, "")
	incompressible, folder := make([]byte, 300_000), t.TempDir()
	rng.Read(incompressible)
	systest.NoError(t, os.WriteFile(filepath.Join(folder, "z"), incompressible, 0o600))
	random := made(t, "a.tar.gz", "bash", "-c", "cd "+folder+" && tar czf \"$0\" z")
	long := fileops.Bytes("a.html", []byte("<p>"+strings.Repeat("word and other words ", 9000)))
	csv := fileops.Bytes("a.csv", []byte("n\n"+strings.Repeat("123456789\n", 9000)))
	for _, tt := range []struct {
		action, to string
		in         *fileops.File
	}{
		{"convert", "bmp", noise}, {"convert", "pdf", noise}, {"convert", "wav", sound}, {"convert", "zip", random}, {"zip", "", noise},
		{"convert", "pdf", long}, {"convert", "docx", long}, {"convert", "json", csv}, {"lock", "", pdfOf(t, noise)}, {"unlock", "", lockedOf(t, pdfOf(t, noise))},
	} {
		args := fileops.Args{}
		if tt.to != "" {
			args["convert_to"] = tt.to
		}
		if tt.action == "lock" || tt.action == "unlock" {
			args["password"] = "pw"
		}
		size, err := do(t, set, 0, tt.action, args, []*fileops.File{tt.in})
		if err != nil {
			t.Errorf("%s %s to %q without a limit: %v", tt.action, tt.in.Name(), tt.to, err)
			continue
		}
		if _, err := do(t, set, size+size/10+1000, tt.action, args, []*fileops.File{tt.in}); err != nil {
			t.Errorf("%s %s to %q just below the limit: %v", tt.action, tt.in.Name(), tt.to, err)
		}
		if got, err := do(t, set, size/2, tt.action, args, []*fileops.File{tt.in}); fileops.Code(err) != "limit_exceeded" || got > 0 || !strings.Contains(fileops.Message(err), "limit") {
			t.Errorf("%s %s to %q, %d bytes with a limit of %d: %v, %d bytes stored", tt.action, tt.in.Name(), tt.to, size, size/2, err, got)
		}
	}
}

func pdfOf(t *testing.T, f *fileops.File) *fileops.File {
	return mustRun(t, "convert", fileops.Args{"convert_to": "pdf"}, f)[0]
}

func lockedOf(t *testing.T, f *fileops.File) *fileops.File {
	return mustRun(t, "lock", fileops.Args{"password": "pw"}, f)[0]
}

// Time, memory and scratch space are limited for isolated actions and external programs.
func TestResources(t *testing.T) {
	t.Parallel()
	probe := func(l standard.Limits) *standard.Set {
		s := standard.Probe(t.Context(), &standard.Options{
			CacheDir: systest.CodeCache(), TempDir: t.TempDir(), Isolate: true, Limits: l, LibreOffice: standard.None, Pandoc: standard.None, Chromium: standard.None, Tesseract: standard.None,
		})
		t.Cleanup(func() { s.Close() })
		return s
	}
	big := blank(t, "a.png", 9000, 9000)
	film := recording(t, "a.mp4", 60, "1280x720")
	for name, tt := range map[string]struct {
		limits standard.Limits
		to     string
		in     *fileops.File
	}{
		"processor time of a picture":   {standard.Limits{CPU: 3 * time.Second}, "avif", big},
		"memory of a picture":           {standard.Limits{Memory: 300 << 20}, "bmp", big},
		"processor time of a recording": {standard.Limits{CPU: time.Second}, "webm", film},
		"memory of a recording":         {standard.Limits{Memory: 200 << 20}, "webm", film},
	} {
		if _, err := do(t, probe(tt.limits), 0, "convert", fileops.Args{"convert_to": tt.to}, []*fileops.File{tt.in}); fileops.Code(err) != "limit_exceeded" {
			t.Errorf("%s: %v (%s)", name, err, fileops.Code(err))
		}
	}
}
