package pdfread

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/pdfread/internal/extract"
	"github.com/filewright/filewright/fileops/pdfread/internal/layout"
	"github.com/filewright/filewright/fileops/pdfread/internal/model"
	"github.com/filewright/filewright/fileops/pdfread/internal/pdfium"
	"github.com/filewright/filewright/fileops/pdfread/internal/text"
)

// toText writes the text of pages in reading order, with a form feed after each. Free
// instances read pages of longer documents too.
func (e *Engine) toText(ctx context.Context, job *fileops.Job) error {
	return e.pool.Run(ctx, func(in *pdfium.Instance) error {
		doc, pages, err := e.openPages(in, job)
		if err != nil {
			return err
		}
		r := &textRun{e: e, job: job, scans: e.newRecognition(ctx, job), pages: pages}
		defer r.scans.stop()
		return job.Write(fileops.ResultName(job.Input(), format.TXT), func(w io.Writer) error { return r.run(ctx, doc, w) })
	})
}

// A textRun is one run of toText.
type textRun struct {
	e     *Engine
	job   *fileops.Job
	scans *recognition // nil without a recognizer
	pages []int        // indexes

	next   atomic.Int64     // index into pages
	ahead  chan struct{}    // one for each page that is read and not written
	leaves []chan *textLeaf // of pages; each gets one
}

// A textLeaf is a page that was read.
type textLeaf struct {
	sheet *model.Sheet // only its flags count if it has a text
	text  []byte       // nil for scanned pages, whose words are not known yet
	found bool         // the text is not empty
}

// Limits of reading.
const (
	pagesAhead  = 32       // pages in memory that wait for those before them
	helperPages = 16       // pages for each instance that helps
	helperBytes = 64 << 20 // largest document that several instances hold
)

func (r *textRun) run(ctx context.Context, doc *pdfium.Document, w io.Writer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	r.ahead = make(chan struct{}, pagesAhead)
	r.leaves = make([]chan *textLeaf, len(r.pages))
	for i := range r.leaves {
		r.leaves[i] = make(chan *textLeaf, 1)
	}
	var others sync.WaitGroup
	defer others.Wait()
	defer cancel(nil)
	if r.job.Input().Size() <= helperBytes {
		for range min(r.e.pool.Size(), len(r.pages)/helperPages) - 1 {
			others.Go(func() {
				if err := r.help(ctx); err != nil {
					cancel(err)
				}
			})
		}
	}
	others.Go(func() {
		if err := r.write(ctx, w); err != nil {
			cancel(err)
		}
	})
	if err := r.read(ctx, doc); err != nil {
		cancel(err)
	}
	others.Wait()
	return context.Cause(ctx)
}

// help reads pages in another instance, if one is free.
func (r *textRun) help(ctx context.Context) error {
	_, err := r.e.pool.TryRun(ctx, func(in *pdfium.Instance) error {
		doc, err := r.e.open(in, r.job)
		if err != nil {
			return err
		}
		return r.read(ctx, doc)
	})
	return err
}

// read reads pages until all are taken.
func (r *textRun) read(ctx context.Context, doc *pdfium.Document) error {
	x := extract.New(doc, nil)
	for {
		// Pages are taken in order, so the first page that is missing is always being read.
		select {
		case r.ahead <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		i := int(r.next.Add(1)) - 1
		if i >= len(r.pages) {
			return nil
		}
		s, err := r.e.sheet(x, r.pages[i])
		if err != nil {
			return err
		}
		l := &textLeaf{sheet: s}
		if s.Scan == nil {
			l.layout()
		} else if err := r.scans.add(s); err != nil {
			return err
		}
		r.leaves[i] <- l
	}
}

// layout sets the text of a page.
func (l *textLeaf) layout() {
	var out bytes.Buffer
	w := bufio.NewWriter(&out)
	l.found = text.Write(w, layout.Text(l.sheet))
	w.WriteByte('\f')
	w.Flush()
	l.text = out.Bytes()
	l.sheet.Words, l.sheet.Links = nil, nil
}

// write writes the pages in order.
func (r *textRun) write(ctx context.Context, w io.Writer) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fileops.Fail(fileops.ErrEngine, fmt.Errorf("panic: %v\n%s", p, debug.Stack()), "")
		}
	}()
	out := bufio.NewWriter(w)
	found, blank, damaged := false, true, true
	var guessed []int
	for i, c := range r.leaves {
		var l *textLeaf
		select {
		case l = <-c:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		s := l.sheet
		warnDamaged(r.job, s)
		if l.text == nil {
			if err := r.scans.wait(s); err != nil {
				return err
			}
			l.layout()
		}
		if s.Unlikely && (s.Scan == nil || s.Scan.Words == 0) {
			guessed = append(guessed, s.Number)
		}
		found, blank, damaged = found || l.found, blank && s.Blank, damaged && s.Damaged
		out.Write(l.text)
		<-r.ahead
		r.job.Progress(float64(i+1) / float64(len(r.pages)+1))
	}
	switch {
	case damaged:
		return errDamaged()
	case !found && !blank:
		return r.e.errNoText()
	}
	warnUnlikely(r.job, guessed)
	r.scans.warn(r.job)
	return out.Flush()
}

// warnDamaged reports a page that cannot be read.
func warnDamaged(job *fileops.Job, s *model.Sheet) {
	if s.Damaged {
		job.Warn(fileops.WarnContentDropped, "Page %d is damaged, so its content was left out.", s.Number)
	}
}

// sheet reads a page. A damaged page counts as empty, unless pdfium itself
// fails.
func (e *Engine) sheet(x *extract.Extractor, index int) (*model.Sheet, error) {
	defer x.In.Within(e.timeout, e.errPageTimeout(index+1))()
	p := x.Doc.Load(index)
	if p == nil {
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
