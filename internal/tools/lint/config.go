package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

const configName = ".golangci.yml"

// A config is what .golangci.yml says. Settings that this program does not know are an error, so that
// it cannot disagree with golangci-lint without notice.
type config struct {
	Version string
	Run     any
	Issues  any // how many findings golangci-lint shows; this program shows all
	Linters struct {
		Default  string
		Enable   []string
		Settings struct {
			Errcheck struct {
				ExcludeFunctions []string `yaml:"exclude-functions"`
			}
			Staticcheck struct{ Checks []string }
			// These linters do not run here.
			Gocritic, Revive any
		}
		Exclusions struct {
			Presets []string
			Rules   []rule
		}
	}
	root string // the folder of the file
	sum  []byte // a hash of the file
}

// A rule names files, messages or lines of code in which linters report nothing. Fields that are
// empty match everything.
type rule struct {
	Path, Text, Source *regexp.Regexp
	Linters            []string
}

// findConfig reads .golangci.yml from dir or from the closest folder above it.
func findConfig(dir string) (*config, error) {
	for root := dir; ; root = filepath.Dir(root) {
		b, err := os.ReadFile(filepath.Join(root, configName))
		if err == nil {
			return parseConfig(root, b)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if root == filepath.Dir(root) {
			return nil, fmt.Errorf("there is no %s in %s or above", configName, dir)
		}
	}
}

func parseConfig(root string, content []byte) (*config, error) {
	sum := sha256.Sum256(content)
	c := &config{root: root, sum: sum[:]}
	d := yaml.NewDecoder(bytes.NewReader(content))
	d.KnownFields(true)
	err := d.Decode(c)
	if l := c.Linters; err == nil && (c.Version != "2" || l.Default != "none" || !slices.Equal(l.Exclusions.Presets, []string{"std-error-handling"})) {
		err = errors.New(`expected version "2", default: none, and presets: [std-error-handling]`)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(root, configName), err)
	}
	return c, nil
}

// version writes the line by which the go command recognizes a tool. It depends on the program and on
// its configuration: if one of them changes, the go command runs the tool again for each package.
func (c *config) version(w io.Writer) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	f, err := os.Open(program)
	if err != nil {
		return err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s version devel buildID=%x\n", filepath.Base(program), h.Sum(c.sum))
	return err
}

func (c *config) enabled(linter string) bool { return slices.Contains(c.Linters.Enable, linter) }

// runsCheck reports whether a check of staticcheck, such as SA1019, is enabled. The last pattern that
// matches decides.
func (c *config) runsCheck(name string) bool {
	on := false
	for _, pattern := range c.Linters.Settings.Staticcheck.Checks {
		pattern, off := strings.CutPrefix(pattern, "-")
		if ok, _ := path.Match(pattern, name); ok || pattern == "all" {
			on = !off
		}
	}
	return on
}

// excludes reports whether a rule permits what a linter found. file is relative to the root; line is
// the line of code.
func (c *config) excludes(linter, file, message string, line func() string) bool {
	matches := func(r *regexp.Regexp, s string) bool { return r == nil || r.MatchString(s) }
	for _, r := range c.Linters.Exclusions.Rules {
		if (len(r.Linters) == 0 || slices.Contains(r.Linters, linter)) && matches(r.Path, file) &&
			matches(r.Text, message) && (r.Source == nil || r.Source.MatchString(line())) {
			return true
		}
	}
	return false
}
