package format_test

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/filewright/filewright/fileops/fileopstest"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/systest"
)

// A sample of every format is recognized. This includes readers with short reads
// and readers that return an error at the end.
func TestSniffSamples(t *testing.T) {
	t.Parallel()
	for f := range format.Known() {
		switch f {
		case format.AMR, format.PS, format.TAR, format.TarGZ, format.GZ, format.SevenZip, format.RAR,
			format.TarBZ2, format.TarXZ, format.TarZst, format.BZ2, format.XZ, format.Zst, format.TarLZ4, format.TarLZMA, format.TarLZ:
			continue // built by hand below
		}
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			b, err := fileopstest.Sample(t, f).ReadAll(1 << 30)
			systest.NoError(t, err)
			r := bytes.NewReader(b)
			systest.Check(t, format.Check(f, r, r.Size()))
			// Other names are rejected, unless they mean the same format.
			got := format.Sniff(r, r.Size())
			for other := range format.Known() {
				err := format.Check(other, r, r.Size())
				var m *format.MismatchError
				if err != nil && (!errors.As(err, &m) || m.Want != other || m.Got != got) {
					t.Errorf("named .%s: got %v, sniffed %q", other, err, got)
				}
				if err == nil && other.Family() != f.Family() && !related(other, f) {
					t.Errorf("it is accepted as %s", other)
				}
			}
			// Only the start is damaged.
			broken := bytes.Clone(b)
			rng := rand.New(rand.NewPCG(1, uint64(len(b))))
			for i := range min(len(broken), 16<<10) {
				broken[i] = byte(rng.Uint32())
			}
			if f != format.TS && f != format.MPEG && f != format.ISO { // no header at the start
				if got := format.Sniff(bytes.NewReader(broken), int64(len(broken))); got == f {
					t.Errorf("random bytes are taken for %s", got)
				}
			}
		})
	}
}

// related reports whether files of format b may be named a although the families
// differ.
func related(a, b format.Format) bool {
	text := func(f format.Format) bool {
		return strings.HasPrefix(f.MIME(), "text/") || f == format.JSON || f == format.JSONL || f == format.XML || f == format.SVG || f == format.TeX || f == format.FB2 || f == format.EML || f == format.SRT || strings.HasPrefix(string(f), "fod")
	}
	archive := func(f format.Format) bool {
		return strings.Contains(f.MIME(), "openxml") || strings.Contains(f.MIME(), "opendocument") && !strings.HasPrefix(string(f), "fod") || f == format.EPUB ||
			f == format.VSDX || strings.Contains(f.MIME(), "vnd.apple") || strings.Contains(f.MIME(), "macroenabled")
	}
	media := func(f format.Format) bool { return f.Family() == format.Audio || f.Family() == format.Video }
	return text(a) && text(b) || a == format.ZIP && archive(b) || media(a) && media(b)
}

func be32(n int) string { return string(binary.BigEndian.AppendUint32(nil, uint32(n))) }

// ftyp returns the first boxes of an ISO base media file.
func ftyp(major string, compatible ...string) string {
	brands := strings.Join(compatible, "")
	return be32(16+len(brands)) + "ftyp" + major + "\x00\x00\x02\x00" + brands + be32(16) + "mdat12345678"
}

// frames returns n frames of size bytes that start with header.
func frames(header string, size, n int) string {
	return strings.Repeat(header+strings.Repeat("\x55", size-len(header)), n)
}

// packets returns transport stream packets.
func packets(prefix string, n int) string {
	return strings.Repeat(prefix+"\x47\x40\x00\x10"+strings.Repeat("\xff", 184), n)
}

