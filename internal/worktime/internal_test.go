package worktime

import (
	"context"
	"testing"
	"time"
)

// The start of a total does not read the threads of this process, which would take longer
// than the smallest jobs.
func TestTotalStartsCheaply(t *testing.T) {
	t.Parallel()
	ctx, cancel := Total(t.Context(), time.Hour, context.DeadlineExceeded)
	defer cancel()
	if sum := ctx.Value(totalKey{}).(*total); !sum.sampled.IsZero() {
		t.Error("the threads were read at the start")
	}
}
