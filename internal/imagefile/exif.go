package imagefile

import "encoding/binary"

// Tags of TIFF (TIFF 6.0, section 8).
const (
	tagOrientation    = 0x112
	tagXResolution    = 0x11a
	tagYResolution    = 0x11b
	tagResolutionUnit = 0x128
)

// readEXIF reads the first directory of EXIF data, which starts with a TIFF
// header (Exif 2.32, 4.5). It ignores damaged fields: the orientation is then 0,
// or the density zero.
func readEXIF(b []byte) (orientation int, d Density) {
	if len(b) < 8 {
		return 0, d
	}
	var order binary.ByteOrder = binary.LittleEndian
	if b[0] == 'M' {
		order = binary.BigEndian
	}
	at := int64(order.Uint32(b[4:]))
	if at+2 > int64(len(b)) {
		return 0, d
	}
	rational := func(value []byte) float64 {
		o := int64(order.Uint32(value))
		if o+8 > int64(len(b)) || order.Uint32(b[o+4:]) == 0 {
			return 0
		}
		return float64(order.Uint32(b[o:])) / float64(order.Uint32(b[o+4:]))
	}
	unit := 2
	entries := b[at+2:]
	for range order.Uint16(b[at:]) {
		if len(entries) < 12 {
			break
		}
		value := entries[8:]
		switch order.Uint16(entries) {
		case tagOrientation:
			if v := int(order.Uint16(value)); v >= 1 && v <= 8 {
				orientation = v
			}
		case tagXResolution:
			d.X = rational(value)
		case tagYResolution:
			d.Y = rational(value)
		case tagResolutionUnit:
			unit = int(order.Uint16(value))
		}
		entries = entries[12:]
	}
	switch unit {
	case 2: // inch
		return orientation, d
	case 3:
		return orientation, Density{d.X * centimetresPerInch, d.Y * centimetresPerInch}
	}
	return orientation, Density{}
}

// WithOrientation inserts an EXIF segment with only an orientation into a JPEG
// file, unless the orientation is normal.
func WithOrientation(b []byte, orientation int) []byte {
	if orientation <= 1 || len(b) < 2 {
		return b
	}
	exif := []byte("Exif\x00\x00MM\x00*\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00")
	exif[6+19] = byte(orientation) // value of the only entry
	out := append([]byte{0xff, 0xd8, 0xff, markerAPP1}, byte((len(exif)+2)>>8), byte(len(exif)+2))
	return append(append(out, exif...), b[2:]...)
}
