package hostile

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/flate"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"

	"github.com/filewright/filewright/fileops"
)

// Bombs returns small files that require large resources: memory, time, pixels,
// pages or disk space. An engine must reject them, or process them within its
// limits.
func Bombs() []*fileops.File {
	var out []*fileops.File
	add := func(name, content string) { out = append(out, fileops.Bytes(name, []byte(content))) }
	entities := entityBomb()
	add("entities.svg", `<?xml version="1.0"?><!DOCTYPE svg [`+entities+`]><svg xmlns="http://www.w3.org/2000/svg" width="90" height="90"><text y="20">&l;</text></svg>`)
	add("large.svg", `<svg xmlns="http://www.w3.org/2000/svg" width="1000000" height="1000000"><rect width="9" height="9"/></svg>`)
	add("spaces.fodt", flatODF("text", `<office:text><text:p>x`+strings.Repeat(`<text:s text:c="2000000000"/>`, 4)+`</text:p></office:text>`))
	add("pixels.png", hugePNG())
	add("pixels.gif", "GIF89a\xff\xff\xff\xff\x80\x00\x00\x00\x00\x00\xff\xff\xff,\x00\x00\x00\x00\xff\xff\xff\xff\x00\x02\x02D\x01\x00;")
	add("pixels.bmp", "BM\x36\x00\x00\x00\x00\x00\x00\x00\x36\x00\x00\x00\x28\x00\x00\x00\x60\xea\x00\x00\x60\xea\x00\x00\x01\x00\x18\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00")
	nothing := zeros(64 << 20)
	add("zeros.zip", Zip("", "", "zeros", nothing))
	add("zeros.docx", Zip("[Content_Types].xml", "<Types/>", "word/document.xml", nothing))
	out = slices.Concat(out, pictureBombs(), pdfBombs(), archiveBombs(), officeBombs(entities), textBombs(entities), mediaBombs())
	return out
}

// entityBomb returns declarations in which &l; expands to ten billion
// characters.
func entityBomb() string {
	var entities strings.Builder
	entities.WriteString(`<!ENTITY a "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa">`)
	for c := 'b'; c < 'm'; c++ {
		fmt.Fprintf(&entities, `<!ENTITY %c "%s">`, c, strings.Repeat(fmt.Sprintf("&%c;", c-1), 10))
	}
	return entities.String()
}

