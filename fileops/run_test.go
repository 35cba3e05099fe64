package fileops_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/systest"
)

// onText is an action on txt files, one run for each file.
func onText(do func(context.Context, *fileops.Job) error) fileops.Action {
	return fileops.Func(fileops.Spec{Name: "work", Engine: "test", Accepts: []fileops.Accept{{Formats: []format.Format{format.TXT}}}}, do)
}

// A collector keeps the results of a run.
type collector struct {
	names    []string
	contents []string
	onDisk   []bool
}

func (c *collector) Put(_ context.Context, f *fileops.File) error {
	b, err := io.ReadAll(f.Reader())
	if int64(len(b)) != f.Size() {
		err = fmt.Errorf("%s has %d bytes, Size says %d", f.Name(), len(b), f.Size())
	}
	_, onDisk := f.Path()
	c.names, c.contents, c.onDisk = append(c.names, f.Name()), append(c.contents, string(b)), append(c.onDisk, onDisk)
	return err
}

// leftover fails the test if dir is not empty.
func leftover(t *testing.T, dir string) {
	t.Helper()
	es, err := os.ReadDir(dir)
	if err != nil || len(es) > 0 {
		t.Errorf("left behind: %v, %v", es, err)
	}
}

func writeFile(t testing.TB, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	systest.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// After every outcome of a run the scratch space is removed, the input is unchanged, and
// the error is the expected one.
func TestRunOutcomes(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	write := func(name, content string) func(context.Context, *fileops.Job) error {
		return func(_ context.Context, job *fileops.Job) error {
			return job.Write(name, func(w io.Writer) error { _, err := io.WriteString(w, content); return err })
		}
	}
	inDir := func(job *fileops.Job, name, content string) (string, error) {
		dir, err := job.Dir()
		if err != nil {
			return "", err
		}
		path := filepath.Join(dir, name)
		return path, os.WriteFile(path, []byte(content), 0o600)
	}
	for _, tt := range []struct {
		name string
		do   func(context.Context, *fileops.Job) error
		sink fileops.Sink // nil means a collector
		is   error        // nil means success
		code string
	}{
		{name: "success", do: write("a.txt", "hello")},
		{name: "nothing", do: func(context.Context, *fileops.Job) error { return nil }, is: fileops.ErrEngine, code: "engine_failed"},
		{name: "empty result", do: write("a.pdf", ""), is: fileops.ErrEngine, code: "engine_failed"},
		{name: "empty text", do: write("a.txt", "")},
		{name: "result that is something else", do: write("a.png", "%PDF-1.4\n"), is: fileops.ErrEngine, code: "engine_failed"},
		{name: "unknown result", do: write("a.xyz", "anything")},
		{name: "failure", do: func(context.Context, *fileops.Job) error { return fileops.Fail(fileops.ErrWrongPassword, broken, "") }, is: fileops.ErrWrongPassword, code: "wrong_password"},
		{name: "other error", do: func(context.Context, *fileops.Job) error { return broken }, is: broken, code: "internal_error"},
		{name: "error after a result", do: func(ctx context.Context, job *fileops.Job) error {
			return errors.Join(write("a.txt", "hello")(ctx, job), broken)
		}, is: broken, code: "internal_error"},
		{name: "error while writing", do: func(_ context.Context, job *fileops.Job) error {
			return job.Write("a.txt", func(w io.Writer) error { w.Write(make([]byte, 3<<20)); return broken })
		}, is: broken, code: "internal_error"},
		{name: "panic", do: func(context.Context, *fileops.Job) error { panic("index out of range") }, is: fileops.ErrEngine, code: "engine_failed"},
		{name: "panic with an error", do: func(context.Context, *fileops.Job) error { panic(broken) }, is: fileops.ErrEngine, code: "engine_failed"},
		{name: "panic with files open", do: func(ctx context.Context, job *fileops.Job) error {
			if _, err := inDir(job, "x", "y"); err != nil {
				return err
			}
			if _, err := job.Path(job.Input()); err != nil {
				return err
			}
			write("a.txt", strings.Repeat("x", 2<<20))(ctx, job)
			panic("now")
		}, is: fileops.ErrEngine, code: "engine_failed"},
		{name: "sink fails", do: write("a.txt", "hello"), sink: fileops.SinkFunc(func(context.Context, *fileops.File) error { return broken }), is: broken, code: "internal_error"},
		{name: "sink fails with a file on disk", do: write("a.txt", strings.Repeat("x", 2<<20)), sink: fileops.SinkFunc(func(context.Context, *fileops.File) error { return broken }), is: broken, code: "internal_error"},
		{name: "scratch files", do: func(ctx context.Context, job *fileops.Job) error {
			if _, err := inDir(job, "x", "y"); err != nil {
				return err
			}
			dir, _ := job.Dir()
			if err := os.MkdirAll(filepath.Join(dir, "deep", "er"), 0o700); err != nil {
				return err
			}
			return write("a.txt", "hello")(ctx, job)
		}},
		{name: "file that was never written", do: func(_ context.Context, job *fileops.Job) error {
			return job.WriteFile("a.txt", func(string) error { return nil })
		}, is: os.ErrNotExist, code: "internal_error"},
		{name: "file that is a directory", do: func(_ context.Context, job *fileops.Job) error {
			return job.WriteFile("a.txt", func(path string) error { return os.Mkdir(path, 0o700) })
		}, is: fileops.ErrEngine, code: "engine_failed"},
		{name: "file that is a link to another", do: func(_ context.Context, job *fileops.Job) error {
			return job.WriteFile("a.txt", func(path string) error { return os.Symlink("/etc/passwd", path) })
		}, is: fileops.ErrEngine, code: "engine_failed"},
		{name: "file that is a pipe", do: func(_ context.Context, job *fileops.Job) error {
			return job.WriteFile("a.txt", func(path string) error { return systest.Mkfifo(path) })
		}, is: fileops.ErrEngine, code: "engine_failed"},
		{name: "file and an error", do: func(_ context.Context, job *fileops.Job) error {
			return job.WriteFile("a.txt", func(path string) error { return errors.Join(os.WriteFile(path, []byte("x"), 0o600), broken) })
		}, is: broken, code: "internal_error"},
		{name: "best of a missing candidate", do: func(_ context.Context, job *fileops.Job) error {
			return job.Best(job.Input(), "/no/such/file")
		}, is: os.ErrNotExist, code: "internal_error"},
	} {
		for _, backing := range []string{"memory", "disk"} {
			t.Run(tt.name+"/"+backing, func(t *testing.T) {
				t.Parallel()
				const content = "the input"
				path := writeFile(t, "in.txt", content)
				in := fileops.Path(path)
				if backing == "memory" {
					in = fileops.Bytes("in.txt", []byte(content))
				}
				scratch := t.TempDir()
				var c collector
				sink := tt.sink
				if sink == nil {
					sink = &c
				}
				var log bytes.Buffer
				r := fileops.Runner{TempDir: scratch, Log: slog.New(slog.NewTextHandler(&log, nil))}
				err := r.Run(t.Context(), onText(tt.do), nil, sink, in)
				if !errors.Is(err, tt.is) || (err == nil) != (tt.is == nil) {
					t.Errorf("got %v, want %v", err, tt.is)
				}
				if err != nil {
					if got := fileops.Code(err); got != tt.code {
						t.Errorf("code %s, want %s", got, tt.code)
					}
					if !strings.HasPrefix(err.Error(), "work: ") && !strings.Contains(tt.name, "panic") {
						t.Errorf("the error does not name the action: %v", err)
					}
					if len(c.names) > 0 {
						t.Errorf("results were handed over: %v", c.names)
					}
				}
				if panicked := strings.Contains(tt.name, "panic"); strings.Contains(log.String(), "action panicked") != panicked || panicked && !strings.Contains(log.String(), "run_test.go") {
					t.Errorf("the log is %s", log.String())
				}
				leftover(t, scratch)
				if b, err := os.ReadFile(path); err != nil || string(b) != content {
					t.Errorf("the input became %q, %v", b, err)
				}
				if b, ok := in.Bytes(); ok != (backing == "memory") || ok && string(b) != content {
					t.Errorf("the input became %q", b)
				}
			})
		}
	}
}

// A problem of an input is reported before the action runs.
func TestRunChecksInputs(t *testing.T) {
	t.Parallel()
	spec := fileops.Spec{Name: "work", Accepts: []fileops.Accept{
		{Formats: []format.Format{format.PDF, format.TXT, format.DOCX}}, {Formats: []format.Format{format.Any}},
	}}
	encrypted := bytes.Repeat([]byte{0}, 3*512)
	copy(encrypted, "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")
	encrypted[30], encrypted[76] = 9, 1 // 512-byte sectors, the table is sector 1
	for i, name := range []string{"Root", "EncryptedPackage"} {
		e := encrypted[512+128*i:]
		for j, c := range name {
			e[2*j] = byte(c)
		}
		e[64] = byte(2*len(name) + 2)
		copy(e[68:], "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff")
	}
	copy(encrypted[512+76:], "\x01\x00\x00\x00")
	copy(encrypted[1024:], "\xfe\xff\xff\xff")
	for _, tt := range []struct {
		name, content, code, message string
	}{
		{"a.pdf", "%PDF-1.4\n", "", ""},
		{"a.pdf", "\x89PNG\r\n\x1a\n", "format_mismatch", "the file is named .pdf, but its content is PNG (.png)"},
		{"a.pdf", "\x00\x01\x02\x03", "corrupt_input", "the file is damaged or is not a pdf file"},
		{"a.pdf", "", "corrupt_input", "the file is empty"},
		{"a.txt", "", "", ""},
		{"a.docx", string(encrypted), "password_required", "the document is protected by a password; remove it before uploading"},
		{"a.png", "not a png", "", ""}, // accepted only through format.Any
		{"a.xyz", "\x00", "", ""},
		{"noext", "\x00", "", ""},
	} {
		t.Run(tt.name+" "+tt.code, func(t *testing.T) {
			t.Parallel()
			ran := false
			a := fileops.Func(spec, func(_ context.Context, job *fileops.Job) error {
				ran = true
				return job.WriteBytes("r.txt", []byte("x"))
			})
			err := fileops.Run(t.Context(), a, nil, new(collector), fileops.Bytes(tt.name, []byte(tt.content)))
			if tt.code == "" {
				if err != nil || !ran {
					t.Errorf("got %v", err)
				}
				return
			}
			if fileops.Code(err) != tt.code || fileops.Message(err) != tt.message || ran {
				t.Errorf("got %s: %s (%v), ran %v", fileops.Code(err), fileops.Message(err), err, ran)
			}
		})
	}
}

func TestRunBadInputs(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "pipe.txt")
	systest.NoError(t, systest.Mkfifo(pipe))
	never := onText(func(context.Context, *fileops.Job) error { t.Error("the action ran"); return nil })
	for name, in := range map[string]*fileops.File{
		"missing": fileops.Path("/no/such/file.txt"), "directory": fileops.Path(t.TempDir()).Named("a.txt"), "pipe": fileops.Path(pipe),
	} {
		err := fileops.Run(t.Context(), never, nil, new(collector), in)
		if err == nil || name == "missing" && !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if err := fileops.Run(t.Context(), never, nil, new(collector)); err == nil {
		t.Error("a run without inputs succeeds")
	}
	var pe *fileops.ParamError
	if err := fileops.Run(t.Context(), never, fileops.Args{"x": 1}, new(collector), fileops.Bytes("a.txt", nil)); !errors.As(err, &pe) {
		t.Errorf("unknown parameter: got %v", err)
	}
	if err := fileops.Run(t.Context(), never, nil, new(collector), fileops.Bytes("a.pdf", nil)); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("format that is not accepted: got %v", err)
	}
	if err := fileops.Run(t.Context(), action(fileops.Spec{Name: "bad"}), nil, new(collector), fileops.Bytes("a.pdf", nil)); err == nil {
		t.Error("an action that accepts nothing runs")
	}
	r := fileops.Runner{TempDir: "/no/such/dir"}
	needsDir := onText(func(_ context.Context, job *fileops.Job) error { _, err := job.Dir(); return err })
	if err := r.Run(t.Context(), needsDir, nil, new(collector), fileops.Bytes("a.txt", nil)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no scratch space: got %v", err)
	}
	if err := r.Do(t.Context(), never, fileops.Params{}, new(collector)); err == nil {
		t.Error("Do without inputs succeeds")
	}
}

