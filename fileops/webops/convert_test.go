package webops

import (
	"fmt"
	"image"
	_ "image/png"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/fileopstest"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/systest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	var formats []format.Format // all
	if testing.Short() {
		formats = []format.Format{format.HTML, format.CSV} // the others become HTML too
	}
	fileopstest.Run(t, fileopstest.Suite{
		Formats: formats,
		Action:  shared.Convert(), Args: fileops.Args{"margin": 40}, Concurrency: 6,
		Check: func(t *testing.T, in []*fileops.File, args fileops.Args, out []*fileops.File) {
			b, _ := out[0].Bytes()
			path := filepath.Join(t.TempDir(), "out.pdf")
			systest.NoError(t, os.WriteFile(path, b, 0o600))
			output(t, "qpdf", "--check", path)
			if info(t, path, "Title") == "" || info(t, path, "Tagged") != "yes" {
				t.Errorf("title %q, tagged %s", info(t, path, "Title"), info(t, path, "Tagged"))
			}
		},
	})
}

const scripts = "Emoji 🎉 👍🏽 🇩🇪 👨‍👩‍👧 end. 漢字かな交じり文。中文简体。한국어 문장. مرحبا بالعالم. שלום עולם. क्षत्रिय हिन्दी. ภาษาไทยที่นี่. Ωμέγα Жизнь. ∀x∈ℝ: ∑∫√π ≤ ∞. ┌─┬─┐│█▓░│└─┴─┘ ½ € ‰ ☂ ♞"

// Every script has glyphs: the embedded fonts contain them, the text can be extracted,
// and emoji are coloured.
func TestScripts(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]string{
		"a.html": "<!DOCTYPE html><meta charset=utf-8><title>t</title><p>" + scripts,
		"a.md":   "# " + scripts,
		"a.txt":  scripts,
		"a.csv":  "a,b\nx,\"" + scripts + "\"\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := convert(t, name, in, nil)
			text := strings.Join(strings.Fields(output(t, "pdftotext", "-raw", path, "-")), "")
			for _, want := range []string{"🎉", "👍🏽", "🇩🇪", "漢字かな交じり文", "中文简体", "한국어", "क्षत्रिय", "ภาษาไทย", "Ωμέγα", "Жизнь", "∀x∈ℝ", "∑∫√π", "┌─┬─┐", "½€‰☂♞"} {
				if !strings.Contains(text, want) {
					t.Errorf("%s is not in %s", want, text)
				}
			}
			if strings.ContainsRune(text, '\ufffd') {
				t.Errorf("a character is lost: %s", text)
			}
			for line := range strings.Lines(output(t, "pdffonts", path)) {
				if strings.Contains(line, "TrueType") && !strings.Contains(line, "yes yes yes") {
					t.Errorf("a font is not embedded as a subset: %s", line)
				}
			}
			// Emoji are the only coloured content.
			if n := colours(t, path); n < 100 {
				t.Errorf("%d coloured pixels: the emoji have none", n)
			}
		})
	}
}

// colours returns the number of pixels of the first page that are neither grey nor blue
// like links.
func colours(t *testing.T, path string) int {
	t.Helper()
	img := firstPage(t, path)
	n := 0
	for y := range img.Bounds().Dy() {
		for x := range img.Bounds().Dx() {
			r, g, b, _ := img.At(x, y).RGBA()
			if max(r, g, b)-min(r, g, b) > 0x4000 {
				n++
			}
		}
	}
	return n
}

// firstPage renders the first page of a PDF.
func firstPage(t *testing.T, path string) image.Image {
	t.Helper()
	base := filepath.Join(t.TempDir(), "page")
	output(t, "pdftoppm", "-r", "100", "-f", "1", "-l", "1", "-png", "-singlefile", path, base)
	f, err := os.Open(base + ".png")
	systest.NoError(t, err)
	defer f.Close()
	img, _, err := image.Decode(f)
	systest.NoError(t, err)
	return img
}

// Arabic letters join: a word is narrower than its separate letters.
func TestArabicIsShaped(t *testing.T) {
	t.Parallel()
	width := func(word string) float64 {
		path := convert(t, "a.html", `<meta charset=utf-8><p style="font-size:40px">`+word, nil)
		left, right := 1e9, 0.0
		for line := range strings.Lines(output(t, "pdftotext", "-bbox", path, "-")) {
			var x0, y0, x1, y1 float64
			if n, _ := scan(line, &x0, &y0, &x1, &y1); n == 4 {
				left, right = min(left, x0), max(right, x1)
			}
		}
		return right - left
	}
	joined, single := width("ببببب"), width("ب\u200cب\u200cب\u200cب\u200cب")
	if joined <= 0 || joined > 0.8*single {
		t.Errorf("%v points joined, %v single", joined, single)
	}
}

