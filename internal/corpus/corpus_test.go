package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/standard"
	"github.com/filewright/filewright/internal/matrix"
	"github.com/filewright/filewright/internal/specimen"
	"github.com/filewright/filewright/internal/systest"
)

// The command runs this program for isolated files.
func TestMain(m *testing.M) {
	standard.Main()
	os.Exit(m.Run())
}

// folder writes files to a new directory.
func folder(t *testing.T, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, b := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func content(t *testing.T, f *fileops.File) []byte {
	t.Helper()
	b, ok := f.Bytes()
	if !ok {
		t.Fatal("not in memory")
	}
	return b
}

// The whole command, with the standard engines: a good file completes with a score, a broken file
// fails with its code, and an earlier, better outcome counts as worse.
func TestRun(t *testing.T) {
	paper := content(t, specimen.Of(t, format.PDF))
	dir := folder(t, map[string][]byte{"good.pdf": paper, "below/broken.pdf": paper[:len(paper)/3], "unknown.xyz": nil})
	store := filepath.Join(t.TempDir(), "now.json")
	var out bytes.Buffer
	if worse, err := run(t.Context(), []string{"-action", "convert", "-to", "docx", "-json", store, dir}, &out); worse || err != nil {
		t.Fatalf("%v, %v\n%s", worse, err, &out)
	}
	got, err := load(store)
	if err != nil || len(got) != 2 {
		t.Fatalf("%+v, %v\n%s", got, err, &out)
	}
	if o := got[0]; o.File != "below/broken.pdf" || o.State != failed || o.Code != "corrupt_input" {
		t.Errorf("%+v", o)
	}
	if o := got[1]; o.File != "good.pdf" || o.State != completed || o.Wrong != "" || o.Score == nil || *o.Score < 5 || o.Pages[0] != o.Pages[1] || o.Ratio == 0 {
		t.Errorf("%+v", o)
	}
	for _, want := range []string{"2 runs\n", "convert docx: 2 runs, 1 completed, 0 hangs, 0 server errors, 0 judged wrong, 0 silent losses; failed: corrupt_input 1; 1 scored"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in the output:\n%s", want, &out)
		}
	}

	got[0].State = completed // before, the broken file was converted
	b, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	baseline := filepath.Join(folder(t, map[string][]byte{"b.json": b}), "b.json")
	out.Reset()
	worse, err := run(t.Context(), []string{"-action", "convert", "-to", "docx", "-sample", "1", "-baseline", baseline, dir}, &out)
	if !worse || err != nil || !strings.Contains(out.String(), "worse: convert docx below/broken.pdf: failed corrupt_input, before completed") {
		t.Errorf("%v, %v\n%s", worse, err, &out)
	}
}

// fake returns a runner for one action on a format.
func fake(t *testing.T, f format.Format, do func(context.Context, *fileops.Job) error) (*runner, []matrix.Cell) {
	t.Helper()
	a := fileops.Func(fileops.Spec{Name: "compress", Engine: "fake", Summary: "Fakes.", Accepts: []fileops.Accept{{Formats: []format.Format{f}}}}, do)
	reg, err := fileops.NewRegistry(a)
	if err != nil {
		t.Fatal(err)
	}
	return &runner{registry: reg, scratch: t.TempDir(), timeout: time.Minute, grace: time.Minute, atOnce: 1, out: new(bytes.Buffer)}, matrix.Cells([]fileops.Action{a})
}

