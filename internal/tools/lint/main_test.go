package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestMain lets the test program be the tool that go vet starts.
func TestMain(m *testing.M) {
	if os.Getenv("LINT_TOOL") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

const (
	testConfig = `version: "2"
linters:
  default: none
  enable: [ineffassign, unconvert, staticcheck, errcheck, govet]
  settings:
    errcheck:
      exclude-functions: []
    staticcheck:
      checks: [all, -ST1000, -ST1016]
  exclusions:
    presets: [std-error-handling]
    rules: []
`
	testCode = `package p

type T struct{}

func (a T) One() int { return 1 }
func (b T) Two() int { return int(b.One()) } // ok

func (T) fail() error { return nil }

func Three() (x int) {
	y := 0
	y = 1
	T{}.fail()
	return
}
`
)

// TestOwnConfig reads the file of this repository, which golangci-lint reads too.
func TestOwnConfig(t *testing.T) {
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	c, err := findConfig(dir)
	if err != nil {
		t.Fatal(err)
	}
	if !c.enabled("staticcheck") || !c.runsCheck("SA1019") {
		t.Errorf("the linters of %s are %q, with staticcheck %q", configName, c.Linters.Enable, c.Linters.Settings.Staticcheck.Checks)
	}
}

// TestConfig changes .golangci.yml and checks what go vet reports then, although neither the code nor
// the tool has changed.
func TestConfig(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module example.com/m\n\ngo 1.26\n")
	write("in/p/p.go", strings.ReplaceAll(testCode, "\ty := 0\n", "\ty := 0\n\t_ = y\n"))
	tool, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)p\.go:(\d+):\d+: (\w+(?:: [SQ][A-Z]+\d+)?)`)
	vet := func(config string) (reports, output string) {
		t.Helper()
		write(".golangci.yml", config)
		cmd := exec.Command("go", "vet", "-vettool="+tool, "./p")
		cmd.Dir = filepath.Join(dir, "in")
		cmd.Env = append(os.Environ(), "LINT_TOOL=1", "GOFLAGS=", "GOWORK=off")
		out, err := cmd.CombinedOutput()
		for _, m := range found.FindAllStringSubmatch(string(out), -1) {
			reports += m[1] + " " + m[2] + "\n"
		}
		if (err != nil) != (len(out) > 0) {
			t.Errorf("go vet ends with %v and writes %q", err, out)
		}
		return reports, string(out)
	}
	const unused, checked, conversion = "13 ineffassign\n", "14 errcheck\n", "6 unconvert\n"
	for _, c := range []struct{ name, old, new, want string }{
		{"as it is", "", "", conversion + checked + unused},
		{"linter disabled", "unconvert, ", "", checked + unused},
		{"check enabled", ", -ST1016", "", conversion + checked + unused + "5 staticcheck: ST1016\n"},
		{"checks enabled by pattern", "all, -ST1000, -ST1016", "'ST*', -ST1000", conversion + checked + unused + "5 staticcheck: ST1016\n"},
		{"function excluded", "exclude-functions: []", "exclude-functions: [(example.com/m/in/p.T).fail]", conversion + unused},
		{"rule for the file", "rules: []", "rules: [{path: ^in/p/p\\.go$, linters: [unconvert, errcheck]}]", unused},
		{"rule for another file", "rules: []", "rules: [{path: ^p/, linters: [unconvert, errcheck]}]", conversion + checked + unused},
		{"rule for all linters", "rules: []", "rules: [{path: p\\.go}]", ""},
		{"rule for a message", "rules: []", "rules: [{linters: [unconvert, errcheck], text: ^unnecessary}]", checked + unused},
		{"rule for the code", "rules: []", "rules: [{linters: [unconvert, errcheck], source: ok$}]", checked + unused},
		{"as it was", "", "", conversion + checked + unused},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, output := vet(strings.Replace(testConfig, c.old, c.new, 1))
			for _, line := range strings.SplitAfter(c.want, "\n") {
				if !strings.Contains(got, line) {
					t.Errorf("not reported: %s", line)
				}
			}
			if len(got) != len(c.want) {
				t.Errorf("go vet reports %q\n%s", got, output)
			}
		})
	}
	for name, config := range map[string]string{
		"field settings not found":  strings.Replace(testConfig, "linters:", "settings: {}\nlinters:", 1),
		"field unparam not found":   strings.Replace(testConfig, "    errcheck:", "    unparam: {}\n    errcheck:", 1),
		"presets: [std-error":       strings.Replace(testConfig, "[std-error-handling]", "[comments]", 1),
		"error parsing regexp":      strings.Replace(testConfig, "rules: []", "rules: [{path: '('}]", 1),
		`expected version "2"`:      "linters: {}",
		"there is no .golangci.yml": "",
	} {
		if _, output := vet(config); name != "there is no .golangci.yml" && !strings.Contains(output, name) {
			t.Errorf("for a wrong configuration go vet writes %q, not %q", output, name)
		}
	}
}
