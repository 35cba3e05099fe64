package pdfread

import (
	"fmt"
	"strings"
)

// A listDef is the definition of one list.
type listDef struct {
	num    int
	levels [9]*listItem // the first item of each level
}

// number returns the id of the list of an item.
func (x *docxWriter) number(it *listItem) int {
	def := x.lists[it.list]
	if def == nil {
		def = &listDef{num: len(x.nums) + 1}
		x.lists[it.list] = def
		x.nums = append(x.nums, def)
	}
	if def.levels[it.level] == nil {
		def.levels[it.level] = it
	}
	return def.num
}

// numbering writes the definitions of lists.
func (x *docxWriter) numbering() string {
	var b strings.Builder
	b.WriteString(xmlHead + `<w:numbering xmlns:w="` + nsMain + `">`)
	for _, d := range x.nums {
		fmt.Fprintf(&b, `<w:abstractNum w:abstractNumId="%d"><w:multiLevelType w:val="hybridMultilevel"/>`, d.num)
		for level := range d.levels {
			it := d.levels[level]
			if it == nil {
				it = &listItem{mark: mark{bullet: "•"}, text: 18 * float64(level+1), indent: 18 * float64(level)}
			}
			format, text, start := "bullet", it.bullet, 1
			if it.kind != bulletMarker {
				text = fmt.Sprintf("%s%%%d%s", it.before, level+1, it.after)
				start = it.value
				format = map[markerKind]string{
					decimalMarker: "decimal", lowerLetterMarker: "lowerLetter", upperLetterMarker: "upperLetter",
					lowerRomanMarker: "lowerRoman", upperRomanMarker: "upperRoman",
				}[it.kind]
			}
			fmt.Fprintf(&b, `<w:lvl w:ilvl="%d"><w:start w:val="%d"/><w:numFmt w:val="%s"/><w:lvlText w:val="%s"/><w:lvlJc w:val="left"/><w:pPr><w:ind w:left="%d" w:hanging="%d"/></w:pPr></w:lvl>`,
				level, start, format, escape(text), twips(it.text), max(0, twips(it.text-it.indent)))
		}
		b.WriteString(`</w:abstractNum>`)
	}
	for _, d := range x.nums {
		fmt.Fprintf(&b, `<w:num w:numId="%d"><w:abstractNumId w:val="%d"/></w:num>`, d.num, d.num)
	}
	b.WriteString(`</w:numbering>`)
	return b.String()
}

// headingStyles returns the style that most characters of each level have.
func (d *doc) headingStyles() (out [maxHeadingLevel + 1]*style) {
	counts := make([]map[style]int, maxHeadingLevel+1)
	most := make([]int, maxHeadingLevel+1)
	for _, s := range d.sections {
		for _, b := range s.blocks {
			if b.heading == 0 {
				continue
			}
			for _, l := range b.lines {
				for _, w := range l.words {
					for _, sp := range w.spans {
						st := style{font: sp.font, size: sp.size, colour: sp.colour}
						if counts[b.heading] == nil {
							counts[b.heading] = make(map[style]int)
						}
						counts[b.heading][st] += len(sp.text)
						if n := counts[b.heading][st]; n > most[b.heading] {
							most[b.heading] = n
							out[b.heading] = &st
						}
					}
				}
			}
		}
	}
	return out
}

// styles writes the styles: the body text as the default, headings, lists.
func (x *docxWriter) styles() string {
	var b strings.Builder
	size := x.d.body.size
	if size == 0 {
		size = 11
	}
	var body strings.Builder
	if f := x.d.body.font; f != nil && f.name != "" {
		body.WriteString(fontNames(f))
		body.WriteString(x.runProps(style{font: &font{bold: f.bold, italic: f.italic}, size: size}, style{size: size}, false))
		if p := x.d.scale(f); p != 100 {
			fmt.Fprintf(&body, `<w:w w:val="%d"/>`, p)
		}
	} else {
		body.WriteString(fontNames(&font{name: "Times New Roman"}))
	}
	fmt.Fprintf(&body, `<w:sz w:val="%d"/><w:szCs w:val="%d"/>`, halfPoints(size), halfPoints(size))
	b.WriteString(xmlHead + `<w:styles xmlns:w="` + nsMain + `"><w:docDefaults><w:rPrDefault><w:rPr>` + body.String() + `</w:rPr></w:rPrDefault>` +
		`<w:pPrDefault><w:pPr><w:widowControl w:val="0"/><w:autoSpaceDE w:val="0"/><w:autoSpaceDN w:val="0"/><w:spacing w:before="0" w:after="0"/></w:pPr></w:pPrDefault></w:docDefaults>` +
		`<w:style w:type="paragraph" w:default="1" w:styleId="Normal"><w:name w:val="Normal"/><w:qFormat/></w:style>` +
		`<w:style w:type="character" w:default="1" w:styleId="DefaultParagraphFont"><w:name w:val="Default Paragraph Font"/></w:style>` +
		`<w:style w:type="table" w:default="1" w:styleId="TableNormal"><w:name w:val="Normal Table"/><w:tblPr><w:tblInd w:w="0" w:type="dxa"/><w:tblCellMar><w:left w:w="60" w:type="dxa"/><w:right w:w="60" w:type="dxa"/></w:tblCellMar></w:tblPr></w:style>` +
		`<w:style w:type="paragraph" w:styleId="ListParagraph"><w:name w:val="List Paragraph"/><w:basedOn w:val="Normal"/><w:qFormat/></w:style>`)
	for level := 1; level <= maxHeadingLevel; level++ {
		st := x.headings[level]
		if st == nil {
			continue
		}
		fmt.Fprintf(&b, `<w:style w:type="paragraph" w:styleId="Heading%d"><w:name w:val="heading %d"/><w:basedOn w:val="Normal"/><w:next w:val="Normal"/><w:qFormat/><w:pPr><w:keepNext/><w:outlineLvl w:val="%d"/></w:pPr><w:rPr>%s</w:rPr></w:style>`,
			level, level, level-1, x.runProps(*st, x.d.body, false))
	}
	b.WriteString(`</w:styles>`)
	return b.String()
}

func (x *docxWriter) settings() string {
	even := ""
	if x.d.evenOdd {
		even = `<w:evenAndOddHeaders/>`
	}
	return xmlHead + `<w:settings xmlns:w="` + nsMain + `"><w:defaultTabStop w:val="720"/>` + even +
		`<w:characterSpacingControl w:val="doNotCompress"/>` +
		`<w:compat><w:compatSetting w:name="compatibilityMode" w:uri="http://schemas.microsoft.com/office/word" w:val="15"/></w:compat></w:settings>`
}

func (x *docxWriter) core() string {
	var b strings.Builder
	b.WriteString(xmlHead + `<cp:coreProperties xmlns:cp="` + nsPkg + `metadata/core-properties" xmlns:dc="http://purl.org/dc/elements/1.1/">`)
	for _, p := range []struct{ name, value string }{{"dc:creator", x.d.info.author}, {"dc:subject", x.d.info.subject}, {"dc:title", x.d.info.title}} {
		if p.value != "" {
			fmt.Fprintf(&b, `<%s>%s</%s>`, p.name, escape(p.value), p.name)
		}
	}
	b.WriteString(`</cp:coreProperties>`)
	return b.String()
}

func (x *docxWriter) contentTypes() string {
	var b strings.Builder
	b.WriteString(xmlHead + `<Types xmlns="` + nsPkg + `content-types">` +
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
