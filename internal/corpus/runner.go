package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/matrix"
)

// An Outcome is what happened to one file in one run, and the verdict of the judges.
type Outcome struct {
	File   string `json:"file"` // path below the folder
	Action string `json:"action"`
	Value  string `json:"value,omitempty"` // target format or compression level

	State    string            `json:"state"`           // one of the constants below
	Code     string            `json:"code,omitempty"`  // error code of a failure
	Error    string            `json:"error,omitempty"` // for the developer, with the cause
	Seconds  float64           `json:"seconds"`
	Ratio    float64           `json:"ratio,omitempty"` // size of all results divided by the size of the input
	Warnings []fileops.Warning `json:"warnings,omitempty"`
	Verdict
}

// The states of an outcome.
const (
	completed   = "completed"
	failed      = "failed"
	serverError = "server error" // a failure that is not the file's fault
	hang        = "hang"         // the action did not stop after its timeout
)

func (o *Outcome) key() string { return strings.TrimSpace(o.Action+" "+o.Value) + "\t" + o.File }

// walk returns the paths of regular files below root that have a known format.
func walk(root string) (paths []string, err error) {
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && format.Parse(path).Known() {
			paths = append(paths, path)
		}
		return err
	})
	return paths, err
}

// spread returns at most n items, spread evenly, or all if n is 0.
func spread(items []string, n int) []string {
	if n <= 0 || n >= len(items) {
		return items
	}
	out := make([]string, n)
	for i := range out {
		out[i] = items[i*len(items)/n]
	}
	return out
}

// A task is one run of one file.
type task struct {
	path string
	cell matrix.Cell
}

// plan returns the tasks for a sample of the files that have any, or for all of them if sample is 0:
// all cells of their format, or those of one action and target. If each is not 0, a file gets at most
// so many of them, and the next file of its format gets the following ones.
func plan(cells []matrix.Cell, files []string, action, to string, sample, each int) (out []task) {
	tasks := make(map[string][]task)
	for _, path := range files {
		for _, c := range cells {
			if c.From == format.Parse(path) && wanted(c, action, to) {
				tasks[path] = append(tasks[path], task{path, c})
			}
		}
	}
	files = slices.DeleteFunc(files, func(path string) bool { return len(tasks[path]) == 0 })
	next := make(map[format.Format]int)
	for _, path := range spread(files, sample) {
		all := tasks[path]
		if each <= 0 || each >= len(all) {
			out = append(out, all...)
			continue
		}
		f := format.Parse(path)
		for range each {
			out = append(out, all[next[f]%len(all)])
			next[f]++
		}
	}
	return out
}

// wanted reports whether a cell has one of the actions, which are separated by commas, and the
// target or level. Empty strings admit all. The target "same" restricts only convert.
func wanted(c matrix.Cell, actions, to string) bool {
	switch {
	case actions != "" && !slices.Contains(strings.Split(actions, ","), c.Action):
		return false
	case to == "same":
		return c.Action != "convert" || c.Target() == c.From
	}
	return to == "" || c.Value == to
}

// A runner runs tasks.
type runner struct {
	registry       *fileops.Registry
	root           string // Outcome.File is relative to it
	scratch        string
	timeout, grace time.Duration // grace: how long an action may take to stop
	limit          time.Duration // no run starts after it; 0: no limit
	atOnce         int
	out            io.Writer
}

