package officeops

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"

	"github.com/klauspost/compress/zip"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/engine"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/charset"
	"github.com/filewright/filewright/internal/route"
)

// pandocIn and pandocOut are pandoc's names of formats. Markdown is GitHub's dialect, the
// most common one, in which a list needs no empty line before it.
var (
	pandocIn = map[format.Format]string{
		format.DOCX: "docx",
		format.ODT:  "odt",
		format.MD:   "gfm+footnotes+tex_math_dollars+yaml_metadata_block",
		format.HTML: "html-native_divs-native_spans",
		format.EPUB: "epub-native_divs-native_spans",
		format.RST:  "rst",
		format.Org:  "org",
		format.TeX:  "latex",
		format.FB2:  "fb2",
	}
	pandocOut = map[format.Format]string{
		format.MD:   "gfm",
		format.TXT:  "plain",
		format.HTML: "html5",
		format.EPUB: "epub3",
		format.RST:  "rst",
		format.Org:  "org",
		format.TeX:  "latex",
		format.FB2:  "fb2",
	}
)

const (
	// bookStyle is the style sheet of the EPUB books that pandoc writes.
	bookStyle = "body { margin: 5%; }\npre { white-space: pre-wrap; }\nimg { max-width: 100%; }\n" +
		"table { border-collapse: collapse; }\ntd, th { border: 1px solid #999; padding: 0.2em 0.4em; }\n"

	// plainPage is an HTML template without styles for LibreOffice, which applies styles
	// for screens to the printed page.
	plainPage = "<!DOCTYPE html>\n<html$if(lang)$ lang=\"$lang$\"$endif$><head><meta charset=\"utf-8\"><title>$pagetitle$</title>" +
		"</head><body>\n$if(heading)$$if(title)$<h1>$title$</h1>\n$endif$$endif$$body$\n</body></html>\n"
)

// textPages are the templates of formats that are text and cannot contain pictures. In
// the sandbox, some builds of pandoc cannot read their own templates.
var textPages = map[format.Format]string{
	format.RST: "$if(titleblock)$\n$titleblock$\n\n$endif$\n$body$\n",
	format.Org: "$if(title)$\n#+title: $title$\n\n$endif$\n$body$\n",
	format.TeX: `% Compile it with xelatex or lualatex.
\documentclass{article}
\usepackage{fontspec}
\usepackage{amsmath,amssymb}
\usepackage{graphicx}
\usepackage{longtable,booktabs,array,multirow,calc}
\usepackage[normalem]{ulem}
\usepackage{fancyvrb}
\usepackage{hyperref}
\providecommand{\tightlist}{\setlength{\itemsep}{0pt}\setlength{\parskip}{0pt}}
\providecommand{\pandocbounded}[1]{#1}
\newcommand{\passthrough}[1]{#1}
\ifdefined\directlua
\newcommand{\RL}[1]{\bgroup\textdir TRT#1\egroup}
\newcommand{\LR}[1]{\bgroup\textdir TLT#1\egroup}
\newenvironment{RTL}{\textdir TRT\pardir TRT\bodydir TRT}{}
\newenvironment{LTR}{\textdir TLT\pardir TLT\bodydir TLT}{}
\else
\TeXXeTstate=1
\newcommand{\RL}[1]{\beginR #1\endR}
\newcommand{\LR}[1]{\beginL #1\endL}
\newenvironment{RTL}{\beginR}{\endR}
\newenvironment{LTR}{\beginL}{\endL}
\fi
$if(title)$
\title{$title$}
\author{$for(author)$$author$$sep$ \and $endfor$}
\date{$date$}
$endif$
\begin{document}
$if(title)$
\maketitle
$endif$

$body$

\end{document}
`,
}

// byPandoc runs pandoc, which reads only UTF-8. The result is one file.
func (t *task) byPandoc(ctx context.Context, s route.Step, in, out string) error {
	work, err := os.MkdirTemp(t.dir, "pandoc-")
	if err != nil {
		return err
	}
	title := format.Base(t.job.Input().Name())
	var from string
	if in, from, err = t.pandocInput(ctx, s, work, in, title); err != nil {
		return err
	}
	media := filepath.Base(work) + "-media"
	args, files, err := t.pandocArgs(s, from, out, title, media)
	if err != nil {
		return err
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(work, name), data, 0o600); err != nil {
			return err
		}
	}
	if textPages[s.To] != "" {
		if in, err = t.withoutPictures(ctx, work, from, in); err != nil {
			return err
		}
		args[1] = "--from=json"
	}
	if err := t.runPandoc(ctx, work, append(args, in)); err != nil {
		return err
	}
	f, err := engine.Open(filepath.Dir(out), filepath.Base(out))
	if err != nil {
		return fileops.Fail(fileops.ErrEngine, err, "the document could not be converted")
	}
	defer f.Close()
	switch {
	case s.To == format.MD:
		return embedMedia(f, out, work, media)
	case s.To == format.HTML && (s.From == format.EPUB || s.From == format.FB2):
		return t.embedPictures(ctx, f, out, work, media)
	}
	return nil
}

