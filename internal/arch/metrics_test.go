package arch_test

import (
	"bytes"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/filewright/filewright/internal/systest"
)

// Every metric is in docs/operations.md, and nothing else is. Alerts use existing metrics.
func TestMetricsAreDocumented(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	declared := regexp.MustCompile(`(?:Name: |NewDesc\()"(filewright_[a-z_]+)"`)
	code := make(map[string]bool)
	for _, src := range sources(t, root, "cmd", "httpapi", "status", "upload", "fileops") {
		for _, m := range declared.FindAllStringSubmatch(src, -1) {
			code[m[1]] = true
		}
	}
	page := systest.ReadFile(t, filepath.Join(root, "docs", "operations.md"))
	docs := make(map[string]bool)
	for _, m := range regexp.MustCompile("`(filewright_[a-z_]+)").FindAllSubmatch(page, -1) {
		docs[string(m[1])] = true
	}
	if len(code) < 30 {
		t.Errorf("only %d metrics are found in the code", len(code))
	}
	for _, name := range slices.Sorted(maps.Keys(code)) {
		if !docs[name] {
			t.Errorf("%s is not documented", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(docs)) {
		if !code[name] {
			t.Errorf("%s is documented but not in the code", name)
		}
	}

	// The alerting rules are well-formed, and use existing metrics.
	b := systest.ReadFile(t, filepath.Join(root, "examples", "deploy", "alerts.yaml"))
	var rules struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr, For string
				Annotations      struct{ Summary, Action string }
			}
		}
	}
	dec := yaml.NewDecoder(bytes.NewReader(b))
	dec.KnownFields(true)
	systest.NoError(t, dec.Decode(&rules))
	for _, r := range rules.Groups[0].Rules {
		used := regexp.MustCompile(`filewright_[a-z_]+`).FindAllString(r.Expr, -1)
		if r.Alert == "" || r.Annotations.Summary == "" || r.Annotations.Action == "" || len(used) == 0 {
			t.Errorf("rule %+v is not complete", r)
		}
		for _, name := range used {
			if !code[name] {
				t.Errorf("alert %s uses %s, which is not in the code", r.Alert, name)
			}
		}
	}
}
