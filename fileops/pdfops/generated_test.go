package pdfops_test

import (
	"bytes"
	"compress/zlib"
	"encoding/ascii85"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/pdfops"
	"github.com/filewright/filewright/fileops/pdfread"
	"github.com/filewright/filewright/internal/systest"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/sfnt"
)

// A testFont is a font file of the system, in the form in which PDF files embed
// it.
type testFont struct {
	key  string // of the font file in the descriptor
	data string // a stream object
	gids map[rune]int
}

const (
	dejaVu  = "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf"
	urwType = "/usr/share/fonts/type1/urw-base35/C059-Roman.t1"
	urwCFF  = "/usr/share/fonts/opentype/urw-base35/P052-Roman.otf"
)

// composite is the name of the TrueType font with composite glyphs.
const composite = "composite"

const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

var testFonts = sync.OnceValues(func() (map[string]testFont, error) {
	out := make(map[string]testFont)
	// Large fonts dominate the run time. One is needed, because Go Regular has no
	// composite glyphs.
	files := map[string][]byte{"FontFile2": goregular.TTF}
	for key, p := range map[string]string{composite: dejaVu, "FontFile": urwType, "FontFile3": urwCFF} {
		b, err := os.ReadFile(p)
		if err != nil {
			return nil, err
		}
		files[key] = b
	}
	for name, b := range files {
		key := name
		if name == composite {
			key = "FontFile2"
		}
		f := testFont{key: key, gids: make(map[rune]int)}
		extra := ""
		switch key {
		case "FontFile2":
			extra = fmt.Sprintf("/Length1 %d", len(b))
			font, err := sfnt.Parse(b)
			if err != nil {
				return nil, err
			}
			for _, r := range letters {
				g, err := font.GlyphIndex(nil, r)
				if err != nil {
					return nil, err
				}
				f.gids[r] = int(g)
			}
		case "FontFile":
			i := bytes.Index(b, []byte("eexec")) + 6
			extra = fmt.Sprintf("/Length1 %d/Length2 %d/Length3 0", i, len(b)-i)
		case "FontFile3":
			b = table(b, "CFF ")
			extra = "/Subtype/Type1C"
		}
		f.data = stream(extra+"/Filter/FlateDecode", string(deflated(b)))
		out[name] = f
	}
	return out, nil
})

// table returns a table of an OpenType font.
func table(b []byte, name string) []byte {
	for i := range int(binary.BigEndian.Uint16(b[4:])) {
		e := b[12+16*i:]
		if string(e[:4]) == name {
			off, n := binary.BigEndian.Uint32(e[8:]), binary.BigEndian.Uint32(e[12:])
			return b[off : off+n]
		}
	}
	return nil
}

func deflated(b []byte) []byte {
	var out bytes.Buffer
	w := zlib.NewWriter(&out)
	w.Write(b)
	w.Close()
	return out.Bytes()
}

// A builder assembles a document, object by object.
type builder struct {
	t       testing.TB
	rng     *rand.Rand
	objects []string
	fonts   map[string]testFont
}

func (b *builder) add(o string) int {
	b.objects = append(b.objects, o)
	return len(b.objects)
}

func (b *builder) oneOf(s ...string) string { return s[b.rng.IntN(len(s))] }

func (b *builder) word() string {
	w := make([]byte, 3+b.rng.IntN(8))
	for i := range w {
		w[i] = letters[b.rng.IntN(len(letters))]
	}
	return string(w)
}

