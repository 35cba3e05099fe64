package matrix_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"golang.org/x/text/unicode/norm"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/specimen"
	"github.com/filewright/filewright/internal/systest"
)

// judges has a judge for every result format. A judge inspects results with programs that did not
// create them, where such programs exist, and checks that they contain c.
var judges = map[format.Format]func(t *testing.T, paths []string, c content){
	format.PDF: one(judgePDF),

	format.TXT:  one(func(t *testing.T, p string, c content) { hasText(t, read(t, p), c) }),
	format.MD:   one(judgeMarkdown),
	format.RTF:  one(judgeRTF),
	format.DOC:  one(hasUnits),
	format.DOCX: one(both(byPandoc("docx"), inZIP)),
	format.ODT:  one(inZIP), // pandoc 2.17 omits table headers
	format.EPUB: one(both(byPandoc("epub"), inZIP)),
	format.FODT: one(flat), format.FODP: one(flat), format.FODS: one(flat),
	format.HTML: one(func(t *testing.T, p string, c content) {
		a := py.ask(t, "html", p)
		hasText(t, a.Text, c)
		if c.picture && a.Images == 0 {
			t.Error("the picture is missing")
		}
		if c.sheet && a.Tables == 0 {
			t.Error("there is no table")
		}
	}),
	format.RST: one(byPandoc("rst")), format.Org: one(byPandoc("org")), format.TeX: one(judgeTeX),
	format.FB2: one(func(t *testing.T, p string, c content) { // pandoc does not read its tables
		hasText(t, regexp.MustCompile(`<[^>]*>`).ReplaceAllString(read(t, p), " "), c)
		if c.picture && !strings.Contains(read(t, p), "<binary ") {
			t.Error("the picture is missing")
		}
	}),
	format.SRT: one(judgeSubtitles), format.VTT: one(judgeSubtitles), format.ASS: one(judgeSubtitles),
	format.EML: one(func(t *testing.T, p string, c content) {
		hasText(t, tool(t, "/usr/bin/python3", "-c", "import email, email.policy, sys; m = email.message_from_binary_file(open(sys.argv[1], 'rb'), policy=email.policy.default); print(m['subject']); print(m.get_body(('html',)).get_content())", p), c)
	}),
	format.XLSB: one(func(t *testing.T, p string, c content) {
		hasUnits(t, unzipped(t, p, "xl/worksheets/sheet1.bin"), content{words: slices.DeleteFunc(slices.Clone(c.words), func(w string) bool { return w == "1.5" })})
	}),
	format.XML: one(func(t *testing.T, p string, c content) { hasText(t, read(t, p), c) }),

	format.PPTX: one(inZIP), format.ODP: one(inZIP), format.XLSX: one(inZIP), format.ODS: one(inZIP), format.ODG: one(inZIP),
	format.PPT: one(hasUnits), format.XLS: one(hasUnits),
	format.CSV: one(rows("csv")), format.TSV: one(rows("tsv")), format.JSON: one(rows("json")),
	format.JSONL: one(func(t *testing.T, p string, c content) {
		c.json = "lines"
		rows("json")(t, p, c)
	}),

	format.PNG: judgePicture, format.JPG: judgePicture, format.WebP: judgePicture, format.GIF: judgePicture,
	format.TIFF: judgePicture, format.BMP: judgePicture, format.AVIF: judgePicture, format.HEIC: judgePicture,
	format.JXL: judgePicture, format.JP2: judgePicture, format.ICO: judgePicture, format.SVG: judgePicture, format.PSD: judgePicture, format.RAW: judgePicture, format.PPM: judgePicture, format.TGA: judgePicture,

	format.MP3: audio("mp3"), format.WAV: audio("pcm_"), format.FLAC: audio("flac"), format.OGG: audio("vorbis"), format.Opus: audio("opus"),
	format.M4A: audio("aac"), format.AAC: audio("aac"), format.WMA: audio("wmav2"), format.AIFF: audio("pcm_"),

	format.MP4: video("h264"), format.MOV: video("h264", "mpeg4"), format.MKV: video("h264", "mpeg4", "mpeg1video", "mpeg2video", "vp9"), format.M4V: video("h264"),
	format.ThGP: video("h264", "mpeg4"), format.WebM: video("vp9"), format.AVI: video("mpeg4"), format.WMV: video("wmv2", "msmpeg4v3"), format.FLV: video("h264", "flv1"),
	format.MPEG: video("mpeg2video", "mpeg1video"), format.TS: video("h264", "mpeg1video", "mpeg2video"),

	format.ZIP: one(judgeZIP), format.SevenZip: one(bySevenZip), format.TAR: one(bySevenZip), format.TarGZ: one(byTar),
	"tar.bz2": one(byTar), "tar.xz": one(byTar), "tar.zst": one(byTar),
}

