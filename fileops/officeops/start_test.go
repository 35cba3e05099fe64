package officeops

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/engine"
	"github.com/filewright/filewright/internal/logtest"
	"github.com/filewright/filewright/internal/systest"
)

// idleOffice is a LibreOffice that starts and does nothing.
const idleOffice = "#!/bin/sh\ncase \"$*\" in *--terminate_after_init*) exit 0;; esac\nexec sleep 1000\n"

// A LibreOffice that does not become ready is restarted. If that fails too, the engine
// is unavailable, and the document is not at fault.
func TestSlowStart(t *testing.T) {
	t.Parallel()
	dir, log := t.TempDir(), new(logtest.Buffer)
	hangs := filepath.Join(dir, "soffice")
	systest.WriteScript(t, hangs, idleOffice)
	program := &engine.Program{Name: "soffice", Path: hangs}
	p := newPool(program, program, "", Options{Workers: 1, Timeout: time.Minute, TempDir: dir, Log: slog.New(slog.NewTextHandler(log, nil))})
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

// A result is there before its document is closed. The process is used again when the document is closed, and
// replaced if that takes too long.
func TestStored(t *testing.T) {
	t.Parallel()
	for _, hangs := range []bool{false, true} {
		dir, log := t.TempDir(), new(logtest.Buffer)
		closed := filepath.Join(dir, "closed")
		office, python := filepath.Join(dir, "soffice"), filepath.Join(dir, "python3")
		systest.WriteScript(t, office, idleOffice)
		systest.WriteScript(t, python, `#!/bin/sh
echo '{"phase": "ready"}'
while read -r line; do
	out=${line##*\"out\":\"}
	echo result > "${out%%\"*}"
	echo '{"phase": "stored"}'
	while ! [ -e `+closed+` ]; do sleep 0.01; done
	echo '{"ok": true, "clean": true}'
done
`)
		o := Options{Workers: 1, Timeout: time.Minute, TempDir: dir, RecycleAfter: 50, RecycleRSS: 1 << 40, Log: slog.New(slog.NewTextHandler(log, nil))}
		if hangs {
			o.Timeout = 300 * time.Millisecond
		}
		p := newPool(&engine.Program{Name: "soffice", Path: office}, &engine.Program{Name: "python3", Path: python}, "", o)
		defer p.close()
		convert := func(name string) {
			t.Helper()
			out := filepath.Join(dir, name)
			systest.NoError(t, p.do(t.Context(), request{In: office, Out: out}, func(string) {}))
			if b, err := os.ReadFile(out); err != nil || string(b) != "result\n" {
				t.Errorf("result %q, error %v", b, err)
			}
		}
		convert("first.pdf")
		if len(p.turns) != 1 {
			t.Error("the process is free before the document is closed")
		}
		if !hangs {
			systest.NoError(t, os.WriteFile(closed, nil, 0o600))
		}
		convert("second.pdf")
		if n := strings.Count(log.String(), "office process replaced"); n != map[bool]int{false: 0, true: 1}[hangs] {
			t.Errorf("hangs %t: replaced %d times:\n%s", hangs, n, log)
		}
	}
}
