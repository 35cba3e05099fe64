// Package transfertest checks implementations of transfer.Store.
package transfertest

import (
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"testing"
	"time"

	"github.com/filewright/filewright/status"
	"github.com/filewright/filewright/status/transfer"
)

// Run checks that the store returned by open, which must be empty, behaves as documented.
func Run(t *testing.T, open func(t *testing.T) transfer.Store) {
	for name, check := range map[string]func(*testing.T, transfer.Store){
		"life": life, "fence": fence, "limit": limit, "choice": choice, "race": race, "upkeep": upkeep,
	} {
		t.Run(name, func(t *testing.T) { check(t, open(t)) })
	}
}

func add(t *testing.T, s transfer.Store, kind, id, owner string, due time.Time) {
	t.Helper()
	if err := s.Add(t.Context(), &transfer.Transfer{Kind: kind, ID: id, Owner: owner, Request: []byte("request of " + id), Due: due}, 100); err != nil {
		t.Fatal(err)
	}
}

func claim(t *testing.T, s transfer.Store, lease time.Duration, except ...string) *transfer.Transfer {
	t.Helper()
	c, err := s.Claim(t.Context(), "k", lease, except)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func get(t *testing.T, s transfer.Store, kind, id string) *transfer.Transfer {
	t.Helper()
	all, err := s.Get(t.Context(), kind, id, "unknown")
	if err != nil || len(all) > 1 {
		t.Fatalf("Get(%s) = %v, error %v", id, all, err)
	}
	return all[id]
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// life follows one transfer to its end.
func life(t *testing.T, s transfer.Store) {
	if claim(t, s, time.Minute) != nil {
		t.Error("an empty store has a transfer")
	}
	before := s.Now()
	add(t, s, "k", "a", "alice", s.Now())
	if err := s.Add(t.Context(), &transfer.Transfer{Kind: "k", ID: "a", Owner: "bob", Due: s.Now()}, 100); !errors.Is(err, fs.ErrExist) {
		t.Errorf("second transfer of an ID: error is %v", err)
	}
	add(t, s, "other", "a", "alice", s.Now()) // the ID of another kind
	if have := get(t, s, "k", "a"); have == nil || have.Owner != "alice" || have.Request != nil || have.Claims != 0 || !have.Finished.IsZero() || have.Created.Before(before.Add(-time.Second)) {
		t.Errorf("added transfer is %+v", have)
	}
	c := claim(t, s, time.Minute)
	if c == nil || c.ID != "a" || c.Claims != 1 || string(c.Request) != "request of a" || c.State != nil {
		t.Fatalf("claim is %+v", c)
	}
	if claim(t, s, time.Minute) != nil {
		t.Error("claimed twice")
	}
	check(t, s.Hasten(t.Context(), "k", "a")) // no effect: it is claimed
	if claim(t, s, time.Minute) != nil {
		t.Error("Hasten broke a claim")
	}
	c.State = []byte(`{"half":true}`)
	check(t, s.Renew(t.Context(), c, time.Minute))
	if have := get(t, s, "k", "a"); string(have.State) != `{"half":true}` {
		t.Errorf("state after Renew is %q", have.State)
	}
	c.Due = s.Now().Add(time.Hour)
	check(t, s.Record(t.Context(), c))
	if claim(t, s, time.Minute) != nil {
		t.Error("claimed before it is due")
	}
	check(t, s.Hasten(t.Context(), "k", "a"))
	if c = claim(t, s, time.Minute); c == nil || c.Claims != 2 || string(c.State) != `{"half":true}` || string(c.Request) != "request of a" {
		t.Fatalf("second claim is %+v", c)
	}
	c.State, c.Finished = []byte("end"), s.Now()
	check(t, s.Record(t.Context(), c))
	if have := get(t, s, "k", "a"); string(have.State) != "end" || !have.Finished.Equal(c.Finished) {
		t.Errorf("finished transfer is %+v, want %+v", have, c)
	}
	check(t, s.Hasten(t.Context(), "k", "a"))
	if claim(t, s, time.Minute) != nil {
		t.Error("a finished transfer is claimed")
	}
	check(t, s.Delete(t.Context(), "k", "a"))
	check(t, s.Delete(t.Context(), "k", "a"))
	if have := get(t, s, "k", "a"); have != nil {
		t.Errorf("deleted transfer is %+v", have)
	}
	if get(t, s, "other", "a") == nil {
		t.Error("the transfer of another kind is gone")
	}
}

// fence checks that a lost claim can record nothing.
func fence(t *testing.T, s transfer.Store) {
	add(t, s, "k", "a", "alice", s.Now())
	late := claim(t, s, -time.Second) // its lease is over
	c := claim(t, s, time.Minute)
	if c == nil || c.Claims != 2 {
		t.Fatalf("claim after the lease is %+v", c)
	}
	lost := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, status.ErrLost) {
			t.Errorf("%s: error is %v, want ErrLost", what, err)
		}
	}
	late.State = []byte("late")
	lost("Renew", s.Renew(t.Context(), late, time.Minute))
	lost("Record", s.Record(t.Context(), late))
	if have := get(t, s, "k", "a"); have.State != nil {
		t.Errorf("a lost claim wrote %q", have.State)
	}
	c.Due = s.Now()
	check(t, s.Record(t.Context(), c))
	lost("Record twice", s.Record(t.Context(), c))
	lost("Renew after Record", s.Renew(t.Context(), c, time.Minute))
	if c = claim(t, s, time.Minute); c == nil {
		t.Fatal("not due after Record")
	}
	check(t, s.Delete(t.Context(), "k", "a"))
	lost("Renew after Delete", s.Renew(t.Context(), c, time.Minute))
	lost("Record after Delete", s.Record(t.Context(), c))
}

