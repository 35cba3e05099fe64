package matrix_test

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"hash/crc32"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/filewright/filewright/capability"
	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/matrix"
	"github.com/filewright/filewright/internal/specimen"
	"github.com/filewright/filewright/internal/systest"
)

// atOnce is the number of concurrent runs. Most of them wait for a process at times, so that this
// keeps two cores busy.
const atOnce = 3

// TestMatrix runs everything that is listed, on a real file of each format. Other programs judge
// the results. It stands before the parallel tests and runs alone.
//
// Every action runs on every format with every value that selects the result. Each value of a
// parameter with listed values runs once for each pair of families, and with -every once for each entry
// of an action that has it. Other parameters run with one value, for two result formats of each family.
//
// Templates and files with macros run a sample of the values, see [sample]. With -short it runs only
// one of all runs for each action, engine and pair of families.
func TestMatrix(t *testing.T) {
	rec := new(record)
	opened := &opener{dir: t.TempDir()}
	all := leaves()
	scale := full
	switch {
	case testing.Short():
		scale = short
	case *every:
		scale = whole
	}
	t.Run("run", func(t *testing.T) { runAll(t, sample(all, scale), rec, opened) })
	if strings.Contains(flag.Lookup("test.run").Value.String(), "/") {
		return // only a part was selected
	}
	start := time.Now()
	t.Run("open", opened.check)
	rec.took = append(rec.took, timing{name: "opening the documents", judged: time.Since(start)})
	listed, planned := listed(t), covered(all)
	for k := range listed {
		if !planned[k] {
			t.Errorf("listed, but not run: %s", k)
		}
	}
	for k := range planned {
		if !listed[k] {
			t.Errorf("run, but not listed: %s", k)
		}
	}
	t.Logf("%d combinations and values in %d runs", len(listed), len(rec.took)-1)
	rec.report(t)
}

var every = flag.Bool("every", false, "run each value of a parameter for each entry of an action, and not only for each pair of families")

// The scales of the test.
const (
	short = iota // with -short
	full
	whole // with -every
)

// sample returns the leaves to run. At the short scale, it returns one for each action, engine and pair
// of families. At the whole scale it omits only what plain formats show, see [format.Format.Plain]: a
// format that has a plain one runs one target of each family and engine, and each target is run from at
// least one such format. Its parameters run only if the plain format has none like them. At the full
// scale it also omits values of parameters that another pair of formats of the same families shows.
// Which pair shows a value differs from value to value, so that all formats have some.
func sample(all []leaf, scale int) []leaf {
	seen, like := make(counter), make(counter)
	for _, l := range all {
		if !l.variant() {
			seen.times(l.tried())
			like.times(l.shown())
		}
	}
	index := make(counter)
	return slices.DeleteFunc(slices.Clone(all), func(l leaf) bool {
		c := l.cell
		switch {
		case scale == short:
			return seen.times(c.Action, c.Spec.Engine, c.From.Family(), c.Target().Family()) > 1
		case len(l.in) > 2:
			return false
		case !l.variant():
			if scale == whole || l.param == "" {
				return false
			}
			chosen := crc32.ChecksumIEEE([]byte(l.shown())) % uint32(like[l.shown()])
			return uint32(index.times(l.shown())-1) != chosen
		case l.param != "":
			return seen.times(l.tried()) > 1
		}
		family := seen.times("family", c.Action, c.Spec.Engine, c.From, c.Target().Family())
		target := seen.times("target", c.Action, c.Spec.Engine, c.From.Plain(), c.Value)
		return family > 1 && target > 1
	})
}

// shown names the value of a parameter that l tries, for all pairs of formats of the same families. Codecs
// depend on the result format.
func (l leaf) shown() string {
	c := l.cell
	target := string(c.Target().Family())
	if strings.HasSuffix(l.param, "codec") {
		target = c.Value
	}
	_, trial, _ := strings.Cut(l.name, "+")
	return fmt.Sprint("shown", c.Action, c.Spec.Engine, c.From.Family(), target, trial)
}