// archiveBombs returns archives with a large unpacked size, real or claimed.
func archiveBombs() []*fileops.File {
	var out []*fileops.File
	add := func(name, content string) { out = append(out, fileops.Bytes(name, []byte(content))) }
	inner := Zip("", "", "0", zeros(16<<20))
	for range 4 { // sixteen files each, four levels deep
		var files []string
		for i := range 16 {
			files = append(files, fmt.Sprint(i, ".zip"), inner)
		}
		inner = Zip(files...)
	}
	add("nested.zip", inner)
	add("overlap.zip", overlapping(500, 21<<20))
	add("same.zip", sameData(2000))
	var many []string
	for i := range 12000 {
		many = append(many, fmt.Sprint(i), "")
	}
	add("entries.zip", Zip(many...))
	// The directory has wrong sizes.
	lies := []byte(Zip("a", "text\n", "b.txt", strings.Repeat("text\n", 100)))
	for i := range len(lies) - 28 {
		if string(lies[i:i+4]) == "PK\x01\x02" {
			copy(lies[i+20:], "\xff\xff\xff\x7f\xff\xff\xff\x7f")
		}
	}
	add("lies.zip", string(lies))
	add("wide.zip", zip64Lies())
	add("end.zip", "PK\x05\x06\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00")
	folder := strings.Repeat("a/", 30000)
	add("deep.zip", Zip(folder+"x", "x", folder+"y", "y"))

	header := func(h tar.Header, content string) string {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		h.Mode = 0o644
		if err := w.WriteHeader(&h); err != nil {
			panic(err) // impossible: it was built here
		}
		b.WriteString(content)
		return b.String()
	}
	add("size.tar", header(tar.Header{Name: "a", Typeflag: tar.TypeReg, Size: 1 << 60, Format: tar.FormatGNU}, "text\n"))
	// Sparse files: a map of holes, and a map without data.
	sparse := []byte(header(tar.Header{Name: "a", Typeflag: tar.TypeReg, Size: 512, Format: tar.FormatGNU}, strings.Repeat("x", 512)+zeros(1024)))
	sparse[156] = 'S'
	copy(sparse[386:], "00077777777\x0000000001000\x00") // offset and length
	copy(sparse[483:], "\x80\x00\x00\x00\x10\x00\x00\x00\x00\x00\x00\x00")
	tarSum(sparse)
	add("sparse.tar", string(sparse))
	records := paxRecord("GNU.sparse.major", "1") + paxRecord("GNU.sparse.minor", "0") + paxRecord("GNU.sparse.name", "a") + paxRecord("GNU.sparse.realsize", "1099511627776")
	pax := []byte(header(tar.Header{Name: "p", Typeflag: tar.TypeReg, Size: int64(len(records)), Format: tar.FormatGNU}, pad(records, 512)))
	pax[156] = 'x'
	tarSum(pax)
	add("pax.tar", string(pax)+header(tar.Header{Name: "a", Typeflag: tar.TypeReg, Size: 512, Format: tar.FormatGNU}, pad("1\n1099511627775\n1\n", 512)+zeros(1024)))
	var headers strings.Builder
	one := header(tar.Header{Name: "a", Typeflag: tar.TypeReg, Format: tar.FormatGNU}, "")
	for range 11000 {
		headers.WriteString(one)
	}
	add("entries.tar.gz", gzipped(headers.String()+zeros(1024)))
	add("records.tar.gz", gzipped(func() string {
		long := paxRecord("comment", zeros(32<<20))
		b := []byte(header(tar.Header{Name: "p", Typeflag: tar.TypeReg, Size: int64(len(long)), Format: tar.FormatGNU}, ""))
		b[156] = 'x'
		tarSum(b)
		return string(b) + long + zeros(1024)
	}()))
	add("zeros.tar.gz", gzipRepeated(header(tar.Header{Name: "a", Typeflag: tar.TypeReg, Size: 8 << 30, Format: tar.FormatGNU}, ""), zeros(1<<20), 500))
	add("zeros.gz", gzipRepeated("", zeros(1<<20), 1000))
	add("members.gz", strings.Repeat(gzipped(""), 20000)+gzipped("x"))
	// Zstandard frames: a window of nearly 4 TiB, and blocks that repeat one byte.
	add("window.zst", "\x28\xb5\x2f\xfd\x00\xff\x01\x00\x00")
	add("zeros.zst", "\x28\xb5\x2f\xfd\x00\x58"+strings.Repeat("\x02\x00\x10\x00", 30000)+"\x03\x00\x10\x00") // 128 KiB each
	// XZ: a dictionary of 4 GiB.
	block := "\x02\x00\x21\x01\x28\x00\x00\x00"
	xz := "\xfd7zXZ\x00\x00\x01" + sum32("\x00\x01") + block + sum32(block) + strings.Repeat("\x01\xff\xffx", 9) + "\x00\x00\x00\x00"
	add("dictionary.xz", xz)
	add("blocks.bz2", "BZh9\x31\x41\x59\x26\x53\x59"+strings.Repeat("\xff", 200)+"\x17\x72\x45\x38\x50\x90\x00\x00\x00\x00")
	next := "\x17\x06\xe0\x80\x80\x80\x80\x80\x80\x80\x7f\xff\xff\xff\xff\xff"
	start := "\x00\x00\x00\x00\x00\x00\x00\x00" + string(binary.LittleEndian.AppendUint64(nil, uint64(len(next)))) + sum32(next)
	add("header.7z", "7z\xbc\xaf\x27\x1c\x00\x04"+sum32(start)+start+next)
	files := "\x01\x04\x06\x00\x01\x09\xff\xff\xff\xff\xff\xff\xff\xff\x7f\x00\x05\xff\xff\xff\xff\xff\xff\xff\xff\x7f\x00\x00"
	start = "\x00\x00\x00\x00\x00\x00\x00\x00" + string(binary.LittleEndian.AppendUint64(nil, uint64(len(files)))) + sum32(files)
	add("files.7z", "7z\xbc\xaf\x27\x1c\x00\x04"+sum32(start)+start+files)
	rar := "Rar!\x1a\x07\x01\x00"
	for _, h := range []string{"\x01\x00\x00", "\x02\x02\xff\xff\xff\xff\xff\xff\xff\xff\x7f\x00\xff\xff\xff\xff\xff\xff\xff\xff\x7f\x00\x80\x7f\x01\x01a"} {
		h = string(binary.AppendUvarint(nil, uint64(len(h)))) + h
		rar += sum32(h) + h
	}
	add("sizes.rar", rar)
	return out
}

