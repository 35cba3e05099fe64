//go:build cgo

package imageops

import (
	"bytes"
	"context"
	"encoding/base64"
	"image"
	"strings"

	"github.com/filewright/filewright/fileops/format"
)

// probeVips tests every saver and loader. The existence of an operation is not
// enough: HEIF and JPEG 2000 depend on plug-ins, and on the distribution's
// choices.
func probeVips() vipsCodec {
	c := vipsCodec{version: vipsVersion(), in: make(map[format.Format]bool), out: make(map[format.Format]bool)}
	ctx := context.Background()
	m := image.NewNRGBA(image.Rect(0, 0, 16, 16))
	for i := range m.Pix {
		m.Pix[i] = byte(i * 7)
	}
	works := func(f format.Format, data []byte) bool {
		img, err := c.pixels(ctx, source{data, f}, plan{})
		return err == nil && !img.Bounds().Empty()
	}
	for f, op := range savers {
		if !hasOperation(op) {
			continue
		}
		b, err := c.encode(ctx, decoded{img: m}, plan{to: f})
		if err != nil || format.Sniff(bytes.NewReader(b), int64(len(b))) != f {
			continue
		}
		// An output format that cannot be read back cannot be checked.
		if c.in[f] = works(f, b); c.in[f] {
			c.out[f] = true
		}
	}
	for f, op := range loaders {
		if s, ok := tiny[f]; ok && !c.in[f] && hasOperation(op) {
			c.in[f] = works(f, s())
		}
	}
	return c
}

// tiny returns small pictures in formats that libvips may read but not write.
var tiny = map[format.Format]func() []byte{
	format.SVG: func() []byte {
		return []byte(`<svg xmlns="http://www.w3.org/2000/svg" width="8" height="8"><rect width="8" height="8" fill="red"/></svg>`)
	},
	format.AVIF: func() []byte { return decode64(tinyAVIF) },
	format.HEIC: func() []byte { return decode64(tinyHEIC) },
	format.JXL:  func() []byte { return decode64(tinyJXL) },
	format.JP2:  func() []byte { return decode64(tinyJP2) },
}

func decode64(s string) []byte {
	b, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(s, "\n", ""))
	if err != nil {
		return nil // the format then counts as unsupported
	}
	return b
}
