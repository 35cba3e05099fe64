package status_test

import (
	"context"
	"fmt"
	"time"

	"github.com/filewright/filewright/status"
)

func Example() {
	shout := func(_ context.Context, c *status.Claim, progress func(float64)) status.Outcome {
		in := c.Item.Inputs[0].Key
		progress(0.5)
		if in == "damaged" {
			return status.Outcome{Error: &status.Error{Code: "corrupt_input", Message: "the file is damaged"}}
		}
		return status.Outcome{Results: []status.File{{Key: in + "!"}}}
	}
	tracker, err := status.New(status.Config{
		Handler: status.HandlerFunc(shout),
		Limits:  map[string]int{"shouting": 2},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan error)
	go func() { done <- tracker.Run(ctx, 10*time.Second) }()

	op, err := tracker.Submit(ctx, status.Operation{
		Owner:  "alice",
		Action: "shout",
		Items: []status.Item{
			{Queue: "shouting", Inputs: []status.File{{Key: "hello"}}},
			{Queue: "shouting", Inputs: []status.File{{Key: "damaged"}}},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	op, err = tracker.Wait(ctx, "alice", op.ID)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("operation", op.State)
	for _, it := range op.Items {
		switch it.State {
		case status.Completed:
			fmt.Println(it.Inputs[0].Key, "completed:", it.Results[0].Key)
		case status.Failed:
			fmt.Println(it.Inputs[0].Key, "failed:", it.Error.Code)
		}
	}
	cancel()
	fmt.Println("stopped:", <-done)
	// Output:
	// operation completed
	// hello completed: hello!
	// damaged failed: corrupt_input
	// stopped: <nil>
}
