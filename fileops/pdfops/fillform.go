package pdfops

import (
	"context"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/pdfops/internal/fields"
)

// FillForm returns the action "fill_form". "fields" has the full names of form fields with
// their values:
//
//   - a text or a number for a text field;
//   - true, false or the name of a state for a check box, and such a name for a group of
//     radio buttons;
//   - a value for a list or combo box, or an array of values if it takes several;
//   - null to empty a field.
//
// It fails with a *[fileops.ParamError] if a field does not exist or is read-only, or if
// it does not take the value. The fields show their values, and with "flatten" they
// become part of the pages as by [Tools.Flatten]. Scripts of the form are not run. An XFA
// form is left out, because its viewers would show the old values. The result is not
// encrypted.
func (t Tools) FillForm() fileops.Action {
	spec := t.pageSpec("fill_form", "Fills in the form fields of a PDF file.", fileops.Param{
		Name: "fields", Type: fileops.Object, Required: true, Min: 1, Max: 10_000, Secret: true,
		Doc: "Full names of fields and their values: a text, true or false for a check box, the name of a radio button, an array for several choices, or null.",
	}, fileops.Param{
		Name: "flatten", Type: fileops.Boolean, Default: false,
		Doc: "Whether the fields become part of the pages.",
	})
	return fileops.Func(spec, func(ctx context.Context, job *fileops.Job) error {
		d, pages, err := t.loadPages(ctx, job)
		if err != nil {
			return err
		}
		defer d.Close()
		acro := d.Dict(d.Catalog()["AcroForm"])
		form := fields.Read(d, pages)
		if len(form.Names()) == 0 {
			if acro["XFA"] != nil {
				return fileops.Fail(fileops.ErrUnsupportedInput, nil, "the file has an XFA form without fields that can be filled in")
			}
			return fileops.Fail(fileops.ErrUnsupportedInput, nil, "the file has no form fields")
		}
		values := job.Params.Object("fields")
		if err := form.Set(values); err != nil {
			return &fileops.ParamError{Param: "fields", Reason: "cannot be set: " + err.Error()}
		}
		if acro["XFA"] != nil {
			delete(acro, "XFA")
			delete(d.Catalog(), "NeedsRendering")
			warnXFA(job, "the file")
		}
		if form.Scripted(values) {
			job.Warn(fileops.WarnScriptNotRun, "Scripts of the form, which calculate or check values, were not run.")
		}
		if err := t.drawFields(ctx, job, d); err != nil {
			return err
		}
		if job.Params.Bool("flatten") {
			if err := flatten(ctx, job, d, pages); err != nil {
				return err
			}
		}
		return writePure(job, d, d.IsPDFA1(), nil)
	})
}
