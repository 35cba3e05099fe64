package statustest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/filewright/filewright/status"
	"github.com/filewright/filewright/status/statustest"
)

// One line in a test of its package tests a store.
func ExampleRun() {
	var t *testing.T // the argument of TestStore
	statustest.Run(t, func(*testing.T) status.Store { return status.NewMemStore() })
}

// forgetful is a store that does not fence.
type forgetful struct{ status.Store }

func (f forgetful) Finish(ctx context.Context, c *status.Claim, o status.Outcome) (*status.Operation, error) {
	op, err := f.Store.Finish(ctx, c, o)
	if errors.Is(err, status.ErrLost) {
		return f.Get(ctx, c.Operation)
	}
	return op, err
}

func (f forgetful) Get(ctx context.Context, id string) (*status.Operation, error) {
	return f.Store.Get(ctx, id)
}

// Example shows a failure that the suite finds: a worker that lost its claim records an
// outcome.
func Example() {
	ctx := context.Background()
	for _, s := range []status.Store{status.NewMemStore(), forgetful{status.NewMemStore()}} {
		op, err := s.Create(ctx, &status.Operation{ID: "1", Created: time.Now(), Items: []status.Item{{Queue: "pdf"}}})
		if err != nil {
			fmt.Println(err)
			return
		}
		late, err := s.Claim(ctx, status.Ref{Operation: op.ID}, "frozen", time.Hour)
		if err != nil {
			fmt.Println(err)
			return
		}
		if _, err := s.Recover(ctx, "other"); err != nil {
			fmt.Println(err)
			return
		}
		_, err = s.Finish(ctx, late, status.Outcome{})
		fmt.Println(err)
	}
	// Output:
	// the claim on the item was lost
	// <nil>
}