// font adds a font. It returns its number and a function that encodes text for
// it.
func (b *builder) font() (int, func(string) string) {
	plain := func(s string) string { return "(" + s + ")" }
	key := b.oneOf("FontFile", "FontFile2", "FontFile2", "FontFile3", "CID", "none", "Type3")
	widths := "/FirstChar 48/LastChar 122/Widths[" + strings.Repeat("600 ", 75) + "]"
	switch key {
	case "none":
		return b.add("<</Type/Font/Subtype/Type1/BaseFont/" + b.oneOf("Helvetica", "Times-Roman", "Courier") + ">>"), plain
	case "Type3":
		proc := b.add(stream("", "600 0 0 0 500 700 d1 0 0 500 700 re 100 100 300 500 re f*"))
		chars := ""
		for _, r := range letters {
			chars += fmt.Sprintf("/%c %d 0 R", r, proc)
		}
		return b.add("<</Type/Font/Subtype/Type3/FontBBox[0 0 600 700]/FontMatrix[.001 0 0 .001 0 0]/Resources<<>>/CharProcs<<" + chars +
			">>/Encoding<</Differences[48/zero 65/A/B/C/D/E/F/G/H/I/J/K/L/M/N/O/P/Q/R/S/T/U/V/W/X/Y/Z 97/a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p/q/r/s/t/u/v/w/x/y/z]>>" + widths + ">>"), plain
	}
	cid := key == "CID"
	if cid {
		key = "FontFile2"
	}
	f := b.fonts[key]
	if key == "FontFile2" && len(b.objects)%4 == 0 {
		f = b.fonts[composite]
	}
	file := b.add(f.data)
	name := b.oneOf("ABCDEF+Test", "Test")
	flags := b.oneOf("4", "32")
	desc := b.add(fmt.Sprintf("<</Type/FontDescriptor/FontName/%s/Flags %s/FontBBox[-200 -300 1200 1000]/ItalicAngle 0/Ascent 900/Descent -200/CapHeight 700/StemV 80/%s %d 0 R>>",
		name, flags, key, file))
	if cid {
		kid := b.add(fmt.Sprintf("<</Type/Font/Subtype/CIDFontType2/BaseFont/%s/CIDSystemInfo<</Registry(Adobe)/Ordering(Identity)/Supplement 0>>/FontDescriptor %d 0 R/DW 600/CIDToGIDMap/Identity>>", name, desc))
		toUnicode := "/CIDInit/ProcSet findresource begin 12 dict begin begincmap /CMapName/X def 1 begincodespacerange<0000><ffff>endcodespacerange\n62 beginbfchar\n"
		for _, r := range letters {
			toUnicode += fmt.Sprintf("<%04x><%04x>\n", f.gids[r], r)
		}
		cmap := b.add(stream("", toUnicode+"endbfchar endcmap end end"))
		font := b.add(fmt.Sprintf("<</Type/Font/Subtype/Type0/BaseFont/%s/Encoding/Identity-H/DescendantFonts[%d 0 R]/ToUnicode %d 0 R>>", name, kid, cmap))
		return font, func(s string) string {
			out := "<"
			for _, r := range s {
				out += fmt.Sprintf("%04x", f.gids[r])
			}
			return out + ">"
		}
	}
	subtype := "Type1"
	if key == "FontFile2" {
		subtype = "TrueType"
	}
	encoding := b.oneOf("/Encoding/WinAnsiEncoding", "/Encoding/MacRomanEncoding",
		"/Encoding<</BaseEncoding/WinAnsiEncoding/Differences[65/Eacute/germandbls]>>")
	if key == "FontFile" {
		encoding = b.oneOf(encoding, "")
	}
	font := b.add(fmt.Sprintf("<</Type/Font/Subtype/%s/BaseFont/%s/FontDescriptor %d 0 R%s%s>>", subtype, name, desc, encoding, widths))
	return font, func(s string) string {
		if b.rng.IntN(3) == 0 {
			return "<" + hex.EncodeToString([]byte(s)) + ">"
		}
		return "(" + strings.ReplaceAll(s, "q", `\161`) + ")"
	}
}

