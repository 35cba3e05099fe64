package pdfread

import (
	"bufio"
	"context"
	"io"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
)

// toText writes the text of pages in reading order, with a form feed after each.
func (e *Engine) toText(ctx context.Context, job *fileops.Job) error {
	return e.run(ctx, func(in *instance) error {
		doc, pages, err := e.openPages(in, job)
		if err != nil {
			return err
		}
		x, y := newExtractor(doc, nil), &layouter{}
		scans := e.newRecognition(ctx, job)
		defer scans.stop()
		found := false
		return job.Write(fileops.ResultName(job.Input(), format.TXT), func(w io.Writer) error {
			out := bufio.NewWriter(w)
			var waiting []*sheet // pages read, but not written
			flush := func(most int) error {
				for len(waiting) > 0 && (waiting[0].scan == nil || len(waiting) > most) {
					if scans != nil {
						if err := scans.wait(waiting[0]); err != nil {
							return err
						}
					}
					if writeText(out, y.leaf(waiting[0], nil)) {
						found = true
					}
					out.WriteByte('\f')
					waiting = waiting[1:]
				}
				return nil
			}
			err := e.eachSheet(ctx, job, x, scans, pages, 1, func(s *sheet) error {
				waiting = append(waiting, s)
				return flush(waitingPages)
			})
			if err != nil {
				return err
			}
			if err := flush(0); err != nil {
				return err
			}
			if !found {
				return e.errNoText()
			}
			return out.Flush()
		})
	})
}

// waitingPages is how many pages are kept until a scanned one among them is
// recognised.
const waitingPages = 32

// sheet reads a page. One that is damaged counts as empty, as long as pdfium
// works.
func (e *Engine) sheet(x *extractor, index int, job *fileops.Job) (*sheet, error) {
	defer x.in.within(e.timeout, e.errPageTimeout(index+1))()
	p := x.doc.load(index)
	if p == nil {
		if x.in.err == nil {
			job.Log.Warn("page is damaged", "page", index+1)
		}
		return &sheet{number: index + 1, w: 595, h: 842}, x.in.err
	}
	defer p.close()
	s := x.sheet(p)
	if e.recognizer != nil && x.in.err == nil {
		s.scan = x.scan(p, s)
	}
	return s, x.in.err
}

// writeText writes a page and tells whether there was anything on it. Errors
// stay in out.
func writeText(out *bufio.Writer, l *leaf) bool {
	any := false
	for _, b := range l.bands {
		for _, c := range b.columns {
			for _, bl := range c.blocks {
				if any && bl.before > 0.3*bl.lines[0].size || any && bl == c.blocks[0] {
					out.WriteByte('\n')
				}
				for _, ln := range bl.lines {
					any = true
					out.WriteString(ln.text())
					out.WriteByte('\n')
				}
			}
		}
	}
	return any
}
