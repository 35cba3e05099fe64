package webops

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/engine"
	"github.com/filewright/filewright/internal/logtest"
	"github.com/filewright/filewright/internal/systest"
)

// A browser that does not become ready is started once more. If that fails too, the
// engine is unavailable, and the document is not at fault.
func TestStartAgain(t *testing.T) {
	t.Parallel()
	dir, log := t.TempDir(), new(logtest.Buffer)
	starts, program := filepath.Join(dir, "starts"), filepath.Join(dir, "chromium")
	systest.WriteScript(t, program, "#!/bin/sh\necho once >> '"+starts+"'\nexit 1\n")
	p := newPool(&engine.Program{Name: "chromium", Path: program}, Options{Workers: 1, TempDir: dir, Log: slog.New(slog.NewTextHandler(log, nil))})
	defer p.end(errClosed)
	err := p.use(t.Context(), func(context.Context, *browser) error {
		t.Error("there is a browser")
		return nil
	})
	if !errors.Is(err, fileops.ErrUnavailable) || errors.Is(err, fileops.ErrLimit) {
		t.Errorf("got %v, want ErrUnavailable", err)
	}
	b, err := os.ReadFile(starts)
	if got := strings.Count(string(b), "once"); err != nil || got != 2 || strings.Count(log.String(), "trying again") != 1 {
		t.Errorf("%d starts, %v; the log:\n%s", got, err, log)
	}
}
