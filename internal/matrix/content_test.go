package matrix_test

import (
	"bytes"
	"image/color"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/matrix"
	"github.com/filewright/filewright/internal/specimen"
)

// A content says what is in a file, and so what must be in what is made of it.
type content struct {
	words    []string
	sheet    bool          // the words are in cells
	pages    int           // when it is laid out; 0 is not known
	dpi      int           // of pages as pictures
	a4       bool          // the pages are of that size
	picture  bool          // the words have the patches beside them
	w, h     int           // of a picture or video that is the patches
	clear    bool          // its last patch is transparent
	still    bool          // a picture without duration
	sound    time.Duration // 0 if there is none
	tone     bool          // it is the tone
	moving   time.Duration // of a video
	parts    int           // that were joined; 0 is one
	entries  [][2]string   // of an archive
	password string        // that the result must be under

	codec   string      // of a video
	extreme bool        // as much detail as possible was given up
	fps     float64     // of moving pictures; 0 is not looked at
	paper   [2]float64  // size of the pages in points; 0 is not looked at
	shape   string      // of the pages: portrait or landscape
	ground  color.NRGBA // what is around the patches
	pdfa    string      // part and level of the standard
	may     string      // what one may do with a locked PDF
	comma   string      // what stands between cells, if it is no comma
	typed   bool        // numbers are numbers
}