type judge = func(t *testing.T, path string, c content)

func one(j judge) func(*testing.T, []string, content) {
	return func(t *testing.T, paths []string, c content) {
		if len(paths) != 1 {
			t.Fatalf("%d results", len(paths))
		}
		j(t, paths[0], c)
	}
}

// unzipped returns the path of a file that is in an archive.
func unzipped(t *testing.T, path, name string) string {
	t.Helper()
	dir := t.TempDir()
	tool(t, "unzip", "-q", "-d", dir, path, name)
	return filepath.Join(dir, name)
}

func both(a, b judge) judge {
	return func(t *testing.T, p string, c content) { a(t, p, c); b(t, p, c) }
}

func read(t testing.TB, path string) string {
	t.Helper()
	b := systest.ReadFile(t, path)
	return string(b)
}

// judgeSubtitles lets ffmpeg read the cues, and compares their number, times and text.
func judgeSubtitles(t *testing.T, p string, c content) {
	hasText(t, tool(t, "ffmpeg", "-v", "error", "-i", p, "-f", "srt", "-"), c)
	var probed struct {
		Packets []struct{ PTS, Duration string }
	}
	out := tool(t, "ffprobe", "-v", "error", "-show_entries", "packet=pts_time,duration_time", "-of", "json", p)
	out = strings.NewReplacer("pts_time", "PTS", "duration_time", "Duration").Replace(out)
	if err := json.Unmarshal([]byte(out), &probed); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if len(probed.Packets) != c.cues {
		t.Errorf("%d subtitles, want %d", len(probed.Packets), c.cues)
	}
	seconds := func(s string) float64 {
		n, err := strconv.ParseFloat(s, 64)
		if err != nil {
			t.Errorf("%q is no time", s)
		}
		return n
	}
	for i, q := range probed.Packets {
		if start, long := seconds(q.PTS), seconds(q.Duration); math.Abs(start-float64(i)) > 0.011 || math.Abs(long-1) > 0.011 {
			t.Errorf("subtitle %d starts at %g s and takes %g s", i+1, start, long)
		}
	}
}

// hasText compares without regard to line breaks and to equivalent Unicode encodings of a
// character.
func hasText(t *testing.T, text string, c content) {
	t.Helper()
	text = strings.Join(strings.Fields(norm.NFKC.String(text)), " ")
	for _, w := range c.words {
		if !strings.Contains(text, w) {
			t.Errorf("%q is not in the text: %.400q", w, text)
		}
	}
}

// judgeMarkdown converts to HTML first, because Markdown may contain HTML tables.
func judgeMarkdown(t *testing.T, p string, c content) {
	out := filepath.Join(t.TempDir(), "x.html")
	tool(t, "pandoc", "-f", "markdown", "-t", "html", "--wrap=none", "-o", out, p)
	hasText(t, py.ask(t, "html", out).Text, c)
}

// judgeTeX reads text from right to left as other text, because pandoc leaves it out. The document
// must define the commands for it.
func judgeTeX(t *testing.T, p string, c content) {
	source := read(t, p)
	for _, command := range []string{`\RL`, `\LR`} {
		if strings.Contains(source, command+"{") && !strings.Contains(source, `\newcommand{`+command+"}") {
			t.Errorf("%s is not defined", command)
		}
	}
	_, body, _ := strings.Cut(source, `\begin{document}`)
	body = regexp.MustCompile(`\\(RL|LR)\{([^{}]*)\}`).ReplaceAllString(body, "$2")
	path := filepath.Join(t.TempDir(), "x.tex")
	systest.NoError(t, os.WriteFile(path, []byte(`\begin{document}`+body), 0o600))
	byPandoc("latex")(t, path, c)
}

