//go:build unix

// Package worker is the process that the comparison measures. For each run it reads a line of JSON
// and answers with a line of JSON.
package worker

import (
	"bufio"
	"context"
	"crypto/md5"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
)

// A Request is a line that a worker reads.
type Request struct {
	Op     string       `json:"op"`     // "run", "md5", "write", "serve", "settle", "cpu"
	Action string       `json:"action"` // for run
	Args   fileops.Args `json:"args"`
	Inputs []string     `json:"inputs"`
	Dir    string       `json:"dir"`
	Copies int          `json:"copies"` // number of runs, as many in parallel as there are cores
	Size   int64        `json:"size"`   // for md5 and write, bytes
	Cache  string       `json:"cache"`  // directory for compiled code
}

// An Answer is the line that a worker writes after a request.
type Answer struct {
	Error string        `json:"error"`
	URL   string        `json:"url"` // for serve
	CPU   time.Duration `json:"cpu"` // time used so far by the process and its ended children; 0 if unknown
}

// A Worker runs actions in a separate process, so that their time and memory can be measured.
type Worker struct {
	// Actions returns the actions and a function that stops their engines. It is called once.
	Actions func(ctx context.Context, cache string) ([]fileops.Action, func() error)

	// Serve starts the service with all data in dir. It may be nil.
	Serve func(ctx context.Context, dir string) (url string, stop func() error, err error)

	registry *fileops.Registry
	url      string
	closers  []func() error
}

// Run answers requests until the end of in.
func (w *Worker) Run(ctx context.Context, in io.Reader, out io.Writer) (err error) {
	defer func() {
		for _, c := range slices.Backward(w.closers) {
			err = errors.Join(err, c())
		}
	}()
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r Request
		var a Answer
		err := json.Unmarshal(lines.Bytes(), &r)
		if err == nil {
			a, err = w.do(ctx, r)
		}
		if err != nil {
			a.Error = err.Error()
		}
		if a.CPU, err = usage(); err != nil {
			return err
		}
		b, err := json.Marshal(a)
		if err != nil {
			return err
		}
		if _, err := out.Write(append(b, '\n')); err != nil {
			return err
		}
	}
	return lines.Err()
}

func (w *Worker) do(ctx context.Context, r Request) (Answer, error) {
	switch r.Op {
	case "run":
		return Answer{}, w.run(ctx, r)
	case "md5":
		return Answer{}, hash(r.Size)
	case "write":
		return Answer{}, write(r.Dir, r.Size)
	case "serve":
		if w.url == "" {
			url, stop, err := w.Serve(ctx, r.Dir)
			if err != nil {
				return Answer{}, err
			}
			w.url, w.closers = url, append(w.closers, stop)
		}
		return Answer{URL: w.url}, nil
	case "settle": // the next run must not pay for garbage of the last
		debug.FreeOSMemory()
		return Answer{}, nil
	case "cpu":
		return Answer{}, nil
	}
	return Answer{}, fmt.Errorf("no operation %q", r.Op)
}

func (w *Worker) run(ctx context.Context, r Request) error {
	if w.registry == nil {
		actions, stop := w.Actions(ctx, r.Cache)
		w.closers = append(w.closers, stop)
		var err error
		if w.registry, err = fileops.NewRegistry(actions...); err != nil {
			return err
		}
	}
	var inputs []*fileops.File
	var formats []format.Format
	for _, p := range r.Inputs {
		f := fileops.Path(p)
		inputs, formats = append(inputs, f), append(formats, f.Format())
	}
	action, params, err := w.registry.Resolve(r.Action, formats, r.Args)
	if err != nil {
		return err
	}
	runner := fileops.Runner{TempDir: filepath.Dir(r.Dir)}
	if r.Copies < 2 {
		return runner.Do(ctx, action, params, fileops.ToDir(r.Dir), inputs...)
	}
	var wg sync.WaitGroup
	todo := make(chan int, r.Copies)
	errs := make([]error, r.Copies)
	for i := range r.Copies {
		todo <- i
	}
	close(todo)
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := range todo {
				dir := filepath.Join(r.Dir, fmt.Sprint(i))
				if errs[i] = os.Mkdir(dir, 0o700); errs[i] == nil {
					errs[i] = runner.Do(ctx, action, params, fileops.ToDir(dir), inputs...)
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// hash computes the MD5 of n bytes on one core.
func hash(n int64) error {
	block := make([]byte, 1<<20)
	for i := range block {
		block[i] = byte(i * 7)
	}
	sum := md5.New()
	for ; n > 0; n -= int64(len(block)) {
		if _, err := sum.Write(block[:min(n, int64(len(block)))]); err != nil {
			return err
		}
	}
	sum.Sum(nil)
	return nil
}

// write writes n bytes to a file in dir and waits for fsync.
func write(dir string, n int64) error {
	f, err := os.Create(filepath.Join(dir, "data.bin"))
	if err != nil {
		return err
	}
	block := make([]byte, 1<<20)
	for ; n > 0 && err == nil; n -= int64(len(block)) {
		_, err = f.Write(block[:min(n, int64(len(block)))])
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// usage returns the processor time of this process and its ended children.
func usage() (time.Duration, error) {
	var sum time.Duration
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if err := syscall.Getrusage(who, &u); err != nil {
			return 0, err
		}
		sum += time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return sum, nil
}
