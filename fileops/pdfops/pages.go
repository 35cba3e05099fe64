package pdfops

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/pdfops/internal/excerpt"
	"github.com/filewright/filewright/fileops/pdfops/internal/pdf"
	"github.com/filewright/filewright/internal/pagelist"
	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"
)

// opens returns the parameter of actions that accept encrypted files.
func opens() fileops.Param {
	return fileops.Param{
		Name: "password", Doc: "Password that opens an encrypted file.",
		Min: 1, Max: 1024, Secret: true, Scope: fileops.ScopeInput,
	}
}

// ExtractPages returns the action "extract_pages". The result has the pages that
// "pages" names, in this order and each once.
//
// Links between these pages, bookmarks that lead to them, named destinations,
// form fields, page labels, layers, tags and metadata stay. Everything that only
// the other pages use is left out, as are attachments, XFA forms and signatures.
// The result is not encrypted.
func (t Tools) ExtractPages() fileops.Action {
	spec := t.spec("extract_pages", "Makes a PDF file of chosen pages.", fileops.Schema{{
		Name: "pages", Required: true, Pattern: pagelist.Pattern, Min: 1, Max: 1000,
		Doc: "Pages of the result in their order, such as 1-3,5,-1 (negative: from the end).",
	}, opens()})
	spec.Encrypted = true
	return fileops.Func(spec, func(ctx context.Context, job *fileops.Job) error {
		e, err := t.excerpts(ctx, job)
		if err != nil {
			return err
		}
		pages, err := pagelist.Parse(job.Params.Get("pages"), e.source.Pages())
		if err != nil {
			return err
		}
		if err := e.write(job.Input().Name(), pages); err != nil {
			return err
		}
		e.warn()
		return nil
	})
}

// Split returns the action "split". Each result has some pages of the input:
//
//   - "pages": those of one group, such as 1-3 and 4- of "1-3;4-";
//   - "every": so many pages that follow each other, one by default;
//   - "at" = "bookmarks": those from one bookmark at the top level to the next.
//
// Each result is like that of [Tools.ExtractPages].
func (t Tools) Split() fileops.Action {
	const parts = "parts"
	spec := t.spec("split", "Makes several PDF files of the pages of one.", fileops.Schema{{
		Name: "every", Type: fileops.Integer, Min: 1, Max: 5000, OneOf: parts,
		Doc: "Number of pages of each result; 1 if neither pages nor at is given.",
	}, {
		Name: "pages", Pattern: pagelist.Groups, Min: 1, Max: 10_000, OneOf: parts,
		Doc: "Pages of each result, separated by semicolons, such as 1-3;4-.",
	}, {
		Name: "at", Enum: []string{"bookmarks"}, OneOf: parts,
		Doc: "Where a new result begins: at each bookmark of the top level.",
	}, opens()})
	spec.Encrypted = true
	return fileops.Func(spec, func(ctx context.Context, job *fileops.Job) error {
		e, err := t.excerpts(ctx, job)
		if err != nil {
			return err
		}
		groups, err := e.groups()
		if err != nil {
			return err
		}
		for i, pages := range groups {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err := e.write(fileops.PageName(job.Input(), format.PDF, i+1, len(groups)), pages); err != nil {
				return err
			}
			job.Progress(float64(i+1) / float64(len(groups)))
		}
		e.warn()
		return nil
	})
}

// excerpts makes results of pages of the input of a job.
type excerpts struct {
	job    *fileops.Job
	source *excerpt.Source
	doc    *pdf.Document
	losses excerpt.Losses // of the last result
	signed bool
	links  int // of all results
}

func (t Tools) excerpts(ctx context.Context, job *fileops.Job) (*excerpts, error) {
	d, err := t.load(ctx, job, job.Input(), "the file")
	if err != nil {
		return nil, err
	}
	e := &excerpts{job: job, doc: d, signed: d.Signed()}
	warnLosses(job, d.Encrypted, d.Incomplete(), "the file")
	if e.source, err = excerpt.New(d, t.Limits.pages()); err != nil {
		return nil, fileops.Fail(fileops.ErrCorruptInput, err, "the file is damaged and could not be repaired")
	}
	return e, nil
}

