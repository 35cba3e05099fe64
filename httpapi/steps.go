package httpapi

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/filewright/filewright/capability"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/status"
	"github.com/filewright/filewright/status/worker"
	"github.com/filewright/filewright/upload"
)

// stepsAction is the action of an operation of several steps, as the status has it.
const stepsAction = "steps"

// checkSteps checks the form of the steps of a request, whose action and parameters they replace.
func checkSteps(steps []stepRequest, action string, parameters map[string]any, most int) error {
	switch {
	case steps == nil:
		return nil
	case strings.TrimSpace(action) != "":
		return invalid("action", "steps replace action and parameters; send one or the other")
	case len(parameters) > 0:
		return invalid("parameters", "steps replace action and parameters; send one or the other")
	case len(steps) == 0:
		return invalid("steps", "steps must have at least one element, such as {\"action\": \"convert\", \"parameters\": {\"convert_to\": \"pdf\"}}")
	case len(steps) > most:
		return invalid("steps", "an operation can have at most %d steps", most)
	}
	for i, step := range steps {
		if strings.TrimSpace(step.Action) == "" {
			return invalid(fmt.Sprintf("steps[%d].action", i), "each step needs an action, such as convert")
		}
	}
	return nil
}

// planSteps sets the steps, the items of the first step, and the parameters of an operation of
// several steps. It returns an error for an impossible step, before anything is queued.
func (s *Service) planSteps(ctx context.Context, op *status.Operation, offered *capability.Matrix, files []*upload.File, formats []format.Format, req *doRequest) error {
	asked := make([]capability.Step, len(req.Steps))
	for i, step := range req.Steps {
		asked[i] = capability.Step{Action: step.Action, Parameters: step.Parameters}
	}
	stages, err := offered.Plan(formats, asked)
	if err != nil {
		return stepProblem(err)
	}
	uploads := 0
	for i := range stages {
		for name, key := range stages[i].Uploads {
			f, err := s.parameterFile(ctx, op.Owner, fmt.Sprintf("steps[%d].parameters.%s", i, name), key)
			if err != nil {
				return err
			}
			asked[i].Parameters = maps.Clone(asked[i].Parameters)
			asked[i].Parameters[name] = f
			uploads++
		}
	}
	if uploads > 0 {
		if _, err := offered.Plan(formats, asked); err != nil {
			return stepProblem(err)
		}
	}
	first := *op
	first.Action = stages[0].Action
	if _, _, err := plan(&first, offered, files, formats, req.Steps[0].Parameters); err != nil {
		return err // a file is too large: the formats have been checked
	}
	op.Action, op.Items = stepsAction, first.Items
	sealed := make([]worker.Step, len(stages))
	for i, st := range stages {
		op.Steps = append(op.Steps, status.Step{Action: st.Action, Keep: req.Keep})
		sealed[i] = worker.Step{Parameters: req.Steps[i].Parameters, Joint: st.Joint, Queues: st.Families, Guessed: st.Guessed}
	}
	setAsked(op, offered, req.Steps)
	op.Args, err = s.worker.SealSteps(op.ID, sealed)
	return err
}

// stepProblem returns the Problem of an error of Matrix.Plan: that of a single action, with the step
// in its text and its parameter.
func stepProblem(err error) error {
	var e *capability.StepError
	if !errors.As(err, &e) {
		return err
	}
	p := asProblem(e.Err)
	p.Detail = e.Error()
	p.Param = fmt.Sprintf("steps[%d].%s", e.Step, p.Param)
	if len(e.Accepts) > 0 {
		p.Allowed = nil // the action is known: the files do not fit
	}
	for _, f := range e.Accepts {
		p.Allowed = append(p.Allowed, string(f))
	}
	return &stepRefusal{p, e.Err}
}

// A stepRefusal is a Problem whose text may repeat misplaced secrets, see errParam.
type stepRefusal struct {
	*Problem
	err error
}

func (e *stepRefusal) Unwrap() []error { return []error{e.Problem, e.err} }

// stepsSupported answers supported-operation for steps: whether do would accept them for a file with
// this extension.
func (s *Service) stepsSupported(offered *capability.Matrix, ext string, req *capabilityRequest) (resp capabilityResponse, err error) {
	if err := checkSteps(req.Steps, req.Action, req.Parameters, s.cfg.Limits.Steps); err != nil {
		return resp, err
	}
	steps := make([]capability.Step, len(req.Steps))
	for i, step := range req.Steps {
		steps[i] = capability.Step{Action: step.Action, Parameters: step.Parameters}
	}
	_, err = offered.Plan([]format.Format{format.Parse(ext)}, steps)
	resp = capabilityResponse{Supported: err == nil, Ext: ext, Action: stepsAction}
	var e *capability.StepError
	if errors.As(err, &e) {
		resp.Reason = e.Error()
	}
	return resp, nil
}

// describeSteps returns the states of the steps of an operation, nil for a single action.
func (s *Service) describeSteps(op *status.Operation) []StepStatus {
	var list []StepStatus
	for i, step := range op.Steps {
		one := StepStatus{Action: step.Action, Status: string(op.StepState(i))}
		items, _ := op.ItemsOf(i)
		if len(items) > 0 {
			one.Count = &taskCount{Total: len(items)}
		}
		total := 0.0
		for _, it := range items {
			switch it.State {
			case status.Completed:
				one.Count.Success++
			case status.Failed:
				one.Count.Failed++
			}
			if total += it.Progress; it.State == status.Failed {
				total += 1 - it.Progress
			}
			if step.Keep && i < len(op.Steps)-1 && len(it.Results) > 0 {
				one.FilesData = append(one.FilesData, s.describeItem(it)...)
			}
		}
		if len(items) > 0 {
			one.Progress = int(100 * total / float64(len(items)))
		}
		list = append(list, one)
	}
	return list
}
