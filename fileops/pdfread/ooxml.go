package pdfread

import (
	"bytes"
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/klauspost/compress/zip"
)

// This file writes a doc as Office Open XML (ECMA-376, part 1). The order of
// elements within their parents is that of the schema; programs insist on it.

const (
	xmlHead = `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>` + "\n"
	nsMain  = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
	nsRel   = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
	nsDraw  = "http://schemas.openxmlformats.org/drawingml/2006/main"
	nsPic   = "http://schemas.openxmlformats.org/drawingml/2006/picture"
	nsWP    = "http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing"
	nsPkg   = "http://schemas.openxmlformats.org/package/2006/"
	mainDoc = "application/vnd.openxmlformats-officedocument.wordprocessingml."
	rootNS  = ` xmlns:w="` + nsMain + `" xmlns:r="` + nsRel + `" xmlns:wp="` + nsWP + `" xmlns:a="` + nsDraw + `" xmlns:pic="` + nsPic + `"`
)

// writeDocx writes d. The result depends on nothing but d.
func writeDocx(ctx context.Context, w io.Writer, d *doc) error {
	x := &docxWriter{d: d, out: new(bytes.Buffer), links: make(map[string]string), lists: make(map[int]*listDef), headings: d.headingStyles()}
	x.document()
	if err := cancelled(ctx); err != nil {
		return err
	}
	z := zip.NewWriter(w)
	var err error
	add := func(name, content string) {
		if err != nil {
			return
		}
		var f io.Writer
		if f, err = z.Create(name); err == nil {
			_, err = io.WriteString(f, content)
		}
	}
	add("[Content_Types].xml", x.contentTypes())
	add("_rels/.rels", xmlHead+`<Relationships xmlns="`+nsPkg+`relationships">`+
		`<Relationship Id="rId1" Type="`+nsRel+`/officeDocument" Target="word/document.xml"/>`+
		`<Relationship Id="rId2" Type="`+nsPkg+`relationships/metadata/core-properties" Target="docProps/core.xml"/></Relationships>`)
	add("docProps/core.xml", x.core())
	add("word/document.xml", x.out.String())
	add("word/styles.xml", x.styles())
	add("word/numbering.xml", x.numbering())
	add("word/settings.xml", x.settings())
	for _, p := range x.parts {
		add("word/"+p.name, p.content)
	}
	var rels strings.Builder
	rels.WriteString(xmlHead + `<Relationships xmlns="` + nsPkg + `relationships">`)
	for i, r := range x.rels {
		mode := ""
		if r.external {
			mode = ` TargetMode="External"`
		}
		fmt.Fprintf(&rels, `<Relationship Id="rId%d" Type="%s/%s" Target="%s"%s/>`, i+1, nsRel, r.kind, escape(r.target), mode)
	}
	rels.WriteString(`</Relationships>`)
	add("word/_rels/document.xml.rels", rels.String())
	for _, m := range d.media {
		if !x.used[m] {
			continue
		}
		if err == nil {
			err = addFile(z, x.mediaName(m), m.path)
		}
		if cerr := cancelled(ctx); cerr != nil {
			return cerr
		}
	}
	if err != nil {
		return err
	}
	return z.Close()
}

// addFile adds a picture; it is compressed already.
func addFile(z *zip.Writer, name, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	w, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
	if err != nil {
		return err
	}
	_, err = io.Copy(w, f)
	return err
}

type relation struct {
	kind, target string
	external     bool
}

type part struct{ name, kind, content string }

type docxWriter struct {
	d        *doc
	out      *bytes.Buffer
	rels     []relation
	links    map[string]string // target to relation id
	parts    []part
	lists    map[int]*listDef
	nums     []*listDef
	used     map[*media]bool
	mediaRel map[*media]string
	headings [maxHeadingLevel + 1]*style
	pictures int
	marks    int
	leaf     *leaf // page of the block that is written, for its links
	dark     bool  // what is written has a background of its own
	narrow   int   // width of the characters of the paragraph that is written, in per cent; 0 is 100
}

