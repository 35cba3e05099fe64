package fileops

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"github.com/filewright/filewright/fileops/format"
)

// smallResult is the largest size in bytes of a [Job.Write] result that stays in memory.
const smallResult = 1 << 20

// A Job is one run of an [Action].
//
// Its methods may be called from several goroutines, but not after [Action.Do] has
// returned.
type Job struct {
	Inputs []*File      // at least one file
	Params Params       // validated, with defaults filled in
	Log    *slog.Logger // never nil; carries the action and engine

	// Extra holds the files of Upload parameters, by name. Their content matches their
	// names, as that of inputs does.
	Extra map[string]*File

	progress  func(float64)
	tempDir   string
	maxOutput int64 // 0: no limit
	verbatim  bool  // see Spec.Verbatim
	owner     string

	telling sync.Mutex // held while progress is called, so that its values never fall

	mu       sync.Mutex
	root     string
	spooled  map[*File]string
	results  []*File
	warnings []Warning
	put      int64 // total bytes of results
	n        int
	done     float64
}

// Input returns the only input of an action with Joint unset.
func (j *Job) Input() *File { return j.Inputs[0] }

// Owner returns [Runner.Owner].
func (j *Job) Owner() string { return j.owner }

// Dir returns a private scratch directory. The first call creates it, and the end of the
// run removes it. External engines are confined to it. It is on the same file system as
// the paths that [Job.Path] returns, but does not contain them.
func (j *Job) Dir() (string, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.sub("work")
}

// TempDir creates a directory in the one that [Job.Dir] returns. For pattern, see [os.MkdirTemp]. The
// end of the run removes it; the caller may remove it earlier.
func (j *Job) TempDir(pattern string) (string, error) {
	dir, err := j.Dir()
	if err != nil {
		return "", err
	}
	return os.MkdirTemp(dir, pattern)
}