func TestPageLayout(t *testing.T) {
	t.Parallel()
	const css = "<style>@page { size: 200mm 100mm; margin: 0 } body { margin: 0 }</style>"
	for _, tt := range []struct {
		name, file, in string
		args           fileops.Args
		size           string // within about a point
		x              float64
	}{
		{"a4", "a.html", "<body style=margin:0>word", nil, "595 x 841", 36},
		{"a3", "a.html", "<body style=margin:0>word", fileops.Args{"page_size": "a3", "margin": 0}, "841 x 1190", 0},
		{"a5 landscape", "a.md", "word", fileops.Args{"page_size": "a5", "orientation": "landscape"}, "595 x 419", 57},
		{"letter", "a.txt", "word", fileops.Args{"page_size": "letter", "margin": 100}, "612 x 792", 100},
		{"legal", "a.txt", "word", fileops.Args{"page_size": "legal"}, "612 x 1008", 57},
		{"style of the page", "a.html", css + "word", nil, "567 x 282", 0},
		{"its size, our margin", "a.html", css + "word", fileops.Args{"margin": 50}, "567 x 282", 50},
		{"our size", "a.html", css + "word", fileops.Args{"page_size": "letter"}, "612 x 792", 36},
		{"our orientation", "a.html", css + "word", fileops.Args{"orientation": "portrait"}, "595 x 841", 36},
		{"wide table", "a.csv", strings.Repeat("a long heading,", 12) + "z\n" + strings.Repeat("some text in a cell,", 12) + "word\n", nil, "841 x 595", -1},
		{"wide table, held upright", "a.csv", strings.Repeat("a long heading,", 12) + "z\n", fileops.Args{"orientation": "portrait"}, "595 x 841", -1},
		{"narrow table", "a.tsv", "a\tb\nword\t2\n", nil, "595 x 841", 40},
		{"drawing", "a.svg", svgOf(`width="400" height="200"`), nil, "300 x 150", 30},
		{"drawing in mm", "a.svg", svgOf(`width="100mm" height="50mm" viewBox="0 0 400 200"`), fileops.Args{"margin": 10}, "303 x 161", -1},
		{"drawing on paper", "a.svg", svgOf(`viewBox="0 0 400 200"`), fileops.Args{"page_size": "a4"}, "841 x 595", -1},
		{"drawing on upright paper", "a.svg", svgOf(`viewBox="0 0 4000 2000"`), fileops.Args{"page_size": "a4", "orientation": "portrait"}, "595 x 841", -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path := convert(t, tt.file, tt.in, tt.args)
			f := strings.Fields(info(t, path, "Page size"))
			if len(f) < 3 {
				t.Fatal(f)
			}
			var w, h, wantW, wantH float64
			fmt.Sscan(f[0], &w)
			fmt.Sscan(f[2], &h)
			fmt.Sscanf(tt.size, "%f x %f", &wantW, &wantH)
			if math.Abs(w-wantW) > 1.5 || math.Abs(h-wantH) > 1.5 {
				t.Errorf("size %v x %v, want %s", w, h, tt.size)
			}
			if n := info(t, path, "Pages"); n != "1" {
				t.Errorf("%s pages", n)
			}
			var xs []float64
			for line := range strings.Lines(output(t, "pdftotext", "-bbox", path, "-")) {
				var x0, y0, x1, y1 float64
				if n, _ := scan(line, &x0, &y0, &x1, &y1); n == 4 && strings.Contains(line, ">word<") {
					xs = append(xs, x0)
				}
			}
			if tt.x >= 0 && (len(xs) != 1 || xs[0] < tt.x-1.5 || xs[0] > tt.x+1.5) {
				t.Errorf("the word stands at %v, want %v", xs, tt.x)
			}
		})
	}
}

func svgOf(attributes string) string {
	return `<svg xmlns="http://www.w3.org/2000/svg" ` + attributes + `><text x="40" y="60">word</text><rect x="1" y="1" width="300" height="9" fill="#123"/></svg>`
}

