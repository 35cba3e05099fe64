package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/filewright/filewright/internal/likeness"
)

const row = "%-12s %-20s %8s %7s %6s %9s %2s  %-28s %s\n"

func printHead(w io.Writer) {
	fmt.Fprintf(w, row, "STATE", "CODE", "SECONDS", "RATIO", "SCORE", "PAGES", "W", "ACTION", "FILE")
}

// print writes the line of an outcome, and a line for each warning and objection.
func (o *Outcome) print(w io.Writer) {
	var score, pages, ratio, warnings string
	if o.Score != nil {
		score = fmt.Sprintf("%.1f", *o.Score)
	}
	if o.Pages != [2]int{} {
		pages = fmt.Sprintf("%d>%d", o.Pages[0], o.Pages[1])
	}
	if o.State == completed {
		ratio = fmt.Sprintf("%.3f", o.Ratio)
	}
	if len(o.Warnings) > 0 {
		warnings = fmt.Sprint(len(o.Warnings))
	}
	fmt.Fprintf(w, row, o.State, o.Code, fmt.Sprintf("%.1f", o.Seconds), ratio, score, pages, warnings, o.Action+" "+o.Value, o.File)
	for _, x := range o.Warnings {
		fmt.Fprintf(w, "%14s warning: %s: %s\n", "", x.Code, x.Message)
	}
	if o.Wrong != "" {
		fmt.Fprintf(w, "%14s WRONG: %s\n", "", o.Wrong)
	}
	if o.silent() {
		fmt.Fprintf(w, "%14s SILENT LOSS\n", "")
	}
	if o.State == serverError {
		fmt.Fprintf(w, "%14s %s\n", "", o.Error)
	}
}

// silent reports whether most of the file is lost and nothing says so.
func (o *Outcome) silent() bool {
	return o.State == completed && o.Score != nil && *o.Score < likeness.ThrownAway && len(o.Warnings) == 0
}

// A total sums up the outcomes of one action.
type total struct {
	runs, completed, warned, hangs, errors, wrong, silent int
	failures                                              count
	scored, kept, thrownAway                              int
	sum                                                   float64
	paged, equal                                          int
	lettered                                              int
	letters                                               float64 // sum of the parts
}

func (t *total) add(o *Outcome) {
	t.runs++
	switch o.State {
	case completed:
		t.completed++
		if len(o.Warnings) > 0 {
			t.warned++
		}
	case hang:
		t.hangs++
	case serverError:
		t.errors++
	default:
		t.failures[o.Code]++
	}
	if o.Wrong != "" {
		t.wrong++
	}
	if o.silent() {
		t.silent++
	}
	if o.Score != nil {
		t.scored++
		t.sum += *o.Score
		if *o.Score >= likeness.Kept {
			t.kept++
		}
		if *o.Score < likeness.ThrownAway {
			t.thrownAway++
		}
	}
	if o.Letters != nil {
		t.lettered++
		t.letters += *o.Letters
	}
	if o.Pages != [2]int{} {
		t.paged++
		if o.Pages[0] == o.Pages[1] {
			t.equal++
		}
	}
}

// sum returns the totals of each action, and of all together under "all".
func sum(outcomes []Outcome) map[string]*total {
	totals := make(map[string]*total)
	for i := range outcomes {
		o := &outcomes[i]
		for _, k := range []string{o.Action + " " + o.Value, "all"} {
			if totals[k] == nil {
				totals[k] = &total{failures: make(count)}
			}
			totals[k].add(o)
		}
	}
	return totals
}

// ordered returns the names of totals, "all" last.
func ordered(totals map[string]*total) []string {
	return slices.SortedFunc(maps.Keys(totals), func(a, b string) int {
		return cmp.Or(strings.Count(b, " ")-strings.Count(a, " "), cmp.Compare(a, b))
	})
}