func byPandoc(from string) judge {
	return func(t *testing.T, p string, c content) {
		hasText(t, tool(t, "pandoc", "-f", from, "-t", "plain", "--wrap=none", p), c)
	}
}

// hasUnits searches a file of the old office formats, whose text is in UTF-16 or, where possible,
// has one byte for each character. The opener checks that the file can be read.
func hasUnits(t *testing.T, p string, c content) {
	b := []byte(read(t, p))
	for _, w := range c.words {
		var wide, narrow []byte
		for _, u := range utf16.Encode([]rune(w)) {
			wide = binary.LittleEndian.AppendUint16(wide, u)
			narrow = append(narrow, byte(u))
		}
		if number := w[0] >= '0' && w[0] <= '9'; !number && !bytes.Contains(b, wide) && !bytes.Contains(b, narrow) {
			t.Errorf("%q is not in the file", w)
		}
	}
}

// judgeRTF does not use pandoc for characters with two UTF-16 units, which its version 2.17 does
// not combine.
func judgeRTF(t *testing.T, p string, c content) {
	if i := slices.Index(c.words, "😀"); i >= 0 {
		c.words = slices.Delete(slices.Clone(c.words), i, i+1)
		if rtf := read(t, p); !strings.Contains(rtf, `\u-10179`) && !strings.Contains(rtf, `\u55357`) {
			t.Error("the emoji is missing")
		}
	}
	byPandoc("rtf")(t, p, c)
	if c.picture && !strings.Contains(read(t, p), `\pict`) {
		t.Error("the picture is missing")
	}
}

func inZIP(t *testing.T, p string, c content) {
	a := py.ask(t, "office", p)
	hasText(t, a.Text, c)
	if c.picture && a.Images == 0 {
		t.Error("the picture is missing")
	}
	if c.sheet && strings.HasSuffix(p, ".xlsx") && !strings.Contains(tool(t, "unzip", "-p", p, "xl/worksheets/sheet1.xml"), "<v>1.5</v>") {
		t.Error("the price is not a number")
	}
}

func flat(t *testing.T, p string, c content) {
	a := py.ask(t, "flat", p)
	hasText(t, a.Text, c)
	if c.picture && a.Images == 0 {
		t.Error("the picture is missing")
	}
}

func rows(op string) judge {
	return func(t *testing.T, p string, c content) {
		if c.comma != "" {
			p = withCommas(t, p, c.comma)
		}
		got := py.ask(t, op, p).Rows
		if b := read(t, p); op == "json" && c.typed != regexp.MustCompile(`"[Cc]ount":\s*3\b`).MatchString(b) {
			t.Errorf("typed is %v: %.200s", c.typed, b)
		}
		if start := map[string]string{"": "[\n  {", "arrays": "[\n  [", "lines": "{"}[c.json]; op == "json" && !strings.HasPrefix(read(t, p), start) {
			t.Errorf("JSON does not start with %q: %.200s", start, read(t, p))
		}
		if c.unnamed && op == "json" && c.json != "arrays" && len(got) > 0 {
			if got[0][0] != "column_1" {
				t.Errorf("columns %q", got[0])
			}
			got = got[1:]
		}
		if !c.sheet { // records from a document: the table must be among them
			var all []string
			for _, r := range got {
				all = append(all, strings.Join(r, " "))
			}
			for _, w := range []string{"Apple", "Pear"} {
				if !strings.Contains(strings.Join(all, "\n"), w) {
					t.Errorf("%q is not in %q", w, got)
				}
			}
			return
		}
		var cells []string
		for _, r := range got {
			cells = append(cells, r...)
		}
		hasText(t, strings.Join(cells, "\n"), c)
		if len(got) < 3 || !slices.Equal(got[0], []string{"fruit", "count", "price", "text"}) || len(got[1]) < 4 || !slices.Equal(got[1][:3], []string{"Apple", "3", "1.5"}) {
			t.Errorf("rows %q", got)
		}
	}
}

