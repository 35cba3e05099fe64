// Command lint runs the linters of `make test`, for go vet:
//
//	go vet -vettool=$(go tool -n lint) ./...
//
// The go command stores the result for each package in its build cache, so that only changed
// packages and their importers are checked again. The linters and their exceptions are those of
// .golangci.yml that check one package at a time: bodyclose, copyloopvar, errcheck, errorlint,
// ineffassign, misspell, nilerr, rowserrcheck, sqlclosecheck, staticcheck, unconvert, unparam and
// usestdlibvars. `make lint` also runs gocritic, revive and unused, and takes minutes to build.
package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/token"
	"os"
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
	if skipped, err := foreign(os.Args[len(os.Args)-1]); err != nil {
		fmt.Fprintln(os.Stderr, "lint:", err)
		os.Exit(1)
	} else if skipped {
		return
	}
	analyzers := []*analysis.Analyzer{
		under("bodyclose", bodyclose.Analyzer),
		under("copyloopvar", copyloopvar.NewAnalyzer()),
		under("errcheck", unchecked),
		under("errorlint", errorlint.NewAnalyzer()),
		under("ineffassign", ineffassign.Analyzer),
		under("misspell", misspelled),
		under("nilerr", nilerr.Analyzer),
		under("rowserrcheck", rowserr.NewAnalyzer()),
		under("sqlclosecheck", sqlclose.NewDeferOnlyAnalyzer()),
		under("unconvert", converted),
		under("unparam", unusedParameters),
		under("usestdlibvars", stdlibvars.New()),
	}
	for _, a := range slices.Concat(staticcheck.Analyzers, stylecheck.Analyzers, simple.Analyzers, quickfix.Analyzers) {
		if !slices.Contains([]string{"QF1001", "ST1000", "ST1003"}, a.Analyzer.Name) {
			analyzers = append(analyzers, under("staticcheck", a.Analyzer))
		}
	}
	unitchecker.Main(analyzers...)
}

// foreign reports whether config, a file of the go command, asks for facts about a package of
// another module. They are left empty: to derive them for all dependencies takes minutes. So only
// `make lint` reports uses of what another module deprecates.
func foreign(config string) (bool, error) {
	if !strings.HasSuffix(config, ".cfg") {
		return false, nil
	}
	b, err := os.ReadFile(config)
	if err != nil {
		return false, err
	}
	var unit struct {
		ImportPath, VetxOutput string
		VetxOnly               bool
	}
	if err := json.Unmarshal(b, &unit); err != nil {
		return false, err
	}
	host, _, _ := strings.Cut(unit.ImportPath, "/")
	if !unit.VetxOnly || !strings.Contains(host, ".") || unit.ImportPath == module || strings.HasPrefix(unit.ImportPath, module+"/") {
		return false, nil
	}
	return true, os.WriteFile(unit.VetxOutput, nil, 0o666)
}

// An exception is a rule about files in which linters report nothing, as in .golangci.yml.
type exception struct {
	path    *regexp.Regexp // of the file in the module
	linters []string
	text    *regexp.Regexp // of the message; nil for each
}

var exceptions = []exception{
	{regexp.MustCompile(`^(benchmarks|internal/(browsertest|hostile|pgtest|s3test|specimen))/`), []string{"errcheck"}, nil},
	{regexp.MustCompile(`_test\.go$`), []string{"errcheck", "errorlint", "unparam", "bodyclose", "sqlclosecheck", "unconvert", "usestdlibvars"}, nil},
	{regexp.MustCompile(`^upload/blob/blobtest/`), []string{"errorlint"}, nil},
	{regexp.MustCompile(`^httpapi/sqlstore/pool\.go$`), []string{"sqlclosecheck"}, nil},
	{regexp.MustCompile(`^fileops/(archiveops|documentops)/`), []string{"staticcheck"}, regexp.MustCompile(`.*\.(ModifiedDate|ModifiedTime|CompressedSize) is deprecated`)},
	{regexp.MustCompile(`space_unix\.go$`), []string{"unconvert"}, nil},
	{regexp.MustCompile(`_test\.go$`), []string{"misspell"}, regexp.MustCompile(`: .*Tj`)}, // text of test documents
}

