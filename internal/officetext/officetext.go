// Package officetext reads the text of office documents without an office program, to
// compare a document with the result of its conversion.
//
// It has two views of a document. [Certain] returns only text that surely shows, and
// [Whole] returns all text of a file, with headers, notes and hidden parts. If the
// whole text of a result lacks letters of the certain text of its input, then the
// conversion lost them. The order of the text and the spaces in it have no meaning.
//
// Nothing here validates a document: a damaged one has less text, or none.
package officetext

import (
	"bytes"
	"context"
	"encoding/binary"
	"html"
	"io"
	"iter"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/klauspost/compress/zip"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/unicode/norm"

	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/charset"
	"github.com/filewright/filewright/internal/compound"
)

// Limits on the bytes that are read.
const (
	maxPart   = 16 << 20 // of a part of an input; the rest of its text is not certain
	maxResult = 32 << 20 // of a result and its parts together
	maxStream = 64 << 20 // of a stream of a compound file
)

// Text is what [Certain] found.
type Text struct {
	Text string // of a workbook: its cells, separated by zero bytes

	// Loose reports that some of the text may not show: it was read by rules that
	// do not cover the whole format.
	Loose bool

	// Numbers counts cells with a number that show. Their text is not in Text,
	// because number formats change it.
	Numbers int
}

// Certain returns the text of a document that shows for certain. It is empty for a format
// without a reader, and for documents that cannot be read. With firstSheet, it is the
// text of the first sheet of a workbook.
func Certain(ctx context.Context, r io.ReaderAt, size int64, f format.Format, firstSheet bool) Text {
	switch f {
	case format.XLSX:
		return readXLSX(ctx, openZIP(r, size), firstSheet)
	case format.ODS:
		z := openZIP(r, size)
		content := z.read("content.xml")
		return readODS(ctx, content, firstSheet)
	case format.FODS:
		return readODS(ctx, whole(r, size, maxPart), firstSheet)
	case format.XLS:
		return readXLS(ctx, stream(r, size, "workbook"), firstSheet)
	case format.DOC:
		return Text{Text: readDOC(ctx, r, size, false)}
	case format.PPT:
		return Text{Text: readPPT(ctx, r, size, false)}
	case format.RTF:
		return Text{Text: readRTF(ctx, whole(r, size, maxResult), false)}
	case format.TXT:
		return Text{Text: plain(r, size)}
	case format.CSV, format.TSV:
		return Text{Text: words(plain(r, size))}
	case format.MD:
		return Text{Text: readMarkdown(plain(r, size)), Loose: true}
	case format.EPUB:
		z := openZIP(r, size)
		var b strings.Builder
		for _, e := range z.files {
			if isPage(e.Name) && !strings.Contains(path.Base(e.Name), "nav") && !strings.Contains(path.Base(e.Name), "toc") {
				page := z.read(e.Name)
				if unsurePage.Match(page) {
					continue
				}
				b.WriteString(body(page))
			}
		}
		return Text{Text: b.String(), Loose: true}
	case format.FB2:
		return Text{Text: body(unshownBook.ReplaceAll(charset.DecodeHTML(whole(r, size, maxPart)), nil)), Loose: true}
	case format.HTML:
		page := whole(r, size, maxPart)
		if unsurePage.Match(page) {
			return Text{}
		}
		return Text{Text: body(page), Loose: true}
	}
	return Text{}
}

// Whole returns all text of a result, and perhaps other letters that the file contains.
// ok is false if the format has no reader or the file is too large.
func Whole(ctx context.Context, r io.ReaderAt, size int64, f format.Format) (text string, ok bool) {
	if size > maxResult {
		return "", false
	}
	switch f {
	case format.XLSX, format.ODS:
		if text, ok = wholeZIP(ctx, r, size); ok {
			var more string
			more, ok = repeatedText(ctx, openZIP(r, size))
			text += more
		}
		return text, ok
	case format.DOCX, format.PPTX, format.ODT, format.ODP, format.EPUB:
		return wholeZIP(ctx, r, size)
	case format.FODT, format.FODP, format.FODS, format.HTML, format.FB2:
		return stripped(whole(r, size, maxResult)), true
	case format.TXT, format.MD, format.CSV, format.TSV, format.RST, format.Org, format.TeX:
		return string(whole(r, size, maxResult)), true
	case format.RTF:
		return readRTF(ctx, whole(r, size, maxResult), true), true
	case format.DOC:
		text = readDOC(ctx, r, size, true)
	case format.PPT:
		text = readPPT(ctx, r, size, true)
	case format.XLS:
		b := stream(r, size, "workbook")
		return wholeXLS(ctx, b), b != nil
	}
	return text, text != ""
}

