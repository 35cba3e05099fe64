package gotenberg

import (
	"errors"
	"net/http"
	"strings"
)

// An invoice is an electronic invoice to attach (Factur-X). Its zero value is none.
type invoice struct {
	level             string // of conformance, as the action attach names it
	document, version string
	xml               file
}

// levels maps the conformance levels of Factur-X to the profiles of the action attach.
var levels = map[string]string{
	"MINIMUM": "minimum", "BASIC WL": "basic_wl", "BASIC": "basic", "EN 16931": "en16931", "EXTENDED": "extended", "XRECHNUNG": "xrechnung",
}

// invoice reads the fields of an invoice. pdfa is the requested format of PDF/A, or "". The caller must
// check r.err before the error: it is about fields that Gotenberg checks later.
func (c *call) invoice(r *reader, pdfa string) (v invoice, err error) {
	r.custom("facturxConformanceLevel", func(value string) error {
		if v.level = levels[value]; v.level == "" && value != "" {
			return errors.New("unsupported conformance level")
		}
		return nil
	})
	v.document = "invoice"
	r.custom("facturxDocumentType", func(value string) error {
		switch value {
		case "":
		case "INVOICE", "ORDER", "ORDER_RESPONSE", "ORDER_CHANGE":
			v.document = strings.ToLower(value)
		default:
			return errors.New("unsupported document type")
		}
		return nil
	})
	if v.version = r.text("facturxVersion"); v.version == "" {
		v.version = "1.0"
	}
	files := c.form.of("facturxXml")
	switch {
	case len(files) == 0 && v.level == "":
	case v.level == "":
		return v, refuse(http.StatusBadRequest, "Invalid form data: 'facturxConformanceLevel' is required when 'facturxXml' is provided")
	case len(files) == 0:
		return v, refuse(http.StatusBadRequest, "Invalid form data: 'facturxXml' file is required when 'facturxConformanceLevel' is set")
	case pdfa != "" && !strings.HasPrefix(pdfa, "PDF/A-3"):
		return v, refuse(http.StatusBadRequest, "Invalid form data: Factur-X requires a PDF/A-3 variant (PDF/A-3a, PDF/A-3b, or PDF/A-3u), got '%s'", pdfa)
	default:
		v.xml = files[len(files)-1]
	}
	return v, nil
}

// apply makes invoices of documents.
func (v invoice) apply(c *call, docs []doc) ([]doc, error) {
	if v.level == "" {
		return docs, nil
	}
	return c.each(docs, "attach", map[string]any{
		"file_key": v.xml.key, "facturx": v.level, "facturx_document": v.document, "facturx_version": v.version,
	})
}

// invoicePDF answers POST /forms/pdfengines/factur-x.
func invoicePDF(c *call) ([]doc, error) {
	r, p := &reader{form: &c.form}, post{}
	r.formats(&p)
	v, later := c.invoice(r, p.pdfa)
	docs, err := simple(r)
	if err == nil {
		err = later
	}
	if err == nil && v.level == "" {
		err = refuse(http.StatusBadRequest, "Invalid form data: 'facturxConformanceLevel' and 'facturxXml' are both required")
	}
	if err != nil {
		return nil, err
	}
	p.invoice = v
	return p.apply(c, docs)
}
