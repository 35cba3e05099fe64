package matrix_test

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/text/encoding/simplifiedchinese"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/fileopstest"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/matrix"
	"github.com/filewright/filewright/internal/specimen"
	"github.com/filewright/filewright/internal/systest"
)

// A content describes what is in a file, and so what its results must contain.
type content struct {
	words   []string
	sheet   bool          // the words are in cells
	pages   int           // after layout; 0: unknown
	cues    int           // subtitles, each of a second
	dpi     int           // of pages rendered as pictures
	a4      bool          // the pages have that size
	picture bool          // the patches are beside the words
	w, h    int           // size of a picture or video of the patches
	clear   bool          // the last patch is transparent
	still   bool          // a picture without duration
	sound   time.Duration // 0: none
	tone    bool          // the sound is the tone
	moving  time.Duration // duration of a video
	parts   int           // number of joined parts; 0 means 1
	entries [][2]string   // of an archive

	developed bool   // from a raw photo
	password  string // password that the result must have

	codec   string      // of a video
	encoded string      // the codec of a video that must result
	voice   string      // the codec of sound that must result
	extreme bool        // detail is reduced as much as possible
	fps     float64     // of moving pictures; 0: not checked
	paper   [2]float64  // page size in points; 0: not checked
	shape   string      // page orientation: portrait or landscape
	ground  color.NRGBA // colour around the patches
	marked  bool        // there is a pale text over the patches
	preview int         // longest side of the preview of a page; 0: no preview
	order   []int       // the patches from the top left to the bottom right; nil: as they are made
	pdfa    string      // part and level of the standard
	may     string      // permissions of a locked PDF
	comma   string      // cell separator, if it is not a comma
	typed   bool        // numbers have a numeric type
	json    string      // shape of JSON: arrays or lines; "" means objects
	unnamed bool        // the first row of a table does not name its columns
}

// contentOf returns the content of the specimen of f.
func contentOf(f format.Format) content {
	f = f.Plain()
	words := []string{specimen.Heading, "quick brown fox", "日本語", "Ελληνικά", "Привет", "Äpfel", "Fruit", "Apple", "Pear"}
	switch f {
	case format.PDF:
		return content{words: words, pages: 2, picture: true, dpi: 150, a4: true}
	case format.JSON, format.JSONL:
		c := contentOf(format.CSV)
		c.typed = true // numbers are numbers
		return c
	case format.SRT, format.VTT, format.ASS:
		return content{words: words, cues: 4}
	case format.CSV, format.TSV, format.XLSX, format.XLS, format.XLSB, format.ODS, format.FODS, format.Numbers:
		return content{words: []string{"fruit", "Apple", "Pear", "1.5", specimen.Heading, "日本語"}, sheet: true, dpi: 150}
	case format.PUB, format.WMF, format.EMF: // one byte for each character; of EMF, glyphs that the font lacks have no text
		return content{words: slices.DeleteFunc(words, func(w string) bool {
			return slices.Contains([]string{"日本語", "Ελληνικά", "Привет"}, w)
		}), pages: 1, dpi: 150}
	case format.Key:
		return content{words: words, pages: 2, dpi: 150}
	case format.PS:
		return content{words: words[:2], pages: 1, dpi: 150}
	}
	switch f.Family() {
	case format.Document:
		c := content{words: words, pages: 1, dpi: 150}
		switch f {
		case format.MOBI, format.AZW3:
			c.pages = 0 // the title and the author come before the text, which may need a second page
		case format.DOCX, format.DOC, format.RTF:
			c.a4 = true
		}
		switch f {
		case format.TXT, format.MD, format.XML, format.RST, format.Org, format.TeX, format.VSDX, format.VSD, format.Pages:
		default:
			c.picture = true
		}
		return c
	case format.Slides:
		return content{words: words, pages: 2, dpi: 150, picture: true}
	case format.Image:
		if f == format.ICO {
			return content{w: 32, h: 32, still: true}
		}
		if f == format.RAW { // developing it changes the brightness
			return content{w: 160, h: 120, still: true, developed: true}
		}
		return content{w: 160, h: 120, still: true}
	case format.Audio:
		return content{sound: specimen.Duration, tone: f != format.AMR}
	case format.Video:
		return content{w: 160, h: 120, sound: specimen.Duration, moving: specimen.Duration, tone: true, codec: videoCodec(f)}
	case format.Archive:
		e := specimen.ArchiveEntries()
		if single(f) {
			e = e[:1]
		}
		if f == format.AR { // it has no folders
			for i := range e {
				e[i][0] = strings.ReplaceAll(e[i][0], "/", "_")
			}
		}
		return content{entries: e}
	}
	return content{}
}

