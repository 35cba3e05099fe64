package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/filewright/filewright/capability"
	"github.com/filewright/filewright/status"
)

// maxAsked is the number of bytes of the parameters of one action that an operation keeps for
// people. Longer ones, such as those with the HTML of a header, are not kept.
const maxAsked = 16 << 10

// setAsked records in op the parameters of its steps, or of its only action, without secrets.
func setAsked(op *status.Operation, offered *capability.Matrix, steps []stepRequest) {
	op.Asked = nil
	for _, step := range steps {
		secret := secretParameters(offered, step.Action)
		asked := status.Asked{Parameters: make(map[string]any)}
		for _, name := range slices.Sorted(maps.Keys(step.Parameters)) {
			if secret[name] {
				asked.Secret = append(asked.Secret, name)
			} else if step.Parameters[name] != nil {
				asked.Parameters[name] = step.Parameters[name]
			}
		}
		if b, err := json.Marshal(asked.Parameters); err != nil || len(b) > maxAsked {
			op.Asked = nil
			return
		}
		op.Asked = append(op.Asked, asked)
	}
}

// secretParameters returns the names of the secret parameters of an action, with any format.
func secretParameters(offered *capability.Matrix, action string) map[string]bool {
	action = offered.Canonical(action)
	secret := make(map[string]bool)
	for a := range offered.Registry().Actions() {
		spec := a.Spec()
		if spec.Name != action {
			continue
		}
		for _, acc := range spec.Accepts {
			for _, p := range acc.Params {
				if p.Secret {
					secret[p.Name] = true
				}
			}
		}
	}
	return secret
}

// Again submits an operation of an account once more, with the same files, parameters and notes, for
// the client of a request. It fails with a [Problem] if the parameters had a secret, which is not kept, or if a file has expired.
func (s *Service) Again(from *http.Request, account, id string) (*status.Operation, error) {
	ctx := from.Context()
	op, err := s.tracker.Get(ctx, account, id)
	if err != nil {
		return nil, err
	}
	conflict := func(format string, args ...any) error {
		return problem(http.StatusConflict, "conflict", format, args...)
	}
	if len(op.Asked) != max(1, len(op.Steps)) {
		return nil, conflict("the parameters of this operation are not known any more; submit it with POST /api/v1/do")
	}
	req := &doRequest{Action: op.Action, Parameters: op.Asked[0].Parameters, Notes: op.Notes}
	for i, asked := range op.Asked {
		if len(asked.Secret) > 0 {
			return nil, conflict("the parameter %s is secret and not kept; enter it again", asked.Secret[0])
		}
		if len(op.Steps) > 0 {
			req.Steps = append(req.Steps, stepRequest{op.Steps[i].Action, asked.Parameters})
			req.Keep = req.Keep || op.Steps[i].Keep
		}
	}
	if len(op.Steps) > 0 {
		req.Action, req.Parameters = "", nil
	}
	first, _ := op.ItemsOf(0)
	for _, it := range first {
		for _, f := range it.Inputs {
			req.FileKeys = append(req.FileKeys, f.Key)
		}
	}
	r, err := http.NewRequestWithContext(context.WithValue(ctx, principalKey{}, Principal{Account: account}), http.MethodPost, "/api/v1/do", nil)
	if err != nil {
		return nil, err
	}
	r.Header, r.RemoteAddr = from.Header, from.RemoteAddr // of the client
	fresh, err := s.submit(r, req, "", nil)
	if err != nil {
		return nil, fmt.Errorf("run again: %w", err)
	}
	return fresh, nil
}

// Forget deletes a finished operation of an account with its results. Its input files stay.
func (s *Service) Forget(ctx context.Context, account, id string) error {
	op, err := s.tracker.Delete(ctx, account, id)
	if err != nil {
		return err
	}
	for _, it := range op.Items {
		for _, f := range it.Results {
			if err := s.erase(ctx, account, f.Key); err != nil {
				return err
			}
		}
	}
	return nil
}

// ResultsOf answers a request with a ZIP of the results of several operations of an account. Results
// that have expired and operations without results are left out; if nothing is left, it returns a
// [Problem] with status 410 before anything is written.
func (s *Service) ResultsOf(w http.ResponseWriter, r *http.Request, account string, ids []string) error {
	all := &status.Operation{Owner: account, ID: fmt.Sprint(ids)}
	for _, id := range ids {
		op, err := s.tracker.Get(r.Context(), account, id)
		if err != nil {
			return err
		}
		if op.State.Final() {
			op = op.Shown()
			all.Items = append(all.Items, op.Items...)
			if op.Finished.After(all.Finished) {
				all.Finished = op.Finished
			}
		}
	}
	files, _, err := s.resultsOf(r.Context(), all)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return problem(http.StatusGone, "expired", "the operations have no results, or they have expired")
	}
	archive, etag, err := s.archive(r.Context(), all, files, nil)
	if err != nil {
		return err
	}
	defer archive.Close()
	h := w.Header()
	h.Set("Content-Type", "application/zip")
	h.Set("Content-Disposition", `attachment; filename="results.zip"`)
	h.Set("ETag", `"`+etag+`"`)
	http.ServeContent(w, r, "", all.Finished, archive)
	return nil
}