// picture adds an image and returns its number.
func (b *builder) picture() int {
	w, h := 60+b.rng.IntN(300), 60+b.rng.IntN(300)
	img := rgb(photo(w, h, b.rng.Uint64()))
	dict := fmt.Sprintf("/Type/XObject/Subtype/Image/Width %d/Height %d", w, h)
	var data []byte
	samples := func(n int) []byte { // n of the components
		out := make([]byte, 0, w*h*n)
		for i := 0; i < len(img); i += 3 {
			out = append(out, img[i], img[i+1], img[i+2], 0)[:len(out)+n]
		}
		return out
	}
	bits := func(per int) []byte { // gray, with fewer bits
		stride := (w*per + 7) / 8
		out := make([]byte, stride*h)
		for y := range h {
			for x := range w {
				out[y*stride+x*per/8] |= img[3*(y*w+x)] >> (8 - per) << (8 - per - x*per%8)
			}
		}
		return out
	}
	switch b.rng.IntN(10) {
	case 0:
		dict += "/ColorSpace/DeviceGray/BitsPerComponent 8"
		data = samples(1)
	case 1:
		dict += "/ColorSpace/DeviceRGB/BitsPerComponent 8"
		data = samples(3)
	case 2:
		dict += "/ColorSpace/DeviceCMYK/BitsPerComponent 8"
		data = samples(4)
	case 3:
		dict += "/ColorSpace[/CalRGB<</WhitePoint[.9505 1 1.089]>>]/BitsPerComponent 8" + b.oneOf("", "/Decode[1 0 1 0 1 0]")
		data = samples(3)
	case 4:
		dict += "/ColorSpace/DeviceGray/BitsPerComponent 1" + b.oneOf("", "/Decode[1 0]")
		data = bits(1)
	case 5:
		dict += "/ImageMask true/BitsPerComponent 1" + b.oneOf("", "/Decode[1 0]")
		data = bits(1)
	case 6:
		per := []int{1, 2, 4}[b.rng.IntN(3)]
		colours := make([]byte, 3<<per)
		for i := range colours {
			colours[i] = byte(b.rng.IntN(256))
		}
		dict += fmt.Sprintf("/ColorSpace[/Indexed/DeviceRGB %d<%x>]/BitsPerComponent %d", 1<<per-1, colours, per)
		data = bits(per)
	case 7:
		dict += "/ColorSpace/DeviceRGB/BitsPerComponent 8/Mask[0 60 0 60 0 60]"
		data = samples(3)
	case 8:
		mask := b.add(imageStream(w, h, "/DeviceGray", "", samples(1)))
		dict += fmt.Sprintf("/ColorSpace/DeviceRGB/BitsPerComponent 8/SMask %d 0 R", mask)
		data = samples(3)
	default:
		dict += "/ColorSpace/DeviceRGB/BitsPerComponent 8/Filter/DCTDecode"
		return b.add(stream(dict, string(asJPEG(b.t, photo(w, h, b.rng.Uint64()), 90))))
	}
	switch b.rng.IntN(4) {
	case 0:
		return b.add(stream(dict, string(data)))
	case 1:
		return b.add(stream(dict+"/Filter/ASCIIHexDecode", hex.EncodeToString(data)+">"))
	case 2:
		z := deflated(data)
		out := make([]byte, ascii85.MaxEncodedLen(len(z)))
		out = append(out[:ascii85.Encode(out, z)], "~>"...)
		return b.add(stream(dict+"/Filter[/ASCII85Decode/FlateDecode]", string(out)))
	}
	return b.add(stream(dict+"/Filter/FlateDecode", string(deflated(data))))
}