// variant reports whether l has a template or a file with macros.
func (l leaf) variant() bool { return l.cell.From.Plain() != l.cell.From }

// tried names the value that l tries, for all formats with the same plain one.
func (l leaf) tried() string {
	c := l.cell
	return fmt.Sprint("tried", c.Action, c.Spec.Engine, c.From.Plain(), c.Target().Family(), l.param, l.args[l.param])
}

// What the sample omits is run with another value of the same family and from a similar format. A value
// of a parameter that it omits is run from a similar format.
func TestSample(t *testing.T) {
	all := leaves()
	kept := sample(all, whole)
	has := make(map[string]bool)
	for _, l := range kept {
		c := l.cell
		has[l.name], has[l.tried()] = true, true
		has[fmt.Sprint("family", c.Action, c.Spec.Engine, c.From, c.Target().Family())] = true
		if l.variant() {
			has[fmt.Sprint("target", c.Action, c.Spec.Engine, c.From.Plain(), c.Value)] = true
		}
	}
	for _, l := range all {
		c := l.cell
		like := has[l.tried()]
		if l.param == "" {
			like = has[fmt.Sprint("family", c.Action, c.Spec.Engine, c.From, c.Target().Family())] &&
				has[fmt.Sprint("target", c.Action, c.Spec.Engine, c.From.Plain(), c.Value)]
		}
		if !has[l.name] && (!l.variant() || !like) {
			t.Errorf("%s is not run, nor anything like it", l.name)
		}
	}

	// The full scale has all pairs of formats that the whole one has, and a run of each value.
	shown := make(map[string]bool)
	usual, few := sample(all, full), sample(all, short)
	for _, l := range usual {
		shown[l.name], shown[l.shown()] = true, true
	}
	for _, l := range kept {
		if !shown[l.name] && (l.param == "" || !shown[l.shown()]) {
			t.Errorf("%s is not run at the full scale, nor anything like it", l.name)
		}
	}
	counts := fmt.Sprintf("%d runs, %d at the whole scale, %d at the full one, %d with -short", len(all), len(kept), len(usual), len(few))
	if len(kept) == len(all) || len(usual) >= len(kept) || len(few) >= len(usual)/2 {
		t.Error(counts)
	}
	t.Log(counts)
}

// covered returns the keys and valueKeys of leaves.
func covered(leaves []leaf) map[string]bool {
	out := make(map[string]bool)
	for _, l := range leaves {
		c := l.cell
		out[key(c.Action, c.From, c.Value)] = true
		for _, p := range c.Schema {
			v, given := l.args[p.Name]
			if !given {
				v = p.Default
			}
			if p.Name != c.Param && slices.Contains(valuesOf(c, p), v) {
				out[valueKey(c, p.Name, v)] = true
			}
		}
	}
	return out
}

// runAll runs leaves, some concurrently.
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

// leaves returns all runs: each cell with only the required arguments, and with each parameter
// value that no similar cell has had yet.
func leaves() []leaf {
	seen := make(counter)
	var out []leaf
	for _, c := range cells {
		out = append(out, plainLeaves(c, seen)...)
		for _, p := range c.Schema {
			if p.Name != c.Param && (!p.Required || len(p.Enum) > 0) {
				out = append(out, trialLeaves(c, p, seen)...)
			}
		}
	}
	return out
}

// A counter counts occurrences.
type counter map[string]int

func (n counter) times(key ...any) int {
	k := fmt.Sprint(key...)
	n[k]++
	return n[k]
}

// listed requests what clients can request: every action on every extension with its values.
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
				if len(a.Changes) > 0 {
					out[key(action, f, string(f))] = true
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
			for _, v := range valuesOf(c, p) {
				if p.Name != c.Param {
					out[valueKey(c, p.Name, v)] = true
				}
			}
		}
	}
	return out
}

// listedValues returns the listed values of a parameter. The languages of the text
// recognition are those that the host has; only those of [specimen.LetteredText] count.
func listedValues(p fileops.Param) []any {
	var out []any
	for _, v := range p.Enum {
		if p.Name != "ocr_language" || slices.Contains([]string{"eng", "deu", "deu+eng"}, v) {
			out = append(out, v)
		}
	}
	if p.Type == fileops.Boolean {
		out = append(out, true, false)
	}
	return out
}