// If the context stops a run, the error wraps its cause, whatever the action returns.
func TestRunContext(t *testing.T) {
	t.Parallel()
	cause := errors.New("the client has gone")
	for name, says := range map[string]error{"an error": fileops.Fail(fileops.ErrCorruptInput, nil, ""), "success": nil, "the same": context.Canceled} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scratch := t.TempDir()
			ctx, cancel := context.WithCancelCause(t.Context())
			var c collector
			r := fileops.Runner{TempDir: scratch}
			err := r.Run(ctx, onText(func(_ context.Context, job *fileops.Job) error {
				if err := job.WriteBytes("a.txt", []byte("x")); err != nil {
					return err
				}
				if _, err := job.Dir(); err != nil {
					return err
				}
				cancel(cause)
				return says
			}), nil, &c, fileops.Bytes("a.txt", nil))
			if !errors.Is(err, cause) || errors.Is(err, fileops.ErrCorruptInput) || len(c.names) > 0 {
				t.Errorf("got %v, results %v", err, c.names)
			}
			leftover(t, scratch)
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	<-ctx.Done()
	err := fileops.Run(ctx, onText(func(ctx context.Context, _ *fileops.Job) error { <-ctx.Done(); return ctx.Err() }), nil, new(collector), fileops.Bytes("a.txt", nil))
	if fileops.Code(err) != "timeout" {
		t.Errorf("got %v", err)
	}
}

