package officeops

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/zip"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/engine"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/compound"
	"github.com/filewright/filewright/internal/officetext"
)

// maxScan is the number of bytes of a part that are searched for losses.
const maxScan = 16 << 20

// warn warns about parts of the input, s, that the result, at path, lacks. It fails if the
// result has no text at all although the input has.
func (t *task) warn(ctx context.Context, to format.Format, path string, s source) error {
	in := t.in
	if t.password != "" {
		return nil // the parts of an encrypted document are not readable here
	}
	if holdsMacros(to) && hasMacros(in.Reader(), in.Size()) && !fileHasMacros(path) {
		t.job.Warn(fileops.WarnMacrosDropped, "The macros of the document were left out.")
	}
	if in.Format() == format.FB2 { // pandoc does not read them
		b, err := io.ReadAll(io.LimitReader(in.Reader(), maxScan))
		if err != nil {
			return err
		}
		if n := bytes.Count(b, []byte("<table")); n > 0 {
			t.job.Warn(fileops.WarnContentDropped, "%s left out.", counted(n, "table"))
		}
	}
	if to == format.PDF {
		t.warnFonts(s.fonts)
		if t.extra.partial() {
			return nil
		}
		if s.hasText {
			if err := checkText(path); err != nil {
				return err
			}
		}
	}
	if s.comments > 0 {
		t.job.Warn(fileops.WarnContentDropped, "%s left out.", counted(s.comments, "comment"))
	}
	return t.compareText(ctx, s.text, to, path)
}

// A source is what the result must have, or cannot have, of the input.
type source struct {
	fonts    map[string]bool
	hasText  bool
	comments int // that the result leaves out
	text     officetext.Text
}

// readSource reads the input for warn.
func (t *task) readSource(ctx context.Context, to format.Format) (s source) {
	if t.password != "" {
		return s
	}
	p := readParts(t.in)
	switch to {
	case format.PDF:
		s.fonts = p.fonts()
		if t.extra.partial() {
			return s
		}
	case format.TXT, format.MD, format.EPUB, format.RST, format.Org, format.TeX, format.FB2:
		s.comments = p.comments()
	}
	s.hasText = p.hasText()
	s.text = t.certainText(ctx, p, s.hasText, to)
	return s
}

// holdsMacros reports whether users expect the code of a document in a format: not in
// pages or plain text.
func holdsMacros(to format.Format) bool {
	switch to {
	case format.DOCX, format.DOC, format.ODT, format.PPTX, format.PPT, format.ODP, format.XLSX, format.XLS, format.ODS:
		return true
	}
	return false
}

// fileHasMacros is hasMacros for the file at path. It returns true if it cannot tell.
func fileHasMacros(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return true
	}
	defer f.Close()
	st, err := f.Stat()
	return err != nil || hasMacros(f, st.Size())
}

// hasMacros reports whether a document contains code.
func hasMacros(r io.ReaderAt, size int64) bool {
	for _, name := range compound.Names(r, size) {
		if name == "macros" || name == "_vba_project_cur" { // [MS-OVBA] 2.2.1
			return true
		}
	}
	z, err := zip.NewReader(r, size)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(z.File, func(f *zip.File) bool {
		if path.Base(f.Name) == "vbaProject.bin" {
			return true
		}
		// OpenDocument keeps each module in a file, beside indexes.
		return strings.HasPrefix(f.Name, "Basic/") && path.Ext(f.Name) == ".xml" && !strings.HasPrefix(path.Base(f.Name), "script-l") && !strings.HasPrefix(path.Base(f.Name), "dialog-l")
	})
}

// parts are the XML parts of a document in a ZIP archive, by name.
type parts map[string]*zip.File

// readParts returns nil if the document is not in a ZIP archive.
func readParts(f *fileops.File) parts {
	switch f.Format() {
	case format.DOCX, format.PPTX, format.XLSX, format.ODT, format.ODP, format.ODS:
	default:
		return nil
	}
	z, err := zip.NewReader(f.Reader(), f.Size())
	if err != nil {
		return nil
	}
	p := parts{}
	for _, e := range z.File {
		p[e.Name] = e
	}
	return p
}

// read returns the start of a part, or nil.
func (p parts) read(name string) []byte {
	e := p[name]
	if e == nil {
		return nil
	}
	r, err := e.Open()
	if err != nil {
		return nil
	}
	defer r.Close()
	b, _ := io.ReadAll(io.LimitReader(r, maxScan)) // the start is enough
	return b
}

