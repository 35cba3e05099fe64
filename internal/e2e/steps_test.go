//go:build linux

package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/filewright/filewright/internal/systest"
)

// steps starts an operation of several steps and waits for its end.
func (s *server) steps(t *testing.T, keys []string, steps ...map[string]any) *response {
	t.Helper()
	return s.await(t, s.want(t, 200, "", "POST", "/api/v1/do", map[string]any{"file_keys": keys, "steps": steps}).str("main_task_id"))
}

func step(action string, parameters map[string]any) map[string]any {
	return map[string]any{"action": action, "parameters": parameters}
}

// lasting reports whether a file of the data directory belongs to the server: the identity of the
// store, and the profiles of engines.
func (s *server) lasting(path string) bool {
	if rest, ok := strings.CutPrefix(path, filepath.Join(s.dir, "scratch")+"/"); ok {
		return !strings.HasPrefix(rest, "fileops-") && !strings.HasPrefix(rest, "spool-")
	}
	return filepath.Base(path) == "identity"
}

// An operation of several steps leaves only its inputs and its last results, whether it succeeds,
// fails or is refused.
func TestSteps(t *testing.T) {
	t.Parallel()
	s := start(t, filepath.Join(t.TempDir(), "data"))
	document := docx(t)
	one, two := s.upload(t, "one.docx", document.b, 1), s.upload(t, "two.docx", document.b, 1)
	toPDF, merge := step("convert", map[string]any{"convert_to": "pdf"}), step("merge", nil)
	lock := step("lock", map[string]any{"password": "correct horse"})
	stored := 2
	left := func(results int) {
		t.Helper()
		stored += results
		systest.Until(t, fmt.Sprintf("%d files are stored", stored), func() bool {
			return len(slices.DeleteFunc(s.dataFiles(t), s.lasting)) == stored
		})
	}
	left(0)
	r := s.steps(t, []string{one, two}, toPDF, merge, lock)
	if r.str("operation_status") != "completed" || len(r.elements()) != 1 {
		t.Fatalf("%s", r.raw)
	}
	e := r.elements()[0]
	if fmt.Sprint(e["input_file_keys"]) != fmt.Sprint([]string{one, two}) {
		t.Errorf("%v", e)
	}
	locked := file{e["file_name"].(string), s.want(t, 200, "", "GET", e["download_link"].(string), nil).raw}.save(t)
	if err := exec.Command("qpdf", "--check", locked).Run(); err == nil {
		t.Error("the result opens without the password")
	}
	if text := tool(t, "pdftotext", "-upw", "correct horse", locked, "-"); strings.Count(text, "quick brown fox") < 2 {
		t.Errorf("text of the result: %s", text)
	}
	left(1)

	// A document that cannot be read.
	bad := s.upload(t, "bad.docx", document.b[:len(document.b)/2], 1)
	stored++
	r = s.steps(t, []string{one, bad}, toPDF, merge, lock)
	if r.str("operation_status") != "failed" || len(r.elements()) != 2 || r.elements()[0]["error_code"] != r.elements()[1]["error_code"] {
		t.Errorf("%s", r.raw)
	}
	left(0)
	r = s.steps(t, []string{one, bad}, toPDF, lock)
	if r.str("operation_status") != "completed" || r.elements()[0]["status"] != "completed" || r.elements()[1]["status"] != "failed" {
		t.Errorf("%s", r.raw)
	}
	left(1)

	// Files of an archive, whose formats are known only when they are there.
	packed := s.one(t, "zip", nil, document, docx(t), file{"notes.bin", []byte{1, 2, 3}})
	archive := s.upload(t, "packed.zip", packed.b, 1)
	stored += 5
	left(0)
	r = s.steps(t, []string{archive}, step("extract", nil), toPDF)
	done := 0
	for _, e := range r.elements() {
		switch {
		case e["status"] == "completed" && strings.HasSuffix(e["file_name"].(string), ".pdf"):
			done++
		case e["error_code"] != "unsupported_input":
			t.Errorf("%v", e)
		}
	}
	if done != 2 || len(r.elements()) != 3 {
		t.Errorf("%s", r.raw)
	}
	left(2)

	// Refused before anything is queued.
	before := len(s.want(t, 200, "", "GET", "/api/v1/operations?limit=100", nil).body["operations"].([]any))
	for want, list := range map[string][]map[string]any{
		"steps[1].action":                {toPDF, step("rotate_video", nil)},
		"steps[2].action":                {toPDF, step("inspect", nil), lock},
		"steps[1].parameters.convert_to": {toPDF, step("convert", map[string]any{"convert_to": "mp3"})},
	} {
		r := s.want(t, 400, "unsupported_operation", "POST", "/api/v1/do", map[string]any{"file_keys": []string{one}, "steps": list})
		if r.str("param") != want || !strings.HasPrefix(r.str("message"), "step ") {
			t.Errorf("%s, want %s", r.raw, want)
		}
	}
	if n := len(s.want(t, 200, "", "GET", "/api/v1/operations?limit=100", nil).body["operations"].([]any)); n != before {
		t.Errorf("%d operations, want %d", n, before)
	}
	left(0)
}