// An action that is not joint runs once for each input, a joint action once for all
// inputs.
func TestRunGroups(t *testing.T) {
	t.Parallel()
	for _, joint := range []bool{false, true} {
		var calls []int
		var progress []float64
		var c collector
		spec := fileops.Spec{Name: "work", Joint: joint, Accepts: []fileops.Accept{{Formats: []format.Format{format.TXT}}}}
		r := fileops.Runner{Progress: func(p float64) { progress = append(progress, p) }}
		err := r.Run(t.Context(), fileops.Func(spec, func(_ context.Context, job *fileops.Job) error {
			calls = append(calls, len(job.Inputs))
			job.Progress(0.5)
			return job.Keep(job.Input())
		}), nil, &c, fileops.Bytes("a.txt", []byte("1")), fileops.Bytes("b.txt", []byte("2")))
		wantCalls, wantNames, wantProgress := []int{1, 1}, []string{"a.txt", "b.txt"}, []float64{0.25, 0.5, 0.75, 1}
		if joint {
			wantCalls, wantNames, wantProgress = []int{2}, []string{"a.txt"}, []float64{0.5, 1}
		}
		if err != nil || !slices.Equal(calls, wantCalls) || !slices.Equal(c.names, wantNames) || !slices.Equal(progress, wantProgress) {
			t.Errorf("joint %v: calls %v, results %v, progress %v, %v", joint, calls, c.names, progress, err)
		}
	}
	// Run stops at the first failure.
	n := 0
	var c collector
	err := fileops.Run(t.Context(), onText(func(_ context.Context, job *fileops.Job) error {
		if n++; n == 2 {
			return fileops.Fail(fileops.ErrLimit, nil, "")
		}
		return job.Keep(job.Input())
	}), nil, &c, fileops.Bytes("a.txt", nil), fileops.Bytes("b.txt", nil), fileops.Bytes("c.txt", nil))
	if !errors.Is(err, fileops.ErrLimit) || n != 2 || len(c.names) != 1 {
		t.Errorf("got %v after %d calls, %v", err, n, c.names)
	}
}

