// Package xmp sets and removes properties of XMP packets (ISO 16684-1), which pictures and PDF files
// have as their metadata. It leaves the rest of a packet as it is.
package xmp

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// Namespaces of properties.
const (
	DublinCore = "http://purl.org/dc/elements/1.1/"
	Basic      = "http://ns.adobe.com/xap/1.0/"
	PDF        = "http://ns.adobe.com/pdf/1.3/"
	Rights     = "http://ns.adobe.com/xap/1.0/rights/"
	PDFA       = "http://www.aiim.org/pdfa/ns/id/"
	PDFUA      = "http://www.aiim.org/pdfua/ns/id/"
	FacturX    = "urn:factur-x:pdfa:CrossIndustryDocument:invoice:1p0#"
)

const syntax = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"

var prefixes = map[string]string{DublinCore: "dc", Basic: "xmp", PDF: "pdf", Rights: "xmpRights", PDFA: "pdfaid", PDFUA: "pdfuaid", FacturX: "fx"}

// A Property is a property of a packet with its new values.
type Property struct {
	Space, Name string // a namespace of this package, and the local name
	List        string // "Alt" (one text for each language), "Seq", "Bag", or "" for plain text
	Values      []string
}

// Edit sets properties of a packet. A property without values is removed. A packet that cannot be
// parsed, or nil, is replaced by a new one.
func Edit(packet []byte, properties []Property) []byte {
	const empty = `<?xpacket begin="` + "\ufeff" + `" id="W5M0MpCehiHzreSzNTczkc9d"?>
<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="` + syntax + `"></rdf:RDF></x:xmpmeta>
<?xpacket end="w"?>`
	rest, at, about, ok := without(packet, properties)
	if !ok {
		rest, at, about, _ = without([]byte(empty), properties)
	}
	var all, spaces strings.Builder
	declared := make(map[string]bool)
	for _, p := range properties {
		if len(p.Values) == 0 {
			continue
		}
		if prefix := prefixes[p.Space]; !declared[prefix] {
			declared[prefix] = true
			fmt.Fprintf(&spaces, ` xmlns:%s="%s"`, prefix, p.Space)
		}
		p.write(&all)
	}
	if all.Len() == 0 {
		return rest
	}
	description := fmt.Sprintf(`<rdf:Description rdf:about="%s" xmlns:rdf="%s"%s>%s</rdf:Description>`, escaped(about), syntax, &spaces, &all)
	return slices.Concat(rest[:at], []byte(description), rest[at:])
}

// Value returns the text of a property of a packet, or "". The texts of a list follow each other,
// separated by commas.
func Value(packet []byte, space, name string) string {
	d := xml.NewDecoder(bytes.NewReader(packet))
	var texts []string
	inside := 0
	for {
		t, err := d.Token()
		if err != nil {
			return strings.Join(texts, ", ")
		}
		switch t := t.(type) {
		case xml.StartElement:
			if inside > 0 || t.Name.Space == space && t.Name.Local == name {
				inside++
			}
			for _, a := range t.Attr {
				if a.Name.Space == space && a.Name.Local == name {
					return a.Value
				}
			}
		case xml.EndElement:
			if inside > 0 {
				if inside--; inside == 0 {
					return strings.Join(texts, ", ")
				}
			}
		case xml.CharData:
			if text := strings.TrimSpace(string(t)); inside > 0 && text != "" {
				texts = append(texts, text)
			}
		}
	}
}

// A Schema describes properties of a namespace that PDF/A does not know (ISO 19005-1, 6.7.8).
type Schema struct {
	Name, Space, Prefix string
	Properties          []SchemaProperty
}

// A SchemaProperty is a property of a [Schema].
type SchemaProperty struct {
	Name, Type, Category, Doc string // Category is "internal" or "external"
}

// Namespaces of descriptions of schemas (ISO 19005-1, 6.7.8).
const (
	extension      = "http://www.aiim.org/pdfa/ns/extension/"
	schemaSpace    = "http://www.aiim.org/pdfa/ns/schema#"
	schemaProperty = "http://www.aiim.org/pdfa/ns/property#"
)