// withCommas returns a copy of a file with commas as cell separators. No cell of a specimen
// contains either separator.
func withCommas(t *testing.T, p, comma string) string {
	s := read(t, p)
	if comma != "," && strings.Contains(s, ",") || !strings.Contains(s, comma) {
		t.Errorf("not separated by %q: %.200s", comma, s)
	}
	out := filepath.Join(t.TempDir(), "a.csv")
	systest.NoError(t, os.WriteFile(out, []byte(strings.ReplaceAll(s, comma, ",")), 0o600))
	return out
}

func judgePDF(t *testing.T, p string, c content) {
	if c.password != "" {
		open := filepath.Join(t.TempDir(), "open.pdf")
		if out, err := systest.Output(t, "qpdf", "--check", p); err == nil || !strings.Contains(err.Error(), "password") {
			t.Fatalf("opens without the password: %s", out)
		}
		if c.may != "" {
			out := tool(t, "qpdf", "--show-encryption", "--password="+c.password, p)
			prints, changes := strings.Contains(out, "print high resolution: allowed"), strings.Contains(out, "modify anything: allowed")
			if prints != (c.may != "none") || changes != (c.may == "all") {
				t.Errorf("want %s: %s", c.may, out)
			}
		}
		tool(t, "qpdf", "--password="+c.password, "--decrypt", p, open)
		p = open
	}
	if out := tool(t, "qpdf", "--check", p); !strings.Contains(out, "No syntax or stream encoding errors") || strings.Contains(out, "\nFile is encrypted") {
		t.Errorf("qpdf: %s", out)
	}
	hasPages(t, p, c)
	if c.pdfa != "" {
		got := strings.Fields(tool(t, "exiftool", "-s3", "-XMP-pdfaid:Part", "-XMP-pdfaid:Conformance", p))
		if len(got) != 2 || got[0] != c.pdfa[:1] || !strings.Contains("ABU", got[1]) { // levels A and U include B
			t.Errorf("PDF/A %q, want %s", got, c.pdfa)
		}
	}
	if len(c.words) > 0 {
		hasText(t, tool(t, "pdftotext", "-layout", p, "-"), c)
	}
	if c.picture || c.w > 0 {
		out := filepath.Join(t.TempDir(), "p")
		tool(t, "pdftoppm", "-r", "50", "-png", p, out)
		pages, _ := filepath.Glob(out + "*.png")
		var drawn []*image.NRGBA
		for _, p := range pages {
			drawn = append(drawn, decodePNG(t, p))
		}
		hasPatches(t, drawn)
	}
}

// hasPages checks the number of pages and the size of the first page.
func hasPages(t *testing.T, p string, c content) {
	t.Helper()
	n := 0
	var w, h float64
	for line := range strings.Lines(tool(t, "pdfinfo", p)) {
		if v, ok := strings.CutPrefix(line, "Pages:"); ok {
			fmt.Sscan(v, &n)
		}
		if v, ok := strings.CutPrefix(line, "Page size:"); ok {
			fmt.Sscanf(strings.TrimSpace(v), "%f x %f", &w, &h)
		}
	}
	if c.pages > 0 && n != c.pages || n == 0 {
		t.Errorf("%d pages, want %d", n, c.pages)
	}
	if c.shape == "portrait" && w > h || c.shape == "landscape" && w < h {
		t.Errorf("pages of %.0f by %.0f points, want %s", w, h, c.shape)
	}
	if c.paper[0] == 0 {
		return
	}
	if math.Abs(min(w, h)-c.paper[0]) > 1.5 || math.Abs(max(w, h)-c.paper[1]) > 1.5 {
		t.Errorf("pages of %.0f by %.0f points, want %v", w, h, c.paper)
	}
}

// hasPatches looks for all patch colours on the pages.
func hasPatches(t *testing.T, pages []*image.NRGBA) {
	t.Helper()
	var count [4]int
	colors := specimen.PatchColors()
	for _, m := range pages {
		for i := 0; i < len(m.Pix); i += 4 {
			if m.Pix[i] == m.Pix[i+1] && m.Pix[i] == m.Pix[i+2] {
				continue // most of a page
			}
			for k, c := range colors {
				if near(color.NRGBA{m.Pix[i], m.Pix[i+1], m.Pix[i+2], 255}, c, 24) {
					count[k]++
				}
			}
		}
	}
	if slices.Min(count[:]) < 50 {
		t.Errorf("the patches are not on the pages: %v points of their colours", count)
	}
}