// contentOf tells what is in the specimen of f.
func contentOf(f format.Format) content {
	words := []string{specimen.Heading, "quick brown fox", "日本語", "Ελληνικά", "Привет", "Äpfel", "Fruit", "Apple", "Pear"}
	switch f {
	case format.PDF:
		return content{words: words, pages: 2, picture: true, dpi: 150, a4: true}
	case format.CSV, format.TSV, format.JSON, format.XLSX, format.XLS, format.ODS, format.FODS:
		return content{words: []string{"fruit", "Apple", "Pear", "1.5", specimen.Heading, "日本語"}, sheet: true, dpi: 150}
	case format.PS:
		return content{words: words[:2], pages: 1, dpi: 150}
	}
	switch f.Family() {
	case format.Document:
		c := content{words: words, pages: 1, dpi: 150}
		switch f {
		case format.DOCX, format.DOC, format.RTF:
			c.a4 = true
		}
		switch f {
		case format.TXT, format.MD, format.XML:
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
		return content{w: 160, h: 120, still: true}
	case format.Audio:
		return content{sound: specimen.Duration, tone: f != format.AMR}
	case format.Video:
		return content{w: 160, h: 120, sound: specimen.Duration, moving: specimen.Duration, tone: true, codec: videoCodec(f)}
	case format.Archive:
		e := specimen.ArchiveEntries()
		switch f {
		case format.GZ, "bz2", "xz", "zst":
			e = e[:1]
		}
		return content{entries: e}
	}
	return content{}
}

// videoCodec returns that of the specimen of f.
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

// A trial is a value of a parameter and what it does to the content of the
// result.
type trial struct {
	value  any
	effect func(*content)                                // may be nil
	also   fileops.Args                                  // without which the value would do nothing
	input  func(testing.TB, format.Format) *fileops.File // nil is the usual file
}

// password is that of everything locked here.
const password = "sesame-42"

// trialsOf returns values to try a parameter of c with: all that it lists except
// its default, which every other run has, or one.
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

// papers are the sizes of pages in points (ISO 216, ANSI/ASME Y14.1).
var papers = map[string][2]float64{"a3": {841.9, 1190.6}, "a4": {595.3, 841.9}, "a5": {419.5, 595.3}, "letter": {612, 792}, "legal": {612, 1008}}

// listedTrial returns what a value does that p lists.
func listedTrial(c matrix.Cell, p fileops.Param, value any) trial {
	tr := trial{value: value}
	v, _ := value.(string)
	switch p.Name {
	case "page_size":
		tr.effect = func(c *content) { c.paper = papers[v] }
	case "orientation":
		tr.also = fileops.Args{"page_size": "a4"} // without a size it is that of the picture
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
	case "pdfa":
		tr.effect = func(c *content) { c.pdfa = v }
	case "permissions":
		tr.effect = func(c *content) { c.may = v }
	case "delimiter":
		tr = delimited(c, value, map[string]string{"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}[v])
	case "typed":
		tr.effect = func(c *content) { c.typed = value == true }
	}
	return tr
}

// smallSide returns a length that every picture is reduced to.
func smallSide(c matrix.Cell) int {
	if c.From == format.ICO {
		return 16
	}
	return 80
}

// oneTrial returns a value of a parameter that does not list its values. There
// must be one for each: a value of nil fails.
func oneTrial(c matrix.Cell, p fileops.Param) trial {
	side := smallSide(c)
	switch p.Name {
	case "width":
		return trial{value: side, effect: func(c *content) { c.w, c.h = side, side*c.h/c.w }}
	case "height", "video_height":
		side = side * 3 / 4
		return trial{value: side, effect: func(c *content) { c.w, c.h = side*c.w/c.h, side }}
	case "quality":
		return trial{value: 60}
	case "dpi":
		return trial{value: 72, effect: func(c *content) {
			c.dpi = 72
			if c.w > 0 { // a drawing, whose unit is 1/96 inch
				c.w, c.h = c.w*72/96, c.h*72/96
			}
		}}
	case "start":
		return trial{value: 0.5, effect: func(c *content) { c.sound -= 500 * time.Millisecond; c.moving -= 500 * time.Millisecond }}
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
	case "margin":
		return trial{value: 20}
	case "owner_password":
		return trial{value: "another-one"}
	case "password":
		if c.Action == "convert" { // it opens the archive
			return trial{value: password, input: func(t testing.TB, f format.Format) *fileops.File { return specimen.Locked(t, f, password) }}
		}
		return trial{value: password, effect: func(c *content) { c.password = password }}
	case "pages":
		// Of a specimen with one page, that page; of one with two, the first.
		return trial{value: "1", effect: func(c *content) { c.pages, c.words = 1, c.words[:min(2, len(c.words))] }}
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

// delimited is about the file that is read or the one that is written, whichever
// is the csv.
func delimited(c matrix.Cell, value any, between string) trial {
	if c.From != format.CSV {
		return trial{value: value, effect: func(c *content) { c.comma = between }}
	}
	return trial{value: value, input: func(t testing.TB, f format.Format) *fileops.File {
		b, _ := specimen.Of(t, f).Bytes()
		return fileops.Bytes("a.csv", bytes.ReplaceAll(b, []byte(","), []byte(between)))
	}}
}

// required returns arguments for the required parameters of s that select
// nothing.
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
		default:
			if len(p.Enum) > 0 {
				args[p.Name] = p.Enum[0]
			}
		}
	}
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

// and returns the content of a file that has both.
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

// laidOut returns how many pages c takes.
func (c content) laidOut() int {
	if c.still {
		return 1
	}
	return c.pages
}

// slack returns by how much a duration may differ: frames of the parts need not
// end when their sound does.
func (c content) slack() time.Duration {
	return time.Duration(max(c.parts, 1)) * 100 * time.Millisecond
}

// as returns what of c must be left in a file of a format made of files of other
// formats.
func (c content) as(from []format.Format, to format.Format) content {
	c.words = slices.Clone(c.words)
	if to == format.PDF && c.still {
		c.pages = 1
	}
	if from[0] == format.PDF && (to == format.XLSX || to == format.CSV) || from[0] == format.HTML && to.Family() == format.Sheet { // they take the tables
		c.words, c.picture = []string{"Fruit", "Count", "Apple", "Pear"}, false
		return c
	}
	slides := format.Slides == from[0].Family() && to == format.TXT // by way of PDF
	read := from[0].Family() == format.Image                        // from letters in a picture
	if slides || read || to == format.PDF || slices.Contains(from, format.PDF) || to.Family() == format.Image || c.sheet || len(c.words) == 0 {
		return c
	}
	// A PDF may have other characters for the same shapes, or only shapes.
	c.words = append(c.words, "مرحبا", "😀")
	return c
}
