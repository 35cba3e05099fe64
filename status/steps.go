package status

import (
	"cmp"
	"slices"
	"time"
)

// A Step is one action of an operation of several steps.
//
// The items of an operation are in the order of its steps, and Items of each step says
// how many are its own. So the index of an item tells its step, and only the row of the
// operation changes beside the items when a step starts.
type Step struct {
	Action string `json:"action"`
	Items  int    `json:"items,omitempty"` // number of its items; 0: it has not started
	Keep   bool   `json:"keep,omitempty"`  // its results stay when the operation is final

	// Started is when its items were queued, to the millisecond; zero for the first step,
	// whose items are queued with the operation.
	Started time.Time `json:"started,omitzero"`
}

// Begin prepares the steps of a new operation, whose items are those of the first step.
// All stores call it in Create.
func (op *Operation) Begin() {
	for i := range op.Steps {
		op.Steps[i].Items, op.Steps[i].Started = 0, time.Time{}
	}
	if len(op.Steps) > 0 {
		op.Steps[0].Items = len(op.Items)
	}
}

// Step returns the index of the latest step that has started. It is 0 for an operation
// of a single action.
func (op *Operation) Step() int {
	step := 0
	for i, s := range op.Steps {
		if s.Items > 0 {
			step = i
		}
	}
	return step
}

// StepOf returns the index of the step that an item belongs to. It is 0 for an operation
// of a single action.
func (op *Operation) StepOf(item int) int {
	for i, s := range op.Steps {
		if item < s.Items {
			return i
		}
		item -= s.Items
	}
	return max(0, len(op.Steps)-1)
}

// ActionOf returns the action of an item: that of its step, or of the operation.
func (op *Operation) ActionOf(item int) string {
	if len(op.Steps) == 0 {
		return op.Action
	}
	return op.Steps[op.StepOf(item)].Action
}

// ItemsOf returns the items of a step, which alias op.Items, and the index of the first.
// Without steps, they are all items.
func (op *Operation) ItemsOf(step int) (items []Item, first int) {
	if len(op.Steps) == 0 {
		return op.Items, 0
	}
	for _, s := range op.Steps[:step] {
		first += s.Items
	}
	end := min(first+op.Steps[step].Items, len(op.Items))
	return op.Items[min(first, end):end], first
}

// Queued returns when an item was queued first; zero if that is not known.
func (op *Operation) Queued(item int) time.Time {
	if step := op.StepOf(item); step > 0 {
		return op.Steps[step].Started
	}
	return op.Created
}

// last reports whether no step follows the given one.
func (op *Operation) last(step int) bool { return step >= len(op.Steps)-1 }

// Rollup returns the state of op, which is that of [Rollup], with one difference: an
// operation of several steps is Completed only if an item of its last step is.
func (op *Operation) Rollup() State {
	state := Rollup(op.Items, op.Cancelled)
	if state != Completed || len(op.Steps) == 0 {
		return state
	}
	items, _ := op.ItemsOf(len(op.Steps) - 1)
	if !slices.ContainsFunc(items, func(it Item) bool { return it.State == Completed }) {
		return Failed
	}
	return Completed
}

// Advance starts the next step of op if all items of the current step are final and at
// least one is completed. next makes the items from op; see [Outcome.Next]. Advance
// appends them to op.Items and returns them. It returns nil if no step starts. All
// stores call it in Finish.
func (op *Operation) Advance(next func(*Operation) []Item, now time.Time) []Item {
	step := op.Step()
	if op.Cancelled || next == nil || op.last(step) {
		return nil
	}
	items, _ := op.ItemsOf(step)
	completed := false
	for _, it := range items {
		if !it.State.Final() {
			return nil
		}
		completed = completed || it.State == Completed
	}
	if !completed {
		return nil
	}
	var fresh []Item
	for _, it := range next(op) {
		one := Item{Queue: it.Queue, Inputs: slices.Clone(it.Inputs), State: Queued}
		if it.Error != nil {
			e := *it.Error
			one.State, one.Error, one.Finished = Failed, &e, now
		}
		fresh = append(fresh, one)
	}
	op.Steps[step+1].Items, op.Steps[step+1].Started = len(fresh), now.Truncate(time.Millisecond).UTC()
	op.Items = append(op.Items, fresh...)
	return fresh
}

// Percent returns the progress in percent. For an operation of a single action it is the
// mean progress of the items; a final item counts as 100, even if it failed. All steps
// count equally.
func (op *Operation) Percent() int {
	if len(op.Steps) > 0 && op.State.Final() {
		return 100
	}
	step := op.Step()
	items, _ := op.ItemsOf(step)
	total := 0.0
	for _, it := range items {
		if it.State.Final() {
			total++
		} else {
			total += it.Progress
		}
	}
	return int(100 * (float64(step) + total/float64(max(1, len(items)))) / float64(max(1, len(op.Steps))))
}

