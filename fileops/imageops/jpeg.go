package imageops

import "math"

// A jpegInfo is what the headers of a JPEG tell without decoding it.
type jpegInfo struct {
	quality    int  // estimated, 1 to 100; 0 if it cannot be told
	fullColour bool // colours are stored for every pixel (4:4:4)
	components int
	bits       int
	adobe      bool // has the marker by which Adobe says that CMYK is inverted
}

// luminance is the table of Annex K.1 of ITU-T T.81 in zigzag order. libjpeg
// and almost every other encoder scale it to get a "quality".
var luminance = [64]int{
	16, 11, 12, 14, 12, 10, 16, 14, 13, 14, 18, 17, 16, 19, 24, 40,
	26, 24, 22, 22, 24, 49, 35, 37, 29, 40, 58, 51, 61, 60, 57, 51,
	56, 55, 64, 72, 92, 78, 64, 68, 87, 69, 55, 56, 80, 109, 81, 87,
	95, 98, 103, 104, 103, 62, 77, 113, 121, 112, 100, 120, 92, 101, 103, 99,
}

// readJPEG reads the headers up to the first scan. What it does not understand
// it leaves at zero.
func readJPEG(b []byte) (info jpegInfo) {
	for i := 2; i+4 <= len(b) && b[i] == 0xff; {
		marker := b[i+1]
		if marker == 0xff { // fill bytes may precede a marker
			i++
			continue
		}
		if marker == 0xda || marker == 0xd9 {
			break
		}
		if marker >= 0xd0 && marker <= 0xd7 || marker == 0x01 {
			i += 2
			continue
		}
		n := int(b[i+2])<<8 | int(b[i+3])
		if n < 2 || i+2+n > len(b) {
			break
		}
		seg := b[i+4 : i+2+n]
		switch {
		case marker == 0xdb:
			info.quantisation(seg)
		case marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc:
			info.frame(seg)
		case marker == 0xee && len(seg) >= 12 && string(seg[:5]) == "Adobe":
			info.adobe = true
		}
		i += 2 + n
	}
	return info
}

// quantisation estimates the quality from a DQT segment (T.81, B.2.4.1). Only
// the table with identifier 0, which everyone uses for luminance, counts.
func (info *jpegInfo) quantisation(seg []byte) {
	for len(seg) > 0 {
		wide, id := int(seg[0]>>4), seg[0]&15
		size := 64 * (1 + wide)
		if wide > 1 || len(seg) < 1+size {
			return
		}
		if id == 0 {
			var t [64]int
			for i := range t {
				if wide == 1 {
					t[i] = int(seg[1+2*i])<<8 | int(seg[2+2*i])
				} else {
					t[i] = int(seg[1+i])
				}
			}
			info.quality = estimateQuality(&t)
		}
		seg = seg[1+size:]
	}
}

// estimateQuality returns the libjpeg quality whose luminance table is nearest
// to t.
func estimateQuality(t *[64]int) int {
	best, distance := 0, math.MaxInt
	for q := 100; q >= 1; q-- {
		scale := 200 - 2*q
		if q < 50 {
			scale = 5000 / q
		}
		d := 0
		for i, v := range luminance {
			w := min(255, max(1, (v*scale+50)/100))
			if w > t[i] {
				d += w - t[i]
			} else {
				d += t[i] - w
			}
		}
		if d < distance {
			best, distance = q, d
		}
	}
	return best
}

// frame reads the sampling factors from an SOF segment (T.81, B.2.2).
func (info *jpegInfo) frame(seg []byte) {
	if len(seg) < 6 {
		return
	}
	info.bits, info.components = int(seg[0]), int(seg[5])
	if len(seg) < 6+3*info.components {
		return
	}
	info.fullColour = info.components >= 3
	for c := 1; c < info.components; c++ {
		if seg[7+3*c] != seg[7] {
			info.fullColour = false
		}
	}
}