func sum32(s string) string {
	return string(binary.LittleEndian.AppendUint32(nil, crc32.ChecksumIEEE([]byte(s))))
}

// gzipRepeated returns gzip data that decompresses to head and n times s. The
// size in its trailer is wrong.
func gzipRepeated(head, s string, n int) string {
	compress := func(s string) string {
		var b bytes.Buffer
		w, err := flate.NewWriter(&b, flate.BestCompression)
		if err == nil {
			_, err = w.Write([]byte(s))
		}
		if err == nil {
			err = w.Flush()
		}
		if err != nil {
			panic(err) // impossible: writes only to memory
		}
		return b.String()
	}
	return "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff" + compress(head) + strings.Repeat(compress(s), n) + "\x03\x00" + zeros(8)
}

// tarSum sets the checksum of the header at the start of b.
func tarSum(b []byte) {
	copy(b[148:156], "        ")
	n := 0
	for _, c := range b[:512] {
		n += int(c)
	}
	copy(b[148:156], fmt.Sprintf("%06o\x00 ", n))
}

// paxRecord returns a record of an extended header. Its length field counts
// itself.
func paxRecord(key, value string) string {
	rest := len(key) + len(value) + 3
	n := rest + len(fmt.Sprint(rest))
	n = rest + len(fmt.Sprint(n))
	return fmt.Sprintf("%d %s=%s\n", n, key, value)
}

// A zipEntry is an entry in the directory of an archive.
type zipEntry struct {
	name                 string
	method               uint16
	sum                  uint32
	packed, size, offset uint32
}

func (e zipEntry) local() []byte {
	le := binary.LittleEndian
	b := []byte("PK\x03\x04\x14\x00\x00\x00")
	b = le.AppendUint32(le.AppendUint16(b, e.method), 0x21<<16)
	b = le.AppendUint32(le.AppendUint32(le.AppendUint32(b, e.sum), e.packed), e.size)
	return append(le.AppendUint16(le.AppendUint16(b, uint16(len(e.name))), 0), e.name...)
}

func directory(entries []zipEntry, start int) []byte {
	le := binary.LittleEndian
	var b []byte
	for _, e := range entries {
		b = append(b, "PK\x01\x02\x14\x00\x14\x00\x00\x00"...)
		b = le.AppendUint32(le.AppendUint16(b, e.method), 0x21<<16)
		b = le.AppendUint32(le.AppendUint32(le.AppendUint32(b, e.sum), e.packed), e.size)
		b = le.AppendUint16(b, uint16(len(e.name)))
		b = append(b, make([]byte, 12)...)
		b = append(le.AppendUint32(b, e.offset), e.name...)
	}
	n := len(b)
	b = append(b, "PK\x05\x06\x00\x00\x00\x00"...)
	b = le.AppendUint16(le.AppendUint16(b, uint16(len(entries))), uint16(len(entries)))
	b = le.AppendUint32(le.AppendUint32(b, uint32(n)), uint32(start))
	return append(b, 0, 0)
}

// overlapping returns an archive whose files share one kernel of zeros. Each
// file quotes the header of the next in a stored block and continues with that
// file (D. Fifield, A better zip bomb, 2019).
func overlapping(n int, size int) string {
	// From the last file, which is only the kernel, to the first.
	entries := make([]zipEntry, n)
	data, content := []byte(deflated(zeros(size))), []byte(zeros(size))
	sum := crc32.ChecksumIEEE(content)
	unpacked := uint32(size)
	var local []byte
	for i := n - 1; i >= 0; i-- {
		if i < n-1 {
			quote := []byte{0, byte(len(local)), byte(len(local) >> 8), ^byte(len(local)), ^byte(len(local) >> 8)}
			data = slices.Concat(quote, local, data)
			unpacked += uint32(len(local))
			if i == 0 { // one correct checksum is enough: readers that verify it do so at the end
				sum = crc32.ChecksumIEEE(content)
			}
		}
		entries[i] = zipEntry{name: fmt.Sprint(i), method: 8, sum: sum, packed: uint32(len(data)), size: unpacked}
		local = entries[i].local()
	}
	out := slices.Concat(local, data)
	for i, at := 0, 0; i < n; i++ {
		entries[i].offset = uint32(at)
		at += len(entries[i].local()) + 5
	}
	return string(append(out, directory(entries, len(out))...))
}

