// Command lint runs the linters of `make test`, for go vet:
//
//	go vet -vettool=$(go tool -n lint) ./...
//
// The go command stores the result for each package in its build cache, so that only changed
// packages and their importers are checked again. .golangci.yml, in the working directory or above
// it, says which linters run and what they must not report. Of those linters, this program has the ones
// that check one package at a time: bodyclose, copyloopvar, errcheck, errorlint, ineffassign, misspell,
// nilerr, rowserrcheck, sqlclosecheck, staticcheck, unconvert, unparam and usestdlibvars. `make lint`
// also runs gocritic, revive and unused, and takes minutes to build.
package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"codeberg.org/polyfloyd/go-errorlint/errorlint"
	"github.com/golangci/misspell"
	"github.com/golangci/rowserrcheck/passes/rowserr"
	"github.com/golangci/unconvert"
	"github.com/gordonklaus/ineffassign/pkg/ineffassign"
	"github.com/gostaticanalysis/nilerr"
	"github.com/karamaru-alpha/copyloopvar"
	"github.com/kisielk/errcheck/errcheck"
	sqlclose "github.com/ryanrolds/sqlclosecheck/pkg/analyzer"
	stdlibvars "github.com/sashamelentyev/usestdlibvars/pkg/analyzer"
	"github.com/timakin/bodyclose/passes/bodyclose"
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/buildssa"
	"golang.org/x/tools/go/analysis/unitchecker"
	"golang.org/x/tools/go/packages"
	"honnef.co/go/tools/quickfix"
	"honnef.co/go/tools/simple"
	"honnef.co/go/tools/staticcheck"
	"honnef.co/go/tools/stylecheck"
	"mvdan.cc/unparam/check"
)

const module = "github.com/filewright/filewright"

func main() {
	if err := run(os.Args[len(os.Args)-1]); err != nil {
		fmt.Fprintln(os.Stderr, "lint:", err)
		os.Exit(1)
	}
}

// run serves one call of the go command, whose last argument is arg: -V=full, -flags, or a file that
// describes a package. The go command calls with the folder of the package as the working directory.
func run(arg string) error {
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	var u unit
	if strings.HasSuffix(arg, ".cfg") {
		if u, err = readUnit(arg); err != nil {
			return err
		}
		if u.foreign() {
			return os.WriteFile(u.VetxOutput, nil, 0o666)
		}
	}
	l := linters{dir: dir, config: &config{}, factsOnly: u.VetxOnly}
	if !l.factsOnly && arg != "-flags" {
		if l.config, err = findConfig(dir); err != nil {
			return err
		}
	}
	if arg == "-V=full" {
		return l.config.version(os.Stdout)
	}
	unitchecker.Main(l.analyzers()...)
	return nil
}

// linters are the linters for the package in dir.
type linters struct {
	dir       string
	config    *config // empty with factsOnly: the package can be one of the standard library
	factsOnly bool    // report nothing
}

// analyzers returns all analyzers. Those of disabled linters do nothing.
func (l linters) analyzers() []*analysis.Analyzer {
	all := []*analysis.Analyzer{
		l.under("bodyclose", bodyclose.Analyzer),
		l.under("copyloopvar", copyloopvar.NewAnalyzer()),
		l.under("errcheck", unchecked(l.config.Linters.Settings.Errcheck.ExcludeFunctions)),
		l.under("errorlint", errorlint.NewAnalyzer()),
		l.under("ineffassign", ineffassign.Analyzer),
		l.under("misspell", misspelled),
		l.under("nilerr", nilerr.Analyzer),
		l.under("rowserrcheck", rowserr.NewAnalyzer()),
		l.under("sqlclosecheck", sqlclose.NewDeferOnlyAnalyzer()),
		l.under("unconvert", converted),
		l.under("unparam", unusedParameters),
		l.under("usestdlibvars", stdlibvars.New()),
	}
	for _, a := range slices.Concat(staticcheck.Analyzers, stylecheck.Analyzers, simple.Analyzers, quickfix.Analyzers) {
		all = append(all, l.under("staticcheck", a.Analyzer))
	}
	return all
}

// A unit is a package in the description of the go command.
type unit struct {
	ImportPath, VetxOutput string
	VetxOnly               bool // not to check, only to derive facts for its importers
}

func readUnit(file string) (u unit, err error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return u, err
	}
	return u, json.Unmarshal(b, &u)
}

// foreign reports whether the go command asks for facts about a package of another module. They are
// left empty: to derive them for all dependencies takes minutes. So only `make lint` reports uses of
// what another module deprecates.
func (u unit) foreign() bool {
	host, _, _ := strings.Cut(u.ImportPath, "/")
	return u.VetxOnly && strings.Contains(host, ".") && u.ImportPath != module && !strings.HasPrefix(u.ImportPath, module+"/")
}

// under changes an analyzer to report by the name of a linter, and not where the configuration or a
// comment such as //nolint:errcheck permits it.
func (l linters) under(linter string, a *analysis.Analyzer) *analysis.Analyzer {
	run := a.Run
	a.Run = func(pass *analysis.Pass) (any, error) {
		if l.factsOnly {
			return run(pass)
		}
		if !l.config.enabled(linter) || linter == "staticcheck" && !l.config.runsCheck(a.Name) {
			return nil, nil
		}
		own := *pass
		own.Report = func(d analysis.Diagnostic) {
			if linter == "staticcheck" {
				d.Message = a.Name + ": " + d.Message
			}
			if !l.permitted(pass, linter, d) {
				d.Message = linter + ": " + d.Message
				pass.Report(d)
			}
		}
		return run(&own)
	}
	return a
}

