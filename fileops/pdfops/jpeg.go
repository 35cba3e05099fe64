package pdfops

import (
	"encoding/binary"
	"errors"
	"math"
)

// jpegInfo is what the markers of a JPEG file say.
type jpegInfo struct {
	width, height int
	components    int
	sof           byte // marker of the frame, 0xc0 for baseline
	adobe         bool
	transform     int // of the Adobe marker
	quality       int // estimated from the luminance table, 0 if it cannot be
	complete      bool
	density       density
	orientation   int // of the EXIF data, 1 to 8; 0 if there is none
	profile       []byte
}

// A density is a picture's resolution in dots per inch, 0 if unknown.
type density struct{ x, y float64 }

var errJPEG = errors.New("not a JPEG file")

// parseJPEG reads the markers of a JPEG file (ITU-T T.81 annex B) up to the end
// of the picture.
func parseJPEG(b []byte) (jpegInfo, error) {
	var info jpegInfo
	if len(b) < 4 || b[0] != 0xff || b[1] != 0xd8 {
		return info, errJPEG
	}
	var profile [256][]byte
	parts := 0
	for i := 2; i+4 <= len(b); {
		if b[i] != 0xff {
			return info, errJPEG
		}
		m := b[i+1]
		if m == 0xff { // filling
			i++
			continue
		}
		if m == 0xd9 {
			break
		}
		if m == 0x01 || m >= 0xd0 && m <= 0xd7 {
			i += 2
			continue
		}
		n := int(binary.BigEndian.Uint16(b[i+2:]))
		if n < 2 || i+2+n > len(b) {
			return info, errJPEG
		}
		seg := b[i+4 : i+2+n]
		i += 2 + n
		switch {
		case m >= 0xc0 && m <= 0xcf && m != 0xc4 && m != 0xc8 && m != 0xcc:
			if len(seg) < 6 || info.sof != 0 {
				return info, errJPEG
			}
			info.sof = m
			if seg[0] != 8 {
				return info, errors.New("not 8 bits per component")
			}
			info.height = int(binary.BigEndian.Uint16(seg[1:]))
			info.width = int(binary.BigEndian.Uint16(seg[3:]))
			info.components = int(seg[5])
		case m == 0xdb:
			if q := tableQuality(seg); q > 0 {
				info.quality = q
			}
		case m == 0xe0 && len(seg) >= 12 && string(seg[:5]) == "JFIF\x00":
			x, y := float64(binary.BigEndian.Uint16(seg[8:])), float64(binary.BigEndian.Uint16(seg[10:]))
			switch seg[7] {
			case 1:
				info.density = density{x, y}
			case 2:
				info.density = density{x * 2.54, y * 2.54}
			}
		case m == 0xe1 && len(seg) > 6 && string(seg[:6]) == "Exif\x00\x00":
			exif := parseEXIF(seg[6:])
			info.orientation = exif.orientation
			if info.density.x == 0 {
				info.density = exif.density
			}
		case m == 0xe2 && len(seg) > 14 && string(seg[:12]) == "ICC_PROFILE\x00":
			if k := seg[12]; profile[k] == nil {
				profile[k] = seg[14:]
				parts = int(seg[13])
			}
		case m == 0xee && len(seg) >= 12 && string(seg[:5]) == "Adobe":
			info.adobe, info.transform = true, int(seg[11])
		case m == 0xda:
			info.complete = hasEnd(b[i:])
			if info.width == 0 || info.height == 0 || info.components == 0 {
				return info, errJPEG
			}
			for k := 1; k <= parts; k++ {
				if profile[k] == nil {
					info.profile = nil
					break
				}
				info.profile = append(info.profile, profile[k]...)
			}
			return info, nil
		}
	}
	return info, errJPEG
}

// hasEnd tells whether the data of a scan, and of those after it, go on to the
// marker for the end of the picture.
func hasEnd(b []byte) bool {
	for i := len(b) - 2; i >= 0; i-- {
		if b[i] == 0xff && b[i+1] == 0xd9 {
			return true
		}
	}
	return false
}

// tableQuality estimates the quality, as libjpeg counts it, from quantization
// table 0, by comparison with the table of ITU-T T.81 annex K.1.
func tableQuality(seg []byte) int {
	// Sum of the values of that table.
	const standard = 3688
	for len(seg) > 0 {
		wide, id := seg[0]>>4, seg[0]&15
		n := 64
		if wide > 0 {
			n = 128
		}
		if len(seg) < 1+n {
			return 0
		}
		if id == 0 {
			sum := 0
			for i := range 64 {
				if wide > 0 {
					sum += int(binary.BigEndian.Uint16(seg[1+2*i:]))
				} else {
					sum += int(seg[1+i])
				}
			}
			percent := 100 * float64(sum) / standard
			q := (200 - percent) / 2
			if percent > 100 {
				q = 5000 / percent
			}
			return max(1, min(100, int(math.Round(q))))
		}
		seg = seg[1+n:]
	}
	return 0
}

// exifInfo is what is of interest in EXIF data.
type exifInfo struct {
	orientation int
	density     density
}

// parseEXIF reads the first image file directory of EXIF data (a TIFF header and
// what follows). What is damaged is left out.
func parseEXIF(b []byte) exifInfo {
	var info exifInfo
	if len(b) < 8 {
		return info
	}
	var order binary.ByteOrder = binary.LittleEndian
	if b[0] == 'M' {
		order = binary.BigEndian
	}
	at := int64(order.Uint32(b[4:]))
	if at+2 > int64(len(b)) {
		return info
	}
	unit := 2
	var x, y float64
	n := int64(order.Uint16(b[at:]))
	for i := range n {
		e := at + 2 + 12*i
		if e+12 > int64(len(b)) {
			break
		}
		value := b[e+8:]
		rational := func() float64 {
			o := int64(order.Uint32(value))
			if o+8 > int64(len(b)) || order.Uint32(b[o+4:]) == 0 {
				return 0
			}
			return float64(order.Uint32(b[o:])) / float64(order.Uint32(b[o+4:]))
		}
		switch order.Uint16(b[e:]) {
		case 0x112:
			if v := int(order.Uint16(value)); v >= 1 && v <= 8 {
				info.orientation = v
			}
		case 0x11a:
			x = rational()
		case 0x11b:
			y = rational()
		case 0x128:
			unit = int(order.Uint16(value))
		}
	}
	switch unit {
	case 2:
		info.density = density{x, y}
	case 3:
		info.density = density{x * 2.54, y * 2.54}
	}
	return info
}
