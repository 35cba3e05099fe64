package hostile

import (
	"archive/zip"
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/png"
	"strings"

	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/specimen"
	"github.com/filewright/filewright/internal/tinypdf"
)

// Hidden is a text in the second half of every [Polyglot]. A result that
// contains it comes from a wrong interpretation of the file.
const Hidden = "hiddenpayload4711"

// A Polyglot is a file that can be interpreted as several formats.
type Polyglot struct {
	Name    string // without an extension
	Content []byte

	// Is is the format of the file by content, or "" if it is rejected under any
	// name.
	Is format.Format

	// Also lists the formats for which other programs could take it.
	Also []format.Format
}

// Polyglots returns files that are valid, or nearly so, in more than one format.
// Some are texts that act as scripts if a program treats them as pictures. The
// interpretation of a file must not depend on its name.
func Polyglots() []Polyglot {
	var out []Polyglot
	add := func(name string, content string, is format.Format, also ...format.Format) {
		out = append(out, Polyglot{Name: name, Content: []byte(content), Is: is, Also: also})
	}
	page := "<html><body><script>document.write('" + Hidden + "')</script>" + Hidden + "</body></html>"
	script := "/*" + page + "*/alert('" + Hidden + "')"
	archive := Zip("hidden.txt", Hidden, "hidden.html", page)
	shown := onePage("shown")
	hiddenPDF := onePage(Hidden)
	var pic, still bytes.Buffer
	if err := png.Encode(&pic, specimen.Picture(32, 32)); err != nil {
		panic(err) // impossible: writes only to memory
	}
	if err := gif.Encode(&still, image.NewPaletted(image.Rect(0, 0, 8, 8), color.Palette{color.White, color.Black}), nil); err != nil {
		panic(err)
	}

	add("pdf-then-zip", shown+archive, format.PDF, format.ZIP, format.DOCX, format.EPUB)
	add("zip-in-pdf-stream", strings.Replace(shown, "%%EOF", "%"+archive+"\n%%EOF", 1), format.PDF, format.ZIP)
	add("pdf-then-html", shown+page, format.PDF, format.HTML)
	add("png-then-pdf", pic.String()+hiddenPDF, format.PNG, format.PDF)
	add("png-then-zip", pic.String()+archive, format.PNG, format.ZIP, format.XLSX)
	add("pdf-in-png-text", pngWithText(pic.Bytes(), hiddenPDF[:200]), format.PNG, format.PDF)
	add("gif-then-script", still.String()+script, format.GIF, format.HTML, format.TXT, format.PDF)
	add("gif-script", "GIF89a/*\x00\x00\x00\x00\x00*/=1;"+script, format.GIF, format.HTML, format.TXT)
	add("gif-then-zip", still.String()+archive, format.GIF, format.ZIP, format.DOCX)
	add("jpeg-comment-html", "\xff\xd8\xff\xfe"+string(binary.BigEndian.AppendUint16(nil, uint16(len(page)+2)))+page+"\xff\xd9", format.JPG, format.HTML)
	add("bmp-script", "BM/*\x00\x00\x00\x00\x00*/=1;                 "+script, "", format.BMP, format.HTML, format.TXT)
	box := "\x00\x00\x00\x18ftypisom\x00\x00\x02\x00isommp42"
	add("mp4-with-html", box+string(binary.BigEndian.AppendUint32(nil, uint32(len(page)+8)))+"free"+page, format.MP4, format.HTML, format.TXT, format.PDF)
	add("mp3-tag-then-zip", "ID3\x03\x00\x00\x00\x00\x00\x00"+archive, format.MP3, format.ZIP, format.DOCX)
	add("mp3-tag-then-pdf", "ID3\x03\x00\x00\x00\x00\x00\x00"+hiddenPDF, format.MP3, format.PDF)
	add("flac-then-pdf", "fLaC"+hiddenPDF, format.FLAC, format.PDF)
	add("wav-with-pdf", "RIFF\xff\x00\x00\x00WAVEjunk"+hiddenPDF, format.WAV, format.PDF)
	add("avi-with-html", "RIFF\xff\x00\x00\x00AVI junk"+page, format.AVI, format.HTML)
	add("prefixed-zip", "MZ\x90\x00\x03\x00\x00\x00"+strings.Repeat("\x00\x01", 600)+archive, "", format.DOCX, format.EPUB, format.XLSX)
	add("shell-then-zip", "#!/bin/sh\necho "+Hidden+"\n"+archive, "", format.TXT)
	add("pdf-as-first-entry", storedFirst(hiddenPDF), format.ZIP, format.PDF)
	add("pdf-as-tar-entry", tarFirst(hiddenPDF), format.TAR, format.PDF)
	add("rtf-then-html", "{\\rtf1 shown}"+page, format.RTF, format.HTML)
	add("rtf-then-pdf", "{\\rtf1 shown}\n"+hiddenPDF, format.RTF, format.PDF)
	add("postscript-then-pdf", "%!PS-Adobe-3.0\n("+Hidden+") show\n"+hiddenPDF, format.PS, format.PDF, format.TXT)
	add("late-pdf-after-noise", strings.Repeat("\x01\x02", 500)+shown, format.PDF, format.JPG, format.MP3)
	add("too-late-pdf", strings.Repeat("\x01\x02", 600)+hiddenPDF, "", format.PDF)
	add("svg-in-zip", Zip("mimetype", "image/svg+xml", "hidden.svg", "<svg>"+Hidden+"</svg>"), format.ZIP, format.SVG, format.DOCX, format.ODT)
	add("matroska-html", "\x1a\x45\xdf\xa3"+page, format.MKV, format.HTML)
	add("webp-html", "RIFF\xff\x00\x00\x00WEBP"+page, format.WebP, format.HTML, format.WAV)
	add("old-office-html", "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"+strings.Repeat("\x00", 512)+page, "", format.DOC, format.HTML, format.XLS)
	add("gzip-then-zip", "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03"+archive, format.GZ, format.ZIP)
	add("icon-html", "\x00\x00\x01\x00\x01\x00\x10\x10\x00\x00\x01\x00\x20\x00\x68\x04\x00\x00\x16\x00\x00\x00"+page, format.ICO, format.HTML)

	// Texts that ImageMagick, librsvg and others accept as pictures.
	pictures := []format.Format{format.PNG, format.JPG, format.GIF, format.WebP, format.TIFF, format.BMP, format.ICO, format.PSD, format.HEIC, format.AVIF, format.JXL, format.JP2}
	for name, text := range map[string]string{
		"msl":        `<?xml version="1.0"?><image><read filename="/etc/passwd"/><write filename="` + Hidden + `.png"/></image>`,
		"mvg":        "push graphic-context\nviewbox 0 0 64 64\nimage over 0,0 0,0 'label:@/etc/passwd'\ntext 0,0 '" + Hidden + "'\npop graphic-context\n",
		"mvg-https":  "push graphic-context\nviewbox 0 0 64 64\nfill 'url(https://127.0.0.1/x.jpg\"|id; \")'\npop graphic-context\n",
		"postscript": "%!PS\n(" + Hidden + ") (w) file pop showpage\n",
		"eps":        "%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n(" + Hidden + ") show showpage\n",
		"playlist":   "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1.0,\nfile:///etc/passwd\n#EXT-X-ENDLIST\n",
		"xbm":        "#define x_width 8\n#define x_height 8\nstatic char x_bits[] = {0,0,0,0,0,0,0,0};\n",
		"svg":        `<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><text>` + Hidden + `</text></svg>`,
		"html":       page,
	} {
		is := map[string]format.Format{"postscript": format.PS, "eps": format.PS, "svg": format.SVG, "html": format.HTML, "msl": format.XML}[name]
		is = cmp.Or(is, format.TXT)
		also := pictures
		if is != format.PS && is != format.SVG {
			also = append(also[:len(also):len(also)], format.MP4, format.PDF, format.SVG, format.WAV)
		}
		add("text-"+name, text, is, also...)
	}
	return out
}

