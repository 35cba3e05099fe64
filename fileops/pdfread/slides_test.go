package pdfread_test

import (
	"encoding/xml"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/pdfread"
	"github.com/filewright/filewright/internal/specimen"
	"github.com/filewright/filewright/internal/systest"
)

// slides converts a PDF file to a presentation, and returns its content and its parts. Each
// relationship must lead to a part.
func slides(t *testing.T, pdf []byte) ([]byte, map[string]string) {
	t.Helper()
	out := mustConvert(t, newEngine(t, pdfread.Options{}), fileops.Args{"convert_to": "pptx"}, pdf)
	if len(out) != 1 || out[0].name != "in.pptx" {
		t.Fatalf("%d results", len(out))
	}
	parts := make(map[string]string)
	for name, data := range unzip(t, out[0].b) {
		parts[name] = string(data)
	}
	for name, text := range parts {
		if path.Ext(name) != ".rels" {
			continue
		}
		for _, r := range relation.FindAllStringSubmatch(text, -1) {
			if at := path.Join(path.Dir(path.Dir(name)), r[1]); r[2] == "" && parts[at] == "" {
				t.Errorf("%s refers to %s, which is missing", name, at)
			}
		}
	}
	return out[0].b, parts
}

var relation = regexp.MustCompile(`Target="([^"]*)"( TargetMode="External")?`)

// Each page becomes a slide with its text in boxes. LibreOffice shows the text where the
// page has it.
func TestSlides(t *testing.T) {
	t.Parallel()
	pdf, _ := specimen.Of(t, format.PDF).Bytes()
	b, parts := slides(t, pdf)
	if parts["ppt/slides/slide2.xml"] == "" || parts["ppt/slides/slide3.xml"] != "" {
		t.Error("there are not two slides")
	}
	if !strings.Contains(parts["ppt/presentation.xml"], `<p:sldSz cx="75`) { // A4 is 210 mm, 7,560,000 units
		t.Errorf("size of slides: %s", parts["ppt/presentation.xml"])
	}
	was, is := places(t, pdf), places(t, office(t, "a.pptx", b, "pdf"))
	for _, word := range []string{"Filewright", "quick", "Ελληνικά", "Pear"} {
		a, b := was[word], is[word]
		if a == b && a == [2]float64{} {
			t.Errorf("%q is missing", word)
		}
		if dx, dy := a[0]-b[0], a[1]-b[1]; dx*dx+dy*dy > 5*5 {
			t.Errorf("%q is at %v, on the page at %v", word, b, a)
		}
	}
}

// places returns where pdftotext finds the first occurrence of each word, in points.
func places(t *testing.T, pdf []byte) map[string][2]float64 {
	t.Helper()
	text := tool(t, "pdftotext", "-bbox", write(t, "a.pdf", pdf), "-")
	var page struct {
		Pages []struct {
			Words []struct {
				X    float64 `xml:"xMin,attr"`
				Y    float64 `xml:"yMin,attr"`
				Text string  `xml:",chardata"`
			} `xml:"word"`
		} `xml:"body>doc>page"`
	}
	d := xml.NewDecoder(strings.NewReader(text))
	d.Strict, d.Entity = false, xml.HTMLEntity
	systest.NoError(t, d.Decode(&page))
	out := make(map[string][2]float64)
	for _, p := range page.Pages {
		for _, w := range p.Words {
			if _, ok := out[w.Text]; !ok {
				out[w.Text] = [2]float64{w.X, w.Y}
			}
		}
	}
	return out
}

// Pages of other sizes are made larger or smaller. Links lead to slides and addresses.
func TestSlidesOfOtherSizes(t *testing.T) {
	t.Parallel()
	pdf := "%PDF-1.4\n" +
		"1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R 4 0 R]/Count 2>>endobj\n" +
		"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 400 300]/Resources<</Font<</F 5 0 R>>>>/Contents 6 0 R/Annots[8 0 R 9 0 R]>>endobj\n" +
		"4 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 1600 600]/Resources<</Font<</F 5 0 R>>>>/Contents 7 0 R>>endobj\n" +
		"5 0 obj<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>endobj\n" +
		"6 0 obj<</Length 83>>stream\nBT /F 20 Tf 50 200 Td (Address) Tj 0 -100 Td (Next) Tj ET                             \nendstream endobj\n" +
		"7 0 obj<</Length 58>>stream\nBT /F 40 Tf 100 200 Td (Wide) Tj ET                       \nendstream endobj\n" +
		"8 0 obj<</Type/Annot/Subtype/Link/Rect[40 190 200 230]/Border[0 0 0]/A<</S/URI/URI(https://example.com/a?b=1&c=2)>>>>endobj\n" +
		"9 0 obj<</Type/Annot/Subtype/Link/Rect[40 90 200 130]/Border[0 0 0]/Dest[4 0 R/Fit]>>endobj\n" +
		"trailer<</Root 1 0 R>>\n%%EOF\n"
	_, parts := slides(t, []byte(pdf))
	if !strings.Contains(parts["ppt/presentation.xml"], `<p:sldSz cx="5080000" cy="3810000"/>`) {
		t.Error("slides do not have the size of the first page")
	}
	rels := parts["ppt/slides/_rels/slide1.xml.rels"]
	for _, want := range []string{`Target="https://example.com/a?b=1&amp;c=2" TargetMode="External"`, `Target="slide2.xml"`} {
		if !strings.Contains(rels, want) {
			t.Errorf("%s is missing in %s", want, rels)
		}
	}
	if s := parts["ppt/slides/slide2.xml"]; !strings.Contains(s, ">Wide<") || !strings.Contains(s, `sz="1000"`) {
		t.Errorf("the wide page is not a quarter of its size: %s", s)
	}
}