// judgeMarked checks that pale text covers a part of the patches.
func judgeMarked(t *testing.T, m *image.NRGBA) {
	seen, pale := make(map[int]bool), 0
	for i := 0; i < len(m.Pix); i += 4 {
		at := color.NRGBA{m.Pix[i], m.Pix[i+1], m.Pix[i+2], 255}
		for k, want := range specimen.PatchColors() {
			seen[k] = seen[k] || near(at, want, 24)
		}
		if min(at.R, at.G, at.B) > 100 { // every patch has a darker channel
			pale++
		}
	}
	if n := len(m.Pix) / 4; len(seen) != 4 || !seen[0] || !seen[1] || !seen[2] || !seen[3] || pale == 0 || pale > n/3 {
		t.Errorf("%d of %d pixels are pale, patches %v", pale, n, seen)
	}
}

// judgePreview checks that a picture shows something in a box of c.preview pixels.
func judgePreview(t *testing.T, path string, c content) {
	m := decode(t, path)
	if c.preview > 0 && max(m.Rect.Dx(), m.Rect.Dy()) != c.preview {
		t.Errorf("%v pixels, want %d on the longest side", m.Rect.Max, c.preview)
	}
	for i := 0; i < len(m.Pix); i += 4 {
		if m.Pix[i] < 128 {
			return
		}
	}
	t.Error("the preview is empty")
}

func judgePicture(t *testing.T, paths []string, c content) {
	if c.w == 0 { // pages
		if c.pages > 0 && len(paths) != c.pages {
			t.Errorf("%d pictures of %d pages", len(paths), c.pages)
		}
		var pages []*image.NRGBA
		for _, p := range paths {
			m := decode(t, p)
			judgePage(t, filepath.Base(p), m, c)
			pages = append(pages, m)
		}
		if c.picture {
			hasPatches(t, pages)
		}
		return
	}
	if len(paths) != 1 {
		t.Fatalf("%d results", len(paths))
	}
	m := decode(t, paths[0])
	w, h := c.w, c.h
	if m.Rect.Dx() != w || m.Rect.Dy() != h {
		if strings.HasSuffix(paths[0], ".ico") && m.Rect.Dx() >= 16 { // the first of several sizes
			w, h = m.Rect.Dx(), m.Rect.Dy()
		} else {
			t.Fatalf("%v pixels, want %d by %d", m.Rect.Max, c.w, c.h)
		}
	}
	// Small lossy images and video colours are less exact, and strong compression may change
	// colours.
	tolerance := 12
	if !c.still || c.w < 100 || c.extreme || strings.HasSuffix(paths[0], ".gif") || strings.HasSuffix(paths[0], ".heic") {
		tolerance = 24
	}
	if c.developed {
		tolerance = 32
	}
	ext := filepath.Ext(paths[0])
	if c.marked {
		judgeMarked(t, m)
		return
	}
	for place := range 4 {
		i := place
		if c.order != nil {
			i = c.order[place]
		}
		want := specimen.PatchColors()[i]
		at := m.NRGBAAt(w/4+place%2*w/2, h/4+place/2*h/2)
		switch {
		case i == 3 && c.clear && (ext == ".jpg" || ext == ".ppm"): // without transparency
			if !near(at, color.NRGBA{255, 255, 255, 255}, tolerance) {
				t.Errorf("the transparent patch became %v, want white", at)
			}
		case i == 3 && c.clear && ext == ".bmp": // may have either
		case i == 3 && c.clear:
			if at.A > 8 {
				t.Errorf("the transparent patch became %v", at)
			}
		default:
			if !near(at, want, tolerance) || at.A != 255 {
				t.Errorf("%s: patch %d is %v, want %v", ext, i+1, at, want)
			}
		}
	}
	if at := m.NRGBAAt(w/2, h/16); c.ground.A > 0 && !near(at, c.ground, tolerance) {
		t.Errorf("around the picture there is %v, want %v", at, c.ground)
	}
	if (ext == ".gif" || ext == ".webp") && !c.still { // from a video
		var sum time.Duration
		delays := strings.Fields(tool(t, "vipsheader", "-f", "delay", paths[0]))
		for _, ms := range delays {
			n, _ := strconv.Atoi(ms)
			sum += time.Duration(n) * time.Millisecond
		}
		within(t, "animation", sum, c.moving, c.slack())
		if fps := float64(len(delays)) / sum.Seconds(); c.fps > 0 && math.Abs(fps-c.fps) > 0.5 {
			t.Errorf("%.2f frames a second, want %g", fps, c.fps)
		}
	}
}

