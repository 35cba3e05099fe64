//go:build matrix

// "make matrix" runs this: it takes a quarter of an hour.

package matrix_test

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/filewright/filewright/capability"
	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/matrix"
)

// TestMatrix runs everything that is listed, on a real file of each format, and
// has the results judged by other programs.
func TestMatrix(t *testing.T) {
	rec := &record{ran: make(map[string]bool)}
	opened := &opener{dir: t.TempDir()}
	tried := make(map[string]bool) // optional parameters
	t.Run("run", func(t *testing.T) {
		for _, action := range grouped(cells, func(c matrix.Cell) string { return c.Action }) {
			t.Run(action[0].Action, func(t *testing.T) {
				t.Parallel()
				for _, from := range grouped(action, func(c matrix.Cell) string { return string(c.From) }) {
					from := from
					name := strings.ReplaceAll(string(from[0].From), "*", "any")
					var leaves []leaf
					for _, c := range from {
						leaves = append(leaves, leavesOf(c, tried)...)
					}
					t.Run(name, func(t *testing.T) {
						t.Parallel()
						for _, l := range leaves {
							t.Run(l.name, func(t *testing.T) {
								t.Parallel()
								l.run(t, rec, opened)
							})
						}
					})
				}
			})
		}
	})
	if strings.Contains(flag.Lookup("test.run").Value.String(), "/") {
		return // only a part was asked for
	}
	opened.check(t)
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
	slices.SortFunc(rec.took, func(a, b timing) int { return cmp.Compare(b.d, a.d) })
	t.Logf("%d of %d listed combinations in %d runs; the slowest:", len(rec.ran), len(listed), len(rec.took))
	for _, s := range rec.took[:min(12, len(rec.took))] {
		t.Logf("%8.2f s  %s", s.d.Seconds(), s.name)
	}
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
	return out
}

func grouped(cells []matrix.Cell, by func(matrix.Cell) string) [][]matrix.Cell {
	var out [][]matrix.Cell
	for _, c := range cells {
		if n := len(out); n > 0 && by(out[n-1][0]) == by(c) {
			out[n-1] = append(out[n-1], c)
		} else {
			out = append(out, []matrix.Cell{c})
		}
	}
	return out
}

// A leaf is one run.
type leaf struct {
	name string
	cell matrix.Cell
	args fileops.Args
	in   []format.Format
	want func(*content)
}

// leavesOf returns the runs for a cell: with nothing but what is required, and
// with each optional parameter that no cell of the same kind has had yet.
func leavesOf(c matrix.Cell, tried map[string]bool) []leaf {
	base := with(required(c.Schema), c.Param, c.Value)
	name := cmp.Or(c.Value, "plain")
	var out []leaf
	inputs := [][]format.Format{{c.From}}
	if c.From == format.Any {
		inputs = nil
		for f := range format.Known() {
			inputs = append(inputs, []format.Format{f})
		}
		inputs = append(inputs, []format.Format{format.TXT, format.PNG, format.MP3, format.PDF})
	} else if c.Spec.Joint {
		inputs = [][]format.Format{{c.From, c.From}}
		if k := fmt.Sprint("all ", c.Spec.Engine, c.Spec.Name, accepted(c)); !tried[k] {
			tried[k] = true
			inputs = append(inputs, accepted(c))
		}
	}
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
		out = append(out, leaf{n, c, base, in, nil})
	}
	family := string(c.Target().Family())
	if c.Spec.Joint {
		family = string(c.From.Family())
	}
	for _, p := range c.Schema {
		if p.Required || p.Name == c.Param {
			continue
		}
		for _, v := range variations(p) {
			k := fmt.Sprint(c.Spec.Engine, c.Action, family, p.Name, v.value)
			if tried[k] {
				continue
			}
			tried[k] = true
			shown := v.value
			if p.Secret {
				shown = "given"
			}
			out = append(out, leaf{fmt.Sprintf("%s+%s=%v", name, p.Name, shown), c, with(base, p.Name, v.value), inputs[0], v.effect})
		}
		if len(variations(p)) == 0 {
			out = append(out, leaf{fmt.Sprintf("%s+%s=?", name, p.Name), c, nil, nil, nil})
		}
	}
	return out
}

// accepted returns the formats that can be put together with c's.
func accepted(c matrix.Cell) []format.Format {
	for _, acc := range c.Spec.Accepts {
		if slices.Contains(acc.Formats, c.From) {
			return slices.Clone(acc.Formats)
		}
	}
	return nil
}

func (l leaf) run(t *testing.T, rec *record, opened *opener) {
	if l.in == nil {
		t.Fatalf("there is no value to try %s with: add one to trials", l.name)
	}
	var in []*fileops.File
	want := contentOf(l.in[0])
	for i, f := range l.in {
		s := input(t, l.cell.Action, f)
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
	case "zip":
		want = content{}
		for _, f := range in {
			b, _ := f.Bytes()
			want.entries = append(want.entries, [2]string{f.Name(), string(b)})
		}
	}
	if l.want != nil {
		l.want(&want)
	}
	start := time.Now()
	out, err := perform(t, l.cell.Action, l.args, in...)
	rec.add(l.cell, strings.TrimPrefix(t.Name(), "TestMatrix/run/"), time.Since(start))
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
