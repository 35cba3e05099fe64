package specimen

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/gif"
	"image/jpeg"
	"image/png"
	"testing"
	"time"

	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
)

func pictureSpecimen(f format.Format) ([]byte, error) {
	switch f {
	case format.PNG:
		return patchesPNG(), nil
	case format.ICO:
		return encodePicture(f, Patches(32, 32))
	case format.SVG:
		var b bytes.Buffer
		b.WriteString(`<svg xmlns="http://www.w3.org/2000/svg" width="160" height="120" viewBox="0 0 160 120">`)
		for i, c := range PatchColors() {
			fmt.Fprintf(&b, `<rect x="%d" y="%d" width="80" height="60" fill="#%02x%02x%02x"/>`, i%2*80, i/2*60, c.R, c.G, c.B)
		}
		b.WriteString(`</svg>`)
		return b.Bytes(), nil
	}
	return encodePicture(f, Patches(160, 120))
}

// encodePicture encodes m, which has at most 256 colours, in a raster format.
func encodePicture(f format.Format, m *image.NRGBA) ([]byte, error) {
	var b bytes.Buffer
	var err error
	switch f {
	case format.PNG:
		err = png.Encode(&b, m)
	case format.JPG:
		err = jpeg.Encode(&b, m, &jpeg.Options{Quality: 95})
	case format.GIF:
		// Go's default palette has none of these colours.
		few := image.NewPaletted(m.Rect, coloursOf(m))
		draw.Draw(few, m.Rect, m, image.Point{}, draw.Src)
		err = gif.Encode(&b, few, nil)
	case format.BMP:
		err = bmp.Encode(&b, m)
	case format.TIFF:
		err = tiff.Encode(&b, m, &tiff.Options{Compression: tiff.Deflate, Predictor: true})
	case format.ICO:
		err = writeIcon(&b, m)
	case format.RAW:
		writeDNG(&b, m)
	case format.PSD:
		rgba := image.NewRGBA(m.Rect)
		draw.Draw(rgba, m.Rect, m, image.Point{}, draw.Src)
		writePSD(&b, rgba)
	case format.ICNS:
		var p bytes.Buffer
		if err := png.Encode(&p, m); err != nil {
			return nil, err
		}
		size := uint32(p.Len() + 8)
		b.Write(binary.BigEndian.AppendUint32([]byte("icns"), size+8))
		b.Write(binary.BigEndian.AppendUint32([]byte("ic07"), size))
		b.Write(p.Bytes())
	case format.PPM, format.TGA:
		var in bytes.Buffer
		if err := png.Encode(&in, m); err != nil {
			return nil, err
		}
		out, pixels := "out."+string(f), map[format.Format]string{format.PPM: "rgb24", format.TGA: "bgr24"}[f]
		return inDir([][2]string{{"in.png", in.String()}}, out, "ffmpeg", "-v", "error", "-i", "in.png", "-pix_fmt", pixels, out)
	case format.WebP, format.AVIF, format.HEIC, format.JXL, format.JP2:
		return withVips(f, m)
	default:
		return nil, fmt.Errorf("no specimen of this format")
	}
	return b.Bytes(), err
}

// coloursOf returns the distinct colours in m.
func coloursOf(m *image.NRGBA) color.Palette {
	seen := make(map[color.NRGBA]bool)
	var out color.Palette
	for y := m.Rect.Min.Y; y < m.Rect.Max.Y; y++ {
		for x := m.Rect.Min.X; x < m.Rect.Max.X; x++ {
			if c := m.NRGBAAt(x, y); !seen[c] {
				seen[c] = true
				out = append(out, c)
			}
		}
	}
	return out
}

// Turned returns [Patches] of 160 × 120 pixels as a photograph taken with a
// rotated camera. The stored pixels are 120 × 160. EXIF orientation 6 means a
// rotation by 90 degrees clockwise.
func Turned(t testing.TB) *fileops.File {
	t.Helper()
	upright := Patches(160, 120)
	turned := image.NewNRGBA(image.Rect(0, 0, 120, 160))
	for y := range 160 {
		for x := range 120 {
			turned.SetNRGBA(x, y, upright.NRGBAAt(159-y, x))
		}
	}
	var b bytes.Buffer
	if err := jpeg.Encode(&b, turned, &jpeg.Options{Quality: 95}); err != nil {
		t.Fatal(err)
	}
	// One directory with one entry: Orientation, type short, count 1, value 6 (EXIF
	// 2.32, 4.6.4; TIFF 6.0, section 2).
	exif := []byte("Exif\x00\x00MM\x00*\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00\x06\x00\x00\x00\x00\x00\x00")
	out := []byte("\xff\xd8\xff\xe1")
	out = binary.BigEndian.AppendUint16(out, uint16(len(exif)+2))
	out = append(append(out, exif...), b.Bytes()[2:]...)
	return fileops.Bytes("turned.jpg", out)
}

// Translucent returns [Patches] of 160 × 120 pixels as a PNG whose lower right
// patch is fully transparent.
func Translucent(t testing.TB) *fileops.File {
	t.Helper()
	m := Patches(160, 120)
	draw.Draw(m, image.Rect(80, 60, 160, 120), image.Transparent, image.Point{}, draw.Src)
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return fileops.Bytes("translucent.png", b.Bytes())
}

func mediaSpecimen(f format.Format) ([]byte, error) {
	if f == format.AMR {
		return noisyAMR(Duration), nil
	}
	seconds := fmt.Sprint(Duration.Seconds())
	args := []string{"ffmpeg", "-nostdin", "-v", "error"}
	filter := ""
	sound := "0:a"
	if f.Family() == format.Video {
		for _, c := range PatchColors() {
			args = append(args, "-f", "lavfi", "-i", fmt.Sprintf("color=c=0x%02x%02x%02x:s=80x60:r=25:d=%s", c.R, c.G, c.B, seconds))
		}
		// Otherwise the pixel aspect ratio and the colour range would depend on
		// defaults.
		filter = "[0][1][2][3]xstack=inputs=4:layout=0_0|w0_0|0_h0|w0_h0[p];color=c=white:s=12x12:r=25:d=" + seconds + "[w];[p][w]overlay=x=mod(n*3\\,148):y=54,setsar=1,format=yuv420p[v]"
		sound = "4:a"
	}
	args = append(args, "-f", "lavfi", "-i", fmt.Sprintf("sine=frequency=%d:duration=%s:sample_rate=44100", Tone, seconds))
	if filter != "" {
		args = append(args, "-filter_complex", filter, "-map", "[v]")
	}
	args = append(args, "-map", sound, "-ac", "2")
	switch f {
	case format.ThGP: // see withFFmpeg
		args = append(args, "-c:a", "aac", "-c:v", "mpeg4")
	case format.Opus:
		args = append(args, "-ar", "48000")
	case format.AVI, format.MPEG, format.FLV, format.WMV:
		args = append(args, "-q:v", "3")
	}
	out := "out." + string(f)
	return inDir(nil, out, append(args, out)...)
}

// noisyAMR returns a recording of noise, because no free encoder exists: 20 ms
// frames of class 12.2 kbit/s whose bits count up (RFC 4867, 5.3).
func noisyAMR(d time.Duration) []byte {
	b := []byte("#!AMR\n")
	for i := range int(d / (20 * time.Millisecond)) {
		b = append(b, 7<<3|1<<2)
		for j := range 31 {
			b = append(b, byte(i*31+j*7))
		}
	}
	return b
}
