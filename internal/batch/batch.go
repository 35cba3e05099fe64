package batch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/filewright/filewright/fileops"
)

// A Batch runs an action on files. Processor and Action are required.
type Batch struct {
	Processor Processor
	Action    string
	Args      fileops.Args

	Output string // directory for the results; "" means that of the input
	Force  bool   // replace existing files
	Jobs   int    // number of files that are processed at the same time; 0 means 1

	// Report is called for each step, from one goroutine at a time; may be nil.
	Report func(Event)
}

// An Event is a step of a task: its progress, or its end.
type Event struct {
	Inputs   []string // paths
	Done     bool
	Progress float64           // from 0 to 1
	Outputs  []string          // paths of the results of a finished task
	Warnings []fileops.Warning // of a finished task
	Err      error             // why a finished task failed
}

// A FailedError reports that tasks failed. The events have the reasons.
type FailedError struct{ Failed, Total int }

// Error implements error.
func (e *FailedError) Error() string {
	if e.Total == 1 {
		return "the file failed"
	}
	return fmt.Sprintf("%d of %d files failed", e.Failed, e.Total)
}

// Run processes files: each alone, or all together if the action is joint. A file that fails does not
// stop the others. The error is a *[FailedError] if some failed.
func (b *Batch) Run(ctx context.Context, files []string) error {
	tasks := make([][]string, 0, len(files))
	if b.Processor.Joint(b.Action) {
		tasks = append(tasks, files)
	} else {
		for _, f := range files {
			tasks = append(tasks, []string{f})
		}
	}
	var mu sync.Mutex
	failed := 0
	report := func(e Event) {
		mu.Lock()
		defer mu.Unlock()
		if e.Err != nil {
			failed++
		}
		if b.Report != nil {
			b.Report(e)
		}
	}
	next := make(chan []string)
	var wg sync.WaitGroup
	for range min(max(1, b.Jobs), len(tasks)) {
		wg.Go(func() {
			for inputs := range next {
				report(b.process(ctx, inputs, report))
			}
		})
	}
feed:
	for _, t := range tasks {
		select {
		case next <- t:
		case <-ctx.Done():
			break feed
		}
	}
	close(next)
	wg.Wait()
	if err := ctx.Err(); err != nil && len(tasks) > 0 {
		return err
	}
	if failed > 0 {
		return &FailedError{failed, len(tasks)}
	}
	return nil
}

// process runs one task and returns its last event. Results have the permissions of the input.
func (b *Batch) process(ctx context.Context, inputs []string, report func(Event)) Event {
	last := Event{Inputs: inputs, Done: true, Progress: 1}
	dir := cmp.Or(b.Output, filepath.Dir(inputs[0]))
	// In the directory of the results, so that they need no copy.
	scratch, err := os.MkdirTemp(dir, ".refserver-")
	if err != nil {
		last.Err = fmt.Errorf("cannot write to the directory %s", dir)
		return last
	}
	defer os.RemoveAll(scratch)
	results, err := b.Processor.Process(ctx, Task{
		Action: b.Action, Args: b.Args, Files: inputs,
		Progress: func(done float64) { report(Event{Inputs: inputs, Progress: done}) },
	}, scratch)
	if err != nil {
		last.Err = err
		return last
	}
	for _, r := range results {
		last.Warnings = append(last.Warnings, r.Warnings...)
		to := filepath.Join(dir, r.Name)
		if err := Move(filepath.Join(scratch, r.Name), to, b.Force); err != nil {
			last.Err = err
			return last
		}
		if st, err := os.Stat(inputs[0]); err == nil {
			_ = os.Chmod(to, st.Mode().Perm()) // some file systems have no permissions
		}
		last.Outputs = append(last.Outputs, to)
	}
	return last
}

// An ExistsError reports that a result would replace a file.
type ExistsError struct{ Path string }

// Error implements error.
func (e *ExistsError) Error() string { return fmt.Sprintf("%s exists", e.Path) }

// Is makes the error match [fs.ErrExist].
func (e *ExistsError) Is(target error) bool { return target == fs.ErrExist }

// Move moves a file within a file system. Unless force is set, it does not replace a file, and fails
// with an *[ExistsError] instead.
func Move(from, to string, force bool) error {
	if !force {
		err := os.Link(from, to)
		if err == nil {
			return os.Remove(from)
		}
		if _, serr := os.Lstat(to); errors.Is(err, fs.ErrExist) || serr == nil {
			return &ExistsError{to}
		}
		// Some file systems have no links.
	}
	if err := os.Rename(from, to); err != nil {
		return fmt.Errorf("cannot write %s", to)
	}
	return nil
}

// Watch processes the files of a directory, those that are there and those that appear, until ctx is
// done. A file is complete when its size and time have not changed for interval. Files whose names
// start with a dot are left alone. done receives each file after its task, to move it away or to
// remember it; files it leaves in place are processed again only when they change. Actions that are
// joint cannot watch.
func (b *Batch) Watch(ctx context.Context, dir string, interval time.Duration, done func(path string, err error) error) error {
	if b.Processor.Joint(b.Action) {
		return fmt.Errorf("%s takes all files together, so it cannot process files one by one as they appear", b.Action)
	}
	if same(dir, b.Output) || b.Output == "" {
		return errors.New("the results need a directory of their own, or they would be processed too")
	}
	type state struct {
		size     int64
		modified time.Time
	}
	seen, processed := make(map[string]state), make(map[string]state)
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return fmt.Errorf("cannot read the directory %s", dir)
		}
		now := make(map[string]state, len(entries))
		var ready []string
		for _, e := range entries {
			info, err := e.Info()
			if err != nil || !info.Mode().IsRegular() || strings.HasPrefix(e.Name(), ".") {
				continue
			}
			s := state{info.Size(), info.ModTime()}
			now[e.Name()] = s
			if seen[e.Name()] == s && processed[e.Name()] != s {
				ready = append(ready, filepath.Join(dir, e.Name()))
			}
		}
		seen = now
		failures := make(map[string]error)
		each := *b
		each.Report = func(e Event) {
			if e.Err != nil {
				failures[e.Inputs[0]] = e.Err
			}
			if b.Report != nil {
				b.Report(e)
			}
		}
		err = each.Run(ctx, ready) // Report has received what failed
		if ctx.Err() != nil {
			return err
		}
		for _, path := range ready {
			name := filepath.Base(path)
			processed[name] = now[name]
			if err := done(path, failures[path]); err != nil {
				return err
			}
		}
		for name := range processed {
			if _, ok := now[name]; !ok {
				delete(processed, name)
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// same reports whether two paths are the same directory.
func same(a, b string) bool {
	x, err := os.Stat(a)
	y, yerr := os.Stat(b)
	return err == nil && yerr == nil && os.SameFile(x, y)
}

// Message returns the reason of a failure, for people.
func Message(err error) string {
	var failure *fileops.Failure
	if errors.As(err, &failure) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fileops.Message(err)
	}
	return err.Error()
}
