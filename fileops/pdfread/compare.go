package pdfread

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"golang.org/x/text/unicode/norm"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/pdfread/internal/extract"
	"github.com/filewright/filewright/fileops/pdfread/internal/model"
	"github.com/filewright/filewright/fileops/pdfread/internal/pdfium"
	"github.com/filewright/filewright/internal/likeness"
)

// printDPI is the resolution at which pages are compared with their print, unless they
// are very large. A font of another shape makes little difference there, and missing
// text, pictures or colours make much.
const (
	printDPI    = 36
	printPixels = 500_000
)

// maxCompared limits the pages that are compared with their print.
const maxCompared = 100

// A pageScore says how a page looks in print.
type pageScore struct {
	Page   int     `json:"page"`   // from 1
	Score  float64 `json:"score"`  // 0 to 10, see [likeness.Total]; divided by Prints
	Prints int     `json:"prints"` // pages that it takes in print
}

// errFewer means that pages of a print are missing, so it is unknown which one shows what.
var errFewer = errors.New("the print has fewer pages than the document")

// Compare returns a joint action for two PDF files: a document, and the print of what
// [Engine.Convert] has made of its pages. The result is a JSON file with the score of
// each page. It is a part of a [Proof].
func (e *Engine) Compare() fileops.Action {
	return fileops.Func(fileops.Spec{
		MaxBytes: pdfium.MaxFileSize,
		Name:     "compare", Engine: "pdfium", Family: "pdf", Joint: true,
		Summary: "Compares the pages of a PDF file with those of a print.",
		Accepts: []fileops.Accept{{Formats: []format.Format{format.PDF}, Params: fileops.Schema{pagesParam(), passwordParam()}}},
	}, func(ctx context.Context, job *fileops.Job) error {
		if len(job.Inputs) != 2 {
			return fmt.Errorf("%d files to compare, want 2", len(job.Inputs))
		}
		scores, err := e.compare(ctx, job)
		if err != nil {
			return err
		}
		return job.Write("likeness.json", func(w io.Writer) error { return json.NewEncoder(w).Encode(scores) })
	})
}

func (e *Engine) compare(ctx context.Context, job *fileops.Job) (scores []pageScore, err error) {
	_, err = withForm(func(form bool) error {
		scores, err = e.compareWith(ctx, job, form)
		return err
	})
	return scores, err
}

func (e *Engine) compareWith(ctx context.Context, job *fileops.Job, form bool) (scores []pageScore, err error) {
	err = e.pool.Run(ctx, func(in *pdfium.Instance) error {
		doc, pages, err := e.openPages(in, job)
		if err != nil {
			return err
		}
		printed, err := job.Inputs[1].ReadAll(pdfium.MaxFileSize)
		if err != nil {
			return err
		}
		opened := in.Within(e.timeout, fileops.Fail(fileops.ErrLimit, nil, "the print takes longer to open than the limit of %v", e.timeout))
		print, err := pdfium.OpenDocument(in, printed, "")
		opened()
		if err != nil {
			return err
		}
		if len(pages) > maxCompared {
			return fileops.Fail(fileops.ErrLimit, nil, "the document has more than the limit of %d pages to compare", maxCompared)
		}
		if print.Pages > 4*maxCompared {
			return fileops.Fail(fileops.ErrLimit, nil, "the print has more than the limit of %d pages", 4*maxCompared)
		}
		if form {
			e.openForm(doc)
			e.openForm(print)
		}
		c := &comparison{e: e, x: extract.New(doc, nil), doc: doc, print: print}
		scores, err = c.run(ctx, pages)
		return err
	})
	return scores, err
}

// A comparison compares the pages of a document with their print.
type comparison struct {
	e          *Engine
	x          *extract.Extractor
	doc, print *pdfium.Document
}

func (c *comparison) run(ctx context.Context, pages []int) ([]pageScore, error) {
	if c.print.Pages < len(pages) {
		return nil, errFewer
	}
	texts, prints := make([]string, len(pages)), make([]string, c.print.Pages)
	for i, index := range pages {
		if err := c.within(ctx, index, func() { texts[i] = plainText(c.doc, index) }); err != nil {
			return nil, err
		}
	}
	for i := range prints {
		if err := c.within(ctx, i, func() { prints[i] = plainText(c.print, i) }); err != nil {
			return nil, err
		}
	}
	first := alignPrint(texts, prints)
	var out []pageScore
	for i, index := range pages {
		s := pageScore{Page: index + 1, Prints: len(prints) - first[i]}
		if i+1 < len(pages) {
			s.Prints = first[i+1] - first[i]
		}
		text := strings.Join(prints[first[i]:first[i]+s.Prints], "\n")
		var failed error
		err := c.within(ctx, index, func() { s.Score, failed = c.score(index, first[i], texts[i], text) })
		if err := errors.Join(err, failed); err != nil {
			return nil, err
		}
		s.Score = math.Round(10*s.Score/float64(s.Prints)) / 10
		out = append(out, s)
	}
	return out, nil
}

// within calls do, which works on a page, within the time for a page.
func (c *comparison) within(ctx context.Context, index int, do func()) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	defer c.doc.In.Within(c.e.timeout, c.e.errPageTimeout(index+1))()
	do()
	return c.doc.In.Err
}

