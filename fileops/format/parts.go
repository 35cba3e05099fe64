package format

import (
	"bytes"
	"cmp"
	"compress/flate"
	"encoding/binary"
	"encoding/xml"
	"io"
	"net/url"
	"path"
	"strings"
)

// An archiveEntry is an entry in the central directory of a ZIP archive
// (APPNOTE 4.3.12).
type archiveEntry struct {
	name   string
	method uint16
	packed int64 // bytes
	offset int64 // of its local header
}

const (
	mostPacked   = 256 << 10 // bytes to read of an entry
	mostUnpacked = 1 << 20   // largest decompressed entry in bytes
)

// read returns the content of an entry, or nil if it is unreadable or too large.
func (e archiveEntry) read(r io.ReaderAt) []byte {
	head := make([]byte, 30)
	if n, _ := r.ReadAt(head, e.offset); n < len(head) || string(head[:4]) != "PK\x03\x04" || e.packed > mostPacked {
		return nil
	}
	le := binary.LittleEndian
	data := make([]byte, e.packed)
	at := e.offset + 30 + int64(le.Uint16(head[26:])) + int64(le.Uint16(head[28:]))
	if n, _ := r.ReadAt(data, at); n < len(data) {
		return nil
	}
	switch e.method {
	case 0:
		return data
	case 8:
		b, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(data)), mostUnpacked+1))
		if err != nil || len(b) > mostUnpacked {
			return nil
		}
		return b
	}
	return nil
}

// find returns the entry with a name. It ignores case, like Office Open XML
// (ISO/IEC 29500-2, 6.2.2.3).
func find(entries []archiveEntry, name string) (archiveEntry, bool) {
	for _, e := range entries {
		if strings.EqualFold(e.name, name) {
			return e, true
		}
	}
	return archiveEntry{}, false
}

// sniffOPC identifies an Office Open XML document by the content type of its
// main part. That part may have any name: the relationships of the package refer
// to it (ISO/IEC 29500-2, 6.5, and ISO/IEC 29500-1, 11.3.10, 12.3.23, 13.3.6).
// sniffOPC returns "" for anything else.
func sniffOPC(r io.ReaderAt, entries []archiveEntry) Format {
	rels, ok := find(entries, "_rels/.rels")
	if !ok {
		return ""
	}
	types, ok := find(entries, "[Content_Types].xml")
	if !ok {
		return ""
	}
	main := ""
	for t := range elements(rels.read(r), "Relationship") {
		// In a strict document the type starts with http://purl.oclc.org/ooxml.
		kind := attribute(t, "Type")
		if (strings.HasSuffix(kind, "/officeDocument") || kind == "http://schemas.microsoft.com/visio/2010/relationships/document") && !strings.EqualFold(attribute(t, "TargetMode"), "External") {
			main = partName(attribute(t, "Target"))
			break
		}
	}
	if _, ok := find(entries, main); !ok {
		return ""
	}
	kind, byExtension := "", ""
	for t := range elements(types.read(r), "Override", "Default") {
		switch mime := attribute(t, "ContentType"); {
		case t.Name.Local == "Override" && strings.EqualFold(partName(attribute(t, "PartName")), main):
			kind = mime
		case t.Name.Local == "Default" && strings.EqualFold("."+attribute(t, "Extension"), path.Ext(main)):
			byExtension = mime
		}
	}
	kind = cmp.Or(kind, byExtension)
	return ofMainPart[strings.ToLower(kind)]
}

