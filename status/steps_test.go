package status_test

import (
	"context"
	"fmt"
	"reflect"
	"sync/atomic"
	"testing"
	"time"

	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/status"
)

func files(keys ...string) (list []status.File) {
	for _, key := range keys {
		list = append(list, status.File{Key: key})
	}
	return list
}

// chained returns an operation of three steps in the middle of the second: of three
// files, the first failed in the first step, the second gave two results.
func chained() *status.Operation {
	failure := &status.Error{Code: "corrupt_input", Message: "the file is damaged"}
	return &status.Operation{
		ID: "op", Action: "steps", State: status.Running,
		Steps: []status.Step{{Action: "convert", Items: 3}, {Action: "compress", Items: 3}, {Action: "zip"}},
		Items: []status.Item{
			{Inputs: files("a"), State: status.Failed, Error: failure, Progress: 0.5},
			{Inputs: files("b"), State: status.Completed, Results: files("b1", "b2"), Progress: 1, Warnings: []status.Warning{{Code: "w", Message: "b"}}},
			{Inputs: files("c"), State: status.Completed, Results: files("c1"), Progress: 1},
			{Inputs: files("b1"), State: status.Completed, Results: files("b11"), Progress: 1, Warnings: []status.Warning{{Code: "w", Message: "b"}, {Code: "x", Message: "b1"}}},
			{Inputs: files("b2"), State: status.Running, Progress: 0.5},
			{Inputs: files("c1"), State: status.Queued},
		},
	}
}

func TestShown(t *testing.T) {
	t.Parallel()
	op := chained()
	type item struct {
		inputs, results []status.File
		state           status.State
		progress        float64
	}
	shown := func() (list []item) {
		for _, it := range op.Shown().Items {
			list = append(list, item{it.Inputs, it.Results, it.State, it.Progress})
		}
		return list
	}
	want := []item{
		{files("a"), nil, status.Failed, 0.5 / 3},
		{files("b"), nil, status.Running, 2. / 3}, // waits for the others
		{files("b"), nil, status.Running, 1.5 / 3},
		{files("c"), nil, status.Queued, 1. / 3},
	}
	if got := shown(); !reflect.DeepEqual(got, want) {
		t.Errorf("running: %+v, want\n%+v", got, want)
	}
	if p := op.Percent(); p != 50 {
		t.Errorf("progress %d", p)
	}
	states := func() []status.State { return []status.State{op.StepState(0), op.StepState(1), op.StepState(2)} }
	if got := states(); !reflect.DeepEqual(got, []status.State{status.Completed, status.Running, status.Queued}) {
		t.Errorf("states %v", got)
	}

	// The last step, which takes all files.
	for i := 4; i < 6; i++ {
		op.Items[i].State, op.Items[i].Progress, op.Items[i].Results = status.Completed, 1, files(fmt.Sprint("r", i))
	}
	next := func(op *status.Operation) []status.Item {
		return []status.Item{{Queue: "archive", Inputs: files("b11", "r4", "r5"), State: status.Completed, Attempt: 7}}
	}
	fresh := op.Advance(next, time.Now())
	if len(fresh) != 1 || fresh[0].State != status.Queued || fresh[0].Attempt != 0 || op.Step() != 2 || op.ActionOf(6) != "zip" || op.Percent() != 66 {
		t.Fatalf("next step %+v at %d %%", fresh, op.Percent())
	}
	if op.Advance(next, time.Now()) != nil {
		t.Error("there is a step after the last")
	}
	op.Items[6].State, op.Items[6].Progress, op.Items[6].Results = status.Completed, 1, files("z")
	op.State = op.Rollup()
	want = []item{{files("a"), nil, status.Failed, 0.5 / 3}, {files("b", "c"), files("z"), status.Completed, 1}}
	if got := shown(); !reflect.DeepEqual(got, want) || op.State != status.Completed || op.Percent() != 100 {
		t.Errorf("final: %+v, want\n%+v", got, want)
	}
	if w := op.Shown().Items[1].Warnings; !reflect.DeepEqual(w, []status.Warning{{Code: "w", Message: "b"}, {Code: "x", Message: "b1"}}) {
		t.Errorf("warnings %v", w)
	}
	if op.Shown().Steps != nil || op.Steps == nil {
		t.Error("what the owner sees has steps, or the operation has none")
	}

	// A cancelled operation has no results of a step in the middle.
	op = chained()
	op.Cancelled = true
	for i := 4; i < 6; i++ {
		op.Items[i].State, op.Items[i].Error = status.Failed, &status.Error{Code: status.CodeCancelled}
	}
	op.State = op.Rollup()
	for i, it := range op.Shown().Items {
		if it.State != status.Failed || it.Error == nil || len(it.Results) > 0 {
			t.Errorf("item %d of a cancelled operation is %+v", i, it)
		}
	}
	if got := states(); !reflect.DeepEqual(got, []status.State{status.Completed, status.Failed, status.Failed}) || op.State != status.Failed {
		t.Errorf("states %v", got)
	}

	// An operation of a single action is its own view.
	single := &status.Operation{Action: "convert", Items: []status.Item{{State: status.Queued}}}
	if single.Shown() != single {
		t.Error("a single action is shown as something else")
	}
}

// A Tracker notifies its dispatcher of the items of the next step.
func TestTrackerAdvances(t *testing.T) { onStores(t, trackerAdvances) }

func trackerAdvances(t *testing.T, store status.Store) {
	var handled atomic.Int32
	tr, err := status.New(status.Config{
		Store: store,
		// It reads the store so rarely that only notifications can start the items.
		Dispatcher: status.NewLocal(store, &status.LocalOptions{Every: time.Hour}),
		Handler: status.HandlerFunc(func(_ context.Context, c *status.Claim, _ func(float64)) status.Outcome {
			handled.Add(1)
			return status.Outcome{Results: files(c.Op.ActionOf(c.Index) + " of " + c.Item.Inputs[0].Key)}
		}),
		Next: func(op *status.Operation) (next []status.Item) {
			items, _ := op.ItemsOf(op.Step())
			for _, it := range items {
				next = append(next, status.Item{Queue: "q", Inputs: it.Results})
			}
			return next
		},
		OnFinal: func(_ context.Context, op *status.Operation) {
			if len(op.Items) != 6 {
				t.Errorf("final operation has %d items", len(op.Items))
			}
		},
	})
	systest.NoError(t, err)
	systest.Start(t, func(ctx context.Context) error { return tr.Run(ctx, time.Second) })
	op, err := tr.Submit(t.Context(), status.Operation{
		Owner: "alice", Action: "steps", Steps: []status.Step{{Action: "a"}, {Action: "b"}, {Action: "c"}},
		Items: []status.Item{{Queue: "q", Inputs: files("x")}, {Queue: "q", Inputs: files("y")}},
	})
	systest.NoError(t, err)
	percent := -1
	for op, err = range tr.Watch(t.Context(), "alice", op.ID) {
		systest.NoError(t, err)
		if p := op.Percent(); p < percent {
			t.Errorf("progress fell from %d to %d", percent, p)
		} else {
			percent = p
		}
	}
	if op.State != status.Completed || handled.Load() != 6 || op.Items[5].Results[0].Key != "c of b of a of y" {
		t.Errorf("%d attempts, %+v", handled.Load(), op)
	}
	stats, err := tr.Stats(t.Context())
	if err != nil || len(stats) != 0 {
		t.Errorf("stats %v, %v", stats, err)
	}
}
