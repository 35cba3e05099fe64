// Package arch has only tests. They check the imports between packages: every permitted import is
// in arrows. docs/design.md gives the reasons.
package arch_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/filewright/filewright/internal/systest"
)

const module = "github.com/filewright/filewright"

// arrows lists the packages of this module that each package may import outside its tests. A
// package that is not listed may import none.
var arrows = map[string][]string{
	// core
	"fileops/format":                  {"internal/compound"},
	"internal/worktime":               {},
	"fileops/engine":                  {"trace", "fileops/engine/internal/confine", "internal/worktime"},
	"fileops/engine/internal/confine": {},
	"fileops":                         {"fileops/format"},
	"fileops/isolate":                 {"trace", "fileops", "fileops/format", "fileops/engine", "internal/worktime"},
	"fileops/raster":                  {"fileops/format"},
	"internal/imagefile":              {"fileops/raster", "internal/xmp"},
	"internal/xmp":                    {},
	"internal/jpegenc":                {"fileops/raster"},
	"internal/ssimulacra":             {"fileops/raster"},
	"internal/charset":                {"fileops"},
	"internal/route":                  {"fileops/format"},
	"internal/pagelist":               {"fileops"},
	"internal/likeness":               {},
	"internal/compound":               {},
	"internal/ooxml":                  {},
	"internal/officetext":             {"fileops/format", "internal/charset", "internal/compound", "internal/rtf"},
	"internal/texmath":                {},
	"internal/odfcrypt":               {"fileops", "internal/safezip"},
	"internal/safezip":                {"fileops"},
	"internal/pdfpack":                {"internal/plainpdf"},
	"internal/plainpdf":               {},
	"internal/textlayer":              {"internal/plainpdf"},
	"internal/report":                 {"fileops", "fileops/format"},
	"internal/delimited":              {"fileops"},
	"internal/language":               {},
	"internal/colour":                 {"fileops"},

	// engines: independent of each other
	"fileops/pdfops": {"fileops", "fileops/format", "fileops/engine", "fileops/raster", "internal/imagefile",
		"fileops/pdfops/internal/pdf", "fileops/pdfops/internal/compress", "fileops/pdfops/internal/appearance",
		"fileops/pdfops/internal/excerpt", "fileops/pdfops/internal/typeset", "fileops/pdfops/internal/fields", "internal/pagelist", "internal/report", "internal/xmp", "fileops/pdfops/internal/pdfa"},
	"fileops/pdfops/internal/pdfa":       {"fileops/pdfops/internal/pdf", "internal/xmp"},
	"fileops/pdfops/internal/typeset":    {"fileops/pdfops/internal/pdf", "fileops/pdfops/internal/fontfile"},
	"fileops/pdfops/internal/excerpt":    {"fileops/pdfops/internal/pdf"},
	"fileops/pdfops/internal/appearance": {"fileops/pdfops/internal/pdf", "fileops/pdfops/internal/fontfile", "fileops/pdfops/internal/typeset"},
	"fileops/pdfops/internal/fields":     {"fileops/pdfops/internal/pdf"},
	"fileops/pdfops/internal/pdf":        {},
	"fileops/pdfops/internal/compress": {"fileops", "fileops/raster", "internal/imagefile", "internal/worktime",
		"fileops/pdfops/internal/pdf", "fileops/pdfops/internal/fontfile", "fileops/pdfops/internal/bilevel"},
	"fileops/pdfops/internal/fontfile": {},
	"fileops/pdfops/internal/bilevel":  {},
	"fileops/imageops":                 {"fileops", "fileops/engine", "fileops/format", "internal/colour", "internal/pagelist", "fileops/raster", "internal/imagefile", "internal/jpegenc", "internal/ssimulacra", "internal/report"},
	"fileops/pdfread": {"fileops", "fileops/format", "fileops/raster", "internal/imagefile", "internal/likeness", "internal/pagelist", "fileops/pdfread/internal/pdfium",
		"fileops/pdfread/internal/extract", "fileops/pdfread/internal/geom", "fileops/pdfread/internal/model", "fileops/pdfread/internal/layout",
		"fileops/pdfread/internal/flow", "fileops/pdfread/internal/docx", "fileops/pdfread/internal/pptx", "fileops/pdfread/internal/html", "fileops/pdfread/internal/markdown",
		"fileops/pdfread/internal/text", "fileops/pdfread/internal/tables"},
	"fileops/pdfread/internal/geom":   {},
	"fileops/pdfread/internal/pdfium": {"fileops", "internal/worktime", "fileops/pdfread/internal/geom"},
	"fileops/pdfread/internal/model":  {"fileops/pdfread/internal/geom"},
	"fileops/pdfread/internal/extract": {"fileops/pdfread/internal/pdfium", "fileops/pdfread/internal/geom", "fileops/pdfread/internal/model",
		"fileops/pdfread/internal/layout", "internal/imagefile"},
	"fileops/pdfread/internal/layout":   {"fileops/pdfread/internal/geom", "fileops/pdfread/internal/model"},
	"fileops/pdfread/internal/flow":     {"fileops/pdfread/internal/model"},
	"fileops/pdfread/internal/pptx":     {"internal/ooxml", "fileops/pdfread/internal/geom", "fileops/pdfread/internal/model"},
	"fileops/pdfread/internal/docx":     {"internal/ooxml", "fileops/pdfread/internal/geom", "fileops/pdfread/internal/model", "fileops/pdfread/internal/layout"},
	"fileops/pdfread/internal/html":     {"fileops/format", "internal/ooxml", "fileops/pdfread/internal/model", "fileops/pdfread/internal/flow"},
	"fileops/pdfread/internal/markdown": {"fileops/format", "fileops/pdfread/internal/model", "fileops/pdfread/internal/flow"},
	"fileops/pdfread/internal/text":     {"fileops/pdfread/internal/model"},
	"fileops/pdfread/internal/tables":   {"fileops", "internal/ooxml", "fileops/pdfread/internal/model", "fileops/pdfread/internal/flow"},
	"fileops/mediaops":                  {"fileops", "fileops/format", "fileops/engine", "internal/charset", "internal/colour", "internal/report", "internal/imagefile"},
	"fileops/officeops":                 {"fileops", "fileops/format", "fileops/engine", "internal/worktime", "internal/charset", "internal/compound", "internal/delimited", "internal/odfcrypt", "internal/officetext", "internal/pagelist", "internal/pdfpack", "internal/route", "internal/safezip", "internal/textlayer"},
	"fileops/mailops":                   {"fileops", "fileops/format", "internal/charset", "internal/compound", "internal/report", "internal/rtf"},
	"fileops/bookops":                   {"fileops", "fileops/format", "fileops/engine", "internal/safezip"},
	"fileops/documentops":               {"fileops", "fileops/format", "fileops/raster", "internal/compound", "internal/imagefile", "internal/safezip", "internal/report"},
	"fileops/ocrops":                    {"fileops", "fileops/format", "fileops/engine"},
	"fileops/webops":                    {"fileops", "fileops/format", "fileops/engine", "internal/worktime", "internal/charset", "internal/delimited", "internal/pagelist", "internal/pdfpack", "internal/texmath"},
	"fileops/archiveops":                {"fileops", "fileops/format", "internal/charset", "internal/safezip", "internal/report", "fileops/engine"},
	"fileops/dataops":                   {"fileops", "fileops/format", "internal/charset", "internal/delimited", "internal/language", "internal/report"},
	"fileops/subtitleops":               {"fileops", "fileops/format", "internal/charset"},
	"fileops/standard": {"fileops", "fileops/format", "fileops/engine", "fileops/pdfops", "fileops/imageops",
		"fileops/pdfread", "fileops/mediaops", "fileops/officeops", "fileops/documentops", "fileops/ocrops",
		"fileops/archiveops", "fileops/bookops", "fileops/dataops", "fileops/mailops", "fileops/subtitleops", "fileops/webops", "fileops/isolate", "internal/report", "internal/route"},
	"fileops/fileopstest": {"fileops", "fileops/format", "internal/specimen", "internal/systest"},
	"internal/hostile":    {"internal/tinypdf"},
	"internal/specimen":   {"internal/compound", "internal/systest", "internal/tinypdf"},
	"internal/tinypdf":    {},
	"internal/systest":    {"internal/worktime"},

	// domain
	"capability":                   {"fileops", "fileops/format"},
	"internal/backoff":             {},
	"trace":                        {},
	"trace/otlp":                   {"trace", "internal/backoff"},
	"internal/exemplar":            {"trace"},
	"internal/lastrun":             {},
	"internal/objectfile":          {"fileops", "upload/blob"},
	"internal/netguard":            {},
	"internal/rtf":                 {},
	"internal/seal":                {},
	"internal/steady":              {},
	"upload/blob":                  {},
	"upload/blob/memblob":          {"upload/blob"},
	"upload/blob/fsblob":           {"upload/blob"},
	"upload/blob/s3blob":           {"upload/blob"},
	"upload/blob/blobtest":         {"upload/blob", "upload/blob/memblob", "internal/systest"},
	"upload":                       {"upload/blob", "upload/blob/memblob", "internal/lastrun", "internal/steady"},
	"upload/uploadtest":            {"upload", "upload/blob", "internal/systest"},
	"status":                       {"trace", "internal/backoff", "internal/lastrun", "internal/steady"},
	"status/riverqueue":            {"internal/backoff", "status"},
	"status/transfer":              {"status"},
	"status/transfer/transfertest": {"status", "status/transfer"},
	"status/webhook":               {"trace", "internal/backoff", "internal/lastrun", "internal/netguard", "internal/seal", "status"},
	"status/statustest":            {"status"},
	"status/worker":                {"trace", "internal/exemplar", "internal/objectfile", "internal/seal", "internal/worktime", "status", "upload", "upload/blob", "upload/blob/memblob", "fileops", "fileops/format"},
	"httpapi/account":              {},
	"httpapi/sqlstore":             {"httpapi/account", "status", "status/transfer", "status/webhook", "upload", "upload/blob", "internal/backoff", "internal/steady"},

	// service
	"httpapi":                     {"trace", "internal/exemplar", "httpapi/internal/gcra", "httpapi/internal/zipstream", "capability", "fileops", "fileops/format", "status", "status/worker", "upload", "upload/blob"},
	"httpapi/internal/gcra":       {},
	"httpapi/internal/zipstream":  {},
	"httpapi/onecall":             {"httpapi", "fileops", "status", "upload"},
	"httpapi/remote":              {"trace", "httpapi", "fileops/format", "internal/backoff", "internal/netguard", "internal/seal", "status", "status/transfer", "upload", "upload/blob"},
	"httpapi/gotenberg":           {"httpapi", "httpapi/internal/zipstream", "fileops/format", "internal/netguard", "internal/seal", "status", "status/transfer", "upload"},
	"httpapi/auth":                {"httpapi", "httpapi/account", "httpapi/internal/gcra", "internal/lastrun", "internal/seal"},
	"internal/passkeytest":        {"internal/systest"},
	"httpapi/oidc":                {"httpapi", "httpapi/auth", "internal/seal"},
	"httpapi/admin":               {"httpapi", "httpapi/account", "httpapi/auth", "status", "status/webhook"},
	"httpapi/client":              {},
	"httpapi/mcp":                 {"httpapi", "httpapi/client", "capability", "fileops", "fileops/format", "internal/batch", "internal/charset", "internal/pagelist"},
	"internal/batch":              {"httpapi/client", "fileops", "fileops/format"},
	"httpapi/dashboard/thumbnail": {"fileops", "fileops/format", "internal/objectfile", "internal/safezip", "upload", "upload/blob"},
	"httpapi/dashboard": {"httpapi", "httpapi/account", "httpapi/auth", "httpapi/dashboard/thumbnail", "status", "status/webhook", "upload", "upload/blob", "capability",
		"fileops/format"},
}

