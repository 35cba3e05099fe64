package matrix_test

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/standard"
	"github.com/filewright/filewright/internal/matrix"
	"github.com/filewright/filewright/internal/specimen"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/internal/tinypdf"
)

// Shared by all tests, because LibreOffice and pdfium take time to start.
var (
	set   *standard.Set
	reg   *fileops.Registry
	py    *python
	cells []matrix.Cell
)

func TestMain(m *testing.M) {
	code := 1
	err := func() error {
		set = standard.Probe(context.Background(), &standard.Options{CacheDir: systest.CodeCache()})
		cells = matrix.Cells(set.Actions())
		var err error
		if reg, err = fileops.NewRegistry(set.Actions()...); err != nil {
			return err
		}
		if py, err = startPython(); err != nil {
			return err
		}
		code = m.Run()
		if err := py.close(); err != nil {
			return err
		}
		return set.Close()
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// perform runs an action like the service, and returns the paths of the results.
func perform(t testing.TB, action string, args fileops.Args, in ...*fileops.File) ([]string, error) {
	t.Helper()
	out, _, err := warned(t, action, args, in...)
	return out, err
}

// warned is perform with the warnings of the run.
func warned(t testing.TB, action string, args fileops.Args, in ...*fileops.File) ([]string, []fileops.Warning, error) {
	t.Helper()
	var formats []format.Format
	for _, f := range in {
		formats = append(formats, f.Format())
	}
	a, params, err := reg.Resolve(action, formats, args)
	if err != nil {
		t.Fatalf("listed, but refused: %v", err)
	}
	scratch, dir := t.TempDir(), t.TempDir()
	var out []string
	sink := fileops.SinkFunc(func(ctx context.Context, f *fileops.File) error {
		if !slices.Contains(out, filepath.Join(dir, f.Name())) {
			out = append(out, filepath.Join(dir, f.Name()))
		} else {
			t.Errorf("two results are named %s", f.Name())
		}
		return fileops.ToDir(dir).Put(ctx, f)
	})
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var warnings []fileops.Warning
	r := fileops.Runner{TempDir: scratch, Warn: func(w fileops.Warning) { warnings = append(warnings, w) }}
	err = r.Do(ctx, a, params, sink, in...)
	if left, _ := os.ReadDir(scratch); len(left) > 0 {
		t.Errorf("scratch left behind: %v", left)
	}
	if err != nil && len(out) > 0 {
		t.Errorf("it failed and left results: %v", out)
	}
	return out, warnings, err
}

// input returns a file for an action: a locked file for actions that remove a password.
func input(t testing.TB, action string, f format.Format) *fileops.File {
	t.Helper()
	if action == "unlock" || action == "reset_password" {
		if f == format.XLSB { // LibreOffice does not write it
			return performed(t, "lock", fileops.Args{"password": password}, "locked.xlsb", specimen.Of(t, f))
		}
		return specimen.Locked(t, f, password)
	}
	if action == "fill_form" {
		return withField(t, specimen.Of(t, f))
	}
	return specimen.Of(t, f)
}

// withField returns a PDF file with one more page, which has the text field "name".
func withField(t testing.TB, f *fileops.File) *fileops.File {
	t.Helper()
	form := tinypdf.File("1.4",
		"<</Type/Catalog/Pages 2 0 R/AcroForm<</Fields[4 0 R]/DA(/F1 12 Tf 0 g)>>>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>",
		"<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 200]/Annots[4 0 R]>>", "<</Type/Annot/Subtype/Widget/F 4/FT/Tx/T(name)/Rect[20 100 200 130]>>")
	return performed(t, "merge", nil, "form.pdf", f, fileops.Bytes("field.pdf", form))
}

// performed returns the first result of an action.
func performed(t testing.TB, action string, args fileops.Args, name string, in ...*fileops.File) *fileops.File {
	t.Helper()
	out, err := perform(t, action, args, in...)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(out[0])
	if err != nil {
		t.Fatal(err)
	}
	return fileops.Bytes(name, b)
}

// A record stores the duration of each run.
type record struct {
	mu   sync.Mutex
	took []timing
}

// A timing holds the durations of the parts of a run.
type timing struct {
	name               string
	made, done, judged time.Duration
}

func (t timing) sum() time.Duration { return t.made + t.done + t.judged }

func (r *record) add(l leaf, made, done, judged time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.took = append(r.took, timing{l.name, made, done, judged})
}

// report logs the sums and the slowest runs.
func (r *record) report(t *testing.T) {
	var all timing
	for _, s := range r.took {
		all.made, all.done, all.judged = all.made+s.made, all.done+s.done, all.judged+s.judged
	}
	t.Logf("seconds for specimens, actions and judges:\n%8.2f %8.2f %8.2f  in all", all.made.Seconds(), all.done.Seconds(), all.judged.Seconds())
	slices.SortFunc(r.took, func(a, b timing) int { return cmp.Compare(b.sum(), a.sum()) })
	for _, s := range r.took[:min(20, len(r.took))] {
		t.Logf("%8.2f %8.2f %8.2f  %s", s.made.Seconds(), s.done.Seconds(), s.judged.Seconds(), s.name)
	}
}

func key(action string, f format.Format, value string) string {
	return strings.TrimSpace(fmt.Sprintf("%s %s %s", action, f, value))
}