func limit(t *testing.T, s transfer.Store) {
	due := s.Now().Add(-time.Minute)
	at := func(kind, id, owner string) error {
		due = due.Add(time.Second)
		return s.Add(t.Context(), &transfer.Transfer{Kind: kind, ID: id, Owner: owner, Request: []byte("r"), Due: due}, 2)
	}
	check(t, at("k", "1", "alice"))
	check(t, at("k", "2", "alice"))
	if err := at("k", "3", "alice"); !errors.Is(err, transfer.ErrLimit) {
		t.Errorf("third transfer: error is %v, want ErrLimit", err)
	}
	check(t, at("k", "4", "bob"))
	check(t, at("other", "5", "alice"))
	c := claim(t, s, time.Minute)
	if c == nil || c.ID != "1" {
		t.Fatalf("claim is %+v", c)
	}
	c.Finished = s.Now()
	check(t, s.Record(t.Context(), c))
	check(t, at("k", "6", "alice"))
}

// choice checks which transfer is claimed first.
func choice(t *testing.T, s transfer.Store) {
	now := s.Now()
	add(t, s, "k", "late", "alice", now.Add(-time.Minute))
	add(t, s, "k", "first", "alice", now.Add(-time.Hour))
	add(t, s, "k", "bob's", "bob", now.Add(-time.Second))
	add(t, s, "k", "future", "carol", now.Add(time.Hour))
	for _, want := range []struct {
		id     string
		except []string
	}{{"first", nil}, {"bob's", []string{"alice", "dave"}}, {"", []string{"alice"}}, {"late", []string{"bob"}}, {"", nil}} {
		got := ""
		if c := claim(t, s, time.Minute, want.except...); c != nil {
			got = c.ID
		}
		if got != want.id {
			t.Errorf("claimed %q except %v, want %q", got, want.except, want.id)
		}
	}
}

// race checks that concurrent claims differ.
func race(t *testing.T, s transfer.Store) {
	const n = 20
	for i := range n {
		add(t, s, "k", fmt.Sprint(i), "alice", s.Now())
	}
	var mu sync.Mutex
	seen := make(map[string]int)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				c, err := s.Claim(t.Context(), "k", time.Minute, nil)
				if err != nil {
					t.Error(err)
				}
				if c == nil {
					return
				}
				mu.Lock()
				seen[c.ID]++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	// A worker may have found all due transfers locked by others.
	for c := claim(t, s, time.Minute); c != nil; c = claim(t, s, time.Minute) {
		seen[c.ID]++
	}
	for i := range n {
		if seen[fmt.Sprint(i)] != 1 {
			t.Errorf("transfer %d was claimed %d times", i, seen[fmt.Sprint(i)])
		}
	}
}

func upkeep(t *testing.T, s transfer.Store) {
	start := s.Now()
	pending := func(want int, due bool) {
		t.Helper()
		n, since, err := s.Pending(t.Context(), "k")
		if err != nil || n != want || since.IsZero() == due {
			t.Errorf("Pending = %d, %v, error %v, want %d, due %t", n, since, err, want, due)
		}
	}
	pending(0, false)
	add(t, s, "k", "a", "alice", start.Add(-time.Minute))
	add(t, s, "k", "b", "alice", start.Add(-time.Second))
	add(t, s, "other", "c", "alice", start.Add(-time.Hour))
	pending(2, true)
	a, b := claim(t, s, time.Hour), claim(t, s, time.Hour)
	pending(2, false)
	a.Finished = start
	check(t, s.Record(t.Context(), a))
	pending(1, false)
	check(t, s.Recover(t.Context(), "k"))
	pending(1, true)
	if err := s.Record(t.Context(), b); !errors.Is(err, status.ErrLost) {
		t.Errorf("Record after Recover: error is %v, want ErrLost", err)
	}
	if n, err := s.Sweep(t.Context(), "k", start); n != 0 || err != nil {
		t.Errorf("Sweep removed %d, error %v", n, err)
	}
	if n, err := s.Sweep(t.Context(), "k", start.Add(time.Second)); n != 1 || err != nil {
		t.Errorf("Sweep removed %d, error %v, want 1", n, err)
	}
	if get(t, s, "k", "a") != nil || get(t, s, "k", "b") == nil || get(t, s, "other", "c") == nil {
		t.Error("Sweep removed other transfers")
	}
}
