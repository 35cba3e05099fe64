// Command corpus runs a folder of files through the actions of this host, and other programs judge
// the results. docs/corpus.md describes its use.
//
//	go run ./internal/corpus -action convert -to docx -json now.json -baseline before.json FOLDER
//
// It runs each file as the server does: by its extension, with the standard engines, and isolated.
// It exits with 1 if an outcome is worse than in the baseline.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/standard"
	"github.com/filewright/filewright/internal/matrix"
)

func main() {
	standard.Main()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	worse, err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		log.Fatal(err)
	}
	if worse {
		os.Exit(1)
	}
}

// run runs the command and reports whether an outcome is worse than in the baseline.
func run(ctx context.Context, args []string, out io.Writer) (worse bool, err error) {
	fs := flag.NewFlagSet("corpus", flag.ExitOnError)
	fs.Usage = func() {
		fmt.Fprintln(fs.Output(), "usage: corpus [FLAG…] FOLDER")
		fs.PrintDefaults()
	}
	var (
		action   = fs.String("action", "", "run only these `actions`, separated by commas; empty: every action")
		to       = fs.String("to", "", "run only this target `format` or compression level, same for conversions that keep the format; empty: each")
		baseline = fs.String("baseline", "", "compare with the outcomes in this JSON `file`")
		store    = fs.String("json", "", "write the outcomes to this JSON `file`")
		sample   = fs.Int("sample", 0, "run `N` of the files that take part, spread evenly over the folder; 0: all")
		each     = fs.Int("each", 0, "run at most `N` actions and targets for each file, others for the next file; 0: all")
		limit    = fs.Duration("for", 0, "start no run after this `time`; 0: run all")
		table    = fs.Bool("table", false, "print the totals as a table in Markdown, too")
		atOnce   = fs.Int("at-once", 2, "run `N` files at the same time")
		proof    = fs.Bool("proof-print", false, "compare documents that are made of PDF files with their print, as the flag of the server does")
		timeout  = fs.Duration("timeout", 2*time.Minute, "stop a run after this `time`")
	)
	if err := fs.Parse(args); err != nil {
		return false, err
	}
	if fs.NArg() != 1 {
		fs.Usage()
		return false, errors.New("one folder is required")
	}
	var before []Outcome
	if *baseline != "" {
		if before, err = load(*baseline); err != nil {
			return false, err
		}
	}
	files, err := walk(fs.Arg(0))
	if err != nil {
		return false, err
	}
	scratch, err := os.MkdirTemp("", "corpus-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(scratch)
	set := standard.Probe(ctx, &standard.Options{Isolate: true, ProofPrint: *proof, TempDir: scratch, CacheDir: filepath.Join(scratch, "cache")})
	defer func() { err = errors.Join(err, set.Close()) }()
	if err := set.Warm(ctx); err != nil {
		return false, err
	}
	r := &runner{root: fs.Arg(0), scratch: scratch, timeout: *timeout, grace: 30 * time.Second, limit: *limit, atOnce: *atOnce, out: out}
	if r.registry, err = fileops.NewRegistry(set.Actions()...); err != nil {
		return false, err
	}
	tasks := plan(matrix.Cells(set.Actions()), files, *action, *to, *sample, *each)
	fmt.Fprintf(out, "%d runs\n", len(tasks))
	outcomes, err := r.all(ctx, tasks)
	if err != nil {
		return false, err
	}
	totals := sum(outcomes)
	summarize(out, totals)
	if *table {
		tabulate(out, totals)
	}
	if *store != "" {
		b, err := json.MarshalIndent(outcomes, "", " ")
		if err != nil {
			return false, err
		}
		if err := os.WriteFile(*store, append(b, '\n'), 0o600); err != nil {
			return false, err
		}
	}
	if *baseline == "" {
		return false, nil
	}
	return compare(out, before, outcomes), nil
}

// load reads the outcomes of an earlier run.
func load(path string) (out []Outcome, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(b, &out); err != nil {
		return nil, fmt.Errorf("%s holds no outcomes: %w", path, err)
	}
	return out, nil
}
