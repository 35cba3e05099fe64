package matrix_test

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/filewright/filewright/capability"
	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/fileopstest"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/matrix"
)

// atOnce is how many runs there are at a time. Most of them wait for a process
// now and then, so that two cores have enough to do.
const atOnce = 3

// TestMatrix runs everything that is listed, on a real file of each format, and
// has the results judged by other programs. It stands before the parallel tests,
// and is the only one that runs then.
//
// Every action is run on every format with every value that selects the result.
// Each value of a parameter that lists its values is run once for each entry of
// an action that has it; of any other parameter one value is, for two formats of
// results of each family.
func TestMatrix(t *testing.T) {
	rec := &record{ran: make(map[string]bool)}
	opened := &opener{dir: t.TempDir()}
	t.Run("run", func(t *testing.T) { runAll(t, leaves(), rec, opened) })
	if strings.Contains(flag.Lookup("test.run").Value.String(), "/") {
		return // only a part was asked for
	}
	start := time.Now()
	t.Run("open", opened.check)
	rec.took = append(rec.took, timing{name: "opening the documents", judged: time.Since(start)})
	listed := listed(t)
	for k := range listed {
		if !rec.ran[k] {
			t.Errorf("listed, but not run: %s", k)
		}
	}
	for k := range rec.ran {
		if !listed[k] {
			t.Errorf("run, but not listed: %s", k)
		}
	}
	t.Logf("%d combinations and values in %d runs", len(listed), len(rec.took)-1)
	rec.report(t)
}

// runAll runs leaves, some at a time.
func runAll(t *testing.T, leaves []leaf, rec *record, opened *opener) {
	next := make(chan leaf)
	var wg sync.WaitGroup
	for range atOnce {
		wg.Go(func() {
			for l := range next {
				t.Run(l.name, func(t *testing.T) { l.run(t, rec, opened) })
			}
		})
	}
	for _, l := range leaves {
		next <- l
	}
	close(next)
	wg.Wait()
}

// leaves returns all runs.
func leaves() []leaf {
	tried := make(map[string]int)
	var out []leaf
	for _, c := range cells {
		out = append(out, leavesOf(c, tried)...)
	}
	return out
}

// listed asks what clients ask: every action on every extension and its values.
func listed(t *testing.T) map[string]bool {
	m := capability.New(reg, nil)
	out := make(map[string]bool)
	add := func(action string, f format.Format, ext string) {
		a := m.Query(capability.Query{Ext: ext, Action: action})
		for _, p := range []string{"convert_to", "compression_value"} {
			if values, ok := a.Parameters[p].([]string); ok {
				for _, v := range values {
					out[key(action, f, v)] = true
				}
				return
			}
		}
		out[key(action, f, "")] = true
	}
	every := m.Query(capability.Query{Ext: "of-no-known-kind"}).AvailableActions
	for _, action := range every {
		add(action, format.Any, "of-no-known-kind")
	}
	for e := range m.Entries() {
		if e.Format != format.Any {
			add(e.Action, e.Format, string(e.Format))
		}
	}
	for _, c := range cells {
		for _, p := range c.Schema {
			for _, v := range listedValues(p) {
				if p.Name != c.Param {
					out[valueKey(c, p.Name, v)] = true
				}
			}
		}
	}
	return out
}

// listedValues returns the values that a parameter says it may have.
func listedValues(p fileops.Param) []any {
	var out []any
	for _, v := range p.Enum {
		out = append(out, v)
	}
	if p.Type == fileops.Boolean {
		out = append(out, true, false)
	}
	return out
}

// valueKey names a value of a parameter of one entry of an action, whatever the
// format.
func valueKey(c matrix.Cell, param string, value any) string {
	return fmt.Sprintf("%s by %s, entry %d, %s=%v", c.Action, c.Spec.Engine, entry(c), param, value)
}

// entry returns which of what c's action accepts c is of.
func entry(c matrix.Cell) int {
	return slices.IndexFunc(c.Spec.Accepts, func(a fileops.Accept) bool {
		return slices.Contains(a.Formats, c.From) && (c.Param == "" || slices.ContainsFunc(a.Params, func(p fileops.Param) bool {
			return p.Name == c.Param && slices.Contains(p.Enum, c.Value)
		}))
	})
}

// A leaf is one run.
type leaf struct {
	name  string
	cell  matrix.Cell
	in    []format.Format
	args  fileops.Args
	trial trial
	param string // that is tried, "" if none is
}

