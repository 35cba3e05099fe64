package documentops

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/xml"
	"errors"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"

	"golang.org/x/net/html/charset"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/compound"
	"github.com/filewright/filewright/internal/report"
	"github.com/filewright/filewright/internal/safezip"
)

// Inspect returns the action "inspect" for documents: what the file says about itself,
// without layout. Numbers of pages and words are those that its program counted. An
// encrypted document is only reported as such. l may be nil.
func Inspect(l *Limits) fileops.Action {
	limits := l.orDefault()
	spec := report.Spec("documentops", "office", "Describes a document as JSON.", append(
		format.WithVariants(format.DOCX, format.XLSX, format.PPTX, format.ODT, format.ODS, format.ODP, format.DOC, format.XLS, format.PPT),
		format.EPUB, format.XLSB, format.ODG, format.VSDX, format.VSD, format.PUB,
	))
	return fileops.Func(spec, func(_ context.Context, job *fileops.Job) error {
		r := report.New(job)
		in := job.Input()
		head := make([]byte, len(compound.Magic))
		if _, err := in.Reader().ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		var err error
		if string(head) == compound.Magic {
			err = describeCompound(r, in)
		} else {
			err = describePackage(r, in, limits)
		}
		if err != nil {
			return err
		}
		return r.Write(job)
	})
}

// describePackage adds the content of a ZIP archive.
func describePackage(r *report.Report, in *fileops.File, l safezip.Limits) error {
	a, err := openArchive(in, l)
	if errors.Is(err, fileops.ErrPasswordRequired) {
		r.Encrypted = true
		return nil
	}
	if err != nil {
		return err
	}
	d := &report.Document{}
	r.Document = d
	for _, e := range a.entries {
		name := strings.ToLower(e.name)
		switch base := path.Base(name); {
		case base == "vbaproject.bin", strings.HasPrefix(name, "basic/") && strings.HasSuffix(base, ".xml") && !strings.HasPrefix(base, "script-"):
			d.Macros = true
		case strings.HasPrefix(name, "ppt/slides/slide") && strings.HasSuffix(name, ".xml"):
			d.Slides++
		}
		if format.Parse(name).Family() == format.Image {
			d.Pictures++
		}
	}
	p := &packageReader{report: r, archive: a}
	switch r.Format.Plain() {
	case format.ODT, format.ODS, format.ODP, format.ODG:
		p.odf()
	case format.EPUB:
		p.epub()
	default:
		p.ooxml()
	}
	return p.err
}

// A packageReader reads parts of a package into a report.
type packageReader struct {
	report  *report.Report
	archive *archive
	err     error
}

// elements calls f for each element of a part with its text, which is complete at its
// end. It ignores a missing part. A malformed part counts up to the damage.
func (p *packageReader) elements(part string, f func(t xml.StartElement, text string)) {
	e := p.archive.byName[strings.ToLower(part)]
	if e == nil || p.err != nil {
		return
	}
	rc, err := e.Open()
	if err != nil {
		p.err = damaged(err)
		return
	}
	defer rc.Close()
	d := xml.NewDecoder(io.LimitReader(rc, maxPart))
	d.Strict = false
	d.CharsetReader = charset.NewReaderLabel
	type open struct {
		start xml.StartElement
		text  strings.Builder
	}
	var stack []*open
	for {
		t, err := d.Token()
		if err != nil {
			return
		}
		switch t := t.(type) {
		case xml.StartElement:
			if len(stack) >= 256 {
				return
			}
			stack = append(stack, &open{start: t.Copy()})
		case xml.CharData:
			if n := len(stack); n > 0 && stack[n-1].text.Len() < 4096 {
				stack[n-1].text.Write(t)
			}
		case xml.EndElement:
			if n := len(stack); n > 0 {
				f(stack[n-1].start, strings.TrimSpace(stack[n-1].text.String()))
				stack = stack[:n-1]
			}
		}
	}
}

