package webhook_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/filewright/filewright/httpapi/sqlstore"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/status"
	"github.com/filewright/filewright/status/webhook"
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// killedEnv makes the test binary run operations and send webhooks until it is killed.
// Its value is the database; another variable holds the endpoint.
const killedEnv = "WEBHOOK_TEST_KILLED"

// workUntilKilled prints the ID of each operation once it has finished.
func workUntilKilled(path, url string) error {
	ctx := context.Background()
	db, err := sqlstore.Open(ctx, sqlstore.Options{Path: path, Exclusive: true})
	if err != nil {
		return err
	}
	w, err := webhook.New(webhook.Config{
		Store: db.Webhooks(), Secrets: secrets(), Allow: loopback, Exclusive: true, Schedule: []time.Duration{100 * time.Millisecond, time.Hour},
		Payload: func(_ context.Context, e webhook.Event) ([]byte, error) {
			return fmt.Appendf(nil, `{"type":%q,"payload":{"main_task":{"id":%q}}}`, e.Type, e.Operation.ID), nil
		},
	})
	if err != nil {
		return err
	}
	if list, err := w.List(ctx, "alice"); err != nil {
		return err
	} else if len(list) == 0 {
		if _, _, err := w.Create(ctx, "alice", webhook.NewEndpoint{URL: url}); err != nil {
			return err
		}
	}
	failed := make(chan error, 8)
	go func() { failed <- errors.Join(w.Run(ctx), errors.New("Run returned")) }()
	tracker, err := status.New(status.Config{
		Store: db.Operations(), Exclusive: true,
		Handler: status.HandlerFunc(func(_ context.Context, c *status.Claim, _ func(float64)) status.Outcome {
			return status.Outcome{Results: []status.File{{Key: c.Operation + "-out"}}}
		}),
		OnFinal: func(_ context.Context, op *status.Operation) { fmt.Println(op.ID) },
	})
	if err != nil {
		return err
	}
	go func() { failed <- tracker.Run(ctx, time.Second) }()
	for range 2 {
		go func() {
			for {
				if _, err := tracker.Submit(ctx, status.Operation{Owner: "alice", Items: []status.Item{{Queue: "pdf"}}}); err != nil {
					failed <- err
				}
				time.Sleep(2 * time.Millisecond)
			}
		}()
	}
	return <-failed
}

// TestKill kills a server again and again between the end of items and their webhooks.
// Every end is delivered eventually.
func TestKill(t *testing.T) {
	t.Parallel()
	var n atomic.Int64
	var healed atomic.Bool
	r := receive(t, func(rw http.ResponseWriter, _ *http.Request) {
		if n.Add(1)%3 == 0 && !healed.Load() {
			rw.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	path := filepath.Join(t.TempDir(), "test.db")
	ended := make(map[string]bool)
	rng := rand.New(rand.NewPCG(1, 2))
	for range 6 {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), killedEnv+"="+path, killedEnv+"_URL="+r.URL)
		cmd.Stderr = os.Stderr
		stdout, err := cmd.StdoutPipe()
		systest.NoError(t, err)
		systest.NoError(t, cmd.Start())
		lines := 0
		for sc := bufio.NewScanner(stdout); sc.Scan(); {
			ended[strings.TrimSpace(sc.Text())] = true
			if lines++; lines == 20 {
				time.AfterFunc(time.Duration(rng.IntN(100))*time.Millisecond, func() { _ = cmd.Process.Kill() })
			}
		}
		if err := cmd.Wait(); err == nil || cmd.ProcessState.Exited() {
			t.Fatalf("process was not killed but ended with %v", err)
		}
	}

	// The next server sends the deliveries that the kill interrupted. The test replays
	// those that wait an hour after a refusal.
	db := openDB(t, sqlstore.Options{Path: path, Exclusive: true})
	w := newHooks(t, db, func(c *webhook.Config) { c.Exclusive = true })
	before, err := w.Stats(t.Context())
	systest.NoError(t, err)
	healed.Store(true)
	run(t, w)
	wait(t, "an empty outbox", func() bool {
		list, err := w.Deliveries(t.Context(), "alice", webhook.Query{State: webhook.Pending, Limit: 1000})
		systest.NoError(t, err)
		for _, d := range list {
			if time.Until(d.Next) > time.Minute {
				if _, err := w.Replay(t.Context(), "alice", d.ID); err != nil {
					t.Fatal(err)
				}
			}
		}
		return len(list) == 0
	})
	told := make(map[string]int)
	ids := make(map[string]bool)
	for _, m := range r.messages() {
		b := m.decode(t)
		if ids[m.id()] = true; b.Type == webhook.OperationCompleted {
			told[b.Payload.MainTask.ID]++
		}
	}
	for id := range ended {
		if told[id] == 0 {
			t.Errorf("nothing was told of %s", id)
		}
	}
	failed, err := w.Deliveries(t.Context(), "alice", webhook.Query{State: webhook.Failed})
	if err != nil || len(failed) != 0 {
		t.Errorf("%d deliveries failed, error %v", len(failed), err)
	}
	if before.Pending == 0 {
		t.Error("nothing was left to send")
	}
	t.Logf("%d operations ended, %d deliveries were left when it was last killed, %d requests with %d ids", len(ended), before.Pending, len(r.messages()), len(ids))
}