// single reports whether a file of format f contains one compressed file.
func single(f format.Format) bool {
	return slices.Contains([]format.Format{format.GZ, format.BZ2, format.XZ, format.Zst, format.LZ4, format.LZMA, format.LZ}, f)
}

// videoCodec returns the codec of the specimen of f.
func videoCodec(f format.Format) string {
	switch f {
	case format.ThGP, format.AVI:
		return "mpeg4"
	case format.MPEG:
		return "mpeg1video"
	case format.TS:
		return "mpeg2video"
	case format.FLV:
		return "flv1"
	case format.WMV:
		return "msmpeg4v3"
	case format.WebM:
		return "vp9"
	}
	return "h264"
}

// A trial is a parameter value and its effect on the content of the result.
type trial struct {
	value  any
	effect func(*content)                                // may be nil
	also   fileops.Args                                  // arguments without which the value has no effect
	input  func(testing.TB, format.Format) *fileops.File // nil means the usual file
}

// password is the password of every locked file here.
const password = "sesame-42"

// trialsOf returns values of a parameter of c to try. For a listed parameter these are all values
// except its default, which the other runs have; otherwise one value.
func trialsOf(c matrix.Cell, p fileops.Param) []trial {
	var out []trial
	for _, v := range listedValues(p) {
		if v != p.Default {
			out = append(out, listedTrial(c, p, v))
		}
	}
	if len(out) > 0 {
		return out
	}
	return []trial{oneTrial(c, p)}
}

// papers are page sizes in points (ISO 216, ANSI/ASME Y14.1).
var papers = map[string][2]float64{"a3": {841.9, 1190.6}, "a4": {595.3, 841.9}, "a5": {419.5, 595.3}, "letter": {612, 792}, "legal": {612, 1008}}

