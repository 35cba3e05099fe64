package pdfops

import (
	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/pdfops/internal/excerpt"
	"github.com/filewright/filewright/internal/pagelist"
)

// chosenPages returns the parameter of the action "convert" that names the pages of the result.
func chosenPages() fileops.Param {
	return fileops.Param{
		Name: "pages", Pattern: pagelist.Pattern, Min: 1, Max: 1000, Scope: fileops.ScopeContent,
		Doc: "Pages of the result in their order, such as 1-3,5,-1 (negative: from the end).",
	}
}

// ConvertPages returns the action "convert" from PDF to PDF, which takes chosen pages. It
// does the same as [Tools.ExtractPages].
func (t Tools) ConvertPages() fileops.Action {
	spec := t.pageSpec("convert", "Makes a PDF file of chosen pages.", fileops.Enum("convert_to", "Extension of the result.", "pdf"), chosenPages())
	spec.Accepts[0].Changes = []string{"pages"}
	return t.excerpts(spec, func(params fileops.Params, s *excerpt.Source) ([][]int, error) {
		pages, err := pagelist.Parse(params.Get("pages"), s.Pages())
		return [][]int{pages}, err
	})
}
