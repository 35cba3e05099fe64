package compress

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"

	"github.com/filewright/filewright/fileops/pdfops/internal/pdf"
)

// keptNamespace reports whether properties in a namespace describe the document:
// title, authors, dates, rights, conformance to standards, and the schema
// descriptions that PDF/A requires.
func keptNamespace(uri string) bool {
	switch uri {
	case "http://purl.org/dc/elements/1.1/", "http://ns.adobe.com/pdf/1.3/", "http://ns.adobe.com/xap/1.0/rights/":
		return true
	}
	for _, prefix := range []string{
		"http://www.aiim.org/", "http://ns.adobe.com/pdfx/", "http://www.npes.org/", "http://iptc.org/",
		"http://prismstandard.org/", "http://creativecommons.org/", "urn:factur-x:", "urn:ferd:", "urn:zugferd:",
	} {
		if strings.HasPrefix(uri, prefix) {
			return true
		}
	}
	return false
}

const (
	namespaceXAP = "http://ns.adobe.com/xap/1.0/"
	namespaceRDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
)

// droppedNamespace reports whether only editing programs use a property:
// histories, image settings, colour swatches, previews.
func droppedNamespace(uri, local string) bool {
	if uri == namespaceXAP {
		return local == "Thumbnails" || local == "PageInfo"
	}
	if keptNamespace(uri) {
		return false
	}
	for _, prefix := range []string{
		"http://ns.adobe.com/xap/1.0/mm/", "http://ns.adobe.com/xap/1.0/t/pg/", "http://ns.adobe.com/xap/1.0/g/",
		"http://ns.adobe.com/photoshop/", "http://ns.adobe.com/illustrator/", "http://ns.adobe.com/camera-raw-settings/",
		"http://ns.adobe.com/tiff/", "http://ns.adobe.com/exif/", "http://ns.adobe.com/InDesign/", "http://ns.adobe.com/xmp/InDesign/",
		"http://ns.adobe.com/creatorAtom/", "http://ns.adobe.com/xmp/1.0/DynamicMedia/",
	} {
		if strings.HasPrefix(uri, prefix) {
			return true
		}
	}
	return false
}

// thinXMP removes the padding of an XMP packet (ISO 16684-1). If private is set,
// it also removes the properties that only editing programs use. All other bytes
// stay the same. A packet that it cannot parse loses only the padding.
func thinXMP(b []byte, private bool) []byte {
	if private {
		if cut, err := cutXMP(b); err == nil {
			b = cut
		}
	}
	end := bytes.LastIndex(b, []byte("<?xpacket end"))
	if end < 0 {
		return b
	}
	head := bytes.TrimRight(b[:end], " \t\r\n")
	return slices.Concat(head, []byte("\n"), bytes.TrimRight(b[end:], " \t\r\n\x00"))
}

var errXMP = errors.New("not an XMP packet in UTF-8")

// cutXMP removes the properties for which droppedNamespace reports true.
func cutXMP(b []byte) ([]byte, error) {
	if bytes.IndexByte(b, 0) >= 0 {
		return nil, errXMP
	}
	dec := xml.NewDecoder(bytes.NewReader(b))
	dec.CharsetReader = func(string, io.Reader) (io.Reader, error) { return nil, errXMP }
	var (
		path []xml.Name
		out  []byte
		last int64 // everything before this offset is in out, or removed
		cut  = -1  // depth of the property being removed
	)
	for {
		before := dec.InputOffset()
		t, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		switch v := t.(type) {
		case xml.StartElement:
			// A property is a child of a Description that is a child of RDF.
			n := len(path)
			property := n >= 2 && path[n-1] == (xml.Name{Space: namespaceRDF, Local: "Description"}) && path[n-2].Local == "RDF"
			if cut < 0 && property && droppedNamespace(v.Name.Space, v.Name.Local) {
				out = append(out, bytes.TrimRight(b[last:before], " \t\r\n")...)
				cut = n
			}
			path = append(path, v.Name)
			if len(path) > 64 {
				return nil, errXMP
			}
		case xml.EndElement:
			if len(path) == 0 {
				return nil, errXMP
			}
			path = path[:len(path)-1]
			if cut == len(path) {
				cut, last = -1, dec.InputOffset()
			}
		}
	}
	if cut >= 0 || len(path) != 0 {
		return nil, errXMP
	}
	return append(out, b[last:]...), nil
}

// thinMetadata makes the metadata of the document smaller. If private is set, it
// removes the metadata of pages, images and fonts.
func thinMetadata(d *pdf.Document, private bool) {
	own, _ := d.Catalog()["Metadata"].(types.IndirectRef)
	if s := d.Stream(own); s != nil {
		if b, err := pdf.Decode(s); err == nil {
			if small := thinXMP(b, private); len(small) < len(b) {
				if len(s.FilterPipeline) > 0 {
					pdf.SetContent(s, pdf.Deflate(small), types.PDFFilter{Name: "FlateDecode"})
				} else {
					pdf.SetContent(s, small)
				}
			}
		}
	}
	if !private {
		return
	}
	for _, nr := range d.Reachable() {
		switch v := d.Objects[nr].(type) {
		case *types.StreamDict:
			switch d.Name(v.Dict["Type"]) {
			case "EmbeddedFile", "Metadata":
			default:
				delete(v.Dict, "Metadata")
				delete(v.Dict, "PieceInfo")
			}
		case types.Dict:
			switch d.Name(v["Type"]) {
			case "Page", "FontDescriptor":
				delete(v, "Metadata")
			}
		}
	}
}
