package standard_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/filewright/filewright/capability"
	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/fileopstest"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/standard"
	"github.com/filewright/filewright/internal/specimen"
	"github.com/filewright/filewright/internal/systest"
)

// set is shared by the tests, because an office process for each test would be too many.
var set *standard.Set

func TestMain(m *testing.M) {
	standard.Main(whereabouts())
	set = standard.Probe(context.Background(), &standard.Options{CacheDir: systest.CodeCache(), Isolate: true})
	code := m.Run()
	if err := set.Close(); err != nil {
		fmt.Println(err)
		code = 1
	}
	os.Exit(code)
}

func registry(t testing.TB, s *standard.Set) *fileops.Registry {
	t.Helper()
	reg, err := fileops.NewRegistry(s.Actions()...)
	systest.NoError(t, err)
	return reg
}

func TestEverythingIsFound(t *testing.T) {
	t.Parallel()
	for _, e := range set.Dependencies() {
		if e.Err != nil || e.Version == "" && e.Path != "" {
			t.Errorf("%s %s: %v (%s)", e.Name, e.Version, e.Err, e.Hint)
		}
	}
	want := []string{
		"attach",
		"bookmarks",
		"compress",
		"convert",
		"extract",
		"extract_pages",
		"fill_form",
		"flatten",
		"inspect",
		"lock",
		"merge",
		"metadata",
		"ocr",
		"page_numbers",
		"reset_password",
		"rotate",
		"screenshot",
		"split",
		"thumbnail",
		"unlock",
		"watermark",
		"zip",
	}
	if got := registry(t, set).Names(); !slices.Equal(got, want) {
		t.Errorf("actions %v, want %v", got, want)
	}
}

// No action offers to convert a format to itself without a parameter that changes the
// file, and the module knows every target format.
func TestTargets(t *testing.T) {
	t.Parallel()
	m := capability.New(registry(t, set), nil)
	for e := range m.Entries() {
		if e.Action != "convert" {
			continue // a merged document may have the format of its parts
		}
		for _, p := range e.Params {
			if p.Name != "convert_to" {
				continue
			}
			for _, v := range p.Enum {
				if (format.Format(v) == e.Format) != (len(e.Changes) > 0) || !format.Format(v).Known() {
					t.Errorf("%s converts %s to %s", e.Engine, e.Format, v)
				}
			}
		}
	}
}

// The results of several steps have the right name and content.
func TestChains(t *testing.T) {
	t.Parallel()
	reg := registry(t, set)
	for _, tt := range []struct {
		from    format.Format
		args    fileops.Args
		results int
		check   func(t *testing.T, path string)
	}{
		{format.DOCX, fileops.Args{"convert_to": "png", "dpi": 72}, 1, width("596")},
		{format.TXT, fileops.Args{"convert_to": "jpeg"}, 1, nil},
		{format.PPTX, fileops.Args{"convert_to": "webp"}, 1, nil},
		{format.PPTX, fileops.Args{"convert_to": "txt"}, 1, contains(fileopstest.Text)},
		{format.XLSX, fileops.Args{"convert_to": "png"}, 1, nil},
		{format.PDF, fileops.Args{"convert_to": "png"}, 2, width("1240")},
		{format.PDF, fileops.Args{"convert_to": "odt"}, 1, nil},
		{format.PDF, fileops.Args{"convert_to": "rtf"}, 1, nil},
		{format.PDF, fileops.Args{"convert_to": "md"}, 1, contains("quick brown fox")},
		{format.JSON, fileops.Args{"convert_to": "xlsx"}, 1, nil},
		{format.JSON, fileops.Args{"convert_to": "csv"}, 1, contains("Äpfel")},
		{format.XLSX, fileops.Args{"convert_to": "json"}, 1, contains("Äpfel")},
		{format.XLSX, fileops.Args{"convert_to": "json", "sheet": "Fruit"}, 1, contains("Äpfel")},
		{format.WebP, fileops.Args{"convert_to": "pdf"}, 1, pages("1")},
		{format.HEIC, fileops.Args{"convert_to": "pdf", "page_size": "a4"}, 1, pages("1")},
		{format.SVG, fileops.Args{"convert_to": "pdf"}, 1, pages("1")},
	} {
		t.Run(fmt.Sprintf("%s %v", tt.from, tt.args["convert_to"]), func(t *testing.T) {
			t.Parallel()
			in := fileopstest.Sample(t, tt.from)
			a, params, err := reg.Resolve("convert", []format.Format{tt.from}, tt.args)
			systest.NoError(t, err)
			dir, out := t.TempDir(), t.TempDir()
			var names []string
			r := fileops.Runner{TempDir: dir}
			err = r.Do(t.Context(), a, params, fileops.SinkFunc(func(ctx context.Context, f *fileops.File) error {
				names = append(names, f.Name())
				return fileops.ToDir(out).Put(ctx, f)
			}), in)
			systest.NoError(t, err)
			if len(names) != tt.results {
				t.Fatalf("results %v, want %d", names, tt.results)
			}
			for _, n := range names {
				if !strings.HasPrefix(n, "sample") || format.Parse(n) != format.Parse(fmt.Sprint(tt.args["convert_to"])) {
					t.Errorf("result name %q", n)
				}
			}
			if tt.check != nil {
				tt.check(t, filepath.Join(out, names[0]))
			}
			if left, _ := os.ReadDir(dir); len(left) > 0 {
				t.Errorf("scratch left: %v", left)
			}
		})
	}
}