// StepState returns the state of a step. A step that has not started is Queued, or
// Failed if the operation is final.
func (op *Operation) StepState(step int) State {
	items, _ := op.ItemsOf(step)
	switch {
	case len(items) == 0 && op.State.Final():
		return Failed
	case len(items) == 0:
		return Queued
	}
	return Rollup(items, op.Cancelled && step == op.Step())
}

// Shown returns op as its owner sees it. For an operation of a single action that is op
// itself. Otherwise it has no Steps, but the items of the current step and those that
// failed before, in the order of the operation's inputs. The inputs of these items are
// the operation's own inputs, their progress is that of all steps, and their warnings
// are those of all steps. Results of earlier steps are not in it.
func (op *Operation) Shown() *Operation {
	if len(op.Steps) == 0 {
		return op
	}
	v := op.view()
	var items []Item
	var order []int
	for i := range op.Items {
		if it, ok := v.item(i); ok {
			items = append(items, it)
			order = append(order, v.position(i))
		}
	}
	shown := *op
	shown.Steps, shown.Items = nil, make([]Item, 0, len(items))
	ranked := make([]int, len(items))
	for i := range ranked {
		ranked[i] = i
	}
	slices.SortStableFunc(ranked, func(a, b int) int { return cmp.Compare(order[a], order[b]) })
	for _, i := range ranked {
		shown.Items = append(shown.Items, items[i])
	}
	return &shown
}

// ShownItem returns an item as [Operation.Shown] has it. It reports false if Shown does
// not have it.
func (op *Operation) ShownItem(i int) (Item, bool) {
	if len(op.Steps) == 0 {
		return op.Items[i], true
	}
	return op.view().item(i)
}

// A stepView describes the items of an operation of several steps to its owner.
type stepView struct {
	op      *Operation
	maker   map[string]int // index of the item that made a result, by key
	current int            // index of the current step
}

func (op *Operation) view() *stepView {
	v := &stepView{op: op, maker: make(map[string]int), current: op.Step()}
	for i, it := range op.Items {
		for _, f := range it.Results {
			v.maker[f.Key] = i
		}
	}
	return v
}

// item returns item i as its owner sees it. It reports false if the owner sees only the
// items that continue its work.
func (v *stepView) item(i int) (Item, bool) {
	it := v.op.Items[i].clone()
	step := v.op.StepOf(i)
	if step < v.current && it.State != Failed {
		return it, false
	}
	steps := float64(len(v.op.Steps))
	done := (float64(step) + it.Progress) / steps
	switch {
	case it.State == Completed && v.op.last(step):
		done = 1
	case it.State == Completed && v.op.State.Final():
		it.State, it.Results, it.Error = Failed, nil, &Error{CodeInternal, "the next step did not start"}
		if v.op.Cancelled {
			it.Error = &Error{CodeCancelled, "the operation was cancelled"}
		}
	case it.State == Completed: // waits for the other items of the step
		it.State, it.Results, it.Finished = Running, nil, time.Time{}
	}
	it.Progress = done
	it.Inputs, it.Warnings = v.origins(i), nil
	if it.State == Completed {
		v.warnings(i, &it.Warnings)
	}
	return it, true
}

// parents returns the items whose results are the inputs of item i.
func (v *stepView) parents(i int) (list []int) {
	if v.op.StepOf(i) == 0 {
		return nil
	}
	for _, f := range v.op.Items[i].Inputs {
		if p, ok := v.maker[f.Key]; ok && p < i && (len(list) == 0 || list[len(list)-1] != p) {
			list = append(list, p)
		}
	}
	return list
}

// origins returns the inputs of the operation that item i comes from.
func (v *stepView) origins(i int) (files []File) {
	parents := v.parents(i)
	if len(parents) == 0 {
		return slices.Clone(v.op.Items[i].Inputs)
	}
	seen := make(map[string]bool)
	for _, p := range parents {
		for _, f := range v.origins(p) {
			if !seen[f.Key] {
				seen[f.Key] = true
				files = append(files, f)
			}
		}
	}
	return files
}

// position returns the index of the first item of the first step that item i comes from.
func (v *stepView) position(i int) int {
	for {
		parents := v.parents(i)
		if len(parents) == 0 {
			return i
		}
		i = parents[0]
	}
}

// warnings appends the warnings of item i and of the items that it comes from to list,
// those of earlier steps first.
func (v *stepView) warnings(i int, list *[]Warning) {
	for _, p := range v.parents(i) {
		v.warnings(p, list)
	}
	for _, w := range v.op.Items[i].Warnings {
		if !slices.Contains(*list, w) {
			*list = append(*list, w)
		}
	}
}