func plainText(d *pdfium.Document, index int) string {
	p := d.Load(index)
	if p == nil {
		return ""
	}
	defer p.Close()
	return p.PlainText()
}

// score compares a page with a page of the print. want and have are their texts.
func (c *comparison) score(index, printed int, want, have string) (float64, error) {
	p := c.doc.Load(index)
	if p == nil {
		return 10, nil // damaged, which the conversion has reported
	}
	defer p.Close()
	q := c.print.Load(printed)
	if q == nil {
		return 0, nil
	}
	defer q.Close()
	w, h := p.Pixels(min(printDPI, 72*math.Sqrt(printPixels/(p.W*p.H))))
	a, err := shown(p, w, h)
	if err != nil {
		return 0, err
	}
	letters := likeness.Letters(have)
	text := likeness.Common(likeness.Letters(want), letters)
	s, err := c.printOf(q, a, p.W/p.H)
	if err != nil {
		return 0, err
	}
	total := a.Match(s).Total(text)
	if total >= likeness.Kept {
		return total, nil
	}
	sheet := c.x.Sheet(p)
	switch {
	case sheet.Unlikely || c.x.Scan(p, sheet) != nil:
		text = nil // nobody knows what the page says
	case text != nil:
		if t := likeness.Common(likeness.Letters(sheetText(sheet)), letters); t != nil && *t > *text {
			text = t // the rest is outside the visible page
		}
	}
	total = a.Match(s).Total(text)
	if !sheet.Turned {
		return total, c.x.In.Err
	}
	for range 3 { // text that runs sideways or upside down is upright in print
		a = a.Turned()
		if s, err = c.printOf(q, a, float64(a.W)/float64(a.H)); err != nil {
			return 0, err
		}
		total = max(total, a.Match(s).Total(text))
	}
	return total, c.x.In.Err
}

// printOf draws a page of the print for a comparison with a, whose width is ratio times
// its height. A page with other proportions keeps its scale.
func (c *comparison) printOf(q *pdfium.Page, a *likeness.Page, ratio float64) (*likeness.Page, error) {
	const same = 0.03
	if math.Abs(q.W/q.H/ratio-1) < same {
		return shown(q, a.W, a.H)
	}
	return shown(q, min(max(1, int(q.W*printDPI/72)), 4*a.W), min(max(1, int(q.H*printDPI/72)), 4*a.H))
}

// shown draws a page.
func shown(p *pdfium.Page, w, h int) (*likeness.Page, error) {
	out := &likeness.Page{W: w, H: h, RGB: make([]byte, 3*w*h)}
	err := p.Draw(w, h, func(pix []byte) error {
		for i := range w * h {
			copy(out.RGB[3*i:3*i+3], pix[4*i:4*i+3])
		}
		return nil
	})
	return out, err
}

// sheetText returns all text that the converter has read on a page.
func sheetText(s *model.Sheet) string {
	var b strings.Builder
	for _, w := range s.Words {
		b.WriteString(w.Text())
	}
	for _, p := range s.Pictures {
		for _, w := range p.Labels {
			b.WriteString(w.Text())
		}
	}
	return b.String()
}

// alignPrint returns the first page of the print for each page of a document. The pages
// are in order and each starts on a new page, so that only the page counts of some are
// unknown: the texts show them.
func alignPrint(pages, prints []string) []int {
	n, extra := len(pages), len(prints)-len(pages)
	words := func(texts []string) (out []map[string]int) {
		for _, t := range texts {
			m := make(map[string]int)
			for _, w := range strings.Fields(strings.ToLower(norm.NFKC.String(t))) {
				m[w]++
			}
			out = append(out, m)
		}
		return out
	}
	size := func(m map[string]int) (all int) {
		for _, k := range m {
			all += k
		}
		return all
	}
	a, b := words(pages), words(prints)
	similar := func(i, j int) float64 {
		both, all := 0, size(a[i])+size(b[j])
		if all == 0 {
			return 0.5
		}
		for w, k := range a[i] {
			both += min(k, b[j][w])
		}
		return 2 * float64(both) / float64(all)
	}
	// best[i][k] is the highest similarity of the pages up to i if page i starts k pages
	// late, and from[i][k] how late the page before starts then.
	best, from := make([][]float64, n), make([][]int, n)
	for i := range n {
		best[i], from[i] = make([]float64, extra+1), make([]int, extra+1)
		late := 0 // of the page before, at most k
		for k := range extra + 1 {
			if i == 0 {
				if best[i][k] = math.Inf(-1); k == 0 {
					best[i][k] = similar(0, 0)
				}
				continue
			}
			if best[i-1][k] > best[i-1][late] {
				late = k
			}
			best[i][k], from[i][k] = best[i-1][late]+similar(i, i+k), late
		}
	}
	first := make([]int, n)
	if n == 0 {
		return first
	}
	k := 0
	for late, s := range best[n-1] {
		if s > best[n-1][k] {
			k = late
		}
	}
	for i := n - 1; i >= 0; i-- {
		first[i] = i + k
		k = from[i][k]
	}
	return first
}
