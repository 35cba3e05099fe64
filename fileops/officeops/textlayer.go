package officeops

import (
	"bytes"
	"context"
	"html"
	"os"
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/filewright/filewright/fileops"
)

// How the text of a document is compared with that of its PDF.
const (
	comparedFile    = 64 << 20 // bytes of a PDF, at most
	comparedPages   = 200      // with more pages, the end of the document is not compared
	comparedLetters = 40       // least number of letters
	lostText        = 0.90     // part of the letters, below which a warning says so
	noText          = 0.02     // part of the letters, below which the result is useless
)

// compareText compares the letters of a document with those of its PDF at path: it
// warns if some are missing, and fails if nearly all are.
func (t *task) compareText(ctx context.Context, want, path string) error {
	letters := countLetters(want)
	all := 0
	for _, n := range letters {
		all += n
	}
	st, err := os.Stat(path)
	if err != nil {
		return err
	}
	if all < comparedLetters || st.Size() > comparedFile {
		return nil
	}
	pdf, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	got, err := t.opts.Reader.Text(ctx, pdf, comparedPages)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil || strings.Count(got, "\f") >= comparedPages {
		return nil //nolint:nilerr // a PDF that cannot be read is not compared
	}
	kept := 0
	found := countLetters(got)
	for r, n := range letters {
		kept += min(n, found[r])
	}
	switch part := float64(kept) / float64(all); {
	case part < noText:
		return fileops.Fail(fileops.ErrEngine, nil, "the document could not be converted: its text is missing in the result")
	case part < lostText:
		t.job.Warn(fileops.WarnContentDropped, "About %.0f %% of the text of the document is not in the text of the result.", 100*(1-part))
	}
	return nil
}

// countLetters counts the letters and digits of a text, without case and accents:
// programs write capitals, ligatures and combined characters in several ways.
func countLetters(s string) map[rune]int {
	counts := make(map[rune]int)
	for _, r := range norm.NFKD.String(s) {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			counts[unicode.ToLower(r)]++
		}
	}
	return counts
}

var (
	wordRun      = regexp.MustCompile(`<w:t(?: [^>]*)?>([^<]*)`)
	slideRun     = regexp.MustCompile(`<a:t>([^<]*)`)
	openPara     = regexp.MustCompile(`(?s)<text:[ph][ >].*?</text:[ph]>`)
	openUnseen   = regexp.MustCompile(`(?s)<office:annotation[ >].*?</office:annotation>|<text:tracked-changes[ >].*?</text:tracked-changes>|<presentation:notes[ >].*?</presentation:notes>|<office:forms[ >].*?</office:forms>`)
	wordFallback = regexp.MustCompile(`(?s)<mc:Fallback>.*?</mc:Fallback>`)
	xmlTag       = regexp.MustCompile(`<[^>]*>`)
)

// text returns the text of a document that has text for certain, see [parts.hasText]:
// of the body, without headers, notes and comments.
func (p parts) text() string {
	var b bytes.Buffer
	runs := func(run *regexp.Regexp, xml []byte) {
		for _, m := range run.FindAllSubmatch(wordFallback.ReplaceAll(xml, nil), -1) {
			b.Write(m[1])
			b.WriteByte('\n')
		}
	}
	switch {
	case p["word/document.xml"] != nil:
		runs(wordRun, p.read("word/document.xml"))
	case p["ppt/presentation.xml"] != nil:
		for _, s := range p.slides() {
			runs(slideRun, s)
		}
	default:
		for _, m := range openPara.FindAll(openUnseen.ReplaceAll(p.read("content.xml"), nil), -1) {
			b.Write(xmlTag.ReplaceAll(m, nil))
			b.WriteByte('\n')
		}
	}
	return html.UnescapeString(b.String())
}
