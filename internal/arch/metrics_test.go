package arch_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/filewright/filewright/internal/systest"
)

// declaredMetrics returns the names of the metrics in the code.
func declaredMetrics(t *testing.T, root string) map[string]bool {
	t.Helper()
	declared := regexp.MustCompile(`(?:Name: |NewDesc\()"(filewright_[a-z_]+)"`)
	code := make(map[string]bool)
	for _, src := range sources(t, root, "cmd", "httpapi", "status", "upload", "fileops") {
		for _, m := range declared.FindAllStringSubmatch(src, -1) {
			code[m[1]] = true
		}
	}
	return code
}

// Every metric is in docs/operations.md, and nothing else is.
func TestMetricsAreDocumented(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	code := declaredMetrics(t, root)
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

	// The alerting rules are well-formed, and use existing metrics. Each has a section in the runbook.
	b := systest.ReadFile(t, filepath.Join(root, "examples", "deploy", "alerts.yaml"))
	var rules struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr, For string
				Labels           struct{ Severity string }
				Annotations      struct {
					Summary, Action string
					Runbook         string `yaml:"runbook_url"`
				}
			}
		}
	}
	dec := yaml.NewDecoder(bytes.NewReader(b))
	dec.KnownFields(true)
	systest.NoError(t, dec.Decode(&rules))
	runbook := string(systest.ReadFile(t, filepath.Join(root, "docs", "runbook.md")))
	for _, r := range rules.Groups[0].Rules {
		if r.Alert == "" || r.Annotations.Summary == "" || r.Annotations.Action == "" {
			t.Errorf("rule %+v is not complete", r)
		}
		checkExpr(t, "alert "+r.Alert, r.Expr, code)
		if !strings.Contains(runbook, "\n## "+r.Alert+"\n\n*"+r.Labels.Severity+".* ") || !strings.HasSuffix(r.Annotations.Runbook, "/docs/runbook.md#"+strings.ToLower(r.Alert)) {
			t.Errorf("alert %s of severity %q has no section in docs/runbook.md, or does not link to it", r.Alert, r.Labels.Severity)
		}
	}
	if n := strings.Count(runbook, "\n## "); n != len(rules.Groups[0].Rules) {
		t.Errorf("the runbook has %d sections for %d alerts", n, len(rules.Groups[0].Rules))
	}
}

// checkExpr checks that a query uses metrics, and only those in the code.
func checkExpr(t *testing.T, what, expr string, code map[string]bool) {
	t.Helper()
	used := regexp.MustCompile(`filewright_[a-z_]+`).FindAllString(expr, -1)
	if len(used) == 0 && !strings.HasPrefix(expr, "up{") {
		t.Errorf("%s uses no metric: %s", what, expr)
	}
	for _, name := range used {
		base := name
		for _, suffix := range []string{"_bucket", "_count", "_sum"} { // of histograms
			base = strings.TrimSuffix(base, suffix)
		}
		if !code[name] && !code[base] {
			t.Errorf("%s uses %s, which is not in the code", what, name)
		}
	}
}

// promtool, which comes with Prometheus, accepts the alerting rules and runs their tests. It also parses
// the queries of the dashboard for Grafana, whose panels have distinct IDs and do not overlap.
func TestRulesAndDashboard(t *testing.T) {
	t.Parallel()
	deploy := filepath.Join("..", "..", "examples", "deploy")
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		promtool, err = filepath.Abs(filepath.Join("..", "..", ".tools", "usr", "bin", "promtool"))
		systest.NoError(t, err)
	}
	run := func(args ...string) {
		t.Helper()
		if out, err := exec.Command(promtool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
	}
	run("check", "rules", filepath.Join(deploy, "alerts.yaml"))
	run("test", "rules", filepath.Join(deploy, "alerts_test.yaml"))

	var dashboard struct {
		Panels []struct {
			ID      int
			Type    string
			Title   string
			GridPos struct{ H, W, X, Y int }
			Targets []struct{ Expr string }
		}
	}
	systest.NoError(t, json.Unmarshal(systest.ReadFile(t, filepath.Join(deploy, "grafana.json")), &dashboard))
	type rule struct {
		Record string `yaml:"record"`
		Expr   string `yaml:"expr"`
	}
	var rules []rule
	code := declaredMetrics(t, filepath.Join("..", ".."))
	shown := make(map[string]bool)
	ids, cells := make(map[int]bool), make(map[[2]int]string)
	for _, p := range dashboard.Panels {
		if ids[p.ID] || p.Title == "" {
			t.Errorf("panel %d %q: its ID is not its own, or it has no title", p.ID, p.Title)
		}
		ids[p.ID] = true
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				cell := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if other := cells[cell]; other != "" || cell[0] >= 24 {
					t.Errorf("panel %q overlaps %q or is outside", p.Title, other)
				}
				cells[cell] = p.Title
			}
		}
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("panel %q shows nothing", p.Title)
		}
		for _, target := range p.Targets {
			checkExpr(t, "panel "+p.Title, target.Expr, code)
			expr := strings.NewReplacer("$__rate_interval", "5m", "$instance", ".*").Replace(target.Expr)
			rules = append(rules, rule{fmt.Sprintf("panel_%d_%d", p.ID, len(rules)), expr})
			for _, name := range regexp.MustCompile(`filewright_[a-z_]+`).FindAllString(target.Expr, -1) {
				shown[name] = true
			}
		}
	}
	if len(shown) < 20 {
		t.Errorf("the dashboard shows only %d metrics", len(shown))
	}
	b, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "dashboard", "rules": rules}}})
	systest.NoError(t, err)
	path := filepath.Join(t.TempDir(), "dashboard.yaml")
	systest.NoError(t, os.WriteFile(path, b, 0o600))
	run("check", "rules", path)
}
