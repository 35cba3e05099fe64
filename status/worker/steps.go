package worker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/status"
)

// A Step is what a worker must know about a step of an operation of several steps,
// beside the action in status.Step. It is sealed with the operation, because some
// parameters are passwords.
type Step struct {
	Parameters map[string]any `json:"parameters,omitempty"`
	Joint      bool           `json:"joint,omitempty"` // one item takes all results of the step before

	// Queues holds the queue of the items by the format of their input; that of
	// format.Any is for all other formats. A result of the step before whose format has
	// no queue fails. Queues of the first step, whose items exist, are not used.
	Queues map[format.Format]string `json:"queues,omitempty"`

	// Guessed is set if the formats of the inputs were not known when the operation was
	// accepted, as those of the files in an archive. Then it is a fault of the files,
	// not of this host, if the action does not accept them together.
	Guessed bool `json:"guessed,omitempty"`
}

// stepsArg is the member of the sealed parameters that holds the steps.
const stepsArg = "steps"

// SealSteps encrypts the steps of an operation for its member Args, like [Worker.Seal].
func (w *Worker) SealSteps(operation string, steps []Step) ([]byte, error) {
	return w.Seal(operation, map[string]any{stepsArg: steps})
}

// steps opens the steps of an operation.
func (w *Worker) steps(op *status.Operation) ([]Step, error) {
	plain, ok := w.sealer.Open(op.Args, op.ID)
	if !ok {
		return nil, ErrSealed
	}
	var sealed struct {
		Steps []Step `json:"steps"`
	}
	if err := json.Unmarshal(plain, &sealed); err != nil {
		return nil, err
	}
	if len(sealed.Steps) != len(op.Steps) {
		return nil, errors.New("the sealed steps are not those of the operation")
	}
	return sealed.Steps, nil
}

// stepOf opens the parameters of the action of an item.
func (w *Worker) stepOf(op *status.Operation, item int) (step Step, err error) {
	if len(op.Steps) == 0 {
		step.Parameters, err = w.args(op)
		return step, err
	}
	steps, err := w.steps(op)
	if err != nil {
		return step, err
	}
	return steps[op.StepOf(item)], nil
}

// next makes the items of the next step from the results of the current one; see
// status.Outcome.Next. A joint step needs all files, as a joint action does: if a file
// has failed in an earlier step, its only item fails.
func (w *Worker) next(op *status.Operation) []status.Item {
	n := op.Step() + 1
	var inputs []status.File
	items, _ := op.ItemsOf(n - 1)
	for _, it := range items {
		inputs = append(inputs, it.Results...)
	}
	refused := func(code, message string, args ...any) []status.Item {
		return []status.Item{{Inputs: inputs, Error: &status.Error{Code: code, Message: fmt.Sprintf(message, args...)}}}
	}
	name := fmt.Sprintf("step %d (%s)", n+1, op.Steps[n].Action)
	steps, err := w.steps(op)
	if err != nil {
		w.log.Error("cannot start the next step", "operation", op.ID, "account", op.Owner, "err", err)
		return refused(Code(err), "%s could not start, because its parameters cannot be read", name)
	}
	step := steps[n]
	if len(inputs) == 0 {
		return refused("unsupported_input", "%s has no files, because step %d had no results", name, n)
	}
	if !step.Joint {
		if most := cmp.Or(w.cfg.MaxStepFiles, 1000); len(inputs) > most {
			return refused("limit_exceeded", "%s would have %d files, more than the limit of %d", name, len(inputs), most)
		}
		list := make([]status.Item, len(inputs))
		for i, f := range inputs {
			list[i] = status.Item{Inputs: inputs[i : i+1]}
			if list[i].Queue, err = step.queueOf(f); err != nil {
				list[i].Error = &status.Error{Code: fileops.Code(err), Message: fmt.Sprintf("%s: %s", name, fileops.Message(err))}
			}
		}
		return list
	}
	for i, it := range op.Items {
		if it.State == status.Failed && it.Error != nil {
			return refused(it.Error.Code, "%s needs all files, and a file failed in step %d (%s): %s", name, op.StepOf(i)+1, op.ActionOf(i), it.Error.Message)
		}
	}
	queue := ""
	for _, f := range inputs {
		q, err := step.queueOf(f)
		if err != nil {
			return refused(fileops.Code(err), "%s: %s", name, fileops.Message(err))
		}
		queue = cmp.Or(queue, q)
	}
	return []status.Item{{Queue: queue, Inputs: inputs}}
}

// queueOf returns the queue of an item of the step for a file.
func (s Step) queueOf(f status.File) (string, error) {
	is := format.Parse(f.Name)
	if q, ok := s.Queues[is]; ok {
		return q, nil
	}
	if q, ok := s.Queues[format.Any]; ok {
		return q, nil
	}
	return "", fileops.Fail(fileops.ErrUnsupportedInput, nil, "the action does not accept %q, a result of the step before", f.Name)
}

// removeIntermediate deletes the results of all steps but the last, unless they are to
// be kept. If the process dies before that, they expire like all files.
func (w *Worker) removeIntermediate(ctx context.Context, op *status.Operation) {
	for i, it := range op.Items {
		step := op.StepOf(i)
		if len(op.Steps) == 0 || step == len(op.Steps)-1 || op.Steps[step].Keep {
			continue
		}
		for _, f := range it.Results {
			if err := w.uploads.Delete(context.WithoutCancel(ctx), op.Owner, f.Key); err != nil && !errors.Is(err, fs.ErrNotExist) {
				w.log.Warn("cannot delete a result of a step; it expires", "operation", op.ID, "account", op.Owner, "err", err)
			}
		}
	}
}