// pandocInput writes text into the directory work as UTF-8, and HTML that becomes a book as EPUB. It
// returns the path of pandoc's input, and the format that pandoc reads.
func (t *task) pandocInput(ctx context.Context, s route.Step, work, in, title string) (path, from string, err error) {
	from = pandocIn[s.From]
	switch s.From {
	case format.EPUB:
		if in, err = forPandoc(in, work); err != nil {
			return "", "", err
		}
	case format.MD, format.HTML, format.RST, format.Org, format.TeX, format.FB2:
		decode := charset.NewText
		if s.From == format.HTML || s.From == format.FB2 {
			decode = charset.NewHTML
		}
		f, text, err := openText(in, decode)
		if err != nil {
			return "", "", err
		}
		defer f.Close()
		page := text.Reader()
		in = "in." + string(s.From)
		write := func(w io.Writer) error {
			_, err := io.Copy(w, fileops.ContextReader(ctx, page))
			return err
		}
		if (s.To == format.EPUB || s.To == format.FB2) && s.From == format.HTML {
			// In its sandbox pandoc reads pictures only from a container.
			in, from = "in.epub", pandocIn[format.EPUB]
			var clean bytes.Buffer
			var lost pageLosses
			if err := (cleaner{lost: &lost, book: true}).clean(ctx, &limitedWriter{&clean, maxBook}, page); err != nil {
				return "", "", err
			}
			lost.warn(t.job)
			write = func(w io.Writer) error { return bookOf(w, clean.Bytes(), title) }
		}
		if err := create(filepath.Join(work, in), write); err != nil {
			return "", "", err
		}
	}
	return in, from, nil
}

// pandocArgs returns the arguments for a step, without the input, and the files that they name.
func (t *task) pandocArgs(s route.Step, from, out, title, media string) (args []string, files map[string][]byte, err error) {
	args = []string{"--sandbox", "--from=" + from, "--to=" + pandocOut[s.To], "--wrap=none", "--output=" + out}
	defaults := map[string]string{}
	files = make(map[string][]byte)
	switch s.To {
	case format.HTML:
		args = append(args, "--standalone", "--no-highlight")
		if s.From == format.EPUB || s.From == format.FB2 {
			args = append(args, "--extract-media="+media) // pictures come from the book
			defaults["title"] = title
		} else {
			defaults["pagetitle"] = title
		}
		if t.last {
			args = append(args, "--mathml")
		} else {
			files["page.html"] = []byte(plainPage)
			args = append(args, "--template=page.html")
			if s.From != format.EPUB && s.From != format.HTML {
				args = append(args, "--variable=heading")
			}
		}
	case format.EPUB:
		// In the sandbox, some builds cannot read their own data, only files named on
		// the command line. The style is named twice, because --css does not count.
		files["style.css"] = []byte(bookStyle)
		args = append(args, "--standalone", "--css=style.css", "--reference-doc=style.css")
		defaults["title"] = title
	case format.MD:
		args = append(args, "--extract-media="+media)
	case format.FB2:
		args = append(args, "--standalone")
		defaults["title"] = title
	case format.RST, format.Org, format.TeX:
		files["page.txt"] = []byte(textPages[s.To])
		args = append(args, "--standalone", "--template=page.txt", "--no-highlight")
	}
	if len(defaults) > 0 { // the document's own title takes precedence
		for k, v := range defaults {
			defaults[k] = escapeMarkdown(v)
		}
		if files["defaults.json"], err = json.Marshal(defaults); err != nil {
			return nil, nil, err
		}
		args = append(args, "--metadata-file=defaults.json")
	}
	return args, files, nil
}

// withoutPictures has pandoc parse a document, and replaces each picture with its
// description, because files of the target format can only refer to pictures. It returns
// the name of the file in work that holds the resulting JSON tree.
func (t *task) withoutPictures(ctx context.Context, work, from, in string) (string, error) {
	const read, plain = "read.json", "plain.json"
	if err := t.runPandoc(ctx, work, []string{"--sandbox", "--from=" + from, "--to=json", "--output=" + read, in}); err != nil {
		return "", err
	}
	b, err := readMade(work, read, maxBook)
	if err != nil {
		return "", err
	}
	b, n := dropPictures(b)
	if n > 0 {
		t.job.Warn(fileops.WarnContentDropped, "%s left out.", counted(n, "picture"))
	}
	return plain, os.WriteFile(filepath.Join(work, plain), b, 0o600)
}

