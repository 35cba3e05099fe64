package documentops_test

import (
	"archive/zip"
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/documentops"
	"github.com/filewright/filewright/fileops/fileopstest"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/imageops"
	"github.com/filewright/filewright/internal/systest"
)

func compressor(t testing.TB) fileops.Action {
	t.Helper()
	e, err := imageops.New(t.Context(), imageops.Options{})
	systest.NoError(t, err)
	return documentops.Compress(e, nil)
}

var levels = []string{"less_compression", "recommended_compression", "extreme_compression"}

// photo returns a picture with the texture of a photograph.
func photo(w, h int) *image.RGBA {
	m := fileopstest.Picture(w, h)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := 0; i < len(m.Pix); i += 4 {
		n := int(rng.Uint32()%9) - 4
		for k := range 3 {
			m.Pix[i+k] = uint8(min(255, max(0, int(m.Pix[i+k])+n)))
		}
	}
	return m
}

func jpegOf(t testing.TB, m image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	systest.NoError(t, jpeg.Encode(&b, m, &jpeg.Options{Quality: 95}))
	return b.Bytes()
}

func pngOf(t testing.TB, m image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	systest.NoError(t, png.Encode(&b, m))
	return b.Bytes()
}

// transparent returns a drawing with few colours and a transparent edge.
func transparent(w, h int) image.Image {
	m := image.NewNRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			if x > w/4 {
				m.SetNRGBA(x, y, color.NRGBA{uint8(x / 40 * 10), uint8(y / 40 * 10), 90, 255})
			}
		}
	}
	return m
}

// illustrated returns a docx with a photograph as JPEG and as PNG, a drawing, a
// copy of the photograph, and unreferenced media.
func illustrated(t testing.TB) *fileops.File {
	t.Helper()
	return fileops.Bytes("illustrated.docx", document(t))
}

var cached struct {
	sync.Mutex
	docx []byte
}

func document(t testing.TB) []byte {
	cached.Lock()
	defer cached.Unlock()
	if cached.docx == nil {
		cached.docx = makeDocument(t)
	}
	return cached.docx
}

func makeDocument(t testing.TB) []byte {
	const rel = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
	p := photo(1200, 900)
	files := map[string][]byte{
		"word/media/image1.jpg": jpegOf(t, p), "word/media/image2.png": pngOf(t, p), "word/media/image3.png": pngOf(t, transparent(1200, 900)),
		"word/media/image4.jpg": jpegOf(t, p), "word/media/lost.jpg": jpegOf(t, photo(300, 300)), "word/media/image5.emf": bytes.Repeat([]byte("emf "), 5000),
	}
	var rels, body strings.Builder
	for i, name := range []string{"image1.jpg", "image2.png", "image3.png", "image4.jpg"} {
		fmt.Fprintf(&rels, `<Relationship Id="p%d" Type="%s/image" Target="media/%s"/>`, i, rel, name)
		fmt.Fprintf(&body, `<w:p><w:r><w:drawing><wp:inline><wp:extent cx="3657600" cy="2743200"/><wp:docPr id="%d" name="P"/><a:graphic><a:graphicData uri="http://schemas.openxmlformats.org/drawingml/2006/picture"><pic:pic><pic:nvPicPr><pic:cNvPr id="1" name="p"/><pic:cNvPicPr/></pic:nvPicPr>`+
			`<pic:blipFill><a:blip r:embed="p%d"/><a:stretch><a:fillRect/></a:stretch></pic:blipFill><pic:spPr><a:xfrm><a:off x="0" y="0"/><a:ext cx="3657600" cy="2743200"/></a:xfrm><a:prstGeom prst="rect"><a:avLst/></a:prstGeom></pic:spPr></pic:pic></a:graphicData></a:graphic></wp:inline></w:drawing></w:r></w:p>`, i+1, i)
	}
	fmt.Fprintf(&rels, `<Relationship Id="emf" Type="%s/image" Target="media/image5.emf"/>`, rel)
	base := content(t, fileopstest.Sample(t, format.DOCX))
	doc := string(part(t, base, "word/document.xml"))
	doc = strings.Replace(doc, "<w:document ", `<w:document xmlns:r="`+rel+`" xmlns:wp="http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing" xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" xmlns:pic="http://schemas.openxmlformats.org/drawingml/2006/picture" `, 1)
	files["word/document.xml"] = []byte(strings.Replace(doc, "<w:sectPr>", body.String()+"<w:sectPr>", 1))
	files["word/_rels/document.xml.rels"] = []byte(`<?xml version="1.0" encoding="UTF-8"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">` + rels.String() + `</Relationships>`)
	types := string(part(t, base, "[Content_Types].xml"))
	files["[Content_Types].xml"] = []byte(strings.Replace(types, "<Default ", `<Default Extension="jpg" ContentType="image/jpeg"/><Default Extension="png" ContentType="image/png"/><Default Extension="emf" ContentType="image/x-emf"/><Default `, 1))
	return rezip(t, base, files)
}

