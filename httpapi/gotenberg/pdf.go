package gotenberg

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

// mergePDF answers POST /forms/pdfengines/merge.
func mergePDF(c *call) ([]doc, error) {
	r := &reader{form: &c.form}
	p, later := c.post(r, false)
	docs := r.inputs(".pdf")
	p.flatten = r.flag("flatten", false)
	x := r.index()
	if err := r.err(); err != nil {
		return nil, err
	}
	if later != nil {
		return nil, later
	}
	var err error
	if p.bookmarks, err = x.of(c, docs); err != nil {
		return nil, err
	}
	if docs, err = c.merged(docs); err != nil {
		return nil, err
	}
	return p.apply(c, docs)
}

// merged joins documents.
func (c *call) merged(docs []doc) ([]doc, error) {
	name := c.base() + ".pdf"
	if len(docs) == 1 {
		return []doc{{docs[0].key, name}}, nil
	}
	products, err := c.run(step{"merge", map[string]any{"convert_to": "pdf"}, docs})
	if err != nil {
		return nil, err
	}
	return []doc{{products[0].docs[0].key, name}}, nil
}

// splitPDF answers POST /forms/pdfengines/split.
func splitPDF(c *call) ([]doc, error) {
	r := &reader{form: &c.form}
	s := r.split(true)
	p, later := c.post(r, false)
	p.split = s
	docs := r.inputs(".pdf")
	p.flatten = r.flag("flatten", false)
	if err := r.err(); err != nil {
		return nil, err
	}
	if later != nil {
		return nil, later
	}
	return p.apply(c, docs)
}

// simple returns the inputs of a route that only reads PDF files.
func simple(r *reader) ([]doc, error) {
	docs := r.inputs(".pdf")
	return docs, r.err()
}

// convertPDF answers POST /forms/pdfengines/convert.
func convertPDF(c *call) ([]doc, error) {
	r, p := &reader{form: &c.form}, post{}
	r.formats(&p)
	docs, err := simple(r)
	if err != nil {
		return nil, err
	}
	if p.pdfa == "" && !p.pdfua {
		return nil, refuse(http.StatusBadRequest, "Invalid form data: either 'pdfa' or 'pdfua' form fields must be provided")
	}
	return p.apply(c, docs)
}

// rotatePDF answers POST /forms/pdfengines/rotate.
func rotatePDF(c *call) ([]doc, error) {
	r, p := &reader{form: &c.form}, post{}
	r.rotation(&p, true)
	docs, err := simple(r)
	if err != nil {
		return nil, err
	}
	return p.apply(c, docs)
}

// encryptPDF answers POST /forms/pdfengines/encrypt.
func encryptPDF(c *call) ([]doc, error) {
	r, p := &reader{form: &c.form}, post{}
	p.lock = r.lock()
	docs, err := simple(r)
	if err != nil {
		return nil, err
	}
	if p.lock.user == "" && p.lock.owner == "" {
		return nil, refuse(http.StatusBadRequest, "Invalid form data: a 'userPassword' or 'ownerPassword' is required")
	}
	return p.apply(c, docs)
}

// flattenPDF answers POST /forms/pdfengines/flatten.
func flattenPDF(c *call) ([]doc, error) {
	docs, err := simple(&reader{form: &c.form})
	if err != nil {
		return nil, err
	}
	p := post{flatten: true}
	return p.apply(c, docs)
}

// optimizePDF answers POST /forms/pdfengines/optimize.
func optimizePDF(c *call) ([]doc, error) {
	r, p := &reader{form: &c.form}, post{}
	r.optimize(&p)
	docs, err := simple(r)
	if err != nil {
		return nil, err
	}
	p.optimize = true
	return p.apply(c, docs)
}

// markPDF answers POST /forms/pdfengines/watermark and stamp.
func markPDF(kind string) handler {
	return func(c *call) ([]doc, error) {
		marks, later := c.marks(kind)
		if later != nil && marks == nil {
			return nil, later
		}
		docs, err := simple(&reader{form: &c.form})
		switch {
		case err != nil:
			return nil, err
		case len(marks) == 0:
			return nil, refuse(http.StatusBadRequest, "Invalid form data: form field '%sSource' is required", kind)
		case later != nil:
			return nil, later
		}
		p := post{watermarks: marks}
		if kind == "stamp" {
			p = post{stamps: marks}
		}
		return p.apply(c, docs)
	}
}

// writeMetadata answers POST /forms/pdfengines/metadata/write.
func writeMetadata(c *call) ([]doc, error) {
	r := &reader{form: &c.form}
	p := post{metadata: r.metadata(true)}
	docs, err := simple(r)
	if err != nil {
		return nil, err
	}
	return p.apply(c, docs)
}

// A report is the result of the action inspect, as far as the routes need it.
type report struct {
	Metadata map[string]any `json:"metadata"`
	PDF      struct {
		Version string `json:"version"`
		Pages   int    `json:"pages"`

		Bookmarks []struct {
			Title string `json:"title"`
			Page  int    `json:"page"`
			Level int    `json:"level"`
		} `json:"bookmarks"`
	} `json:"pdf"`
}

// maxReport bounds the size of a report in bytes.
const maxReport = 16 << 20

// reports inspects documents.
func (c *call) reports(docs []doc) ([]report, error) {
	inspected, err := c.each(docs, "inspect", nil)
	if err != nil {
		return nil, err
	}
	out := make([]report, len(docs))
	for i, d := range inspected {
		text, err := c.read(d.key, maxReport)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(text, &out[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// readMetadata answers POST /forms/pdfengines/metadata/read.
func readMetadata(c *call) ([]doc, error) {
	docs, err := simple(&reader{form: &c.form})
	if err != nil {
		return nil, err
	}
	reports, err := c.reports(docs)
	if err != nil {
		return nil, err
	}
	all := make(map[string]map[string]any)
	for i, r := range reports {
		all[docs[i].name] = r.exif()
	}
	c.body = all
	return nil, nil
}

// exif returns the metadata of a report under the names of ExifTool.
func (r report) exif() map[string]any {
	out := map[string]any{"FileType": "PDF", "FileTypeExtension": "pdf", "MIMEType": "application/pdf", "PageCount": r.PDF.Pages}
	version := json.Number(r.PDF.Version)
	if n, err := version.Float64(); err == nil {
		out["PDFVersion"] = n
	}
	for ours, theirs := range map[string]string{
		"title": "Title", "author": "Author", "subject": "Subject", "keywords": "Keywords", "program": "Creator", "producer": "Producer",
		"copyright": "Copyright", "trapped": "Trapped",
	} {
		if v, ok := r.Metadata[ours]; ok {
			out[theirs] = v
		}
	}
	if list, ok := r.Metadata["keywords"].(string); ok && strings.Contains(list, ", ") {
		out["Keywords"] = strings.Split(list, ", ")
	}
	if v, ok := r.Metadata["marked"].(string); ok {
		out["Marked"] = strings.EqualFold(v, "true")
	}
	for ours, theirs := range map[string]string{"created": "CreateDate", "modified": "ModDate"} {
		if v, ok := r.Metadata[ours].(string); ok {
			if t, err := time.Parse(time.RFC3339, v); err == nil {
				out[theirs] = t.Format("2006:01:02 15:04:05Z07:00")
			}
		}
	}
	return out
}