// Describe adds descriptions of schemas to a packet of [Edit]. It leaves out those of namespaces that the
// packet describes already.
func Describe(packet []byte, schemas ...Schema) []byte {
	known, list, end := described(packet)
	var b strings.Builder
	element := func(name, text string) { fmt.Fprintf(&b, "<%s>%s</%s>", name, escaped(text), name) }
	for _, s := range schemas {
		if slices.Contains(known, s.Space) {
			continue
		}
		fmt.Fprintf(&b, `<rdf:li rdf:parseType="Resource" xmlns:rdf="%s" xmlns:pdfaSchema="%s" xmlns:pdfaProperty="%s">`, syntax, schemaSpace, schemaProperty)
		element("pdfaSchema:schema", s.Name)
		element("pdfaSchema:namespaceURI", s.Space)
		element("pdfaSchema:prefix", s.Prefix)
		b.WriteString("<pdfaSchema:property><rdf:Seq>")
		for _, p := range s.Properties {
			b.WriteString(`<rdf:li rdf:parseType="Resource">`)
			element("pdfaProperty:name", p.Name)
			element("pdfaProperty:valueType", p.Type)
			element("pdfaProperty:category", p.Category)
			element("pdfaProperty:description", p.Doc)
			b.WriteString("</rdf:li>")
		}
		b.WriteString("</rdf:Seq></pdfaSchema:property></rdf:li>")
	}
	at, text := list, b.String()
	if list < 0 { // the packet has no list of descriptions
		at = end
		text = fmt.Sprintf(`<rdf:Description rdf:about="" xmlns:rdf="%s" xmlns:pdfaExtension="%s"><pdfaExtension:schemas><rdf:Bag>%s</rdf:Bag></pdfaExtension:schemas></rdf:Description>`, syntax, extension, text)
	}
	if at < 0 || b.Len() == 0 {
		return packet
	}
	return slices.Concat(packet[:at], []byte(text), packet[at:])
}

// described returns the namespaces of the schemas that a packet describes, and the offsets of the ends of
// the list of descriptions and of the rdf:RDF. An offset is -1 if the packet has no such element.
func described(packet []byte) (spaces []string, list, end int) {
	d := xml.NewDecoder(bytes.NewReader(packet))
	list, end = -1, -1
	var path []xml.Name
	for {
		from := d.InputOffset()
		t, err := d.Token()
		if err != nil {
			return spaces, list, end
		}
		switch t := t.(type) {
		case xml.StartElement:
			path = append(path, t.Name)
		case xml.CharData:
			if len(path) > 0 && path[len(path)-1] == (xml.Name{Space: schemaSpace, Local: "namespaceURI"}) {
				spaces = append(spaces, strings.TrimSpace(string(t)))
			}
		case xml.EndElement:
			path = path[:len(path)-1]
			switch {
			case t.Name == (xml.Name{Space: syntax, Local: "RDF"}):
				end = int(from)
			case t.Name.Space == syntax && len(path) > 0 && path[len(path)-1] == (xml.Name{Space: extension, Local: "schemas"}):
				list = int(from)
			}
		}
	}
}

func (p Property) write(w *strings.Builder) {
	name := prefixes[p.Space] + ":" + p.Name
	var value strings.Builder
	switch p.List {
	case "":
		value.WriteString(escaped(strings.Join(p.Values, ", ")))
	case "Alt":
		fmt.Fprintf(&value, `<rdf:Alt><rdf:li xml:lang="x-default">%s</rdf:li></rdf:Alt>`, escaped(strings.Join(p.Values, "; ")))
	default:
		fmt.Fprintf(&value, "<rdf:%s>", p.List)
		for _, v := range p.Values {
			fmt.Fprintf(&value, "<rdf:li>%s</rdf:li>", escaped(v))
		}
		fmt.Fprintf(&value, "</rdf:%s>", p.List)
	}
	fmt.Fprintf(w, "<%s>%s</%s>", name, &value, name)
}

func escaped(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a strings.Builder does not fail
	return b.String()
}

// without returns a packet without properties, the offset of the end tag of its rdf:RDF, and what it
// is about. ok is false if it cannot be parsed.
func without(b []byte, properties []Property) (rest []byte, at int, about string, ok bool) {
	wanted := func(n xml.Name) bool {
		return slices.ContainsFunc(properties, func(p Property) bool { return p.Space == n.Space && p.Name == n.Local })
	}
	d := xml.NewDecoder(bytes.NewReader(b))
	var copied int64 // of b
	cut := func(from, to int64) {
		rest = append(rest, b[copied:from]...)
		copied = to
	}
	for at = -1; ; {
		from := d.InputOffset()
		t, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, 0, "", false
		}
		switch t := t.(type) {
		case xml.StartElement:
			if wanted(t.Name) {
				if d.Skip() != nil {
					return nil, 0, "", false
				}
				cut(from, d.InputOffset())
				continue
			}
			if t.Name.Space != syntax || t.Name.Local != "Description" {
				continue
			}
			for _, a := range t.Attr {
				if a.Name.Space == syntax && a.Name.Local == "about" {
					about = a.Value
				}
				if !wanted(a.Name) {
					continue
				}
				re := regexp.MustCompile(`\s[^\s:=]+:` + a.Name.Local + `\s*=\s*("[^"]*"|'[^']*')`)
				if m := re.FindIndex(b[max(from, copied):d.InputOffset()]); m != nil {
					start := max(from, copied)
					cut(start+int64(m[0]), start+int64(m[1]))
				}
			}
		case xml.EndElement:
			if t.Name.Space == syntax && t.Name.Local == "RDF" {
				cut(from, from)
				at = len(rest)
			}
		}
	}
	if at < 0 {
		return nil, 0, "", false
	}
	return append(rest, b[copied:]...), at, about, true
}
