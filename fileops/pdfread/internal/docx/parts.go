package docx

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/filewright/filewright/fileops/pdfread/internal/model"
	"github.com/filewright/filewright/internal/ooxml"
)

// A listDef is the definition of one list.
type listDef struct {
	num    int
	levels [9]*model.ListItem // the first item of each level
}

// number returns the list id of an item.
func (x *writer) number(it *model.ListItem) int {
	def := x.lists[it.List]
	if def == nil {
		def = &listDef{num: len(x.nums) + 1}
		x.lists[it.List] = def
		x.nums = append(x.nums, def)
	}
	if def.levels[it.Level] == nil {
		def.levels[it.Level] = it
	}
	return def.num
}

// numbering writes the definitions of lists.
func (x *writer) numbering() string {
	var b strings.Builder
	b.WriteString(ooxml.Header + `<w:numbering xmlns:w="` + nsMain + `">`)
	for _, d := range x.nums {
		fmt.Fprintf(&b, `<w:abstractNum w:abstractNumId="%d"><w:multiLevelType w:val="hybridMultilevel"/>`, d.num)
		for level := range d.levels {
			it := d.levels[level]
			if it == nil {
				it = &model.ListItem{Mark: model.Mark{Bullet: "•"}, Text: 18 * float64(level+1), Indent: 18 * float64(level)}
			}
			format, text, start := "bullet", it.Bullet, 1
			if it.Kind != model.BulletMarker {
				text = fmt.Sprintf("%s%%%d%s", it.Before, level+1, it.After)
				start = it.Value
				format = map[model.MarkerKind]string{
					model.DecimalMarker: "decimal", model.LowerLetterMarker: "lowerLetter", model.UpperLetterMarker: "upperLetter",
					model.LowerRomanMarker: "lowerRoman", model.UpperRomanMarker: "upperRoman",
				}[it.Kind]
			}
			fmt.Fprintf(&b, `<w:lvl w:ilvl="%d"><w:start w:val="%d"/><w:numFmt w:val="%s"/><w:lvlText w:val="%s"/><w:lvlJc w:val="left"/><w:pPr><w:ind w:left="%d" w:hanging="%d"/></w:pPr></w:lvl>`,
				level, start, format, ooxml.Escape(text), twips(it.Text), max(0, twips(it.Text-it.Indent)))
		}
		b.WriteString(`</w:abstractNum>`)
	}
	for _, d := range x.nums {
		fmt.Fprintf(&b, `<w:num w:numId="%d"><w:abstractNumId w:val="%d"/></w:num>`, d.num, d.num)
	}
	b.WriteString(`</w:numbering>`)
	return b.String()
}

// headingStyles returns, for each level, the style of most characters.
func headingStyles(d *model.Document) (out [model.MaxHeadingLevel + 1]*model.Style) {
	counts := make([]map[model.Style]int, model.MaxHeadingLevel+1)
	most := make([]int, model.MaxHeadingLevel+1)
	for _, s := range d.Sections {
		for _, b := range s.Blocks {
			if b.Heading == 0 {
				continue
			}
			for _, l := range b.Lines {
				for _, w := range l.Words {
					for _, sp := range w.Spans {
						st := model.Style{Font: sp.Font, Size: sp.Size, Colour: sp.Colour}
						if counts[b.Heading] == nil {
							counts[b.Heading] = make(map[model.Style]int)
						}
						counts[b.Heading][st] += len(sp.Text)
						if n := counts[b.Heading][st]; n > most[b.Heading] {
							most[b.Heading] = n
							out[b.Heading] = &st
						}
					}
				}
			}
		}
	}
	return out
}

