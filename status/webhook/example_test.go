package webhook_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/filewright/filewright/httpapi/sqlstore"
	"github.com/filewright/filewright/status"
	"github.com/filewright/filewright/status/webhook"
)

func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	db, err := sqlstore.Open(ctx, sqlstore.Options{Path: filepath.Join(dir, "filewright.db"), Exclusive: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()
	hooks, err := webhook.New(webhook.Config{
		Store: db.Webhooks(), Exclusive: true,
		Secrets: [][]byte{[]byte("what seals secrets in the database")},
		Allow:   []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, // for the receiver below
		Payload: func(_ context.Context, e webhook.Event) ([]byte, error) {
			return fmt.Appendf(nil, `{"type":%q,"items":%d}`, e.Type, len(e.Operation.Items)), nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	done := make(chan error, 1)
	go func() { done <- hooks.Run(ctx) }()

	// A receiver of events.
	var secret string
	told := make(chan struct{})
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		fmt.Println(webhook.Verify([]string{secret}, r.Header, body, time.Now()), string(body))
		close(told)
	}))
	defer receiver.Close()
	_, secret, err = hooks.Create(ctx, "alice", webhook.NewEndpoint{URL: receiver.URL, Events: []string{webhook.OperationCompleted}})
	if err != nil {
		fmt.Println(err)
		return
	}

	// An event.
	ops := db.Operations()
	if _, err := ops.Create(ctx, &status.Operation{ID: "1", Owner: "alice", Created: time.Now(), Items: []status.Item{{Queue: "pdf"}}}); err != nil {
		fmt.Println(err)
		return
	}
	c, err := ops.Claim(ctx, status.Ref{Operation: "1"}, "me", time.Minute)
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := ops.Finish(ctx, c, status.Outcome{}); err != nil {
		fmt.Println(err)
		return
	}
	<-told
	cancel()
	fmt.Println(<-done)
	// Output:
	// <nil> {"type":"operation.completed","items":1}
	// <nil>
}
