package pdfread

import (
	"context"
	"regexp"
	"slices"

	"github.com/filewright/filewright/fileops"
)

// A reading is what was read of a document before it is laid out.
type reading struct {
	sheets []*sheet
	marks  []bookmark
	info   docInfo
	lang   string // of the catalog, as in RFC 5646; "" if unknown
	media  *mediaStore
}

// read reads all pages that job asks for, with their pictures; scanned ones are
// recognised. It is progress up to part. A document without any text is an error.
func (e *Engine) read(ctx context.Context, job *fileops.Job, part float64) (*reading, error) {
	dir, err := job.Dir()
	if err != nil {
		return nil, err
	}
	r := &reading{media: newMediaStore(dir)}
	scans := e.newRecognition(ctx, job)
	defer scans.stop()
	err = e.run(ctx, func(in *instance) error {
		doc, pages, err := e.openPages(in, job)
		if err != nil {
			return err
		}
		r.info = docInfo{title: doc.metaText("Title"), author: doc.metaText("Author"), subject: doc.metaText("Subject")}
		r.lang = doc.language()
		r.marks = doc.outline()
		return e.eachSheet(ctx, job, newExtractor(doc, r.media), scans, pages, part, func(s *sheet) error {
			r.sheets = append(r.sheets, s)
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	for _, s := range r.sheets {
		if scans == nil {
			break
		}
		if err := scans.wait(s); err != nil {
			return nil, err
		}
	}
	job.Progress(part)
	if !slices.ContainsFunc(r.sheets, func(s *sheet) bool { return len(s.words) > 0 }) {
		return nil, e.errNoText()
	}
	return r, nil
}

// openPages opens the document of a job and returns the indices of the pages that
// it asks for.
func (e *Engine) openPages(in *instance, job *fileops.Job) (*document, []int, error) {
	doc, err := e.open(in, job)
	if err != nil {
		return nil, nil, err
	}
	pages, err := e.choose(job, doc.pages)
	return doc, pages, err
}

// eachSheet reads pages and calls do with each, which scans, unless it is nil, has
// begun to recognise by then if it is a scanned one. It is progress up to part.
func (e *Engine) eachSheet(ctx context.Context, job *fileops.Job, x *extractor, scans *recognition, pages []int, part float64, do func(*sheet) error) error {
	for i, index := range pages {
		if err := cancelled(ctx); err != nil {
			return err
		}
		s, err := e.sheet(x, index, job)
		if err != nil {
			return err
		}
		if scans != nil {
			if err := scans.add(s); err != nil {
				return err
			}
		}
		if err := do(s); err != nil {
			return err
		}
		job.Progress(part * float64(i+1) / float64(len(pages)+1))
	}
	return nil
}

// language returns that of the document, as the catalog tells it (ISO 32000-1,
// 14.9.2), "" if it does not or if what it says is no language tag.
func (d *document) language() string {
	in := d.in
	lang := utf16String(in.withBuffer(256, func(b, n uint64) int { return in.int("FPDFCatalog_GetLanguage", d.ptr, b, n) }))
	if !languageTag.MatchString(lang) {
		return ""
	}
	return lang
}

// languageTag is the form of most language tags (RFC 5646).
var languageTag = regexp.MustCompile(`^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$`)
