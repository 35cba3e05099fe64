//go:build unix

package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == nodeCommand {
		main()
		return
	}
	os.Exit(m.Run())
}

// TestMeasure makes short measurements: there is a figure for everything.
func TestMeasure(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := measure(t.Context(), &out, options{time: 200 * time.Millisecond, rounds: 1}); err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^\| [^|]+ \| ([0-9.]+)( ms|/s) \| ([0-9.]+)( ms|/s) \|$`)
	lines := line.FindAllStringSubmatch(out.String(), -1)
	if len(lines) != 7 {
		t.Errorf("%d lines of figures, want 7:\n%s", len(lines), out.String())
	}
	for _, l := range lines {
		if strings.Trim(l[1], "0.") == "" && l[2] == " ms" {
			t.Errorf("no time at all: %s", l[0])
		}
	}
}