// as returns the illustrated document in another format, converted by
// LibreOffice.
func as(t testing.TB, f format.Format, filter string) *fileops.File {
	t.Helper()
	out := filepath.Join(t.TempDir(), "a."+string(f))
	systest.NoError(t, libreOffice.convert(save(t, "a.docx", content(t, illustrated(t))), "", out, filter, ""))
	b := systest.ReadFile(t, out)
	return fileops.Bytes("illustrated."+string(f), b)
}

// render returns the pages of a document in gray, rendered by LibreOffice.
func render(t testing.TB, name string, b []byte) (pages []*image.Gray) {
	t.Helper()
	dir := t.TempDir()
	pdf := filepath.Join(dir, "a.pdf")
	systest.NoError(t, libreOffice.convert(save(t, name, b), "", pdf, "writer_pdf_Export", ""))
	tool(t, "pdftoppm", "-gray", "-png", "-r", "96", pdf, filepath.Join(dir, "p"))
	found, err := filepath.Glob(filepath.Join(dir, "p-*.png"))
	systest.NoError(t, err)
	for _, p := range found {
		f, err := os.Open(p)
		systest.NoError(t, err)
		m, err := png.Decode(f)
		f.Close()
		systest.NoError(t, err)
		g := image.NewGray(m.Bounds())
		draw.Draw(g, g.Rect, m, m.Bounds().Min, draw.Src)
		pages = append(pages, g)
	}
	return pages
}

// ssim returns the mean structural similarity in blocks of 8 × 8 pixels.
func ssim(a, b *image.Gray) float64 {
	if a.Rect != b.Rect {
		return 0
	}
	const c1, c2 = 6.5025, 58.5225
	sum, n := 0.0, 0
	for y := 0; y+8 <= a.Rect.Dy(); y += 8 {
		for x := 0; x+8 <= a.Rect.Dx(); x += 8 {
			var sa, sb, saa, sbb, sab float64
			for j := y; j < y+8; j++ {
				for i := x; i < x+8; i++ {
					p, q := float64(a.Pix[j*a.Stride+i]), float64(b.Pix[j*b.Stride+i])
					sa, sb, saa, sbb, sab = sa+p, sb+q, saa+p*p, sbb+q*q, sab+p*q
				}
			}
			ma, mb := sa/64, sb/64
			sum += (2*ma*mb + c1) * (2*(sab/64-ma*mb) + c2) / ((ma*ma + mb*mb + c1) * (saa/64 - ma*ma + sbb/64 - mb*mb + c2))
			n++
		}
	}
	return sum / float64(n)
}

// Pages look the same at every level, and files shrink from level to level.
func TestCompressedPagesLookTheSame(t *testing.T) {
	t.Parallel()
	a := compressor(t)
	for _, in := range []*fileops.File{illustrated(t), as(t, format.ODT, "writer8")} {
		before := render(t, in.Name(), content(t, in))
		size := 0.9 * float64(in.Size())
		for i, least := range []float64{0.99, 0.95, 0.90} {
			if testing.Short() && i == 1 {
				continue // a level between the two others
			}
			b := must(t, a, fileops.Args{"compression_value": levels[i]}, in)
			if float64(len(b)) > size {
				t.Errorf("%s at %s: %d of %d bytes", in.Name(), levels[i], len(b), in.Size())
			}
			size = float64(len(b))
			tool(t, "unzip", "-tq", save(t, "a.zip", b))
			after := render(t, in.Name(), b)
			if len(after) != len(before) {
				t.Fatalf("%s: %d pages became %d", in.Name(), len(before), len(after))
			}
			for k := range before {
				if s := ssim(before[k], after[k]); s < least {
					t.Errorf("%s at %s, page %d: similarity %.4f", in.Name(), levels[i], k+1, s)
				}
			}
		}
	}
}