// all runs tasks and prints a line for each, in order. It returns the outcomes of those that started
// within the limit.
func (r *runner) all(ctx context.Context, tasks []task) ([]Outcome, error) {
	outcomes := make([]Outcome, len(tasks))
	ready := make([]chan error, len(tasks))
	for i := range ready {
		ready[i] = make(chan error, 1)
	}
	next := make(chan int)
	var expired <-chan time.Time
	if r.limit > 0 {
		expired = time.After(r.limit)
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	for n := range max(1, r.atOnce) {
		wg.Go(func() {
			j := &judges{profile: filepath.Join(r.scratch, fmt.Sprint("profile-", n))}
			for i := range next {
				var err error
				outcomes[i], err = r.one(ctx, j, tasks[i])
				ready[i] <- err
			}
		})
	}
	wg.Go(func() {
		defer close(next)
		for i := range tasks {
			select {
			case next <- i:
			case <-expired:
				close(ready[i]) // it does not start, nor do the tasks after it
				return
			case <-ctx.Done():
				return
			}
		}
	})
	printHead(r.out)
	for i := range tasks {
		select {
		case err, ran := <-ready[i]:
			if !ran {
				return outcomes[:i], nil
			}
			if err != nil {
				return nil, err
			}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		outcomes[i].print(r.out)
	}
	return outcomes, nil
}

// password locks and unlocks files.
const password = "corpus-7"

// arguments returns values for the required parameters of a cell, and for one that changes the file
// if the cell keeps its format.
func arguments(c matrix.Cell) fileops.Args {
	args := make(fileops.Args)
	for _, p := range c.Schema {
		switch {
		case p.Name == c.Param:
			args[p.Name] = c.Value
		case p.Required, p.Name == change(c.Changes):
			args[p.Name] = value(p)
		}
	}
	return args
}

// change returns the parameter that changes a file which keeps its format, "" if there is none: one
// for which the engine decodes the file, rather than one that drops metadata.
func change(names []string) string {
	if slices.Contains(names, "width") {
		return "width"
	}
	if len(names) > 0 {
		return names[0]
	}
	return ""
}

// value returns a value of a parameter that is not its default.
func value(p fileops.Param) any {
	switch {
	case len(p.Enum) > 0:
		return slices.DeleteFunc(slices.Clone(p.Enum), func(v string) bool { return v == fmt.Sprint(p.Default) })[0]
	case p.Type == fileops.Object:
		return map[string]any{"title": title}
	case p.Secret:
		return password
	case p.Name == "width":
		return 320
	case p.Name == "pages":
		return "1"
	case p.Name == "outline":
		return "1 First"
	case p.Type == fileops.Upload && slices.Contains(p.Formats, format.Any):
		return fileops.Bytes("note.txt", []byte("a note"))
	case p.Type == fileops.Boolean:
		return p.Default != true
	case p.Type == fileops.Integer, p.Type == fileops.Number:
		return p.Min
	default:
		return draft
	}
}

// one runs a task and has its results judged. Its error is a problem of the runner.
func (r *runner) one(ctx context.Context, j *judges, t task) (Outcome, error) {
	o := Outcome{Action: t.cell.Action, Value: t.cell.Value}
	var err error
	if o.File, err = filepath.Rel(r.root, t.path); err != nil {
		return o, err
	}
	dir, err := os.MkdirTemp(r.scratch, "run-")
	if err != nil {
		return o, err
	}
	defer os.RemoveAll(dir)
	in := []*fileops.File{fileops.Path(t.path)}
	if t.cell.Spec.Joint {
		in = append(in, fileops.Path(t.path))
	}
	args := arguments(t.cell)
	if t.cell.Action == "fill_form" {
		if name := textField(ctx, t.path); name != "" {
			args["fields"] = map[string]any{name: draft}
		}
	}
	action, params, err := r.registry.Resolve(t.cell.Action, formats(in), args)
	if err != nil {
		return o, fmt.Errorf("%s %s: %w", t.cell.Action, o.File, err)
	}
	results := filepath.Join(dir, "results")
	var paths []string
	sink := fileops.SinkFunc(func(ctx context.Context, f *fileops.File) error {
		if p := filepath.Join(results, f.Name()); !slices.Contains(paths, p) {
			paths = append(paths, p)
		}
		return fileops.ToDir(results).Put(ctx, f)
	})
	limited, stop := context.WithTimeout(ctx, r.timeout)
	defer stop()
	var warnings []fileops.Warning // of the run; complete when it is done
	done := make(chan error, 1)
	start := time.Now()
	go func() {
		runner := fileops.Runner{TempDir: dir, MaxOutput: 8 << 30, Warn: func(w fileops.Warning) { warnings = append(warnings, w) }}
		done <- runner.Do(limited, action, params, sink, in...)
	}()
	select {
	case err = <-done:
	case <-limited.Done():
		select {
		case err = <-done:
		case <-time.After(r.grace):
			o.State, o.Seconds = hang, time.Since(start).Seconds()
			return o, ctx.Err()
		}
	}
	o.Seconds = time.Since(start).Seconds()
	if ctx.Err() != nil {
		return o, context.Cause(ctx)
	}
	if err != nil {
		o.State, o.Code, o.Error = failed, fileops.Code(err), err.Error()
		if slices.Contains([]string{"internal_error", "engine_unavailable"}, o.Code) || errors.Is(err, fileops.ErrUnavailable) {
			o.State = serverError
		}
		return o, nil
	}
	o.State, o.Warnings = completed, warnings
	if o.Ratio, err = ratio(t.path, paths); err != nil {
		return o, err
	}
	o.Verdict, err = j.judge(ctx, t, paths, filepath.Join(dir, "judge"))
	return o, err
}

// ratio returns the size of all results divided by the size of the input.
func ratio(input string, results []string) (float64, error) {
	var sizes [2]int64
	for i, paths := range [][]string{{input}, results} {
		for _, p := range paths {
			st, err := os.Stat(p)
			if err != nil {
				return 0, err
			}
			sizes[i] += st.Size()
		}
	}
	if sizes[0] == 0 {
		return 0, nil
	}
	return float64(sizes[1]) / float64(sizes[0]), nil
}

func formats(files []*fileops.File) (out []format.Format) {
	for _, f := range files {
		out = append(out, f.Format())
	}
	return out
}

// count counts occurrences.
type count map[string]int

func (c count) String() string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(c)) {
		parts = append(parts, fmt.Sprintf("%s %d", k, c[k]))
	}
	return strings.Join(parts, ", ")
}
