package mcp

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/batch"
)

// Local runs actions in this process, on files below a directory. Files are paths, relative to Root or
// absolute. A path that leads out of Root, also through a symbolic link, is refused. Results never
// replace a file.
type Local struct {
	Root      string // "" means the current directory
	Registry  *fileops.Registry
	TempDir   string // parent of scratch directories; "" means os.TempDir
	MaxOutput int64  // in bytes, see [fileops.Runner]; 0: no limit

	made sync.Map // the paths of temporary results
}

// Texts for [Config] of a server with a Local backend.
const (
	LocalFiles     = "Path of a file."
	LocalOutput    = "Path of the result, or a directory for it. By default the result is written beside the input, under a name that is free."
	LocalResources = "file://{+path}"
)

var _ Backend = (*Local)(nil)

// resolve returns the absolute path of an existing file or directory below the root.
func (l *Local) resolve(path string) (string, error) {
	root, err := filepath.Abs(l.Root)
	if err == nil {
		root, err = filepath.EvalSymlinks(root)
	}
	if err != nil {
		return "", err
	}
	given := path
	if !filepath.IsAbs(path) {
		path = filepath.Join(root, path)
	}
	path, err = filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%s: no such file or directory", given)
	} else if err != nil {
		return "", fmt.Errorf("%s: cannot be opened", given)
	}
	if rel, err := filepath.Rel(root, path); err != nil || !filepath.IsLocal(rel) {
		return "", fmt.Errorf("%s is outside of the directory %s, the only one that this server may use", given, root)
	}
	return path, nil
}

// Open implements [Backend].
func (l *Local) Open(_ context.Context, file string) (*Content, error) {
	path, err := l.resolve(file)
	if err != nil {
		if !l.temporary(file) {
			return nil, err
		}
		path = file
	}
	st, err := os.Stat(path)
	if err != nil || !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a file", file)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%s: cannot be read", file)
	}
	return &Content{ReadCloser: f, Name: filepath.Base(path), Size: st.Size()}, nil
}

// temporary reports whether file is a temporary result of this backend.
func (l *Local) temporary(file string) bool {
	_, ok := l.made.Load(file)
	return ok
}

// Remove implements [Backend].
func (l *Local) Remove(_ context.Context, file string) error {
	if _, ok := l.made.LoadAndDelete(file); !ok {
		return fmt.Errorf("%s is not a temporary file", file)
	}
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	_ = os.Remove(filepath.Dir(file)) // fails until its last file is removed
	return nil
}

// Run implements [Backend].
func (l *Local) Run(ctx context.Context, c Call) ([]Result, error) {
	paths := make([]string, len(c.Files))
	for i, name := range c.Files {
		path, err := l.resolve(name)
		if err != nil {
			if !l.temporary(name) {
				return nil, err
			}
			path = name
		}
		if st, err := os.Stat(path); err != nil || !st.Mode().IsRegular() {
			return nil, fmt.Errorf("%s: not a file", name)
		}
		paths[i] = path
	}
	args, err := l.resolveArgs(c, paths)
	if err != nil {
		return nil, err
	}
	dir, name, err := l.target(c, paths[0])
	if err != nil {
		return nil, err
	}
	// In the directory of the results, so that they need no copy.
	parent, pattern := dir, ".filewright-"
	if c.Temporary {
		parent, pattern = l.TempDir, "filewright-mcp-"
	}
	scratch, err := os.MkdirTemp(parent, pattern)
	if err != nil {
		return nil, fmt.Errorf("cannot write to the directory %s", parent)
	}
	kept := false
	defer func() {
		if !kept {
			os.RemoveAll(scratch)
		}
	}()
	processor := &batch.Local{Registry: l.Registry, TempDir: l.TempDir, MaxOutput: l.MaxOutput}
	made, err := processor.Process(ctx, batch.Task{Action: c.Action, Args: args, Files: paths, Progress: c.Progress}, scratch)
	if err != nil {
		return nil, err
	}
	results := make([]Result, len(made))
	for i, m := range made {
		path := filepath.Join(scratch, m.Name)
		if c.Temporary {
			l.made.Store(path, true)
		} else if path, err = place(path, dir, m.Name, name, i, len(made)); err != nil {
			return results[:i], err
		}
		st, err := os.Stat(path)
		if err != nil {
			return results[:i], err
		}
		results[i] = Result{
			File: path, Name: filepath.Base(path), Size: st.Size(), Warnings: m.Warnings,
			URI: (&url.URL{Scheme: "file", Path: filepath.ToSlash(path)}).String(),
		}
	}
	kept = c.Temporary && len(results) > 0
	return results, nil
}

// resolveArgs returns the arguments of a call, with files in place of the paths that they name.
func (l *Local) resolveArgs(c Call, paths []string) (fileops.Args, error) {
	formats := make([]format.Format, len(paths))
	for i, path := range paths {
		formats[i] = format.Parse(path)
	}
	_, params, err := l.Registry.Resolve(c.Action, formats, c.Args)
	if err != nil {
		return nil, err
	}
	args := maps.Clone(c.Args)
	for name, file := range params.Uploads() {
		path, err := l.resolve(file)
		if err != nil {
			return nil, err
		}
		args[name] = fileops.Path(path)
	}
	return args, nil
}

// target returns the directory for the results of a call, and the name that the caller wants for them,
// or "".
func (l *Local) target(c Call, first string) (dir, name string, err error) {
	if c.Temporary {
		return "", "", nil
	}
	if c.Output == "" {
		dir, err = l.resolve(filepath.Dir(first)) // a temporary input is never the input of such a call
		return dir, "", err
	}
	if dir, err = l.resolve(c.Output); err == nil {
		if st, err := os.Stat(dir); err == nil && st.IsDir() {
			return dir, "", nil
		}
		return "", "", fmt.Errorf("%s exists; choose another output", c.Output)
	}
	if dir, err = l.resolve(filepath.Dir(c.Output)); err != nil {
		return "", "", err
	}
	return dir, filepath.Base(c.Output), nil
}

// place moves a result to its directory. It keeps existing files: a wanted name must be free, any other
// gets a number.
func place(path, dir, name, wanted string, i, total int) (string, error) {
	ext := filepath.Ext(name)
	stem := strings.TrimSuffix(name, ext)
	if wanted != "" {
		if format.Parse(wanted) != format.Parse(name) {
			return "", fmt.Errorf("the result is a %s file, so the output cannot be named %s", strings.TrimPrefix(ext, "."), wanted)
		}
		ext = filepath.Ext(wanted)
		if stem = strings.TrimSuffix(wanted, ext); total > 1 {
			stem = fmt.Sprintf("%s-%0*d", stem, len(fmt.Sprint(total)), i+1)
		}
	}
	for n := 1; ; n++ {
		to := filepath.Join(dir, stem+ext)
		if n > 1 {
			to = filepath.Join(dir, fmt.Sprintf("%s-%d%s", stem, n, ext))
		}
		err := batch.Move(path, to, false)
		switch {
		case err == nil:
			return to, nil
		case !errors.Is(err, fs.ErrExist):
			return "", err
		case wanted != "" || n == 1000:
			return "", fmt.Errorf("%s exists; choose another output", to)
		}
	}
}
