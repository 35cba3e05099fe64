package worker

import (
	"testing"

	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/status"
)

// A released item starts its next attempt under the same number. Its previous worker
// may clean up late; it must not remove results of the next attempt.
func TestResultKeysAreThoseOfAClaim(t *testing.T) {
	t.Parallel()
	s, err := newResultKeys([]byte("0123456789abcdef"))
	systest.NoError(t, err)
	seen := make(map[string]bool)
	for _, op := range []string{"a", "b"} {
		for index := range 3 {
			for token := 1; token <= 3; token++ {
				c := &status.Claim{Ref: status.Ref{Operation: op, Index: index}, Token: token, Item: status.Item{Attempt: 1}}
				for n := range 3 {
					seen[s.of(c, c.Token, n)] = true
				}
			}
		}
	}
	if len(seen) != 2*3*3*3 {
		t.Errorf("%d names, want %d", len(seen), 2*3*3*3)
	}
}
