package pdfread

import (
	"errors"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/pdfread/internal/pdfium"
)

// formTime is the processor time to open the form of a document. pdfium opens and draws
// 10,000 fields in less.
const formTime = 3 * time.Second

// errForm is the cause with which an instance is killed that takes too long to open a
// form. pdfium visits a field once for each path that leads to it, so a few fields with
// several parents take hours.
var errForm = errors.New("the form takes too long to open")

// openForm makes pdfium draw the form fields of a document.
func (e *Engine) openForm(doc *pdfium.Document) {
	defer doc.In.Within(min(e.timeout, formTime), errForm)()
	doc.OpenForm()
}

// withForm calls do with true. If the form takes too long to open, withForm calls do
// again with false, and reports that the form is not drawn.
func withForm(do func(form bool) error) (dropped bool, err error) {
	if err = do(true); errors.Is(err, errForm) {
		return true, do(false)
	}
	return false, err
}

// warnForm reports that form fields are not drawn.
func warnForm(job *fileops.Job) {
	job.Warn(fileops.WarnContentDropped, "The form fields are not shown, because the form is damaged.")
}