// valuesOf returns the listed values of a parameter of c that make a difference: without the default
// of one that has to change the file.
func valuesOf(c matrix.Cell, p fileops.Param) []any {
	return slices.DeleteFunc(listedValues(p), func(v any) bool { return slices.Contains(c.Changes, p.Name) && v == p.Default })
}

// valueKey names a parameter value of one entry of an action, for any format.
func valueKey(c matrix.Cell, param string, value any) string {
	return fmt.Sprintf("%s by %s, entry %d, %s=%v", c.Action, c.Spec.Engine, entry(c), param, value)
}

// entry returns the index of c in the accepted inputs of its action.
func entry(c matrix.Cell) int {
	return slices.IndexFunc(c.Spec.Accepts, func(a fileops.Accept) bool {
		return slices.Contains(a.Formats, c.From) && (c.Param == "" || slices.ContainsFunc(a.Params, func(p fileops.Param) bool {
			return p.Name == c.Param && slices.Contains(p.Enum, c.Value)
		}))
	})
}

// newTitle is the title that files get.
const newTitle = "A new title"

// A leaf is one run.
type leaf struct {
	name  string
	cell  matrix.Cell
	in    []format.Format
	args  fileops.Args
	trial trial
	param string // the tried parameter, or ""
}

func (l leaf) named(format string, a ...any) leaf {
	c := l.cell
	l.name = strings.ReplaceAll(fmt.Sprintf("%s/%s/%s", c.Action, c.From, cmp.Or(c.Value, "plain")), "*", "any") + fmt.Sprintf(format, a...)
	return l
}

// plainLeaves returns the runs of c without optional parameters. An action for every file gets each
// format. An action that joins files gets two files of one format, and once for each entry all
// formats that it can join.
func plainLeaves(c matrix.Cell, seen counter) []leaf {
	l := leaf{cell: c, in: []format.Format{c.From}, args: plain(c)}
	switch {
	case c.From == format.Any:
		var out []leaf
		for f := range format.Known() {
			l.in = []format.Format{f}
			out = append(out, l.named("+%s", f))
		}
		l.in = []format.Format{format.TXT, format.PNG, format.MP3, format.PDF}
		return append(out, l.named("+mixed"))
	case c.Spec.Joint:
		l.in = []format.Format{c.From, c.From}
		out := []leaf{l.named("+same")}
		if i := entry(c); seen.times("mixed", c.Action, c.Spec.Engine, i) == 1 {
			l.in = slices.Clone(c.Spec.Accepts[i].Formats)
			out = append(out, l.named("+mixed"))
		}
		return out
	}
	return []leaf{l.named("")}
}

// trialLeaves returns the runs of c with values of p.
func trialLeaves(c matrix.Cell, p fileops.Param, seen counter) []leaf {
	listed := len(listedValues(p)) > 0
	if !listed && (elsewhere(c) || seen.times(perFamily(c, p)) > 2) {
		return nil
	}
	var out []leaf
	for _, tr := range trialsOf(c, p) {
		if listed && seen.times(valueKey(c, p.Name, tr.value)) > 1 {
			continue
		}
		l := plainLeaves(c, counter{})[0]
		l.trial, l.param = tr, p.Name
		if tr.value != nil {
			l.args = with(l.args, p.Name, tr.value)
		}
		for name, value := range tr.also {
			l.args = with(l.args, name, value)
		}
		if p.Secret || p.Type == fileops.Upload {
			out = append(out, l.named("+%s=given", p.Name))
		} else {
			out = append(out, l.named("+%s=%v", p.Name, tr.value))
		}
	}
	return out
}

// elsewhere reports whether the parameters of c are tried only on similar cells: large pages in
// AVIF take long.
func elsewhere(c matrix.Cell) bool {
	return c.Target() == format.AVIF && c.From.Family() != format.Image
}

