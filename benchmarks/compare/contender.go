//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/filewright/filewright/benchmarks/internal/proc"
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
	stop := proc.Watch(cmd.Process.Pid)
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

// A server is a program that keeps running. Every run sends it the same request, with "dir" added.
type server struct {
	*proc.Child
	request map[string]any
}

// newServer starts a program.
func newServer(request map[string]any, argv ...string) (*server, error) {
	if _, err := exec.LookPath(argv[0]); err != nil {
		return nil, fmt.Errorf("%s: %w", argv[0], errMissing)
	}
	child, err := proc.Start(argv...)
	return &server{child, request}, err
}

func (s *server) measure(ctx context.Context, dir string) (sample, error) {
	request := map[string]any{"dir": dir}
	for k, v := range s.request {
		request[k] = v
	}
	out, err := s.during(func() error { _, err := s.Ask(request); return err })
	if err == nil {
		out.size, err = sizeOf(dir)
	}
	return out, err
}

// during measures the server while f runs.
func (s *server) during(f func() error) (sample, error) {
	out, err := s.During(f)
	return sampleOf(out), err
}

func (s *server) close() error { return s.Close() }
