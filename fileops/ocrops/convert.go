package ocrops

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"image"
	"image/draw"
	"io"
	"strings"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
)

// languageParam is the parameter for the language of a text.
const languageParam = "ocr_language"

// LanguageParam returns the parameter for the language of the text in a picture: one of
// languages, of which the first is the default. It also accepts two-letter codes (ISO
// 639-1) of common languages.
func LanguageParam(languages []string) fileops.Param {
	p := fileops.Param{
		Name: languageParam, Scope: fileops.ScopeContent, Default: languages[0], Enum: languages, Aliases: make(map[string]string),
		Doc: "Language of the text in pictures and scanned pages, as Tesseract names it; deu+eng stands for both, auto for detection.",
	}
	for _, l := range languages {
		if short, ok := shortNames[l]; ok {
			p.Aliases[short] = l
		}
	}
	return p
}

// shortNames maps ISO 639-1 codes to Tesseract's ISO 639-2 codes.
var shortNames = map[string]string{
	"ara": "ar", "bul": "bg", "ces": "cs", "dan": "da", "deu": "de", "ell": "el", "eng": "en", "est": "et", "fin": "fi", "fra": "fr",
	"heb": "he", "hin": "hi", "hrv": "hr", "hun": "hu", "ind": "id", "ita": "it", "jpn": "ja", "kor": "ko", "lav": "lv", "lit": "lt",
	"nld": "nl", "nor": "no", "pol": "pl", "por": "pt", "ron": "ro", "rus": "ru", "slk": "sk", "slv": "sl", "spa": "es", "srp": "sr",
	"swe": "sv", "tha": "th", "tur": "tr", "ukr": "uk", "vie": "vi", "chi_sim": "zh",
}

// Convert returns the action that converts pictures to plain text: the lines of the
// picture, an empty line between paragraphs, and a form feed after each page. It reads
// all pages of a TIFF file except smaller copies of others, and the first frame of an
// animation. It ignores the orientation in EXIF data and detects that of the text
// instead.
//
// A picture without any text fails with [fileops.ErrUnsupportedInput].
func (e *Engine) Convert() fileops.Action {
	target := fileops.Enum("convert_to", "Format of the result.", string(format.TXT))
	target.Aliases = make(map[string]string)
	for _, a := range format.TXT.Aliases() {
		target.Aliases[string(a)] = string(format.TXT)
	}
	return fileops.Func(fileops.Spec{
		Name: "convert", Engine: e.name(), Family: "image",
		Summary: "Reads the text in a picture.",
		Accepts: []fileops.Accept{{
			Formats: []format.Format{format.PNG, format.JPG, format.TIFF, format.WebP, format.BMP, format.GIF},
			Params:  fileops.Schema{target, LanguageParam(e.Languages())},
		}},
	}, e.convert)
}

func (e *Engine) convert(ctx context.Context, job *fileops.Job) error {
	in := job.Input()
	if in.Size() > maxInput {
		return fileops.Fail(fileops.ErrLimit, nil, "the picture has %d bytes, more than the limit of %d", in.Size(), int64(maxInput))
	}
	sizes, err := pictureSizes(in, e.opts.MaxPages)
	if err != nil {
		return err
	}
	for _, s := range sizes {
		if err := e.checkSize(s.X, s.Y); err != nil {
			return err
		}
	}
	job.Progress(0.1)
	language := job.Params.Get(languageParam)
	read := func(open func() io.Reader) (found []*hocrPage, err error) {
		if language == Auto {
			found, _, err = e.detect(ctx, reader{open, 0, len(sizes)})
			return found, err
		}
		return e.read(ctx, open(), 0, language, e.upright, len(sizes))
	}
	found, err := read(func() io.Reader { return in.Reader() })
	if (errors.Is(err, fileops.ErrCorruptInput) || errors.Is(err, fileops.ErrUnsupportedInput)) && len(sizes) == 1 {
		// Tesseract's decoders reject some valid files, such as TIFF in tiles.
		if img, _, bad := image.Decode(in.Reader()); bad == nil {
			found, err = read(func() io.Reader { return netpbm(grey(img)) })
		}
	}
	if err != nil {
		return err
	}
	var out bytes.Buffer
	any := false
	for i, p := range found {
		if i < len(sizes) && sizes[i].copy {
			continue
		}
		// Lines in all directions count, because only their order matters.
		for _, l := range p.lines {
			l.angle = 0
		}
		if page := p.page(); len(page.Lines) > 0 {
			any = true
			writeText(&out, page)
		}
		out.WriteByte('\f')
	}
	if !any {
		return errNoText
	}
	return job.Write(fileops.ResultName(in, format.TXT), func(w io.Writer) error {
		_, err := out.WriteTo(w)
		return err
	})
}

// grey returns img on white paper.
func grey(img image.Image) *image.Gray {
	out := image.NewGray(image.Rect(0, 0, img.Bounds().Dx(), img.Bounds().Dy()))
	draw.Draw(out, out.Rect, image.White, image.Point{}, draw.Src)
	draw.Draw(out, out.Rect, img, img.Bounds().Min, draw.Over)
	return out
}

var errNoText = fileops.Fail(fileops.ErrUnsupportedInput, nil, "no text was found in the picture")

// writeText writes a page in Tesseract's reading order.
func writeText(w io.Writer, p *Page) {
	b := bufio.NewWriter(w)
	for i, l := range p.Lines {
		if i > 0 && l.Paragraph != p.Lines[i-1].Paragraph {
			b.WriteByte('\n')
		}
		words := make([]string, len(l.Words))
		for k, word := range l.Words {
			words[k] = word.Text
		}
		b.WriteString(strings.Join(words, " "))
		b.WriteByte('\n')
	}
	b.Flush()
}