func TestPageNumbersAndColours(t *testing.T) {
	t.Parallel()
	in := "<body style='background:#ff0000'><p>one<p style='break-before:page'>two"
	plain := convert(t, "a.html", in, fileops.Args{"print_background": false})
	if text := output(t, "pdftotext", plain, "-"); strings.Contains(text, "/") || colours(t, plain) > 0 {
		t.Errorf("numbers or colours: %q", text)
	}
	full := convert(t, "a.html", in, fileops.Args{"page_numbers": true, "margin": 0})
	if text := output(t, "pdftotext", full, "-"); !strings.Contains(strings.ReplaceAll(text, " ", ""), "1/2") || !strings.Contains(strings.ReplaceAll(text, " ", ""), "2/2") {
		t.Errorf("no numbers: %q", text)
	}
	if colours(t, full) < 10_000 {
		t.Error("no background")
	}
}

// The PDF has the links, headings and title of a page. A missing picture is replaced by
// its alternative text.
func TestStructure(t *testing.T) {
	t.Parallel()
	in := `<title>A &amp; B</title><h1>One</h1><a href="https://example.com/x">far</a> <a href="#two">near</a> <a href="other.html">relative</a>
<img src="gone.png" alt="instead"><noscript>no script</noscript><video poster="p.png"></video><h2 id="two">Two</h2>
<style>@keyframes k { to { transform: translateX(9px) } } p { animation: k 1s infinite }</style><p>moving</p>`
	path := convert(t, "file name.html", in, nil)
	if got := info(t, path, "Title"); got != "A & B" {
		t.Errorf("title %q", got)
	}
	urls := output(t, "pdfinfo", "-url", path)
	if !strings.Contains(urls, "https://example.com/x") || strings.Contains(urls, "other.html") {
		t.Errorf("links: %s", urls)
	}
	text := output(t, "pdftotext", path, "-")
	for _, want := range []string{"instead", "no script", "moving", "near"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in %q", want, text)
		}
	}
	if js := output(t, "qpdf", "--qdf", "--object-streams=disable", path, "-"); !strings.Contains(js, "/Outlines") || !strings.Contains(js, "/Dest") {
		t.Error("no bookmarks or inner links")
	}
	if got := info(t, convert(t, "file name.html", "<p>x", nil), "Title"); got != "file name" {
		t.Errorf("title of a page without one: %q", got)
	}
}

func TestEncodings(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, in, want string }{
		{"a.html", "<meta charset=iso-8859-5><p>\xbc\xde\xe1\xda\xd2\xd0", "Москва"},
		{"a.html", "\xff\xfe<\x00p\x00>\x00\xfc\x00", "ü"},
		{"a.html", "<p>Gr\xfc\xdfe", "Grüße"},
		{"a.xhtml", `<?xml version="1.0" encoding="iso-8859-1"?><html xmlns="http://www.w3.org/1999/xhtml"><head><title/><script src="x.js"/></head><body><p/><div/>Gr` + "\xfc\xdf" + `e<br/></body></html>`, "Grüße"},
		{"a.txt", "\x93\xfa\x96\x7b\x8c\xea\x82\xcc\x95\xb6\x8f\xcd\x82\xc5\x82\xb7", "日本語の文章です"},
		{"a.csv", "a;b\nGr\xfc\xdfe;2\n", "Grüße"},
		{"a.md", "\xef\xbb\xbf# Gr\xc3\xbc\xc3\x9fe", "Grüße"},
	} {
		if text := output(t, "pdftotext", convert(t, tt.name, tt.in, nil), "-"); !strings.Contains(text, tt.want) {
			t.Errorf("%s: %q, want %s", tt.name, text, tt.want)
		}
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	path := convert(t, "a.txt", "\f\x1b[31mred\x1b[0m\tafter a tab\r\n\r\n  indented\n"+strings.Repeat("1234567890", 10)+"\n\fsecond page\n\f\n", nil)
	if n := info(t, path, "Pages"); n != "2" {
		t.Errorf("%s pages, want 2", n)
	}
	want := []string{"red     after a tab", "", "  indented", strings.Repeat("1234567890", 10)}
	got := strings.Split(strings.TrimRight(output(t, "pdftotext", "-layout", "-l", "1", path, "-"), "\f\n"), "\n")
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	if got := output(t, "pdftotext", "-f", "2", path, "-"); strings.TrimSpace(got) != "second page" {
		t.Errorf("page 2: %q", got)
	}
}

