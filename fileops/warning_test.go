package fileops_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
)

// warner copies its input and issues warnings.
func warner(warnings ...fileops.Warning) fileops.Action {
	spec := fileops.Spec{Name: "warn", Engine: "go", Summary: "Warns.", Accepts: []fileops.Accept{{Formats: []format.Format{format.TXT}}}}
	return fileops.Func(spec, func(_ context.Context, job *fileops.Job) error {
		for _, w := range warnings {
			job.Warn(w.Code, "%s", w.Message)
		}
		if job.Input().Name() == "bad.txt" {
			return fileops.Fail(fileops.ErrCorruptInput, nil, "")
		}
		return job.Keep(job.Input())
	})
}

// warningsOf runs a on a file and returns the runner's warnings.
func warningsOf(t *testing.T, a fileops.Action, name string) (all []fileops.Warning, err error) {
	t.Helper()
	r := fileops.Runner{TempDir: t.TempDir(), Warn: func(w fileops.Warning) { all = append(all, w) }}
	err = r.Run(t.Context(), a, nil, fileops.SinkFunc(func(context.Context, *fileops.File) error { return nil }), fileops.Bytes(name, []byte("text")))
	return all, err
}

func TestWarnings(t *testing.T) {
	links := fileops.Warning{Code: fileops.WarnLinksDropped, Message: "2 links 100%"}
	fonts := fileops.Warning{Code: fileops.WarnFontsSubstituted, Message: "Arial"}
	if got, err := warningsOf(t, warner(links, fonts, links), "a.txt"); err != nil || !slices.Equal(got, []fileops.Warning{links, fonts}) {
		t.Errorf("%v, %v; want each warning once", got, err)
	}
	if got, err := warningsOf(t, warner(links), "bad.txt"); err == nil || got != nil {
		t.Errorf("a failed run has warnings %v, %v", got, err)
	}
	// A chain passes the warnings of its steps on.
	spec := warner().Spec()
	spec.Name = "chain"
	if got, err := warningsOf(t, fileops.Chain(spec, fileops.Step{Action: warner(links)}, fileops.Step{Action: warner(fonts, links)}), "a.txt"); err != nil || !slices.Equal(got, []fileops.Warning{links, fonts}) {
		t.Errorf("chain: %v, %v", got, err)
	}
	// What an engine says is limited in number and length.
	var many []fileops.Warning
	for i := range 100 {
		many = append(many, fileops.Warning{Code: "x", Message: fmt.Sprint(i, strings.Repeat("ü", 500))})
	}
	got, err := warningsOf(t, warner(many...), "a.txt")
	if err != nil || len(got) != 20 {
		t.Fatalf("%d warnings, %v; want 20", len(got), err)
	}
	for _, w := range got {
		if len(w.Message) > 300 || !utf8.ValidString(w.Message) {
			t.Fatalf("message of %d bytes: %q", len(w.Message), w.Message)
		}
	}
}

func TestWarningMeanings(t *testing.T) {
	seen := make(map[string]bool)
	for code, meaning := range fileops.WarningMeanings() {
		if seen[code] || strings.Trim(code, "abcdefghijklmnopqrstuvwxyz_") != "" || !strings.HasSuffix(meaning, ".") {
			t.Errorf("%q: %q", code, meaning)
		}
		seen[code] = true
	}
}