// Progress never falls, whichever goroutine reports it.
func TestProgress(t *testing.T) {
	t.Parallel()
	var got []float64
	r := fileops.Runner{Progress: func(p float64) { got = append(got, p) }} // no lock: calls do not overlap
	err := r.Run(t.Context(), onText(func(_ context.Context, job *fileops.Job) error {
		var nan float64
		for _, p := range []float64{-1, 0, 0.2, 0.1, 0.2, nan / nan, 1.5, 0.3} {
			job.Progress(p)
		}
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				for k := range 200 {
					job.Progress(0.3 + float64(k*8+i)/4000)
				}
			})
		}
		wg.Wait()
		return job.Keep(job.Input())
	}), nil, new(collector), fileops.Bytes("a.txt", nil))
	systest.NoError(t, err)
	if len(got) < 4 || !slices.Equal(got[:2], []float64{0.2, 0.3}) || got[len(got)-1] != 1 {
		t.Errorf("got %v", got)
	}
	for i := 1; i < len(got); i++ {
		if got[i] <= got[i-1] {
			t.Fatalf("progress fell from %v to %v", got[i-1], got[i])
		}
	}
	// A nil Progress is allowed, and a failed run never reports 1.
	got = nil
	r.Run(t.Context(), onText(func(_ context.Context, job *fileops.Job) error { job.Progress(0.5); return errors.New("x") }), nil, new(collector), fileops.Bytes("a.txt", nil))
	if !slices.Equal(got, []float64{0.5}) {
		t.Errorf("of a failed run: %v", got)
	}
	if err := fileops.Run(t.Context(), onText(func(_ context.Context, job *fileops.Job) error { job.Progress(0.5); return job.Keep(job.Input()) }), nil, new(collector), fileops.Bytes("a.txt", nil)); err != nil {
		t.Error(err)
	}
}

// Concurrent runs may share the same File.
func TestRunAtOnce(t *testing.T) {
	t.Parallel()
	scratch := t.TempDir()
	content := strings.Repeat("0123456789", 300_000)
	in := fileops.Path(writeFile(t, "in.txt", content))
	r := fileops.Runner{TempDir: scratch}
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			var c collector
			err := r.Run(t.Context(), onText(func(_ context.Context, job *fileops.Job) error {
				return job.Write("out.txt", func(w io.Writer) error { _, err := io.Copy(w, job.Input().Reader()); return err })
			}), nil, &c, in)
			if err != nil || len(c.contents) != 1 || c.contents[0] != content {
				t.Errorf("got %d results, %v", len(c.contents), err)
			}
		})
	}
	wg.Wait()
	leftover(t, scratch)
}