// generated returns a document that differs for every seed: fonts, images,
// forms, patterns, shadings, annotations, fields and tags.
func generated(t testing.TB, seed uint64) []byte {
	t.Helper()
	fonts, err := testFonts()
	systest.NoError(t, err)
	b := &builder{t: t, rng: rand.New(rand.NewPCG(seed, 5)), fonts: fonts}
	b.objects = make([]string, 3) // catalog, pages, page
	var resFonts, resObjects, resPatterns, content strings.Builder
	type pen struct {
		name   string
		encode func(string) string
	}
	var pens []pen
	var numbers []int
	for i := range 1 + b.rng.IntN(3) {
		nr, encode := b.font()
		pens, numbers = append(pens, pen{fmt.Sprintf("F%d", i), encode}), append(numbers, nr)
		fmt.Fprintf(&resFonts, "/F%d %d 0 R", i, nr)
	}
	text := func(x, y int) string {
		p := pens[b.rng.IntN(len(pens))]
		s := fmt.Sprintf("BT /%s %d Tf %d %d Td 14 TL ", p.name, 8+b.rng.IntN(16), x, y)
		switch b.rng.IntN(3) {
		case 0:
			s += p.encode(b.word()) + " Tj " + p.encode(b.word()) + " '"
		case 1:
			s += "[" + p.encode(b.word()) + "-120" + p.encode(b.word()) + "] TJ"
		default:
			s += p.encode(b.word()) + " Tj"
		}
		return s + " ET\n"
	}
	for i := range b.rng.IntN(3) {
		fmt.Fprintf(&resObjects, "/I%d %d 0 R", i, b.picture())
		fmt.Fprintf(&content, "q .2 .3 .6 rg %d %d %d %d %d %d cm /I%d Do Q\n", 60+b.rng.IntN(90), b.rng.IntN(20), -b.rng.IntN(20), 60+b.rng.IntN(90), b.rng.IntN(100)+20, b.rng.IntN(90), i)
	}
	if b.rng.IntN(2) == 0 {
		own := fmt.Sprintf("/Resources<</Font<<%s>>>>", resFonts.String())
		form := b.add(stream("/Type/XObject/Subtype/Form/BBox[0 0 200 60]"+own+b.oneOf("", "/Group<</S/Transparency>>"), text(5, 20)))
		fmt.Fprintf(&resObjects, "/X %d 0 R", form)
		content.WriteString("q 1 0 0 1 10 130 cm /X Do Q\n")
	}
	if b.rng.IntN(3) == 0 {
		tile := b.add(stream(fmt.Sprintf("/Type/Pattern/PatternType 1/PaintType 1/TilingType 1/BBox[0 0 40 30]/XStep 40/YStep 30/Resources<</Font<<%s>>>>", resFonts.String()),
			"1 .5 0 rg 0 0 8 8 re f "+text(2, 12)))
		fmt.Fprintf(&resPatterns, "/P %d 0 R", tile)
		content.WriteString("q /Pattern cs /P scn 100 100 90 60 re f Q\n")
	}
	content.WriteString("q 0 0 40 40 re W n /S sh Q\n")
	for range 1 + b.rng.IntN(4) {
		content.WriteString(text(5+b.rng.IntN(60), 20+b.rng.IntN(170)))
	}
	content.WriteString("BI /W 8 /H 8 /CS /G /BPC 1 ID \x0f\x0f\x0f\x0f\xf0\xf0\xf0\xf0 EI\n")
	half := strings.LastIndexByte(content.String()[:content.Len()/2], '\n') + 1
	parts := fmt.Sprintf("[%d 0 R %d 0 R]", b.add(stream("", content.String()[:half])), b.add(stream("/Filter/FlateDecode", string(deflated([]byte(content.String()[half:]))))))
	annots, form := "", ""
	if b.rng.IntN(2) == 0 {
		look := b.add(stream(fmt.Sprintf("/Type/XObject/Subtype/Form/BBox[0 0 80 20]/Resources<</Font<<%s>>>>", resFonts.String()), text(2, 5)))
		field := b.add(fmt.Sprintf("<</Type/Annot/Subtype/Widget/FT/Tx/T(f)/V(v)/DA(/F0 9 Tf)/F 4/Rect[110 10 190 30]/AP<</N %d 0 R>>>>", look))
		link := b.add("<</Type/Annot/Subtype/Link/Rect[5 5 50 20]/Border[0 0 0]/A<</S/URI/URI(https://example.org)>>>>")
		annots = fmt.Sprintf("/Annots[%d 0 R %d 0 R]", field, link)
		form = fmt.Sprintf("/AcroForm<</Fields[%d 0 R]/DA(/F0 9 Tf)/DR<</Font<</F0 %d 0 R>>>>>>", field, numbers[0])
	}
	b.objects[0] = "<</Type/Catalog/Pages 2 0 R" + form + ">>"
	resources := fmt.Sprintf("/Resources<</Font<<%s>>/XObject<<%s>>/Pattern<<%s>>/Shading<</S<</ShadingType 2/ColorSpace/DeviceRGB/Coords[0 0 40 40]/Function<</FunctionType 2/Domain[0 1]/C0[1 0 0]/C1[0 0 1]/N 1>>>>>>>>",
		resFonts.String(), resObjects.String(), resPatterns.String())
	onPage, above := resources, ""
	if b.rng.IntN(2) == 0 {
		onPage, above = "", resources
	}
	b.objects[1] = "<</Type/Pages/Kids[3 0 R]/Count 1/MediaBox[0 0 220 220]" + above + ">>"
	b.objects[2] = "<</Type/Page/Parent 2 0 R/Contents " + parts + onPage + annots + b.oneOf("", "/Rotate 90", "/CropBox[10 10 210 200]", "/UserUnit 1.5") + ">>"
	doc := handmade("1.7", b.objects...)
	if b.rng.IntN(3) == 0 { // an incremental update of the page
		at := len(doc)
		var tail bytes.Buffer
		fmt.Fprintf(&tail, "3 0 obj\n%s\nendobj\n", strings.Replace(b.objects[2], "/Type/Page", "/Type/Page/Tabs/S", 1))
		start := at + tail.Len()
		prev := doc[bytes.LastIndex(doc, []byte("startxref"))+10:]
		fmt.Fprintf(&tail, "xref\n3 1\n%010d 00000 n \ntrailer\n<</Size %d/Root 1 0 R/Prev %s>>\nstartxref\n%d\n%%%%EOF\n",
			at, len(b.objects)+1, bytes.Fields(prev)[0], start)
		doc = append(doc, tail.Bytes()...)
	}
	return doc
}