// sameData returns an archive of n files at the same offset.
func sameData(n int) string {
	content := zeros(8 << 20)
	data := deflated(content)
	e := zipEntry{name: "a", method: 8, sum: crc32.ChecksumIEEE([]byte(content)), packed: uint32(len(data)), size: uint32(len(content))}
	out := append(e.local(), data...)
	return string(append(out, directory(slices.Repeat([]zipEntry{e}, n), len(out))...))
}

// zip64Lies returns an archive with 64-bit sizes larger than any disk.
func zip64Lies() string {
	le := binary.LittleEndian
	wide := le.AppendUint64(le.AppendUint64(le.AppendUint16(le.AppendUint16(nil, 1), 24), 1<<62), 5)
	wide = le.AppendUint64(wide, 0)
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w, err := z.CreateRaw(&zip.FileHeader{Name: "a", Method: zip.Deflate, CompressedSize64: 5, UncompressedSize64: 1 << 62, Extra: nil})
	if err == nil {
		_, err = w.Write([]byte("\x00\x00\x00\xff\xff"))
	}
	if err == nil {
		w, err = z.CreateRaw(&zip.FileHeader{Name: "b", Method: zip.Store, CompressedSize64: 1 << 62, UncompressedSize64: 1 << 62, Extra: wide})
	}
	if err == nil {
		_, err = w.Write([]byte("text\n"))
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		panic(err) // impossible: writes only to memory
	}
	return b.String()
}