// perFamily names a parameter of an engine's result family, for any input.
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
	if l.cell.Action == "extract" {
		judgeMembers(t, out, want)
		return
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
	if want.password != "" {
		if j := lockedJudges[target.Plain()]; j != nil {
			j(t, out[0], want)
			return
		}
	}
	if l.cell.Action == "split" {
		joined := filepath.Join(t.TempDir(), "joined.pdf")
		tool(t, "qpdf", slices.Concat([]string{"--empty", "--pages"}, out, []string{"--", joined})...)
		out = []string{joined}
	}
	if l.cell.Action == "inspect" {
		judgeReport(t, out[0], in[0], want)
		return
	}
	if l.cell.Action == "metadata" {
		field := "-Title"
		if l.cell.From.Family() == format.Image {
			field = "-XMP-dc:Title"
		}
		if title := tool(t, "exiftool", "-s3", field, out[0]); strings.TrimSpace(title) != newTitle {
			t.Errorf("the title is %q", title)
		}
	}
	if l.cell.Action == "thumbnail" && !want.still {
		judgePreview(t, out[0], want)
		return
	}
	judge := judges[target.Plain()]
	if judge == nil {
		t.Fatalf("there is no judge for %s", target)
	}
	want = want.as(l.in, target)
	judge(t, out, want)
	if want.password == "" {
		opened.add(t, out[0], want)
	}
}

// prepare returns the input files and the expected content of the result.
func (l leaf) prepare(t *testing.T) ([]*fileops.File, content) {
	if _, given := l.args[l.param]; l.param != "" && !given {
		t.Fatalf("there is no value to try %s with: add one to oneTrial", l.param)
	}
	var in []*fileops.File
	want := contentOf(l.in[0])
	letters := l.cell.Action == "convert" && l.cell.From.Family() == format.Image && l.cell.Target().Family() == format.Document && l.cell.Target() != format.PDF ||
		l.cell.Action == "ocr" && l.cell.From.Family() == format.Image
	if letters {
		want = content{words: strings.Split(specimen.LetteredText, "\n"), pages: 1}
	}
	captions := l.cell.Action == "convert" && l.cell.From.Family() == format.Video && l.cell.Target().Family() == format.Document
	if captions {
		want = content{words: []string{specimen.Heading, "quick brown fox", "日本語"}, cues: 2}
	}
	for i, f := range l.in {
		s := input(t, l.cell.Action, f)
		switch {
		case l.trial.input != nil:
			s = l.trial.input(t, f)
		case captions:
			s = captioned(t, f)
		case letters:
			s = specimen.Lettered(t, f)
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
	case "rotate":
		if want.still || want.moving > 0 {
			if want.order = orders[fmt.Sprint(l.args["angle"])]; l.args["angle"] != "180" {
				want.w, want.h = want.h, want.w
			}
		}
	case "watermark":
		want.marked = want.still || want.moving > 0
	case "thumbnail":
		if want.still = want.w > 0 && len(l.cell.Changes) == 0; len(l.cell.Changes) > 0 {
			want = content{} // a sheet of pictures
		} else if !want.still {
			want = content{preview: 256}
		} else if l.in[0] == format.SVG { // drawings fill the box
			want.w, want.h = 256, 192
		}
	case "convert":
		if l.cell.From == format.PDF && l.cell.Target() == format.PDF { // the first page, see fileopstest.Changing
			want.pages, want.words = 1, want.words[:min(2, len(want.words))]
		}
	case "fill_form":
		want.pages++
		want.words = append(want.words, "Filled")
	case "compress":
		want.extreme = l.cell.Value == "extreme_compression"
	case "extract":
		switch l.in[0] {
		case format.EML:
			want.entries = attachments(t, "attachment-1.png")
		case format.MSG:
			want.entries = attachments(t, "patches.png")
		}
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

// attachments returns the files in a message; the picture has a name.
func attachments(t *testing.T, picture string) [][2]string {
	t.Helper()
	var b bytes.Buffer
	systest.NoError(t, png.Encode(&b, specimen.Patches(160, 120)))
	return [][2]string{{picture, b.String()}, {specimen.Attachment, specimen.Text}}
}
