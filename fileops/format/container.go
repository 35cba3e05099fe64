package format

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"io"
	"strings"
	"unicode/utf16"
)

// sniffZIP tells office files and books from other ZIP archives by the names of
// their entries. It reads the central directory rather than the local headers,
// because that is what every consumer of the file believes.
func sniffZIP(r io.ReaderAt, size int64, head []byte) Format {
	if len(head) > 38 && string(head[30:38]) == "mimetype" {
		if f := ofMediaType(mediaType(head)); f != "" {
			return f
		}
	}
	entries, _ := zipEntries(r, size)
	for _, e := range entries {
		switch e.name {
		case "word/document.xml", "word/document2.xml":
			return DOCX
		case "xl/workbook.xml", "xl/workbook.bin":
			return XLSX
		case "ppt/presentation.xml":
			return PPTX
		}
	}
	if f := sniffOPC(r, entries); f != "" {
		return f
	}
	if f := sniffODF(r, entries); f != "" {
		return f
	}
	return ZIP
}

// mediaType returns the content of the first entry of an archive, as far as it
// can be a media type, or "". OpenDocument and EPUB put it there, and want it
// uncompressed (OpenDocument 1.3 part 2, 3.3; EPUB OCF 3.3, 4.3); some programs
// compress it all the same, and everybody opens their files.
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

// zipEntries returns the entries in the central directory of an archive, as many
// as there are in its first megabyte; ok is false if it has none, because its end
// is missing (APPNOTE 4.3.12 and 4.3.16).
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
	// Counted back from the end record, because there may be something in
	// front of the archive that shifts the offset stored in it.
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

// sniffOLE tells the old Office formats by the streams in their compound file,
// and encrypted new ones, which are wrapped in one ([MS-CFB] 2.2, 2.6;
// [MS-OFFCRYPTO] 2.3.1).
func sniffOLE(r io.ReaderAt, size int64) (f Format, encrypted bool) {
	head := make([]byte, 512)
	if _, err := r.ReadAt(head, 0); err != nil {
		return "", false
	}
	le := binary.LittleEndian
	shift := le.Uint16(head[30:])
	if shift != 9 && shift != 12 {
		return "", false
	}
	sectorSize := int64(1) << shift
	readSector := func(n uint32) []byte {
		b := make([]byte, sectorSize)
		if off := (int64(n) + 1) * sectorSize; off >= size {
			return nil
		} else if k, _ := r.ReadAt(b, off); k < 128 {
			return nil
		}
		return b
	}
	per := uint32(sectorSize / 4)
	// The first 109 sectors of the allocation table are listed in the header,
	// those of files above 7 MB in a chain of sectors.
	tableSector := func(i uint32) []byte {
		if i < 109 {
			return readSector(le.Uint32(head[76+4*i:]))
		}
		i -= 109
		list := readSector(le.Uint32(head[68:]))
		for range 256 { // a loop in the chain must end
			if list == nil {
				return nil
			}
			if i < per-1 {
				return readSector(le.Uint32(list[4*i:]))
			}
			i -= per - 1
			list = readSector(le.Uint32(list[4*(per-1):]))
		}
		return nil
	}
	next := func(n uint32) (uint32, bool) {
		table := tableSector(n / per)
		if table == nil {
			return 0, false
		}
		n = le.Uint32(table[4*(n%per):])
		return n, n < 0xfffffffa
	}
	var entries [][]byte
	sector, ok := le.Uint32(head[48:]), true
	for i := 0; ok && i < 64; i++ { // a loop in the chain must end
		dir := readSector(sector)
		if dir == nil {
			break
		}
		for ; len(dir) >= 128; dir = dir[128:] {
			entries = append(entries, dir[:128])
		}
		sector, ok = next(sector)
	}
	if len(entries) == 0 {
		return "", false
	}
	// Only the streams of the root storage tell what the document is: what is
	// embedded in it has the same ones further down. They form a binary tree.
	queue := []uint32{le.Uint32(entries[0][76:])}
	for n := 0; n < len(queue) && n < len(entries)*2+1; n++ {
		if int64(queue[n]) >= int64(len(entries)) {
			continue
		}
		e := entries[queue[n]]
		queue = append(queue, le.Uint32(e[68:]), le.Uint32(e[72:]))
		// Names are compared without case ([MS-CFB] 2.6.4).
		switch strings.ToLower(entryName(e)) {
		case "worddocument":
			f = DOC
		case "workbook", "book":
			f = XLS
		case "powerpoint document":
			f = PPT
		case "encryptedpackage":
			// What else there is, such as a document that says how to get
			// a newer program, is only packaging.
			return "", true
		}
	}
	return f, false
}

// entryName returns the name in a directory entry of a compound file.
func entryName(e []byte) string {
	n := int(binary.LittleEndian.Uint16(e[64:])) // bytes, with a NUL at the end
	if n < 2 || n > 64 {
		return ""
	}
	u := make([]uint16, n/2-1)
	for i := range u {
		u[i] = binary.LittleEndian.Uint16(e[2*i:])
	}
	return string(utf16.Decode(u))
}
