package arch_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/filewright/filewright/internal/systest"
)

// The manifests for Kubernetes have only members that Kubernetes knows, fit together and confine their
// pods, and the settings and the metric in them exist.
func TestKubernetes(t *testing.T) {
	t.Parallel()
	dir := filepath.Join("..", "..", "examples", "deploy", "kubernetes")
	program, err := systest.Tool("kubecheck")
	systest.NoError(t, err)
	if out, err := exec.Command(program, dir).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	text := make(map[string]string)
	files, err := os.ReadDir(dir)
	systest.NoError(t, err)
	all := ""
	for _, f := range files {
		text[f.Name()] = string(systest.ReadFile(t, filepath.Join(dir, f.Name())))
		all += text[f.Name()]
	}

	known := string(systest.ReadFile(t, filepath.Join("..", "..", "docs", "configuration.md")))
	for _, m := range regexp.MustCompile(`FILEWRIGHT_[A-Z_]+|--[a-z]+(-[a-z]+)*\b`).FindAllString(all, -1) {
		flag := "--" + strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(m, "FILEWRIGHT_"), "_", "-"))
		if strings.HasPrefix(m, "--") {
			flag = m
		}
		if flag != "--from-literal" && !strings.Contains(known, "`"+flag+"`") && !strings.Contains(known, "`"+flag+" ") {
			t.Errorf("the manifests have %s, but the server has no flag %s", m, flag)
		}
	}
	operations := string(systest.ReadFile(t, filepath.Join("..", "..", "docs", "operations.md")))
	for _, m := range regexp.MustCompile(`filewright_[a-z_]+`).FindAllString(all, -1) {
		if !strings.Contains(operations, "`"+m+"`") {
			t.Errorf("the manifests have the metric %s, which does not exist", m)
		}
	}

	// The checker finds mistakes.
	for name, change := range map[string][3]string{
		"unknown member":   {"api.yaml", "maxSurge: 1", "maxSurges: 1"},
		"root":             {"workers.yaml", "runAsUser: 10001", "runAsUser: 0"},
		"writable root":    {"api.yaml", "readOnlyRootFilesystem: true", "readOnlyRootFilesystem: false"},
		"wrong selector":   {"api.yaml", "selector: {app.kubernetes.io/name: filewright,", "selector: {app.kubernetes.io/name: other,"},
		"wrong target":     {"autoscaling.yaml", "name: filewright-media}", "name: filewright-film}"},
		"wrong port":       {"network.yaml", "port: {name: http}", "port: {name: web}"},
		"floating image":   {"kustomization.yaml", "newTag: v0.1.0", "newTag: latest"},
		"missing config":   {"config.yaml", "kind: ConfigMap\nmetadata:\n  name: filewright", "kind: ConfigMap\nmetadata:\n  name: other"},
		"short grace":      {"workers.yaml", "terminationGracePeriodSeconds: 60", "terminationGracePeriodSeconds: 30"},
		"missing budget":   {"workers.yaml", "kind: PodDisruptionBudget\nmetadata:\n  name: filewright-media\nspec:\n  maxUnavailable: 25%\n  selector:\n    matchLabels: {app.kubernetes.io/name: filewright, app.kubernetes.io/component: media}", "kind: PodDisruptionBudget\nmetadata:\n  name: filewright-media\nspec:\n  selector:\n    matchLabels: {app: other}"},
		"unknown resource": {"network.yaml", "kind: Ingress", "kind: Gateway"},
	} {
		bad := t.TempDir()
		for file, s := range text {
			if file == change[0] {
				if !strings.Contains(s, change[1]) {
					t.Errorf("%s: %s has no %q", name, file, change[1])
				}
				s = strings.Replace(s, change[1], change[2], 1)
			}
			systest.NoError(t, os.WriteFile(filepath.Join(bad, file), []byte(s), 0o600))
		}
		if err := exec.Command(program, bad).Run(); err == nil {
			t.Errorf("%s is not found", name)
		}
	}
}
