package isolate

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"time"

	"github.com/filewright/filewright/internal/worktime"
)

// Starting a process takes longer than most small files. So a process whose run succeeded may
// wait for the next file of the same owner. It never serves two owners.
const (
	// reuseIdle is how long a process waits for another file of its owner.
	reuseIdle = 5 * time.Second

	// reuseAge is how long after its first file a process still gets others.
	reuseAge = time.Minute

	// reuseWork is how much processor time a process may have used to get another file. It is
	// also what the limit of processor time of its last file may lack, so that limit is raised
	// by it.
	reuseWork = time.Second

	// reuseMemory is how much memory a process may keep between files, bytes.
	reuseMemory = 256 << 20

	// sentResults is how many bytes of the results of a run the process sends. It stores larger
	// results in its directory, where it could still change them, so it is not reused after them.
	sentResults = 1 << 20
)

// A kept process waits for the next run of its owner.
type kept struct {
	w     *process
	owner string
	until *time.Timer // ends the process
	spoke chan error  // receives when the process ends, or writes without a request
}

// keep makes w wait for the next run of its owner. If too many processes wait, the one that has
// waited longest ends.
func (p *Pool) keep(w *process, owner string) {
	k := &kept{w: w, owner: owner, spoke: make(chan error, 1)}
	go func() {
		pprof.SetGoroutineLabels(p.ctx) // the process outlives the call that it served
		_, err := w.out.Peek(1)
		k.spoke <- err
	}()
	p.mu.Lock()
	if p.ctx.Err() != nil {
		p.mu.Unlock()
		p.drop(w)
		return
	}
	k.until = time.AfterFunc(reuseIdle, func() {
		if p.remove(k) {
			defer p.wg.Done()
			p.drop(w)
		}
	})
	p.kept = append(p.kept, k)
	var oldest *kept
	if len(p.kept) > max(p.opts.Spare, runtime.GOMAXPROCS(0)) {
		oldest = p.kept[0]
		oldest.until.Stop() // if it is too late, the timer finds nothing to remove
		p.kept = p.kept[1:]
	}
	p.mu.Unlock()
	if oldest != nil {
		p.drop(oldest.w)
	}
}

// remove takes k from the list of waiting processes, for its timer. It reports false if k is not
// there any more. Else the caller ends the process and calls p.wg.Done.
func (p *Pool) remove(k *kept) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(p.kept, k)
	if i < 0 {
		return false
	}
	p.kept = slices.Delete(p.kept, i, i+1)
	p.wg.Add(1)
	return true
}

// drop ends a process between runs.
func (p *Pool) drop(w *process) {
	if err := w.end(); err != nil {
		p.opts.Log.Error("directory of an isolated process not removed", "err", err)
	}
}

// again returns a process that has served owner before, or nil.
func (p *Pool) again(owner string) *process {
	if owner == "" {
		return nil
	}
	for {
		p.mu.Lock()
		// The last one is the most likely to be in the caches of the processor.
		i := len(p.kept) - 1
		for i >= 0 && p.kept[i].owner != owner {
			i--
		}
		if i < 0 {
			p.mu.Unlock()
			return nil
		}
		k := p.kept[i]
		p.kept = slices.Delete(p.kept, i, i+1)
		p.mu.Unlock()
		k.until.Stop()
		select {
		case <-k.spoke: // it was killed, or does what it should not
			p.drop(k.w)
			continue
		default:
		}
		if k.w.from != nil && k.w.from.Ended() || time.Since(k.w.since) > reuseAge {
			p.drop(k.w)
			continue
		}
		k.w.spoke = k.spoke
		return k.w
	}
}

// reusable reports whether w, whose run has just succeeded, may serve another one.
func (p *Pool) reusable(w *process) bool {
	worked, resident := w.proc.Used()
	w.used = worked
	return w.out.Buffered() == 0 && w.served < p.opts.Files && time.Since(w.since) < reuseAge && worked < reuseWork &&
		resident > 0 && resident < reuseMemory // 0: it is gone, or cannot be measured here
}

// meter measures the work of the current run.
func (w *process) meter() worktime.Meter {
	m, before := w.proc.Work(), w.used
	return func() worktime.Usage {
		u := m()
		u.Worked = max(0, u.Worked-before)
		return u
	}
}

// wipe removes all files of the last run.
func (w *process) wipe() error {
	for _, dir := range []string{w.data, w.work} {
		// The process may still write if it is compromised. Then the directory is not empty in
		// the end.
		for range 2 {
			names, err := names(dir)
			if err != nil {
				return err
			}
			if len(names) == 0 {
				break
			}
			for _, name := range names {
				if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
					return err
				}
			}
		}
		if left, err := names(dir); err != nil || len(left) > 0 {
			return errors.Join(err, errors.New("an isolated process writes between its runs"))
		}
	}
	return nil
}

// names lists a directory that should be almost empty.
func names(dir string) ([]string, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(1000)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return names, err
}

// answer waits until the goroutine of keep has finished, which shares w.out.
func (w *process) answer() {
	if w.spoke != nil {
		<-w.spoke
		w.spoke = nil
	}
}
