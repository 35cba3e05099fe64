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
)

const syntax = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"

var prefixes = map[string]string{DublinCore: "dc", Basic: "xmp", PDF: "pdf", Rights: "xmpRights", PDFA: "pdfaid", PDFUA: "pdfuaid"}

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

// Describe adds descriptions of schemas to a packet of [Edit] that has none.
func Describe(packet []byte, schemas ...Schema) []byte {
	const end = "</rdf:RDF>"
	at := bytes.LastIndex(packet, []byte(end))
	if at < 0 || len(schemas) == 0 {
		return packet
	}
	var b strings.Builder
	b.WriteString(`<rdf:Description rdf:about="" xmlns:pdfaExtension="http://www.aiim.org/pdfa/ns/extension/" xmlns:pdfaSchema="http://www.aiim.org/pdfa/ns/schema#" xmlns:pdfaProperty="http://www.aiim.org/pdfa/ns/property#"><pdfaExtension:schemas><rdf:Bag>`)
	element := func(name, text string) { fmt.Fprintf(&b, "<%s>%s</%s>", name, escaped(text), name) }
	for _, s := range schemas {
		b.WriteString(`<rdf:li rdf:parseType="Resource">`)
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
	b.WriteString("</rdf:Bag></pdfaExtension:schemas></rdf:Description>")
	return slices.Concat(packet[:at], []byte(b.String()), packet[at:])
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
