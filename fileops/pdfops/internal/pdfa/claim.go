package pdfa

import (
	"bytes"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"

	"github.com/filewright/filewright/fileops/pdfops/internal/pdf"
	"github.com/filewright/filewright/internal/xmp"
)

// infoTexts are the texts of the information dictionary and the XMP properties that must have the same
// values (ISO 19005-1, 6.7.3).
var infoTexts = []struct{ key, space, name, list string }{
	{"Title", xmp.DublinCore, "title", "Alt"},
	{"Author", xmp.DublinCore, "creator", "Seq"},
	{"Subject", xmp.DublinCore, "description", "Alt"},
	{"Keywords", xmp.PDF, "Keywords", ""},
	{"Creator", xmp.Basic, "CreatorTool", ""},
	{"Producer", xmp.PDF, "Producer", ""},
}

// Claim writes the metadata of a document that conforms to a standard: an XMP packet with the values of
// the information dictionary and the claim, and for PDF/A an output intent, sRGB. It keeps an output
// intent for RGB that the document has. An older packet is replaced, but what it says about an invoice
// remains where attachments do.
func Claim(d *pdf.Document, s Standard) {
	info := d.Dict(pdf.Ref(d.Info))
	var properties []xmp.Property
	for _, f := range infoTexts {
		text := strings.Map(func(r rune) rune {
			if unicode.IsControl(r) || r == unicode.ReplacementChar {
				return -1
			}
			return r
		}, strings.TrimSpace(pdf.Unicode(d.Text(info[f.key]))))
		if text == "" {
			delete(info, f.key)
			continue
		}
		info[f.key] = pdf.TextString(text)
		properties = append(properties, xmp.Property{Space: f.space, Name: f.name, List: f.list, Values: []string{text}})
	}
	for _, f := range [][2]string{{"CreationDate", "CreateDate"}, {"ModDate", "ModifyDate"}} {
		key, name := f[0], f[1]
		t, ok := pdf.Date(string(d.Text(info[key])))
		if !ok {
			delete(info, key)
			continue
		}
		info[key] = types.StringLiteral(pdf.DateString(t))
		properties = append(properties, xmp.Property{Space: xmp.Basic, Name: name, Values: []string{t.Format(time.RFC3339)}})
	}
	if s.Part > 0 {
		properties = append(properties,
			xmp.Property{Space: xmp.PDFA, Name: "part", Values: []string{strconv.Itoa(s.Part)}},
			xmp.Property{Space: xmp.PDFA, Name: "conformance", Values: []string{"B"}})
		intent(d)
	}
	if s.UA {
		properties = append(properties, xmp.Property{Space: xmp.PDFUA, Name: "part", Values: []string{"1"}})
	}
	var schemas []xmp.Schema
	if s.Part > 0 && s.UA {
		schemas = append(schemas, uaSchema)
	}
	if v, ok := invoice(d); ok && (s.Part == 0 || s.Part == 3) {
		properties = append(properties, v.properties()...)
		schemas = append(schemas, invoiceSchema)
	}
	packet := xmp.Describe(xmp.Edit(nil, properties), schemas...)
	ref := d.AddStream(types.Dict{"Type": types.Name("Metadata"), "Subtype": types.Name("XML")}, nil)
	pdf.SetContent(d.Stream(ref), packet) // not compressed, as part 1 requires
	d.Catalog()["Metadata"] = ref
}

// uaSchema describes the properties of PDF/UA, which PDF/A does not know (ISO 19005-1, 6.7.8).
var uaSchema = xmp.Schema{
	Name: "PDF/UA identification", Space: xmp.PDFUA, Prefix: "pdfuaid",
	Properties: []xmp.SchemaProperty{{Name: "part", Type: "Integer", Category: "internal", Doc: "part of ISO 14289"}},
}

// intent gives the document an output intent for RGB.
func intent(d *pdf.Document) {
	catalog := d.Catalog()
	for _, o := range d.Array(catalog["OutputIntents"]) {
		v := d.Dict(o)
		s := d.Stream(v["DestOutputProfile"])
		if d.Name(v["S"]) != "GTS_PDFA1" || s == nil || d.Integer(s.Dict["N"]) != 3 {
			continue
		}
		if b, err := pdf.Decode(s); err == nil && len(b) >= 128 && b[8] <= 2 && bytes.Equal(b[16:20], []byte("RGB ")) {
			catalog["OutputIntents"] = types.Array{o}
			return
		}
	}
	profile := d.AddStream(types.Dict{"N": types.Integer(3)}, nil)
	pdf.SetContent(d.Stream(profile), pdf.Deflate(sRGB()), types.PDFFilter{Name: "FlateDecode"})
	catalog["OutputIntents"] = types.Array{d.Add(types.Dict{
		"Type": types.Name("OutputIntent"), "S": types.Name("GTS_PDFA1"), "DestOutputProfile": profile,
		"OutputConditionIdentifier": pdf.TextString("sRGB"), "Info": pdf.TextString("sRGB IEC61966-2.1"), "RegistryName": pdf.TextString("http://www.color.org"),
	})}
}

// An Invoice is what the metadata of a document says about the electronic invoice that is attached to it
// (Factur-X 1.07, 6.2.2).
type Invoice struct {
	Type    string // such as INVOICE
	File    string // name of the attachment
	Version string // of the schema of the invoice
	Level   string // of conformance, such as EN 16931
}

func (v Invoice) properties() []xmp.Property {
	var out []xmp.Property
	for _, f := range [][2]string{{"DocumentType", v.Type}, {"DocumentFileName", v.File}, {"Version", v.Version}, {"ConformanceLevel", v.Level}} {
		out = append(out, xmp.Property{Space: xmp.FacturX, Name: f[0], Values: []string{f[1]}})
	}
	return out
}

// invoice returns what a document says about its invoice. ok is false if it says nothing.
func invoice(d *pdf.Document) (v Invoice, ok bool) {
	s := d.Stream(d.Catalog()["Metadata"])
	if s == nil {
		return v, false
	}
	packet, err := pdf.Decode(s)
	if err != nil {
		return v, false
	}
	value := func(name string) string { return xmp.Value(packet, xmp.FacturX, name) }
	v = Invoice{value("DocumentType"), value("DocumentFileName"), value("Version"), value("ConformanceLevel")}
	return v, v.Type != "" && v.File != "" && v.Version != "" && v.Level != ""
}

// ClaimInvoice writes what a document says about its invoice into its metadata. The document must claim to
// conform to PDF/A.
func ClaimInvoice(d *pdf.Document, v Invoice) {
	s := d.Stream(d.Catalog()["Metadata"])
	packet, _ := pdf.Decode(s) // a packet that cannot be read is replaced
	pdf.SetContent(s, xmp.Describe(xmp.Edit(packet, v.properties()), invoiceSchema))
}

// invoiceSchema describes the properties of Factur-X, which PDF/A does not know.
var invoiceSchema = xmp.Schema{
	Name: "Factur-X PDFA Extension Schema", Space: xmp.FacturX, Prefix: "fx",
	Properties: []xmp.SchemaProperty{
		{Name: "DocumentFileName", Type: "Text", Category: "external", Doc: "name of the embedded XML file"},
		{Name: "DocumentType", Type: "Text", Category: "external", Doc: "type of the document"},
		{Name: "Version", Type: "Text", Category: "external", Doc: "version of the schema of the XML file"},
		{Name: "ConformanceLevel", Type: "Text", Category: "external", Doc: "conformance level of the XML file"},
	},
}