func (x *docxWriter) relate(kind, target string, external bool) string {
	x.rels = append(x.rels, relation{kind, target, external})
	return fmt.Sprintf("rId%d", len(x.rels))
}

func (x *docxWriter) mediaName(m *media) string {
	return fmt.Sprintf("word/media/image%d.%s", m.id, m.ext)
}

// escape returns s as XML text or attribute, without characters that XML does
// not allow.
func escape(s string) string {
	var b bytes.Buffer
	xml.EscapeText(&b, []byte(strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' || r == 0xfffe || r == 0xffff || r == utf8.RuneError {
			return -1
		}
		return r
	}, s)))
	return b.String()
}

// twips converts points to twentieths of a point.
func twips(pt float64) int { return int(math.Round(pt * 20)) }

// emu converts points to English metric units.
func emu(pt float64) int { return int(math.Round(pt * 12700)) }

func (x *docxWriter) printf(format string, args ...any) { fmt.Fprintf(x.out, format, args...) }

// document writes the main part.
func (x *docxWriter) document() {
	x.used, x.mediaRel = make(map[*media]bool), make(map[*media]string)
	x.relate("styles", "styles.xml", false)
	x.relate("numbering", "numbering.xml", false)
	x.relate("settings", "settings.xml", false)
	x.out.WriteString(xmlHead + `<w:document` + rootNS + `><w:body>`)
	for i, s := range x.d.sections {
		last := i == len(x.d.sections)-1
		props := x.section(s, i)
		for k := 0; k < len(s.blocks); {
			n := 1
			for k+n-1 < len(s.blocks)-1 && s.blocks[k+n-1].joined {
				n++
			}
			end := ""
			if k+n == len(s.blocks) && !last && s.blocks[k].kind == paragraphBlock {
				end = props
			}
			x.block(s.blocks[k:k+n], s, end)
			k += n
		}
		switch n := len(s.blocks); {
		case last:
			if n > 0 && s.blocks[n-1].kind == tableBlock {
				x.tiny("")
			}
			x.out.WriteString(props)
		case n == 0 || s.blocks[n-1].kind != paragraphBlock:
			x.tiny(props)
		}
	}
	x.out.WriteString(`</w:body></w:document>`)
}

// block writes a block, or several that are one paragraph.
func (x *docxWriter) block(bs []*placed, s *section, section string) {
	b := bs[0]
	x.leaf = x.d.leaves[b.page]
	switch b.kind {
	case tableBlock:
		x.before(b)
		x.table(b.table, s)
		x.tiny("")
	case pictureBlock:
		x.picture(b, s)
	default:
		x.paragraph(bs, section)
	}
}

// before writes what a paragraph could say by itself and a table cannot.
func (x *docxWriter) before(b *placed) {
	if !b.pageBreak && !b.columnBreak && b.bookmark == 0 && b.before < 1 {
		return
	}
	x.out.WriteString(`<w:p><w:pPr>`)
	if b.pageBreak {
		x.out.WriteString(`<w:pageBreakBefore/>`)
	}
	fmt.Fprintf(x.out, `<w:spacing w:before="0" w:after="0" w:line="%d" w:lineRule="exact"/><w:rPr><w:sz w:val="2"/><w:szCs w:val="2"/></w:rPr></w:pPr>`, max(20, twips(min(b.before, 100))))
	if b.columnBreak {
		x.out.WriteString(`<w:r><w:br w:type="column"/></w:r>`)
	}
	x.bookmark(b)
	x.out.WriteString(`</w:p>`)
}

func (x *docxWriter) bookmark(b *placed) {
	if b.bookmark > 0 {
		x.marks++
		x.printf(`<w:bookmarkStart w:id="%d" w:name="page_%d"/><w:bookmarkEnd w:id="%d"/>`, x.marks, b.bookmark, x.marks)
	}
}
