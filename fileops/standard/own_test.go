package standard_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/engine"
	"github.com/filewright/filewright/fileops/fileopstest"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/standard"
	"github.com/filewright/filewright/internal/systest"
)

// few returns options of a set without external programs, which starts quickly.
func few(t testing.TB) *standard.Options {
	return &standard.Options{
		FFmpeg: standard.None, LibreOffice: standard.None, Pandoc: standard.None, Chromium: standard.None, Tesseract: standard.None,
		TempDir: t.TempDir(), Isolate: true,
	}
}

// waiting returns the memory maps of the idle processes in dir.
func waiting(t *testing.T, dir string) (maps [][]byte) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cwd")
	systest.NoError(t, err)
	for _, cwd := range all {
		to, err := os.Readlink(cwd)
		if err != nil || filepath.Dir(filepath.Dir(filepath.Dir(to))) != dir {
			continue
		}
		b := systest.ReadFile(t, filepath.Join(filepath.Dir(cwd), "maps"))
		maps = append(maps, b)
	}
	return maps
}

// Constructing engines starts no process. After Ready idle processes exist, without the
// libraries that only plug-ins of libvips need. A picture that needs a plug-in is still
// read and written.
func TestReady(t *testing.T) {
	t.Parallel()
	o := few(t)
	s := standard.Probe(t.Context(), o)
	defer s.Close()
	if got := waiting(t, o.TempDir); len(got) != 0 {
		t.Errorf("%d processes before Ready", len(got))
	}
	systest.NoError(t, s.Ready(t.Context()))
	got := waiting(t, o.TempDir)
	if len(got) == 0 {
		t.Error("no process waits after Ready")
	}
	for _, m := range got {
		if bytes.Contains(m, []byte("/vips-modules")) || bytes.Contains(m, []byte("libMagick")) {
			t.Error("a process has plug-ins before it needs one")
		}
	}
	reg := registry(t, s)
	for _, to := range []format.Format{format.AVIF, format.JXL, format.PNG} {
		for _, way := range [][2]format.Format{{format.PNG, to}, {to, format.WebP}} {
			in := fileopstest.Sample(t, way[0])
			a, params, err := reg.Resolve("convert", []format.Format{way[0]}, fileops.Args{"convert_to": string(way[1])})
			if way[0] == way[1] {
				continue
			}
			if err != nil {
				t.Errorf("%v: %v", way, err)
				continue
			}
			sink := fileops.SinkFunc(func(_ context.Context, f *fileops.File) error {
				if got := format.Sniff(f.Reader(), f.Size()); got != way[1] {
					t.Errorf("%v: the result is %s", way, got)
				}
				return nil
			})
			if err := (&fileops.Runner{TempDir: t.TempDir()}).Do(t.Context(), a, params, sink, in); err != nil {
				t.Errorf("%v: %v", way, err)
			}
		}
	}
	in := standard.Probe(t.Context(), &standard.Options{
		FFmpeg: standard.None, LibreOffice: standard.None, Pandoc: standard.None, Chromium: standard.None, Tesseract: standard.None,
	})
	defer in.Close()
	if err := in.Ready(t.Context()); err != nil {
		t.Errorf("without Isolate: %v", err)
	}
}

// whereabouts is a custom action. Its result is the id of its process, and the outcome
// of reading a file of the server.
func whereabouts() fileops.Action {
	return fileops.Func(fileops.Spec{
		Name: "whereabouts", Summary: "Says where it is.",
		Accepts: []fileops.Accept{{Formats: []format.Format{format.TXT}, Params: fileops.Schema{{Name: "path", Doc: "A file of the server."}}}},
	}, func(_ context.Context, job *fileops.Job) error {
		_, err := os.ReadFile(job.Params.Get("path"))
		return job.WriteBytes("out.txt", fmt.Appendln(nil, os.Getpid(), errors.Is(err, fs.ErrPermission)))
	})
}

