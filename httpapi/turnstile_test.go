package httpapi

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// One account cannot block the others, and the total is bounded.
func TestTurnstile(t *testing.T) {
	t.Parallel()
	s := newTurnstile(64, 8)
	in := 0
	for i := range 20 {
		for range s.each + 1 {
			if s.enter(fmt.Sprint(i)) {
				in++
			}
		}
	}
	if in != s.total {
		t.Errorf("%d are in, want %d", in, s.total)
	}
	if s.enter("other") {
		t.Error("one more is in")
	}
	s.leave("0")
	if !s.enter("other") || s.enter("0") {
		t.Error("the place of one that left is not free, or there are two")
	}
	for range s.each - 1 {
		s.leave("0")
	}
	if _, kept := s.by["0"]; kept || s.by["1"] != s.each {
		t.Errorf("left: %v", s.by)
	}
}

func TestTurnstileWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newTurnstile(2, 1)
		if !s.wait(t.Context(), "a", time.Second) || s.wait(t.Context(), "a", time.Second) {
			t.Fatal("an account has no place, or two")
		}
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		if s.wait(cancelled, "a", time.Hour) {
			t.Error("a request that was given up has a place")
		}
		time.AfterFunc(time.Minute, func() { s.leave("a") })
		began := time.Now()
		if !s.wait(t.Context(), "a", time.Hour) || time.Since(began) != time.Minute {
			t.Errorf("waited for %v", time.Since(began))
		}
	})
}
