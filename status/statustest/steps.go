package statustest

import (
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/filewright/filewright/status"
)

// chain stores an operation of three steps with the given number of items in the first.
func (s *suite) chain(items int) *status.Operation {
	s.Helper()
	op := s.make("alice", slices.Repeat([]string{"office"}, items)...)
	op.Action, op.Args = "steps", []byte("sealed")
	op.Steps = []status.Step{{Action: "convert", Keep: true}, {Action: "merge", Items: 7}, {Action: "lock"}}
	created, err := s.Create(s.ctx(), op)
	s.noError(err)
	want := op.Clone()
	want.Steps[0].Items, want.Steps[1].Items = items, 0 // the caller's are not taken
	want.State = status.Queued
	for i := range want.Items {
		want.Items[i].State = status.Queued
	}
	for what, got := range map[string]*status.Operation{"created": created, "stored": s.get(op.ID)} {
		if !reflect.DeepEqual(normal(got), normal(want)) {
			s.Fatalf("%s operation is\n%+v, want\n%+v", what, got, want)
		}
	}
	return created
}

// follow makes an item in the queue "pdf" of each result of the current step.
func follow(op *status.Operation) (next []status.Item) {
	items, _ := op.ItemsOf(op.Step())
	for _, it := range items {
		for _, f := range it.Results {
			next = append(next, status.Item{Queue: "pdf", Inputs: []status.File{f}})
		}
	}
	return next
}

// made returns a success with results of the given keys, after which follow makes the
// next step.
func made(keys ...string) status.Outcome {
	o := status.Outcome{Next: follow}
	for _, key := range keys {
		o.Results = append(o.Results, status.File{Key: key, Name: key + ".pdf", Size: 5})
	}
	return o
}

// counts returns the number of items of each step.
func counts(op *status.Operation) (list []int) {
	for _, step := range op.Steps {
		list = append(list, step.Items)
	}
	return list
}

func stepsAdvance(t *testing.T, s *suite) {
	op := s.chain(2)
	c := s.claim(op.ID, 1, "w", long)
	s.equal("action of the claim", c.Op.ActionOf(c.Index), "convert")
	got := s.finish(c, made("b"))
	s.equal("items while a file is open", counts(got), []int{2, 0, 0})
	s.equal("pending", s.pending(status.PendingQuery{}), []status.Ref{{Operation: op.ID, Index: 0}})

	c = s.claim(op.ID, 0, "w", long)
	ended, err := s.Finish(s.ctx(), c, made("a1", "a2"))
	s.noError(err)
	got = s.get(op.ID)
	if !reflect.DeepEqual(normal(ended), normal(got)) {
		t.Fatalf("Finish returned\n%+v, but stored is\n%+v", ended, got)
	}
	s.equal("items after the first step", counts(got), []int{2, 3, 0})
	s.equal("state", got.State, status.Running)
	s.equal("parameters", string(got.Args), "sealed")
	for i, key := range []string{"a1", "a2", "b"} {
		it := got.Items[2+i]
		want := status.Item{Queue: "pdf", Inputs: []status.File{{Key: key, Name: key + ".pdf", Size: 5}}, State: status.Queued}
		if !reflect.DeepEqual(it, want) {
			t.Fatalf("item %d is\n%+v, want\n%+v", 2+i, it, want)
		}
	}
	s.equal("pending", s.pending(status.PendingQuery{Queue: "pdf", Owner: "alice"}),
		[]status.Ref{{Operation: op.ID, Index: 2}, {Operation: op.ID, Index: 3}, {Operation: op.ID, Index: 4}})
	loads, err := s.Load(s.ctx())
	s.noError(err)
	s.equal("queued", loads[0].Queued, 3)
	_, err = s.Finish(s.ctx(), c, made("late"))
	s.matches(err, status.ErrLost)

	// A joint step.
	joint := func(op *status.Operation) []status.Item {
		next := status.Item{Queue: "pdf"}
		for _, it := range follow(op) {
			next.Inputs = append(next.Inputs, it.Inputs...)
		}
		return []status.Item{next}
	}
	for i := 2; i < 5; i++ {
		c := s.claim(op.ID, i, "w", long)
		s.equal("action of the claim", c.Op.ActionOf(c.Index), "merge")
		o := made(fmt.Sprint("merged", i))
		o.Next = joint
		got = s.finish(c, o)
	}
	s.equal("items", counts(got), []int{2, 3, 1})
	s.equal("inputs", len(got.Items[5].Inputs), 3)
	got = s.finish(s.claim(op.ID, 5, "w", long), made("locked"))
	s.equal("state", got.State, status.Completed)
	s.equal("parameters", len(got.Args), 0)
	s.equal("end", got.Finished, got.Items[5].Finished)
	s.equal("items", len(got.Items), 6)
	s.equal("kept", got.Steps[0].Keep, true)
	for listed, err := range s.List(s.ctx(), status.Query{Owner: "alice"}) {
		s.noError(err)
		s.equal("listed steps", listed.Steps, got.Steps)
	}
	n, err := s.DeleteFinished(s.ctx(), got.Finished.Add(1e9))
	s.noError(err)
	s.equal("deleted", n, 1)
	_, err = s.Get(s.ctx(), op.ID)
	s.matches(err, fs.ErrNotExist)
}

