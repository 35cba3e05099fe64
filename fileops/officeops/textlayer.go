package officeops

import (
	"bytes"
	"context"
	"errors"
	"html"
	"iter"
	"os"
	"regexp"
	"strings"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/officetext"
	"github.com/filewright/filewright/internal/textlayer"
)

// How the text of a document is compared with that of its PDF.
const (
	comparedFile    = 64 << 20 // bytes of a PDF, at most
	comparedPages   = 1000     // of a PDF that is read easily; longer ones are not compared
	enginePages     = 200      // the same for a PDF whose text only an engine can read
	comparedLetters = 40       // least number of letters
	comparedNumbers = 20       // least number of cells with numbers, if there are fewer letters
	comparedCells   = 5        // least number of cells with text
	lostText        = 0.90     // part of the letters, below which a warning says so
	lostLooseText   = 0.70     // the same for formats that are read roughly
	noText          = 0.02     // part of the letters, below which the result is useless
)

// compareText compares the letters of a document with those of the result at path: it
// warns if some are missing, and fails if nearly all are.
func (t *task) compareText(ctx context.Context, want officetext.Text, to format.Format, path string) error {
	letters := officetext.Letters(want.Text)
	all, _ := officetext.Common(letters, nil)
	if all < comparedLetters && want.Numbers < comparedNumbers {
		return nil
	}
	least := lostText
	if want.Loose {
		least = lostLooseText
	}
	// part returns the part of the text that got has. certain is false if there is too little to compare.
	part := func(got string) (part float64, certain bool) {
		kept, all := 0, all
		switch {
		case all < comparedLetters: // numbers, which formats change
			kept, all = min(1, len(officetext.Letters(got))), 1
		case to == format.PDF && t.in.Format().Family() == format.Sheet:
			if all, kept = officetext.KeptCells(want.Text, got); all < comparedCells {
				return 0, false
			}
		default:
			_, kept = officetext.Common(letters, officetext.Letters(got))
		}
		return float64(kept) / float64(all), true
	}
	var got string
	var ok bool
	var err error
	if to == format.PDF {
		got, ok, err = t.pdfText(ctx, path, func(quick string) bool {
			part, certain := part(quick)
			return !certain || part >= least
		})
	} else {
		got, ok, err = fileText(ctx, to, path)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil || !ok {
		return err
	}
	switch part, certain := part(got); {
	case !certain:
	case part < noText:
		return textMissing()
	case part < least:
		t.job.Warn(fileops.WarnContentDropped, "About %.0f %% of the text of the document is not in the text of the result.", 100*(1-part))
	}
	return nil
}

func textMissing() error {
	return fileops.Fail(fileops.ErrEngine, nil, "the document could not be converted: its text is missing in the result")
}

// fileText returns the text of the file at path, unless it cannot be read or is too large to be compared.
func fileText(ctx context.Context, f format.Format, path string) (text string, ok bool, err error) {
	file, err := os.Open(path)
	if err != nil {
		return "", false, err
	}
	defer file.Close()
	st, err := file.Stat()
	if err != nil || st.Size() > comparedFile {
		return "", false, err
	}
	text, ok = officetext.Whole(ctx, file, st.Size(), f)
	return text, ok, nil
}

// pdfText is fileText for the PDF at path. It reports false, too, if what is easily read of the text, which
// is not more than what an engine finds, is enough.
func (t *task) pdfText(ctx context.Context, path string, enough func(text string) bool) (text string, ok bool, err error) {
	st, err := os.Stat(path)
	if err != nil || st.Size() > comparedFile || t.opts.Reader == nil {
		return "", false, err
	}
	pdf, err := os.ReadFile(path)
	if err != nil {
		return "", false, err
	}
	quick, err := textlayer.Text(ctx, pdf, comparedPages)
	if errors.Is(err, textlayer.ErrLong) || err == nil && enough(quick) {
		return "", false, nil
	}
	most := enginePages
	if err == nil {
		most = comparedPages + 1
	}
	text, err = t.opts.Reader.Text(ctx, pdf, most)
	return text, err == nil && strings.Count(text, "\f") < most, nil
}

// certainText returns the text of the input that the result must have.
func (t *task) certainText(ctx context.Context, p parts, hasText bool, to format.Format) officetext.Text {
	in := t.in
	switch in.Format() {
	case format.DOCX, format.PPTX, format.ODT, format.ODP:
		if !hasText {
			return officetext.Text{}
		}
		return officetext.Text{Text: p.text()}
	}
	separated := to == format.CSV || to == format.TSV
	if separated && t.extra.sheet != "" {
		return officetext.Text{} // another sheet
	}
	return officetext.Certain(ctx, in.Reader(), in.Size(), in.Format(), separated)
}

var (
	openPara     = regexp.MustCompile(`(?s)<text:[ph][ >].*?</text:[ph]>`)
	openUnseen   = regexp.MustCompile(`(?s)<office:annotation[ >].*?</office:annotation>|<text:tracked-changes[ >].*?</text:tracked-changes>|<presentation:notes[ >].*?</presentation:notes>|<office:forms[ >].*?</office:forms>`)
	wordFallback = regexp.MustCompile(`(?s)<mc:Fallback>.*?</mc:Fallback>`)
	xmlTag       = regexp.MustCompile(`<[^>]*>`)
)

// text returns the text of a document that has text for certain, see [parts.hasText]:
// of the body, without headers, notes and comments.
func (p parts) text() string {
	var b bytes.Buffer
	runs := func(name string, xml []byte) {
		if bytes.Contains(xml, []byte("<mc:Fallback>")) {
			xml = wordFallback.ReplaceAll(xml, nil)
		}
		for e := range elements(xml, name) {
			b.Write(e[bytes.IndexByte(e, '>')+1:])
			b.WriteByte('\n')
		}
	}
	switch {
	case p["word/document.xml"] != nil:
		runs("w:t", p.read("word/document.xml"))
	case p["ppt/presentation.xml"] != nil:
		for _, s := range p.slides() {
			runs("a:t", s)
		}
	default:
		for _, m := range openPara.FindAll(openUnseen.ReplaceAll(p.read("content.xml"), nil), -1) {
			b.Write(xmlTag.ReplaceAll(m, nil))
			b.WriteByte('\n')
		}
	}
	return html.UnescapeString(b.String())
}

// elements yields the elements of a name with content, without their end tags. They must not contain each
// other.
func elements(xml []byte, name string) iter.Seq[[]byte] {
	start, end := []byte("<"+name), []byte("</"+name+">")
	return func(yield func([]byte) bool) {
		for {
			i := bytes.Index(xml, start)
			if i < 0 {
				return
			}
			xml = xml[i:]
			tag, _, closed := bytes.Cut(xml, []byte(">"))
			if !closed {
				return
			}
			if c := xml[len(start)]; c != ' ' && c != '>' || tag[len(tag)-1] == '/' {
				xml = xml[len(start):] // another name, or no content
				continue
			}
			content, rest, found := bytes.Cut(xml, end)
			if !found {
				return
			}
			if !yield(content) {
				return
			}
			xml = rest
		}
	}
}
