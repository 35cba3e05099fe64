package charset_test

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/filewright/filewright/internal/charset"
	"github.com/filewright/filewright/internal/systest"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
)

const (
	german   = "Straße, Größe und Öl für 5 €\n"
	french   = "Où est le garçon à l'œuvre ?\n"
	russian  = "Съешь же ещё этих мягких французских булок, да выпей чаю.\n"
	japan    = "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。\n"
	chinese  = "我能吞下玻璃而不伤身体。今天天气很好，我们去公园散步吧。\n"
	taiwan   = "我能吞下玻璃而不傷身體。今天天氣很好,我們去公園散步吧。\n"
	koreanly = "나는 유리를 먹을 수 있어요. 그래도 아프지 않아요.\n"
)

func TestDecode(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		enc  encoding.Encoding
		text string
	}{
		{"utf-8", encoding.Nop, german + russian + japan},
		{"utf-8 with mark", unicode.UTF8BOM, german},
		{"utf-16le", unicode.UTF16(unicode.LittleEndian, unicode.UseBOM), german + japan},
		{"utf-16be", unicode.UTF16(unicode.BigEndian, unicode.UseBOM), german + japan},
		{"utf-32le", utf32.UTF32(utf32.LittleEndian, utf32.UseBOM), german},
		{"utf-32be", utf32.UTF32(utf32.BigEndian, utf32.UseBOM), german},
		{"windows-1252", charmap.Windows1252, german + french},
		{"windows-1252, one word", charmap.Windows1252, "Grüße €"},
		{"windows-1251", charmap.Windows1251, russian},
		{"shift-jis", japanese.ShiftJIS, japan},
		{"euc-jp", japanese.EUCJP, japan},
		{"iso-2022-jp", japanese.ISO2022JP, japan},
		{"euc-kr", korean.EUCKR, koreanly},
		{"big5", traditionalchinese.Big5, taiwan},
		{"utf-16le without mark", unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM), german},
		{"utf-16be without mark", unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM), french},
		{"gb18030", simplifiedchinese.GB18030, chinese},
		{"long", charmap.Windows1251, strings.Repeat(russian, 10_000)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b, err := tt.enc.NewEncoder().Bytes([]byte(tt.text))
			systest.NoError(t, err)
			if got := string(charset.Decode(b)); got != tt.text {
				t.Errorf("got %.200q", got)
			}
			if got := readText(t, b); got != tt.text {
				t.Errorf("as a stream: got %.200q", got)
			}
		})
	}
}

func TestDecodeHTML(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		enc  encoding.Encoding
		head string
	}{
		{"meta charset", charmap.ISO8859_5, `<meta charset="iso-8859-5">`},
		{"http-equiv", charmap.KOI8R, `<meta http-equiv=Content-Type content="text/html; charset=koi8-r">`},
		{"xml", charmap.KOI8U, `<?xml version="1.0" encoding="KOI8-U"?>`},
		{"mark before meta", unicode.UTF16(unicode.LittleEndian, unicode.UseBOM), `<meta charset="iso-8859-5">`},
		{"nothing", charmap.Windows1251, ``},
		{"UTF-8 that says otherwise", encoding.Nop, `<meta charset="iso-8859-5">`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			page := tt.head + "<p>" + russian
			b, err := tt.enc.NewEncoder().Bytes([]byte(page))
			systest.NoError(t, err)
			if got := string(charset.DecodeHTML(b)); got != page {
				t.Errorf("got %q", got)
			}
			text, err := charset.NewHTML(bytes.NewReader(b), int64(len(b)))
			systest.NoError(t, err)
			if got, err := io.ReadAll(text.Reader()); err != nil || string(got) != page {
				t.Errorf("as a stream: got %q, error %v", got, err)
			}
		})
	}
}

// readText decodes a text as a stream.
func readText(t *testing.T, b []byte) string {
	t.Helper()
	text, err := charset.NewText(bytes.NewReader(b), int64(len(b)))
	systest.NoError(t, err)
	var got []byte
	for range 2 { // it can be read again
		if got, err = io.ReadAll(text.Reader()); err != nil {
			t.Fatal(err)
		}
	}
	return string(got)
}

// A text decodes to the same result as a whole and as a stream, which may be split
// anywhere.
func TestText(t *testing.T) {
	t.Parallel()
	for name, b := range map[string]string{
		"nothing":            "",
		"a mark":             "\xef\xbb\xbf",
		"broken":             "a\xe4\xf6b",
		"broken with a mark": "\xef\xbb\xbfa\xff\xfe\xe2\x82b\xe2\x82",
		"across chunks":      strings.Repeat("x", 64<<10) + strings.Repeat("€", 100_000),
		"shift across":       strings.Repeat("x", 64<<10+2) + "\x1b$B$3$s\x1b(B",
		"broken at the end":  strings.Repeat("€", 200_000) + "\xe2\x82",
		"broken late":        "\xef\xbb\xbf" + strings.Repeat("€", 200_000) + "\xff\xffx",
	} {
		for pad := range 5 {
			in := []byte(b)
			if len(in) > 10 {
				in = append(in, strings.Repeat("y", pad)...)
				in = slices.Insert(in, 5, []byte(strings.Repeat("z", pad))...)
			}
			if got, want := readText(t, in), string(charset.Decode(in)); got != want {
				t.Errorf("%s, %d: got %d bytes, want %d", name, pad, len(got), len(want))
			}
		}
	}
	if _, err := charset.NewText(strings.NewReader("abc"), 4); err == nil {
		t.Error("no error for a text that is shorter than declared")
	}
}

// The output is UTF-8 for any input.
func FuzzDecode(f *testing.F) {
	f.Add([]byte("\xff\xfea\x00"))
	f.Add([]byte("\x1b$B$3$s\x1b(B"))
	f.Add([]byte("<meta charset=big5>\x81\x40"))
	f.Add([]byte(`<?xml version="1.0" encoding="utf-16"?>` + "\xe4"))
	f.Fuzz(func(t *testing.T, b []byte) {
		for name, out := range map[string][]byte{"text": charset.Decode(b), "page": charset.DecodeHTML(b)} {
			if strings.ToValidUTF8(string(out), "") != string(out) {
				t.Errorf("%s: not UTF-8", name)
			}
		}
		if got, want := readText(t, b), string(charset.Decode(b)); got != want {
			t.Errorf("as a stream %.200q, as a whole %.200q", got, want)
		}
	})
}

func ExampleDecode() {
	fmt.Printf("%s\n", charset.Decode([]byte("\xff\xfeG\x00r\x00\xfc\x00n\x00")))
	fmt.Printf("%s\n", charset.Decode([]byte("Gr\xfcn")))
	// Output:
	// Grün
	// Grün
}
