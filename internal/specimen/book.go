package specimen

import (
	"encoding/binary"
	"strings"

	"github.com/filewright/filewright/fileops/format"
)

// Encryption of a book, see [Book].
const (
	PlainBook  = 0
	LockedBook = 2 // Mobipocket's digital rights management
)

// Book returns a book of Mobipocket: a MOBI file of version 6, or an AZW3 file of version 8,
// with one page of HTML, which is not compressed, and a PNG picture (MobileRead wiki, "MOBI",
// "PalmDOC" and "PDB").
func Book(f format.Format, page, title string, picture []byte, encryption int) []byte {
	const (
		textRecord = 4096
		none       = 1<<32 - 1
	)
	version, size := uint32(6), 232
	if f == format.AZW3 {
		version, size = 8, 264
	}
	var text [][]byte
	for rest := []byte(page); len(rest) > 0; {
		n := min(len(rest), textRecord)
		text, rest = append(text, rest[:n]), rest[n:]
	}
	// Metadata: the author and the language.
	var exth []byte
	for _, e := range []struct {
		kind  uint32
		value string
	}{{100, "Filewright"}, {524, "en"}} {
		exth = binary.BigEndian.AppendUint32(exth, e.kind)
		exth = binary.BigEndian.AppendUint32(exth, uint32(8+len(e.value)))
		exth = append(exth, e.value...)
	}
	exth = append(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32([]byte("EXTH"), uint32(12+len(exth))), 2), exth...)
	exth = append(exth, make([]byte, (4-len(exth)%4)%4)...)

	// The first record starts with the header of PalmDOC, and that of MOBI at 16.
	first := make([]byte, 16, 1<<10)
	put16 := func(at int, v uint16) { binary.BigEndian.PutUint16(first[at:], v) }
	put16(0, 1) // no compression
	binary.BigEndian.PutUint32(first[4:], uint32(len(page)))
	put16(8, uint16(len(text)))
	put16(10, textRecord)
	put16(12, uint16(encryption))
	first = append(first, strings.Repeat("\xff", size)...)
	copy(first[16:], "MOBI")
	for at, v := range map[int]uint32{
		20: uint32(size), 24: 2, 28: 65001, 32: 1, 36: version, // length, kind, UTF-8, id, version
		80: uint32(1 + len(text)), 84: uint32(16 + size + len(exth)), 88: uint32(len(title)), // first record behind the text, title
		92: 9, 96: 0, 100: 0, 104: version, 108: uint32(1 + len(text)), // language, version of readers, first picture
		112: 0, 116: 0, 120: 0, 124: 0, 128: 0x40, // there are metadata
		132: 0, 136: 0, 140: 0, 144: 0, 148: 0, 152: 0, 156: 0, 160: 0,
		168: none, 172: 0, 176: 0, 180: 0, // no digital rights management
		196: 1, 200: none, 204: 0, 208: none, 212: 0, 216: 0, 220: 0, 224: none, 228: 0, 232: none, 236: none, 240: 0, 244: none,
	} {
		binary.BigEndian.PutUint32(first[at:], v)
	}
	if version == 6 {
		put16(192, 1)
		put16(194, uint16(len(text)))
	}
	first = append(append(append(first, exth...), title...), make([]byte, 8)...)

	records := append(append([][]byte{first}, text...), picture, []byte("\xe9\x8e\r\n"))
	out := make([]byte, 78)
	copy(out[:31], "specimen")
	copy(out[60:], "BOOKMOBI")
	binary.BigEndian.PutUint16(out[76:], uint16(len(records)))
	at := len(out) + 8*len(records) + 2
	for i, r := range records {
		out = binary.BigEndian.AppendUint32(out, uint32(at))
		out = binary.BigEndian.AppendUint32(out, uint32(i))
		at += len(r)
	}
	out = append(out, 0, 0)
	for _, r := range records {
		out = append(out, r...)
	}
	return out
}

// bookSpecimen returns the specimen of a book format.
func bookSpecimen(f format.Format) []byte {
	picture := `recindex="00001"`
	if f == format.AZW3 {
		picture = "kindle:embed:0001?mime=image/png"
		return Book(f, "<html><head><title>"+Heading+"</title></head><body>"+htmlBody(picture)+"</body></html>", Heading, patchesPNG(), PlainBook)
	}
	page := "<html><head><title>" + Heading + "</title></head><body>" + htmlBody("PICTURE") + "</body></html>"
	return Book(f, strings.ReplaceAll(page, `src="PICTURE"`, picture), Heading, patchesPNG(), PlainBook)
}
