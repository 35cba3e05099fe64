package imagefile

import (
	"bytes"
	"encoding/binary"
)

// Upright returns a copy of a JPEG file that is shown as it is stored: the orientation in
// its EXIF data is normal. The small preview there, which may have another orientation, is
// left out.
func Upright(b []byte) []byte {
	b = bytes.Clone(b)
	for s := range jpegSegments(b) {
		if s.marker == markerSOS {
			break
		}
		if s.marker == markerAPP1 && bytes.HasPrefix(s.data, []byte(exifMark)) {
			upright(s.data[len(exifMark):])
		}
	}
	return b
}

// upright changes EXIF data in place, see [Upright]. The directory of the preview follows
// the first one (Exif 2.32, 4.5.4).
func upright(b []byte) {
	if len(b) < 8 {
		return
	}
	var order binary.ByteOrder = binary.LittleEndian
	if b[0] == 'M' {
		order = binary.BigEndian
	}
	at := int64(order.Uint32(b[4:]))
	if at+2 > int64(len(b)) {
		return
	}
	n := int(order.Uint16(b[at:]))
	entries := b[at+2:]
	for range n {
		if len(entries) < 12 {
			return
		}
		if order.Uint16(entries) == tagOrientation {
			order.PutUint16(entries[8:], 1)
		}
		entries = entries[12:]
	}
	if len(entries) >= 4 {
		order.PutUint32(entries, 0)
	}
}
