package pdfops

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/pdfops/internal/typeset"
	"github.com/filewright/filewright/internal/pagelist"
	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"
)

const (
	numberSize   = 10.0 // points
	numberMargin = 28.0 // points, about 1 cm
)

// PageNumbers returns the action "page_numbers". It writes a number on each chosen
// page, within the visible part of the page and upright for its reader. In "format",
// {page} is the number of the page and {pages} the last number.
//
// Without "start" the pages have the numbers of their places in the file, and {pages} is
// the number of pages of the file. With "start" the chosen pages are numbered one
// after the other from there.
//
// Numbers are artifacts, so they are not part of the text of a tagged document (ISO
// 32000-2, 14.8.2.2). The result is not encrypted.
func (t Tools) PageNumbers() fileops.Action {
	spec := t.pageSpec("page_numbers", "Writes page numbers on pages.", fileops.Param{
		Name: "format", Default: "{page}", Min: 1, Max: 200,
		Doc: "Text of each number; {page} is the number, {pages} the last one.",
	}, fileops.Param{
		Name: "position", Default: "bottom-center",
		Enum: []string{"top-left", "top-center", "top-right", "bottom-left", "bottom-center", "bottom-right"},
		Doc:  "Place of the number on the page.",
	}, fileops.Param{
		Name: "start", Type: fileops.Integer, Min: 0, Max: 100_000,
		Doc: "Number of the first of the chosen pages; by default its place in the file.",
	}, fileops.Param{
		Name: "pages", Pattern: pagelist.Pattern, Min: 1, Max: 1000,
		Doc: "Pages to number, such as 2-,-1 (negative: from the end); all if absent.",
	})
	return fileops.Func(spec, func(ctx context.Context, job *fileops.Job) error {
		format := job.Params.Get("format")
		if err := checkPlaceholders(format); err != nil {
			return err
		}
		d, pages, chosen, err := t.markable(ctx, job)
		if err != nil {
			return err
		}
		defer d.Close()
		last := len(pages)
		if job.Params.Has("start") {
			last = job.Params.Int("start") + len(chosen) - 1
		}
		position := job.Params.Get("position")
		artifact := "/Artifact<</Type/Pagination/Subtype/Footer/Attached[/Bottom]>>BDC\n"
		if strings.HasPrefix(position, "top") {
			artifact = "/Artifact<</Type/Pagination/Subtype/Header/Attached[/Top]>>BDC\n"
		}
		set := typeset.New(d, t.fonts())
		for i, at := range chosen {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			n := at + 1
			if job.Params.Has("start") {
				n = job.Params.Int("start") + i
			}
			text, err := lineOf(set, "format", strings.NewReplacer("{page}", strconv.Itoa(n), "{pages}", strconv.Itoa(last)).Replace(format))
			if err != nil {
				return err
			}
			s := newSheet(d, pages[at])
			// On a small page, such as a label, number and margin are smaller.
			shrink := min(1, s.w/(8*numberMargin), s.h/(8*numberMargin))
			size, margin := numberSize*shrink, numberMargin*shrink
			if room := s.w - 2*margin; text.Width*size > room {
				size = room / text.Width
			}
			x, y := s.place(position, text.Width*size, (text.Ascent-text.Descent)*size, margin)
			c := &canvas{doc: d, page: pages[at], names: make(map[int]string)}
			c.write(artifact + "q " + operands(s.user[:]...) + "cm\nBT 0 g " + operands(1, 0, 0, 1, x, y-text.Descent*size) + "Tm\n")
			c.buf.Write(set.Append(nil, text, size, func(font types.IndirectRef) string { return c.resource("Font", font) }))
			c.write("ET Q\nEMC\n")
			c.finish()
			job.Progress(0.9 * float64(i+1) / float64(len(chosen)))
		}
		if err := set.Finish(); err != nil {
			return err
		}
		return writePure(job, d, d.IsPDFA1(), nil)
	})
}

var formatPlaceholder = regexp.MustCompile(`\{[a-z_]*\}`)

// checkPlaceholders returns an error if a format has an unknown placeholder.
func checkPlaceholders(format string) error {
	for _, p := range formatPlaceholder.FindAllString(format, -1) {
		if p != "{page}" && p != "{pages}" {
			return &fileops.ParamError{Param: "format", Reason: fmt.Sprintf("has the unknown placeholder %s; known are {page} and {pages}", p)}
		}
	}
	return nil
}
