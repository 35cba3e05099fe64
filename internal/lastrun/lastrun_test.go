package lastrun_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/filewright/filewright/internal/lastrun"
)

func TestRecord(t *testing.T) {
	t.Parallel()
	var r lastrun.Record
	if at, removed, err := r.Last(); !at.IsZero() || removed != 0 || err != nil {
		t.Errorf("before the first run: %v, %d, %v", at, removed, err)
	}
	failed := errors.New("failed")
	for n, want := range []error{nil, failed, nil} {
		r.Set(n, want)
		if at, removed, err := r.Last(); at.IsZero() || removed != n || !errors.Is(err, want) {
			t.Errorf("run %d: %v, %d, %v", n, at, removed, err)
		}
	}
}

func Example() {
	var sweep lastrun.Record
	sweep.Set(3, nil)
	_, removed, err := sweep.Last()
	fmt.Println(removed, err)
	// Output: 3 <nil>
}
