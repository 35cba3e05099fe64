package matrix_test

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/matrix"
	"github.com/filewright/filewright/internal/systest"
)

// docs/formats.md matches the code.
func TestDocument(t *testing.T) {
	t.Parallel()
	want := matrix.Document(set.Actions())
	got := systest.ReadFile(t, "../../docs/formats.md")
	if !bytes.Equal(got, want) {
		g, w := strings.Split(string(got), "\n"), strings.Split(string(want), "\n")
		for i := range max(len(g), len(w)) {
			if i >= len(g) || i >= len(w) || g[i] != w[i] {
				t.Fatalf("docs/formats.md is not what the code says, from line %d: run \"make docs\"\n%.300s", i+1, strings.Join(w[min(i, len(w)):min(i+1, len(w))], ""))
			}
		}
	}
	if v := regexp.MustCompile(`(libvips|ffmpeg|libreoffice|pandoc|qpdf) [0-9]`).Find(want); v != nil {
		t.Errorf("the version of an engine is in the document: %s", v)
	}
	if bytes.Contains(want, []byte("no reason is known")) {
		t.Error("a pair of common formats is missing, and breadth.go does not say why")
	}
	for _, c := range cells {
		if c.From != format.Any && !bytes.Contains(want, []byte("`"+string(c.From)+"`")) {
			t.Errorf("%s is not in the document", c.From)
		}
	}
}

func ExampleCells() {
	upper := fileops.Func(fileops.Spec{Name: "convert", Engine: "go 1.2", Accepts: []fileops.Accept{{
		Formats: []format.Format{format.TXT}, Params: fileops.Schema{fileops.Enum("convert_to", "Target.", "md", "html")},
	}}}, nil)
	for _, c := range matrix.Cells([]fileops.Action{upper}) {
		fmt.Println(c.Action, c.From, c.Value)
	}
	// Output:
	// convert txt html
	// convert txt md
}