// checkPackage checks that every relationship leads to a part, and that every
// part has a media type that matches its content. It returns the names of the
// parts.
func checkPackage(t *testing.T, b []byte) (names []string) {
	t.Helper()
	zr, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	systest.NoError(t, err)
	var list struct {
		Default []struct {
			Extension   string `xml:"Extension,attr"`
			ContentType string `xml:"ContentType,attr"`
		} `xml:"Default"`
		Override []struct {
			PartName    string `xml:"PartName,attr"`
			ContentType string `xml:"ContentType,attr"`
		} `xml:"Override"`
	}
	systest.NoError(t, xml.Unmarshal(part(t, b, "[Content_Types].xml"), &list))
	byExt := map[string]string{}
	for _, d := range list.Default {
		byExt[strings.ToLower(d.Extension)] = d.ContentType
	}
	known := map[string]bool{}
	for _, f := range zr.File {
		known[f.Name] = true
		names = append(names, f.Name)
	}
	for _, o := range list.Override {
		if !known[strings.TrimPrefix(o.PartName, "/")] {
			t.Errorf("a media type for %s, which is not there", o.PartName)
		}
	}
	for name := range known {
		ext := strings.TrimPrefix(path.Ext(name), ".")
		if strings.Contains(name, "/media/") {
			data := part(t, b, name)
			if got := format.Sniff(bytes.NewReader(data), int64(len(data))); got != "" && got != format.TXT && got.MIME() != byExt[ext] {
				t.Errorf("%s is %s, listed as %q", name, got, byExt[ext])
			}
		}
		if !strings.HasSuffix(name, ".rels") {
			continue
		}
		var rels struct {
			Relationship []struct {
				Target     string `xml:"Target,attr"`
				TargetMode string `xml:"TargetMode,attr"`
			}
		}
		systest.NoError(t, xml.Unmarshal(part(t, b, name), &rels))
		dir := path.Dir(path.Dir(name))
		for _, r := range rels.Relationship {
			if to := path.Join(dir, r.Target); r.TargetMode != "External" && !known[to] {
				t.Errorf("%s leads to %s, which is not there", name, to)
			}
		}
	}
	return names
}

// A photograph stored as PNG becomes JPEG in all references. The drawing stays
// PNG with transparency. Equal pictures become one. Unreferenced pictures are
// dropped. Vector pictures stay.
func TestPicturesOfADocument(t *testing.T) {
	t.Parallel()
	b := must(t, compressor(t), nil, illustrated(t))
	names := strings.Join(checkPackage(t, b), " ")
	for name, want := range map[string]bool{
		"word/media/image1.jpg": true, "word/media/image2.png": false, "word/media/image2.jpeg": true, "word/media/image3.png": true,
		"word/media/image4.jpg": false, "word/media/lost.jpg": false, "word/media/image5.emf": true,
	} {
		if strings.Contains(names, name) != want {
			t.Errorf("%s: present is not %v: %s", name, want, names)
		}
	}
	c, err := jpeg.DecodeConfig(bytes.NewReader(part(t, b, "word/media/image1.jpg")))
	if err != nil || c.Width != 600 || c.Height != 450 { // 4 × 3 inches at 150 dpi
		t.Errorf("%d × %d, %v", c.Width, c.Height, err)
	}
	m, err := png.Decode(bytes.NewReader(part(t, b, "word/media/image3.png")))
	systest.NoError(t, err)
	if _, _, _, alpha := m.At(0, 0).RGBA(); alpha != 0 {
		t.Error("the transparent part is not transparent")
	}
}