// judgePage checks a page as a picture: its size, and that it is not blank.
func judgePage(t *testing.T, name string, m *image.NRGBA, c content) {
	if c.a4 {
		w, h := 210/25.4*float64(c.dpi), 297/25.4*float64(c.dpi)
		if math.Abs(float64(m.Rect.Dx())-w) > 2 || math.Abs(float64(m.Rect.Dy())-h) > 2 {
			t.Errorf("%v pixels, want A4 at %d dpi", m.Rect.Max, c.dpi)
		}
	}
	dark := 0
	for i := 0; i < len(m.Pix); i += 4 {
		if m.Pix[i] < 110 && m.Pix[i+1] < 110 && m.Pix[i+2] < 110 {
			dark++
		}
	}
	if dark < 100 {
		t.Errorf("%s is blank: %d dark points", name, dark)
	}
}

func within(t *testing.T, what string, got, want, bound time.Duration) {
	t.Helper()
	if d := got - want; d > bound || d < -bound {
		t.Errorf("%s: %v, want %v within %v", what, got, want, bound)
	}
}

// judgeMembers compares extracted files with the entries of their archive. A single
// compressed file has the name of the archive.
func judgeMembers(t *testing.T, paths []string, want content) {
	t.Helper()
	if len(paths) != len(want.entries) {
		t.Fatalf("%d files, not %d", len(paths), len(want.entries))
	}
	for i, e := range want.entries {
		name := strings.ReplaceAll(e[0], "/", "_")
		if got := filepath.Base(paths[i]); got != name && len(want.entries) > 1 {
			t.Errorf("file %q, not %q", got, name)
		}
		if b := systest.ReadFile(t, paths[i]); string(b) != e[1] {
			t.Errorf("%s has %d bytes that differ from the %d of the archive", name, len(b), len(e[1]))
		}
	}
}

// judgeReport compares the report about a file with its known content.
func judgeReport(t *testing.T, path string, in *fileops.File, want content) {
	t.Helper()
	var r struct {
		Format  format.Format
		Bytes   int64
		PDF     struct{ Pages int }
		Picture struct{ Width, Height int }
		Media   struct {
			Duration float64
			Streams  []struct{ Type string }
		}
		Archive struct {
			Files    int
			Unpacked int `json:"unpacked_bytes"`
		}
		Document, Text, Message map[string]any
	}
	systest.NoError(t, json.Unmarshal(systest.ReadFile(t, path), &r))
	size, kinds := 0, ""
	for _, e := range want.entries {
		size += len(e[1])
	}
	for _, s := range r.Media.Streams {
		kinds += s.Type + " "
	}
	f := in.Format()
	var ok bool
	switch f.Family() {
	case format.Archive:
		ok = r.Archive.Files == len(want.entries) && r.Archive.Unpacked == size
	case format.Image:
		ok = r.Picture.Width == want.w && r.Picture.Height == want.h
	case format.Audio, format.Video:
		ok = math.Abs(r.Media.Duration-want.sound.Seconds()) <= want.slack().Seconds() && strings.Contains(kinds, "audio") && strings.Contains(kinds, "video") == (want.moving > 0)
	default:
		ok = f != format.PDF && len(r.Document)+len(r.Text)+len(r.Message) > 0 || r.PDF.Pages == want.pages
	}
	if !ok || r.Format != f || r.Bytes != in.Size() {
		t.Errorf("%s: %+v", f, r)
	}
}