// onePage returns a PDF file that shows a word.
func onePage(word string) string {
	return pdfOf("<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>",
		"<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 100]/Contents 4 0 R/Resources<</Font<</F<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>>>>>",
		tinypdf.Stream("", "BT /F 12 Tf 10 50 Td ("+word+") Tj ET"))
}

// pngWithText returns a picture with a text chunk after its header.
func pngWithText(pic []byte, text string) string {
	chunk := "tEXtComment\x00" + text
	head := len("\x89PNG\r\n\x1a\n") + 25
	length := binary.BigEndian.AppendUint32(nil, uint32(len(chunk)-4))
	sum := binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE([]byte(chunk)))
	return string(pic[:head]) + string(length) + chunk + string(sum) + string(pic[head:])
}

// storedFirst returns an archive whose first entry is uncompressed.
func storedFirst(content string) string {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w, err := z.CreateHeader(&zip.FileHeader{Name: "a", Method: zip.Store})
	if err == nil {
		_, err = w.Write([]byte(content))
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		panic(err)
	}
	return b.String()
}

// tarFirst returns a tar file with one entry, whose name starts like a PDF file.
func tarFirst(content string) string {
	head := make([]byte, 512)
	copy(head, "%PDF-1.4 a.pdf")
	copy(head[100:], "0000644\x000000000\x000000000\x00")
	copy(head[124:], fmt.Sprintf("%011o\x00%011o\x00        0", len(content), 0))
	copy(head[257:], "ustar\x0000")
	sum := 0
	for _, c := range head {
		sum += int(c)
	}
	copy(head[148:], fmt.Sprintf("%06o\x00 ", sum))
	body := content + strings.Repeat("\x00", (512-len(content)%512)%512)
	return string(head) + body + strings.Repeat("\x00", 1024)
}
