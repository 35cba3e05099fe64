package riverqueue_test

import (
	"context"
	"fmt"
	"time"

	"github.com/filewright/filewright/httpapi/sqlstore"
	"github.com/filewright/filewright/internal/pgtest"
	"github.com/filewright/filewright/status"
	"github.com/filewright/filewright/status/riverqueue"
)

// Two processes, here two trackers: one accepts operations, the other runs them.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	url := pgtest.Example() // postgres://filewright@db.example.com/filewright

	node := func(handler status.Handler, limits map[string]int) (*status.Tracker, error) {
		db, err := sqlstore.Open(ctx, sqlstore.Options{URL: url})
		if err != nil {
			return nil, err
		}
		context.AfterFunc(ctx, func() { db.Close() })
		queue, err := riverqueue.New(ctx, db, nil)
		if err != nil {
			return nil, err
		}
		return status.New(status.Config{Store: db.Operations(), Dispatcher: queue, Handler: handler, Limits: limits})
	}
	worker, err := node(status.HandlerFunc(func(ctx context.Context, c *status.Claim, progress func(float64)) status.Outcome {
		return status.Outcome{Results: []status.File{{Key: "result", Name: c.Item.Inputs[0].Name + ".pdf"}}}
	}), map[string]int{"office": 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	api, err := node(nil, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	go worker.Run(ctx, time.Second)

	op, err := api.Submit(ctx, status.Operation{Owner: "alice", Action: "convert", Items: []status.Item{
		{Queue: "office", Inputs: []status.File{{Key: "input", Name: "report.docx"}}},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	if op, err = api.Wait(ctx, "alice", op.ID); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(op.State, op.Items[0].Results[0].Name)
	// Output: completed report.docx.pdf
}
