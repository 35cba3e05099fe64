package engine

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/filewright/filewright/internal/worktime"
)

// Work returns a meter for the process and everything that it has started.
func (p *Process) Work() worktime.Meter {
	w := &work{process: p, own: make(map[int]time.Duration), waited: make(map[string]time.Duration)}
	return w.usage
}

// work records the processor use of a run's processes. Processes and threads that have
// ended count with their last recorded values.
type work struct {
	process *Process

	mu     sync.Mutex
	own    map[int]time.Duration    // processor time of each process
	waited map[string]time.Duration // time that each thread waited for a processor
	most   time.Duration            // processor time of all processes, including ended children
}

func (w *work) usage() worktime.Usage {
	w.mu.Lock()
	defer w.mu.Unlock()
	var pids []int // none after the end: other processes may have the ids then
	all, ended := w.process.total()
	if !ended {
		pids = w.process.members()
	}
	for _, pid := range pids {
		own, children := processorTime(pid)
		w.own[pid] = max(w.own[pid], own)
		all += own + children
		threads, _ := filepath.Glob(procPath(pid, "task/*/schedstat"))
		for _, path := range threads {
			if d := worktime.RunDelay(path); d > 0 {
				w.waited[path] = max(w.waited[path], d)
			}
		}
	}
	var u worktime.Usage
	for _, d := range w.own {
		u.Worked += d
	}
	w.most = max(w.most, all, u.Worked)
	u.Worked = w.most
	for _, d := range w.waited {
		u.Waited += d
	}
	return u
}

// Used returns the processor time of the first process and of its ended children, and the
// resident memory of that process in bytes. It is cheap. After [Process.Wait] it returns zeros.
func (p *Process) Used() (worked time.Duration, resident int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return 0, 0
	}
	own, children, pages := usage(p.pid)
	return own + children, pages * int64(os.Getpagesize())
}

// processorTime returns the processor time of a process, and of its children that have
// ended (proc_pid_stat(5)).
func processorTime(pid int) (own, children time.Duration) {
	own, children, _ = usage(pid)
	return own, children
}

// usage is processorTime together with the number of resident pages.
func usage(pid int) (own, children time.Duration, pages int64) {
	b, err := os.ReadFile(procPath(pid, "stat"))
	f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if err != nil || len(f) < 22 {
		return 0, 0, 0
	}
	ticks := func(i int) time.Duration {
		n, _ := strconv.ParseInt(string(f[i]), 10, 64)
		return time.Duration(n) * (time.Second / 100) // USER_HZ
	}
	pages, _ = strconv.ParseInt(string(f[21]), 10, 64)
	return ticks(11) + ticks(12), ticks(13) + ticks(14), pages
}
