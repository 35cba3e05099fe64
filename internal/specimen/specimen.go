// Package specimen creates small files of every format for tests. A sample
// ([Sample]) is any valid file. A specimen ([Of]) has known content, so that a
// test can check the result of a conversion. [Locked] returns specimens with a
// password, and [Lettered] returns pictures of text.
package specimen

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
)

// The content of every specimen with text; see [Of].
const (
	Heading = "Filewright sample"                 // on a separate line, before [Text]
	Scripts = "日本語 Ελληνικά Привет مرحبا 😀 Äpfel" // one line in six scripts
)

// Duration is the length of an audio or video specimen.
const Duration = 2 * time.Second

// Tone is the frequency in hertz of the tone in an audio specimen.
const Tone = 440

// PatchColors are the colours of [Patches]: top left, top right, bottom left,
// bottom right.
func PatchColors() [4]color.NRGBA {
	return [4]color.NRGBA{{200, 30, 40, 255}, {30, 160, 60, 255}, {40, 60, 200, 255}, {230, 200, 40, 255}}
}

// Patches returns a picture of w × h pixels with four patches of one colour
// each. The centres of the patches reveal any change of colour, orientation,
// size or proportion.
func Patches(w, h int) *image.NRGBA {
	m := image.NewNRGBA(image.Rect(0, 0, w, h))
	c := PatchColors()
	for i, r := range []image.Rectangle{image.Rect(0, 0, w/2, h/2), image.Rect(w/2, 0, w, h/2), image.Rect(0, h/2, w/2, h), image.Rect(w/2, h/2, w, h)} {
		draw.Draw(m, r, image.NewUniform(c[i]), image.Point{}, draw.Src)
	}
	return m
}

func patchesPNG() []byte {
	var b bytes.Buffer
	if err := png.Encode(&b, Patches(160, 120)); err != nil {
		panic(err) // impossible: a buffer accepts all writes
	}
	return b.Bytes()
}

// specimens caches specimens, like samples.
var specimens sync.Map // format.Format → func() ([]byte, error)

// Of returns a file of format f with known content, so that a test can check a
// conversion of it:
//
//   - a document has [Heading], [Text] and [Scripts], a table with the cells
//     Fruit, Count, Apple, 3, Pear, 4 (lines in rtf and txt), and the picture
//     [Patches] of 160 × 120 pixels if the format supports pictures;
//   - slides have the same on two pages;
//   - a sheet, JSON or csv has a row each for Apple and Pear, with the columns
//     fruit, count, price and text;
//   - a picture is [Patches] of 160 × 120 pixels (an icon: 32 × 32);
//   - audio is a tone of 440 Hz with length [Duration] (amr: noise);
//   - a video is [Patches] with a white square that moves through the middle,
//     160 × 120 pixels, 25 frames per second, with that tone;
//   - subtitles have the text of a txt in four cues, a second each;
//   - an archive has a.txt with [Text] and dir/b.txt with [Text] a hundred
//     times.
//
// Formats that need an encoder require ffmpeg, vips, soffice, 7z or tar on the
// host.
func Of(t testing.TB, f format.Format) *fileops.File {
	t.Helper()
	b, err := cached(f)
	if err != nil {
		t.Fatalf("specimen %s: %v", f, err)
	}
	return fileops.Bytes("specimen."+string(f), b)
}

// cached returns the content of [Of].
func cached(f format.Format) ([]byte, error) {
	made, _ := specimens.LoadOrStore(f, sync.OnceValues(func() ([]byte, error) { return specimen(f) }))
	return made.(func() ([]byte, error))()
}