// Every result of the three levels must look and read like the original, and be
// valid. Compress compares with pdfium, as in the service; the test uses
// poppler.
func TestCompressGenerated(t *testing.T) {
	t.Parallel()
	documents := systest.Scale(100, 5)
	eye, err := pdfread.New(t.Context(), pdfread.Options{CacheDir: systest.CodeCache()})
	systest.NoError(t, err)
	defer eye.Close()
	if err := eye.Warm(t.Context()); err != nil { // drawing has a time limit, so pdfium starts before
		t.Fatal(err)
	}
	tools := pdfops.Tools{QPDF: findQPDF(t), Renderer: eye}
	var mu sync.Mutex
	var sum, smaller int64
	t.Run("all", func(t *testing.T) {
		for seed := range documents {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				before := pdf("in.pdf", generated(t, uint64(seed)))
				want, wantText := renderGray(t, before), text(t, before)
				for level, least := range levels() {
					out := run(t, tools.Compress(), fileops.Args{"compression_value": level}, before)
					sound(t, out)
					if got := text(t, out); got != wantText {
						t.Errorf("%s: the text is %q, want %q", level, got, wantText)
					}
					if s := ssim(t, renderGray(t, out)[0], want[0]); s < least {
						t.Errorf("%s: similarity %.4f", level, s)
					}
					mu.Lock()
					sum, smaller = sum+before.Size(), smaller+out.Size()
					mu.Unlock()
				}
			})
		}
	})
	if smaller > sum/2 {
		t.Errorf("%d bytes of %d", smaller, sum)
	}
	t.Logf("%d bytes of %d", smaller, sum)
}
