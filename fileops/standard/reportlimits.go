package standard

import (
	"context"
	"encoding/json"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/report"
)

// maxReport limits the report of an engine in bytes.
const maxReport = 64 << 20

// withLimits returns all actions. Those that inspect files also report the largest size of
// a file for the other actions on its format.
func withLimits(all []fileops.Action) []fileops.Action {
	largest := make(map[format.Format]map[string]report.Limit)
	for _, a := range all {
		spec := a.Spec()
		if spec.MaxBytes == 0 {
			continue
		}
		for _, acc := range spec.Accepts {
			for _, f := range acc.Formats {
				if largest[f] == nil {
					largest[f] = make(map[string]report.Limit)
				}
				if known := largest[f][spec.Name].MaxBytes; known == 0 || spec.MaxBytes < known {
					largest[f][spec.Name] = report.Limit{MaxBytes: spec.MaxBytes}
				}
			}
		}
	}
	add := fileops.Func(fileops.Spec{
		Name: "inspect", Engine: "go", Family: "data", Summary: "Adds the limits of other actions to a report.",
		Accepts: []fileops.Accept{{Formats: []format.Format{format.JSON}}},
	}, func(_ context.Context, job *fileops.Job) error {
		b, err := job.Input().ReadAll(maxReport)
		if err != nil {
			return err
		}
		var r report.Report
		if err := json.Unmarshal(b, &r); err != nil {
			return fileops.Fail(fileops.ErrEngine, err, "")
		}
		r.Limits = largest[r.Format]
		return r.Write(job)
	})
	out := make([]fileops.Action, len(all))
	for i, a := range all {
		if out[i] = a; a.Spec().Name == "inspect" {
			out[i] = fileops.Chain(a.Spec(), fileops.Step{Action: a, Args: fileops.Params.Args}, fileops.Step{Action: add})
		}
	}
	return out
}
