package worker_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/logtest"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/internal/worktime"
	"github.com/filewright/filewright/status"
	"github.com/filewright/filewright/status/worker"
	"github.com/filewright/filewright/upload"
	"github.com/filewright/filewright/upload/blob/memblob"
)

// shout writes text in capitals, unless a parameter says how to fail.
func shout() *fileops.Registry {
	spec := fileops.Spec{Name: "shout", Engine: "go", Family: "text", Summary: "Writes text in capitals.",
		Accepts: []fileops.Accept{{Formats: []format.Format{format.TXT}, Params: fileops.Schema{{Name: "fail", Doc: "How."}, {Name: "warn", Doc: "A warning."}}}}}
	reg, err := fileops.NewRegistry(fileops.Func(spec, func(ctx context.Context, job *fileops.Job) error {
		b, err := job.Input().ReadAll(1 << 20)
		if err != nil {
			return err
		}
		if err := job.WriteBytes(fileops.ResultName(job.Input(), format.TXT), bytes.ToUpper(b)); err != nil {
			return err
		}
		if how := job.Params.Get("warn"); how != "" {
			job.Warn(fileops.WarnEncodingGuessed, "%s", how)
		}
		if job.Params.Get("fail") == "late" {
			return fileops.Fail(fileops.ErrCorruptInput, errors.New("at its end"), "")
		}
		return nil
	}))
	if err != nil {
		panic(err)
	}
	return reg
}

// submit stores text as a file of an account and submits an operation on it. sealer
// seals the parameters.
func submit(ctx context.Context, w, sealer *worker.Worker, id, text string, args map[string]any) error {
	f, err := w.Uploads().Add(ctx, upload.File{Owner: "ada", Name: "a.txt", ContentType: "text/plain", Size: int64(len(text))}, strings.NewReader(text), "")
	if err != nil {
		return err
	}
	sealed, err := sealer.Seal(id, args)
	if err != nil {
		return err
	}
	_, err = w.Operations().Submit(ctx, status.Operation{ID: id, Owner: "ada", Action: "shout", Args: sealed,
		Items: []status.Item{{Queue: "text", State: status.Queued, Inputs: []status.File{worker.FileOf(f)}}}})
	return err
}

// final waits until an operation is final.
func final(ctx context.Context, w *worker.Worker, id string) (last *status.Operation, err error) {
	for op, err := range w.Operations().Watch(ctx, "ada", id) {
		if err != nil {
			return nil, err
		}
		last = op
	}
	return last, nil
}

