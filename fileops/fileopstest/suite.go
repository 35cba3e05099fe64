// Package fileopstest checks that an Action behaves as its Spec says. Authors of
// an Action call [Run] with a [Suite] in a test.
package fileopstest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/systest"
)

// A Suite configures the test of an action.
type Suite struct {
	Action fileops.Action

	// Fixture returns a valid input of format f. nil means [Sample].
	Fixture func(t testing.TB, f format.Format) *fileops.File

	// Args holds values for parameters without an Enum. Values for parameters that
	// an entry of the Spec lacks are ignored.
	Args fileops.Args

	// Formats restricts the inputs to some of those in the Spec; nil means all.
	// [format.Any] in a Spec is tested with txt and png.
	Formats []format.Format

	// Check checks the results for one combination. The suite has already checked
	// that each result is non-empty and has the format of its name.
	Check func(t *testing.T, in []*fileops.File, args fileops.Args, out []*fileops.File)

	// Concurrency is the number of concurrent runs; 0 means 16, or 4 with -short.
	Concurrency int
}

// Run checks, for every format and every enumerated value in the Spec:
//
//   - the action succeeds and the content of its results matches their names;
//   - convert_to names the format of the results;
//
// and for each format, or for one format where that is enough. With -short, each format, each listed
// value of a parameter, and each entry with Changes also runs once only, not in all combinations:
//
//   - the same works in memory, on disk, and in many concurrent runs;
//   - empty and random inputs fail with an error that blames the input, once for
//     a format that an entry keeps and others change.
//     Truncated inputs fail at least with an error that [fileops.Code] knows;
//   - a done context stops the run within a second;
//   - progress never decreases and ends at 1;
//   - no scratch file or goroutine is left behind;
//   - no secret parameter appears in the log or in an error.
func Run(t *testing.T, s Suite) {
	t.Helper()
	if s.Fixture == nil {
		s.Fixture = Sample
	}
	if s.Concurrency == 0 {
		s.Concurrency = 16
		if testing.Short() {
			s.Concurrency = 4
		}
	}
	checkSpec(t, s.Action)
	spec := s.Action.Spec()
	first := true
	tried, read := make(map[string]bool), make(map[format.Format]bool)
	damaged := make(map[format.Format]bool) // formats whose bad inputs were tried
	for i, acc := range spec.Accepts {
		for _, f := range acc.Formats {
			for _, in := range expand(f) {
				if s.Formats != nil && !slices.Contains(s.Formats, in) {
					continue
				}
				for k, c := range s.combinations(acc) {
					args := c.args
					if testing.Short() && tried[c.value] && (k > 0 || read[in] && len(acc.Changes) == 0) {
						continue
					}
					tried[c.value], read[in] = true, true
					name := fmt.Sprintf("%d/%s%s", i, in, describe(acc.Params, args))
					t.Run(name, func(t *testing.T) { s.succeeds(t, in, args) })
					if k > 0 || (len(acc.Changes) > 0 || testing.Short()) && damaged[in] {
						continue
					}
					damaged[in] = true
					t.Run(name+"/bad input", func(t *testing.T) { s.badInput(t, f, in, args) })
					if first {
						first = false
						t.Run(name+"/backings", func(t *testing.T) { s.backings(t, in, args) })
						t.Run(name+"/at once", func(t *testing.T) { s.atOnce(t, in, args) })
						t.Run(name+"/cancelled", func(t *testing.T) { s.cancelled(t, in, args) })
					}
				}
			}
		}
	}
	if first {
		t.Error("the suite tested nothing: Formats and Spec have nothing in common")
	}
}

// checkSpec checks that a registry accepts the action, and that its Spec is complete.
func checkSpec(t *testing.T, a fileops.Action) {
	t.Helper()
	if _, err := fileops.NewRegistry(a); err != nil {
		t.Fatalf("spec: %v", err)
	}
	spec := a.Spec()
	if spec.Summary == "" || !strings.HasSuffix(spec.Summary, ".") {
		t.Errorf("Spec.Summary %q is not a sentence", spec.Summary)
	}
	if spec.Engine == "" || spec.Family == "" {
		t.Errorf("Spec has no engine or family: %q, %q", spec.Engine, spec.Family)
	}
}

func expand(f format.Format) []format.Format {
	if f == format.Any {
		return []format.Format{format.TXT, format.PNG}
	}
	return []format.Format{f}
}

// A combination is a set of arguments and the listed value that it tries, such as
// "convert_to=png".
type combination struct {
	args  fileops.Args
	value string
}

// combinations returns arguments that use every listed value at least once: all
// values of required parameters, each with the defaults of the others, and then
// the values of each optional one.
func (s Suite) combinations(acc fileops.Accept) []combination {
	schema, base, first := acc.Params, Changing(acc), ""
	for _, p := range schema {
		if v, ok := s.Args[p.Name]; ok {
			base[p.Name] = v
		} else if p.Required && len(p.Enum) > 0 {
			base[p.Name] = p.Enum[0]
			first = p.Name + "=" + p.Enum[0]
		}
	}
	out := []combination{{base, first}}
	for _, p := range schema {
		if _, fixed := s.Args[p.Name]; fixed {
			continue
		}
		for _, v := range p.Enum {
			if p.Required && v == p.Enum[0] {
				continue
			}
			a := maps.Clone(base)
			a[p.Name] = v
			out = append(out, combination{a, p.Name + "=" + v})
		}
	}
	return out
}

