package tinypdf_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/internal/tinypdf"
)

func ExampleFile() {
	b := tinypdf.File("1.4", "<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[]/Count 0>>")
	fmt.Printf("%.8s\n", b)
	// Output: %PDF-1.4
}

func TestFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.pdf")
	systest.NoError(t, os.WriteFile(path, tinypdf.File("1.7", "<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>",
		"<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 100]/Contents 4 0 R/Resources<<>>>>", tinypdf.Stream("", "0 0 10 10 re f")), 0o600))
	systest.Run(t, "qpdf", "--check", path)
}
