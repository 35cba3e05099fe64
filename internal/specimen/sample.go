package specimen

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"embed"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/draw"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/internal/tinypdf"
)

// Text is a sentence that every document made by [Sample] contains.
const Text = "The quick brown fox jumps over the lazy dog."

// Picture returns a small opaque picture of w × h pixels with flat areas, a
// gradient and sharp edges.
func Picture(w, h int) *image.RGBA {
	m := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			c := color.RGBA{uint8(255 * x / w), uint8(255 * y / h), 128, 255}
			if (x/16+y/16)%5 == 0 {
				c = color.RGBA{250, 250, 245, 255}
			}
			if x > w/3 && x < w/2 && y > h/3 && y < h/2 {
				c = color.RGBA{200, 20, 40, 255}
			}
			m.SetRGBA(x, y, c)
		}
	}
	return m
}

// samples caches samples that need an external program. A test binary creates
// each at most once.
var samples sync.Map // format.Format → func() ([]byte, error)

// Sample returns a small valid file of format f. Code generates most of them.
// Formats that need an encoder require ffmpeg, vips, soffice, 7z or tar on the
// host. [Of] returns files with more content.
func Sample(t testing.TB, f format.Format) *fileops.File {
	t.Helper()
	b, err := cachedSample(f)
	if err != nil {
		t.Fatalf("sample %s: %v", f, err)
	}
	return fileops.Bytes("sample."+string(f), b)
}

// cachedSample returns the content of [Sample].
func cachedSample(f format.Format) ([]byte, error) {
	made, _ := samples.LoadOrStore(f, sync.OnceValues(func() ([]byte, error) { return build(f) }))
	return made.(func() ([]byte, error))()
}