// sub returns a directory below the root of the scratch space: "in" for inputs, which
// engines only need to read, "work" for everything else.
func (j *Job) sub(name string) (string, error) {
	if j.root == "" {
		d, err := os.MkdirTemp(j.tempDir, "fileops-")
		if err != nil {
			return "", err
		}
		if d, err = filepath.Abs(d); err != nil {
			return "", err
		}
		j.root = d
	}
	d := filepath.Join(j.root, name)
	if err := os.Mkdir(d, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	return d, nil
}

// Path returns a path with f's content and f's extension, for engines that only take
// paths. A file on disk is hard-linked, or copied if the file system does not support
// that. A file in memory is written to disk. The content must not be changed. The job
// chooses the name, which is safe on any command line.
func (j *Job) Path(f *File) (string, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if p, ok := j.spooled[f]; ok {
		return p, nil
	}
	dir, err := j.sub("in")
	if err != nil {
		return "", err
	}
	p := filepath.Join(dir, fmt.Sprintf("in-%d.%s", len(j.spooled), safeExt(f.Format())))
	if err := f.LinkTo(p); err != nil {
		return "", err
	}
	if j.spooled == nil {
		j.spooled = make(map[*File]string)
	}
	j.spooled[f] = p
	return p, nil
}

// InputDir returns the directory that contains all paths that [Job.Path] returns. A
// confined engine needs read access to it.
func (j *Job) InputDir() (string, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.sub("in")
}

// safeExt returns an extension that is safe in a path: an unknown format could contain
// anything.
func safeExt(f format.Format) string {
	if f.Known() {
		return string(f)
	}
	return "bin"
}

// MaxOutput returns how many more bytes of results the run may produce, or 0 if there is
// no limit. [Job.Write] enforces the limit. Pass it to an engine that writes to a path.
func (j *Job) MaxOutput() int64 {
	if j.maxOutput == 0 {
		return 0
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return max(j.maxOutput-j.put, 1) // 0 would mean no limit
}

// TooMuch returns the failure of a run whose results exceed [Job.MaxOutput].
// cause may be nil.
func (j *Job) TooMuch(cause error) error {
	return Fail(ErrLimit, cause, "the result would have more than the limit of %s; split the file, or ask for less of it", bytesOf(j.maxOutput))
}

// bytesOf formats a number of bytes for users.
func bytesOf(n int64) string {
	for _, u := range []struct {
		size int64
		name string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n >= u.size && n%u.size == 0 {
			return fmt.Sprintf("%d %s", n/u.size, u.name)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}

// Write adds a result that fn writes as a stream. It calls fn once. Results of up to 1
// MiB stay in memory, larger ones go to the scratch directory.
func (j *Job) Write(name string, fn func(w io.Writer) error) error {
	most := j.MaxOutput()
	w := &spill{most: most, create: func() (*os.File, error) {
		path, err := j.outPath(name)
		if err != nil {
			return nil, err
		}
		return os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	}}
	err := fn(w)
	if w.full {
		err = j.TooMuch(err)
	}
	if err != nil {
		w.close()
		return err
	}
	if err := w.close(); err != nil {
		return err
	}
	if w.f == nil {
		return j.add(Bytes(name, w.buf.Bytes()))
	}
	return j.add(&File{name: filepath.Base(name), path: w.f.Name()})
}

// WriteBytes adds a result that is already in memory. The caller must not change b
// afterwards.
func (j *Job) WriteBytes(name string, b []byte) error { return j.add(Bytes(name, b)) }

// WriteFile adds a result of an engine that only writes to paths. fn must create a
// regular file at path, which has the extension of name and is in the scratch directory.
func (j *Job) WriteFile(name string, fn func(path string) error) error {
	path, err := j.outPath(name)
	if err != nil {
		return err
	}
	if err := fn(path); err != nil {
		return err
	}
	return j.add(&File{name: filepath.Base(name), path: path})
}

// Keep adds the input f unchanged as a result, for a file that cannot be improved. It
// links the content where possible instead of copying it.
func (j *Job) Keep(f *File) error {
	if f.path == "" {
		return j.addKept(Bytes(f.name, f.data))
	}
	path, err := j.outPath(f.name)
	if err != nil {
		return err
	}
	if err := f.LinkTo(path); err != nil {
		return err
	}
	return j.addKept(&File{name: f.name, path: path})
}

// Best adds the candidate at path, in the scratch directory, as a result if it is
// smaller than f. Otherwise it drops the candidate and keeps f unchanged.
func (j *Job) Best(f *File, path string) error {
	st, err := os.Stat(path)
	if err != nil {
		return err
	}
	if st.Size() == 0 || st.Size() >= f.Size() {
		return j.Keep(f)
	}
	return j.add(&File{name: f.name, path: path})
}

// Rename gives the last result another name of the same format. An action that is built
// from other actions uses it when only it knows the result's name.
func (j *Job) Rename(name string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if n := len(j.results); n > 0 {
		j.results[n-1].name = filepath.Base(name)
	}
}

func (j *Job) outPath(name string) (string, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	dir, err := j.sub("work")
	if err != nil {
		return "", err
	}
	j.n++
	return filepath.Join(dir, fmt.Sprintf("out-%d.%s", j.n, safeExt(format.Parse(name)))), nil
}

// add adds a result that an engine produced, after checking its content.
func (j *Job) add(f *File) error {
	return j.addIf(f, func() error {
		if j.verbatim {
			return nil
		}
		want := f.Format()
		if err := format.Check(want, f.Reader(), f.Size()); err != nil {
			return err
		}
		// format.Check accepts unrecognised content, because an input may start in the
		// middle of a stream. Engine output always starts with a recognisable header.
		if want.Known() && f.Size() > 0 && format.Sniff(f.Reader(), f.Size()) == "" {
			return &format.MismatchError{Want: want}
		}
		return nil
	})
}

// addKept adds an unchanged input as a result.
func (j *Job) addKept(f *File) error {
	return j.addIf(f, func() error { return format.Check(f.Format(), f.Reader(), f.Size()) })
}

func (j *Job) addIf(f *File, check func() error) error {
	if f.path != "" {
		// A compromised engine could leave a link to a foreign file, or a pipe without a
		// writer.
		if st, err := os.Lstat(f.path); err != nil {
			return err
		} else if !st.Mode().IsRegular() {
			return Fail(ErrEngine, fmt.Errorf("result %s is not a regular file", f.name), "")
		}
	}
	// An engine may report success and still write a bad file. The file is closed after
	// the check: there may be thousands.
	err := f.during(func() error {
		if most := j.MaxOutput(); most > 0 && f.Size() > most {
			return j.TooMuch(nil)
		}
		err := check()
		if err != nil && !errors.Is(err, format.ErrEncrypted) { // lock produces encrypted files
			return Fail(ErrEngine, fmt.Errorf("result %s: %w", f.Name(), err), "the engine did not produce a valid %s file", f.Format())
		}
		return nil
	})
	if err != nil {
		return err
	}
	j.mu.Lock()
	j.results = append(j.results, f)
	j.put += f.Size()
	j.mu.Unlock()
	return nil
}

// Progress reports the fraction of the run that is done, from 0 to 1. It is cheap:
// callers need not throttle. A value lower than an earlier one is ignored.
func (j *Job) Progress(done float64) {
	if j.progress == nil || !(done <= 1) {
		return
	}
	j.telling.Lock()
	defer j.telling.Unlock()
	if done > j.done {
		j.done = done
		j.progress(done)
	}
}

// finish passes the results to sink.
func (j *Job) finish(ctx context.Context, sink Sink) error {
	if len(j.results) == 0 {
		return Fail(ErrEngine, errors.New("no result"), "the engine produced no result")
	}
	for _, f := range j.results {
		if err := f.during(func() error { return sink.Put(ctx, f) }); err != nil {
			return fmt.Errorf("store %s: %w", f.Name(), err)
		}
	}
	return nil
}

func (j *Job) cleanup() {
	if j.root != "" {
		if err := os.RemoveAll(j.root); err != nil {
			j.Log.Error("scratch directory not removed", "err", err)
		}
	}
}

var errFull = errors.New("the result is larger than the limit")

// A spill is a writer that keeps small content in memory and moves larger content to a
// file.
type spill struct {
	most   int64 // bytes; 0: no limit
	full   bool  // a write exceeded most
	n      int64
	create func() (*os.File, error)
	buf    bytes.Buffer
	f      *os.File
}

func (s *spill) Write(p []byte) (int, error) {
	if s.n += int64(len(p)); s.most > 0 && s.n > s.most {
		s.full = true
		return 0, errFull
	}
	if s.f == nil && s.buf.Len()+len(p) > smallResult {
		f, err := s.create()
		if err != nil {
			return 0, err
		}
		s.f = f
		if _, err := f.Write(s.buf.Bytes()); err != nil {
			return 0, err
		}
		s.buf = bytes.Buffer{}
	}
	if s.f != nil {
		return s.f.Write(p)
	}
	return s.buf.Write(p)
}

func (s *spill) close() error {
	if s.f == nil {
		return nil
	}
	return s.f.Close()
}
