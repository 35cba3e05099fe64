package pdfops_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/pdfops"
	"github.com/filewright/filewright/internal/systest"
)

// invoiceXML is the start of a Cross Industry Invoice.
func invoiceXML(guideline string) []byte {
	return []byte(`<?xml version="1.0" encoding="UTF-8"?>
<rsm:CrossIndustryInvoice xmlns:rsm="urn:un:unece:uncefact:data:standard:CrossIndustryInvoice:100" xmlns:ram="urn:un:unece:uncefact:data:standard:ReusableAggregateBusinessInformationEntity:100">
<rsm:ExchangedDocumentContext><ram:GuidelineSpecifiedDocumentContextParameter><ram:ID>` + guideline + `</ram:ID></ram:GuidelineSpecifiedDocumentContextParameter></rsm:ExchangedDocumentContext>
<rsm:ExchangedDocument><ram:ID>1</ram:ID></rsm:ExchangedDocument>
</rsm:CrossIndustryInvoice>`)
}

const en16931 = "urn:cen.eu:en16931:2017"

// An invoice is PDF/A-3, and names its profile, with which its XML is attached.
func TestInvoice(t *testing.T) {
	t.Parallel()
	tools := pdfops.Tools{Ghostscript: findGhostscript(t), Renderer: eyes(t)}
	plain := painted("", "/Resources<<>>", "1 0 0 rg 50 50 100 100 re f")
	foreign := painted("", "/Resources<</Font<</F 5 0 R>>>>", "BT /F 20 Tf 20 100 Td (Invoice) Tj ET",
		"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>") // its font is not embedded
	for _, c := range []struct {
		in        []byte
		guideline string
		args      fileops.Args
		level     string
		name      string
		relation  string
		warnings  []string
	}{
		{plain, en16931, fileops.Args{"facturx": "auto"}, "EN 16931", "factur-x.xml", "Alternative", nil},
		{foreign, "urn:factur-x.eu:1p0:minimum", fileops.Args{"facturx": "auto", "facturx_version": "1.0.7"}, "MINIMUM", "factur-x.xml", "Data", nil},
		{plain, "urn:factur-x.eu:1p0:basicwl", fileops.Args{"facturx": "auto", "relationship": "source"}, "BASIC WL", "factur-x.xml", "Source", nil},
		{plain, en16931 + "#compliant#urn:factur-x.eu:1p0:basic", fileops.Args{"facturx": "basic"}, "BASIC", "factur-x.xml", "Alternative", nil},
		{plain, en16931 + "#conformant#urn:factur-x.eu:1p0:extended", fileops.Args{"facturx": "auto"}, "EXTENDED", "factur-x.xml", "Alternative", nil},
		{plain, en16931 + "#compliant#urn:xeinkauf.de:kosit:xrechnung_3.0", fileops.Args{"facturx": "auto"}, "XRECHNUNG", "xrechnung.xml", "Alternative", nil},
		{plain, en16931, fileops.Args{"facturx": "extended"}, "EXTENDED", "factur-x.xml", "Alternative", []string{fileops.WarnInvoiceUnverified}},
		{plain, "urn:other", fileops.Args{"facturx": "basic", "facturx_document": "order"}, "BASIC", "factur-x.xml", "Alternative", []string{fileops.WarnInvoiceUnverified}},
	} {
		t.Run(c.level+" "+c.guideline, func(t *testing.T) {
			t.Parallel()
			xml := invoiceXML(c.guideline)
			args := fileops.Args{"file_key": fileops.Bytes("my invoice.xml", xml)}
			for k, v := range c.args {
				args[k] = v
			}
			f := run(t, tools.Attach(), args, pdf("in.pdf", c.in))
			if got := warned(t, tools.Attach(), args, pdf("in.pdf", c.in)); !slices.Equal(got, c.warnings) {
				t.Errorf("warnings %v, want %v", got, c.warnings)
			}
			check := func(f *fileops.File) {
				t.Helper()
				sound(t, f)
				path := save(t, f)
				var all []map[string]any
				systest.NoError(t, json.Unmarshal([]byte(shell(t, "exiftool", "-json", "-G1", path)), &all))
				part, _ := all[0]["XMP-pdfaid:Part"].(float64)
				if part != 3 || all[0]["XMP-fx:ConformanceLevel"] != c.level || all[0]["XMP-fx:DocumentFileName"] != c.name {
					t.Errorf("metadata: %v", all[0])
				}
				said := shell(t, "pdfinfo", "-meta", path)
				if n := strings.Count(said, "pdfaExtension:schemas>"); n != 2 || strings.Count(said, ">urn:factur-x:pdfa:CrossIndustryDocument:invoice:1p0#<") != 1 {
					t.Errorf("schemas of the packet: %s", said)
				}
				if list := shell(t, "pdfdetach", "-list", path); !strings.HasPrefix(list, "1 embedded") || !strings.Contains(list, c.name) {
					t.Errorf("attachments %s", list)
				}
				if got := shell(t, "pdfdetach", "-save", "1", "-o", "/dev/stdout", path); got != string(xml) {
					t.Errorf("the XML became %q", got)
				}
				if objects := shell(t, "qpdf", "--qdf", "--object-streams=disable", path, "-"); !strings.Contains(objects, "/AFRelationship /"+c.relation) {
					t.Errorf("no relationship %s", c.relation)
				}
			}
			check(f)
			// Neither a second invoice nor a conversion changes what the file says.
			again := run(t, tools.Attach(), args, f)
			check(again)
			check(run(t, tools.ConvertArchival(), fileops.Args{"convert_to": "pdf", "pdfa": "3b"}, again))
		})
	}
	for _, c := range []struct{ xml, facturx string }{
		{"no XML", "basic"}, {"<a>", "basic"}, {strings.Repeat("<a>", 1000), "basic"}, {"", "basic"},
		{"<a/>", "auto"}, {string(invoiceXML("urn:other")), "auto"},
	} {
		args := fileops.Args{"file_key": fileops.Bytes("a.xml", []byte(c.xml)), "facturx": c.facturx}
		fails(t, fileops.ErrUnsupportedInput, tools.Attach(), args, pdf("in.pdf", plain))
	}
}

// Without Ghostscript, a file that must be drawn again fails, and is not called an invoice.
func TestInvoiceWithoutGhostscript(t *testing.T) {
	t.Parallel()
	in := painted("", "/Resources<</Font<</F 5 0 R>>>>", "BT /F 20 Tf 20 100 Td (Invoice) Tj ET", "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>")
	args := fileops.Args{"file_key": fileops.Bytes("a.xml", invoiceXML(en16931)), "facturx": "auto"}
	fails(t, fileops.ErrUnsupportedInput, pdfops.Attach(), args, pdf("in.pdf", in))
}