// dropPictures replaces pictures in the JSON of pandoc with their descriptions, and
// returns how many there were.
func dropPictures(b []byte) (out []byte, n int) {
	const head = `{"t":"Image","c":[`
	var w bytes.Buffer
	for {
		i := bytes.Index(b, []byte(head))
		if i < 0 {
			w.Write(b)
			return w.Bytes(), n
		}
		w.Write(b[:i])
		b = b[i+len(head):]
		attributes := valueEnd(b) // then the description and the target
		if attributes < 0 {
			w.WriteString(head)
			continue
		}
		b = b[attributes:]
		description := valueEnd(b[1:]) + 1
		target := valueEnd(b[description+1:])
		if description < 1 || target < 0 || !bytes.HasPrefix(b[description+1+target:], []byte("]}")) {
			w.WriteString(head + `["",[],[]]`)
			continue
		}
		n++
		inner, more := dropPictures(b[1:description])
		n += more
		w.WriteString(`{"t":"Span","c":[["",[],[]],`)
		w.Write(inner)
		w.WriteString("]}")
		b = b[description+1+target+2:]
	}
}

// valueEnd returns the end of the array at the start of b, or -1.
func valueEnd(b []byte) int {
	depth, quoted := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[', c == '{':
			depth++
		case c == ']', c == '}':
			if depth--; depth == 0 {
				return i + 1
			}
		}
		if depth == 0 {
			break
		}
	}
	return -1
}

func (t *task) runPandoc(ctx context.Context, dir string, args []string) error {
	select {
	case t.turns <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-t.turns }()
	limit := t.opts.Timeout
	inputs, err := t.job.InputDir()
	if err != nil {
		return err
	}
	err = t.pandoc.RunWithin(ctx, engine.Cmd{
		Args:   append([]string{"+RTS", "-M2g", "-RTS"}, args...),
		Dir:    dir,
		Limits: engine.Limits{CPU: limit, FileSize: maxOutput}.Or(t.opts.Run),
		Access: engine.Access{Read: []string{inputs}, Write: []string{filepath.Dir(dir)}},
	}, limit, tooLong(limit))
	var exit *engine.ExitError
	if !errors.As(err, &exit) {
		return err
	}
	if exit.Exceeded != "" {
		return fileops.Fail(fileops.ErrLimit, err, "the document needs more %s than is allowed", exit.Which())
	}
	switch exit.Code { // pandoc manual, "Exit codes"
	case 44, 63, 64, 65, 92: // XML, a part, a text, its syntax, an encoding
		return fileops.Fail(fileops.ErrCorruptInput, err, "the document is damaged or cannot be read")
	case 1: // an exception that pandoc does not expect
		if strings.Contains(exit.Stderr, "Invalid UTF-8") { // the names in an archive
			return fileops.Fail(fileops.ErrCorruptInput, err, "the document is damaged or cannot be read")
		}
	case 251: // exceeded the memory limit of -M
		return fileops.Fail(fileops.ErrLimit, err, "the document needs more memory than is allowed")
	}
	return fileops.Fail(fileops.ErrEngine, err, "the document could not be converted")
}

