package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/filewright/filewright/internal/logtest"
	"github.com/filewright/filewright/status"
)

// During an outage of 130 seconds 20 loops fail every second. The log has four lines.
func TestOutages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out logtest.Buffer
		o := NewOutages(slog.NewTextHandler(&out, nil), nil)
		log := slog.New(o.Handler()).With("part", "loop")
		away := fmt.Errorf("list: %w", status.ErrUnavailable)
		for range 130 {
			for range 20 {
				log.Error("request failed", "id", 1, "err", away)
			}
			o.failing("database", "readiness check", away, true)
			time.Sleep(time.Second)
		}
		o.back("database")
		log.Error("request failed", "err", away) // started during the outage
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if len(lines) != 4 || !strings.Contains(lines[0], "dependency failed") || !strings.Contains(lines[1], "for=1m0s suppressed=1260") ||
			!strings.Contains(lines[2], "for=2m0s") || !strings.Contains(lines[3], "dependency is back") || !strings.Contains(lines[3], "after=2m10s suppressed=2729") {
			t.Errorf("the log is\n%s", out.String())
		}

		// Other errors pass. The outage of an unchecked dependency ends after a while without
		// failures.
		out = logtest.Buffer{}
		time.Sleep(time.Minute)
		log.Error("request failed", "err", errors.New("a bug"))
		log.Info("sweep", "err", away)
		o.tick(func(string) bool { return false })
		time.Sleep(outageEvery)
		o.tick(func(string) bool { return false })
		for _, want := range []string{"a bug", "dependency failed", "dependency is back"} {
			if strings.Count(out.String(), want) != 1 {
				t.Errorf("%q is not once in\n%s", want, out.String())
			}
		}
	})
}

// Each check has its own timeout, all run together, and a hanging check is not started again.
func TestChecks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		var calls atomic.Int32
		s := &Node{dependencies: newDependencies(map[string]func(context.Context) error{
			"disk":     func(context.Context) error { calls.Add(1); <-hang; return nil }, // ignores its context
			"database": func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
			"bucket":   func(context.Context) error { return nil },
			"scratch":  func(context.Context) error { return errors.New("read-only") },
		})}
		start := time.Now()
		for range 3 {
			states := s.checkAll()
			want := []string{"<nil>", "no answer", "no answer", "read-only"}
			for i, st := range states {
				if got, _, _ := strings.Cut(fmt.Sprint(st.err), ":"); got != want[i] {
					t.Errorf("%s: %v, want %s", s.dependencies[i].name, got, want[i])
				}
				if st.since.Sub(start) > checkTime || i == 2 && st.latency != checkTime {
					t.Errorf("%s: since %v, %v", s.dependencies[i].name, st.since, st.latency)
				}
			}
		}
		if d := time.Since(start); d != 3*checkTime || calls.Load() != 1 {
			t.Errorf("three rounds take %v, the check that hangs was begun %d times", d, calls.Load())
		}
		close(hang)
		synctest.Wait()
		if states := s.checkAll(); states[2].err != nil {
			t.Errorf("the disk is back: %v", states[2].err)
		}
	})
}