// styles writes the styles: the body text as the default, headings, lists.
func (x *writer) styles() string {
	var b strings.Builder
	size := x.d.Body.Size
	size = cmp.Or(size, 11)
	var body strings.Builder
	if f := x.d.Body.Font; f != nil && f.Name != "" {
		body.WriteString(fontNames(f))
		body.WriteString(x.runProps(model.Style{Font: &model.Font{Bold: f.Bold, Italic: f.Italic}, Size: size}, model.Style{Size: size}, false))
		if p := x.d.Scale(f); p != 100 {
			fmt.Fprintf(&body, `<w:w w:val="%d"/>`, p)
		}
	} else {
		body.WriteString(fontNames(&model.Font{Name: "Times New Roman"}))
	}
	fmt.Fprintf(&body, `<w:sz w:val="%d"/><w:szCs w:val="%d"/>`, halfPoints(size), halfPoints(size))
	b.WriteString(ooxml.Header + `<w:styles xmlns:w="` + nsMain + `"><w:docDefaults><w:rPrDefault><w:rPr>` + body.String() + `</w:rPr></w:rPrDefault>` +
		`<w:pPrDefault><w:pPr><w:widowControl w:val="0"/><w:autoSpaceDE w:val="0"/><w:autoSpaceDN w:val="0"/><w:spacing w:before="0" w:after="0"/></w:pPr></w:pPrDefault></w:docDefaults>` +
		`<w:style w:type="paragraph" w:default="1" w:styleId="Normal"><w:name w:val="Normal"/><w:qFormat/></w:style>` +
		`<w:style w:type="character" w:default="1" w:styleId="DefaultParagraphFont"><w:name w:val="Default Paragraph Font"/></w:style>` +
		`<w:style w:type="table" w:default="1" w:styleId="TableNormal"><w:name w:val="Normal Table"/><w:tblPr><w:tblInd w:w="0" w:type="dxa"/><w:tblCellMar><w:left w:w="60" w:type="dxa"/><w:right w:w="60" w:type="dxa"/></w:tblCellMar></w:tblPr></w:style>` +
		`<w:style w:type="paragraph" w:styleId="ListParagraph"><w:name w:val="List Paragraph"/><w:basedOn w:val="Normal"/><w:qFormat/></w:style>`)
	if len(x.notes) > 0 {
		b.WriteString(`<w:style w:type="character" w:styleId="FootnoteReference"><w:name w:val="footnote reference"/><w:basedOn w:val="DefaultParagraphFont"/><w:rPr><w:vertAlign w:val="superscript"/></w:rPr></w:style>`)
	}
	for level := 1; level <= model.MaxHeadingLevel; level++ {
		st := x.headings[level]
		if st == nil {
			continue
		}
		fmt.Fprintf(&b, `<w:style w:type="paragraph" w:styleId="Heading%d"><w:name w:val="heading %d"/><w:basedOn w:val="Normal"/><w:next w:val="Normal"/><w:qFormat/><w:pPr><w:keepNext/><w:outlineLvl w:val="%d"/></w:pPr><w:rPr>%s</w:rPr></w:style>`,
			level, level, level-1, x.runProps(*st, x.d.Body, false))
	}
	b.WriteString(`</w:styles>`)
	return b.String()
}

func (x *writer) settings() string {
	even := ""
	if x.d.EvenOdd {
		even = `<w:evenAndOddHeaders/>`
	}
	notes := ""
	if len(x.notes) > 0 {
		notes = `<w:footnotePr>` + x.noteNumbers() + `<w:footnote w:id="-1"/><w:footnote w:id="0"/></w:footnotePr>`
	}
	return ooxml.Header + `<w:settings xmlns:w="` + nsMain + `"><w:defaultTabStop w:val="720"/>` + even +
		`<w:characterSpacingControl w:val="doNotCompress"/>` +
		notes + `<w:compat><w:compatSetting w:name="compatibilityMode" w:uri="http://schemas.microsoft.com/office/word" w:val="15"/></w:compat></w:settings>`
}

func (x *writer) core() string {
	var b strings.Builder
	b.WriteString(ooxml.Header + `<cp:coreProperties xmlns:cp="` + ooxml.PackageNS + `metadata/core-properties" xmlns:dc="http://purl.org/dc/elements/1.1/">`)
	for _, p := range []struct{ name, value string }{{"dc:creator", x.d.Info.Author}, {"dc:subject", x.d.Info.Subject}, {"dc:title", x.d.Info.Title}} {
		if p.value != "" {
			fmt.Fprintf(&b, `<%s>%s</%s>`, p.name, ooxml.Escape(p.value), p.name)
		}
	}
	b.WriteString(`</cp:coreProperties>`)
	return b.String()
}

func (x *writer) contentTypes() string {
	var b strings.Builder
	b.WriteString(ooxml.Header + `<Types xmlns="` + ooxml.PackageNS + `content-types">` +
		`<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>` +
		`<Default Extension="xml" ContentType="application/xml"/>` +
		`<Default Extension="jpg" ContentType="image/jpeg"/><Default Extension="png" ContentType="image/png"/>` +
		`<Override PartName="/docProps/core.xml" ContentType="application/vnd.openxmlformats-package.core-properties+xml"/>` +
		`<Override PartName="/word/document.xml" ContentType="` + mainDoc + `document.main+xml"/>`)
	for _, n := range []string{"styles", "numbering", "settings"} {
		fmt.Fprintf(&b, `<Override PartName="/word/%s.xml" ContentType="%s%s+xml"/>`, n, mainDoc, n)
	}
	for _, p := range x.parts {
		fmt.Fprintf(&b, `<Override PartName="/word/%s" ContentType="%s%s+xml"/>`, p.name, mainDoc, p.kind)
	}
	b.WriteString(`</Types>`)
	return b.String()
}
