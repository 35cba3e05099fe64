//go:build linux

// Package proc measures the processor time and the memory of processes with all their descendants.
package proc

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/filewright/filewright/benchmarks/internal/worker"
)

// A Sample holds the measurements of one run.
type Sample struct {
	Wall   time.Duration
	CPU    time.Duration // user and system time of all processes of the run
	Memory int64         // peak resident memory of all these processes, bytes
}

// A Child is a program that keeps running: for each run it reads a line of JSON from standard
// input and answers with a line of JSON, as a [worker.Worker] does.
type Child struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// Start starts a program.
func Start(argv ...string) (*Child, error) {
	s := &Child{cmd: exec.Command(argv[0], argv[1:]...)}
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	s.cmd.Stderr = os.Stderr
	var err error
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s.out = bufio.NewReader(out)
	return s, s.cmd.Start()
}

// Ask sends a request and waits for the answer.
func (s *Child) Ask(request map[string]any) (worker.Answer, error) {
	var a worker.Answer
	b, err := json.Marshal(request)
	if err != nil {
		return a, err
	}
	if _, err := s.in.Write(append(b, '\n')); err != nil {
		return a, err
	}
	line, err := s.out.ReadBytes('\n')
	if err != nil {
		return a, fmt.Errorf("%s: %w", filepath.Base(s.cmd.Path), err)
	}
	if err := json.Unmarshal(line, &a); err != nil {
		return a, fmt.Errorf("%s: %w: %s", filepath.Base(s.cmd.Path), err, line)
	}
	if a.Error != "" {
		return a, errors.New(a.Error)
	}
	return a, nil
}

// During measures the program while f runs.
func (s *Child) During(f func() error) (Sample, error) {
	return during(s.cmd.Process.Pid, func(op string) (time.Duration, error) {
		a, err := s.Ask(map[string]any{"op": op})
		return a.CPU, err
	}, f)
}

// During measures a program and its descendants while f runs. Of processes that end in this time
// and were not started by f, it knows the time in steps of 10 ms.
func During(pid int, f func() error) (Sample, error) {
	return during(pid, func(string) (time.Duration, error) { return 0, nil }, f)
}

// during measures a program while f runs. own returns the exact processor time of the program and its
// ended children, or 0; it is called with "settle" before f and with "cpu" after it.
func during(pid int, own func(op string) (time.Duration, error), f func() error) (Sample, error) {
	used, err := own("settle")
	if err != nil {
		return Sample{}, err
	}
	forget(pid)
	before := familyCPU(pid, used)
	stop := Watch(pid)
	start := time.Now()
	err = f()
	out := Sample{Wall: time.Since(start), Memory: stop()}
	if err != nil {
		return out, err
	}
	if used, err = own("cpu"); err != nil {
		return out, err
	}
	out.CPU = familyCPU(pid, used) - before
	return out, nil
}

// Close stops the program and its child processes.
func (s *Child) Close() error {
	s.in.Close()
	done := make(chan error, 1)
	go func() { done <- s.cmd.Wait() }()
	select {
	case err := <-done:
		syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL)
		return err
	case <-time.After(20 * time.Second):
		syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL)
		<-done
		return errors.New("it did not end by itself")
	}
}
