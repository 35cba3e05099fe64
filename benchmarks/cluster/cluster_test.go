//go:build unix

// Package cluster measures how fast processes accept operations, process items and answer status
// requests. It compares one process with SQLite, and two API processes and two workers with
// PostgreSQL. The action itself takes no time. Everything runs on this machine, including load and
// databases.
//
//	go test -count=1 -v ./benchmarks/cluster -time 4s
//	go test -count=1 -v ./benchmarks/cluster -time 20s -rounds 5
package cluster

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/filewright/filewright/internal/pgtest"
	"github.com/filewright/filewright/internal/systest"
)

var (
	timeFlag   = flag.Duration("time", 200*time.Millisecond, "`time` of each measurement; without it there is a figure for everything, but it says little")
	roundsFlag = flag.Int("rounds", 1, "`rounds`, of whose results the median is shown")
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == nodeCommand {
		if err := runNode(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// TestMeasure runs all measurements and logs the table.
func TestMeasure(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	systest.NoError(t, measure(t.Context(), &out, options{time: *timeFlag, rounds: *roundsFlag}))
	t.Logf("\n%s", out.String())
	line := regexp.MustCompile(`(?m)^\| [^|]+ \| ([0-9.]+)( ms|/s) \| ([0-9.]+)( ms|/s) \|$`)
	lines := line.FindAllStringSubmatch(out.String(), -1)
	if len(lines) != 7 {
		t.Errorf("%d lines of figures, want 7", len(lines))
	}
	for _, l := range lines {
		if strings.Trim(l[1], "0.") == "" && l[2] == " ms" {
			t.Errorf("no time at all: %s", l[0])
		}
	}
}

type options struct {
	time   time.Duration
	rounds int
}

// A figure is a line of the result.
type figure struct {
	name, unit string
	values     [2][]float64 // values of each round, for the single process and the cluster
}

// measure measures both and writes a table.
func measure(ctx context.Context, w io.Writer, o options) error {
	dir, err := os.MkdirTemp("", "cluster-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	sync, err := syncTime(filepath.Join(dir, "sync"))
	if err != nil {
		return err
	}
	server, err := pgtest.Start(pgtest.Options{Durable: true})
	if err != nil {
		return err
	}
	defer server.Close()
	var figures []*figure
	add := func(which int, name, unit string, v float64) {
		i := slices.IndexFunc(figures, func(f *figure) bool { return f.name == name })
		if i < 0 {
			i = len(figures)
			figures = append(figures, &figure{name: name, unit: unit})
		}
		figures[i].values[which] = append(figures[i].values[which], v)
	}
	for range o.rounds {
		one, err := startNode(ctx, "-path", filepath.Join(dir, fmt.Sprint(time.Now().UnixNano()), "one.db"), "-work", "8")
		if err != nil {
			return err
		}
		err = phases(o, nodes{{one}, {one}}, func(name, unit string, v float64) { add(0, name, unit, v) })
		if err = errors.Join(err, one.stop()); err != nil {
			return err
		}
		url, err := server.New()
		if err != nil {
			return err
		}
		var all nodes
		for i := range 4 {
			n, err := startNode(ctx, "-url", url, "-work", []string{"-1", "4"}[i/2])
			if err != nil {
				return err
			}
			defer n.stop()
			all[i/2] = append(all[i/2], n)
		}
		err = phases(o, all, func(name, unit string, v float64) { add(1, name, unit, v) })
		for _, n := range slices.Concat(all[0], all[1]) {
			err = errors.Join(err, n.stop())
		}
		if err != nil {
			return err
		}
	}

	fmt.Fprintf(w, "%s, %d cores, %s; fdatasync of 4 KiB %.2f ms; %d rounds of %v\n\n", processor(), runtime.NumCPU(), runtime.GOOS, sync.Seconds()*1000, o.rounds, o.time)
	fmt.Fprintf(w, "| | one process, SQLite | 2 that accept and 2 that work, PostgreSQL |\n|---|---|---|\n")
	for _, f := range figures {
		fmt.Fprintf(w, "| %s | %s | %s |\n", f.name, f.median(0), f.median(1))
	}
	return nil
}

func (f *figure) median(which int) string {
	v := slices.Sorted(slices.Values(f.values[which]))
	if len(v) == 0 {
		return "–"
	}
	m := v[len(v)/2]
	if f.unit == "ms" {
		return fmt.Sprintf("%.1f ms", m)
	}
	return fmt.Sprintf("%.0f/s", m)
}

// nodes are the nodes that accept operations and the nodes that process items.
type nodes [2][]*node

// phases runs all measurements.
func phases(o options, all nodes, report func(name, unit string, v float64)) error {
	load := func(c command) (sum answer, err error) {
		c.Time = o.time
		answers := make([]answer, len(all[0]))
		var group sync.WaitGroup
		errs := make([]error, len(all[0]))
		for i, n := range all[0] {
			group.Go(func() { answers[i], errs[i] = n.ask(c) })
		}
		group.Wait()
		for _, a := range answers {
			sum.Rate += a.Rate
		}
		return sum, errors.Join(errs...)
	}
	a, err := load(command{Do: "accept"})
	if err != nil {
		return err
	}
	report("operations of five items accepted", "/s", a.Rate)
	if a, err = load(command{Do: "through"}); err != nil {
		return err
	}
	report("items accepted, worked on and ended", "/s", a.Rate)
	for _, n := range all[1] {
		if _, err := n.ask(command{Do: "latencies"}); err != nil { // discard earlier latencies
			return err
		}
	}
	if _, err := load(command{Do: "pace", Rate: 50 / float64(len(all[0]))}); err != nil {
		return err
	}
	var took []time.Duration
	for _, n := range all[1] {
		a, err := n.ask(command{Do: "latencies"})
		if err != nil {
			return err
		}
		took = append(took, a.Latencies...)
	}
	if len(took) == 0 {
		return errors.New("no work was begun")
	}
	slices.Sort(took)
	for _, p := range []int{50, 90, 99} {
		report(fmt.Sprintf("submitted → begun at 50 operations a second, p%d", p), "ms", took[len(took)*p/100].Seconds()*1000)
	}
	for _, what := range []string{"waiting", "final"} {
		if a, err = load(command{Do: "poll", What: what}); err != nil {
			return err
		}
		report("status of "+map[string]string{"waiting": "a waiting", "final": "a finished"}[what]+" operation", "/s", a.Rate)
	}
	return nil
}

// A node is a child process.
type node struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Reader
	ended bool
}

// startNode starts a node and waits until it is ready.
func startNode(ctx context.Context, args ...string) (*node, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	n := &node{cmd: exec.CommandContext(ctx, self, append([]string{nodeCommand}, args...)...)}
	n.cmd.Stderr = os.Stderr
	if n.in, err = n.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := n.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	n.out = bufio.NewReader(out)
	if err := n.cmd.Start(); err != nil {
		return nil, err
	}
	if _, err := n.ask(command{Do: "ready"}); err != nil {
		return nil, errors.Join(err, n.stop())
	}
	return n, nil
}

// ask sends a command to a node and returns the answer.
func (n *node) ask(c command) (a answer, err error) {
	if err := json.NewEncoder(n.in).Encode(c); err != nil {
		return a, err
	}
	line, err := n.out.ReadBytes('\n')
	if err != nil {
		return a, fmt.Errorf("node: %w", err)
	}
	if err := json.Unmarshal(line, &a); err != nil {
		return a, err
	}
	if a.Error != "" {
		return a, errors.New(a.Error)
	}
	return a, nil
}

// stop stops a node by closing its standard input.
func (n *node) stop() error {
	if n.ended {
		return nil
	}
	n.ended = true
	n.in.Close()
	return n.cmd.Wait()
}

// syncTime returns the median time of an fsync.
func syncTime(path string) (time.Duration, error) {
	f, err := os.Create(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	var took []time.Duration
	for range 200 {
		start := time.Now()
		if _, err := f.Write(make([]byte, 4096)); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}

// processor returns the name of the processor.
func processor() string {
	info, _ := os.ReadFile("/proc/cpuinfo")
	for line := range bytes.Lines(info) {
		if name, ok := bytes.CutPrefix(line, []byte("model name")); ok {
			return strings.Trim(string(name), "\t :\n")
		}
	}
	return runtime.GOARCH
}