func (l linters) permitted(pass *analysis.Pass, linter string, d analysis.Diagnostic) bool {
	at := pass.Fset.Position(d.Pos)
	file := pass.Fset.File(d.Pos)
	if file == nil || strings.Contains(at.Filename, "/go-build") || !strings.HasSuffix(at.Filename, ".go") {
		return true // written by the go command
	}
	name, err := filepath.Rel(l.config.root, filepath.Join(l.dir, filepath.Base(at.Filename)))
	if err != nil {
		return false
	}
	line := func() string { return lineOf(pass, at) }
	if l.config.excludes(linter, filepath.ToSlash(name), d.Message, line) {
		return true
	}
	for _, f := range pass.Files {
		if f.FileStart > d.Pos || d.Pos > f.FileEnd {
			continue
		}
		if ast.IsGenerated(f) {
			return true
		}
		for _, g := range f.Comments {
			for _, c := range g.List {
				names, ok := strings.CutPrefix(c.Text, "//nolint:")
				names, _, _ = strings.Cut(names, " ")
				if ok && file.Line(c.Pos()) == at.Line && slices.Contains(strings.Split(names, ","), linter) {
					return true
				}
			}
		}
	}
	return false
}

// lineOf returns a line of code, or "" if its file cannot be read.
func lineOf(pass *analysis.Pass, at token.Position) string {
	b, err := pass.ReadFile(at.Filename)
	if lines := strings.Split(string(b), "\n"); err == nil && at.Line <= len(lines) {
		return lines[at.Line-1]
	}
	return ""
}

// loaded is the package of a pass, for checkers that take packages.
func loaded(pass *analysis.Pass) *packages.Package {
	return &packages.Package{Fset: pass.Fset, Syntax: pass.Files, Types: pass.Pkg, TypesInfo: pass.TypesInfo}
}

// position finds the place of a position in the files of a pass.
func position(pass *analysis.Pass, p token.Position) token.Pos {
	for _, f := range pass.Files {
		if file := pass.Fset.File(f.FileStart); file != nil && pass.Fset.Position(f.FileStart).Filename == p.Filename && p.Line <= file.LineCount() {
			return file.LineStart(p.Line) + token.Pos(p.Column-1)
		}
	}
	return token.NoPos
}

// The names that golangci-lint excludes with its preset std-error-handling.
var usuallyIgnored = regexp.MustCompile(`(?i)^((os\.)?std(out|err)\..*|.*Close|.*Flush|os\.Remove(All)?|.*print(f|ln)?|os\.(Un)?Setenv)$`)

// unchecked returns errcheck, which does not report calls of the functions in exclude.
func unchecked(exclude []string) *analysis.Analyzer {
	return &analysis.Analyzer{
		Name: "errcheck", Doc: "reports errors that are not checked",
		Run: func(pass *analysis.Pass) (any, error) {
			checker := errcheck.Checker{Exclusions: errcheck.Exclusions{
				BlankAssignments: true, TypeAssertions: true,
				Symbols: slices.Concat(errcheck.DefaultExcludedSymbols, exclude),
			}}
			for _, e := range checker.CheckPackage(loaded(pass)).Unique().UncheckedErrors {
				name := e.SelectorName
				if name == "" {
					name = e.FuncName
				}
				if !usuallyIgnored.MatchString(name) {
					pass.Reportf(position(pass, e.Pos), "the error of %s is not checked", cmp.Or(name, "the function"))
				}
			}
			return nil, nil
		},
	}
}

var converted = &analysis.Analyzer{
	Name: "unconvert", Doc: "reports conversions to the type that a value has",
	Run: func(pass *analysis.Pass) (any, error) {
		for _, p := range unconvert.Run(pass) {
			pass.Reportf(position(pass, p), "unnecessary conversion")
		}
		return nil, nil
	},
}

var unusedParameters = &analysis.Analyzer{
	Name: "unparam", Doc: "reports parameters and results without use",
	Requires: []*analysis.Analyzer{buildssa.Analyzer},
	Run: func(pass *analysis.Pass) (any, error) {
		var c check.Checker
		c.Packages([]*packages.Package{loaded(pass)})
		c.ProgramSSA(pass.ResultOf[buildssa.Analyzer].(*buildssa.SSA).Pkg.Prog)
		issues, err := c.Check()
		for _, i := range issues {
			pass.Reportf(i.Pos(), "%s", i.Message())
		}
		return nil, err
	},
}

var misspelled = &analysis.Analyzer{
	Name: "misspell", Doc: "reports misspelled English words",
	Run: func(pass *analysis.Pass) (any, error) {
		words := misspell.Replacer{Replacements: misspell.DictMain}
		words.Compile()
		for _, f := range pass.Files {
			file := pass.Fset.File(f.FileStart)
			content, err := pass.ReadFile(file.Name())
			if err != nil {
				return nil, err
			}
			_, found := words.Replace(string(content))
			for _, d := range found {
				if d.Line <= file.LineCount() {
					pass.Reportf(file.LineStart(d.Line)+token.Pos(d.Column), "%q is a misspelling of %q", d.Original, d.Corrected)
				}
			}
		}
		return nil, nil
	},
}