func Example() {
	ctx, stop := context.WithCancel(context.Background())
	w, err := worker.New(worker.Config{Actions: shout(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		panic(err)
	}
	done := make(chan error)
	go func() { done <- w.Run(ctx) }()

	if err := submit(ctx, w, w, "1", "hello", nil); err != nil {
		panic(err)
	}
	op, err := final(ctx, w, "1")
	if err != nil {
		panic(err)
	}
	_, result, err := w.Uploads().Open(ctx, "ada", op.Items[0].Results[0].Key)
	if err != nil {
		panic(err)
	}
	b, err := io.ReadAll(io.NewSectionReader(result, 0, result.Info().Size))
	fmt.Printf("%s: %s %v\n", op.State, b, err)
	stop()
	fmt.Println(<-done)
	// Output:
	// completed: HELLO <nil>
	// <nil>
}

// Parameters sealed by another process are opened if it has a secret of this one.
func TestSharedSecret(t *testing.T) {
	t.Parallel()
	var log logtest.Buffer
	blobs, secret := memblob.New(), bytes.Repeat([]byte{7}, 32)
	create := func(secrets ...[]byte) *worker.Worker {
		w, err := worker.New(worker.Config{
			Actions: shout(), Blobs: blobs, TempDir: t.TempDir(), Log: slog.New(slog.NewTextHandler(&log, nil)), Uploads: upload.Options{Secrets: secrets},
		})
		systest.NoError(t, err)
		return w
	}
	w := create(bytes.Repeat([]byte{8}, 32), secret) // the secret is being replaced
	friend, stranger := create(secret), create(bytes.Repeat([]byte{9}, 32))
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	for _, tt := range []struct {
		sealer *worker.Worker
		id     string
		args   map[string]any
		state  status.State
		code   string
	}{
		{w, "own", nil, status.Completed, ""},
		{friend, "good", nil, status.Completed, ""},
		{friend, "late", map[string]any{"fail": "late"}, status.Failed, "corrupt_input"},
		{stranger, "sealed", nil, status.Failed, "internal_error"},
	} {
		systest.NoError(t, submit(t.Context(), w, tt.sealer, tt.id, "hello", tt.args))
		op, err := final(t.Context(), w, tt.id)
		if err != nil || op.State != tt.state {
			t.Fatalf("%s: %+v, %v\n%s", tt.id, op, err, &log)
		}
		if e := op.Items[0].Error; tt.code != "" && (e == nil || e.Code != tt.code) {
			t.Errorf("%s: %+v, want %s", tt.id, e, tt.code)
		}
		if op.Items[0].Attempt != 1 {
			t.Errorf("%s: %d attempts, want 1", tt.id, op.Items[0].Attempt)
		}
	}
	// Results that an attempt registered before it failed are removed.
	var names []string
	for i, err := range blobs.List(t.Context(), "files/") {
		systest.NoError(t, err)
		names = append(names, i.Key)
	}
	if len(names) != 4+2 { // four inputs and the results of two operations
		t.Errorf("left in the store: %v", slices.Sorted(slices.Values(names)))
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	if _, err := worker.New(worker.Config{}); err == nil || !strings.Contains(err.Error(), "Config.Actions") {
		t.Errorf("without actions: %v", err)
	}
	if _, err := worker.New(worker.Config{Actions: shout(), Uploads: upload.Options{Secrets: [][]byte{{1}}}}); err == nil {
		t.Error("a short secret is accepted")
	}
}

// The warnings of an attempt are recorded with its results.
func TestWarnings(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	w, err := worker.New(worker.Config{Actions: shout(), Log: slog.New(slog.DiscardHandler)})
	systest.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	defer func() { stop(); <-done }()
	systest.NoError(t, submit(ctx, w, w, "1", "hello", map[string]any{"warn": "UTF-8, perhaps"}))
	op, err := final(ctx, w, "1")
	want := []status.Warning{{Code: "encoding_guessed", Message: "UTF-8, perhaps"}}
	if err != nil || !slices.Equal(op.Items[0].Warnings, want) {
		t.Errorf("%+v, %v; want %v", op, err, want)
	}
}

// An item times out when it has worked for its limit, by whatever the work of its engines
// is measured with. A starved one may take longer by the clock, and a hanging one is
// stopped.
func TestTimeIsWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		share := map[string]float64{"works": 1, "starved": 0.05, "hangs": 0}
		spec := fileops.Spec{Name: "shout", Engine: "go", Family: "text", Summary: "Works for two hours.",
			Accepts: []fileops.Accept{{Formats: []format.Format{format.TXT}, Params: fileops.Schema{{Name: "how", Doc: "How."}}}}}
		reg, err := fileops.NewRegistry(fileops.Func(spec, func(ctx context.Context, job *fileops.Job) error {
			start, worked := time.Now(), share[job.Params.Get("how")]
			stop := worktime.Count(ctx, func() worktime.Usage {
				since := time.Since(start)
				u := worktime.Usage{Worked: time.Duration(worked * float64(since))}
				if worked > 0 {
					u.Waited = since - u.Worked
				}
				return u
			})
			defer stop()
			select {
			case <-time.After(4 * time.Hour):
				return job.WriteBytes("a.txt", []byte("done"))
			case <-ctx.Done():
				return ctx.Err()
			}
		}))
		systest.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		w, err := worker.New(worker.Config{Actions: reg, Log: slog.New(slog.DiscardHandler), Operations: status.Config{Limits: map[string]int{"": 3}}})
		systest.NoError(t, err)
		done := make(chan error, 1)
		go func() { done <- w.Run(ctx) }()
		defer func() { stop(); <-done }()
		start := time.Now()
		for how := range share {
			systest.NoError(t, submit(ctx, w, w, how, "hello", map[string]any{"how": how}))
		}
		for how, want := range map[string]struct {
			code  string
			after time.Duration
		}{"works": {"timeout", 30 * time.Minute}, "hangs": {"timeout", 150 * time.Minute}, "starved": {"", 4 * time.Hour}} {
			op, err := final(ctx, w, how)
			systest.NoError(t, err)
			it, code := op.Items[0], ""
			if it.Error != nil {
				code = it.Error.Code
			}
			if d := it.Finished.Sub(start); code != want.code || d < want.after || d > want.after+time.Minute || it.Attempt != 1 {
				t.Errorf("%s: %q after %v in attempt %d, want %q after %v", how, code, d, it.Attempt, want.code, want.after)
			}
		}
	})
}

// An engine learns whose files it gets, also in a run that is part of another. An item whose
// attempt failed is processed on its own.
func TestOwnerOfFiles(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var owners []string
		spec := fileops.Spec{Name: "shout", Engine: "go", Family: "text", Summary: "Fails once.", Accepts: []fileops.Accept{{Formats: []format.Format{format.TXT}}}}
		inner := fileops.Func(spec, func(_ context.Context, job *fileops.Job) error {
			if owners = append(owners, job.Owner()); len(owners) == 1 {
				return fileops.Fail(fileops.ErrEngine, died{errors.New("killed")}, "")
			}
			return job.Keep(job.Input())
		})
		reg, err := fileops.NewRegistry(fileops.Func(spec, func(ctx context.Context, job *fileops.Job) error {
			r, err := job.Runner(0, 1)
			if err != nil {
				return err
			}
			return r.Run(ctx, inner, nil, fileops.SinkFunc(func(_ context.Context, f *fileops.File) error { return job.Keep(job.Input()) }), job.Input())
		}))
		systest.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		w, err := worker.New(worker.Config{Actions: reg, Log: slog.New(slog.DiscardHandler)})
		systest.NoError(t, err)
		done := make(chan error, 1)
		go func() { done <- w.Run(ctx) }()
		defer func() { stop(); <-done }()
		systest.NoError(t, submit(ctx, w, w, "1", "hello", nil))
		op, err := final(ctx, w, "1")
		if err != nil || op.State != status.Completed || !slices.Equal(owners, []string{"ada", ""}) {
			t.Errorf("%+v, %v; owners %q", op, err, owners)
		}
	})
}

type died struct{ error }

func (died) Crashed() bool { return true }
