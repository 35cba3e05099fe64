package pdfops

import (
	"bytes"
	"cmp"
	"context"
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/pdfops/internal/pdf"
	"github.com/filewright/filewright/fileops/pdfops/internal/pdfa"
)

// A profile is a conformance level of Factur-X and ZUGFeRD 2 (Factur-X 1.07, sections 6 and 7).
type profile struct {
	value        string // of the parameter facturx
	level        string // in the metadata of the PDF file
	guideline    string // end of the identifier in the invoice
	name         string // of the attachment
	relationship string // value of the parameter relationship
}

const invoiceName = "factur-x.xml"

var profiles = []profile{
	{"minimum", "MINIMUM", ":minimum", invoiceName, "data"},
	{"basic_wl", "BASIC WL", ":basicwl", invoiceName, "data"},
	{"basic", "BASIC", ":basic", invoiceName, "alternative"},
	{"en16931", "EN 16931", "urn:cen.eu:en16931:2017", invoiceName, "alternative"},
	{"extended", "EXTENDED", ":extended", invoiceName, "alternative"},
	{"xrechnung", "XRECHNUNG", ":xrechnung_", "xrechnung.xml", "alternative"}, // a version follows
}

// profileOf returns the profile that an invoice names.
func profileOf(guideline string) (profile, bool) {
	i := slices.IndexFunc(profiles, func(p profile) bool {
		return strings.HasSuffix(guideline, p.guideline) || strings.HasSuffix(p.guideline, "_") && strings.Contains(guideline, p.guideline)
	})
	if i < 0 {
		return profile{}, false
	}
	return profiles[i], true
}

// profileAuto is the value of the parameter facturx that takes the profile that the invoice names.
const profileAuto = "auto"

// invoiceParams are the parameters of the action attach for invoices.
func invoiceParams() []fileops.Param {
	values := []string{profileAuto}
	for _, p := range profiles {
		values = append(values, p.value)
	}
	return []fileops.Param{{
		Name: "facturx", Enum: values,
		Doc: "Makes an electronic invoice (Factur-X, ZUGFeRD): the file is its XML, and the result is PDF/A-3 and names this profile; auto takes that of the XML.",
	}, {
		Name: "facturx_document", Enum: []string{"invoice", "order", "order_response", "order_change"}, Default: "invoice",
		Doc: "Type of the document, with facturx.",
	}, {
		Name: "facturx_version", Default: "1.0", Min: 1, Max: 20, Pattern: `[0-9A-Za-z.]+`,
		Doc: "Version of the schema of the XML, with facturx.",
	}}
}

// invoiceProfile returns the profile that an invoice gets. It warns if the XML does not confirm a given one.
func invoiceProfile(job *fileops.Job, content []byte) (profile, error) {
	root, guideline, err := readInvoice(content)
	if err != nil {
		return profile{}, fileops.Fail(fileops.ErrUnsupportedInput, err, "the file to attach is not well-formed XML, so it cannot be an invoice")
	}
	found, known := profileOf(guideline)
	wanted := job.Params.Get("facturx")
	if wanted == profileAuto {
		if !known {
			return profile{}, fileops.Fail(fileops.ErrUnsupportedInput, nil, "the XML names no profile of Factur-X; name one with facturx")
		}
		return found, nil
	}
	given := profiles[slices.IndexFunc(profiles, func(p profile) bool { return p.value == wanted })]
	switch {
	case root != (xml.Name{Space: "urn:un:unece:uncefact:data:standard:CrossIndustryInvoice:100", Local: "CrossIndustryInvoice"}):
		job.Warn(fileops.WarnInvoiceUnverified, "The attached XML is no Cross Industry Invoice, so programs will not find an invoice in the file.")
	case !known:
		job.Warn(fileops.WarnInvoiceUnverified, "The attached invoice names no known profile; the file claims %s.", given.level)
	case found != given:
		job.Warn(fileops.WarnInvoiceUnverified, "The attached invoice names the profile %s; the file claims %s.", found.level, given.level)
	}
	return given, nil
}

// readInvoice returns the root element of an invoice and the identifier of its guideline.
func readInvoice(content []byte) (root xml.Name, guideline string, err error) {
	const identifier = "ExchangedDocumentContext/GuidelineSpecifiedDocumentContextParameter/ID"
	d := xml.NewDecoder(bytes.NewReader(content))
	var path []string
	for {
		t, err := d.Token()
		switch {
		case errors.Is(err, io.EOF) && root.Local == "":
			return root, "", errors.New("no element")
		case errors.Is(err, io.EOF):
			return root, guideline, nil
		case err != nil:
			return root, "", err
		}
		const deepest = 200 // elements; an invoice has about 10
		switch t := t.(type) {
		case xml.StartElement:
			if root.Local == "" {
				root = t.Name
			}
			if path = append(path, t.Name.Local); len(path) > deepest {
				return root, "", errors.New("elements are nested too deeply")
			}
		case xml.EndElement:
			path = path[:len(path)-1]
		case xml.CharData:
			if len(path) == 4 && strings.Join(path[1:], "/") == identifier {
				guideline = cmp.Or(strings.TrimSpace(string(t)), guideline)
			}
		}
	}
}

// attachInvoice attaches an invoice to a document, which it makes PDF/A-3 first.
func (t Tools) attachInvoice(ctx context.Context, job *fileops.Job, d *pdf.Document, pages []pdf.Page, content []byte) error {
	p, err := invoiceProfile(job, content)
	if err != nil {
		return err
	}
	before, err := plainCopy(d)
	if err != nil {
		return err
	}
	if claimedPart(d) != 3 || len(pdfa.Check(d, pages, 3)) > 0 {
		accessible := d.Claims("pdfuaid:part")
		made, _, err := t.archivable(ctx, job, d, pages, 3)
		if err != nil {
			return err
		}
		if made != d {
			defer made.Close()
			accessible = false // the tags are gone
		}
		d = made
		pdfa.Claim(d, pdfa.Standard{Part: 3, UA: accessible})
	}
	relationship := job.Params.Get("relationship")
	if relationship == unspecified {
		relationship = p.relationship
	}
	attach(d, p.name, "text/xml", relationships[relationship], content)
	pdfa.ClaimInvoice(d, pdfa.Invoice{
		Type: strings.ToUpper(job.Params.Get("facturx_document")), File: p.name, Version: job.Params.Get("facturx_version"), Level: p.level,
	})
	d.Version = "1.7"
	return t.writeCompared(ctx, job, d, false, before, len(pages))
}
