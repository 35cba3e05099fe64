package engine_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/filewright/filewright/fileops/engine"
)

// Zero fields are filled from the other limits.
func TestLimitsOr(t *testing.T) {
	t.Parallel()
	own := engine.Limits{CPU: time.Second, Scratch: 3}
	got := own.Or(engine.Limits{CPU: time.Minute, Memory: 1, FileSize: 2, Scratch: 4, Resident: 5, Processes: 6, Files: 7})
	if want := (engine.Limits{CPU: time.Second, Memory: 1, FileSize: 2, Scratch: 3, Resident: 5, Processes: 6, Files: 7}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := own.Or(engine.Limits{}); got != own {
		t.Errorf("got %+v, want %+v", got, own)
	}
}

// Which names the limit for users.
func TestWhich(t *testing.T) {
	t.Parallel()
	for want, e := range map[string]*engine.ExitError{
		"memory": {Exceeded: "memory", Signal: syscall.SIGKILL}, "processor time": {Signal: 24},
		"space for results": {Signal: 25}, "": {Signal: syscall.SIGSEGV},
	} {
		if got := e.Which(); got != want || e.Limit() != (want != "") {
			t.Errorf("%v: %q, a limit: %v; want %q", e, got, e.Limit(), want)
		}
	}
}