// stepsOnce lets all items of a step finish at the same time: the next step starts once.
func stepsOnce(t *testing.T, s *suite) {
	op := s.chain(8)
	started := make(chan int, len(op.Items))
	var all sync.WaitGroup
	for i := range op.Items {
		c := s.claim(op.ID, i, "w", long)
		all.Go(func() {
			got, err := s.Finish(s.ctx(), c, made(fmt.Sprint("r", i)))
			if err != nil {
				t.Error(err)
				return
			}
			if len(got.Items) > 0 {
				started <- len(got.Items)
			}
		})
	}
	all.Wait()
	close(started)
	var list []int
	for n := range started {
		list = append(list, n)
	}
	s.equal("items at the start of the next step", list, []int{16})
	s.equal("items", counts(s.get(op.ID)), []int{8, 8, 0})
}

func stepsFailures(_ *testing.T, s *suite) {
	// A file that fails does not enter the next step, whose other files go on.
	op := s.chain(2)
	bad := failure
	bad.Next = follow
	s.finish(s.claim(op.ID, 0, "w", long), bad)
	got := s.finish(s.claim(op.ID, 1, "w", long), made("b"))
	s.equal("items", counts(got), []int{2, 1, 0})

	// Items that cannot start fail at once.
	refuse := func(op *status.Operation) []status.Item {
		next := follow(op)
		next[0].Error = &status.Error{Code: "unsupported_input", Message: "no"}
		return next
	}
	o := made("c", "d")
	o.Next = refuse
	got = s.finish(s.claim(op.ID, 2, "w", long), o)
	s.equal("items", counts(got), []int{2, 1, 2})
	s.equal("states", states(got), []status.State{status.Running, status.Failed, status.Completed, status.Completed, status.Failed, status.Queued})
	s.equal("error", *got.Items[3].Error, status.Error{Code: "unsupported_input", Message: "no"})
	if got.Items[3].Finished.IsZero() {
		s.Fatal("a refused item has no end")
	}
	s.equal("pending", s.pending(status.PendingQuery{}), []status.Ref{{Operation: op.ID, Index: 4}})
	bad.Next = nil
	got = s.finish(s.claim(op.ID, 4, "w", long), bad)
	s.equal("state without a result of the last step", got.State, status.Failed)

	// If all files fail, or are refused, the operation ends.
	op = s.chain(1)
	bad.Next = follow
	got = s.finish(s.claim(op.ID, 0, "w", long), bad)
	s.equal("state", got.State, status.Failed)
	s.equal("items", counts(got), []int{1, 0, 0})
	op = s.chain(1)
	o = made("a")
	o.Next = refuse
	got = s.finish(s.claim(op.ID, 0, "w", long), o)
	s.equal("state", got.State, status.Failed)
	s.equal("items", counts(got), []int{1, 1, 0})
	s.equal("parameters", len(got.Args), 0)

	// A retry is not the end of a step.
	op = s.chain(1)
	got = s.finish(s.claim(op.ID, 0, "w", long), status.Outcome{Release: true, Next: follow})
	s.equal("items", counts(got), []int{1, 0, 0})
}

func stepsCancel(_ *testing.T, s *suite) {
	op := s.chain(2)
	s.finish(s.claim(op.ID, 0, "w", long), made("a"))
	c := s.claim(op.ID, 1, "w", long)
	_, err := s.Cancel(s.ctx(), "alice", op.ID)
	s.noError(err)
	got := s.finish(c, made("b"))
	s.equal("states", states(got), []status.State{status.Failed, status.Completed, status.Failed})
	s.equal("items", counts(got), []int{2, 0, 0})

	op = s.chain(1)
	s.finish(s.claim(op.ID, 0, "w", long), made("a", "b"))
	got, err = s.Cancel(s.ctx(), "alice", op.ID)
	s.noError(err)
	s.equal("states", states(got), []status.State{status.Failed, status.Completed, status.Failed, status.Failed})
	s.equal("pending", len(s.pending(status.PendingQuery{})), 0)
}

// stepsLapsed lets the claim of an item of the second step lapse: only that item is
// repeated.
func stepsLapsed(_ *testing.T, s *suite) {
	op := s.chain(1)
	s.finish(s.claim(op.ID, 0, "w", long), made("a"))
	late := s.claim(op.ID, 1, "w", short)
	c := s.reclaim(op.ID, 1, "v", long)
	s.equal("rescued", c.Rescued, true)
	_, err := s.Finish(s.ctx(), late, made("late"))
	s.matches(err, status.ErrLost)
	_, err = s.Claim(s.ctx(), status.Ref{Operation: op.ID, Index: 0}, "v", long)
	if !errors.Is(err, status.ErrLost) {
		s.Fatalf("an item of a finished step was claimed: %v", err)
	}
	got := s.finish(c, made("b"))
	s.equal("items", counts(got), []int{1, 1, 1})
	s.equal("input", got.Items[2].Inputs[0].Key, "b")
	n, err := s.Recover(s.ctx(), "other")
	s.noError(err)
	s.equal("recovered", n, 0)
}
