package imagefile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"image"
	"image/jpeg"
	"io"
	"iter"
	"math"
	"slices"
)

// Markers of JPEG (ITU-T T.81, table B.1).
const (
	markerTEM  = 0x01
	markerSOF0 = 0xc0
	markerDHT  = 0xc4
	markerJPG  = 0xc8
	markerDAC  = 0xcc
	markerSOFF = 0xcf
	markerRST0 = 0xd0
	markerRST7 = 0xd7
	markerEOI  = 0xd9
	markerSOS  = 0xda
	markerDQT  = 0xdb
	markerAPP0 = 0xe0 // JFIF
	markerAPP1 = 0xe1 // EXIF
	markerAPP2 = 0xe2 // ICC profile
	markerAPPE = 0xee // Adobe
)

// A JPEG holds the header fields of a JPEG file, up to the first scan.
type JPEG struct {
	Width, Height int
	Bits          int // per component
	Components    int
	Process       byte // marker of the frame: 0xc0 is baseline, 0xc2 progressive
	FullColour    bool // full chroma resolution (4:4:4)

	Adobe    bool // has the Adobe marker, which also means that CMYK is inverted
	Quality  int  // estimated, 1 to 100; 0 if unknown
	Complete bool // the scan data has an end marker

	Density     Density
	Orientation int    // EXIF orientation, 1 to 8; 0 if missing
	Profile     []byte // ICC profile; nil if missing or incomplete
}

var errJPEG = errors.New("not a JPEG file")

// ReadJPEG reads the headers of a JPEG file (ITU-T T.81, annex B). With an
// error, the JPEG holds the fields read before it.
func ReadJPEG(b []byte) (JPEG, error) {
	var j JPEG
	var profile profileParts
	if !bytes.HasPrefix(b, []byte{0xff, 0xd8}) {
		return j, errJPEG
	}
	for s := range jpegSegments(b) {
		switch s.marker {
		case markerDQT:
			j.readTables(s.data)
		case markerAPP0:
			j.readJFIF(s.data)
		case markerAPP1:
			j.readEXIF(s.data)
		case markerAPP2:
			profile.add(s.data)
		case markerAPPE:
			j.Adobe = j.Adobe || len(s.data) >= 12 && string(s.data[:5]) == "Adobe"
		case markerSOS:
			j.Complete = bytes.LastIndex(b[s.end:], []byte{0xff, markerEOI}) >= 0
			j.Profile = profile.join()
			err := j.check()
			return j, err
		default:
			if isFrame(s.marker) && (j.Process != 0 || !j.readFrame(s.marker, s.data)) {
				return j, errJPEG
			}
		}
	}
	return j, errJPEG
}

func (j *JPEG) check() error {
	switch {
	case j.Width == 0 || j.Height == 0 || j.Components == 0:
		return errJPEG
	case j.Bits != 8:
		return errors.New("not 8 bits per component")
	}
	return nil
}

// A jpegSegment is a marker segment.
type jpegSegment struct {
	marker byte
	data   []byte
	end    int // start of the next segment
}

// jpegSegments yields the marker segments of a JPEG file, up to the first scan
// or damage.
func jpegSegments(b []byte) iter.Seq[jpegSegment] {
	return func(yield func(jpegSegment) bool) {
		for i := 2; i+4 <= len(b) && b[i] == 0xff; {
			m := b[i+1]
			switch {
			case m == 0xff: // fill bytes may precede a marker
				i++
				continue
			case m == markerTEM || m >= markerRST0 && m <= markerRST7: // no data
				i += 2
				continue
			case m == markerEOI:
				return
			}
			n := int(binary.BigEndian.Uint16(b[i+2:]))
			if n < 2 || i+2+n > len(b) {
				return
			}
			s := jpegSegment{m, b[i+4 : i+2+n], i + 2 + n}
			if !yield(s) || m == markerSOS {
				return
			}
			i = s.end
		}
	}
}

func isFrame(m byte) bool {
	return m >= markerSOF0 && m <= markerSOFF && m != markerDHT && m != markerJPG && m != markerDAC
}

// readFrame reads a frame header (T.81, B.2.2). It reports false if it is damaged.
func (j *JPEG) readFrame(marker byte, b []byte) bool {
	if len(b) < 6 {
		return false
	}
	j.Process, j.Bits, j.Components = marker, int(b[0]), int(b[5])
	j.Height, j.Width = int(binary.BigEndian.Uint16(b[1:])), int(binary.BigEndian.Uint16(b[3:]))
	if len(b) < 6+3*j.Components {
		return true
	}
	j.FullColour = j.Components >= 3
	for c := 1; c < j.Components; c++ { // sampling factors
		j.FullColour = j.FullColour && b[7+3*c] == b[7]
	}
	return true
}

// readJFIF reads the density (ITU-T T.871, 10.1).
func (j *JPEG) readJFIF(b []byte) {
	if len(b) < 12 || string(b[:5]) != "JFIF\x00" {
		return
	}
	x, y := float64(binary.BigEndian.Uint16(b[8:])), float64(binary.BigEndian.Uint16(b[10:]))
	switch b[7] {
	case 1:
		j.Density = Density{x, y}
	case 2:
		j.Density = Density{x * centimetresPerInch, y * centimetresPerInch}
	}
}

