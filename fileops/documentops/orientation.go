package documentops

import (
	"bytes"
	"encoding/binary"
)

const exifOrientation = 0x0112

// orientation returns the orientation that a JPEG notes, from 1 to 8 (Exif 2.32,
// 4.6.4). Some programs follow it when they show a picture in a document and
// others do not, so it has to stay.
func orientation(b []byte) int {
	for i := 2; i+4 <= len(b) && b[i] == 0xff && b[i+1] != 0xda; {
		n := int(binary.BigEndian.Uint16(b[i+2:]))
		if n < 2 || i+2+n > len(b) {
			break
		}
		if seg := b[i+4 : i+2+n]; b[i+1] == 0xe1 && bytes.HasPrefix(seg, []byte("Exif\x00\x00")) {
			return tiffOrientation(seg[6:])
		}
		i += 2 + n
	}
	return 1
}

// tiffOrientation reads the first directory of a TIFF header.
func tiffOrientation(b []byte) int {
	if len(b) < 8 {
		return 1
	}
	var order binary.ByteOrder = binary.LittleEndian
	if b[0] == 'M' {
		order = binary.BigEndian
	}
	at := order.Uint32(b[4:])
	if int64(at)+2 > int64(len(b)) {
		return 1
	}
	dir := b[at+2:]
	for range order.Uint16(b[at:]) {
		if len(dir) < 12 {
			break
		}
		if order.Uint16(dir) == exifOrientation {
			if v := order.Uint16(dir[8:]); v >= 1 && v <= 8 {
				return int(v)
			}
			break
		}
		dir = dir[12:]
	}
	return 1
}

// withOrientation puts an Exif segment with nothing but the orientation behind
// the start of a JPEG, unless it is the usual one.
func withOrientation(b []byte, orientation int) []byte {
	if orientation <= 1 || len(b) < 2 {
		return b
	}
	exif := []byte("Exif\x00\x00MM\x00*\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00")
	exif[6+19] = byte(orientation) // value of the only entry
	out := append([]byte{0xff, 0xd8, 0xff, 0xe1}, byte((len(exif)+2)>>8), byte(len(exif)+2))
	return append(append(out, exif...), b[2:]...)
}
