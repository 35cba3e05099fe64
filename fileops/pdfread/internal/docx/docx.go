// Package docx writes a document as WordprocessingML (ECMA-376, part 1, 17).
// Elements appear in schema order, because programs reject any other order.
package docx

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/klauspost/compress/zip"

	"github.com/filewright/filewright/fileops/pdfread/internal/model"
	"github.com/filewright/filewright/internal/ooxml"
)

// Namespaces and content types of WordprocessingML.
const (
	nsMain   = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
	nsDraw   = "http://schemas.openxmlformats.org/drawingml/2006/main"
	nsPic    = "http://schemas.openxmlformats.org/drawingml/2006/picture"
	nsShape  = "http://schemas.microsoft.com/office/word/2010/wordprocessingShape"
	nsWord   = "http://schemas.microsoft.com/office/word/2010/wordml"
	nsCompat = "http://schemas.openxmlformats.org/markup-compatibility/2006"
	nsWP     = "http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing"
	mainDoc  = "application/vnd.openxmlformats-officedocument.wordprocessingml."
	rootNS   = ` xmlns:w="` + nsMain + `" xmlns:r="` + ooxml.RelationshipNS + `" xmlns:wp="` + nsWP + `" xmlns:a="` + nsDraw + `" xmlns:pic="` + nsPic + `" xmlns:wps="` + nsShape + `" xmlns:w14="` + nsWord + `" xmlns:mc="` + nsCompat + `" mc:Ignorable="w14"`
)

