package mailops

import (
	"context"
	"strings"
	"testing"
)

// The examples of [MS-OXRTFCP] 3.2.
func TestUnpackRTF(t *testing.T) {
	t.Parallel()
	for packed, want := range map[string]string{
		"\x2d\x00\x00\x00\x2b\x00\x00\x00\x4c\x5a\x46\x75\xf1\xc5\xc7\xa7\x03\x00\x0a\x00\x72\x63\x70\x67\x31\x32\x35\x42\x32\x0a\xf3\x20\x68\x65\x6c\x09\x00\x20\x62\x77\x05\xb0\x6c\x64\x7d\x0a\x80\x0f\xa0": "{\\rtf1\\ansi\\ansicpg1252\\pard hello world}\r\n",
		"\x1a\x00\x00\x00\x1c\x00\x00\x00\x4c\x5a\x46\x75\xe2\xd4\x4b\x51\x41\x00\x04\x20\x57\x58\x59\x5a\x0d\x6e\x7d\x01\x0e\xb0":                                                                             "{\\rtf1 WXYZWXYZWXYZWXYZWXYZ}",
	} {
		if got, err := unpackRTF([]byte(packed)); err != nil || string(got) != want {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
	}
	bomb := "\x00\x00\x00\x00\xff\xff\xff\x7fLZFu\x00\x00\x00\x00" + strings.Repeat("\xff", 100)
	if _, err := unpackRTF([]byte(bomb)); err == nil {
		t.Error("a size that the data cannot have is accepted")
	}
}

func FuzzRTF(f *testing.F) {
	f.Add([]byte(`{\rtf1\ansi\fromhtml1 {\*\htmltag64 <p>}\u8364?\'e4\bin3 abc}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		text, _ := readRTF(b)
		if len(text) > 10*len(b)+10 {
			t.Errorf("%d bytes of text", len(text))
		}
	})
}

func FuzzHeader(f *testing.F) {
	f.Add([]byte("From: a\r\n b\r\nTo: c\n\nbody"))
	f.Fuzz(func(_ *testing.T, b []byte) {
		h, _ := splitHeader(b)
		p := &parser{ctx: context.Background(), parts: 100, bytes: 1 << 20}
		_ = p.addresses(h["from"])
		m, err := p.mime(b, 0)
		if err == nil {
			_, _ = m.page("x")
			_ = m.eml()
		}
	})
}
