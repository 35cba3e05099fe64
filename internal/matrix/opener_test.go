package matrix_test

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/text/unicode/norm"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/specimen"
	"github.com/filewright/filewright/internal/systest"
)

type opened struct {
	test  string // name of the test
	words []string
}

// An opener collects office files. At the end LibreOffice opens all of them, hundreds in one process.
type opener struct {
	dir   string
	mu    sync.Mutex
	files []opened
}

var office = []format.Format{format.DOC, format.DOCX, format.ODT, format.FODT, format.RTF, format.XLS, format.XLSX, format.ODS, format.FODS,
	format.PPT, format.PPTX, format.ODP, format.FODP, format.ODG, format.XLSB}

func (o *opener) add(t *testing.T, path string, c content) {
	if !slices.Contains(office, format.Parse(path).Plain()) {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	// Drop text that a page cannot show.
	words := slices.DeleteFunc(slices.Clone(c.words), func(w string) bool { return w == "مرحبا" || w == "😀" })
	o.files = append(o.files, opened{t.Name(), words})
	systest.Check(t, os.Link(path, filepath.Join(o.dir, fmt.Sprintf("%04d%s", len(o.files), filepath.Ext(path)))))
}

// check fails for files that LibreOffice cannot convert to PDF.
func (o *opener) check(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(o.dir, "*"))
	if err != nil || len(files) != len(o.files) {
		t.Fatalf("%d files of %d tests (%v)", len(files), len(o.files), err)
	}
	profile := "-env:UserInstallation=file://" + t.TempDir()
	for some := range slices.Chunk(files, 200) { // it ignores arguments after the 255th
		tool(t, "soffice", append([]string{profile, "--headless", "--norestore", "--convert-to", "pdf", "--outdir", o.dir}, some...)...)
	}
	for i, f := range files {
		pdf := strings.TrimSuffix(f, filepath.Ext(f)) + ".pdf"
		text, err := systest.Output(t, "pdftotext", "-layout", pdf, "-")
		if err != nil {
			t.Errorf("%s: LibreOffice does not open the result: %v", o.files[i].test, err)
			continue
		}
		text = strings.Join(strings.Fields(norm.NFKC.String(text)), " ")
		for _, w := range o.files[i].words {
			if !strings.Contains(text, w) {
				t.Errorf("%s: %q is not in what LibreOffice shows: %.300q", o.files[i].test, w, text)
			}
		}
	}
}

// openScript opens a document with a password and stores it as PDF.
//
//go:embed testdata/open.py
var openScript string

// opens has LibreOffice convert a document to PDF. The document must open with one password and not
// with another.
func opens(t *testing.T, path, wrong, right string) (pdf string, err error) {
	t.Helper()
	dir := t.TempDir()
	pdf = filepath.Join(dir, "out.pdf")
	// The system's Python has the bridge to LibreOffice.
	cmd := exec.CommandContext(t.Context(), "/usr/bin/python3", "-c", openScript, dir, path, pdf)
	cmd.Stdin = strings.NewReader(wrong + "\n" + right + "\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return pdf, nil
}

// lockedJudges judge locked files of formats whose judge needs an open file.
var lockedJudges = func() map[format.Format]judge {
	m := make(map[format.Format]judge)
	for _, f := range office {
		m[f] = func(t *testing.T, p string, c content) {
			pdf, err := opens(t, p, "not-"+c.password, c.password)
			systest.NoError(t, err)
			c.password = ""
			judgePDF(t, pdf, c)
		}
	}
	return m
}()

// The judge of locked files must be able to fail.
func TestOpens(t *testing.T) {
	t.Parallel()
	locked, open := filepath.Join(t.TempDir(), "a.docx"), filepath.Join(t.TempDir(), "b.docx")
	for path, f := range map[string]*fileops.File{locked: specimen.Locked(t, format.DOCX, password), open: specimen.Of(t, format.DOCX)} {
		b, _ := f.Bytes()
		systest.NoError(t, os.WriteFile(path, b, 0o600))
	}
	if _, err := opens(t, locked, "wrong", "wrong as well"); err == nil {
		t.Error("opens with a wrong password")
	}
	if _, err := opens(t, open, "wrong", password); err == nil {
		t.Error("what is not locked passes as locked")
	}
	pdf, err := opens(t, locked, "wrong", password)
	systest.NoError(t, err)
	judgePDF(t, pdf, contentOf(format.DOCX))
}
