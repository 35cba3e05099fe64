package steady

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

func TestJumps(t *testing.T) {
	t.Parallel()
	start := time.Date(2030, 5, 1, 12, 0, 0, 0, time.UTC)
	var elapsed, jump time.Duration
	c := &Clock{
		start: start,
		wall:  func() time.Time { return start.Add(elapsed + jump) },
		since: func(time.Time) time.Duration { return elapsed },
	}
	for _, tt := range []struct {
		elapsed, jump time.Duration
		earliest      time.Duration // after start
	}{
		{0, 0, 0},
		{time.Hour, 0, time.Hour},
		{time.Hour, 24 * time.Hour, time.Hour},
		{2 * time.Hour, 24 * time.Hour, 2 * time.Hour},
		{3 * time.Hour, 0, 3 * time.Hour},
		{3 * time.Hour, -24 * time.Hour, -21 * time.Hour},
	} {
		elapsed, jump = tt.elapsed, tt.jump
		if got := c.Running(); !got.Equal(start.Add(tt.elapsed)) {
			t.Errorf("after %v with a jump of %v: Running is %v", tt.elapsed, tt.jump, got)
		}
		if got := c.Earliest(); !got.Equal(start.Add(tt.earliest)) {
			t.Errorf("after %v with a jump of %v: Earliest is %v", tt.elapsed, tt.jump, got)
		}
	}
}

// The times equal the host's while its clock does not jump.
func TestHost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := New()
		time.Sleep(time.Minute)
		if now := time.Now().Round(0); c.Running() != now || c.Earliest() != now {
			t.Errorf("Running is %v, Earliest is %v, want %v", c.Running(), c.Earliest(), now)
		}
	})
}

func TestThroughSuspend(t *testing.T) {
	t.Parallel()
	c := NewThroughSuspend()
	before := time.Now()
	got := c.Running()
	// The host is not suspended during a test, and its clock may be adjusted a little.
	if d := got.Sub(before.Round(0)).Abs(); d > time.Minute {
		t.Errorf("Running is %v, want about %v", got, before)
	}
	if again := c.Running(); again.Before(got) {
		t.Errorf("Running went back from %v to %v", got, again)
	}
}

func Example() {
	c := New()
	expires := time.Now().Add(time.Hour)
	fmt.Println(c.Earliest().After(expires))
	// Output: false
}