// archive returns a ZIP archive of pairs of name and content. flags and method
// apply to the first entry.
func archive(t testing.TB, method uint16, pairs ...string) string {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := 0; i < len(pairs); i += 2 {
		m := zip.Deflate
		if i == 0 {
			m = method
		}
		// A writer that cannot seek puts the sizes after the data.
		w, err := z.CreateHeader(&zip.FileHeader{Name: pairs[i], Method: m})
		systest.NoError(t, err)
		if _, err := io.WriteString(w, pairs[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	systest.NoError(t, z.Close())
	return b.String()
}

func utf16Text(order binary.AppendByteOrder, s string) string {
	b := order.AppendUint16(nil, 0xfeff)
	for _, u := range utf16.Encode([]rune(s)) {
		b = order.AppendUint16(b, u)
	}
	return string(b)
}

func random(n int, seed uint64) string {
	rng := rand.New(rand.NewPCG(seed, 7))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return string(b)
}

// An entry is a directory entry of a compound file. Its children are indices.
type entry struct {
	name               string
	left, right, child int // 0 means none
}

// compoundOf builds a compound file ([MS-CFB]) from a directory. The directory
// is in the given sectors. They can be anywhere, even beyond the part of the
// allocation table that the header lists.
func compoundOf(shift int, dirSectors []int, entries ...entry) string {
	le := binary.LittleEndian
	size := 1 << shift
	per := size / 4
	last := 0
	for _, s := range dirSectors {
		last = max(last, s)
	}
	tables := last/per + 1
	// Sectors: the directory at the requested place, then the tables, then the
	// chain that lists tables beyond 109.
	lists := 0
	if tables > 109 {
		lists = (tables-109-1)/(per-1) + 1
	}
	b := make([]byte, (1+last+1+tables+lists)*size)
	sector := func(n int) []byte { return b[(n+1)*size : (n+2)*size] }
	copy(b, "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")
	le.PutUint16(b[24:], 0x3e)
	le.PutUint16(b[26:], uint16(shift/4+1))
	le.PutUint16(b[28:], 0xfffe)
	le.PutUint16(b[30:], uint16(shift))
	le.PutUint32(b[44:], uint32(tables))
	le.PutUint32(b[48:], uint32(dirSectors[0]))
	le.PutUint32(b[68:], 0xfffffffe)
	for i := range 109 {
		le.PutUint32(b[76+4*i:], 0xffffffff)
	}
	for i := range tables {
		table := last + 1 + i
		for j := range per {
			le.PutUint32(sector(table)[4*j:], 0xffffffff)
		}
		if i < 109 {
			le.PutUint32(b[76+4*i:], uint32(table))
			continue
		}
		l := (i - 109) / (per - 1)
		le.PutUint32(sector(last + 1 + tables + l)[4*((i-109)%(per-1)):], uint32(table))
	}
	for l := range lists {
		at := last + 1 + tables + l
		if l == 0 {
			le.PutUint32(b[68:], uint32(at))
		}
		le.PutUint32(sector(at)[size-4:], uint32(at+1))
	}
	for i, s := range dirSectors {
		next := uint32(0xfffffffe)
		if i+1 < len(dirSectors) {
			next = uint32(dirSectors[i+1])
		}
		le.PutUint32(sector(last + 1 + s/per)[4*(s%per):], next)
	}
	link := func(n int) uint32 {
		if n == 0 {
			return 0xffffffff
		}
		return uint32(n)
	}
	for i, e := range entries {
		d := sector(dirSectors[i*128/size])[i*128%size:][:128]
		u := utf16.Encode([]rune(e.name))
		for j, c := range u {
			le.PutUint16(d[2*j:], c)
		}
		le.PutUint16(d[64:], uint16(2*len(u)+2))
		d[66] = 2
		if i == 0 {
			d[66] = 5
		}
		le.PutUint32(d[68:], link(e.left))
		le.PutUint32(d[72:], link(e.right))
		le.PutUint32(d[76:], link(e.child))
	}
	return string(b)
}

func TestSniff(t *testing.T) {
	t.Parallel()
	pdf := "%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n<<>>\nendobj\n"
	// 128 kbit/s, 44100 Hz: 417 bytes per frame.
	mp3 := frames("\xff\xfb\x90\x00", 417, 4)
	// ADTS with a length of 256.
	aac := frames("\xff\xf1\x50\x80\x20\x1f\xfc", 256, 4)
	asf := "\x30\x26\xb2\x75\x8e\x66\xcf\x11\xa6\xd9\x00\xaa\x00\x62\xce\x6c" + strings.Repeat("\x00", 100)
	asfStream := func(kind string) string {
		return "\x91\x07\xdc\xb7\xb7\xa9\xcf\x11\x8e\xe6\x00\xc0\x0c\x20\x53\x65" + strings.Repeat("\x00", 8) + kind
	}
	const (
		asfAudio = "\x40\x9e\x69\xf8\x4d\x5b\xcf\x11\xa8\xfd\x00\x80\x5f\x5c\x44\x2b"
		asfVideo = "\xc0\xef\x19\xbc\x4d\x5b\xcf\x11\xa8\xfd\x00\x80\x5f\x5c\x44\x2b"
		svg      = `<svg xmlns="http://www.w3.org/2000/svg"/>`
		odtType  = "application/vnd.oasis.opendocument.text"
	)
	root := entry{name: "Root Entry", child: 1}
	for _, tt := range []struct {
		name, content string
		want          format.Format
		fine          []format.Format // allowed extensions
		wrong         []format.Format // rejected extensions
	}{
		{"nothing", "", "", []format.Format{format.TXT, format.CSV, format.MD, format.JSON, "xyz"}, []format.Format{format.PDF, format.PNG, format.SVG, format.MP3, format.ZIP}},
		{"random", random(20000, 1), "", []format.Format{"xyz"}, []format.Format{format.PDF, format.PNG, format.TXT, format.DOCX}},
		{"random and short", random(300, 2), "", nil, []format.Format{format.TXT, format.JPG}},
		{"zeros", strings.Repeat("\x00", 5000), "", nil, []format.Format{format.TXT, format.BMP, format.ICO}},

		{"pdf", pdf, format.PDF, []format.Format{format.PDF}, []format.Format{format.PNG, format.TXT, format.DOCX}},
		{"pdf behind junk", "HTTP/1.1 200 OK\r\nContent-Type: application/pdf\r\n\r\n" + pdf, format.PDF, []format.Format{format.PDF}, nil},
		{"pdf behind a byte order mark", "\ufeff" + pdf, format.PDF, []format.Format{format.PDF}, nil},
		{"pdf too far behind", strings.Repeat("\x00", 1024) + pdf, "", nil, []format.Format{format.PDF}},
		{"text about pdf", "A file that begins with %PDF-1.7 is a PDF.\n", format.PDF, []format.Format{format.TXT, format.MD, format.HTML}, []format.Format{format.SVG, format.DOCX}},
		{"text about gif", "GIF89a is the name of the second version.\n", format.GIF, []format.Format{format.TXT, format.MD}, []format.Format{format.PNG, format.PDF}},
		{"text that begins like an atom", "The free encyclopedia" + strings.Repeat(" is free", 20), format.TXT, []format.Format{format.TXT}, []format.Format{format.MOV, format.MP4}},
		{"text that begins like a tag", "ID3 is a tag format of music files.\n", format.TXT, []format.Format{format.TXT}, []format.Format{format.MP3}},
		{"postscript", "%!PS-Adobe-3.0\nshowpage\n", format.PS, []format.Format{format.PS}, []format.Format{format.TXT, format.PDF}},
		{"eps with preview", "\xc5\xd0\xd3\xc6" + strings.Repeat("\x00", 30), format.PS, []format.Format{format.PS}, nil},
		{"rtf", `{\rtf1 x}`, format.RTF, []format.Format{format.RTF}, []format.Format{format.TXT, format.DOCX}},

		{"ascii", "hello\n", format.TXT, []format.Format{format.TXT, format.MD, format.CSV, format.TSV, format.JSON, format.HTML, format.XML}, []format.Format{format.PNG, format.PDF, format.SVG, format.MP3, format.RTF}},
		{"utf-8", "Äpfel, 日本語, 😀\n", format.TXT, []format.Format{format.TXT}, []format.Format{format.PNG}},
		{"utf-8 with a mark", "\ufeffname,count\n", format.TXT, []format.Format{format.CSV}, nil},
		{"utf-16 little endian", utf16Text(binary.LittleEndian, "Grüße aus 東京\r\n"), format.TXT, []format.Format{format.TXT, format.CSV}, []format.Format{format.MP3, format.JPG}},
		{"utf-16 big endian", utf16Text(binary.BigEndian, "Grüße aus 東京\r\n"), format.TXT, []format.Format{format.TXT}, nil},
		{"utf-16 html", utf16Text(binary.LittleEndian, "<!DOCTYPE html><p>x"), format.HTML, []format.Format{format.HTML, format.TXT}, nil},
		{"utf-16 with half a character", utf16Text(binary.LittleEndian, "abc") + "x", "", nil, []format.Format{format.TXT}},
		{"latin-1", "Gr\xfc\xdfe aus M\xfcnchen, sch\xf6ne Gr\xfc\xdfe\r\n", format.TXT, []format.Format{format.TXT, format.CSV}, []format.Format{format.DOC}},
		{"shift-jis", "\x93\xfa\x96\x7b\x8c\xea\x82\xcc\x83\x65\x83\x4c\x83\x58\x83\x67\n", format.TXT, []format.Format{format.TXT}, nil},
		{"text with form feeds and escapes", "page one\fpage two\x1b[1mbold\x1b[0m\b\v\n", format.TXT, []format.Format{format.TXT}, nil},
		{"log with a stray control character", strings.Repeat("all is well\n", 50) + "\x01", format.TXT, []format.Format{format.TXT}, nil},
		{"text with a NUL", "hello\x00world", "", nil, []format.Format{format.TXT}},
		{"character cut off at the end of the head", strings.Repeat("a", 16<<10-1) + "ä and more", format.TXT, []format.Format{format.TXT}, nil},
		{"long text", strings.Repeat("Zeile mit Umlaut ä\n", 5000), format.TXT, []format.Format{format.TXT}, nil},

		{"svg", svg, format.SVG, []format.Format{format.SVG, format.XML, format.TXT}, []format.Format{format.PNG}},
		{"svg behind everything", "\ufeff\r\n<?xml version=\"1.0\"?>\n<!-- made by\n <html> someone -->\n<!DOCTYPE svg PUBLIC \"-//W3C//DTD SVG 1.1//EN\" \"x.dtd\">\n" + svg, format.SVG, []format.Format{format.SVG}, nil},
		{"svg behind a long comment", "<!--" + strings.Repeat(" long", 2000) + "-->" + svg, format.SVG, []format.Format{format.SVG}, nil},
		{"svg with entities", "<?xml version='1.0'?><!DOCTYPE foo [<!ENTITY a \"<html>\">]>" + svg, format.SVG, []format.Format{format.SVG}, nil},
		{"svg by ElementTree", "<?xml version='1.0'?>\n<ns0:svg\n xmlns:ns0=\"http://www.w3.org/2000/svg\"><ns0:g/></ns0:svg>", format.SVG, []format.Format{format.SVG}, nil},
		{"another svg", `<?xml version="1.0"?><a:svg xmlns:a="urn:other" xmlns:b="x"><p xmlns="http://www.w3.org/2000/svg"/></a:svg>`, format.XML, []format.Format{format.XML}, []format.Format{format.SVG}},
		{"svg with a prefix", `<svg:svg xmlns:svg="http://www.w3.org/2000/svg"/>`, format.SVG, []format.Format{format.SVG}, nil},
		{"html", "<!DOCTYPE html><title>x</title>", format.HTML, []format.Format{format.HTML, format.TXT}, []format.Format{format.SVG, format.PDF}},
		{"html in capitals", "<!doctype HTML PUBLIC '-//W3C//DTD HTML 4.01//EN'><HTML>", format.HTML, []format.Format{format.HTML}, nil},
		{"html without doctype", "\n <html lang=de><body>x", format.HTML, []format.Format{format.HTML}, nil},
		{"html that is only a body", "<!-- x --><body>" + svg, format.HTML, []format.Format{format.HTML}, []format.Format{format.SVG}},
		{"fragment of html", "<p>Hello</p>", format.TXT, []format.Format{format.HTML}, []format.Format{format.SVG}},
		{"xhtml", `<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"/>`, format.HTML, []format.Format{format.HTML, format.XML}, nil},
		{"xml", `<?xml version="1.0"?><a/>`, format.XML, []format.Format{format.XML, format.TXT}, []format.Format{format.SVG}},
		{"comment without end", "<!-- <svg", format.TXT, []format.Format{format.HTML}, []format.Format{format.SVG}},
		{"instruction without end", "<?xml", format.XML, nil, []format.Format{format.SVG}},
		{"flat text", `<?xml version="1.0"?><office:document office:mimetype="application/vnd.oasis.opendocument.text">`, format.FODT, []format.Format{format.FODT, format.XML}, []format.Format{format.FODS, format.ODT}},
		{"flat sheet", `<office:document office:mimetype="application/vnd.oasis.opendocument.spreadsheet">`, format.FODS, []format.Format{format.FODS}, nil},
		{"flat slides", `<office:document office:mimetype="application/vnd.oasis.opendocument.presentation">`, format.FODP, []format.Format{format.FODP}, nil},
		{"flat something", `<office:document office:mimetype="x">`, format.XML, []format.Format{format.XML}, []format.Format{format.FODT}},

		{"empty archive", "PK\x05\x06" + strings.Repeat("\x00", 18), format.ZIP, []format.Format{format.ZIP}, []format.Format{format.DOCX, format.ODT, format.TXT}},
		{"archive", archive(t, zip.Deflate, "a.txt", "x"), format.ZIP, []format.Format{format.ZIP}, []format.Format{format.DOCX, format.GZ}},
		{"spanned archive in one piece", "PK\x07\x08" + archive(t, zip.Store, "a.txt", "x"), format.ZIP, []format.Format{format.ZIP}, nil},
		{"archive that is cut off", archive(t, zip.Deflate, "word/document.xml", "x")[:40], format.ZIP, []format.Format{format.ZIP}, []format.Format{format.PNG}},
		{"docx", archive(t, zip.Deflate, "[Content_Types].xml", "x", "word/document.xml", "x"), format.DOCX, []format.Format{format.DOCX, format.ZIP}, []format.Format{format.XLSX, format.ODT, format.DOC}},
		{"docx with the document first", archive(t, zip.Deflate, "word/document.xml", "x"), format.DOCX, []format.Format{format.DOCX}, nil},
		{"docx of the web version", archive(t, zip.Deflate, "word/document2.xml", "x"), format.DOCX, []format.Format{format.DOCX}, nil},
		{"xlsx", archive(t, zip.Deflate, "xl/workbook.xml", "x"), format.XLSX, []format.Format{format.XLSX, format.ZIP}, []format.Format{format.DOCX}},
		{"xlsb", archive(t, zip.Deflate, "xl/workbook.bin", "x"), format.XLSB, []format.Format{format.XLSX, format.XLSB}, nil},
		{"pptx", archive(t, zip.Deflate, "ppt/presentation.xml", "x"), format.PPTX, []format.Format{format.PPTX}, []format.Format{format.ODP}},
		{"docx with a comment at the end", strings.TrimSuffix(archive(t, zip.Deflate, "word/document.xml", "x"), "\x00\x00") + "\x05\x00hello", format.DOCX, []format.Format{format.DOCX}, nil},
		{"archive that only mentions a document", archive(t, zip.Store, "notes.txt", "word/document.xml"), format.ZIP, nil, []format.Format{format.DOCX}},
		{"odt with sizes behind the data", archive(t, zip.Store, "mimetype", odtType, "content.xml", "x"), format.ODT, []format.Format{format.ODT, format.ZIP}, []format.Format{format.ODS, format.DOCX}},
		{"odt with a compressed type", archive(t, zip.Deflate, "mimetype", odtType, "content.xml", "x"), format.ODT, []format.Format{format.ODT, format.ZIP}, []format.Format{format.ODS}},
		{"type that only begins alike, compressed", archive(t, zip.Deflate, "mimetype", odtType+"-master", "content.xml", "x"), format.ZIP, nil, []format.Format{format.ODT}},
		{"type that only begins alike", archive(t, zip.Store, "mimetype", odtType+"-master", "content.xml", "x"), format.ZIP, nil, []format.Format{format.ODT}},
		{"template", archive(t, zip.Store, "mimetype", odtType+"-template", "content.xml", "x"), format.OTT, []format.Format{format.ODT, format.OTT, format.ZIP}, []format.Format{format.OTS}},
		{"epub with sizes behind the data", archive(t, zip.Store, "mimetype", "application/epub+zip", "a", "x"), format.EPUB, []format.Format{format.EPUB, format.ZIP}, []format.Format{format.ODT}},

		{"doc", compoundOf(9, []int{0}, root, entry{name: "WordDocument"}), format.DOC, []format.Format{format.DOC}, []format.Format{format.XLS, format.DOCX}},
		{"xls", compoundOf(9, []int{0}, root, entry{name: "Workbook"}), format.XLS, []format.Format{format.XLS}, []format.Format{format.DOC}},
		{"xls of 1995", compoundOf(9, []int{0}, root, entry{name: "Book"}), format.XLS, []format.Format{format.XLS}, nil},
		{"ppt", compoundOf(12, []int{3}, root, entry{name: "PowerPoint Document"}), format.PPT, []format.Format{format.PPT}, nil},
		{"doc with a sheet in it", compoundOf(9, []int{0, 1}, root, entry{name: "1Table", left: 2, right: 4}, entry{name: "ObjectPool", child: 3}, entry{name: "Workbook"}, entry{name: "WordDocument"}), format.DOC, []format.Format{format.DOC}, []format.Format{format.XLS}},
		{"doc with a scattered directory", compoundOf(9, []int{40, 2, 300}, root, entry{name: "a", right: 2}, entry{name: "b", right: 3}, entry{name: "c", right: 4}, entry{name: "d", right: 5}, entry{name: "e", right: 9}, entry{}, entry{}, entry{}, entry{name: "WordDocument"}), format.DOC, []format.Format{format.DOC}, nil},
		{"doc with its directory beyond 7 MB", compoundOf(9, []int{14500, 30100}, root, entry{name: "a", right: 2}, entry{name: "b", right: 3}, entry{name: "c", right: 4}, entry{name: "WordDocument"}), format.DOC, []format.Format{format.DOC}, nil},
		{"compound file with a loop", compoundOf(9, []int{0}, root, entry{name: "a", left: 1, right: 1}), "", nil, []format.Format{format.DOC}},
		{"compound file of something else", compoundOf(9, []int{0}, root, entry{name: "__properties_version2.0"}), "", nil, []format.Format{format.DOC, format.ZIP}},
		{"message of Outlook", compoundOf(9, []int{0}, root, entry{name: "__properties_version1.0"}), format.MSG, []format.Format{format.MSG}, []format.Format{format.DOC, format.EML}},
		{"compound file that is cut off", compoundOf(9, []int{0}, root, entry{name: "WordDocument"})[:512], "", nil, []format.Format{format.DOC}},

		{"mp3 with a tag", "ID3\x04\x00\x00\x00\x00\x00\x0a" + strings.Repeat("\x00", 10) + mp3, format.MP3, []format.Format{format.MP3, format.AAC}, []format.Format{format.WAV, format.FLAC}},
		{"mp3 without a tag", mp3, format.MP3, []format.Format{format.MP3}, []format.Format{format.M4A, format.TXT}},
		{"mp3 behind zeros", strings.Repeat("\x00", 1000) + mp3, format.MP3, []format.Format{format.MP3}, nil},
		{"mp3 of one frame", mp3[:417], format.MP3, []format.Format{format.MP3}, nil},
		{"mp3, mpeg 2, 22050 Hz", frames("\xff\xf3\x80\x00", 208, 3), format.MP3, []format.Format{format.MP3}, nil},
		{"mp3, mpeg 2.5, 11025 Hz", frames("\xff\xe3\x80\x00", 417, 3), format.MP3, []format.Format{format.MP3}, nil},
		{"layer 2", frames("\xff\xfd\x80\x00", 417, 3), format.MP3, []format.Format{format.MP3}, nil},
		{"layer 1", frames("\xff\xff\x90\x00", 312, 3), format.MP3, []format.Format{format.MP3}, nil},
		{"a sync word alone", "\xff\xfb\x90\x00" + random(600, 3), "", []format.Format{format.MP3}, []format.Format{format.WAV}},
		{"frame of a bit rate that is not allowed", frames("\xff\xfb\xf0\x00", 417, 4), "", nil, []format.Format{format.OGG}},
		{"aac", aac, format.AAC, []format.Format{format.AAC, format.MP3}, []format.Format{format.M4A}},
		{"aac sync word alone", "\xff\xf1\x50\x80\x20\x1f\xfc" + random(600, 4), "", []format.Format{format.AAC}, nil},
		{"amr", "#!AMR\n" + random(64, 5), format.AMR, []format.Format{format.AMR}, []format.Format{format.MP3}},
		{"wav above 4 GB", "RF64\xff\xff\xff\xffWAVEds64", format.WAV, []format.Format{format.WAV}, []format.Format{format.AVI}},
		{"aifc", "FORM\x00\x00\x00\x30AIFC", format.AIFF, []format.Format{format.AIFF}, []format.Format{format.WAV}},
		{"riff of something else", "RIFF\x00\x00\x00\x30CDDA", "", nil, []format.Format{format.WAV, format.WebP, format.AVI}},
		{"ts", packets("", 5), format.TS, []format.Format{format.TS, format.MPEG}, []format.Format{format.MP4}},
		{"m2ts", packets("\x00\x00\x00\x00", 5), format.TS, []format.Format{format.TS}, []format.Format{format.MKV}},
		{"too few packets", packets("", 2) + "\x00", "", []format.Format{format.TS}, nil},
		{"mpeg program stream", "\x00\x00\x01\xba\x44" + random(100, 6), format.MPEG, []format.Format{format.MPEG, format.TS}, []format.Format{format.MP4}},
		{"mpeg video", "\x00\x00\x01\xb3\x14" + random(100, 7), format.MPEG, []format.Format{format.MPEG}, nil},
		{"flv", "FLV\x01\x05\x00\x00\x00\x09", format.FLV, []format.Format{format.FLV}, []format.Format{format.MP4}},
		{"asf with video", asf + asfStream(asfAudio) + asfStream(asfVideo), format.WMV, []format.Format{format.WMV, format.WMA}, []format.Format{format.AVI}},
		{"asf without video", asf + asfStream(asfAudio), format.WMA, []format.Format{format.WMA, format.WMV}, []format.Format{format.MP3}},
		{"webm", "\x1a\x45\xdf\xa3\x9f\x42\x82\x84webm", format.WebM, []format.Format{format.WebM, format.MKV}, []format.Format{format.MP4}},
		{"mkv", "\x1a\x45\xdf\xa3\xa3\x42\x82\x88matroska", format.MKV, []format.Format{format.MKV, format.WebM}, nil},
		{"opus", "OggS\x00\x02" + strings.Repeat("\x00", 22) + "OpusHead", format.Opus, []format.Format{format.Opus, format.OGG}, []format.Format{format.MP3}},
		{"vorbis", "OggS\x00\x02" + strings.Repeat("\x00", 22) + "\x01vorbis", format.OGG, []format.Format{format.OGG, format.Opus}, []format.Format{format.FLAC}},

		{"mp4", ftyp("isom", "isom", "mp41"), format.MP4, []format.Format{format.MP4, format.MOV, format.M4A, format.M4V, format.ThGP}, []format.Format{format.MKV, format.HEIC}},
		{"m4a", ftyp("M4A ", "mp42"), format.M4A, []format.Format{format.M4A, format.MP4}, []format.Format{format.AAC}},
		{"audiobook", ftyp("M4B "), format.M4A, []format.Format{format.M4A}, nil},
		{"m4v", ftyp("M4V "), format.M4V, []format.Format{format.M4V}, nil},
		{"3gp", ftyp("3gp5"), format.ThGP, []format.Format{format.ThGP}, nil},
		{"3g2", ftyp("3g2a"), format.ThGP, []format.Format{format.ThGP}, nil},
		{"quicktime", ftyp("qt  "), format.MOV, []format.Format{format.MOV}, nil},
		{"file type box of a strange size", "\x00\x00\x00\x04ftypisom", format.MP4, []format.Format{format.MP4}, nil},
		{"quicktime without ftyp", be32(40) + "moov" + strings.Repeat("\x00", 60), format.MOV, []format.Format{format.MOV, format.MP4}, []format.Format{format.AVI}},
		{"quicktime with the data first", be32(5000) + "mdat" + random(6000, 8), format.MOV, []format.Format{format.MOV}, nil},
		{"quicktime with a large atom", be32(1) + "mdat" + random(100, 9), format.MOV, []format.Format{format.MOV}, nil},
		{"quicktime with free space", be32(16) + "wide\x00\x00\x00\x00\x00\x00\x00\x00" + be32(8) + "mdat", format.MOV, []format.Format{format.MOV}, nil},
		{"avif", ftyp("avif", "avif", "mif1", "miaf"), format.AVIF, []format.Format{format.AVIF}, []format.Format{format.HEIC, format.MP4, format.JPG}},
		{"avif with a general major brand", ftyp("mif1", "mif1", "avif", "miaf"), format.AVIF, []format.Format{format.AVIF}, []format.Format{format.HEIC}},
		{"avif sequence", ftyp("avis", "msf1"), format.AVIF, []format.Format{format.AVIF}, nil},
		{"heic", ftyp("heic", "mif1", "heic"), format.HEIC, []format.Format{format.HEIC}, []format.Format{format.AVIF, format.MOV}},
		{"heic with a general major brand", ftyp("mif1", "mif1", "heic"), format.HEIC, []format.Format{format.HEIC}, []format.Format{format.AVIF}},
		{"heif of an unknown kind", ftyp("mif1", "mif1"), format.HEIC, []format.Format{format.HEIC}, nil},
		{"heic sequence", ftyp("hevc"), format.HEIC, []format.Format{format.HEIC}, nil},
		{"jpeg xl codestream", "\xff\x0a\x7a\x00", format.JXL, []format.Format{format.JXL}, []format.Format{format.JPG}},
		{"jpeg xl container", "\x00\x00\x00\x0cJXL \r\n\x87\n\x00\x00\x00\x14ftypjxl ", format.JXL, []format.Format{format.JXL}, []format.Format{format.JP2}},
		{"jpeg 2000", "\x00\x00\x00\x0cjP  \r\n\x87\n\x00\x00\x00\x14ftypjp2 ", format.JP2, []format.Format{format.JP2}, []format.Format{format.JXL}},
		{"jpeg 2000 codestream", "\xff\x4f\xff\x51\x00\x2f", format.JP2, []format.Format{format.JP2}, nil},
		{"big tiff", "II+\x00\x08\x00\x00\x00", format.TIFF, []format.Format{format.TIFF}, nil},
		{"big endian tiff", "MM\x00*\x00\x00\x00\x08", format.TIFF, []format.Format{format.TIFF}, nil},
		{"large photoshop image", "8BPS\x00\x02" + strings.Repeat("\x00", 20), format.PSD, []format.Format{format.PSD}, nil},
		{"text that begins with BM", "BMW makes cars and motorcycles.\n", format.TXT, []format.Format{format.TXT}, []format.Format{format.BMP}},
		{"cursor", "\x00\x00\x02\x00\x01\x00" + strings.Repeat("\x00", 30), "", nil, []format.Format{format.ICO}},

		{"tar", "a.txt" + strings.Repeat("\x00", 252) + "ustar\x0000" + strings.Repeat("\x00", 248), format.TAR, []format.Format{format.TAR}, []format.Format{format.ZIP, format.TXT}},
		{"gzip", "\x1f\x8b\x08\x00" + strings.Repeat("\x00", 10), format.GZ, []format.Format{format.GZ, format.TarGZ}, []format.Format{format.ZIP, format.TAR}},
		{"bz2", "BZh91AY&SY\x01\x02\x03\x04", format.BZ2, []format.Format{format.BZ2, format.TarBZ2}, []format.Format{format.GZ, format.TarXZ}},
		{"empty bz2", "BZh9\x17\x72\x45\x38\x50\x90\x00\x00\x00\x00", format.BZ2, []format.Format{format.BZ2}, nil},
		{"text like bz2", "BZh9 is the beginning of a bzip2 file", format.TXT, nil, []format.Format{format.BZ2}},
		{"xz", "\xfd7zXZ\x00\x00\x04", format.XZ, []format.Format{format.XZ, format.TarXZ}, []format.Format{format.SevenZip}},
		{"zst", "\x28\xb5\x2f\xfd\x04\x00", format.Zst, []format.Format{format.Zst, format.TarZst}, []format.Format{format.TarGZ}},
		{"lz4", "\x04\x22\x4d\x18\x64\x40\xa7", format.LZ4, []format.Format{format.LZ4, format.TarLZ4}, []format.Format{format.Zst}},
		{"lzma", "\x5d\x00\x00\x80\x00" + strings.Repeat("\xff", 8) + "\x00\x30\x98\x88\x98", format.LZMA, []format.Format{format.LZMA, format.TarLZMA}, []format.Format{format.XZ}},
		{"lzma with a small dictionary", "\x5d\x00\x10\x00\x00\x00\x1c\x00\x00\x00\x00\x00\x00\x00\x33\x0c\x3c\x1b", format.LZMA, []format.Format{format.LZMA}, nil},
		{"lzma with other properties", "\x5e\x00\x00\x80\x00" + strings.Repeat("\xff", 8) + "\x00\x33\x0c\x3c\x1b", format.LZMA, []format.Format{format.LZMA}, nil},
		{"zst after frames to skip", "\x50\x2a\x4d\x18\x04\x00\x00\x00\xaa\x00\x00\x00\x5f\x2a\x4d\x18\x00\x00\x00\x00\x28\xb5\x2f\xfd\x04\x58", format.Zst, []format.Format{format.Zst, format.TarZst}, []format.Format{format.LZ4}},
		{"lz4 after a frame to skip", "\x50\x2a\x4d\x18\x01\x00\x00\x00\xaa\x04\x22\x4d\x18\x64\x40\xa7", format.LZ4, []format.Format{format.LZ4}, []format.Format{format.Zst}},
		{"only a frame to skip", "\x50\x2a\x4d\x18\xff\xff\xff\xff\xaa\x04\x22\x4d\x18\x64\x40\xa7", "", nil, []format.Format{format.LZ4, format.Zst}},
		{"lzip", "LZIP\x01\x0c\x00\x30\x98\x88", format.LZ, []format.Format{format.LZ, format.TarLZ, format.TarLZMA}, []format.Format{format.LZMA, format.XZ}},
		{"text like lzip", "LZIP is a format", format.TXT, nil, []format.Format{format.LZ}},
		{"nearly lzma", "\x5d\x00\x00\x80\x03" + strings.Repeat("\xff", 8) + "\x00\x30\x98\x88\x98", "", nil, []format.Format{format.LZMA}},
		{"old cpio", "070707" + strings.Repeat("0", 70) + "a\x00", format.CPIO, []format.Format{format.CPIO}, nil},
		{"text like cpio", "070707 is the magic of old cpio archives, " + strings.Repeat("as their manual says ", 9), format.TXT, nil, []format.Format{format.CPIO}},
		{"text like lha", "a -lh5- is a method of LHA", format.TXT, nil, []format.Format{format.LZH}},
		{"ar", "!<arch>\nfoo.o/          0           0     0     644     0         `\n", format.AR, []format.Format{format.AR}, []format.Format{format.DEB, format.TXT}},
		{"disc image", strings.Repeat("\x00", 32<<10) + "\x01CD001\x01" + strings.Repeat("\x00", 2041), format.ISO, []format.Format{format.ISO}, []format.Format{format.TXT}},
		{"7z", "7z\xbc\xaf\x27\x1c\x00\x04", format.SevenZip, []format.Format{format.SevenZip}, []format.Format{format.ZIP}},
		{"rar 4", "Rar!\x1a\x07\x00", format.RAR, []format.Format{format.RAR}, nil},
		{"rar 5", "Rar!\x1a\x07\x01\x00", format.RAR, []format.Format{format.RAR}, []format.Format{format.ZIP}},

		{"png named like another", "\x89PNG\r\n\x1a\n", format.PNG, []format.Format{format.PNG}, []format.Format{format.JPG, format.WebP, format.TXT, format.PDF}},
		{"program", "\x7fELF\x02\x01\x01" + strings.Repeat("\x00", 100), "", []format.Format{"exe"}, []format.Format{format.TXT, format.PDF}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := strings.NewReader(tt.content)
			if got := format.Sniff(r, r.Size()); got != tt.want {
				t.Errorf("sniffed %q, want %q", got, tt.want)
			}
			for _, f := range tt.fine {
				if err := format.Check(f, r, r.Size()); err != nil {
					t.Errorf("named .%s: %v", f, err)
				}
			}
			for _, f := range tt.wrong {
				err := format.Check(f, r, r.Size())
				var m *format.MismatchError
				if !errors.As(err, &m) || m.Want != f || m.Got != tt.want {
					t.Errorf("named .%s: got %v, want a mismatch with %q", f, err, tt.want)
				}
			}
		})
	}
}

func TestCheckEncrypted(t *testing.T) {
	t.Parallel()
	// An Office document with a password, [MS-OFFCRYPTO] 2.3.
	r := strings.NewReader(compoundOf(9, []int{1, 0}, entry{name: "Root Entry", child: 2}, entry{name: "EncryptedPackage"},
		entry{name: "\x06DataSpaces", left: 4, right: 1}, entry{name: "Version"}, entry{name: "EncryptionInfo"}))
	for _, f := range []format.Format{format.DOCX, format.XLSX, format.PPTX, format.DOC} {
		if err := format.Check(f, r, r.Size()); !errors.Is(err, format.ErrEncrypted) {
			t.Errorf("%s: got %v, want ErrEncrypted", f, err)
		}
	}
	for _, f := range []format.Format{format.PDF, format.ODT, format.TXT, format.ZIP} {
		var m *format.MismatchError
		if err := format.Check(f, r, r.Size()); !errors.As(err, &m) {
			t.Errorf("%s: got %v, want a mismatch", f, err)
		}
	}
}

func TestMismatchError(t *testing.T) {
	t.Parallel()
	r := strings.NewReader("\x89PNG\r\n\x1a\n")
	for _, tt := range []struct {
		f    format.Format
		r    *strings.Reader
		want string
	}{
		{format.JPG, r, "the name says JPEG, but the content is PNG"},
		{format.PDF, strings.NewReader(random(100, 1)), "the content is not PDF"},
	} {
		if err := format.Check(tt.f, tt.r, tt.r.Size()); err == nil || err.Error() != tt.want {
			t.Errorf("got %v, want %s", err, tt.want)
		}
	}
}

// A counter counts the bytes read from a file with a large stated size.
type counter struct {
	r io.ReaderAt
	n int64
}

func (c *counter) ReadAt(p []byte, off int64) (int, error) {
	c.n += int64(len(p))
	return c.r.ReadAt(p, off)
}

// Little is read, regardless of the sizes in a file.
func TestSniffIsBounded(t *testing.T) {
	t.Parallel()
	big := make([]byte, 64<<20)
	for name, head := range map[string]string{
		"text":     strings.Repeat("a", 1000),
		"archive":  "PK\x03\x04",
		"compound": compoundOf(9, []int{0}, entry{name: "Root Entry", child: 1}, entry{name: "x"}),
		"loop":     compoundOf(9, []int{0, 1, 2}, entry{name: "Root Entry", child: 1}, entry{name: "x", left: 1, right: 1}),
	} {
		b := bytes.Clone(big)
		copy(b, head)
		// An end record with a directory size of 4 GB.
		copy(b[len(b)-22:], "PK\x05\x06\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\x7f\x00\x00\x00\x00\x00\x00")
		c := &counter{r: bytes.NewReader(b)}
		format.Sniff(c, int64(len(b)))
		if c.n > 2<<20 {
			t.Errorf("%s: %d bytes are read", name, c.n)
		}
	}
}

// A reader that fails or is shorter than stated is not recognized, but causes no
// other harm.
func TestSniffBadReaders(t *testing.T) {
	t.Parallel()
	if got := format.Sniff(failing{}, 100); got != "" {
		t.Errorf("got %q", got)
	}
	for _, content := range []string{"", "P", "PK\x03\x04", "%PDF-1.4", "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "RIFF", "\xff\xfb\x90"} {
		format.Sniff(strings.NewReader(content), 1<<40)
		format.Sniff(strings.NewReader(content), -1)
	}
	if got := format.Sniff(strings.NewReader("%PDF-1.4"), 1<<40); got != format.PDF {
		t.Errorf("got %q", got)
	}
}

type failing struct{}

func (failing) ReadAt([]byte, int64) (int, error) { return 0, errors.New("broken") }

func ExampleSniff() {
	r := strings.NewReader("%PDF-1.7\n…")
	fmt.Println(format.Sniff(r, r.Size()))
	// Output: pdf
}

func ExampleCheck() {
	r := strings.NewReader("\x89PNG\r\n\x1a\n…")
	fmt.Println(format.Check(format.Parse("photo.PNG"), r, r.Size()))
	fmt.Println(format.Check(format.Parse("photo.jpeg"), r, r.Size()))
	// Output:
	// <nil>
	// the name says JPEG, but the content is PNG
}

func ExampleParse() {
	f := format.Parse("Report.JPEG")
	fmt.Println(f, f.MIME(), f.Family(), f.Aliases())
	fmt.Println(format.Base("backup.tar.gz"), format.Parse("backup.tar.gz"))
	// Output:
	// jpg image/jpeg image [jpeg jpe jfif pjpeg]
	// backup tar.gz
}

// A truncated document is reported as damaged and not as a plain archive.
func TestCheckCutOffDocument(t *testing.T) {
	t.Parallel()
	r := strings.NewReader(archive(t, zip.Deflate, "word/document.xml", "x")[:40])
	for _, f := range []format.Format{format.DOCX, format.ODT, format.EPUB} {
		var m *format.MismatchError
		if err := format.Check(f, r, r.Size()); !errors.As(err, &m) || m.Got != "" {
			t.Errorf("%s: %v", f, err)
		}
	}
}

// opcFile returns a package whose main part is called name, with a document type
// and a reference to the part.
func opcFile(t testing.TB, name, reference, kind, mime string) string {
	t.Helper()
	return archive(t, zip.Deflate,
		"[Content_Types].xml", `<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="xml" ContentType="application/xml"/>`+
			`<Override PartName="/`+name+`" ContentType="`+mime+`"/></Types>`,
		"_rels/.rels", `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="a" Type="http://schemas.openxmlformats.org/package/2006/relationships/metadata/core-properties" Target="docProps/core.xml"/>`+
			`<Relationship Id="b" Type="`+kind+`" Target="`+reference+`"/></Relationships>`,
		name, "<x/>")
}

// The main part of a document may have any name, because the package refers to
// it.
func TestMainPart(t *testing.T) {
	t.Parallel()
	const (
		transitional = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"
		strict       = "http://purl.oclc.org/ooxml/officeDocument/relationships/officeDocument"
		ooxml        = "application/vnd.openxmlformats-officedocument."
		odtType      = "application/vnd.oasis.opendocument.text"
		manifest     = `<?xml version="1.0"?><manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"><manifest:file-entry manifest:full-path="/" manifest:media-type="` + odtType + `"/><manifest:file-entry manifest:full-path="content.xml" manifest:media-type="text/xml"/></manifest:manifest>`
	)
	byDefault := archive(t, zip.Deflate,
		"[Content_Types].xml", `<Types><Default Extension="xml" ContentType="`+ooxml+`wordprocessingml.document.main+xml"/></Types>`,
		"_rels/.rels", `<Relationships><Relationship Id="b" Type="`+transitional+`" Target="doc.xml"/></Relationships>`, "doc.xml", "x")
	for name, tt := range map[string]struct {
		data string
		want format.Format
	}{
		"docx":             {opcFile(t, "word/document22.xml", "word/document22.xml", transitional, ooxml+"wordprocessingml.document.main+xml"), format.DOCX},
		"xlsx":             {opcFile(t, "book.xml", "/book.xml", transitional, ooxml+"spreadsheetml.sheet.main+xml"), format.XLSX},
		"pptx":             {opcFile(t, "a/b/show.xml", "a/x/../b/show.xml", transitional, ooxml+"presentationml.presentation.main+xml"), format.PPTX},
		"slide show":       {opcFile(t, "a.xml", "a.xml", transitional, ooxml+"presentationml.slideshow.main+xml"), format.PPSX},
		"strict":           {opcFile(t, "word/document22.xml", "word/document22.xml", strict, ooxml+"wordprocessingml.document.main+xml"), format.DOCX},
		"case":             {opcFile(t, "Word/Document.xml", "word/document.XML", transitional, ooxml+"wordprocessingml.document.main+xml"), format.DOCX},
		"escaped":          {opcFile(t, "my document.xml", "my%20document.xml", transitional, ooxml+"wordprocessingml.document.main+xml"), format.DOCX},
		"macros":           {opcFile(t, "w.xml", "w.xml", transitional, "application/vnd.ms-word.document.macroEnabled.main+xml"), format.DOCM},
		"binary":           {opcFile(t, "w.bin", "w.bin", transitional, "application/vnd.ms-excel.sheet.binary.macroEnabled.main"), format.XLSB},
		"by extension":     {byDefault, format.DOCX},
		"behind a stub":    {"PK\x03\x04" + strings.Repeat("\x00", 60) + opcFile(t, "w.xml", "w.xml", transitional, ooxml+"wordprocessingml.document.main+xml"), format.DOCX},
		"drawing of Visio": {opcFile(t, "visio/document.xml", "visio/document.xml", "http://schemas.microsoft.com/visio/2010/relationships/document", "application/vnd.ms-visio.drawing.main+xml"), format.VSDX},
		"no such part":     {opcFile(t, "a.xml", "b.xml", transitional, ooxml+"wordprocessingml.document.main+xml"), format.ZIP},
		"other part":       {opcFile(t, "a.xml", "a.xml", transitional, ooxml+"wordprocessingml.styles+xml"), format.ZIP},
		"no relations":     {archive(t, zip.Deflate, "[Content_Types].xml", "<Types/>", "a.xml", "x"), format.ZIP},
		"odt, type second": {archive(t, zip.Deflate, "content.xml", "x", "mimetype", odtType), format.ODT},
		"odt, no type":     {archive(t, zip.Deflate, "content.xml", "x", "META-INF/manifest.xml", manifest), format.ODT},
		"odt, UTF-16":      {archive(t, zip.Deflate, "content.xml", "x", "META-INF/manifest.xml", utf16Text(binary.LittleEndian, manifest)), format.ODT},
		"template":         {archive(t, zip.Deflate, "content.xml", "x", "META-INF/manifest.xml", strings.Replace(manifest, odtType, odtType+"-template", 1)), format.OTT},
		"epub, type last":  {archive(t, zip.Deflate, "META-INF/container.xml", "x", "mimetype", "application/epub+zip\n"), format.EPUB},
		"jar":              {archive(t, zip.Deflate, "META-INF/MANIFEST.MF", "x"), format.ZIP},
	} {
		r := strings.NewReader(tt.data)
		if got := format.Sniff(r, r.Size()); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
		if err := format.Check(tt.want, r, r.Size()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A message starts with its header; a text about messages does not.
func TestMessages(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]format.Format{
		"WEBVTT": format.VTT,
		"\ufeffWEBVTT - title\n\n00:01.000 --> 00:02.000\nx\n": format.VTT,
		"WEBVTTX\n": format.TXT,
		"[Script Info]\r\n; x\r\nScriptType: v4.00+\r\n":                                         format.ASS,
		"1\n00:00:01,000 --> 00:00:02,500\nHello\n":                                              format.SRT,
		"\r\n1\r\n0:00:01.0 --> 0:00:02.5 X1:10\r\nHello\r\n":                                    format.SRT,
		"00:00:01,000 --> 00:00:02,500\nwithout a number\n":                                      format.SRT,
		"1\nabc --> 00:00:02,500\n":                                                              format.TXT,
		"See\n1\n00:00:01,000 --> 00:00:02,500\n":                                                format.TXT,
		"From: a@example.com\r\nTo: b@example.com\r\n\r\nHello":                                  format.EML,
		"Received: from a\r\n\tby b; today\r\nSubject: x\r\nMIME-Version: 1.0\r\n\r\n":           format.EML,
		"From a@example.com Sat Jan  1 00:00:00 2000\nReturn-Path: <a@example.com>\nDate: x\n\n": format.EML,
		"From: a\nFrom: b\n\nText":                                                               format.TXT,
		"From: a\nHow to write a message\nTo: b\n\nText":                                         format.TXT,
		"Subject: x\n\nFrom: a\nTo: b":                                                           format.TXT,
	} {
		r := strings.NewReader(text)
		if got := format.Sniff(r, r.Size()); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
		if err := format.Check(format.TXT, r, r.Size()); err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if err := format.Check(format.EML, r, r.Size()); (err == nil) != (want == format.EML) {
			t.Errorf("%q as a message: %v", text, err)
		}
	}
}

func TestPlain(t *testing.T) {
	t.Parallel()
	for f := range format.Known() {
		if p := f.Plain(); p.Plain() != p || p.Family() != f.Family() {
			t.Errorf("the plain format of %s is %s", f, p)
		}
	}
	want := []format.Format{format.DOC, format.DOT, format.ODT, format.OTT}
	if got := format.WithVariants(format.DOC, format.ODT); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestUnusualButValid(t *testing.T) {
	t.Parallel()
	utf16le := func(s string) (b []byte) {
		for _, c := range s {
			b = append(b, byte(c), 0)
		}
		return b
	}
	box := func(major string) []byte {
		return append([]byte("\x00\x00\x00\x14ftyp"+major+"\x00\x00\x00\x00heic"), make([]byte, 40)...)
	}
	icon := append([]byte{0, 0, 1, 0, 1, 0, 16, 16, 0, 255, 1, 0, 32, 0, 104, 4, 0, 0, 22, 0, 0, 0}, make([]byte, 40)...)
	old := make([]byte, 1024) // tar of Unix version 7, without "ustar"
	copy(old, "dir/file.txt")
	copy(old[100:], "000644 \x00000000 \x00000000 \x0000000000000 00000000000 ")
	copy(old[148:], "        ")
	sum := 0
	for _, c := range old[:512] {
		sum += int(c)
	}
	copy(old[148:], fmt.Sprintf("%06o\x00 ", sum))
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	if w, err := z.Create("a.txt"); err != nil {
		t.Fatal(err)
	} else if _, err := w.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	systest.NoError(t, z.Close())
	stub := append([]byte("MZ\x90\x00\x03\x00\x00\x00\x04\x00\x00\x00\xff\xff\x00\x00 a program"), b.Bytes()...)
	for name, tt := range map[string]struct {
		want format.Format
		data []byte
	}{
		"UTF-16LE without mark": {format.CSV, utf16le("id,name\r\n1,Anna\r\n")},
		"brand mif3":            {format.HEIC, box("mif3")},
		"minor brand of mif3":   {format.AVIF, append([]byte("\x00\x00\x00\x10ftypmif3avif"), make([]byte, 40)...)},
		"picture in H.264":      {format.HEIC, append([]byte("\x00\x00\x00\x18ftypavci\x00\x00\x00\x00mif1avci"), make([]byte, 40)...)},
		"picture in H.266":      {format.HEIC, append([]byte("\x00\x00\x00\x18ftypvvic\x00\x00\x00\x00mif1vvic"), make([]byte, 40)...)},
		"icon":                  {format.ICO, icon},
		"old tar":               {format.TAR, old},
		"zip after a program":   {format.ZIP, stub},
	} {
		if err := format.Check(tt.want, bytes.NewReader(tt.data), int64(len(tt.data))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, data := range map[string][]byte{"zeros": make([]byte, 1024), "numbers": bytes.Repeat([]byte{1, 0, 2, 0}, 300)} {
		if err := format.Check(format.CSV, bytes.NewReader(data), int64(len(data))); err == nil {
			t.Errorf("%s are text", name)
		}
		if err := format.Check(format.TAR, bytes.NewReader(data), int64(len(data))); err == nil {
			t.Errorf("%s are a tar", name)
		}
	}
}

// Documents of Apple's programs have an XML file, or objects of Protocol Buffers.
func TestAppleDocuments(t *testing.T) {
	t.Parallel()
	const pages, numbers = `<?xml version="1.0"?><sl:document xmlns:sl="x">`, `<?xml version="1.0"?><ls:document xmlns:ls="x">`
	// A block of Snappy: its size, the size of its content, literal bytes.
	iwa := func(kind ...byte) string {
		info := append([]byte{8, 1, 0x12, byte(1 + len(kind)), 8}, kind...)
		literal := append([]byte{byte(len(info))}, info...)
		block := append([]byte{byte(len(literal)), byte(len(literal)-1) << 2}, literal...)
		return string(append([]byte{0, byte(len(block)), 0, 0}, block...))
	}
	for name, tt := range map[string]struct {
		want   format.Format
		locked bool
		data   string
	}{
		"pages":                {format.Pages, false, archive(t, zip.Deflate, "thumbs/a.jpg", "x", "index.xml", pages)},
		"numbers":              {format.Numbers, false, archive(t, zip.Deflate, "index.xml", numbers+strings.Repeat(" ", 2<<20))},
		"keynote":              {format.Key, false, archive(t, zip.Deflate, "index.apxl", "<key:presentation>")},
		"pages, objects":       {format.Pages, false, archive(t, zip.Store, "Index/Document.iwa", iwa(0x90, 0x4e))},
		"numbers, objects":     {format.Numbers, false, archive(t, zip.Store, "Index/Document.iwa", iwa(1))},
		"keynote, objects":     {format.Key, false, archive(t, zip.Store, "Index/Document.iwa", iwa(1), "Index/Slide.iwa", "x")},
		"damaged objects":      {format.Numbers, false, archive(t, zip.Store, "Index/Document.iwa", "\x00\x01")},
		"a folder":             {format.Key, false, archive(t, zip.Store, "Show.key/Index.zip", "x")},
		"protected":            {format.Pages, true, archive(t, zip.Deflate, "buildVersionHistory.plist", "x", "index.xml", "\x01\x02\x03")},
		"protected keynote":    {format.Key, true, archive(t, zip.Deflate, "index.apxl", "\x01\x02\x03")},
		"protected, objects":   {format.Numbers, true, archive(t, zip.Store, ".iwpv2", "x", "Index/Document.iwa", "\x99")},
		"an index of anything": {format.ZIP, false, archive(t, zip.Deflate, "index.xml", "<a/>")},
	} {
		r := strings.NewReader(tt.data)
		err := format.Check(tt.want, r, r.Size())
		if tt.locked {
			if !errors.Is(err, format.ErrEncrypted) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if got := format.Sniff(r, r.Size()); got != tt.want || err != nil {
			t.Errorf("%s: %q (%v), want %q", name, got, err, tt.want)
		}
	}
}

// Metafiles have a header with a place, or only that of the records.
func TestMetafiles(t *testing.T) {
	t.Parallel()
	bare := "\x01\x00\x09\x00\x00\x03" + strings.Repeat("\x07", 10) + "\x00\x00\x03\x00\x00\x00\x00\x00"
	for data, want := range map[string]format.Format{
		bare: format.WMF, "\xd7\xcd\xc6\x9a" + strings.Repeat("\x00", 18) + bare: format.WMF,
		"\x01\x00\x09\x00\x00\x03" + strings.Repeat("\x07", 20): "",
	} {
		r := strings.NewReader(data)
		if got := format.Sniff(r, r.Size()); got != want {
			t.Errorf("%q: %q, want %q", data, got, want)
		}
	}
}