func (j *JPEG) readEXIF(b []byte) {
	tiff, ok := bytes.CutPrefix(b, []byte("Exif\x00\x00"))
	if !ok {
		return
	}
	orientation, density := readEXIF(tiff)
	j.Orientation = orientation
	if j.Density.X == 0 {
		j.Density = density
	}
}

// readTables estimates the quality from quantization table 0 (T.81, B.2.4.1),
// which encoders use for luminance.
func (j *JPEG) readTables(b []byte) {
	for len(b) > 0 {
		wide, id := int(b[0]>>4), b[0]&15
		size := 64 * (1 + wide)
		if wide > 1 || len(b) < 1+size {
			return
		}
		if id == 0 {
			var t [64]int
			for i := range t {
				if wide == 1 {
					t[i] = int(binary.BigEndian.Uint16(b[1+2*i:]))
				} else {
					t[i] = int(b[1+i])
				}
			}
			j.Quality = estimateQuality(&t)
		}
		b = b[1+size:]
	}
}

// estimateQuality returns the libjpeg quality whose luminance table is closest
// to t.
func estimateQuality(t *[64]int) int {
	// The table of T.81, K.1 in zigzag order. libjpeg and almost all other encoders
	// scale it by quality.
	luminance := [64]int{
		16, 11, 12, 14, 12, 10, 16, 14, 13, 14, 18, 17, 16, 19, 24, 40,
		26, 24, 22, 22, 24, 49, 35, 37, 29, 40, 58, 51, 61, 60, 57, 51,
		56, 55, 64, 72, 92, 78, 64, 68, 87, 69, 55, 56, 80, 109, 81, 87,
		95, 98, 103, 104, 103, 62, 77, 113, 121, 112, 100, 120, 92, 101, 103, 99,
	}
	best, distance := 0, math.MaxInt
	for q := 100; q >= 1; q-- {
		scale := 200 - 2*q
		if q < 50 {
			scale = 5000 / q
		}
		d := 0
		for i, v := range &luminance {
			w := min(255, max(1, (v*scale+50)/100))
			d += max(w-t[i], t[i]-w)
		}
		if d < distance {
			best, distance = q, d
		}
	}
	return best
}

const iccMark = "ICC_PROFILE\x00"

// profileParts collects the segments of an ICC profile (ICC.1:2022, B.4), with
// their numbers and their count.
type profileParts struct {
	parts [256][]byte
	count int
}

func (p *profileParts) add(b []byte) {
	if len(b) > 14 && string(b[:12]) == iccMark && p.parts[b[12]] == nil {
		p.parts[b[12]], p.count = b[14:], int(b[13])
	}
}

func (p *profileParts) join() []byte {
	parts := p.parts[1:][:min(p.count, 255)]
	if len(parts) == 0 || slices.ContainsFunc(parts, func(b []byte) bool { return b == nil }) {
		return nil
	}
	return bytes.Join(parts, nil)
}

// WithJPEGProfile inserts an ICC profile into a JPEG file. It leaves out a
// profile that is too long.
func WithJPEGProfile(b, profile []byte) []byte {
	const size = 65535 - 2 - 14
	chunks := slices.Collect(slices.Chunk(profile, size))
	if len(chunks) > 255 {
		return b
	}
	out := slices.Clone(b[:2])
	for i, c := range chunks {
		n := 2 + 14 + len(c)
		out = append(out, 0xff, markerAPP2, byte(n>>8), byte(n))
		out = append(append(out, iccMark...), byte(i+1), byte(len(chunks)))
		out = append(out, c...)
	}
	return append(out, b[2:]...)
}

// WriteJPEG writes a JPEG file with its density in dots per inch. Package
// image/jpeg writes no JFIF segment, and stores no density.
func WriteJPEG(w io.Writer, img image.Image, quality int, dpi float64) error {
	n := int(dpi + 0.5)
	j := &jfifWriter{w: w, segment: []byte{
		0xff, 0xd8, 0xff, markerAPP0, 0, 16, 'J', 'F', 'I', 'F', 0, 1, 1, // JFIF 1.01
		1, byte(n >> 8), byte(n), byte(n >> 8), byte(n), 0, 0, // dots per inch; no thumbnail
	}}
	return jpeg.Encode(j, img, &jpeg.Options{Quality: quality})
}

// A jfifWriter replaces the first two bytes, the start of image marker, by a
// segment.
type jfifWriter struct {
	w       io.Writer
	segment []byte
	skipped int
}

func (j *jfifWriter) Write(p []byte) (int, error) {
	n := min(2-j.skipped, len(p))
	j.skipped += n
	if j.skipped == 2 && j.segment != nil {
		if _, err := j.w.Write(j.segment); err != nil {
			return 0, err
		}
		j.segment = nil
	}
	m, err := j.w.Write(p[n:])
	return n + m, err
}