// slides returns the slides of a presentation in Office Open XML.
func (p parts) slides() (all [][]byte) {
	for name := range p {
		if ok, _ := path.Match("ppt/slides/slide*.xml", name); ok {
			all = append(all, p.read(name))
		}
	}
	return all
}

var (
	wordText    = regexp.MustCompile(`<w:t(?: [^>]*)?>[^<]*[^<\s]`)
	slideText   = regexp.MustCompile(`<a:t>[^<]*[^<\s]`)
	openDocText = regexp.MustCompile(`<text:(?:p|h|span)(?: [^>]*)?>[^<]*[^<\s]`)
	annotation  = regexp.MustCompile(`<office:annotation[ >]`)
)

// hasText reports whether the document certainly has text that shows. Sheets may have
// all their text where nothing prints.
func (p parts) hasText() bool {
	if b := p.read("word/document.xml"); b != nil {
		return wordText.Match(b) && !bytes.Contains(b, []byte("<w:vanish"))
	}
	for _, b := range p.slides() {
		if bytes.Contains(b, []byte(`show="0"`)) || bytes.Contains(b, []byte(`hidden="1"`)) {
			return false
		}
		if slideText.Match(b) {
			return true
		}
	}
	if p["content.xml"] == nil || bytes.Contains(p.read("mimetype"), []byte("spreadsheet")) {
		return false
	}
	b := p.read("content.xml")
	hidden := bytes.Contains(b, []byte("hidden")) || bytes.Contains(b, []byte(`display="none"`)) || bytes.Contains(b, []byte(`"none"`))
	return openDocText.Match(b) && !hidden
}

// comments counts the comments of a text document.
func (p parts) comments() int {
	return bytes.Count(p.read("word/comments.xml"), []byte("<w:comment ")) + len(annotation.FindAllIndex(p.read("content.xml"), -1))
}

// checkText fails if a PDF by LibreOffice uses no font. Newer versions may compress the
// objects of a PDF, and then it does not know.
func checkText(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	const overlap = 32
	buf := make([]byte, 1<<20)
	kept := 0
	for {
		n, err := io.ReadFull(f, buf[kept:])
		b := buf[:kept+n]
		for _, sign := range []string{"/BaseFont", "/ObjStm", "/Type3"} {
			if bytes.Contains(b, []byte(sign)) {
				return nil
			}
		}
		if err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				return fileops.Fail(fileops.ErrEngine, errors.New("the PDF has no font"), "the document could not be converted: its text is missing in the result")
			}
			return err
		}
		kept = copy(buf, b[max(0, len(b)-overlap):])
	}
}

// A typeStyle is a style of a document as far as fonts are concerned.
type typeStyle struct{ font, parent string }

// effective returns the font of a style: its own, that of its parents, or basic.
func effective(styles map[string]typeStyle, name, basic string) string {
	for range 20 { // styles may be circular
		s, ok := styles[name]
		if !ok {
			break
		}
		if s.font != "" {
			return s.font
		}
		name = s.parent
	}
	return basic
}

var (
	xmlAttr     = regexp.MustCompile(`([\w:-]+)="([^"]*)"`)
	wordFonts   = regexp.MustCompile(`<w:rFonts[^>]*>`)
	wordDefault = regexp.MustCompile(`(?s)<w:docDefaults>.*?</w:docDefaults>`)
	wordStyle   = regexp.MustCompile(`(?s)<w:style .*?</w:style>`)
	wordBased   = regexp.MustCompile(`<w:basedOn w:val="([^"]*)"`)
	wordUsed    = regexp.MustCompile(`<w:(?:p|r|tbl)Style w:val="([^"]*)"`)
	wordFont    = regexp.MustCompile(`(?s)<w:font w:name="([^"]*)">(.*?)</w:font>`)
	themeFonts  = regexp.MustCompile(`(?s)<a:(major|minor)Font>.*?<a:latin typeface="([^"]*)"`)
	slideFont   = regexp.MustCompile(`<a:latin typeface="([^"+][^"]*)"`)
	sheetFont   = regexp.MustCompile(`(?s)<font>.*?</font>`)
	sheetFamily = regexp.MustCompile(`<name val="([^"]*)"`)
	openFace    = regexp.MustCompile(`(?s)<style:font-face [^>]*?(?:/>|>.*?</style:font-face>)`)
	openStyle   = regexp.MustCompile(`(?s)<style:style .*?(?:</style:style>|/>)`)
	openDefault = regexp.MustCompile(`(?s)<style:default-style style:family="paragraph">.*?</style:default-style>`)
	openFont    = regexp.MustCompile(`<style:text-properties [^>]*?style:font-name="([^"]*)"`)
	openUsed    = regexp.MustCompile(`(?:text:style-name|style:parent-style-name|draw:text-style-name|presentation:style-name|table:style-name)="([^"]*)"`)
)