// Write writes d. The result depends only on d.
func Write(ctx context.Context, w io.Writer, d *model.Document) error {
	x := &writer{d: d, out: new(bytes.Buffer), links: make(map[string]string), lists: make(map[int]*listDef), breaks: make(map[*model.Line]*model.Placed), headings: headingStyles(d), notesBy: d.Numbering()}
	x.document()
	if err := context.Cause(ctx); err != nil {
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
	add("_rels/.rels", ooxml.Header+`<Relationships xmlns="`+ooxml.PackageNS+`relationships">`+
		`<Relationship Id="rId1" Type="`+ooxml.RelationshipNS+`/officeDocument" Target="word/document.xml"/>`+
		`<Relationship Id="rId2" Type="`+ooxml.PackageNS+`relationships/metadata/core-properties" Target="docProps/core.xml"/></Relationships>`)
	add("docProps/core.xml", x.core())
	add("word/document.xml", x.out.String())
	add("word/styles.xml", x.styles())
	add("word/numbering.xml", x.numbering())
	add("word/settings.xml", x.settings())
	for _, p := range x.parts {
		add("word/"+p.name, p.content)
	}
	var rels strings.Builder
	rels.WriteString(ooxml.Header + `<Relationships xmlns="` + ooxml.PackageNS + `relationships">`)
	for i, r := range x.rels {
		mode := ""
		if r.external {
			mode = ` TargetMode="External"`
		}
		fmt.Fprintf(&rels, `<Relationship Id="rId%d" Type="%s/%s" Target="%s"%s/>`, i+1, ooxml.RelationshipNS, r.kind, ooxml.Escape(r.target), mode)
	}
	rels.WriteString(`</Relationships>`)
	add("word/_rels/document.xml.rels", rels.String())
	for _, m := range d.Media {
		if !x.used[m] {
			continue
		}
		if err == nil {
			err = ooxml.AddFile(z, x.mediaName(m), m.Path)
		}
		if cerr := context.Cause(ctx); cerr != nil {
			return cerr
		}
	}
	if err != nil {
		return err
	}
	return z.Close()
}

type relation struct {
	kind, target string
	external     bool
}

type part struct{ name, kind, content string }

type writer struct {
	d         *model.Document
	out       *bytes.Buffer
	rels      []relation
	links     map[string]string // target to relation id
	parts     []part
	lists     map[int]*listDef
	nums      []*listDef
	used      map[*model.Media]bool
	mediaRel  map[*model.Media]string
	headings  [model.MaxHeadingLevel + 1]*model.Style
	pictures  int
	marks     int
	controls  int
	field     *model.Field                  // of the open content control
	notes     []*model.Note                 // that the text refers to
	notesBy   model.NoteNumbering           // of the notes of the document
	lead      string                        // runs before the text of the next paragraph
	goesOn    bool                          // the control stays open after the current text
	onPicture bool                          // the current text is over a picture of its page
	breaks    map[*model.Line]*model.Placed // blocks of the current paragraph that start a page, by their first line
	leaf      *model.Leaf                   // page of the current block, for its links
	dark      bool                          // the current text has its own background
	after     float64                       // space below the current paragraph, points
	thin      float64                       // width of the thinnest border of the current table, points
	moved     *model.Block                  // its space above is below the paragraph before it
	narrow    int                           // character width of the current paragraph in per cent; 0 means 100
}

func (x *writer) relate(kind, target string, external bool) string {
	x.rels = append(x.rels, relation{kind, target, external})
	return fmt.Sprintf("rId%d", len(x.rels))
}

func (x *writer) mediaName(m *model.Media) string {
	return fmt.Sprintf("word/media/image%d.%s", m.ID, m.Ext)
}

// twips converts points to twentieths of a point.
func twips(pt float64) int { return int(math.Round(pt * 20)) }

// emu converts points to English metric units.
func emu(pt float64) int { return int(math.Round(pt * 12700)) }

func (x *writer) printf(format string, args ...any) { fmt.Fprintf(x.out, format, args...) }

// document writes the main part.
func (x *writer) document() {
	x.used, x.mediaRel = make(map[*model.Media]bool), make(map[*model.Media]string)
	x.relate("styles", "styles.xml", false)
	x.relate("numbering", "numbering.xml", false)
	x.relate("settings", "settings.xml", false)
	x.out.WriteString(ooxml.Header + `<w:document` + rootNS + `><w:body>`)
	for i, s := range x.d.Sections {
		last := i == len(x.d.Sections)-1
		props := x.section(s, i)
		if s.Fixed != nil {
			if last {
				x.fixed(s.Fixed, "")
				x.out.WriteString(props)
			} else {
				x.fixed(s.Fixed, props)
			}
			continue
		}
		for k := 0; k < len(s.Blocks); {
			n := 1
			for k+n-1 < len(s.Blocks)-1 && s.Blocks[k+n-1].Joined {
				n++
			}
			x.after = 0
			if k+n+1 < len(s.Blocks) && s.Blocks[k].Kind == model.ParagraphBlock {
				x.after = x.spaceBelow(s.Blocks[k+n:])
			}
			end := ""
			if k+n == len(s.Blocks) && !last && endsSection(s.Blocks[k].Block) {
				end = props
			}
			x.block(s.Blocks[k:k+n], s, end)
			k += n
		}
		switch n := len(s.Blocks); {
		case last:
			if n > 0 && s.Blocks[n-1].Kind == model.TableBlock {
				x.tiny("")
			}
			x.out.WriteString(props)
		case n == 0 || !endsSection(s.Blocks[n-1].Block):
			x.tiny(props)
		}
	}
	x.out.WriteString(`</w:body></w:document>`)
	x.footnotes()
}

// endsSection reports whether the paragraph of a block can also end its section.
// Programs drop empty paragraphs that do, with their page.
func endsSection(b *model.Block) bool {
	return b.Kind == model.ParagraphBlock && len(b.Lines) > 0
}

// spaceBelow returns the space above the next paragraph, if that belongs below
// the current one: programs repeat it after a page break within a paragraph.
func (x *writer) spaceBelow(next []*model.Placed) float64 {
	b := next[0]
	if b.Kind != model.ParagraphBlock || !b.Joined || !next[1].Continues || b.PageBreak || b.Continues {
		return 0
	}
	x.moved = b.Block
	return b.Before
}

// block writes a block, or several blocks that form one paragraph.
func (x *writer) block(bs []*model.Placed, s *model.Section, section string) {
	b := bs[0]
	x.leaf = x.d.Leaves[b.Page]
	x.dark = x.leaf != nil && onDark(b.Rect, x.leaf.Behind)
	switch b.Kind {
	case model.TableBlock:
		x.before(b)
		x.table(b.Table, s)
		x.tiny("")
	case model.PictureBlock:
		x.picture(b, s)
	default:
		x.paragraph(bs, section)
	}
}

// before writes the properties of a table's position that a paragraph could have
// itself: a break, a bookmark and space above.
func (x *writer) before(b *model.Placed) {
	if !b.PageBreak && !b.Continues && !b.ColumnBreak && b.Behind == nil && b.Bookmark == 0 && b.Before < 1 {
		return
	}
	x.out.WriteString(`<w:p><w:pPr>`)
	if b.PageBreak || b.Continues {
		x.out.WriteString(`<w:pageBreakBefore/>`)
	}
	fmt.Fprintf(x.out, `<w:spacing w:before="0" w:after="0" w:line="%d" w:lineRule="exact"/><w:rPr><w:sz w:val="2"/><w:szCs w:val="2"/></w:rPr></w:pPr>`, max(20, twips(min(b.Before, 100))))
	if b.ColumnBreak {
		x.out.WriteString(`<w:r><w:br w:type="column"/></w:r>`)
	}
	x.bookmark(b)
	x.out.WriteString(`</w:p>`)
}

// bookmark writes what belongs to the start of a page: its bookmark and the
// graphics behind its text.
func (x *writer) bookmark(b *model.Placed) {
	x.behind(b)
	if b.Bookmark > 0 {
		x.marks++
		x.printf(`<w:bookmarkStart w:id="%d" w:name="page_%d"/><w:bookmarkEnd w:id="%d"/>`, x.marks, b.Bookmark, x.marks)
	}
}
