package officeops

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
)

// maxMerge is how many documents can be put together. Each is inserted into the
// whole before it.
const maxMerge = 200

// Merge returns the joint action "merge" for text documents: it puts them into
// one, each on a page of its own. Documents that are all docx give merged.docx,
// those that are all odt give merged.odt; with convert_to the result may be
// chosen, and the documents may be of different formats.
//
// Every document keeps its page size and margins, headers and footers, fonts,
// and the start of its numbering. Where it has a style that looks different from
// one of the same name in the first document, the style gets its number added.
// Metadata and settings are those of the first document. A single document that
// has the right format comes out as it is.
//
// The action is only of use where Python with UNO was found.
func (e *Engine) Merge() fileops.Action {
	to := func(required bool, formats ...string) fileops.Schema {
		p := fileops.Param{Name: "convert_to", Doc: "The format of the result.", Enum: formats, Required: required}
		if !required {
			p.Default = formats[0]
		}
		return fileops.Schema{p}
	}
	return fileops.Func(fileops.Spec{
		Name: "merge", Engine: e.name(), Family: "office", Joint: true,
		Summary: "Puts several text documents into one.",
		Accepts: []fileops.Accept{
			{Formats: []format.Format{format.DOCX}, Params: to(false, "docx", "odt")},
			{Formats: []format.Format{format.ODT}, Params: to(false, "odt", "docx")},
			{Formats: []format.Format{format.DOCX, format.ODT, format.DOC, format.RTF}, Params: to(true, "docx", "odt")},
		},
	}, e.merge)
}

func (e *Engine) merge(ctx context.Context, job *fileops.Job) error {
	if e.python == nil {
		return fileops.Fail(fileops.ErrUnavailable, nil, "documents cannot be put together here")
	}
	if len(job.Inputs) > maxMerge {
		return fileops.Fail(fileops.ErrLimit, nil, "there are %d documents, more than the limit of %d; merge fewer of them", len(job.Inputs), maxMerge)
	}
	text := apps[0]
	to := format.Format(job.Params.Get("convert_to"))
	var more []addition
	for _, f := range job.Inputs {
		if err := e.opts.Limits.check(ctx, f); err != nil && !errors.Is(err, errMaybeProtected) {
			return err
		}
		path, err := job.Path(f)
		if err != nil {
			return err
		}
		more = append(more, addition{In: path, Name: f.Name(), InFilter: text.in[f.Format()].name})
	}
	name := "merged." + string(to)
	if len(more) == 1 && job.Input().Format() == to {
		return job.Keep(job.Input().Named(name))
	}
	dir, err := job.Dir()
	if err != nil {
		return err
	}
	return job.WriteFile(name, func(out string) error {
		r := request{
			In: more[0].In, Name: more[0].Name, InFilter: more[0].InFilter, Out: out, Kind: kindText,
			Filter: text.out[to].name, Options: text.out[to].options,
			More: more[1:], Scratch: filepath.Join(dir, "merge"),
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
