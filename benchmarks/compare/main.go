//go:build linux

// Compare compares this module with the tools in common use. For each task it runs all contenders
// in turn, after a first run that does not count. It writes the medians of time, processor time,
// peak memory and size to docs/performance.md.
//
//	go run ./benchmarks/compare -full
//
// Everything measured runs in processes of its own. For this module, the program starts itself
// again with -worker. Missing tools are reported as missing.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"time"

	"github.com/filewright/filewright/benchmarks/internal/inputs"
	"github.com/filewright/filewright/benchmarks/internal/worker"
	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/standard"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	f := flag.NewFlagSet("compare", flag.ContinueOnError)
	full := f.Bool("full", false, "1 GiB to zip and 5 GiB to upload, instead of 128 and 512 MiB")
	budget := f.Duration("budget", 10*time.Second, "how long to repeat a task")
	least := f.Int("rounds", 3, "how often to repeat a task at least")
	match := f.String("run", "", "only tasks whose name matches this regular expression")
	report := f.String("o", "", "write the report to this file")
	tools := f.String("tools", "benchmarks/.tools", "the directory in which sharp is installed")
	gotenberg := f.String("gotenberg", "", "the path of the program gotenberg; it needs its environment variables, such as CHROMIUM_BIN_PATH")
	sample := f.String("files", "examples/files", "the directory of the sample files")
	check := f.String("check", "", "compare ratios with the baseline in this file, and fail if one is more than 10 % worse, twice")
	store := f.String("baseline", "", "write the ratios to this file, as a baseline for -check")
	asWorker := f.Bool("worker", false, "be what is measured")
	if err := f.Parse(args); err != nil {
		return err
	}
	if *asWorker {
		w := worker.Worker{Actions: standardActions, Serve: newService}
		return w.Run(ctx, os.Stdin, os.Stdout)
	}
	wanted, err := regexp.Compile(*match)
	if err != nil {
		return err
	}
	var base baseline
	if *check != "" {
		if base, err = readBaseline(*check); err != nil {
			return err
		}
	}
	e := &environment{full: *full, gotenberg: *gotenberg}
	for to, from := range map[*string]string{&e.tools: *tools, &e.sample: *sample} {
		if *to, err = filepath.Abs(from); err != nil {
			return err
		}
	}
	if e.self, err = os.Executable(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "compare-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	e.inputs = &inputs.Set{Dir: dir}
	for _, p := range []struct {
		path *string
		name string
		pkg  string
	}{{&e.lean, "lean", "benchmarks/internal/lean"}, {&e.server, "refserver", "cmd/refserver"}} {
		*p.path = filepath.Join(dir, p.name)
		build := exec.CommandContext(ctx, "go", "build", "-o", *p.path, "github.com/filewright/filewright/"+p.pkg)
		if b, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("go build: %w\n%s", err, b)
		}
	}
	results, err := e.measure(ctx, wanted, base, *budget, *least, out)
	if err != nil {
		return err
	}
	if *report != "" {
		if err := os.WriteFile(*report, document(results, *full, e.tools), 0o644); err != nil {
			return err
		}
	}
	if *store != "" {
		if err := baselineOf(results).write(*store); err != nil {
			return err
		}
	}
	return judge(results, base, out)
}

// measure runs the wanted tasks that base has, if there is one, and prints their results.
func (e *environment) measure(ctx context.Context, wanted *regexp.Regexp, base baseline, budget time.Duration, least int, out io.Writer) ([]result, error) {
	onePage, err := os.ReadFile(filepath.Join(e.sample, "one.pdf"))
	if err != nil {
		return nil, err
	}
	var results []result
	for _, t := range append(tasks(e.full), hostedTasks(onePage)...) {
		if !wanted.MatchString(t.name) || base != nil && base[t.name] == nil {
			continue
		}
		r, err := compare(ctx, e, &t, budget, least)
		if err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			// The results of the other tasks are still useful.
			r.failed = err
		}
		if base.suspects(baselineOf([]result{r}))[t.name] {
			fmt.Fprintf(out, "%s: worse than the baseline; measuring again\n", t.name)
			if again, err := compare(ctx, e, &t, 2*budget, least); err == nil {
				r = again
			}
		}
		r.print(out)
		results = append(results, r)
	}
	return results, nil
}

// judge compares results with a baseline, if there is one. It returns an error for each result that is
// worse and each task that failed.
func judge(results []result, base baseline, out io.Writer) error {
	var failed error
	if base != nil {
		lines, compared := base.worse(baselineOf(results))
		for _, line := range lines {
			failed = errors.Join(failed, errors.New(line))
		}
		if compared == 0 {
			failed = errors.New("no tool of the baseline is installed")
		}
		fmt.Fprintf(out, "%d ratios compared with the baseline, %d worse\n", compared, len(lines))
	}
	for _, r := range results {
		if r.failed != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", r.task.name, r.failed))
		}
	}
	return failed
}

// standardActions returns all actions that work on this host.
func standardActions(ctx context.Context, cache string) ([]fileops.Action, func() error) {
	set := standard.Probe(ctx, &standard.Options{CacheDir: cache})
	return set.Actions(), set.Close
}

// A score holds the measurements of one contender.
type score struct {
	name    string
	missing error
	runs    []sample
	quality float64 // 0 if unknown
}

// A result is a task with its scores, the score of this module first.
type result struct {
	task   *task
	scores []score
	failed error
}

// ourName is the name of this module in tables.
const ourName = "Filewright"

// compare runs a task: each contender once as a warm-up, then all in turn.
func compare(ctx context.Context, e *environment, t *task, budget time.Duration, least int) (result, error) {
	r := result{task: t}
	var in []string
	var err error
	if t.inputs != nil {
		if in, err = t.inputs(ctx, e); err != nil {
			return r, err
		}
	}
	all := append([]rival{{ourName, t.start}}, t.rivals...)
	running := make([]contender, len(all))
	defer func() {
		for _, c := range running {
			if c != nil {
				c.close() // a failing close does not change the measurements
			}
		}
	}()
	for i, v := range all {
		r.scores = append(r.scores, score{name: v.name})
		c, err := v.start(e, in)
		if errors.Is(err, errMissing) {
			r.scores[i].missing = err
			continue
		}
		if err != nil {
			return r, fmt.Errorf("%s: %w", v.name, err)
		}
		running[i] = c
	}
	start := time.Now()
	warm := true
	for n := 0; n < 200; n++ {
		if t.rounds > 0 && n >= t.rounds || n >= least && time.Since(start) > budget {
			break
		}
		for i := range all {
			// Rotate the order in each round.
			i = (i + n) % len(all)
			if running[i] == nil {
				continue
			}
			if err := once(ctx, e, t, in, running[i], &r.scores[i], warm && t.rounds == 0); err != nil {
				return r, fmt.Errorf("%s: %w", all[i].name, err)
			}
		}
		if warm && t.rounds == 0 {
			warm, n, start = false, -1, time.Now()
		}
	}
	return r, nil
}

// once runs a contender once.
func once(ctx context.Context, e *environment, t *task, in []string, c contender, s *score, warm bool) error {
	dir, err := os.MkdirTemp(e.inputs.Dir, "run-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "out")
	if err := os.Mkdir(out, 0o700); err != nil {
		return err
	}
	m, err := c.measure(ctx, out)
	if err != nil {
		return err
	}
	if t.quality != nil && s.quality == 0 {
		if s.quality, err = t.quality(ctx, in[0], out); err != nil {
			return err
		}
	}
	if !warm {
		s.runs = append(s.runs, m)
	}
	return nil
}
