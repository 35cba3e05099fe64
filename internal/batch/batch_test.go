package batch_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/httpapi/client"
	"github.com/filewright/filewright/internal/batch"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/upload/blob/memblob"
)

func actions() []fileops.Action {
	return []fileops.Action{
		fileops.Func(fileops.Spec{
			Name: "convert", Engine: "go", Family: "text", Summary: "Writes text in capitals.",
			Accepts: []fileops.Accept{{Formats: []format.Format{format.TXT}, Params: fileops.Schema{
				fileops.Enum("convert_to", "Target.", "md"),
				{Name: "second_key", Doc: "A second file.", Type: fileops.Upload, Formats: []format.Format{format.TXT}},
			}}},
		}, func(_ context.Context, job *fileops.Job) error {
			if f := job.Extra["second_key"]; f != nil {
				b, err := f.ReadAll(1 << 20)
				if err != nil {
					return err
				}
				return job.WriteBytes(fileops.ResultName(job.Input(), format.MD), b)
			}
			b, err := job.Input().ReadAll(1 << 20)
			if err != nil {
				return err
			}
			if string(b) == "bad" {
				return fileops.Fail(fileops.ErrCorruptInput, nil, "the text is bad")
			}
			job.Progress(0.5)
			job.Warn(fileops.WarnLinksDropped, "a link was left out")
			return job.WriteBytes(fileops.ResultName(job.Input(), format.MD), bytes.ToUpper(b))
		}),
		fileops.Func(fileops.Spec{
			Name: "merge", Engine: "go", Family: "text", Summary: "Joins texts.", Joint: true,
			Accepts: []fileops.Accept{{Formats: []format.Format{format.TXT}}},
		}, func(_ context.Context, job *fileops.Job) error {
			var all []byte
			for _, f := range job.Inputs {
				b, err := f.ReadAll(1 << 20)
				if err != nil {
					return err
				}
				all = append(all, b...)
			}
			return job.WriteBytes("merged.txt", all)
		}),
	}
}

// processors returns a local processor and one that uses a server, whose store is also returned.
func processors(t *testing.T) (map[string]batch.Processor, *memblob.Store) {
	t.Helper()
	reg, err := fileops.NewRegistry(actions()...)
	systest.NoError(t, err)
	store := memblob.New()
	svc, err := httpapi.New(httpapi.Config{Actions: actions(), Auth: httpapi.StaticKeys("key"), TempDir: t.TempDir(), Blobs: store})
	systest.NoError(t, err)
	srv := httptest.NewServer(svc)
	t.Cleanup(srv.Close)
	systest.Start(t, svc.Run)
	return map[string]batch.Processor{
		"local":  &batch.Local{Registry: reg},
		"server": &batch.Server{Client: &client.Client{BaseURL: srv.URL, Key: "key"}},
	}, store
}

// directory makes a directory with the files named by pairs of name and content.
func directory(t *testing.T, pairs ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i := 0; i < len(pairs); i += 2 {
		systest.NoError(t, os.WriteFile(filepath.Join(dir, pairs[i]), []byte(pairs[i+1]), 0o600))
	}
	return dir
}

