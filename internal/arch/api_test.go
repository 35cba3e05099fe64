package arch_test

import (
	"bytes"
	"flag"
	"go/ast"
	"go/build"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/filewright/filewright/internal/systest"
)

var updateAPI = flag.Bool("update", false, "write api.txt from the code")

// TestExportedAPI compares the exported API of the public packages on Linux with api.txt. So every
// change of the API is a decision:
//
//	go test ./internal/arch -run TestExportedAPI -update
func TestExportedAPI(t *testing.T) {
	t.Parallel()
	got := exportedAPI(t, filepath.Join("..", ".."))
	if *updateAPI {
		systest.NoError(t, os.WriteFile("api.txt", []byte(got), 0o644))
	}
	want := systest.ReadFile(t, "api.txt")
	if got == string(want) {
		return
	}
	was, is := strings.Split(string(want), "\n"), strings.Split(got, "\n")
	for _, line := range was {
		if !slices.Contains(is, line) {
			t.Errorf("- %s", line)
		}
	}
	for _, line := range is {
		if !slices.Contains(was, line) {
			t.Errorf("+ %s", line)
		}
	}
	t.Error("The exported API is not the one in api.txt. If it should change, run this test with -update and commit the file.")
}

// exportedAPI returns the exported declarations of the public packages below root, one on each
// line, sorted.
func exportedAPI(t *testing.T, root string) string {
	host := build.Default
	host.GOOS, host.GOARCH, host.CgoEnabled = "linux", "amd64", true
	var lines []string
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if p != root && (strings.HasPrefix(name, ".") || slices.Contains([]string{"internal", "testdata", "examples", "benchmarks", "cmd", "clients", "bin", "data"}, name)) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		if ok, err := host.MatchFile(filepath.Dir(p), name); err != nil || !ok {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), p, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(p))
		if err != nil {
			return err
		}
		ast.FileExports(file) // keeps exported declarations, fields and methods
		for _, decl := range file.Decls {
			for _, line := range declarations(decl) {
				lines = append(lines, filepath.ToSlash(dir)+": "+line)
			}
		}
		return nil
	})
	systest.NoError(t, err)
	slices.Sort(lines)
	return strings.Join(slices.Compact(lines), "\n") + "\n"
}

// declarations returns the declarations in decl, one for each name.
func declarations(decl ast.Decl) (lines []string) {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Recv != nil && !exportedReceiver(d.Recv.List[0].Type) {
			return nil
		}
		d.Body = nil
		return []string{oneLine(d)}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				lines = append(lines, "type "+oneLine(s))
			case *ast.ValueSpec:
				for _, name := range s.Names {
					line := d.Tok.String() + " " + name.Name
					if s.Type != nil {
						line += " " + oneLine(s.Type)
					}
					lines = append(lines, line)
				}
			}
		}
	}
	return lines
}

// exportedReceiver reports whether a method with this receiver belongs to an exported type.
func exportedReceiver(receiver ast.Expr) bool {
	for {
		switch e := receiver.(type) {
		case *ast.StarExpr:
			receiver = e.X
		case *ast.IndexExpr:
			receiver = e.X
		case *ast.IndexListExpr:
			receiver = e.X
		case *ast.Ident:
			return e.IsExported()
		default:
			return false
		}
	}
}

// oneLine prints a node without its comments and line breaks.
func oneLine(node any) string {
	var b bytes.Buffer
	ast.Inspect(node.(ast.Node), func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			n.Doc = nil
		case *ast.TypeSpec:
			n.Doc, n.Comment = nil, nil
		case *ast.Field:
			n.Doc, n.Comment = nil, nil
		case *ast.StructType:
			n.Incomplete = false // the printer would add a comment
		case *ast.InterfaceType:
			n.Incomplete = false
		}
		return true
	})
	if err := printer.Fprint(&b, token.NewFileSet(), node); err != nil {
		return err.Error()
	}
	return strings.Join(strings.Fields(b.String()), " ")
}
