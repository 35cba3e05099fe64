package textlayer_test

import (
	"bytes"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/internal/textlayer"
	"github.com/filewright/filewright/internal/tinypdf"
)

// cmap maps 1 to H, 2 to i, 3 to a ligature, 4 to a character beyond the first plane, and 0x10 to 0x12 to
// x, y and z.
const cmap = `/CIDInit/ProcSet findresource begin
12 dict begin
begincmap
/CIDSystemInfo<</Registry (Adobe)/Ordering (UCS)/Supplement 0>>def
1 begincodespacerange
<00> <FF>
endcodespacerange
4 beginbfchar
<01> <0048>
<02> <0069>
<03> <00660069>
<04> <D83DDE00>
endbfchar
1 beginbfrange
<10> <12> <0078>
endbfrange
endcmap
end
end`

// page returns a file with a page of the given content. /F1 is a simple font with the CMap above, /F2 a
// composite font with the same, /F3 has the encoding of Windows, and nothing is known of /F4. /X1 is a
// drawing with text, and /X2 contains itself.
func page(content string) []byte {
	return tinypdf.File("1.6",
		"<</Type/Catalog/Pages 2 0 R>>",
		"<</Type/Pages/Resources 5 0 R/Kids[ 3 0 R ]/Count 1>>",
		"<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 100]/Contents 4 0 R>>",
		tinypdf.Stream("", content),
		"<</Font 6 0 R/XObject<</X1 11 0 R/X2 13 0 R>>>>",
		"<</F1 7 0 R/F2 8 0 R/F3 9 0 R/F4 10 0 R>>",
		"<</Type/Font/Subtype/TrueType/BaseFont/A/ToUnicode 12 0 R>>",
		"<</Type/Font/Subtype/Type0/BaseFont/A/Encoding/Identity-H/ToUnicode 12 0 R>>",
		"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>",
		"<</Type/Font/Subtype/Type1/BaseFont/Symbol>>",
		tinypdf.Stream("/Type/XObject/Subtype/Form/Resources<</Font 6 0 R>>", "BT /F3 9 Tf (drawn) Tj ET"),
		tinypdf.Stream("", cmap),
		tinypdf.Stream("/Type/XObject/Subtype/Form/Resources<</XObject<</X2 13 0 R>>>>", strings.Repeat("/X2 Do ", 100)))
}

func TestText(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]string{
		"BT /F1 12 Tf 20 50 Td <0102>Tj ET":                                                  "Hi",
		"BT /F1 12 Tf [<01>-20<02>8<03>]TJ ET":                                               "Hifi",
		"BT /F1 12 Tf (\\001\\2) Tj <04 10 12> Tj ET":                                        "Hi 😀xz",
		"BT /F2 12 Tf <00010011>Tj ET":                                                       "Hy",
		"BT /F3 12 Tf (a\\(b\\)\\\\ \\\nc) ' 1 2 (d) \" ET":                                  `a(b)\ c d`,
		"BT /F4 12 Tf (abc) Tj ET":                                                           "",
		"BT (before a font) Tj ET":                                                           "",
		"q /F1 9 Tf q /F3 12 Tf (a) Tj Q <01>Tj Q <01>Tj":                                    "a H",
		"/Span<</ActualText<FEFF00e400f6>>>BDC /F1 9 Tf <01>Tj /P BMC <02>Tj EMC EMC <01>Tj": "äöH",
		"/P <</MCID 0>>BDC /F3 9 Tf (x) Tj EMC (y) Tj EMC (z) Tj":                            "x y z",
		"/X1 Do /F3 9 Tf (after) Tj":                                                         "drawn after",
		"/F3 9 Tf -1.5 .5 Td % (comment) Tj\n(x) Tj":                                         "x",
		"": "",
	} {
		got, err := textlayer.Text(t.Context(), page(content), 1)
		if got = strings.Join(strings.Fields(got), " "); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", content, got, err, want)
		}
	}
}