func specimen(f format.Format) ([]byte, error) {
	if f.Plain() != f {
		return variant(f, cached)
	}
	switch f {
	case format.VSD, format.PUB, format.EMF, format.WMF, format.Pages, format.Numbers, format.Key:
		var b bytes.Buffer
		err := writeLegacy(&b, f)
		return b.Bytes(), err
	}
	switch f.Family() {
	case format.Image:
		return pictureSpecimen(f)
	case format.Audio, format.Video:
		return mediaSpecimen(f)
	case format.Slides:
		return slidesSpecimen(f)
	}
	var b bytes.Buffer
	switch f {
	case format.TXT:
		fmt.Fprintf(&b, "%s\n\n%s\n\n%s\n\nFruit Count\nApple 3\nPear 4\n", Heading, Text, Scripts)
	case format.MD:
		fmt.Fprintf(&b, "# %s\n\n%s\n\n%s\n\n| Fruit | Count |\n|-------|-------|\n| Apple | 3 |\n| Pear | 4 |\n", Heading, Text, Scripts)
	case format.HTML:
		fmt.Fprintf(&b, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>%[1]s</title></head>\n<body>%s</body></html>\n", Heading, htmlBody("data:image/png;base64,"+base64PNG()))
	case format.RST, format.Org, format.TeX, format.FB2:
		writeMarkup(&b, f)
	case format.ODG:
		if err := writeODG(&b); err != nil {
			return nil, err
		}
	case format.VSDX:
		if err := writeVSDX(&b); err != nil {
			return nil, err
		}
	case format.XLSB:
		if err := writeXLSB(&b); err != nil {
			return nil, err
		}
	case format.EML:
		writeEML(&b)
	case format.SRT, format.VTT, format.ASS:
		writeSubtitles(&b, f)
	case format.MSG:
		return writeMSG()
	case format.MOBI, format.AZW3:
		return bookSpecimen(f), nil
	case format.XML:
		fmt.Fprintf(&b, "%s<doc><title>%s</title><p>%s</p><p>%s</p></doc>\n", xmlHead, Heading, Text, Scripts)
	case format.PS:
		fmt.Fprintf(&b, "%%!PS-Adobe-3.0\n%%%%BoundingBox: 0 0 595 842\n%%%%Pages: 1\n%%%%EndComments\n%%%%Page: 1 1\n/Helvetica findfont 18 scalefont setfont\n72 720 moveto (%s) show\n72 690 moveto (%s) show\n72 640 200 24 rectfill\nshowpage\n%%%%EOF\n", Heading, Text)
	case format.CSV:
		tableText(&b, ",")
	case format.TSV:
		tableText(&b, "\t")
	case format.JSON:
		fmt.Fprintf(&b, `[{"fruit":"Apple","count":3,"price":1.5,"text":%q},{"fruit":"Pear","count":4,"price":2,"text":%q}]`+"\n", Heading, Scripts)
	case format.JSONL:
		fmt.Fprintf(&b, `{"fruit":"Apple","count":3,"price":1.5,"text":%q}`+"\n"+`{"fruit":"Pear","count":4,"price":2,"text":%q}`+"\n", Heading, Scripts)
	case format.RTF:
		writeRTF(&b)
	case format.PDF:
		return pdfSpecimen()
	case format.DOC, format.XLS:
		return officeFile("specimen." + string(f))
	case format.DOCX, format.ODT, format.FODT, format.EPUB:
		err := writeDocument(&b, f)
		return b.Bytes(), err
	case format.XLSX, format.ODS, format.FODS:
		err := writeSheet(&b, f)
		return b.Bytes(), err
	default:
		return archiveSpecimen(f)
	}
	return b.Bytes(), nil
}

// writeSubtitles writes four subtitles, each of a second, from the start on.
func writeSubtitles(b *bytes.Buffer, f format.Format) {
	switch f {
	case format.VTT:
		b.WriteString("WEBVTT\n\n")
	case format.ASS:
		b.WriteString("[Script Info]\nScriptType: v4.00+\n\n[V4+ Styles]\nFormat: Name, Fontname, Fontsize, PrimaryColour, Bold, Italic, Alignment\nStyle: Default,Arial,16,&H00FFFFFF,0,0,2\n\n" +
			"[Events]\nFormat: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text\n")
	}
	for i, text := range []string{Heading, Text, Scripts, "Fruit Count\nApple 3\nPear 4"} {
		switch f {
		case format.SRT:
			fmt.Fprintf(b, "%[1]d\n00:00:0%[2]d,000 --> 00:00:0%[1]d,000\n%[3]s\n\n", i+1, i, text)
		case format.VTT:
			fmt.Fprintf(b, "00:0%[2]d.000 --> 00:0%[1]d.000\n%[3]s\n\n", i+1, i, text)
		case format.ASS:
			fmt.Fprintf(b, "Dialogue: 0,0:00:0%d.00,0:00:0%d.00,Default,,0,0,0,,%s\n", i, i+1, strings.ReplaceAll(text, "\n", `\N`))
		}
	}
}

// tableText writes the table of a specimen with a separator.
func tableText(b *bytes.Buffer, sep string) {
	for _, row := range tableRows() {
		for i, cell := range row {
			if i > 0 {
				b.WriteString(sep)
			}
			b.WriteString(cell)
		}
		b.WriteString("\n")
	}
}

// tableRows returns the rows of a sheet specimen.
func tableRows() [][]string {
	return [][]string{{"fruit", "count", "price", "text"}, {"Apple", "3", "1.5", Heading}, {"Pear", "4", "2", Scripts}}
}
