package imageops

import "encoding/binary"

// A tiffInfo is what the directories of a TIFF tell.
type tiffInfo struct {
	pages   int
	bilevel bool // every page has one sample of one bit
}

// readTIFF reads the image file directories of a TIFF (TIFF 6.0, section 2), not
// those of BigTIFF.
func readTIFF(b []byte) (info tiffInfo) {
	if len(b) < 8 {
		return info
	}
	var order binary.ByteOrder = binary.LittleEndian
	if b[0] == 'M' {
		order = binary.BigEndian
	}
	if order.Uint16(b[2:]) != 42 {
		return info
	}
	const maxPages = 10000 // directories may form a loop
	info.bilevel = true
	for at := int64(order.Uint32(b[4:])); at > 0 && at+2 <= int64(len(b)) && info.pages < maxPages; {
		info.pages++
		n := int64(order.Uint16(b[at:]))
		end := at + 2 + 12*n
		if end+4 > int64(len(b)) {
			break
		}
		bits, samples := uint16(1), uint16(1) // the defaults of the format
		for e := at + 2; e < end; e += 12 {
			switch order.Uint16(b[e:]) {
			case 258:
				bits = order.Uint16(b[e+8:])
			case 277:
				samples = order.Uint16(b[e+8:])
			}
		}
		info.bilevel = info.bilevel && bits == 1 && samples == 1
		at = int64(order.Uint32(b[end:]))
	}
	info.bilevel = info.bilevel && info.pages > 0
	return info
}
