package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"github.com/filewright/filewright/httpapi/sqlstore"
	"github.com/filewright/filewright/upload"
	"github.com/filewright/filewright/upload/blob/fsblob"
)

// incompleteCode is the exit code of an incomplete check.
const incompleteCode = 3

// check compares the records with the files.
func check(c *cli) *cobra.Command {
	var cfg serverConfig
	var asJSON bool
	o := upload.CheckOptions{Grace: 10 * time.Second}
	return c.command(spec{
		use: "check", short: "compare database records with stored files, also while the server runs",
		long: `Compares the records of the database with the stored files, in both directions, also
while the server runs. Pass the server's --data-dir, --database-url and --blob-url.
The exit code is 0 without differences, 1 if differences remain, 2 for an invalid
command line, and 3 if the check is incomplete.`,
		flags: func(f *flagSet) {
			registerDataDir(f, &cfg.dataDir)
			registerDatabase(f, &cfg.cluster.url)
			registerBlobURL(f, &cfg.blobURL)
			f.BoolVar(&o.Repair, "repair", false, "restore quarantined files that have a record again, move files without a record to quarantine, and remove parts of closed uploads")
			f.BoolVar(&o.Deep, "deep", false, "also read every file and compare the checksums of uploads")
			f.BoolVar(&asJSON, "json", false, "print the report as one JSON object")
			f.DurationVar(&o.Grace, "grace", o.Grace, "minimum `age` of a file without a record to count as a difference: the record of a newer file may not be written yet. The check waits up to a minute for younger files")
		},
		run: func(ctx context.Context, _ []string) error {
			err := cfg.locateBlobs(c.env)
			switch {
			case err != nil:
			case o.Grace <= 0:
				err = errors.New("--grace must be positive")
			case cfg.cluster.url != "" && cfg.blobURL == "":
				err = errors.New("--database-url requires --blob-url")
			}
			if err != nil {
				return usageError{err}
			}
			left, err := checkStores(ctx, c, &cfg, o, asJSON)
			if err != nil {
				return &exitError{incompleteCode, err}
			}
			if left > 0 {
				return fmt.Errorf("%d differences remain", left)
			}
			return nil
		},
	})
}

// checkStores runs a check and prints the differences. left is the number of differences that were
// not repaired.
func checkStores(ctx context.Context, c *cli, cfg *serverConfig, o upload.CheckOptions, asJSON bool) (left int64, err error) {
	err = database{dir: cfg.dataDir, url: cfg.cluster.url}.use(ctx, func(db *sqlstore.DB) error {
		blobs, err := openSharedBlobs(ctx, cfg)
		if err != nil {
			return err
		}
		m, err := upload.NewManager(blobs, &upload.Options{Store: db.Files()})
		if err != nil {
			return errors.Join(err, blobs.Close())
		}
		left, err = runCheck(ctx, c, m, db.Files().Count, o, asJSON)
		return errors.Join(err, blobs.Close())
	})
	return left, err
}