func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	return strings.TrimSpace(systest.Run(t, name, args...))
}

func width(want string) func(*testing.T, string) {
	return func(t *testing.T, path string) {
		if got := output(t, "vipsheader", "-f", "width", path); got != want {
			t.Errorf("width %s, want %s", got, want)
		}
	}
}

func pages(want string) func(*testing.T, string) {
	return func(t *testing.T, path string) {
		if got := output(t, "qpdf", "--show-npages", path); got != want {
			t.Errorf("%s pages, want %s", got, want)
		}
	}
}

func contains(want string) func(*testing.T, string) {
	return func(t *testing.T, path string) {
		b, err := os.ReadFile(path)
		if err != nil || !strings.Contains(strings.Join(strings.Fields(string(b)), " "), want) {
			t.Errorf("%q, %v", b, err)
		}
	}
}

// The first of two steps gets the password and the encoding of the input. The second
// step reads a file that the first has written, so it offers neither.
func TestInputParametersInChains(t *testing.T) {
	t.Parallel()
	opens := map[string][]format.Format{
		"password": format.WithVariants(format.PDF, format.DOC, format.DOCX, format.XLS, format.XLSX, format.PPT, format.PPTX, format.ODT, format.ODS, format.ODP, format.ZIP, format.SevenZip, format.RAR),
		"encoding": {format.TXT, format.CSV, format.TSV, format.SRT, format.VTT, format.ASS},
	}
	for _, a := range set.Actions() {
		spec := a.Spec()
		if spec.Name != "convert" {
			continue
		}
		for _, acc := range spec.Accepts {
			for _, p := range acc.Params {
				for _, f := range acc.Formats {
					if takes, listed := opens[p.Name]; listed && !slices.Contains(takes, f) {
						t.Errorf("%s: %s has no %s", spec.Engine, f, p.Name)
					}
				}
			}
		}
	}
	reg := registry(t, set)
	for _, tt := range []struct {
		from format.Format
		to   string
	}{
		{format.PDF, "png"}, {format.PDF, "odt"}, {format.PDF, "epub"}, {format.DOCX, "png"}, {format.DOC, "webp"}, {format.PPTX, "txt"},
		{format.XLSX, "json"}, {format.XLS, "json"},
	} {
		t.Run(fmt.Sprintf("%s %s", tt.from, tt.to), func(t *testing.T) {
			t.Parallel()
			in := specimen.Locked(t, tt.from, "sesame")
			for password, want := range map[string]error{"": fileops.ErrPasswordRequired, "wrong": fileops.ErrWrongPassword, "sesame": nil} {
				args := fileops.Args{"convert_to": tt.to}
				if password != "" {
					args["password"] = password
				}
				a, params, err := reg.Resolve("convert", []format.Format{tt.from}, args)
				systest.NoError(t, err)
				r := fileops.Runner{TempDir: t.TempDir()}
				if err := r.Do(t.Context(), a, params, fileops.ToDir(t.TempDir()), in); !errors.Is(err, want) {
					t.Errorf("password %q: %v, want %v", password, err, want)
				}
			}
		})
	}
}

// A picture with several pages becomes one document.
func TestPagesOfATIFF(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	png := filepath.Join(dir, "a.png")
	b, _ := fileopstest.Sample(t, format.PNG).Bytes()
	systest.NoError(t, os.WriteFile(png, b, 0o600))
	output(t, "bash", "-c", fmt.Sprintf("cd %s && vips arrayjoin 'a.png a.png a.png' j.png --across 1 && vips tiffsave j.png three.tiff --page-height 120", dir))
	a, params, err := registry(t, set).Resolve("convert", []format.Format{format.TIFF}, fileops.Args{"convert_to": "pdf"})
	systest.NoError(t, err)
	systest.NoError(t, new(fileops.Runner).Do(t.Context(), a, params, fileops.ToDir(dir), fileops.Path(filepath.Join(dir, "three.tiff"))))
	pages("3")(t, filepath.Join(dir, "three.pdf"))
}

