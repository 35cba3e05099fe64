package auth

import (
	"fmt"
	"testing"
	"time"

	"github.com/filewright/filewright/internal/systest"
)

// Attempts refill one by one, successes do not count, and memory is bounded.
func TestThrottle(t *testing.T) {
	t.Parallel()
	var now time.Duration
	th := newThrottle()
	th.now = func() time.Duration { return now }
	fail := func(name, from string) bool {
		_, err := th.begin(name, from)
		return err == nil
	}
	for i := range loginBurst {
		if !fail("ada", fmt.Sprint(i)) {
			t.Fatalf("attempt %d was refused", i)
		}
	}
	if fail("ada", "elsewhere") {
		t.Error("one attempt too many")
	}
	now += loginSpacing
	if !fail("ada", "elsewhere") || fail("ada", "elsewhere") {
		t.Error("not one attempt after a while")
	}
	for range 5 * loginBurst {
		succeeded, err := th.begin("bob", "home")
		systest.NoError(t, err)
		succeeded()
	}
	for i := range 2 * maxKnown {
		th.begin(fmt.Sprint("name", i), fmt.Sprint("from", i))
		if succeeded, err := th.begin("eve", fmt.Sprint("other", i)); err == nil {
			succeeded()
		}
	}
	if len(th.known) > maxKnown { // gcra bounds the other maps
		t.Errorf("%d entries", len(th.known))
	}
	// An exhausted limit survives many other names.
	for range loginBurst {
		fail("victim", "")
	}
	for i := range maxKnown / 2 {
		fail(fmt.Sprint("more", i), "")
	}
	if fail("victim", "") {
		t.Error("others have made it forget")
	}
}
