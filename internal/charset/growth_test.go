package charset_test

import (
	"testing"

	"github.com/filewright/filewright/internal/charset"
	"github.com/filewright/filewright/internal/systest"
)

func FuzzGrowth(f *testing.F) {
	systest.FuzzGrowth(f, func(_ testing.TB, _ string, b []byte) {
		charset.Decode(b)
		charset.DecodeHTML(b)
	}, systest.Growing{Unit: "\xa4\xa4"}, systest.Growing{Unit: "\x1b$B"}, systest.Growing{Unit: "a\x00"}, systest.Growing{Unit: `<meta charset=`}, systest.Growing{Unit: "\xff\xfe"}, systest.Growing{Unit: "\x81\x30"})
}
