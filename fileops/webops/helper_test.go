package webops

import (
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/internal/systest"
)

// convert prints a document with the shared engine and returns the path of the PDF.
func convert(t testing.TB, name, in string, args fileops.Args) string {
	t.Helper()
	path, err := try(t, shared.Convert(), name, in, args)
	systest.NoError(t, err)
	return path
}

func try(t testing.TB, a fileops.Action, name, in string, args fileops.Args) (path string, err error) {
	t.Helper()
	all := fileops.Args{"convert_to": "pdf"}
	maps.Copy(all, args)
	dir, scratch := t.TempDir(), t.TempDir()
	r := fileops.Runner{TempDir: scratch}
	f := fileops.Bytes(name, []byte(in))
	err = r.Run(t.Context(), a, all, fileops.ToDir(dir), f)
	return filepath.Join(dir, fileops.ResultName(f, "pdf")), err
}

// output runs a program that must succeed and returns its standard output.
var output = systest.Run

// info returns an entry of the output of pdfinfo.
func info(t testing.TB, path, key string) string {
	t.Helper()
	for line := range strings.Lines(output(t, "pdfinfo", path)) {
		if name, value, _ := strings.Cut(line, ":"); name == key {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// scan parses the box of a word from a line of pdftotext -bbox.
func scan(line string, x0, y0, x1, y1 *float64) (int, error) {
	return fmt.Sscanf(strings.TrimSpace(line), `<word xMin="%g" yMin="%g" xMax="%g" yMax="%g">`, x0, y0, x1, y1)
}