// ofMainPart has the formats for the content types of main parts, in lower case
// (ISO/IEC 29500-1, 11.3.10, 12.3.23 and 13.3.6; [MS-OFFMACRO2] 2.2.1). Add-ins have the
// structure of documents with macros.
var ofMainPart = map[string]Format{
	"application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml": DOCX,
	"application/vnd.openxmlformats-officedocument.wordprocessingml.template.main+xml": DOTX,
	"application/vnd.ms-word.document.macroenabled.main+xml":                           DOCM,
	"application/vnd.ms-word.template.macroenabledtemplate.main+xml":                   DOTM,

	"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml":    XLSX,
	"application/vnd.openxmlformats-officedocument.spreadsheetml.template.main+xml": XLTX,
	"application/vnd.ms-excel.sheet.macroenabled.main+xml":                          XLSM,
	"application/vnd.ms-excel.addin.macroenabled.main+xml":                          XLSM,
	"application/vnd.ms-excel.template.macroenabled.main+xml":                       XLTM,
	"application/vnd.ms-excel.sheet.binary.macroenabled.main":                       XLSB,

	"application/vnd.openxmlformats-officedocument.presentationml.presentation.main+xml": PPTX,
	"application/vnd.openxmlformats-officedocument.presentationml.slideshow.main+xml":    PPSX,
	"application/vnd.openxmlformats-officedocument.presentationml.template.main+xml":     POTX,
	"application/vnd.ms-powerpoint.presentation.macroenabled.main+xml":                   PPTM,
	"application/vnd.ms-powerpoint.addin.macroenabled.main+xml":                          PPTM,
	"application/vnd.ms-powerpoint.slideshow.macroenabled.main+xml":                      PPSM,
	"application/vnd.ms-powerpoint.template.macroenabled.main+xml":                       POTM,

	"application/vnd.ms-visio.drawing.main+xml": VSDX,
}

// partName converts a reference from the root of the package to the name of an
// entry.
func partName(reference string) string {
	reference, _, _ = strings.Cut(reference, "#")
	if u, err := url.PathUnescape(reference); err == nil {
		reference = u
	}
	return strings.TrimPrefix(path.Clean("/"+strings.ReplaceAll(reference, `\`, "/")), "/")
}

// sniffODF identifies an OpenDocument file or a book by its media type if that
// is not in the first entry: by the entry mimetype or by the manifest
// (OpenDocument 1.3 part 2, 3.2 and 3.3).
func sniffODF(r io.ReaderAt, entries []archiveEntry) Format {
	for _, e := range entries {
		if e.name == "mimetype" {
			if f := ofMediaType(strings.TrimSpace(string(e.read(r)))); f != "" {
				return f
			}
		}
	}
	for _, e := range entries {
		if e.name != "META-INF/manifest.xml" {
			continue
		}
		for t := range elements(e.read(r), "file-entry") {
			if attribute(t, "full-path") == "/" {
				return ofMediaType(attribute(t, "media-type"))
			}
		}
	}
	return ""
}

// ofMediaType returns the format for the media type of a package, or "" if it is
// unknown.
func ofMediaType(s string) Format {
	switch s {
	case "application/epub+zip":
		return EPUB
	case "application/vnd.oasis.opendocument.text":
		return ODT
	case "application/vnd.oasis.opendocument.spreadsheet":
		return ODS
	case "application/vnd.oasis.opendocument.presentation":
		return ODP
	case "application/vnd.oasis.opendocument.text-template":
		return OTT
	case "application/vnd.oasis.opendocument.spreadsheet-template":
		return OTS
	case "application/vnd.oasis.opendocument.presentation-template":
		return OTP
	case "application/vnd.oasis.opendocument.graphics":
		return ODG
	}
	return ""
}

// elements yields the start tags with the given local names in an XML text, up
// to the first error or document type declaration.
func elements(text []byte, names ...string) func(yield func(xml.StartElement) bool) {
	return func(yield func(xml.StartElement) bool) {
		d := xml.NewDecoder(bytes.NewReader(utf8Text(text)))
		d.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil }
		for {
			t, err := d.RawToken()
			if err != nil {
				return
			}
			switch t := t.(type) {
			case xml.Directive:
				return
			case xml.StartElement:
				for _, name := range names {
					if t.Name.Local == name && !yield(t) {
						return
					}
				}
			}
		}
	}
}

// attribute returns the value of an attribute. It ignores prefixes.
func attribute(t xml.StartElement, name string) string {
	for _, a := range t.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// utf8Text returns an XML text in UTF-8. The input may be UTF-16 with a byte
// order mark.
func utf8Text(b []byte) []byte {
	if len(b) >= 2 && (b[0] == 0xff && b[1] == 0xfe || b[0] == 0xfe && b[1] == 0xff) {
		s, _ := decodeText(b, true)
		return []byte(s)
	}
	return b
}
