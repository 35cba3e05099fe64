package pptx

import (
	"fmt"
	"strings"

	"github.com/filewright/filewright/internal/ooxml"
)

// emptyTree is the start of the shapes of a slide.
const emptyTree = `<p:nvGrpSpPr><p:cNvPr id="1" name=""/><p:cNvGrpSpPr/><p:nvPr/></p:nvGrpSpPr><p:grpSpPr><a:xfrm><a:off x="0" y="0"/><a:ext cx="0" cy="0"/><a:chOff x="0" y="0"/><a:chExt cx="0" cy="0"/></a:xfrm></p:grpSpPr>`

// rest writes all parts but the slides and their pictures.
func (p *deck) rest() {
	var types, list strings.Builder
	types.WriteString(ooxml.Header + `<Types xmlns="` + ooxml.PackageNS + `content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" ContentType="application/xml"/>` +
		`<Default Extension="png" ContentType="image/png"/><Default Extension="jpg" ContentType="image/jpeg"/>`)
	override := func(name, mime string) {
		fmt.Fprintf(&types, `<Override PartName="/%s" ContentType="%s"/>`, name, mime)
	}
	override("ppt/presentation.xml", kind+"presentation.main+xml")
	override("ppt/slideMasters/slideMaster1.xml", kind+"slideMaster+xml")
	override("ppt/slideLayouts/slideLayout1.xml", kind+"slideLayout+xml")
	override("ppt/theme/theme1.xml", "application/vnd.openxmlformats-officedocument.theme+xml")
	override("docProps/core.xml", "application/vnd.openxmlformats-package.core-properties+xml")
	rels := [][3]string{{"slideMaster", "slideMasters/slideMaster1.xml"}, {"theme", "theme/theme1.xml"}}
	for i := range p.d.Sections {
		name := fmt.Sprintf("slides/slide%d.xml", i+1)
		override("ppt/"+name, kind+"slide+xml")
		rels = append(rels, [3]string{"slide", name})
		fmt.Fprintf(&list, `<p:sldId id="%d" r:id="rId%d"/>`, 256+i, len(rels))
	}
	types.WriteString(`</Types>`)
	p.add("ppt/presentation.xml", fmt.Sprintf(ooxml.Header+`<p:presentation`+rootNS+`><p:sldMasterIdLst><p:sldMasterId id="2147483648" r:id="rId1"/></p:sldMasterIdLst><p:sldIdLst>%s</p:sldIdLst><p:sldSz cx="%d" cy="%d"/><p:notesSz cx="6858000" cy="9144000"/></p:presentation>`, list.String(), emu(p.w), emu(p.h)))
	p.add("ppt/_rels/presentation.xml.rels", relationships(rels))
	const tree = `<p:cSld><p:bg><p:bgPr><a:solidFill><a:srgbClr val="FFFFFF"/></a:solidFill><a:effectLst/></p:bgPr></p:bg><p:spTree>` + emptyTree + `</p:spTree></p:cSld>`
	p.add("ppt/slideMasters/slideMaster1.xml", ooxml.Header+`<p:sldMaster`+rootNS+`>`+tree+`<p:clrMap bg1="lt1" tx1="dk1" bg2="lt2" tx2="dk2" accent1="accent1" accent2="accent2" accent3="accent3" accent4="accent4" accent5="accent5" accent6="accent6" hlink="hlink" folHlink="folHlink"/><p:sldLayoutIdLst><p:sldLayoutId id="2147483649" r:id="rId1"/></p:sldLayoutIdLst></p:sldMaster>`)
	p.add("ppt/slideMasters/_rels/slideMaster1.xml.rels", relationships([][3]string{{"slideLayout", "../slideLayouts/slideLayout1.xml"}, {"theme", "../theme/theme1.xml"}}))
	p.add("ppt/slideLayouts/slideLayout1.xml", ooxml.Header+`<p:sldLayout`+rootNS+` type="blank"><p:cSld name="Blank"><p:spTree>`+emptyTree+`</p:spTree></p:cSld><p:clrMapOvr><a:masterClrMapping/></p:clrMapOvr></p:sldLayout>`)
	p.add("ppt/slideLayouts/_rels/slideLayout1.xml.rels", relationships([][3]string{{"slideMaster", "../slideMasters/slideMaster1.xml"}}))
	p.add("ppt/theme/theme1.xml", theme())
	p.add("docProps/core.xml", fmt.Sprintf(ooxml.Header+`<cp:coreProperties xmlns:cp="`+ooxml.PackageNS+`metadata/core-properties" xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>%s</dc:title><dc:creator>%s</dc:creator><dc:subject>%s</dc:subject></cp:coreProperties>`,
		ooxml.Escape(p.d.Info.Title), ooxml.Escape(p.d.Info.Author), ooxml.Escape(p.d.Info.Subject)))
	p.add("_rels/.rels", relationships([][3]string{{"officeDocument", "ppt/presentation.xml"}, {"metadata/core-properties", "docProps/core.xml"}}))
	p.add("[Content_Types].xml", types.String())
}

// theme returns a plain theme; programs require one with all its parts (ECMA-376, part 1,
// 14.2.7 and 20.1.6.9).
func theme() string {
	var b strings.Builder
	b.WriteString(ooxml.Header + `<a:theme xmlns:a="` + nsDraw + `" name="Plain"><a:themeElements><a:clrScheme name="Plain">`)
	for _, c := range [][2]string{{"dk1", "000000"}, {"lt1", "FFFFFF"}, {"dk2", "333333"}, {"lt2", "EEEEEE"}, {"accent1", "4472C4"}, {"accent2", "ED7D31"}, {"accent3", "A5A5A5"}, {"accent4", "FFC000"}, {"accent5", "5B9BD5"}, {"accent6", "70AD47"}, {"hlink", "0563C1"}, {"folHlink", "954F72"}} {
		fmt.Fprintf(&b, `<a:%s><a:srgbClr val="%s"/></a:%[1]s>`, c[0], c[1])
	}
	const font = `<a:latin typeface="Arial"/><a:ea typeface=""/><a:cs typeface=""/>`
	const fill = `<a:solidFill><a:schemeClr val="phClr"/></a:solidFill>`
	const line = `<a:ln w="6350">` + fill + `</a:ln>`
	const effect = `<a:effectStyle><a:effectLst/></a:effectStyle>`
	b.WriteString(`</a:clrScheme><a:fontScheme name="Plain"><a:majorFont>` + font + `</a:majorFont><a:minorFont>` + font + `</a:minorFont></a:fontScheme><a:fmtScheme name="Plain">` +
		`<a:fillStyleLst>` + strings.Repeat(fill, 3) + `</a:fillStyleLst><a:lnStyleLst>` + strings.Repeat(line, 3) + `</a:lnStyleLst>` +
		`<a:effectStyleLst>` + strings.Repeat(effect, 3) + `</a:effectStyleLst><a:bgFillStyleLst>` + strings.Repeat(fill, 3) + `</a:bgFillStyleLst></a:fmtScheme></a:themeElements></a:theme>`)
	return b.String()
}