// The judges reject results that are not what they seem to be.
func TestJudges(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		format format.Format
		result func(in []byte) []byte
		wrong  string // part of the objection
		silent bool
	}{
		{"the same PDF", format.PDF, bytes.Clone, "", false},
		{"half a PDF", format.PDF, func(in []byte) []byte { return in[:len(in)/2] }, "qpdf", false},
		{"a blank page", format.PDF, func([]byte) []byte { return blankPage() }, "", true},
		{"half a picture", format.PNG, func(in []byte) []byte { return in[:len(in)/4] }, "ffmpeg", false},
		{"the same picture", format.PNG, bytes.Clone, "", false},
		{"half an archive", format.ZIP, func(in []byte) []byte { return append(in[:len(in)/2:len(in)/2], in[len(in)-30:]...) }, "unzip", false},
		{"Latin-1", format.TXT, func([]byte) []byte { return []byte("Fran\xe7ais") }, "not UTF-8", false},
		{"half a sound", format.WAV, halfSound, "lasts", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			in := content(t, specimen.Of(t, tt.format))
			r, cells := fake(t, tt.format, nil)
			r.root = folder(t, map[string][]byte{"a." + string(tt.format): in})
			files, err := walk(r.root)
			if err != nil {
				t.Fatal(err)
			}
			// The judges see a result that a Runner would reject.
			result := filepath.Join(folder(t, map[string][]byte{"b." + string(tt.format): tt.result(in)}), "b."+string(tt.format))
			j := &judges{profile: filepath.Join(r.scratch, "profile")}
			v, err := j.judge(t.Context(), plan(cells, files, "", "", 0, 0)[0], []string{result}, filepath.Join(r.scratch, "judge"))
			o := Outcome{State: completed, Verdict: v}
			if err != nil || (v.Wrong == "") != (tt.wrong == "") || !strings.Contains(v.Wrong, tt.wrong) || o.silent() != tt.silent {
				t.Errorf("%+v, %v, want an objection with %q and silent loss %v", v, err, tt.wrong, tt.silent)
			}
		})
	}
}

// judged returns the verdict for one result of converting a file.
func judged(t *testing.T, from string, in []byte, to string, result []byte) Verdict {
	t.Helper()
	a := fileops.Func(fileops.Spec{Name: "convert", Engine: "fake", Summary: "Fakes.",
		Accepts: []fileops.Accept{{Formats: []format.Format{format.Parse("a." + from)}, Params: fileops.Schema{fileops.Enum("convert_to", "Format.", to)}}}}, nil)
	dir := folder(t, map[string][]byte{"a." + from: in, "b." + to: result})
	tasks := plan(matrix.Cells([]fileops.Action{a}), []string{filepath.Join(dir, "a."+from)}, "", "", 0, 0)
	j := &judges{profile: filepath.Join(dir, "profile")}
	v, err := j.judge(t.Context(), tasks[0], []string{filepath.Join(dir, "b."+to)}, filepath.Join(dir, "judge"))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// A web page and a table have no pages of the original. Their text counts.
func TestJudgesOfText(t *testing.T) {
	t.Parallel()
	paper := content(t, specimen.Of(t, format.PDF))
	text, err := tool(t.Context(), "pdftotext", filepath.Join(folder(t, map[string][]byte{"a.pdf": paper}), "a.pdf"), "-")
	if err != nil {
		t.Fatal(err)
	}
	page := []byte("<!DOCTYPE html><meta charset=utf-8><pre>" + html.EscapeString(string(text)) + "</pre>")
	for _, tt := range []struct {
		to        string
		result    []byte
		low, high float64
	}{
		{"html", page, 9, 10},
		{"html", []byte("<!DOCTYPE html><p>nothing"), 0, 3},
		{"csv", text, 9, 10},
		{"csv", []byte("a,b\n"), 0, 3},
	} {
		if v := judged(t, "pdf", paper, tt.to, tt.result); v.Wrong != "" || v.Score == nil || *v.Score < tt.low || *v.Score > tt.high {
			t.Errorf("%s of %d bytes: %+v, want a score from %g to %g", tt.to, len(tt.result), v, tt.low, tt.high)
		}
	}
	if v := judged(t, "pdf", blankPage(), "html", page); v.Score != nil {
		t.Errorf("nothing to compare: %+v", v)
	}
}

// unzip does not know AES; 7z decides then. A damaged archive stays wrong.
func TestJudgeOfLockedArchive(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string][]byte{"a.txt": bytes.Repeat([]byte("text "), 100)})
	locked := filepath.Join(dir, "a.zip")
	if _, err := tool(t.Context(), "7z", "a", "-tzip", "-mem=AES256", "-p"+password, locked, filepath.Join(dir, "a.txt")); err != nil {
		t.Fatal(err)
	}
	if err := validZIP(t.Context(), locked); err != nil {
		t.Error(err)
	}
	b, err := os.ReadFile(locked)
	if err != nil {
		t.Fatal(err)
	}
	b[60] ^= 1 // in the content
	if err := os.WriteFile(locked, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := validZIP(t.Context(), locked); err == nil {
		t.Error("a damaged archive is valid")
	}
}