// Changing returns arguments that change a file, as an entry with
// [fileops.Accept.Changes] requires: a value for the first of these parameters that is
// pages or text, or has listed values or a range. It returns no arguments for other entries.
func Changing(acc fileops.Accept) fileops.Args {
	for _, name := range acc.Changes {
		p := acc.Params[slices.IndexFunc(acc.Params, func(p fileops.Param) bool { return p.Name == name })]
		switch {
		case p.Name == "pages":
			return fileops.Args{name: "1"}
		case p.Name == "text":
			return fileops.Args{name: "Draft"}
		case len(p.Enum) > 0:
			other := slices.DeleteFunc(slices.Clone(p.Enum), func(v string) bool { return v == fmt.Sprint(p.Default) })
			if len(other) > 0 {
				return fileops.Args{name: other[0]}
			}
		case p.Type == fileops.Boolean:
			return fileops.Args{name: p.Default != true}
		case (p.Type == fileops.Integer || p.Type == fileops.Number) && p.Max > 0:
			return fileops.Args{name: min(p.Max, max(p.Min, 20))}
		}
	}
	return fileops.Args{}
}

func describe(schema fileops.Schema, args fileops.Args) string {
	var b strings.Builder
	for _, p := range schema {
		if v, ok := args[p.Name]; ok && !p.Secret {
			fmt.Fprintf(&b, " %s=%v", p.Name, v)
		}
	}
	return b.String()
}

func (s Suite) inputs(t testing.TB, f format.Format) []*fileops.File {
	in := []*fileops.File{s.Fixture(t, f)}
	if s.Action.Spec().Joint {
		in = append(in, s.Fixture(t, f), s.Fixture(t, f))
	}
	return in
}

