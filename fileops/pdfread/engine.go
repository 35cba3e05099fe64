package pdfread

import "github.com/filewright/filewright/fileops"

// Actions implements [fileops.Engine].
func (e *Engine) Actions() []fileops.Action { return []fileops.Action{e.Convert(), e.Thumbnail()} }

// Dependencies implements [fileops.Engine].
func (*Engine) Dependencies() []fileops.Dependency { return []fileops.Dependency{dependency()} }

func dependency() fileops.Dependency {
	return fileops.Module("pdfium", "github.com/klippa-app/go-pdfium", "pages of PDFs")
}
