package officeops

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
)

// maxMerge is the maximum number of documents to merge. Each document is inserted into
// the result of the previous ones.
const maxMerge = 200

// Merge returns the joint action "merge" for text documents: it combines them into one
// document, each starting on a new page. If all documents are docx, the result is
// merged.docx; if all are odt, it is merged.odt. Templates and documents with macros
// count as the plain format. With convert_to the caller chooses the
// result format and may mix input formats.
//
// Every document keeps its page size and margins, headers and footers, fonts, and the
// start of its numbering. If a style looks different from the style of the same name in
// the first document, the document's number is added to its name. Metadata and settings
// are those of the first document. A single document in the right format is returned
// unchanged.
//
// The action requires Python with UNO.
func (e *Engine) Merge() fileops.Action {
	to := func(required bool, formats ...string) fileops.Schema {
		p := fileops.Param{Name: "convert_to", Doc: "Format of the result.", Enum: formats, Required: required}
		if !required {
			p.Default = formats[0]
		}
		return fileops.Schema{p, paramPassword}
	}
	return fileops.Func(fileops.Spec{
		Name: "merge", Engine: e.name(), Family: "office", Joint: true, Encrypted: true,
		Summary: "Merges text documents.",
		Accepts: []fileops.Accept{
			{Formats: format.WithVariants(format.DOCX), Params: to(false, "docx", "odt")},
			{Formats: format.WithVariants(format.ODT), Params: to(false, "odt", "docx")},
			{Formats: append(format.WithVariants(format.DOCX, format.ODT, format.DOC), format.RTF), Params: to(true, "docx", "odt")},
		},
	}, e.merge)
}

func (e *Engine) merge(ctx context.Context, job *fileops.Job) error {
	if e.python == nil {
		return fileops.Fail(fileops.ErrUnsupportedInput, nil, "documents cannot be merged, because this server lacks the Python of LibreOffice")
	}
	if len(job.Inputs) > maxMerge {
		return fileops.Fail(fileops.ErrLimit, nil, "there are %d documents, more than the limit of %d; merge fewer at a time", len(job.Inputs), maxMerge)
	}
	text := apps[0]
	to := format.Format(job.Params.Get("convert_to"))
	var more []addition
	var first *fileops.File // decrypted
	protected := false
	for _, input := range job.Inputs {
		plain := asPlain(input)
		f, password, err := e.open(ctx, plain, job.Params.Get("password"))
		unsure := errors.Is(err, errMaybeProtected)
		if err != nil && !unsure {
			return err
		}
		protected = protected || unsure || f != plain || password != ""
		if first == nil {
			first = f
		}
		filter := text.in[f.Format()].name
		if password != "" {
			filter = encryptedFilter(f.Format(), filter)
		}
		path, err := job.Path(f)
		if err != nil {
			return err
		}
		more = append(more, addition{In: path, Name: f.Name(), InFilter: filter, Password: password})
	}
	if !protected {
		job.WarnPasswordUnused()
	}
	name := "merged." + string(to)
	if len(more) == 1 && job.Input().Format() == to && more[0].Password == "" {
		if first != job.Input() { // decrypted
			b, _ := first.Bytes()
			return job.WriteBytes(name, b)
		}
		return job.Keep(job.Input().Named(name))
	}
	dir, err := job.Dir()
	if err != nil {
		return err
	}
	return job.WriteFile(name, func(out string) error {
		r := request{
			In: more[0].In, Name: more[0].Name, InFilter: more[0].InFilter, Password: more[0].Password, Out: out, Kind: kindText,
			Filter: text.out[to].name, Options: text.out[to].options,
			More: more[1:], Scratch: filepath.Join(dir, "merge"),
		}
		for _, f := range job.Inputs {
			if hasMacros(f.Reader(), f.Size()) {
				job.Warn(fileops.WarnMacrosDropped, "The macros of %q were left out.", f.Name())
			}
		}
		return e.pool.do(ctx, r, func(phase string) {
			switch phase {
			case "loaded":
				job.Progress(0.6)
			case "stored":
				job.Progress(0.9)
			}
		})
	})
}
