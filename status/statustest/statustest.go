// Package statustest tests whether a status.Store fulfils its contract. Every
// implementation can use it.
package statustest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/filewright/filewright/status"
)

// A long lease does not lapse during a test; a short one lapses at once.
const (
	long  = time.Hour
	short = time.Nanosecond
)

// Run tests the contract of status.Store. open returns an empty store; Run calls it
// once for each test.
func Run(t *testing.T, open func(t *testing.T) status.Store) {
	tests := []struct {
		name string
		test func(t *testing.T, s *suite)
	}{
		{"Create/ReadBack", createReadBack},
		{"Create/Refused", createRefused},
		{"Create/Idempotent", createIdempotent},
		{"Create/IdempotentConcurrently", createIdempotentConcurrently},
		{"Get/Missing", getMissing},
		{"Copies", copies},
		{"List/OrderAndCursor", listOrder},
		{"List/Filter", listFilter},
		{"List/IdempotencyKey", listKey},
		{"Claim/Start", claimStart},
		{"Claim/Refused", claimRefused},
		{"Claim/ExclusiveConcurrently", claimExclusive},
		{"Claim/AfterLapse", claimAfterLapse},
		{"Heartbeat/Renews", heartbeatRenews},
		{"Heartbeat/Stop", heartbeatStop},
		{"Heartbeat/Progress", heartbeatProgress},
		{"Finish/Outcomes", finishOutcomes},
		{"Finish/Fenced", finishFenced},
		{"Finish/OnceConcurrently", finishOnce},
		{"Finish/Rollup", finishRollup},
		{"Finish/ErasesArgs", finishErasesArgs},
		{"Finish/Retry", finishRetry},
		{"Claim/ClockAhead", claimClockAhead},
		{"Finish/Release", finishRelease},
		{"Finish/Waiting", finishWaiting},
		{"Finish/Warnings", finishWarnings},
		{"Steps/Advance", stepsAdvance},
		{"Steps/OnceConcurrently", stepsOnce},
		{"Steps/Failures", stepsFailures},
		{"Steps/Cancel", stepsCancel},
		{"Steps/Lapsed", stepsLapsed},
		{"Cancel/Queued", cancelQueued},
		{"Cancel/Running", cancelRunning},
		{"Cancel/RetryWaiting", cancelRetryWaiting},
		{"Cancel/Final", cancelFinal},
		{"Cancel/Lapsed", cancelLapsed},
		{"Cancel/Foreign", cancelForeign},
		{"Pending/Order", pendingOrder},
		{"Pending/Select", pendingSelect},
		{"Pending/States", pendingStates},
		{"Pending/LazyAndChanging", pendingLazy},
		{"Load", load},
		{"Recover", recovers},
		{"DeleteFinished", deleteFinished},
		{"History/Search", historySearch},
		{"History/Orders", historyOrders},
		{"History/Conditions", historyConditions},
		{"History/Delete", historyDelete},
		{"Context", contextDone},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.test(t, &suite{T: t, Store: open(t), start: time.Now().UTC().Truncate(time.Millisecond).Add(-time.Hour)})
		})
	}
}

// A suite is one test on one store. Its operations are created a second apart, from
// an hour ago on.

// RunParallel tests that a status.Store limits the live claims of an owner, see
// status.ErrParallel. open returns an empty store and a function that sets the limit of
// an owner in it; 0 is no limit.
func RunParallel(t *testing.T, open func(t *testing.T) (status.Store, func(owner string, n int))) {
	tests := []struct {
		name string
		test func(t *testing.T, s *suite, limit func(owner string, n int))
	}{
		{"Refused", parallelRefused},
		{"Exact", parallelExact},
		{"Lapsed", parallelLapsed},
		{"Cancelled", parallelCancelled},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			store, limit := open(t)
			tt.test(t, &suite{T: t, Store: store, start: time.Now().Add(-time.Minute).Truncate(time.Millisecond)}, limit)
		})
	}
}

type suite struct {
	*testing.T
	status.Store
	start time.Time
	n     int
}

func (s *suite) ctx() context.Context { return s.Context() }

func (s *suite) noError(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *suite) matches(err, want error) {
	s.Helper()
	if !errors.Is(err, want) {
		s.Fatalf("error is %v, want one that matches %v", err, want)
	}
}

// make returns an operation that is not stored yet.
func (s *suite) make(owner string, queues ...string) *status.Operation {
	s.n++
	op := &status.Operation{
		ID: fmt.Sprintf("op-%04d", s.n), Owner: owner, Action: "convert",
		Created: s.start.Add(time.Duration(s.n) * time.Second),
	}
	for i, q := range queues {
		op.Items = append(op.Items, status.Item{
			Queue: q, Inputs: []status.File{{Key: fmt.Sprintf("in-%d-%d", s.n, i), Size: int64(i)}},
		})
	}
	return op
}

func (s *suite) create(owner string, queues ...string) *status.Operation {
	s.Helper()
	op, err := s.Create(s.ctx(), s.make(owner, queues...))
	s.noError(err)
	return op
}

func (s *suite) get(id string) *status.Operation {
	s.Helper()
	op, err := s.Get(s.ctx(), id)
	s.noError(err)
	return op
}

func (s *suite) claim(id string, index int, worker string, lease time.Duration) *status.Claim {
	s.Helper()
	c, err := s.Claim(s.ctx(), status.Ref{Operation: id, Index: index}, worker, lease)
	s.noError(err)
	return c
}

// reclaim claims an item as soon as possible.
func (s *suite) reclaim(id string, index int, worker string, lease time.Duration) *status.Claim {
	s.Helper()
	for {
		c, err := s.Claim(s.ctx(), status.Ref{Operation: id, Index: index}, worker, lease)
		if !errors.Is(err, status.ErrLost) && !errors.Is(err, status.ErrParallel) {
			s.noError(err)
			return c
		}
		s.noError(s.ctx().Err())
		time.Sleep(time.Millisecond)
	}
}

func (s *suite) finish(c *status.Claim, o status.Outcome) *status.Operation {
	s.Helper()
	op, err := s.Finish(s.ctx(), c, o)
	s.noError(err)
	got := s.get(op.ID)
	want := got.Clone()
	if !got.State.Final() {
		want.Items, op.Items = nil, nil
	}
	if !reflect.DeepEqual(normal(op), normal(want)) {
		s.Fatalf("Finish returned\n%+v, but stored is\n%+v", op, got)
	}
	return got
}

func (s *suite) pending(q status.PendingQuery) (refs []status.Ref) {
	s.Helper()
	for it, err := range s.Pending(s.ctx(), q) {
		s.noError(err)
		refs = append(refs, it.Ref)
	}
	return refs
}

func (s *suite) list(q status.Query) (ids []string) {
	s.Helper()
	for op, err := range s.List(s.ctx(), q) {
		s.noError(err)
		ids = append(ids, op.ID)
	}
	return ids
}

func (s *suite) equal(what string, got, want any) {
	s.Helper()
	if !reflect.DeepEqual(got, want) {
		s.Fatalf("%s is %v, want %v", what, got, want)
	}
}