// openSharedBlobs opens the files, also while a server uses them. It creates no missing store.
func openSharedBlobs(ctx context.Context, cfg *serverConfig) (blobStore, error) {
	if cfg.bucket != nil {
		return openBlobs(ctx, *cfg, cfg.dataDir)
	}
	dir := cfg.blobDir
	if dir == "" {
		dir = filepath.Join(cfg.dataDir, "blobs")
	}
	entries, err := os.ReadDir(dir)
	if err == nil && len(entries) == 0 {
		err = errors.New("the directory is empty")
	}
	if err != nil {
		return nil, fmt.Errorf("no stored files in %s: %w", dir, withoutPath(err))
	}
	s, err := fsblob.NewShared(dir)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// runCheck runs the check and prints the report.
func runCheck(ctx context.Context, c *cli, m *upload.Manager, total func(context.Context) (int64, error), o upload.CheckOptions, asJSON bool) (left int64, err error) {
	records, err := total(ctx)
	if err != nil {
		return 0, err
	}
	p := newCheckProgress(c.err, records)
	o.Progress = p.update
	out := bufio.NewWriter(c.out)
	var report checkReport = &checkTable{w: out}
	if asJSON {
		report = &checkJSON{w: out}
	}
	found := int64(0)
	counts, err := m.Check(ctx, o, func(d upload.Difference) error {
		found++
		if !d.Repaired {
			left++
		}
		p.clear()
		return errors.Join(report.difference(d), out.Flush())
	})
	p.clear()
	if err != nil {
		return left, err
	}
	return left, errors.Join(report.end(checkSummary{counts, found, left}), out.Flush())
}

// A checkSummary ends a report.
type checkSummary struct {
	upload.CheckCounts
	Found int64 `json:"found"`
	Left  int64 `json:"left"`
}

// A checkReport prints differences as the check finds them: there may be millions.
type checkReport interface {
	difference(upload.Difference) error
	end(checkSummary) error
}

// A checkTable prints a table for people.
type checkTable struct {
	w      io.Writer
	headed bool // the header is printed
}

func (t *checkTable) difference(d upload.Difference) error {
	if !t.headed {
		t.headed = true
		fmt.Fprintf(t.w, "%-12s  %-26s  %14s  %14s  %-20s  %s\n", "DIFFERENCE", "FILE", "BYTES", "RECORD SAYS", "TIME", "NOTE")
	}
	var notes []string
	if d.Repaired {
		notes = append(notes, "repaired")
	}
	if d.Detail != "" {
		notes = append(notes, d.Detail)
	}
	line := fmt.Sprintf("%-12s  %-26s  %14d  %14d  %-20s  %s", strings.ReplaceAll(string(d.Kind), "_", " "), d.Key, d.Size, d.Want, d.Time.UTC().Format(time.RFC3339), strings.Join(notes, "; "))
	_, err := fmt.Fprintln(t.w, strings.TrimRight(line, " "))
	return err
}

func (t *checkTable) end(s checkSummary) error {
	if t.headed {
		fmt.Fprintln(t.w)
	}
	fmt.Fprintf(t.w, "Checked %d records, %d files and %d open uploads.", s.Records, s.Objects, s.Uploads)
	if s.Bytes > 0 {
		fmt.Fprintf(t.w, " Read %.1f MB and compared %d checksums.", float64(s.Bytes)/1e6, s.Verified)
	}
	if s.Quarantined > 0 {
		fmt.Fprintf(t.w, " %d files are in quarantine.", s.Quarantined)
	}
	if s.Recent > 0 {
		fmt.Fprintf(t.w, " %d files without a record are younger than --grace.", s.Recent)
	}
	_, err := fmt.Fprintf(t.w, "\n%d differences found, %d repaired.\n", s.Found, s.Found-s.Left)
	return err
}

// A checkJSON prints one object: the array "differences", then the members of the summary.
type checkJSON struct {
	w io.Writer
	n int
}

func (j *checkJSON) difference(d upload.Difference) error {
	separator := ",\n"
	if j.n++; j.n == 1 {
		separator = "{\"differences\": [\n"
	}
	b, err := json.Marshal(d)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(j.w, "%s%s", separator, b)
	return err
}

func (j *checkJSON) end(s checkSummary) error {
	if j.n == 0 {
		fmt.Fprint(j.w, "{\"differences\": [")
	}
	b, err := json.Marshal(s)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(j.w, "],\n%s\n", b[1:]) // the members without the opening brace
	return err
}

// checkProgress shows the progress of a check: continuously on a terminal, otherwise every ten
// seconds.
type checkProgress struct {
	w        io.Writer
	terminal bool
	total    int64
	started  time.Time
	next     time.Time
	shown    bool // the terminal has a progress line
}

func newCheckProgress(w io.Writer, total int64) *checkProgress {
	p := &checkProgress{w: w, terminal: isTerminal(w), total: total, started: time.Now()}
	p.next = p.started.Add(p.every())
	return p
}

func (p *checkProgress) every() time.Duration {
	if p.terminal {
		return 200 * time.Millisecond
	}
	return 10 * time.Second
}

func (p *checkProgress) update(counts upload.CheckCounts) {
	now := time.Now()
	if now.Before(p.next) {
		return
	}
	p.next = now.Add(p.every())
	took := now.Sub(p.started).Seconds()
	line := fmt.Sprintf("checked %d of about %d records, %.0f/s", counts.Records, max(p.total, counts.Records), float64(counts.Records)/took)
	if counts.Bytes > 0 {
		line += fmt.Sprintf(", read %.1f MB, %.1f MB/s", float64(counts.Bytes)/1e6, float64(counts.Bytes)/1e6/took)
	}
	if p.terminal {
		fmt.Fprintf(p.w, "\r\x1b[K%s", line)
		p.shown = true
		return
	}
	fmt.Fprintln(p.w, line)
}

// clear erases the progress line on a terminal.
func (p *checkProgress) clear() {
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.shown = false
	}
}

// isTerminal reports whether w is a terminal.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}