func tagAttributes(tag []byte) map[string]string {
	m := map[string]string{}
	for _, a := range xmlAttr.FindAllSubmatch(tag, -1) {
		m[string(a[1])] = string(a[2])
	}
	return m
}

// fonts returns the fonts of the western text in the document, without those that it
// contains.
func (p parts) fonts() map[string]bool {
	found := map[string]bool{}
	switch {
	case p["word/document.xml"] != nil:
		p.wordFonts(found)
	case p["ppt/presentation.xml"] != nil:
		themes := p.theme("ppt/theme/theme1.xml")
		for _, b := range p.slides() {
			if slideText.Match(b) {
				found[themes["minor"]], found[themes["major"]] = true, true
			}
			for _, m := range slideFont.FindAllSubmatch(b, -1) {
				found[string(m[1])] = true
			}
		}
	case p["xl/styles.xml"] != nil:
		for _, f := range sheetFont.FindAll(p.read("xl/styles.xml"), -1) {
			if m := sheetFamily.FindSubmatch(f); m != nil {
				found[string(m[1])] = true
			}
		}
	case p["content.xml"] != nil:
		p.openFonts(found)
	}
	return found
}

// theme returns the fonts of a theme: "major" for headings, "minor" for text.
func (p parts) theme(name string) map[string]string {
	fonts := map[string]string{}
	for _, m := range themeFonts.FindAllSubmatch(p.read(name), -1) {
		fonts[string(m[1])] = string(m[2])
	}
	return fonts
}

func (p parts) wordFonts(found map[string]bool) {
	body := p.read("word/document.xml")
	themes := p.theme("word/theme/theme1.xml")
	font := func(b []byte) string {
		a := tagAttributes(wordFonts.Find(b))
		if theme := a["w:asciiTheme"]; theme != "" {
			return themes[theme[:min(len("minor"), len(theme))]] // such as minorHAnsi
		}
		return a["w:ascii"]
	}
	for _, b := range wordFonts.FindAll(body, -1) {
		found[font(b)] = true
	}
	sheet := p.read("word/styles.xml")
	basic := font(wordDefault.Find(sheet))
	styles := map[string]typeStyle{}
	normal := ""
	for _, b := range wordStyle.FindAll(sheet, -1) {
		a := tagAttributes(b[:bytes.IndexByte(b, '>')])
		s := typeStyle{font: font(b)}
		if m := wordBased.FindSubmatch(b); m != nil {
			s.parent = string(m[1])
		}
		styles[a["w:styleId"]] = s
		if a["w:default"] == "1" && a["w:type"] == "paragraph" {
			normal = a["w:styleId"]
		}
	}
	for para := range elements(body, "w:p") {
		if !wordText.Match(para) {
			continue
		}
		used := wordUsed.FindAllSubmatch(para, -1)
		if !bytes.Contains(para, []byte("<w:pStyle ")) && !bytes.Contains(para, []byte("<w:rFonts ")) {
			found[effective(styles, normal, basic)] = true
		}
		for _, m := range used {
			found[effective(styles, string(m[1]), basic)] = true
		}
	}
	for _, m := range wordFont.FindAllSubmatch(p.read("word/fontTable.xml"), -1) {
		if bytes.Contains(m[2], []byte("<w:embed")) {
			delete(found, string(m[1]))
		}
	}
}

func (p parts) openFonts(found map[string]bool) {
	content, sheet := p.read("content.xml"), p.read("styles.xml")
	families, contained := map[string]string{}, map[string]bool{}
	for _, b := range append(openFace.FindAll(content, -1), openFace.FindAll(sheet, -1)...) {
		a := tagAttributes(b[:bytes.IndexByte(b, '>')])
		name := a["style:name"]
		families[name] = strings.Trim(strings.ReplaceAll(a["svg:font-family"], "&apos;", "'"), "'")
		contained[name] = contained[name] || bytes.Contains(b, []byte("font-face-uri"))
	}
	use := func(name string) {
		if !contained[name] {
			found[families[name]] = true
		}
	}
	for _, m := range openFont.FindAllSubmatch(content, -1) {
		use(string(m[1]))
	}
	basic := ""
	if m := openFont.FindSubmatch(openDefault.Find(sheet)); m != nil {
		basic = string(m[1])
	}
	styles := map[string]typeStyle{}
	for _, b := range openStyle.FindAll(sheet, -1) {
		a := tagAttributes(b[:bytes.IndexByte(b, '>')])
		s := typeStyle{parent: a["style:parent-style-name"]}
		if m := openFont.FindSubmatch(b); m != nil {
			s.font = string(m[1])
		}
		styles[a["style:name"]] = s
	}
	for _, m := range openUsed.FindAllSubmatch(content, -1) {
		if _, ok := styles[string(m[1])]; ok {
			use(effective(styles, string(m[1]), basic))
		}
	}
}