// normal returns a copy of op that can be compared: it removes differences that do not
// matter, such as the location of times.
func normal(op *status.Operation) *status.Operation {
	op = op.Clone()
	fix := func(t *time.Time) {
		if !t.IsZero() {
			*t = t.UTC().Truncate(time.Millisecond)
		}
	}
	files := func(f []status.File) []status.File {
		for i := range f {
			fix(&f[i].Expires)
		}
		return slices.Clip(append([]status.File{}, f...))
	}
	fix(&op.Created)
	fix(&op.Finished)
	if len(op.Args) == 0 {
		op.Args = nil
	}
	if len(op.Notes) == 0 {
		op.Notes = nil
	}
	for i := range op.Items {
		it := &op.Items[i]
		it.Inputs, it.Results = files(it.Inputs), files(it.Results)
		fix(&it.Started)
		if it.Waiting != nil {
			fix(&it.Waiting.Since)
		}
		fix(&it.Finished)
		for i := range it.Attempts {
			fix(&it.Attempts[i].Started)
			fix(&it.Attempts[i].Ended)
		}
	}
	return op
}

var (
	failure = status.Outcome{Error: &status.Error{Code: "corrupt_input", Message: "the file is damaged"}}
	success = status.Outcome{Results: []status.File{{Key: "out", Name: "a.pdf", ContentType: "application/pdf", Size: 7}}}
)

