package worker_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/status/worker"
)

// ended is the end of a program.
type ended struct{ text string }

func (e ended) Error() string      { return "the program failed" }
func (e ended) StderrTail() string { return e.text }

// An item keeps what its engine logged, without secrets and without the directories of the host.
func TestLog(t *testing.T) {
	t.Parallel()
	spec := fileops.Spec{Name: "shout", Engine: "go", Family: "text", Summary: "Logs.",
		Accepts: []fileops.Accept{{Formats: []format.Format{format.TXT}, Params: fileops.Schema{
			{Name: "fail", Doc: "Fail."}, {Name: "password", Doc: "Secret.", Min: 1, Max: 100, Secret: true},
			{Name: "more", Doc: "Secrets.", Type: fileops.Object, Min: 1, Max: 3, Secret: true},
		}}}}
	reg, err := fileops.NewRegistry(fileops.Func(spec, func(_ context.Context, job *fileops.Job) error {
		switch job.Params.Get("fail") {
		case "silent":
			return fileops.Fail(fileops.ErrCorruptInput, ended{"first line\ncannot open '/var/tmp/x-1/in.txt'\n\n"}, "")
		case "long":
			job.Log.Info(strings.Repeat("ü", 1000))
			for range 1000 {
				job.Log.Info("repeated")
			}
			return fileops.Fail(fileops.ErrCorruptInput, nil, "")
		}
		job.Log.Debug("for developers")
		job.Log.With("colour", "red").Info("entries left out", "links", 2)
		job.Log.Warn("engine failed", "err", "open /var/tmp/x-1/deep/in.txt: no such file", "stderr", "one\rat file:///home/u/a.txt and https://example.com/a/b, 3/4\ntwo\x1b[1m \xff\n", "pid", 7)
		job.Log.Error("cannot open with hunter2")
		job.Log.Error("cannot open with \"a\\\"b\"")
		return job.WriteBytes("a.txt", []byte("x"))
	}))
	systest.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	w, err := worker.New(worker.Config{Actions: reg, Log: slog.New(slog.DiscardHandler)})
	systest.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	defer func() { stop(); <-done }()
	for id, tt := range map[string]struct {
		args map[string]any
		want []string
	}{
		"logs": {map[string]any{"password": "hunter2", "more": map[string]any{"a": []any{`a"b`}}}, []string{
			"info entries left out links=2", "warn engine failed err=open …/in.txt: no such file", "warn one", "warn at …/a.txt and https://example.com/a/b, 3/4", "warn two [1m",
		}},
		"silent": {map[string]any{"fail": "silent"}, []string{"warn first line", "warn cannot open '…/in.txt'"}},
		"long":   {map[string]any{"fail": "long"}, append([]string{"info " + strings.Repeat("ü", 200) + "…"}, slices.Repeat([]string{"info repeated"}, 19)...)},
	} {
		systest.NoError(t, submit(ctx, w, w, id, "hello", tt.args))
		op, err := final(ctx, w, id)
		systest.NoError(t, err)
		var got []string
		for _, l := range op.Items[0].Attempts[0].Log {
			if l.Time.Before(op.Items[0].Started.Truncate(time.Millisecond)) || l.Time.After(op.Items[0].Finished) {
				t.Errorf("%s: the time of %q is not within the attempt", id, l.Text)
			}
			got = append(got, l.Level+" "+l.Text)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s:\n%s\nwant\n%s", id, strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
		}
	}
}
