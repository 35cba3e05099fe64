package pdfread

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
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
// pages. It reports progress up to part. A document without text is an error,
// unless it is blank, or the format to can hold pictures.
func (e *Engine) read(ctx context.Context, job *fileops.Job, part float64, to format.Format) (*reading, error) {
	pictures := to == format.DOCX || to == format.PPTX || to == format.HTML || to == format.MD
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
		x := extract.New(doc, r.media)
		x.AsShown = to == format.DOCX || to == format.PPTX
		err = e.eachSheet(ctx, job, x, scans, pages, part, func(s *model.Sheet) error {
			r.sheets = append(r.sheets, s)
			return nil
		})
		warnFonts(job, x.Missing.Names())
		return err
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
	if err := e.judgeSheets(job, r.sheets, pictures); err != nil {
		return nil, err
	}
	scans.warn(job)
	return r, nil
}

// judgeSheets fails if nothing useful was read from the pages, and warns about pages whose text is
// missing or unlikely. pictures reports whether the result can have pictures of pages.
func (e *Engine) judgeSheets(job *fileops.Job, sheets []*model.Sheet, pictures bool) error {
	var unlikely, pictured []int
	text, blank, damaged := false, true, true
	for _, s := range sheets {
		text, blank, damaged = text || len(s.Words) > 0, blank && s.Blank, damaged && s.Damaged
		switch {
		case s.Damaged:
		case s.Unlikely && (s.Scan == nil || s.Scan.Words == 0):
			unlikely = append(unlikely, s.Number)
		case len(s.Words) == 0 && !s.Blank:
			pictured = append(pictured, s.Number)
		}
	}
	switch {
	case damaged:
		return errDamaged()
	case !text && !blank && !pictures:
		return e.errNoText()
	}
	if pictures && len(pictured) > 0 {
		why := ""
		if e.recognizer == nil {
			why = "; to recognise text the server needs Tesseract"
		}
		job.Warn(fileops.WarnPageAsImage, "No text was found on %s%s.", pageList(pictured), why)
	}
	warnUnlikely(job, unlikely)
	return nil
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
		s, err := e.sheet(x, index)
		if err != nil {
			return err
		}
		warnDamaged(job, s)
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

// errDamaged returns the error for a document of which no requested page can be read.
func errDamaged() error {
	return fileops.Fail(fileops.ErrCorruptInput, nil, "all pages of the document are damaged")
}

// warnUnlikely reports pages whose text is probably wrong.
func warnUnlikely(job *fileops.Job, pages []int) {
	if len(pages) > 0 {
		job.Warn(fileops.WarnTextUnreliable, "The fonts of %s have no usable encoding, so the text may be wrong.", pageList(pages))
	}
}

// pageList returns page numbers for messages: "page 2", "pages 2, 3".
func pageList(numbers []int) string {
	const most = 12
	var b strings.Builder
	b.WriteString("page ")
	if len(numbers) > 1 {
		b.Reset()
		b.WriteString("pages ")
	}
	for i, n := range numbers {
		if i == most {
			fmt.Fprintf(&b, " and %d more", len(numbers)-i)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(strconv.Itoa(n))
	}
	return b.String()
}
