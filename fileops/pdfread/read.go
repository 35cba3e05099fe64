package pdfread

import (
	"context"
	"slices"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/pdfread/internal/extract"
	"github.com/filewright/filewright/fileops/pdfread/internal/model"
	"github.com/filewright/filewright/fileops/pdfread/internal/pdfium"
)

// A reading is the content of a document before layout.
type reading struct {
	sheets []*model.Sheet
	marks  []model.Bookmark
	info   model.Info
	lang   string // of the catalog, as in RFC 5646; "" if unknown
	media  *extract.Store
}

// read reads all requested pages with their pictures, and recognizes scanned
// pages. It reports progress up to part. A document without text is an error.
func (e *Engine) read(ctx context.Context, job *fileops.Job, part float64) (*reading, error) {
	dir, err := job.Dir()
	if err != nil {
		return nil, err
	}
	r := &reading{media: extract.NewStore(dir)}
	scans := e.newRecognition(ctx, job)
	defer scans.stop()
	err = e.pool.Run(ctx, func(in *pdfium.Instance) error {
		doc, pages, err := e.openPages(in, job)
		if err != nil {
			return err
		}
		r.info = model.Info{Title: doc.MetaText("Title"), Author: doc.MetaText("Author"), Subject: doc.MetaText("Subject")}
		r.lang = doc.Language()
		r.marks = extract.Outline(doc)
		return e.eachSheet(ctx, job, extract.New(doc, r.media), scans, pages, part, func(s *model.Sheet) error {
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
	if !slices.ContainsFunc(r.sheets, func(s *model.Sheet) bool { return len(s.Words) > 0 }) {
		return nil, e.errNoText()
	}
	return r, nil
}

// openPages opens the document of a job and returns the indices of the requested
// pages.
func (e *Engine) openPages(in *pdfium.Instance, job *fileops.Job) (*pdfium.Document, []int, error) {
	doc, err := e.open(in, job)
	if err != nil {
		return nil, nil, err
	}
	pages, err := e.choose(job, doc.Pages)
	return doc, pages, err
}

// eachSheet reads pages and calls do with each. If scans is not nil, recognition
// of a scanned page has started by then. It reports progress up to part.
func (e *Engine) eachSheet(ctx context.Context, job *fileops.Job, x *extract.Extractor, scans *recognition, pages []int, part float64, do func(*model.Sheet) error) error {
	for i, index := range pages {
		if err := context.Cause(ctx); err != nil {
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