// Merge takes a mix of all formats that can become a PDF.
func TestMergeMixed(t *testing.T) {
	t.Parallel()
	kinds := []format.Format{format.PDF, format.DOCX, format.WebP, format.JPG, format.TXT}
	var in []*fileops.File
	for _, k := range kinds {
		in = append(in, fileopstest.Sample(t, k))
	}
	a, params, err := registry(t, set).Resolve("merge", kinds, nil)
	systest.NoError(t, err)
	dir := t.TempDir()
	systest.NoError(t, new(fileops.Runner).Do(t.Context(), a, params, fileops.ToDir(dir), in...))
	pages("6")(t, filepath.Join(dir, "merged.pdf"))
}

// Merged documents of one kind keep their format, unless a PDF is requested.
func TestMergeDocuments(t *testing.T) {
	t.Parallel()
	two := func(f format.Format) []format.Format { return []format.Format{f, f} }
	for _, tt := range []struct {
		inputs []format.Format
		args   fileops.Args
		want   string
	}{
		{two(format.DOCX), nil, "merged.docx"},
		{two(format.ODT), nil, "merged.odt"},
		{two(format.DOCX), fileops.Args{"convert_to": "pdf"}, "merged.pdf"},
		{[]format.Format{format.DOCX, format.ODT}, nil, "merged.pdf"},
		{[]format.Format{format.RTF, format.DOCX}, fileops.Args{"convert_to": "DOCX"}, "merged.docx"},
		{two(format.RTF), nil, "merged.pdf"},
	} {
		a, params, err := registry(t, set).Resolve("merge", tt.inputs, tt.args)
		if err != nil {
			t.Errorf("%v %v: %v", tt.inputs, tt.args, err)
			continue
		}
		var in []*fileops.File
		for _, f := range tt.inputs {
			in = append(in, fileopstest.Sample(t, f))
		}
		var names []string
		err = new(fileops.Runner).Do(t.Context(), a, params, fileops.SinkFunc(func(_ context.Context, f *fileops.File) error {
			names = append(names, f.Name())
			return nil
		}), in...)
		if err != nil || !slices.Equal(names, []string{tt.want}) {
			t.Errorf("%v %v: %v, %v", tt.inputs, tt.args, names, err)
		}
	}
	if _, _, err := registry(t, set).Resolve("merge", two(format.PPTX), fileops.Args{"convert_to": "docx"}); err == nil {
		t.Error("slides are merged into a text document")
	}
}

// A disabled program is neither searched for nor offered, and all other actions remain.
func TestWithout(t *testing.T) {
	t.Parallel()
	s := standard.Probe(t.Context(), &standard.Options{FFmpeg: standard.None, LibreOffice: standard.None, Pandoc: standard.None, QPDF: standard.None, Chromium: standard.None})
	defer s.Close()
	missing := map[string]bool{}
	for _, e := range s.Dependencies() {
		if e.Err != nil {
			missing[e.Name] = true
			if e.Hint == "" || e.Purpose == "" {
				t.Errorf("%s is missing without a word: %+v", e.Name, e)
			}
		}
	}
	for _, name := range []string{"ffmpeg", "libreoffice", "pandoc", "qpdf", "chromium"} {
		if !missing[name] {
			t.Errorf("%s is not missing", name)
		}
	}
	m := capability.New(registry(t, s), nil)
	for ext, want := range map[string][]string{
		"docx": {"compress", "inspect", "lock", "reset_password", "unlock", "zip"}, // these need no engine
		"mp4":  {"zip"}, "md": {"inspect", "zip"},
	} {
		if a := m.Query(capability.Query{Ext: ext}); !slices.Equal(a.AvailableActions, want) {
			t.Errorf("%s: %v", ext, a.AvailableActions)
		}
	}
	// Password actions use the built-in engine instead.
	if a := m.Query(capability.Query{Ext: "pdf", Action: "lock", Parameters: map[string]any{"password": "x"}}); !a.Supported {
		t.Errorf("lock without qpdf: %v", a.Err)
	}
}

func Example() {
	ctx := context.Background()
	set := standard.Probe(ctx, nil)
	defer set.Close()
	reg, err := fileops.NewRegistry(set.Actions()...)
	if err != nil {
		panic(err)
	}
	_, _, err = reg.Resolve("convert", []format.Format{format.JPG}, fileops.Args{"convert_to": "png"})
	fmt.Println(err)
	// Output: <nil>
}
