package imageops

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/filewright/filewright/fileops/format"
)

// A tiffInfo holds properties from the directories of a TIFF.
type tiffInfo struct {
	pages   int
	bilevel bool // every page has one sample of one bit

	// A page has fewer chroma than luma samples without JPEG (TIFF 6.0, section
	// 21), or uses the old JPEG compression (section 22).
	subsampled bool

	oddBits int // a number of bits per sample that few programs read, such as 12; 0 if there is none

	full        []int // indices of the pages that are not smaller copies of others (tag NewSubfileType)
	planarTiles bool  // a full page has tiles, and its samples are stored by component
}

// fullPages returns the indices of the pages of a file of n pages, without the smaller
// copies of them that a TIFF may have. If there are only smaller pictures, it returns
// all.
func fullPages(src source, n int) []int {
	if src.format == format.TIFF {
		if info := readTIFF(src.data); info.pages == n && len(info.full) > 0 {
			return info.full
		}
	}
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// unusual returns the reason why this package may be unable to read a valid picture,
// or "".
func unusual(src source) string {
	switch src.format {
	case format.TIFF:
		switch info := readTIFF(src.data); {
		case info.oddBits > 0:
			return fmt.Sprintf("TIFF with %d bits per sample", info.oddBits)
		case info.planarTiles:
			return "TIFF with tiles of single components"
		}
	case format.AVIF, format.HEIC:
		// The item entries name the codecs (ISO/IEC 23008-12, 6.2).
		head := src.data[:min(len(src.data), 64<<10)]
		if len(head) > 24 && string(head[20:24]) == "mini" {
			return "HEIF picture with a short header" // ISO/IEC 23008-12:2025
		}
		if bytes.Contains(head, []byte("infe")) && !bytes.Contains(head, []byte("hvc1")) && !bytes.Contains(head, []byte("av01")) {
			return "HEIF picture that is neither HEVC nor AV1"
		}
	case format.SVG:
		if sizeless(src.data) {
			return "drawing without a size"
		}
	}
	return ""
}

// readTIFF reads the image file directories of a TIFF (TIFF 6.0, section 2). It
// does not read BigTIFF.
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
		// Defaults of the format.
		bits, samples, compression, photometric := uint16(1), uint16(1), uint16(1), uint16(0)
		across, down := uint16(2), uint16(2)
		planar, tiled, smaller := false, false, false
		for e := at + 2; e < end; e += 12 {
			switch order.Uint16(b[e:]) {
			case 254:
				smaller = order.Uint32(b[e+8:])&1 != 0
			case 258:
				bits = order.Uint16(b[e+8:])
				if at := int64(order.Uint32(b[e+8:])); order.Uint32(b[e+4:]) > 2 && at+2 <= int64(len(b)) {
					bits = order.Uint16(b[at:]) // the values of all samples do not fit into the entry
				}
			case 259:
				compression = order.Uint16(b[e+8:])
			case 262:
				photometric = order.Uint16(b[e+8:])
			case 277:
				samples = order.Uint16(b[e+8:])
			case 284:
				planar = order.Uint16(b[e+8:]) == 2
			case 322:
				tiled = true
			case 530:
				across, down = order.Uint16(b[e+8:]), order.Uint16(b[e+10:])
			}
		}
		const oldJPEG, newJPEG, yCbCr = 6, 7, 6
		if photometric == yCbCr && compression != newJPEG && (across != 1 || down != 1) || compression == oldJPEG {
			info.subsampled = true
		}
		if !smaller {
			info.full = append(info.full, info.pages-1)
			info.planarTiles = info.planarTiles || planar && tiled && samples > 1
		}
		switch bits {
		case 1, 2, 4, 8, 16, 32, 64:
		default:
			info.oddBits = int(bits)
		}
		info.bilevel = info.bilevel && bits == 1 && samples == 1
		at = int64(order.Uint32(b[end:]))
	}
	info.bilevel = info.bilevel && info.pages > 0
	return info
}
