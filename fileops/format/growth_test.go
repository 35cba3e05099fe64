package format_test

import (
	"bytes"
	"testing"

	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/systest"
)

func FuzzGrowth(f *testing.F) {
	systest.FuzzGrowth(f, func(_ testing.TB, _ string, b []byte) {
		format.Sniff(bytes.NewReader(b), int64(len(b)))
		for _, want := range []format.Format{format.DOCX, format.SVG, format.MP3, format.CSV, format.TIFF} {
			_ = format.Check(want, bytes.NewReader(b), int64(len(b)))
		}
	},
		systest.Growing{Unit: "PK\x03\x04"}, systest.Growing{Head: "PK\x03\x04", Unit: "PK\x05\x06\x00\x00\x00\x00\x01\x00\x01\x00"}, systest.Growing{Unit: "PK\x01\x02"}, systest.Growing{Head: "<?xml version=\"1.0\"?>", Unit: "<!--"},
		systest.Growing{Unit: "\x00\x00\x00\x08ftyp"}, systest.Growing{Unit: "\x00\x00\x00\x08moov"}, systest.Growing{Head: "\x1a\x45\xdf\xa3", Unit: "\x80"}, systest.Growing{Head: "ID3\x03\x00\x00\x00\x00\x00\x00", Unit: "\xff\xfb\x90\x00"},
		systest.Growing{Head: "II*\x00\x08\x00\x00\x00", Unit: "\x08\x00\x00\x00"}, systest.Growing{Head: "GIF89a", Unit: ";"}, systest.Growing{Head: "RIFF", Unit: "WAVE"}, systest.Growing{Head: "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", Unit: "\x00"})
}
