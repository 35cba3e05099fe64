package arch_test

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/filewright/filewright/internal/systest"
)

// docs/walk.md names only files and functions that exist. A function is in the file that the page
// names behind it.
func TestWalk(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	all := strings.Join(sources(t, root, "cmd", "httpapi", "status", "upload", "fileops", "capability"), "\n")
	page := string(systest.ReadFile(t, filepath.Join(root, "docs", "walk.md")))
	steps := 0
	for _, m := range regexp.MustCompile("`([\\w.]+)`(?:(?: in | \\()`([\\w/]+\\.go)`)?").FindAllStringSubmatch(page, -1) {
		name, file := m[1], m[2]
		receiver, method, isMethod := strings.Cut(name, ".")
		if strings.HasSuffix(name, ".go") || !isMethod && file == "" {
			continue // a file, or a word such as a field
		}
		steps++
		in := all
		if file != "" {
			in = string(systest.ReadFile(t, filepath.Join(root, filepath.FromSlash(file))))
		}
		declared := `func ` + name + `[(\[]|package ` + name + `\b`
		if isMethod {
			declared = `func \((\w+ )?\*?` + receiver + `\) ` + method + `[(\[]|(?s:type ` + receiver + ` interface \{[^}]*\b` + method + `\()|` + method + ` +func\(`
		}
		if !regexp.MustCompile(declared).MatchString(in) {
			t.Errorf("%s is not in %q", name, file)
		}
	}
	if steps < 60 {
		t.Errorf("only %d functions found", steps)
	}
}

// sources returns the content of the files with code below some directories, without tests.
func sources(t *testing.T, root string, dirs ...string) (files []string) {
	t.Helper()
	for _, dir := range dirs {
		systest.NoError(t, filepath.WalkDir(filepath.Join(root, dir), func(p string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(p, ".go") || strings.HasSuffix(p, "_test.go") {
				return err
			}
			files = append(files, string(systest.ReadFile(t, p)))
			return nil
		}))
	}
	return files
}
