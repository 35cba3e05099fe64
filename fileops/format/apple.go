package format

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"encoding/binary"
	"io"
	"path"
	"strings"
)

// sniffApple identifies a document of Pages, Numbers or Keynote. Those of 2009 and
// before are XML, whose root differs; later ones have objects in Apple's IWA files. A
// document that is a folder is sometimes packed as a whole. encrypted means that the
// content is not readable, so only the extension tells the programs apart.
func sniffApple(r io.ReaderAt, entries []archiveEntry) (f Format, encrypted bool) {
	for _, e := range entries {
		switch name := strings.TrimSuffix(e.name, ".gz"); {
		case name == "index.apxl":
			return Key, !isXML(e.start(r, 256))
		case name == "index.xml":
			switch start := e.start(r, 4096); {
			case !isXML(start):
				if _, ok := find(entries, "buildVersionHistory.plist"); ok {
					return Pages, true
				}
			case bytes.Contains(start, []byte("<sl:document")):
				return Pages, false
			case bytes.Contains(start, []byte("<ls:document")):
				return Numbers, false
			}
		case e.name == ".iwpv2" || e.name == ".iwph":
			return Pages, true
		case path.Base(e.name) == "Index.zip":
			if f := Format(strings.TrimPrefix(path.Ext(path.Dir(e.name)), ".")); f == Pages || f == Numbers || f == Key {
				return f, false
			}
		case e.name == "Index/Document.iwa":
			return kindOfIWA(e.start(r, 256), entries), false
		}
	}
	return "", false
}

// kindOfIWA returns the kind of a document by the type of the first object in its main
// file. Keynote and Numbers have the same number, but only Keynote has slides.
func kindOfIWA(start []byte, entries []archiveEntry) Format {
	const pagesDocument = 10000
	if firstObject(start) == pagesDocument {
		return Pages
	}
	for _, e := range entries {
		if strings.HasPrefix(e.name, "Index/Slide") || strings.HasPrefix(e.name, "Index/MasterSlide") || strings.HasPrefix(e.name, "Index/TemplateSlide") {
			return Key
		}
	}
	return Numbers
}

// firstObject returns the type of the first object of an IWA file, or 0. The file is
// compressed with Snappy, but its first bytes are literal. They are an ArchiveInfo of
// Protocol Buffers: an identifier, and a MessageInfo that starts with the type.
func firstObject(b []byte) uint64 {
	if len(b) < 4 || b[0] != 0 {
		return 0
	}
	b = b[4:] // the size of the block
	if _, n := binary.Uvarint(b); n > 0 {
		b = b[n:]
	}
	if len(b) < 3 || b[0]&3 != 0 {
		return 0
	}
	skip := 1
	if size := b[0] >> 2; size >= 60 {
		skip += int(size) - 59
	}
	b = b[min(skip, len(b)):]
	if _, n := binary.Uvarint(b); n > 0 { // the size of the ArchiveInfo
		b = b[n:]
	}
	const identifier, message, kind = 1 << 3, 2<<3 | 2, 1 << 3 // tags
	for _, tag := range []byte{identifier, message} {
		if len(b) == 0 || b[0] != tag {
			return 0
		}
		_, n := binary.Uvarint(b[1:])
		if n <= 0 {
			return 0
		}
		b = b[1+n:]
	}
	if len(b) == 0 || b[0] != kind {
		return 0
	}
	v, _ := binary.Uvarint(b[1:])
	return v
}

// isXML reports whether a text starts like XML.
func isXML(b []byte) bool { return bytes.HasPrefix(bytes.TrimLeft(b, "\ufeff \r\n\t"), []byte("<")) }

// start returns up to n bytes from the start of an entry, without the compression of the
// archive or of a file of gzip in it.
func (e archiveEntry) start(r io.ReaderAt, n int64) []byte {
	head := make([]byte, 30)
	if k, _ := r.ReadAt(head, e.offset); k < len(head) || string(head[:4]) != "PK\x03\x04" {
		return nil
	}
	le := binary.LittleEndian
	at := e.offset + 30 + int64(le.Uint16(head[26:])) + int64(le.Uint16(head[28:]))
	var in io.Reader = io.NewSectionReader(r, at, min(e.packed, mostPacked))
	if e.method == 8 {
		in = flate.NewReader(in)
	}
	if strings.HasSuffix(e.name, ".gz") {
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil
		}
		in = z
	}
	b, _ := io.ReadAll(io.LimitReader(in, n))
	return b
}
