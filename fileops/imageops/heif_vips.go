//go:build cgo

package imageops

import (
	"bytes"
	"encoding/binary"
	"math"
)

// heifSize returns the largest picture size in pixels that a HEIF file declares,
// or 0 (ISO/IEC 23008-12, 6.5.3). It decodes nothing.
func heifSize(b []byte) (width, height int) {
	box := []byte("\x00\x00\x00\x14ispe") // 20 bytes: version and flags, width, height
	for {
		_, rest, ok := bytes.Cut(b, box)
		if !ok || len(rest) < 12 {
			return width, height
		}
		w, h := binary.BigEndian.Uint32(rest[4:]), binary.BigEndian.Uint32(rest[8:])
		if w <= math.MaxInt32 && h <= math.MaxInt32 && int64(w)*int64(h) > int64(width)*int64(height) {
			width, height = int(w), int(h)
		}
		b = rest[12:]
	}
}
