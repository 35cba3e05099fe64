package fontfile_test

import (
	"testing"

	"github.com/filewright/filewright/internal/systest"
)

func FuzzGrowth(f *testing.F) {
	systest.FuzzGrowth(f, func(_ testing.TB, _ string, b []byte) { fuzz(b) },
		systest.Growing{Head: "\x00\x01\x00\x00\xff\xff\x00\x00\x00\x00\x00\x00", Unit: "glyf\x00\x00\x00\x00\x00\x00\x00\x0c\x00\x00\x00\x10"},
		systest.Growing{Head: "\x00\x01\x00\x00\xff\xff\x00\x00\x00\x00\x00\x00", Unit: "cmap\x00\x00\x00\x00\x00\x00\x00\x0c\x00\x00\xff\x10"},
		systest.Growing{Head: "\x01\x00\x04\x04", Unit: "\x00\x01\x01\x01"}, systest.Growing{Head: "%!PS-AdobeFont-1.0", Unit: "/a 1 def "}, systest.Growing{Head: "%!PS-AdobeFont-1.0 eexec ", Unit: "dup 1 1 RD x NP "}, systest.Growing{Unit: "eexec"})
}
