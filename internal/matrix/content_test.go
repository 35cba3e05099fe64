package matrix_test

import (
	"image/color"
	"maps"
	"slices"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/fileopstest"
	"github.com/filewright/filewright/fileops/format"
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
}

// contentOf tells what is in the specimen of f.
func contentOf(f format.Format) content {
	words := []string{fileopstest.Heading, "quick brown fox", "日本語", "Ελληνικά", "Привет", "Äpfel", "Fruit", "Apple", "Pear"}
	switch f {
	case format.PDF:
		return content{words: words, pages: 2, picture: true, dpi: 150, a4: true}
	case format.CSV, format.TSV, format.JSON, format.XLSX, format.XLS, format.ODS, format.FODS:
		return content{words: []string{"fruit", "Apple", "Pear", "1.5", fileopstest.Heading, "日本語"}, sheet: true, dpi: 150}
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
		return content{sound: fileopstest.Duration, tone: f != format.AMR}
	case format.Video:
		return content{w: 160, h: 120, sound: fileopstest.Duration, moving: fileopstest.Duration, tone: true}
	case format.Archive:
		e := fileopstest.ArchiveEntries()
		switch f {
		case format.GZ, "bz2", "xz", "zst":
			e = e[:1]
		}
		return content{entries: e}
	}
	return content{}
}

// A trial is a value of an optional parameter and what it does to the content of
// the result.
type trial struct {
	value  any
	effect func(*content)
}

// password is that of everything locked here.
const password = "sesame-42"

// trials has a value for each optional parameter whose schema does not list its
// values.
var trials = map[string][]trial{
	"width":   {{80, func(c *content) { c.w, c.h = 80, 60 }}},
	"height":  {{60, func(c *content) { c.w, c.h = 80, 60 }}},
	"quality": {{60, nil}},
	"dpi":     {{72, func(c *content) { c.dpi = 72 }}},
	"start":   {{0.5, func(c *content) { c.sound -= 500 * time.Millisecond; c.moving -= 500 * time.Millisecond }}},
	"duration": {{1.2, func(c *content) {
		c.sound, c.moving = min(c.sound, 1200*time.Millisecond), min(c.moving, 1200*time.Millisecond)
	}}},
	"time":           {{1.0, nil}},
	"fps":            {{10, nil}},
	"audio_bitrate":  {{96, nil}},
	"margin":         {{20, nil}},
	"owner_password": {{"another-one", nil}},
	"password":       {{password, func(c *content) { c.password = password }}},
	// Of a specimen with one page, that page; of one with two, the first.
	"pages":      {{"1", func(c *content) { c.pages, c.words = 1, c.words[:min(2, len(c.words))] }}},
	"background": {{"#ffffff", nil}},
	"sheet":      {{"1", nil}},
	"delimiter":  {{";", nil}},
}

// variations returns the values to try p with beside its default.
func variations(p fileops.Param) []trial {
	if ts, ok := trials[p.Name]; ok {
		return ts
	}
	var out []trial
	for _, v := range p.Enum {
		out = append(out, trial{v, nil})
	}
	switch p.Type {
	case fileops.Boolean:
		out = append(out, trial{p.Default != true, nil})
	case fileops.Integer, fileops.Number:
		if p.Max > 0 {
			out = append(out, trial{p.Min, nil}, trial{min(p.Max, max(p.Min, 1)*2), nil})
		}
	}
	return out
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
	slides := format.Slides == from[0].Family() && to == format.TXT // by way of PDF
	if slides || to == format.PDF || slices.Contains(from, format.PDF) || to.Family() == format.Image || c.sheet || len(c.words) == 0 {
		return c
	}
	// A PDF may have other characters for the same shapes, or only shapes.
	c.words = append(c.words, "مرحبا", "😀")
	return c
}