// officeBombs returns documents with excessive repetition, nesting or counts.
func officeBombs(entities string) []*fileops.File {
	var out []*fileops.File
	add := func(name, content string) { out = append(out, fileops.Bytes(name, []byte(content))) }
	doctype := `<!DOCTYPE d [` + entities + `]>`
	add("entities.docx", ooxml("docx", "", doctype+`<w:p><w:r><w:t>&l;</w:t></w:r></w:p>`, nil))
	add("entities.xlsx", ooxml("xlsx", "", doctype+`<sheet name="&l;" sheetId="1" r:id="s"/>`, nil))
	add("entities.pptx", ooxml("pptx", "", doctype+`&l;`, nil))
	add("entities.odt", odfPackage("text", `<?xml version="1.0"?>`+doctype+`<office:document-content `+odfNamespaces+`><office:body><office:text><text:p>&l;</text:p></office:text></office:body></office:document-content>`))
	add("entities.fodt", `<?xml version="1.0"?>`+doctype+`<office:document `+odfNamespaces+` office:mimetype="application/vnd.oasis.opendocument.text"><office:body><office:text><text:p>&l;</text:p></office:text></office:body></office:document>`)
	add("cells.fods", flatODF("spreadsheet", `<office:spreadsheet><table:table table:name="t"><table:table-row table:number-rows-repeated="2147483647"><table:table-cell table:number-columns-repeated="2147483647"/></table:table-row></table:table></office:spreadsheet>`))
	add("spaces.odt", odfPackage("text", strings.NewReplacer("office:document ", "office:document-content ", "office:document>", "office:document-content>").Replace(odfDocument("text", "", `<text:p>x`+strings.Repeat(`<text:s text:c="2000000000"/>`, 4)+`</text:p>`))))
	strs := `<sst xmlns="` + spreadsheetML + `" count="2147483647" uniqueCount="2147483647"><si><t>` + strings.Repeat("x", 32<<20) + `</t></si></sst>`
	row := `<row r="1048576">` + strings.Repeat(`<c r="XFD1048576" t="s"><v>0</v></c>`, 1000) + `</row>`
	add("strings.xlsx", ooxml("xlsx", "", `<sheet name="s" sheetId="1" r:id="sheet"/>`, []string{"sheet|" + officeRel + "worksheet|sheet.xml", "strings|" + officeRel + "sharedStrings|sharedStrings.xml"},
		"xl/sheet.xml", `<worksheet xmlns="`+spreadsheetML+`"><dimension ref="A1:XFD1048576"/><sheetData>`+row+`</sheetData><mergeCells><mergeCell ref="A1:XFD1048576"/></mergeCells></worksheet>`, "xl/sharedStrings.xml", strs))
	add("deep.docx", ooxml("docx", "", strings.Repeat(`<w:sdt><w:sdtContent>`, 20000)+`<w:p/>`+strings.Repeat(`</w:sdtContent></w:sdt>`, 20000), nil))
	add("nested.rtf", `{\rtf1 `+strings.Repeat("{", 500000)+"x"+strings.Repeat("}", 500000)+"}")
	add("binary.rtf", `{\rtf1 {\pict\pngblip\picw2147483647\pich2147483647\bin2147483647 x}{\object\objw2147483647{\*\objdata `+strings.Repeat("00", 1000)+`}}\par}`)
	compound := []byte("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + zeros(16) + "\x3e\x00\x03\x00\xfe\xff\x09\x00\x06\x00" + zeros(6) + strings.Repeat("\xff\xff\xff\x7f", 2) + "\x00\x00\x00\x00" + zeros(4) + "\x00\x10\x00\x00\x00\x00\x00\x00\xff\xff\xff\x7f\x00\x00\x00\x00\xff\xff\xff\x7f" + zeros(436))
	for _, ext := range []string{"doc", "xls", "ppt"} {
		add("chains."+ext, string(compound)+zeros(2048))
	}
	return out
}

// textBombs returns texts with excessive nesting.
func textBombs(entities string) []*fileops.File {
	var out []*fileops.File
	add := func(name, content string) { out = append(out, fileops.Bytes(name, []byte(content))) }
	add("arrays.json", strings.Repeat("[", 500000)+strings.Repeat("]", 500000))
	add("objects.json", strings.Repeat(`{"a":`, 200000)+"1"+strings.Repeat("}", 200000))
	add("number.json", `[{"a":1e999999999,"b":`+strings.Repeat("9", 300000)+`}]`)
	add("keys.json", "["+func() string {
		var b strings.Builder
		for i := range 3000 {
			fmt.Fprintf(&b, `{"k%d":1},`, i)
		}
		return b.String()
	}()+"{}]")
	add("columns.csv", strings.Repeat(",", 200000)+"\n"+strings.Repeat("a\n", 2000))
	add("quotes.csv", `"`+strings.Repeat(`""`, 500000))
	add("line.txt", strings.Repeat("x", 1<<20))
	add("marks.txt", "a"+strings.Repeat("\u0301\u0489", 50000)+strings.Repeat("\ufdfa", 20000))
	add("quoted.md", strings.Repeat(">", 3000)+"x\n\n"+strings.Repeat("- ", 2000)+"x\n")
	add("brackets.md", strings.Repeat("[", 4000)+strings.Repeat("](", 4000)+"\n\n"+strings.Repeat("*_", 4000)+"\n\n"+strings.Repeat("`", 4000)+"\n")
	add("spans.html", `<html><body><table><tr><td colspan="1000000000" rowspan="1000000000">x</td></tr></table><ol start="2147483647"><li>x</ol><p style="font-size:1e30px;width:1e30px;height:1e9px;columns:1e9">x</p></body></html>`)
	add("divs.html", `<html><body>`+strings.Repeat("<div>", 100000)+"x</body></html>")
	add("attributes.html", `<html><body><p `+strings.Repeat("a ", 200000)+`>x</p></body></html>`)
	add("entities.html", `<!DOCTYPE html [`+entities+`]><html><body>&l;</body></html>`)
	add("entities.epub", Zip("mimetype", "application/epub+zip",
		"META-INF/container.xml", `<?xml version="1.0"?><container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles><rootfile full-path="content.opf" media-type="application/oebps-package+xml"/></rootfiles></container>`,
		"content.opf", `<?xml version="1.0"?><!DOCTYPE p [`+entities+`]><package xmlns="http://www.idpf.org/2007/opf" version="3.0"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>&l;</dc:title></metadata><manifest><item id="a" href="a.xhtml" media-type="application/xhtml+xml"/></manifest><spine>`+strings.Repeat(`<itemref idref="a"/>`, 300)+`</spine></package>`,
		"a.xhtml", `<html xmlns="http://www.w3.org/1999/xhtml"><body><p>`+strings.Repeat("x ", 10000)+`</p></body></html>`))
	return out
}

// mediaBombs returns recordings whose headers claim more than the file contains.
func mediaBombs() []*fileops.File {
	var out []*fileops.File
	add := func(name, content string) { out = append(out, fileops.Bytes(name, []byte(content))) }
	le := binary.LittleEndian
	add("channels.wav", "RIFF\xff\xff\xff\xffWAVEfmt \x10\x00\x00\x00\x01\x00\xff\xff\xff\xff\xff\x7f\xff\xff\xff\xff\xff\xff\x20\x00data\xff\xff\xff\x7f"+zeros(400))
	add("rate.wav", "RIFF\xff\xff\xff\xffWAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x01\x00\x00\x00\x02\x00\x00\x00\x02\x00\x10\x00data\x00\x00\x10\x00"+zeros(1<<20))
	add("boxes.mp4", box("ftyp", "isom\x00\x00\x00\x00isom")+box("moov", "\x7f\xff\xff\xfftrak"+strings.Repeat("\x00\x00\x00\x08moov", 2000)))
	samples := box("stsz", zeros(4), "\x00\x00\x00\x01\x7f\xff\xff\xff") + box("stts", zeros(4), "\x00\x00\x00\x01\x7f\xff\xff\xff\x7f\xff\xff\xff") + box("stsc", zeros(4), "\x00\x00\x00\x01\x00\x00\x00\x01\x7f\xff\xff\xff\x00\x00\x00\x01") + box("stco", zeros(4), "\x0f\xff\xff\xff"+zeros(64)) +
		box("stsd", zeros(4), "\x00\x00\x00\x01", box("avc1", zeros(6), "\x00\x01", zeros(16), "\xff\xff\xff\xff", zeros(50)))
	add("samples.mp4", box("ftyp", "isom\x00\x00\x00\x00isom")+box("moov", box("trak", box("mdia", box("mdhd", zeros(12), "\x00\x00\x00\x01\x7f\xff\xff\xff", zeros(4)), box("hdlr", zeros(4), zeros(4), "vide", zeros(13)), box("minf", box("stbl", samples))))))
	add("picture.avi", riff("RIFF", "AVI ", riff("LIST", "hdrl", riff("avih", zeros(56)),
		riff("LIST", "strl", riff("strh", "vidsMJPG", zeros(48)), riff("strf", string(le.AppendUint32(le.AppendUint32(le.AppendUint32(nil, 40), 60000), 60000))+"\x01\x00\x18\x00MJPG"+zeros(20)))),
		riff("LIST", "movi", strings.Repeat(riff("00dc", "\xff\xd8\xff\xc0\x00\x0b\x08\xea\x60\xea\x60\x01\x01\x11\x00\xff\xda\x00\x08\x01\x01\x00\x00\x3f\x00\xff\xd9"), 50))))
	add("sizes.mkv", "\x1a\x45\xdf\xa3\x84\x42\x82\x81\x00\x18\x53\x80\x67\x01\x7f\xff\xff\xff\xff\xff\xff"+strings.Repeat("\x1f\x43\xb6\x75\x01\x7f\xff\xff\xff\xff\xff\xff", 1000))
	return out
}

// SlowBombs returns documents that keep an engine busy until its timeout.
func SlowBombs() []*fileops.File {
	return []*fileops.File{
		fileops.Bytes("repeated.fods", []byte(flatODF("spreadsheet", `<office:spreadsheet><table:table table:name="t"><table:table-row table:number-rows-repeated="1000000"><table:table-cell table:number-columns-repeated="1000" office:value-type="float" office:value="1"><text:p>1</text:p></table:table-cell></table:table-row></table:table></office:spreadsheet>`))),
		// Few enough cells to pass most limits.
		fileops.Bytes("many.fods", []byte(flatODF("spreadsheet", `<office:spreadsheet><table:table table:name="t"><table:table-row table:number-rows-repeated="1000000"><table:table-cell table:number-columns-repeated="9" office:value-type="float" office:value="1"><text:p>1</text:p></table:table-cell></table:table-row></table:table></office:spreadsheet>`))),
		// LibreOffice needs minutes for this. It soon refuses 2000 tables or more.
		fileops.Bytes("nested.html", []byte(strings.Repeat("<table><tr><td>", 1000)+"x")),
	}
}
