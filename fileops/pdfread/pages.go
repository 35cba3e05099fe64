package pdfread

import (
	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/internal/pagelist"
)

// choose returns the requested pages of a document.
func (e *Engine) choose(job *fileops.Job, total int) ([]int, error) {
	pages, err := pagelist.Parse(job.Params.Get("pages"), total)
	if err == nil && len(pages) > e.pages {
		return nil, fileops.Fail(fileops.ErrLimit, nil, "there are %s to convert, more than the limit of %d; choose some of them with the parameter pages", pagelist.Count(len(pages)), e.pages)
	}
	return pages, err
}