// equalFonts are fonts with the same metrics as others, and the usual replacements of
// symbols.
var equalFonts = map[string][]string{
	"arial": {"liberation sans", "arimo"}, "helvetica": {"liberation sans", "arimo", "nimbus sans"},
	"times new roman": {"liberation serif", "tinos"}, "times": {"liberation serif", "tinos", "nimbus roman"},
	"courier new": {"liberation mono", "cousine"}, "courier": {"liberation mono", "cousine", "nimbus mono ps"},
	"arial narrow": {"liberation sans narrow"}, "calibri": {"carlito"}, "calibri light": {"carlito"}, "cambria": {"caladea"}, "georgia": {"gelasio"},
}

// isGeneric reports whether a name stands for any font of a kind, or for symbols that
// LibreOffice replaces one by one.
func isGeneric(name string) bool {
	switch name {
	case "", "serif", "sans-serif", "sans", "monospace", "cursive", "fantasy", "system-ui", "symbol", "webdings", "starsymbol", "opensymbol", "cambria math":
		return true
	}
	return strings.HasPrefix(name, "wingdings")
}

// warnFonts warns about fonts that this host does not have.
func (t *task) warnFonts(names map[string]bool) {
	const most = 5
	var missing []string
	installed := t.fonts()
	if len(installed) == 0 {
		return
	}
	for name := range names {
		family := strings.ToLower(strings.TrimSpace(name))
		if isGeneric(family) || installed[family] || slices.ContainsFunc(equalFonts[family], func(n string) bool { return installed[n] }) {
			continue
		}
		missing = append(missing, name)
	}
	if len(missing) == 0 {
		return
	}
	slices.Sort(missing)
	more := ""
	if n := len(missing) - most; n > 0 {
		missing, more = missing[:most], fmt.Sprintf(" and %d more", n)
	}
	t.job.Warn(fileops.WarnFontsSubstituted, "The document does not contain these fonts, so others were used: %s%s.", strings.Join(missing, ", "), more)
}

// installedFonts returns the families that fontconfig knows in lower case, or nil if it
// does not say.
func installedFonts(sandbox *engine.Sandbox) map[string]bool {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	list, err := sandbox.Find(ctx, []string{"--version"}, "fc-list")
	if err != nil {
		return nil
	}
	var out bytes.Buffer
	if err := list.Run(ctx, engine.Cmd{Args: []string{":", "family"}, Dir: "/", Stdout: &out}); err != nil {
		return nil
	}
	families := map[string]bool{}
	for line := range strings.Lines(strings.ReplaceAll(out.String(), `\`, "")) {
		for name := range strings.SplitSeq(line, ",") {
			families[strings.ToLower(strings.TrimSpace(name))] = true
		}
	}
	return families
}

// A pageLosses counts the parts of a page that the cleaner leaves out.
type pageLosses struct{ images, scripts, styles, frames, drawings, recordings int }

func (l pageLosses) warn(job *fileops.Job) {
	if l.scripts > 0 {
		job.Warn(fileops.WarnScriptNotRun, "The scripts of the page were not run.")
	}
	if n := l.drawings; n > 0 {
		job.Warn(fileops.WarnContentDropped, "%s left out.", counted(n, "drawing"))
	}
	if n := l.recordings; n > 0 {
		job.Warn(fileops.WarnContentDropped, "%s left out.", counted(n, "recording"))
	}
	for _, p := range []struct {
		n    int
		noun string
	}{{l.images, "picture"}, {l.styles, "style sheet"}, {l.frames, "frame"}} {
		if p.n == 1 {
			job.Warn(fileops.WarnContentDropped, "1 %s was left out, because it is not in the file.", p.noun)
		} else if p.n > 1 {
			job.Warn(fileops.WarnContentDropped, "%d %ss were left out, because they are not in the file.", p.n, p.noun)
		}
	}
}

// counted returns a subject and its verb: "1 sheet was".
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun + " was"
	}
	return fmt.Sprintf("%d %ss were", n, noun)
}
