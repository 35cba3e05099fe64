package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/httpapi/client"
	"github.com/filewright/filewright/internal/batch"
)

// A runConfig configures the command run.
type runConfig struct {
	engines     engineConfig
	to          string
	args        argFlags
	output      string
	force, json bool
	jobs        int
	server, key string
	watch       string
	interval    time.Duration
	remove      bool
}

// batchRun runs an action on files, on this host or on a server.
func batchRun(c *cli) *cobra.Command {
	var r runConfig
	return c.command(spec{
		use: "run ACTION FILE...", short: "run an action on files, on this host or on a server",
		long: `Runs an action on each file, or on all together for merge and zip. The results are written
beside the files, or to --output. Existing files are kept unless --force is given.

  refserver run convert --to pdf *.docx
  refserver run compress --output small *.pdf
  refserver run merge chapter1.pdf chapter2.docx
  refserver run watermark --file image_key=logo.png *.pdf
  refserver run lock --param password=@secret.txt report.pdf
  refserver run convert --to pdf --server https://files.example.com --key @key.txt *.docx
  refserver run convert --to pdf --watch inbox --output outbox

The paths of the results go to standard output, everything else to standard error. The exit
code is 0 if all files succeeded, 1 if some failed, 2 for an invalid command line.`,
		min:   1,
		max:   -1,
		flags: r.register,
		run: func(ctx context.Context, args []string) error {
			return c.runBatch(ctx, &r, args[0], args[1:])
		},
	})
}

func (r *runConfig) register(fs *flagSet) {
	fs.section("Work", func(fs *flagSet) {
		fs.StringVar(&r.to, "to", "", "`format` of the results, for convert and thumbnail")
		r.args.register(fs)
		fs.StringVar(&r.output, "output", "", "`directory` for the results; default: beside each file")
		fs.BoolVar(&r.force, "force", false, "replace existing files")
		fs.IntVar(&r.jobs, "jobs", runtime.NumCPU(), "`number` of files that are processed at the same time")
		fs.BoolVar(&r.json, "json", false, "write a line of JSON for each file")
	})
	fs.section("Watch a directory", func(fs *flagSet) {
		fs.StringVar(&r.watch, "watch", "", "process the files of a `directory`, also those that appear later, until the command is stopped; processed files move to its subdirectories done and failed; needs --output")
		fs.DurationVar(&r.interval, "watch-interval", 2*time.Second, "`duration` between two looks; a file is complete when it has not changed in between")
		fs.BoolVar(&r.remove, "watch-delete", false, "delete processed files instead of moving them to done")
	})
	fs.section("Server", func(fs *flagSet) {
		fs.StringVar(&r.server, "server", "", "`URL` of a server that does the work; default: this host")
		fs.StringVar(&r.key, "key", "", "API `key` for the server; @FILE reads it from a file")
		fs.secret["key"] = true
	})
	r.engines.register(fs)
}

func (c *cli) runBatch(ctx context.Context, r *runConfig, action string, files []string) error {
	switch {
	case r.watch == "" && len(files) == 0:
		return usageError{errors.New("no files; name at least one, or a directory with --watch")}
	case r.watch != "" && len(files) > 0:
		return usageError{errors.New("--watch takes no files")}
	case r.watch != "" && r.output == "":
		return usageError{errors.New("--watch needs --output")}
	}
	args, err := r.arguments()
	if err != nil {
		return usageError{err}
	}
	if r.output != "" {
		switch {
		case isNewDir(r.output):
			if err := os.Mkdir(r.output, 0o777); err != nil {
				return fmt.Errorf("--output: cannot create %q: %w", r.output, withoutPath(err))
			}
		case !isDir(r.output):
			return usageError{fmt.Errorf("--output: %q is not a directory; with a slash at its end it is created", r.output)}
		}
	}
	processor, done, err := c.processor(ctx, r)
	if err != nil {
		return err
	}
	defer done()
	show := newDisplay(c, r.json, len(files))
	b := batch.Batch{Processor: processor, Action: action, Args: args, Output: r.output, Force: r.force, Jobs: r.jobs, Report: show.report}
	if r.watch != "" {
		err = b.Watch(ctx, r.watch, max(r.interval, 10*time.Millisecond), r.put)
		if ctx.Err() != nil {
			return nil // stopped, as it should be
		}
		return err
	}
	err = b.Run(ctx, files)
	show.clear()
	return err
}

// arguments returns the arguments of the action.
func (r *runConfig) arguments() (fileops.Args, error) {
	args, err := r.args.args()
	if err == nil && r.to != "" {
		args["convert_to"] = strings.TrimPrefix(strings.ToLower(r.to), ".")
	}
	return args, err
}

// orFile returns the content of a file for @FILE, else the value itself. @@ stands for @.
func orFile(value string) (string, error) {
	path, ok := strings.CutPrefix(value, "@")
	if !ok || strings.HasPrefix(path, "@") {
		return path, nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("cannot read %q: %w", path, withoutPath(err))
	}
	return strings.TrimRight(string(b), "\r\n"), nil
}

