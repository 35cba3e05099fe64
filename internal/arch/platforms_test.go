package arch_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/filewright/filewright/internal/systest"
)

// TestPlatforms type-checks all packages and their tests without cgo, for each platform that a
// release or an embedder builds for. It reads declarations of other modules from source and
// compiles nothing: SQLite alone takes minutes to compile for each platform. The continuous
// integration on GitHub builds them.
func TestPlatforms(t *testing.T) {
	t.Parallel()
	systest.NoError(t, systest.DependOn("../../..."))
	all := &sourceFiles{set: token.NewFileSet()}
	for _, platform := range []string{"linux/amd64", "linux/arm64", "darwin/arm64", "windows/amd64"} {
		t.Run(platform, func(t *testing.T) {
			t.Parallel()
			for _, err := range typeCheck(t, platform, all) {
				t.Error(err)
			}
		})
	}
}

// sourceFiles are parsed files, which the platforms share.
type sourceFiles struct {
	set   *token.FileSet
	files sync.Map // *ast.File by path
}

// parse returns a parsed file. If only declarations matter, it leaves out function bodies and the
// elements of tables.
func (s *sourceFiles) parse(path string, declarations bool) (*ast.File, error) {
	if f, ok := s.files.Load(path); ok {
		return f.(*ast.File), nil
	}
	f, err := parser.ParseFile(s.set, path, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	if declarations {
		for _, d := range f.Decls {
			lighten(d)
		}
	}
	shared, _ := s.files.LoadOrStore(path, f)
	return shared.(*ast.File), nil
}

// lighten removes what does not affect the types of declared names.
func lighten(d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		d.Body = nil
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			v, ok := spec.(*ast.ValueSpec)
			if !ok || d.Tok != token.VAR {
				continue
			}
			for _, value := range v.Values {
				if address, ok := value.(*ast.UnaryExpr); ok {
					value = address.X
				}
				if table, ok := value.(*ast.CompositeLit); ok && !countsElements(table) {
					table.Elts = nil
				}
			}
		}
	}
}

// countsElements reports whether the type of a literal is an array as long as the literal.
func countsElements(table *ast.CompositeLit) bool {
	array, ok := table.Type.(*ast.ArrayType)
	if !ok {
		return false
	}
	_, counts := array.Len.(*ast.Ellipsis)
	return counts
}

// typeCheck returns the type errors of this module's packages on platform, a GOOS and a GOARCH.
func typeCheck(t *testing.T, platform string, all *sourceFiles) []error {
	t.Helper()
	system, processor, _ := strings.Cut(platform, "/")
	list := exec.Command("go", "list", "-deps", "-test", "-json=ImportPath,Dir,GoFiles,ImportMap,Standard,Module", "./...")
	list.Dir = filepath.Join("..", "..")
	list.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+processor)
	var stderr bytes.Buffer
	list.Stderr = &stderr
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v: %s", err, stderr.Bytes())
	}

	var found []error
	packages := importer{"unsafe": types.Unsafe}
	own := 0
	checked := make(map[string]bool) // lists of files whose functions were checked
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath, Dir string
			GoFiles         []string
			ImportMap       map[string]string
			Standard        bool
			Module          *struct{ Main bool }
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if p.ImportPath == "unsafe" || strings.HasSuffix(p.ImportPath, ".test") {
			continue
		}
		ours := p.Module != nil && p.Module.Main
		var files []*ast.File
		for _, name := range p.GoFiles {
			f, err := all.parse(filepath.Join(p.Dir, name), !ours)
			systest.NoError(t, err)
			files = append(files, f)
		}
		// Packages between a test and its package are listed again, for this test.
		functions := fmt.Sprint(p.Dir, p.GoFiles)
		config := types.Config{
			Importer:         mapped{packages, p.ImportMap},
			Sizes:            types.SizesFor("gc", processor),
			IgnoreFuncBodies: !ours || checked[functions],
			Error: func(err error) {
				if ours {
					found = append(found, err)
				}
			},
		}
		path, _, _ := strings.Cut(p.ImportPath, " ") // "p [p.test]" is p compiled for its test
		packages[p.ImportPath], _ = config.Check(path, all.set, files, nil)
		checked[functions] = true
		if ours {
			own++
		}
	}
	if own < 50 {
		t.Errorf("only %d packages", own)
	}
	return found
}

// An importer holds checked packages by the path that go list gives them.
type importer map[string]*types.Package

// A mapped importer is the view of one package: its imports may have other paths, such as
// vendored ones.
type mapped struct {
	packages importer
	paths    map[string]string
}

func (m mapped) Import(path string) (*types.Package, error) {
	if to, ok := m.paths[path]; ok {
		path = to
	}
	if p := m.packages[path]; p != nil {
		return p, nil
	}
	return nil, errors.New("not listed: " + path)
}