func createReadBack(t *testing.T, s *suite) {
	op := s.make("alice", "pdf", "image", "pdf")
	op.Args = []byte("{\"password\":\"\x00\xff\"}")
	op.Notes = map[string]string{"ticket": "42", "": "ü"}
	op.IdempotencyKey, op.Fingerprint = "key", "print"
	op.Origin = status.Origin{Request: "request", Key: "credential", Trace: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", Client: "curl/8.5.0 (ü)", Address: "2001:db8::"}
	op.Items[0].Inputs = []status.File{
		{Key: "a", Name: "ä.docx", ContentType: "text/plain", Size: 1 << 40, Expires: op.Created.Add(time.Hour)},
		{Key: "b"},
	}
	op.Items[1].Inputs = nil

	// Fields that only a store may set are not taken from the caller.
	given := op.Clone()
	given.State, given.Cancelled, given.Finished = status.Failed, true, op.Created
	given.Items[2].State, given.Items[2].Attempt, given.Items[2].Claims, given.Items[2].Progress = status.Completed, 3, 4, 1
	created, err := s.Create(s.ctx(), given)
	s.noError(err)

	op.State = status.Queued
	for i := range op.Items {
		op.Items[i].State = status.Queued
	}
	for what, got := range map[string]*status.Operation{"created": created, "stored": s.get(op.ID)} {
		if !reflect.DeepEqual(normal(got), normal(op)) {
			t.Errorf("%s operation is\n%+v, want\n%+v", what, got, op)
		}
	}

	many := make([]string, 1000)
	for i := range many {
		many[i] = fmt.Sprint("queue", i)
	}
	big := s.get(s.create("alice", many...).ID)
	s.equal("number of items", len(big.Items), len(many))
	for i, it := range big.Items {
		s.equal("queue", it.Queue, many[i])
	}
}

func createRefused(t *testing.T, s *suite) {
	op := s.create("alice", "pdf")
	again := s.make("bob", "pdf")
	again.ID = op.ID
	_, err := s.Create(s.ctx(), again)
	s.matches(err, fs.ErrExist)
	s.equal("owner", s.get(op.ID).Owner, "alice")

	for name, bad := range map[string]*status.Operation{
		"no items": s.make("alice"),
		"no ID":    {Owner: "alice", Items: []status.Item{{Queue: "pdf"}}},
	} {
		if _, err := s.Create(s.ctx(), bad); err == nil {
			t.Errorf("operation with %s was created", name)
		}
	}
	s.equal("operations", s.list(status.Query{Owner: "alice"}), []string{op.ID})
}

func createIdempotent(t *testing.T, s *suite) {
	submit := func(owner, key string, created time.Time) *status.Operation {
		t.Helper()
		op := s.make(owner, "pdf")
		op.IdempotencyKey, op.Created, op.Fingerprint = key, created, "print "+op.ID
		got, err := s.Create(s.ctx(), op)
		s.noError(err)
		if got.ID != op.ID {
			if _, err := s.Get(s.ctx(), op.ID); !errors.Is(err, fs.ErrNotExist) {
				t.Fatalf("the operation was stored all the same, error %v", err)
			}
		}
		return got
	}
	day := 24 * time.Hour
	s.start = s.start.Add(-2 * day)
	first := submit("alice", "k", s.start)
	if again := submit("alice", "k", s.start.Add(time.Minute)); !reflect.DeepEqual(normal(again), normal(first)) {
		t.Errorf("second use of a key returned\n%+v, want\n%+v", again, first)
	}
	if got := submit("alice", "k", s.start.Add(day-time.Millisecond)); got.ID != first.ID {
		t.Error("a key was forgotten before 24 hours had passed")
	}
	if got := submit("bob", "k", s.start); got.ID == first.ID {
		t.Error("another owner got the operation")
	}
	if got := submit("alice", "other", s.start); got.ID == first.ID {
		t.Error("another key got the operation")
	}
	if a, b := submit("alice", "", s.start), submit("alice", "", s.start); a.ID == b.ID {
		t.Error("an empty key counts")
	}
	second := submit("alice", "k", s.start.Add(day))
	if second.ID == first.ID {
		t.Error("a key held for more than 24 hours")
	}
	if got := s.get(first.ID).IdempotencyKey; got != "" {
		t.Errorf("the older operation still has key %q", got)
	}
	if got := submit("alice", "k", s.start.Add(day+time.Hour)); got.ID != second.ID {
		t.Error("the key does not lead to the newer operation")
	}

	// The state of the operation does not matter.
	s.finish(s.claim(second.ID, 0, "w", long), success)
	if got := submit("alice", "k", s.start.Add(day+time.Hour)); got.ID != second.ID || got.State != status.Completed {
		t.Errorf("got %s in state %s, want %s completed", got.ID, got.State, second.ID)
	}
}

func createIdempotentConcurrently(t *testing.T, s *suite) {
	ids := make([]string, 16)
	var wg sync.WaitGroup
	for i := range ids {
		op := s.make("alice", "pdf", "pdf")
		op.IdempotencyKey, op.Created = "k", s.start
		wg.Go(func() {
			got, err := s.Create(s.ctx(), op)
			if err != nil {
				t.Error(err)
				return
			}
			ids[i] = got.ID
		})
	}
	wg.Wait()
	if len(slices.Compact(slices.Clone(ids))) != 1 {
		t.Errorf("callers got %v, want the same one", ids)
	}
	s.equal("number of operations", len(s.list(status.Query{Owner: "alice"})), 1)
	s.equal("number of items", len(s.pending(status.PendingQuery{})), 2)
}

func getMissing(_ *testing.T, s *suite) {
	_, err := s.Get(s.ctx(), "none")
	s.matches(err, fs.ErrNotExist)
	_, err = s.Cancel(s.ctx(), "alice", "none")
	s.matches(err, fs.ErrNotExist)
	_, err = s.Claim(s.ctx(), status.Ref{Operation: "none"}, "w", long)
	s.matches(err, fs.ErrNotExist)
	op := s.create("alice", "pdf")
	for _, index := range []int{-1, 1} {
		_, err = s.Claim(s.ctx(), status.Ref{Operation: op.ID, Index: index}, "w", long)
		s.matches(err, fs.ErrNotExist)
	}
	_, err = s.Finish(s.ctx(), &status.Claim{Ref: status.Ref{Operation: "none"}, Token: 1}, success)
	s.matches(err, status.ErrLost)
}

// copies tests that callers do not share memory with the store.
func copies(t *testing.T, s *suite) {
	spoil := func(op *status.Operation) {
		op.State, op.Owner = "spoilt", "spoilt"
		if len(op.Args) > 0 {
			op.Args[0] = 'x'
		}
		for k := range op.Notes {
			op.Notes[k] = "spoilt"
		}
		for i := range op.Items {
			op.Items[i].Queue = "spoilt"
			for j := range op.Items[i].Inputs {
				op.Items[i].Inputs[j].Key = "spoilt"
			}
		}
	}
	given := s.make("alice", "pdf", "pdf")
	given.Args, given.Notes = []byte("args"), map[string]string{"k": "v"}
	created, err := s.Create(s.ctx(), given)
	s.noError(err)
	want := created.Clone()
	spoil(given)
	spoil(created)
	spoil(s.get(want.ID))
	for op, err := range s.List(s.ctx(), status.Query{Owner: "alice"}) {
		s.noError(err)
		spoil(op)
	}
	if got := s.get(want.ID); !reflect.DeepEqual(normal(got), normal(want)) {
		t.Fatalf("operation was changed from outside to\n%+v", got)
	}
	c := s.claim(want.ID, 0, "w", long)
	spoil(c.Op)
	c.Item.Inputs[0].Key = "spoilt"
	results := []status.File{{Key: "out"}}
	_, err = s.Finish(s.ctx(), c, status.Outcome{Results: results})
	s.noError(err)
	results[0].Key = "spoilt"
	op, err := s.Finish(s.ctx(), s.claim(want.ID, 1, "w", long), success)
	s.noError(err)
	op.Items[0].Results[0].Key = "spoilt"
	got := s.get(want.ID)
	s.equal("input", got.Items[0].Inputs[0].Key, want.Items[0].Inputs[0].Key)
	s.equal("result", got.Items[0].Results[0].Key, "out")
	s.equal("owner", got.Owner, "alice")
}

func listOrder(t *testing.T, s *suite) {
	var want []string
	var ops []*status.Operation
	for range 130 {
		ops = append(ops, s.make("alice", "pdf"))
		s.make("bob", "pdf")
	}
	ops[7].Created = ops[8].Created // then the ID decides the order
	for _, i := range []int{3, 1, 2, 0} {
		_, err := s.Create(s.ctx(), ops[i]) // not in order
		s.noError(err)
	}
	for _, op := range ops[4:] {
		_, err := s.Create(s.ctx(), op)
		s.noError(err)
		s.create("bob", "pdf")
	}
	for _, op := range ops {
		want = append(want, op.ID)
	}
	slices.Reverse(want)
	s.equal("default list", s.list(status.Query{Owner: "alice"}), want[:50])
	s.equal("whole list", s.list(status.Query{Owner: "alice", Limit: 1000}), want)
	s.equal("short list", s.list(status.Query{Owner: "alice", Limit: 3}), want[:3])
	s.equal("list before the oldest", s.list(status.Query{Owner: "alice", Before: want[129]}), []string(nil))
	var got []string
	for before := ""; ; before = got[len(got)-1] {
		page := s.list(status.Query{Owner: "alice", Before: before, Limit: 60})
		if len(page) == 0 {
			break
		}
		got = append(got, page...)
	}
	s.equal("list by pages", got, want)
	s.equal("list of nobody", s.list(status.Query{Owner: "carol"}), []string(nil))

	bobs := s.list(status.Query{Owner: "bob", Limit: 1})[0]
	for _, before := range []string{"none", bobs} {
		for _, err := range s.List(s.ctx(), status.Query{Owner: "alice", Before: before}) {
			s.matches(err, fs.ErrNotExist)
		}
	}
	n := 0
	for op, err := range s.List(s.ctx(), status.Query{Owner: "alice"}) {
		s.noError(err)
		s.equal("items", len(op.Items), 1)
		if n++; n == 2 {
			break
		}
	}
	s.equal("number of operations until the caller stops", n, 2)
}

func listFilter(_ *testing.T, s *suite) {
	want := make(map[status.State][]string)
	for i := range 40 {
		op := s.create("alice", "pdf")
		state := []status.State{status.Queued, status.Running, status.Completed, status.Failed}[i%4]
		if state != status.Queued {
			c := s.claim(op.ID, 0, "w", long)
			switch state {
			case status.Completed:
				s.finish(c, success)
			case status.Failed:
				s.finish(c, failure)
			}
		}
		want[state] = append([]string{op.ID}, want[state]...)
	}
	for state, ids := range want {
		s.equal(string(state), s.list(status.Query{Owner: "alice", State: state}), ids)
		s.equal(string(state)+" from the third on",
			s.list(status.Query{Owner: "alice", State: state, Before: ids[1], Limit: 4}), ids[2:6])
	}
}

func listKey(_ *testing.T, s *suite) {
	submit := func(owner, key string) *status.Operation {
		op := s.make(owner, "pdf")
		op.IdempotencyKey = key
		op, err := s.Create(s.ctx(), op)
		s.noError(err)
		return op
	}
	first, second := submit("alice", "a"), submit("alice", "b")
	submit("alice", "")
	submit("bob", "c")
	list := func(q status.Query) []string {
		q.Owner = "alice"
		return s.list(q)
	}
	s.equal("with key a", list(status.Query{IdempotencyKey: "a"}), []string{first.ID})
	s.equal("with key b", list(status.Query{IdempotencyKey: "b", Limit: 1}), []string{second.ID})
	s.equal("with another owner's key", list(status.Query{IdempotencyKey: "c"}), []string(nil))
	s.equal("with key a before b", list(status.Query{IdempotencyKey: "a", Before: second.ID}), []string{first.ID})
	s.equal("with key b before a", list(status.Query{IdempotencyKey: "b", Before: first.ID}), []string(nil))
	s.equal("with key a, queued", list(status.Query{IdempotencyKey: "a", State: status.Queued}), []string{first.ID})
	s.equal("with key a, failed", list(status.Query{IdempotencyKey: "a", State: status.Failed}), []string(nil))

	third := s.make("alice", "pdf") // the key now belongs to it
	third.IdempotencyKey, third.Created = "a", first.Created.Add(24*time.Hour)
	_, err := s.Create(s.ctx(), third)
	s.noError(err)
	s.equal("with key a of a day later", list(status.Query{IdempotencyKey: "a"}), []string{third.ID})
}

func claimStart(t *testing.T, s *suite) {
	given := s.make("alice", "pdf", "image")
	given.Args, given.Notes = []byte("args"), map[string]string{"k": "v"}
	_, err := s.Create(s.ctx(), given)
	s.noError(err)
	c := s.claim(given.ID, 1, "w", long)
	s.equal("ref", c.Ref, status.Ref{Operation: given.ID, Index: 1})
	s.equal("queue", c.Item.Queue, "image")
	s.equal("inputs", c.Item.Inputs, given.Items[1].Inputs)
	s.equal("attempt", c.Item.Attempt, 1)
	s.equal("token", c.Token, c.Item.Claims)
	s.equal("state", c.Item.State, status.Running)
	s.equal("args", c.Op.Args, []byte("args"))
	s.equal("notes", c.Op.Notes, given.Notes)
	s.equal("owner", c.Op.Owner, "alice")
	s.equal("action", c.Op.Action, "convert")
	s.equal("operation's ID", c.Op.ID, given.ID)
	s.equal("cancelled", c.Op.Cancelled, false)
	s.equal("operation's state", c.Op.State, status.Running)
	op := s.get(given.ID)
	s.equal("states", states(op), []status.State{status.Running, status.Queued, status.Running})
	if op.Items[1].Started.IsZero() || !op.Items[0].Started.IsZero() {
		t.Errorf("items started at %v and %v, want only the second", op.Items[0].Started, op.Items[1].Started)
	}
}

// states returns the state of an operation and those of its items.
func states(op *status.Operation) []status.State {
	all := []status.State{op.State}
	for _, it := range op.Items {
		all = append(all, it.State)
	}
	return all
}

func claimRefused(_ *testing.T, s *suite) {
	op := s.create("alice", "pdf", "pdf", "pdf")
	c := s.claim(op.ID, 0, "w", long)
	for _, worker := range []string{"w", "v"} {
		_, err := s.Claim(s.ctx(), c.Ref, worker, long)
		s.matches(err, status.ErrLost) // under a live claim
	}
	s.finish(c, success)
	_, err := s.Claim(s.ctx(), c.Ref, "w", long)
	s.matches(err, status.ErrLost) // completed
	c = s.claim(op.ID, 1, "w", long)
	s.finish(c, failure)
	_, err = s.Claim(s.ctx(), c.Ref, "w", long)
	s.matches(err, status.ErrLost) // failed
	s.equal("states", states(s.get(op.ID))[1:], []status.State{status.Completed, status.Failed, status.Queued})
}

func claimExclusive(t *testing.T, s *suite) {
	const items, workers = 20, 8
	op := s.create("alice", slices.Repeat([]string{"pdf"}, items)...)
	var mu sync.Mutex
	claimed := make(map[int]int)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range items {
				_, err := s.Claim(s.ctx(), status.Ref{Operation: op.ID, Index: i}, fmt.Sprint("w", w), long)
				if errors.Is(err, status.ErrLost) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				claimed[i]++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for i := range items {
		s.equal(fmt.Sprintf("number of claims on item %d", i), claimed[i], 1)
	}
}

// refused checks that the limit keeps an item from starting.
func (s *suite) refused(id string, i int) {
	s.Helper()
	_, err := s.Claim(s.ctx(), status.Ref{Operation: id, Index: i}, "w", long)
	s.matches(err, status.ErrParallel)
}

func parallelRefused(t *testing.T, s *suite, limit func(string, int)) {
	limit("alice", 2)
	op, other := s.create("alice", "pdf", "image", "pdf", "pdf"), s.create("alice", "pdf")
	bob := s.create("bob", "pdf", "pdf", "pdf")
	first := s.claim(op.ID, 0, "w", long)
	s.claim(op.ID, 1, "v", long)
	for range 2 {
		s.refused(op.ID, 2)
		s.refused(other.ID, 0)
	}
	s.equal("state of an operation that was not begun", s.get(other.ID).State, status.Queued)
	s.equal("attempts at an item that was not begun", s.get(op.ID).Items[2].Attempt, 0)
	for i := range bob.Items {
		s.claim(bob.ID, i, "w", long)
	}
	// Another reason for which an item cannot start takes precedence over the limit.
	_, err := s.Claim(s.ctx(), first.Ref, "w", long)
	s.matches(err, status.ErrLost)
	_, err = s.Claim(s.ctx(), status.Ref{Operation: "missing"}, "w", long)
	s.matches(err, fs.ErrNotExist)

	s.finish(first, success)
	second := s.claim(other.ID, 0, "w", long)
	s.refused(op.ID, 2)
	s.finish(second, status.Outcome{Retry: true})
	third := s.claim(op.ID, 2, "w", long)
	s.refused(op.ID, 3)
	limit("alice", 1)
	s.finish(third, success)
	s.refused(op.ID, 3)
	limit("alice", 0)
	s.claim(op.ID, 3, "w", long)
	s.claim(other.ID, 0, "w", long)
}

// parallelExact runs many workers that claim items at the same time and finish them.
func parallelExact(t *testing.T, s *suite, limit func(string, int)) {
	const items, workers, maxRunning = 40, 8, 3
	limit("alice", maxRunning)
	op := s.create("alice", slices.Repeat([]string{"pdf", "image"}, items/2)...)
	var mu sync.Mutex
	running, done := 0, 0
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := w; s.Context().Err() == nil; i++ {
				c, err := s.Claim(s.ctx(), status.Ref{Operation: op.ID, Index: i % items}, fmt.Sprint("w", w), long)
				mu.Lock()
				if done == items {
					mu.Unlock()
					return
				}
				if err == nil {
					running++
					if running > maxRunning {
						t.Errorf("%d items are worked on, want %d at maxRunning", running, maxRunning)
					}
				}
				mu.Unlock()
				if errors.Is(err, status.ErrLost) || errors.Is(err, status.ErrParallel) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				time.Sleep(time.Millisecond)
				mu.Lock()
				running--
				mu.Unlock()
				if _, err := s.Finish(s.ctx(), c, success); err != nil {
					t.Error(err)
				}
				mu.Lock()
				done++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	s.equal("state", s.get(op.ID).State, status.Completed)
}

// parallelLapsed tests that lapsed claims do not count.
func parallelLapsed(t *testing.T, s *suite, limit func(string, int)) {
	limit("alice", 1)
	op := s.create("alice", "pdf", "pdf")
	s.claim(op.ID, 0, "w", short)
	second := s.reclaim(op.ID, 1, "v", long)
	s.refused(op.ID, 0)
	s.finish(second, success)
	s.claim(op.ID, 0, "v", long)
}

// parallelCancelled tests that items of cancelled operations can be claimed, so that a
// worker can finish them.
func parallelCancelled(t *testing.T, s *suite, limit func(string, int)) {
	op, other := s.create("alice", "pdf"), s.create("alice", "pdf", "pdf")
	s.claim(op.ID, 0, "w", short)
	_, err := s.Cancel(s.ctx(), "alice", op.ID)
	s.noError(err)
	limit("alice", 1)
	s.claim(other.ID, 0, "v", long)
	c := s.reclaim(op.ID, 0, "v", long)
	s.refused(other.ID, 1)
	s.finish(c, success)
	s.equal("state", s.get(op.ID).State, status.Failed)
}

func claimAfterLapse(t *testing.T, s *suite) {
	op := s.create("alice", "pdf")
	first := s.claim(op.ID, 0, "w", short)
	second := s.reclaim(op.ID, 0, "v", short)
	third := s.reclaim(op.ID, 0, "w", long)
	if first.Token >= second.Token || second.Token >= third.Token {
		t.Errorf("tokens are %d, %d, %d, want them to grow", first.Token, second.Token, third.Token)
	}
	s.equal("attempt", third.Item.Attempt, 1) // the attempt of a worker that died does not count
	s.equal("restarts", third.Item.Restarts, 2)
	s.equal("rescued", []bool{first.Rescued, second.Rescued, third.Rescued}, []bool{false, true, true})
	s.finish(third, status.Outcome{Retry: true})
	again := s.reclaim(op.ID, 0, "w", long)
	s.equal("attempt", again.Item.Attempt, 2)
	s.equal("restarts", again.Item.Restarts, 2)
	s.equal("rescued", again.Rescued, false)
	s.equal("stored", s.finish(again, success).Items[0].Restarts, 2)
}

// claimClockAhead submits by a clock that is ahead of the store's.
func claimClockAhead(_ *testing.T, s *suite) {
	op := s.make("alice", "pdf")
	op.Created = time.Now().Add(24 * time.Hour).UTC().Truncate(time.Millisecond)
	_, err := s.Create(s.ctx(), op)
	s.noError(err)
	s.equal("created", s.get(op.ID).Created.Equal(op.Created), true)
	s.equal("pending", s.pending(status.PendingQuery{}), []status.Ref{{Operation: op.ID}})
	s.finish(s.claim(op.ID, 0, "w", long), success)
}

func heartbeatRenews(_ *testing.T, s *suite) {
	// Without the renewal of the lease the item could be claimed after it.
	for lease := 200 * time.Millisecond; ; lease *= 2 {
		op := s.create("alice", "pdf", "pdf")
		start := time.Now()
		c := s.claim(op.ID, 0, "w", lease)
		end := time.Now().Add(lease)
		stop, err := s.Heartbeat(s.ctx(), "w", long, map[status.Ref]float64{c.Ref: 0})
		s.noError(err)
		if time.Since(start) > lease/2 {
			continue // too slow for a result
		}
		s.equal("claims to stop", stop, []status.Ref(nil))
		time.Sleep(time.Until(end.Add(10 * time.Millisecond)))
		_, err = s.Claim(s.ctx(), c.Ref, "v", long)
		s.matches(err, status.ErrLost)
		s.finish(c, success)
		return
	}
}

func heartbeatStop(_ *testing.T, s *suite) {
	op := s.create("alice", "pdf", "pdf", "pdf", "pdf", "pdf", "pdf")
	cancelled := s.create("alice", "pdf", "pdf")
	progress := make(map[status.Ref]float64)
	claim := func(op *status.Operation, index int, lease time.Duration) *status.Claim {
		c := s.claim(op.ID, index, "w", lease)
		progress[c.Ref] = 0
		return c
	}
	claim(op, 0, long) // stays live
	lapsed := claim(op, 1, short)
	taken := claim(op, 2, short)
	s.reclaim(op.ID, 2, "v", long)
	finished := claim(op, 3, long)
	s.finish(finished, success)
	foreign := s.claim(op.ID, 4, "v", long)
	progress[foreign.Ref] = 0
	never := status.Ref{Operation: op.ID, Index: 5}
	progress[never] = 0
	flagged := claim(cancelled, 0, long)
	_, err := s.Cancel(s.ctx(), "alice", cancelled.ID)
	s.noError(err)
	gone := status.Ref{Operation: "none"}
	progress[gone] = 0
	for !slices.Contains(s.pending(status.PendingQuery{}), lapsed.Ref) {
		s.noError(s.ctx().Err())
		time.Sleep(time.Millisecond)
	}

	stop, err := s.Heartbeat(s.ctx(), "w", long, progress)
	s.noError(err)
	got := make(map[status.Ref]bool)
	for _, ref := range stop {
		got[ref] = true
	}
	s.equal("claims to stop", got, map[status.Ref]bool{
		lapsed.Ref: true, taken.Ref: true, finished.Ref: true, foreign.Ref: true, never: true, flagged.Ref: true, gone: true,
	})
	s.equal("number of claims to stop", len(stop), len(got))

	// A lapsed claim does not become live again.
	_, err = s.Finish(s.ctx(), lapsed, success)
	s.matches(err, status.ErrLost)
}

func heartbeatProgress(_ *testing.T, s *suite) {
	op := s.create("alice", "pdf", "pdf", "pdf")
	a, b := s.claim(op.ID, 0, "w", long), s.claim(op.ID, 1, "w", long)
	foreign := s.claim(op.ID, 2, "v", long)
	for _, step := range []struct{ report, want float64 }{{0.25, 0.25}, {0.5, 0.5}, {0.125, 0.5}, {0, 0.5}, {0.75, 0.75}} {
		_, err := s.Heartbeat(s.ctx(), "w", long, map[status.Ref]float64{a.Ref: step.report, b.Ref: 0, foreign.Ref: 0.5})
		s.noError(err)
		got := s.get(op.ID)
		s.equal("progress", got.Items[0].Progress, step.want)
		s.equal("other item's progress", got.Items[1].Progress, 0.0)
		s.equal("other worker's progress", got.Items[2].Progress, 0.0)
	}

	// Nor does it across attempts; Finish records the progress in the claim.
	s.finish(a, status.Outcome{Retry: true, Error: failure.Error})
	s.equal("progress after a retry", s.get(op.ID).Items[0].Progress, 0.75)
	a = s.reclaim(op.ID, 0, "w", long)
	s.equal("progress in the claim", a.Item.Progress, 0.75)
	a.Item.Progress = 0.5
	_, err := s.Heartbeat(s.ctx(), "w", long, map[status.Ref]float64{a.Ref: 0.25})
	s.noError(err)
	s.equal("progress", s.finish(a, status.Outcome{Release: true}).Items[0].Progress, 0.75)
	a = s.reclaim(op.ID, 0, "w", long)
	a.Item.Progress = 0.875
	s.equal("progress at the end", s.finish(a, failure).Items[0].Progress, 0.875)
	s.equal("progress on success", s.finish(b, success).Items[1].Progress, 1.0)
}

func finishOutcomes(t *testing.T, s *suite) {
	op := s.create("alice", "pdf", "pdf", "pdf")
	results := []status.File{
		{Key: "x", Name: "ü.png", ContentType: "image/png", Size: 1 << 33, Expires: s.start}, {Key: "y"},
	}
	got := s.finish(s.claim(op.ID, 0, "w", long), status.Outcome{Results: results})
	want := op.Clone()
	want.State = status.Running
	want.Items[0].State, want.Items[0].Results, want.Items[0].Attempt, want.Items[0].Claims, want.Items[0].Progress = status.Completed, results, 1, 1, 1
	want.Items[0].Started, want.Items[0].Finished, want.Items[0].Attempts = got.Items[0].Started, got.Items[0].Finished, got.Items[0].Attempts
	if !reflect.DeepEqual(normal(got), normal(want)) {
		t.Fatalf("operation is\n%+v, want\n%+v", got, want)
	}
	if got.Items[0].Finished.Before(got.Items[0].Started) {
		t.Error("item was finished before it was started")
	}

	// Results are recorded only for a success.
	o := failure
	o.Results = results
	it := s.finish(s.claim(op.ID, 1, "w", long), o).Items[1]
	s.equal("state", it.State, status.Failed)
	s.equal("error", *it.Error, *failure.Error)
	s.equal("number of results", len(it.Results), 0)

	got = s.finish(s.claim(op.ID, 2, "w", long), status.Outcome{})
	s.equal("states", states(got), []status.State{status.Completed, status.Completed, status.Failed, status.Completed})
	s.equal("end of the operation", normal(got).Finished, normal(got).Items[2].Finished)
}

func finishFenced(t *testing.T, s *suite) {
	op := s.create("alice", "pdf")
	unchanged := func(c *status.Claim, what string) {
		t.Helper()
		before := s.get(op.ID)
		for _, o := range []status.Outcome{success, failure, {Retry: true}, {Release: true}} {
			late := *c
			late.Item.Progress = 0.5
			_, err := s.Finish(s.ctx(), &late, o)
			s.matches(err, status.ErrLost)
		}
		if after := s.get(op.ID); !reflect.DeepEqual(normal(after), normal(before)) {
			t.Fatalf("%s: a late end has changed the operation from\n%+v to\n%+v", what, before, after)
		}
	}
	lapsed := s.claim(op.ID, 0, "w", short)
	for len(s.pending(status.PendingQuery{})) == 0 {
		s.noError(s.ctx().Err())
		time.Sleep(time.Millisecond)
	}
	unchanged(lapsed, "claim has lapsed")
	live := s.claim(op.ID, 0, "w", long) // same worker
	unchanged(lapsed, "item is claimed again")
	forged := *live
	forged.Token++
	unchanged(&forged, "token of the future")
	s.finish(live, status.Outcome{Release: true})
	unchanged(live, "item was given back")
	last := s.reclaim(op.ID, 0, "v", long)
	unchanged(live, "item was given back and claimed again")
	s.finish(last, success)
	unchanged(last, "item is final")
	unchanged(live, "item is final by another")
}

func finishOnce(t *testing.T, s *suite) {
	op := s.create("alice", "pdf", "pdf", "pdf", "pdf")
	finals := make(chan *status.Operation, 64)
	var wg sync.WaitGroup
	for i := range op.Items {
		c := s.claim(op.ID, i, "w", long)
		for range 4 {
			wg.Go(func() {
				got, err := s.Finish(s.ctx(), c, success)
				if errors.Is(err, status.ErrLost) {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				finals <- got
			})
		}
	}
	wg.Wait()
	close(finals)
	var n, final int
	for got := range finals {
		n++
		if got.State.Final() {
			final++
		}
	}
	s.equal("number of ends that counted", n, len(op.Items))
	s.equal("number of ends that saw the operation final", final, 1)
}

// finishRollup compares the operation's state in the store with Rollup, for all
// combinations of states of three items.
func finishRollup(_ *testing.T, s *suite) {
	kinds := []string{"queued", "running", "completed", "failed", "retrying", "released"}
	for a := range kinds {
		for b := range kinds {
			for c := range kinds {
				op := s.create("alice", "pdf", "pdf", "pdf")
				for i, kind := range []string{kinds[a], kinds[b], kinds[c]} {
					if kind == "queued" {
						continue
					}
					claim := s.claim(op.ID, i, "w", long)
					switch kind {
					case "completed":
						s.finish(claim, success)
					case "failed":
						s.finish(claim, failure)
					case "retrying":
						s.finish(claim, status.Outcome{Retry: true, RetryAfter: time.Hour})
					case "released":
						s.finish(claim, status.Outcome{Release: true})
					}
				}
				got := s.get(op.ID)
				what := fmt.Sprintf("state with items %s, %s and %s", kinds[a], kinds[b], kinds[c])
				s.equal(what, got.State, status.Rollup(got.Items, got.Cancelled))
				s.equal(what+": end is set", !got.Finished.IsZero(), got.State.Final())
			}
		}
	}
}

func finishErasesArgs(_ *testing.T, s *suite) {
	create := func() *status.Operation {
		op := s.make("alice", "pdf", "pdf")
		op.Args, op.Notes = bytes.Repeat([]byte("secret"), 5000), map[string]string{"k": "v"}
		op, err := s.Create(s.ctx(), op)
		s.noError(err)
		return op
	}
	op := create()
	c, d := s.claim(op.ID, 0, "w", long), s.claim(op.ID, 1, "w", long)
	s.equal("args are there while an item runs", len(s.finish(c, success).Args), len(op.Args))
	got := s.finish(d, failure)
	s.equal("args at the end", len(got.Args), 0)
	s.equal("args in the store", len(s.get(op.ID).Args), 0)
	s.equal("notes in the store", s.get(op.ID).Notes, op.Notes)

	op = create()
	got, err := s.Cancel(s.ctx(), "alice", op.ID)
	s.noError(err)
	s.equal("args of a cancelled operation", len(got.Args)+len(s.get(op.ID).Args), 0)
}

func finishRetry(t *testing.T, s *suite) {
	op := s.create("alice", "pdf", "pdf")
	c := s.claim(op.ID, 0, "w", long)
	it := s.finish(c, status.Outcome{Retry: true, RetryAfter: time.Hour, Error: failure.Error, Results: success.Results}).Items[0]
	s.equal("state", it.State, status.Queued)
	s.equal("attempt", it.Attempt, 1)
	s.equal("number of results", len(it.Results), 0)
	if it.Error != nil || !it.Finished.IsZero() {
		t.Errorf("item that waits for a retry is %+v, want neither error nor end", it)
	}
	_, err := s.Claim(s.ctx(), c.Ref, "w", long)
	s.matches(err, status.ErrLost) // not due yet
	s.equal("pending", s.pending(status.PendingQuery{}), []status.Ref{{Operation: op.ID, Index: 1}})

	c = s.claim(op.ID, 1, "w", long)
	before := time.Now()
	s.finish(c, status.Outcome{Retry: true, RetryAfter: 20 * time.Millisecond})
	again := s.reclaim(op.ID, 1, "w", long)
	// One millisecond less, for rounding.
	if waited := time.Since(before); waited < 19*time.Millisecond {
		t.Errorf("item was started again after %v", waited)
	}
	s.equal("attempt", again.Item.Attempt, 2)
	s.finish(again, status.Outcome{Retry: true})
	s.equal("attempt", s.reclaim(op.ID, 1, "w", long).Item.Attempt, 3)
}

func finishRelease(_ *testing.T, s *suite) {
	op := s.create("alice", "pdf")
	c := s.claim(op.ID, 0, "w", long)
	s.equal("clean", c.Item.Clean, 0)
	got := s.finish(c, status.Outcome{Release: true, Clean: c.Token, Error: failure.Error, Results: success.Results})
	s.equal("states", states(got), []status.State{status.Running, status.Queued})
	s.equal("attempt", got.Items[0].Attempt, 0)
	s.equal("number of results", len(got.Items[0].Results), 0)
	again := s.reclaim(op.ID, 0, "v", long)
	s.equal("attempt", again.Item.Attempt, 1)
	s.equal("claims", again.Item.Claims, 2)
	s.equal("clean", again.Item.Clean, 1)
	s.finish(again, status.Outcome{Release: true})
	again = s.reclaim(op.ID, 0, "v", long)
	s.equal("clean", again.Item.Clean, 1)
	s.equal("token has grown", again.Token > c.Token, true)
	s.finish(again, success)
}

func finishWarnings(_ *testing.T, s *suite) {
	op := s.create("alice", "pdf", "pdf")
	warnings := []status.Warning{{Code: "fonts_substituted", Message: "Arial was replaced"}, {Code: "links_dropped", Message: "«3» links"}}
	s.finish(s.claim(op.ID, 0, "w", long), status.Outcome{Results: []status.File{{Key: "r"}}, Warnings: warnings})
	s.equal("warnings", s.get(op.ID).Items[0].Warnings, warnings)
	// A failed item has none.
	last := s.finish(s.claim(op.ID, 1, "w", long), status.Outcome{Error: &status.Error{Code: "limit_exceeded"}, Warnings: warnings})
	s.equal("warnings of a final operation", last.Items[0].Warnings, warnings)
	s.equal("warnings of a failed item", last.Items[1].Warnings, []status.Warning(nil))
}

func finishWaiting(t *testing.T, s *suite) {
	op := s.create("alice", "pdf", "pdf")
	waits := func(it status.Item, reason string, since time.Time) {
		t.Helper()
		w := it.Waiting
		if w == nil || w.Reason != reason || w.Since.Sub(since).Abs() > time.Second {
			t.Fatalf("item waits for %+v, want %q since %v", w, reason, since)
		}
	}
	start := time.Now()
	first := s.finish(s.claim(op.ID, 0, "w", long), status.Outcome{Release: true, Waiting: "storage"}).Items[0]
	s.equal("state", first.State, status.Queued)
	s.equal("attempt", first.Attempt, 0)
	waits(first, "storage", start)
	// It continues to wait, whatever the reason, and a release does not reset Since.
	for _, o := range []status.Outcome{{Release: true, Waiting: "disk"}, {Release: true}} {
		c := s.reclaim(op.ID, 0, "w", long)
		waits(c.Item, s.get(op.ID).Items[0].Waiting.Reason, start)
		it := s.finish(c, o).Items[0]
		waits(it, "disk", start)
		s.equal("since", it.Waiting.Since.Equal(first.Waiting.Since), true)
	}
	s.finish(s.claim(op.ID, 1, "w", long), status.Outcome{Release: true, Waiting: "storage", RetryAfter: time.Hour})
	loads, err := s.Load(s.ctx())
	s.noError(err)
	if len(loads) != 1 || !maps.Equal(loads[0].Waiting, map[string]int{"disk": 1, "storage": 1}) {
		t.Errorf("loads are %+v, want one item that waits for each", loads)
	}
	// An attempt that counts ends the waiting, and so does the end of the item.
	it := s.finish(s.reclaim(op.ID, 0, "w", long), status.Outcome{Retry: true, Suspect: true}).Items[0]
	s.equal("waiting", it.Waiting, (*status.Waiting)(nil))
	s.equal("suspicions", it.Suspicions, 1)
	it = s.finish(s.reclaim(op.ID, 0, "w", long), status.Outcome{Release: true, Waiting: "disk", Suspect: true}).Items[0]
	s.equal("suspicions", it.Suspicions, 2)
	waits(it, "disk", time.Now())
	_, err = s.Cancel(s.ctx(), "alice", op.ID)
	s.noError(err)
	for _, it := range s.get(op.ID).Items {
		s.equal("waiting", it.Waiting, (*status.Waiting)(nil))
	}
	loads, err = s.Load(s.ctx())
	s.noError(err)
	s.equal("number of loads", len(loads), 0)
}

func cancelQueued(t *testing.T, s *suite) {
	op := s.create("alice", "pdf", "image")
	got, err := s.Cancel(s.ctx(), "alice", op.ID)
	s.noError(err)
	s.equal("states", states(got), []status.State{status.Failed, status.Failed, status.Failed})
	s.equal("cancelled", got.Cancelled, true)
	for _, it := range got.Items {
		if it.Error == nil || it.Error.Code != status.CodeCancelled || it.Finished.IsZero() || it.Attempt != 0 {
			t.Errorf("item is %+v, want an end with code %s", it, status.CodeCancelled)
		}
	}
	if got.Finished.IsZero() {
		t.Error("operation has no end")
	}
	if stored := s.get(op.ID); !reflect.DeepEqual(normal(stored), normal(got)) {
		t.Errorf("Cancel returned\n%+v, but stored is\n%+v", got, stored)
	}
	s.equal("pending", s.pending(status.PendingQuery{}), []status.Ref(nil))
	_, err = s.Claim(s.ctx(), status.Ref{Operation: op.ID}, "w", long)
	s.matches(err, status.ErrLost)
}

func cancelRunning(t *testing.T, s *suite) {
	outcomes := map[string]status.Outcome{
		"success": success, "failure": failure, "retry": {Retry: true}, "release": {Release: true},
	}
	for name, o := range outcomes {
		op := s.create("alice", "pdf", "pdf", "pdf")
		s.finish(s.claim(op.ID, 0, "w", long), success)
		c := s.claim(op.ID, 1, "w", long)
		got, err := s.Cancel(s.ctx(), "alice", op.ID)
		s.noError(err)
		s.equal("states after the first call", states(got),
			[]status.State{status.Running, status.Completed, status.Running, status.Failed})
		s.equal("cancelled", got.Cancelled, true)
		again, err := s.Cancel(s.ctx(), "alice", op.ID)
		s.noError(err)
		s.equal("states after the second call", states(again), states(got))

		got = s.finish(c, o)
		s.equal("states after "+name, states(got),
			[]status.State{status.Failed, status.Completed, status.Failed, status.Failed})
		if e := got.Items[1].Error; e == nil || e.Code != status.CodeCancelled {
			t.Errorf("error after %s is %+v, want code %s", name, e, status.CodeCancelled)
		}
		s.equal("number of results after "+name, len(got.Items[1].Results), 0)
	}
}

func cancelRetryWaiting(_ *testing.T, s *suite) {
	op := s.create("alice", "pdf")
	s.finish(s.claim(op.ID, 0, "w", long), status.Outcome{Retry: true, RetryAfter: time.Hour})
	got, err := s.Cancel(s.ctx(), "alice", op.ID)
	s.noError(err)
	s.equal("states", states(got), []status.State{status.Failed, status.Failed})
}

func cancelFinal(t *testing.T, s *suite) {
	op := s.create("alice", "pdf")
	want := s.finish(s.claim(op.ID, 0, "w", long), success)
	got, err := s.Cancel(s.ctx(), "alice", op.ID)
	s.noError(err)
	if !reflect.DeepEqual(normal(got), normal(want)) || !reflect.DeepEqual(normal(s.get(op.ID)), normal(want)) {
		t.Errorf("a final operation was changed from\n%+v to\n%+v", want, got)
	}
}

func cancelLapsed(_ *testing.T, s *suite) {
	op := s.create("alice", "pdf")
	s.claim(op.ID, 0, "w", short)
	_, err := s.Cancel(s.ctx(), "alice", op.ID)
	s.noError(err)
	if s.get(op.ID).State.Final() {
		return // no worker runs it any more
	}
	c := s.reclaim(op.ID, 0, "v", long)
	s.equal("cancelled", c.Op.Cancelled, true)
	s.equal("states", states(s.finish(c, success)), []status.State{status.Failed, status.Failed})
}

func cancelForeign(t *testing.T, s *suite) {
	op := s.create("alice", "pdf")
	_, err := s.Cancel(s.ctx(), "bob", op.ID)
	s.matches(err, fs.ErrNotExist)
	if got := s.get(op.ID); got.Cancelled || got.State != status.Queued {
		t.Errorf("a stranger has cancelled the operation: %+v", got)
	}
}

func pendingOrder(_ *testing.T, s *suite) {
	var ops []*status.Operation
	for i := range 150 {
		ops = append(ops, s.make([]string{"alice", "bob"}[i%2], "pdf", "image", "pdf"))
	}
	ops[9].Created = ops[10].Created // then the ID decides
	for _, i := range []int{2, 0, 3, 1} {
		_, err := s.Create(s.ctx(), ops[i])
		s.noError(err)
	}
	for _, op := range ops[4:] {
		_, err := s.Create(s.ctx(), op)
		s.noError(err)
	}
	want := func(owner, queue string) (refs []status.Ref) {
		for _, op := range ops {
			for i, it := range op.Items {
				if (owner == "" || op.Owner == owner) && (queue == "" || it.Queue == queue) {
					refs = append(refs, status.Ref{Operation: op.ID, Index: i})
				}
			}
		}
		return refs
	}
	for _, owner := range []string{"", "alice", "bob", "carol"} {
		for _, queue := range []string{"", "pdf", "image", "office"} {
			s.equal(fmt.Sprintf("pending of owner %q in queue %q", owner, queue),
				s.pending(status.PendingQuery{Owner: owner, Queue: queue}), want(owner, queue))
		}
	}
}

func pendingSelect(t *testing.T, s *suite) {
	op := s.create("alice", "pdf", "image")
	for it, err := range s.Pending(s.ctx(), status.PendingQuery{Owner: "alice", Queue: "image"}) {
		s.noError(err)
		if it.Ref != (status.Ref{Operation: op.ID, Index: 1}) || it.Owner != "alice" || it.Queue != "image" ||
			!it.Created.Equal(op.Created) || !it.Since.Equal(op.Created) {
			t.Errorf("pending is %+v", it)
		}
	}
}

func pendingStates(t *testing.T, s *suite) {
	op := s.create("alice", slices.Repeat([]string{"pdf"}, 8)...)
	s.claim(op.ID, 1, "w", long)
	s.finish(s.claim(op.ID, 2, "w", long), success)
	s.finish(s.claim(op.ID, 3, "w", long), failure)
	s.finish(s.claim(op.ID, 4, "w", long), status.Outcome{Retry: true, RetryAfter: time.Hour})
	before := time.Now().Truncate(time.Millisecond)
	s.finish(s.claim(op.ID, 5, "w", long), status.Outcome{Release: true})
	s.finish(s.claim(op.ID, 6, "w", long), status.Outcome{Retry: true, RetryAfter: time.Millisecond})
	s.claim(op.ID, 7, "w", short)
	var want []status.Ref
	for _, i := range []int{0, 5, 6, 7} {
		want = append(want, status.Ref{Operation: op.ID, Index: i})
	}
	for len(s.pending(status.PendingQuery{})) < len(want) {
		s.noError(s.ctx().Err())
		time.Sleep(time.Millisecond)
	}
	for _, q := range []status.PendingQuery{{}, {Owner: "alice", Queue: "pdf"}, {Owner: "alice"}} {
		s.equal("pending", s.pending(q), want)
		for it, err := range s.Pending(s.ctx(), q) {
			s.noError(err)
			if it.Index > 0 && it.Since.Before(before) {
				t.Errorf("item %d waits since %v, but it was worked on at %v", it.Index, it.Since, before)
			}
		}
	}
}

func pendingLazy(t *testing.T, s *suite) {
	const n = 400
	for range n {
		s.create("alice", "pdf")
	}
	for _, q := range []status.PendingQuery{{}, {Owner: "alice", Queue: "pdf"}} {
		for range s.Pending(s.ctx(), q) {
			break
		}
	}
	// Every item is claimed as soon as it is yielded, so none may be yielded twice.
	seen := make(map[status.Ref]bool)
	for it, err := range s.Pending(s.ctx(), status.PendingQuery{Owner: "alice", Queue: "pdf"}) {
		s.noError(err)
		if seen[it.Ref] {
			t.Fatalf("%v came twice", it.Ref)
		}
		seen[it.Ref] = true
		s.finish(s.claim(it.Operation, it.Index, "w", long), success)
	}
	s.equal("number of items", len(seen), n)
}

func load(t *testing.T, s *suite) {
	empty, err := s.Load(s.ctx())
	s.noError(err)
	s.equal("number of loads", len(empty), 0)

	a := s.create("alice", "pdf", "pdf", "image")
	b := s.create("alice", "pdf", "pdf", "pdf", "office")
	c := s.create("bob", "pdf")
	s.finish(s.claim(a.ID, 0, "w", long), success)
	s.claim(a.ID, 1, "w", long)
	s.claim(a.ID, 2, "w", short)
	s.finish(s.claim(b.ID, 0, "w", long), status.Outcome{Retry: true, RetryAfter: time.Hour})
	s.finish(s.claim(b.ID, 3, "w", long), failure)
	loads, err := s.Load(s.ctx())
	s.noError(err)
	got := make(map[[2]string]status.Load)
	for _, l := range loads {
		if !l.Oldest.IsZero() {
			l.Oldest = l.Oldest.UTC()
		}
		got[[2]string{l.Queue, l.Owner}] = l
	}
	want := map[[2]string]status.Load{
		{"pdf", "alice"}:   {Queue: "pdf", Owner: "alice", Queued: 3, Running: 1, Oldest: b.Created.UTC()},
		{"image", "alice"}: {Queue: "image", Owner: "alice", Running: 1},
		{"pdf", "bob"}:     {Queue: "pdf", Owner: "bob", Queued: 1, Oldest: c.Created.UTC()},
	}
	if !reflect.DeepEqual(got, want) || len(loads) != len(want) {
		t.Errorf("loads are %+v, want %+v", loads, want)
	}
}

func recovers(t *testing.T, s *suite) {
	op := s.create("alice", "pdf", "pdf", "pdf", "pdf")
	dead := s.claim(op.ID, 0, "dead", long)
	live := s.claim(op.ID, 1, "me", long)
	s.finish(s.claim(op.ID, 2, "dead", long), success)
	s.finish(s.claim(op.ID, 3, "dead", long), status.Outcome{Retry: true})
	n, err := s.Recover(s.ctx(), "me")
	s.noError(err)
	s.equal("number of items", n, 1)
	s.equal("states", states(s.get(op.ID)),
		[]status.State{status.Running, status.Queued, status.Running, status.Completed, status.Queued})
	s.equal("attempts", s.get(op.ID).Items[3].Attempt, 1) // it had finished
	_, err = s.Finish(s.ctx(), dead, success)
	s.matches(err, status.ErrLost)
	again := s.reclaim(op.ID, 0, "me", long)
	s.equal("attempt", again.Item.Attempt, 1)
	s.equal("restarts", again.Item.Restarts, 1)
	if again.Token <= dead.Token {
		t.Errorf("token %d follows %d, want it to grow", again.Token, dead.Token)
	}
	s.finish(again, success)
	s.finish(live, success)
}

func deleteFinished(_ *testing.T, s *suite) {
	var final []string
	for range 250 {
		op := s.make("alice", "pdf")
		op.IdempotencyKey = op.ID
		op, err := s.Create(s.ctx(), op)
		s.noError(err)
		_, err = s.Cancel(s.ctx(), "alice", op.ID)
		s.noError(err)
		final = append(final, op.ID)
	}
	queued, running := s.create("alice", "pdf"), s.create("alice", "pdf")
	s.claim(running.ID, 0, "w", long)
	n, err := s.DeleteFinished(s.ctx(), time.Now().Add(-time.Minute))
	s.noError(err)
	s.equal("number of deleted operations", n, 0)
	n, err = s.DeleteFinished(s.ctx(), time.Now().Add(time.Minute))
	s.noError(err)
	s.equal("number of deleted operations", n, len(final))
	_, err = s.Get(s.ctx(), final[0])
	s.matches(err, fs.ErrNotExist)
	s.equal("operations", s.list(status.Query{Owner: "alice", Limit: 1000}), []string{running.ID, queued.ID})

	// Keys and IDs are free again.
	op := s.make("alice", "pdf")
	op.ID, op.IdempotencyKey = final[0], final[0]
	got, err := s.Create(s.ctx(), op)
	s.noError(err)
	s.equal("ID", got.ID, final[0])
	s.equal("state", got.State, status.Queued)
	s.equal("number of items", len(s.get(op.ID).Items), 1)
}

// contextDone tests that iterators stop with an error when their context is done. The
// other effects of a done context are up to the store.
func contextDone(t *testing.T, s *suite) {
	for range 200 {
		s.create("alice", "pdf")
	}
	ctx, cancel := context.WithCancel(s.ctx())
	defer cancel()
	n := 0
	var last error
	for _, err := range s.Pending(ctx, status.PendingQuery{}) {
		cancel()
		n++
		last = err
	}
	if last == nil || n >= 200 {
		t.Errorf("Pending yielded %d items after its context was done, and in the end error %v", n, last)
	}
	last = nil
	for _, err := range s.List(ctx, status.Query{Owner: "alice"}) {
		last = err
	}
	if last == nil {
		t.Error("List yielded no error although its context was done")
	}
}
