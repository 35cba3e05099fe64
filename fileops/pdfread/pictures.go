package pdfread

import (
	"bufio"
	"context"
	"fmt"
	"image"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/pdfread/internal/pdfium"
	"github.com/filewright/filewright/internal/imagefile"
)

// toPictures makes one picture of each page. It draws pages concurrently in free
// instances; each goes to disk before the next.
func (e *Engine) toPictures(ctx context.Context, job *fileops.Job, to format.Format) error {
	dir, err := job.Dir()
	if err != nil {
		return err
	}
	var r *drawing
	dropped, err := withForm(func(form bool) error {
		r = &drawing{e: e, job: job, to: to, dir: dir, dpi: job.Params.Float("dpi"), quality: job.Params.Int("quality"), form: form, missing: make(map[*pdfium.Instance]*pdfium.FontList)}
		return r.draw(ctx)
	})
	if err != nil {
		return err
	}
	if dropped {
		warnForm(job)
	}
	var missing []string
	for _, l := range r.missing {
		missing = append(missing, l.Names()...)
	}
	warnFonts(job, missing)
	return r.commit()
}

// draw draws the pages to files.
func (r *drawing) draw(ctx context.Context) error {
	e, job := r.e, r.job
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	// The first instance finds out the number of pages. Others start only for more
	// than one page, and only if no other job needs them.
	var helpers sync.WaitGroup
	defer helpers.Wait()
	var failed error
	var once sync.Once
	fail := func(err error) {
		if err != nil {
			once.Do(func() { failed = err; cancel(err) })
		}
	}
	err := e.pool.Run(ctx, func(in *pdfium.Instance) error {
		doc, err := e.open(in, job)
		if err != nil {
			return err
		}
		r.total = doc.Pages
		if r.pages, err = e.choose(job, doc.Pages); err != nil {
			return err
		}
		r.files = make([]string, len(r.pages))
		for range min(e.pool.Size(), len(r.pages)) - 1 {
			helpers.Go(func() {
				_, err := e.pool.TryRun(ctx, func(in *pdfium.Instance) error {
					doc, err := e.open(in, job)
					if err != nil {
						return err
					}
					return r.work(ctx, doc)
				})
				fail(err)
			})
		}
		return r.work(ctx, doc)
	})
	fail(err)
	helpers.Wait()
	return failed
}

// A drawing is one run of toPictures.
type drawing struct {
	e       *Engine
	job     *fileops.Job
	to      format.Format
	dir     string
	dpi     float64
	quality int
	form    bool // draw form fields

	total int
	pages []int
	files []string     // of pages, in the scratch directory
	next  atomic.Int64 // index into pages
	done  atomic.Int64

	mu      sync.Mutex
	missing map[*pdfium.Instance]*pdfium.FontList
}

// fonts records the fonts of a page that the document does not contain.
func (r *drawing) fonts(p *pdfium.Page) {
	r.mu.Lock()
	l := r.missing[p.In()]
	if l == nil {
		l = new(pdfium.FontList)
		r.missing[p.In()] = l
	}
	r.mu.Unlock()
	p.Fonts(l)
}

// warnFonts reports fonts that the document does not contain.
func warnFonts(job *fileops.Job, names []string) {
	const most = 5
	if len(names) == 0 {
		return
	}
	slices.Sort(names)
	names = slices.Compact(names)
	more := ""
	if n := len(names) - most; n > 0 {
		names, more = names[:most], fmt.Sprintf(" and %d more", n)
	}
	job.Warn(fileops.WarnFontsSubstituted, "The document does not contain these fonts, so others were used: %s%s.", strings.Join(names, ", "), more)
}

// work draws pages until all are taken.
func (r *drawing) work(ctx context.Context, doc *pdfium.Document) error {
	if r.form {
		r.e.openForm(doc)
	}
	for {
		i := int(r.next.Add(1)) - 1
		if i >= len(r.pages) {
			return nil
		}
		if err := r.page(ctx, doc, i); err != nil {
			return err
		}
		r.job.Progress(float64(r.done.Add(1)) / float64(len(r.pages)+1))
	}
}

func (r *drawing) page(ctx context.Context, doc *pdfium.Document, i int) error {
	number := r.pages[i] + 1
	inTime := doc.In.Within(r.e.timeout, r.e.errPageTimeout(number))
	defer inTime()
	p := doc.Load(r.pages[i])
	if p == nil {
		if doc.In.Err != nil {
			return doc.In.Err
		}
		return fileops.Fail(fileops.ErrCorruptInput, nil, "page %d of the document is damaged", number)
	}
	defer p.Close()
	r.fonts(p)
	w, h := p.Pixels(r.dpi)
	if float64(w)*float64(h) > r.e.pixels {
		return fileops.Fail(fileops.ErrLimit, nil, "page %d has %d x %d pixels at %v dpi, more than the limit of %v megapixels; choose a lower resolution",
			number, w, h, r.dpi, r.e.pixels/1e6)
	}
	path := filepath.Join(r.dir, fmt.Sprintf("page-%d.%s", i, r.to))
	err := p.Draw(w, h, func(pix []byte) error {
		inTime()
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		b := bufio.NewWriterSize(f, 64<<10)
		err = r.e.encode(ctx, &image.RGBA{Pix: pix, Stride: 4 * w, Rect: image.Rect(0, 0, w, h)}, r.to, r.quality, r.dpi, b)
		if err == nil {
			err = b.Flush()
		}
		if cerr := f.Close(); err == nil {
			err = cerr
		}
		return err
	})
	r.files[i] = path
	return err
}

// commit passes the files to the job in page order.
func (r *drawing) commit() error {
	for i, file := range r.files {
		name := fileops.PageName(r.job.Input(), r.to, r.pages[i]+1, r.total)
		if len(r.pages) == 1 {
			name = fileops.ResultName(r.job.Input(), r.to)
		}
		if err := r.job.WriteFile(name, func(path string) error { return os.Rename(file, path) }); err != nil {
			return err
		}
	}
	return nil
}

// encode writes a picture in a format returned by pictureFormats.
func (e *Engine) encode(ctx context.Context, img *image.RGBA, to format.Format, quality int, dpi float64, w io.Writer) error {
	switch {
	case to == format.PNG:
		return imagefile.WritePNG(w, img, dpi)
	case e.encoder != nil && slices.Contains(e.encoder.Formats(), to):
		return e.encoder.Encode(ctx, img, to, quality, dpi, w)
	default:
		return imagefile.WriteJPEG(w, img, quality, dpi)
	}
}