func build(f format.Format) ([]byte, error) {
	if f.Plain() != f {
		return variant(f, cachedSample)
	}
	var b bytes.Buffer
	var err error
	pic := Picture(160, 120)
	switch f {
	case format.PNG:
		err = png.Encode(&b, pic)
	case format.JPG:
		err = jpeg.Encode(&b, pic, &jpeg.Options{Quality: 95})
	case format.GIF:
		err = gif.Encode(&b, pic, nil)
	case format.BMP:
		err = bmp.Encode(&b, pic)
	case format.TIFF:
		err = tiff.Encode(&b, pic, &tiff.Options{Compression: tiff.Deflate, Predictor: true})
	case format.ICO:
		err = writeICO(&b)
	case format.PSD:
		writePSD(&b, pic)
	case format.RAW:
		writeDNG(&b, pic)
	case format.PPM, format.TGA, format.ICNS:
		m := image.NewNRGBA(pic.Bounds())
		draw.Draw(m, m.Rect, pic, image.Point{}, draw.Src)
		return encodePicture(f, m)
	case format.SVG:
		fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="160" height="120"><rect width="160" height="120" fill="#eee"/><circle cx="80" cy="60" r="40" fill="#c22"/></svg>`)
	case format.WAV:
		writeWAV(&b, time.Second)
	case format.TXT:
		fmt.Fprintf(&b, "A sample\n\n%s\nÄpfel, 日本語, λόγος.\n", Text)
	case format.MD:
		fmt.Fprintf(&b, "# A sample\n\n%s\n\n- one\n- **two**\n\n| a | b |\n|---|---|\n| 1 | 2 |\n", Text)
	case format.HTML:
		fmt.Fprintf(&b, "<!DOCTYPE html><html><head><meta charset=\"utf-8\"><title>A sample</title></head><body><h1>A sample</h1><p>%s</p><ul><li>one</li></ul><table><tr><th>name</th><th>count</th></tr><tr><td>Äpfel</td><td>3</td></tr><tr><td>Birnen</td><td>4</td></tr></table></body></html>\n", Text)
	case format.CSV:
		fmt.Fprintf(&b, "name,count,text\nÄpfel,3,%q\nBirnen,4,x\n", Text)
	case format.TSV:
		fmt.Fprintf(&b, "name\tcount\ttext\nÄpfel\t3\t%s\nBirnen\t4\tx\n", Text)
	case format.JSON:
		fmt.Fprintf(&b, `[{"name":"Äpfel","count":3,"text":%q},{"name":"Birnen","count":4,"text":"x"}]`, Text)
	case format.JSONL:
		fmt.Fprintf(&b, "{\"name\":\"Äpfel\",\"count\":3,\"text\":%q}\n{\"name\":\"Birnen\",\"count\":4,\"text\":\"x\"}\n", Text)
	case format.XML:
		fmt.Fprintf(&b, "<?xml version=\"1.0\"?><a><b>%s</b></a>", Text)
	case format.RTF:
		fmt.Fprintf(&b, `{\rtf1\ansi{\fonttbl{\f0 Arial;}}\f0\fs24 {\b A sample}\par %s\par }`, Text)
	case format.PDF:
		writePDF(&b, 2)
	case format.ZIP:
		err = writeZIP(&b, "a.txt", Text, "dir/b.txt", strings.Repeat(Text, 100))
	case format.DOCX, format.XLSX, format.PPTX, format.ODT, format.ODS, format.ODP, format.EPUB, format.FODT, format.FODS, format.FODP:
		err = writeOffice(&b, f)
	case format.DOC, format.XLS, format.PPT:
		return officeFile("sample." + string(f))
	case format.WebP, format.AVIF, format.HEIC, format.JXL, format.JP2:
		return withVips(f, pic)
	default:
		if fam := f.Family(); fam == format.Audio || fam == format.Video {
			return withFFmpeg(f)
		}
		return specimen(f)
	}
	return b.Bytes(), err
}

func writeICO(b *bytes.Buffer) error { return writeIcon(b, Picture(32, 32)) }

// writeIcon writes an icon with one PNG picture of at most 255 × 255 pixels.
func writeIcon(b *bytes.Buffer, m image.Image) error {
	var p bytes.Buffer
	if err := png.Encode(&p, m); err != nil {
		return err
	}
	le := binary.LittleEndian
	h := []byte{0, 0, 1, 0, 1, 0, byte(m.Bounds().Dx()), byte(m.Bounds().Dy()), 0, 0, 1, 0, 32, 0}
	h = le.AppendUint32(h, uint32(p.Len()))
	h = le.AppendUint32(h, 22)
	b.Write(h)
	b.Write(p.Bytes())
	return nil
}

// writePSD writes a flat RGB image without compression (Adobe Photoshop File
// Formats Specification).
func writePSD(b *bytes.Buffer, m *image.RGBA) {
	be := binary.BigEndian
	h := append([]byte("8BPS\x00\x01"), make([]byte, 6)...)
	h = be.AppendUint16(h, 3)
	h = be.AppendUint32(h, uint32(m.Rect.Dy()))
	h = be.AppendUint32(h, uint32(m.Rect.Dx()))
	h = be.AppendUint16(h, 8)
	h = be.AppendUint16(h, 3)
	h = append(h, make([]byte, 12+2)...)
	b.Write(h)
	for c := range 3 {
		for i := c; i < len(m.Pix); i += 4 {
			b.WriteByte(m.Pix[i])
		}
	}
}

// writeWAV writes a 440 Hz triangle wave: 16 bits, mono, 44100 Hz.
func writeWAV(b *bytes.Buffer, d time.Duration) {
	const rate = 44100
	n := int(d.Seconds() * rate)
	le := binary.LittleEndian
	h := append([]byte("RIFF"), le.AppendUint32(nil, uint32(36+2*n))...)
	h = append(h, "WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00"...)
	h = le.AppendUint32(h, rate)
	h = le.AppendUint32(h, 2*rate)
	h = append(h, "\x02\x00\x10\x00data"...)
	h = le.AppendUint32(h, uint32(2*n))
	b.Write(h)
	for i := range n {
		phase := i * 440 % rate
		v := phase * 40000 / rate
		if v > 20000 {
			v = 40000 - v
		}
		b.Write(le.AppendUint16(nil, uint16(int16(v-10000))))
	}
}

// writePDF writes a PDF 1.4 with pages of text, an outline and a link.
func writePDF(b *bytes.Buffer, pages int) {
	var objs []string
	kids := ""
	for i := range pages {
		kids += fmt.Sprintf("%d 0 R ", 6+2*i)
	}
	objs = append(objs,
		"<</Type/Catalog/Pages 2 0 R/Outlines 4 0 R>>",
		fmt.Sprintf("<</Type/Pages/Kids[%s]/Count %d>>", kids, pages),
		"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>",
		"<</Type/Outlines/First 5 0 R/Last 5 0 R/Count 1>>",
		fmt.Sprintf("<</Title(A sample)/Parent 4 0 R/Dest[%d 0 R/Fit]>>", 6),
	)
	for i := range pages {
		content := fmt.Sprintf("BT /F1 18 Tf 72 720 Td (Page %d) Tj 0 -30 Td /F1 12 Tf (%s) Tj ET 0.8 0.2 0.2 rg 72 500 200 100 re f", i+1, Text)
		objs = append(objs,
			fmt.Sprintf("<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Resources<</Font<</F1 3 0 R>>>>/Contents %d 0 R"+
				"/Annots[<</Type/Annot/Subtype/Link/Rect[72 680 300 700]/Border[0 0 0]/A<</S/URI/URI(https://example.com/)>>>>]>>", 7+2*i),
			tinypdf.Stream("", content))
	}
	b.Write(tinypdf.File("1.4", objs...))
}

// writeZIP writes pairs of name and content. If the first entry is named
// mimetype, it is stored, as OpenDocument and EPUB require.
func writeZIP(b *bytes.Buffer, pairs ...string) error {
	z := zip.NewWriter(b)
	for i := 0; i < len(pairs); i += 2 {
		content := []byte(pairs[i+1])
		if pairs[i] == "mimetype" { // raw, so that the sizes are in the local header and not after the data
			n := uint64(len(content))
			w, err := z.CreateRaw(&zip.FileHeader{Name: pairs[i], Method: zip.Store, CRC32: crc32.ChecksumIEEE(content), CompressedSize64: n, UncompressedSize64: n})
			if err != nil {
				return err
			}
			if _, err := w.Write(content); err != nil {
				return err
			}
			continue
		}
		w, err := z.Create(pairs[i])
		if err != nil {
			return err
		}
		if _, err := w.Write(content); err != nil {
			return err
		}
	}
	return z.Close()
}

func withVips(f format.Format, pic image.Image) ([]byte, error) {
	var in bytes.Buffer
	if err := png.Encode(&in, pic); err != nil {
		return nil, err
	}
	out := "out." + string(f)
	args := []string{"vips", "copy", "in.png", out}
	if f == format.JP2 { // see docs: subsampled JPEG 2000 cannot be read back by libvips 8.14
		args = []string{"vips", "jp2ksave", "in.png", out, "--subsample-mode", "off"}
	}
	return inDir([][2]string{{"in.png", in.String()}}, out, args...)
}

// officeFiles are the samples and specimens that LibreOffice made from others. They are kept, because
// the tests of many packages need them and LibreOffice takes seconds to start.
//
//go:embed office/*.gz
var officeFiles embed.FS

func officeFile(name string) ([]byte, error) {
	f, err := officeFiles.Open("office/" + name + ".gz")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}

func withFFmpeg(f format.Format) ([]byte, error) {
	args := []string{"ffmpeg", "-nostdin", "-v", "error"}
	if f.Family() == format.Video {
		args = append(args, "-f", "lavfi", "-i", "testsrc2=size=160x120:rate=25:duration=1")
	}
	args = append(args, "-f", "lavfi", "-i", "sine=frequency=440:duration=1:sample_rate=44100", "-ac", "2")
	if f == format.ThGP {
		// The defaults are AMR, which has no free encoder, and H.263, which supports
		// only some sizes.
		args = append(args, "-c:a", "aac", "-c:v", "mpeg4")
	}
	if f == format.Opus {
		args = append(args, "-ar", "48000")
	}
	out := "out." + string(f)
	if f == format.AMR {
		return noisyAMR(time.Second), nil
	}
	return inDir(nil, out, append(args, out)...)
}

// inDir writes files into a new directory, runs a command there and returns the
// content of its output file. entries are the paths and contents of the files.
// The output is kept for later runs of the tests.
func inDir(entries [][2]string, out string, args ...string) ([]byte, error) {
	program, err := systest.Program(args[0])
	if err != nil {
		return nil, err
	}
	made, err := systest.Made(filepath.Base(out), fmt.Sprintf("%s %q %q", program, args, entries), func(path string) error {
		b, err := run(entries, out, args...)
		if err != nil {
			return err
		}
		return os.WriteFile(path, b, 0o600)
	})
	if err != nil {
		return nil, err
	}
	return os.ReadFile(made)
}

// run is inDir without keeping the output.
func run(entries [][2]string, out string, args ...string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "fileopstest-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	for _, e := range entries {
		path := filepath.Join(dir, e[0])
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return nil, err
		}
		if err := os.WriteFile(path, []byte(e[1]), 0o600); err != nil {
			return nil, err
		}
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = dir
	msg, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %s", args[0], err, msg)
	}
	b, err := os.ReadFile(filepath.Join(dir, out))
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %s", args[0], err, msg)
	}
	return b, nil
}
