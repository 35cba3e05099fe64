package main

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
	"sync"
	"syscall"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/archiveops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/standard"
)

// A request is a line that a worker reads.
type request struct {
	Op     string       `json:"op"`     // "run", "md5", "serve", "settle", "cpu"
	Only   string       `json:"only"`   // "zip": nothing else is loaded
	Action string       `json:"action"` // of run
	Args   fileops.Args `json:"args"`
	Inputs []string     `json:"inputs"`
	Dir    string       `json:"dir"`
	Copies int          `json:"copies"` // how many times, as many side by side as there are cores
	Size   int64        `json:"size"`   // of md5
	Cache  string       `json:"cache"`
}

// A worker is the other side of a [server]: this module in a process of its
// own, so that time and memory are its own too.
type worker struct {
	set      *standard.Set
	registry *fileops.Registry
	service  *service
}

// serve answers requests until there are no more.
func serve(ctx context.Context, in io.Reader, out io.Writer) (err error) {
	w := &worker{}
	defer func() { err = errors.Join(err, w.close()) }()
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r request
		var a answer
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

func (w *worker) do(ctx context.Context, r request) (answer, error) {
	switch r.Op {
	case "run":
		return answer{}, w.run(ctx, r)
	case "md5":
		return answer{}, hash(r.Size)
	case "serve":
		var err error
		if w.service == nil {
			w.service, err = newService(ctx, r.Dir)
		}
		if err != nil {
			return answer{}, err
		}
		return answer{URL: w.service.url}, nil
	case "settle": // garbage of the last run is none of the next
		debug.FreeOSMemory()
		return answer{}, nil
	case "cpu":
		return answer{}, nil
	}
	return answer{}, fmt.Errorf("no operation %q", r.Op)
}

func (w *worker) run(ctx context.Context, r request) error {
	if w.registry == nil {
		actions := []fileops.Action{archiveops.Zip()}
		if r.Only != "zip" {
			w.set = standard.Probe(ctx, &standard.Options{CacheDir: r.Cache})
			actions = w.set.Actions()
		}
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

func (w *worker) close() error {
	var errs []error
	if w.service != nil {
		errs = append(errs, w.service.close())
	}
	if w.set != nil {
		errs = append(errs, w.set.Close())
	}
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
