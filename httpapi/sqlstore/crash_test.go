package sqlstore_test

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/filewright/filewright/httpapi/sqlstore"
	"github.com/filewright/filewright/internal/pgtest"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/status"
	"github.com/filewright/filewright/upload"
)

// crashEnv makes the test binary write to the database it names until it is killed.
const crashEnv = "SQLSTORE_TEST_CRASH"

func TestMain(m *testing.M) {
	if path := os.Getenv(crashEnv); path != "" {
		if err := writeUntilKilled(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(pgtest.MainWith(m, prepare))
}

// prepare creates the tables for the tests.
func prepare(url string) error {
	db, err := sqlstore.Open(context.Background(), sqlstore.Options{URL: url})
	if err != nil {
		return err
	}
	return db.Close()
}

// writeUntilKilled stores operations and runs them. It prints each acknowledged step:
// "created ID" or "finished ID".
func writeUntilKilled(path string) error {
	ctx := context.Background()
	db, err := sqlstore.Open(ctx, sqlstore.Options{Path: path, Exclusive: true})
	if err != nil {
		return err
	}
	s := db.Operations()
	if _, err := s.Recover(ctx, "none"); err != nil {
		return err
	}
	var out sync.Mutex
	var id atomic.Int64
	failed := make(chan error)
	for range 4 {
		go func() {
			for {
				op := &status.Operation{
					ID:    fmt.Sprintf("%d-%d", os.Getpid(), id.Add(1)),
					Owner: "alice", Created: time.Now(), Args: []byte("args"),
					Items: []status.Item{{Queue: "pdf"}, {Queue: "pdf"}},
				}
				if _, err := s.Create(ctx, op); err != nil {
					failed <- err
				}
				f := &upload.File{Key: op.ID, Owner: op.Owner, Size: 10, State: upload.Open, Created: op.Created}
				if _, err := db.Files().Create(ctx, f); err != nil {
					failed <- err
				}
				out.Lock()
				fmt.Println("created", op.ID)
				out.Unlock()
				for i := range op.Items {
					c, err := s.Claim(ctx, status.Ref{Operation: op.ID, Index: i}, "w", time.Minute)
					if err != nil {
						failed <- err
					}
					if _, err := s.Finish(ctx, c, status.Outcome{Results: []status.File{{Key: op.ID}}}); err != nil {
						failed <- err
					}
				}
				if err := db.Files().Delete(ctx, f.Key); err != nil {
					failed <- err
				}
				out.Lock()
				fmt.Println("finished", op.ID)
				out.Unlock()
			}
		}()
	}
	return <-failed
}

// TestKill kills a writing process again and again, and checks that every acknowledged
// step is stored.
func TestKill(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	created, finished := make(map[string]bool), make(map[string]bool)
	const rounds = 10
	for round := range rounds {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), crashEnv+"="+path)
		cmd.Stderr = os.Stderr
		stdout, err := cmd.StdoutPipe()
		systest.NoError(t, err)
		systest.NoError(t, cmd.Start())
		ending := false
		for sc := bufio.NewScanner(stdout); sc.Scan(); {
			var what, id string
			if n, _ := fmt.Sscan(sc.Text(), &what, &id); n == 2 {
				map[string]map[string]bool{"created": created, "finished": finished}[what][id] = true
			}
			// However slow the machine is, an operation finishes eventually.
			if !ending && (round < rounds-1 || len(finished) > 0) {
				ending = true
				time.AfterFunc(time.Duration(rand.IntN(200))*time.Millisecond, func() { _ = cmd.Process.Kill() })
			}
		}
		if err := cmd.Wait(); err == nil || cmd.ProcessState.Exited() {
			t.Fatalf("process was not killed but ended with %v", err)
		}

		check, err := sql.Open("sqlite", path)
		systest.NoError(t, err)
		var result string
		if err := check.QueryRow("PRAGMA integrity_check").Scan(&result); err != nil || result != "ok" {
			t.Fatalf("integrity check says %q, error %v", result, err)
		}
		systest.NoError(t, check.Close())
		// The counters match the records.
		for counted, recorded := range map[string]string{countedBytes: recordedBytes, countedOperations: recordedOperations, countedDayBytes: recordedBytes} {
			if a, b := askSQLite(t, path, counted), askSQLite(t, path, recorded); a != b {
				t.Errorf("%s says %d, %s says %d", counted, a, recorded, b)
			}
		}
	}

	s := openPath(t, path).Operations()
	if len(created) < 10 || len(finished) == 0 {
		t.Fatalf("only %d operations were acknowledged, %d as finished", len(created), len(finished))
	}
	for id := range created {
		op, err := s.Get(t.Context(), id)
		if err != nil {
			t.Fatalf("acknowledged operation is lost: %v", err)
		}
		if got := status.Rollup(op.Items, op.Cancelled); len(op.Items) != 2 || op.State != got {
			t.Errorf("operation %s with %d items is %s, its items say %s", id, len(op.Items), op.State, got)
		}
		if finished[id] && op.State != status.Completed {
			t.Errorf("operation %s was acknowledged as finished but is %s", id, op.State)
		}
	}
	t.Logf("%d operations, %d of them finished, all there", len(created), len(finished))
}
