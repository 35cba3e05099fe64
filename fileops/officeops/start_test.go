package officeops

import (
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/engine"
	"github.com/filewright/filewright/internal/logtest"
	"github.com/filewright/filewright/internal/systest"
)

// A LibreOffice that does not become ready is restarted. If that fails too, the engine
// is unavailable, and the document is not at fault.
func TestSlowStart(t *testing.T) {
	t.Parallel()
	dir, log := t.TempDir(), new(logtest.Buffer)
	hangs := filepath.Join(dir, "soffice")
	script := "#!/bin/sh\ncase \"$*\" in *--terminate_after_init*) exit 0;; esac\nexec sleep 1000\n"
	systest.WriteScript(t, hangs, script)
	program := &engine.Program{Name: "soffice", Path: hangs}
	p := newPool(program, program, Options{Workers: 1, Timeout: time.Minute, TempDir: dir, Log: slog.New(slog.NewTextHandler(log, nil))})
	p.startTime = 100 * time.Millisecond
	defer p.close()
	err := p.do(t.Context(), request{In: hangs, Out: filepath.Join(dir, "out.pdf")}, func(string) {})
	if !errors.Is(err, fileops.ErrUnavailable) || errors.Is(err, fileops.ErrLimit) {
		t.Errorf("got %v, want ErrUnavailable", err)
	}
	if got := log.String(); strings.Count(got, "trying again") != 1 || strings.Contains(got, "document retried") {
		t.Errorf("the log:\n%s", got)
	}
}