// Letters counts the letters and digits of a text, without case and accents: programs
// write capitals, ligatures and combined characters in several ways.
func Letters(s string) map[rune]int {
	counts := make(map[rune]int)
	for r := range letters(s) {
		counts[r]++
	}
	return counts
}

// Kept returns the number of letters in want, and how many of them are also in got.
func Kept(want, got string) (all, kept int) { return Common(Letters(want), Letters(got)) }

// Common is [Kept] for counted letters.
func Common(want, got map[rune]int) (all, kept int) {
	for r, n := range want {
		all += n
		kept += min(n, got[r])
	}
	return all, kept
}

// Numbers of letters at the start of a cell that identify it.
const (
	startLetters   = 5
	startSyllables = 2 // of scripts with many letters
)

// KeptCells returns the number of cells in want, and of how many the first letters are
// in got. Pages cut off text that is too long for its cell, so that the letters of all
// cells cannot be compared. Cells with few letters, or with letters that run from right
// to left, do not count.
func KeptCells(want, got string) (all, kept int) {
	type start [startLetters]rune
	cells := make(map[start]int) // numbers of cells that begin alike
	for c := range strings.SplitSeq(want, string(rune(cellEnd))) {
		s := folded(c, startLetters)
		n := startLetters
		if len(s) >= startSyllables && isSyllable(s[0]) && isSyllable(s[1]) {
			n = startSyllables
		}
		if len(s) < n || slices.ContainsFunc(s, func(r rune) bool {
			return unicode.In(r, unicode.Arabic, unicode.Hebrew, unicode.Syriac, unicode.Thaana)
		}) {
			continue
		}
		all++
		var key start
		copy(key[:], s[:n])
		cells[key]++
	}
	found := func(key start) {
		kept += cells[key]
		delete(cells, key)
	}
	var last start // letters of the text
	add := func(r rune) {
		copy(last[:], last[1:])
		last[startLetters-1] = r
		found(last)
		if isSyllable(last[0]) {
			var key start
			copy(key[:], last[:startSyllables])
			found(key)
		}
	}
	for r := range letters(got) {
		add(r)
	}
	for range startLetters - startSyllables { // the end of the text
		add(0)
	}
	return all, kept
}

func isSyllable(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
}

// letters yields the letters and digits of a text without case and accents.
func letters(s string) iter.Seq[rune] {
	return func(yield func(rune) bool) {
		for _, r := range s {
			if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
				continue
			}
			if r < 128 {
				if !yield(unicode.ToLower(r)) {
					return
				}
				continue
			}
			for _, part := range norm.NFKD.String(string(r)) {
				if (unicode.IsLetter(part) || unicode.IsDigit(part)) && !yield(unicode.ToLower(part)) {
					return
				}
			}
		}
	}
}

// folded returns the first letters of a text, at most most.
func folded(s string, most int) (out []rune) {
	for r := range letters(s) {
		if out = append(out, r); len(out) == most {
			break
		}
	}
	return out
}

// whole returns up to most bytes of a file.
func whole(r io.ReaderAt, size, most int64) []byte {
	b, _ := io.ReadAll(io.NewSectionReader(r, 0, min(size, most))) // the start has certain text too
	return b
}

// An archive is a document in a ZIP archive.
type archive struct {
	files  []*zip.File
	byName map[string]*zip.File
	left   int64 // bytes that may still be read
}

// openZIP returns an archive without files if there is none.
func openZIP(r io.ReaderAt, size int64) *archive {
	a := &archive{byName: map[string]*zip.File{}, left: maxResult}
	z, err := zip.NewReader(r, size)
	if err != nil {
		return a
	}
	a.files = z.File
	for _, e := range z.File {
		a.byName[e.Name] = e
	}
	return a
}

// read returns the start of a part, or nil.
func (a *archive) read(name string) []byte {
	e := a.byName[name]
	if e == nil {
		return nil
	}
	b, _ := readEntry(e, min(a.left, maxPart)) // the start has certain text too
	a.left -= int64(len(b))
	return b
}

// readEntry returns up to most bytes of an entry.
func readEntry(e *zip.File, most int64) ([]byte, error) {
	r, err := e.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(io.LimitReader(r, most))
}

// wholeZIP returns the character data of all XML and HTML parts.
func wholeZIP(ctx context.Context, r io.ReaderAt, size int64) (string, bool) {
	z := openZIP(r, size)
	if z.files == nil {
		return "", false
	}
	var b strings.Builder
	left := int64(maxResult)
	for _, e := range z.files {
		if path.Ext(e.Name) != ".xml" && !isPage(e.Name) || strings.HasPrefix(e.Name, "META-INF/") {
			continue
		}
		part, err := readEntry(e, left)
		left -= int64(len(part))
		if err != nil || left <= 0 || ctx.Err() != nil {
			return "", false
		}
		b.WriteString(stripped(part))
	}
	return b.String(), true
}

