//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/filewright/filewright/benchmarks/internal/worker"
)

// A contender runs a task repeatedly.
type contender interface {
	// measure runs the task once. dir is empty and receives the results.
	measure(ctx context.Context, dir string) (sample, error)
	close() error
}

// errMissing reports a tool that is not installed.
var errMissing = errors.New("not installed")

// A command is a program that is started for each run. In its arguments @1, @2, … stand for the
// inputs, @in for all inputs and @dir for the directory of the results.
type command struct {
	argv   []string
	inputs []string
}

func newCommand(inputs []string, argv ...string) (contender, error) {
	if _, err := exec.LookPath(argv[0]); err != nil {
		return nil, fmt.Errorf("%s: %w", argv[0], errMissing)
	}
	return &command{argv: argv, inputs: inputs}, nil
}

func (c *command) measure(ctx context.Context, dir string) (sample, error) {
	pairs := []string{"@dir", dir}
	for i := len(c.inputs) - 1; i >= 0; i-- { // @10 before @1
		pairs = append(pairs, fmt.Sprintf("@%d", i+1), c.inputs[i])
	}
	r := strings.NewReplacer(pairs...)
	var argv []string
	for _, a := range c.argv {
		if a == "@in" {
			argv = append(argv, c.inputs...)
		} else {
			argv = append(argv, r.Replace(a))
		}
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = dir
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return sample{}, err
	}
	stop := watch(cmd.Process.Pid)
	err := cmd.Wait()
	s := sample{wall: time.Since(start), memory: stop()}
	if err != nil {
		return s, fmt.Errorf("%s: %w\n%s", argv[0], err, out.String())
	}
	s.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	s.size, err = sizeOf(dir)
	return s, err
}

func (c *command) close() error { return nil }

// A server is a program that keeps running: for each run it reads a line of JSON from standard
// input and answers with a line of JSON.
type server struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	request map[string]any
}

// newServer starts a program. Every run sends request, with "dir" added.
func newServer(request map[string]any, argv ...string) (*server, error) {
	if _, err := exec.LookPath(argv[0]); err != nil {
		return nil, fmt.Errorf("%s: %w", argv[0], errMissing)
	}
	s := &server{cmd: exec.Command(argv[0], argv[1:]...), request: request}
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

// ask sends a request and waits for the answer.
func (s *server) ask(request map[string]any) (worker.Answer, error) {
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

func (s *server) measure(ctx context.Context, dir string) (sample, error) {
	request := map[string]any{"dir": dir}
	for k, v := range s.request {
		request[k] = v
	}
	out, err := s.during(func() error { _, err := s.ask(request); return err })
	if err == nil {
		out.size, err = sizeOf(dir)
	}
	return out, err
}

// during measures the server while f runs.
func (s *server) during(f func() error) (sample, error) {
	idle, err := s.ask(map[string]any{"op": "settle"})
	if err != nil {
		return sample{}, err
	}
	pid := s.cmd.Process.Pid
	forget(pid)
	before := familyCPU(pid, idle.CPU)
	stop := watch(pid)
	start := time.Now()
	err = f()
	out := sample{wall: time.Since(start), memory: stop()}
	if err != nil {
		return out, err
	}
	if idle, err = s.ask(map[string]any{"op": "cpu"}); err != nil {
		return out, err
	}
	out.cpu = familyCPU(pid, idle.CPU) - before
	return out, nil
}

// close stops the program and its child processes.
func (s *server) close() error {
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
