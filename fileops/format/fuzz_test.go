package format_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/filewright/filewright/fileops/format"
)

// Sniff never panics and reads a bounded amount, and Check agrees with it.
func FuzzSniff(f *testing.F) {
	f.Add([]byte("%PDF-1.4\n"))
	f.Add([]byte("PK\x05\x06" + strings.Repeat("\x00", 18)))
	f.Add([]byte(compoundOf(9, []int{1, 0}, entry{name: "Root Entry", child: 1}, entry{name: "WordDocument"})))
	f.Add([]byte(archive(f, 0, "mimetype", "application/epub+zip")))
	f.Add([]byte(archive(f, 8, "word/document.xml", "x")))
	f.Add([]byte(opcFile(f, "a.xml", "/a.xml", "x/officeDocument", "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml")))
	f.Add([]byte(archive(f, 8, "content.xml", "x", "META-INF/manifest.xml", `<m:file-entry m:full-path="/" m:media-type="application/vnd.oasis.opendocument.text"/>`)))
	f.Add([]byte(frames("\xff\xfb\x90\x00", 417, 3)))
	f.Add([]byte(frames("\xff\xf1\x50\x80\x20\x1f\xfc", 256, 3)))
	f.Add([]byte(ftyp("mif1", "avif")))
	f.Add([]byte(packets("", 5)))
	f.Add([]byte("\xff\xfea\x00b\x00"))
	f.Add([]byte("<?xml?><!DOCTYPE a [<!-- ]><svg"))
	f.Fuzz(func(t *testing.T, b []byte) {
		c := &counter{r: bytes.NewReader(b)}
		size := int64(len(b))
		got := format.Sniff(c, size)
		if c.n > 3<<20 {
			t.Errorf("%d bytes are read", c.n)
		}
		if got != "" && !got.Known() {
			t.Errorf("%q is no known format", got)
		}
		if got != "" {
			if err := format.Check(got, bytes.NewReader(b), size); err != nil {
				t.Errorf("sniffed %s: %v", got, err)
			}
		}
		for _, want := range []format.Format{format.PDF, format.DOCX, format.TXT, format.MP3, format.SVG, "xyz"} {
			var m *format.MismatchError
			switch err := format.Check(want, bytes.NewReader(b), size); {
			case errors.As(err, &m):
				cutOff := got == format.ZIP && m.Got == "" && want == format.DOCX
				if m.Got != got && !cutOff || m.Want != want {
					t.Errorf("%s: %+v, sniffed %q", want, m, got)
				}
			case err != nil && !errors.Is(err, format.ErrEncrypted):
				t.Errorf("%s: %v", want, err)
			}
		}
	})
}

// Any name results in a base and an extension without a path.
func FuzzParseName(f *testing.F) {
	for _, s := range []string{"a.pdf", ".tar.gz", "a/b\\c.JPEG", "..", "", " x. ", "\xff.\xfe", "İ.PDF"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		got, base := format.Parse(name), format.Base(name)
		if strings.ContainsAny(string(got), `/\`) || strings.ContainsAny(base, `/\`) {
			t.Errorf("%q: format %q, base %q", name, got, base)
		}
		if strings.ContainsRune(string(got), '.') && !strings.HasPrefix(string(got), "tar.") {
			t.Errorf("%q: format %q has a dot", name, got)
		}
		if again := format.Parse("x." + string(got)); got != "" && utf8.ValidString(name) && strings.TrimSpace(string(got)) == string(got) && again != got {
			t.Errorf("%q: format %q is parsed as %q", name, got, again)
		}
		if base == "" && name != "" && !strings.HasSuffix(name, "/") && !strings.HasSuffix(name, `\`) {
			t.Errorf("%q: no base", name)
		}
	})
}