// under changes an analyzer to report by the name of a linter, and not where an exception or a
// comment such as //nolint:errcheck permits it.
func under(linter string, a *analysis.Analyzer) *analysis.Analyzer {
	run := a.Run
	a.Run = func(pass *analysis.Pass) (any, error) {
		own := *pass
		own.Report = func(d analysis.Diagnostic) {
			if !permitted(pass, linter, d) {
				d.Message = linter + ": " + d.Message
				pass.Report(d)
			}
		}
		return run(&own)
	}
	return a
}

func permitted(pass *analysis.Pass, linter string, d analysis.Diagnostic) bool {
	at := pass.Fset.Position(d.Pos)
	file := pass.Fset.File(d.Pos)
	if file == nil || strings.Contains(at.Filename, "/go-build") || !strings.HasSuffix(at.Filename, ".go") {
		return true // written by the go command
	}
	path, _, _ := strings.Cut(pass.Pkg.Path(), " ")
	path = strings.TrimPrefix(strings.TrimSuffix(path, "_test"), module)
	name := strings.TrimPrefix(path+at.Filename[strings.LastIndexByte(at.Filename, '/'):], "/")
	for _, e := range exceptions {
		if slices.Contains(e.linters, linter) && e.path.MatchString(name) && (e.text == nil || e.text.MatchString(d.Message)) {
			return true
		}
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

// unit is the package of a pass, for checkers that take packages.
func unit(pass *analysis.Pass) *packages.Package {
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

// Functions whose errors callers have no use for, as in .golangci.yml.
var errorsWithoutUse = []string{
	"(io.Closer).Close",
	"(*os.File).Close",
	"(net.Conn).Close",
	"io.Copy",
	"fmt.Fprint",
	"fmt.Fprintf",
	"fmt.Fprintln",
	"(net/http.ResponseWriter).Write",
	"os.Remove",
	"os.RemoveAll",
	"(*net/http.ResponseController).SetReadDeadline",
	"(*net/http.ResponseController).SetWriteDeadline",
	"(*bufio.Writer).Write",
	"(*bufio.Writer).WriteByte",
	"(*bufio.Writer).WriteRune",
	"(*bufio.Writer).WriteString",
}

// The names that golangci-lint excludes with its preset std-error-handling.
var usuallyIgnored = regexp.MustCompile(`(?i)^((os\.)?std(out|err)\..*|.*Close|.*Flush|os\.Remove(All)?|.*print(f|ln)?|os\.(Un)?Setenv)$`)

var unchecked = &analysis.Analyzer{
	Name: "errcheck", Doc: "reports errors that are not checked",
	Run: func(pass *analysis.Pass) (any, error) {
		checker := errcheck.Checker{Exclusions: errcheck.Exclusions{
			BlankAssignments: true, TypeAssertions: true,
			Symbols: slices.Concat(errcheck.DefaultExcludedSymbols, errorsWithoutUse),
		}}
		for _, e := range checker.CheckPackage(unit(pass)).Unique().UncheckedErrors {
			name := e.SelectorName
			if name == "" {
				name = e.FuncName
			}
			if !usuallyIgnored.MatchString(name) {
				pass.Reportf(position(pass, e.Pos), "the error of %s is not checked", name)
			}
		}
		return nil, nil
	},
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
		c.Packages([]*packages.Package{unit(pass)})
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
					pass.Reportf(file.LineStart(d.Line)+token.Pos(d.Column), "%q is a misspelling of %q: %s", d.Original, d.Corrected, strings.TrimSpace(d.FullLine))
				}
			}
		}
		return nil, nil
	},
}
