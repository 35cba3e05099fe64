package imagefile

import (
	"testing"

	"github.com/filewright/filewright/internal/systest"
)

func FuzzGrowth(f *testing.F) {
	const png = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x02\x00\x00\x00\x90wS\xde"
	systest.FuzzGrowth(f, func(t testing.TB, _ string, b []byte) {
		_, _ = ReadJPEG(b)
		_, _ = ReadPNG(b)
		PNGFrames(b)
		_, _ = DecodeAPNG(t.Context(), b, 1000)
		readEXIF(b)
		PNGProfile(b)
		SplitMetadata(b)
		WithoutChunk(b, "tEXt")
		CopyColourChunks([]byte(png), b)
		WithOrientation(b, 6)
		WithJPEGProfile(b, make([]byte, 200))
		editAll(b)
	},
		systest.Growing{Head: "RIFF    WEBP", Unit: "XMP \x00\x00\x00\x00"},
		systest.Growing{Head: "II*\x00\x08\x00\x00\x00\xff\x7f", Unit: "\x3b\x01\x02\x00\xff\x00\x00\x00\x08\x00\x00\x00"},
		systest.Growing{Head: png, Unit: "\x00\x00\x00\x00tEXt\xae\xa5\xff\x0e"}, systest.Growing{Head: png, Unit: "\x00\x00\x00\x01fcTL\x00\x00\x00\x00\x00"}, systest.Growing{Head: png, Unit: "\x00\x00\x00\x00iCCP\x00\x00\x00\x00"},
		systest.Growing{Head: "\xff\xd8", Unit: "\xff\xe2\x00\x10ICC_PROFILE\x00\x01\x01"}, systest.Growing{Head: "\xff\xd8", Unit: "\xff\xda\x00\x02"}, systest.Growing{Head: "\xff\xd8", Unit: "\xff"},
		systest.Growing{Head: "\xff\xd8", Unit: "\xff\xe1\x00\x16Exif\x00\x00II*\x00\x08\x00\x00\x00\x01\x00\x12\x01"}, systest.Growing{Head: "Exif\x00\x00II*\x00\x08\x00\x00\x00\xff\xff", Unit: "\x12\x01\x03\x00\x01\x00\x00\x00\x01\x00\x00\x00"})
}