// escapeMarkdown escapes a name for metadata, which pandoc parses as Markdown.
func escapeMarkdown(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case unicode.IsControl(r):
			continue
		case r < 0x80 && !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != ' ':
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

var (
	pageTitle   = regexp.MustCompile(`(?is)<title[^>]*>\s*(.*?)\s*</title>`)
	pagePicture = regexp.MustCompile(`src="data:image/(png|jpeg|jpg|gif|bmp|webp|tiff);base64,([A-Za-z0-9+/=]*)"`)
)

// maxBook limits the bytes of a page that becomes a book, and of a Markdown file with
// its pictures: both are held in memory.
const maxBook = 32 << 20

func tooMuchForBook() error {
	return fileops.Fail(fileops.ErrLimit, nil, "the text and its pictures have more than %d MiB, the limit of this operation", maxBook>>20)
}

// A limitedWriter accepts at most left bytes.
type limitedWriter struct {
	w    io.Writer
	left int
}

// Write implements io.Writer.
func (l *limitedWriter) Write(p []byte) (int, error) {
	if l.left -= len(p); l.left < 0 {
		return 0, tooMuchForBook()
	}
	return l.w.Write(p)
}

// bookOf writes an EPUB with one clean page, as a container for pandoc.
func bookOf(out io.Writer, page []byte, title string) error {
	if m := pageTitle.FindSubmatch(page); len(m) > 1 && len(m[1]) > 0 {
		title = html.UnescapeString(string(m[1]))
	}
	z := zip.NewWriter(out)
	var failed error
	add := func(name string, method uint16, data []byte) {
		w, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: method})
		if err == nil {
			_, err = w.Write(data)
		}
		failed = errors.Join(failed, err)
	}
	add("mimetype", zip.Store, []byte(format.EPUB.MIME()))
	add("META-INF/container.xml", zip.Deflate, []byte(`<?xml version="1.0"?><container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles><rootfile full-path="book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>`))
	var items strings.Builder
	n := 0
	page = pagePicture.ReplaceAllFunc(page, func(src []byte) []byte {
		m := pagePicture.FindSubmatch(src)
		data, err := base64.StdEncoding.DecodeString(string(m[2]))
		if err != nil {
			return []byte(`src=""`)
		}
		n++
		f := format.Parse(string(m[1]))
		name := fmt.Sprintf("picture%d.%s", n, f)
		add(name, zip.Store, data)
		fmt.Fprintf(&items, `<item id="p%d" href="%s" media-type="%s"/>`, n, name, f.MIME())
		return []byte(`src="` + name + `"`)
	})
	add("page.xhtml", zip.Deflate, page)
	add("book.opf", zip.Deflate, fmt.Appendf(nil, `<?xml version="1.0" encoding="UTF-8"?><package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="id"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:identifier id="id">book</dc:identifier><dc:title>%s</dc:title><dc:language>und</dc:language></metadata><manifest><item id="page" href="page.xhtml" media-type="application/xhtml+xml"/>%s</manifest><spine><itemref idref="page"/></spine></package>`,
		html.EscapeString(title), items.String()))
	return errors.Join(failed, z.Close())
}

// embedMedia replaces the pictures in the Markdown file made by data URLs and writes the
// result to path. pandoc has written the pictures to work/media. embedMedia drops
// pictures in formats that Markdown viewers do not show. A compromised engine may have
// written these files: see [engine.Open].
func embedMedia(made *os.File, path, work, media string) error {
	root, err := os.OpenRoot(work)
	if err != nil {
		return err
	}
	defer root.Close()
	type picture struct{ name, url string }
	var pictures []picture
	left := int64(maxBook)
	err = fs.WalkDir(root.FS(), media, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		}
		p := picture{name: name}
		switch f := format.Parse(name); f {
		case format.PNG, format.JPG, format.GIF, format.SVG, format.WebP:
			b, err := readMade(work, name, left)
			if err != nil {
				return err
			}
			left -= int64(len(b))
			p.url = "data:" + f.MIME() + ";base64," + base64.StdEncoding.EncodeToString(b)
		}
		pictures = append(pictures, p)
		return nil
	})
	if errors.Is(err, fileops.ErrLimit) {
		return err
	}
	if err != nil {
		return fileops.Fail(fileops.ErrEngine, err, "the document could not be converted")
	}
	if len(pictures) == 0 {
		return nil
	}
	b, err := readLimited(made, left)
	if err != nil {
		return err
	}
	var pairs []string
	for _, p := range pictures {
		if p.url != "" {
			pairs = append(pairs, p.name, p.url)
			continue
		}
		quoted := regexp.QuoteMeta(p.name)
		b = regexp.MustCompile(`!\[([^\]]*)\]\(`+quoted+`[^)]*\)`).ReplaceAll(b, []byte("$1"))
		b = regexp.MustCompile(`<img src="`+quoted+`"[^>]*>`).ReplaceAll(b, nil)
	}
	if err := os.Remove(path); err != nil { // do not write to a link's target
		return err
	}
	return create(path, func(w io.Writer) error {
		_, err := strings.NewReplacer(pairs...).WriteString(&limitedWriter{w, maxOutput}, string(b))
		return err
	})
}

func readMade(dir, name string, most int64) ([]byte, error) {
	f, err := engine.Open(dir, name)
	if err != nil {
		return nil, fileops.Fail(fileops.ErrEngine, err, "the document could not be converted")
	}
	defer f.Close()
	return readLimited(f, most)
}

// readLimited returns the content of r. It fails if there are more than most bytes.
func readLimited(r io.Reader, most int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(b)) > most {
		err = tooMuchForBook()
	}
	return b, err
}
