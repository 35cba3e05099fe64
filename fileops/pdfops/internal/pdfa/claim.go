package pdfa

import (
	"bytes"
	"fmt"
	"regexp"
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
// intent for RGB that the document has. An older packet is replaced.
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
	for key, name := range map[string]string{"CreationDate": "CreateDate", "ModDate": "ModifyDate"} {
		t, ok := Date(string(d.Text(info[key])))
		if !ok {
			delete(info, key)
			continue
		}
		info[key] = types.StringLiteral(DateString(t))
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
	packet := xmp.Edit(nil, properties)
	if s.Part > 0 && s.UA {
		packet = xmp.Describe(packet, uaSchema)
	}
	ref := d.AddStream(types.Dict{"Type": types.Name("Metadata"), "Subtype": types.Name("XML")}, nil)
	pdf.SetContent(d.Stream(ref), packet) // not compressed, as part 1 requires
	d.Catalog()["Metadata"] = ref
}

// uaSchema describes the properties of PDF/UA, which PDF/A does not know (ISO 19005-1, 6.7.8).
var uaSchema = xmp.Schema{
	Name: "PDF/UA identification", Space: xmp.PDFUA, Prefix: "pdfuaid",
	Properties: []xmp.SchemaProperty{{Name: "part", Type: "Integer", Category: "internal", Doc: "part of ISO 14289"}},
}

// date matches a date (ISO 32000-2, 7.9.4).
var date = regexp.MustCompile(`^D:(\d{4})(\d\d)?(\d\d)?(\d\d)?(\d\d)?(\d\d)?(?:Z(?:00'?00'?)?|([+-])(\d\d)'?(?:(\d\d)'?)?)?$`)

// Date parses a date of the information dictionary. ok is false if it is not one.
func Date(s string) (t time.Time, ok bool) {
	m := date.FindStringSubmatch(s)
	if m == nil {
		return t, false
	}
	at := func(i, usual int) int {
		if n, err := strconv.Atoi(m[i]); err == nil {
			return n
		}
		return usual
	}
	zone := time.UTC
	if m[7] != "" {
		seconds := (at(8, 0)*60 + at(9, 0)) * 60
		if m[7] == "-" {
			seconds = -seconds
		}
		zone = time.FixedZone("", seconds)
	}
	t = time.Date(at(1, 0), time.Month(at(2, 1)), at(3, 1), at(4, 0), at(5, 0), at(6, 0), 0, zone)
	valid := t.Month() == time.Month(at(2, 1)) && t.Day() == at(3, 1) && t.Hour() == at(4, 0) && t.Year() > 0
	return t, valid
}

// DateString returns a date for the information dictionary.
func DateString(t time.Time) string {
	_, offset := t.Zone()
	if offset == 0 {
		return t.Format("D:20060102150405Z")
	}
	sign := '+'
	if offset < 0 {
		sign, offset = '-', -offset
	}
	return fmt.Sprintf("%s%c%02d'%02d'", t.Format("D:20060102150405"), sign, offset/3600, offset/60%60)
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
