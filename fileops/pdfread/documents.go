package pdfread

import (
	"context"
	"io"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/pdfread/internal/docx"
	"github.com/filewright/filewright/fileops/pdfread/internal/flow"
	"github.com/filewright/filewright/fileops/pdfread/internal/html"
	"github.com/filewright/filewright/fileops/pdfread/internal/layout"
	"github.com/filewright/filewright/fileops/pdfread/internal/markdown"
	"github.com/filewright/filewright/fileops/pdfread/internal/model"
	"github.com/filewright/filewright/fileops/pdfread/internal/pdfium"
	"github.com/filewright/filewright/fileops/pdfread/internal/tables"
)

// errPageTimeout is the cause with which an instance is killed that takes too
// long for a page.
func (e *Engine) errPageTimeout(number int) error {
	return fileops.Fail(fileops.ErrLimit, nil, "page %d takes longer to process than the limit of %v", number, e.timeout)
}

// open reads the input of job into an instance.
func (e *Engine) open(in *pdfium.Instance, job *fileops.Job) (*pdfium.Document, error) {
	data, err := job.Input().ReadAll(pdfium.MaxFileSize)
	if err != nil {
		return nil, err
	}
	defer in.Within(e.timeout, fileops.Fail(fileops.ErrLimit, nil, "the document takes longer to open than the limit of %v", e.timeout))()
	return pdfium.OpenDocument(in, data)
}

// document reads and lays out the document of job. It reads all pages before it
// lays out the first: headings, lists and headers can be recognized only in the
// whole document.
func (e *Engine) document(ctx context.Context, job *fileops.Job) (*model.Document, error) {
	r, err := e.read(ctx, job, 0.85)
	if err != nil {
		return nil, err
	}
	d := layout.Document(ctx, r.sheets, r.marks)
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	d.Info, d.Lang, d.Media = r.info, r.lang, r.media.All
	job.Progress(0.92)
	return d, nil
}

// toDocument writes the document of job in a format that needs its structure.
func (e *Engine) toDocument(ctx context.Context, job *fileops.Job, to format.Format) error {
	d, err := e.document(ctx, job)
	if err != nil {
		return err
	}
	var write func(io.Writer) error
	switch to {
	case format.DOCX:
		write = func(w io.Writer) error { return docx.Write(ctx, w, d) }
	case format.HTML:
		name := format.Base(job.Input().Name())
		write = func(w io.Writer) error { return html.Write(ctx, w, flow.New(d), name) }
	case format.MD:
		write = func(w io.Writer) error { return markdown.Write(w, flow.New(d)) }
	default:
		ts, err := tables.Find(d)
		if err != nil {
			return err
		}
		write = func(w io.Writer) error { return tables.WriteCSV(ctx, w, ts) }
		if to == format.XLSX {
			write = func(w io.Writer) error { return tables.WriteXLSX(ctx, w, ts, flow.New(d).Lang) }
		}
	}
	return job.Write(fileops.ResultName(job.Input(), to), write)
}