// OpenDocument files start with their uncompressed type, and the manifest lists
// the existing parts.
func TestCompressedOpenDocument(t *testing.T) {
	t.Parallel()
	in := as(t, format.ODT, "writer8")
	b := must(t, compressor(t), fileops.Args{"compression_value": "extreme"}, in)
	zr, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	systest.NoError(t, err)
	if f := zr.File[0]; f.Name != "mimetype" || f.Method != zip.Store || len(f.Extra) > 0 {
		t.Errorf("first entry %+v", f.FileHeader)
	}
	manifest, body := string(part(t, b, "META-INF/manifest.xml")), string(part(t, b, "content.xml"))
	jpegs := 0
	for _, f := range zr.File {
		if strings.HasPrefix(f.Name, "Pictures/") {
			if !strings.Contains(manifest, `"`+f.Name+`"`) || !strings.Contains(body, `"`+f.Name+`"`) {
				t.Errorf("%s is not mentioned", f.Name)
			}
			if strings.HasSuffix(f.Name, ".jpeg") {
				jpegs++
				if !strings.Contains(manifest, "image/jpeg") {
					t.Error("no media type for JPEG")
				}
			}
		}
		if strings.HasPrefix(f.Name, "Thumbnails/") {
			t.Errorf("%s is still there", f.Name)
		}
	}
	if strings.Contains(manifest, "Thumbnails/") || jpegs == 0 {
		t.Errorf("%d pictures became JPEG; manifest %s", jpegs, manifest)
	}
}

func TestCompressRefuses(t *testing.T) {
	t.Parallel()
	docx, odt, epub := content(t, fileopstest.Sample(t, format.DOCX)), content(t, fileopstest.Sample(t, format.ODT)), content(t, fileopstest.Sample(t, format.EPUB))
	many := func(n int) map[string][]byte {
		m := map[string][]byte{}
		for i := range n {
			m[fmt.Sprint("x/", i)] = []byte{}
		}
		return m
	}
	entities := `<!DOCTYPE a [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>`
	for _, tt := range []struct {
		name string
		in   *fileops.File
		want error
	}{
		{"signed docx", fileops.Bytes("a.docx", rezip(t, docx, map[string][]byte{"_xmlsignatures/sig1.xml": []byte("<a/>")})), fileops.ErrUnsupportedInput},
		{"signed odt", fileops.Bytes("a.odt", rezip(t, odt, map[string][]byte{"META-INF/documentsignatures.xml": []byte("<a/>")})), fileops.ErrUnsupportedInput},
		{"protected book", fileops.Bytes("a.epub", rezip(t, epub, map[string][]byte{"META-INF/encryption.xml": []byte(`<a URI="c.xhtml"/>`)})), fileops.ErrUnsupportedInput},
		{"bomb", fileops.Bytes("a.docx", rezip(t, docx, map[string][]byte{"word/x.xml": make([]byte, 40<<20)})), fileops.ErrLimit},
		{"many entries", fileops.Bytes("a.docx", rezip(t, docx, many(20000))), fileops.ErrLimit},
		{"a directory for large archives", fileops.Bytes("a.docx", rezip(t, docx, many(100000))), fileops.ErrCorruptInput},
		{"leading out", fileops.Bytes("a.docx", rezip(t, docx, map[string][]byte{"word/../../x": []byte("x")})), fileops.ErrCorruptInput},
		{"leading out by backslash", fileops.Bytes("a.docx", rezip(t, docx, map[string][]byte{`word\..\..\x`: []byte("x")})), fileops.ErrCorruptInput},
		{"two parts of one name", fileops.Bytes("a.docx", rezip(t, docx, map[string][]byte{"word/Document.xml": []byte("<a/>")})), fileops.ErrCorruptInput},
		{"entities", fileops.Bytes("a.docx", rezip(t, docx, map[string][]byte{"_rels/.rels": []byte(entities + "<a/>")})), fileops.ErrUnsupportedInput},
		{"entities in odt", fileops.Bytes("a.odt", rezip(t, odt, map[string][]byte{"content.xml": []byte(entities + "<a/>")})), fileops.ErrUnsupportedInput},
	} {
		if _, _, err := run(t.Context(), documentops.Compress(nil, nil), nil, tt.in); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
}

// An encrypted document is compressed with its password, which also opens the result.
func TestCompressLocked(t *testing.T) {
	t.Parallel()
	for f, filter := range map[format.Format]string{format.DOCX: toPDF[format.DOCX], format.PPTX: toPDF[format.PPTX]} {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			in := illustrated(t)
			if f == format.PPTX {
				in = fileops.Bytes("a.pptx", rezip(t, content(t, fileopstest.Sample(t, f)), map[string][]byte{"ppt/media/unused.jpeg": jpegOf(t, photo(600, 400))}))
			}
			args := fileops.Args{"password": password}
			locked := fileops.Bytes("a."+string(f), must(t, documentops.Lock(nil), args, in.Named("a."+string(f))))
			small := must(t, compressor(t), args, locked)
			if int64(len(small)) >= locked.Size()*9/10 {
				t.Errorf("%d bytes became %d", locked.Size(), len(small))
			}
			path := save(t, "small."+string(f), small)
			out := filepath.Join(t.TempDir(), "a.pdf")
			if err := libreOffice.convert(path, "not it", out, filter, ""); err == nil {
				t.Error("opens with a wrong password")
			}
			systest.Check(t, libreOffice.convert(path, password, out, filter, ""))
			plain := must(t, compressor(t), nil, in)
			if got := must(t, documentops.Unlock(nil), args, fileops.Path(path)); !bytes.Equal(got, plain) {
				t.Errorf("content of %d bytes, without a password %d", len(got), len(plain))
			}
			again := must(t, compressor(t), args, fileops.Bytes("a."+string(f), small))
			if !bytes.Equal(again, small) {
				t.Error("what cannot become smaller changes")
			}
		})
	}
	// A password for a document without one changes nothing.
	in := fileopstest.Sample(t, format.DOCX)
	if !bytes.Equal(must(t, compressor(t), fileops.Args{"password": "x"}, in), must(t, compressor(t), nil, in)) {
		t.Error("a needless password changes the result")
	}
}