// program reports whether a package may import every package except test packages.
func program(pkg string) bool {
	return strings.HasPrefix(pkg, "cmd/") || strings.HasPrefix(pkg, "examples/") || pkg == "benchmarks" || strings.HasPrefix(pkg, "benchmarks/") || strings.HasPrefix(pkg, "internal/")
}

func testPackage(pkg string) bool {
	base := path.Base(pkg)
	return strings.HasSuffix(base, "test") || slices.Contains([]string{"apicheck", "hostile", "specimen"}, base)
}

func TestArrows(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	seen := make(map[string]bool)
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if n := d.Name(); p != root && (strings.HasPrefix(n, ".") || n == "testdata" || n == "bin" || n == "data") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(p, ".go") {
			return nil
		}
		rel, err := filepath.Rel(root, filepath.Dir(p))
		if err != nil {
			return err
		}
		pkg := filepath.ToSlash(rel)
		src, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), p, src, parser.ImportsOnly)
		if err != nil {
			return err
		}
		seen[pkg] = true
		for _, imp := range file.Imports {
			target, err := strconv.Unquote(imp.Path.Value)
			if err != nil {
				return err
			}
			target, ours := strings.CutPrefix(target, module+"/")
			if !ours {
				if target == module {
					t.Errorf("%s imports the root of the module", p)
				}
				continue
			}
			isTest := strings.HasSuffix(p, "_test.go")
			switch {
			case isTest:
			case testPackage(target) && !testPackage(pkg):
				t.Errorf("%s: code that is not a test imports %s", p, target)
			case program(pkg) || slices.Contains(arrows[pkg], target):
			default:
				t.Errorf("%s: the arrow %s → %s is not in the drawing", p, pkg, target)
			}
		}
		return nil
	})
	systest.NoError(t, err)
	for pkg, targets := range arrows {
		if !seen[pkg] {
			t.Errorf("the drawing has %s, the tree has not", pkg)
		}
		for _, target := range targets {
			if _, ok := arrows[target]; !ok {
				t.Errorf("the drawing has no package %s", target)
			}
		}
	}
}

// The core and the store interfaces import only the standard library, so that using them costs
// nothing.
func TestStandardLibraryOnly(t *testing.T) {
	t.Parallel()
	for _, pkg := range []string{"fileops", "fileops/format", "internal/compound", "capability", "upload/blob", "status"} {
		files, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(pkg), "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no files (%v)", pkg, err)
		}
		for _, p := range files {
			if strings.HasSuffix(p, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), p, nil, parser.ImportsOnly)
			systest.NoError(t, err)
			for _, imp := range file.Imports {
				target, _ := strconv.Unquote(imp.Path.Value)
				if first, _, _ := strings.Cut(target, "/"); strings.Contains(first, ".") && !strings.HasPrefix(target, module) {
					t.Errorf("%s imports %s", p, target)
				}
			}
		}
	}
}