// summarize writes totals as sentences.
func summarize(w io.Writer, totals map[string]*total) {
	fmt.Fprintln(w)
	for _, k := range ordered(totals) {
		t := totals[k]
		fmt.Fprintf(w, "%s: %d runs, %d completed, %d hangs, %d server errors, %d judged wrong, %d silent losses", k, t.runs, t.completed, t.hangs, t.errors, t.wrong, t.silent)
		if len(t.failures) > 0 {
			fmt.Fprintf(w, "; failed: %s", t.failures)
		}
		if t.scored > 0 {
			fmt.Fprintf(w, "; %d scored, mean %.2f, kept %d, thrown away %d", t.scored, t.sum/float64(t.scored), t.kept, t.thrownAway)
		}
		if t.paged > 0 {
			fmt.Fprintf(w, "; page counts equal %d of %d", t.equal, t.paged)
		}
		fmt.Fprintln(w)
	}
}

// tabulate writes totals as a table in Markdown.
func tabulate(w io.Writer, totals map[string]*total) {
	fmt.Fprint(w, "\n| Action | Files | Completed | With warnings | Refused | Errors | Judged wrong | Silent losses | Mean score | Kept | Thrown away | Page counts equal | Letters |\n|---"+
		strings.Repeat("|--:", 12)+"|\n")
	for _, k := range ordered(totals) {
		t := totals[k]
		refused := t.runs - t.completed - t.hangs - t.errors
		fmt.Fprintf(w, "| %s | %d | %d | %d | %d | %d | %d | %d |", strings.TrimSpace(k), t.runs, t.completed, t.warned, refused, t.hangs+t.errors, t.wrong, t.silent)
		score, kept, thrownAway, equal, letters := "", "", "", "", ""
		if t.scored > 0 {
			score, kept, thrownAway = fmt.Sprintf("%.2f", t.sum/float64(t.scored)), fmt.Sprint(t.kept), fmt.Sprint(t.thrownAway)
		}
		if t.paged > 0 {
			equal = fmt.Sprintf("%d of %d", t.equal, t.paged)
		}
		if t.lettered > 0 {
			letters = fmt.Sprintf("%.1f %%", 100*t.letters/float64(t.lettered))
		}
		fmt.Fprintf(w, " %s | %s | %s | %s | %s |\n", score, kept, thrownAway, equal, letters)
	}
}

// How much worse a number may be than in the baseline.
const (
	lessScore = 0.5
	moreSize  = 1.1
)

// compare lists what is worse than before, and reports whether there is something.
func compare(w io.Writer, before, now []Outcome) bool {
	old := make(map[string]*Outcome)
	for i := range before {
		old[before[i].key()] = &before[i]
	}
	found := 0
	for i := range now {
		o := &now[i]
		b := old[o.key()]
		if b == nil {
			continue
		}
		if why := o.worse(b); why != "" {
			fmt.Fprintf(w, "worse: %s %s %s: %s\n", o.Action, o.Value, o.File, why)
			found++
		}
	}
	fmt.Fprintf(w, "%d outcomes are worse than in the baseline\n", found)
	return found > 0
}

// worse returns why an outcome is worse than b, or "".
func (o *Outcome) worse(b *Outcome) string {
	rank := []string{completed, failed, serverError, hang}
	switch {
	case slices.Index(rank, o.State) > slices.Index(rank, b.State):
		return fmt.Sprintf("%s %s, before %s %s", o.State, o.Code, b.State, b.Code)
	case o.State != b.State || o.State != completed:
		return ""
	case o.Wrong != "" && b.Wrong == "":
		return o.Wrong
	case b.Score != nil && (o.Score == nil || *o.Score < *b.Score-lessScore):
		return fmt.Sprintf("score %s, before %.1f", shown(o.Score), *b.Score)
	case b.Pages[0] == b.Pages[1] && o.Pages[0] != o.Pages[1]:
		return fmt.Sprintf("%d pages become %d", o.Pages[0], o.Pages[1])
	case o.Action == "compress" && o.Ratio > b.Ratio*moreSize:
		return fmt.Sprintf("size ratio %.3f, before %.3f", o.Ratio, b.Ratio)
	case o.silent() && !b.silent():
		return "there was a warning"
	}
	return ""
}

func shown(score *float64) string {
	if score == nil {
		return "unknown"
	}
	return fmt.Sprintf("%.1f", *score)
}
