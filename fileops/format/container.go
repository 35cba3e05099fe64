package format

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"io"
	"strings"

	"github.com/filewright/filewright/internal/compound"
)

// sniffZIP distinguishes office files and books from other ZIP archives by the
// names of their entries. It reads the central directory and not the local
// headers, because that is what consumers of the file use.
// It also reports whether the content of a document is encrypted.
func sniffZIP(r io.ReaderAt, size int64, head []byte) (f Format, encrypted bool) {
	if len(head) > 38 && string(head[30:38]) == "mimetype" {
		if f := ofMediaType(mediaType(head)); f != "" {
			return f, false
		}
	}
	entries, _ := zipEntries(r, size)
	if f := sniffOPC(r, entries); f != "" {
		return f, false
	}
	for _, e := range entries {
		switch e.name {
		case "word/document.xml", "word/document2.xml":
			return DOCX, false
		case "xl/workbook.xml":
			return XLSX, false
		case "xl/workbook.bin":
			return XLSB, false
		case "ppt/presentation.xml":
			return PPTX, false
		case "visio/document.xml":
			return VSDX, false
		}
	}
	if f := sniffODF(r, entries); f != "" {
		return f, false
	}
	if f, encrypted := sniffApple(r, entries); f != "" {
		return f, encrypted
	}
	return ZIP, false
}

// mediaType returns the content of an archive's first entry if it can be a media
// type, or "". OpenDocument and EPUB store it there uncompressed (OpenDocument
// 1.3 part 2, 3.3; EPUB OCF 3.3, 4.3). Some programs compress it anyway, and
// readers accept that.
func mediaType(head []byte) string {
	start := 38 + int(binary.LittleEndian.Uint16(head[28:]))
	if start > len(head) {
		return ""
	}
	data := head[start:]
	switch n := int(binary.LittleEndian.Uint32(head[18:])); binary.LittleEndian.Uint16(head[8:]) {
	case 0:
		if n == 0 { // the size follows the data
			n = max(bytes.Index(data, []byte("PK")), 0)
		}
		if n > len(data) {
			return ""
		}
		return strings.TrimRight(string(data[:n]), "\r\n")
	case 8:
		b, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(data)), 100))
		if err != nil {
			return ""
		}
		return strings.TrimRight(string(b), "\r\n")
	}
	return ""
}

// zipEntries returns the entries in the first megabyte of an archive's central
// directory. ok is false if the end of the archive is missing (APPNOTE 4.3.12
// and 4.3.16).
func zipEntries(r io.ReaderAt, size int64) (entries []archiveEntry, ok bool) {
	tail := make([]byte, min(size, 22+0xffff))
	if n, err := r.ReadAt(tail, size-int64(len(tail))); n < len(tail) && err != nil {
		return nil, false
	}
	i := bytes.LastIndex(tail, []byte("PK\x05\x06"))
	if i < 0 || i+22 > len(tail) {
		return nil, false
	}
	n := int64(binary.LittleEndian.Uint32(tail[i+12:]))
	// Count back from the end record, because data before the archive would shift
	// the stored offset.
	off := size - int64(len(tail)) + int64(i) - n
	stored := int64(binary.LittleEndian.Uint32(tail[i+16:]))
	if off < 0 || n == 0xffffffff {
		off = stored
	}
	front := max(0, off-stored)
	if off < 0 || off >= size {
		return nil, false
	}
	dir := make([]byte, min(n, 1<<20, size-off))
	if n, err := r.ReadAt(dir, off); n < len(dir) && err != nil {
		return nil, false
	}
	for len(dir) >= 46 && string(dir[:4]) == "PK\x01\x02" {
		ln := int(binary.LittleEndian.Uint16(dir[28:]))
		rest := 46 + ln + int(binary.LittleEndian.Uint16(dir[30:])) + int(binary.LittleEndian.Uint16(dir[32:]))
		if 46+ln > len(dir) {
			break
		}
		entries = append(entries, archiveEntry{
			name: string(dir[46 : 46+ln]), method: binary.LittleEndian.Uint16(dir[10:]),
			packed: int64(binary.LittleEndian.Uint32(dir[20:])), offset: front + int64(binary.LittleEndian.Uint32(dir[42:])),
		})
		if rest > len(dir) {
			break
		}
		dir = dir[rest:]
	}
	return entries, true
}

// sniffCompound identifies the Office formats before 2007, drawings of Visio, publications, and messages of Outlook, by
// the streams and storages in their compound file. It also detects encrypted newer ones, which are wrapped
// in a compound file ([MS-OFFCRYPTO] 2.3.1).
func sniffCompound(r io.ReaderAt, size int64) (f Format, encrypted bool) {
	quill, contents := false, false
	for _, name := range compound.Names(r, size) {
		switch name {
		case "worddocument":
			f = DOC
		case "workbook", "book":
			f = XLS
		case "powerpoint document":
			f = PPT
		case "visiodocument":
			f = VSD
		case "quill", "escher":
			quill = true
		case "contents":
			contents = true
		case "__properties_version1.0", "__nameid_version1.0":
			f = MSG
		case "encryptedpackage":
			// Other streams are only packaging, such as a document that recommends a
			// newer program.
			return "", true
		}
	}
	if f == "" && contents && (quill || isPublisher(r, size)) {
		f = PUB
	}
	return f, false
}

// isPublisher reports whether the main stream of a compound file starts like that of
// Publisher 97, which has no streams of a name of its own.
func isPublisher(r io.ReaderAt, size int64) bool {
	c, err := compound.Open(r, size, 4096)
	if err != nil {
		return false
	}
	s, ok, err := c.Stream("contents")
	if err != nil || !ok {
		return false
	}
	var head [4]byte
	_, err = s.ReadAt(head[:], 0)
	return err == nil && string(head[:2]) == "\xe8\xac" && head[3] == 0
}