// No run starts after the limit, and the outcomes until then are kept.
func TestLimit(t *testing.T) {
	t.Parallel()
	r, cells := fake(t, format.TXT, func(ctx context.Context, _ *fileops.Job) error {
		<-ctx.Done() // of the run, which is longer than the limit of all
		return ctx.Err()
	})
	r.limit, r.timeout = time.Nanosecond, 100*time.Millisecond
	files := make(map[string][]byte)
	for i := range 50 {
		files[fmt.Sprintf("%02d.txt", i)] = []byte("text\n")
	}
	r.root = folder(t, files)
	paths, err := walk(r.root)
	if err != nil {
		t.Fatal(err)
	}
	got, err := r.all(t.Context(), plan(cells, paths, "", "", 0, 0))
	if err != nil || len(got) == 50 {
		t.Errorf("%d outcomes, %v", len(got), err)
	}
	for i, o := range got {
		if want := fmt.Sprintf("%02d.txt", i); o.File != want || o.State != failed {
			t.Errorf("outcome %d: %+v", i, o)
		}
	}
}

// Each action of the standard engines gets the parameters that it requires.
func TestArguments(t *testing.T) {
	t.Parallel()
	set := standard.Probe(t.Context(), &standard.Options{CacheDir: systest.CodeCache()})
	t.Cleanup(func() {
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	})
	reg, err := fileops.NewRegistry(set.Actions()...)
	systest.NoError(t, err)
	for _, c := range matrix.Cells(set.Actions()) {
		in := []format.Format{c.From}
		if c.Spec.Joint {
			in = append(in, c.From)
		}
		if _, _, err := reg.Resolve(c.Action, in, arguments(c)); err != nil {
			t.Errorf("%s of %s: %v", c.Action, c.From, err)
		}
	}
}