// Printer settings are removed together with the attribute that refers to them.
func TestPrinterSettings(t *testing.T) {
	t.Parallel()
	base := content(t, fileopstest.Sample(t, format.XLSX))
	const rel = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
	sheet := strings.Replace(string(part(t, base, "xl/worksheets/sheet1.xml")), "</worksheet>", `<pageSetup paperSize="9" orientation="landscape" r:id="rId1"/></worksheet>`, 1)
	sheet = strings.Replace(sheet, "<worksheet ", `<worksheet xmlns:r="`+rel+`" `, 1)
	noise := make([]byte, 20000)
	rng := rand.New(rand.NewPCG(5, 6))
	for i := range noise {
		noise[i] = byte(rng.Uint32())
	}
	in := fileops.Bytes("a.xlsx", rezip(t, base, map[string][]byte{
		"xl/worksheets/sheet1.xml":                []byte(sheet),
		"xl/worksheets/_rels/sheet1.xml.rels":     []byte(`<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" Type="` + rel + `/printerSettings" Target="../printerSettings/printerSettings1.bin"/></Relationships>`),
		"xl/printerSettings/printerSettings1.bin": noise,
	}))
	b := must(t, documentops.Compress(nil, nil), nil, in)
	if names := strings.Join(checkPackage(t, b), " "); strings.Contains(names, "printerSettings1") {
		t.Errorf("still there: %s", names)
	}
	if got := string(part(t, b, "xl/worksheets/sheet1.xml")); strings.Contains(got, "r:id") || !strings.Contains(got, `orientation="landscape"`) {
		t.Errorf("sheet: %s", got)
	}
	systest.Check(t, libreOffice.convert(save(t, "a.xlsx", b), "", filepath.Join(t.TempDir(), "a.pdf"), "calc_pdf_Export", ""))
}

func TestCompressSuite(t *testing.T) {
	t.Parallel()
	fileopstest.Run(t, fileopstest.Suite{Action: compressor(t), Concurrency: 4})
}