func TestCompressed(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	fmt.Fprint(w, "/F1 9 Tf (a) Tj")
	systest.NoError(t, w.Close())
	in := tinypdf.File("1.4", "<</Pages 2 0 R>>", "<</Kids[3 0 R 3 0 R]>>",
		"<</Type/Page/Contents[4 0 R 4 0 R]/Resources<</Font<</F1<</Encoding/WinAnsiEncoding>>>>>>>>", tinypdf.Stream("/Filter/FlateDecode", b.String()))
	if got, err := textlayer.Text(t.Context(), in, 2); err != nil || got != "a\na\n\na\na\n\n" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := textlayer.Text(t.Context(), in, 1); !errors.Is(err, textlayer.ErrUnknown) || !errors.Is(err, textlayer.ErrLong) {
		t.Errorf("more pages: %v", err)
	}
}

func TestUnknown(t *testing.T) {
	t.Parallel()
	in := page("/F3 9 Tf (x) Tj")
	replace := func(old, with string) []byte {
		t.Helper()
		if !bytes.Contains(in, []byte(old)) {
			t.Fatalf("no %q", old)
		}
		return bytes.Replace(in, []byte(old), []byte(with), 1)
	}
	for name, b := range map[string][]byte{
		"empty":                    nil,
		"cut":                      in[:len(in)/2],
		"encrypted":                replace("/Root 1 0 R", "/Encrypt 9 0 R/Root 1 0 R"),
		"another filter":           replace("<</Length 15>>", "<</Length 15/Filter/LZWDecode>>"),
		"a length beyond the file": replace("<</Length 15>>", "<</Length 99999>>"),
		"a missing object":         replace("/Contents 4 0 R", "/Contents 99 0 R"),
		"a circle of pages":        replace("[ 3 0 R ]", "[ 2 0 R ]"),
		"a tree of the same nodes": tinypdf.File("1.4", "<</Pages 2 0 R>>", "<</Kids["+strings.Repeat("3 0 R ", 1000)+"]>>", "<</Kids["+strings.Repeat("4 0 R ", 1000)+"]>>",
			"<</Kids["+strings.Repeat("5 0 R ", 1000)+"]>>", "<</Kids[]>>"),
		"a picture in the content":  page("BI /W 1 ID x EI"),
		"a circle of drawings":      page("/X2 Do"),
		"an unfinished string":      page("/F3 9 Tf (x"),
		"too many states":           page(strings.Repeat("q ", 5000)),
		"too much marked content":   page(strings.Repeat("/P BMC ", 5000)),
		"an unfinished array":       page("[(x) TJ"),
		"brackets without an array": page("]"),
	} {
		if text, err := textlayer.Text(t.Context(), b, 10); !errors.Is(err, textlayer.ErrUnknown) {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
}

func TestCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := textlayer.Text(ctx, page(""), 1); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func ExampleText() {
	b := tinypdf.File("1.4", "<</Pages 2 0 R>>", "<</Kids[3 0 R]>>",
		"<</Type/Page/Contents 4 0 R/Resources<</Font<</F1<</Encoding/WinAnsiEncoding>>>>>>>>", tinypdf.Stream("", "/F1 9 Tf (some text) Tj"))
	text, err := textlayer.Text(context.Background(), b, 100)
	fmt.Printf("%q %v\n", text, err)
	// Output: "some text\n\n" <nil>
}

func FuzzText(f *testing.F) {
	f.Add(page("BT /F1 12 Tf [<01>-20<02>8<03>]TJ ET /X1 Do"))
	f.Add(page("/Span<</ActualText<FEFF00e4>>>BDC /F2 9 Tf <0001>Tj EMC /F3 9 Tf (\\101) Tj"))
	f.Add(page("/X2 Do"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := textlayer.Text(t.Context(), b, 10); err != nil && !errors.Is(err, textlayer.ErrUnknown) {
			t.Error(err)
		}
	})
}

// A damaged table of characters has no text, or less.
func TestDamagedCMap(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"(\\", "(", "]", "<<", "beginbfchar <01>", "beginbfrange <01> <02", "beginbfrange <0000> <ffff> <0041>"} {
		b := page("BT /F1 12 Tf <01>Tj ET")
		b = bytes.Replace(b, []byte(cmap), []byte(cmap[:len(cmap)-len(end)]+end), 1)
		if _, err := textlayer.Text(t.Context(), b, 1); err != nil {
			t.Errorf("%s: %v", end, err)
		}
	}
}