func names(t *testing.T, dir string) (out []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	systest.NoError(t, err)
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// The value of a parameter can be a file. A server gets it as an upload, which is deleted afterwards.
func TestFileOfParameter(t *testing.T) {
	t.Parallel()
	all, store := processors(t)
	for kind, p := range all {
		dir := directory(t, "a.txt", "one", "b.txt", "second")
		args := fileops.Args{"convert_to": "md", "second_key": fileops.Path(filepath.Join(dir, "b.txt"))}
		b := batch.Batch{Processor: p, Action: "convert", Args: args, Report: func(batch.Event) {}}
		systest.NoError(t, b.Run(t.Context(), []string{filepath.Join(dir, "a.txt")}))
		if got, err := os.ReadFile(filepath.Join(dir, "a.md")); err != nil || string(got) != "second" {
			t.Errorf("%s: result %q, %v", kind, got, err)
		}
		args["second_key"] = fileops.Path(filepath.Join(dir, "none.txt"))
		b.Force = true
		var why error
		b.Report = func(e batch.Event) { why = e.Err }
		if err := b.Run(t.Context(), []string{filepath.Join(dir, "a.txt")}); err == nil || why == nil || !strings.Contains(batch.Message(why), "none.txt") {
			t.Errorf("%s, a missing file: %v, %v", kind, err, why)
		}
	}
	systest.Until(t, "an empty store", func() bool {
		for range store.List(t.Context(), "") {
			return false
		}
		return true
	})
}

func TestRun(t *testing.T) {
	t.Parallel()
	all, store := processors(t)
	for kind, p := range all {
		t.Run(kind, func(t *testing.T) {
			dir := directory(t, "a.txt", "one", "b.txt", "bad", "c.txt", "three", "d.txt", "four", "d.md", "old", "e.gif", "x")
			var events []batch.Event
			progress := false
			b := batch.Batch{Processor: p, Action: "convert", Args: fileops.Args{"convert_to": "md"}, Jobs: 3, Report: func(e batch.Event) {
				if progress = progress || e.Progress == 0.5; e.Done {
					events = append(events, e)
				}
			}}
			var files []string
			for _, n := range []string{"a.txt", "b.txt", "c.txt", "d.txt", "e.gif", "none.txt"} {
				files = append(files, filepath.Join(dir, n))
			}
			systest.NoError(t, os.Chmod(files[0], 0o640))
			err := b.Run(t.Context(), files)
			var failed *batch.FailedError
			if !errors.As(err, &failed) || failed.Failed != 4 || failed.Total != 6 {
				t.Errorf("%v", err)
			}
			if kind == "local" && !progress {
				t.Error("no progress")
			}
			slices.SortFunc(events, func(a, b batch.Event) int { return strings.Compare(a.Inputs[0], b.Inputs[0]) })
			for i, want := range []string{"", "the text is bad", "", "exists", "gif", "no such file"} {
				e := events[i]
				if want == "" != (e.Err == nil) || e.Err != nil && !strings.Contains(batch.Message(e.Err), want) {
					t.Errorf("%s: %v, expected %q", e.Inputs, e.Err, want)
				}
				if e.Err == nil && (len(e.Outputs) != 1 || len(e.Warnings) != 1) {
					t.Errorf("%s: %+v", e.Inputs, e)
				}
			}
			if !errors.Is(events[3].Err, fs.ErrExist) {
				t.Errorf("%v", events[3].Err)
			}
			if got, want := names(t, dir), []string{"a.md", "a.txt", "b.txt", "c.md", "c.txt", "d.md", "d.txt", "e.gif"}; !slices.Equal(got, want) {
				t.Errorf("files %q, expected %q", got, want)
			}
			if old, _ := os.ReadFile(filepath.Join(dir, "d.md")); string(old) != "old" {
				t.Errorf("an existing file was replaced by %q", old)
			}
			b.Force = true
			systest.NoError(t, b.Run(t.Context(), files[3:4]))
			if b, _ := os.ReadFile(filepath.Join(dir, "d.md")); string(b) != "FOUR" {
				t.Errorf("with force: %q", b)
			}
			out := t.TempDir()
			if st, err := os.Stat(filepath.Join(dir, "a.md")); err != nil || st.Mode().Perm() != 0o640 {
				t.Errorf("permissions %v, %v", st.Mode(), err)
			}
			joint := batch.Batch{Processor: p, Action: "merge", Output: out}
			systest.NoError(t, joint.Run(t.Context(), []string{files[2], files[0]}))
			if b, _ := os.ReadFile(filepath.Join(out, "merged.txt")); string(b) != "threeone" {
				t.Errorf("merged %q", b)
			}
		})
	}
	systest.Until(t, "an empty store", func() bool {
		for range store.List(t.Context(), "") {
			return false
		}
		return true
	})
}

// TestWatch: files are processed once, when they are complete, and again when they change.
func TestWatch(t *testing.T) {
	t.Parallel()
	all, _ := processors(t)
	dir, out := directory(t, "a.txt", "one", ".hidden.txt", "x"), t.TempDir()
	var mu sync.Mutex
	done := make(map[string][]error)
	count := func(name string) int {
		mu.Lock()
		defer mu.Unlock()
		return len(done[name])
	}
	b := batch.Batch{Processor: all["local"], Action: "convert", Args: fileops.Args{"convert_to": "md"}, Output: out, Force: true}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- b.Watch(ctx, dir, 20*time.Millisecond, func(path string, err error) error {
			mu.Lock()
			defer mu.Unlock()
			done[filepath.Base(path)] = append(done[filepath.Base(path)], err)
			return nil
		})
	}()
	systest.Until(t, "the first file", func() bool { return count("a.txt") == 1 })
	systest.NoError(t, os.WriteFile(filepath.Join(dir, "b.txt"), []byte("bad"), 0o600))
	systest.Until(t, "the new file", func() bool { return count("b.txt") == 1 })
	systest.NoError(t, os.WriteFile(filepath.Join(dir, "a.txt"), []byte("changed"), 0o600))
	systest.Until(t, "the changed file", func() bool { return count("a.txt") >= 2 })
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if got, want := names(t, out), []string{"a.md"}; !slices.Equal(got, want) {
		t.Errorf("results %q, expected %q", got, want)
	}
	if b, _ := os.ReadFile(filepath.Join(out, "a.md")); string(b) != "CHANGED" {
		t.Errorf("%q", b)
	}
	if len(done) != 2 || done["a.txt"][0] != nil || done["b.txt"][0] == nil {
		t.Errorf("%v", done)
	}
	if err := b.Watch(t.Context(), out, time.Second, nil); err == nil {
		t.Error("results go where they would be processed again")
	}
	b.Action = "merge"
	if err := b.Watch(t.Context(), dir, time.Second, nil); err == nil {
		t.Error("a joint action watches")
	}
}
