package pdfread

import (
	"bufio"
	"context"
	"io"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/pdfread/internal/extract"
	"github.com/filewright/filewright/fileops/pdfread/internal/layout"
	"github.com/filewright/filewright/fileops/pdfread/internal/model"
	"github.com/filewright/filewright/fileops/pdfread/internal/pdfium"
	"github.com/filewright/filewright/fileops/pdfread/internal/text"
)

// toText writes the text of pages in reading order, with a form feed after each.
func (e *Engine) toText(ctx context.Context, job *fileops.Job) error {
	return e.pool.Run(ctx, func(in *pdfium.Instance) error {
		doc, pages, err := e.openPages(in, job)
		if err != nil {
			return err
		}
		x := extract.New(doc, nil)
		scans := e.newRecognition(ctx, job)
		defer scans.stop()
		found, blank, damaged := false, true, true
		return job.Write(fileops.ResultName(job.Input(), format.TXT), func(w io.Writer) error {
			out := bufio.NewWriter(w)
			var waiting []*model.Sheet // pages read, but not written
			var guessed []int
			flush := func(most int) error {
				for len(waiting) > 0 && (waiting[0].Scan == nil || len(waiting) > most) {
					if scans != nil {
						if err := scans.wait(waiting[0]); err != nil {
							return err
						}
					}
					if s := waiting[0]; s.Unlikely && (s.Scan == nil || s.Scan.Words == 0) {
						guessed = append(guessed, s.Number)
					}
					if text.Write(out, layout.Text(waiting[0])) {
						found = true
					}
					out.WriteByte('\f')
					waiting = waiting[1:]
				}
				return nil
			}
			err := e.eachSheet(ctx, job, x, scans, pages, 1, func(s *model.Sheet) error {
				blank, damaged = blank && s.Blank, damaged && s.Damaged
				waiting = append(waiting, s)
				return flush(waitingPages)
			})
			if err != nil {
				return err
			}
			if err := flush(0); err != nil {
				return err
			}
			switch {
			case damaged:
				return errDamaged()
			case !found && !blank:
				return e.errNoText()
			}
			warnUnlikely(job, guessed)
			scans.warn(job)
			return out.Flush()
		})
	})
}

// waitingPages limits the pages in memory that wait for the recognition of a
// scanned one.
const waitingPages = 32

// sheet reads a page. A damaged page counts as empty, unless pdfium itself
// fails.
func (e *Engine) sheet(x *extract.Extractor, index int, job *fileops.Job) (*model.Sheet, error) {
	defer x.In.Within(e.timeout, e.errPageTimeout(index+1))()
	p := x.Doc.Load(index)
	if p == nil {
		if x.In.Err == nil {
			job.Warn(fileops.WarnContentDropped, "Page %d is damaged, so its content was left out.", index+1)
		}
		return &model.Sheet{Number: index + 1, W: 595, H: 842, Damaged: true}, x.In.Err
	}
	defer p.Close()
	s := x.Sheet(p)
	if len(s.Words) == 0 && x.In.Err == nil {
		s.Blank = extract.Blank(p)
	}
	if e.recognizer != nil && x.In.Err == nil && !s.Blank {
		s.Scan = x.Scan(p, s)
	}
	return s, x.In.Err
}
