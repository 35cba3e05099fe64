//go:build linux

package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/filewright/filewright/internal/conformance"
	"github.com/filewright/filewright/internal/systest"
)

// The server follows every rule that the command conformance knows, and offers what each is about.
func TestConformance(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	key, report, junit := filepath.Join(dir, "key"), filepath.Join(dir, "report.json"), filepath.Join(dir, "report.xml")
	systest.NoError(t, os.WriteFile(key, []byte(shared.key+"\n"), 0o600))
	out, err := systest.Output(t, binary, "conformance", "--base-url", shared.url, "--key", "@"+key, "--json", report, "--junit", junit)
	if err != nil || !strings.Contains(out, " 0 failed, 0 skipped\n") {
		t.Errorf("%v\n%s", err, out)
	}
	var r conformance.Report
	systest.NoError(t, json.Unmarshal(systest.ReadFile(t, report), &r))
	if len(r.Results) < 50 || r.Count(conformance.Passed) != len(r.Results) || !strings.Contains(string(systest.ReadFile(t, junit)), "<testsuite ") {
		t.Errorf("%d of %d rules passed", r.Count(conformance.Passed), len(r.Results))
	}
	for code, args := range map[int][]string{
		1: {"--base-url", shared.url, "--key", "wrong", "--level", "core"},
		2: {"--base-url", shared.url},
		3: {"--base-url", "http://127.0.0.1:1", "--key", "x"},
	} {
		out, err := exec.CommandContext(t.Context(), binary, append([]string{"conformance"}, args...)...).CombinedOutput()
		exit, ok := err.(*exec.ExitError)
		if !ok || exit.ExitCode() != code {
			t.Errorf("%v: %v, want exit code %d\n%s", args, err, code, out)
		}
	}
}
