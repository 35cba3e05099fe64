package compound

import (
	"bytes"
	"io"
	"testing"

	"github.com/filewright/filewright/internal/systest"
)

// The input is damaged: the tables of a file are repeated.
func FuzzGrowth(f *testing.F) {
	b := sample(f)
	systest.FuzzGrowth(f, func(_ testing.TB, _ string, b []byte) {
		Names(bytes.NewReader(b), int64(len(b)))
		c, err := Open(bytes.NewReader(b), int64(len(b)), 0)
		if err != nil {
			return
		}
		for name := range c.Streams() {
			if r, ok, err := c.Stream(name); ok && err == nil {
				_, _ = io.Copy(io.Discard, r)
			}
		}
	}, systest.Growing{Head: string(b), Unit: string(b[512:1024])}, systest.Growing{Head: string(b[:512]), Unit: string(b[512:1024])}, systest.Growing{Head: string(b[:1024]), Unit: "\x01\x00\x00\x00"})
}