// groups returns the pages of each result of a split.
func (e *excerpts) groups() (groups [][]int, err error) {
	total, params := e.source.Pages(), e.job.Params
	switch {
	case params.Has("pages"):
		for list := range strings.SplitSeq(params.Get("pages"), ";") {
			pages, err := pagelist.Parse(list, total)
			if err != nil {
				return nil, err
			}
			groups = append(groups, pages)
		}
	case params.Has("at"):
		starts := []int{0}
		for _, b := range e.source.Bookmarks() {
			starts = append(starts, b.Page)
		}
		if len(starts) == 1 {
			return nil, fileops.Fail(fileops.ErrUnsupportedInput, nil, "the file has no bookmarks to split it at; use the parameter every or pages")
		}
		slices.Sort(starts)
		starts = append(slices.Compact(starts), total)
		for i, from := range starts[:len(starts)-1] {
			groups = append(groups, span(from, starts[i+1]))
		}
	default:
		for from, n := 0, max(1, params.Int("every")); from < total; from += n {
			groups = append(groups, span(from, min(from+n, total)))
		}
	}
	return groups, nil
}

// span returns the pages from the first to the one before end.
func span(first, end int) (pages []int) {
	for i := first; i < end; i++ {
		pages = append(pages, i)
	}
	return pages
}

// write adds a result with the given pages.
func (e *excerpts) write(name string, pages []int) error {
	var part *pdf.Document
	part, e.losses = e.source.Take(pages)
	e.links += e.losses.Links
	return e.job.Write(name, func(w io.Writer) error { return part.Write(w, part.IsPDFA1(), nil) })
}

// warn warns about everything that the results lack.
func (e *excerpts) warn() {
	if e.links > 0 {
		e.job.Warn(fileops.WarnLinksDropped, "%s to other pages of the file", plural(e.links, "link"))
	}
	if n := e.losses.Attachments; n > 0 {
		e.job.Warn(fileops.WarnContentDropped, "%s of the file", plural(n, "attachment"))
	}
	if e.losses.XFA {
		e.job.Warn(fileops.WarnContentDropped, "the XFA form of the file was left out; its fields stay")
	}
	if e.signed {
		e.job.Warn(fileops.WarnSignatureInvalid, "the signatures of the file do not cover the result")
	}
}

// plural returns "1 link was left out" or "2 links were left out".
func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what + " was left out"
	}
	return fmt.Sprintf("%d %ss were left out", n, what)
}

// Rotate returns the action "rotate" for PDF files: it turns pages clockwise.
func (t Tools) Rotate() fileops.Action {
	spec := t.spec("rotate", "Turns pages.", fileops.Schema{fileops.Angle(), {
		Name: "pages", Pattern: pagelist.Pattern, Min: 1, Max: 1000,
		Doc: "Pages to turn, such as 1-3,5,-1 (negative: from the end); all if absent.",
	}, opens()})
	spec.Encrypted = true
	return fileops.Func(spec, func(ctx context.Context, job *fileops.Job) error {
		d, err := t.load(ctx, job, job.Input(), "the file")
		if err != nil {
			return err
		}
		warnLosses(job, d.Encrypted, d.Incomplete(), "the file")
		pages, err := d.Pages(t.Limits.pages())
		if err != nil {
			return fileops.Fail(fileops.ErrCorruptInput, err, "the file is damaged and could not be repaired")
		}
		chosen, err := pagelist.Parse(job.Params.Get("pages"), len(pages))
		if err != nil {
			return err
		}
		turned := make(map[int]bool) // a page can occur twice in the tree
		for _, i := range chosen {
			p := pages[i]
			if nr := p.Ref.ObjectNumber.Value(); nr != 0 && turned[nr] {
				continue
			} else {
				turned[nr] = true
			}
			p.Dict["Rotate"] = types.Integer(((d.Integer(p.Attr("Rotate"))+job.Params.Int("angle"))%360 + 360) % 360)
		}
		return writePure(job, d, d.IsPDFA1(), nil)
	})
}
