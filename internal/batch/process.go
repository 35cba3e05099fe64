// Package batch runs an action on local files, one after another or as they appear in a directory. A
// [Processor] does the work: in this process, or on a server.
//
//	b := batch.Batch{Processor: &batch.Local{Registry: reg}, Action: "convert", Args: fileops.Args{"convert_to": "pdf"}}
//	err := b.Run(ctx, files)
package batch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/httpapi/client"
)

// A Task is one run of an action.
type Task struct {
	Action string
	Args   fileops.Args // the value of an Upload is a file on disk; a server also takes a file_key
	Files  []string     // paths of the inputs

	Progress func(done float64) // from 0 to 1; may be nil
}

// A Result is a file that a task has written.
type Result struct {
	Name     string // in the directory of the task
	Warnings []fileops.Warning
}

// A Processor runs tasks.
type Processor interface {
	// Process runs a task and writes its results into dir, which is empty.
	Process(ctx context.Context, t Task, dir string) ([]Result, error)

	// Joint reports whether an action takes all inputs together.
	Joint(action string) bool
}

// Local runs actions in this process.
type Local struct {
	Registry  *fileops.Registry
	TempDir   string // parent of scratch directories; "" means os.TempDir
	MaxOutput int64  // in bytes, see [fileops.Runner]; 0: no limit
}

var _, _ Processor = (*Local)(nil), (*Server)(nil)

// Process implements [Processor].
func (l *Local) Process(ctx context.Context, t Task, dir string) ([]Result, error) {
	inputs, formats := make([]*fileops.File, len(t.Files)), make([]format.Format, len(t.Files))
	for i, path := range t.Files {
		if err := checkInput(path); err != nil {
			return nil, err
		}
		inputs[i], formats[i] = fileops.Path(path), format.Parse(path)
	}
	action, params, err := l.Registry.Resolve(t.Action, formats, t.Args)
	if err != nil {
		return nil, err
	}
	var results []Result
	var warnings []fileops.Warning
	sink := fileops.SinkFunc(func(ctx context.Context, f *fileops.File) error {
		results = append(results, Result{Name: f.Name()})
		return fileops.ToDir(dir).Put(ctx, f)
	})
	r := fileops.Runner{
		TempDir: l.TempDir, MaxOutput: l.MaxOutput, Progress: t.Progress,
		Warn: func(w fileops.Warning) { warnings = append(warnings, w) },
	}
	if err := r.Do(ctx, action, params, sink, inputs...); err != nil {
		return nil, err
	}
	if len(results) > 0 {
		results[0].Warnings = warnings
	}
	return results, nil
}

// Joint implements [Processor].
func (l *Local) Joint(action string) bool {
	for a := range l.Registry.Actions() {
		if a.Spec().Name == action && a.Spec().Joint {
			return true
		}
	}
	return false
}

// Server runs actions on a server. It deletes its uploads and their results there.
type Server struct {
	*client.Client
	Actions []string // actions that take all inputs together; nil means merge and zip
}

// Joint implements [Processor].
func (s *Server) Joint(action string) bool {
	if s.Actions == nil {
		return action == "merge" || action == "zip"
	}
	return slices.Contains(s.Actions, action)
}

// Process implements [Processor]. The transfers are not part of the progress.
func (s *Server) Process(ctx context.Context, t Task, dir string) (results []Result, err error) {
	var keys []string
	defer func() {
		after := context.WithoutCancel(ctx)
		for _, key := range keys {
			if derr := s.Delete(after, key); derr != nil && err == nil && !errors.Is(derr, &client.Error{Slug: "not_found"}) {
				err = derr
			}
		}
	}()
	r := client.Request{Action: t.Action, Parameters: maps.Clone(t.Args)}
	upload := func(path string) (string, error) {
		if err := checkInput(path); err != nil {
			return "", err
		}
		key, err := s.UploadFile(ctx, path, nil)
		if err == nil {
			keys = append(keys, key)
		}
		return key, err
	}
	for _, path := range t.Files {
		key, err := upload(path)
		if err != nil {
			return nil, err
		}
		r.FileKeys = append(r.FileKeys, key)
	}
	for name, v := range t.Args {
		f, ok := v.(*fileops.File)
		if !ok {
			continue
		}
		path, _ := f.Path()
		if r.Parameters[name], err = upload(path); err != nil {
			return nil, err
		}
	}
	id, err := s.Do(ctx, r)
	if err != nil {
		return nil, err
	}
	var progress func(*client.Operation)
	if t.Progress != nil {
		progress = func(op *client.Operation) { t.Progress(float64(op.Progress) / 100) }
	}
	op, err := s.Wait(ctx, id, progress)
	if err != nil {
		if ctx.Err() != nil {
			_, _ = s.Cancel(context.WithoutCancel(ctx), id) // it may have ended
		}
		return nil, err
	}
	for _, f := range op.Files {
		if f.Status == "completed" {
			keys = append(keys, f.Key)
		}
	}
	if err := op.Err(); err != nil {
		return nil, err
	}
	for _, f := range op.Files {
		name := filepath.Base(f.Name)
		if err := s.DownloadFile(ctx, f.DownloadLink, filepath.Join(dir, name)); err != nil {
			return nil, err
		}
		result := Result{Name: name}
		for _, w := range f.Warnings {
			result.Warnings = append(result.Warnings, fileops.Warning{Code: w.Code, Message: w.Message})
		}
		results = append(results, result)
	}
	return results, nil
}

// checkInput returns an error that says why a file cannot be an input.
func checkInput(path string) error {
	st, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("%s: no such file", path)
	case err != nil:
		return fmt.Errorf("%s: cannot be read", path)
	case !st.Mode().IsRegular():
		return fmt.Errorf("%s: not a file", path)
	}
	return nil
}