// A custom action runs in a separate confined process, if the set isolates its actions.
func TestIsolateOwn(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "secret")
	systest.NoError(t, os.WriteFile(secret, []byte("x"), 0o600))
	ask := func(a fileops.Action) (pid int, denied bool) {
		err := fileops.Run(t.Context(), a, fileops.Args{"path": secret}, fileops.SinkFunc(func(_ context.Context, f *fileops.File) error {
			_, err := fmt.Fscan(f.Reader(), &pid, &denied)
			return err
		}), fileops.Bytes("a.txt", []byte("x")))
		systest.NoError(t, err)
		return pid, denied
	}
	a := set.Isolate(whereabouts())
	first, denied := ask(a)
	second, _ := ask(a)
	if first == os.Getpid() || first == second || !denied {
		t.Errorf("ran in the processes %d and %d of %d, denied %v", first, second, os.Getpid(), denied)
	}
	o := few(t)
	o.Isolate = false
	s := standard.Probe(t.Context(), o)
	defer s.Close()
	if pid, denied := ask(s.Isolate(whereabouts())); pid != os.Getpid() || denied {
		t.Errorf("without Isolate it ran in process %d of %d, denied %v", pid, os.Getpid(), denied)
	}
	// An action that Main does not know is refused, not run in this process.
	other := whereabouts()
	spec := other.Spec()
	spec.Summary = "Is not known to Main."
	if err := fileops.Run(t.Context(), set.Isolate(fileops.Func(spec, other.Do)), nil, nil, fileops.Bytes("a.txt", []byte("x"))); err == nil || !strings.Contains(err.Error(), "not known to Main") {
		t.Errorf("an action that Main does not know: %v", err)
	}
}

// letters is a custom engine that makes PDF files of text.
type letters struct{ path string }

func (l letters) Dependencies() []fileops.Dependency {
	return []fileops.Dependency{{Name: "letters", Path: l.path, Version: "1.0"}}
}

func (l letters) Actions() []fileops.Action {
	return []fileops.Action{fileops.Func(fileops.Spec{
		Name: "convert", Summary: "Makes a PDF file.",
		Accepts: []fileops.Accept{{Formats: []format.Format{format.TXT}, Params: fileops.Schema{fileops.Enum("convert_to", "Format.", "pdf")}}},
	}, func(_ context.Context, job *fileops.Job) error {
		b, _ := leaves(3).Bytes()
		return job.WriteBytes("letter.pdf", b)
	})}
}

// The set includes custom engines, and what they convert to PDF can be merged. A missing
// engine reports its reason.
func TestOwnEngines(t *testing.T) {
	t.Parallel()
	o := few(t)
	o.Isolate = false
	o.Engines = []func(context.Context, *engine.Sandbox) (fileops.Engine, error){
		func(context.Context, *engine.Sandbox) (fileops.Engine, error) {
			return nil, fileops.Missing(fileops.Dependency{Name: "nothing", Packages: []string{"nothing-bin"}}, exec.ErrNotFound)
		},
		func(_ context.Context, sandbox *engine.Sandbox) (fileops.Engine, error) {
			if sandbox == nil {
				t.Error("an engine gets no sandbox")
			}
			return letters{"/usr/bin/letters"}, nil
		},
	}
	s := standard.Probe(t.Context(), o)
	defer s.Close()
	hints := make(map[string]string)
	for _, d := range s.Dependencies() {
		hints[d.Name] = d.Hint
	}
	if hint, ok := hints["letters"]; !ok || hint != "" || hints["nothing"] != "install the package nothing-bin" {
		t.Errorf("the dependencies have the hints %q", hints)
	}
	a, params, err := registry(t, s).Resolve("merge", []format.Format{format.TXT, format.PDF}, nil)
	systest.NoError(t, err)
	dir := t.TempDir()
	systest.NoError(t, new(fileops.Runner).Do(t.Context(), a, params, fileops.ToDir(dir), fileops.Bytes("a.txt", []byte("x")), leaves(1)))
	pages("4")(t, filepath.Join(dir, "merged.pdf"))
}

// A program that reads untrusted files in separate processes starts with Main, which
// does not return in those processes. (Here that call is in TestMain.)
func ExampleMain() {
	// func main() {
	standard.Main()
	ctx := context.Background()
	set := standard.Probe(ctx, &standard.Options{Isolate: true, LibreOffice: standard.None, Chromium: standard.None})
	defer set.Close()
	if err := set.Ready(ctx); err != nil {
		fmt.Println(err)
		return
	}
	reg, err := fileops.NewRegistry(set.Actions()...)
	if err != nil {
		fmt.Println(err)
		return
	}
	zip, params, err := reg.Resolve("zip", []format.Format{format.TXT}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	err = new(fileops.Runner).Do(ctx, zip, params, fileops.SinkFunc(func(_ context.Context, f *fileops.File) error {
		b, err := io.ReadAll(f.Reader())
		fmt.Println(f.Name(), strconv.Quote(string(b[:2])))
		return err
	}), fileops.Bytes("note.txt", []byte("text")))
	if err != nil {
		fmt.Println(err)
	}
	// Output: files.zip "PK"
}