// leavesOf returns the runs for a cell: with nothing but what is required, and
// with each value of a parameter that no cell like it has had yet.
func leavesOf(c matrix.Cell, tried map[string]int) []leaf {
	base := with(required(c.Schema), c.Param, c.Value)
	name := fmt.Sprintf("%s/%s/%s", c.Action, strings.ReplaceAll(string(c.From), "*", "any"), cmp.Or(c.Value, "plain"))
	first := func(key ...any) bool {
		k := fmt.Sprint(append([]any{c.Action, c.Spec.Engine, entry(c)}, key...))
		tried[k]++
		return tried[k] == 1
	}
	inputs := [][]format.Format{{c.From}}
	switch {
	case c.From == format.Any:
		inputs = nil
		for f := range format.Known() {
			inputs = append(inputs, []format.Format{f})
		}
		inputs = append(inputs, []format.Format{format.TXT, format.PNG, format.MP3, format.PDF})
	case c.Spec.Joint:
		inputs = [][]format.Format{{c.From, c.From}}
		if first("mixed") {
			inputs = append(inputs, slices.Clone(c.Spec.Accepts[entry(c)].Formats))
		}
	}
	var out []leaf
	for i, in := range inputs {
		n := name
		switch {
		case len(in) > 2:
			n += "+mixed"
		case c.From == format.Any:
			n += "+" + string(in[0])
		case i == 0 && c.Spec.Joint:
			n += "+same"
		}
		out = append(out, leaf{name: n, cell: c, in: in, args: base})
	}
	for _, p := range c.Schema {
		if p.Name == c.Param || p.Required && len(p.Enum) == 0 {
			continue
		}
		listed := len(listedValues(p)) > 0
		if !listed {
			if tried[perFamily(c, p)] == 2 || dear(c) {
				continue
			}
			tried[perFamily(c, p)]++
		}
		for _, tr := range trialsOf(c, p) {
			if listed && !first(p.Name, tr.value) {
				continue
			}
			shown := tr.value
			if p.Secret {
				shown = "given"
			}
			args := base
			if tr.value != nil {
				args = with(base, p.Name, tr.value)
			}
			for k, v := range tr.also {
				args[k] = v
			}
			out = append(out, leaf{fmt.Sprintf("%s+%s=%v", name, p.Name, shown), c, inputs[0], args, tr, p.Name})
		}
	}
	return out
}

// dear tells of what takes so long that parameters are tried elsewhere: large
// pages in AVIF.
func dear(c matrix.Cell) bool { return c.Target() == format.AVIF && c.From.Family() != format.Image }

// perFamily names a parameter of what an engine makes, whatever it makes it of.
func perFamily(c matrix.Cell, p fileops.Param) string {
	to := c.Target().Family()
	if c.Spec.Joint {
		to = c.From.Family()
	}
	return fmt.Sprint(c.Action, c.Spec.Engine, to, p.Name)
}

func (l leaf) run(t *testing.T, rec *record, opened *opener) {
	start := time.Now()
	in, want := l.prepare(t)
	made := time.Now()
	out, err := perform(t, l.cell.Action, l.args, in...)
	done := time.Now()
	defer func() { rec.add(l, made.Sub(start), done.Sub(made), time.Since(done)) }()
	if err != nil {
		t.Fatalf("%s: %v", fileops.Code(err), err)
	}
	target := l.cell.Target()
	if target == "" || target == format.Any {
		target = format.Parse(out[0])
	}
	for _, p := range out {
		st, err := os.Stat(p)
		if err != nil || st.Size() == 0 || format.Parse(p) != target {
			t.Fatalf("result %s: %v, or empty, or not %s", filepath.Base(p), err, target)
		}
		if l.cell.Action == "compress" && st.Size() > in[0].Size() {
			t.Errorf("compressed from %d to %d bytes", in[0].Size(), st.Size())
		}
	}
	if l.cell.Action == "lock" || l.cell.Action == "reset_password" {
		if j := lockedJudges[target]; j != nil {
			j(t, out[0], want)
			return
		}
	}
	judge := judges[target]
	if judge == nil {
		t.Fatalf("there is no judge for %s", target)
	}
	want = want.as(l.in, target)
	judge(t, out, want)
	if want.password == "" {
		opened.add(t, out[0], want)
	}
}

// prepare returns the files to run on, and what must be in the result.
func (l leaf) prepare(t *testing.T) ([]*fileops.File, content) {
	if _, given := l.args[l.param]; l.param != "" && !given {
		t.Fatalf("there is no value to try %s with: add one to oneTrial", l.param)
	}
	var in []*fileops.File
	want := contentOf(l.in[0])
	letters := l.cell.Action == "convert" && l.cell.From.Family() == format.Image && l.cell.Target().Family() == format.Document && l.cell.Target() != format.PDF
	if letters {
		want = content{words: strings.Split(fileopstest.LetteredText, "\n"), pages: 1}
	}
	for i, f := range l.in {
		s := input(t, l.cell.Action, f)
		switch {
		case l.trial.input != nil:
			s = l.trial.input(t, f)
		case letters:
			s = fileopstest.Lettered(t, f)
		}
		in = append(in, s.Named(fmt.Sprintf("specimen-%d.%s", i+1, f)))
		if i > 0 {
			want = want.and(contentOf(f))
		}
	}
	switch l.cell.Action {
	case "lock":
		want.password = password
	case "reset_password":
		want.password = "brand-new-7"
	case "compress":
		want.extreme = l.cell.Value == "extreme_compression"
	case "zip":
		want = content{}
		for _, f := range in {
			b, _ := f.Bytes()
			want.entries = append(want.entries, [2]string{f.Name(), string(b)})
		}
	}
	if l.trial.effect != nil {
		l.trial.effect(&want)
	}
	return in, want
}
