package renderops

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
		doc, err := e.open(in, job)
		if err != nil {
			return err
		}
		pages, err := parsePages(job.Params.Get("pages"), doc.pages)
		if err != nil {
			return err
		}
		x, y := newExtractor(doc, nil), &layouter{}
		found := false
		return job.Write(fileops.ResultName(job.Input(), format.TXT), func(w io.Writer) error {
			out := bufio.NewWriter(w)
			for i, index := range pages {
				if err := cancelled(ctx); err != nil {
					return err
				}
				s, err := e.sheet(x, index, job)
				if err != nil {
					return err
				}
				if writeText(out, y.leaf(s, nil)) {
					found = true
				}
				out.WriteByte('\f')
				job.Progress(float64(i+1) / float64(len(pages)+1))
			}
			if !found {
				return errNoText
			}
			return out.Flush()
		})
	})
}

// errNoText tells that a document consists of pictures.
var errNoText = fileops.Fail(fileops.ErrUnsupportedInput, nil,
	"the document has no text layer: it seems to be scanned; character recognition is not available")

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