// run runs the action and reads the results, which are otherwise valid only
// until the sink returns.
func (s Suite) run(ctx context.Context, t testing.TB, args fileops.Args, in ...*fileops.File) ([]*fileops.File, error) {
	t.Helper()
	dir := t.TempDir()
	var log bytes.Buffer
	var mu sync.Mutex
	last, fell := 0.0, false
	r := fileops.Runner{
		TempDir: dir,
		Log:     slog.New(slog.NewTextHandler(&lockedWriter{w: &log}, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Progress: func(done float64) {
			mu.Lock()
			defer mu.Unlock()
			fell = fell || done < last || done > 1
			last = done
		},
	}
	var out []*fileops.File
	err := r.Run(ctx, s.Action, args, fileops.SinkFunc(func(_ context.Context, f *fileops.File) error {
		b, err := io.ReadAll(f.Reader())
		out = append(out, fileops.Bytes(f.Name(), b))
		return err
	}), in...)
	if es, _ := os.ReadDir(dir); len(es) > 0 {
		t.Errorf("scratch left behind: %v", es)
	}
	mu.Lock()
	if fell || err == nil && last != 1 {
		t.Errorf("progress fell, passed 1 or ended at %v", last)
	}
	mu.Unlock()
	for _, acc := range s.Action.Spec().Accepts {
		for _, p := range acc.Params {
			v, _ := args[p.Name].(string)
			if p.Secret && len(v) > 3 && (strings.Contains(log.String(), v) || err != nil && strings.Contains(err.Error(), v)) {
				t.Errorf("secret parameter %s is in the log or the error", p.Name)
			}
		}
	}
	return out, err
}

func (s Suite) succeeds(t *testing.T, f format.Format, args fileops.Args) {
	in := s.inputs(t, f)
	out, err := s.run(t.Context(), t, args, in...)
	systest.NoError(t, err)
	s.check(t, in, args, out)
}

func (s Suite) check(t *testing.T, in []*fileops.File, args fileops.Args, out []*fileops.File) {
	t.Helper()
	if len(out) == 0 {
		t.Fatal("no results")
	}
	expected := s.resultFormats(t, in, args)
	for _, o := range out {
		verbatim := s.Action.Spec().Verbatim
		if expected != nil && !slices.Contains(expected, o.Format()) {
			t.Errorf("result %s, but Spec.ResultFormats returns %v", o.Name(), expected)
		}
		if o.Size() == 0 && !verbatim {
			t.Errorf("%s is empty", o.Name())
		}
		if err := format.Check(o.Format(), o.Reader(), o.Size()); err != nil && !verbatim && !errors.Is(err, format.ErrEncrypted) {
			t.Errorf("%s: %v", o.Name(), err)
		}
		if to, ok := args["convert_to"]; ok && o.Format() != format.Parse(fmt.Sprint(to)) {
			t.Errorf("result %s of convert_to %v", o.Name(), to)
		}
		if o.Name() != filepath.Base(o.Name()) {
			t.Errorf("result name %q is a path", o.Name())
		}
	}
	if s.Check != nil {
		s.Check(t, in, args, out)
	}
}

// resultFormats returns the formats that results may have according to the Spec.
func (s Suite) resultFormats(t *testing.T, in []*fileops.File, args fileops.Args) []format.Format {
	t.Helper()
	reg, err := fileops.NewRegistry(s.Action)
	systest.NoError(t, err)
	var formats []format.Format
	for _, f := range in {
		formats = append(formats, f.Format())
	}
	a, params, err := reg.Resolve(s.Action.Spec().Name, formats, args)
	systest.NoError(t, err)
	return a.Spec().ResultFormats(formats, params)
}

func (s Suite) badInput(t *testing.T, listed, f format.Format, args fileops.Args) {
	good, err := s.inputs(t, f)[0].ReadAll(1 << 30)
	if err != nil {
		onDisk := s.Fixture(t, f)
		if p, ok := onDisk.Path(); ok {
			good, err = os.ReadFile(p)
		}
		systest.NoError(t, err)
	}
	random := make([]byte, 8192)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range random {
		random[i] = byte(rng.Uint32())
	}
	blames := []error{fileops.ErrCorruptInput, fileops.ErrFormatMismatch, fileops.ErrUnsupportedInput}
	for name, b := range map[string][]byte{"empty": nil, "random": random, "truncated": good[:len(good)/2]} {
		in := fileops.Bytes("bad."+string(f), b)
		_, err := s.run(t.Context(), t, args, in)
		mustFail := listed != format.Any && name != "truncated" && !(name == "empty" && plainText(f))
		switch {
		case err == nil && mustFail:
			t.Errorf("%s input is accepted", name)
		case err != nil && mustFail && !slices.ContainsFunc(blames, func(k error) bool { return errors.Is(err, k) }):
			t.Errorf("%s input: error does not blame the input: %v", name, err)
		case err != nil && fileops.Code(err) == "internal_error":
			t.Errorf("%s input: internal error: %v", name, err)
		}
	}
}

// plainText reports whether an empty file of format f is valid.
func plainText(f format.Format) bool {
	return format.Check(f, bytes.NewReader(nil), 0) == nil
}

func (s Suite) backings(t *testing.T, f format.Format, args fileops.Args) {
	in := s.inputs(t, f)
	var disk, mem []*fileops.File
	before := make(map[string][]byte) // content by path
	for i, x := range in {
		b, ok := x.Bytes()
		if p, onDisk := x.Path(); onDisk {
			var err error
			if b, err = os.ReadFile(p); err != nil {
				t.Fatal(err)
			}
		} else if !ok {
			t.Fatal("fixture has no content")
		}
		dir := filepath.Join(t.TempDir(), fmt.Sprint(i))
		systest.NoError(t, os.Mkdir(dir, 0o700))
		path := filepath.Join(dir, x.Name())
		systest.NoError(t, os.WriteFile(path, b, 0o600))
		disk = append(disk, fileops.Path(path))
		mem = append(mem, fileops.Bytes(x.Name(), b))
		before[path] = b
	}
	for name, in := range map[string][]*fileops.File{"disk": disk, "memory": mem} {
		out, err := s.run(t.Context(), t, args, in...)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		s.check(t, in, args, out)
	}
	for path, b := range before {
		if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, b) {
			t.Errorf("the input file was changed or removed: %v", err)
		}
	}
}

func (s Suite) atOnce(t *testing.T, f format.Format, args fileops.Args) {
	in := s.inputs(t, f)
	label := pprof.Labels("test", t.Name())
	var wg sync.WaitGroup
	pprof.Do(t.Context(), label, func(ctx context.Context) {
		for range s.Concurrency {
			wg.Go(func() {
				if _, err := s.run(ctx, t, args, in...); err != nil {
					t.Error(err)
				}
			})
		}
	})
	wg.Wait()
	// An engine may keep some goroutines for the next run.
	most := s.Concurrency / 2
	deadline := time.Now().Add(10 * time.Second)
	n, profile := systest.Goroutines(t, t.Name())
	for n > most && time.Now().Before(deadline) {
		time.Sleep(50 * time.Millisecond)
		n, profile = systest.Goroutines(t, t.Name())
	}
	if n > most {
		t.Errorf("%d goroutines are left after %d runs at once, at most %d may be:\n%s", n, s.Concurrency, most, profile)
	}
}

func (s Suite) cancelled(t *testing.T, f format.Format, args fileops.Args) {
	for _, after := range []time.Duration{0, time.Millisecond} {
		in := s.inputs(t, f)
		ctx, cancel := context.WithTimeout(t.Context(), after)
		done := make(chan error, 1)
		go func() {
			_, err := s.run(ctx, t, args, in...)
			done <- err
		}()
		<-ctx.Done()
		select {
		case err := <-done:
			// A fast action may finish before the deadline.
			if err != nil && !errors.Is(err, context.DeadlineExceeded) || err == nil && after == 0 {
				t.Errorf("after %v: got %v, want context.DeadlineExceeded", after, err)
			}
		case <-time.After(10 * time.Second): // generous: the machine may be busy
			t.Fatal("the run goes on although its context is done")
		}
		cancel()
	}
}

type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}
