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
	"github.com/filewright/filewright/internal/pagelist"
	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"
)

// ExtractPages returns the action "extract_pages". The result has the pages that
// "pages" names, in this order and each once.
//
// Links between these pages, bookmarks that lead to them, named destinations,
// form fields, page labels, layers, tags and metadata stay. Everything that only
// the other pages use is left out, as are attachments, XFA forms and signatures.
// The result is not encrypted.
func (t Tools) ExtractPages() fileops.Action {
	spec := t.pageSpec("extract_pages", "Makes a PDF file of chosen pages.", fileops.Param{
		Name: "pages", Required: true, Pattern: pagelist.Pattern, Min: 1, Max: 1000,
		Doc: "Pages of the result in their order, such as 1-3,5,-1 (negative: from the end).",
	})
	return t.excerpts(spec, func(params fileops.Params, s *excerpt.Source) ([][]int, error) {
		pages, err := pagelist.Parse(params.Get("pages"), s.Pages())
		return [][]int{pages}, err
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
	spec := t.pageSpec("split", "Makes several PDF files of the pages of one.", fileops.Param{
		Name: "every", Type: fileops.Integer, Min: 1, Max: 5000, OneOf: parts,
		Doc: "Number of pages of each result; 1 if neither pages nor at is given.",
	}, fileops.Param{
		Name: "pages", Pattern: pagelist.Groups, Min: 1, Max: 10_000, OneOf: parts,
		Doc: "Pages of each result, separated by semicolons, such as 1-3;4-.",
	}, fileops.Param{
		Name: "at", Enum: []string{"bookmarks"}, OneOf: parts,
		Doc: "Where a new result begins: at each bookmark of the top level.",
	})
	return t.excerpts(spec, splitGroups)
}

// excerpts returns an action with a result for each group of pages that choose
// returns.
func (t Tools) excerpts(spec fileops.Spec, choose func(fileops.Params, *excerpt.Source) ([][]int, error)) fileops.Action {
	return fileops.Func(spec, func(ctx context.Context, job *fileops.Job) error {
		d, pages, err := t.loadPages(ctx, job)
		if err != nil {
			return err
		}
		defer d.Close()
		signed := d.Signed()
		source := excerpt.New(d, pages)
		groups, err := choose(job.Params, source)
		if err != nil {
			return err
		}
		var losses excerpt.Losses
		for i, group := range groups {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			part, lost := source.Take(group)
			losses = losses.And(lost)
			name := fileops.PageName(job.Input(), format.PDF, i+1, len(groups))
			if err := job.Write(name, func(w io.Writer) error { return part.Write(w, part.IsPDFA1(), nil) }); err != nil {
				return err
			}
			job.Progress(float64(i+1) / float64(len(groups)))
		}
		warnExcerpt(job, losses, signed)
		return nil
	})
}

// splitGroups returns the pages of each result of a split.
func splitGroups(params fileops.Params, s *excerpt.Source) (groups [][]int, err error) {
	total := s.Pages()
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
		for _, b := range s.Bookmarks() {
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

// warnExcerpt warns about everything that the results lack.
func warnExcerpt(job *fileops.Job, losses excerpt.Losses, signed bool) {
	if losses.Links > 0 {
		job.Warn(fileops.WarnLinksDropped, "Left out %s to other pages of the file.", plural(losses.Links, "link"))
	}
	if losses.Attachments > 0 {
		job.Warn(fileops.WarnContentDropped, "Left out %s of the file.", plural(losses.Attachments, "attachment"))
	}
	if losses.XFA {
		warnXFA(job, "the file")
	}
	if signed {
		job.Warn(fileops.WarnSignatureInvalid, "The signatures of the file do not cover the result.")
	}
}

// warnXFA warns that a file lost its XFA form and keeps the fields.
func warnXFA(job *fileops.Job, file string) {
	job.Warn(fileops.WarnContentDropped, "The XFA form of %s was left out; its fields stay.", file)
}

// plural returns "1 link" or "2 links".
func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Rotate returns the action "rotate" for PDF files: it turns pages clockwise.
func (t Tools) Rotate() fileops.Action {
	spec := t.pageSpec("rotate", "Turns pages.", fileops.Angle(), fileops.Param{
		Name: "pages", Pattern: pagelist.Pattern, Min: 1, Max: 1000,
		Doc: "Pages to turn, such as 1-3,5,-1 (negative: from the end); all if absent.",
	})
	return fileops.Func(spec, func(ctx context.Context, job *fileops.Job) error {
		d, pages, err := t.loadPages(ctx, job)
		if err != nil {
			return err
		}
		defer d.Close()
		chosen, err := pagelist.Parse(job.Params.Get("pages"), len(pages))
		if err != nil {
			return err
		}
		turned := make(map[int]bool) // a page can occur twice in the tree
		for _, i := range chosen {
			p := pages[i]
			nr := p.Ref.ObjectNumber.Value()
			if nr != 0 && turned[nr] {
				continue
			}
			turned[nr] = true
			p.Dict["Rotate"] = types.Integer(((d.Integer(p.Attr("Rotate"))+job.Params.Int("angle"))%360 + 360) % 360)
		}
		return writePure(job, d, d.IsPDFA1(), nil)
	})
}