func TestMarkdown(t *testing.T) {
	t.Parallel()
	path := convert(t, "a.md", "---\ntitle: \"The title\"\n---\n> [!NOTE]\n> mind\n\n> [!NOTE] not alone\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n\n- [x] done\n\n~~old~~ :tada: note[^1] www.example.com <kbd>Ctrl</kbd>\n\n[^1]: below\n", nil)
	text := output(t, "pdftotext", "-layout", path, "-")
	for _, want := range []string{"The title", "Note\n", "mind", "[!NOTE] not alone", "done", "🎉", "below", "Ctrl"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in %s", want, text)
		}
	}
	if strings.Contains(text, "title:") || strings.Count(text, "[!NOTE]") != 1 || !strings.Contains(output(t, "pdfinfo", "-url", path), "http://www.example.com") {
		t.Errorf("text: %s", text)
	}
	if got := info(t, path, "Title"); got != "The title" {
		t.Errorf("title %q", got)
	}
	if got := info(t, convert(t, "a.md", "text\n\n# `A` *heading*\n", nil), "Title"); got != "A heading" {
		t.Errorf("title %q", got)
	}
}

// The heading is on each page, nothing is cut off, and a row of data is not a heading.
func TestTable(t *testing.T) {
	t.Parallel()
	in := "Name,Amount,Wide\n" + strings.Repeat("\"a\nb\",12.50,"+strings.Repeat("W", 70)+"\n", 60)
	path := convert(t, "a.csv", in, nil)
	pages := strings.Split(strings.TrimSuffix(output(t, "pdftotext", "-layout", path, "-"), "\f"), "\f")
	if len(pages) < 2 {
		t.Fatalf("%d pages", len(pages))
	}
	rows, ws := 0, 0
	for i, p := range pages {
		if !strings.Contains(p, "Amount") {
			t.Errorf("page %d has no heading", i+1)
		}
		rows += strings.Count(p, "12.50")
		ws += strings.Count(p, "W")
	}
	if rows != 60 || ws != 60*70+len(pages) {
		t.Errorf("%d rows, %d letters", rows, ws)
	}
	text := output(t, "pdftotext", "-layout", convert(t, "a.csv", strings.Repeat("2024,1\n", 100), nil), "-")
	if n := strings.Count(text, "2024"); n != 100 {
		t.Errorf("a table without a heading has %d rows, want 100", n)
	}
	if n := info(t, convert(t, "a.csv", "", nil), "Pages"); n != "1" {
		t.Errorf("an empty table: %s pages", n)
	}
}

// A drawing stays vectors: text is text and there are no pixels.
func TestDrawing(t *testing.T) {
	t.Parallel()
	path := convert(t, "a.svg", svgOf(`width="400" height="200"`), nil)
	if images := strings.Count(output(t, "pdfimages", "-list", path), "\n"); images > 2 {
		t.Errorf("it has become a picture: %d lines", images)
	}
	if !strings.Contains(output(t, "pdftotext", path, "-"), "word") {
		t.Error("no text")
	}
	_, err := try(t, shared.Convert(), "a.svg", `<svg xmlns="http://www.w3.org/2000/svg"><rect></svg>`, nil)
	if fileops.Code(err) != "corrupt_input" {
		t.Errorf("a damaged drawing: %v", err)
	}
}

// A page with very many elements is printed in time, without tags.
func TestManyElements(t *testing.T) {
	t.Parallel()
	path := convert(t, "a.html", strings.Repeat("<span>x</span> ", 10_000)+"<p>the end", nil)
	if !strings.Contains(output(t, "pdftotext", "-f", info(t, path, "Pages"), path, "-"), "the end") {
		t.Error("the end is missing")
	}
}

func TestHeavy(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		in   string
		want bool
	}{
		"article":  {strings.Repeat("<p>"+strings.Repeat("word <b>bold</b> ", 50)+"</p>", 50), false},
		"spans":    {strings.Repeat("<span>x</span> ", 1000), true},
		"lines":    {"<pre>" + strings.Repeat("x\n", 2000), true},
		"text":     {"<p>" + strings.Repeat("word ", 40_000), true},
		"elements": {strings.Repeat("<p>x</p>", 8001), true},
		"nothing":  {"", false},
	} {
		if got := heavy(tt.in); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