// listedTrial returns the trial for a listed value of p.
func listedTrial(c matrix.Cell, p fileops.Param, value any) trial {
	tr := trial{value: value}
	v, _ := value.(string)
	switch p.Name {
	case "page_size":
		tr.effect = func(c *content) {
			if c.paper = papers[v]; v == "a6" {
				c.pages = 0 // a sample needs one or two of them
			}
		}
	case "orientation":
		if !takes(c.Schema, "page_size") {
			if v != "auto" {
				tr.effect = func(c *content) { c.shape = v }
			}
			break
		}
		tr.also = fileops.Args{"page_size": "a4"} // without a page size the page has the picture's size
		if v != "auto" {
			tr.effect = func(c *content) { c.paper, c.shape = papers["a4"], v }
		}
	case "fit":
		side := smallSide(c)
		tr.also = fileops.Args{"width": side, "height": side}
		tr.effect = func(c *content) {
			if v == "inside" {
				c.w, c.h = side, side*c.h/c.w
			} else {
				c.w, c.h = side, side
			}
		}
	case "rotate":
		tr.effect = func(c *content) {
			if c.order = orders[v]; v == "90" || v == "270" {
				c.w, c.h = c.h, c.w
			}
		}
	case "video_codec":
		tr.effect = func(c *content) { c.encoded = v }
	case "audio_codec":
		tr.effect = func(c *content) { c.voice = v }
	case "mute":
		if value == true {
			tr.effect = func(c *content) { c.sound, c.tone = 0, false }
		}
	case "subtitles":
		if takes(c.Schema, "subtitle_track") {
			tr.input = subtitled
		} else {
			tr.also = fileops.Args{"subtitle_key": subtitleFile()}
		}
	case "flip":
		tr.effect = func(c *content) { c.order = orders[v] }
	case "enlarge":
		tr.also = fileops.Args{"width": 320}
		if value == true {
			tr.effect = func(c *content) { c.w, c.h = 320, 320*c.h/c.w }
		}
	case "pdfa":
		tr.effect = func(c *content) { c.pdfa = v }
	case "pdfua":
		tr.input = tagged
	case "single_page":
		tr.effect = func(c *content) { c.pages, c.paper = 1, [2]float64{} }
	case "permissions":
		tr.effect = func(c *content) { c.may = v }
	case "notes":
		if v == "after" {
			tr.effect = func(c *content) { c.pages *= 2 }
		}
	case "shape":
		tr.effect = func(c *content) { c.json = v }
	case "header":
		tr.effect = func(c *content) { c.unnamed = value == false }
	case "output_delimiter":
		tr.effect = func(c *content) {
			c.comma = map[string]string{"semicolon": ";", "tab": "\t", "pipe": "|"}[v]
		}
	case "delimiter":
		tr = delimited(c, value, map[string]string{"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}[v])
	case "at":
		tr.input = func(t testing.TB, f format.Format) *fileops.File { return bookmarked(t, specimen.Of(t, f)) }
		tr.effect = func(c *content) { c.pages *= 2 }
	case "typed":
		tr.effect = func(c *content) { c.typed = value == true }
	}
	return tr
}

// orders are the patches of a picture that is turned clockwise by degrees, or flipped.
var orders = map[string][]int{
	"90": {2, 0, 3, 1}, "180": {3, 2, 1, 0}, "270": {1, 3, 0, 2}, "horizontal": {1, 0, 3, 2}, "vertical": {2, 3, 0, 1},
}

// subtitled returns the specimen of f with a subtitle.
func subtitled(t testing.TB, f format.Format) *fileops.File {
	t.Helper()
	return withSubtitles(t, f, "1\n00:00:00,100 --> 00:00:00,900\n.\n")
}

// captioned returns the specimen of f with the first two subtitles of a specimen of them.
func captioned(t testing.TB, f format.Format) *fileops.File {
	t.Helper()
	return withSubtitles(t, f, "1\n00:00:00,000 --> 00:00:01,000\n"+specimen.Heading+"\n\n2\n00:00:01,000 --> 00:00:02,000\n"+specimen.Text+"\n"+specimen.Scripts+"\n")
}

// withSubtitles returns the specimen of f with the subtitles of a SubRip file.
func withSubtitles(t testing.TB, f format.Format, srt string) *fileops.File {
	t.Helper()
	dir := t.TempDir()
	b, _ := specimen.Of(t, f).Bytes()
	in, text, out := filepath.Join(dir, "in."+string(f)), filepath.Join(dir, "text.srt"), filepath.Join(dir, "out."+string(f))
	systest.NoError(t, os.WriteFile(in, b, 0o600))
	systest.NoError(t, os.WriteFile(text, []byte(srt), 0o600))
	codec := map[format.Format]string{format.MKV: "srt", format.WebM: "webvtt"}[f]
	if _, err := systest.Output(t, "ffmpeg", "-v", "error", "-i", in, "-i", text, "-map", "0", "-map", "1", "-c", "copy", "-c:s", cmp.Or(codec, "mov_text"), out); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(out)
	systest.NoError(t, err)
	return fileops.Bytes("subtitled."+string(f), b)
}

// tagged returns a PDF file with tags, as LibreOffice makes them.
func tagged(t testing.TB, _ format.Format) *fileops.File {
	t.Helper()
	return performed(t, "convert", fileops.Args{"convert_to": "pdf"}, "tagged.pdf", specimen.Of(t, format.DOCX))
}

// bookmarked returns a PDF file with a bookmark, as merge makes them.
func bookmarked(t testing.TB, f *fileops.File) *fileops.File {
	t.Helper()
	return performed(t, "merge", nil, "bookmarked.pdf", f, f)
}

// smallSide returns a side length to which every picture is reduced.
func smallSide(c matrix.Cell) int {
	if c.From == format.ICO {
		return 16
	}
	return 80
}

// oneTrial returns a trial for a parameter that does not list its values. Every such parameter must
// have one: a nil value fails.
func oneTrial(c matrix.Cell, p fileops.Param) trial {
	side := smallSide(c)
	switch p.Name {
	case "name":
		if c.Action == "attach" {
			return trial{value: "other.txt"}
		}
	case "facturx_version":
		return trial{value: "1.0"}
	case "media_type":
		return trial{value: "text/xml"}
	case "selector":
		return trial{value: "body"}
	case "density":
		return trial{value: 0.5}
	case "quality":
		if c.Action == "screenshot" {
			return trial{value: 60}
		}
	}
	switch p.Name {
	case "width", "height":
		if c.Action == "screenshot" {
			return trial{value: 900}
		}
		if c.Action == "thumbnail" && c.From.Family() != format.Image && c.From.Family() != format.Video {
			return trial{value: 100, effect: func(c *content) { c.preview = 0 }} // the other side is free
		}
		if c.Action == "thumbnail" && len(c.Changes) > 0 {
			return trial{value: 100} // of each picture of a sheet
		}
	}
	switch p.Name {
	case "page":
		return trial{value: 1}
	case "count":
		return trial{value: 4}
	case "interval":
		return trial{value: 0.5, also: fileops.Args{"count": nil}}
	case "columns":
		return trial{value: 3}
	case "set":
		return trial{value: map[string]any{"title": newTitle, "author": "Somebody"}}
	case "remove":
		return trial{value: "all"}
	case "width":
		return trial{value: side, effect: func(c *content) { c.w, c.h = side, side*c.h/c.w }}
	case "height", "video_height":
		side = side * 3 / 4
		return trial{value: side, effect: func(c *content) { c.w, c.h = side*c.w/c.h, side }}
	case "quality":
		return trial{value: 60}
	case "max_bytes":
		return trial{value: 1 << 20}
	case "crop":
		return trial{value: "1:1", effect: func(c *content) { c.w = min(c.w, c.h) }}
	case "frames":
		return trial{value: "1"}
	case "sizes":
		return trial{value: "64", effect: func(c *content) { c.w, c.h = 64, 64*c.h/c.w }}
	case "every":
		return trial{value: 2}
	case "members":
		if single(c.From) {
			return trial{value: "*"}
		}
		if c.From == format.AR { // it has no folders
			return trial{value: "dir_*", effect: func(c *content) { c.entries = c.entries[1:] }}
		}
		return trial{value: "DIR/", effect: func(c *content) { c.entries = c.entries[1:] }}
	case "dpi":
		return trial{value: 72, effect: func(c *content) {
			c.dpi = 72
			if c.w > 0 { // a drawing, whose unit is 1/96 inch
				c.w, c.h = c.w*72/96, c.h*72/96
			}
		}}
	case "fields":
		return trial{value: map[string]any{"name": "Lovelace"}, effect: func(c *content) { c.words[len(c.words)-1] = "Lovelace" }}
	case "text":
		return trial{value: "Draft", effect: func(c *content) { c.words = append(c.words, "Draft") }}
	case "opacity":
		return trial{value: 0.7}
	case "scale":
		return trial{value: 0.5}
	case "format":
		return trial{value: "Leaf{page}", effect: func(c *content) { c.words = append(c.words, "Leaf1") }}
	case "start":
		if c.Action == "page_numbers" {
			return trial{value: 7}
		}
		return trial{value: 0.5, effect: func(c *content) { c.sound -= 500 * time.Millisecond; c.moving -= 500 * time.Millisecond }}
	case "end":
		return trial{value: 1.2, effect: func(c *content) {
			c.sound, c.moving = min(c.sound, 1200*time.Millisecond), min(c.moving, 1200*time.Millisecond)
		}}
	case "crf":
		return trial{value: 25}
	case "video_bitrate":
		return trial{value: 500}
	case "sample_rate":
		return trial{value: 44100}
	case "channels", "audio_track":
		return trial{value: 1}
	case "subtitle_key":
		tr := trial{value: subtitleFile()}
		if !takes(c.Schema, "subtitle_language") { // the target has no tracks for them
			tr.also = fileops.Args{"subtitles": "burn"}
		}
		return tr
	case "subtitle_language":
		return trial{value: "en", also: fileops.Args{"subtitle_key": subtitleFile()}}
	case "subtitle_track":
		if c.Target().Family() == format.Document {
			return trial{value: 1, input: captioned}
		}
		return trial{value: 1, input: subtitled}
	case "volume":
		return trial{value: 0.5}
	case "loudness":
		return trial{value: -20}
	case "fade_in", "fade_out":
		return trial{value: 0.1}
	case "duration":
		return trial{value: 1.2, effect: func(c *content) {
			c.sound, c.moving = min(c.sound, 1200*time.Millisecond), min(c.moving, 1200*time.Millisecond)
		}}
	case "time":
		return trial{value: 1.0}
	case "fps":
		return trial{value: 10, effect: func(c *content) { c.fps = 10 }}
	case "audio_bitrate":
		return trial{value: 96}
	case "margin", "margin_top", "margin_right", "margin_bottom", "margin_left":
		return trial{value: 20}
	case "paper_width":
		return trial{value: 500, also: fileops.Args{"paper_height": 700}, effect: func(c *content) { c.paper = [2]float64{500, 700} }}
	case "paper_height":
		return trial{value: 700, also: fileops.Args{"paper_width": 500}, effect: func(c *content) { c.paper = [2]float64{500, 700} }}
	case "header", "footer":
		return trial{value: "<b>Leading</b>", effect: func(c *content) { c.words = append(c.words, "Leading") }}
	case "media_features":
		return trial{value: map[string]any{"prefers-color-scheme": "light"}}
	case "wait_for_selector":
		return trial{value: "body", also: fileops.Args{"javascript": true}}
	case "wait_for_expression":
		return trial{value: "document.body !== null", also: fileops.Args{"javascript": true}}
	case "wait_delay":
		return trial{value: 0.1, also: fileops.Args{"javascript": true}}
	case "image_quality":
		return trial{value: 60}
	case "image_resolution":
		return trial{value: 150}
	case "output_encoding":
		return trial{value: "utf-8"}
	case "owner_password":
		return trial{value: "another-one"}
	case "password":
		switch c.Action {
		case "lock", "unlock", "reset_password", "zip":
			return trial{value: password, effect: func(c *content) { c.password = password }}
		}
		if c.Action == "compress" && c.From != format.PDF { // the result has the password, too
			return trial{
				value: password, effect: func(c *content) { c.password = password },
				input: func(t testing.TB, f format.Format) *fileops.File { return input(t, "unlock", f) },
			}
		}
		if c.Action == "merge" && !takesPassword(c.From) { // merge takes it beside locked files
			return trial{value: password}
		}
		return trial{value: password, input: func(t testing.TB, f format.Format) *fileops.File {
			if c.Action == "fill_form" {
				return performed(t, "lock", fileops.Args{"password": password}, "locked.pdf", withField(t, specimen.Of(t, f)))
			}
			return specimen.Locked(t, f, password)
		}}
	case "encoding":
		// It has all characters of the specimens, and is not detected in them.
		return trial{value: "gb18030", input: func(t testing.TB, f format.Format) *fileops.File {
			b, _ := specimen.Of(t, f).Bytes()
			b, err := simplifiedchinese.GB18030.NewEncoder().Bytes(b)
			systest.NoError(t, err)
			return fileops.Bytes("a."+string(f), b)
		}}
	case "pages":
		switch c.Action {
		case "rotate", "page_numbers", "watermark":
			return trial{value: "2"}
		}
		if c.From == format.TIFF {
			return trial{value: "1"}
		}
		// The only page of a specimen with one page, else the first page.
		return trial{value: "1", effect: func(c *content) { c.pages, c.words = 1, c.words[:min(2, len(c.words))] }}
	case "image_key":
		return trial{value: stamp(), also: fileops.Args{"text": nil, "opacity": 1, "scale": 0.2}}
	case "background":
		if c.From.Family() == format.Image && takes(c.Schema, "fit") {
			return trial{
				value: "#2030d0", also: fileops.Args{"width": side, "height": side, "fit": "contain"},
				effect: func(c *content) { c.w, c.h, c.ground = side, side, color.NRGBA{0x20, 0x30, 0xd0, 255} },
			}
		}
		return trial{value: "#ffffff"}
	case "sheet":
		return trial{value: "1"}
	case "delimiter":
		return delimited(c, ";", ";")
	}
	return trial{}
}

func takes(s fileops.Schema, name string) bool {
	return slices.ContainsFunc(s, func(p fileops.Param) bool { return p.Name == name })
}

// takesPassword reports whether a conversion opens files of format f with a password.
func takesPassword(f format.Format) bool {
	return slices.ContainsFunc(cells, func(c matrix.Cell) bool {
		return c.Action == "convert" && c.From == f && takes(c.Schema, "password")
	})
}

// delimited returns a trial for the separator of the CSV file, which is either the input or the
// result.
func delimited(c matrix.Cell, value any, between string) trial {
	if c.From != format.CSV {
		return trial{value: value, effect: func(c *content) { c.comma = between }}
	}
	return trial{value: value, input: func(t testing.TB, f format.Format) *fileops.File {
		b, _ := specimen.Of(t, f).Bytes()
		return fileops.Bytes("a.csv", bytes.ReplaceAll(b, []byte(","), []byte(between)))
	}}
}

// subtitleFile returns subtitles to add to a video.
func subtitleFile() *fileops.File {
	return fileops.Bytes("added.srt", []byte("1\n00:00:00,100 --> 00:00:00,900\n.\n"))
}

// stamp returns a picture to draw.
func stamp() *fileops.File {
	m := image.NewNRGBA(image.Rect(0, 0, 24, 16))
	for i := range m.Pix {
		m.Pix[i] = []byte{200, 200, 200, 255}[i%4]
	}
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		panic(err) // impossible
	}
	return fileops.Bytes("stamp.png", b.Bytes())
}

// invoice is the start of an invoice of the profile EN 16931 of Factur-X.
const invoice = `<a:CrossIndustryInvoice xmlns:a="urn:un:unece:uncefact:data:standard:CrossIndustryInvoice:100"><a:ExchangedDocumentContext>` +
	`<a:GuidelineSpecifiedDocumentContextParameter><a:ID>urn:cen.eu:en16931:2017</a:ID></a:GuidelineSpecifiedDocumentContextParameter>` +
	`</a:ExchangedDocumentContext></a:CrossIndustryInvoice>`

// required returns arguments for the required parameters of s that do not select the result.
func required(s fileops.Schema) fileops.Args {
	args := make(fileops.Args)
	for _, p := range s {
		if !p.Required {
			continue
		}
		switch p.Name {
		case "new_password":
			args[p.Name] = "brand-new-7"
		case "password", "old_password":
			args[p.Name] = password
		case "pages":
			args[p.Name] = "1-"
		case "fields":
			args[p.Name] = map[string]any{"name": "Filled"}
		case "outline":
			args[p.Name] = "1 First\n  1 Below\n"
		case "file_key":
			args[p.Name] = fileops.Bytes("invoice.xml", []byte(invoice))
		default:
			if len(p.Enum) > 0 {
				args[p.Name] = p.Enum[0]
			}
		}
	}
	return args
}

// plain returns the arguments of c without optional parameters, but for one that changes the file if
// it keeps its format or sets metadata.
func plain(c matrix.Cell) fileops.Args {
	args := with(required(c.Schema), c.Param, c.Value)
	if c.Action == "metadata" {
		args["set"] = map[string]any{"title": newTitle}
	}
	maps.Copy(args, fileopstest.Changing(fileops.Accept{Params: c.Schema, Changes: c.Changes}))
	return args
}

func with(args fileops.Args, name string, value any) fileops.Args {
	args = maps.Clone(args)
	if name != "" && value != "" {
		args[name] = value
	}
	return args
}

func near(a, b color.NRGBA, tolerance int) bool {
	d := func(x, y uint8) bool { return int(x)-int(y) <= tolerance && int(y)-int(x) <= tolerance }
	return d(a.R, b.R) && d(a.G, b.G) && d(a.B, b.B)
}

// and returns the content of a file that contains both.
func (c content) and(d content) content {
	c.words = slices.Compact(slices.Sorted(slices.Values(slices.Concat(c.words, d.words))))
	if c.laidOut() > 0 && d.laidOut() > 0 {
		c.pages = c.laidOut() + d.laidOut()
	} else {
		c.pages = 0
	}
	c.parts = max(c.parts, 1) + max(d.parts, 1)
	c.sound += d.sound
	c.moving += d.moving
	c.tone = c.tone && d.tone
	c.picture = c.picture || d.picture || c.still || d.still
	c.sheet = c.sheet && d.sheet
	c.still, c.a4 = false, false
	if c.codec != d.codec {
		c.codec = ""
	}
	return c
}

// laidOut returns the number of pages of c.
func (c content) laidOut() int {
	if c.still {
		return 1
	}
	return c.pages
}

// slack returns the tolerance of a duration: the video of a part may end later than its sound.
func (c content) slack() time.Duration {
	return time.Duration(max(c.parts, 1)) * 100 * time.Millisecond
}

// as returns the part of c that must remain after a conversion between the given formats.
func (c content) as(from []format.Format, to format.Format) content {
	c.words = slices.Clone(c.words)
	if from[0] == format.PDF && to == format.SVG { // ffmpeg draws 90 dots for each inch of a drawing
		c.dpi = 90
	}
	if to == format.PDF && c.still {
		c.pages = 1
	}
	if from[0] == format.PDF && (to == format.XLSX || to == format.CSV) || from[0] == format.HTML && to.Family() == format.Sheet { // these conversions take only the tables
		c.words, c.picture = []string{"Fruit", "Count", "Apple", "Pear"}, false
		return c
	}
	slides := format.Slides == from[0].Family() && to == format.TXT // through PDF
	read := from[0].Family() == format.Image                        // character recognition
	if slides || read || to == format.PDF || slices.Contains(from, format.PDF) || from[0] == format.PS || to.Family() == format.Image || c.sheet || len(c.words) == 0 {
		return c
	}
	if from[0] == format.PUB { // its text has one byte for each character
		return c
	}
	// A PDF may have other characters for the same shapes, or only shapes.
	c.words = append(c.words, "مرحبا", "😀")
	return c
}
