package engine_test

import (
	"errors"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/filewright/filewright/fileops/engine"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/internal/worktime"
)

// busy keeps all processors busy with competing programs.
func busy(t *testing.T, each int) {
	t.Helper()
	for range each * runtime.NumCPU() {
		// A limit of its own, in case nothing kills it.
		cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", "ulimit -t 60; while :; do :; done")
		systest.NoError(t, cmd.Start())
		t.Cleanup(func() {
			cmd.Process.Kill()
			cmd.Wait()
		})
	}
}

// On a busy host, a program may take any wall time if it works for less than the limit.
// A program that never stops working is killed, and so is a program that hangs.
func TestRunWithin(t *testing.T) {
	tooLong := errors.New("too long")
	p := find(t, sandbox(t), "/usr/bin/python3")
	run := func(script string, limit time.Duration) error {
		return p.RunWithin(t.Context(), engine.Cmd{Args: []string{"-I", "-c", script}, Dir: t.TempDir()}, limit, tooLong)
	}
	t.Run("starved", func(t *testing.T) {
		busy(t, 3)
		const work = `
import os, time
while sum(os.times()[:2]) < 0.2: pass
`
		if err := run(work, 400*time.Millisecond); err != nil {
			t.Errorf("half the limit of work: %v", err)
		}
	})
	for name, script := range map[string]string{
		"works":             "while True: pass",
		"a child works":     "import os\nif os.fork(): os.wait()\nwhile True: pass",
		"ended children":    "import os\nwhile True:\n  if os.fork(): os.wait()\n  else:\n    for i in range(300000): pass\n    os._exit(0)",
		"hangs":             "import time\ntime.sleep(1000)",
		"hangs but is busy": "import time\nwhile True: time.sleep(0.01)",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := run(script, 200*time.Millisecond); !errors.Is(err, tooLong) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// Runs for one context count together, including what they worked between two
// measurements.
func TestRunsAddUp(t *testing.T) {
	t.Parallel()
	tooLong := errors.New("too long")
	p := find(t, sandbox(t), "/usr/bin/python3")
	ctx, cancel := worktime.Total(t.Context(), 1600*time.Millisecond, tooLong)
	defer cancel()
	for i := range 6 {
		err := p.Run(ctx, engine.Cmd{Args: []string{"-I", "-c", "import os\nwhile sum(os.times()[:2]) < 1.2: pass"}, Dir: t.TempDir()})
		if errors.Is(err, tooLong) {
			if i == 0 {
				t.Error("the first run was stopped")
			}
			return
		}
		systest.NoError(t, err)
	}
	t.Error("six runs were not stopped")
}
