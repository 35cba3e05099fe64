package pdfops

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/pdfops/internal/excerpt"
	"github.com/filewright/filewright/fileops/pdfops/internal/pdf"
	"github.com/filewright/filewright/internal/report"
	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"
)

// Limits of bookmarks.
const (
	maxBookmarks = 10_000
	maxLevels    = 32
	maxOutline   = 1 << 20 // bytes
)

// Bookmarks returns the action "bookmarks". It replaces all bookmarks of a PDF file by those in
// "outline", which has one on each line: the page, counted from 1, a space and the title. Two spaces
// before the page for each level put it below the one before:
//
//	1 Introduction
//	2 Methods
//	  2 Samples
//	  4 Measurements
//
// An empty outline removes all bookmarks. The result is not encrypted.
func (t Tools) Bookmarks() fileops.Action {
	spec := t.pageSpec("bookmarks", "Replaces the bookmarks of a PDF file.", fileops.Param{
		Name: "outline", Required: true, Max: maxOutline,
		Doc: "Bookmarks, one on each line: page, space, title. Two more spaces before the page put it a level below. Empty: none.",
	})
	return fileops.Func(spec, func(ctx context.Context, job *fileops.Job) error {
		items, err := parseOutline(job.Params.Get("outline"))
		if err != nil {
			return err
		}
		d, pages, err := t.loadPages(ctx, job)
		if err != nil {
			return err
		}
		defer d.Close()
		if err := setOutline(d, pages, items); err != nil {
			return err
		}
		return writePure(job, d, d.IsPDFA1(), nil)
	})
}

// An outlineItem is a bookmark.
type outlineItem struct {
	title string
	page  int // from 1
	level int // from 0
}

// outlineLine matches a line of an outline.
var outlineLine = regexp.MustCompile(`^((?:  )*)([1-9][0-9]{0,6})(?: (.*))?$`)

// parseOutline parses the parameter outline.
func parseOutline(text string) (items []outlineItem, err error) {
	bad := func(n int, format string, args ...any) error {
		return &fileops.ParamError{Param: "outline", Reason: fmt.Sprintf("has on line %d ", n) + fmt.Sprintf(format, args...)}
	}
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimRight(line, "\r\n")
		if strings.TrimSpace(line) == "" {
			continue
		}
		m := outlineLine.FindStringSubmatch(line)
		level := len(line) - len(strings.TrimLeft(line, " "))
		switch {
		case m == nil || !utf8.ValidString(line):
			return nil, bad(n, "no bookmark such as \"2 Methods\"")
		case len(items) == maxBookmarks:
			return nil, bad(n, "more than %d bookmarks", maxBookmarks)
		case level/2 > maxLevels:
			return nil, bad(n, "more than %d levels", maxLevels)
		case len(items) == 0 && level > 0, len(items) > 0 && level/2 > items[len(items)-1].level+1:
			return nil, bad(n, "a bookmark that is not one level below the one before")
		}
		page, err := strconv.Atoi(m[2])
		if err != nil {
			return nil, bad(n, "no page")
		}
		items = append(items, outlineItem{m[3], page, level / 2})
	}
	return items, nil
}

// setOutline replaces the bookmarks of a document (ISO 32000-2, 12.3.3).
func setOutline(d *pdf.Document, pages []pdf.Page, items []outlineItem) error {
	catalog := d.Catalog()
	delete(catalog, "Outlines")
	if d.Name(catalog["PageMode"]) == "UseOutlines" {
		delete(catalog, "PageMode")
	}
	if len(items) == 0 {
		return nil
	}
	type node struct {
		dict types.Dict
		ref  types.IndirectRef
		kids []types.IndirectRef
	}
	root := &node{dict: types.Dict{"Type": types.Name("Outlines")}}
	root.ref = d.Add(root.dict)
	path := []*node{root} // the parents of the next item
	all := []*node{root}
	for _, it := range items {
		if it.page > len(pages) {
			return &fileops.ParamError{Param: "outline", Reason: fmt.Sprintf("has the page %d, but the file has %d", it.page, len(pages))}
		}
		path = path[:it.level+1]
		parent := path[it.level]
		n := &node{dict: types.Dict{
			"Title": pdf.TextString(it.title), "Parent": parent.ref,
			"Dest": types.Array{pages[it.page-1].Ref, types.Name("XYZ"), nil, nil, nil},
		}}
		n.ref = d.Add(n.dict)
		if k := len(parent.kids); k > 0 {
			last := parent.kids[k-1]
			n.dict["Prev"] = last
			d.Dict(last)["Next"] = n.ref
		}
		parent.kids = append(parent.kids, n.ref)
		path, all = append(path, n), append(all, n)
	}
	for _, n := range all {
		if len(n.kids) == 0 {
			continue
		}
		n.dict["First"], n.dict["Last"] = n.kids[0], n.kids[len(n.kids)-1]
		n.dict["Count"] = types.Integer(-len(n.kids)) // closed
	}
	root.dict["Count"] = types.Integer(len(root.kids))
	catalog["Outlines"] = root.ref
	return nil
}

// bookmarksOf returns the bookmarks of a document for a report, each before those below it.
func bookmarksOf(d *pdf.Document, pages []pdf.Page) (out []report.Bookmark) {
	if d.Dict(d.Catalog()["Outlines"])["First"] == nil {
		return nil
	}
	for b := range excerpt.New(d, pages).Outline() {
		if len(out) == maxBookmarks {
			return out
		}
		out = append(out, report.Bookmark{Title: b.Title, Page: b.Page + 1, Level: b.Level})
	}
	return out
}
