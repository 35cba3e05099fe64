//go:build linux

// Growth measures how processor time and memory grow with the size of the work, for each kind of
// action and for the service. It writes a page with tables and plots:
//
//	go run ./benchmarks/growth -o docs/growth.md -images docs/images
//
// The series of a group run in a process of their own. Each ends at the first size that takes longer
// than the budget.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/filewright/filewright/benchmarks/internal/proc"
	"github.com/filewright/filewright/benchmarks/internal/worker"
	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/standard"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "growth:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	f := flag.NewFlagSet("growth", flag.ContinueOnError)
	budget := f.Duration("budget", 20*time.Second, "processor time of one run after which a series ends")
	limit := f.Duration("for", 0, "duration after which no series starts; 0: no limit")
	rounds := f.Int("rounds", 5, "how often a run that takes little time is repeated")
	most := f.Int("most", 0, "largest size; 0: no limit")
	match := f.String("run", "", "only series whose name matches this regular expression")
	report := f.String("o", "", "write the page to this file")
	images := f.String("images", "", "write the plots to this directory")
	asWorker := f.Bool("worker", false, "be what is measured")
	if err := f.Parse(args); err != nil {
		return err
	}
	if *asWorker {
		return newWorker().Run(ctx, os.Stdin, os.Stdout)
	}
	wanted, err := regexp.Compile(*match)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "growth-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	e := &environment{self: self, dir: dir, budget: *budget, rounds: *rounds, most: *most, inputs: newInputs(dir), out: out}
	if *limit > 0 {
		e.end = time.Now().Add(*limit)
	}
	var groups []group
	var failed error
	var missing []string // series
	for _, g := range allGroups() {
		g.series = slices.DeleteFunc(g.series, func(s series) bool {
			other := !wanted.MatchString(s.name)
			if other {
				missing = append(missing, s.name)
			}
			return other
		})
		if err := e.measureGroup(ctx, &g); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			failed = errors.Join(failed, err)
		}
		// The other series are still useful.
		g.series = slices.DeleteFunc(g.series, func(s series) bool {
			if len(s.points) == 0 {
				missing = append(missing, s.name)
			}
			return len(s.points) == 0
		})
		if len(g.series) > 0 {
			groups = append(groups, g)
		}
	}
	if *images != "" {
		for _, g := range groups {
			if err := os.WriteFile(filepath.Join(*images, g.image()), plot(g), 0o644); err != nil {
				return err
			}
		}
	}
	if *report != "" {
		if err := os.WriteFile(*report, page(groups, missing), 0o644); err != nil {
			return err
		}
	}
	return failed
}

func newWorker() *worker.Worker {
	return &worker.Worker{Serve: serve, Actions: func(ctx context.Context, cache string) ([]fileops.Action, func() error) {
		set := standard.Probe(ctx, &standard.Options{CacheDir: cache, Limits: standard.Limits{Entries: 200_000}})
		return set.Actions(), set.Close
	}}
}

// A group is the series of one unit, which share a plot.
type group struct {
	name   string // of the file with the plot
	title  string
	unit   string // plural
	text   string // an explanation, or ""
	series []series
}

func (g *group) image() string { return "growth-" + g.name + ".svg" }

// A series is one action with inputs of growing size.
type series struct {
	name   string
	action string
	args   fileops.Args
	sizes  []int
	files  func(ctx context.Context, in *inputSet, n int) ([]string, error)

	// clients measures a request to the service in place of an action; the sizes are numbers of
	// concurrent clients.
	clients func(*client, context.Context) error

	points []point
	ended  string // why larger sizes are missing, or ""
}

// A point is the cost of one size.
type point struct {
	size     int
	cpu      time.Duration // of a run, the least of several
	memory   int64         // peak of all processes, bytes
	p50, p99 time.Duration // of a request; 0 unless clients is set
}

type environment struct {
	self   string // this program
	dir    string
	budget time.Duration
	end    time.Time // when no series starts any more; zero: no limit
	rounds int
	most   int
	inputs *inputSet
	out    io.Writer
}

// measureGroup measures the series of a group in one process.
func (e *environment) measureGroup(ctx context.Context, g *group) (err error) {
	if len(g.series) == 0 || e.over() {
		return nil
	}
	child, err := proc.Start(e.self, "-worker")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, child.Close()) }()
	for i := range g.series {
		if e.over() {
			break
		}
		s := &g.series[i]
		measure := e.measure
		if s.clients != nil {
			measure = e.measureClients
		}
		if merr := measure(ctx, child, s); merr != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", s.name, merr))
		}
	}
	return err
}

func (e *environment) over() bool { return !e.end.IsZero() && time.Now().After(e.end) }

func (e *environment) measure(ctx context.Context, child *proc.Child, s *series) error {
	for i, n := range s.sizes {
		if e.most > 0 && n > e.most {
			break
		}
		files, err := s.files(ctx, e.inputs, n)
		if err != nil {
			return err
		}
		p := point{size: n}
		var spent time.Duration
		for round := 0; round < max(2, e.rounds) && (round < 2 || spent < e.budget/4); round++ {
			results, err := os.MkdirTemp(e.dir, "results-")
			if err != nil {
				return err
			}
			got, err := child.During(func() error {
				_, err := child.Ask(map[string]any{"op": "run", "action": s.action, "args": s.args, "inputs": files, "dir": results, "cache": filepath.Join(e.dir, "cache")})
				return err
			})
			if err := errors.Join(err, os.RemoveAll(results)); err != nil {
				return fmt.Errorf("%d: %w", n, err)
			}
			if i == 0 && round == 0 {
				continue // starts the engines
			}
			spent += got.CPU
			if p.cpu == 0 || got.CPU < p.cpu {
				p.cpu = got.CPU
			}
			if p.memory == 0 || got.Memory < p.memory {
				p.memory = got.Memory
			}
			if round > 0 && got.CPU > e.budget/2 {
				break
			}
		}
		s.points = append(s.points, p)
		fmt.Fprintf(e.out, "%-36s %7d  %10v  %5d MiB\n", s.name, n, p.cpu.Round(time.Millisecond/10), p.memory>>20)
		if p.cpu > e.budget && i+1 < len(s.sizes) {
			s.ended = fmt.Sprintf("larger sizes take longer than %v", e.budget)
			break
		}
	}
	return nil
}