// Files share the cells of their format.
func TestPlanEach(t *testing.T) {
	t.Parallel()
	var cells []matrix.Cell
	for _, v := range []string{"1", "2", "3"} {
		cells = append(cells, matrix.Cell{From: format.PDF, Action: "convert", Value: v})
	}
	cells = append(cells, matrix.Cell{From: format.TXT, Action: "convert", Value: "1"})
	var got []string
	for _, t := range plan(cells, []string{"a.pdf", "b.txt", "c.pdf"}, "", "", 0, 2) {
		got = append(got, t.path+" "+t.cell.Value)
	}
	if want := "a.pdf 1, a.pdf 2, b.txt 1, c.pdf 3, c.pdf 1"; strings.Join(got, ", ") != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// blankPage returns a PDF with one empty page.
func blankPage() []byte {
	b := []byte("%PDF-1.4\n")
	xref := "xref\n0 4\n0000000000 65535 f \n"
	for i, object := range []string{"<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>", "<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]>>"} {
		xref += fmt.Sprintf("%010d 00000 n \n", len(b))
		b = fmt.Appendf(b, "%d 0 obj\n%s\nendobj\n", i+1, object)
	}
	return fmt.Appendf(b, "%strailer\n<</Size 4/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n", xref, len(b))
}

// halfSound returns the first half of a WAV file as a valid file.
func halfSound(wav []byte) []byte {
	data := bytes.Index(wav, []byte("data"))
	half := bytes.Clone(wav[:data+8+(len(wav)-data-8)/4*2])
	binary.LittleEndian.PutUint32(half[4:], uint32(len(half)-8))
	binary.LittleEndian.PutUint32(half[data+4:], uint32(len(half)-data-8))
	return half
}

// A run ends in every case, and its state says how.
func TestStates(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, state, code string
		do                func(context.Context, *fileops.Job) error
	}{
		{"completed", completed, "", func(_ context.Context, job *fileops.Job) error {
			job.Warn(fileops.WarnContentDropped, "half of it")
			return job.Keep(job.Input())
		}},
		{"failed", failed, "limit_exceeded", func(context.Context, *fileops.Job) error { return fileops.Fail(fileops.ErrLimit, nil, "") }},
		{"timeout", failed, "timeout", func(ctx context.Context, _ *fileops.Job) error { <-ctx.Done(); return ctx.Err() }},
		{"server error", serverError, "internal_error", func(context.Context, *fileops.Job) error { return errors.New("bug") }},
		{"hang", hang, "", func(context.Context, *fileops.Job) error { <-t.Context().Done(); return nil }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, cells := fake(t, format.TXT, tt.do)
			switch tt.name {
			case "timeout":
				r.timeout = time.Millisecond
			case "hang":
				r.timeout, r.grace = time.Millisecond, time.Millisecond
			}
			r.root = folder(t, map[string][]byte{"a.txt": []byte("text\n")})
			files, err := walk(r.root)
			if err != nil {
				t.Fatal(err)
			}
			got, err := r.all(t.Context(), plan(cells, files, "", "", 0, 0))
			if err != nil || len(got) != 1 || got[0].State != tt.state || got[0].Code != tt.code || (len(got[0].Warnings) == 1) != (tt.state == completed) {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

func TestWorse(t *testing.T) {
	t.Parallel()
	outcome := func(score, ratio float64, pages int) Outcome {
		return Outcome{Action: "compress", State: completed, Ratio: ratio, Verdict: Verdict{Score: &score, Pages: [2]int{3, pages}}}
	}
	wrong := outcome(9, 0.5, 3)
	wrong.Wrong = "damaged"
	warned := outcome(3, 0.5, 3)
	warned.Warnings = []fileops.Warning{{Code: fileops.WarnContentDropped, Message: "most of it is lost"}}
	for _, tt := range []struct {
		name        string
		before, now Outcome
		want        bool
	}{
		{"the same", outcome(9, 0.5, 3), outcome(9, 0.5, 3), false},
		{"a little less", outcome(9, 0.5, 3), outcome(8.6, 0.54, 3), false},
		{"lower score", outcome(9, 0.5, 3), outcome(8, 0.5, 3), true},
		{"no score", outcome(9, 0.5, 3), Outcome{Action: "compress", State: completed}, true},
		{"larger", outcome(9, 0.5, 3), outcome(9, 0.6, 3), true},
		{"more pages", outcome(9, 0.5, 3), outcome(9, 0.5, 4), true},
		{"wrong", outcome(9, 0.5, 3), wrong, true},
		{"still wrong", wrong, wrong, false},
		{"no warning", warned, outcome(3, 0.5, 3), true},
		{"fails", outcome(9, 0.5, 3), Outcome{Action: "compress", State: failed}, true},
		{"another failure", Outcome{State: failed, Code: "timeout"}, Outcome{State: failed, Code: "corrupt_input"}, false},
		{"server error", Outcome{State: failed}, Outcome{State: serverError}, true},
		{"completes", Outcome{Action: "compress", State: hang}, outcome(1, 2, 1), false},
	} {
		if got := compare(new(bytes.Buffer), []Outcome{tt.before}, []Outcome{tt.now}); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestTabulate(t *testing.T) {
	t.Parallel()
	outcome := func(state string, score, letters float64, warnings ...fileops.Warning) Outcome {
		return Outcome{Action: "convert", Value: "docx", State: state, Warnings: warnings, Verdict: Verdict{Score: &score, Letters: &letters, Pages: [2]int{2, 2}}}
	}
	var out bytes.Buffer
	tabulate(&out, sum([]Outcome{
		outcome(completed, 9, 1), outcome(completed, 5, 0.5, fileops.Warning{Code: fileops.WarnContentDropped}), outcome(completed, 3, 0.9),
		{Action: "convert", Value: "docx", State: failed, Code: "corrupt_input"}, {Action: "convert", Value: "docx", State: hang},
	}))
	const want = "| convert docx | 5 | 3 | 1 | 1 | 1 | 0 | 1 | 5.67 | 1 | 1 | 3 of 3 | 80.0 % |\n"
	if !strings.Contains(out.String(), want) {
		t.Errorf("%q is not in the table:\n%s", want, &out)
	}
}

func TestWalk(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string][]byte{"a.txt": nil, "b.txt": nil, "c/d.png": nil, "c/e.pdf": nil, "f.unknown": nil})
	for n, want := range map[int]string{0: "a.txt b.txt d.png e.pdf", 2: "a.txt d.png", 9: "a.txt b.txt d.png e.pdf"} {
		got, err := walk(dir)
		var names []string
		for _, p := range spread(got, n) {
			names = append(names, filepath.Base(p))
		}
		if s := strings.Join(names, " "); err != nil || s != want {
			t.Errorf("sample %d: %s, %v, want %s", n, s, err, want)
		}
	}

	// Only files that the action accepts can be in the sample.
	_, cells := fake(t, format.PDF, nil)
	got, err := walk(dir)
	if err != nil {
		t.Fatal(err)
	}
	if tasks := plan(cells, got, "", "", 1, 0); len(tasks) != 1 || filepath.Base(tasks[0].path) != "e.pdf" {
		t.Errorf("the tasks for one file are %+v", tasks)
	}
}

// The judges of single actions reject results that are valid files with other content.
func TestJudgesOfActions(t *testing.T) {
	t.Parallel()
	read := func(f format.Format) []byte { return content(t, specimen.Of(t, f)) }
	paper, sound := read(format.PDF), read(format.MP3)
	for _, tt := range []struct {
		action, from, to string
		in, result       []byte
		wrong            string // part of the objection
	}{
		{"split", "pdf", "pdf", paper, paper, ""},
		{"split", "pdf", "pdf", paper, blankPage(), "pages"},
		{"metadata", "mp3", "mp3", sound, sound, "title"},
		{"inspect", "pdf", "json", paper, []byte(`{"pdf":{"pages":77}}`), "77 pages"},
		{"inspect", "png", "json", read(format.PNG), []byte(`{"picture":{"width":1,"height":3}}`), "1 × 3"},
		{"inspect", "mp3", "json", sound, []byte(`{"media":{"duration":7000}}`), "7000.0 s"},
		{"inspect", "mp3", "json", sound, []byte(`[]`), "no report"},
		{"fill_form", "pdf", "pdf", paper, paper, "value"},
		{"extract", "gz", "txt", gzipped(t, "text"), []byte("text"), ""},
		{"extract", "gz", "txt", gzipped(t, "text"), []byte("texts"), "b.txt is not"},
		{"extract", "tar", "txt", read(format.TAR), []byte("other"), "b.txt is not"},
	} {
		t.Run(tt.action+" "+tt.from+" "+tt.wrong, func(t *testing.T) {
			t.Parallel()
			dir := folder(t, map[string][]byte{"a." + tt.from: tt.in, "b." + tt.to: tt.result})
			a := fileops.Func(fileops.Spec{Name: tt.action, Engine: "fake", Summary: "Fakes.", Accepts: []fileops.Accept{{Formats: []format.Format{format.Parse("a." + tt.from)}}}}, nil)
			tasks := plan(matrix.Cells([]fileops.Action{a}), []string{filepath.Join(dir, "a."+tt.from)}, "compress,"+tt.action, "same", 0, 0)
			j := &judges{profile: filepath.Join(dir, "profile")}
			v, err := j.judge(t.Context(), tasks[0], []string{filepath.Join(dir, "b."+tt.to)}, filepath.Join(dir, "judge"))
			if err != nil || (v.Wrong == "") != (tt.wrong == "") || !strings.Contains(v.Wrong, tt.wrong) {
				t.Errorf("%+v, %v, want an objection with %q", v, err, tt.wrong)
			}
		})
	}
}

// The page that rotate turned and the first page of an extract are compared with those of the input.
func TestJudgesOfPages(t *testing.T) {
	t.Parallel()
	paper := content(t, specimen.Of(t, format.PDF))
	dir := folder(t, map[string][]byte{"a.pdf": paper, "blank.pdf": blankPage()})
	original := filepath.Join(dir, "a.pdf")
	for _, tt := range []struct {
		action, value string
		args          []string // of qpdf
		kept          bool
	}{
		{"rotate", "", []string{"--rotate=+90"}, true},
		{"rotate", "", []string{"--rotate=+180"}, false},
		{"extract_pages", "", []string{"--pages", original, "1", "--"}, true},
		{"convert", "pdf", []string{"--pages", filepath.Join(dir, "blank.pdf"), "1", "--"}, false},
	} {
		out := filepath.Join(dir, tt.action+".pdf")
		if _, err := tool(t.Context(), "qpdf", append(append([]string{original}, tt.args...), out)...); err != nil {
			t.Fatal(err)
		}
		var v Verdict
		c := task{original, matrix.Cell{Action: tt.action, From: format.PDF, Value: tt.value}}
		if done, err := ofAction(t.Context(), c, []string{out}, dir, &v); !done || err != nil {
			t.Fatal(done, err)
		}
		if (*v.Score >= 8) != tt.kept {
			t.Errorf("%s %v: score %.1f", tt.action, tt.args, *v.Score)
		}
	}
}

// fill_form needs the name of a field.
func TestTextField(t *testing.T) {
	t.Parallel()
	path := filepath.Join(folder(t, map[string][]byte{"a.pdf": content(t, specimen.Of(t, format.PDF))}), "a.pdf")
	if got := textField(t.Context(), path); got != "" {
		t.Errorf("a PDF without fields has %q", got)
	}
}

func gzipped(t *testing.T, s string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(s)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// The target "same" leaves only conversions that keep the format.
func TestWanted(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		action, value, actions, to string
		want                       bool
	}{
		{"convert", "pdf", "", "", true},
		{"convert", "pdf", "convert,split", "same", true},
		{"convert", "docx", "convert,split", "same", false},
		{"convert", "docx", "", "docx", true},
		{"split", "", "convert,split", "same", true},
		{"rotate", "", "convert,split", "", false},
	} {
		c := matrix.Cell{Action: tt.action, From: format.PDF, Param: "convert_to", Value: tt.value}
		if got := wanted(c, tt.actions, tt.to); got != tt.want {
			t.Errorf("%+v: %v", tt, got)
		}
	}
}

// ffmpeg recognises a short AAC file only if it is told what it is. Something else stays wrong.
func TestShortAAC(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	short, damaged := filepath.Join(dir, "short.aac"), filepath.Join(dir, "damaged.aac")
	systest.Run(t, "ffmpeg", "-nostdin", "-v", "error", "-f", "lavfi", "-i", "sine=r=8000:d=0.1", "-ac", "2", short)
	b := systest.ReadFile(t, short)
	if err := os.WriteFile(damaged, bytes.Repeat([]byte("no sound"), len(b)/8), 0o600); err != nil {
		t.Fatal(err)
	}
	in := task{path: short, cell: matrix.Cell{Action: "compress", From: format.AAC}}
	if err := validMedia(t.Context(), in, short); err != nil {
		t.Error(err)
	}
	if err := validMedia(t.Context(), in, damaged); err == nil {
		t.Error("text is a recording")
	}
	if d, err := duration(t.Context(), short); err != nil || d == 0 {
		t.Errorf("%v, %v", d, err)
	}
}

// What a watermark adds is no loss, and what it takes away is.
func TestRemains(t *testing.T) {
	t.Parallel()
	paper := content(t, specimen.Of(t, format.PDF))
	dir := folder(t, map[string][]byte{"paper.pdf": paper, "blank.pdf": blankPage()})
	for _, tt := range []struct {
		original, result string
		scored, lost     bool
	}{
		{"paper.pdf", "paper.pdf", true, false},
		{"paper.pdf", "blank.pdf", true, true},
		{"blank.pdf", "paper.pdf", false, false},
	} {
		var v Verdict
		if err := remains(t.Context(), filepath.Join(dir, tt.original), filepath.Join(dir, tt.result), &v); err != nil {
			t.Fatal(err)
		}
		if (v.Score != nil) != tt.scored || tt.scored && (*v.Score < 4) != tt.lost {
			t.Errorf("%s to %s: score %s", tt.original, tt.result, shown(v.Score))
		}
	}
}