func isPage(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".xhtml", ".html", ".htm":
		return true
	}
	return false
}

var (
	// Elements of HTML whose text does not show, and comments.
	unseen = []*regexp.Regexp{
		regexp.MustCompile(`(?s)<!--.*?-->`), regexp.MustCompile(`(?is)<script[ >].*?</script>`),
		regexp.MustCompile(`(?is)<style[ >].*?</style>`), regexp.MustCompile(`(?is)<head[ >].*?</head>`),
		regexp.MustCompile(`(?is)<template[ >].*?</template>`), regexp.MustCompile(`(?is)<noscript[ >].*?</noscript>`),
	}
	tag = regexp.MustCompile(`<[^>]*>`)
	// Signs that parts of a page are hidden, or are drawn otherwise than as their text.
	unsurePage = regexp.MustCompile(`(?i)hidden|display\s*:\s*none|<(?:textarea|select|object|iframe|canvas|svg|math|audio|video)[ >]`)
)

// unshownBook matches the parts of a FictionBook that are no text: its description and
// its pictures.
var unshownBook = regexp.MustCompile(`(?s)<description>.*?</description>|<binary[ >].*?</binary>`)

// stripped returns the character data of HTML or XML.
func stripped(b []byte) string {
	return html.UnescapeString(string(tag.ReplaceAll(b, []byte("\n"))))
}

// body returns the text of a page that shows.
func body(page []byte) string {
	for _, u := range unseen {
		page = u.ReplaceAll(page, nil)
	}
	return stripped(page)
}

// plain returns the start of a text in UTF-8. Nothing is certain in other encodings.
func plain(r io.ReaderAt, size int64) string {
	b := whole(r, size, maxPart)
	if int64(len(b)) < size { // may end inside a character
		b = b[:bytes.LastIndexByte(b, '\n')+1]
	}
	if !utf8.Valid(b) || bytes.IndexByte(b, 0) >= 0 {
		return ""
	}
	return string(b)
}

var (
	markdownLink = regexp.MustCompile(`\]\([^)\n]*\)|\]\[[^\]\n]*\]|<[^>\n]*>|(?m:^ {0,3}\[[^\]\n]+\]:.*$)|https?://\S+`)
	fence        = regexp.MustCompile("(?m)^\\s*(?:```|~~~).*$")
)

// readMarkdown returns the text of Markdown without addresses and tags. A file with
// metadata or formulas has no certain text.
func readMarkdown(s string) string {
	if strings.HasPrefix(s, "---") || strings.Contains(s, "$") || strings.Contains(s, "<!--") {
		return ""
	}
	return fence.ReplaceAllString(markdownLink.ReplaceAllString(s, "]"), "")
}

// words returns the values of a text of separated values that have letters and no
// digits: programs write numbers and dates in several ways.
func words(s string) string {
	var b strings.Builder
	for v := range strings.FieldsFuncSeq(s, func(r rune) bool { return strings.ContainsRune(",;|\t\n\r\"", r) }) {
		if strings.IndexFunc(v, unicode.IsDigit) < 0 && !strings.EqualFold(v, "true") && !strings.EqualFold(v, "false") {
			b.WriteString(v)
			b.WriteByte(cellEnd)
		}
	}
	return b.String()
}

// stream returns a stream of a compound file, or nil.
func stream(r io.ReaderAt, size int64, name string) []byte {
	c, err := compound.Open(r, size, 0)
	if err != nil {
		return nil
	}
	s, ok, err := c.Stream(name)
	if err != nil || !ok {
		return nil
	}
	b, err := io.ReadAll(io.LimitReader(s, maxStream))
	if err != nil {
		return nil
	}
	return b
}

// utf16Text decodes little-endian UTF-16.
func utf16Text(b []byte) string {
	units := make([]uint16, len(b)/2)
	for i := range units {
		units[i] = binary.LittleEndian.Uint16(b[2*i:])
	}
	return string(utf16.Decode(units))
}

// latinText decodes Windows-1252.
func latinText(b []byte) string {
	if bytes.IndexFunc(b, func(r rune) bool { return r >= 0x80 }) < 0 {
		return string(b)
	}
	s, err := charmap.Windows1252.NewDecoder().Bytes(b)
	if err != nil {
		return ""
	}
	return string(s)
}

// byteText decodes the low bytes of UTF-16 characters ([MS-PPT] 2.9.43, [MS-XLS] 2.5.294).
func byteText(b []byte) string {
	r := make([]rune, len(b))
	for i, c := range b {
		r[i] = rune(c)
	}
	return string(r)
}