func TestWrap(t *testing.T) {
	t.Parallel()
	inner := onText(func(_ context.Context, job *fileops.Job) error { return job.Keep(job.Input()) })
	calls := 0
	outer := fileops.Wrap(inner, func(ctx context.Context, job *fileops.Job, do func(context.Context, *fileops.Job) error) error {
		calls++
		return do(ctx, job)
	})
	var c collector
	if err := fileops.Run(t.Context(), outer, nil, &c, fileops.Bytes("a.txt", []byte("x"))); err != nil || calls != 1 || len(c.names) != 1 {
		t.Errorf("got %v, %d calls", err, calls)
	}
	if outer.Spec().Name != "work" || outer.Spec().Engine != "test" {
		t.Errorf("spec %+v", outer.Spec())
	}
}

// upper writes the input in capitals, split into lines if pages is set.
func upper(to format.Format, pages bool) fileops.Action {
	spec := fileops.Spec{Name: "upper", Engine: "test", Accepts: []fileops.Accept{{
		Formats: []format.Format{format.TXT, format.MD, format.CSV},
		Params:  fileops.Schema{{Name: "suffix", Doc: "Appended."}},
	}}}
	return fileops.Func(spec, func(_ context.Context, job *fileops.Job) error {
		in, err := job.Input().ReadAll(1 << 30)
		if err != nil {
			return err
		}
		parts := []string{string(in)}
		if pages {
			parts = strings.Split(string(in), "\n")
		}
		for i, p := range parts {
			job.Progress(float64(i) / float64(len(parts)))
			name := fileops.PageName(job.Input(), to, i+1, len(parts))
			if err := job.Write(name, func(w io.Writer) error {
				_, err := io.WriteString(w, strings.ToUpper(p)+job.Params.Get("suffix"))
				return err
			}); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestChain(t *testing.T) {
	t.Parallel()
	spec := fileops.Spec{Name: "chain", Engine: "test", Accepts: []fileops.Accept{{
		Formats: []format.Format{format.TXT}, Params: fileops.Schema{{Name: "end", Doc: "Appended by both.", Default: "!"}},
	}}}
	suffix := func(p fileops.Params) fileops.Args { return fileops.Args{"suffix": p.Get("end")} }
	big := strings.Repeat("x", 2<<20)
	for _, tt := range []struct {
		name     string
		steps    []fileops.Step
		in       string
		names    []string
		contents []string
		onDisk   bool
	}{
		{"two steps", []fileops.Step{{upper(format.MD, false), suffix}, {upper(format.CSV, false), suffix}}, "abc", []string{"in.csv"}, []string{"ABC!!"}, false},
		{"several results", []fileops.Step{{upper(format.MD, true), suffix}, {upper(format.CSV, false), nil}}, "a\nb\nc", []string{"in-001.csv", "in-002.csv", "in-003.csv"}, []string{"A!", "B!", "C!"}, false},
		{"several results at the end", []fileops.Step{{upper(format.MD, false), nil}, {upper(format.CSV, true), suffix}}, "a\nb", []string{"in-001.csv", "in-002.csv"}, []string{"A!", "B!"}, false},
		{"one step", []fileops.Step{{upper(format.MD, false), nil}}, "abc", []string{"in.md"}, []string{"ABC"}, false},
		{"large", []fileops.Step{{upper(format.MD, false), suffix}, {upper(format.CSV, false), suffix}}, big, []string{"in.csv"}, []string{strings.ToUpper(big) + "!!"}, true},
		{"input is kept", []fileops.Step{{onText(func(_ context.Context, job *fileops.Job) error { return job.Keep(job.Input()) }), nil}, {upper(format.CSV, false), nil}}, "abc", []string{"in.csv"}, []string{"ABC"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			scratch := t.TempDir()
			path := writeFile(t, "in.txt", tt.in)
			var c collector
			var progress []float64
			r := fileops.Runner{TempDir: scratch, Progress: func(p float64) { progress = append(progress, p) }}
			systest.NoError(t, r.Run(t.Context(), fileops.Chain(spec, tt.steps...), nil, &c, fileops.Path(path)))
			if !slices.Equal(c.names, tt.names) || !slices.Equal(c.contents, tt.contents) || slices.Contains(c.onDisk, !tt.onDisk) {
				t.Errorf("got %v, on disk %v", c.names, c.onDisk)
			}
			if !slices.IsSorted(progress) || progress[len(progress)-1] != 1 {
				t.Errorf("progress %v", progress)
			}
			leftover(t, scratch)
			if b, err := os.ReadFile(path); err != nil || string(b) != tt.in {
				t.Errorf("the input became %q, %v", b, err)
			}
		})
	}
	t.Run("failing step", func(t *testing.T) {
		t.Parallel()
		scratch := t.TempDir()
		fails := fileops.Func(upper("", false).Spec(), func(context.Context, *fileops.Job) error { return fileops.Fail(fileops.ErrLimit, nil, "too long") })
		var c collector
		r := fileops.Runner{TempDir: scratch}
		err := r.Run(t.Context(), fileops.Chain(spec, fileops.Step{Action: upper(format.MD, false)}, fileops.Step{Action: fails}), nil, &c, fileops.Bytes("in.txt", []byte(big)))
		if !errors.Is(err, fileops.ErrLimit) || err.Error() != "chain: step 2: upper: too long" || len(c.names) > 0 {
			t.Errorf("got %v, %v", err, c.names)
		}
		leftover(t, scratch)
	})
	t.Run("bad parameters of a step", func(t *testing.T) {
		t.Parallel()
		bad := fileops.Step{Action: upper(format.MD, false), Args: func(fileops.Params) fileops.Args { return fileops.Args{"x": 1} }}
		var pe *fileops.ParamError
		if err := fileops.Run(t.Context(), fileops.Chain(spec, bad), nil, new(collector), fileops.Bytes("in.txt", nil)); !errors.As(err, &pe) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("no steps", func(t *testing.T) {
		t.Parallel()
		if err := fileops.Run(t.Context(), fileops.Chain(spec), nil, new(collector), fileops.Bytes("in.txt", nil)); !errors.Is(err, fileops.ErrEngine) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("cancelled between steps", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		first := fileops.Func(upper("", false).Spec(), func(_ context.Context, job *fileops.Job) error { cancel(); return job.Keep(job.Input()) })
		ran := false
		second := fileops.Func(upper("", false).Spec(), func(context.Context, *fileops.Job) error { ran = true; return nil })
		err := fileops.Run(ctx, fileops.Chain(spec, fileops.Step{Action: first}, fileops.Step{Action: second}), nil, new(collector), fileops.Bytes("in.txt", nil))
		if !errors.Is(err, context.Canceled) || ran {
			t.Errorf("got %v, second ran %v", err, ran)
		}
	})
}

func TestToDir(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 5, 3 << 20} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			t.Parallel()
			dir, scratch := t.TempDir(), t.TempDir()
			content := strings.Repeat("x", size)
			systest.NoError(t, os.WriteFile(filepath.Join(dir, "out.txt"), []byte("old"), 0o600))
			r := fileops.Runner{TempDir: scratch}
			err := r.Run(t.Context(), onText(func(_ context.Context, job *fileops.Job) error {
				return job.Write("some/where/out.txt", func(w io.Writer) error { _, err := io.WriteString(w, content); return err })
			}), nil, fileops.ToDir(dir), fileops.Bytes("a.txt", nil))
			systest.NoError(t, err)
			for name, want := range map[string]string{"out.txt": "old", "out-2.txt": content} {
				if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(b) != want {
					t.Errorf("%s: %d bytes, %v", name, len(b), err)
				}
			}
			if es, _ := os.ReadDir(dir); len(es) != 2 {
				t.Errorf("the directory has %v", es)
			}
			leftover(t, scratch)
		})
	}
	t.Run("kept input stays", func(t *testing.T) {
		t.Parallel()
		path := writeFile(t, "in.txt", "content")
		keep := onText(func(_ context.Context, job *fileops.Job) error { return job.Keep(job.Input()) })
		for _, dir := range []string{t.TempDir(), filepath.Dir(path)} { // also into the input's own directory
			systest.Check(t, fileops.Run(t.Context(), keep, nil, fileops.ToDir(dir), fileops.Path(path)))
			for _, p := range []string{path, filepath.Join(dir, "in.txt")} {
				if b, err := os.ReadFile(p); err != nil || string(b) != "content" {
					t.Errorf("%s: %q, %v", p, b, err)
				}
			}
		}
	})
	t.Run("the input is not replaced", func(t *testing.T) {
		t.Parallel()
		path := writeFile(t, "in.txt", "content")
		write := onText(func(_ context.Context, job *fileops.Job) error {
			return job.WriteBytes(job.Input().Name(), []byte("result"))
		})
		for range 2 {
			systest.NoError(t, fileops.Run(t.Context(), write, nil, fileops.ToDir(filepath.Dir(path)), fileops.Path(path)))
		}
		for name, want := range map[string]string{"in.txt": "content", "in-2.txt": "result", "in-3.txt": "result"} {
			if b, err := os.ReadFile(filepath.Join(filepath.Dir(path), name)); err != nil || string(b) != want {
				t.Errorf("%s: %q, %v", name, b, err)
			}
		}
	})
	t.Run("long names", func(t *testing.T) {
		t.Parallel()
		dir, name := t.TempDir(), strings.Repeat("é", 122)+".tar.gz"
		write := onText(func(_ context.Context, job *fileops.Job) error {
			return job.WriteBytes(name, []byte("\x1f\x8b\x08\x00"))
		})
		for range 3 {
			if err := fileops.Run(t.Context(), write, nil, fileops.ToDir(dir), fileops.Bytes("a.txt", nil)); err != nil && !errors.Is(err, fileops.ErrEngine) {
				t.Fatal(err)
			}
		}
	})
	t.Run("a directory is made", func(t *testing.T) {
		t.Parallel()
		dir := filepath.Join(t.TempDir(), "not", "there", "yet")
		for i, size := range []int{1, 2 << 20} {
			write := onText(func(_ context.Context, job *fileops.Job) error {
				return job.Write("a.txt", func(w io.Writer) error { _, err := w.Write(bytes.Repeat([]byte("x"), size)); return err })
			})
			systest.NoError(t, fileops.Run(t.Context(), write, nil, fileops.ToDir(dir), fileops.Bytes("a.txt", nil)))
			if es, err := os.ReadDir(dir); err != nil || len(es) != i+1 {
				t.Errorf("%v, %v", es, err)
			}
		}
	})
	t.Run("no directory", func(t *testing.T) {
		t.Parallel()
		file := writeFile(t, "file", "x")
		for _, size := range []int{1, 2 << 20} {
			write := onText(func(_ context.Context, job *fileops.Job) error {
				return job.Write("a.txt", func(w io.Writer) error { _, err := w.Write(bytes.Repeat([]byte("x"), size)); return err })
			})
			err := fileops.Run(t.Context(), write, nil, fileops.ToDir(filepath.Join(file, "dir")), fileops.Bytes("a.txt", nil))
			want := fmt.Sprintf("cannot write to %q: not a directory", filepath.Join(file, "dir"))
			if !errors.Is(err, syscall.ENOTDIR) || fileops.Message(err) != want {
				t.Errorf("got %v, message %q, want %q", err, fileops.Message(err), want)
			}
		}
	})
	t.Run("a directory is in the way", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		systest.NoError(t, os.MkdirAll(filepath.Join(dir, "a.txt", "x"), 0o700))
		write := onText(func(_ context.Context, job *fileops.Job) error { return job.WriteBytes("a.txt", []byte("x")) })
		systest.Check(t, fileops.Run(t.Context(), write, nil, fileops.ToDir(dir), fileops.Bytes("a.txt", nil)))
		if b, err := os.ReadFile(filepath.Join(dir, "a-2.txt")); err != nil || string(b) != "x" {
			t.Errorf("%q, %v", b, err)
		}
	})
	t.Run("another file system", func(t *testing.T) {
		t.Parallel()
		// A file on another file system is copied. /dev/shm is a separate file system.
		scratch, err := os.MkdirTemp("/dev/shm", "fileops-test-")
		systest.NoError(t, err)
		t.Cleanup(func() { os.RemoveAll(scratch) })
		dir := t.TempDir()
		content := strings.Repeat("y", 2<<20)
		r := fileops.Runner{TempDir: scratch}
		err = r.Run(t.Context(), onText(func(_ context.Context, job *fileops.Job) error {
			p, err := job.Path(job.Input()) // cannot be hard-linked
			if err != nil {
				return err
			}
			if b, err := os.ReadFile(p); err != nil || string(b) != content {
				return fmt.Errorf("%d bytes, %w", len(b), err)
			}
			return job.Keep(job.Input())
		}), nil, fileops.ToDir(dir), fileops.Path(writeFile(t, "in.txt", content)))
		if b, rerr := os.ReadFile(filepath.Join(dir, "in.txt")); err != nil || rerr != nil || string(b) != content {
			t.Errorf("%d bytes, %v, %v", len(b), err, rerr)
		}
		leftover(t, scratch)
	})
}

// The results of a run may not exceed MaxOutput bytes in total, however they are
// written. The run stops writing at the limit.
func TestMaxOutput(t *testing.T) {
	t.Parallel()
	const most = 100_000
	chunk := make([]byte, 10_000)
	for i := range chunk {
		chunk[i] = 'x'
	}
	ways := map[string]func(j *fileops.Job, name string, n int) error{
		"stream": func(j *fileops.Job, name string, n int) error {
			return j.Write(name, func(w io.Writer) error {
				for i := range n {
					if _, err := w.Write(chunk); err != nil {
						if i*len(chunk) > most {
							t.Errorf("it went on to %d bytes", i*len(chunk))
						}
						return err
					}
				}
				return nil
			})
		},
		"stream that ignores errors": func(j *fileops.Job, name string, n int) error {
			return j.Write(name, func(w io.Writer) error {
				for range n {
					w.Write(chunk)
				}
				return nil
			})
		},
		"bytes": func(j *fileops.Job, name string, n int) error {
			return j.WriteBytes(name, bytes.Repeat(chunk, n))
		},
		"file": func(j *fileops.Job, name string, n int) error {
			return j.WriteFile(name, func(path string) error { return os.WriteFile(path, bytes.Repeat(chunk, n), 0o600) })
		},
	}
	for how, write := range ways {
		for _, tt := range []struct {
			sizes []int // sizes of the chunks of each result
			ok    bool
		}{{[]int{10}, true}, {[]int{11}, false}, {[]int{5, 5}, true}, {[]int{5, 6}, false}, {[]int{10, 1}, false}, {[]int{1000}, false}} {
			work := fileops.Func(fileops.Spec{Name: "work", Accepts: []fileops.Accept{{Formats: []format.Format{format.TXT}}}}, func(_ context.Context, j *fileops.Job) error {
				for i, n := range tt.sizes {
					if err := write(j, fmt.Sprintf("%d.txt", i), n); err != nil {
						return err
					}
				}
				return nil
			})
			for label, a := range map[string]fileops.Action{"alone": work, "in a chain": fileops.Chain(work.Spec(), fileops.Step{Action: work})} {
				put := 0
				r := fileops.Runner{TempDir: t.TempDir(), MaxOutput: most}
				err := r.Run(t.Context(), a, nil, fileops.SinkFunc(func(context.Context, *fileops.File) error { put++; return nil }), fileops.Bytes("a.txt", []byte("x")))
				switch {
				case tt.ok && (err != nil || put != len(tt.sizes)):
					t.Errorf("%s, %s, %v: %v, %d results", how, label, tt.sizes, err, put)
				case !tt.ok && (!errors.Is(err, fileops.ErrLimit) || put > 0 || !strings.Contains(fileops.Message(err), "100000 bytes")):
					t.Errorf("%s, %s, %v: %v (%s), %d results", how, label, tt.sizes, err, fileops.Message(err), put)
				}
			}
		}
	}
}

// A message names a path that the caller supplied, and no other path.
func TestMessageOfPaths(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	keep := onText(func(_ context.Context, job *fileops.Job) error { return job.Keep(job.Input()) })
	missing, here := filepath.Join(dir, "no.txt"), filepath.Join(dir, "dir.txt")
	systest.NoError(t, os.Mkdir(here, 0o700))
	const internal = "the file could not be processed because of an internal error"
	for name, tt := range map[string]struct {
		in   *fileops.File
		want string
	}{
		"missing":   {fileops.Path(missing), fmt.Sprintf("cannot read %q: no such file or directory", missing)},
		"directory": {fileops.Path(here), fmt.Sprintf("cannot read %q: not a regular file", here)},
		"renamed":   {fileops.Path(missing).Named("report.txt"), internal},
		"same name": {fileops.Path(missing).Named("no.txt"), internal},
	} {
		err := fileops.Run(t.Context(), keep, nil, fileops.ToDir(t.TempDir()), tt.in)
		if got := fileops.Message(err); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
		if fileops.Code(err) != "internal_error" {
			t.Errorf("%s: %s", name, fileops.Code(err))
		}
	}
	// A path error inside an action is not shown to the caller.
	inside := onText(func(context.Context, *fileops.Job) error { _, err := os.Open("/no/such/secret"); return err })
	if got := fileops.Message(fileops.Run(t.Context(), inside, nil, fileops.ToDir(dir), fileops.Bytes("a.txt", nil))); got != internal {
		t.Errorf("%q", got)
	}
}

// The error names the action once, however deeply runs are nested.
func TestErrorNamesActionOnce(t *testing.T) {
	t.Parallel()
	cause := errors.New("cause")
	inner := onText(func(context.Context, *fileops.Job) error { return cause })
	outer := onText(func(ctx context.Context, job *fileops.Job) error {
		return fileops.Run(ctx, inner, nil, fileops.ToDir(t.TempDir()), job.Input())
	})
	err := fileops.Run(t.Context(), outer, nil, fileops.ToDir(t.TempDir()), fileops.Bytes("a.txt", nil))
	if want := outer.Spec().Name + ": cause"; err.Error() != want || !errors.Is(err, cause) {
		t.Errorf("%q, want %q", err, want)
	}
}

func TestMaxBytes(t *testing.T) {
	t.Parallel()
	a := fileops.Func(fileops.Spec{Name: "copy", MaxBytes: 3, Accepts: []fileops.Accept{{Formats: []format.Format{format.Any}}}},
		func(_ context.Context, job *fileops.Job) error { return job.Keep(job.Input()) })
	sink := fileops.SinkFunc(func(context.Context, *fileops.File) error { return nil })
	if err := fileops.Run(t.Context(), a, nil, sink, fileops.Bytes("a.txt", []byte("abc"))); err != nil {
		t.Errorf("a file of the largest size: %v", err)
	}
	if err := fileops.Run(t.Context(), a, nil, sink, fileops.Bytes("a.txt", []byte("abcd"))); !errors.Is(err, fileops.ErrLimit) {
		t.Errorf("a larger file: %v, want %v", err, fileops.ErrLimit)
	}
}