func attributeOf(t xml.StartElement, name string) string {
	for _, a := range t.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

func count(s string) int {
	n, _ := strconv.Atoi(s)
	return max(n, 0)
}

// meta adds an element of Dublin Core, which all packages use.
func (p *packageReader) meta(name, text string) {
	r := p.report
	switch name {
	case "title", "subject", "description", "keywords", "category", "publisher", "identifier":
		r.Set(name, text)
	case "keyword":
		if old := r.Metadata["keywords"]; old != "" {
			text = old + ", " + text
		}
		r.Set("keywords", text)
	case "creator":
		if r.Metadata["author"] == "" {
			r.Set("author", text)
		}
	case "initial-creator":
		r.Set("author", text)
	case "lastModifiedBy":
		r.Set("last_author", text)
	case "language":
		r.Document.Language = cmp.Or(r.Document.Language, text)
	case "created", "creation-date":
		r.SetTime("created", text)
	case "modified":
		r.SetTime("modified", text)
	case "generator":
		r.Set("program", text)
	}
}

// ooxml reads the properties of Office Open XML (ISO/IEC 29500-2, 11; 29500-1, 22.2).
func (p *packageReader) ooxml() {
	d := p.report.Document
	p.elements("docProps/core.xml", func(t xml.StartElement, text string) { p.meta(t.Name.Local, text) })
	p.elements("docProps/app.xml", func(t xml.StartElement, text string) {
		switch t.Name.Local {
		case "Application":
			p.report.Set("program", text)
		case "Company":
			p.report.Set("company", text)
		case "Pages":
			d.Pages = count(text)
		case "Words":
			d.Words = count(text)
		}
	})
	if p.report.Format.Plain() != format.XLSX {
		return
	}
	p.elements("xl/workbook.xml", func(t xml.StartElement, _ string) {
		if t.Name.Local == "sheet" && len(d.Sheets) < 1000 {
			d.Sheets = append(d.Sheets, attributeOf(t, "name"))
		}
	})
}

// odf reads the metadata of OpenDocument (part 3, 4.3).
func (p *packageReader) odf() {
	d := p.report.Document
	p.elements("META-INF/manifest.xml", func(t xml.StartElement, _ string) {
		if t.Name.Local == "encryption-data" {
			p.report.Encrypted = true
		}
	})
	if p.report.Encrypted {
		p.report.Document = nil
		return
	}
	modified, initial := "", false
	p.elements("meta.xml", func(t xml.StartElement, text string) {
		switch t.Name.Local {
		case "date":
			modified = text
		case "initial-creator":
			initial = true
			p.meta("initial-creator", text)
		case "creator": // the person who changed it last
			p.report.Set("last_author", text)
		case "document-statistic":
			d.Pages, d.Words = count(attributeOf(t, "page-count")), count(attributeOf(t, "word-count"))
		default:
			p.meta(t.Name.Local, text)
		}
	})
	if !initial {
		p.report.Set("author", p.report.Metadata["last_author"])
	}
	p.report.SetTime("modified", modified)
	kind := p.report.Format.Plain()
	switch kind {
	case format.ODS, format.ODP:
	default:
		return
	}
	p.elements("content.xml", func(t xml.StartElement, _ string) {
		switch {
		case t.Name.Local == "table" && kind == format.ODS && attributeOf(t, "name") != "" && len(d.Sheets) < 1000:
			d.Sheets = append(d.Sheets, attributeOf(t, "name"))
		case t.Name.Local == "page" && kind == format.ODP:
			d.Slides++
		}
	})
}

// epub reads the package document of a book (EPUB 3.3, 5).
func (p *packageReader) epub() {
	root := ""
	p.elements("META-INF/container.xml", func(t xml.StartElement, _ string) {
		if t.Name.Local == "rootfile" && root == "" {
			root = attributeOf(t, "full-path")
		}
	})
	p.elements(root, func(t xml.StartElement, text string) {
		switch t.Name.Local {
		case "itemref":
			p.report.Document.Chapters++
		case "date":
			if p.report.Metadata["created"] == "" {
				p.report.SetTime("created", text)
			}
		case "meta":
			if attributeOf(t, "property") == "dcterms:modified" {
				p.report.SetTime("modified", text)
			}
		default:
			p.meta(t.Name.Local, text)
		}
	})
}

// describeCompound adds the content of a compound file: an encrypted package, or the
// properties of a document of Office 97 (MS-OLEPS).
func describeCompound(r *report.Report, in *fileops.File) error {
	names := compound.Names(in.Reader(), in.Size())
	if slices.Contains(names, "encryptedpackage") {
		r.Encrypted = true
		return nil
	}
	f, err := compound.Open(in.Reader(), in.Size(), 0)
	if err != nil {
		return damaged(err)
	}
	r.Document = &report.Document{Macros: slices.ContainsFunc(names, func(n string) bool { return n == "macros" || n == "_vba_project_cur" })}
	if encryptedBinary(f) {
		r.Encrypted, r.Document = true, nil
		return nil
	}
	for _, name := range []string{"\x05SummaryInformation", "\x05DocumentSummaryInformation"} {
		s, ok, err := f.Stream(name)
		if err != nil || !ok {
			continue // properties are optional, and damaged ones are not used
		}
		b, err := io.ReadAll(io.LimitReader(s, 1<<20))
		if err != nil {
			continue
		}
		for id, value := range properties(b) {
			describeProperty(r, name, id, value)
		}
	}
	return nil
}

// encryptedBinary reports whether a document of Office 97 is encrypted.
func encryptedBinary(f *compound.File) bool {
	start := func(name string, n int) []byte {
		s, ok, err := f.Stream(name)
		if err != nil || !ok {
			return nil
		}
		b := make([]byte, n)
		got, _ := s.ReadAt(b, 0)
		return b[:got]
	}
	if b := start("WordDocument", 12); len(b) == 12 {
		return compound.WordEncrypted(b)
	}
	if b := start("Current User", 16); len(b) == 16 {
		return compound.PowerPointEncrypted(b)
	}
	return compound.ExcelEncrypted(start("Workbook", 64<<10)) || compound.ExcelEncrypted(start("Book", 64<<10))
}

// describeProperty adds a property of a document (MS-OSHARED, 2.3.3.2).
func describeProperty(r *report.Report, set string, id uint32, value any) {
	text, _ := value.(string)
	n, _ := value.(int)
	at, _ := value.(time.Time)
	if !at.IsZero() {
		text = at.Format(time.RFC3339)
	}
	if set != "\x05SummaryInformation" {
		if id == 7 {
			r.Document.Slides = n
		}
		if name := map[uint32]string{2: "category", 15: "company"}[id]; name != "" {
			r.Set(name, text)
		}
		return
	}
	switch id {
	case 12:
		r.SetTime("created", text)
	case 13:
		r.SetTime("modified", text)
	case 14:
		r.Document.Pages = n
	case 15:
		r.Document.Words = n
	}
	if name := summaryTexts[id]; name != "" {
		r.Set(name, text)
	}
}

// summaryTexts are the texts among the properties of SummaryInformation.
var summaryTexts = map[uint32]string{2: "title", 3: "subject", 4: "author", 5: "keywords", 6: "description", 8: "last_author", 18: "program"}

// properties reads the first set of a property stream (MS-OLEPS, 2.21): strings, whole
// numbers and times. It leaves out damaged ones.
func properties(b []byte) map[uint32]any {
	le := binary.LittleEndian
	out := make(map[uint32]any)
	if len(b) < 48 {
		return out
	}
	start := le.Uint32(b[44:])
	if uint64(start)+8 > uint64(len(b)) {
		return out
	}
	set := b[start:]
	codePage := 1252
	for pass := range 2 { // the first one looks for the code page
		n := min(le.Uint32(set[4:]), 200)
		for i := range n {
			if at := 8 + 8*int(i); at+8 <= len(set) {
				id, offset := le.Uint32(set[at:]), le.Uint32(set[at+4:])
				if uint64(offset)+8 > uint64(len(set)) || (pass == 0) != (id == 1) {
					continue
				}
				if v := propertyValue(set[offset:], codePage); v != nil && pass == 1 {
					out[id] = v
				} else if page, ok := v.(int); ok && pass == 0 {
					codePage = page & 0xffff
				}
			}
		}
	}
	return out
}

// propertyValue reads a typed value (MS-OLEPS, 2.15). It has at least eight bytes.
func propertyValue(b []byte, codePage int) any {
	le := binary.LittleEndian
	kind, b := le.Uint16(b), b[4:]
	n := int(min(le.Uint32(b), 1<<20))
	switch kind {
	case 2:
		return int(le.Uint16(b))
	case 3:
		return int(int32(le.Uint32(b)))
	case 30:
		text := b[4:min(4+n, len(b))]
		return decodeANSI(text, codePage)
	case 31:
		var units []uint16
		for t := b[4:min(4+2*n, len(b))]; len(t) >= 2; t = t[2:] {
			units = append(units, le.Uint16(t))
		}
		return strings.TrimRight(string(utf16.Decode(units)), "\x00")
	case 64:
		if len(b) < 8 {
			return nil
		}
		ticks := le.Uint64(b) // of 100 ns since 1601
		const from1601 = 11644473600
		if s := int64(ticks/1e7) - from1601; s > 0 && s < 253402300800 {
			return time.Unix(s, 0).UTC()
		}
	}
	return nil
}

// decodeANSI decodes a text in a code page of Windows.
func decodeANSI(b []byte, codePage int) string {
	b = bytes.TrimRight(b, "\x00")
	if codePage == 1200 || codePage == 65001 {
		return string(bytes.ToValidUTF8(b, []byte("\ufffd")))
	}
	label := "windows-" + strconv.Itoa(codePage)
	switch codePage {
	case 932:
		label = "shift_jis"
	case 936:
		label = "gbk"
	case 949:
		label = "euc-kr"
	case 950:
		label = "big5"
	}
	enc, _ := charset.Lookup(label)
	if enc == nil {
		enc, _ = charset.Lookup("windows-1252")
	}
	s, err := enc.NewDecoder().Bytes(b)
	if err != nil {
		return string(bytes.ToValidUTF8(b, []byte("\ufffd")))
	}
	return string(s)
}
