package officeops

import (
	"context"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/route"
)

// Unlock returns the action "unlock" for DOC and XLS, which LibreOffice opens with the
// password and writes anew without one, and for OpenDocument and PPT, whose encryption
// alone is removed. A wrong password fails with [fileops.ErrWrongPassword], a document
// without a password with [fileops.ErrNotEncrypted].
//
// The action requires Python with UNO.
func (e *Engine) Unlock() fileops.Action {
	password := paramPassword
	password.Required = true
	return fileops.Func(fileops.Spec{
		Name: "unlock", Engine: e.name(), Family: "office", Encrypted: true,
		Summary: "Removes the password from a document.",
		Accepts: []fileops.Accept{{Formats: format.WithVariants(format.DOC, format.XLS, format.PPT, format.ODT, format.ODS, format.ODP), Params: fileops.Schema{password}}},
	}, e.unlock)
}

func (e *Engine) unlock(ctx context.Context, job *fileops.Job) error {
	locked, name := asPlain(job.Input()), job.Input().Name()
	in, password, err := e.open(ctx, locked, job.Params.Get("password"))
	if err != nil {
		return err
	}
	if in != locked {
		b, _ := in.Bytes()
		return job.WriteBytes(name, b)
	}
	if password == "" {
		return fileops.Fail(fileops.ErrNotEncrypted, nil, "the file is not protected by a password")
	}
	t := &task{Engine: e, job: job, in: in, first: true, last: true, share: 1, password: password}
	if t.dir, err = job.Dir(); err != nil {
		return err
	}
	path, err := job.Path(in)
	if err != nil {
		return err
	}
	job.Warn(fileops.WarnLayoutSimplified, "LibreOffice wrote the document anew; details may look different.")
	step := route.Step{By: byOffice, From: in.Format(), To: in.Format()}
	return job.WriteFile(name, func(out string) error { return t.byOffice(ctx, step, path, out) })
}