// processor returns what does the work, and a function that ends it.
func (c *cli) processor(ctx context.Context, r *runConfig) (batch.Processor, func(), error) {
	if r.server != "" {
		key, err := orFile(r.key)
		if err != nil {
			return nil, nil, usageError{fmt.Errorf("--key: %w", err)}
		}
		return &batch.Server{Client: &client.Client{BaseURL: r.server, Key: key}}, func() {}, nil
	}
	set := probeToWork(ctx, c, r.engines)
	reg, err := fileops.NewRegistry(set.Actions()...)
	if err != nil {
		set.Close()
		return nil, nil, err
	}
	return &batch.Local{Registry: reg, MaxOutput: r.engines.output}, func() { set.Close() }, nil
}

// put moves a processed file out of the way.
func (r *runConfig) put(path string, failure error) error {
	to := "done"
	switch {
	case failure != nil:
		to = "failed"
	case r.remove:
		return os.Remove(path)
	}
	dir := filepath.Join(filepath.Dir(path), to)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("cannot create %q: %w", dir, withoutPath(err))
	}
	// A file of that name may have been processed before.
	name := filepath.Base(path)
	ext := filepath.Ext(name)
	for n := 1; ; n++ {
		target := filepath.Join(dir, name)
		if n > 1 {
			target = filepath.Join(dir, fmt.Sprintf("%s-%d%s", strings.TrimSuffix(name, ext), n, ext))
		}
		err := batch.Move(path, target, false)
		var exists *batch.ExistsError
		if !errors.As(err, &exists) {
			return err
		}
	}
}

// A display shows the events of a batch: results and errors as lines, and on a terminal the progress
// in a line that changes.
type display struct {
	out, err io.Writer
	json     bool
	terminal bool
	total    int
	finished int
	running  map[string]float64 // by input
	drawn    time.Time
}

func newDisplay(c *cli, asJSON bool, total int) *display {
	d := &display{out: c.out, err: c.err, json: asJSON, total: total, running: make(map[string]float64)}
	if f, ok := c.err.(*os.File); ok && !asJSON {
		st, err := f.Stat()
		d.terminal = err == nil && st.Mode()&os.ModeCharDevice != 0
	}
	return d
}

func (d *display) report(e batch.Event) {
	if !e.Done {
		d.running[e.Inputs[0]] = e.Progress
		d.draw(false)
		return
	}
	delete(d.running, e.Inputs[0])
	d.finished += len(e.Inputs)
	d.clear()
	if d.json {
		_ = writeEvent(d.out, e) // a broken pipe ends the program
	} else {
		for _, w := range e.Warnings {
			fmt.Fprintf(d.err, "%s: warning: %s (%s)\n", e.Inputs[0], w.Message, w.Code)
		}
		if e.Err != nil {
			reason := batch.Message(e.Err)
			if !strings.HasPrefix(reason, e.Inputs[0]) {
				reason = e.Inputs[0] + ": " + reason
			}
			if errors.Is(e.Err, os.ErrExist) {
				reason += "; use --force to replace it"
			}
			fmt.Fprintln(d.err, reason)
		}
		for _, path := range e.Outputs {
			fmt.Fprintln(d.out, path)
		}
	}
	d.draw(true)
}

// writeEvent writes an event as a line of JSON.
func writeEvent(w io.Writer, e batch.Event) error {
	type reason struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	v := struct {
		Inputs   []string          `json:"inputs"`
		Outputs  []string          `json:"outputs"`
		Warnings []fileops.Warning `json:"warnings,omitempty"`
		Error    *reason           `json:"error,omitempty"`
	}{Inputs: e.Inputs, Outputs: append([]string{}, e.Outputs...), Warnings: e.Warnings}
	if e.Err != nil {
		v.Error = &reason{code(e.Err), batch.Message(e.Err)}
	}
	return json.NewEncoder(w).Encode(v)
}

// code returns the stable name of a failure.
func code(err error) string {
	var file *client.FileError
	var answer *client.Error
	switch {
	case errors.As(err, &file):
		return file.Code
	case errors.As(err, &answer):
		return answer.Slug
	case errors.Is(err, os.ErrExist):
		return "exists"
	case errors.Is(err, os.ErrNotExist):
		return "not_found"
	}
	var unsupported *fileops.UnsupportedError
	var param *fileops.ParamError
	if errors.As(err, &unsupported) || errors.As(err, &param) {
		return "unsupported_operation"
	}
	return fileops.Code(err)
}

// draw draws the line of the progress, at most ten times a second unless now is set.
func (d *display) draw(now bool) {
	if !d.terminal || !now && time.Since(d.drawn) < 100*time.Millisecond {
		return
	}
	d.drawn = time.Now()
	text := fmt.Sprintf("%d of %d", d.finished, max(d.total, d.finished))
	if d.total == 0 {
		text = fmt.Sprintf("%d files", d.finished)
	}
	for _, name := range slices.Sorted(maps.Keys(d.running)) {
		text += fmt.Sprintf("  %s %.0f %%", filepath.Base(name), 100*d.running[name])
	}
	if r := []rune(text); len(r) > 79 {
		text = string(r[:78]) + "…"
	}
	fmt.Fprintf(d.err, "\r\x1b[K%s", text)
}

// clear removes the line of the progress.
func (d *display) clear() {
	if d.terminal {
		fmt.Fprint(d.err, "\r\x1b[K")
	}
}
